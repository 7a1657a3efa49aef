//! A small cluster in memory for the tests of the controllers: the rules of the API server that they rely on,
//! a clock that only moves when told, and a record of every write.

#![allow(clippy::needless_pass_by_value, reason = "json! at the call reads better without borrows")]

use crate::Settings;
use crate::contract::{
    Actor, Change, Controller, Key, Observed, Propagation, Readable, Refusal, ResourceInfo, View, Write,
};
use crate::engine::{Engine, Plane};
use crate::fields::{deleting, list, name, put, stamp, text, uid};
use crate::lists::{Lists, view_of_lists};
use jiff::Timestamp;
use opdev_apimachinery::attributes::{Attributes, Indexing};
use opdev_object::meta;
use opdev_object::patch::merge_patch;
use opdev_registry::indexing;
use serde_json::{Map, Value, json};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

type Refuse = Box<dyn Fn(&Write) -> Option<Refusal>>;

#[derive(Default)]
struct State {
    objects: BTreeMap<Key, Arc<Value>>,
    changes: Vec<Change>,
    log: Vec<(&'static str, Write)>,
    revision: u64,
    serial: u64,
    elapsed: Duration,
}

/// The settings of these tests.
pub(crate) fn settings() -> Settings {
    let consumers = opdev_registry::consumers().collect();
    Settings { root_ca: "PEM".into(), consumers, ..Settings::default() }
}

/// The store.
pub(crate) struct Memory {
    state: RefCell<State>,
    refuse: RefCell<Refuse>,
}

/// The store with the controllers at work on it.
pub(crate) struct Simulation {
    pub(crate) memory: Memory,
    engine: Engine,
}

const SERVED: &str = "
 v1 Namespace namespaces -|v1 Node nodes -|v1 PersistentVolume persistentvolumes -|v1 Pod pods +|v1 Service services +
 v1 ConfigMap configmaps +|v1 Secret secrets +|v1 ServiceAccount serviceaccounts +|v1 Endpoints endpoints +
 v1 PersistentVolumeClaim persistentvolumeclaims +|v1 Event events +|apps/v1 Deployment deployments +
 apps/v1 ReplicaSet replicasets +|apps/v1 StatefulSet statefulsets +|apps/v1 DaemonSet daemonsets +
 apps/v1 ControllerRevision controllerrevisions +|batch/v1 Job jobs +|batch/v1 CronJob cronjobs +|autoscaling/v2 HorizontalPodAutoscaler horizontalpodautoscalers +|v1 ResourceQuota resourcequotas +|coordination.k8s.io/v1 Lease leases +
 discovery.k8s.io/v1 EndpointSlice endpointslices +|storage.k8s.io/v1 StorageClass storageclasses -
 policy/v1 PodDisruptionBudget poddisruptionbudgets +
 cache.my.domain/v1 Memcached memcacheds +|cache.my.domain/v1 Fleet fleets -
";

fn refusal(code: u16, reason: &str, message: String) -> Refusal {
    Refusal { code, reason: reason.to_owned(), message, namespace_terminating: false }
}

impl Lists for Memory {
    fn objects(&self, resource: &str, namespace: Option<&str>) -> Vec<Arc<Value>> {
        let state = self.state.borrow();
        let all = state.objects.iter().filter(|(key, _)| {
            key.resource == resource && (namespace.is_none() || key.namespace.as_deref() == namespace)
        });
        all.map(|(_, object)| object.clone()).collect()
    }

    fn indexing(&self, resource: &str) -> &'static Indexing {
        indexing(resource)
    }

    fn served(&self) -> Vec<ResourceInfo> {
        SERVED
            .split(['|', '\n'])
            .filter_map(|line| {
                let [api_version, kind, plural, scope] =
                    line.split_whitespace().collect::<Vec<_>>().try_into().ok()?;
                let gvk = meta::Gvk::from_api_version(api_version, kind);
                let prefix = if gvk.group.is_empty() { String::new() } else { format!("{}/", gvk.group) };
                Some(ResourceInfo {
                    resource: format!("{prefix}{plural}"),
                    group: gvk.group,
                    version: gvk.version,
                    kind: gvk.kind,
                    namespaced: scope == "+",
                    deletable: true,
                })
            })
            .collect()
    }
}

view_of_lists!(Memory);

