//! Names that mean something by themselves: kinds that are never judged, managers of the plane, calls.

use opdev_event::evidence::{Evidence, RefusalFact};
use opdev_object::meta::{ObjectKey, ObjectRef};

/// Kinds that are never the subject of a finding.
const NEVER: [&str; 7] =
    ["Event", "Lease", "TokenRequest", "ControllerRevision", "SubjectAccessReview", "TokenReview", "Node"];
/// Field managers that write in answer to others: controllers of the plane.
const PLANE: [&str; 8] = [
    "kube-controller-manager",
    "kubelet",
    "kube-scheduler",
    "kube-apiserver",
    "garbage-collector",
    "endpointslice-controller.k8s.io",
    "deployment-controller",
    "namespace-controller",
];

/// True if objects of a kind are never judged.
pub fn is_never(object: &ObjectRef) -> bool {
    let name = object.name.as_str();
    NEVER.contains(&object.gvk.kind.as_str())
        || object.gvk.kind == "Secret" && name.starts_with("sh.helm.release.")
        || object.gvk.group == "kopf.dev"
}

/// True if a manager writes in answer to others.
pub fn is_plane(manager: &str) -> bool {
    PLANE.contains(&manager) || manager.ends_with("-controller.k8s.io")
}

/// Stands for the name of a custom resource in the name of a child.
pub const NAME: &str = "NAME";

/// The name of a child with `NAME` in the place of the name of its custom resource, at its beginning, at its
/// end or between signs.
pub(crate) fn around(child: &str, name: &str) -> Option<String> {
    let sign = |c: char| !c.is_ascii_alphanumeric();
    if name.is_empty() {
        return None;
    }
    if let Some(rest) = child.strip_prefix(name) {
        return Some(format!("{NAME}{rest}"));
    }
    let end = child.strip_suffix(name).filter(|before| before.ends_with(sign));
    if let Some(before) = end {
        return Some(format!("{before}{NAME}"));
    }
    let places = child.match_indices(name).map(|(at, _)| (&child[..at], &child[at + name.len()..]));
    let (before, after) =
        places.into_iter().find(|(before, after)| before.ends_with(sign) && after.starts_with(sign))?;
    Some(format!("{before}{NAME}{after}"))
}

/// Finalizers without a domain that Kubernetes itself answers.
const OF_KUBERNETES: [&str; 3] = ["foregroundDeletion", "orphan", "kubernetes"];

/// True if a finalizer is a program's, not Kubernetes' own. Many programs name theirs without a slash, and
/// domains under `x-k8s.io` belong to projects.
pub fn is_programs(finalizer: &str) -> bool {
    let domain = finalizer.split_once('/').map_or(finalizer, |(domain, _)| domain);
    let of =
        |root: &str| domain.strip_suffix(root).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
    !(finalizer.is_empty() || OF_KUBERNETES.contains(&finalizer) || of("kubernetes.io") || of("k8s.io"))
}

/// A call with its field, as what it is told apart by. The path of a create does not name the object.
pub fn call_of(refusal: &RefusalFact) -> String {
    let name = refusal.object.as_ref().filter(|_| !refusal.target.contains('/'));
    let name = name.map(|object| format!("/{}", object.name)).unwrap_or_default();
    let (verb, target) = (&refusal.verb, &refusal.target);
    format!("{verb} {target}{name} {} {} {}", refusal.status, refusal.reason, refusal.field)
}

/// True if this refusal is why the reconcile failed, as far as its error tells: one that the code has ignored
/// is no fault because something else failed later.
pub fn failed_by(evidence: &Evidence, refusal: &RefusalFact) -> bool {
    let error = evidence.error.as_str();
    if error.is_empty() || refusal.message.is_empty() {
        return !error.is_empty();
    }
    if error.contains(&refusal.message) {
        return true;
    }
    let other = |other: &RefusalFact| !other.message.is_empty() && error.contains(&other.message);
    // Code that makes what may be there does not look at this answer; the cache's own errors are no refusals,
    // but what could not be made is missing later.
    let expected = refusal.verb == "create" && refusal.reason == "AlreadyExists";
    let made = |object: &ObjectKey| error.ends_with(&format!("\"{}\" not found", object.name));
    let missing = refusal.verb == "create" && !expected && refusal.object.as_ref().is_some_and(made);
    let of_cache = refusal.status != 404 && error.ends_with("\" not found") && !missing;
    !(expected || of_cache || evidence.refusals.iter().any(other))
}

#[cfg(test)]
mod tests {
    use super::{around, is_programs};

    #[test]
    fn the_name_of_a_child_is_split_around_the_name_of_its_owner() {
        let found = |child: &str| around(child, "web");
        assert_eq!(found("web-data").as_deref(), Some("NAME-data"));
        assert_eq!(found("moco-web").as_deref(), Some("moco-NAME"));
        assert_eq!(found("moco-web-0").as_deref(), Some("moco-NAME-0"));
        assert_eq!(found("cobweb"), None, "chance");
        assert_eq!(found("other"), None);
    }

    #[test]
    fn a_finalizer_is_the_programs_whether_or_not_it_has_a_slash() {
        for finalizer in [
            "lib.example.com/cleanup",
            "finalizer.keda.sh",
            "delete-pxc-pods-in-order",
            "tektonconfigs.operator.tekton.dev",
            "cluster.cluster.x-k8s.io",
            "machine.cluster.x-k8s.io/drain",
            "myk8s.io/cleanup",
            "notkubernetes.io/cleanup",
        ] {
            assert!(is_programs(finalizer), "{finalizer}");
        }
        for finalizer in [
            "foregroundDeletion",
            "orphan",
            "kubernetes",
            "kubernetes.io/pvc-protection",
            "batch.kubernetes.io/job-tracking",
            "service.kubernetes.io/load-balancer-cleanup",
            "customresourcecleanup.apiextensions.k8s.io",
            "networking.k8s.io/cleanup",
            "k8s.io/cleanup",
            "",
        ] {
            assert!(!is_programs(finalizer), "{finalizer}");
        }
    }
}
