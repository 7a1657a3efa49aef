//! A place of a chart that reads what `.Release` says of this very revision.

use super::places::file_of;
use crate::chart::Place;
use std::fmt;

/// A template and a key of `.Release` that it read, itself or in a template that it included.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ReleaseRead {
    /// `IsInstall`, `IsUpgrade` or `Revision`.
    pub key: &'static str,
    /// The path of the template with the output, from the root chart's name on: what `# Source:` says.
    pub template: String,
    /// The file below the chart's folder and the line that names the key; nothing where the key was reached
    /// in another way, such as `toYaml .Release`.
    pub place: Option<(String, u32, u32)>,
}

impl ReleaseRead {
    /// The place as diagnostics have it; the template itself where no line is known.
    #[must_use]
    pub fn at(&self) -> Place {
        match &self.place {
            Some((file, line, column)) => Place { file: file.clone(), line: *line, column: *column },
            None => Place { file: file_of(&self.template), line: 0, column: 0 },
        }
    }
}

impl fmt::Display for ReleaseRead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Place { file, line, .. } = self.at();
        write!(f, ".Release.{} in {file}", self.key)?;
        if line > 0 { write!(f, ":{line}") } else { Ok(()) }
    }
}
