//! All notices: what is still true first, then what was told and done, newest first. A notice stands in the
//! lowest border for a moment only; here it can be read again.

use super::answer::Answer;
use crate::draw::boxes::full;
use crate::layer::{Canvas, Layer};
use crate::view::ViewState;
use crossterm::event::KeyCode;
use jiff::Timestamp;
use opdev_event::{Level, Place, RequestOutcome, words};
use opdev_panes::detail::parts::clock;
use opdev_panes::keys::chord::Key;
use opdev_panes::text::{Row, cut_words, wrap};
use opdev_panes::theme::Role;
use opdev_state::State;

/// How many notices of each kind are kept.
const MOST: usize = 100;

/// One notice.
struct Entry {
    at: Option<Timestamp>,
    sign: &'static str,
    role: Role,
    text: String,
    /// The hint, and the rest of what is known.
    more: Vec<String>,
    /// The place in a file that it is about.
    file: Option<Place>,
}

/// The list.
#[derive(Debug, Default)]
pub(crate) struct Notices {
    index: usize,
}

impl Layer for Notices {
    fn picks_rows(&self) -> bool {
        true
    }

    fn key(&mut self, key: Key, _view: &mut ViewState, state: &State) -> Answer {
        let (true_still, rest) = entries(state);
        let last = (true_still.len() + rest.len()).saturating_sub(1);
        self.index = self.index.min(last);
        match (key.code, key.typed()) {
            (KeyCode::Esc, _) | (_, Some('q' | '@')) => return Answer::Close,
            (KeyCode::Down, _) | (_, Some('j')) => self.index = (self.index + 1).min(last),
            (KeyCode::Up, _) | (_, Some('k')) => self.index = self.index.saturating_sub(1),
            (KeyCode::PageDown, _) => self.index = (self.index + 10).min(last),
            (KeyCode::PageUp, _) => self.index = self.index.saturating_sub(10),
            (KeyCode::Home, _) | (_, Some('g')) => self.index = 0,
            (KeyCode::End, _) | (_, Some('G')) => self.index = last,
            (KeyCode::Enter, _) => {
                let file = true_still.into_iter().chain(rest).nth(self.index).and_then(|entry| entry.file);
                return file.map_or(Answer::Stay, Answer::OpenFile);
            }
            (_, Some('c')) => {
                let text = true_still.into_iter().chain(rest).nth(self.index).map(|entry| entry.text);
                return text.map_or(Answer::Stay, |text| Answer::Copy("notice", text));
            }
            _ => {}
        }
        Answer::Stay
    }

    fn draw(&self, state: &State, view: &mut ViewState, canvas: &mut Canvas<'_>) {
        let (true_still, rest) = entries(state);
        let title = format!("Notices · {} still true · {} since start", true_still.len(), rest.len());
        let cells = (canvas.body.width as usize).saturating_sub(4);
        let all: Vec<Entry> = true_still.into_iter().chain(rest).collect();
        let index = self.index.min(all.len().saturating_sub(1));
        let more: Vec<String> = all.get(index).map(|entry| told(entry, cells)).unwrap_or_default();
        let height = canvas.body.height as usize;
        let more: Vec<String> = more.into_iter().take(height / 2).collect();
        let room = height.saturating_sub(more.len() + 4).max(1);
        let skip = (index + 1).saturating_sub(room);
        let mut rows: Vec<Row> = Vec::new();
        for (at, entry) in all.iter().enumerate().skip(skip).take(room) {
            let time = entry.at.map_or_else(|| " ".repeat(8), |at| clock(at, &view.look.zone));
            let mark = if at == index { "▸" } else { " " };
            rows.push(
                Row::new(Role::Text, format!("{mark} "))
                    .and(entry.role, format!("{} ", entry.sign))
                    .and(Role::Dim, format!("{time} "))
                    .and(Role::Text, cut_words(&entry.text, cells.saturating_sub(14))),
            );
        }
        if all.is_empty() {
            rows.push(Row::new(Role::Dim, " There was nothing to tell yet."));
        }
        rows.push(Row::default());
        rows.extend(more.into_iter().map(|line| Row::new(Role::Text, format!(" {line}"))));
        let keys = Row::new(Role::Dim, " What is still true stays on top. ")
            .and(Role::Key, "enter")
            .and(Role::Dim, " opens its file  ")
            .and(Role::Key, "c")
            .and(Role::Dim, " copies  ")
            .and(Role::Key, "esc")
            .and(Role::Dim, " closes ");
        rows.push(keys);
        let selected = (!all.is_empty()).then_some(index - skip);
        full(&title, &rows, selected, view, canvas);
    }

    fn scrolls(&self) -> bool {
        true
    }
}

/// The whole text of one, and what helps.
fn told(entry: &Entry, cells: usize) -> Vec<String> {
    let all = std::iter::once(&entry.text).chain(&entry.more);
    all.flat_map(|text| wrap(text, cells.saturating_sub(2))).collect()
}

/// Notices that are still true, then those told since the start, newest first.
fn entries(state: &State) -> (Vec<Entry>, Vec<Entry>) {
    let mut true_still: Vec<Entry> = Vec::new();
    for problem in state.problems() {
        let place = problem.place.as_ref().map(|place| format!("{place} ")).unwrap_or_default();
        true_still.push(Entry {
            at: None,
            sign: "✗",
            role: Role::Bad,
            text: format!("{place}{}", words::one_line(&problem.message)),
            more: problem.hint.iter().map(|hint| words::one_line(hint)).collect(),
            file: problem.place,
        });
    }
    for rule in state.missing_rules.iter() {
        true_still.push(Entry {
            at: Some(rule.at),
            sign: "✗",
            role: Role::Bad,
            text: format!("forbidden: {}", words::one_line(&rule.message)),
            more: rule.lines().to_vec(),
            file: Some(Place { file: rule.file.clone(), line: 0, column: 0 }),
        });
    }
    let mut rest: Vec<Entry> = Vec::new();
    for notice in state.notices.iter().rev().take(MOST) {
        let about = notice.object.as_ref().map_or_else(String::new, |object| format!("{object}: "));
        let (sign, role) = match notice.level {
            Level::Error => ("✗", Role::Bad),
            Level::Warn => ("⚠", Role::Busy),
            Level::Info | Level::Debug | Level::Trace => ("·", Role::Dim),
        };
        rest.push(Entry {
            at: Some(notice.at),
            sign,
            role,
            text: format!("{about}{}", words::one_line(&notice.message)),
            more: notice.hint.as_deref().map(words::lines).unwrap_or_default(),
            file: None,
        });
    }
    for request in state.requests.finished.iter().rev().take(MOST) {
        let (sign, role, said, hint) = match &request.outcome {
            RequestOutcome::Failed { message, hint } => ("✗", Role::Bad, message.clone(), hint.clone()),
            RequestOutcome::Cancelled { message } => ("·", Role::Dim, message.clone(), None),
            RequestOutcome::Done { summary, warnings } if warnings.is_empty() => {
                ("✓", Role::Good, summary.clone(), None)
            }
            RequestOutcome::Done { warnings, .. } => ("⚠", Role::Busy, warnings.join("; "), None),
        };
        let colon = if said.is_empty() { "" } else { ": " };
        rest.push(Entry {
            at: Some(request.at),
            sign,
            role,
            text: format!("{}{colon}{}", request.what, words::one_line(&said)),
            more: hint.iter().map(|hint| words::one_line(hint)).collect(),
            file: None,
        });
    }
    rest.sort_by_key(|entry| std::cmp::Reverse(entry.at));
    (true_still, rest)
}
