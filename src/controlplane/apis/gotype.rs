//! Names of Go's string and map types, as json errors print them: the schemas know only that they are
//! strings. The source is the built-in types' own Go code; fields that are not here print as their plain
//! type.

/// The struct, its field, and the type.
const NAMED: [(&str, &str, &str); 45] = [
    ("Container", "imagePullPolicy", "v1.PullPolicy"),
    ("Container", "terminationMessagePolicy", "v1.TerminationMessagePolicy"),
    ("ContainerPort", "protocol", "v1.Protocol"),
    ("CronJobSpec", "concurrencyPolicy", "v1.ConcurrencyPolicy"),
    ("DaemonSetUpdateStrategy", "type", "v1.DaemonSetUpdateStrategyType"),
    ("DeploymentStrategy", "type", "v1.DeploymentStrategyType"),
    ("EndpointPort", "protocol", "v1.Protocol"),
    ("EndpointSlice", "addressType", "v1.AddressType"),
    ("HTTPGetAction", "scheme", "v1.URIScheme"),
    ("HTTPIngressPath", "pathType", "v1.PathType"),
    ("JobSpec", "completionMode", "v1.CompletionMode"),
    ("LabelSelectorRequirement", "operator", "v1.LabelSelectorOperator"),
    ("LimitRangeItem", "type", "v1.LimitType"),
    ("LimitRangeItem", "max", "v1.ResourceList"),
    ("LimitRangeItem", "min", "v1.ResourceList"),
    ("MetricSpec", "type", "v2.MetricSourceType"),
    ("NetworkPolicyPort", "protocol", "v1.Protocol"),
    ("NetworkPolicySpec", "policyTypes", "v1.PolicyType"),
    ("NodeSelectorRequirement", "operator", "v1.NodeSelectorOperator"),
    ("PersistentVolumeClaimSpec", "accessModes", "v1.PersistentVolumeAccessMode"),
    ("PersistentVolumeClaimSpec", "volumeMode", "v1.PersistentVolumeMode"),
    ("PodDisruptionBudgetSpec", "unhealthyPodEvictionPolicy", "v1.UnhealthyPodEvictionPolicyType"),
    ("PodCondition", "status", "v1.ConditionStatus"),
    ("PodCondition", "type", "v1.PodConditionType"),
    ("PodSpec", "dnsPolicy", "v1.DNSPolicy"),
    ("PodSpec", "preemptionPolicy", "v1.PreemptionPolicy"),
    ("PodSpec", "restartPolicy", "v1.RestartPolicy"),
    ("PodStatus", "phase", "v1.PodPhase"),
    ("PodStatus", "qosClass", "v1.PodQOSClass"),
    ("ResourceQuotaSpec", "hard", "v1.ResourceList"),
    ("ResourceRequirements", "limits", "v1.ResourceList"),
    ("ResourceRequirements", "requests", "v1.ResourceList"),
    ("Secret", "type", "v1.SecretType"),
    ("ServicePort", "protocol", "v1.Protocol"),
    ("ServiceSpec", "externalTrafficPolicy", "v1.ServiceExternalTrafficPolicy"),
    ("ServiceSpec", "internalTrafficPolicy", "v1.ServiceInternalTrafficPolicy"),
    ("ServiceSpec", "ipFamilies", "v1.IPFamily"),
    ("ServiceSpec", "ipFamilyPolicy", "v1.IPFamilyPolicy"),
    ("ServiceSpec", "sessionAffinity", "v1.ServiceAffinity"),
    ("ServiceSpec", "type", "v1.ServiceType"),
    ("StatefulSetSpec", "podManagementPolicy", "v1.PodManagementPolicyType"),
    ("StatefulSetUpdateStrategy", "type", "v1.StatefulSetUpdateStrategyType"),
    ("Toleration", "effect", "v1.TaintEffect"),
    ("Toleration", "operator", "v1.TolerationOperator"),
    ("VolumeResourceRequirements", "requests", "v1.ResourceList"),
];

/// Structs that Go embeds: their fields' paths have the embedded struct's name in them.
pub(super) fn embedded(owner: &str, field: &str) -> Option<&'static str> {
    match (owner, field) {
        ("IngressRule", "http") => Some("IngressRuleValue"),
        ("Probe", "exec" | "grpc" | "httpGet" | "tcpSocket") => Some("ProbeHandler"),
        ("Volume", field) if field != "name" => Some("VolumeSource"),
        _ => None,
    }
}

/// The name of a field's type where Go has one: `plain` is what the schema says, which for a list is its
/// items' type.
pub(super) fn named(owner: &str, go_path: &str, plain: &str) -> Option<String> {
    let field = go_path.rsplit('.').next().unwrap_or_default();
    let (_, _, name) = NAMED.iter().find(|(of, at, _)| *of == owner && *at == field)?;
    match plain {
        "string" => Some((*name).to_owned()),
        "[]string" => Some(format!("[]{name}")),
        map if map.starts_with("map[string]") && name.ends_with("List") => Some((*name).to_owned()),
        _ => None,
    }
}
