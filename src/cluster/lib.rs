//! The cluster that opdev works on: the embedded control plane, or the current context of the kubeconfig,
//! guarded. No current context means embedded; an unreachable one is an error that offers it, never a silent
//! fallback.

mod bounded;
mod call_rules;
mod client_certificate;
pub mod contexts;
mod credentials;
pub mod data_folder;
mod exec_plugin;
mod http_proxy;
pub mod identity;
mod in_cluster;
mod kubeconfig;
mod link;
mod local;
mod monitor;
pub mod owner;
mod pinned;
mod program_proxy;
mod rules_service;
mod streams;
mod unpacked;
mod unreachable;
mod webhook_certificates;

use crate::data_folder::DataFolder;
use crate::identity::Identity;
use crate::owner::Owner;
use anyhow::{Context as _, Result, bail};
pub use call_rules::CallRules;
pub use in_cluster::in_pod;
use kube::Client;
use kubeconfig::{Merged, Target};
use link::Link;
pub use monitor::ConnectionMonitor;
use opdev_client::ApiError;
use opdev_client::read_only::ReadOnly;
use opdev_controlplane::{
    Config, ControlPlane, Controllers, ExecAnswer, Listen, Listening, Reach, Upstream, User, Webhooks,
};
use opdev_event::{Cluster, Protection};
use opdev_os::lock::Lock;
use opdev_os::private_folder::PrivateFolder;
pub use program_proxy::upstream;
use rules_service::Supervised;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use unreachable::OR_EMBEDDED;
pub use webhook_certificates::Certificates;

/// The kubeconfig files that a choice is looked up in; none where there are none, or this is a pod with
/// credentials of its own.
///
/// # Errors
/// Where one that was named is missing, or one cannot be read.
pub(crate) fn kubeconfig_files(choice: &Choice) -> Result<Option<Vec<PathBuf>>> {
    let merged = choice.merged()?;
    Ok(merged.and_then(Merged::into_files))
}

/// The user's request.
#[derive(Clone, Debug, Default)]
pub struct Choice {
    /// Only the embedded control plane.
    pub embedded: bool,
    /// True if the embedded control plane starts without the objects of before.
    pub fresh: bool,
    /// True if it keeps nothing on the disk.
    pub in_memory: bool,
    /// True if the start waits until the controllers have made the objects that every cluster has. A caller
    /// that compares later objects with the first ones needs that.
    pub controllers_at_rest: bool,
    /// A context other than the current one.
    pub context: Option<String>,
    /// A kubeconfig other than `KUBECONFIG` or `~/.kube/config`.
    pub kubeconfig: Option<PathBuf>,
    /// The namespace, instead of the context's.
    pub namespace: Option<String>,
    /// Contexts that may be written to although they are not clearly local.
    pub allow_contexts: Vec<String>,
    /// The ServiceAccount of the operator's calls as `[NAMESPACE/]NAME`, or the project's own where that is
    /// empty.
    pub service_account: Option<String>,
    /// How the embedded control plane reaches webhooks.
    pub webhooks: Webhooks,
    /// Decides which other machines the embedded control plane may call as webhooks; without one it calls
    /// none.
    pub reach: Option<Reach>,
    /// Answers of an `exec` in simulated pods of the embedded control plane.
    pub exec: Vec<ExecAnswer>,
    /// True if simulated pods wait for what they name.
    pub strict_pods: bool,
    /// The folder for the certificate of webhook servers on this machine.
    pub webhook_certificates: Option<PathBuf>,
    /// The controllers that run on the embedded control plane.
    pub controllers: Controllers,
    /// True if the embedded control plane asks for rights; it does so anyway where there is a
    /// `service_account`.
    pub rbac: bool,
    /// The owner whose keys and tokens the embedded control plane may keep from an earlier run.
    pub owner: Owner,
    /// True if the embedded control plane is no choice at all, as for the operator of a cluster.
    pub never_embedded: bool,
}

impl Choice {
    /// Returns true if something is said about webhooks, which counts on the embedded control plane only.
    pub(crate) fn names_webhooks(&self) -> bool {
        self.webhooks != Webhooks::default() || self.webhook_certificates.is_some()
    }

    /// The other way out where a cluster cannot be used.
    fn or_embedded(&self) -> &'static str {
        if self.never_embedded { "" } else { OR_EMBEDDED }
    }

    /// The kubeconfig; `None` where there is none.
    fn merged(&self) -> Result<Option<Merged>> {
        Merged::read(self.kubeconfig.as_deref(), self.or_embedded(), |name| std::env::var_os(name))
    }
}

