//! The help: scrolls, and narrows to what is searched for after a slash.

use super::super::keys::Key;
use super::answer::Answer;
use crossterm::event::KeyCode;

/// A key in the help.
pub(super) fn key(scroll: &mut usize, typed: &mut Option<String>, key: Key) -> Answer {
    match (key.code, key.typed()) {
        (KeyCode::Down, _) => *scroll += 1,
        (KeyCode::Up, _) => *scroll = scroll.saturating_sub(1),
        (KeyCode::PageDown, _) => *scroll += 10,
        (KeyCode::PageUp, _) => *scroll = scroll.saturating_sub(10),
        (KeyCode::Home, _) => *scroll = 0,
        (KeyCode::Esc | KeyCode::Enter, _) if typed.is_none() => return Answer::Close,
        (KeyCode::Esc, _) => *typed = None,
        (KeyCode::Enter, _) => {}
        (code, letter) => match typed {
            Some(text) => narrow(text, scroll, key),
            None => match (code, letter) {
                (_, Some('/')) => (*typed, *scroll) = (Some(String::new()), 0),
                (_, Some('j')) => *scroll += 1,
                (_, Some('k')) => *scroll = scroll.saturating_sub(1),
                (_, Some(' ')) => *scroll += 10,
                (_, Some('g')) => *scroll = 0,
                (_, Some('q' | '?')) => return Answer::Close,
                _ => {}
            },
        },
    }
    Answer::Stay
}

fn narrow(text: &mut String, scroll: &mut usize, key: Key) {
    match (key.code, key.typed()) {
        (KeyCode::Backspace, _) => {
            text.pop();
        }
        (KeyCode::Char('u' | 'w'), None) if key.ctrl => text.clear(),
        (_, Some(c)) if text.len() < 200 => text.push(c),
        _ => return,
    }
    *scroll = 0;
}
