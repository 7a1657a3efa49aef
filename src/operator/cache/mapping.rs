//! The object that a dependent leads to: by its controller owner reference or by the operator's annotations.
//! Both ways are tried for every object. Pure.

use opdev_event::Relation;
use opdev_object::meta::{self, ObjectKey};
use serde_json::Value;

/// Names the object a dependent belongs to, as `namespace/name`.
pub const PRIMARY_RESOURCE: &str = "operator-sdk/primary-resource";
/// Names the kind of that object, as `Kind.group`.
pub const PRIMARY_RESOURCE_TYPE: &str = "operator-sdk/primary-resource-type";

/// The label of children that no owner reference can lead to their owner: its uid.
pub const OWNER_LABEL: &str = "opdev.dev/owner-uid";

/// A reconciled kind, as far as dependents need to know it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Primary {
    pub group: String,
    pub kind: String,
    pub namespaced: bool,
}

/// The objects that `dependent` leads to.
pub fn primaries_of(dependent: &Value, kinds: &[Primary]) -> Vec<(ObjectKey, Relation)> {
    by_owner(dependent, kinds).into_iter().chain(by_annotation(dependent, kinds)).collect()
}

fn by_owner(dependent: &Value, kinds: &[Primary]) -> Option<(ObjectKey, Relation)> {
    let owner = meta::controller(dependent)?;
    let group = owner.api_version.split_once('/').map_or("", |(group, _)| group);
    let primary = kinds.iter().find(|primary| primary.group == group && primary.kind == owner.kind)?;
    let namespace = meta::namespace(dependent).filter(|_| primary.namespaced);
    Some((key(primary, namespace, &owner.name), Relation::Owner))
}

fn by_annotation(dependent: &Value, kinds: &[Primary]) -> Option<(ObjectKey, Relation)> {
    let wanted = meta::annotation(dependent, PRIMARY_RESOURCE_TYPE)?;
    let (namespace, name) = meta::annotation(dependent, PRIMARY_RESOURCE)?.split_once('/')?;
    let primary = kinds.iter().find(|primary| kind_group(primary) == wanted)?;
    let namespace = Some(namespace).filter(|ns| primary.namespaced && !ns.is_empty());
    Some((key(primary, namespace, name), Relation::Annotation))
}

fn kind_group(primary: &Primary) -> String {
    if primary.group.is_empty() {
        primary.kind.clone()
    } else {
        format!("{}.{}", primary.kind, primary.group)
    }
}

fn key(primary: &Primary, namespace: Option<&str>, name: &str) -> ObjectKey {
    ObjectKey {
        group: primary.group.clone(),
        kind: primary.kind.clone(),
        namespace: namespace.map(str::to_owned),
        name: name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn kinds() -> Vec<Primary> {
        vec![
            Primary { group: "cache.my.domain".into(), kind: "Memcached".into(), namespaced: true },
            Primary { group: "g".into(), kind: "Fleet".into(), namespaced: false },
        ]
    }

    fn found(object: &Value) -> Vec<String> {
        primaries_of(object, &kinds()).into_iter().map(|(key, by)| format!("{key} {by:?}")).collect()
    }

    fn owned(api_version: &str, kind: &str, controller: bool) -> Value {
        json!({"metadata": {"namespace": "default", "name": "x", "ownerReferences": [
            {"apiVersion": api_version, "kind": kind, "name": "m", "uid": "u", "controller": controller}]}})
    }

    #[test]
    fn the_controller_owner_leads_to_its_object_whatever_the_version() {
        assert_eq!(
            found(&owned("cache.my.domain/v1beta7", "Memcached", true)),
            ["Memcached default/m Owner"]
        );
        assert!(found(&owned("cache.my.domain/v1", "Memcached", false)).is_empty());
        assert!(found(&owned("other/v1", "Memcached", true)).is_empty());
        assert_eq!(found(&owned("g/v1", "Fleet", true)), ["Fleet m Owner"]);
    }

    #[test]
    fn annotations_lead_to_the_owner_kind_in_any_namespace() {
        let object = |resource: &str, kind: &str| {
            json!({"metadata": {"name": "role", "annotations": {
                "operator-sdk/primary-resource": resource, "operator-sdk/primary-resource-type": kind}}})
        };
        assert_eq!(found(&object("ns/m", "Memcached.cache.my.domain")), ["Memcached ns/m Annotation"]);
        assert_eq!(found(&object("/f", "Fleet.g")), ["Fleet f Annotation"]);
        assert!(found(&object("ns/m", "ClusterRole.rbac")).is_empty());
        assert!(found(&object("m", "Memcached.cache.my.domain")).is_empty());
    }
}
