//! Dialogs, stacked over the panes: help, filter line, sample picker, scale, delete, held changes. Each takes keys and gives back
//! what to do; none draws itself (`draw/dialogs`).

mod confirm;
mod delete;
mod held;
mod scale;
mod tasks;

pub(super) use confirm::Confirm;
pub(super) use delete::Delete;
pub(super) use held::HeldDialog;
pub(super) use scale::Scale;
pub(super) use tasks::{Task, tasks};

use super::keys::Key;
use super::view::{Pane, ViewState, passes};
use crate::event::{Request, Sample};
use crate::state::State;
use crossterm::event::KeyCode;

/// An open dialog.
#[derive(Clone, Debug)]
pub enum Layer {
    /// All keys.
    Help {
        /// The first visible line.
        scroll: usize,
    },
    /// A filter being typed.
    Filter {
        /// Of which pane.
        pane: Pane,
        /// What it was before.
        before: String,
    },
    /// A sample to choose.
    Samples {
        /// What was typed to narrow the list.
        typed: String,
        /// The chosen row.
        index: usize,
    },
    /// Replicas to type.
    Scale(Scale),
    /// Something to delete.
    Delete(Delete),
    /// A held change to answer.
    Held(HeldDialog),
    /// A question about several objects.
    Confirm(Confirm),
    /// Requests under way and ended.
    Tasks {
        /// The chosen row.
        index: usize,
    },
}

/// What a key in a dialog leads to.
pub(super) enum Answer {
    /// The dialog stays.
    Stay,
    /// The dialog closes.
    Close,
    /// The dialog closes and something is asked for.
    Ask(Request),
    /// Something is asked for, and the dialog stays.
    AskOn(Request),
}

/// The samples that pass what was typed, and the typed text itself where it may be a file.
pub(super) fn choices(state: &State, typed: &str) -> Vec<Choice> {
    let shown = |sample: &&Sample| {
        passes(typed, &format!("{} {} {}", sample.path, sample.object.gvk.kind, sample.object.name))
    };
    let mut out: Vec<Choice> = state.samples().iter().filter(shown).cloned().map(Choice::Sample).collect();
    let typed = typed.trim();
    if typed.contains('/') || typed.ends_with(".yaml") || typed.ends_with(".yml") || typed.ends_with(".json")
    {
        out.retain(|choice| !matches!(choice, Choice::Sample(sample) if sample.path != typed));
        if out.is_empty() {
            out.push(Choice::Path(typed.to_owned()));
        }
    }
    out
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
            Layer::Help { scroll } => help(scroll, key),
            Layer::Filter { pane, before } => filter(*pane, before, key, view),
            Layer::Samples { typed, index } => samples(typed, index, key, state),
            Layer::Scale(scale) => scale.key(key),
            Layer::Delete(delete) => delete.key(key),
            Layer::Held(held) => held.key(key),
            Layer::Confirm(confirm) => confirm.key(key),
            Layer::Tasks { index } => tasks::key(index, key, state),
        }
    }

    /// Pasted text.
    pub(super) fn paste(&mut self, text: &str, view: &mut ViewState) {
        let text: String = text.chars().filter(|c| !c.is_control()).take(500).collect();
        match self {
            Layer::Filter { pane, .. } => view.filters[pane.index()].push_str(&text),
            Layer::Samples { typed, index } => {
                typed.push_str(text.trim());
                *index = 0;
            }
            Layer::Scale(scale) => scale.paste(&text),
            Layer::Confirm(_)
            | Layer::Help { .. }
            | Layer::Delete(_)
            | Layer::Held(_)
            | Layer::Tasks { .. } => {}
        }
    }
}

fn help(scroll: &mut usize, key: Key) -> Answer {
    match key.code {
        KeyCode::Char('j') | KeyCode::Down => *scroll += 1,
        KeyCode::Char('k') | KeyCode::Up => *scroll = scroll.saturating_sub(1),
        KeyCode::PageDown | KeyCode::Char(' ') => *scroll += 10,
        KeyCode::PageUp => *scroll = scroll.saturating_sub(10),
        KeyCode::Char('g') | KeyCode::Home => *scroll = 0,
        KeyCode::Esc | KeyCode::Enter | KeyCode::Char('q' | '?') => return Answer::Close,
        _ => {}
    }
    Answer::Stay
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
        (KeyCode::Down | KeyCode::Tab, _) => *index = (*index + 1).min(choices.len().saturating_sub(1)),
        (KeyCode::Up | KeyCode::BackTab, _) => *index = index.saturating_sub(1),
        (KeyCode::Backspace, _) => {
            typed.pop();
            *index = 0;
        }
        (KeyCode::Char('u' | 'w'), None) if key.ctrl => typed.clear(),
        (_, Some(c)) if typed.len() < 500 => {
            typed.push(c);
            *index = 0;
        }
        _ => {}
    }
    Answer::Stay
}
