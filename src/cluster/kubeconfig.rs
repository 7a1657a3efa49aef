//! Kubeconfig files as kubectl reads them: one that is named, those of `KUBECONFIG` merged, the credentials
//! of the pod that this runs in, or `~/.kube/config`; then one context with its cluster and user, and where
//! each of them is written. Connects to nothing.

use super::http_proxy;
use super::in_cluster;
use super::unreachable::{Names, bare, shown};
use anyhow::{Context as _, Result, anyhow, bail};
use kube::config::{AuthInfo, KubeConfigOptions, Kubeconfig};
use opdev_event::words;
use opdev_object::spelling::nearest;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// All files, merged.
pub(super) struct Merged {
    kubeconfig: Kubeconfig,
    files: Vec<PathBuf>,
    /// The file of each entry, by sort and name.
    origins: BTreeMap<(Sort, String), PathBuf>,
    /// The other way out of an error: `OR_EMBEDDED`, or nothing.
    or: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Sort {
    Context,
    Cluster,
    User,
}

/// One context, ready to connect to.
#[derive(Clone)]
pub(super) struct Target {
    /// Names for messages about it.
    pub(super) names: Names,
    /// The namespace for objects without one.
    pub(super) namespace: String,
    /// How to connect; without the user's tokens and plugins, which `credentials` has.
    pub(super) config: kube::Config,
    /// The user of the context.
    pub(super) user: AuthInfo,
    /// The providers that left a mark on the cluster entry, such as `minikube.sigs.k8s.io`.
    pub(super) providers: Vec<String>,
    /// True if the server's certificate goes unchecked.
    pub(super) insecure: bool,
}

/// How long a connection may be silent, but for those of `lasting`. Every watch of opdev itself says
/// something more often.
const SILENCE: Duration = Duration::from_secs(310);

impl Merged {
    /// Reads the files; `None` where there are none and none was named. `var` reads the environment, `or` is
    /// what else there is to do where something is wrong: `OR_EMBEDDED`, or nothing.
    ///
    /// # Errors
    /// Where a file that was named is missing, one cannot be read, or this is a pod without credentials.
    pub(super) fn read(
        named: Option<&Path>,
        or: &'static str,
        var: impl Fn(&str) -> Option<std::ffi::OsString>,
    ) -> Result<Option<Merged>> {
        if let Some(path) = named {
            if !path.exists() {
                bail!(
                    "there is no kubeconfig {}\n  where: --kubeconfig\n  to do: name a file that exists{or}",
                    shown(path)
                );
            }
            return Ok(Some(Self::of(vec![path.to_owned()], or)?));
        }
        let listed: Vec<PathBuf> = var("KUBECONFIG")
            .map(|value| std::env::split_paths(&value).filter(|path| !path.as_os_str().is_empty()).collect())
            .unwrap_or_default();
        if !listed.is_empty() {
            let there: Vec<PathBuf> = listed.iter().filter(|path| path.exists()).cloned().collect();
            if there.is_empty() {
                let list = listed.iter().map(|path| shown(path)).collect::<Vec<_>>().join(", ");
                bail!(
                    "no kubeconfig file exists: {list}\n  where: the environment variable KUBECONFIG\n  to do: correct or unset it{or}"
                );
            }
            for missing in listed.iter().filter(|path| !path.exists()) {
                tracing::warn!(
                    "KUBECONFIG names {}, which does not exist; the other files are used",
                    shown(missing)
                );
            }
            return Ok(Some(Self::of(there, or)?));
        }
        if let Some((kubeconfig, token)) = in_cluster::kubeconfig(&var) {
            return Ok(Some(Merged { kubeconfig, files: vec![token], origins: BTreeMap::new(), or }));
        }
        let home = var("HOME").filter(|home| !home.is_empty()).map(PathBuf::from);
        match home.map(|home| home.join(".kube/config")).filter(|path| path.exists()) {
            Some(path) => Ok(Some(Self::of(vec![path], or)?)),
            None if in_cluster::is_pod(&var) => bail!(
                "this is a pod without the token of a ServiceAccount\n  where: KUBERNETES_SERVICE_HOST is set, {} does not \
                 exist\n  to do: let the pod mount it (automountServiceAccountToken), name a kubeconfig{or}",
                in_cluster::token().display()
            ),
            None => Ok(None),
        }
    }

