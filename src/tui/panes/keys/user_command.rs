//! Commands of the user's own settings with the keys that start them. `programs` starts them.

use super::chord::{Chord, collide};
use opdev_event::{Diagnostic, Severity, UserCommand};

/// A command of the user's own settings, with its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnCommand {
    pub key: Option<Chord>,
    pub command: UserCommand,
}

/// Keys that do the same in every dialog: leaving, and escape.
const ALWAYS: [&str; 2] = ["ctrl-c", "esc"];

/// Reads the keys of the user's commands.
///
/// # Errors
/// Those that are none, with their places.
pub fn with_keys(commands: &[UserCommand]) -> Result<Vec<OwnCommand>, Vec<Diagnostic>> {
    let mut wrong = Vec::new();
    let mut own: Vec<OwnCommand> = Vec::new();
    let problem = |command: &UserCommand, message: String| Diagnostic {
        severity: Severity::Error,
        message,
        place: Some(command.place.clone()),
        excerpt: None,
        hint: Some("keys are named like x, D, ctrl-p, alt-f or g e".to_owned()),
        kind: None,
    };
    for command in commands {
        let key = match command.key.as_deref().map(|name| (name, Chord::parse(name))) {
            None => None,
            Some((_, Some(chord))) => Some(chord),
            Some((name, None)) => {
                wrong.push(problem(command, format!("`{name}` of the command {} is no key", command.name)));
                None
            }
        };
        if let Some(key) = &key {
            let same = |known: &&OwnCommand| known.key.as_ref().is_some_and(|known| collide(known, key));
            if let Some(other) = own.iter().find(same) {
                let message = format!(
                    "the keys of the commands {} and {} cannot both be typed",
                    other.command.name, command.name
                );
                wrong.push(problem(command, message));
            }
            if ALWAYS.iter().any(|name| Chord::parse(name).is_some_and(|always| collide(&always, key))) {
                let message =
                    format!("{key} of the command {} works whatever is open, and stays", command.name);
                wrong.push(problem(command, message));
            }
        }
        own.push(OwnCommand { key, command: command.clone() });
    }
    if wrong.is_empty() { Ok(own) } else { Err(wrong) }
}
