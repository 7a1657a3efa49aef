//! Somebody disturbs a settled sample, as happens in each cluster: a child is deleted, a child is changed, a
//! ConfigMap or Secret of the sample's file is changed, and the custom resource is changed while the program
//! does not run. Findings judge the answer. Only on a control plane of its own, never on a cluster.

use super::{SampleRun, Wrong, api};
use crate::inventory::{may_stay, stays};
use crate::world::waits;
use anyhow::{Context as _, Result, anyhow};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kube::ResourceExt as _;
use kube::api::{Api, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::runtime::wait::await_condition;
use opdev_client::resource_of;
use opdev_event::{Action, OperatorTask, ProcessState, Reconcile, TraceLevel};
use opdev_object::facts::replicas;
use opdev_object::meta::{Gvk, ObjectKey, ObjectRef, put};
use opdev_state::State;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// How long a deleted child may take to come back: opdev asks for a reconcile after 5 s.
const BACK: Duration = Duration::from_secs(8);
/// How long the first reconcile of a program that was started again may take.
const COMES: Duration = Duration::from_secs(10);
/// The field manager of the changes, and the key of the label and the annotation that they set.
const MANAGER: &str = "opdev-ci";
const MARK: &str = "opdev.dev/changed-by";
/// Fields of children that get their value again.
const FIELDS: [&str; 2] = ["replicas", "ports"];
/// How deep below `spec` a number of replicas is looked for.
const DEPTH: usize = 3;

impl SampleRun<'_> {
    /// Disturbs once in each way; whether to go on.
    pub(super) async fn disturbed(&mut self) -> bool {
        if self.world.own_namespace().is_some() || !self.disturbs {
            return true;
        }
        let children = self.children().await;
        if !children.is_empty() {
            let began = Instant::now();
            let deleted = self.children_deleted(&children).await;
            if !self.note("a child of each kind is deleted", began, deleted) {
                return false;
            }
            let began = Instant::now();
            let changed = match self.children_changed(&children).await {
                Ok(changed) => {
                    self.decided().await;
                    self.children_put_back(changed).await
                }
                Err(wrong) => Err(wrong),
            };
            if !self.note("a child of each kind is changed", began, changed) {
                return false;
            }
        }
        let configs = self.configs().await;
        if !configs.is_empty() {
            let began = Instant::now();
            let changed = self.configs_changed(configs).await;
            if !self.note("a ConfigMap or Secret of the file is changed", began, changed) {
                return false;
            }
        }
        if !self.objects.iter().any(|object| self.is_programs(object)) {
            return true;
        }
        let began = Instant::now();
        let changed = self.changed_while_stopped().await;
        let well = self.note("changed while the program is stopped", began, changed);
        self.decided().await;
        well
    }

    /// The first child of each kind that the operator has made and that is there. Data, and what ends by
    /// itself, is left alone: nobody may be able to make it again.
    async fn children(&self) -> Vec<ObjectRef> {
        const LEFT_ALONE: [&str; 4] = ["Secret", "Namespace", "Job", "Pod"];
        let state = self.world.state();
        let own = |object: &ObjectRef| {
            state.kinds().iter().any(|kind| kind.gvk.group_kind() == object.gvk.group_kind())
        };
        let (mut kinds, mut found) = (BTreeSet::new(), Vec::new());
        let reconciles = self.world.reconciles();
        let changes = reconciles.iter().flat_map(|reconcile| &reconcile.objects);
        for change in changes.filter(|change| change.action == Action::Created) {
            let (object, gvk) = (&change.object, &change.object.gvk);
            let kind = (gvk.group.clone(), gvk.kind.clone());
            let left_alone = stays(&gvk.group, &gvk.kind) || LEFT_ALONE.contains(&gvk.kind.as_str());
            if left_alone || own(object) || kinds.contains(&kind) {
                continue;
            }
            let Ok(Some(there)) = self.live(object).await else { continue };
            let same = object.uid.is_none() || there.uid() == object.uid;
            if same && !may_stay(&there) && there.metadata.deletion_timestamp.is_none() {
                kinds.insert(kind);
                found.push(object.clone());
            }
        }
        found
    }

    /// Deletes one child after the other and waits until it is back. One that nobody makes again is put
    /// back; one that may not be deleted, or has gone with another one, is left alone.
    async fn children_deleted(&self, children: &[ObjectRef]) -> Result<(), Wrong> {
        for child in children {
            let Some(there) = self.live(child).await? else { continue };
            let api = self.api_of(child).await?;
            if api.delete(&child.name, &kube::api::DeleteParams::default()).await.is_err() {
                continue;
            }
            if !is_back(&api, &there).await {
                self.decided().await;
                put_back(&api, there).await.with_context(|| format!("{child} cannot be put back"))?;
            }
            self.settled_again(&format!("{child} was deleted")).await?;
        }
        Ok(())
    }

    /// Changes one child after the other. The API server may refuse a part of a change, as of an immutable
    /// ConfigMap, or all of it. Returns those of which a number or a port was changed, as they were.
    async fn children_changed(
        &self,
        children: &[ObjectRef],
    ) -> Result<Vec<(ObjectRef, DynamicObject)>, Wrong> {
        let mut changed = Vec::new();
        for child in children {
            let Some(there) = self.live(child).await? else { continue };
            let scaled = self.is_scaled(child).await;
            let change = change_of(&there, scaled);
            let marks = json!({"metadata": change["metadata"]});
            let whole = self.patch(child, &change).await.is_ok();
            if whole || self.patch(child, &marks).await.is_ok() {
                self.settled_again(&format!("{child} was changed")).await?;
            }
            if whole && FIELDS.iter().any(|field| change["spec"].get(field).is_some()) {
                changed.push((child.clone(), there));
            }
        }
        Ok(changed)
    }

    /// Gives children their numbers and ports again that the operator has left as they were changed. The next
    /// steps are not about them.
    async fn children_put_back(&self, changed: Vec<(ObjectRef, DynamicObject)>) -> Result<(), Wrong> {
        for (child, before) in changed {
            let Some(now) = self.live(&child).await? else { continue };
            let mut back = serde_json::Map::new();
            for field in FIELDS {
                let (old, new) = (&before.data["spec"][field], &now.data["spec"][field]);
                if old != new && !old.is_null() {
                    back.insert(field.to_owned(), old.clone());
                }
            }
            if !back.is_empty() && self.patch(&child, &json!({ "spec": back })).await.is_ok() {
                self.settled_again(&format!("{child} was changed back")).await?;
            }
        }
        Ok(())
    }

    /// True if an autoscaler has the say over the number of its pods, or nobody knows.
    async fn is_scaled(&self, child: &ObjectRef) -> bool {
        let scaler = Gvk::new("autoscaling", "v2", "HorizontalPodAutoscaler");
        let Ok((resource, _)) = resource_of(&self.world.client, &scaler).await else { return false };
        let api = api(&self.world.client, &resource, child.namespace.as_deref());
        let targets = |one: &DynamicObject| {
            let target = &one.data["spec"]["scaleTargetRef"];
            target["kind"] == child.gvk.kind.as_str() && target["name"] == child.name.as_str()
        };
        api.list(&ListParams::default()).await.map_or(true, |all| all.items.iter().any(targets))
    }

    /// ConfigMaps and Secrets of the sample's file: the operator may read them, and has not made them. With a
    /// change of one value, and the way back.
    async fn configs(&self) -> Vec<(ObjectRef, Value, Value)> {
        let mut found = Vec::new();
        for other in &self.sample.others {
            if !other.gvk.is_config() {
                continue;
            }
            let mut object = other.clone();
            if object.namespace.is_none() {
                object.namespace = self.world.namespace_of(&object.gvk).await.ok().flatten();
            }
            let Ok(Some(there)) = self.live(&object).await else { continue };
            if let Some((change, back)) = change_of_config(&there) {
                found.push((object, change, back));
            }
        }
        found
    }

    /// Changes one object after the other, and back once findings have judged what comes of it.
    async fn configs_changed(&self, configs: Vec<(ObjectRef, Value, Value)>) -> Result<(), Wrong> {
        for (object, change, back) in configs {
            if self.patch(&object, &change).await.is_err() {
                continue;
            }
            // An operator may refuse the value: then it has to get over that.
            let settled = self.settled_again(&format!("{object} was changed")).await;
            if settled.is_ok() {
                self.decided().await;
            }
            self.patch(&object, &back).await.with_context(|| format!("{object} cannot be put back"))?;
            self.settled_again(&format!("{object} was changed and changed back")).await?;
            self.decided().await;
        }
        Ok(())
    }

    /// Stops the program, changes each custom resource, starts the program, and changes them back. Its
    /// webhooks do not answer meanwhile: a custom resource that they guard stays as it is.
    async fn changed_while_stopped(&mut self) -> Result<(), Wrong> {
        let runs = |state: &State| state.programs.runs().any(|run| is_running(&run.state));
        self.world.ask(OperatorTask::StopPrograms, self.limit).await?;
        let stopped = |state: &State| (!runs(state)).then_some(());
        let stopped = self.world.until(self.limit, stopped).await.is_ok();
        let changed = if stopped { self.custom_changed().await } else { Vec::new() };
        let newest = self.world.reconciles().iter().map(|reconcile| reconcile.id).max().unwrap_or_default();
        // Whatever has happened, nobody finds a program that ci has stopped.
        self.world.ask(OperatorTask::StartPrograms, self.limit).await?;
        let all_run = |state: &State| state.programs.runs().all(|run| is_running(&run.state));
        let started = |state: &State| all_run(state).then_some(());
        let unstarted = |_| anyhow!("the program does not start again within {} s", self.limit.as_secs());
        self.world.until(self.limit, started).await.map_err(unstarted)?;
        self.reconciled_after(newest).await;
        // An operator may refuse the number, such as an even one of members: then it has to get over that.
        let settled =
            self.settled_again("the custom resource was changed while the program was stopped").await;
        if settled.is_err() && changed.is_empty() {
            return settled;
        }
        self.decided().await;
        for (object, back) in &changed {
            // Some numbers may only grow.
            let _ = self.patch(object, back).await;
        }
        self.settled_again("the custom resource was changed and changed back").await
    }

    /// Changes each custom resource as far as the API server takes it; those with one replica more, with the
    /// way back.
    async fn custom_changed(&self) -> Vec<(ObjectRef, Value)> {
        let mut changed = Vec::new();
        for object in &self.objects {
            let Ok(Some(there)) = self.live(object).await else { continue };
            let (change, back) = change_of_custom(&there);
            if change.get("spec").is_some() && self.patch(object, &change).await.is_ok() {
                changed.push((object.clone(), back));
            } else {
                let _ = self.patch(object, &json!({"metadata": change["metadata"]})).await;
            }
        }
        changed
    }

    /// Waits until the program has reconciled each object since a reconcile, but not for long: its
    /// predicates may drop what is there at its start, and a program that does not tell of its reconciles
    /// may have nothing to do.
    async fn reconciled_after(&self, reconcile: u64) {
        let keys = self.objects.iter().map(ObjectRef::key);
        let state = self.world.state();
        let tells = |newest: &Reconcile| {
            newest.process.as_ref().is_some_and(|process| process.traced == TraceLevel::Full)
        };
        let keys: Vec<ObjectKey> =
            keys.filter(|key| state.history.last(key).is_some_and(|newest| tells(newest))).collect();
        let has = |state: &State, key: &ObjectKey| {
            state.history.last(key).is_some_and(|newest| newest.id > reconcile)
        };
        let all = |state: &State| keys.iter().all(|key| has(state, key)).then_some(());
        let _ = self.world.until(self.limit.min(COMES), all).await;
    }

    async fn settled_again(&self, after: &str) -> Result<(), Wrong> {
        let keys: Vec<ObjectKey> = self.objects.iter().map(ObjectRef::key).collect();
        let settled = self.rest(|state| waits(state, &keys)).await;
        settled.map_err(|wrong| Wrong { message: format!("after {after}: {}", wrong.message), ..wrong })
    }

    async fn api_of(&self, object: &ObjectRef) -> Result<Api<DynamicObject>> {
        let (resource, _) = resource_of(&self.world.client, &object.gvk).await?;
        Ok(api(&self.world.client, &resource, object.namespace.as_deref()))
    }

    async fn live(&self, object: &ObjectRef) -> Result<Option<DynamicObject>> {
        Ok(self.api_of(object).await?.get_opt(&object.name).await?)
    }

    async fn patch(&self, object: &ObjectRef, change: &Value) -> Result<()> {
        let params = PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() };
        let api = self.api_of(object).await?;
        api.patch(&object.name, &params, &Patch::Merge(change)).await?;
        Ok(())
    }
}

