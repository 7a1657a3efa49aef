//! Packages on demand: reads folders through `Files`, parses what changed since the last time and nothing
//! else. Files in the module cache never change and are read once. Never decides what a type means.

use super::Files;
use super::brackets::without_code;
use super::imports::{Found, Missing, Modules, join};
use super::outline::{outline, parser};
use super::package::{Package, builds, counts};
use super::syntax::{SourceFile, SyntaxError, read};
use crate::diagnostic::Diagnostic;
use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::sync::Arc;

/// Files above this size are no type files.
const LARGEST: usize = 4 << 20;

/// Files and packages that stay from one generation to the next.
pub(crate) struct Store {
    parser: tree_sitter::Parser,
    files: HashMap<String, Arc<SourceFile>>,
    packages: HashMap<String, Arc<Package>>,
    /// Trees of the project's files without faults, for the next time.
    trees: HashMap<String, tree_sitter::Tree>,
    /// Where packages that are not the project's were found.
    found: HashMap<Arc<str>, Found>,
    parsed: usize,
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Store({} files, {} packages)", self.files.len(), self.packages.len())
    }
}

impl Default for Store {
    fn default() -> Store {
        Store {
            parser: parser(),
            files: HashMap::new(),
            packages: HashMap::new(),
            trees: HashMap::new(),
            found: HashMap::new(),
            parsed: 0,
        }
    }
}

impl Store {
    /// How many files were parsed so far.
    #[cfg(test)]
    pub(crate) fn parsed(&self) -> usize {
        self.parsed
    }

