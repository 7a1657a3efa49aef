//! Charts that need the user's answer: the older one stays in the set, load after load, until the answer
//! comes or the edit is undone. Pure.

use crate::Watch;
use crate::files::hash;
use crate::load::Trial;
use opdev_event::Diagnostic;
use opdev_object::meta::Gvk;
use std::collections::BTreeMap;
use std::sync::Arc;

type Kind = (String, String);

/// The held change of each kind that a chart feeds.
#[derive(Debug, Default)]
pub(super) struct HeldCharts {
    waiting: BTreeMap<Kind, HeldChange>,
    /// The fingerprint of the newest files of each kind.
    prints: BTreeMap<Kind, u64>,
    /// The newest chart of each kind that took the place of another one.
    replaced: BTreeMap<Kind, Trial>,
}

#[derive(Debug)]
struct HeldChange {
    /// The fingerprint of the held files; `None` once they were broken since: whatever loads next is tried
    /// anew, also the same files.
    print: Option<u64>,
    /// The version that serves meanwhile.
    older: Arc<Watch>,
    /// The version that waits; `None` once the user has dropped it, or it was broken since.
    newest: Option<Arc<Watch>>,
    problem: Diagnostic,
}

fn key(gvk: &Gvk) -> Kind {
    (gvk.group.clone(), gvk.kind.clone())
}

/// The fingerprint of a chart, its override values, options and script; `content` stands for the chart's
/// files.
fn print(watch: &Watch, content: Option<u64>) -> u64 {
    let own = watch.chart().map(|chart| {
        let script = chart.script.as_ref().map(|script| (&script.path, &script.files, &script.allow));
        (&chart.path, &chart.overrides, &chart.dry_run_option, &chart.options, script)
    });
    hash(&(content, own))
}

impl HeldCharts {
    /// The watch that serves: the one that was loaded, or the older one while that is held. `content` stands
    /// for the files of its chart, `forced` tries again what was dropped.
    pub(super) fn keep(
        &mut self,
        (watch, affected): (Watch, bool),
        content: Option<u64>,
        forced: bool,
    ) -> (Watch, bool) {
        let kind = key(&watch.gvk);
        let print = print(&watch, content);
        self.prints.insert(kind.clone(), print);
        let Some(waiting) = self.waiting.get_mut(&kind) else { return (watch, affected) };
        if let Some(broken) = &watch.broken {
            // The chart that loaded last is the one that was held: it must not slip in.
            waiting.newest = None;
            waiting.print = None;
            waiting.problem = broken.clone();
        } else if waiting.print != Some(print) || forced {
            self.waiting.remove(&kind);
            return (watch, affected);
        }
        let older = Watch { broken: Some(waiting.problem.clone()), ..Watch::clone(&waiting.older) };
        (older, false)
    }

    /// Holds a chart: it waits, or, where it does not, it is dropped.
    pub(super) fn hold(&mut self, trial: &Trial, problem: &Diagnostic, waits: bool) {
        let kind = key(&trial.watch.gvk);
        let Some(print) = self.prints.get(&kind).copied() else { return };
        let waiting = HeldChange {
            print: Some(print),
            older: Arc::clone(&trial.before),
            newest: waits.then(|| Arc::clone(&trial.watch)),
            problem: problem.clone(),
        };
        self.waiting.insert(kind, waiting);
    }

    /// A chart takes the place of another one.
    pub(super) fn replaces(&mut self, trial: &Trial) {
        self.replaced.insert(key(&trial.watch.gvk), trial.clone());
    }

    /// Drops the chart that came with a set. Returns the version that served before; `None` where another one
    /// serves by now, or none came before it.
    pub(super) fn go_back(
        &mut self,
        serving: &Watch,
        number: u64,
        problem: &Diagnostic,
    ) -> Option<Arc<Watch>> {
        let newest = |trial: &&Trial| serving.changed_in == number && trial.watch.changed_in == number;
        let trial = self.replaced.get(&key(&serving.gvk)).filter(newest)?.clone();
        self.replaced.remove(&key(&serving.gvk));
        self.hold(&trial, problem, false);
        Some(trial.before)
    }

    /// Returns true if a chart of a kind waits.
    pub(super) fn waits(&self, gvk: &Gvk) -> bool {
        self.waiting.get(&key(gvk)).is_some_and(|waiting| waiting.newest.is_some())
    }

    /// The chart that waits, which is held no longer.
    pub(super) fn accept(&mut self, gvk: &Gvk) -> Option<Arc<Watch>> {
        let newest = self.waiting.get(&key(gvk))?.newest.clone()?;
        self.waiting.remove(&key(gvk));
        Some(newest)
    }

    /// The chart that waits is dropped. False where none does.
    pub(super) fn discard(&mut self, gvk: &Gvk, problem: &Diagnostic) -> bool {
        let Some(waiting) = self.waiting.get_mut(&key(gvk)) else { return false };
        waiting.problem = problem.clone();
        waiting.newest.take().is_some()
    }
}
