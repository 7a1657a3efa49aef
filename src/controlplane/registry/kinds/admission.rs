//! Kinds that configure admission: webhooks, and policies with their bindings.

use crate::strategy::Strategy;
use opdev_apimachinery::resource::{ResourceRules, names};
use opdev_apis::defaults::{each, put, sub};
use opdev_apis::table::{Printer, cluster};
use opdev_validation::warnings;
use opdev_validation::{policies, webhooks};
use serde_json::{Map, Value};

/// Webhooks and policies: a change takes effect at the moment it is written.
const CONFIGURATION: Strategy = Strategy {
    rules: ResourceRules {
        generation: true,
        unconditional_update: false,
        any_finalizer: true,
        validate_name: names::admission,
        ..ResourceRules::COMMON
    },
    warn: warnings::kept_name,
    after_write: |registry, _| registry.configure_admission(),
    after_removal: |registry, _| registry.configure_admission(),
    ..Strategy::COMMON
};

const WEBHOOKS: Strategy = Strategy {
    printer: Some(Printer::new(cluster::WEBHOOKS, cluster::webhooks)),
    validate: |_, object, _, causes| webhooks::configuration(object, causes),
    warn: warnings::webhooks,
    ..CONFIGURATION
};

const POLICY: Strategy = Strategy {
    rules: ResourceRules { exempt_from_admission: true, ..CONFIGURATION.rules },
    set_defaults: |_, object| {
        put(sub(object, "spec"), "failurePolicy", "Fail");
        constraints(object, "matchConstraints");
    },
    ..CONFIGURATION
};

const BINDING: Strategy =
    Strategy { set_defaults: |_, object| constraints(object, "matchResources"), ..POLICY };

pub(super) static ALL: &[Strategy] = &[
    Strategy {
        id: "admissionregistration.k8s.io/validatingwebhookconfigurations",
        set_defaults: |_, object| webhook_defaults(object, false),
        ..WEBHOOKS
    },
    Strategy {
        id: "admissionregistration.k8s.io/mutatingwebhookconfigurations",
        set_defaults: |_, object| webhook_defaults(object, true),
        ..WEBHOOKS
    },
    Strategy {
        id: "admissionregistration.k8s.io/validatingadmissionpolicies",
        validate: |_, object, _, causes| policies::validating(object, causes),
        ..POLICY
    },
    Strategy {
        id: "admissionregistration.k8s.io/mutatingadmissionpolicies",
        validate: |_, object, _, causes| policies::mutating(object, causes),
        ..POLICY
    },
    Strategy {
        id: "admissionregistration.k8s.io/validatingadmissionpolicybindings",
        validate: |_, object, _, causes| policies::validating_binding(object, causes),
        ..BINDING
    },
    Strategy {
        id: "admissionregistration.k8s.io/mutatingadmissionpolicybindings",
        validate: |_, object, _, causes| policies::mutating_binding(object, causes),
        ..BINDING
    },
];

fn constraints(object: &mut Value, field: &str) {
    let spec = sub(object, "spec");
    let Some(constraints) = spec.get_mut(field).filter(|found| found.is_object()) else { return };
    put(constraints, "matchPolicy", "Equivalent");
    put(constraints, "namespaceSelector", Map::new());
    put(constraints, "objectSelector", Map::new());
    for field in ["resourceRules", "excludeResourceRules"] {
        for rule in each(constraints, field) {
            put(rule, "scope", "*");
        }
    }
}

fn webhook_defaults(object: &mut Value, mutating: bool) {
    for hook in each(object, "webhooks") {
        put(hook, "failurePolicy", "Fail");
        put(hook, "matchPolicy", "Equivalent");
        put(hook, "namespaceSelector", Map::new());
        put(hook, "objectSelector", Map::new());
        put(hook, "timeoutSeconds", 10);
        if mutating {
            put(hook, "reinvocationPolicy", "Never");
        }
        if hook["clientConfig"]["service"].is_object() {
            put(&mut hook["clientConfig"]["service"], "port", 443);
        }
        for rule in each(hook, "rules") {
            put(rule, "scope", "*");
        }
    }
}
