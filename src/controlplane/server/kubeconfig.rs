//! The text of a kubeconfig with everything embedded. Never writes a file: the caller decides where it goes
//! and with which mode, because the text is a credential.

use super::certificates::ClientCertificate;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use std::net::SocketAddr;

/// The kubeconfig of the admin of the plane that listens at `address`. Its context and its cluster have the
/// plane's name, and its user begins with it: files of several planes go together in one `KUBECONFIG`.
pub(crate) fn kubeconfig(
    name: &str,
    address: SocketAddr,
    authority: &str,
    client: &ClientCertificate,
    token: &str,
) -> String {
    let (authority, certificate, key) =
        (STANDARD.encode(authority), STANDARD.encode(&client.certificate), STANDARD.encode(&client.key));
    format!(
        "apiVersion: v1
kind: Config
clusters:
- name: {name}
  cluster:
    server: https://{address}
    certificate-authority-data: {authority}
contexts:
- name: {name}
  context:
    cluster: {name}
    namespace: default
    user: {name}-admin
current-context: {name}
users:
- name: {name}-admin
  user:
    client-certificate-data: {certificate}
    client-key-data: {key}
    token: {token}
"
    )
}

/// The name of a plane in kubeconfigs: `opdev-` and the project's, as kind and k3d begin theirs.
pub(crate) fn context_name(project: Option<&str>) -> String {
    let keep = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.') { c } else { '-' };
    let project: String = project.unwrap_or_default().chars().map(keep).collect();
    match project.trim_matches(['-', '.']) {
        "" => "opdev".to_owned(),
        project => format!("opdev-{project}"),
    }
}

/// A kubeconfig with a token as its only credential.
pub(crate) fn kubeconfig_of_token(
    name: &str,
    address: SocketAddr,
    authority: &str,
    token: &str,
    namespace: &str,
    auth_provider: Option<&str>,
) -> String {
    let authority = STANDARD.encode(authority);
    // A name such as `123` is a number unless it is quoted; a text of JSON is one of YAML.
    let (namespace, token) = (Value::from(namespace), Value::from(token));
    let provider =
        auth_provider.map(|name| format!("    auth-provider:\n      name: {name}\n")).unwrap_or_default();
    format!(
        "apiVersion: v1
kind: Config
clusters:
- name: {name}
  cluster:
    server: https://{address}
    certificate-authority-data: {authority}
contexts:
- name: {name}
  context:
    cluster: {name}
    namespace: {namespace}
    user: operator
current-context: {name}
users:
- name: operator
  user:
    token: {token}
{provider}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_context_names_the_project() {
        assert_eq!(context_name(Some("memcached-operator")), "opdev-memcached-operator");
        assert_eq!(context_name(Some("my operator: v2")), "opdev-my-operator--v2", "no quotes are needed");
        assert_eq!(context_name(Some("ü")), "opdev");
        assert_eq!(context_name(None), "opdev");
    }

    #[test]
    fn a_namespace_of_digits_stays_a_text() {
        let address = SocketAddr::from(([127, 0, 0, 1], 6443));
        for namespace in ["2024", "true", "1e3", "default"] {
            let text = kubeconfig_of_token("opdev", address, "", "t", namespace, Some("p"));
            let read = opdev_object::yaml::from_str(&text).unwrap();
            assert_eq!(read["contexts"][0]["context"]["namespace"], namespace);
            let user = serde_json::json!({"token": "t", "auth-provider": {"name": "p"}});
            assert_eq!(read["users"][0]["user"], user);
        }
    }
}
