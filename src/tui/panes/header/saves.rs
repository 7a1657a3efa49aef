//! The state of the newest save: refused, live, reconciled.

use crate::theme::Role;
use opdev_event::{Diagnostic, ShadowRun, words};
use opdev_state::State;
use std::sync::Arc;

/// The state of the newest save, in many words and in few.
pub struct Save {
    pub role: Role,
    /// The longest first.
    pub texts: Vec<String>,
    /// True if a number in it changes every second.
    pub counts: bool,
}

impl Save {
    pub fn new(role: Role, texts: impl IntoIterator<Item = String>) -> Self {
        Save { role, texts: texts.into_iter().collect(), counts: false }
    }

    /// A number in it changes every second.
    pub fn counting(self) -> Self {
        Save { counts: true, ..self }
    }
}

/// The files of the newest save, where all that keeps them from serving is that they were tried and refused:
/// by the API server in a dry run, or by what a program did in its shadow run.
pub fn refused(state: &State) -> Option<&[String]> {
    let run = state.impact.refused();
    let Some(failed) = &state.reload.failed else {
        let newest = |run: &&Arc<ShadowRun>| state.reload.live.as_ref().is_none_or(|live| run.at >= live.at);
        return run.filter(newest).map(|run| run.files.as_slice());
    };
    let in_run = |problem: &Diagnostic| {
        let told = run.into_iter().flat_map(|run| &run.objects).filter_map(|object| object.problem.as_ref());
        told.map(|told| words::one_line(&told.message)).any(|told| problem.message.starts_with(&told))
    };
    let by_server = |problem: &Diagnostic| problem.message.starts_with("the API server would refuse ");
    let all = failed.diagnostics.iter().all(|problem| by_server(problem) || in_run(problem));
    all.then_some(failed.files.as_slice()).filter(|files| !files.is_empty())
}

/// The state of a save of charts and types.
pub fn live(state: &State) -> Save {
    let reload = &state.reload;
    let Some(now) = &reload.live else {
        return Save::new(Role::Dim, ["nothing is live yet".to_owned()]);
    };
    let files = words::files(&now.files);
    let (saved, of) = match (now.removed, files.is_empty()) {
        (true, _) => ("removed", format!("{files} removed, ")),
        (false, false) => ("saved", format!("{files} ")),
        (false, true) => ("saved", String::new()),
    };
    let save = |role, sign: &str, text: String| {
        Save::new(
            role,
            [format!("{sign} {of}{text}"), format!("{sign} {saved}, {text}"), format!("{sign} {text}")],
        )
    };
    if !reload.unserved.is_empty() && !files.is_empty() {
        return save(Role::Changed, "⚠", format!("nothing reconciles {}", reload.unserved.join(", ")));
    }
    let fresh = state.impact.fresh.iter().filter(|changed| !changed.files.is_empty());
    if let Some(took) = fresh.map(|changed| changed.took).max().filter(|_| !files.is_empty()) {
        let live = format!("CRD live in {}", words::took(took));
        return match &reload.settled {
            Some(settled) if settled.failed > 0 => {
                save(Role::Bad, "✗", format!("{live}, {} of {} failed", settled.failed, settled.objects))
            }
            Some(settled) if settled.objects > 0 => {
                save(Role::Good, "✓", format!("{live}, reconciled in {}", words::took(settled.took)))
            }
            Some(_) | None => save(Role::Good, "✓", live),
        };
    }
    match &reload.settled {
        Some(settled) if !settled.files.is_empty() || !files.is_empty() => match settled.failed {
            0 => save(Role::Good, "✓", format!("live in {}", words::took(settled.took))),
            n => save(Role::Bad, "✗", format!("live, {n} of {} failed", settled.objects)),
        },
        None if !files.is_empty() && now.affected.is_empty() => save(Role::Good, "✓", "live".to_owned()),
        None if !files.is_empty() => {
            let far = match state.live_objects() {
                (_, 0 | 1) => "reconciling".to_owned(),
                (live, all) => format!("{live} of {all} live"),
            };
            save(Role::Busy, "↻", far)
        }
        Some(_) | None => Save::new(Role::Dim, ["✓ live".to_owned()]),
    }
}