/// An object of these tests.
#[derive(Debug)]
pub(crate) struct Given {
    object: Arc<Value>,
    attributes: Attributes,
    /// Nobody may read it.
    closed: bool,
}

impl Given {
    pub(crate) fn observed(resource: &str, object: Arc<Value>) -> Observed {
        let attributes = Attributes::alone(indexing(resource), &object);
        Observed::new(Arc::new(Given { object, attributes, closed: false }))
    }

    /// An object that no controller may read.
    fn closed(resource: &str, object: Value) -> Observed {
        let attributes = Attributes::alone(indexing(resource), &object);
        Observed::new(Arc::new(Given { object: Arc::new(object), attributes, closed: true }))
    }
}

impl Readable for Given {
    fn place(&self) -> (&str, &str) {
        (meta::namespace(&self.object).unwrap_or_default(), meta::name(&self.object).unwrap_or_default())
    }

    fn attributes(&self) -> &Attributes {
        &self.attributes
    }

    fn tree(&self) -> Arc<Value> {
        assert!(!self.closed, "{} is read", self.object);
        self.object.clone()
    }
}

impl Memory {
    pub(crate) fn now(&self) -> Timestamp {
        let start: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        start.checked_add(jiff::SignedDuration::try_from(self.state.borrow().elapsed).unwrap()).unwrap()
    }

    fn store(&self, key: &Key, mut object: Value) -> Arc<Value> {
        let mut state = self.state.borrow_mut();
        state.revision += 1;
        put(&mut object, "/metadata/resourceVersion", state.revision.to_string().into());
        let before = state.objects.get(key).cloned();
        let released = deleting(&object)
            && meta::finalizers(&object).is_empty()
            && list(&object, "/spec/finalizers").is_empty()
            && (key.resource != "pods"
                || object.pointer("/metadata/deletionGracePeriodSeconds") == Some(&json!(0)));
        let object = Arc::new(object);
        if released {
            state.objects.remove(key);
            let before = before.map(|before| Given::observed(&key.resource, before));
            state.changes.push(Change { resource: key.resource.clone(), before, after: None });
        } else {
            state.objects.insert(key.clone(), object.clone());
            let [before, after] =
                [before, Some(object.clone())].map(|state| Some(Given::observed(&key.resource, state?)));
            state.changes.push(Change { resource: key.resource.clone(), before, after });
        }
        object
    }

    fn existing(&self, key: &Key, version: Option<&str>) -> Result<Value, Refusal> {
        let Some(found) = key.read(self) else {
            return Err(refusal(404, "NotFound", format!("{key} not found")));
        };
        if version.is_some() && version != meta::resource_version(&found) {
            return Err(refusal(409, "Conflict", "the object has been modified".to_owned()));
        }
        Ok(Value::clone(&found))
    }

    fn create(&self, resource: &str, mut object: Value) -> Result<Arc<Value>, Refusal> {
        if let Some(namespace) = meta::namespace(&object)
            && self.get("namespaces", None, namespace).is_none_or(|found| deleting(&found))
        {
            let mut refused = refusal(403, "Forbidden", format!("namespace {namespace} is being terminated"));
            refused.namespace_terminating = true;
            return Err(refused);
        }
        let serial = {
            let mut state = self.state.borrow_mut();
            state.serial += 1;
            state.serial
        };
        if name(&object).is_empty() {
            let generated = format!("{}{serial:05}", text(&object, "/metadata/generateName"));
            put(&mut object, "/metadata/name", generated.into());
        }
        let key = Key::of_object(resource, &object);
        if key.read(self).is_some() {
            return Err(refusal(409, "AlreadyExists", format!("{key} already exists")));
        }
        put(&mut object, "/metadata/uid", format!("uid-{serial}").into());
        put(&mut object, "/metadata/creationTimestamp", stamp(self.now()).into());
        put(&mut object, "/metadata/generation", 1.into());
        match resource {
            "pods" => {
                put(&mut object, "/status/phase", "Pending".into());
                if text(&object, "/spec/restartPolicy").is_empty() {
                    put(&mut object, "/spec/restartPolicy", "Always".into());
                }
            }
            "namespaces" => {
                put(&mut object, "/spec/finalizers", json!(["kubernetes"]));
                put(&mut object, "/status/phase", "Active".into());
            }
            _ => {}
        }
        Ok(self.store(&key, object))
    }

