//! Outputs of the last render that stand for themselves in this one. Decided in the order in which templates
//! run: one that changes what the others see begins an epoch, and what comes after it is kept only where the
//! epochs before it began alike and what it read of this one is the same.

use super::memory::{Base, Epoch, Output, Outputs};
use opdev_template::{Compared, Map, Paths, ReadSet, Reads, StableObjects, TemplateSet, World};
use std::rc::Rc;
use std::sync::Arc;

/// After so many changes all that follows runs: looking at everything costs more than it saves.
const MOST_EPOCHS: usize = 4;

/// The last render beside the one that runs.
pub(super) struct Reuse<'s> {
    before: &'s Outputs,
    old: &'s mut [Epoch],
    /// The differences of the epoch at hand; nothing where none of its outputs can be kept.
    changes: Option<ReadSet>,
    /// True if epochs are still compared.
    compares: bool,
    /// True if charts, files and cluster are those of the last render.
    same_objects: bool,
    epochs: Vec<Begun>,
    /// How many templates have changed what the others see.
    writes: usize,
    given: StableObjects,
    compared: Compared,
}

/// An epoch of the render that runs.
struct Begun {
    writer: String,
    world: World,
    /// Numbers of its maps, where they are not those of the epoch of the last render.
    paths: Option<Paths>,
}

impl<'s> Reuse<'s> {
    /// At the start of a render; `base` is its input.
    pub(super) fn new(
        old_base: Option<&Base>,
        base: &Base,
        paths: &Paths,
        before: &'s Outputs,
        old: &'s mut [Epoch],
    ) -> Reuse<'s> {
        Reuse {
            before,
            old,
            changes: old_base.and_then(|old| old.changes(base, paths)),
            compares: true,
            same_objects: old_base.is_some_and(|old| old.same_objects(base)),
            epochs: Vec::new(),
            writes: 0,
            given: StableObjects::default(),
            compared: Compared::default(),
        }
    }

    /// The output of the last render, if the template would give it again.
    pub(super) fn kept(&mut self, path: &str, set: &TemplateSet) -> Option<Arc<Output>> {
        let changes = self.changes.as_ref()?;
        let output = self.before.get(path)?;
        let kept = !output.impure
            && !output.wrote
            && output.epoch == self.writes
            && output.seen.reads.is_disjoint(changes)
            && output.seen.same_templates(set, &mut self.compared);
        kept.then(|| Arc::clone(output))
    }

    /// The data of each chart's templates, before any has run.
    pub(super) fn begin(&mut self, data: &[Map]) {
        self.given = StableObjects::in_data(data);
    }

    /// How many templates have changed what the others see.
    pub(super) fn epoch(&self) -> usize {
        self.writes
    }

    /// A template has changed what the others see.
    pub(super) fn wrote(&mut self, path: &str, data: &[Map], reads: &Rc<Reads>) {
        self.writes += 1;
        self.changes = None;
        if !self.compares {
            return;
        }
        if self.writes > MOST_EPOCHS {
            self.compares = false;
            return;
        }
        let at = self.epochs.len();
        let alike = self.epochs.iter().zip(&*self.old).all(|(new, old)| new.writer == old.writer);
        let old = self.old.get_mut(at).filter(|old| alike && old.writer == path);
        // Numbers of the last render go on, so that it is still known which input each kept output has read.
        // A render that fails adds some numbers, which does no harm.
        let mut fresh = old.is_none().then(Paths::default);
        let (paths, old) = match (&mut fresh, old) {
            (None, Some(Epoch { paths, world, .. })) => (paths, Some(&*world)),
            (fresh, _) => (fresh.get_or_insert_default(), None),
        };
        let Some(world) = World::survey(data, reads, paths, &self.given) else {
            self.compares = false;
            return;
        };
        if self.same_objects {
            self.changes = old.and_then(|old| old.changes(&world));
        }
        self.epochs.push(Begun { writer: path.to_owned(), world, paths: fresh });
    }

    /// The state that the next render compares with.
    pub(super) fn into_epochs(self) -> Vec<Epoch> {
        let mut old = self.old.iter_mut();
        let epochs = self.epochs.into_iter().map(|Begun { writer, world, paths }| {
            let known = old.next().map(|old| std::mem::take(&mut old.paths));
            Epoch { writer, world, paths: paths.or(known).unwrap_or_default() }
        });
        epochs.collect()
    }
}
