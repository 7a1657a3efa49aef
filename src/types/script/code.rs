//! The source of a script, without its types, and where what it exports stands.

use super::modules::Module;
use super::places::Marks;
use opdev_types::diagnostic::Place;

/// The parts of the source that every call needs.
#[derive(Debug)]
pub(super) struct Code {
    pub(super) entry: String,
    /// In the order of declaration, the entry last.
    pub(super) modules: Vec<Module>,
    pub(super) marks: Marks,
}

impl Code {
    pub(super) fn start(&self) -> Place {
        Place { file: self.entry.clone(), line: 1, column: 1 }
    }

    pub(super) fn owns_file(&self, file: &str) -> bool {
        self.modules.iter().any(|module| module.name == file)
    }
}
