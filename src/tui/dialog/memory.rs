//! The use of memory: the history with its budget, and the objects.

use super::answer::Answer;
use crate::draw::boxes::boxed;
use crate::layer::{Canvas, Layer};
use crate::view::ViewState;
use crossterm::event::KeyCode;
use opdev_event::words;
use opdev_panes::keys::chord::Key;
use opdev_panes::text::{Row, left, right};
use opdev_panes::theme::Role;
use opdev_state::State;
use opdev_state::budget::{History, Holding};

/// The box.
#[derive(Debug)]
pub(crate) struct Memory;

impl Layer for Memory {
    /// There is nothing to do but to leave it.
    fn key(&mut self, key: Key, _view: &mut ViewState, _state: &State) -> Answer {
        let leaves = matches!(key.code, KeyCode::Esc | KeyCode::Enter) || key.typed() == Some('q');
        if leaves { Answer::Close } else { Answer::Stay }
    }

    fn draw(&self, state: &State, view: &mut ViewState, canvas: &mut Canvas<'_>) {
        let holdings = state.holdings();
        let line = |what: &str, kept: &str, bytes: &str, forgotten: &str| {
            format!(" {} {} {} {} ", left(what, 26), right(kept, 8), right(bytes, 10), right(forgotten, 11))
        };
        let mut rows = vec![Row::new(Role::Dim, line("HISTORY", "KEPT", "BYTES", "FORGOTTEN"))];
        for Holding { what, kept, bytes, forgotten } in holdings {
            let text = line(word(what), &kept.to_string(), &words::bytes(bytes), &forgotten.to_string());
            rows.push(Row::new(Role::Text, text));
        }
        let all: usize = holdings.iter().map(|holding| holding.bytes).sum();
        let budget = words::bytes(state.history_budget());
        rows.push(Row::new(Role::Text, format!(" {} of {budget} are in use.", words::bytes(all))));
        rows.push(Row::new(Role::Dim, " `history` in opdev.yaml, or --history, changes how much is kept."));
        rows.push(Row::new(Role::Dim, " Whoever holds most forgets its oldest first."));
        rows.push(Row::default());
        let (known, unrelated) = state.objects.weight();
        rows.push(Row::new(Role::Dim, line("OBJECTS", "KNOWN", "BYTES", "")));
        let mut objects = |what: &str, (count, bytes): (usize, usize)| {
            rows.push(Row::new(Role::Text, line(what, &count.to_string(), &words::bytes(bytes), "")));
        };
        objects("of the project", known);
        objects("others, by their names", unrelated);
        boxed("Memory · esc closes", &rows, None, view, canvas);
    }
}

fn word(what: History) -> &'static str {
    match what {
        History::Reconciles => "reconciles and their calls",
        History::Versions => "older versions of objects",
        History::Deleted => "deleted objects",
        History::Log => "log lines",
        History::PodLogs => "log lines of pods",
    }
}
