//! The files of a project that matter to its program: which folders to listen to, and which of the files that
//! were saved differ from what was built last. Reads files; never follows links.

use anyhow::{Context as _, Result};
use opdev_os::read;
use regex::RegexSet;
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hasher as _};
use std::path::{Path, PathBuf};

/// Folders in which nobody edits a program, beside hidden ones.
const FOREIGN: [&str; 7] = ["vendor", "node_modules", "target", "bin", "testdata", "__pycache__", "dist"];
/// More folders than this are not listened to.
const MOST: usize = 4_000;

/// The files that a program was made of, by content.
#[derive(Debug)]
pub struct Tree {
    dir: PathBuf,
    globs: RegexSet,
    known: BTreeMap<PathBuf, u64>,
}

impl Tree {
    /// Reads the files below `dir` that the globs name.
    ///
    /// # Errors
    /// Where a glob cannot be read.
    pub fn read(dir: &Path, globs: &[String]) -> Result<Tree> {
        let patterns: Vec<String> = globs.iter().map(|glob| pattern(glob)).collect();
        let globs = RegexSet::new(&patterns)
            .with_context(|| format!("a glob under `operator.watch` cannot be read: {}", globs.join(", ")))?;
        let mut tree = Tree { dir: dir.to_owned(), globs, known: BTreeMap::new() };
        for folder in folders(dir) {
            for path in read::paths(&folder).into_iter().filter(|path| path.is_file()) {
                tree.differs(&path);
            }
        }
        Ok(tree)
    }

    /// The saved files that matter and have other bytes than before.
    pub fn changed(&mut self, saved: &[PathBuf]) -> Vec<PathBuf> {
        saved.iter().filter(|path| self.differs(path)).cloned().collect()
    }

    fn differs(&mut self, path: &Path) -> bool {
        if !self.matters(path) {
            return false;
        }
        match read::bytes(path) {
            Ok(bytes) => {
                let mut hasher = DefaultHasher::new();
                hasher.write(&bytes);
                let print = hasher.finish();
                self.known.insert(path.to_owned(), print) != Some(print)
            }
            Err(_) => self.known.remove(path).is_some(),
        }
    }

    fn matters(&self, path: &Path) -> bool {
        let Ok(inside) = path.strip_prefix(&self.dir) else { return false };
        let text = inside.to_string_lossy();
        let test = text.ends_with("_test.go");
        let foreign = inside
            .parent()
            .is_some_and(|folder| folder.iter().any(|part| is_foreign(&part.to_string_lossy())));
        !test && !foreign && self.globs.is_match(&text)
    }
}

/// The folder and all below it in which somebody may edit the program.
pub fn folders(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![dir.to_owned()];
    let mut walk = read::Walk::from(dir);
    while let Some(folder) = open.pop() {
        if found.len() >= MOST {
            tracing::warn!("only {MOST} folders of {} are listened to", dir.display());
            break;
        }
        let folders = walk.entries(&folder).into_iter();
        let folders = folders.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        open.extend(
            folders
                .filter(|entry| !is_foreign(&entry.file_name().to_string_lossy()))
                .map(|entry| entry.path()),
        );
        found.push(folder);
    }
    found.sort();
    found
}

fn is_foreign(name: &str) -> bool {
    name.starts_with('.') || FOREIGN.contains(&name)
}

/// A glob as a regular expression: `**/` any folders, `*` and `?` within one name.
fn pattern(glob: &str) -> String {
    let mut out = String::from("^");
    let mut rest = glob.trim_start_matches("./");
    let mut choices = 0_usize;
    while let Some(first) = rest.chars().next() {
        if let Some(after) = rest.strip_prefix("**/") {
            out.push_str("(?:.*/)?");
            rest = after;
            continue;
        }
        if let Some(after) = rest.strip_prefix("**") {
            out.push_str(".*");
            rest = after;
            continue;
        }
        match first {
            '*' => out.push_str("[^/]*"),
            '?' => out.push_str("[^/]"),
            '{' => {
                choices += 1;
                out.push_str("(?:");
            }
            '}' if choices > 0 => {
                choices -= 1;
                out.push(')');
            }
            ',' if choices > 0 => out.push('|'),
            other => out.push_str(&regex::escape(&other.to_string())),
        }
        rest = &rest[first.len_utf8()..];
    }
    out.push('$');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_that_the_globs_name_and_whose_bytes_differ_count() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        for (path, text) in [
            ("cmd/main.go", "a"),
            ("cmd/main_test.go", "a"),
            ("README.md", "a"),
            ("vendor/x/y.go", "a"),
            ("go.mod", "m"),
        ] {
            let path = root.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let mut tree = Tree::read(root, &["**/*.go".to_owned(), "go.mod".to_owned()]).unwrap();
        let all: Vec<PathBuf> =
            ["cmd/main.go", "cmd/main_test.go", "README.md", "vendor/x/y.go", "go.mod", "cmd/new.go"]
                .iter()
                .map(|path| root.join(path))
                .collect();
        assert_eq!(tree.changed(&all), Vec::<PathBuf>::new());
        for path in &all {
            std::fs::write(path, "b").unwrap();
        }
        let names = |paths: Vec<PathBuf>| -> Vec<String> {
            paths.iter().map(|path| path.strip_prefix(root).unwrap().display().to_string()).collect()
        };
        assert_eq!(names(tree.changed(&all)), ["cmd/main.go", "go.mod", "cmd/new.go"]);
        std::fs::remove_file(root.join("cmd/new.go")).unwrap();
        assert_eq!(names(tree.changed(&all)), ["cmd/new.go"]);
        assert_eq!(names(tree.changed(&all)), Vec::<String>::new());
        assert_eq!(names(folders(root)), ["", "cmd"]);
    }

    #[test]
    fn globs_reach_as_far_as_their_stars() {
        let matches = |glob: &str, path: &str| regex::Regex::new(&pattern(glob)).unwrap().is_match(path);
        assert!(matches("**/*.go", "main.go") && matches("**/*.go", "a/b/c.go"));
        assert!(!matches("*.go", "a/b.go") && matches("./*.go", "b.go"));
        assert!(matches("src/**", "src/a/b") && !matches("src/**", "srcs/a"));
        assert!(matches("{a,b}.py", "b.py") && !matches("a.py", "axpy"));
    }
}
