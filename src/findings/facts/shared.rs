//! Children that several custom resources share: each of their reconciles reads or writes the one object.

use super::{Maker, Table, is_never};
use jiff::Timestamp;
use opdev_event::evidence::{Evidence, WriteFact};
use opdev_object::meta::{ObjectKey, ObjectRef};

/// Custom resources of one child that are kept.
const SHARERS: usize = 8;

impl Table {
    /// Notes whose reconciles look after children that were made for another custom resource.
    pub(crate) fn take_sharers(&mut self, evidence: &Evidence) {
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

    /// How often a child was made again after the program itself had deleted it, since the last event from
    /// outside, and when it was made first since.
    pub(crate) fn again(
        &self,
        before: Option<&Maker>,
        at: Timestamp,
        evidence: &Evidence,
    ) -> (u32, Timestamp) {
        let track = self.tracks.get(&(evidence.controller.clone(), evidence.object.key()));
        let outside = track.map(|track| track.outside_at).unwrap_or_default();
        match before {
            Some(before) if before.deleted.is_some() && before.again.1 > outside => {
                (before.again.0 + 1, before.again.1)
            }
            _ => (0, at),
        }
    }

    /// True if a list had lacked an object of the same content for the same custom resource before this one was
    /// made.
    pub(crate) fn is_double(&self, write: &WriteFact, evidence: &Evidence) -> bool {
        let same = |key: &ObjectKey| {
            let maker = self.makers.get(key);
            let made = maker.is_some_and(|maker| {
                maker.primary.key() == evidence.object.key() && maker.content == write.content && !maker.gone
            });
            // It may have been made by this very reconcile.
            made || evidence.writes.iter().any(|other| {
                other.created
                    && other.at < write.at
                    && other.object.key() == *key
                    && other.content == write.content
            })
        };
        let lacked =
            evidence.stale.iter().filter(|stale| stale.missing && stale.object != write.object.key());
        write.generated && write.content != 0 && lacked.map(|stale| &stale.object).any(same)
    }

    /// True if a custom resource that shares the child is still there.
    pub fn is_needed(&self, child: &Maker) -> bool {
        let lives = |live: &super::Live| live.gone.is_none();
        child.sharers.iter().any(|sharer| self.live.get(sharer).is_some_and(lives))
    }
}

impl Maker {
    /// True if more than one custom resource uses it, or nothing of its name comes from the custom resource:
    /// then the next one uses it, too.
    pub fn is_shared(&self) -> bool {
        !self.sharers.is_empty() || has_own_name(&self.object, &self.primary)
    }
}

/// True if nothing of a child's name comes from its custom resource.
pub fn has_own_name(child: &ObjectRef, primary: &ObjectRef) -> bool {
    let uid = primary.uid.as_deref().and_then(|uid| uid.get(..8));
    !primary.name.is_empty()
        && !child.name.contains(&primary.name)
        && !uid.is_some_and(|uid| child.name.contains(uid))
}
