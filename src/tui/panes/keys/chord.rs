//! Keys by name (`ctrl-c`, `shift-tab`, `D`), alone or one after the other (`g g`). What they do is in
//! `keymap`.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use std::fmt;

/// One key with its modifiers, in one spelling however the terminal reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    /// The key.
    pub code: KeyCode,
    /// True if control is held.
    pub ctrl: bool,
    /// True if alt is held.
    pub alt: bool,
}

impl Key {
    /// A key without modifiers.
    pub fn plain(code: KeyCode) -> Self {
        Key { code, ctrl: false, alt: false }
    }

    /// A character, as typed.
    pub fn char(c: char) -> Self {
        Key::plain(KeyCode::Char(c))
    }

    /// The character this key types into a text field.
    pub fn typed(self) -> Option<char> {
        match self.code {
            KeyCode::Char(c) if !self.ctrl && !self.alt => Some(c),
            _ => None,
        }
    }

    /// Reads a key's name.
    pub fn parse(name: &str) -> Option<Key> {
        let (mut ctrl, mut alt, mut shift) = (false, false, false);
        let mut rest = name;
        loop {
            if let Some(after) = rest.strip_prefix("ctrl-") {
                (ctrl, rest) = (true, after);
            } else if let Some(after) = rest.strip_prefix("alt-") {
                (alt, rest) = (true, after);
            } else if let Some(after) = rest.strip_prefix("shift-") {
                (shift, rest) = (true, after);
            } else {
                break;
            }
        }
        let mut letters = rest.chars();
        let code = match (letters.next(), letters.next(), rest) {
            (Some(c), None, _) if shift => KeyCode::Char(c.to_ascii_uppercase()),
            (Some(c), None, _) => KeyCode::Char(c),
            (_, _, "tab") if shift => KeyCode::BackTab,
            (Some('f'), Some('1'..='9'), _) => KeyCode::F(rest[1..].parse().ok().filter(|n| *n <= 12)?),
            _ => NAMES.iter().find(|(known, _)| *known == rest)?.1,
        };
        Some(Key { code, ctrl, alt })
    }
}

const NAMES: [(&str, KeyCode); 15] = [
    ("enter", KeyCode::Enter),
    ("esc", KeyCode::Esc),
    ("tab", KeyCode::Tab),
    ("shift-tab", KeyCode::BackTab),
    ("space", KeyCode::Char(' ')),
    ("backspace", KeyCode::Backspace),
    ("delete", KeyCode::Delete),
    ("up", KeyCode::Up),
    ("down", KeyCode::Down),
    ("left", KeyCode::Left),
    ("right", KeyCode::Right),
    ("home", KeyCode::Home),
    ("end", KeyCode::End),
    ("pgup", KeyCode::PageUp),
    ("pgdn", KeyCode::PageDown),
];

impl From<KeyEvent> for Key {
    fn from(event: KeyEvent) -> Self {
        let ctrl = event.modifiers.contains(KeyModifiers::CONTROL);
        let alt = event.modifiers.contains(KeyModifiers::ALT);
        let shift = event.modifiers.contains(KeyModifiers::SHIFT);
        let code = match event.code {
            KeyCode::Char(c) if ctrl => KeyCode::Char(c.to_ascii_lowercase()),
            KeyCode::Char(c) if shift => KeyCode::Char(c.to_uppercase().next().unwrap_or(c)),
            KeyCode::Tab if shift => KeyCode::BackTab,
            code => code,
        };
        Key { code, ctrl, alt }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.ctrl {
            f.write_str("ctrl-")?;
        }
        if self.alt {
            f.write_str("alt-")?;
        }
        match (NAMES.iter().find(|(_, code)| *code == self.code), self.code) {
            (Some((name, _)), _) => f.write_str(name),
            (None, KeyCode::Char(c)) => write!(f, "{c}"),
            (None, KeyCode::F(n)) => write!(f, "f{n}"),
            (None, code) => write!(f, "{code}"),
        }
    }
}

/// Keys typed one after the other; most often just one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Chord(pub Vec<Key>);

impl Chord {
    /// Reads the names of up to three keys, with spaces between them.
    pub fn parse(names: &str) -> Option<Chord> {
        let keys: Option<Vec<Key>> = names.split_whitespace().map(Key::parse).collect();
        keys.filter(|keys| (1..=3).contains(&keys.len())).map(Chord)
    }
}

impl fmt::Display for Chord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, key) in self.0.iter().enumerate() {
            write!(f, "{}{key}", if i > 0 { " " } else { "" })?;
        }
        Ok(())
    }
}

/// Says whether two chords cannot both be typed.
pub fn collide(a: &Chord, b: &Chord) -> bool {
    a.0.starts_with(&b.0) || b.0.starts_with(&a.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminals_report_shift_in_two_ways() {
        let upper = Key::from(KeyEvent::new(KeyCode::Char('D'), KeyModifiers::SHIFT));
        let lower = Key::from(KeyEvent::new(KeyCode::Char('d'), KeyModifiers::SHIFT));
        assert_eq!((upper, lower), (Key::char('D'), Key::char('D')));
        let back = Key::from(KeyEvent::new(KeyCode::Tab, KeyModifiers::SHIFT));
        assert_eq!(back.to_string(), "shift-tab");
    }

    #[test]
    fn chords_are_up_to_three_keys() {
        assert_eq!(Chord::parse(" g  ctrl-p ").unwrap().to_string(), "g ctrl-p");
        assert_eq!(Chord::parse("f12").unwrap().0, [Key::plain(KeyCode::F(12))]);
        for wrong in ["", "g g g g", "g fly", "f13", "f1x"] {
            assert_eq!(Chord::parse(wrong), None, "{wrong}");
        }
    }
}
