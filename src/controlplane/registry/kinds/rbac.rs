//! Roles and their bindings.

use crate::strategy::Strategy;
use opdev_apimachinery::resource::{MetadataChecks, MetadataOrder, ResourceRules, names};
use opdev_apis::defaults::{each, put, sub};
use opdev_apis::table::{Printer, cluster};
use opdev_validation::rbac;
use serde_json::Value;

const GROUP: &str = "rbac.authorization.k8s.io";

const ROLE: Strategy = Strategy {
    rules: ResourceRules {
        create_on_update: true,
        validate_name: names::path_segment,
        metadata_checks: MetadataChecks { order: MetadataOrder::WholeFirst, ..MetadataChecks::TWICE },
        ..ResourceRules::COMMON
    },
    // The list is written even where there are no rules.
    set_defaults: |_, object| put(object, "rules", Value::Null),
    check_escalation: |registry, ctx, resource, namespace, object, current| {
        registry.check_escalation(ctx, resource, namespace, object, current)
    },
    ..Strategy::COMMON
};

const BINDING: Strategy = Strategy {
    printer: Some(Printer::new(cluster::BINDING, cluster::binding)),
    set_defaults: |_, object| binding(object),
    validate_change: rbac::binding_update,
    ..ROLE
};

pub(super) static ALL: &[Strategy] = &[
    Strategy {
        id: "rbac.authorization.k8s.io/roles",
        validate: |_, object, _, causes| rbac::role(object, true, causes),
        ..ROLE
    },
    Strategy {
        id: "rbac.authorization.k8s.io/clusterroles",
        validate: |_, object, _, causes| rbac::role(object, false, causes),
        ..ROLE
    },
    Strategy {
        id: "rbac.authorization.k8s.io/rolebindings",
        validate: |_, object, _, causes| rbac::binding(object, true, causes),
        ..BINDING
    },
    Strategy {
        id: "rbac.authorization.k8s.io/clusterrolebindings",
        validate: |_, object, _, causes| rbac::binding(object, false, causes),
        ..BINDING
    },
];

fn binding(object: &mut Value) {
    let role = sub(object, "roleRef");
    if role["apiGroup"].as_str().unwrap_or_default().is_empty() {
        role["apiGroup"] = Value::from(GROUP);
    }
    for subject in each(object, "subjects") {
        let named = !subject["apiGroup"].as_str().unwrap_or_default().is_empty();
        if !named && matches!(subject["kind"].as_str(), Some("User" | "Group")) {
            subject["apiGroup"] = Value::from(GROUP);
        }
    }
}
