//! A running manager with charts made in the test, and the events it emits.

use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use opdev_controlplane::ControlPlane;
use opdev_event::sink::EventSink;
use opdev_event::sink::ReconcileNumbers;
use opdev_event::{CauseKind, Event, Outcome, Reconcile, ReloadSettled};
use opdev_helm::chart::{Chart, FileSet};
use opdev_object::meta::{Gvk, ObjectRef};
use opdev_operator::manager;
use opdev_operator::manager::{ManagerInput, ManagerRequest};
use opdev_release::settings::Settings;
use opdev_script::contract::{Desired, Facts, Host, Limits, Observed, Program};
use opdev_sources::chart_options::ChartOptions;
use opdev_sources::{Allow, ChartReconciler, Reconciler, Sources, TypeReconciler, Watch};
use opdev_types::diagnostic::Diagnostic;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// Far longer than anything takes; a test that reaches it has failed.
const LONG: Duration = Duration::from_secs(30);

pub(crate) struct World {
    pub(crate) client: kube::Client,
    pub(crate) sources: watch::Sender<Arc<Sources>>,
    pub(crate) requests: mpsc::Sender<ManagerRequest>,
    pub(crate) notices: Vec<String>,
    events: mpsc::Receiver<Event>,
    shutdown: CancellationToken,
    manager: JoinHandle<anyhow::Result<()>>,
    pub(crate) plane: ControlPlane,
}

/// A chart from its files; `Chart.yaml` is added.
pub(crate) fn chart(name: &str, files: &[(&str, &str)]) -> Arc<Chart> {
    let about = format!("apiVersion: v2\nname: {name}\nversion: 0.1.0\n");
    let all = [("Chart.yaml", about.as_str())].into_iter().chain(files.iter().copied());
    let files: FileSet = all.map(|(path, text)| (path, Arc::<[u8]>::from(text.as_bytes()))).collect();
    Arc::new(Chart::load(&files).unwrap())
}

/// The watch of kind `Web` with a chart.
pub(crate) fn web(chart: Arc<Chart>) -> Watch {
    watch_of("Web", chart)
}

pub(crate) fn watch_of(kind: &str, chart: Arc<Chart>) -> Watch {
    Watch {
        gvk: Gvk::new("test.my.domain", "v1", kind),
        reconciler: Reconciler::Chart(Arc::new(ChartReconciler {
            path: format!("charts/{}", chart.name()),
            chart: Some(chart),
            watch_dependents: true,
            overrides: BTreeMap::new(),
            dry_run_option: String::new(),
            options: ChartOptions::default(),
            allow: Allow::default(),
            script: None,
        })),
        broken: None,
        changed_in: 1,
        reconcile_period: None,
        selector: Value::Null,
        max_concurrent: None,
    }
}

/// The chart reconciler of a watch, to be changed.
pub(crate) fn fed_by(watch: &mut Watch) -> &mut ChartReconciler {
    match &mut watch.reconciler {
        Reconciler::Chart(chart) => Arc::get_mut(chart).unwrap(),
        Reconciler::Type(_) => panic!("{} is fed by a program", watch.gvk),
    }
}

/// A program in Rust.
pub(crate) struct Logic {
    facts: Facts,
    #[allow(clippy::type_complexity)]
    run: Box<dyn Fn(&Observed, &dyn Host) -> Result<Desired, Box<Diagnostic>> + Send + Sync>,
}

impl std::fmt::Debug for Logic {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", self.facts)
    }
}

impl Program for Logic {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn reconcile(
        &self,
        observed: &Observed,
        host: &dyn Host,
        _: &Limits,
    ) -> Result<Desired, Box<Diagnostic>> {
        (self.run)(observed, host)
    }
}