    /// The table of a file. Of one that is not the project's, most types are parsed when they are asked for.
    fn parse(&mut self, path: &str, text: &Arc<str>, ours: bool) -> Arc<SourceFile> {
        if let Some(file) = self.files.get(path)
            && (Arc::ptr_eq(&file.text, text) || file.text == *text)
        {
            return file.clone();
        }
        self.parsed += 1;
        // These words give a meaning to constants and to comments outside of types.
        let whole = ["+k8s:enum", "+kubebuilder:validation:Optional"].iter().any(|word| text.contains(word));
        if !ours
            && !whole
            && let Some(file) = outline(path, text)
        {
            let file = Arc::new(file);
            self.files.insert(path.to_owned(), file.clone());
            return file;
        }
        let tree = (text.len() <= LARGEST).then(|| self.tree(path, text)).flatten();
        let file = Arc::new(match tree {
            Some(tree) => {
                let mut file = read(path, text, tree.root_node());
                // The grammar recovers from what it does not know at the cost of what stands beside it.
                if tree.root_node().has_error()
                    && let Some(simple) = self.parser.parse(without_code(text).as_bytes(), None)
                {
                    file = read(path, text, simple.root_node());
                }
                if ours && !tree.root_node().has_error() {
                    self.trees.insert(path.to_owned(), tree);
                }
                file
            }
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

impl Store {
    /// The tree of a text; what did not change since the last one is taken over from it. A tree with faults
    /// is made from nothing, so that it does not depend on what was there before.
    fn tree(&mut self, path: &str, text: &Arc<str>) -> Option<tree_sitter::Tree> {
        if let Some(mut tree) = self.trees.remove(path)
            && let Some(old) = self.files.get(path)
        {
            tree.edit(&edit(&old.text, text));
            let tree = self.parser.parse(text.as_bytes(), Some(&tree))?;
            if !tree.root_node().has_error() {
                return Some(tree);
            }
        }
        self.parser.parse(text.as_bytes(), None)
    }

    /// The text of a file.
    pub(crate) fn text(&self, path: &str) -> Option<Arc<str>> {
        self.files.get(path).map(|file| file.text.clone())
    }

    /// Forgets where packages were found.
    pub(crate) fn look_again(&mut self) {
        self.found.clear();
    }
}

/// The one stretch in which two texts differ.
fn edit(old: &str, new: &str) -> tree_sitter::InputEdit {
    let (a, b) = (old.as_bytes(), new.as_bytes());
    let start = a.iter().zip(b).take_while(|(a, b)| a == b).count();
    let most = a.len().min(b.len()) - start;
    let same = a.iter().rev().zip(b.iter().rev()).take(most).take_while(|(a, b)| a == b).count();
    let point = |bytes: &[u8], at: usize| {
        let before = &bytes[..at];
        let row = before.iter().filter(|byte| **byte == b'\n').count();
        let column = at - before.iter().rposition(|byte| *byte == b'\n').map_or(0, |newline| newline + 1);
        tree_sitter::Point { row, column }
    };
    tree_sitter::InputEdit {
        start_byte: start,
        old_end_byte: a.len() - same,
        new_end_byte: b.len() - same,
        start_position: point(a, start),
        old_end_position: point(a, a.len() - same),
        new_end_position: point(b, b.len() - same),
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
    /// Messages of the search for packages.
    pub(crate) notes: Vec<Diagnostic>,
}

impl<'a> Loader<'a> {
    pub(crate) fn new(store: &'a mut Store, files: &'a dyn Files, modules: Modules) -> Loader<'a> {
        let (loaded, read, notes) = (HashMap::new(), BTreeSet::new(), Vec::new());
        Loader { store, files, modules, loaded, read, notes }
    }

    /// A folder of the project itself; `None` where it has no package that could say something of types.
    pub(crate) fn root(&mut self, dir: &str) -> Option<Arc<Package>> {
        self.root_with(dir, &["+kubebuilder:", "+groupName", "apimachinery/pkg/apis/meta/v1"])
    }

    /// A folder of the project itself, where a file of it has one of some words.
    pub(crate) fn root_with(&mut self, dir: &str, words: &[&str]) -> Option<Arc<Package>> {
        let path: Arc<str> = self.modules.path_of(dir).into();
        let texts = self.texts(dir, |_| true);
        if !texts.iter().any(|(_, text)| words.iter().any(|word| text.contains(word))) {
            return None;
        }
        let package = self.package(path.clone(), dir.to_owned(), &texts, true);
        self.loaded.insert(path, Ok(package.clone()));
        Some(package)
    }

    /// Returns true if a `go.mod` says which modules the project takes.
    pub(crate) fn in_a_module(&self) -> bool {
        self.modules.are_named()
    }

    /// The package of an import, seen from a folder.
    pub(crate) fn import(&mut self, path: &Arc<str>, from: &str) -> Result<Arc<Package>, Missing> {
        if let Some(loaded) = self.loaded.get(path) {
            return loaded.clone();
        }
        let found = match self.store.found.get(path) {
            Some(found) => Ok(found.clone()),
            None => self.modules.find(self.files, path, Some(from)),
        };
        if let Ok(found) = &found
            && !found.ours
        {
            self.store.found.insert(path.clone(), found.clone());
        }
        let result = found.map(|found| {
            if !found.ours
                && let Some(package) = self.store.packages.get(&found.dir)
            {
                return package.clone();
            }
            let mut texts = self.texts(&found.dir, |name| found.ours || !without_types(path, name));
            if !found.ours && !texts.iter().any(|(_, text)| text.contains("+k8s:enum")) {
                let words = [
                    "\ntype ",
                    "MarshalJSON(",
                    "MarshalText(",
                    ") DeepCopy",
                    "+kubebuilder:validation:Optional",
                ];
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

    fn texts(&self, dir: &str, wanted: impl Fn(&str) -> bool) -> Vec<(String, Arc<str>)> {
        let names = self.files.list(dir).into_iter().filter(|name| counts(name) && wanted(name));
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
            texts.iter().map(|(path, text)| self.store.parse(path, text, ours)).collect();
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

/// Generated files of which nothing is needed; some have megabytes.
fn without_types(package: &str, name: &str) -> bool {
    package.starts_with("k8s.io/")
        && (name == "generated.pb.go"
            || name.starts_with("zz_generated.")
            || name.ends_with("_swagger_doc_generated.go"))
}
