//! The field specs that kustomize has without being told: where labels and annotations go, and which fields
//! hold names of other objects.

use crate::config::{Config, Referrers};
use crate::fields::FieldSpec;

fn spec(path: &str, kind: &str, create: bool) -> FieldSpec {
    FieldSpec { path: path.to_owned(), kind: kind.to_owned(), create, ..FieldSpec::default() }
}

fn grouped(group: &str, kind: &str, path: &str, create: bool) -> FieldSpec {
    FieldSpec { group: group.to_owned(), ..spec(path, kind, create) }
}

fn versioned(kind: &str, path: &str, create: bool) -> FieldSpec {
    FieldSpec { version: "v1".to_owned(), ..spec(path, kind, create) }
}

/// Where the metadata of pods, and of what makes them, stands beside the object's own.
fn templates(field: &str) -> Vec<FieldSpec> {
    let path = |before: &str| format!("{before}/metadata/{field}");
    let stateful = if field == "labels" { "apps" } else { "" };
    let mut found = vec![
        spec(&format!("metadata/{field}"), "", true),
        versioned("ReplicationController", &path("spec/template"), true),
        spec(&path("spec/template"), "Deployment", true),
        spec(&path("spec/template"), "ReplicaSet", true),
        spec(&path("spec/template"), "DaemonSet", true),
        grouped(stateful, "StatefulSet", &path("spec/template"), true),
    ];
    if field == "labels" {
        found.push(grouped("apps", "StatefulSet", &path("spec/volumeClaimTemplates[]"), true));
    }
    found.extend([
        grouped("batch", "Job", &path("spec/template"), true),
        grouped("batch", "CronJob", &path("spec/jobTemplate"), true),
        grouped("batch", "CronJob", &path("spec/jobTemplate/spec/template"), true),
    ]);
    found
}

/// Selectors, and where labels go beside them.
fn common_labels() -> Vec<FieldSpec> {
    let mut found = vec![
        versioned("Service", "spec/selector", true),
        versioned("ReplicationController", "spec/selector", true),
        spec("spec/selector/matchLabels", "Deployment", true),
        spec("spec/selector/matchLabels", "ReplicaSet", true),
        spec("spec/selector/matchLabels", "DaemonSet", true),
        grouped("apps", "StatefulSet", "spec/selector/matchLabels", true),
        grouped("batch", "Job", "spec/selector/matchLabels", false),
        grouped("batch", "CronJob", "spec/jobTemplate/spec/selector/matchLabels", false),
        grouped("policy", "PodDisruptionBudget", "spec/selector/matchLabels", false),
    ];
    for kind in ["Deployment", "StatefulSet"] {
        for affinity in ["podAffinity", "podAntiAffinity"] {
            let at = format!("spec/template/spec/affinity/{affinity}");
            let preferred =
                "preferredDuringSchedulingIgnoredDuringExecution/podAffinityTerm/labelSelector/matchLabels";
            let required = "requiredDuringSchedulingIgnoredDuringExecution/labelSelector/matchLabels";
            found.push(grouped("apps", kind, &format!("{at}/{preferred}"), false));
            found.push(grouped("apps", kind, &format!("{at}/{required}"), false));
        }
        let spread = "spec/template/spec/topologySpreadConstraints/labelSelector/matchLabels";
        found.push(grouped("apps", kind, spread, false));
    }
    for place in ["spec/podSelector", "spec/ingress/from/podSelector", "spec/egress/to/podSelector"] {
        found.push(grouped("networking.k8s.io", "NetworkPolicy", &format!("{place}/matchLabels"), false));
    }
    found.extend(templates("labels"));
    found
}

/// Kinds with pods in them, and where the pod's spec stands.
const PODS: [(&str, &str); 9] = [
    ("Pod", "spec"),
    ("PodTemplate", "template/spec"),
    ("Deployment", "spec/template/spec"),
    ("ReplicaSet", "spec/template/spec"),
    ("DaemonSet", "spec/template/spec"),
    ("StatefulSet", "spec/template/spec"),
    ("Job", "spec/template/spec"),
    ("CronJob", "spec/jobTemplate/spec/template/spec"),
    ("ReplicationController", "spec/template/spec"),
];

/// Places in the pods of all kinds but those left out.
fn in_pods(without: &[&str], places: &[&str], version_of_pods: &str) -> Vec<FieldSpec> {
    let mut found = Vec::new();
    for (kind, pod) in PODS.iter().filter(|(kind, _)| !without.contains(kind)) {
        for place in places {
            let mut one = spec(&format!("{pod}/{place}"), kind, false);
            if *kind == "Pod" {
                version_of_pods.clone_into(&mut one.version);
            }
            found.push(one);
        }
    }
    found
}

