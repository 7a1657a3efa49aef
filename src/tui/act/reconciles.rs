//! Actions on reconciles: one now, pause and resume, one step, the check of a second reconcile. Custom resources that the
//! project's own program reconciles are asked for in its own way, or not at all.

use super::living;
use super::writable::{connected, writes};
use crate::act::ask::ask;
use crate::command::Command;
use crate::dialog::Confirm;
use crate::view::ViewState;
use opdev_event::{Fault, FaultRule, OperatorTask, PauseScope, Request, Task, TraceLevel};
use opdev_object::meta::ObjectRef;
use opdev_panes::disabled::NotNow;
use opdev_panes::keys::action::Do;
use opdev_state::{Seen, State};
use std::sync::Arc;

/// How an action reaches a custom resource that the project's own program reconciles.
#[derive(Clone, Copy)]
enum ByProgram {
    /// The program is asked for a reconcile.
    Asked,
    /// The events that the program hears of are held back; its reconciles are its own.
    Held,
    /// One of the events that are held back is let through.
    LetThrough,
}

/// Checks that the custom resources in question are reconciled in a way that the action reaches.
fn reconciled(view: &ViewState, state: &State, way: ByProgram) -> Result<(), NotNow> {
    let all = view.custom_targets(state);
    if all.is_empty() {
        return Err(NotNow::NotSelected { what: "custom resource" });
    }
    for seen in all {
        if let Some(why) = state.only_shown(&seen.key.group, &seen.key.kind) {
            return Err(format!("nothing reconciles {}: {why}", seen.key.kind).into());
        }
        if let Some(program) = state.program_of(&seen.key.group, &seen.key.kind) {
            reached(way, program, &seen.key.kind, view, state)?;
        }
    }
    Ok(())
}

/// Checks that an action reaches a program's reconciles of a kind.
fn reached(way: ByProgram, program: &str, kind: &str, view: &ViewState, state: &State) -> Result<(), NotNow> {
    match way {
        ByProgram::Asked => {
            let run = state.programs.run_of(program);
            if run.is_some_and(|run| run.traced == Some(TraceLevel::Full)) {
                return Ok(());
            }
            Err(format!("{program} reconciles {kind}, and opdev cannot ask it for one reconcile").into())
        }
        ByProgram::Held => can_disturb(state),
        ByProgram::LetThrough => {
            can_disturb(state)?;
            if state.disturbed.iter().any(|rule| matches!(rule.fault, Fault::Hold(_))) {
                return Ok(());
            }
            let key = view.keys.map.text(Do::Pause);
            Err(format!("nothing is held back from {program}; {key} holds its watches").into())
        }
    }
}

pub(crate) fn can_reconcile(view: &ViewState, state: &State) -> Result<(), NotNow> {
    living(view, state)?;
    writes(state)?;
    reconciled(view, state, ByProgram::Asked)?;
    let own = |seen: &&Arc<Seen>| state.program_of(&seen.key.group, &seen.key.kind).is_none();
    let all = view.custom_targets(state);
    match all.iter().filter(own).find(|seen| state.paused(&seen.key).is_some()) {
        Some(seen) => Err(format!("{} is paused; resume it, or step once", seen.key.name).into()),
        None => Ok(()),
    }
}

pub(crate) fn reconcile(view: &mut ViewState, state: &State) -> Vec<Command> {
    all(view, state, "Reconcile", |object| OperatorTask::Reconcile { object })
}

pub(crate) fn can_step(view: &ViewState, state: &State) -> Result<(), NotNow> {
    living(view, state)?;
    writes(state)?;
    reconciled(view, state, ByProgram::LetThrough)
}

pub(crate) fn step(view: &mut ViewState, state: &State) -> Vec<Command> {
    all(view, state, "Step", |object| OperatorTask::Step { object })
}

pub(crate) fn can_check(view: &ViewState, state: &State) -> Result<(), NotNow> {
    writes(state)?;
    reconciled(view, state, ByProgram::Asked)
}

/// Asks for a second reconcile that should write nothing.
pub(crate) fn check(view: &mut ViewState, state: &State) -> Vec<Command> {
    all(view, state, "Check", |object| OperatorTask::Check { object })
}