    fn replace(&self, resource: &str, object: &Value, status_only: bool) -> Result<Arc<Value>, Refusal> {
        let key = Key::of_object(resource, object);
        let before = self.existing(&key, meta::resource_version(object))?;
        let mut after = if status_only { before.clone() } else { object.clone() };
        let status = if status_only { object.get("status") } else { before.get("status") };
        put(&mut after, "/status", status.cloned().unwrap_or_default());
        if status_only && resource == "apps/deployments" {
            let annotations = object.pointer("/metadata/annotations").cloned();
            put(&mut after, "/metadata/annotations", annotations.unwrap_or_default());
        }
        Ok(self.finish(&key, &before, after))
    }

    fn finish(&self, key: &Key, before: &Value, mut after: Value) -> Arc<Value> {
        if after == *before {
            return Arc::new(after);
        }
        if before.get("spec") != after.get("spec") {
            put(&mut after, "/metadata/generation", (meta::generation(before) + 1).into());
        }
        self.store(key, after)
    }

    fn delete(
        &self,
        key: &Key,
        wanted: Option<&str>,
        propagation: Option<Propagation>,
        grace: Option<i64>,
    ) -> Result<Arc<Value>, Refusal> {
        let mut object = self.existing(key, None)?;
        if wanted.is_some_and(|wanted| wanted != uid(&object)) {
            return Err(refusal(409, "Conflict", "the UID in the precondition does not match".to_owned()));
        }
        let mut finalizers: Vec<String> = meta::finalizers(&object).iter().map(ToString::to_string).collect();
        match propagation {
            Some(Propagation::Foreground) => finalizers.push("foregroundDeletion".into()),
            Some(Propagation::Orphan) => finalizers.push("orphan".into()),
            _ => {}
        }
        finalizers.dedup();
        put(&mut object, "/metadata/finalizers", json!(finalizers));
        if !deleting(&object) {
            put(&mut object, "/metadata/deletionTimestamp", stamp(self.now()).into());
        }
        if key.resource == "pods" {
            let at_once = text(&object, "/spec/nodeName").is_empty()
                || matches!(text(&object, "/status/phase"), "Succeeded" | "Failed");
            let grace = if at_once { 0 } else { grace.unwrap_or(30) };
            put(&mut object, "/metadata/deletionGracePeriodSeconds", grace.into());
        }
        if key.resource == "namespaces" {
            put(&mut object, "/status/phase", "Terminating".into());
        }
        Ok(self.store(key, object))
    }

    fn apply(&self, write: &Write) -> Result<Arc<Value>, Refusal> {
        match write {
            Write::Create { resource, object } => self.create(resource, object.clone()),
            Write::Update { resource, object } => self.replace(resource, object, false),
            Write::UpdateStatus { resource, object } => self.replace(resource, object, true),
            Write::Patch { resource, namespace, name, patch } => {
                let key = Key::new(resource, namespace.as_deref(), name);
                let before = self.existing(&key, meta::resource_version(patch))?;
                let mut after = before.clone();
                merge_patch(&mut after, patch);
                Ok(self.finish(&key, &before, after))
            }
            Write::Delete { resource, namespace, name, uid, propagation, grace } => {
                let key = Key::new(resource, namespace.as_deref(), name);
                self.delete(&key, uid.as_deref(), *propagation, *grace)
            }
            Write::Bind { namespace, name, node, .. } => {
                let key = Key::new("pods", Some(namespace), name);
                let mut pod = self.existing(&key, None)?;
                put(&mut pod, "/spec/nodeName", node.clone().into());
                let bound = json!([{"type": "PodScheduled", "status": "True"}]);
                put(&mut pod, "/status/conditions", bound);
                Ok(self.store(&key, pod))
            }
            Write::Scale { resource, namespace, name, replicas } => {
                let key = Key::new(resource, namespace.as_deref(), name);
                let before = self.existing(&key, None)?;
                let mut after = before.clone();
                put(&mut after, "/spec/replicas", (*replicas).into());
                Ok(self.finish(&key, &before, after))
            }
            Write::Finalize { name } => {
                let key = Key::new("namespaces", None, name);
                let mut namespace = self.existing(&key, None)?;
                put(&mut namespace, "/spec/finalizers", json!([]));
                Ok(self.store(&key, namespace))
            }
            Write::ClearDefinition { name } => Err(refusal(500, "InternalError", name.clone())),
            Write::Record(note) => Err(refusal(500, "InternalError", note.message.clone())),
        }
    }
}

