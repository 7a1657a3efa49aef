//! The webhooks of the operator's program on the embedded control plane: read before each start, from the
//! project's manifests or else from its markers, registered once the program answers, taken away with it. A
//! program that makes its certificate itself finds its Secret, its Service and the configurations before it
//! starts, and its Secret as files, as the kubelet would mount it. Also the lease that a program before has
//! left. Writes as opdev, never as the program.

use super::notices::tell;
use crate::Environment;
use crate::audit::{NOT_REGISTERED, REGISTERED};
use anyhow::{Context as _, Result, bail};
use futures::StreamExt as _;
use http::Method;
use k8s_openapi::api::core::v1::Secret;
use kube::runtime::watcher::watch_object;
use kube::{Api, Client};
use opdev_client::backoff::{AGAIN, until_refused};
use opdev_client::{OWN_MANAGER, is_not_found, send};
use opdev_cluster::Connection;
use opdev_event::Level;
use opdev_event::sink::EventSink;
use opdev_generate::manifests;
use opdev_generate::manifests::Asked;
use opdev_os::private_folder::PrivateFolder;
use opdev_project::Project;
use opdev_project::program::kustomization::Kustomized;
use opdev_project::program::webhooks::{CONFIGURATIONS, LABEL, OwnCertificate, Webhooks};
use serde_json::{Value, json};
use std::net::Ipv4Addr;
use std::path::{Component, Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::{OnceCell, watch};

/// How often a port is tried until something listens there.
const TRY: Duration = Duration::from_millis(100);

/// The files of a mounted Secret that a webhook server reads; the key comes first, for whoever watches the
/// certificate reads both when it changes.
const FILES: [&str; 3] = ["tls.key", "tls.crt", "ca.crt"];

/// Webhooks of one program.
#[derive(Clone)]
pub(crate) struct Serving {
    pub(crate) client: Client,
    pub(crate) events: EventSink,
    pub(crate) root: PathBuf,
    /// The project's manifests, where the user has named them.
    pub(crate) manifests: Option<PathBuf>,
    /// The webhooks as the project named them before the newest start.
    pub(crate) said: watch::Sender<Arc<NamedWebhooks>>,
    pub(crate) project: String,
    /// The namespace that counts where the project names none.
    pub(crate) namespace: String,
    pub(crate) port: u16,
    /// PEM.
    pub(crate) authority: String,
    /// Set once what an earlier opdev has left is gone.
    pub(crate) cleared: Arc<OnceCell<()>>,
}

/// The webhooks as a project names them.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct NamedWebhooks {
    pub(crate) webhooks: Webhooks,
    /// No manifest has the admission configurations: the markers in the code do.
    by_markers: bool,
    /// Why its markers cannot be read.
    wrong: Option<String>,
}

/// Reads what a project says of its webhooks: its manifests count, and where it has none, what its markers
/// ask for, as `make manifests` would write it.
pub(crate) fn read(root: &Path, manifests: Option<&Path>) -> NamedWebhooks {
    let webhooks = Webhooks::read(root, manifests, &Kustomized::of(root, manifests));
    if webhooks.has_admission() || !root.join("go.mod").is_file() {
        return NamedWebhooks { webhooks, ..NamedWebhooks::default() };
    }
    let year = jiff::Zoned::now().year().to_string();
    let made = manifests::webhooks_of_markers(root, &Asked { year, ..Asked::default() });
    let (admission, wrong) = match made {
        Ok((made, admission)) => (admission, made.wrong()),
        Err(error) => (Vec::new(), Some(format!("{error:#}"))),
    };
    let by_markers = !admission.is_empty();
    NamedWebhooks { webhooks: webhooks.with_admission(admission), by_markers, wrong }
}

