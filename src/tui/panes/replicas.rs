//! How many replicas an object asks for.

use opdev_object::facts::replicas::USUAL;
use opdev_state::{Seen, State};

/// How many replicas an object asks for: where its kind says, else in the usual fields.
pub fn replicas(state: &State, seen: &Seen) -> Option<i64> {
    let known = state
        .kinds()
        .iter()
        .find(|kind| kind.gvk.group_kind() == seen.key.group_kind() && !kind.scale.is_empty());
    let said = known.map(|kind| kind.scale.replace('.', "/"));
    let said = said.and_then(|path| seen.object.pointer(&path)?.as_i64());
    said.or_else(|| USUAL.iter().find_map(|name| seen.object.get("spec")?.get(name)?.as_i64()))
}