/// A watch that a program feeds. `owns` are kinds such as `v1/Pod`; `!` finalizes.
pub(crate) fn typed(
    kind: &str,
    owns: &[&str],
    run: impl Fn(&Observed, &dyn Host) -> Result<Desired, Box<Diagnostic>> + Send + Sync + 'static,
) -> Watch {
    let gvk = |text: &&&str| {
        let (api_version, kind) = text.rsplit_once('/').unwrap();
        Gvk::from_api_version(api_version, kind)
    };
    let facts = Facts {
        owns: owns.iter().filter(|text| **text != "!").map(|text| gvk(&text)).collect(),
        finalizes: owns.contains(&"!"),
        ..Facts::default()
    };
    let program: Arc<dyn Program> = Arc::new(Logic { facts, run: Box::new(run) });
    let reconciler = TypeReconciler {
        path: format!("config/reconcilers/{}.ts", kind.to_lowercase()),
        program: Some(program),
        ..TypeReconciler::default()
    };
    Watch {
        gvk: Gvk::new("test.my.domain", "v1", kind),
        reconciler: Reconciler::Type(Arc::new(reconciler)),
        broken: None,
        changed_in: 1,
        reconcile_period: None,
        selector: Value::Null,
        max_concurrent: None,
    }
}

pub(crate) fn sources(number: u64, watches: Vec<Watch>) -> Arc<Sources> {
    Arc::new(Sources {
        number,
        watches: watches.into_iter().map(Arc::new).collect(),
        files: vec!["charts/web/templates/all.yaml".to_owned()],
        saved_at: Some(Instant::now()),
        ..Sources::default()
    })
}

/// Creates the CRD of a kind, without a schema, and waits until it is served.
pub(crate) async fn serve_kind(client: &kube::Client, kind: &str) {
    let lower = kind.to_lowercase();
    let name = format!("{lower}s.test.my.domain");
    let open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let crd = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": name},
        "spec": {
            "group": "test.my.domain",
            "scope": "Namespaced",
            "names": {"kind": kind, "plural": format!("{lower}s"), "singular": lower, "listKind": format!("{kind}List")},
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": open, "status": open}}},
            }],
        },
    });
    let gvk = GroupVersionKind::gvk("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
    let crds: Api<DynamicObject> = Api::all_with(client.clone(), &ApiResource::from_gvk(&gvk));
    crds.create(&PostParams::default(), &serde_json::from_value(crd).unwrap()).await.unwrap();
    let established = |crd: Option<&DynamicObject>| {
        crd.and_then(|crd| crd.data.pointer("/status/conditions"))
            .and_then(Value::as_array)
            .is_some_and(|all| all.iter().any(|c| c["type"] == "Established" && c["status"] == "True"))
    };
    tokio::time::timeout(LONG, kube::runtime::wait::await_condition(crds, &name, established))
        .await
        .unwrap()
        .unwrap();
}

/// The reconcile period of the tests: never, so that every reconcile has a cause of its own.
pub(crate) fn settings() -> Settings {
    Settings { reconcile_period: Duration::ZERO, hook_timeout: LONG, ..Settings::default() }
}

impl World {
    pub(crate) async fn start(watches: Vec<Watch>) -> World {
        World::start_with(watches, settings()).await
    }

    pub(crate) async fn start_with(watches: Vec<Watch>, settings: Settings) -> World {
        let plane = ControlPlane::start().await.unwrap();
        let client = plane.client();
        for kind in ["Web", "Shop"] {
            serve_kind(&client, kind).await;
        }
        World::over(client, plane, watches, settings)
    }

    pub(crate) fn over(
        client: kube::Client,
        plane: ControlPlane,
        watches: Vec<Watch>,
        settings: Settings,
    ) -> World {
        let (sources, changed) = watch::channel(sources(1, watches));
        let (sink, events) = EventSink::channel(4096);
        let (requests, asked) = mpsc::channel(16);
        let shutdown = CancellationToken::new();
        let input = ManagerInput {
            client: client.clone(),
            sources: changed,
            events: sink,
            numbers: ReconcileNumbers::default(),
            requests: asked,
            settings,
            shutdown: shutdown.clone(),
        };
        let manager = tokio::spawn(manager::run(input));
        World { client, sources, requests, notices: Vec::new(), events, shutdown, manager, plane }
    }

    pub(crate) async fn stop(self) {
        self.shutdown.cancel();
        tokio::time::timeout(LONG, self.manager).await.unwrap().unwrap().unwrap();
        self.plane.stop().await;
    }

    /// Ends the manager and starts another one on the same plane.
    pub(crate) async fn restart(self, watches: Vec<Watch>) -> World {
        self.shutdown.cancel();
        tokio::time::timeout(LONG, self.manager).await.unwrap().unwrap().unwrap();
        World::over(self.client, self.plane, watches, settings())
    }

