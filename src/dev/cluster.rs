//! Which cluster: the embedded control plane, or the current context of the kubeconfig, guarded.
//! No current context means embedded; an unreachable one is an error that offers it, never a silent fallback.

use crate::event::Cluster;

use anyhow::{Context as _, Result, bail};
use kube::Client;
use kube::config::{KubeConfigOptions, Kubeconfig};
use opdev_controlplane::{ControlPlane, Listen, Listening};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What the user asked for.
#[derive(Clone, Debug, Default)]
pub struct Choice {
    /// Only the embedded control plane.
    pub embedded: bool,
    /// A context other than the current one.
    pub context: Option<String>,
    /// A kubeconfig other than `KUBECONFIG` or `~/.kube/config`.
    pub kubeconfig: Option<PathBuf>,
    /// The namespace, instead of the context's.
    pub namespace: Option<String>,
    /// Contexts that may be written to although they are not clearly local.
    pub allow_contexts: Vec<String>,
}

/// A connection, and the embedded control plane where that is what is behind it.
pub struct Connection {
    /// The client; its calls are recorded by `tap`.
    pub client: Client,
    /// What is behind it.
    pub cluster: Cluster,
    /// The namespace for objects without one.
    pub namespace: String,
    /// A kubeconfig for other tools.
    pub kubeconfig: Option<PathBuf>,
    /// Whether writes are allowed only because the user said so.
    pub allowed: bool,
    plane: Option<(ControlPlane, Option<Listening>)>,
}

impl Connection {
    /// Connects.
    ///
    /// # Errors
    /// A message that says what was tried and what to do.
    pub async fn open(choice: &Choice, state_folder: &Path) -> Result<Connection> {
        if choice.embedded {
            return Self::embedded(choice, state_folder).await;
        }
        let kubeconfig = match &choice.kubeconfig {
            Some(path) => Some(
                Kubeconfig::read_from(path).with_context(|| format!("{} cannot be used", path.display()))?,
            ),
            None => Kubeconfig::read().ok(),
        };
        match kubeconfig {
            Some(kubeconfig)
                if choice.context.is_some()
                    || kubeconfig.current_context.as_deref().is_some_and(|name| !name.is_empty()) =>
            {
                Self::context(choice, kubeconfig).await
            }
            _ if choice.context.is_some() => bail!(
                "no kubeconfig was found, so there is no context {}; start with --embedded for the embedded control plane",
                choice.context.as_deref().unwrap_or_default()
            ),
            _ => Self::embedded(choice, state_folder).await,
        }
    }

    async fn embedded(choice: &Choice, state_folder: &Path) -> Result<Connection> {
        let namespace = choice.namespace.clone().unwrap_or_else(|| "default".to_owned());
        let plane = ControlPlane::start().await.context("the embedded control plane does not start")?;
        let client = plane.client();
        let version = client
            .apiserver_version()
            .await
            .context("the embedded control plane does not answer")?
            .git_version;
        let mut cluster = Cluster {
            name: "embedded".to_owned(),
            embedded: true,
            version,
            server: String::new(),
            read_only: false,
        };
        // Without a free port the operator still works; only kubectl beside it does not.
        let (listening, kubeconfig) = match plane.listen(Listen::default()).await {
            Ok(listening) => {
                cluster.server = format!("https://{}", listening.address);
                let path = state_folder.join("kubeconfig");
                write_private(&path, &listening.kubeconfig)?;
                (Some(listening), Some(path))
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
            allowed: false,
            plane: Some((plane, listening)),
        })
    }

    async fn context(choice: &Choice, kubeconfig: Kubeconfig) -> Result<Connection> {
        let name = choice.context.clone().or_else(|| kubeconfig.current_context.clone()).unwrap_or_default();
        let known: Vec<&str> = kubeconfig.contexts.iter().map(|context| context.name.as_str()).collect();
        if !known.contains(&name.as_str()) {
            bail!("the kubeconfig has no context {name}; it has {}", known.join(", "));
        }
        let options = KubeConfigOptions { context: Some(name.clone()), ..KubeConfigOptions::default() };
        let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options)
            .await
            .with_context(|| format!("the context {name} cannot be used"))?;
        let namespace = choice.namespace.clone().unwrap_or_else(|| config.default_namespace.clone());
        let server = config.cluster_url.to_string();
        let client =
            Client::try_from(config).with_context(|| format!("the context {name} cannot be used"))?;
        let offer = || {
            format!(
                "the API server of context {name} ({server}) does not answer; check it with `kubectl --context {name} \
                 version`, or start with --embedded to work without a cluster"
            )
        };
        let version = tokio::time::timeout(Duration::from_secs(10), client.apiserver_version())
            .await
            .with_context(offer)?
            .with_context(offer)?
            .git_version;
        let local = is_clearly_local(&name);
        let allowed = !local && choice.allow_contexts.contains(&name);
        let read_only = !local && !allowed;
        let cluster = Cluster { name, embedded: false, version, server, read_only };
        Ok(Connection {
            client,
            cluster,
            namespace,
            kubeconfig: choice.kubeconfig.clone(),
            allowed,
            plane: None,
        })
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

/// Whether the context's name carries the mark of a provider of local clusters, `opdev serve` among them. A loopback address proves nothing:
/// it may be a tunnel.
fn is_clearly_local(context: &str) -> bool {
    let exact = [
        "opdev",
        "minikube",
        "docker-desktop",
        "docker-for-desktop",
        "rancher-desktop",
        "colima",
        "k3s",
        "orbstack",
    ];
    let prefixes = ["kind-", "k3d-", "minikube-", "colima-"];
    exact.contains(&context) || prefixes.iter().any(|prefix| context.starts_with(prefix))
}

/// Writes a file that only its owner may read, whole or not at all.
///
/// # Errors
/// Where it cannot be written.
pub fn write_private(path: &Path, text: &str) -> Result<()> {
    let write = || -> std::io::Result<()> {
        let part = path.with_extension("part");
        let mut options = std::fs::OpenOptions::new();
        options.write(true).create(true).truncate(true);
        #[cfg(unix)]
        {
            use std::os::unix::fs::OpenOptionsExt as _;
            options.mode(0o600);
        }
        let mut file = options.open(&part)?;
        file.write_all(text.as_bytes())?;
        drop(file);
        std::fs::rename(&part, path)
    };
    write().with_context(|| format!("{} cannot be written", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_provider_marks_are_local() {
        for local in ["opdev", "kind-dev", "k3d-a", "minikube", "docker-desktop"] {
            assert!(is_clearly_local(local), "{local}");
        }
        for remote in ["prod", "localhost", "admin@127.0.0.1", "kindly-prod", ""] {
            assert!(!is_clearly_local(remote), "{remote}");
        }
    }
}
