//! How many replicas an object asks for.

use opdev_state::{Seen, State};
use serde_json::Value;

/// How many replicas an object asks for: where its kind says, else in the usual fields.
pub fn replicas(state: &State, seen: &Seen) -> Option<i64> {
    let known = state
        .kinds()
        .iter()
        .find(|kind| kind.gvk.group_kind() == seen.key.group_kind() && !kind.scale.is_empty());
    let said = known.map(|kind| kind.scale.replace('.', "/"));
    let usual = ["/spec/replicas", "/spec/replicaCount", "/spec/size"];
    said.as_deref()
        .into_iter()
        .chain(usual)
        .find_map(|path| seen.object.pointer(path).and_then(Value::as_i64))
}