/// Waits until another object stands in the place of one that was deleted; not for long.
async fn is_back(api: &Api<DynamicObject>, old: &DynamicObject) -> bool {
    let until = Instant::now() + BACK;
    let is_new = |now: Option<&DynamicObject>| now.is_some_and(|now| now.uid() != old.uid());
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let back = tokio::time::timeout(left, await_condition(api.clone(), &old.name_any(), is_new)).await;
        match back {
            Ok(Ok(_)) => return true,
            // A watch may break.
            Ok(Err(_)) if !left.is_zero() => {}
            Ok(Err(_)) | Err(_) => return false,
        }
    }
}

fn is_running(state: &ProcessState) -> bool {
    matches!(state, ProcessState::Running { .. })
}

/// Makes an object again as it was. Somebody else may have made it meanwhile.
async fn put_back(api: &Api<DynamicObject>, mut object: DynamicObject) -> Result<()> {
    let metadata = &mut object.metadata;
    (metadata.uid, metadata.resource_version, metadata.managed_fields) = (None, None, None);
    match api.create(&PostParams::default(), &object).await {
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(()),
        made => made.map(drop).map_err(anyhow::Error::from),
    }
}

/// A change of a child as a merge patch: a label and an annotation, and a part of it that operators mostly
/// write themselves. The number of replicas of a `scaled` one is its autoscaler's.
fn change_of(child: &DynamicObject, scaled: bool) -> Value {
    let marks = json!({MARK: MANAGER});
    let mut change = json!({"metadata": {"labels": marks, "annotations": marks}});
    let part = match child.types.as_ref().map(|types| types.kind.as_str()) {
        Some("ConfigMap") => {
            let first = child.data.get("data").and_then(Value::as_object).and_then(|data| data.iter().next());
            first.and_then(|(key, value)| Some(("data", json!({key: format!("{}\n", value.as_str()?)}))))
        }
        Some("Deployment" | "StatefulSet" | "DaemonSet") => {
            let mut spec = json!({"template": {"metadata": {"annotations": {MARK: MANAGER}}}});
            // A member of a StatefulSet may have to be let in by what pods here do not do.
            let stateless = child.types.as_ref().is_some_and(|types| types.kind == "Deployment");
            let count = child.data.pointer("/spec/replicas").and_then(Value::as_i64);
            if let Some(count) = count.filter(|count| stateless && !scaled && (1..100).contains(count)) {
                put(&mut spec, &["replicas"], count + 1);
            }
            Some(("spec", spec))
        }
        Some("Service") => ports_of(child).map(|ports| ("spec", json!({ "ports": ports }))),
        _ => None,
    };
    if let (Some((name, part)), Some(change)) = (part, change.as_object_mut()) {
        change.insert(name.to_owned(), part);
    }
    change
}

