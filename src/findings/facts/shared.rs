//! Children that several custom resources share: each of their reconciles reads or writes the one object.

use super::{Maker, Table, is_never};
use opdev_event::evidence::Evidence;
use opdev_object::meta::ObjectRef;

/// Custom resources of one child that are kept.
const SHARERS: usize = 8;

impl Table {
    /// Notes whose reconciles look after children that were made for another custom resource.
    pub(super) fn take_sharers(&mut self, evidence: &Evidence) {
        let primary = evidence.object.key();
        let single = evidence.reads.iter().filter(|read| !read.version.is_empty() && !read.missing);
        let read = single.filter_map(|read| read.objects.first());
        let written = evidence.writes.iter().filter(|write| !is_never(&write.object));
        let written: Vec<_> = written.map(|write| write.object.key()).collect();
        for key in read.chain(&written) {
            let Some(maker) = self.makers.get_mut(key) else { continue };
            // Another controller that reads it by name may only look.
            let shares = maker.controller == evidence.controller && maker.primary.key() != primary;
            if shares && maker.sharers.len() < SHARERS {
                maker.sharers.insert(primary.clone());
            }
        }
    }

    /// True if a custom resource that shares the child is still there.
    pub(crate) fn is_needed(&self, child: &Maker) -> bool {
        let lives = |live: &super::Live| live.gone.is_none();
        child.sharers.iter().any(|sharer| self.live.get(sharer).is_some_and(lives))
    }
}

impl Maker {
    /// True if more than one custom resource uses it, or nothing of its name comes from the custom resource:
    /// then the next one uses it, too.
    pub(crate) fn is_shared(&self) -> bool {
        !self.sharers.is_empty() || has_own_name(&self.object, &self.primary)
    }
}

/// True if nothing of a child's name comes from its custom resource.
pub(crate) fn has_own_name(child: &ObjectRef, primary: &ObjectRef) -> bool {
    let uid = primary.uid.as_deref().and_then(|uid| uid.get(..8));
    !primary.name.is_empty()
        && !child.name.contains(&primary.name)
        && !uid.is_some_and(|uid| child.name.contains(uid))
}
