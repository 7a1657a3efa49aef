//! Programs and charts that are new but do not serve yet: tried first, then let in, refused, or held for the
//! user's answer. Until then the older one stays in the set. Pure; `hold` remembers held charts,
//! `sources/reconcilers.rs` held programs.

use super::{Loaded, Loader, same_script};
use crate::{ChartReconciler, Reconciler, Sources, TypeReconciler, Watch};
use opdev_event::Diagnostic;
use opdev_object::meta::Gvk;
use std::sync::Arc;

/// A chart or a program that would take the place of another one.
#[derive(Clone, Debug)]
pub struct Trial {
    /// The kind with its new chart or program.
    pub watch: Arc<Watch>,
    /// The kind with the one that runs.
    pub before: Arc<Watch>,
}

impl Trial {
    /// Returns true if it is tried before it serves, also where saved charts are not held: what users write
    /// as programs is.
    pub fn is_program(&self) -> bool {
        match (self.watch.chart(), self.before.chart()) {
            (Some(new), Some(old)) => !same_script(new, old),
            (Some(_) | None, _) => true,
        }
    }
}

impl Loader {
    /// The charts and programs of a new set that would take the place of another one.
    pub(super) fn trials(&self, watches: &[Arc<Watch>], number: u64) -> Vec<Trial> {
        let trial = |watch: &&Arc<Watch>| {
            let before = self.before.as_ref()?.watch(&watch.gvk.group, &watch.gvk.kind)?;
            let other = match (&watch.reconciler, &before.reconciler) {
                (Reconciler::Type(new), Reconciler::Type(old)) => new.files != old.files,
                (Reconciler::Chart(new), Reconciler::Chart(old)) => !is_same(new, old),
                (Reconciler::Type(_) | Reconciler::Chart(_), _) => false,
            };
            let both = watch.is_loaded() && before.is_loaded();
            (both && other && watch.changed_in == number)
                .then(|| Trial { watch: Arc::clone(watch), before: Arc::clone(before) })
        };
        watches.iter().filter_map(|watch| trial(&watch)).collect()
    }

    /// The new one does not serve: the older one stays in the set. Where it `waits`, [`Loader::accept`] may
    /// let it in later.
    pub fn hold_back(&mut self, loaded: &mut Loaded, trial: &Trial, problem: &Diagnostic, waits: bool) {
        match &trial.watch.reconciler {
            Reconciler::Chart(_) => self.held.hold(trial, problem, waits),
            Reconciler::Type(_) => self.reconcilers.hold_back(trial.watch.path(), problem, waits),
        }
        let older = Watch { broken: Some(problem.clone()), ..Watch::clone(&trial.before) };
        let mut sources = Sources::clone(&loaded.sources);
        replace(&mut sources, older);
        sources.diagnostics.push(problem.clone());
        loaded.affected.retain(|gvk| *gvk != trial.watch.gvk);
        self.take(sources, loaded);
    }

    /// Returns true if a chart or a program waits for a kind.
    pub fn waits(&self, gvk: &Gvk) -> bool {
        let watch = self.before.as_ref().and_then(|before| before.watch(&gvk.group, &gvk.kind));
        watch.is_some_and(|watch| self.reconcilers.waits(watch.path())) || self.held.waits(gvk)
    }

    /// Accepts the version that waits for a kind: it serves from now on. Returns a new set, or `None` where
    /// nothing waits.
    pub fn accept(&mut self, gvk: &Gvk) -> Option<Loaded> {
        let (watch, mut sources) = self.next(gvk)?;
        if let Some(newest) = self.held.accept(gvk) {
            let newest = Watch { changed_in: sources.number, broken: None, ..Watch::clone(&newest) };
            self.held.replaces(&Trial { watch: Arc::new(newest.clone()), before: watch });
            replace(&mut sources, newest);
            return Some(self.publish(sources, vec![gvk.clone()]));
        }
        let program = watch.program()?;
        let (newest, files) = self.reconcilers.accept(&program.path)?;
        let reconciler = TypeReconciler { program: Some(newest), files, ..TypeReconciler::clone(program) };
        let watch = Watch {
            reconciler: Reconciler::Type(Arc::new(reconciler)),
            broken: None,
            changed_in: sources.number,
            ..Watch::clone(&watch)
        };
        replace(&mut sources, watch);
        Some(self.publish(sources, vec![gvk.clone()]))
    }

