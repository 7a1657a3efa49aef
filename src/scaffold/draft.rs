//! The files that a command is about to write, above those that are there. Nothing reaches the disk before
//! all of them are known, so that a command writes everything or nothing.

use std::collections::{BTreeMap, BTreeSet};

/// A file of the project as it is now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PresentFile {
    /// There is none.
    Missing,
    /// It has this content.
    Content(Vec<u8>),
    /// Something has the name, and its content cannot be read.
    Unreadable,
}

/// Reads the project's present files, by path from its root with `/`.
pub trait ProjectFiles {
    /// The file at a path.
    fn read(&self, path: &str) -> PresentFile;

    /// The names of the files and folders in a folder, links left out; nothing where there is no such folder.
    fn list(&self, folder: &str) -> Vec<String>;
}

/// The effect of writing a file on the one that is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// There is none.
    Create,
    /// It is extended; what the user wrote stays.
    Update,
    /// It is written anew, because the user asked for that.
    Replace,
    /// It already says the same.
    Keep,
    /// It says something else and nobody allowed to replace it, or it cannot be read as text.
    Conflict,
}

impl Action {
    /// The word of the action in the command's output.
    pub fn word(self) -> &'static str {
        match self {
            Action::Create => "created",
            Action::Update | Action::Replace => "updated",
            Action::Keep => "kept",
            Action::Conflict => "in the way",
        }
    }
}

/// A file as it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedFile {
    /// Its content.
    pub content: Vec<u8>,
    /// The effect of writing it.
    pub action: Action,
}

/// The files that a command is about to write.
pub struct Draft<'a> {
    present: &'a dyn ProjectFiles,
    files: BTreeMap<String, PlannedFile>,
    warnings: Vec<String>,
    overwrite: bool,
}

impl<'a> Draft<'a> {
    /// An empty draft above the present files. With `overwrite`, files of other content are replaced.
    pub fn new(present: &'a dyn ProjectFiles, overwrite: bool) -> Draft<'a> {
        Draft { present, files: BTreeMap::new(), warnings: Vec::new(), overwrite }
    }

    /// The planned files, by path.
    pub fn files(&self) -> &BTreeMap<String, PlannedFile> {
        &self.files
    }

    /// Warnings beside the files.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// The paths whose present content would be lost.
    pub fn conflicts(&self) -> Vec<&str> {
        let conflicts = self.files.iter().filter(|(_, file)| file.action == Action::Conflict);
        conflicts.map(|(path, _)| path.as_str()).collect()
    }

    pub(super) fn warn(&mut self, warning: impl Into<String>) {
        let warning = warning.into();
        if !self.warnings.contains(&warning) {
            self.warnings.push(warning);
        }
    }

    /// The text of a file as it will be: planned, or present. What cannot be read as text is empty; an
    /// [`update`] of it is a conflict.
    ///
    /// [`update`]: Draft::update
    pub(super) fn read(&self, path: &str) -> Option<String> {
        let bytes = match self.files.get(path) {
            Some(planned) => planned.content.clone(),
            None => match self.present.read(path) {
                PresentFile::Missing => return None,
                PresentFile::Content(content) => content,
                PresentFile::Unreadable => Vec::new(),
            },
        };
        Some(String::from_utf8(bytes).unwrap_or_default())
    }

    /// The names in a folder, planned and present, sorted.
    pub(super) fn list(&self, folder: &str) -> Vec<String> {
        let mut names: BTreeSet<String> = self.present.list(folder).into_iter().collect();
        let inside = if folder.is_empty() { String::new() } else { format!("{folder}/") };
        let planned = self.files.keys().filter_map(|path| path.strip_prefix(&inside)?.split('/').next());
        names.extend(planned.map(str::to_owned));
        names.into_iter().collect()
    }

    /// The names in the project's folder that are there and not planned, sorted.
    pub(super) fn others(&self) -> Vec<String> {
        let mut names = self.present.list("");
        names.retain(|name| !self.files.contains_key(name));
        names.sort();
        names
    }

    pub(super) fn exists(&self, path: &str) -> bool {
        self.files.contains_key(path) || self.present.read(path) != PresentFile::Missing
    }

    /// Plans a file of ours.
    pub(super) fn create(&mut self, path: impl Into<String>, content: impl Into<Vec<u8>>) {
        let (path, content) = (path.into(), content.into());
        let action = match self.present.read(&path) {
            PresentFile::Missing => Action::Create,
            PresentFile::Content(present) if present == content => Action::Keep,
            PresentFile::Content(_) if self.overwrite => Action::Replace,
            PresentFile::Content(_) | PresentFile::Unreadable => Action::Conflict,
        };
        self.files.insert(path, PlannedFile { content, action });
    }

    /// Plans a file unless there is one: the user's own counts.
    pub(super) fn create_missing(&mut self, path: &str, content: impl Into<Vec<u8>>) {
        if !self.exists(path) {
            self.create(path, content);
        }
    }

    /// Plans a file that keeps what [`read`](Draft::read) gave and gains something. Where that was a planned
    /// file which the user's own is in the way of, it still is.
    pub(super) fn update(&mut self, path: &str, content: impl Into<Vec<u8>>) {
        let content = content.into();
        let in_the_way = self.files.get(path).is_some_and(|planned| planned.action == Action::Conflict);
        let action = match self.present.read(path) {
            _ if in_the_way => Action::Conflict,
            PresentFile::Missing => Action::Create,
            PresentFile::Content(present) if present == content => Action::Keep,
            PresentFile::Content(present) if str::from_utf8(&present).is_ok() => Action::Update,
            PresentFile::Content(_) | PresentFile::Unreadable => Action::Conflict,
        };
        self.files.insert(path.to_owned(), PlannedFile { content, action });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct One(PresentFile);

    impl ProjectFiles for One {
        fn read(&self, _: &str) -> PresentFile {
            self.0.clone()
        }

        fn list(&self, _: &str) -> Vec<String> {
            Vec::new()
        }
    }

    #[test]
    fn what_cannot_be_read_as_text_is_never_written_over() {
        for present in [PresentFile::Unreadable, PresentFile::Content(vec![b'-', 0xff])] {
            let disk = One(present.clone());
            let mut draft = Draft::new(&disk, true);
            let text = draft.read("watches.yaml").unwrap();
            draft.update("watches.yaml", format!("{text}- a\n"));
            assert_eq!(draft.conflicts(), ["watches.yaml"], "{present:?}");
        }
        // A file that grows twice is our own plan, not the user's file.
        let disk = One(PresentFile::Content(b"mine: true\n".to_vec()));
        let mut draft = Draft::new(&disk, false);
        draft.create("config/rbac/role.yaml", "rules:\n");
        let planned = draft.read("config/rbac/role.yaml").unwrap();
        draft.update("config/rbac/role.yaml", format!("{planned}- a\n"));
        assert_eq!(draft.conflicts(), ["config/rbac/role.yaml"]);
        let disk = One(PresentFile::Unreadable);
        let mut draft = Draft::new(&disk, true);
        draft.create("PROJECT", "new\n");
        assert_eq!(draft.conflicts(), ["PROJECT"]);
    }
}
