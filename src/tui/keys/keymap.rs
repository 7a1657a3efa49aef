//! Which key does what, and which keys were typed so far. The defaults come from `registry`; what the settings bind anew replaces them, all or nothing:
//! a map with a mistake in it never takes the place of one without.

use super::row::Row;
use jiff::Timestamp;
use opdev_event::{Binding, Diagnostic, Severity};
use opdev_object::spelling::nearest;
use opdev_panes::keys::action::{Action, Do, KeyNames};
use opdev_panes::keys::chord::{Chord, Key, collide};
use opdev_panes::keys::user_command::OwnCommand;
use std::collections::BTreeMap;

/// Keys.
#[derive(Default)]
pub(crate) struct Typing {
    /// The action of each key.
    pub(crate) map: Keymap,
    /// The commands of the user's own settings.
    pub(crate) own: Vec<OwnCommand>,
    /// Keys typed that begin something longer.
    pub(crate) typed: Vec<Key>,
    /// When they were first drawn.
    pub(crate) typed_at: Option<Timestamp>,
}

impl Typing {
    /// The same keys on another cluster.
    pub(crate) fn elsewhere(self) -> Self {
        Typing { map: self.map, own: self.own, ..Typing::default() }
    }
}

/// The action of each key.
#[derive(Clone, Debug)]
pub struct Keymap {
    rows: &'static [Row],
    bound: Vec<(Chord, Do)>,
}

/// The meaning of the keys typed so far.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Found {
    /// An action.
    Action(&'static Row),
    /// They begin something longer.
    Prefix,
    /// Nothing.
    Nothing,
}

/// Keys that move in other programs: never for what cannot be undone.
const RISKY: [&str; 6] = ["k", "j", "ctrl-k", "ctrl-d", "d", "x"];

impl Keymap {
    /// The keys that the rows of the actions have by default. The registry makes its own the default of all.
    pub(crate) fn of(rows: &'static [Row]) -> Self {
        let keys = |action: &Row| {
            let chords = action.keys.iter().filter_map(|name| Chord::parse(name));
            chords.map(|chord| (chord, action.does)).collect::<Vec<_>>()
        };
        Keymap { rows, bound: rows.iter().flat_map(keys).collect() }
    }