    /// Reads events until one is what the test waits for.
    pub(crate) async fn until<T>(&mut self, what: &str, mut pick: impl FnMut(&Event) -> Option<T>) -> T {
        let deadline = tokio::time::Instant::now() + LONG;
        let mut seen = Vec::new();
        loop {
            let event = match tokio::time::timeout_at(deadline, self.events.recv()).await {
                Ok(Some(event)) => event,
                Ok(None) => panic!("the manager ended while waiting for {what}"),
                Err(_) => panic!("{what} never came; seen: {seen:#?}"),
            };
            if let Event::Noticed(notice) = &event {
                self.notices.push(notice.message.clone());
            }
            if let Event::Reconciled(reconcile) = &event {
                seen.push(format!(
                    "{} {:?} {:?} {:?}",
                    reconcile.object,
                    reconcile.outcome,
                    reconcile.failure,
                    causes(reconcile)
                ));
            }
            if let Some(found) = pick(&event) {
                return found;
            }
        }
    }

    /// Asks for a reconcile of an object as the key does, and waits for it.
    pub(crate) async fn reconcile_by_key(&mut self, name: &str) -> Arc<Reconcile> {
        self.reconcile_now(name).await;
        self.until("a pass by key", |event| match event {
            Event::Reconciled(reconcile) if causes(reconcile).iter().any(|cause| cause == "User") => {
                Some(Arc::clone(reconcile))
            }
            _ => None,
        })
        .await
    }

    /// Waits until a ConfigMap says so.
    pub(crate) async fn greeting(&self, name: &str, text: &str) {
        let says = |object: Option<&DynamicObject>| {
            object.is_some_and(|object| object.data.pointer("/data/greeting") == Some(&json!(text)))
        };
        let waiting = kube::runtime::wait::await_condition(self.api("", "ConfigMap"), name, says);
        tokio::time::timeout(LONG, waiting).await.unwrap().unwrap();
    }

    /// The next reconcile of an object.
    pub(crate) async fn reconcile(&mut self, name: &str) -> Arc<Reconcile> {
        self.until(&format!("a pass of {name}"), |event| match event {
            Event::Reconciled(reconcile) if reconcile.object.name == name => Some(Arc::clone(reconcile)),
            _ => None,
        })
        .await
    }

    /// The next reconcile of an object with this outcome.
    pub(crate) async fn outcome(&mut self, name: &str, outcome: Outcome) -> Arc<Reconcile> {
        self.until(&format!("{name} {outcome:?}"), |event| match event {
            Event::Reconciled(reconcile) if reconcile.object.name == name && reconcile.outcome == outcome => {
                Some(Arc::clone(reconcile))
            }
            _ => None,
        })
        .await
    }

    pub(crate) async fn settled(&mut self) -> ReloadSettled {
        self.until("a settled reload", |event| match event {
            Event::ReloadSettled(settled) => Some(settled.clone()),
            _ => None,
        })
        .await
    }

    pub(crate) fn api(&self, group: &str, kind: &str) -> Api<DynamicObject> {
        let gvk = GroupVersionKind::gvk(group, "v1", kind);
        Api::default_namespaced_with(self.client.clone(), &ApiResource::from_gvk(&gvk))
    }

    pub(crate) fn cluster_api(&self, group: &str, kind: &str) -> Api<DynamicObject> {
        let gvk = GroupVersionKind::gvk(group, "v1", kind);
        Api::all_with(self.client.clone(), &ApiResource::from_gvk(&gvk))
    }

    pub(crate) fn webs(&self) -> Api<DynamicObject> {
        self.api("test.my.domain", "Web")
    }

    pub(crate) async fn create(&self, api: &Api<DynamicObject>, object: Value) -> Value {
        let object: DynamicObject = serde_json::from_value(object).unwrap();
        let created = api.create(&PostParams::default(), &object).await.unwrap();
        serde_json::to_value(created).unwrap()
    }

    pub(crate) async fn create_web(&self, name: &str, spec: Value) -> Value {
        let object = json!({"apiVersion": "test.my.domain/v1", "kind": "Web", "metadata": {"name": name}, "spec": spec});
        self.create(&self.webs(), object).await
    }

