//! Owners of the claims of a StatefulSet's pods, by the retention policy: with its set or with its pod a
//! claim goes. Never touches a claim whose owner is an earlier object of the same name, and takes nothing
//! from another controller.

use super::fields::{list, name, text, uid};
use serde_json::{Value, json};

/// One owner that a claim may have.
struct ClaimOwner<'a> {
    api_version: &'a str,
    kind: &'a str,
    name: &'a str,
    /// Empty for a pod that is not there yet.
    uid: &'a str,
}

impl ClaimOwner<'_> {
    fn has_the_name_in(&self, reference: &Value) -> bool {
        let says = |field: &str, value: &str| reference[field] == value;
        says("apiVersion", self.api_version) && says("kind", self.kind) && says("name", self.name)
    }

    fn is_in(&self, references: &[Value]) -> bool {
        references.iter().any(|reference| reference["uid"] == self.uid)
    }

    /// Returns true if an earlier object of that name is an owner.
    fn is_stale_in(&self, references: &[Value]) -> bool {
        let first = references.iter().find(|reference| self.has_the_name_in(reference));
        first.is_some_and(|reference| reference["uid"] != self.uid)
    }

    fn reference(&self) -> Value {
        json!({
            "apiVersion": self.api_version, "kind": self.kind, "name": self.name, "uid": self.uid,
            "controller": true, "blockOwnerDeletion": true,
        })
    }
}

/// The owners that the claims of one pod are to have.
pub(crate) struct Retention<'a> {
    set: ClaimOwner<'a>,
    pod: ClaimOwner<'a>,
    with_set: bool,
    with_pod: bool,
    /// The pod is one too many.
    scaled_away: bool,
}

fn deletes(set: &Value, when: &str) -> bool {
    text(set, &format!("/spec/persistentVolumeClaimRetentionPolicy/{when}")) == "Delete"
}

impl<'a> Retention<'a> {
    pub(crate) fn of_pod(set: &'a Value, pod: &'a Value, scaled_away: bool) -> Self {
        Self::of(set, name(pod), uid(pod), scaled_away)
    }

    fn of(set: &'a Value, pod: &'a str, pod_uid: &'a str, scaled_away: bool) -> Self {
        Retention {
            set: ClaimOwner { api_version: "apps/v1", kind: "StatefulSet", name: name(set), uid: uid(set) },
            pod: ClaimOwner { api_version: "v1", kind: "Pod", name: pod, uid: pod_uid },
            with_set: deletes(set, "whenDeleted"),
            with_pod: deletes(set, "whenScaled"),
            scaled_away,
        }
    }

    /// The owners that a claim has to have instead of its own; `None` where they are right.
    pub(crate) fn correction(&self, claim: &Value) -> Option<Vec<Value>> {
        let references = list(claim, "/metadata/ownerReferences");
        if self.set.is_stale_in(references) || self.pod.is_stale_in(references) {
            return None;
        }
        let (set, pod) = (self.set.is_in(references), self.pod.is_in(references));
        let foreign = (self.with_set || self.with_pod)
            && references.iter().any(|reference| reference["controller"] == true && !self.names(reference));
        let (for_set, for_pod) = match foreign {
            true => (false, false),
            false => {
                (self.with_set && !(self.with_pod && self.scaled_away), self.with_pod && self.scaled_away)
            }
        };
        let ours = |reference: &Value| reference["uid"] == self.set.uid || reference["uid"] == self.pod.uid;
        let loose = references.iter().any(|reference| ours(reference) && reference["controller"] != true);
        if (set, pod) == (for_set, for_pod) && (foreign || !loose) {
            return None;
        }
        let mut corrected: Vec<Value> =
            references.iter().filter(|reference| !self.names(reference)).cloned().collect();
        for (wanted, owner) in [(for_pod, &self.pod), (for_set, &self.set)] {
            if wanted && !owner.is_in(&corrected) {
                corrected.push(owner.reference());
            }
        }
        Some(corrected)
    }

    fn names(&self, reference: &Value) -> bool {
        self.set.has_the_name_in(reference) || self.pod.has_the_name_in(reference)
    }
}

