//! Actions that ask for something: whether they are possible, and what they ask for or open. Pure.

pub(crate) mod change_view;
pub(crate) mod enabled;
pub(crate) mod leave;
pub(crate) mod mark;
pub(crate) mod mouse;
pub(crate) mod move_border;
pub(crate) mod open_file;
pub(crate) mod programs;
pub(crate) mod writable;

use super::command::{Command, ask};
use super::dialog::{
    Confirm, Copy, Delete, FindingsList, HeldDialog, New, Notices, Samples, Scale, Tasks, TrustDialog, Undo,
    Unlock,
};
use super::find::candidates::What;
use super::find::picker::open;
use super::view::ViewState;
use crate::act::writable::{connected, writes};
use opdev_event::{
    ClusterTask, DraftTask, Fault, FaultRule, OperatorTask, PauseScope, ProjectTask, Request, SourcesTask,
    Task, TraceLevel,
};
use opdev_object::meta::{ObjectKey, ObjectRef};
use opdev_panes::disabled::NotNow;
use opdev_panes::keys::action::Do;
use opdev_panes::pane::Tab;
use opdev_panes::replicas::replicas;
use opdev_state::{Seen, State};
use std::sync::Arc;

/// Checks that an action is possible right now; the error says why not.
pub(super) fn enabled(does: Do, view: &ViewState, state: &State) -> Result<(), NotNow> {
    match does {
        Do::Apply
        | Do::New
        | Do::Edit
        | Do::Undo
        | Do::Scale
        | Do::Delete
        | Do::Reconcile
        | Do::Pause
        | Do::PauseKind
        | Do::Step
        | Do::Check
        | Do::Fail
        | Do::Freeze => {
            writes(state)?;
        }
        Do::Reload | Do::AddRules | Do::FetchDependencies => connected(state).map(|_| ())?,
        _ => {}
    }
    match does {
        Do::Scale => {
            let all = view.targets(state);
            if all.is_empty() {
                return Err(NotNow::NoTarget { could: "be scaled" });
            }
            for seen in all {
                let custom = state.is_custom(&seen.key.group, &seen.key.kind);
                if !custom && replicas(state, &seen).is_none() {
                    return Err(format!("a {} has no replicas", seen.key.kind).into());
                }
            }
        }
        Do::Edit if view.subject(state).is_none() => {
            return Err(NotNow::NoTarget { could: "be edited" });
        }
        Do::AddRules if state.missing_rules.is_empty() && state.programs.runs().next().is_none() => {
            return Err("no rule is known to be missing".into());
        }
        Do::Undo if state.undo.is_empty() => {
            return Err("nothing was applied, edited, scaled or deleted yet".into());
        }
        Do::Delete if view.targets(state).is_empty() => {
            return Err(NotNow::NoTarget { could: "be deleted" });
        }
        Do::Unlock if !connected(state)?.cluster.read_only => {
            return Err("this cluster is not locked".into());
        }
        Do::Freeze if state.copies.is_empty() => {
            return Err("no copy of the operator is known on the cluster".into());
        }
        Do::Fail => failing(view, state)?,
        Do::Held if state.trust.is_none() => {
            state.impact.held.first().ok_or("no change needs your answer")?;
        }
        Do::Disturb => disturbing(state)?,
        Do::Shell => drop(programs::shell_in(view, state)?),
        Do::Forward => drop(programs::forwarded(view, state)?),
        Do::OwnCommands if view.keys.own.is_empty() => {
            return Err("your config.yaml has no commands; docs/keys.md shows how to write one".into());
        }
        Do::Save if view.detail.lines.rows.is_empty() => {
            return Err("the detail pane shows no lines".into());
        }
        Do::Reconcile | Do::Pause | Do::PauseKind | Do::Step | Do::Check => reconciled(does, view, state)?,
        _ => {}
    }
    Ok(())
}

/// Only simulated pods fail on demand.
fn failing(view: &ViewState, state: &State) -> Result<(), NotNow> {
    if !connected(state)?.cluster.embedded {
        return Err("only pods of the embedded control plane fail on demand".into());
    }
    let targets = view.targets(state);
    if targets.is_empty() || targets.iter().any(|seen| !is_pod(&seen.key)) {
        return Err(NotNow::NotSelected { what: "pod" });
    }
    Ok(())
}