/// The ports of a Service, the first one with another name, or without a name with another port of its pods.
/// With another number, server-side apply would make a second port of the same name.
fn ports_of(service: &DynamicObject) -> Option<Value> {
    let mut ports = service.data.pointer("/spec/ports")?.as_array()?.clone();
    let first = ports.first_mut()?;
    if let Some(name) = first["name"].as_str() {
        let name = format!("{name}-x");
        put(first, &["name"], name);
    } else {
        let port = first["targetPort"].as_i64().filter(|port| (1..60_000).contains(port))?;
        put(first, &["targetPort"], port + 1);
    }
    Some(Value::Array(ports))
}

/// A change of one value of a ConfigMap or Secret as a merge patch, and the way back: a line end more, which
/// most formats allow. What cannot be changed, and the token of an account, is left alone.
fn change_of_config(object: &DynamicObject) -> Option<(Value, Value)> {
    let account = object.data.get("type").is_some_and(|kind| kind == "kubernetes.io/service-account-token");
    let fixed = object.data.get("immutable") == Some(&Value::Bool(true));
    let (key, value) = object.data.get("data")?.as_object()?.iter().next()?;
    let text = value.as_str().filter(|_| !account && !fixed)?;
    let is_secret = object.types.as_ref().is_some_and(|types| types.kind == "Secret");
    let changed = if is_secret {
        let mut bytes = STANDARD.decode(text).ok()?;
        bytes.push(b'\n');
        STANDARD.encode(bytes)
    } else {
        format!("{text}\n")
    };
    let patch = |value: &str| json!({"data": {key: value}});
    Some((patch(&changed), patch(text)))
}

