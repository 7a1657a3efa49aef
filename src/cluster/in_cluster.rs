//! The credentials of a pod: the API server's address from the environment, the ServiceAccount's token and
//! the authority from the files that the kubelet keeps. The token is read again, as from any kubeconfig that
//! names a file.

use kube::config::Kubeconfig;
use serde_json::json;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Where the kubelet puts them.
const FOLDER: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
/// The name of the context that stands for them.
pub(super) const CONTEXT: &str = "in-cluster";

/// A kubeconfig for the pod that this process runs in, and the file with its token; `None` outside of a pod.
/// `var` reads the environment.
pub(super) fn kubeconfig(var: impl Fn(&str) -> Option<OsString>) -> Option<(Kubeconfig, PathBuf)> {
    read(Path::new(FOLDER), var)
}

/// The file with the token.
pub(super) fn token() -> PathBuf {
    Path::new(FOLDER).join("token")
}

/// Returns true if this process runs in a pod, with a ServiceAccount or without one.
pub(super) fn is_pod(var: impl Fn(&str) -> Option<OsString>) -> bool {
    var("KUBERNETES_SERVICE_HOST").is_some_and(|host| !host.is_empty())
}

/// Returns true if this process runs in a pod with a ServiceAccount.
pub fn in_pod() -> bool {
    kubeconfig(|name| std::env::var_os(name)).is_some()
}

fn read(folder: &Path, var: impl Fn(&str) -> Option<OsString>) -> Option<(Kubeconfig, PathBuf)> {
    let text = |name| var(name)?.into_string().ok().filter(|text: &String| !text.is_empty());
    let (host, port) = (text("KUBERNETES_SERVICE_HOST")?, text("KUBERNETES_SERVICE_PORT")?);
    let token = folder.join("token");
    if !token.is_file() {
        return None;
    }
    let host = if host.contains(':') { format!("[{host}]") } else { host };
    let namespace = std::fs::read_to_string(folder.join("namespace")).unwrap_or_default();
    let namespace = Some(namespace.trim()).filter(|name| !name.is_empty()).unwrap_or("default");
    let authority = Some(folder.join("ca.crt")).filter(|path| path.is_file());
    let whole = json!({
        "current-context": CONTEXT,
        "clusters": [{"name": CONTEXT, "cluster": {
            "server": format!("https://{host}:{port}"), "certificate-authority": authority
        }}],
        "users": [{"name": CONTEXT, "user": {"tokenFile": token}}],
        "contexts": [{"name": CONTEXT, "context": {
            "cluster": CONTEXT, "user": CONTEXT, "namespace": namespace
        }}],
    });
    serde_json::from_value(whole).ok().map(|kubeconfig| (kubeconfig, token))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pod_has_a_host_a_port_and_a_token() {
        let folder = tempfile::tempdir().unwrap();
        let var = |name: &str| match name {
            "KUBERNETES_SERVICE_HOST" => Some(OsString::from("fd00::1")),
            "KUBERNETES_SERVICE_PORT" => Some(OsString::from("443")),
            _ => None,
        };
        assert!(read(folder.path(), var).is_none(), "no token");
        std::fs::write(folder.path().join("token"), "t").unwrap();
        std::fs::write(folder.path().join("namespace"), "shop\n").unwrap();
        assert!(read(folder.path(), |_| None).is_none(), "no host");
        let (kubeconfig, _) = read(folder.path(), var).unwrap();
        let cluster = kubeconfig.clusters[0].cluster.as_ref().unwrap();
        assert_eq!(cluster.server.as_deref(), Some("https://[fd00::1]:443"));
        assert_eq!(kubeconfig.contexts[0].context.as_ref().unwrap().namespace.as_deref(), Some("shop"));
        let user = kubeconfig.auth_infos[0].auth_info.as_ref().unwrap();
        assert_eq!(user.token_file.as_deref(), folder.path().join("token").to_str());
    }
}
