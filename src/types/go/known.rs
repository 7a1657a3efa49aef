//! Types whose Go source says nothing of their JSON: the ones controller-gen has fixed schemas for, and those
//! of the standard library, whose source is not at hand. Facts only.

use super::schema::{Additional, Schema};
use std::sync::Arc;

/// The schema of a type that is known by its package and name.
pub(crate) fn schema(package: &str, name: &str, embedded_object_meta: bool) -> Option<Schema> {
    let text = |format: &str| Schema {
        format: (!format.is_empty()).then(|| format.into()),
        ..Schema::with_type("string")
    };
    Some(match (package, name) {
        ("k8s.io/apimachinery/pkg/apis/meta/v1", "ObjectMeta") if embedded_object_meta => object_meta(),
        ("k8s.io/apimachinery/pkg/apis/meta/v1", "ObjectMeta")
        | ("k8s.io/apimachinery/pkg/apis/meta/v1/unstructured", "Unstructured") => Schema::with_type("object"),
        ("k8s.io/apimachinery/pkg/apis/meta/v1", "Time" | "MicroTime") => text("date-time"),
        ("k8s.io/apimachinery/pkg/apis/meta/v1", "Duration") => text(""),
        ("k8s.io/apimachinery/pkg/apis/meta/v1", "Fields") => {
            Schema { additional: Some(Additional::Anything), ..Schema::with_type("object") }
        }
        ("k8s.io/apimachinery/pkg/api/resource", "Quantity") => Schema {
            pattern: Some(
                r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
                    .into(),
            ),
            ..int_or_string()
        },
        ("k8s.io/apimachinery/pkg/util/intstr", "IntOrString") => int_or_string(),
        ("k8s.io/apimachinery/pkg/runtime", "RawExtension") => {
            Schema { preserve_unknown: Some(true), ..Schema::with_type("object") }
        }
        (
            "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1beta1"
            | "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1",
            "JSON",
        ) => Schema { preserve_unknown: Some(true), ..Schema::default() },
        _ => return None,
    })
}

fn int_or_string() -> Schema {
    Schema {
        int_or_string: true,
        any_of: vec![Arc::new(Schema::with_type("integer")), Arc::new(Schema::with_type("string"))],
        ..Schema::default()
    }
}

fn object_meta() -> Schema {
    let string = Arc::new(Schema::with_type("string"));
    let map = Arc::new(Schema {
        additional: Some(Additional::Schema(string.clone())),
        ..Schema::with_type("object")
    });
    let list = Arc::new(Schema { items: Some(string.clone()), ..Schema::with_type("array") });
    let properties = [
        ("name", string.clone()),
        ("namespace", string),
        ("annotations", map.clone()),
        ("labels", map),
        ("finalizers", list),
    ];
    Schema {
        properties: properties.into_iter().map(|(name, schema)| (name.into(), schema)).collect(),
        ..Schema::with_type("object")
    }
}

/// Packages of which nothing but the fixed types is ever used.
pub(crate) fn is_whole(package: &str) -> bool {
    matches!(package, "k8s.io/apimachinery/pkg/api/resource" | "k8s.io/apimachinery/pkg/util/intstr")
}

/// Returns true if a fixed type writes its own JSON.
pub(crate) fn marshals_json(package: &str, name: &str) -> bool {
    matches!(
        (package, name),
        ("k8s.io/apimachinery/pkg/apis/meta/v1", "Time" | "MicroTime" | "Duration" | "FieldsV1")
            | ("k8s.io/apimachinery/pkg/api/resource", "Quantity")
            | ("k8s.io/apimachinery/pkg/util/intstr", "IntOrString")
            | ("k8s.io/apimachinery/pkg/runtime", "RawExtension")
            | ("k8s.io/apimachinery/pkg/apis/meta/v1/unstructured", "Unstructured")
            | ("time", "Time")
            | ("encoding/json", "RawMessage")
            | ("math/big", "Int")
    )
}

/// A type of Go's standard library: what its kind and format are at the end.
pub(crate) fn standard(package: &str, name: &str) -> Option<Schema> {
    let of = |kind: &str, format: &str| Schema {
        format: (!format.is_empty()).then(|| format.into()),
        ..Schema::with_type(kind)
    };
    Some(match (package, name) {
        ("time", "Duration") => of("integer", "int64"),
        ("time", "Month" | "Weekday") | ("log/slog", "Level") => of("integer", ""),
        ("encoding/json", "RawMessage") => of("string", "byte"),
        ("encoding/json", "Number")
        | ("net", "IP")
        | ("net/netip", "Addr" | "AddrPort" | "Prefix")
        | ("math/big", "Float" | "Rat")
        | ("regexp", "Regexp") => of("string", ""),
        ("net", "IPMask" | "HardwareAddr") => of("string", "byte"),
        ("io/fs" | "os", "FileMode") => of("integer", "int32"),
        _ => return None,
    })
}