/// A connection, and the embedded control plane where that is what is behind it.
pub struct Connection {
    /// The client; its calls are recorded by `client/recorder`.
    pub client: Client,
    /// The cluster behind it.
    pub cluster: Cluster,
    /// The namespace for objects without one.
    pub namespace: String,
    /// A kubeconfig for other tools.
    pub kubeconfig: Option<PathBuf>,
    /// Set while nothing may be written.
    pub read_only: ReadOnly,
    /// The link that all calls to a cluster go through; `None` for the embedded control plane.
    link: Option<Link>,
    /// The monitor of the connection, where it can break.
    monitor: Option<ConnectionMonitor>,
    plane: Option<(ControlPlane, Option<Listening>)>,
    /// On the kubeconfig that is written.
    _lock: Option<Lock>,
    /// Where the embedded control plane keeps its objects.
    _data: Option<DataFolder>,
    /// A warning that the user has to hear first.
    pub warning: Option<String>,
    /// Certificates for webhook servers on this machine.
    pub certificates: Option<Certificates>,
}

impl Connection {
    /// Connects.
    ///
    /// # Errors
    /// A message that says what was tried and what to do.
    pub async fn open(choice: &Choice, state_folder: &PrivateFolder) -> Result<Connection> {
        if choice.embedded {
            return Self::embedded(choice, state_folder).await;
        }
        let merged = choice.merged()?;
        let context = choice.context.as_deref().filter(|name| !name.is_empty());
        match (merged, context) {
            (None, Some(context)) => bail!(
                "no kubeconfig was found, so there is no context {context}\n  where: neither KUBECONFIG nor ~/.kube/config\n  \
                 to do: name a file with --kubeconfig, or start with --embedded for the embedded control plane"
            ),
            (None, None) => Self::embedded(choice, state_folder).await,
            (Some(merged), context) => match context.or(merged.current()).map(str::to_owned) {
                Some(context) => Self::context(choice, &merged, &context).await,
                None => Self::embedded(choice, state_folder).await,
            },
        }
    }

    /// Connects to a cluster, never to the embedded control plane.
    ///
    /// # Errors
    /// A message that says what was tried and what to do.
    pub async fn to_cluster(choice: &Choice) -> Result<Connection> {
        let merged = choice.merged()?;
        let Some(merged) = merged else {
            bail!(
                "there is no cluster\n  where: neither --kubeconfig nor KUBECONFIG names one, this is no pod with a \
                 ServiceAccount, and there is no ~/.kube/config\n  to do: name a kubeconfig"
            )
        };
        let context = choice.context.as_deref().filter(|name| !name.is_empty()).or(merged.current());
        let Some(context) = context.map(str::to_owned) else {
            bail!("the kubeconfig has no current context\n  to do: name one with --context")
        };
        Self::context(choice, &merged, &context).await
    }

    /// Returns true if a choice leads to the embedded control plane.
    ///
    /// # Errors
    /// Where the kubeconfig cannot be read.
    pub fn is_embedded(choice: &Choice) -> Result<bool> {
        if choice.embedded {
            return Ok(true);
        }
        if choice.context.as_deref().is_some_and(|name| !name.is_empty()) {
            return Ok(false);
        }
        let merged = choice.merged()?;
        Ok(merged.is_none_or(|merged| merged.current().is_none()))
    }