/// Makes a certificate for the webhooks of the program, where this is the embedded control plane; the answer
/// also has the folder with it, unless the program makes its certificate itself. Whether a Go program serves
/// webhooks may change with any save, so that one always finds a certificate.
pub(crate) async fn certified(
    project: &Project,
    state_folder: &PrivateFolder,
    connection: &Connection,
    events: &EventSink,
    (is_go, port): (bool, u16),
    environment: &mut Environment,
) -> Result<Option<(Serving, Option<PathBuf>)>> {
    let (root, manifests) = (project.root.clone(), project.manifests.clone());
    let said = move || read(&root, manifests.as_deref());
    let said = tokio::task::spawn_blocking(said).await.unwrap_or_default();
    if said.webhooks.is_empty() && !is_go {
        return Ok(None);
    }
    // controller-runtime looks below the folder for temporary files unless it is told otherwise; one of its
    // own keeps the programs of several projects apart.
    let temporary = state_folder.folder("tmp")?;
    let folder = temporary.folder("k8s-webhook-server")?.folder("serving-certs")?;
    let Some(authority) = connection.certify_webhooks(&folder)? else { return Ok(None) };
    if !said.webhooks.is_empty() {
        for variables in [&mut environment.plain, &mut environment.traced] {
            variables.insert("TMPDIR".to_owned(), temporary.path().display().to_string());
        }
    }
    // A program that makes its certificate itself waits for it in a folder of its own.
    let for_program = said.webhooks.own.is_none().then(|| folder.path().to_owned());
    let serving = Serving {
        client: connection.client.clone(),
        events: events.clone(),
        root: project.root.clone(),
        manifests: project.manifests.clone(),
        said: watch::Sender::new(Arc::new(said)),
        project: project.name.clone(),
        namespace: connection.namespace.clone(),
        port,
        authority,
        cleared: Arc::default(),
    };
    Ok(Some((serving, for_program)))
}

/// The globs of the manifests, as seen from the folder of the program: a save of one is a start, and with it
/// they are read again.
pub(crate) fn watched(root: &Path, dir: &Path) -> [String; 2] {
    let folder = root.join("config/webhook");
    let inside = folder.strip_prefix(dir).unwrap_or(Path::new("config/webhook"));
    ["yaml", "yml"].map(|end| inside.join(format!("*.{end}")).display().to_string())
}

impl Serving {
    /// Registers the webhooks once the program listens, again where they have changed, and goes on to mount
    /// its Secret where it makes its certificate itself.
    pub(crate) async fn run(self) {
        let mut said = self.said.subscribe();
        self.clear().await;
        // Before the first start nothing answers.
        if said.changed().await.is_err() {
            return;
        }
        let own = said.borrow().webhooks.own.clone();
        let mounted = async {
            if let Some(own) = &own {
                self.mount(own).await;
            }
        };
        tokio::join!(mounted, self.register_each(said));
    }

    async fn register_each(&self, mut said: watch::Receiver<Arc<NamedWebhooks>>) {
        let mut registered = Arc::new(NamedWebhooks::default());
        loop {
            let newest = Arc::clone(&said.borrow_and_update());
            let is_new = newest.webhooks != registered.webhooks;
            if is_new && !registered.webhooks.is_empty() && newest.webhooks.own.is_none() {
                self.remove().await;
            }
            let reached = async {
                if is_new && !newest.webhooks.is_empty() {
                    self.reached(&newest).await;
                }
            };
            // A newer start may come while the program of this one does not listen.
            tokio::select! {
                () = reached => {
                    registered = newest;
                    if said.changed().await.is_err() {
                        return;
                    }
                }
                changed = said.changed() => {
                    registered = Arc::new(NamedWebhooks::default());
                    if changed.is_err() {
                        return;
                    }
                }
            }
        }
    }