/// Strings with a name of their own in Kubernetes 1.37, which the schema facts do not know as types.
const NAMED_STRINGS: &[(&str, &str)] = &[
    (
        "k8s.io/api/core/v1",
        "AppArmorProfileType AzureDataDiskCachingMode AzureDataDiskKind Capability ClaimResourceStatus \
         ComponentConditionType ConditionStatus ContainerRestartPolicy ContainerRestartRuleAction \
         ContainerRestartRuleOnExitCodesOperator DNSPolicy FinalizerName HostPathType IPFamily \
         IPFamilyPolicy LimitType LoadBalancerIPMode MountPropagationMode NamespaceConditionType \
         NamespacePhase NodeAddressType NodeConditionType NodeInclusionPolicy NodePhase \
         NodeSelectorOperator OSName PersistentVolumeAccessMode PersistentVolumeClaimConditionType \
         PersistentVolumeClaimModifyVolumeStatus PersistentVolumeClaimPhase PersistentVolumeMode \
         PersistentVolumePhase PersistentVolumeReclaimPolicy PodConditionType PodFSGroupChangePolicy \
         PodPhase PodQOSClass PodResizeStatus PodSELinuxChangePolicy PreemptionPolicy ProcMountType \
         Protocol PullPolicy RecursiveReadOnlyMode ReplicationControllerConditionType \
         ResourceHealthStatus ResourceID ResourceName ResourceQuotaScope ResourceResizeRestartPolicy \
         RestartPolicy ScopeSelectorOperator SeccompProfileType SecretType ServiceAffinity \
         ServiceExternalTrafficPolicy ServiceInternalTrafficPolicy ServiceType Signal StorageMedium \
         SupplementalGroupsPolicy TaintEffect TerminationMessagePolicy TolerationOperator URIScheme \
         UniqueVolumeName UnsatisfiableConstraintAction",
    ),
    (
        "k8s.io/api/apps/v1",
        "DaemonSetConditionType DaemonSetUpdateStrategyType DeploymentConditionType \
         DeploymentStrategyType PersistentVolumeClaimRetentionPolicyType PodManagementPolicyType \
         ReplicaSetConditionType StatefulSetConditionType StatefulSetUpdateStrategyType",
    ),
    (
        "k8s.io/api/batch/v1",
        "CompletionMode ConcurrencyPolicy JobConditionType PodFailurePolicyAction \
         PodFailurePolicyOnExitCodesOperator PodReplacementPolicy",
    ),
    ("k8s.io/api/networking/v1", "PathType PolicyType"),
    ("k8s.io/api/policy/v1", "UnhealthyPodEvictionPolicyType"),
    (
        "k8s.io/api/autoscaling/v2",
        "HPAScalingPolicyType HorizontalPodAutoscalerConditionType MetricSourceType MetricTargetType \
         ScalingPolicySelect",
    ),
    ("k8s.io/api/storage/v1", "FSGroupPolicy VolumeBindingMode VolumeLifecycleMode"),
    (
        "k8s.io/api/admissionregistration/v1",
        "FailurePolicyType MatchPolicyType OperationType ParameterNotFoundActionType PatchType \
         ReinvocationPolicyType ScopeType SideEffectClass ValidatingAdmissionPolicyConditionType \
         ValidationAction",
    ),
    ("k8s.io/api/discovery/v1", "AddressType"),
    (
        "k8s.io/apimachinery/pkg/apis/meta/v1",
        "CauseType ConditionStatus DeletionPropagation FieldSelectorOperator IncludeObjectPolicy \
         LabelSelectorOperator ManagedFieldsOperationType ResourceVersionMatch RowConditionType \
         StatusReason",
    ),
    ("k8s.io/apimachinery/pkg/types", "NodeName PatchType UID"),
];

/// Returns true if a type is a string with a name.
pub(crate) fn is_named_string(package: &str, name: &str) -> bool {
    let names = NAMED_STRINGS.iter().find(|(of, _)| *of == package);
    names.is_some_and(|(_, names)| names.split_whitespace().any(|known| known == name))
}
