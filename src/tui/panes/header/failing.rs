//! The part of the header about objects that fail out of sight.

use opdev_object::meta::ObjectKey;
use opdev_state::State;

/// Objects whose reconciles fail and that have no row of their own, such as the Pods of a second controller.
pub fn failing(state: &State) -> Option<String> {
    let failing = state.history.failing().iter();
    let others: Vec<&ObjectKey> = failing.filter(|key| !state.is_custom(&key.group, &key.kind)).collect();
    Some(match others.as_slice() {
        [] => return None,
        [one] => format!("✗ {} {} fails", one.kind, one.name),
        [first, rest @ ..] if rest.iter().all(|key| key.kind == first.kind) => {
            format!("✗ {} of {} fail", others.len(), first.kind)
        }
        many => format!("✗ {} objects fail", many.len()),
    })
}
