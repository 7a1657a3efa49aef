//! What a new object begins with: the text of a sample, or what a kind's schema says.

use super::answer::Answer;
use crate::event::{NewFrom, Request};
use crate::state::State;
use crate::tui::filter::passes;
use crate::tui::keys::Key;
use crossterm::event::KeyCode;

/// The rows that pass what was typed: kinds by their schema first, then samples.
pub(in crate::tui) fn beginnings(state: &State, typed: &str) -> Vec<(NewFrom, String)> {
    let kinds = state.kinds().iter().map(|kind| {
        let from = NewFrom::Kind { gvk: kind.gvk.clone() };
        (from, format!("{}  from its schema", kind.gvk.kind))
    });
    let samples = state.samples().iter().map(|sample| {
        let from = NewFrom::Sample { path: sample.path.clone() };
        (
            from,
            format!("{}  like {} of {}", sample.kind_among(state.samples()), sample.object.name, sample.path),
        )
    });
    kinds.chain(samples).filter(|(_, text)| passes(typed, text)).collect()
}

pub(super) fn key(typed: &mut String, index: &mut usize, key: Key, state: &State) -> Answer {
    let all = beginnings(state, typed);
    let last = all.len().saturating_sub(1);
    *index = (*index).min(last);
    match (key.code, key.typed()) {
        (KeyCode::Esc, _) => return Answer::Close,
        (KeyCode::Enter, _) => {
            let chosen = all.into_iter().nth(*index);
            return chosen.map_or(Answer::Stay, |(from, _)| Answer::Ask(Request::New { from }));
        }
        (KeyCode::Down | KeyCode::Tab, _) => *index = (*index + 1).min(last),
        (KeyCode::Up | KeyCode::BackTab, _) => *index = index.saturating_sub(1),
        (KeyCode::Backspace, _) => {
            typed.pop();
            *index = 0;
        }
        (KeyCode::Char('u' | 'w'), None) if key.ctrl => typed.clear(),
        (_, Some(c)) if typed.len() < 200 => {
            typed.push(c);
            *index = 0;
        }
        _ => {}
    }
    Answer::Stay
}
