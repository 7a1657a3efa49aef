//! The question about a held change: the safe answer has the focus, letting it through takes a second key. One that
//! came up by itself takes no answer until it is asked for: its keys were meant for something else.

use super::answer::Answer;
use crate::event::{Held, HeldChange, SourcesTask, words};
use crate::state::State;
use crate::tui::detail::impact;
use crate::tui::draw::boxes::{boxed, scrolled};
use crate::tui::keys::Key;
use crate::tui::layer::{Canvas, Layer};
use crate::tui::text::{Row, wrap};
use crate::tui::theme::Role;
use crate::tui::view::ViewState;
use crossterm::event::KeyCode;

/// The dialog about a held change.
#[derive(Clone, Debug)]
pub(in crate::tui) struct HeldDialog {
    /// Which.
    pub id: String,
    /// Whether the focus is on Apply; it starts on Discard.
    pub on_apply: bool,
    /// The first visible line of what changes.
    pub scroll: usize,
    /// Whether the user has asked for it, and so means it with the keys.
    pub asked_for: bool,
}

impl HeldDialog {
    /// For a held change that the user wants to answer.
    pub(in crate::tui) fn of(held: &Held) -> Self {
        HeldDialog { id: held.id.clone(), on_apply: false, scroll: 0, asked_for: true }
    }

    /// For a change that is held from now on.
    pub(in crate::tui) fn news(held: &Held) -> Self {
        HeldDialog { asked_for: false, ..Self::of(held) }
    }

    fn unasked(&mut self, key: Key) -> Answer {
        match (key.code, key.typed()) {
            (_, Some('H')) => {
                self.asked_for = true;
                Answer::Stay
            }
            (KeyCode::Esc, _) => Answer::Close,
            _ => Answer::Pass,
        }
    }
}

impl Layer for HeldDialog {
    fn key(&mut self, key: Key, _view: &mut ViewState, _state: &State) -> Answer {
        if !self.asked_for {
            return self.unasked(key);
        }
        let id = self.id.clone();
        match (key.code, key.typed()) {
            (KeyCode::Enter, _) if self.on_apply => return Answer::Ask(SourcesTask::ApplyHeld { id }.into()),
            (KeyCode::Enter, _) => return Answer::Ask(SourcesTask::DiscardHeld { id }.into()),
            (KeyCode::Esc, _) | (_, Some('q' | 'H')) => return Answer::Close,
            (KeyCode::Left | KeyCode::Right | KeyCode::Tab | KeyCode::BackTab, _) | (_, Some('h' | 'l')) => {
                self.on_apply = !self.on_apply;
            }
            (KeyCode::Down | KeyCode::PageDown, _) | (_, Some('j')) => self.scroll += 1,
            (KeyCode::Up | KeyCode::PageUp, _) | (_, Some('k')) => {
                self.scroll = self.scroll.saturating_sub(1);
            }
            _ => {}
        }
        Answer::Stay
    }

    fn draw(&self, state: &State, view: &mut ViewState, canvas: &mut Canvas<'_>) {
        let Some(held) = state.impact.held.iter().find(|held| held.id == self.id) else { return };
        let cells = (canvas.body.width as usize).saturating_sub(8).min(96);
        let what = what(held, cells);
        let buttons =
            if self.asked_for { buttons(held, self.on_apply) } else { super::later::answer_later() };
        let rows = scrolled(what, buttons, self.scroll, canvas.body);
        let file =
            if held.files.is_empty() { String::new() } else { format!(" · {}", words::files(&held.files)) };
        boxed(&format!("{} held{file}", held.kind.kind), &rows, None, view, canvas);
    }

    fn is_open(&self, state: &State) -> bool {
        state.impact.held.iter().any(|held| held.id == self.id)
    }
}

fn what(held: &Held, cells: usize) -> Vec<Row> {
    let text = |role, text: &str| {
        wrap(text, cells).into_iter().map(move |line| Row::new(role, format!(" {line} "))).collect::<Vec<_>>()
    };
    let mut rows = vec![Row::default()];
    rows.extend(text(Role::Busy, &held.why));
    if !held.findings.is_empty() {
        rows.push(Row::new(Role::Title, " What changes"));
        rows.extend(impact::findings(&held.findings, cells));
    }
    if !held.objects.is_empty() {
        let title = match held.change {
            HeldChange::Type | HeldChange::Reconciler => " Whom it hurts",
            HeldChange::Chart => " What it would do",
        };
        rows.push(Row::new(Role::Title, title));
        rows.extend(impact::hurts(&held.objects, held.more, cells));
    }
    rows.push(Row::default());
    let goes_on = match held.change {
        HeldChange::Type => {
            "Until you answer, the API server keeps the type as it was. Undoing the edit clears this."
        }
        HeldChange::Reconciler => {
            "Until you answer, the older reconciler keeps running. Undoing the edit clears this."
        }
        HeldChange::Chart => {
            "Until you answer, the older chart keeps serving. Undoing the edit clears this; the impact tab has every field."
        }
    };
    rows.extend(text(Role::Dim, goes_on));
    rows
}

fn buttons(held: &Held, on_apply: bool) -> Vec<Row> {
    let button = |on: bool, name: &str| if on { format!("[ {name} ]") } else { format!("  {name}  ") };
    let apply = match held.change {
        HeldChange::Type => "Apply all the same",
        HeldChange::Reconciler => "Switch all the same",
        HeldChange::Chart => "Let it go live",
    };
    vec![
        Row::default(),
        Row::new(Role::Text, " ")
            .and(if on_apply { Role::Text } else { Role::Selected }, button(!on_apply, "Discard"))
            .and(Role::Text, "   ")
            .and(if on_apply { Role::Bad } else { Role::Text }, button(on_apply, apply)),
        Row::new(Role::Key, " ←→")
            .and(Role::Dim, " choose  ")
            .and(Role::Key, "enter")
            .and(Role::Dim, " presses  ")
            .and(Role::Key, "esc")
            .and(Role::Dim, " later "),
    ]
}

impl ViewState {
    /// Opens the dialog about a change that has come to be held, unless something else is open.
    pub(in crate::tui) fn open_held(&mut self, state: &State) {
        let held = &state.impact.held;
        self.questions.held.retain(|id| held.iter().any(|held| held.id == *id));
        if self.layers.is_empty() && !self.leaving {
            let new = held.iter().find(|held| !self.questions.held.contains(&held.id));
            if let Some(held) = new {
                self.questions.held.push(held.id.clone());
                self.open(HeldDialog::news(held));
            }
        }
    }
}
