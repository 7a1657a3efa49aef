//! The report of a dry run of a chart or a program.

use opdev_event::{Action, Diagnostic, ShadowObject, Skipped};
use opdev_object::meta::ObjectRef;

/// The effects of a reconciler on the objects of its kind, had it run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Shadowed {
    /// The objects that it would treat otherwise than they are now, and those on which it failed. Releases of
    /// programs show as objects of kind `Release` in the group `helm.sh`.
    pub objects: Vec<ShadowObject>,
    /// The objects with which it would do nothing.
    pub unchanged: Vec<ObjectRef>,
    /// On how many objects it ran.
    pub ran: u32,
    /// Objects about which nothing can be told, and why: such as that the program would have run something.
    pub skipped: Vec<Skipped>,
}

impl Shadowed {
    /// The error that the program threw, of the first object on which it did.
    pub fn problem(&self) -> Option<&Diagnostic> {
        self.objects.iter().find_map(|object| object.problem.as_ref())
    }

    /// Objects that it would delete, and releases that it would uninstall.
    pub fn deletions(&self) -> impl Iterator<Item = &ObjectRef> {
        let children = self.objects.iter().flat_map(|object| &object.children);
        children.filter(|change| change.action == Action::Deleted).map(|change| &change.object)
    }
}
