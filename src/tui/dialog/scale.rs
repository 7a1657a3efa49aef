//! The scale dialog: a number for one object or for all marked ones.

use super::answer::Answer;
use crate::draw::boxes::{boxed, named};
use crate::layer::{Canvas, Layer};
use crate::view::ViewState;
use crossterm::event::KeyCode;
use opdev_event::{ObjectTask, Task};
use opdev_object::meta::ObjectRef;
use opdev_panes::keys::chord::Key;
use opdev_panes::replicas::replicas;
use opdev_panes::text::{Row, wrap};
use opdev_panes::theme::Role;
use opdev_state::{Seen, State, tree};
use std::sync::Arc;

/// The scale dialog.
#[derive(Clone, Debug)]
pub(crate) struct Scale {
    /// The objects.
    pub objects: Vec<ObjectRef>,
    /// How many the first one asks for now.
    pub from: Option<i64>,
    /// The text of the field.
    pub typed: String,
    /// True if the field still holds what it was opened with: typing replaces it.
    pub fresh: bool,
    /// The custom resource whose reconciler will put the number back.
    pub owner: Option<String>,
}

impl Scale {
    /// For some objects.
    pub(crate) fn of(all: &[Arc<Seen>], state: &State) -> Self {
        let from = all.first().and_then(|seen| replicas(state, seen));
        let typed = from.map_or_else(String::new, |n| n.to_string());
        let owner = all.iter().find_map(|seen| reconciled_by(state, seen));
        let objects = all.iter().map(|seen| seen.object_ref.clone()).collect();
        Scale { objects, from, typed, fresh: true, owner }
    }

    /// The request once the number is known.
    pub(crate) fn task(&self, replicas: i32) -> Task {
        let one = |object: &ObjectRef| Task::from(ObjectTask::Scale { object: object.clone(), replicas });
        match self.objects.as_slice() {
            [object] => one(object),
            objects => Task::Each { tasks: objects.iter().map(one).collect() },
        }
    }
}

impl Layer for Scale {
    fn key(&mut self, key: Key, _view: &mut ViewState, _state: &State) -> Answer {
        let step =
            |typed: &str, by: i32| typed.parse::<i32>().unwrap_or(0).saturating_add(by).max(0).to_string();
        match (key.code, key.typed()) {
            (KeyCode::Esc, _) | (_, Some('q')) => return Answer::Close,
            (KeyCode::Enter, _) => {
                return match self.typed.parse() {
                    Ok(replicas) => Answer::Ask(self.task(replicas).into()),
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

    fn draw(&self, _state: &State, view: &mut ViewState, canvas: &mut Canvas<'_>) {
        let field = format!("{}▏", self.typed);
        let from = self.from.map_or_else(|| "not set".to_owned(), |n| n.to_string());
        let roomy = canvas.body.height > 12;
        let mut rows = named(&self.objects, if roomy { 8 } else { 2 });
        rows.extend(roomy.then(Row::default));
        rows.push(
            Row::new(Role::Text, " replicas  ")
                .and(Role::Key, field)
                .and(Role::Dim, format!("   now {from}")),
        );
        if let Some(owner) = &self.owner {
            let text =
                format!("{owner} owns it: its reconciler puts the number back, unless it is paused (p).");
            let lines = wrap(&text, (canvas.body.width as usize).saturating_sub(8).min(60));
            rows.extend(lines.into_iter().map(|line| Row::new(Role::Busy, format!(" {line} "))));
        }
        rows.extend(roomy.then(Row::default));
        rows.push(
            Row::new(Role::Key, " enter")
                .and(Role::Text, " scale  ")
                .and(Role::Key, "↑↓")
                .and(Role::Text, " more, fewer  ")
                .and(Role::Key, "esc")
                .and(Role::Text, " cancel "),
        );
        let title = match self.objects.as_slice() {
            [one] => format!("Scale {one}"),
            many => format!("Scale {} objects", many.len()),
        };
        boxed(&title, &rows, None, view, canvas);
    }

    /// A number takes the place of the one that stands there.
    fn paste(&mut self, text: &str, _view: &mut ViewState) {
        let text = text.trim();
        if text.len() < 8 && text.chars().all(|c| c.is_ascii_digit()) {
            text.clone_into(&mut self.typed);
            self.fresh = false;
        }
    }
}

/// The custom resource that a child belongs to, where its reconciler is at work: it puts back what others
/// change.
fn reconciled_by(state: &State, seen: &Seen) -> Option<String> {
    if state.is_custom(&seen.key.group, &seen.key.kind) {
        return None;
    }
    let root = tree::root_of(state, &seen.key)?;
    let works = state.only_shown(&root.group, &root.kind).is_none() && state.paused(&root).is_none();
    works.then(|| root.to_string())
}
