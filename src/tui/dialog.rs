//! Dialogs, stacked over the panes: help, filter line, sample picker, scale, delete, held changes. Each takes keys and gives back
//! what to do; none draws itself (`draw/dialogs`).

mod held;

pub(super) use held::HeldDialog;

use super::keys::Key;
use super::view::{Pane, ViewState, passes, replicas};
use crate::event::{Propagation, Request, Sample};
use crate::state::{Seen, State, tree};
use crossterm::event::KeyCode;
use opdev_object::meta::{self, ObjectRef};
use std::collections::BTreeMap;
use std::sync::Arc;

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
}

/// The scale dialog.
#[derive(Clone, Debug)]
pub struct Scale {
    /// Which object.
    pub object: ObjectRef,
    /// How many it asks for now.
    pub from: Option<i64>,
    /// What stands in the field.
    pub typed: String,
    /// Whether the field still holds what it was opened with: typing replaces it.
    pub fresh: bool,
}

/// The delete dialog.
#[derive(Clone, Debug)]
pub struct Delete {
    /// Which object, with its uid.
    pub object: ObjectRef,
    /// What belongs to it: kind and how many.
    pub owned: Vec<(String, usize)>,
    /// Who has to let go of it first.
    pub finalizers: Vec<String>,
    /// What happens to what it owns.
    pub propagation: Propagation,
    /// Whether the focus is on Delete; it starts on Cancel.
    pub on_delete: bool,
}

impl Scale {
    /// For an object.
    pub(super) fn of(seen: &Seen, state: &State) -> Self {
        let from = replicas(state, seen);
        let typed = from.map_or_else(String::new, |n| n.to_string());
        Scale { object: seen.object_ref.clone(), from, typed, fresh: true }
    }
}

impl Delete {
    /// For an object, with what will go along.
    pub(super) fn of(seen: &Arc<Seen>, state: &State) -> Self {
        let mut owned: BTreeMap<String, usize> = BTreeMap::new();
        for node in tree::owned(state, &seen.key) {
            *owned.entry(node.seen.key.kind.clone()).or_default() += 1 + node.older;
        }
        Delete {
            object: seen.object_ref.clone(),
            owned: owned.into_iter().collect(),
            finalizers: meta::finalizers(&seen.object).into_iter().map(str::to_owned).collect(),
            propagation: Propagation::Background,
            on_delete: false,
        }
    }
}

/// What a key in a dialog leads to.
pub(super) enum Answer {
    /// The dialog stays.
    Stay,
    /// The dialog closes.
    Close,
    /// The dialog closes and something is asked for.
    Ask(Request),
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
            Layer::Scale(scale)
                if text.trim().len() < 10 && text.trim().chars().all(|c| c.is_ascii_digit()) =>
            {
                text.trim().clone_into(&mut scale.typed);
                scale.fresh = false;
            }
            Layer::Scale(_) | Layer::Help { .. } | Layer::Delete(_) | Layer::Held(_) => {}
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

impl Scale {
    fn key(&mut self, key: Key) -> Answer {
        let step =
            |typed: &str, by: i32| typed.parse::<i32>().unwrap_or(0).saturating_add(by).max(0).to_string();
        match (key.code, key.typed()) {
            (KeyCode::Esc, _) | (_, Some('q')) => return Answer::Close,
            (KeyCode::Enter, _) => {
                return match self.typed.parse() {
                    Ok(replicas) => Answer::Ask(Request::Scale { object: self.object.clone(), replicas }),
                    Err(_) => Answer::Stay,
                };
            }
            (KeyCode::Up | KeyCode::Right, _) | (_, Some('+' | 'k' | 'l')) => {
                self.typed = step(&self.typed, 1);
            }
            (KeyCode::Down | KeyCode::Left, _) | (_, Some('-' | 'j' | 'h')) => {
                self.typed = step(&self.typed, -1);
            }
            (KeyCode::Backspace, _) => {
                self.typed.pop();
            }
            (_, Some(c)) if c.is_ascii_digit() => {
                if self.fresh {
                    self.typed.clear();
                }
                if self.typed.len() < 7 {
                    self.typed.push(c);
                }
            }
            _ => return Answer::Stay,
        }
        self.fresh = false;
        Answer::Stay
    }
}

impl Delete {
    fn key(&mut self, key: Key) -> Answer {
        use Propagation::{Background, Foreground, Orphan};
        match (key.code, key.typed()) {
            (KeyCode::Esc, _) | (_, Some('q' | 'n')) => return Answer::Close,
            (KeyCode::Enter, _) if self.on_delete => {
                return Answer::Ask(Request::Delete {
                    object: self.object.clone(),
                    propagation: self.propagation,
                });
            }
            (KeyCode::Enter, _) => return Answer::Close,
            (KeyCode::Left | KeyCode::Right | KeyCode::Tab | KeyCode::BackTab, _) | (_, Some('h' | 'l')) => {
                self.on_delete = !self.on_delete;
            }
            (KeyCode::Down, _) | (_, Some('j')) => {
                self.propagation = match self.propagation {
                    Background => Foreground,
                    Foreground | Orphan => Orphan,
                };
            }
            (KeyCode::Up, _) | (_, Some('k')) => {
                self.propagation = match self.propagation {
                    Orphan => Foreground,
                    Foreground | Background => Background,
                };
            }
            _ => {}
        }
        Answer::Stay
    }
}
