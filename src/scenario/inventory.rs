//! Everything that is on a control plane, by uid: what is there after a scenario and was not before it was
//! left behind.

use anyhow::Result;
use kube::api::{Api, DynamicObject, ListParams};
use kube::discovery::{Discovery, Scope, verbs};
use kube::{Client, ResourceExt as _};
use opdev_client::all_kinds;
use opdev_object::meta::{Gvk, ObjectRef};
use opdev_project::program::webhooks::LABEL;
use std::collections::BTreeMap;

/// The annotation of objects that stay when their release goes.
const KEEP: &str = "helm.sh/resource-policy";
/// Hooks belong to no release: Helm leaves them behind unless their delete policy says otherwise.
const HOOK: &str = "helm.sh/hook";

/// Kinds that stay behind by Kubernetes' own rules, or say what has happened.
pub(crate) fn stays(group: &str, kind: &str) -> bool {
    matches!(
        (group, kind),
        ("" | "events.k8s.io", "Event")
            | ("", "PersistentVolume" | "PersistentVolumeClaim")
            | ("coordination.k8s.io", "Lease")
            | ("apiextensions.k8s.io", "CustomResourceDefinition")
    )
}

/// Returns true if the controllers of the cluster make it in every namespace, at a time of their own.
fn is_of_every_namespace(group: &str, kind: &str, name: &str) -> bool {
    matches!((group, kind, name), ("", "ConfigMap", "kube-root-ca.crt") | ("", "ServiceAccount", "default"))
}

/// Every object, of one namespace or of all and the cluster, but those that may stay behind or that every
/// namespace has.
///
/// # Errors
/// Where the control plane does not answer.
pub(crate) async fn inventory(
    client: &Client,
    namespace: Option<&str>,
) -> Result<BTreeMap<String, ObjectRef>> {
    let discovery = Discovery::new(client.clone()).run_aggregated().await?;
    let kinds = discovery.groups().flat_map(all_kinds);
    let kinds = kinds.filter(|(resource, capabilities)| {
        capabilities.supports_operation(verbs::LIST)
            && capabilities.supports_operation(verbs::DELETE)
            && !stays(&resource.group, &resource.kind)
            && (namespace.is_none() || capabilities.scope == Scope::Namespaced)
    });
    let mut found = BTreeMap::new();
    for (resource, capabilities) in kinds {
        let api: Api<DynamicObject> = match namespace {
            Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
            None => Api::all_with(client.clone(), &resource),
        };
        // A kind may go while it is listed.
        let Ok(list) = api.list_metadata(&ListParams::default()).await else { continue };
        let own = |name: &str| is_of_every_namespace(&resource.group, &resource.kind, name);
        for object in list.items.into_iter().filter(|object| !may_stay(object) && !own(&object.name_any())) {
            let namespaced = capabilities.scope == Scope::Namespaced;
            let object = ObjectRef {
                gvk: Gvk::new(&resource.group, &resource.version, &resource.kind),
                namespace: object.namespace().filter(|_| namespaced),
                name: object.name_any(),
                uid: object.uid(),
            };
            found.extend(object.uid.clone().map(|uid| (uid, object)));
        }
    }
    Ok(found)
}

/// Returns true if an object may stay behind when its release goes. What opdev itself registers, so that the
/// webhooks of a program are reached, goes with the program.
pub(crate) fn may_stay(object: &impl kube::Resource) -> bool {
    if object.meta().labels.as_ref().is_some_and(|labels| labels.contains_key(LABEL)) {
        return true;
    }
    let annotations = object.meta().annotations.as_ref();
    let policy = annotations.and_then(|all| all.get(KEEP));
    policy.is_some_and(|policy| policy.trim().eq_ignore_ascii_case("keep"))
        || annotations.is_some_and(|all| all.contains_key(HOOK))
}

/// The samples that a file asks to be applied before it, by a comment `# opdev:after: FILE, FILE`; relative
/// to the file's own folder.
pub(crate) fn before(path: &str, text: &str) -> Vec<String> {
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let named = text.lines().filter_map(|line| line.strip_prefix('#')?.trim().strip_prefix("opdev:after:"));
    let files = named.flat_map(|files| files.split(',')).map(str::trim).filter(|file| !file.is_empty());
    files.map(|file| if folder.is_empty() { file.to_owned() } else { format!("{folder}/{file}") }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use kube::core::PartialObjectMeta;

    #[test]
    fn a_sample_names_those_that_come_before_it() {
        let text = "# opdev:after: b.yaml, c.yaml\nkind: X\n#opdev:after:d.yaml\n# after: e.yaml\n";
        assert_eq!(before("samples/a.yaml", text), ["samples/b.yaml", "samples/c.yaml", "samples/d.yaml"]);
        assert_eq!(before("a.yaml", text)[0], "b.yaml");
    }

    #[test]
    fn hooks_and_what_a_chart_keeps_may_stay() {
        let with = |key: &str, value: &str| {
            let mut object = PartialObjectMeta::<k8s_openapi::api::core::v1::Secret>::default();
            object.metadata.annotations = Some([(key.to_owned(), value.to_owned())].into());
            may_stay(&object)
        };
        assert!(with(KEEP, " Keep ") && with(HOOK, "post-install"));
        assert!(!with(KEEP, "delete") && !with("other", "keep"));
        let mut registered = PartialObjectMeta::<k8s_openapi::api::core::v1::Secret>::default();
        registered.metadata.labels = Some([(LABEL.to_owned(), "shop".to_owned())].into());
        assert!(may_stay(&registered), "opdev's own");
    }
}
