//! Packages on demand: reads folders through `Files`, parses what changed since the last time and nothing else.
//! Files in the module cache never change and are read once. Never decides what a type means.

use super::Files;
use super::imports::{Missing, Modules, join};
use super::package::{Package, builds, counts};
use super::syntax::{SourceFile, SyntaxError, read};
use crate::diagnostic::Diagnostic;
use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::sync::Arc;

/// Files above this size are no type files.
const LARGEST: usize = 4 << 20;

/// What stays from one generation to the next.
pub(crate) struct Store {
    parser: tree_sitter::Parser,
    files: HashMap<String, Arc<SourceFile>>,
    packages: HashMap<String, Arc<Package>>,
    parsed: usize,
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Store({} files, {} packages)", self.files.len(), self.packages.len())
    }
}

impl Default for Store {
    fn default() -> Store {
        let mut parser = tree_sitter::Parser::new();
        // Fails only where grammar and library are of different ABIs; then every file has an error that says so.
        let _ = parser.set_language(&tree_sitter_go::LANGUAGE.into());
        Store { parser, files: HashMap::new(), packages: HashMap::new(), parsed: 0 }
    }
}

impl Store {
    /// How many files were parsed so far.
    #[cfg(test)]
    pub(crate) fn parsed(&self) -> usize {
        self.parsed
    }

    fn parse(&mut self, path: &str, text: &Arc<str>) -> Arc<SourceFile> {
        if let Some(file) = self.files.get(path)
            && (Arc::ptr_eq(&file.text, text) || file.text == *text)
        {
            return file.clone();
        }
        self.parsed += 1;
        let tree = (text.len() <= LARGEST).then(|| self.parser.parse(text.as_bytes(), None)).flatten();
        let file = Arc::new(match tree {
            Some(tree) => read(path, text, tree.root_node()),
            None => {
                let message = "this file is too large to be read as a type file".to_owned();
                let errors = vec![SyntaxError { at: 0, message }];
                SourceFile { errors, ..SourceFile::new(path, text.clone()) }
            }
        });
        self.files.insert(path.to_owned(), file.clone());
        file
    }
}

/// Loads packages for one generation.
pub(crate) struct Loader<'a> {
    store: &'a mut Store,
    pub(crate) files: &'a dyn Files,
    pub(crate) modules: Modules,
    loaded: HashMap<Arc<str>, Result<Arc<Package>, Missing>>,
    /// Files of the project that were read.
    pub(crate) read: BTreeSet<String>,
    /// What the search for packages has to say.
    pub(crate) notes: Vec<Diagnostic>,
}

impl<'a> Loader<'a> {
    pub(crate) fn new(store: &'a mut Store, files: &'a dyn Files, modules: Modules) -> Loader<'a> {
        let (loaded, read, notes) = (HashMap::new(), BTreeSet::new(), Vec::new());
        Loader { store, files, modules, loaded, read, notes }
    }

    /// One of the project's own folders; `None` where it holds no package that could say something of types.
    pub(crate) fn root(&mut self, dir: &str) -> Option<Arc<Package>> {
        let path: Arc<str> = self.modules.path_of(dir).into();
        let texts = self.texts(dir);
        let interesting = |text: &str| {
            ["+kubebuilder:", "+groupName", "apimachinery/pkg/apis/meta/v1"]
                .iter()
                .any(|word| text.contains(word))
        };
        if !texts.iter().any(|(_, text)| interesting(text)) {
            return None;
        }
        let package = self.package(path.clone(), dir.to_owned(), &texts, true);
        self.loaded.insert(path, Ok(package.clone()));
        Some(package)
    }

    /// The package of an import, seen from a folder.
    pub(crate) fn import(&mut self, path: &Arc<str>, from: &str) -> Result<Arc<Package>, Missing> {
        if let Some(loaded) = self.loaded.get(path) {
            return loaded.clone();
        }
        let found = self.modules.find(self.files, path, Some(from));
        let result = found.map(|found| {
            if let Some(note) = found.note {
                self.notes.push(Diagnostic::warning(note, None).with_hint("Run `go mod download`."));
            }
            if !found.ours
                && let Some(package) = self.store.packages.get(&found.dir)
            {
                return package.clone();
            }
            let mut texts = self.texts(&found.dir);
            if !found.ours && !texts.iter().any(|(_, text)| text.contains("+k8s:enum")) {
                let words = ["\ntype ", "MarshalJSON(", "MarshalText(", "+kubebuilder:validation:Optional"];
                texts.retain(|(_, text)| words.iter().any(|word| text.contains(word)));
            }
            let package = self.package(path.clone(), found.dir.clone(), &texts, found.ours);
            if !found.ours {
                self.store.packages.insert(found.dir, package.clone());
            }
            package
        });
        self.loaded.insert(path.clone(), result.clone());
        result
    }

    /// The packages that were found.
    pub(crate) fn packages(&self) -> HashMap<Arc<str>, Arc<Package>> {
        let found =
            self.loaded.iter().filter_map(|(path, package)| Some((path.clone(), package.clone().ok()?)));
        found.collect()
    }

    fn texts(&self, dir: &str) -> Vec<(String, Arc<str>)> {
        let names = self.files.list(dir).into_iter().filter(|name| counts(name));
        let paths = names.map(|name| join(dir, &name));
        paths
            .filter_map(|path| self.files.read(&path).map(|text| (path, text)))
            .filter(|(_, text)| builds(text))
            .collect()
    }

    fn package(
        &mut self,
        path: Arc<str>,
        dir: String,
        texts: &[(String, Arc<str>)],
        ours: bool,
    ) -> Arc<Package> {
        let files: Vec<Arc<SourceFile>> =
            texts.iter().map(|(path, text)| self.store.parse(path, text)).collect();
        if ours {
            self.read.extend(texts.iter().map(|(path, _)| path.clone()));
            if let Some(same) = self.store.packages.get(&dir)
                && same.path == path
                && same.sources.len() == files.len()
                && same.sources.iter().zip(&files).all(|(old, new)| Arc::ptr_eq(old, new))
            {
                return same.clone();
            }
        }
        let package = Arc::new(Package::new(path, dir.clone(), files, ours));
        if ours {
            self.store.packages.insert(dir, package.clone());
        }
        package
    }
}
