//! What this control plane does not do, or does differently from a real one, said in one place: the
//! `/opdev/fidelity` document and whoever starts a plane for a person tell it from here.

use serde_json::{Value, json};

/// One difference from a real cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// What it is about, in a word or two.
    pub about: &'static str,
    /// What happens instead.
    pub instead: &'static str,
}

const fn gap(about: &'static str, instead: &'static str) -> Gap {
    Gap { about, instead }
}

const GAPS: [Gap; 13] = [
    gap(
        "containers",
        "pods are simulated: no image is pulled, nothing runs, there are no logs, exec or port-forward",
    ),
    gap(
        "pods",
        "ready at once; with restartPolicy Never or OnFailure they succeed, a Job's at once, others after a second, whatever their image; an Event, Simulated, says so; what they name need not be there (with --strict-pods, or strictPods in opdev.yaml, they wait for their ConfigMaps and Secrets)",
    ),
    gap("controllers", "autoscalers keep their bounds and have no metrics; load balancers stay pending"),
    gap(
        "CEL",
        "rules of custom resources are checked, and refused where they cost too much; time zones have to be offsets, and after a failure that another part of a rule makes up for, a few steps are not counted",
    ),
    gap(
        "RBAC",
        "roles and bindings are stored, not enforced: everybody known may do everything, and `auth can-i` says yes (with --rbac they are enforced)",
    ),
    gap(
        "webhooks",
        "called; by a service only where something listens for it on this machine (its target port, 9443 unless told otherwise, or the port that the annotation opdev.dev/local-port names), and skipped with a warning where all its pods are simulated. Conversion webhooks are called the same way",
    ),
    gap(
        "admission policies",
        "in force from the moment they are written; nothing is audited, and who writes one need not be able to read its parameters",
    ),
    gap(
        "validation",
        "as on a real server for pods and their templates, workloads, Jobs, CronJobs, Services, Ingresses, ConfigMaps, Secrets, claims, RBAC, autoscalers, budgets and Leases, but for the insides of rare volume sources, node affinity and pod failure policies; other built-in kinds are checked against their schema only",
    ),
    gap(
        "admission",
        "the plugins that are on by default, but nodes are not tainted and pods get no labels of topology, PodSecurity audits nothing, and signing requests are not read",
    ),
    gap(
        "service accounts",
        "a pod may name one that is not there (with --strict-pods, or strictPods in opdev.yaml, it is refused), and no token is mounted into it",
    ),
    gap(
        "error texts",
        "refusals of a changed pod or claim do not list what changed, and values are shown as JSON where a real server prints a Go struct",
    ),
    gap(
        "persistence",
        "without a data folder objects live in memory; with one they survive a restart, and watches start anew, as after a compaction of etcd",
    ),
    gap("metrics", "requests, how long they took, and stored objects; nothing of the runtime and of caches"),
];

/// All differences of a plane with or without RBAC, the ones that matter most first.
pub fn gaps(rbac: bool) -> impl Iterator<Item = &'static Gap> {
    GAPS.iter().filter(move |gap| !(rbac && gap.about == "RBAC"))
}

/// The document at `/opdev/fidelity`.
pub(crate) fn document(rbac: bool) -> Value {
    let gaps: Vec<Value> =
        gaps(rbac).map(|gap| json!({"about": gap.about, "instead": gap.instead})).collect();
    json!({"version": crate::version::git_version(), "gaps": gaps})
}
