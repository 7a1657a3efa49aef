//! Leaving a cluster that lives on: uninstall what the operator looks after, or take its finalizers off. Only
//! custom resources that are this operator's: those that its watches select, and, where a chart feeds them,
//! that have its finalizer or release. What others look after is named and not touched.

use super::Requests;
use anyhow::{Result, bail};
use futures::stream::FuturesUnordered;
use futures::{FutureExt as _, StreamExt as _};
use http::Method;
use kube::api::{Api, DynamicObject};
use kube::runtime::conditions::is_deleted;
use kube::runtime::wait::await_condition;
use opdev_client::{is_not_found, plural_path};
use opdev_event::{Event, Leaving, OnExit, PauseScope, Propagation};
use opdev_object::meta::{self, ObjectRef};
use opdev_operator::manager::ManagerRequest;
use opdev_sources::Watch;
use serde_json::Value;
use tokio::sync::oneshot;

/// The finalizers that opdev's reconcilers put on custom resources.
const OWN: [&str; 3] =
    ["helm.sdk.operatorframework.io/uninstall-release", "uninstall-helm-release", "opdev.dev/finalize"];

impl Requests {
    /// Deletes every custom resource that is reconciled and waits until all are gone. The operator must be at
    /// work.
    pub async fn uninstall(&self, namespace: Option<&str>) -> Result<()> {
        let (all, spared) = self.reconciled(namespace).await?;
        let mut left: Vec<ObjectRef> = all.iter().map(|(object, ..)| object.clone()).collect();
        self.tell_leaving(OnExit::Uninstall, all.len(), &left, &spared).await;
        let mut going = FuturesUnordered::new();
        for (object, _, resource) in &all {
            // A paused object does not answer its finalizers.
            for scope in
                [PauseScope::Kind { gvk: object.gvk.clone() }, PauseScope::Object { object: object.clone() }]
            {
                let (reply, _) = oneshot::channel();
                let _ = self.operator.manager.send(ManagerRequest::Resume { scope, reply }).await;
            }
            match self.delete(object, Propagation::Background, None).await {
                Err(error) if !is_not_found(&error) => return Err(error),
                Err(_) | Ok(_) => {}
            }
            let api: Api<DynamicObject> = match &object.namespace {
                Some(namespace) => Api::namespaced_with(self.cluster.client.clone(), namespace, resource),
                None => Api::all_with(self.cluster.client.clone(), resource),
            };
            let uid = object.uid.clone().unwrap_or_default();
            let name = object.name.clone();
            let gone = async move { await_condition(api, &name, is_deleted(&uid)).await };
            going.push(gone.map(move |result| (object, result)));
        }
        while let Some((object, result)) = going.next().await {
            if let Err(error) = result {
                bail!("cannot see whether {object} is gone: {error}");
            }
            left.retain(|known| known != object);
            self.tell_leaving(OnExit::Uninstall, all.len(), &left, &spared).await;
        }
        Ok(())
    }

    /// Takes the operator's own finalizers off. The operator must have ended: it would put them back.
    pub async fn release(&self, namespace: Option<&str>) -> Result<()> {
        let (all, spared) = self.reconciled(namespace).await?;
        let mut left: Vec<ObjectRef> = all.iter().map(|(object, ..)| object.clone()).collect();
        for (object, live, _) in &all {
            self.tell_leaving(OnExit::Release, all.len(), &left, &spared).await;
            let own: Vec<String> = meta::finalizers(live)
                .into_iter()
                .filter(|name| OWN.contains(name))
                .map(str::to_owned)
                .collect();
            if !own.is_empty() {
                match self.drop_finalizers(object, &own).await {
                    Err(error) if !is_not_found(&error) => return Err(error),
                    Err(_) | Ok(_) => {}
                }
            }
            left.retain(|known| known != object);
        }
        self.tell_leaving(OnExit::Release, all.len(), &left, &spared).await;
        Ok(())
    }