pub(crate) fn can_pause(view: &ViewState, state: &State) -> Result<(), NotNow> {
    living(view, state)?;
    can_pause_kind(view, state)
}

/// Pauses the custom resources in question, or resumes them where all of them are paused.
pub(crate) fn pause(view: &mut ViewState, state: &State) -> Vec<Command> {
    if of_program(view, state) {
        return hold_watches(view, state);
    }
    // Mixed ones are paused first: pausing twice does no harm.
    let targets = view.custom_targets(state);
    let held = |seen: &&Arc<Seen>| state.paused(&seen.key).is_some();
    let resume = targets.iter().all(|seen| held(&seen));
    if resume {
        let scope = |object| PauseScope::Object { object };
        return all(view, state, "Resume", |object| OperatorTask::Resume { scope: scope(object) });
    }
    let free = targets.iter().filter(|seen| !held(seen)).map(|seen| seen.object_ref.clone());
    let free: Vec<ObjectRef> = free.collect();
    let task = |object| OperatorTask::Pause { scope: PauseScope::Object { object } };
    bundle(view, free, "Pause", task)
}

pub(crate) fn can_pause_kind(view: &ViewState, state: &State) -> Result<(), NotNow> {
    writes(state)?;
    reconciled(view, state, ByProgram::Held)
}

/// Pauses or resumes all custom resources of the selected kind.
pub(crate) fn pause_kind(view: &mut ViewState, state: &State) -> Vec<Command> {
    if of_program(view, state) {
        return hold_watches(view, state);
    }
    let Some(root) = view.root(state) else { return Vec::new() };
    let scope = PauseScope::Kind { gvk: root.object_ref.gvk.clone() };
    let held = state.paused.iter().any(|paused| paused.what == scope);
    ask(view, if held { OperatorTask::Resume { scope } } else { OperatorTask::Pause { scope } })
}

/// Holds back the events of all watches of the program, or lets them through again.
fn hold_watches(view: &mut ViewState, state: &State) -> Vec<Command> {
    ask(view, OperatorTask::Disturb { rules: toggled(&FaultRule::of(Fault::Hold(None)), state) })
}

/// Only what a program asks of the embedded control plane is disturbed: a cluster that others use never is.
pub(crate) fn can_disturb(state: &State) -> Result<(), NotNow> {
    if !connected(state)?.cluster.embedded {
        return Err("faults are injected only into calls to the embedded control plane".into());
    }
    match state.programs.runs().next() {
        Some(_) => Ok(()),
        None => Err("the project has no program of its own that runs".into()),
    }
}

/// Returns true if the program of the project reconciles one of what is selected.
fn of_program(view: &ViewState, state: &State) -> bool {
    let targets = view.custom_targets(state);
    targets.iter().any(|seen| state.program_of(&seen.key.group, &seen.key.kind).is_some())
}

/// The rules with another one, or without it where it was among them.
pub(crate) fn toggled(rule: &FaultRule, state: &State) -> Vec<FaultRule> {
    let mut rules = state.disturbed.clone();
    match rules.iter().position(|known| known == rule) {
        Some(at) => drop(rules.remove(at)),
        None => rules.push(rule.clone()),
    }
    rules
}

/// One task for each custom resource that is marked, or for the selected one.
fn all(
    view: &mut ViewState,
    state: &State,
    verb: &'static str,
    task: impl Fn(ObjectRef) -> OperatorTask,
) -> Vec<Command> {
    let objects = view.custom_targets(state).iter().map(|seen| seen.object_ref.clone()).collect();
    bundle(view, objects, verb, task)
}

/// Asks at once for one object, and in a dialog for several.
fn bundle(
    view: &mut ViewState,
    objects: Vec<ObjectRef>,
    verb: &'static str,
    task: impl Fn(ObjectRef) -> OperatorTask,
) -> Vec<Command> {
    let mut tasks: Vec<Task> = objects.iter().cloned().map(|object| task(object).into()).collect();
    if tasks.len() > 1 {
        let title = format!("{verb} {} objects?", objects.len());
        let request = Request::from(Task::Each { tasks });
        view.open(Confirm { title, objects, word: verb, request, harmless: true });
        return Vec::new();
    }
    tasks.pop().map(|task| ask(view, task)).unwrap_or_default()
}
