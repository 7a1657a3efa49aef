//! Fields that the operator adds to an object of a chart: the namespace, the way back to its custom resource,
//! the chart's label and Helm's ownership. The stored manifest stays as rendered. Pure.

use opdev_cache::mapping::{PRIMARY_RESOURCE, PRIMARY_RESOURCE_TYPE};
use opdev_object::meta::{self, Gvk};
use serde_json::{Map, Value, json};

/// Names the chart on every object; dependents are watched by it.
pub const CHART_LABEL: &str = "helm.sdk.operatorframework.io/chart";
const MANAGED_BY: &str = "app.kubernetes.io/managed-by";
const RELEASE_NAME: &str = "meta.helm.sh/release-name";
const RELEASE_NAMESPACE: &str = "meta.helm.sh/release-namespace";
const RESOURCE_POLICY: &str = "helm.sh/resource-policy";

/// The custom resource a release belongs to.
#[derive(Clone, Debug)]
pub struct Owner {
    pub gvk: Gvk,
    pub namespace: Option<String>,
    pub name: String,
    pub uid: String,
    /// True if what it owns also names its uid in a label: a program's.
    pub marks: bool,
}

/// A release, as its objects name it.
#[derive(Clone, Copy, Debug)]
pub struct ReleaseNames<'a> {
    pub name: &'a str,
    pub namespace: &'a str,
    pub chart: &'a str,
}

impl Owner {
    /// The controller reference to this owner.
    pub fn reference(&self) -> Value {
        json!({
            "apiVersion": self.gvk.api_version(),
            "kind": self.gvk.kind,
            "name": self.name,
            "uid": self.uid,
            "controller": true,
            "blockOwnerDeletion": true,
        })
    }
}

/// Completes an object of a chart. `namespaced` is the scope of its kind.
pub(crate) fn inject(object: &mut Value, owner: &Owner, release: ReleaseNames<'_>, namespaced: bool) {
    mark(object, owner, release, namespaced);
    put(object, "labels", MANAGED_BY, "Helm");
    put(object, "annotations", RELEASE_NAME, release.name);
    put(object, "annotations", RELEASE_NAMESPACE, release.namespace);
}

/// The marks that the operator writes on every object, also on those that no release owns.
pub(crate) fn mark(object: &mut Value, owner: &Owner, release: ReleaseNames<'_>, namespaced: bool) {
    lead_back(object, owner, release, namespaced);
    put(object, "labels", CHART_LABEL, release.chart);
}

/// The namespace, and the way back to the custom resource.
pub(crate) fn lead_back(object: &mut Value, owner: &Owner, release: ReleaseNames<'_>, namespaced: bool) {
    if namespaced {
        if meta::namespace(object).is_none() {
            set(object, "namespace", Value::from(release.namespace));
        }
    } else if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("namespace");
    }
    let same_namespace = owner.namespace.as_deref() == meta::namespace(object);
    if (owner.namespace.is_none() || (namespaced && same_namespace)) && !is_kept(object) {
        set(object, "ownerReferences", json!([owner.reference()]));
    } else {
        let primary = format!("{}/{}", owner.namespace.as_deref().unwrap_or_default(), owner.name);
        put(object, "annotations", PRIMARY_RESOURCE, &primary);
        put(object, "annotations", PRIMARY_RESOURCE_TYPE, &owner.gvk.kind_group());
    }
}

/// Leads an object to its owner by annotations, and by a label that holds the owner's uid, where no owner
/// reference can.
pub fn put_owner_note(object: &mut Value, owner: &Owner, label: &str) {
    let primary = format!("{}/{}", owner.namespace.as_deref().unwrap_or_default(), owner.name);
    put(object, "annotations", PRIMARY_RESOURCE, &primary);
    put(object, "annotations", PRIMARY_RESOURCE_TYPE, &owner.gvk.kind_group());
    put(object, "labels", label, &owner.uid);
}

/// Returns true if an object stays when its release goes.
pub fn is_kept(object: &Value) -> bool {
    meta::annotation(object, RESOURCE_POLICY).is_some_and(|policy| policy.trim().eq_ignore_ascii_case("keep"))
}

fn metadata(object: &mut Value) -> Option<&mut Map<String, Value>> {
    let fields = object.as_object_mut()?;
    let metadata = fields.entry("metadata").or_insert_with(|| json!({}));
    if !metadata.is_object() {
        *metadata = json!({});
    }
    metadata.as_object_mut()
}

fn set(object: &mut Value, field: &str, value: Value) {
    if let Some(metadata) = metadata(object) {
        metadata.insert(field.to_owned(), value);
    }
}

fn put(object: &mut Value, field: &str, key: &str, value: &str) {
    let Some(metadata) = metadata(object) else { return };
    let map = metadata.entry(field).or_insert_with(|| json!({}));
    if !map.is_object() {
        *map = json!({});
    }
    map[key] = Value::from(value);
}

