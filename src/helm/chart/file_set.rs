//! The files of a chart, before anything is known of them.

use super::content::Content;
use std::collections::BTreeMap;

/// The files of a chart by path relative to its folder, sorted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileSet {
    files: BTreeMap<String, Content>,
}

impl FileSet {
    /// No files.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds or replaces a file; `path` uses `/`.
    pub fn insert(&mut self, path: impl Into<String>, data: impl Into<Content>) {
        self.files.insert(path.into(), data.into());
    }

    /// The content of a file.
    pub fn get(&self, path: &str) -> Option<&Content> {
        self.files.get(path)
    }

    /// Paths and contents, sorted by path.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Content)> {
        self.files.iter().map(|(path, data)| (path.as_str(), data))
    }

    /// How many files there are.
    pub fn len(&self) -> usize {
        self.files.len()
    }

    /// Returns true if there are none.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// The files below a folder, their paths relative to it.
    pub fn below(&self, folder: &str) -> FileSet {
        let prefix = format!("{}/", folder.trim_end_matches('/'));
        self.files
            .range(prefix.clone()..)
            .take_while(|(path, _)| path.starts_with(&prefix))
            .map(|(path, data)| (path[prefix.len()..].to_owned(), data.clone()))
            .collect()
    }
}

impl<P: Into<String>, D: Into<Content>> FromIterator<(P, D)> for FileSet {
    fn from_iter<I: IntoIterator<Item = (P, D)>>(files: I) -> Self {
        Self { files: files.into_iter().map(|(path, data)| (path.into(), data.into())).collect() }
    }
}