    /// Merges a patch in as a user would.
    pub(crate) async fn patch(&self, api: &Api<DynamicObject>, name: &str, patch: Value) -> Value {
        let params = PatchParams { field_manager: Some("somebody".to_owned()), ..PatchParams::default() };
        let patched = api.patch(name, &params, &Patch::Merge(patch)).await.unwrap();
        serde_json::to_value(patched).unwrap()
    }

    pub(crate) async fn get(&self, api: &Api<DynamicObject>, name: &str) -> Option<Value> {
        api.get_opt(name).await.unwrap().map(|object| serde_json::to_value(object).unwrap())
    }

    pub(crate) async fn delete(&self, api: &Api<DynamicObject>, name: &str) {
        api.delete(name, &DeleteParams::background()).await.unwrap();
    }

    /// The release Secrets of a name: revision and status, oldest first.
    pub(crate) async fn revisions(&self, name: &str) -> Vec<String> {
        let params = kube::api::ListParams::default().labels(&format!("owner=helm,name={name}"));
        let mut found: Vec<(u32, String)> = self
            .api("", "Secret")
            .list(&params)
            .await
            .unwrap()
            .items
            .into_iter()
            .map(|secret| {
                let labels = secret.metadata.labels.unwrap();
                (labels["version"].parse().unwrap(), labels["status"].clone())
            })
            .collect();
        found.sort();
        found.into_iter().map(|(revision, status)| format!("{revision} {status}")).collect()
    }

    pub(crate) async fn reconcile_now(&self, name: &str) {
        let object = ObjectRef {
            gvk: Gvk::new("test.my.domain", "v1", "Web"),
            namespace: Some("default".into()),
            name: name.to_owned(),
            uid: None,
        };
        self.requests.send(ManagerRequest::ReconcileNow { object }).await.unwrap();
    }

    /// Ends when everything that has been written so far has been seen by the manager: another object's child
    /// of the same kind is changed after it, and its repair comes last. Returns the reconciles of `name` seen
    /// meanwhile.
    pub(crate) async fn reconciles_until_quiet(
        &mut self,
        name: &str,
        child_suffix: &str,
    ) -> Vec<Arc<Reconcile>> {
        let mut reconciles = Vec::new();
        let children = self.api("", "ConfigMap");
        let mark = format!("quiet{child_suffix}");
        self.create_web("quiet", json!({})).await;
        self.collect(name, "quiet", &mut reconciles, |reconcile| reconcile.outcome == Outcome::Installed)
            .await;
        self.patch(&children, &mark, json!({"data": {"greeting": "drift"}})).await;
        self.collect(name, "quiet", &mut reconciles, |reconcile| reconcile.outcome == Outcome::Repaired)
            .await;
        reconciles
    }

    async fn collect(
        &mut self,
        name: &str,
        other: &str,
        reconciles: &mut Vec<Arc<Reconcile>>,
        done: impl Fn(&Reconcile) -> bool,
    ) {
        let mut found = Vec::new();
        self.until(other, |event| {
            let Event::Reconciled(reconcile) = event else { return None };
            if reconcile.object.name == name {
                found.push(Arc::clone(reconcile));
            }
            (reconcile.object.name == other && done(reconcile)).then_some(())
        })
        .await;
        reconciles.extend(found);
    }
}

/// A condition of an object: status, reason, message.
pub(crate) fn condition(object: &Value, kind: &str) -> Option<(String, String, String)> {
    let conditions = object.pointer("/status/conditions")?.as_array()?;
    let found = conditions.iter().find(|condition| condition["type"] == kind)?;
    let text = |field: &str| found[field].as_str().unwrap_or_default().to_owned();
    Some((text("status"), text("reason"), text("message")))
}

/// The causes of a reconcile in short: `Modified ConfigMap .data.greeting by somebody`.
pub(crate) fn causes(reconcile: &Reconcile) -> Vec<String> {
    reconcile
        .causes
        .iter()
        .map(|cause| match &cause.kind {
            CauseKind::Watch { object, event, fields, by, own_write, .. } => {
                let fields: Vec<&str> = fields.iter().map(|field| field.path.as_str()).collect();
                let by = by.as_deref().unwrap_or("nobody");
                let own = if *own_write { "own " } else { "" };
                format!("{own}{event:?} {} {} by {by}", object.gvk.kind, fields.join(" "))
            }
            other => format!("{other:?}"),
        })
        .collect()
}