    fn of(files: Vec<PathBuf>, or: &'static str) -> Result<Merged> {
        let mut merged =
            Merged { kubeconfig: Kubeconfig::default(), files: files.clone(), origins: BTreeMap::new(), or };
        for file in files {
            // Content of the file is not repeated: the parser quotes it, and it may hold credentials.
            let mut next = Kubeconfig::read_from(&file).map_err(|error| {
                anyhow!("the kubeconfig {} cannot be used: {}\n  to do: correct it (`kubectl --kubeconfig {} config view` reads it, too){or}", shown(&file), without_excerpt(&error.to_string()), shown(&file))
            })?;
            // An empty one is none.
            next.current_context = next.current_context.filter(|name| !name.is_empty());
            let contexts = next.contexts.iter().map(|one| (Sort::Context, one.name.clone()));
            let clusters = next.clusters.iter().map(|one| (Sort::Cluster, one.name.clone()));
            let users = next.auth_infos.iter().map(|one| (Sort::User, one.name.clone()));
            for entry in contexts.chain(clusters).chain(users) {
                merged.origins.entry(entry).or_insert_with(|| file.clone());
            }
            let so_far = std::mem::take(&mut merged.kubeconfig);
            merged.kubeconfig = so_far
                .merge(next)
                .with_context(|| format!("the kubeconfig {} does not fit the others", shown(&file)))?;
        }
        Ok(merged)
    }

    /// The files, the first one first; none where the credentials are those of a pod.
    pub(super) fn into_files(self) -> Option<Vec<PathBuf>> {
        (!self.origins.is_empty()).then_some(self.files)
    }

    /// The current context.
    pub(super) fn current(&self) -> Option<&str> {
        self.kubeconfig.current_context.as_deref()
    }

    fn file_of(&self, sort: Sort, name: &str) -> String {
        let path = self.origins.get(&(sort, name.to_owned()));
        path.map_or_else(|| self.list(), |path| shown(path))
    }

    fn list(&self) -> String {
        self.files.iter().map(|file| shown(file)).collect::<Vec<_>>().join(", ")
    }

    /// One context with its cluster and its user.
    ///
    /// # Errors
    /// Where one of them is missing, or a value cannot be used.
    pub(super) async fn target(&self, context: &str) -> Result<Target> {
        let (kubeconfig, or) = (&self.kubeconfig, self.or);
        let names: Vec<&str> = kubeconfig.contexts.iter().map(|one| one.name.as_str()).collect();
        let found = kubeconfig.contexts.iter().find(|one| one.name == context);
        let Some(entry) = found.and_then(|one| one.context.clone()) else {
            let known = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            let near = nearest(context, names.iter().copied());
            let near = near.map_or_else(String::new, |near| format!("did you mean {near}? "));
            bail!(
                "the kubeconfig has no context {context}; it has {known}\n  where: {}\n  to do: {near}name one with --context{or}",
                self.list()
            );
        };
        let place = format!("context {context} in {}", self.file_of(Sort::Context, context));
        let cluster = kubeconfig.clusters.iter().find(|one| one.name == entry.cluster);
        let Some(cluster) = cluster.and_then(|one| one.cluster.clone()) else {
            bail!(
                "the context {context} names the cluster {:?}, which the kubeconfig does not have\n  where: {place}\n  to do: add it with `kubectl config set-cluster`{or}",
                entry.cluster
            );
        };
        let user_name = entry.user.clone().unwrap_or_default();
        let user = kubeconfig.auth_infos.iter().find(|one| one.name == user_name);
        let user = user.map(|one| one.auth_info.clone().unwrap_or_default());
        if user.is_none() && !user_name.is_empty() {
            bail!(
                "the context {context} names the user {user_name:?}, which the kubeconfig does not have\n  where: {place}\n  to do: add it with `kubectl config set-credentials`{or}"
            );
        }
        let names = Names {
            context: context.to_owned(),
            server: bare(cluster.server.as_deref().unwrap_or_default()),
            cluster_file: self.file_of(Sort::Cluster, &entry.cluster),
            user_file: self.file_of(Sort::User, &user_name),
            cluster: entry.cluster.clone(),
            user: user_name,
            or,
        };
        if names.server.is_empty() {
            bail!(
                "the cluster {} has no server\n  where: {}\n  to do: set it with `kubectl config set-cluster {} --server https://...`{or}",
                names.cluster,
                names.cluster_place(),
                names.cluster
            );
        }
        let mut config = self.config(context, &names).await?;
        let server = config.cluster_url.clone();
        config.proxy_url =
            http_proxy::proxy(cluster.proxy_url.as_deref(), &server, |name| std::env::var(name).ok())
                .map_err(|error| {
                    anyhow!("{error}\n  where: {}\n  to do: correct it{or}", names.cluster_place())
                })?;
        config.read_timeout = Some(SILENCE);
        config.default_retry = false;
        // `provideClusterInfo` has been filled in there.
        let user = std::mem::take(&mut config.auth_info);
        config.auth_info = AuthInfo {
            client_certificate: user.client_certificate.clone(),
            client_certificate_data: user.client_certificate_data.clone(),
            client_key: user.client_key.clone(),
            client_key_data: user.client_key_data.clone(),
            impersonate: user.impersonate.clone(),
            impersonate_uid: user.impersonate_uid.clone(),
            impersonate_groups: user.impersonate_groups.clone(),
            impersonate_user_extra: user.impersonate_user_extra.clone(),
            ..AuthInfo::default()
        };
        let extensions = cluster.extensions.iter().flatten();
        let providers =
            extensions.filter_map(|one| Some(one.extension.get("provider")?.as_str()?.to_owned()));
        Ok(Target {
            namespace: config.default_namespace.clone(),
            providers: providers.collect(),
            insecure: config.accept_invalid_certs,
            names,
            config,
            user,
        })
    }