/// A change of a custom resource as a merge patch, and the one that takes back its spec: one replica more
/// where a field says how many, and an annotation.
fn change_of_custom(object: &DynamicObject) -> (Value, Value) {
    let marks = json!({"annotations": {MARK: MANAGER}});
    let count = object.data.get("spec").and_then(|spec| count_in(spec, DEPTH));
    match count {
        Some((path, count)) => {
            let at = |count: i64| path.iter().rev().fold(json!(count), |inner, name| json!({(*name): inner}));
            (json!({"metadata": marks, "spec": at(count + 1)}), json!({"spec": at(count)}))
        }
        None => (json!({"metadata": marks}), json!({})),
    }
}

/// The path and the value of a number of replicas, the one that is nearest to the top.
fn count_in(part: &Value, depth: usize) -> Option<(Vec<&str>, i64)> {
    let fields = part.as_object()?;
    let here = replicas::NAMES.iter().find_map(|name| {
        let (name, value) = fields.get_key_value(*name)?;
        Some((vec![name.as_str()], value.as_i64().filter(|count| (0..100).contains(count))?))
    });
    let below = || {
        let inner = |(name, value)| -> Option<(Vec<&str>, i64)> {
            let (name, value): (&String, &Value) = (name, value);
            let (path, count) = count_in(value, depth - 1).filter(|_| !replicas::is_of_storage(name))?;
            Some(([vec![name.as_str()], path].concat(), count))
        };
        fields.iter().find_map(inner)
    };
    here.or_else(|| if depth > 0 { below() } else { None })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(value: Value) -> DynamicObject {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn a_custom_resource_gets_one_replica_more_and_loses_it_again() {
        let shelf = object(json!({"apiVersion": "a/v1", "kind": "Shelf", "metadata": {"name": "a"},
            "spec": {"image": "x", "server": {"replicas": 2}}}));
        let (change, back) = change_of_custom(&shelf);
        assert_eq!(change["spec"], json!({"server": {"replicas": 3}}));
        assert_eq!(back, json!({"spec": {"server": {"replicas": 2}}}));
        let none = object(json!({"apiVersion": "a/v1", "kind": "Shelf", "metadata": {"name": "a"},
            "spec": {"replicas": "2", "list": [{"replicas": 1}], "dataStorage": {"size": 10}}}));
        assert_eq!(change_of_custom(&none).0, json!({"metadata": {"annotations": {MARK: MANAGER}}}));
    }

    #[test]
    fn a_child_is_changed_where_operators_write() {
        let map = object(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"},
            "data": {"conf": "a"}}));
        assert_eq!(change_of(&map, false)["data"], json!({"conf": "a\n"}));
        let workload = |spec: Value| {
            object(json!({"apiVersion": "apps/v1", "kind": "Deployment",
                "metadata": {"name": "a"}, "spec": spec}))
        };
        let change = change_of(&workload(json!({"replicas": 2})), false);
        assert!(change.pointer("/spec/template/metadata/annotations").is_some());
        assert_eq!(change["spec"]["replicas"], 3);
        for (replicas, scaled) in [(0, false), (2, true)] {
            let change = change_of(&workload(json!({ "replicas": replicas })), scaled);
            assert_eq!(change["spec"].get("replicas"), None, "{replicas} {scaled}");
        }
        let service = |spec: Value| {
            object(json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}, "spec": spec}))
        };
        let change = change_of(&service(json!({})), false);
        let changed: Vec<String> = change.as_object().unwrap().keys().cloned().collect();
        assert_eq!(changed, ["metadata"]);
        let named = json!({"ports": [{"name": "http", "port": 80}, {"name": "admin", "port": 81}]});
        let ports = json!([{"name": "http-x", "port": 80}, {"name": "admin", "port": 81}]);
        assert_eq!(change_of(&service(named), false)["spec"]["ports"], ports);
        let plain = json!({"ports": [{"port": 80, "targetPort": 8080}]});
        let ports = json!([{"port": 80, "targetPort": 8081}]);
        assert_eq!(change_of(&service(plain), false)["spec"]["ports"], ports);
    }

    #[test]
    fn a_config_of_the_file_gets_another_value_and_its_own_again() {
        let config = |kind: &str, data: Value, more: Value| {
            let mut config =
                json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": "a"}, "data": data});
            config.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            change_of_config(&object(config))
        };
        let data = json!({"a": "b", "c": "d"});
        let map = config("ConfigMap", data.clone(), json!({}));
        assert_eq!(map, Some((json!({"data": {"a": "b\n"}}), json!({"data": {"a": "b"}}))));
        let secret = config("Secret", json!({"a": "Yg=="}), json!({}));
        assert_eq!(secret, Some((json!({"data": {"a": "Ygo="}}), json!({"data": {"a": "Yg=="}}))));
        assert_eq!(config("ConfigMap", data, json!({"immutable": true})), None);
        assert_eq!(config("ConfigMap", json!({}), json!({})), None);
        let account = json!({"type": "kubernetes.io/service-account-token"});
        assert_eq!(config("Secret", json!({"a": "Yg=="}), account), None);
    }
}
