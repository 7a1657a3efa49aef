//! Actions that ask for something: when they are possible, and what they ask for or open. Pure. The rows of
//! `keys/registry.rs` name these functions.

pub(crate) mod ask;
pub(crate) mod change_view;
pub(crate) mod leave;
pub(crate) mod mark;
pub(crate) mod mouse;
pub(crate) mod move_border;
pub(crate) mod moves;
pub(crate) mod open_file;
pub(crate) mod programs;
pub(crate) mod reconciles;
pub(crate) mod writable;

use super::command::Command;
use super::dialog::{Confirm, Delete, HeldDialog, Scale, TrustDialog, Unlock};
use super::view::ViewState;
use crate::act::ask::ask;
use crate::act::writable::{connected, writes};
use opdev_event::{ClusterTask, DraftTask, ProjectTask, Request};
use opdev_object::meta::ObjectKey;
use opdev_panes::disabled::NotNow;
use opdev_panes::pane::Tab;
use opdev_panes::replicas::replicas;
use opdev_state::State;

/// Objects that are shown as they were last cannot be changed any more.
fn living(view: &ViewState, state: &State) -> Result<(), NotNow> {
    match view.targets(state).into_iter().find(|seen| state.gone_at(&seen.key).is_some()) {
        Some(gone) => Err(NotNow::Deleted { kind: gone.key.kind.clone(), name: gone.key.name.clone() }),
        None => Ok(()),
    }
}

pub(crate) fn can_edit(view: &ViewState, state: &State) -> Result<(), NotNow> {
    writes(state)?;
    view.subject(state).map(drop).ok_or(NotNow::NoTarget { could: "be edited" })
}

/// Opens the selected object in the user's editor.
pub(crate) fn edit(view: &mut ViewState, state: &State) -> Vec<Command> {
    let object = view.subject(state).map(|seen| seen.object_ref.clone());
    object.map(|object| ask(view, DraftTask::Edit { object })).unwrap_or_default()
}

pub(crate) fn can_undo(_: &ViewState, state: &State) -> Result<(), NotNow> {
    writes(state)?;
    match state.undo.is_empty() {
        true => Err("nothing was applied, edited, scaled or deleted yet".into()),
        false => Ok(()),
    }
}

pub(crate) fn can_scale(view: &ViewState, state: &State) -> Result<(), NotNow> {
    living(view, state)?;
    writes(state)?;
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
    Ok(())
}

/// Asks how many replicas there should be.
pub(crate) fn scale(view: &mut ViewState, state: &State) {
    view.open(Scale::of(&view.targets(state), state));
}

pub(crate) fn can_delete(view: &ViewState, state: &State) -> Result<(), NotNow> {
    living(view, state)?;
    writes(state)?;
    if view.targets(state).is_empty() {
        return Err(NotNow::NoTarget { could: "be deleted" });
    }
    Ok(())
}

/// Asks before objects are deleted.
pub(crate) fn delete(view: &mut ViewState, state: &State) {
    view.open(Delete::of(&view.targets(state), state));
}

/// Only simulated pods fail on demand.
pub(crate) fn can_fail(view: &ViewState, state: &State) -> Result<(), NotNow> {
    writes(state)?;
    if !connected(state)?.cluster.embedded {
        return Err("only pods of the embedded control plane fail on demand".into());
    }
    let targets = view.targets(state);
    if targets.is_empty() || targets.iter().any(|seen| !is_pod(&seen.key)) {
        return Err(NotNow::NotSelected { what: "pod" });
    }
    Ok(())
}

fn is_pod(key: &ObjectKey) -> bool {
    key.group.is_empty() && key.kind == "Pod"
}

pub(crate) fn can_answer(_: &ViewState, state: &State) -> Result<(), NotNow> {
    if state.trust.is_none() && state.impact.held.is_empty() {
        return Err("no change needs your answer".into());
    }
    Ok(())
}

/// Opens what needs an answer: trust first, then the change that waits longest.
pub(crate) fn answer(view: &mut ViewState, state: &State) {
    if let Some(asked) = &state.trust {
        view.open(TrustDialog::of(asked));
    } else if let Some(held) = state.impact.held.first() {
        view.open(HeldDialog::of(held));
    }
}

pub(crate) fn can_add_rules(_: &ViewState, state: &State) -> Result<(), NotNow> {
    connected(state)?;
    if state.missing_rules.is_empty() && state.programs.runs().next().is_none() {
        return Err("no rule is known to be missing".into());
    }
    Ok(())
}

pub(crate) fn can_unlock(_: &ViewState, state: &State) -> Result<(), NotNow> {
    match connected(state)?.cluster.read_only {
        true => Ok(()),
        false => Err("this cluster is not locked".into()),
    }
}

/// Asks for the name of the cluster that may be written to from then on.
pub(crate) fn unlock(view: &mut ViewState, state: &State) {
    if let Some(question) = Unlock::of(state) {
        view.open(question);
    }
}

pub(crate) fn can_save(view: &ViewState, _: &State) -> Result<(), NotNow> {
    match view.detail.lines.rows.is_empty() {
        true => Err("the detail pane shows no lines".into()),
        false => Ok(()),
    }
}

/// Saves the lines of the detail pane.
pub(crate) fn save(path: Option<String>, view: &mut ViewState, state: &State) -> Vec<Command> {
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

pub(crate) fn can_freeze(_: &ViewState, state: &State) -> Result<(), NotNow> {
    writes(state)?;
    match state.copies.is_empty() {
        true => Err("no copy of the operator is known on the cluster".into()),
        false => Ok(()),
    }
}

/// Asks about a copy of the operator that runs, or, where none does, about one that is frozen.
pub(crate) fn freeze(view: &mut ViewState, state: &State) {
    if let Some(question) = freeze_question(state) {
        view.open(question);
    }
}

fn freeze_question(state: &State) -> Option<Confirm> {
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
