//! Leaving a cluster that lives on: uninstall what the operator looks after, or take its finalizers off. Only custom
//! resources that this opdev reconciles; another opdev on the cluster, and what it looks after, is not touched.

use super::Requests;
use super::send::{is_not_found, plural_path};
use crate::event::{Event, Leaving, OnExit, PauseScope, Propagation};
use crate::operator::manager::ManagerRequest;
use anyhow::{Result, bail};
use futures::stream::FuturesUnordered;
use futures::{FutureExt as _, StreamExt as _};
use kube::api::{Api, DynamicObject};
use kube::runtime::conditions::is_deleted;
use kube::runtime::wait::await_condition;
use opdev_object::meta::{self, ObjectRef};
use serde_json::Value;
use tokio::sync::oneshot;

/// The finalizers that opdev's reconcilers put on custom resources.
const OWN: [&str; 3] =
    ["helm.sdk.operatorframework.io/uninstall-release", "uninstall-helm-release", "opdev.dev/finalize"];

impl Requests {
    /// Deletes every custom resource that is reconciled and waits until all are gone. The operator must be at work.
    pub(in crate::dev) async fn uninstall(&self, namespace: Option<&str>) -> Result<()> {
        let all = self.reconciled(namespace).await?;
        let mut left: Vec<ObjectRef> = all.iter().map(|(object, ..)| object.clone()).collect();
        self.tell_leaving(OnExit::Uninstall, all.len(), &left).await;
        let mut going = FuturesUnordered::new();
        for (object, _, resource) in &all {
            // What is paused does not answer its finalizers.
            for scope in
                [PauseScope::Kind { gvk: object.gvk.clone() }, PauseScope::Object { object: object.clone() }]
            {
                let (reply, _) = oneshot::channel();
                let _ = self.operator.send(ManagerRequest::Resume { scope, reply }).await;
            }
            match self.delete(object, Propagation::Background, None).await {
                Err(error) if !is_not_found(&error) => return Err(error),
                Err(_) | Ok(_) => {}
            }
            let api: Api<DynamicObject> = match &object.namespace {
                Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, resource),
                None => Api::all_with(self.client.clone(), resource),
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
            self.tell_leaving(OnExit::Uninstall, all.len(), &left).await;
        }
        Ok(())
    }

    /// Takes the operator's own finalizers off. The operator must have ended: it would put them back.
    pub(in crate::dev) async fn release(&self, namespace: Option<&str>) -> Result<()> {
        let all = self.reconciled(namespace).await?;
        let mut left: Vec<ObjectRef> = all.iter().map(|(object, ..)| object.clone()).collect();
        for (object, live, _) in &all {
            self.tell_leaving(OnExit::Release, all.len(), &left).await;
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
        self.tell_leaving(OnExit::Release, all.len(), &left).await;
        Ok(())
    }

    async fn tell_leaving(&self, how: OnExit, total: usize, left: &[ObjectRef]) {
        let total = u32::try_from(total).unwrap_or(u32::MAX);
        self.events.emit(Event::Leaving(Leaving { how, total, left: left.to_vec() })).await;
    }

    /// The custom resources that are reconciled, as they are now.
    async fn reconciled(
        &self,
        namespace: Option<&str>,
    ) -> Result<Vec<(ObjectRef, Value, kube::core::ApiResource)>> {
        let kinds: Vec<_> = self.sources.borrow().watches.iter().map(|watch| watch.gvk.clone()).collect();
        let mut all = Vec::new();
        for gvk in kinds {
            // A kind that is not served has no objects.
            let Ok((resource, namespaced)) = self.resource(&gvk).await else { continue };
            let path = plural_path(&resource, namespace.filter(|_| namespaced));
            let (list, _) = self.send("GET", &path, "application/json", None).await?;
            for item in list["items"].as_array().into_iter().flatten() {
                let object = ObjectRef {
                    gvk: gvk.clone(),
                    namespace: meta::namespace(item).map(str::to_owned),
                    name: meta::name(item).unwrap_or_default().to_owned(),
                    uid: meta::uid(item).map(str::to_owned),
                };
                all.push((object, item.clone(), resource.clone()));
            }
        }
        Ok(all)
    }
}