impl Plane for Memory {
    fn view(&self) -> &dyn View {
        self
    }

    fn write(&self, actor: Actor, write: &Write) -> Result<Arc<Value>, Refusal> {
        self.state.borrow_mut().log.push((actor.user, write.clone()));
        if let Some(refused) = (self.refuse.borrow())(write) {
            return Err(refused);
        }
        self.apply(write)
    }
}

/// One job of one controller; false when there is nothing to do now.
fn one_job(engine: &Engine, memory: &Memory, now: Timestamp, elapsed: Duration) -> bool {
    let Some(job) = engine.take(elapsed, 1) else { return false };
    engine.perform(memory, &job, &|| (now, elapsed));
    true
}

impl Simulation {
    /// A cluster with namespaces and all controllers, settled.
    pub(crate) fn new() -> Self {
        Simulation::with(crate::all(&settings()))
    }

    pub(crate) fn with(controllers: Vec<Box<dyn Controller>>) -> Self {
        let memory =
            Memory { state: RefCell::new(State::default()), refuse: RefCell::new(Box::new(|_| None)) };
        let mut simulation = Simulation { memory, engine: Engine::new(controllers) };
        for namespace in ["default", "kube-system", "kube-node-lease"] {
            simulation.create(
                "namespaces",
                json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}),
            );
        }
        simulation.settle();
        simulation
    }

    /// A user's create.
    pub(crate) fn create(&mut self, resource: &str, object: Value) -> Arc<Value> {
        self.memory.create(resource, object).unwrap()
    }

    /// Puts an object there as it is, status and deletion included.
    pub(crate) fn raw(&mut self, resource: &str, object: Value) -> Arc<Value> {
        self.memory.store(&Key::of_object(resource, &object), object)
    }

    /// A user's change of one object.
    pub(crate) fn edit(&mut self, resource: &str, name: &str, change: impl FnOnce(&mut Value)) {
        let key = Key::new(resource, Some("default"), name);
        let before = self.memory.existing(&key, None).unwrap();
        let mut after = before.clone();
        change(&mut after);
        self.memory.finish(&key, &before, after);
    }

    /// A user's delete anywhere.
    pub(crate) fn delete_in(&mut self, namespace: Option<&str>, resource: &str, name: &str) {
        let key = Key::new(resource, namespace, name);
        self.memory.delete(&key, None, Some(Propagation::Background), None).unwrap();
    }

    /// A user's delete in the namespace `default`.
    pub(crate) fn delete(&mut self, resource: &str, name: &str, propagation: Propagation) {
        let key = Key::new(resource, Some("default"), name);
        self.memory.delete(&key, None, Some(propagation), None).unwrap();
    }

    /// Refuses writes from now on.
    pub(crate) fn refuse(&mut self, refuse: impl Fn(&Write) -> Option<Refusal> + 'static) {
        self.memory.refuse = RefCell::new(Box::new(refuse));
    }

    fn drain(&mut self) {
        let changes = std::mem::take(&mut self.memory.state.borrow_mut().changes);
        for change in changes {
            self.engine.observe(&self.memory, &change);
        }
    }

    /// One job of one controller; false when there is nothing to do now.
    pub(crate) fn step(&mut self) -> bool {
        self.drain();
        let (now, elapsed) = (self.memory.now(), self.memory.state.borrow().elapsed);
        one_job(&self.engine, &self.memory, now, elapsed)
    }

    /// Works until nothing is left to do at this time, and checks something after each step.
    pub(crate) fn settle_checking(&mut self, mut check: impl FnMut(&Memory)) {
        for _ in 0..20_000 {
            if !self.step() {
                return;
            }
            check(&self.memory);
        }
        let last: Vec<_> = self.memory.state.borrow().log.iter().rev().take(6).cloned().collect();
        panic!("the controllers never come to rest; the last writes: {last:#?}");
    }

    pub(crate) fn settle(&mut self) {
        self.settle_checking(|_| ());
    }

    /// Lets time pass, with the controllers at work whenever a timer is due.
    pub(crate) fn elapse(&mut self, time: Duration) {
        let until = self.memory.state.borrow().elapsed + time;
        self.settle();
        while let Some(next) = self.engine.next_deadline().filter(|next| *next <= until) {
            let mut state = self.memory.state.borrow_mut();
            state.elapsed = state.elapsed.max(next);
            drop(state);
            self.settle();
        }
        self.memory.state.borrow_mut().elapsed = until;
        self.settle();
    }

    /// Forgets the record of writes.
    pub(crate) fn clear_log(&mut self) {
        self.memory.state.borrow_mut().log.clear();
    }

    /// Writes since the record was cleared.
    pub(crate) fn writes(&self) -> Vec<Write> {
        self.memory.state.borrow().log.iter().map(|(_, write)| write.clone()).collect()
    }

    /// An object in the namespace `default`.
    pub(crate) fn get(&self, resource: &str, name: &str) -> Option<Arc<Value>> {
        self.memory.get(resource, Some("default"), name)
    }

    /// All of a resource in the namespace `default`.
    pub(crate) fn list(&self, resource: &str) -> Vec<Arc<Value>> {
        self.memory.list(resource, Some("default"))
    }

    /// Reasons and messages of the Events about an object.
    pub(crate) fn told(&self, name: &str) -> Vec<String> {
        let mut events = self.memory.list("events", None);
        events.sort_by_key(|event| {
            meta::resource_version(event).and_then(|version| version.parse::<u64>().ok())
        });
        events
            .iter()
            .filter(|event| text(event, "/involvedObject/name") == name)
            .map(|event| format!("{} {}", text(event, "/reason"), text(event, "/message")))
            .collect()
    }

    /// Checks that all is at rest: looking at everything again writes nothing.
    pub(crate) fn assert_at_rest(&mut self, controllers: Vec<Box<dyn Controller>>) {
        self.settle();
        self.clear_log();
        let objects: Vec<_> = self.memory.state.borrow().objects.clone().into_iter().collect();
        let fresh = Engine::new(controllers);
        for (key, object) in objects {
            let after = Some(Given::observed(&key.resource, object));
            let change = Change { resource: key.resource, before: None, after };
            fresh.observe(&self.memory, &change);
        }
        let (now, elapsed) = (self.memory.now(), self.memory.state.borrow().elapsed);
        while one_job(&fresh, &self.memory, now, elapsed) {}
        assert_eq!(self.writes(), [], "a controller writes although nothing differs");
    }
}

