//! One control plane from start to stop: the store, the verbs, the controllers, the ways in.
//! Wiring only; never decides what an object means.

use crate::runner;
use crate::runner::Rest;
use crate::server::certificates::Authority;
use crate::server::front::Front;
use crate::server::{self, InProcess, Listen, Listening, ObservedToken, Observer, Serving};
use opdev_admission::Webhooks;
use opdev_apimachinery::blocking;
use opdev_apimachinery::contract::exec::ExecAnswer;
use opdev_apimachinery::identity::User;
use opdev_apimachinery::watchdog::Watchdog;
use opdev_controllers::{self as controllers, Controllers, Settings, stage};
use opdev_handlers::Api;
use opdev_handlers::tokens::Tokens;
use opdev_registry::{self as registry, Clock, Printers, Registry};
use opdev_storage::{MovedAside, Store};
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// How long `stop` waits for what still runs.
const STOP_LIMIT: Duration = Duration::from_secs(3);

/// The settings of a control plane.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct Config {
    /// The time; the system's clock where none is given.
    pub clock: Option<Clock>,
    /// The controllers that run. The default is all of them.
    pub controllers: Controllers,
    /// A pod's life, as the YAML of its stages; the built-in ones where none are given.
    pub stages: Option<String>,
    /// Roles decide who may do what. Otherwise they are there, as in every new cluster, but whoever is known
    /// may do everything.
    pub rbac: bool,
    /// The folder that keeps objects, keys and revisions over a restart, made where it is missing; memory
    /// where none is given.
    pub data_dir: Option<PathBuf>,
    /// Simulated pods wait for the ConfigMaps and Secrets that they name, with the kubelet's reasons, and are
    /// refused where their ServiceAccount is not there.
    pub strict_pods: bool,
    /// Answers of an `exec` in simulated pods; it is refused where nothing is said.
    pub exec: Vec<ExecAnswer>,
    /// How webhooks that are configured by a service are reached.
    pub webhooks: Webhooks,
    /// Objects that were written or asked for last are kept as trees, up to so many bytes of their JSON; 6
    /// MiB where nothing is said. A tree takes about five times its JSON, and makes a write of its object up
    /// to a fifth faster.
    pub kept_trees: Option<usize>,
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config").finish_non_exhaustive()
    }
}

/// Why a control plane could not start or listen.
#[derive(Debug)]
pub struct Error(Box<dyn std::error::Error + Send + Sync>);

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source()
    }
}

/// A running control plane. Dropping it stops it too, without waiting.
#[derive(Debug)]
pub struct ControlPlane {
    api: Arc<Api>,
    front: Arc<Front>,
    authority: Arc<Authority>,
    stop: CancellationToken,
    tasks: TaskTracker,
    at_rest: watch::Receiver<Rest>,
    moved_aside: Option<MovedAside>,
    _watchdog: Watchdog,
}

impl ControlPlane {
    /// Starts a plane with nothing but the system's own objects in it. Takes a few milliseconds and opens no
    /// socket. Needs a tokio runtime, on which the controllers run.
    pub async fn start() -> Result<Self, Error> {
        Self::start_with(Config::default()).await
    }

    /// Starts a plane as configured.
    ///
    /// # Errors
    /// Where the stages make no sense, or the folder for the data cannot be used or is in use.
    pub async fn start_with(config: Config) -> Result<Self, Error> {
        let clock = config.clock.unwrap_or_else(|| Arc::new(jiff::Timestamp::now));
        let consumers = opdev_registry::consumers().collect();
        let mut settings = Settings { strict_pods: config.strict_pods, consumers, ..Settings::default() };
        if let Some(stages) = &config.stages {
            settings.stages = Some(stage::parse(stages).map_err(|problem| Error(problem.into()))?.into());
        }
        let (store, moved_aside) = match config.data_dir {
            Some(folder) => open(folder).await?,
            None => (Store::new(registry::indexing), None),
        };
        if let Some(bytes) = config.kept_trees {
            store.keep_trees(bytes);
        }
        let year = clock().to_zoned(jiff::tz::TimeZone::UTC).year();
        let authority = Arc::new(Authority::kept_by(&store, year).map_err(Error)?);
        settings.root_ca = authority.certificate();
        let registry =
            Registry::boot_on(store, clock, config.rbac).map_err(|status| Error(Box::new(status)))?;
        let mut webhooks = config.webhooks;
        webhooks.authority = authority.certificate().into();
        let registry = registry.with_webhooks(webhooks).with_strict_pods(config.strict_pods);
        let registry = Arc::new(registry.with_exec_answers(config.exec));
        let stop = CancellationToken::new();
        let tasks = TaskTracker::new();
        let tokens = Arc::new(Tokens::kept_by(&registry.store).map_err(Error)?);
        let mut chosen = config.controllers.make(&settings);
        chosen.push(controllers::of_the_api_server());
        if config.controllers != Controllers::None {
            chosen.push(controllers::token_secrets(authority.certificate(), runner::signing(&tokens)));
        }
        let (tell_rest, at_rest) = watch::channel(Rest::default());
        tasks.spawn(runner::run(registry.clone(), chosen, tell_rest, stop.clone()));
        let api = Arc::new(Api::new(registry, Arc::new(Printers), tokens));
        let front = Arc::new(Front::new(api.clone(), stop.clone()));
        let watchdog = Watchdog::start(tokio::runtime::Handle::current());
        let watchdog =
            watchdog.map_err(|error| Error(format!("no thread for the watchdog: {error}").into()))?;
        Ok(ControlPlane { api, front, authority, stop, tasks, at_rest, moved_aside, _watchdog: watchdog })
    }