    /// Waits until the program listens, and registers what leads to it.
    async fn reached(&self, said: &NamedWebhooks) {
        while TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).await.is_err() {
            tokio::time::sleep(TRY).await;
        }
        let (level, message) = match self.register(&said.webhooks).await {
            Ok(names) => (
                Level::Info,
                format!("{REGISTERED} and reached at 127.0.0.1:{}: {}", self.port, names.join(", ")),
            ),
            Err(error) => (Level::Error, format!("{NOT_REGISTERED}: {error:#}")),
        };
        let hint = said.by_markers.then(|| {
            "config/webhook has no configuration: they are made from the markers; opdev webhook writes the file".to_owned()
        });
        tell(&self.events, level, message, hint).await;
    }

    /// Before each start: reads what the project says now, and makes what a program that makes its
    /// certificate itself finds in its cluster.
    pub(crate) async fn prepare(&self) {
        let (root, manifests) = (self.root.clone(), self.manifests.clone());
        if let Ok(said) = tokio::task::spawn_blocking(move || read(&root, manifests.as_deref())).await {
            if let Some(wrong) = &said.wrong {
                let message = format!("the webhooks of the program are not known: {wrong}");
                tell(&self.events, Level::Error, message, None).await;
            }
            if let Some(why) = &said.webhooks.unbuilt {
                let message = format!("what the program converts is read from patches alone: {why}");
                tell(&self.events, Level::Warn, message, None).await;
            }
            self.said.send_replace(Arc::new(said));
        }
        let said = Arc::clone(&self.said.borrow());
        let webhooks = &said.webhooks;
        let Some(own) = &webhooks.own else { return };
        self.clear().await;
        for object in webhooks.beside(own, &self.project, &self.namespace, self.port) {
            let Some(path) = path_of(&object) else { continue };
            if let Err(error) = self.apply(&path, &object).await {
                let message = format!("the program's webhooks miss {path}: {error:#}");
                tell(&self.events, Level::Error, message, None).await;
            }
        }
    }

    /// Writes the Secret of the program's certificate where its Deployment mounts it, whenever it changes.
    async fn mount(&self, own: &OwnCertificate) {
        let namespace = own.namespace.as_deref().unwrap_or(&self.namespace);
        let what = format!("Secret {namespace}/{}", own.secret);
        let folder = match mount_folder(&own.folder) {
            Ok(folder) => folder,
            Err(error) => {
                let message = format!("the program waits for its certificate ({what}): {error:#}");
                let hint = "let the program read it elsewhere, such as with operator.args in opdev.yaml";
                return tell(&self.events, Level::Error, message, Some(hint.to_owned())).await;
            }
        };
        let secrets: Api<Secret> = Api::namespaced(self.client.clone(), namespace);
        let mut states = pin!(watch_object(secrets, &own.secret));
        let mut is_told = false;
        while let Some(state) = states.next().await {
            let Ok(Some(Secret { data: Some(data), .. })) = state else { continue };
            let files: Vec<_> = FILES.iter().filter_map(|name| Some((name, data.get(*name)?))).collect();
            for (name, bytes) in &files {
                if let Err(error) = folder.write(name, &bytes.0) {
                    tell(&self.events, Level::Error, format!("{what} is not mounted: {error:#}"), None).await;
                }
            }
            if !files.is_empty() && !std::mem::replace(&mut is_told, true) {
                let message = format!(
                    "the program makes its certificate itself: {what} is kept in {}, as its Deployment mounts it",
                    own.folder.display()
                );
                tell(&self.events, Level::Info, message, None).await;
            }
        }
    }

    /// Configurations left by an earlier opdev would refuse every object until the program is up.
    async fn clear(&self) {
        self.cleared.get_or_init(|| self.remove()).await;
    }

    async fn register(&self, webhooks: &Webhooks) -> Result<Vec<String>> {
        let mut names = Vec::new();
        let objects = match &webhooks.own {
            // They are there since before the program was.
            Some(own) => webhooks.beside(own, &self.project, &self.namespace, self.port),
            None => webhooks.configurations(&self.project, self.port, &self.authority),
        };
        for object in objects {
            let is_admission = CONFIGURATIONS.iter().any(|(kind, _)| object["kind"] == *kind);
            let Some(path) = path_of(&object).filter(|_| is_admission) else { continue };
            if webhooks.own.is_none() {
                self.apply(&path, &object).await?;
            }
            names.push(object["metadata"]["name"].as_str().unwrap_or_default().to_owned());
        }
        let conversion = Webhooks::conversion_by_url(self.port, &self.authority);
        for name in &webhooks.conversion {
            let path = format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}");
            let patch = json!({ "spec": { "conversion": conversion } });
            self.write(&path, "application/merge-patch+json", &patch).await?;
            names.push(format!("conversion of {name}"));
        }
        Ok(names)
    }

    async fn apply(&self, path: &str, object: &Value) -> Result<()> {
        let uri = format!("{path}?fieldManager={OWN_MANAGER}&force=true");
        self.write(&uri, "application/apply-patch+yaml", object).await
    }

    /// A first write: what fails for a moment is tried again.
    async fn write(&self, uri: &str, content_type: &str, object: &Value) -> Result<()> {
        let tell = |error: &anyhow::Error| {
            let path = uri.split('?').next().unwrap_or_default();
            let message = format!("the program's webhooks miss {path} for now: {error:#}");
            tell(&self.events, Level::Warn, message, Some(AGAIN.to_owned()))
        };
        let attempt = || send(&self.client, Method::PATCH, uri, content_type, Some(object));
        until_refused(attempt, tell).await.map(|_| ())
    }

    /// Takes the registered configurations and the mounted files away: nobody answers any more.
    pub(crate) async fn remove(&self) {
        let said = Arc::clone(&self.said.borrow());
        if let Some(folder) = said.webhooks.own.as_ref().and_then(|own| mount_folder(&own.folder).ok()) {
            for name in FILES {
                // A file that is missing was not mounted.
                _ = folder.remove(name);
            }
        }
        for (_, list) in CONFIGURATIONS {
            let uri = format!("{list}?labelSelector={LABEL}%3D{}", self.project);
            if let Err(error) = send(&self.client, Method::DELETE, &uri, "application/json", None).await {
                tracing::warn!("webhook configurations of the program are left: {error:#}");
            }
        }
    }
}

