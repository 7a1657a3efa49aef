//! Decides whether a cluster is clearly local: it carries the marks of a tool that makes clusters on this
//! machine, in the kubeconfig entry and, where they may be read, on its nodes. An address proves nothing: it
//! may be a tunnel.

use super::kubeconfig::Target;
use serde_json::Value;
use std::path::Path;

/// A tool whose clusters are on the developer's machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Provider {
    Opdev,
    Kind,
    K3d,
    Minikube,
    DockerDesktop,
    RancherDesktop,
    Colima,
    K3s,
}

impl Provider {
    /// As its users write it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Provider::Opdev => "opdev serve",
            Provider::Kind => "kind",
            Provider::K3d => "k3d",
            Provider::Minikube => "minikube",
            Provider::DockerDesktop => "Docker Desktop",
            Provider::RancherDesktop => "Rancher Desktop",
            Provider::Colima => "Colima",
            Provider::K3s => "k3s",
        }
    }
}

/// The tool whose mark the kubeconfig entry carries: the names of context and cluster as it writes them.
pub(super) fn provider(target: &Target) -> Option<Provider> {
    let k3s = target.names.cluster_file == "/etc/rancher/k3s/k3s.yaml"
        && Path::new(&target.names.cluster_file).exists();
    named(&target.names.context, &target.names.cluster, &target.providers, k3s)
}

fn named(context: &str, cluster: &str, providers: &[String], k3s: bool) -> Option<Provider> {
    if providers.iter().any(|one| one == "minikube.sigs.k8s.io") {
        return Some(Provider::Minikube);
    }
    // Each of these tools gives both the same name; a context that was renamed keeps its cluster's.
    [context, cluster].into_iter().find_map(|name| {
        let prefixed = |prefix: &str| name.strip_prefix(prefix).is_some_and(|rest| !rest.is_empty());
        match name {
            _ if name == "opdev" || prefixed("opdev-") => Some(Provider::Opdev),
            "minikube" => Some(Provider::Minikube),
            "docker-desktop" | "docker-for-desktop" => Some(Provider::DockerDesktop),
            "rancher-desktop" => Some(Provider::RancherDesktop),
            "colima" => Some(Provider::Colima),
            "k3s" => Some(Provider::K3s),
            "default" if k3s => Some(Provider::K3s),
            _ if prefixed("kind-") => Some(Provider::Kind),
            _ if prefixed("k3d-") => Some(Provider::K3d),
            _ if prefixed("colima-") => Some(Provider::Colima),
            _ => None,
        }
    })
}

/// Returns true if the server bears out what the names say. `nodes` is `None` where they may not be read:
/// then the version has to do where it says something, else the names.
pub(super) fn borne_out(provider: Provider, version: &str, nodes: Option<&[Value]>) -> bool {
    let built = |mark: &str| version.split_once('+').is_some_and(|(_, build)| build.starts_with(mark));
    let by_version = match provider {
        Provider::Opdev => return built("opdev"),
        Provider::K3d | Provider::K3s => built("k3s"),
        Provider::Kind
        | Provider::Minikube
        | Provider::DockerDesktop
        | Provider::RancherDesktop
        | Provider::Colima => true,
    };
    let Some(nodes) = nodes else { return by_version };
    by_version && !nodes.is_empty() && nodes.iter().all(|node| is_marked(provider, node))
}

fn is_marked(provider: Provider, node: &Value) -> bool {
    let text = |path: &str| node.pointer(path).and_then(Value::as_str).unwrap_or_default();
    let (name, id) = (text("/metadata/name"), text("/spec/providerID"));
    match provider {
        Provider::Opdev => id.starts_with("opdev://"),
        Provider::Kind => id.starts_with("kind://"),
        Provider::K3d => name.starts_with("k3d-") && id.starts_with("k3s://k3d-"),
        Provider::Minikube => node.pointer("/metadata/labels/minikube.k8s.io~1name").is_some(),
        Provider::DockerDesktop => name == "docker-desktop" || name.starts_with("desktop-"),
        // Its node is the virtual machine, or on Windows the machine itself; either way k3s runs it.
        Provider::RancherDesktop => name == "lima-rancher-desktop" || id.starts_with("k3s://"),
        Provider::Colima => name.starts_with("colima") || name.starts_with("lima-colima"),
        Provider::K3s => id.starts_with("k3s://"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn node(name: &str, id: &str) -> Value {
        json!({"metadata": {"name": name, "labels": {"minikube.k8s.io/name": "m"}}, "spec": {"providerID": id}})
    }

    #[test]
    fn names_as_the_tools_write_them() {
        for local in [
            "opdev",
            "opdev-shop",
            "kind-dev",
            "k3d-a",
            "minikube",
            "docker-desktop",
            "rancher-desktop",
            "colima-x",
            "k3s",
        ] {
            assert!(named(local, local, &[], false).is_some(), "{local}");
        }
        for remote in ["prod", "localhost", "admin@127.0.0.1", "kindly-prod", "kind-", "default", ""] {
            assert!(named(remote, remote, &[], false).is_none(), "{remote}");
        }
        assert_eq!(named("renamed", "kind-dev", &[], false), Some(Provider::Kind));
        assert_eq!(
            named("dev", "dev", &["minikube.sigs.k8s.io".to_owned()], false),
            Some(Provider::Minikube)
        );
        assert_eq!(named("default", "default", &[], true), Some(Provider::K3s));
    }

    #[test]
    fn the_server_has_to_bear_the_names_out() {
        let kind = [node("dev-control-plane", "kind://docker/dev/dev-control-plane")];
        let cloud = [node("ip-10-0-0-1", "aws:///eu-west-1a/i-0abc")];
        let k3d = [node("k3d-a-server-0", "k3s://k3d-a-server-0")];
        assert!(borne_out(Provider::Kind, "v1.34.0", Some(&kind)));
        assert!(!borne_out(Provider::Kind, "v1.34.0", Some(&cloud)), "a cloud's cluster with a kind name");
        assert!(!borne_out(Provider::Kind, "v1.34.0", Some(&[])));
        assert!(borne_out(Provider::Kind, "v1.34.0", None), "nodes may not be read");
        assert!(borne_out(Provider::K3d, "v1.34.1+k3s1", Some(&k3d)));
        assert!(!borne_out(Provider::K3d, "v1.34.1", None), "no k3s at all");
        assert!(borne_out(Provider::Opdev, "v1.36.0+opdev-0.1.0", None));
        assert!(!borne_out(Provider::Opdev, "v1.36.0", Some(&kind)));
        assert!(borne_out(Provider::DockerDesktop, "v1.34.0", Some(&[node("docker-desktop", "")])));
        assert!(!borne_out(Provider::DockerDesktop, "v1.34.0", Some(&cloud)));
    }
}
