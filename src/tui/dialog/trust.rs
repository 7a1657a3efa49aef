//! The question what a project may do beyond rendering and applying: letters answer it, esc is later, enter
//! alone answers nothing. A dialog that came up by itself takes no answer until it is asked for: its keys
//! were meant for something else.

use super::answer::Answer;
use crate::draw::boxes::{Choice, boxed, choices, scrolled};
use crate::layer::{Canvas, Layer};
use crate::view::ViewState;
use crossterm::event::KeyCode;
use opdev_event::{Permission, ProjectTask, TrustAnswer, TrustAsked, words};
use opdev_panes::keys::chord::Key;
use opdev_panes::text::{Row, wrap};
use opdev_panes::theme::Role;
use opdev_state::State;

/// The dialog about what a project wants.
#[derive(Clone, Debug)]
pub(crate) struct TrustDialog {
    /// The permissions in question.
    pub permissions: Vec<Permission>,
    /// The first visible line of the list.
    pub scroll: usize,
    /// True if the user has asked for it, and so means it with the keys.
    pub asked_for: bool,
}

impl TrustDialog {
    /// For what the user wants to answer.
    pub(crate) fn of(asked: &TrustAsked) -> Self {
        TrustDialog { permissions: asked.unanswered.clone(), scroll: 0, asked_for: true }
    }

    /// For what is asked from now on.
    pub(crate) fn news(asked: &TrustAsked) -> Self {
        TrustDialog { asked_for: false, ..Self::of(asked) }
    }

    fn answered(&self, answer: TrustAnswer) -> Answer {
        Answer::Ask(ProjectTask::Trust { answer, permissions: self.permissions.clone() }.into())
    }
}

impl Layer for TrustDialog {
    fn key(&mut self, key: Key, _view: &mut ViewState, _state: &State) -> Answer {
        match (key.code, key.typed()) {
            (_, Some('H')) if !self.asked_for => self.asked_for = true,
            (KeyCode::Esc, _) if !self.asked_for => return Answer::Close,
            _ if !self.asked_for => return Answer::Pass,
            (KeyCode::Down | KeyCode::PageDown, _) | (_, Some('j')) => self.scroll += 1,
            (KeyCode::Up | KeyCode::PageUp, _) | (_, Some('k')) => {
                self.scroll = self.scroll.saturating_sub(1);
            }
            (KeyCode::Esc, _) | (_, Some('q' | 'H')) => return Answer::Close,
            (_, Some('t')) => return self.answered(TrustAnswer::Trust),
            (_, Some('o')) => return self.answered(TrustAnswer::Once),
            (_, Some('n')) => return self.answered(TrustAnswer::Refuse),
            _ => {}
        }
        Answer::Stay
    }

    fn draw(&self, state: &State, view: &mut ViewState, canvas: &mut Canvas<'_>) {
        let Some(asked) = &state.trust else { return };
        let cells = (canvas.body.width as usize).saturating_sub(8).min(96);
        let roomy = canvas.body.height > 14;
        let buttons = if self.asked_for { answers(cells, roomy) } else { opdev_panes::pages::answer_later() };
        let rows = scrolled(what(asked, cells), buttons, self.scroll, canvas.body);
        boxed("May opdev run this project?", &rows, None, view, canvas);
    }

    fn is_open(&self, state: &State) -> bool {
        state.trust.as_ref().is_some_and(|asked| asked.unanswered == self.permissions)
    }
}

impl ViewState {
    /// Opens the dialog about what the project wants, unless something else is open.
    pub(crate) fn open_trust(&mut self, state: &State) {
        let asked = state.trust.as_ref();
        if self.layers.is_empty()
            && !self.leaving
            && self.questions.trust != state.trust
            && let Some(asked) = asked
        {
            self.questions.trust.clone_from(&state.trust);
            self.open(TrustDialog::news(asked));
        }
        if asked.is_none() {
            self.questions.trust = None;
        }
    }
}

fn what(asked: &TrustAsked, cells: usize) -> Vec<Row> {
    let text = |role, text: &str| {
        let text = words::visible_line(text);
        wrap(&text, cells)
            .into_iter()
            .map(move |line| Row::new(role, format!(" {line} ")))
            .collect::<Vec<_>>()
    };
    let mut rows = vec![Row::default()];
    rows.extend(text(Role::Text, &format!("{} wants more than to render and to apply:", asked.root)));
    rows.push(Row::default());
    for permission in &asked.wanted {
        let is_new = asked.unanswered.contains(permission);
        let (role, mark) = if is_new { (Role::Busy, "▸") } else { (Role::Dim, "allowed:") };
        rows.extend(text(role, &format!("{mark} {permission}")));
        rows.extend(text(Role::Dim, &format!("  {}", permission.setting())));
    }
    rows.push(Row::default());
    rows.extend(text(Role::Dim, "Until you answer, nothing new of the project's files is used."));
    rows
}

fn answers(cells: usize, roomy: bool) -> Vec<Row> {
    let no = "charts and CRDs still work; what is named above is not done";
    let mut rows = choices(
        &[
            Choice { key: "t", word: "Trust", means: "until one of these lines changes", role: Role::Text },
            Choice {
                key: "o",
                word: "Only this time",
                means: "asks again at the next start",
                role: Role::Text,
            },
            Choice { key: "n", word: "No", means: no, role: Role::Text },
            Choice { key: "esc", word: "Later", means: "H opens this again", role: Role::Text },
        ],
        cells,
        roomy,
    );
    if roomy {
        rows.push(Row::new(Role::Dim, " Press t, o or n. enter alone answers nothing. "));
    }
    rows
}
