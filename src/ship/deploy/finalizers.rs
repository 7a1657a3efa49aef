//! Answers the finalizers of charts where no operator is left to do it, with the reconcilers of this program,
//! for the kind that is to go and no other. Two operators at once would run hooks twice, so it begins only
//! where nobody has answered for a while and nobody is known who could.

use super::input::{DeployInput, RemoveOptions, Say};
use super::manifests::{self, Goal};
use super::session::Session;
use anyhow::{Context as _, Result};
use http::Method;
use kube::core::ApiResource;
use opdev_client::{is_not_found, object_path, send};
use opdev_event::sink::EventSink;
use opdev_event::sink::ReconcileNumbers;
use opdev_event::{Event, words};
use opdev_object::meta;
use opdev_operator::manager;
use opdev_operator::manager::ManagerInput;
use opdev_release::settings::Settings;
use opdev_sources::Sources;
use serde_json::Value;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

/// How long nothing may happen to the objects before somebody stands in. An operator answers within a second,
/// unless a hook of the uninstall takes longer.
const QUIET: Duration = Duration::from_secs(10);
/// The finalizers that helm-operator and its library write.
const FINALIZERS: [&str; 2] = ["helm.sdk.operatorframework.io/uninstall-release", "uninstall-helm-release"];
/// How many facts wait before the operator does.
const EVENTS: usize = 1_024;
/// How long it may take to stop.
const STOP: Duration = Duration::from_secs(5);

/// The stand-in for the operator of a kind, if there is one.
pub(super) struct StandIn<'a> {
    session: &'a Session,
    input: &'a DeployInput,
    options: &'a RemoveOptions,
    resource: &'a ApiResource,
    /// The state that was seen last, and since when it has been so.
    seen: (Vec<(String, String)>, Instant),
    asked: bool,
    running: Option<Running>,
}

/// The reconcilers at work.
struct Running {
    stop: CancellationToken,
    work: AbortOnDropHandle<Result<()>>,
    failure: Arc<Mutex<Option<String>>>,
    // Closed, they would end the work.
    _open: (watch::Sender<Arc<Sources>>, mpsc::Sender<manager::ManagerRequest>),
    _listener: AbortOnDropHandle<()>,
}

impl<'a> StandIn<'a> {
    pub(super) fn new(
        session: &'a Session,
        input: &'a DeployInput,
        options: &'a RemoveOptions,
        resource: &'a ApiResource,
    ) -> StandIn<'a> {
        StandIn {
            session,
            input,
            options,
            resource,
            seen: (Vec::new(), Instant::now()),
            asked: false,
            running: None,
        }
    }

    /// Sees the objects that are left, and begins to answer their finalizers where nobody does.
    ///
    /// # Errors
    /// Where the project cannot be read.
    pub(super) async fn see(&mut self, left: &[Value], say: Say<'_>) -> Result<()> {
        let text = |object: &Value, pointer: &str| {
            object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        let now: Vec<_> = left
            .iter()
            .map(|object| (text(object, "/metadata/uid"), text(object, "/metadata/resourceVersion")))
            .collect();
        if now != self.seen.0 {
            self.seen = (now, Instant::now());
        }
        let is_ours = |object: &Value| meta::finalizers(object).iter().any(|one| FINALIZERS.contains(one));
        if self.asked || self.seen.1.elapsed() < QUIET || !left.iter().any(is_ours) {
            return Ok(());
        }
        self.asked = true;
        if self.somebody_is_there().await {
            return Ok(());
        }
        let (mut sources, _) = opdev_project::load::read_once(&self.input.project, &self.input.trust)?;
        let (group, kind) = (&self.resource.group, &self.resource.kind);
        sources.watches.retain(|watch| watch.gvk.group == *group && watch.gvk.kind == *kind);
        if sources.watches.is_empty() {
            return Ok(());
        }
        say(&format!(
            "no operator answers the finalizers of {kind} objects, so opdev uninstalls their releases itself"
        ));
        self.running = Some(Running::start(self.session, sources));
        Ok(())
    }

    /// Returns true if an operator may be at work: an opdev in this project, or a Deployment of the project
    /// with a pod that is ready. What cannot be known counts as one.
    async fn somebody_is_there(&self) -> bool {
        if opdev_cluster::data_folder::running(&self.input.project.root)
            .is_ok_and(|kubeconfig| kubeconfig.is_some())
        {
            return true;
        }
        // A project that has no manifests deploys nothing; of those that cannot be read nothing is known.
        let Ok(all) = manifests::all(self.input, Goal::Remove, None, self.options.namespace.as_deref())
        else {
            return self.input.project.root.join("config/default").exists();
        };
        let client = &self.session.connection.client;
        let resource = ApiResource::erase::<k8s_openapi::api::apps::v1::Deployment>(&());
        for object in all.objects.iter().filter(|object| object["kind"] == "Deployment") {
            let namespace = meta::namespace(object).unwrap_or(self.session.namespace());
            let path = object_path(&resource, Some(namespace), meta::name(object).unwrap_or_default());
            match send(client, Method::GET, &path, "application/json", None).await {
                Ok((live, _)) if live["status"]["readyReplicas"].as_u64().unwrap_or_default() == 0 => {}
                Ok(_) => return true,
                Err(error) if is_not_found(&error) => {}
                Err(_) => return true,
            }
        }
        false
    }

    /// Why the objects are still there, where it is known.
    pub(super) fn failure(&self) -> Option<String> {
        self.running.as_ref()?.failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Ends, with what runs.
    pub(super) async fn stop(self) {
        if let Some(running) = self.running {
            running.stop.cancel();
            let _ = tokio::time::timeout(STOP, running.work).await;
        }
    }
}

impl Running {
    fn start(session: &Session, sources: Sources) -> Running {
        let (events, mut facts) = EventSink::channel(EVENTS);
        let failure: Arc<Mutex<Option<String>>> = Arc::default();
        let kept = Arc::clone(&failure);
        let listener = tokio::spawn(async move {
            while let Some(event) = facts.recv().await {
                let Event::Reconciled(reconcile) = event else { continue };
                let why =
                    reconcile.failure.as_ref().map(|failure| words::one_line(&failure.chain.join(": ")));
                *kept.lock().unwrap_or_else(PoisonError::into_inner) = why;
            }
        });
        let (publish, sources) = watch::channel(Arc::new(sources));
        let (ask, requests) = mpsc::channel(1);
        let stop = CancellationToken::new();
        let work = manager::run(ManagerInput {
            client: session.connection.client.clone(),
            sources,
            events,
            numbers: ReconcileNumbers::default(),
            requests,
            settings: Settings { read_only: session.connection.read_only.clone(), ..Settings::default() },
            shutdown: stop.clone(),
        });
        Running {
            stop,
            work: AbortOnDropHandle::new(tokio::spawn(async move {
                work.await.context("the uninstall broke off")
            })),
            failure,
            _open: (publish, ask),
            _listener: AbortOnDropHandle::new(listener),
        }
    }
}
