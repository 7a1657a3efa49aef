//! Names of imports in a generated file: each package is named after the last part of its path, and after
//! more of it where that name is taken. Never decides which packages are needed.

use std::collections::BTreeMap;
use std::sync::Arc;

/// The imports of one generated file.
#[derive(Debug)]
pub(super) struct Aliases {
    by_path: BTreeMap<Arc<str>, String>,
    /// Names in use, with the path they stand for; the package's own name stands for none.
    by_name: BTreeMap<String, Arc<str>>,
}

impl Aliases {
    /// No imports; the package's own name is taken.
    pub(super) fn new(package: &str) -> Aliases {
        let by_name = BTreeMap::from([(package.to_owned(), Arc::from(""))]);
        Aliases { by_path: BTreeMap::new(), by_name }
    }

    /// The name of a package in the file, which imports it from now on.
    pub(super) fn name_of(&mut self, path: &Arc<str>) -> String {
        if let Some(name) = self.by_path.get(path) {
            return name.clone();
        }
        let (mut rest, mut word) = split(path);
        let mut name = String::new();
        loop {
            if rest.is_empty() {
                // A path without folders left is made unique this way, `timex` for `time` from the start.
                name.push('x');
            }
            name = format!("{}{name}", identifier(word));
            if let Some(shorter) = rest.strip_suffix('/') {
                (rest, word) = split(shorter);
            }
            if self.by_name.get(&name).is_none_or(|taken| taken == path) {
                break;
            }
        }
        self.by_path.insert(path.clone(), name.clone());
        self.by_name.insert(name.clone(), path.clone());
        name
    }

    /// Paths with their names, by path as gofmt sorts them.
    pub(super) fn list(&self) -> impl Iterator<Item = (&Arc<str>, &String)> {
        self.by_path.iter()
    }
}

/// The folders of a path with the slash behind them, and its last part.
fn split(path: &str) -> (&str, &str) {
    path.rfind('/').map_or(("", path), |slash| path.split_at(slash + 1))
}

/// A part of a path as a part of a name: without digits in front, other characters as underscores.
fn identifier(word: &str) -> String {
    let word = word.trim_start_matches(char::is_numeric);
    word.chars().map(|c| if c.is_alphanumeric() || c == '_' { c } else { '_' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_grow_from_the_right() {
        let mut aliases = Aliases::new("v1alpha1");
        let mut name = |path: &str| aliases.name_of(&path.into());
        assert_eq!(name("k8s.io/api/core/v1"), "v1");
        assert_eq!(name("k8s.io/apimachinery/pkg/apis/meta/v1"), "metav1");
        assert_eq!(name("k8s.io/api/core/v1"), "v1");
        assert_eq!(name("example.com/other/v1alpha1"), "otherv1alpha1");
        assert_eq!(name("time"), "timex");
        assert_eq!(name("gopkg.in/inf.v0"), "inf_v0");
        assert_eq!(name("example.com/3scale"), "scale");
        assert_eq!(name("meta/v1"), "metav1x");
    }
}
