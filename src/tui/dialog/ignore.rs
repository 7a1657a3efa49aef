//! The question about a finding that is none: for what it is ignored, and why. The lines for `opdev.yaml` are
//! shown and copied; opdev does not write into a file of the user's by itself.

use super::answer::Answer;
use super::findings::FindingsList;
use crate::draw::boxes::boxed;
use crate::layer::{Canvas, Layer};
use crate::view::ViewState;
use crossterm::event::KeyCode;
use opdev_event::{RuleFinding, words};
use opdev_panes::keys::chord::Key;
use opdev_panes::text::{Row, clean};
use opdev_panes::theme::Role;
use opdev_state::State;

/// The longest reason.
const LONGEST: usize = 200;

/// The dialog.
#[derive(Debug)]
pub(crate) struct IgnoreFinding {
    /// The list that it was opened from, and goes back to.
    from: FindingsList,
    title: String,
    rule: String,
    kind: String,
    name: String,
    /// The chosen scope: 0 objects of this name, 1 their kind, 2 the whole project.
    scope: usize,
    because: String,
}

impl IgnoreFinding {
    /// For this finding.
    pub(super) fn of(finding: &RuleFinding, from: FindingsList) -> Self {
        IgnoreFinding {
            from,
            title: format!("{} · {}", finding.title, words::short_ref(&finding.object)),
            rule: finding.rule.clone(),
            kind: finding.object.gvk.kind.clone(),
            name: finding.object.name.clone(),
            scope: 0,
            because: String::new(),
        }
    }

    /// The lines of `opdev.yaml`. A string of JSON is one of YAML, too, whatever is in it.
    fn lines(&self) -> String {
        let quoted = |text: &str| serde_json::Value::from(text).to_string();
        let mut text = format!("findings:\n  ignore:\n    - rule: {}\n", self.rule);
        if self.scope < 2 {
            text.push_str(&format!("      kind: {}\n", quoted(&self.kind)));
        }
        if self.scope < 1 {
            text.push_str(&format!("      name: {}\n", quoted(&self.name)));
        }
        text.push_str(&format!("      because: {}\n", quoted(self.because.trim())));
        text
    }
}

impl Layer for IgnoreFinding {
    fn key(&mut self, key: Key, view: &mut ViewState, _state: &State) -> Answer {
        match (key.code, key.typed()) {
            (KeyCode::Esc, _) => return Answer::Open(Box::new(self.from.clone())),
            (KeyCode::Down | KeyCode::Tab, _) => self.scope = (self.scope + 1) % 3,
            (KeyCode::Up, _) => self.scope = (self.scope + 2) % 3,
            // Without a reason opdev does not take the file.
            (KeyCode::Enter, _) if self.because.trim().is_empty() => {
                view.told.message = Some("say first because of what: opdev.yaml needs a reason".to_owned());
            }
            (KeyCode::Enter, _) => return Answer::Copy("lines that ignore it, for opdev.yaml", self.lines()),
            (KeyCode::Backspace, _) => {
                self.because.pop();
            }
            (KeyCode::Char('u' | 'w'), None) if key.ctrl => self.because.clear(),
            (_, Some(c)) if self.because.len() < LONGEST => self.because.push(c),
            _ => {}
        }
        Answer::Stay
    }

    fn draw(&self, _state: &State, view: &mut ViewState, canvas: &mut Canvas<'_>) {
        let scopes = [
            format!("every {} called {}", self.kind, self.name),
            format!("every {}", self.kind),
            format!("the rule {} in this project", self.rule),
        ];
        let mut rows = vec![Row::new(Role::Text, format!(" {}", clean(&self.title))), Row::default()];
        for (at, scope) in scopes.iter().enumerate() {
            let name = if at == 0 { "For" } else { "" };
            let dot = if at == self.scope { "(•)" } else { "( )" };
            let role = if at == self.scope { Role::Title } else { Role::Text };
            rows.push(
                Row::new(Role::Dim, format!(" {name:<9}")).and(role, format!("{dot} {}", clean(scope))),
            );
        }
        let because = format!("{}▏", clean(&self.because));
        rows.push(Row::new(Role::Dim, format!(" {:<9}", "Because")).and(Role::Text, because));
        rows.push(Row::default());
        rows.push(Row::new(Role::Dim, " Put this into opdev.yaml; the next start of opdev reads it:"));
        rows.extend(self.lines().lines().map(|line| Row::new(Role::Text, format!("   {}", clean(line)))));
        rows.push(Row::default());
        rows.push(
            Row::new(Role::Key, " enter")
                .and(Role::Text, " copy these lines  ")
                .and(Role::Key, "↑↓")
                .and(Role::Text, " for what  ")
                .and(Role::Key, "esc")
                .and(Role::Text, " back "),
        );
        boxed("Ignore this finding?", &rows, None, view, canvas);
    }

    fn paste(&mut self, text: &str, _view: &mut ViewState) {
        let room = LONGEST.saturating_sub(self.because.len());
        self.because.extend(text.chars().take(room));
    }
}
