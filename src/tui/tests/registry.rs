//! A walk over the registry of actions: each is named, explained, in the palette and the help, can be bound
//! anew, and stands in `docs/keys.md`, which is written from it (`UPDATE_GOLDEN=1 cargo test`).

use super::fixture::busy;
use super::frames::{screen, text};
use crate::keys::keymap::{Found, Keymap};
use crate::keys::registry::ACTIONS;
use crate::view::ViewState;
use opdev_event::{Binding, Place};
use opdev_panes::keys::action::Section;
use opdev_panes::keys::chord::Key;
use std::collections::BTreeSet;
use std::fmt::Write as _;

#[test]
fn every_action_is_named_and_explained_once() {
    let (mut ids, mut does) = (BTreeSet::new(), Vec::new());
    let mut aliases = BTreeSet::new();
    for action in ACTIONS.iter() {
        assert!(ids.insert(action.id), "{} twice", action.id);
        assert!(!does.contains(&action.does), "{} does what another one does", action.id);
        does.push(action.does);
        assert!(
            action.id.chars().all(|c| c.is_ascii_lowercase() || c == '-' || c.is_ascii_digit()),
            "{}",
            action.id
        );
        assert!(!action.title.is_empty() && action.title.len() <= 20, "{} has no fitting title", action.id);
        assert!(action.about.ends_with('.') && action.about.len() > 8, "{} is not explained", action.id);
        for alias in action.aliases {
            assert!(aliases.insert(alias), "{alias} means two things");
        }
    }
    for alias in aliases {
        let other = ACTIONS.iter().find(|action| action.id == *alias && !action.aliases.contains(alias));
        assert!(other.is_none(), "{alias} is an alias and another action");
    }
}

#[test]
fn every_action_is_in_the_help() {
    let state = busy();
    let mut view = ViewState::default();
    screen(&state, &mut view, "? ?", (170, 150));
    let shown = text(&screen(&state, &mut view, "", (170, 150)));
    for action in ACTIONS.iter() {
        assert!(shown.contains(action.about), "{} is not in the help:\n{shown}", action.id);
    }
}

#[test]
fn every_action_can_be_bound_anew() {
    for action in ACTIONS.iter() {
        let place = Place { file: "config.yaml".to_owned(), line: 1, column: 1 };
        let binding = Binding { action: action.id.to_owned(), keys: vec!["alt-ctrl-f9".to_owned()], place };
        let key = Key::parse("ctrl-alt-f9").unwrap();
        let map = Keymap::with(&[binding]).unwrap_or_else(|wrong| panic!("{}: {wrong:?}", action.id));
        let found = map.find(&[key], action.finding);
        assert!(matches!(found, Found::Action(found) if found.id == action.id), "{}", action.id);
        assert_eq!(map.keys(action.does).len(), 1, "{} keeps its old keys", action.id);
    }
}

/// The page as it should be.
fn page() -> String {
    let mut out = String::from(include_str!("../keys.md"));
    for section in Section::ALL {
        write!(out, "\n## {}\n\n| Keys | Action | What it does |\n|---|---|---|\n", section.title()).unwrap();
        for action in ACTIONS.iter().filter(|action| action.section == section) {
            let keys: Vec<String> =
                action.keys.iter().map(|key| format!("`{}`", key.replace('|', "\\|"))).collect();
            let names: Vec<String> = action.aliases.iter().map(|alias| format!("`:{alias}`")).collect();
            let names = if names.is_empty() { String::new() } else { format!(" Also {}.", names.join(", ")) };
            writeln!(out, "| {} | `{}` | {}{names} |", keys.join(" "), action.id, action.about).unwrap();
        }
    }
    out
}

#[test]
fn every_action_is_documented() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/keys.md");
    let page = page();
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(path, &page).unwrap();
    }
    let known = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        known == page,
        "docs/keys.md is not what the registry says; UPDATE_GOLDEN=1 cargo test writes it anew"
    );
}
