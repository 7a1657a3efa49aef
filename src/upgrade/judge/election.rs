//! Leader election that does not keep the two versions apart: during a rollout the pods of both run, and both
//! reconcile. Both sides are read from files; nothing runs for it.

use super::Observed;
use crate::finding::{Class, Finding, Level};
use opdev_project::program::election::Election;

/// The election of both versions, where their files tell it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Elections {
    pub(crate) before: Option<Election>,
    pub(crate) after: Option<Election>,
}

const FIX: &str = "keep the name of the lock, or set `strategy: {type: Recreate}` in the manager's Deployment, which ends the old \
                   pod first";

/// Told once, of files.
pub(super) fn findings(observed: &Observed) -> Option<Finding> {
    let Elections { before: Some(before), after: Some(after) } = &observed.elections else { return None };
    // A pod that ends before the next one starts is alone. Without an election nothing gets worse.
    if after.recreates || before.turned_on != Some(true) {
        return None;
    }
    let both = format!("{} and {} reconcile at the same time during the rollout", observed.from, observed.to);
    let (title, line) = match (&before.lock, &after.lock) {
        _ if after.turned_on == Some(false) => (
            format!("{both}: leader election is off now"),
            "- leader election: on\n+ leader election: off".to_owned(),
        ),
        (Some(old), Some(new)) if old != new => (
            format!("{both}: the lock of their leader election has another name"),
            format!("- {old}\n+ {new}"),
        ),
        _ => return None,
    };
    let finding = Finding::new(Level::Warning, Class::Election, "leader election", title);
    Some(finding.lines(line.lines().map(str::to_owned)).fix(FIX))
}