    /// The chart or program that came with a set does not fit: the one before it serves again, and its
    /// objects are reconciled. `None` where another one serves by now, or none came before it.
    pub fn go_back(&mut self, gvk: &Gvk, number: u64, problem: &Diagnostic) -> Option<Loaded> {
        let (watch, mut sources) = self.next(gvk)?;
        let reconciler = match &watch.reconciler {
            Reconciler::Chart(_) => self.held.go_back(&watch, number, problem)?.reconciler.clone(),
            Reconciler::Type(program) if watch.changed_in == number => {
                let (older, files) = self.reconcilers.go_back(&program.path, problem)?;
                let older = TypeReconciler { program: Some(older), files, ..TypeReconciler::clone(program) };
                Reconciler::Type(Arc::new(older))
            }
            Reconciler::Type(_) => return None,
        };
        let watch = Watch {
            reconciler,
            broken: Some(problem.clone()),
            changed_in: sources.number,
            ..Watch::clone(&watch)
        };
        replace(&mut sources, watch);
        sources.diagnostics.push(problem.clone());
        let loaded = self.publish(sources, vec![gvk.clone()]);
        Some(Loaded { errors: vec![problem.clone()], ..loaded })
    }

    /// A program of a kind that was refused is tried again at the next load: its type is another one now.
    /// False where there is none.
    pub fn try_refused_again(&mut self, gvk: &Gvk) -> bool {
        let same = |other: &Gvk| other.group_kind() == gvk.group_kind();
        let any = self.reconcilers.try_refused_again(same);
        if any {
            self.content = 0;
        }
        any
    }

    /// Drops the version that waits for a kind. Returns a new set with the reason why it does not serve.
    pub fn discard(&mut self, gvk: &Gvk, problem: &Diagnostic) -> Option<Loaded> {
        let (watch, mut sources) = self.next(gvk)?;
        if !self.held.discard(gvk, problem) {
            self.reconcilers.discard(watch.path(), problem);
        }
        replace(&mut sources, Watch { broken: Some(problem.clone()), ..Watch::clone(&watch) });
        Some(self.publish(sources, Vec::new()))
    }

    /// A new set like the last one, in which objects of these kinds are reconciled again.
    pub fn renew(&mut self, affected: &[Gvk]) -> Option<Loaded> {
        let before = self.before.as_ref()?;
        let mut sources = Sources { number: before.number + 1, saved_at: None, ..Sources::clone(before) };
        let number = sources.number;
        let mut kinds = Vec::new();
        for gvk in affected {
            let Some(watch) = sources.watch(&gvk.group, &gvk.kind).cloned() else { continue };
            kinds.push(watch.gvk.clone());
            replace(&mut sources, Watch { changed_in: number, ..Watch::clone(&watch) });
        }
        Some(self.publish(sources, kinds))
    }

    fn next(&self, gvk: &Gvk) -> Option<(Arc<Watch>, Sources)> {
        let before = self.before.as_ref()?;
        let watch = Arc::clone(before.watch(&gvk.group, &gvk.kind)?);
        Some((watch, Sources { number: before.number + 1, saved_at: None, ..Sources::clone(before) }))
    }

    fn take(&mut self, sources: Sources, loaded: &mut Loaded) {
        loaded.sources = Arc::new(sources);
        loaded.kinds = loaded.sources.kinds();
        self.before = Some(Arc::clone(&loaded.sources));
    }

    fn publish(&mut self, sources: Sources, affected: Vec<Gvk>) -> Loaded {
        let sources = Arc::new(sources);
        self.before = Some(Arc::clone(&sources));
        Loaded { kinds: sources.kinds(), sources, affected, errors: Vec::new(), trials: Vec::new() }
    }
}

/// Returns true if two charts that feed a kind render the same.
fn is_same(new: &ChartReconciler, old: &ChartReconciler) -> bool {
    let chart = match (&new.chart, &old.chart) {
        (Some(new), Some(old)) => Arc::ptr_eq(new, old),
        (Some(_) | None, _) => false,
    };
    chart
        && new.overrides == old.overrides
        && new.dry_run_option == old.dry_run_option
        && new.options == old.options
        && same_script(new, old)
}

fn replace(sources: &mut Sources, watch: Watch) {
    let same = |known: &&mut Arc<Watch>| known.gvk.group_kind() == watch.gvk.group_kind();
    if let Some(place) = sources.watches.iter_mut().find(same) {
        *place = Arc::new(watch);
    }
}
