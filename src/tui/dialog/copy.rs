//! Texts to copy to the clipboard: one key each.

use super::answer::Answer;
use crate::draw::boxes::boxed;
use crate::layer::{Canvas, Layer, Need};
use crate::view::ViewState;
use crossterm::event::KeyCode;
use opdev_object::yaml;
use opdev_panes::keys::chord::Key;
use opdev_panes::kubectl;
use opdev_panes::text::{Row, cut, left};
use opdev_panes::theme::Role;
use opdev_state::State;
use serde_json::Value;

/// Longer texts do not get through to the clipboards of terminals.
const MOST_LINES: usize = 50_000;

/// Texts that one can copy: key, name, text.
fn copies(view: &ViewState, state: &State) -> Vec<(char, &'static str, String)> {
    let mut all = Vec::new();
    if let Some(seen) = view.subject(state) {
        let object = &seen.object_ref;
        let full = match &object.namespace {
            Some(namespace) => format!("{namespace}/{}", object.name),
            None => object.name.clone(),
        };
        let mut plain = Value::clone(&seen.object);
        if let Some(metadata) = plain.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("managedFields");
        }
        all.push(('n', "name", object.name.clone()));
        all.push(('f', "namespace/name", full));
        let what = if seen.metadata_only { "YAML of its metadata" } else { "YAML, secrets masked" };
        all.push(('y', what, yaml::to_string(&plain)));
        all.push(('k', "kubectl that shows it", kubectl::get(object, state)));
    }
    if !view.detail.lines.rows.is_empty() {
        let mut last: Vec<String> = Vec::new();
        let mut bytes = 0;
        for line in view.detail.lines.texts().rev() {
            bytes += line.len() + 1;
            if bytes > MOST_LINES {
                break;
            }
            last.push(line);
        }
        last.reverse();
        let what = if last.len() < view.detail.lines.rows.len() {
            "last lines of the tab"
        } else {
            "lines of the tab"
        };
        all.push(('o', what, last.join("\n")));
    }
    if let Some(command) = view.requests.last.as_ref().and_then(|request| kubectl::of(request, state)) {
        all.push(('l', "last action as kubectl", command));
    }
    all
}

/// The dialog: what can be copied.
#[derive(Debug, Default)]
pub(crate) struct Copy {
    /// The chosen row.
    index: usize,
}

impl Layer for Copy {
    fn key(&mut self, key: Key, view: &mut ViewState, state: &State) -> Answer {
        let all = copies(view, state);
        let last = all.len().saturating_sub(1);
        match (key.code, key.typed()) {
            (KeyCode::Esc, _) | (_, Some('q' | 'c')) => return Answer::Close,
            (KeyCode::Down | KeyCode::Tab, _) | (_, Some('j')) => self.index = (self.index + 1).min(last),
            (KeyCode::Up | KeyCode::BackTab, _) => self.index = self.index.saturating_sub(1),
            (KeyCode::Enter, _) => {
                return all
                    .into_iter()
                    .nth(self.index)
                    .map_or(Answer::Close, |(_, what, text)| Answer::Copy(what, text));
            }
            (_, Some(c)) => {
                if let Some((_, what, text)) = all.into_iter().find(|(key, ..)| *key == c) {
                    return Answer::Copy(what, text);
                }
            }
            _ => {}
        }
        Answer::Stay
    }

    fn draw(&self, state: &State, view: &mut ViewState, canvas: &mut Canvas<'_>) {
        let all = copies(view, state);
        let cells = (canvas.body.width as usize).saturating_sub(34).clamp(6, 64);
        let mut rows: Vec<Row> = all
            .iter()
            .map(|(key, what, text)| {
                let first = text.lines().next().unwrap_or_default();
                Row::new(Role::Key, format!(" {key} "))
                    .and(Role::Text, format!("{} ", left(what, 22)))
                    .and(Role::Dim, format!("{} ", cut(first, cells)))
            })
            .collect();
        if rows.is_empty() {
            rows.push(Row::new(Role::Dim, " Nothing is selected that could be copied. "));
        }
        let selected = (!all.is_empty()).then_some(self.index.min(all.len().saturating_sub(1)));
        boxed("Copy · esc closes", &rows, selected, view, canvas);
    }

    fn need(&self) -> Option<Need> {
        Some(Need::WholeObject)
    }
}