/// Returns true if a claim is about to go with an earlier pod of that name, so that a new pod has to wait.
pub(crate) fn goes_with_an_earlier_pod(set: &Value, pod: &str, claim: &Value) -> bool {
    deletes(set, "whenScaled")
        && Retention::of(set, pod, "", false).pod.is_stale_in(list(claim, "/metadata/ownerReferences"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(scaled: &str, deleted: &str) -> Value {
        json!({"metadata": {"name": "db", "uid": "s"}, "spec": {
            "persistentVolumeClaimRetentionPolicy": {"whenScaled": scaled, "whenDeleted": deleted}}})
    }

    fn owner(kind: &str, name: &str, uid: &str, controller: bool) -> Value {
        let api_version = if kind == "StatefulSet" { "apps/v1" } else { "v1" };
        let mut owner = json!({"apiVersion": api_version, "kind": kind, "name": name, "uid": uid});
        if controller {
            owner["controller"] = json!(true);
        }
        owner
    }

    /// Kinds and uids of the owners that a claim gets; `None` where it is left alone.
    fn corrected(set: &Value, scaled_away: bool, owners: &[Value]) -> Option<Vec<String>> {
        let pod = json!({"metadata": {"name": "db-0", "uid": "p"}});
        let claim = json!({"metadata": {"ownerReferences": owners}});
        let corrected = Retention::of_pod(set, &pod, scaled_away).correction(&claim)?;
        Some(
            corrected
                .iter()
                .map(|owner| format!("{} {}", text(owner, "/kind"), text(owner, "/uid")))
                .collect(),
        )
    }

    #[test]
    fn a_claim_goes_with_its_set_or_with_a_pod_too_many() {
        let (of_set, of_pod) = (owner("StatefulSet", "db", "s", true), owner("Pod", "db-0", "p", true));
        let some = |owners: &[&str]| Some(owners.iter().map(ToString::to_string).collect::<Vec<_>>());
        for (scaled, deleted, away, owners, wanted) in [
            ("Retain", "Retain", false, vec![], None),
            ("Retain", "Retain", false, vec![of_set.clone()], some(&[])),
            ("Retain", "Delete", false, vec![], some(&["StatefulSet s"])),
            ("Retain", "Delete", true, vec![of_set.clone()], None),
            ("Delete", "Retain", false, vec![of_set.clone()], some(&[])),
            ("Delete", "Retain", true, vec![], some(&["Pod p"])),
            ("Delete", "Delete", false, vec![of_pod], some(&["StatefulSet s"])),
            ("Delete", "Delete", true, vec![of_set], some(&["Pod p"])),
            // An owner that does not control is made one that does.
            (
                "Retain",
                "Delete",
                false,
                vec![owner("StatefulSet", "db", "s", false)],
                some(&["StatefulSet s"]),
            ),
        ] {
            assert_eq!(corrected(&set(scaled, deleted), away, &owners), wanted, "{scaled} {deleted} {away}");
        }
    }

    #[test]
    fn owners_of_others_stay() {
        let both = set("Delete", "Delete");
        let map = owner("ConfigMap", "m", "m", false);
        let kept = Some(vec!["ConfigMap m".to_owned(), "StatefulSet s".to_owned()]);
        assert_eq!(corrected(&both, false, std::slice::from_ref(&map)), kept);
        let foreign = owner("ConfigMap", "m", "m", true);
        assert_eq!(corrected(&both, true, std::slice::from_ref(&foreign)), None);
        let shared = [foreign, owner("StatefulSet", "db", "s", true)];
        assert_eq!(corrected(&both, false, &shared), Some(vec!["ConfigMap m".to_owned()]));
        let earlier = owner("Pod", "db-0", "earlier", true);
        assert_eq!(corrected(&both, false, std::slice::from_ref(&earlier)), None);
        let claim = json!({"metadata": {"ownerReferences": [earlier]}});
        assert!(goes_with_an_earlier_pod(&both, "db-0", &claim));
        assert!(!goes_with_an_earlier_pod(&set("Retain", "Delete"), "db-0", &claim));
    }
}
