//! Fields of pods and containers. A spec that has one of these names means the one of its pods.

/// The names of those that operators hand on whole.
pub const NAMES: [&str; 21] = [
    "tolerations",
    "nodeSelector",
    "affinity",
    "topologySpreadConstraints",
    "priorityClassName",
    "serviceAccountName",
    "imagePullSecrets",
    "securityContext",
    "hostNetwork",
    "hostAliases",
    "dnsConfig",
    "runtimeClassName",
    "env",
    "envFrom",
    "args",
    "command",
    "resources",
    "volumeMounts",
    "livenessProbe",
    "readinessProbe",
    "startupProbe",
];

/// Returns true for the name of such a field.
pub fn is_name(name: &str) -> bool {
    NAMES.contains(&name)
}