    async fn embedded(choice: &Choice, state_folder: &PrivateFolder) -> Result<Connection> {
        let namespace = choice.namespace.clone().unwrap_or_else(|| "default".to_owned());
        let data = if choice.in_memory {
            None
        } else {
            let folder = state_folder.folder(data_folder::NAME)?;
            Some(DataFolder::take(&folder, "opdev run", choice.fresh, &choice.owner)?)
        };
        let mut config = Config::default();
        config.data_dir = data.as_ref().map(|data| data.path.clone());
        config.controllers = choice.controllers;
        config.rbac = choice.rbac || choice.service_account.is_some();
        config.webhooks = choice.webhooks.clone();
        config.webhooks.reach = Some(choice.reach.clone().unwrap_or_else(Reach::nowhere));
        config.strict_pods = choice.strict_pods;
        config.exec.clone_from(&choice.exec);
        // The operator beside it asks for whole objects seldom, and memory is what this process has least of.
        config.kept_trees = Some(1024 * 1024);
        let plane = ControlPlane::start_with(config).await;
        let plane = plane.context("the embedded control plane does not start")?;
        if choice.controllers_at_rest {
            plane.controllers_at_rest().await;
        }
        let warning = plane.moved_aside().map(ToString::to_string);
        let renewed = data.as_ref().is_some_and(|data| data.renewed);
        let warning = warning.or_else(|| renewed.then(|| RENEWED.to_owned()));
        // They stay when it ends: the authority is kept with the objects, and the next start writes them
        // anew.
        let folder = choice.webhook_certificates.as_deref();
        let certificates = folder.map(|folder| Certificates::write_named(&plane, folder)).transpose()?;
        let client = plane.client();
        let version = client
            .apiserver_version()
            .await
            .context("the embedded control plane does not answer")?
            .git_version;
        let mut cluster =
            Cluster { name: "embedded".to_owned(), embedded: true, version, ..Cluster::default() };
        let mut lock = None;
        // Without a free port the operator still works; only kubectl beside it does not.
        let project = state_folder.path().parent().and_then(Path::file_name);
        let project = project.map(|name| name.to_string_lossy().into_owned());
        let (listening, kubeconfig) = match plane.listen(Listen { project, ..Listen::default() }).await {
            Ok(listening) => {
                cluster.server = format!("https://{}", listening.address);
                let (name, held) = free_kubeconfig(state_folder)?;
                state_folder.write(&name, listening.kubeconfig.as_bytes())?;
                lock = held;
                (Some(listening), Some(state_folder.path().join(name)))
            }
            Err(error) => {
                tracing::warn!("no kubeconfig for other tools: {error:#}");
                (None, None)
            }
        };
        Ok(Connection {
            client,
            cluster,
            namespace,
            kubeconfig,
            read_only: ReadOnly::default(),
            link: None,
            monitor: None,
            plane: Some((plane, listening)),
            _lock: lock,
            _data: data,
            warning,
            certificates,
        })
    }

    async fn context(choice: &Choice, merged: &Merged, context: &str) -> Result<Connection> {
        let target = merged.target(context).await?;
        // Nothing is written before it is known where.
        let read_only = ReadOnly::new(true);
        let namespace = choice.namespace.clone().unwrap_or_else(|| target.namespace.clone());
        let link = Link::open(target.clone(), read_only.clone()).await?;
        let client = Client::new(link.clone(), namespace.clone());
        tokio::time::timeout(PATIENCE, link.probe())
            .await
            .unwrap_or_else(|_| Err(target.names.unanswered("timed out")))?;
        let version = client.apiserver_version().await.map_err(ApiError::from).with_context(|| {
            format!(
                "the API server of context {context} ({}) does not tell its version; check it with `kubectl --context \
                 {context} version`{}",
                target.names.server,
                choice.or_embedded()
            )
        })?;
        let version = version.git_version;
        let (local, marks) = marks(&client, &target, &version).await;
        let protection = match (local, choice.allow_contexts.iter().any(|allowed| allowed == context)) {
            (true, _) => Protection::Local,
            (false, true) => Protection::Confirmed,
            (false, false) => Protection::ReadOnly,
        };
        if protection != Protection::ReadOnly {
            read_only.lift();
        }
        let cluster = Cluster {
            name: context.to_owned(),
            embedded: false,
            version,
            server: target.names.server.clone(),
            read_only: protection == Protection::ReadOnly,
            protection,
            marks,
            insecure: target.insecure,
        };
        let monitor =
            ConnectionMonitor { link: link.clone(), choice: choice.clone(), context: context.to_owned() };
        Ok(Connection {
            client,
            cluster,
            namespace,
            kubeconfig: choice.kubeconfig.clone(),
            read_only,
            link: Some(link),
            monitor: Some(monitor),
            plane: None,
            _lock: None,
            _data: None,
            warning: choice.names_webhooks().then(|| NOT_HERE.to_owned()),
            certificates: None,
        })
    }

    /// A client for a ServiceAccount, on the embedded control plane; elsewhere it has to be impersonated.
    pub fn as_service_account(&self, namespace: &str, name: &str) -> Option<Client> {
        let (plane, _) = self.plane.as_ref()?;
        let service = plane.service().as_user(User::service_account(namespace, name)).ahead_of_disk();
        Some(Client::new(service, self.namespace.clone()))
    }

    /// The client of the reconcilers. On the embedded control plane they do not wait for the disk: they end
    /// with it, and what the disk has is always a state that they have seen.
    fn reconcilers_client(&self) -> Client {
        match &self.plane {
            Some((plane, _)) => Client::new(plane.service().ahead_of_disk(), self.namespace.clone()),
            None => self.client.clone(),
        }
    }

    /// The client of the reconcilers, which call as the operator's ServiceAccount where there is one.
    pub fn client_of(&self, identity: Option<&Identity>) -> Client {
        identity.map_or_else(|| self.reconcilers_client(), |identity| identity.client.clone())
    }

