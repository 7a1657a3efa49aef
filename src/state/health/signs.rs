//! Signs of trouble in few words: objects of other kinds that fail, and a diagnostic in the banner.

use crate::State;
use opdev_event::{Diagnostic, Severity};
use opdev_object::meta::ObjectKey;

/// Objects whose reconciles fail and that are no custom resources, such as the Pods of a second controller.
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

/// The sign of a diagnostic in the banner. A change that is held waits for an answer; nothing has failed.
pub fn diagnostic_sign(of: &Diagnostic, state: &State) -> &'static str {
    let is_held = state.impact.held.iter().any(|held| of.kind.as_ref() == Some(&held.kind));
    match of.severity {
        Severity::Error => "✗",
        Severity::Warning if is_held => "?",
        Severity::Warning => "⚠",
    }
}
