//! Bindings of another deployment of the same operator: those of the cluster have the same names in both, and
//! applying this one would take the roles from the other.

use super::input::{Say, gvk, shown};
use super::kinds::Kinds;
use anyhow::{Result, bail};
use http::Method;
use kube::Client;
use opdev_client::{is_not_found, object_path, send};
use opdev_object::meta;
use serde_json::Value;
use std::collections::BTreeSet;

const JSON: &str = "application/json";

/// Refuses where a ServiceAccount of another namespace would lose a role. `namespace` is that of objects that
/// name none.
pub(super) async fn keep(
    client: &Client,
    kinds: &mut Kinds,
    namespace: &str,
    objects: &[&Value],
    say: Say<'_>,
) -> Result<()> {
    let mut lost = Vec::new();
    for object in objects.iter().filter(|object| object["subjects"].is_array()) {
        let Some((resource, namespaced)) = kinds.find(client, &gvk(object)).await? else { continue };
        let within = namespaced.then(|| meta::namespace(object).unwrap_or(namespace));
        let path = object_path(&resource, within, meta::name(object).unwrap_or_default());
        let live = match send(client, Method::GET, &path, JSON, None).await {
            Ok((live, _)) => live,
            Err(error) if is_not_found(&error) => continue,
            Err(error) => return Err(error),
        };
        let own: BTreeSet<&str> = accounts(object).map(|(namespace, _)| namespace).collect();
        for (namespace, name) in accounts(&live).filter(|(namespace, _)| !own.contains(namespace)) {
            let path = format!("/api/v1/namespaces/{namespace}/serviceaccounts/{name}");
            match send(client, Method::GET, &path, JSON, None).await {
                Ok(_) => lost.push(format!("  {} is for serviceaccount {namespace}/{name}", shown(object))),
                Err(error) if is_not_found(&error) => {}
                Err(_) => say(&format!(
                    "warning: {} is taken from serviceaccount {namespace}/{name}, of which it is not known whether it is there",
                    shown(object)
                )),
            }
        }
    }
    if lost.is_empty() {
        return Ok(());
    }
    bail!(
        "nothing was applied, for another deployment would lose its roles:\n{}\n  to do: give this one other names with namePrefix \
         in config/default; if it shall take the place of the other, delete that ServiceAccount, or its namespace, first",
        lost.join("\n")
    )
}

/// Namespace and name of the ServiceAccounts that a binding is for.
fn accounts(binding: &Value) -> impl Iterator<Item = (&str, &str)> {
    let subjects = binding["subjects"].as_array().into_iter().flatten();
    subjects.filter_map(|subject| {
        let of = |field: &str| subject[field].as_str();
        (of("kind")? == "ServiceAccount").then_some((of("namespace")?, of("name")?))
    })
}