    /// Waits until its controllers have made what a new cluster has: the node, the default StorageClass, the
    /// ServiceAccount of each namespace.
    pub async fn controllers_at_rest(&self) {
        // They end with the plane.
        let _ = self.at_rest.clone().wait_for(|rest| rest.reached).await;
    }

    /// Waits until its controllers have seen every change there is and have nothing left to do now or soon.
    /// Whoever writes in the meantime keeps them from it.
    pub async fn settled(&self) {
        let store = &self.api.registry().store;
        // They end with the plane.
        let _ = self.at_rest.clone().wait_for(|rest| rest.revision == Some(store.revision())).await;
    }

    /// Returns true if they have, as [`ControlPlane::settled`] waits for.
    pub fn is_settled(&self) -> bool {
        self.at_rest.borrow().revision == Some(self.api.registry().store.revision())
    }

    /// The store of an earlier run that could not be read and made way for an empty one. Worth telling the
    /// user.
    pub fn moved_aside(&self) -> Option<&MovedAside> {
        self.moved_aside.as_ref()
    }

    /// A kube client for the admin, in process, with `default` as its namespace.
    #[cfg(feature = "kube")]
    pub fn client(&self) -> kube::Client {
        kube::Client::new(self.service(), "default")
    }

    /// The API as a tower service, asked by the admin. Nothing goes over a socket.
    pub fn service(&self) -> InProcess {
        InProcess::new(self.front.clone(), User::admin())
    }

    /// The verbs without any way in around them.
    pub fn api(&self) -> &Arc<Api> {
        &self.api
    }

    /// A certificate of the plane's own authority, with its key, for a webhook server on this machine:
    /// believed where a webhook's configuration leads here, whatever name and authority it says.
    ///
    /// # Errors
    /// Where no key can be made.
    pub fn webhook_certificate(&self) -> Result<Serving, Error> {
        self.authority.webhook_server().map_err(Error)
    }

    /// The certificate of the plane's own authority, PEM.
    pub fn authority(&self) -> String {
        self.authority.certificate()
    }

    /// Listens on a loopback address with TLS, and says how to get in. May be called more than once.
    pub async fn listen(&self, listen: Listen) -> Result<Listening, Error> {
        server::listen(&listen, &self.authority, self.front.clone(), self.stop.clone(), &self.tasks)
            .await
            .map_err(Error)
    }

    /// A token for one client that is looked at: its requests count for `user`, and `observer` sees each of
    /// them. It is good at every address where the plane listens, until what is given back is dropped.
    ///
    /// # Errors
    /// Where the system has no randomness.
    pub fn observed_token(&self, user: User, observer: Arc<dyn Observer>) -> Result<ObservedToken, Error> {
        let token = server::random_token().map_err(Error)?;
        Ok(self.front.clients().admit(token, user, observer))
    }

    /// Custom resources (`group/plural`) at another version of their definition, as its converter makes them.
    /// Nothing is stored.
    ///
    /// # Errors
    /// What the converter could not do, or that there is no such resource.
    pub async fn convert(
        &self,
        resource: &str,
        objects: Vec<serde_json::Value>,
        api_version: &str,
    ) -> Result<Vec<serde_json::Value>, Error> {
        let (registry, resource) = (self.api.registry().clone(), resource.to_owned());
        let wanted = api_version.to_owned();
        let converted = blocking::run(move || registry.converted(&resource, &objects, &wanted)).await;
        converted.map_err(|error| Error(error.into()))?.map_err(|status| Error(status.message.into()))
    }

    /// Ends everything: open watches, connections, controllers. Prompt: at most a few seconds.
    pub async fn stop(self) {
        self.stop.cancel();
        self.tasks.close();
        if tokio::time::timeout(STOP_LIMIT, self.tasks.wait()).await.is_err() {
            tracing::warn!("the control plane stopped without waiting for all of its tasks");
        }
        // The last writes of the controllers are saved too, and the folder is free for the next one.
        let registry = self.api.registry().clone();
        if blocking::run(move || registry.store.close()).await.is_err() {
            tracing::error!("the store could not be closed");
        }
    }
}

async fn open(folder: PathBuf) -> Result<(Store, Option<MovedAside>), Error> {
    let opened = blocking::run(move || Store::open(&folder, registry::indexing)).await;
    opened.map_err(|error| Error(error.into()))?.map_err(|error| Error(Box::new(error)))
}

impl Drop for ControlPlane {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}