    async fn config(&self, context: &str, names: &Names) -> Result<kube::Config> {
        let (mut kubeconfig, or) = (self.kubeconfig.clone(), self.or);
        // Proxies are chosen by `proxies`; kube's own rules differ from kubectl's.
        for cluster in kubeconfig.clusters.iter_mut().filter_map(|one| one.cluster.as_mut()) {
            cluster.proxy_url = None;
        }
        let options = KubeConfigOptions { context: Some(context.to_owned()), ..KubeConfigOptions::default() };
        kube::Config::from_custom_kubeconfig(kubeconfig, &options).await.map_err(|error| {
            let why = without_excerpt(&words::error(&error));
            anyhow!(
                "the context {context} cannot be used: {why}\n  where: {}, {}\n  to do: correct it{or}",
                names.cluster_place(),
                names.user_place()
            )
        })
    }
}

/// The first line of a parser's message: what follows quotes the file.
fn without_excerpt(message: &str) -> String {
    message.lines().next().unwrap_or_default().trim_end_matches(':').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::unreachable::OR_EMBEDDED;
    use std::fs;

    fn write(folder: &Path, name: &str, text: &str) -> PathBuf {
        let path = folder.join(name);
        fs::write(&path, text).unwrap();
        path
    }

    fn of(files: &[&Path]) -> Merged {
        let joined = std::env::join_paths(files).unwrap();
        Merged::read(None, OR_EMBEDDED, |name| (name == "KUBECONFIG").then(|| joined.clone()))
            .unwrap()
            .unwrap()
    }

    #[tokio::test]
    async fn files_are_merged_as_kubectl_does() {
        let folder = tempfile::tempdir().unwrap();
        let one = write(
            folder.path(),
            "one",
            "current-context: ''\nclusters: [{name: c, cluster: {server: 'https://one:6443', certificate-authority: ca.pem}}]\n\
             users: [{name: jane, user: {tokenFile: token}}]\n",
        );
        let two = write(
            folder.path(),
            "two",
            "current-context: b\nclusters: [{name: c, cluster: {server: 'https://two:6443'}}]\n\
             contexts: [{name: b, context: {cluster: c, user: jane, namespace: shop}}]\n",
        );
        fs::write(folder.path().join("ca.pem"), "").unwrap();
        let missing = folder.path().join("missing");
        let merged = of(&[&missing, &one, &two]);
        assert_eq!(merged.current(), Some("b"), "an empty current-context is none");
        let target = merged.target("b").await.unwrap();
        assert_eq!(target.names.server, "https://one:6443", "the first file to name an entry wins");
        assert_eq!(target.namespace, "shop");
        assert_eq!(target.names.user_place(), format!("user jane in {}", one.display()));
        assert_eq!(target.user.token_file.unwrap(), folder.path().join("token").display().to_string());
    }

    #[tokio::test]
    async fn what_is_missing_is_named_with_its_place() {
        let folder = tempfile::tempdir().unwrap();
        let path = write(
            folder.path(),
            "config",
            "clusters: [{name: c, cluster: {server: 'https://one:6443'}}, {name: empty, cluster: {}}]\n\
             contexts:\n- {name: staging, context: {cluster: gone, user: u}}\n- {name: prod, context: {cluster: c, user: nobody}}\n\
             - {name: bare, context: {cluster: empty}}\n",
        );
        let merged = of(&[&path]);
        for (context, said) in [
            ("stagin", "no context stagin; it has staging, prod, bare"),
            ("stagin", "did you mean staging?"),
            ("staging", "names the cluster \"gone\""),
            ("prod", "names the user \"nobody\""),
            ("bare", "has no server"),
        ] {
            let error = merged.target(context).await.err().unwrap().to_string();
            assert!(error.contains(said), "{error}");
            assert!(error.contains(&path.display().to_string()) && error.contains("--embedded"), "{error}");
        }
        let none = |_: &str| None;
        assert!(Merged::read(None, OR_EMBEDDED, none).unwrap().is_none());
        let gone = folder.path().join("gone");
        let error = Merged::read(Some(&gone), "", none).err().unwrap().to_string();
        assert!(error.contains("there is no kubeconfig") && !error.contains("--embedded"), "{error}");
        let broken = write(folder.path(), "broken", "users: [{name: u, user: {token: hidden-token\n");
        let error = Merged::read(Some(&broken), OR_EMBEDDED, none).err().unwrap().to_string();
        assert!(error.contains("cannot be used") && !error.contains("hidden-token"), "{error}");
    }
}