fn referrers(group: &str, version: &str, kind: &str, specs: Vec<FieldSpec>) -> Referrers {
    Referrers {
        group: group.to_owned(),
        version: version.to_owned(),
        kind: kind.to_owned(),
        field_specs: specs,
    }
}

fn of_config_maps() -> Vec<FieldSpec> {
    let places = [
        "volumes/configMap/name",
        "containers/env/valueFrom/configMapKeyRef/name",
        "initContainers/env/valueFrom/configMapKeyRef/name",
        "containers/envFrom/configMapRef/name",
        "initContainers/envFrom/configMapRef/name",
        "volumes/projected/sources/configMap/name",
    ];
    let mut found = in_pods(&["ReplicationController"], &places, "v1");
    found.extend([
        spec("spec/configSource/configMap", "Node", false),
        spec("rules/resourceNames", "Role", false),
        spec("rules/resourceNames", "ClusterRole", false),
        spec("metadata/annotations/nginx.ingress.kubernetes.io\\/fastcgi-params-configmap", "Ingress", false),
    ]);
    found
}

fn of_secrets() -> Vec<FieldSpec> {
    let places = [
        "volumes/secret/secretName",
        "containers/env/valueFrom/secretKeyRef/name",
        "initContainers/env/valueFrom/secretKeyRef/name",
        "containers/envFrom/secretRef/name",
        "initContainers/envFrom/secretRef/name",
        "imagePullSecrets/name",
        "volumes/projected/sources/secret/name",
    ];
    let mut found = in_pods(&["ReplicationController"], &places, "v1");
    found.push(spec("spec/tls/secretName", "Ingress", false));
    for annotation in ["ingress.kubernetes.io\\/auth-secret", "nginx.ingress.kubernetes.io\\/auth-secret"] {
        found.push(spec(&format!("metadata/annotations/{annotation}"), "Ingress", false));
    }
    found.extend([
        spec("metadata/annotations/nginx.ingress.kubernetes.io\\/auth-tls-secret", "Ingress", false),
        spec("imagePullSecrets/name", "ServiceAccount", false),
    ]);
    for parameter in ["secretName", "adminSecretName", "userSecretName", "secretRef"] {
        found.push(spec(&format!("parameters/{parameter}"), "StorageClass", false));
    }
    found.extend([
        spec("rules/resourceNames", "Role", false),
        spec("rules/resourceNames", "ClusterRole", false),
        FieldSpec {
            group: "serving.knative.dev".to_owned(),
            ..versioned("Service", "spec/template/spec/containers/env/valueFrom/secretKeyRef/name", false)
        },
        spec("spec/azureFile/secretName", "PersistentVolume", false),
    ]);
    found
}

fn of_services() -> Vec<FieldSpec> {
    let webhooks = "admissionregistration.k8s.io";
    let mut found = vec![grouped("apps", "StatefulSet", "spec/serviceName", false)];
    for place in [
        "spec/rules/http/paths/backend/serviceName",
        "spec/backend/serviceName",
        "spec/rules/http/paths/backend/service/name",
        "spec/defaultBackend/service/name",
    ] {
        found.push(spec(place, "Ingress", false));
    }
    found.extend([
        grouped("apiregistration.k8s.io", "APIService", "spec/service/name", false),
        grouped(webhooks, "ValidatingWebhookConfiguration", "webhooks/clientConfig/service", false),
        grouped(webhooks, "MutatingWebhookConfiguration", "webhooks/clientConfig/service", false),
    ]);
    found
}

