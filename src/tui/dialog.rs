//! Dialogs, stacked over the panes: help, filter line, sample picker, scale, delete, held changes. Each takes keys and gives back
//! what to do; none draws itself (`draw/dialogs`).

mod answer;
mod confirm;
mod copy;
mod delete;
mod held;
mod help;
mod leave;
mod new;
mod review;
mod scale;
mod search;
mod tasks;
mod trust;
mod undo;
mod unlock;

use super::layer::Layer;
pub(super) use answer::{Answer, Opening};
pub(super) use confirm::Confirm;
pub(super) use copy::copies;
pub(super) use delete::Delete;
pub(super) use held::HeldDialog;
pub(super) use leave::{Switching, WAYS};
pub(super) use new::beginnings;
pub(super) use review::{Button, ReviewDialog, buttons_of, review_of};
pub(super) use scale::Scale;
use search::search;
pub(super) use tasks::{Task, tasks};
pub(super) use trust::{ANSWERS as TRUST_ANSWERS, TrustDialog};
pub(super) use unlock::Unlock;

use super::filter::passes;
use super::keys::Key;
use super::pane::Pane;
use super::view::ViewState;
use crate::event::{Request, Sample};
use crate::state::State;
use crossterm::event::KeyCode;

/// The samples that pass what was typed, and the typed text itself where it may be a file.
pub(super) fn choices(state: &State, typed: &str) -> Vec<Choice> {
    let shown = |sample: &&Sample| {
        passes(
            typed,
            &format!("{} {} {}", sample.path, sample.kind_among(state.samples()), sample.object.name),
        )
    };
    let mut out: Vec<Choice> = state.samples().iter().filter(shown).cloned().map(Choice::Sample).collect();
    let typed = typed.trim();
    // `simple-armada` is not `simple-armada-backup`, wherever the two stand.
    let named = |choice: &Choice| matches!(choice, Choice::Sample(sample) if sample.object.name == typed);
    out.sort_by_key(|choice| !named(choice));
    let known = |out: &[Choice], path: &str| {
        out.iter().any(|choice| matches!(choice, Choice::Sample(sample) if sample.path == path))
    };
    if is_path(typed) {
        for path in state.paths.found.iter().filter(|path| path.starts_with(typed)) {
            if !known(&out, path) {
                out.push(Choice::Path(path.clone()));
            }
        }
        let listed = out.iter().any(|choice| matches!(choice, Choice::Path(path) if path == typed));
        if !listed && !known(&out, typed) {
            out.push(Choice::Path(typed.to_owned()));
        }
    }
    out
}

/// Whether a typed text may be a path.
fn is_path(typed: &str) -> bool {
    typed.contains('/')
        || typed.starts_with(['.', '~'])
        || [".yaml", ".yml", ".json"].iter().any(|end| typed.ends_with(end))
}

/// One row of the picker.
#[derive(Clone, Debug)]
pub(super) enum Choice {
    /// A sample of the project.
    Sample(Sample),
    /// A path as typed.
    Path(String),
}

impl Layer {
    /// A key while this dialog is the topmost.
    pub(super) fn key(&mut self, key: Key, view: &mut ViewState, state: &State) -> Answer {
        match self {
            Layer::Help { scroll, typed } => help::key(scroll, typed, key),
            Layer::Filter { pane, before } => filter(*pane, before, key, view),
            Layer::Samples { typed, index } => samples(typed, index, key, state),
            Layer::Scale(scale) => scale.key(key),
            Layer::Delete(delete) => delete.key(key),
            Layer::Held(held) => held.key(key),
            Layer::Trust(trust) => trust.key(key),
            Layer::Confirm(confirm) => confirm.key(key),
            Layer::Tasks { index } => tasks::key(index, key, state),
            Layer::Memory => memory(key),
            Layer::Picker(picker) => picker.key(key, view, state),
            Layer::Search { before } => search(before, key, view),
            Layer::Review(review) => review.key(key, state),
            Layer::New { typed, index } => new::key(typed, index, key, state),
            Layer::Undo { index } => undo::key(index, key, state),
            Layer::Unlock(unlock) => unlock.key(key),
            Layer::Copy { index } => copy::key(index, key, view, state),
            Layer::Leave { index, to } => leave::key(index, to.as_ref(), key),
            Layer::Switching(switching) => switching.key(key),
        }
    }

