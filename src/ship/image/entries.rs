//! The files and folders of a layer, in the order of their paths.

use std::collections::BTreeMap;
use std::sync::Arc;

/// The mode of folders that nobody names.
const FOLDER: u32 = 0o755;

/// A file or a folder of a layer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The permissions.
    pub mode: u32,
    /// The content of a file; `None` for a folder.
    pub content: Option<Arc<[u8]>>,
}

/// The entries of a layer by path. A path is relative to the root of the image and has no slash at its ends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Entries {
    entries: BTreeMap<String, Entry>,
}

impl Entries {
    /// Adds a file, with the folders above it.
    pub fn file(&mut self, path: &str, mode: u32, content: impl Into<Arc<[u8]>>) {
        self.add(path, Entry { mode, content: Some(content.into()) });
    }

    /// Adds a folder, with those above it.
    pub fn folder(&mut self, path: &str, mode: u32) {
        self.add(path, Entry { mode, content: None });
    }

    fn add(&mut self, path: &str, entry: Entry) {
        for (at, _) in path.match_indices('/') {
            let folder = Entry { mode: FOLDER, content: None };
            self.entries.entry(path[..at].to_owned()).or_insert(folder);
        }
        self.entries.insert(path.to_owned(), entry);
    }

    /// Path and entry, folders before what is in them.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Entry)> {
        self.entries.iter().map(|(path, entry)| (path.as_str(), entry))
    }

    /// Returns true if there is nothing.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}
