//! The built-in resources, from the facts, with the habits of each kind that no schema tells.

use crate::resource::{Habits, Known, Resource, Subresource, resource_id};
use opdev_object::facts::{ResourceFact, facts};

/// Kinds that count `metadata.generation`.
const GENERATION: [&str; 26] = [
    "pods",
    "podtemplates",
    "replicationcontrollers",
    "apps/deployments",
    "apps/replicasets",
    "apps/statefulsets",
    "apps/daemonsets",
    "batch/jobs",
    "batch/cronjobs",
    "networking.k8s.io/ingresses",
    "networking.k8s.io/networkpolicies",
    "networking.k8s.io/ingressclasses",
    "policy/poddisruptionbudgets",
    "discovery.k8s.io/endpointslices",
    "apiextensions.k8s.io/customresourcedefinitions",
    "admissionregistration.k8s.io/validatingwebhookconfigurations",
    "admissionregistration.k8s.io/mutatingwebhookconfigurations",
    "admissionregistration.k8s.io/validatingadmissionpolicies",
    "admissionregistration.k8s.io/validatingadmissionpolicybindings",
    "admissionregistration.k8s.io/mutatingadmissionpolicies",
    "admissionregistration.k8s.io/mutatingadmissionpolicybindings",
    "flowcontrol.apiserver.k8s.io/flowschemas",
    "flowcontrol.apiserver.k8s.io/prioritylevelconfigurations",
    "scheduling.k8s.io/priorityclasses",
    "resource.k8s.io/resourceslices",
    "resource.k8s.io/deviceclasses",
];
/// Kinds whose PUT needs a resourceVersion.
const CONDITIONAL: [&str; 14] = [
    "coordination.k8s.io/leases",
    "apiextensions.k8s.io/customresourcedefinitions",
    "policy/poddisruptionbudgets",
    "admissionregistration.k8s.io/validatingwebhookconfigurations",
    "admissionregistration.k8s.io/mutatingwebhookconfigurations",
    "admissionregistration.k8s.io/validatingadmissionpolicies",
    "admissionregistration.k8s.io/validatingadmissionpolicybindings",
    "admissionregistration.k8s.io/mutatingadmissionpolicies",
    "admissionregistration.k8s.io/mutatingadmissionpolicybindings",
    "apiregistration.k8s.io/apiservices",
    "node.k8s.io/runtimeclasses",
    "storage.k8s.io/csidrivers",
    "storage.k8s.io/csinodes",
    "storage.k8s.io/volumeattachments",
];
/// Kinds that a PUT creates.
const CREATED_BY_PUT: [&str; 10] = [
    "services",
    "endpoints",
    "events",
    "limitranges",
    "coordination.k8s.io/leases",
    "rbac.authorization.k8s.io/roles",
    "rbac.authorization.k8s.io/rolebindings",
    "rbac.authorization.k8s.io/clusterroles",
    "rbac.authorization.k8s.io/clusterrolebindings",
    "events.k8s.io/events",
];
/// Kinds whose delete answers with the object.
const RETURNED: [&str; 9] = [
    "pods",
    "services",
    "serviceaccounts",
    "persistentvolumes",
    "persistentvolumeclaims",
    "podtemplates",
    "resourcequotas",
    "storage.k8s.io/storageclasses",
    "storage.k8s.io/csidrivers",
];
const ORPHANING: [&str; 2] = ["replicationcontrollers", "batch/jobs"];

/// All built-in resources.
pub(crate) fn resources() -> Vec<Resource> {
    facts().resources().iter().map(resource).collect()
}

fn resource(fact: &ResourceFact) -> Resource {
    let id = resource_id(&fact.group, &fact.resource);
    let (table, storage) = match id.as_str() {
        // One store, two shapes.
        "events.k8s.io/events" => ("events", "v1".to_owned()),
        "autoscaling/horizontalpodautoscalers" => (id.as_str(), "autoscaling/v2".to_owned()),
        other => (other, fact.gvk().api_version()),
    };
    let has = |list: &[&str]| list.contains(&id.as_str());
    Resource {
        group: fact.group.clone(),
        version: fact.version.clone(),
        plural: fact.resource.clone(),
        singular: fact.singular.clone(),
        kind: fact.kind.clone(),
        list_kind: format!("{}List", fact.kind),
        namespaced: fact.namespaced,
        verbs: fact.verbs.clone(),
        short_names: fact.short_names.clone(),
        categories: fact.categories.clone(),
        subresources: fact.subresources.iter().map(subresource).collect(),
        table: table.into(),
        storage_api_version: storage,
        habits: Habits {
            unconditional_update: !has(&CONDITIONAL),
            create_on_update: has(&CREATED_BY_PUT),
            generation: has(&GENERATION),
            returns_deleted: has(&RETURNED),
            orphans_by_default: has(&ORPHANING),
        },
        custom: None,
        known: Known::default(),
    }
}

fn subresource(fact: &opdev_object::facts::SubresourceFact) -> Subresource {
    let some = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
    Subresource {
        name: fact.name.clone(),
        kind: fact.kind.clone(),
        group: some(&fact.group),
        version: some(&fact.version),
        verbs: fact.verbs.clone(),
    }
}
