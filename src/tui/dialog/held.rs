//! The question about a change that waits for an answer: letters answer it, esc is later, enter alone does
//! nothing. One that came up by itself takes no answer until it is asked for: its keys were meant for
//! something else.

use super::answer::Answer;
use crate::draw::boxes::{Choice, boxed, choices, scrolled};
use crate::layer::{Canvas, Layer};
use crate::view::ViewState;
use crossterm::event::KeyCode;
use opdev_event::{Held, HeldChange, SourcesTask, words};
use opdev_panes::detail::impact;
use opdev_panes::keys::chord::Key;
use opdev_panes::text::{Row, wrap};
use opdev_panes::theme::Role;
use opdev_state::State;

/// The dialog about a held change.
#[derive(Clone, Debug)]
pub(crate) struct HeldDialog {
    /// Its id.
    pub id: String,
    /// The first visible line of what changes.
    pub scroll: usize,
    /// True if the user has asked for it, and so means it with the keys.
    pub asked_for: bool,
}

impl HeldDialog {
    /// For a held change that the user wants to answer.
    pub(crate) fn of(held: &Held) -> Self {
        HeldDialog { id: held.id.clone(), scroll: 0, asked_for: true }
    }

    /// For a change that is held from now on.
    pub(crate) fn news(held: &Held) -> Self {
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
            (_, Some('a')) => return Answer::Ask(SourcesTask::ApplyHeld { id }.into()),
            (_, Some('k')) => return Answer::Ask(SourcesTask::DiscardHeld { id }.into()),
            (KeyCode::Esc, _) | (_, Some('q' | 'H')) => return Answer::Close,
            (KeyCode::Down, _) | (_, Some('j')) => self.scroll += 1,
            (KeyCode::Up, _) => self.scroll = self.scroll.saturating_sub(1),
            (KeyCode::PageDown, _) => self.scroll += 10,
            (KeyCode::PageUp, _) => self.scroll = self.scroll.saturating_sub(10),
            _ => {}
        }
        Answer::Stay
    }

    fn draw(&self, state: &State, view: &mut ViewState, canvas: &mut Canvas<'_>) {
        let Some(held) = state.impact.held.iter().find(|held| held.id == self.id) else { return };
        let cells = (canvas.body.width as usize).saturating_sub(8).min(96);
        let what = what(held, cells);
        let roomy = canvas.body.height > 12;
        let buttons =
            if self.asked_for { answers(held, cells, roomy) } else { opdev_panes::pages::answer_later() };
        let rows = scrolled(what, buttons, self.scroll, canvas.body);
        let file =
            if held.files.is_empty() { String::new() } else { format!(" · {}", words::files(&held.files)) };
        boxed(&format!("Your answer is needed · {}{file}", held.kind.kind), &rows, None, view, canvas);
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
            HeldChange::Type | HeldChange::Reconciler => " Objects that it affects",
            HeldChange::Chart => " What it would do",
        };
        rows.push(Row::new(Role::Title, title));
        rows.extend(impact::hurts(&held.objects, held.more, cells));
    }
    let goes_on = match held.change {
        HeldChange::Type => "The API server still has the old type; nothing has happened yet.",
        HeldChange::Reconciler => "The old reconciler keeps running; nothing has happened yet.",
        HeldChange::Chart => "The old chart keeps running. The impact tab has every field.",
    };
    rows.extend(text(Role::Dim, goes_on));
    rows
}

fn answers(held: &Held, cells: usize, roomy: bool) -> Vec<Row> {
    let (apply, then) = match held.change {
        HeldChange::Type => ("Apply it anyway", "what is named above is lost or refused"),
        HeldChange::Reconciler => ("Switch anyway", "the new reconciler does what is named above"),
        HeldChange::Chart => ("Let it go live", "what is named above is done"),
    };
    let keep = "your file stays as it is, and waits";
    let later = "H opens this again; undoing the edit ends it";
    choices(
        &[
            Choice { key: "k", word: "Keep the old version", means: keep, role: Role::Text },
            Choice { key: "a", word: apply, means: then, role: Role::Bad },
            Choice { key: "esc", word: "Later", means: later, role: Role::Text },
        ],
        cells,
        roomy,
    )
}

impl ViewState {
    /// Opens the dialog about a change that has come to be held, unless something else is open.
    pub(crate) fn open_held(&mut self, state: &State) {
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