/// A workload of the namespace `default` with one container and `app: <name>` as its label.
pub(crate) fn workload(api_version: &str, kind: &str, name: &str, spec: Value) -> Value {
    let mut object = json!({
        "apiVersion": api_version, "kind": kind,
        "metadata": {"name": name, "namespace": "default", "labels": {"app": name}},
        "spec": {
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "main", "image": "nginx:1"}], "restartPolicy": "Always"},
            },
        },
    });
    let extra: Map<String, Value> = spec.as_object().cloned().unwrap_or_default();
    for (field, value) in extra {
        put(&mut object, &format!("/spec/{field}"), value);
    }
    object
}

/// Most changes concern no controller, and an object of many megabytes in all is not read to find that out.
#[test]
fn a_change_that_concerns_no_controller_reads_no_object() {
    let cluster = Simulation::new();
    let controllers = crate::all(&Settings::default());
    let meta = json!({"name": "a", "namespace": "default", "uid": "1", "labels": {"app": "a"}});
    let owned = json!({"name": "a", "namespace": "default", "uid": "1", "labels": {"app": "a"}, "ownerReferences":
        [{"apiVersion": "example.com/v1", "kind": "Thing", "name": "t", "uid": "2", "controller": true}]});
    let objects = [
        (
            "configmaps",
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"a": "b"}}),
        ),
        ("secrets", json!({"apiVersion": "v1", "kind": "Secret", "metadata": meta})),
        ("example.com/things", json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": meta})),
        (
            "pods",
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": owned, "spec": {"nodeName": "far"},
                "status": {"phase": "Running"}}),
        ),
    ];
    for (resource, object) in objects {
        let state = || Some(Given::closed(resource, object.clone()));
        let mut changes = vec![(None, state()), (state(), state())];
        // A pod that goes may let go of its claims.
        if resource != "pods" {
            changes.push((state(), None));
        }
        for (before, after) in changes {
            let change = Change { resource: resource.to_owned(), before, after };
            controllers.iter().for_each(|controller| drop(controller.keys(&cluster.memory, &change)));
        }
    }
}