/// Why a live object may not be taken into a release, in Helm's words; `None` where it may.
pub(crate) fn ownership_conflict(live: &Value, release: ReleaseNames<'_>) -> Option<String> {
    let wrong = |what: &str, found: Option<&str>, key: &str, wanted: &str| match found {
        None => Some(format!("{what} validation error: missing key {key:?}: must be set to {wanted:?}")),
        Some(found) if found != wanted => Some(format!(
            "{what} validation error: key {key:?} must equal {wanted:?}: current value is {found:?}"
        )),
        Some(_) => None,
    };
    let problems: Vec<String> = [
        wrong("label", meta::label(live, MANAGED_BY), MANAGED_BY, "Helm"),
        wrong("annotation", meta::annotation(live, RELEASE_NAME), RELEASE_NAME, release.name),
        wrong("annotation", meta::annotation(live, RELEASE_NAMESPACE), RELEASE_NAMESPACE, release.namespace),
    ]
    .into_iter()
    .flatten()
    .collect();
    if problems.is_empty() {
        return None;
    }
    let kind = live.get("kind").and_then(Value::as_str).unwrap_or_default();
    let name = meta::name(live).unwrap_or_default();
    let namespace = meta::namespace(live).unwrap_or_default();
    Some(format!(
        "{kind} {name:?} in namespace {namespace:?} exists and cannot be imported into the current release: \
         invalid ownership metadata; {}",
        problems.join("; ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(namespace: Option<&str>) -> Owner {
        Owner {
            gvk: Gvk::new("cache.my.domain", "v1alpha1", "Memcached"),
            namespace: namespace.map(str::to_owned),
            name: "m".into(),
            uid: "u-1".into(),
            marks: false,
        }
    }

    const RELEASE: ReleaseNames<'_> = ReleaseNames { name: "m", namespace: "default", chart: "memcached" };

    fn injected(mut object: Value, owner: &Owner, namespaced: bool) -> Value {
        inject(&mut object, owner, RELEASE, namespaced);
        object
    }

    fn owned(object: &Value) -> bool {
        meta::controller(object).is_some()
    }

    #[test]
    fn the_way_back_is_a_reference_where_that_can_be() {
        let plain = json!({"kind": "Service", "metadata": {"name": "s"}});
        let same = injected(plain.clone(), &owner(Some("default")), true);
        assert_eq!(meta::namespace(&same), Some("default"));
        assert!(owned(&same) && meta::annotation(&same, PRIMARY_RESOURCE).is_none());
        assert_eq!(meta::label(&same, CHART_LABEL), Some("memcached"));
        let reference = meta::controller(&same).unwrap();
        assert!(reference.block_owner_deletion && reference.uid == "u-1");

        let elsewhere = json!({"kind": "Service", "metadata": {"name": "s", "namespace": "other"}});
        let cluster = json!({"kind": "ClusterRole", "metadata": {"name": "s", "namespace": "x"}});
        for object in [
            injected(elsewhere, &owner(Some("default")), true),
            injected(cluster.clone(), &owner(Some("default")), false),
        ] {
            assert!(!owned(&object));
            assert_eq!(meta::annotation(&object, PRIMARY_RESOURCE), Some("default/m"));
            assert_eq!(meta::annotation(&object, PRIMARY_RESOURCE_TYPE), Some("Memcached.cache.my.domain"));
        }
        assert!(owned(&injected(cluster, &owner(None), false)), "a cluster-scoped owner may own everything");
        let kept = json!({"kind": "Service", "metadata": {"name": "s", "annotations": {
            "helm.sh/resource-policy": " Keep "}}});
        assert!(!owned(&injected(kept, &owner(Some("default")), true)));
    }

    #[test]
    fn references_of_the_chart_are_replaced() {
        let object = json!({"metadata": {"name": "s", "ownerReferences": [{"name": "x"}], "labels": null}});
        let object = injected(object, &owner(Some("default")), true);
        assert_eq!(meta::owner_references(&object).len(), 1);
        assert_eq!(meta::owner_references(&object)[0].name, "m");
    }

    #[test]
    fn foreign_objects_are_refused_in_helms_words() {
        let live = json!({"kind": "ServiceAccount", "metadata": {"name": "a", "namespace": "default", "labels": {
            "app.kubernetes.io/managed-by": "kustomize"}, "annotations": {
            "meta.helm.sh/release-name": "m"}}});
        assert_eq!(
            ownership_conflict(&live, RELEASE).unwrap(),
            "ServiceAccount \"a\" in namespace \"default\" exists and cannot be imported into the current release: \
             invalid ownership metadata; label validation error: key \"app.kubernetes.io/managed-by\" must equal \
             \"Helm\": current value is \"kustomize\"; annotation validation error: missing key \
             \"meta.helm.sh/release-namespace\": must be set to \"default\""
        );
        let ours = injected(live, &owner(Some("default")), true);
        assert_eq!(ownership_conflict(&ours, RELEASE), None);
    }
}
