//! Parts that the lines of both commands have.

use opdev_event::{BackgroundRun, FindingSeverity, Place};
use serde::Deserialize;

/// Reads the lines of a command.
pub(super) trait Lines: Send {
    /// Takes a line in; what it does not know it leaves.
    fn take(&mut self, line: &str, run: &mut BackgroundRun);
    /// Returns true if the last line has come.
    fn is_whole(&self) -> bool;
    /// Why the command came to no end of its own, though it says so itself.
    fn problem(&self) -> Option<String> {
        None
    }
}

/// A level as the commands tell it.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum LineLevel {
    Error,
    Warning,
    Hint,
}

impl From<LineLevel> for FindingSeverity {
    fn from(level: LineLevel) -> Self {
        match level {
            LineLevel::Error => FindingSeverity::Error,
            LineLevel::Warning => FindingSeverity::Warning,
            LineLevel::Hint => FindingSeverity::Hint,
        }
    }
}

/// The place that a text begins with, such as `controllers/web.go:42  the last create of it`.
pub(super) fn place(text: &str) -> Option<Place> {
    let first = text.split_whitespace().next()?;
    let (file, line) = first.rsplit_once(':')?;
    Some(Place { file: file.to_owned(), line: line.parse().ok()?, column: 0 })
}

pub(super) fn many(count: usize, one: &str) -> String {
    if count == 1 { format!("1 {one}") } else { format!("{count} {one}s") }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use jiff::Timestamp;
    use opdev_event::BackgroundCommand;

    /// A run before its first line.
    pub(in super::super) fn begun(command: BackgroundCommand) -> BackgroundRun {
        BackgroundRun {
            command,
            request: 1,
            began: Timestamp::UNIX_EPOCH,
            about: String::new(),
            done: 0,
            now: String::new(),
            columns: Vec::new(),
            rows: Vec::new(),
            findings: Vec::new(),
            notes: Vec::new(),
            end: None,
        }
    }

    #[test]
    fn a_place_is_a_file_and_a_line() {
        let told = place("controllers/web.go:42  the last create of Service web").unwrap();
        assert_eq!(told.to_string(), "controllers/web.go:42");
        assert_eq!(place("nowhere"), None);
        assert_eq!(place("a:b"), None);
    }
}