/// Only what a program asks of the embedded control plane is disturbed: a cluster that others use never is.
fn disturbing(state: &State) -> Result<(), NotNow> {
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
pub(super) fn toggled(rule: &FaultRule, state: &State) -> Vec<FaultRule> {
    let mut rules = state.disturbed.clone();
    match rules.iter().position(|known| known == rule) {
        Some(at) => drop(rules.remove(at)),
        None => rules.push(rule.clone()),
    }
    rules
}

fn is_pod(key: &ObjectKey) -> bool {
    key.group.is_empty() && key.kind == "Pod"
}

fn reconciled(does: Do, view: &ViewState, state: &State) -> Result<(), NotNow> {
    let all = view.custom_targets(state);
    if all.is_empty() {
        return Err(NotNow::NotSelected { what: "custom resource" });
    }
    for seen in all {
        if let Some(why) = state.only_shown(&seen.key.group, &seen.key.kind) {
            return Err(format!("nothing reconciles {}: {why}", seen.key.kind).into());
        }
        if let Some(program) = state.program_of(&seen.key.group, &seen.key.kind) {
            let run = state.programs.run_of(program);
            let traced = run.is_some_and(|run| run.traced == Some(TraceLevel::Full));
            match does {
                Do::Reconcile | Do::Check if traced => continue,
                // Held are the events that the program hears of; its reconciles are its own.
                Do::Pause | Do::PauseKind => {
                    disturbing(state)?;
                    continue;
                }
                Do::Step => {
                    disturbing(state)?;
                    if !state.disturbed.iter().any(|rule| matches!(rule.fault, Fault::Hold(_))) {
                        let key = view.keys.map.text(Do::Pause);
                        return Err(
                            format!("nothing is held back from {program}; {key} holds its watches").into()
                        );
                    }
                    continue;
                }
                _ => {}
            }
            return Err(format!(
                "{program} reconciles {}, and opdev cannot ask it for one reconcile",
                seen.key.kind
            )
            .into());
        }
        if does == Do::Reconcile && state.paused(&seen.key).is_some() {
            return Err(format!("{} is paused; resume it, or step once", seen.key.name).into());
        }
    }
    Ok(())
}

/// Does it, or opens its dialog. Only for what `update` passes on.
pub(super) fn act(does: Do, view: &mut ViewState, state: &State) -> Vec<Command> {
    match does {
        Do::Apply => view.open(Samples::default()),
        Do::Scale => view.open(Scale::of(&view.targets(state), state)),
        Do::Delete => view.open(Delete::of(&view.targets(state), state)),
        Do::Held => {
            if let Some(asked) = &state.trust {
                view.open(TrustDialog::of(asked));
                return Vec::new();
            }
            if let Some(held) = state.impact.held.first() {
                view.open(HeldDialog::of(held));
            }
        }
        Do::New => view.open(New::default()),
        Do::Undo => view.open(Undo::default()),
        Do::Edit => {
            let object = view.subject(state).map(|seen| seen.object_ref.clone());
            return object.map(|object| ask(view, DraftTask::Edit { object })).unwrap_or_default();
        }
        Do::Freeze => {
            if let Some(question) = freeze(state) {
                view.open(question);
            }
        }
        Do::Unlock => {
            if let Some(question) = Unlock::of(state) {
                view.open(question);
            }
        }
        Do::Fail => open(view, What::Failure, state),
        Do::Disturb => open(view, What::Disturbance, state),
        Do::OwnCommands => open(view, What::Commands, state),
        Do::Forward => open(view, What::Ports, state),
        Do::Shell => {
            if let Ok(pod) = programs::shell_in(view, state) {
                let request = programs::shell_request(&pod, view, state);
                return ask(view, request);
            }
        }
        Do::Save => return save(None, view, state),
        Do::Copy => view.open(Copy::default()),
        Do::Tasks => view.open(Tasks::default()),
        Do::Notices => view.open(Notices::default()),
        Do::Findings => view.open(FindingsList::default()),
        Do::Reload => return ask(view, SourcesTask::Reload),
        Do::HoldCharts => return ask(view, SourcesTask::HoldCharts { on: !state.hold }),
        Do::AddRules => return ask(view, DraftTask::AddRules),
        Do::FetchDependencies => return ask(view, ProjectTask::FetchDependencies),
        Do::Reconcile => return all(view, state, "Reconcile", |object| OperatorTask::Reconcile { object }),
        Do::Step => return all(view, state, "Step", |object| OperatorTask::Step { object }),
        Do::Check => return all(view, state, "Check", |object| OperatorTask::Check { object }),
        Do::Pause | Do::PauseKind if of_program(view, state) => {
            return ask(
                view,
                OperatorTask::Disturb { rules: toggled(&FaultRule::of(Fault::Hold(None)), state) },
            );
        }
        Do::Pause => {
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
            return bundle(view, free, "Pause", task);
        }
        Do::PauseKind => {
            let Some(root) = view.root(state) else { return Vec::new() };
            let scope = PauseScope::Kind { gvk: root.object_ref.gvk.clone() };
            let held = state.paused.iter().any(|paused| paused.what == scope);
            return ask(
                view,
                if held { OperatorTask::Resume { scope } } else { OperatorTask::Pause { scope } },
            );
        }
        _ => {}
    }
    Vec::new()
}

/// Saves the lines of the detail pane.
pub(super) fn save(path: Option<String>, view: &mut ViewState, state: &State) -> Vec<Command> {
    let about = view.subject(state).map_or_else(String::new, |seen| format!("-{}", seen.key.name));
    let part = view.detail.tab.part();
    let end = part.file_ending();
    let partial = view.subject(state).filter(|seen| seen.metadata_only && view.detail.tab == Tab::YAML);
    if let Some(seen) = partial {
        let (kind, name) = (&seen.key.kind, &seen.key.name);
        view.told.message = Some(format!("save: only the metadata of {kind} {name} was read so far"));
        return Vec::new();
    }
    let tab = part.title().to_lowercase().replace(' ', "-");
    let name = format!("{tab}{about}.{end}");
    let mut text = view.detail.lines.texts().collect::<Vec<_>>().join("\n");
    text.push('\n');
    ask(view, ProjectTask::SaveText { path, name, text })
}

/// Asks about a copy of the operator that runs, or, where none does, about one that is frozen.
fn freeze(state: &State) -> Option<Confirm> {
    let running = state.copies.iter().find(|copy| copy.frozen.is_none());
    let copy = running.or_else(|| state.copies.first())?;
    let object = copy.object.clone();
    let objects = vec![object.clone()];
    let (title, word, request) = match copy.frozen {
        None => (
            format!("Freeze {} (replicas: {}) until opdev ends?", object.name, copy.replicas),
            "Freeze",
            Request::from(ClusterTask::Freeze { object }),
        ),
        Some(had) => (
            format!("Give {} its replicas ({had}) back?", object.name),
            "Give back",
            Request::from(ClusterTask::Unfreeze { object }),
        ),
    };
    Some(Confirm { title, objects, word, request, harmless: false })
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