    async fn tell_leaving(&self, how: OnExit, total: usize, left: &[ObjectRef], spared: &[ObjectRef]) {
        let total = u32::try_from(total).unwrap_or(u32::MAX);
        let (left, spared) = (left.to_vec(), spared.to_vec());
        self.events.emit(Event::Leaving(Leaving { how, total, left, spared })).await;
    }

    /// The custom resources that are this operator's, as they are now, and others of the same kinds.
    async fn reconciled(&self, namespace: Option<&str>) -> Result<(Vec<Own>, Vec<ObjectRef>)> {
        let watches = self.operator.sources.borrow().watches.clone();
        let (mut own, mut others) = (Vec::new(), Vec::new());
        for watch in watches {
            // A kind that is not served has no objects.
            let Ok((resource, namespaced)) = self.resource(&watch.gvk).await else { continue };
            let path = plural_path(&resource, namespace.filter(|_| namespaced));
            let (list, _) = self.send(Method::GET, &path, "application/json", None).await?;
            for item in list["items"].as_array().into_iter().flatten() {
                let object = ObjectRef {
                    gvk: watch.gvk.clone(),
                    namespace: meta::namespace(item).map(str::to_owned),
                    name: meta::name(item).unwrap_or_default().to_owned(),
                    uid: meta::uid(item).map(str::to_owned),
                };
                match is_own(&watch, item) {
                    true => own.push((object, item.clone(), resource.clone())),
                    false => others.push(object),
                }
            }
        }
        Ok((own, others))
    }
}

/// A custom resource of this operator: what it is, as it is now, and how to reach it.
type Own = (ObjectRef, Value, kube::core::ApiResource);

/// Returns true if a custom resource is this operator's. A chart's has its finalizer before anything is
/// installed.
fn is_own(watch: &Watch, object: &Value) -> bool {
    let marked = || meta::finalizers(object).iter().any(|name| OWN.contains(name));
    let released = || object.pointer("/status/deployedRelease").is_some();
    watch.picks(object) && (watch.chart().is_none() || marked() || released())
}

#[cfg(test)]
mod tests {
    use super::*;
    use opdev_object::meta::Gvk;
    use opdev_sources::chart_options::ChartOptions;
    use opdev_sources::{Allow, ChartReconciler, Reconciler};
    use serde_json::json;
    use std::collections::BTreeMap;
    use std::sync::Arc;

    #[test]
    fn what_another_operator_looks_after_is_not_ours() {
        let chart = ChartReconciler {
            path: "charts/web".to_owned(),
            chart: None,
            watch_dependents: true,
            overrides: BTreeMap::new(),
            dry_run_option: String::new(),
            options: ChartOptions::default(),
            allow: Allow::default(),
            script: None,
        };
        let mut watch = Watch {
            gvk: Gvk::new("example.com", "v1", "Web"),
            reconciler: Reconciler::Chart(Arc::new(chart)),
            broken: None,
            changed_in: 1,
            reconcile_period: None,
            selector: json!({"matchLabels": {"team": "a"}}),
            max_concurrent: None,
        };
        let object = |team: &str, rest: Value| {
            let mut object = json!({"metadata": {"labels": {"team": team}}});
            object.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
            object
        };
        let marked = |team: &str| {
            let mut object = object(team, json!({}));
            object["metadata"]["finalizers"] = json!([OWN[0]]);
            object
        };
        assert!(is_own(&watch, &marked("a")));
        assert!(is_own(&watch, &object("a", json!({"status": {"deployedRelease": {}}}))));
        assert!(!is_own(&watch, &marked("b")), "another instance's, by its label");
        assert!(!is_own(&watch, &object("a", json!({}))), "nobody has installed it");
        watch.reconciler = Reconciler::Type(Arc::default());
        assert!(is_own(&watch, &object("a", json!({}))), "a program need not mark anything");
        assert!(!is_own(&watch, &object("b", json!({}))));
    }
}