/// Fields that hold names of other objects, with the kinds of those.
fn name_references() -> Vec<Referrers> {
    let rbac = "rbac.authorization.k8s.io";
    let no_templates = ["PodTemplate", "ReplicaSet"];
    let scaled = || vec![spec("spec/scaleTargetRef/name", "HorizontalPodAutoscaler", false)];
    let role = |kind: &str| grouped(rbac, kind, "roleRef/name", false);
    let mut accounts = vec![
        grouped(rbac, "RoleBinding", "subjects", false),
        grouped(rbac, "ClusterRoleBinding", "subjects", false),
    ];
    accounts.extend(in_pods(&no_templates, &["serviceAccountName"], ""));
    let policies = "admissionregistration.k8s.io";
    vec![
        referrers("", "", "Deployment", scaled()),
        referrers("", "", "ReplicationController", scaled()),
        referrers("", "", "ReplicaSet", scaled()),
        referrers("", "", "StatefulSet", scaled()),
        referrers("", "v1", "ConfigMap", of_config_maps()),
        referrers("", "v1", "Secret", of_secrets()),
        referrers("", "v1", "Service", of_services()),
        referrers(rbac, "", "Role", vec![role("RoleBinding")]),
        referrers(rbac, "", "ClusterRole", vec![role("RoleBinding"), role("ClusterRoleBinding")]),
        referrers("", "v1", "ServiceAccount", accounts),
        referrers(
            "",
            "v1",
            "PersistentVolumeClaim",
            in_pods(&no_templates, &["volumes/persistentVolumeClaim/claimName"], ""),
        ),
        referrers(
            "",
            "v1",
            "PersistentVolume",
            vec![
                spec("spec/volumeName", "PersistentVolumeClaim", false),
                spec("rules/resourceNames", "ClusterRole", false),
            ],
        ),
        referrers(
            "storage.k8s.io",
            "v1",
            "StorageClass",
            vec![
                spec("spec/storageClassName", "PersistentVolume", false),
                spec("spec/storageClassName", "PersistentVolumeClaim", false),
                spec("spec/volumeClaimTemplates/spec/storageClassName", "StatefulSet", false),
            ],
        ),
        referrers(
            "scheduling.k8s.io",
            "v1",
            "PriorityClass",
            in_pods(&no_templates, &["priorityClassName"], ""),
        ),
        // The group is what kustomize has; no kind is in it, so names of IngressClasses are never followed.
        referrers(
            "networking.k8s.io/v1",
            "v1",
            "IngressClass",
            vec![spec("spec/ingressClassName", "Ingress", false)],
        ),
        referrers(
            policies,
            "",
            "ValidatingAdmissionPolicy",
            vec![grouped(policies, "ValidatingAdmissionPolicyBinding", "spec/policyName", false)],
        ),
    ]
}

/// Where vars may stand.
fn var_reference() -> Vec<FieldSpec> {
    let pods = [
        ("CronJob", "spec/jobTemplate/spec/template/spec", "spec/jobTemplate/spec/template/volumes"),
        ("DaemonSet", "spec/template/spec", "spec/template/spec/volumes"),
        ("Deployment", "spec/template/spec", "spec/template/spec/volumes"),
        ("Job", "spec/template/spec", "spec/template/spec/volumes"),
        ("Pod", "spec", "spec/volumes"),
        ("ReplicaSet", "spec/template/spec", "spec/template/spec/volumes"),
        ("StatefulSet", "spec/template/spec", "spec/volumeClaimTemplates/spec"),
    ];
    let mut found = Vec::new();
    for (kind, pod, volumes) in pods {
        for containers in ["containers", "initContainers"] {
            for field in ["args", "command", "env/value", "volumeMounts/mountPath"] {
                found.push(spec(&format!("{pod}/{containers}/{field}"), kind, false));
            }
        }
        found.push(spec(&format!("{volumes}/nfs/server"), kind, false));
    }
    found.extend([
        spec("spec/template/metadata/annotations", "Deployment", false),
        spec("spec/rules/host", "Ingress", false),
        spec("spec/tls/hosts", "Ingress", false),
        spec("spec/tls/secretName", "Ingress", false),
        spec("spec/ports/port", "Service", false),
        spec("spec/ports/targetPort", "Service", false),
        spec("spec/nfs/server", "PersistentVolume", false),
        spec("metadata/labels", "", false),
        spec("metadata/annotations", "", false),
    ]);
    found
}

/// The configuration that every kustomization starts from.
pub(crate) fn config() -> Config {
    let images = ["spec", "spec/template/spec"].iter().flat_map(|pod| {
        ["containers[]/image", "initContainers[]/image", "volumes[]/image/reference"]
            .map(|place| spec(&format!("{pod}/{place}"), "", true))
    });
    let replicas = ["Deployment", "ReplicationController", "ReplicaSet", "StatefulSet"];
    Config {
        name_prefix: vec![spec("metadata/name", "", false)],
        name_suffix: vec![spec("metadata/name", "", false)],
        var_reference: var_reference(),
        namespace: vec![
            spec("metadata/name", "Namespace", true),
            grouped("apiregistration.k8s.io", "APIService", "spec/service/namespace", true),
            grouped(
                "apiextensions.k8s.io",
                "CustomResourceDefinition",
                "spec/conversion/webhook/clientConfig/service/namespace",
                false,
            ),
        ],
        common_labels: common_labels(),
        labels: Vec::new(),
        template_labels: templates("labels"),
        common_annotations: templates("annotations"),
        name_reference: name_references(),
        images: images.collect(),
        replicas: replicas.iter().map(|kind| spec("spec/replicas", kind, true)).collect(),
    }
}
