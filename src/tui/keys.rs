//! Keys by name (`ctrl-c`, `shift-tab`, `D`) and the map from keys to actions. The defaults come from `action`;
//! what the user binds anew replaces them.

use super::action::{ACTIONS, Action, Do};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use std::collections::BTreeMap;
use std::fmt;

/// One key with its modifiers, in one spelling however the terminal reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    /// The key.
    pub code: KeyCode,
    /// Whether control is held.
    pub ctrl: bool,
    /// Whether alt is held.
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
            (None, code) => write!(f, "{code}"),
        }
    }
}

/// Which key does what.
#[derive(Clone, Debug)]
pub struct Keymap {
    bound: Vec<(Key, Do)>,
}

impl Default for Keymap {
    fn default() -> Self {
        let keys = |action: &Action| {
            action
                .keys
                .iter()
                .filter_map(|name| Key::parse(name))
                .map(|key| (key, action.does))
                .collect::<Vec<_>>()
        };
        Keymap { bound: ACTIONS.iter().flat_map(keys).collect() }
    }
}

impl Keymap {
    /// The defaults with some actions bound anew, by id. What cannot be is left as it was and told.
    pub fn with(own: &BTreeMap<String, Vec<String>>) -> (Self, Vec<String>) {
        let mut map = Keymap::default();
        let mut wrong = Vec::new();
        for (id, names) in own {
            let Some(action) = ACTIONS.iter().find(|action| action.id == id) else {
                wrong.push(format!("keys: there is no action {id}"));
                continue;
            };
            map.bound.retain(|(_, does)| *does != action.does);
            for name in names {
                match Key::parse(name) {
                    None => wrong.push(format!("keys: {id}: {name} is no key")),
                    Some(key) if action.destructive && RISKY.contains(&name.as_str()) => {
                        wrong
                            .push(format!("keys: {id}: {key} moves elsewhere and must not destroy anything"));
                    }
                    Some(key) => {
                        map.bound.retain(|(known, _)| *known != key);
                        map.bound.push((key, action.does));
                    }
                }
            }
        }
        (map, wrong)
    }

    /// What a key does.
    pub fn action(&self, key: Key) -> Option<&'static Action> {
        let (_, does) = self.bound.iter().find(|(known, _)| *known == key)?;
        ACTIONS.iter().find(|action| action.does == *does)
    }

    /// The keys of an action, the first one first.
    pub fn keys(&self, does: Do) -> Vec<Key> {
        self.bound.iter().filter(|(_, known)| *known == does).map(|(key, _)| *key).collect()
    }
}

/// Keys that move in other programs: never for what cannot be undone.
const RISKY: [&str; 6] = ["k", "j", "ctrl-k", "ctrl-d", "d", "x"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_default_key_has_a_name_and_one_meaning() {
        let mut seen: BTreeMap<String, &str> = BTreeMap::new();
        for action in ACTIONS {
            for name in action.keys {
                let key = Key::parse(name).unwrap_or_else(|| panic!("{name} of {}", action.id));
                assert_eq!(key.to_string(), *name, "{}", action.id);
                if let Some(other) = seen.insert(key.to_string(), action.id) {
                    panic!("{name} means {other} and {}", action.id);
                }
                assert!(!(action.destructive && RISKY.contains(name)), "{} on {name}", action.id);
            }
        }
    }

    #[test]
    fn the_user_binds_anew_but_never_a_moving_key_to_destruction() {
        let own = BTreeMap::from([
            ("delete".to_owned(), vec!["ctrl-d".to_owned(), "X".to_owned()]),
            ("zoom".to_owned(), vec!["f".to_owned()]),
            ("fly".to_owned(), vec!["w".to_owned()]),
        ]);
        let (map, wrong) = Keymap::with(&own);
        assert_eq!(wrong.len(), 2, "{wrong:?}");
        assert_eq!(map.action(Key::char('X')).map(|a| a.id), Some("delete"));
        assert_eq!(map.action(Key::char('D')).map(|a| a.id), None);
        assert_eq!(map.action(Key::char('f')).map(|a| a.id), Some("zoom"));
        assert_eq!(map.action(Key::char('z')).map(|a| a.id), None);
        assert_eq!(map.action(Key::parse("ctrl-d").unwrap()).map(|a| a.id), Some("half-down"));
    }

    #[test]
    fn terminals_report_shift_in_two_ways() {
        let upper = Key::from(KeyEvent::new(KeyCode::Char('D'), KeyModifiers::SHIFT));
        let lower = Key::from(KeyEvent::new(KeyCode::Char('d'), KeyModifiers::SHIFT));
        assert_eq!((upper, lower), (Key::char('D'), Key::char('D')));
        let back = Key::from(KeyEvent::new(KeyCode::Tab, KeyModifiers::SHIFT));
        assert_eq!(back.to_string(), "shift-tab");
    }
}