/// Makes the namespace that the manager would be deployed to, where it is missing.
pub(crate) async fn make_namespace(client: &Client, name: &str) {
    let object = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } });
    let uri = format!("/api/v1/namespaces/{name}?fieldManager={OWN_MANAGER}&force=true");
    let content_type = "application/apply-patch+yaml";
    let attempt = || send(client, Method::PATCH, &uri, content_type, Some(&object));
    let tell = |error: &anyhow::Error| {
        tracing::warn!("the namespace {name} of the program is not made yet: {error:#}");
        std::future::ready(())
    };
    if let Err(error) = until_refused(attempt, tell).await {
        tracing::warn!("the namespace {name} of the program is not made: {error:#}");
    }
}

/// The path of an object that is applied.
fn path_of(object: &Value) -> Option<String> {
    let kind = object["kind"].as_str()?;
    let name = object["metadata"]["name"].as_str()?;
    let namespaced = |list: &str| {
        let namespace = object["metadata"]["namespace"].as_str()?;
        Some(format!("/api/v1/namespaces/{namespace}/{list}/{name}"))
    };
    match kind {
        "Namespace" => Some(format!("/api/v1/namespaces/{name}")),
        "Secret" => namespaced("secrets"),
        "Service" => namespaced("services"),
        _ => {
            CONFIGURATIONS.iter().find(|(known, _)| *known == kind).map(|(_, list)| format!("{list}/{name}"))
        }
    }
}

/// The folder in which a Secret is mounted, below the system's folder for temporary files: a project's files
/// must not have opdev write anywhere else.
fn mount_folder(path: &Path) -> Result<PrivateFolder> {
    let temporary = [Path::new("/tmp").to_owned(), std::env::temp_dir()];
    let inside = temporary.iter().find_map(|folder| path.strip_prefix(folder).ok());
    let is_plain = |inside: &Path| inside.components().all(|part| matches!(part, Component::Normal(_)));
    if !inside.is_some_and(|inside| inside.components().next().is_some() && is_plain(inside)) {
        bail!("its Deployment mounts it at {}, and opdev writes it only below /tmp", path.display());
    }
    PrivateFolder::named(path).context("the folder of its mount cannot be used")
}

/// Deletes the lease that a program before has not given back, so that the next one need not wait for its
/// end: only one of this name that a process of this machine holds.
pub(crate) async fn free_lease(client: &Client, name: &str, host: &str) {
    let list = match send(
        client,
        Method::GET,
        "/apis/coordination.k8s.io/v1/leases",
        "application/json",
        None,
    )
    .await
    {
        Ok((list, _)) => list,
        Err(error) => return tracing::warn!("leases cannot be read: {error:#}"),
    };
    let holder = format!("{host}_");
    let is_left = |lease: &&Value| {
        lease["metadata"]["name"] == name
            && lease["spec"]["holderIdentity"].as_str().is_some_and(|identity| identity.starts_with(&holder))
    };
    for lease in list["items"].as_array().into_iter().flatten().filter(is_left) {
        let namespace = lease["metadata"]["namespace"].as_str().unwrap_or_default();
        let path = format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/{name}");
        match send(client, Method::DELETE, &path, "application/json", None).await {
            Err(error) if !is_not_found(&error) => tracing::warn!("the lease {name} is left: {error:#}"),
            Ok(_) | Err(_) => {}
        }
    }
}

/// This machine's name, as programs put it into leases; empty where nobody tells it.
pub(crate) fn host_name() -> String {
    let read = std::fs::read_to_string("/proc/sys/kernel/hostname").ok();
    let asked = || {
        let output = std::process::Command::new("uname").arg("-n").output().ok()?;
        String::from_utf8(output.stdout).ok()
    };
    read.or_else(asked).unwrap_or_default().trim().to_owned()
}