    /// The rows of all actions, in the order of footer and help.
    pub(crate) fn rows(&self) -> &'static [Row] {
        self.rows
    }

    /// The row of an action.
    pub(crate) fn by(&self, does: Do) -> Option<&'static Row> {
        self.rows.iter().find(|row| row.does == does)
    }

    /// The defaults with some actions bound anew. Of two bindings of one action the later one counts. A key that is
    /// bound anew is taken from the action that has it by default.
    ///
    /// # Errors
    /// Everything that is wrong, with its place: unknown actions, names that are no keys, keys bound twice, a
    /// moving key bound to something that destroys.
    pub fn with(bindings: &[Binding]) -> Result<Self, Vec<Diagnostic>> {
        let mut map = Keymap::default();
        let mut wrong = Vec::new();
        let mut last: BTreeMap<&str, &Binding> = BTreeMap::new();
        for binding in bindings {
            last.insert(&binding.action, binding);
        }
        let mut own: Vec<(Chord, &Row, &Binding)> = Vec::new();
        for binding in last.into_values() {
            let Some(action) = map.rows.iter().find(|action| action.id == binding.action) else {
                wrong.push(unknown(binding, map.rows));
                continue;
            };
            map.bound.retain(|(_, does)| *does != action.does);
            for name in &binding.keys {
                match chord(name, action, binding) {
                    Ok(chord) => own.push((chord, action, binding)),
                    Err(problem) => wrong.push(*problem),
                }
            }
            if action.does == Do::Stop && binding.keys.is_empty() {
                wrong.push(told(
                    binding,
                    "stop needs a key: it is the way out of everything".to_owned(),
                    None,
                ));
            }
        }
        for (i, (chord, action, binding)) in own.iter().enumerate() {
            for (other, before, where_before) in &own[..i] {
                if action.finding == before.finding && collide(chord, other) {
                    let place = &where_before.place;
                    let message =
                        format!("{chord} is bound to {} and, in {place}, to {}", action.id, before.id);
                    wrong.push(told(binding, message, Some("give one of them another key".to_owned())));
                }
            }
            let finding = |does: Do| map.rows.iter().any(|known| known.does == does && known.finding);
            map.bound.retain(|(known, does)| {
                let mine = own.iter().any(|(chord, action, _)| known == chord && action.does == *does);
                mine || finding(*does) != action.finding || !collide(known, chord)
            });
            map.bound.push((chord.clone(), action.does));
        }
        if wrong.is_empty() { Ok(map) } else { Err(wrong) }
    }

    /// Takes a key from whatever has it, for a command of the user's own.
    pub fn give_up(&mut self, chord: &Chord) {
        self.bound.retain(|(known, _)| !collide(known, chord));
    }

    /// The meaning of keys typed one after the other. While one finds, the keys of finding come first.
    pub(crate) fn find(&self, typed: &[Key], finding: bool) -> Found {
        let hits = self.bound.iter().filter(|(chord, _)| chord.0 == typed);
        let mut actions: Vec<&'static Row> =
            hits.filter_map(|(_, does)| self.by(*does)).filter(|action| finding || !action.finding).collect();
        actions.sort_by_key(|action| !action.finding);
        if let Some(action) = actions.first() {
            return Found::Action(action);
        }
        let longer = |(chord, _): &(Chord, Do)| chord.0.len() > typed.len() && chord.0.starts_with(typed);
        if self.bound.iter().any(longer) { Found::Prefix } else { Found::Nothing }
    }

    /// The keys that may follow those typed so far.
    pub(crate) fn follow_ups(&self, typed: &[Key]) -> Vec<(String, &'static Row)> {
        let mut out: Vec<(String, &'static Row)> = Vec::new();
        for action in self.rows {
            for (chord, _) in self.bound.iter().filter(|(_, does)| *does == action.does) {
                if chord.0.len() > typed.len() && chord.0.starts_with(typed) {
                    out.push((Chord(chord.0[typed.len()..].to_vec()).to_string(), action));
                }
            }
        }
        out
    }

    /// The keys of an action, the first one first.
    pub fn keys(&self, does: Do) -> Vec<Chord> {
        self.bound.iter().filter(|(_, known)| *known == does).map(|(chord, _)| chord.clone()).collect()
    }

    /// All keys of an action in one text; empty where it has none.
    pub fn text(&self, does: Do) -> String {
        self.keys(does).iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
    }
}

impl KeyNames for Keymap {
    fn first(&self, does: Do) -> String {
        self.keys(does).first().map(ToString::to_string).unwrap_or_default()
    }
}

fn unknown(binding: &Binding, rows: &[Row]) -> Diagnostic {
    let ids: Vec<&str> = rows.iter().map(|action| action.id).collect();
    let hint = nearest(&binding.action, ids).map(|near| format!("did you mean `{near}`?"));
    let hint = hint.or_else(|| Some("docs/keys.md and the help (?) name all actions".to_owned()));
    told(binding, format!("there is no action `{}`", binding.action), hint)
}

fn chord(name: &str, action: &Action, binding: &Binding) -> Result<Chord, Box<Diagnostic>> {
    let Some(chord) = Chord::parse(name) else {
        let hint = "keys are named like x, D, ctrl-p, alt-f, shift-tab, enter, space, pgdn or f5, and follow each \
                    other like g g";
        return Err(Box::new(told(binding, format!("`{name}` is no key"), Some(hint.to_owned()))));
    };
    if action.destructive && RISKY.contains(&chord.to_string().as_str()) {
        let message = format!("{chord} moves in other programs and must not {}", action.id);
        return Err(Box::new(told(binding, message, None)));
    }
    Ok(chord)
}

