//! Kinds that are watched beside the custom resources, and how much is read of each. A kind whose rows, waits
//! and conditions are read off its spec, status or data is read whole; of the others an API server sends the
//! metadata, and the whole of one object only while somebody looks at it (`follow`). This table is the one
//! place that decides it.

use opdev_object::meta::Gvk;

/// The part of a kind's objects that a list and a watch bring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reads {
    /// All of it.
    Whole,
    /// All of it, but metadata while there is no custom resource: then nobody looks at more.
    WholeOnceUsed,
    /// `PartialObjectMetadata`: names, labels, owners, finalizers, and who manages which fields.
    Metadata,
}

use Reads::{Metadata, Whole, WholeOnceUsed as Later};

/// Kinds that charts and controllers make objects of.
const OWNED: [(&str, &str, &str, Reads); 19] = [
    // Ready counts, words and faults stand in the status.
    ("apps", "v1", "Deployment", Later),
    ("apps", "v1", "ReplicaSet", Later),
    ("", "v1", "Pod", Later),
    ("apps", "v1", "StatefulSet", Later),
    ("apps", "v1", "DaemonSet", Later),
    ("batch", "v1", "Job", Later),
    // Its schedule, and whether it is suspended.
    ("batch", "v1", "CronJob", Later),
    // Its type, and whether its load balancer has an address.
    ("", "v1", "Service", Later),
    // Its phase.
    ("", "v1", "PersistentVolumeClaim", Later),
    // Its host.
    ("networking.k8s.io", "v1", "Ingress", Later),
    // Its counts.
    ("autoscaling", "v2", "HorizontalPodAutoscaler", Later),
    // Its conditions are kept over time.
    ("policy", "v1", "PodDisruptionBudget", Later),
    // The message is the event.
    ("", "v1", "Event", Whole),
    // How many keys it has is told by who manages them.
    ("", "v1", "ConfigMap", Metadata),
    // Metadata is enough here, too: labels and name of a release record say all that a row shows.
    ("", "v1", "Secret", Metadata),
    // Rows show a name and an age.
    ("", "v1", "ServiceAccount", Metadata),
    ("networking.k8s.io", "v1", "NetworkPolicy", Metadata),
    ("rbac.authorization.k8s.io", "v1", "Role", Metadata),
    ("rbac.authorization.k8s.io", "v1", "RoleBinding", Metadata),
];

/// The kinds that are watched beside the custom resources.
pub(super) fn owned() -> impl Iterator<Item = Gvk> {
    OWNED.iter().map(|(group, version, kind, _)| Gvk::new(*group, *version, *kind))
}

/// The part of a kind that is read. Of custom resources nobody knows which fields matter.
pub(super) fn reads(gvk: &Gvk) -> Reads {
    let known = OWNED.iter().find(|(group, _, kind, _)| *group == gvk.group && *kind == gvk.kind);
    known.map_or(Whole, |(.., reads)| *reads)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_big_and_says_little_comes_as_metadata() {
        let read = |group: &str, kind: &str| reads(&Gvk::new(group, "v1", kind));
        assert_eq!((read("", "Secret"), read("", "ConfigMap")), (Metadata, Metadata));
        assert_eq!((read("", "Pod"), read("cache.my.domain", "Secret")), (Later, Whole));
    }
}
