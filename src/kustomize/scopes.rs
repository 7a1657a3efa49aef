//! The kinds that kustomize 5.8 knows: their scope and whether it has a schema for them. They are those of
//! Kubernetes 1.21; any other kind counts as one in a namespace, and its lists are replaced as a whole.

use opdev_object::facts::facts;
use opdev_object::meta::Gvk;
use opdev_object::schema::SchemaRef;

/// Group, versions, kinds of the whole cluster, kinds in a namespace.
const KINDS: &[(&str, &str, &str, &str)] = &[
    (
        "",
        "v1",
        "ComponentStatus Namespace Node NodeProxyOptions PersistentVolume",
        "ConfigMap Endpoints Event LimitRange PersistentVolumeClaim Pod PodTemplate ReplicationController ResourceQuota \
         Secret Service ServiceAccount Binding",
    ),
    (
        "admissionregistration.k8s.io",
        "v1 v1beta1",
        "MutatingWebhookConfiguration ValidatingWebhookConfiguration",
        "",
    ),
    ("apiextensions.k8s.io", "v1 v1beta1", "CustomResourceDefinition", ""),
    ("apiregistration.k8s.io", "v1 v1beta1", "APIService", ""),
    ("apps", "v1", "", "ControllerRevision DaemonSet Deployment ReplicaSet StatefulSet"),
    ("authentication.k8s.io", "v1 v1beta1", "TokenReview", ""),
    (
        "authorization.k8s.io",
        "v1 v1beta1",
        "SelfSubjectAccessReview SelfSubjectRulesReview SubjectAccessReview",
        "LocalSubjectAccessReview",
    ),
    ("autoscaling", "v1 v2beta1 v2beta2", "", "HorizontalPodAutoscaler Scale"),
    ("batch", "v1 v1beta1", "", "CronJob Job"),
    ("certificates.k8s.io", "v1 v1beta1", "CertificateSigningRequest", ""),
    ("coordination.k8s.io", "v1 v1beta1", "", "Lease"),
    ("discovery.k8s.io", "v1 v1beta1", "", "EndpointSlice"),
    ("events.k8s.io", "v1 v1beta1", "", "Event"),
    ("extensions", "v1beta1", "", "Ingress"),
    ("flowcontrol.apiserver.k8s.io", "v1beta1", "FlowSchema PriorityLevelConfiguration", ""),
    ("internal.apiserver.k8s.io", "v1alpha1", "StorageVersion", ""),
    ("networking.k8s.io", "v1 v1beta1", "IngressClass", "Ingress NetworkPolicy"),
    ("node.k8s.io", "v1 v1beta1 v1alpha1", "RuntimeClass", ""),
    ("policy", "v1 v1beta1", "PodSecurityPolicy", "PodDisruptionBudget"),
    (
        "rbac.authorization.k8s.io",
        "v1 v1beta1 v1alpha1",
        "ClusterRole ClusterRoleBinding",
        "Role RoleBinding",
    ),
    ("scheduling.k8s.io", "v1 v1beta1 v1alpha1", "PriorityClass", ""),
    (
        "storage.k8s.io",
        "v1 v1beta1 v1alpha1",
        "CSIDriver CSINode StorageClass VolumeAttachment",
        "CSIStorageCapacity",
    ),
];

fn rows(
    gvk: &Gvk,
) -> impl Iterator<Item = &'static (&'static str, &'static str, &'static str, &'static str)> {
    KINDS.iter().filter(|row| row.0 == gvk.group && row.1.split(' ').any(|version| version == gvk.version))
}

fn holds(kinds: &str, kind: &str) -> bool {
    kinds.split(' ').any(|one| one == kind)
}

/// Returns true if objects of the kind are certainly in no namespace.
pub(crate) fn is_of_the_cluster(gvk: &Gvk) -> bool {
    rows(gvk).any(|row| holds(row.2, &gvk.kind))
}

/// The schema that says how lists of the kind merge.
pub(crate) fn schema(gvk: &Gvk) -> Option<SchemaRef> {
    let is_known = rows(gvk).any(|row| holds(row.2, &gvk.kind) || holds(row.3, &gvk.kind));
    let of = |version: &str| facts().schema(&Gvk::new(&gvk.group, version, &gvk.kind));
    is_known.then(|| of(&gvk.version).or_else(|| of("v1"))).flatten()
}