    /// Writes a certificate for the webhooks of a program on this machine; the answer is the authority, PEM.
    /// `None` where this is not the embedded control plane.
    ///
    /// # Errors
    /// Where the files cannot be written.
    pub fn certify_webhooks(&self, folder: &PrivateFolder) -> Result<Option<String>> {
        let Some((plane, _)) = &self.plane else { return Ok(None) };
        Certificates::write(plane, folder)?;
        Ok(Some(plane.authority()))
    }

    /// The embedded control plane, and where it listens.
    pub fn plane(&self) -> Option<(&ControlPlane, Option<&Listening>)> {
        self.plane.as_ref().map(|(plane, listening)| (plane, listening.as_ref()))
    }

    /// The way of a program's calls to a cluster: with the credentials of the kubeconfig, which impersonate
    /// the ServiceAccount that the program acts as.
    pub fn way_of(&self, acting: Option<&Identity>) -> Upstream {
        match (acting, &self.link) {
            (Some(identity), _) => program_proxy::upstream(identity.client.clone()),
            (None, Some(link)) => program_proxy::straight(link.clone()),
            (None, None) => program_proxy::upstream(self.client.clone()),
        }
    }

    /// Custom resources at another version, as the converter of the embedded control plane makes them; an
    /// error in words.
    pub async fn convert(
        &self,
        resource: &str,
        objects: Vec<Value>,
        api_version: &str,
    ) -> Result<Vec<Value>, String> {
        let Some((plane, _)) = &self.plane else {
            return Err("no embedded control plane converts".to_owned());
        };
        plane.convert(resource, objects, api_version).await.map_err(|error| error.to_string())
    }

    /// A client that asks `rules` before each write and tells them of each call.
    ///
    /// # Errors
    /// On the embedded control plane, whose calls nobody supervises: a client without the rules would write
    /// all the same.
    pub fn supervised(&self, rules: Arc<dyn CallRules>) -> Result<Client> {
        let link = self.link.clone().context("calls of the embedded control plane are not supervised")?;
        Ok(Client::new(Supervised { link, rules }, self.namespace.clone()))
    }

    /// The monitor of the connection, where it can break.
    pub fn monitor(&mut self) -> Option<ConnectionMonitor> {
        self.monitor.take()
    }

    /// Ends the embedded control plane, if there is one.
    pub async fn close(self) {
        if let Some((plane, listening)) = self.plane {
            drop(listening);
            plane.stop().await;
        }
        if let (true, Some(path)) = (self.cluster.embedded, &self.kubeconfig) {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// `kubeconfig` in the state folder, or, where `opdev serve` has written that one, another.
fn free_kubeconfig(state_folder: &PrivateFolder) -> Result<(String, Option<Lock>)> {
    let name = "kubeconfig".to_owned();
    match Lock::of(state_folder, &name, "opdev run")? {
        Ok(lock) => Ok((name, Some(lock))),
        Err(holder) => {
            let other = format!("kubeconfig-{}", std::process::id());
            tracing::warn!("the kubeconfig belongs to {holder}; this opdev writes {other}");
            Ok((other, None))
        }
    }
}

/// To whoever finds a store that came with the project.
pub const RENEWED: &str = "the objects in the data folder were not kept by you on this machine, so all keys and tokens in it \
                           were made anew; start with --fresh where you do not know the objects either";

/// To whoever says how webhooks are reached on a cluster of its own.
const NOT_HERE: &str = "--webhook, --strict-webhooks and --webhook-certs count on the embedded control plane only: this \
                        cluster reaches webhooks by itself; add --embedded to try them here";

/// The time limit of the first answer.
const PATIENCE: Duration = Duration::from_secs(15);

/// The answer whether the cluster is clearly local, and the words for it.
async fn marks(client: &Client, target: &Target, version: &str) -> (bool, String) {
    let Some(provider) = local::provider(target) else {
        return (
            false,
            "neither its context nor its cluster entry is named as a tool for local clusters does".to_owned(),
        );
    };
    let name = provider.name();
    let nodes = nodes(client).await;
    if local::borne_out(provider, version, nodes.as_deref()) {
        return (true, name.to_owned());
    }
    let what = match nodes {
        Some(_) => format!(
            "it is named as {name} names its clusters, but neither its nodes nor its version are {name}'s"
        ),
        None => format!("it is named as {name} names its clusters, but its version is not {name}'s"),
    };
    (false, what)
}

/// Some nodes, where they may be read.
async fn nodes(client: &Client) -> Option<Vec<Value>> {
    let request = http::Request::get("/api/v1/nodes?limit=20").body(Vec::new()).ok()?;
    let list: Value = client.request(request).await.ok()?;
    Some(list.get("items")?.as_array()?.clone())
}