    /// Pasted text.
    pub(super) fn paste(&mut self, text: &str, view: &mut ViewState) {
        let text: String = text.chars().filter(|c| !c.is_control()).take(500).collect();
        match self {
            Layer::Filter { pane, .. } => view.filters[pane.index()].push_str(&text),
            Layer::Picker(picker) => picker.paste(&text),
            Layer::Search { .. } => view.search.type_text(&text),
            Layer::Help { typed, scroll } => {
                if let Some(typed) = typed {
                    typed.push_str(&text);
                    *scroll = 0;
                }
            }
            Layer::Samples { typed, index } | Layer::New { typed, index } => {
                typed.push_str(text.trim());
                *index = 0;
            }
            Layer::Scale(scale) => scale.paste(&text),
            // A name that was pasted was not typed.
            Layer::Unlock(_)
            | Layer::Confirm(_)
            | Layer::Delete(_)
            | Layer::Held(_)
            | Layer::Trust(_)
            | Layer::Review(_)
            | Layer::Undo { .. }
            | Layer::Copy { .. }
            | Layer::Leave { .. }
            | Layer::Switching(_)
            | Layer::Memory
            | Layer::Tasks { .. } => {}
        }
    }
}

/// There is nothing to do but to leave it.
fn memory(key: Key) -> Answer {
    let leaves = matches!(key.code, KeyCode::Esc | KeyCode::Enter) || key.typed() == Some('q');
    if leaves { Answer::Close } else { Answer::Stay }
}

fn filter(pane: Pane, before: &str, key: Key, view: &mut ViewState) -> Answer {
    let text = &mut view.filters[pane.index()];
    match (key.code, key.typed()) {
        (KeyCode::Enter, _) => return Answer::Close,
        (KeyCode::Esc, _) => {
            before.clone_into(text);
            return Answer::Close;
        }
        (KeyCode::Backspace, _) => {
            text.pop();
        }
        (KeyCode::Char('u' | 'w'), None) if key.ctrl => text.clear(),
        (_, Some(c)) if text.len() < 200 => text.push(c),
        _ => {}
    }
    Answer::Stay
}

fn samples(typed: &mut String, index: &mut usize, key: Key, state: &State) -> Answer {
    let choices = choices(state, typed);
    *index = (*index).min(choices.len().saturating_sub(1));
    match (key.code, key.typed()) {
        (KeyCode::Esc, _) => return Answer::Close,
        (KeyCode::Enter, _) => {
            return match choices.into_iter().nth(*index) {
                Some(Choice::Sample(sample)) => Answer::Ask(Request::Apply { path: sample.path }),
                Some(Choice::Path(path)) => Answer::Ask(Request::Apply { path }),
                None => Answer::Stay,
            };
        }
        // A path that is being typed is completed; what may follow is listed anew.
        (KeyCode::Tab, _) if matches!(choices.get(*index), Some(Choice::Path(path)) if path != typed) => {
            if let Some(Choice::Path(path)) = choices.get(*index) {
                path.clone_into(typed);
                *index = 0;
            }
        }
        (KeyCode::Down | KeyCode::Tab, _) => {
            *index = (*index + 1).min(choices.len().saturating_sub(1));
            return Answer::Stay;
        }
        (KeyCode::Up | KeyCode::BackTab, _) => {
            *index = index.saturating_sub(1);
            return Answer::Stay;
        }
        (KeyCode::Backspace, _) => {
            typed.pop();
            *index = 0;
        }
        (KeyCode::Char('u' | 'w'), None) if key.ctrl => typed.clear(),
        (_, Some(c)) if typed.len() < 500 => {
            typed.push(c);
            *index = 0;
        }
        _ => return Answer::Stay,
    }
    match is_path(typed.trim()) {
        true => Answer::AskOn(Request::ListPaths { typed: typed.trim().to_owned() }),
        false => Answer::Stay,
    }
}
