//! Why an object that is to be deleted is still there: its finalizers with who should remove them, and what
//! blocks the garbage collector. Pure reading of the state.

use super::{Seen, State, managers};
use jiff::Timestamp;
use opdev_event::KindHealth;
use opdev_object::meta;
use serde_json::Value;
use std::sync::Arc;

/// An object on its way out.
#[derive(Clone, Debug)]
pub struct Deletion {
    /// When it was asked for.
    pub since: Option<Timestamp>,
    /// Finalizers that have to be removed first.
    pub finalizers: Vec<Finalizer>,
    /// Owned objects that have to go first, because the object waits for its dependents.
    pub blocking: Vec<Arc<Seen>>,
}

/// One finalizer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finalizer {
    /// Its name.
    pub name: String,
    /// The one who should remove it, and when.
    pub who: String,
}

/// Why an object is not gone yet; `None` where nobody has asked to delete it.
pub fn of(state: &State, seen: &Seen) -> Option<Deletion> {
    let since = meta::deletion_timestamp(&seen.object)?.parse().ok();
    let names = meta::finalizers(&seen.object);
    let waits = names.contains(&"foregroundDeletion");
    let owned = if waits { state.objects.owned_by(seen) } else { Vec::new() };
    let blocking = owned.into_iter().filter(|child| blocks(child, seen)).cloned().collect();
    let finalizers = names
        .iter()
        .map(|name| Finalizer { name: (*name).to_owned(), who: who(state, seen, name) })
        .collect();
    Some(Deletion { since, finalizers, blocking })
}

/// Returns true if a child's owner reference holds its owner back.
fn blocks(child: &Seen, owner: &Seen) -> bool {
    let references = child.object.pointer("/metadata/ownerReferences").and_then(Value::as_array);
    references.into_iter().flatten().any(|reference| {
        reference.get("uid").and_then(Value::as_str) == owner.object_ref.uid.as_deref()
            && reference.get("blockOwnerDeletion").and_then(Value::as_bool) == Some(true)
    })
}

fn who(state: &State, seen: &Seen, name: &str) -> String {
    let known = match name {
        "foregroundDeletion" => "the garbage collector, once the objects that block it are gone",
        "orphan" => "the garbage collector, once no object names this one as its owner",
        "kubernetes" => "the namespace controller, once the namespace is empty",
        "kubernetes.io/pvc-protection" => "the claim protection controller, once no pod uses the claim",
        "kubernetes.io/pv-protection" => "the volume protection controller, once no claim is bound to it",
        "batch.kubernetes.io/job-tracking" => "the job controller, once it has counted the pod",
        "service.kubernetes.io/load-balancer-cleanup" => {
            "the cloud's service controller, once the load balancer is gone"
        }
        "customresourcecleanup.apiextensions.k8s.io" => {
            "the API server, once all custom resources of this kind are gone"
        }
        "helm.sdk.operatorframework.io/uninstall-release" | "uninstall-helm-release" => {
            return ours(state, seen, "once the release is uninstalled");
        }
        "opdev.dev/finalize" => return ours(state, seen, "once the reconciler's finalize says so"),
        _ => return setter(seen, name),
    };
    known.to_owned()
}

/// The operator's own finalizers: whether there is anybody here who removes them.
fn ours(state: &State, seen: &Seen, when: &str) -> String {
    let is = |kind: &&opdev_event::KindStatus| kind.gvk.group_kind() == seen.key.group_kind();
    match state.kinds().iter().find(is).map(|kind| &kind.health) {
        Some(KindHealth::Serving | KindHealth::Stale { .. }) => {
            let read_only = state.started.as_ref().filter(|started| started.cluster.read_only);
            match read_only {
                Some(started) => format!(
                    "opdev, {when}; but nothing is written on context {}, which is read-only",
                    started.cluster.name
                ),
                None => format!("opdev, {when}"),
            }
        }
        Some(KindHealth::Disabled { .. }) => {
            format!("opdev, {when}; but what reconciles {} is broken right now", seen.key.kind)
        }
        Some(KindHealth::Process { program }) => format!("{program}, {when}"),
        Some(KindHealth::Shown { why }) => {
            format!("the operator of {}; but nothing here reconciles it: {why}", seen.key.kind)
        }
        None => format!("the operator of {}, {when}", seen.key.kind),
    }
}

/// Nobody knows this finalizer; whoever wrote it is the best guess there is.
fn setter(seen: &Seen, name: &str) -> String {
    let place = seen.object.pointer("/metadata/finalizers").and_then(Value::as_array);
    let index = place.and_then(|list| list.iter().position(|item| item.as_str() == Some(name)));
    let owners = index.map(|index| {
        managers::Owners::of(&seen.object).at(&[
            managers::Step::Field("metadata".to_owned()),
            managers::Step::Field("finalizers".to_owned()),
            managers::Step::Item(index),
        ])
    });
    match owners.unwrap_or_default().as_slice() {
        [] => "whoever set it; the object does not say who".to_owned(),
        names => format!("whoever set it, which was {}", names.join(", ")),
    }
}