fn told(binding: &Binding, message: String, hint: Option<String>) -> Diagnostic {
    let place = Some(binding.place.clone());
    Diagnostic { severity: Severity::Error, message, place, excerpt: None, hint, kind: None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::registry::ACTIONS;
    use expect_test::expect;
    use opdev_event::Place;

    fn bind(line: u32, action: &str, keys: &[&str]) -> Binding {
        let place = Place { file: "config.yaml".to_owned(), line, column: 3 };
        Binding { action: action.to_owned(), keys: keys.iter().map(|key| (*key).to_owned()).collect(), place }
    }

    fn id(map: &Keymap, keys: &str) -> Option<&'static str> {
        match map.find(&Chord::parse(keys).unwrap().0, false) {
            Found::Action(action) => Some(action.id),
            Found::Prefix => Some("…"),
            Found::Nothing => None,
        }
    }

    fn problems(bindings: &[Binding]) -> Vec<String> {
        let wrong = Keymap::with(bindings).unwrap_err();
        wrong
            .iter()
            .map(|p| {
                format!(
                    "{}: {}; {}",
                    p.place.as_ref().unwrap(),
                    p.message,
                    p.hint.clone().unwrap_or_default()
                )
            })
            .collect()
    }

    #[test]
    fn every_default_key_has_a_name_and_one_meaning() {
        let mut seen: Vec<(Chord, &Row)> = Vec::new();
        for action in ACTIONS.iter() {
            for name in action.keys {
                let chord = Chord::parse(name).unwrap_or_else(|| panic!("{name} of {}", action.id));
                assert_eq!(chord.to_string(), *name, "{}", action.id);
                for (other, before) in &seen {
                    let clash = before.finding == action.finding && collide(&chord, other);
                    assert!(!clash, "{name} means {} and {other} means {}", action.id, before.id);
                }
                assert!(!(action.destructive && RISKY.contains(name)), "{} on {name}", action.id);
                seen.push((chord, action));
            }
        }
    }

    #[test]
    fn a_binding_takes_its_key_from_the_defaults() {
        let map =
            Keymap::with(&[bind(1, "zoom", &["w"]), bind(2, "zoom", &["s", "g z"]), bind(3, "reload", &[])])
                .unwrap();
        assert_eq!(id(&map, "s"), Some("zoom"), "scale has it by default");
        assert_eq!(id(&map, "w"), Some("wrap"), "the later binding counts");
        assert_eq!(id(&map, "z"), None);
        assert_eq!(id(&map, "R"), None);
        assert_eq!((id(&map, "g"), id(&map, "g z"), id(&map, "g g")), (Some("…"), Some("zoom"), Some("top")));
        let map = Keymap::with(&[bind(1, "top", &["g"])]).unwrap();
        assert_eq!(id(&map, "g"), Some("top"), "what began with it has no key any more");
    }

    #[test]
    fn two_actions_may_trade_their_keys() {
        let map = Keymap::with(&[bind(1, "zoom", &["w"]), bind(2, "wrap", &["z"])]).unwrap();
        assert_eq!((id(&map, "w"), id(&map, "z")), (Some("zoom"), Some("wrap")));
    }

    #[test]
    fn mistakes_are_told_with_their_places_and_suggestions() {
        let told = problems(&[bind(4, "zom", &["f"])]);
        assert_eq!(told, ["config.yaml:4:3: there is no action `zom`; did you mean `zoom`?"]);
        let told = problems(&[bind(4, "zoom", &["hyper-f"])]);
        assert!(told[0].starts_with("config.yaml:4:3: `hyper-f` is no key; keys are named"), "{told:?}");
        let told = problems(&[bind(4, "wrap", &["F"]), bind(5, "zoom", &["F"])]);
        expect!["config.yaml:5:3: F is bound to zoom and, in config.yaml:4:3, to wrap; give one of them another key"]
        .assert_eq(&told[0]);
        let told = problems(&[bind(4, "wrap", &["F x"]), bind(5, "zoom", &["F"])]);
        assert_eq!(told.len(), 1, "a key cannot both act and begin something: {told:?}");
        assert!(problems(&[bind(4, "delete", &["ctrl-d"])])[0].contains("must not delete"));
        assert!(problems(&[bind(4, "stop", &[])])[0].contains("the way out"));
    }
}
