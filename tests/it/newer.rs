//! The lines that are newer than a kept count, as git says: so that a count which went up names what is new.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

/// So many places are named.
const NAMED: usize = 20;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A place in a file of the repository, and its text.
pub(crate) struct Place {
    pub(crate) path: PathBuf,
    /// The first and the last line.
    pub(crate) lines: (usize, usize),
    pub(crate) text: String,
}

impl Place {
    fn path(&self) -> String {
        self.path.strip_prefix(root()).unwrap_or(&self.path).display().to_string()
    }
}

fn git(words: &[&str]) -> Option<String> {
    let output = Command::new("git").args(words).current_dir(root()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The new lines of each file in the words of `git diff --unified=0`.
fn in_diff(diff: &str) -> BTreeMap<String, BTreeSet<usize>> {
    let mut found: BTreeMap<String, BTreeSet<usize>> = BTreeMap::new();
    let mut path = "";
    for line in diff.lines() {
        if let Some(name) = line.strip_prefix("+++ b/") {
            path = name;
        } else if let Some(rest) = line.strip_prefix("@@ ") {
            let Some(new) = rest.split_whitespace().find_map(|word| word.strip_prefix('+')) else { continue };
            let (first, count) = new.split_once(',').unwrap_or((new, "1"));
            let (Ok(first), Ok(count)) = (first.parse::<usize>(), count.parse::<usize>()) else { continue };
            found.entry(path.to_owned()).or_default().extend(first..first + count);
        }
    }
    found
}

/// The places that are newer than the last commit of a kept count, one a line. Without git, or where none of them
/// is newer, all of them may be meant.
pub(crate) fn among(places: &[&Place], kept: &str) -> String {
    let changed = || {
        let commit = git(&["log", "-1", "--format=%H", "--", kept])?;
        let commit = commit.trim();
        let diff = git(&["diff", "--unified=0", "--no-color", "--no-ext-diff", "-M", commit, "--"])?;
        let files = git(&["ls-files", "--others", "--exclude-standard"])?;
        Some((in_diff(&diff), files.lines().map(str::to_owned).collect::<BTreeSet<String>>()))
    };
    let (lines, files) = changed().unwrap_or_default();
    let is_new = |place: &&&Place| {
        let path = place.path();
        let (first, last) = place.lines;
        files.contains(&path)
            || lines.get(&path).is_some_and(|lines| lines.range(first..=last).next().is_some())
    };
    let new: Vec<&&Place> = places.iter().filter(is_new).collect();
    let (head, named) = match new.is_empty() {
        true => ("git knows none of them as new; all are", places.iter().collect()),
        false => ("new are", new),
    };
    let more = named.len().saturating_sub(NAMED);
    let mut told: Vec<String> = named
        .iter()
        .take(NAMED)
        .map(|place| format!("  {}:{}: {}", place.path(), place.lines.0, place.text.trim()))
        .collect();
    told.extend((more > 0).then(|| format!("  and {more} more")));
    format!("{head}\n{}", told.join("\n"))
}

#[test]
fn new_lines_are_read_off_a_diff() {
    let diff = "--- a/src/a.rs\n+++ b/src/a.rs\n@@ -3 +3,2 @@ fn a() {\n+x\n+y\n@@ -9,2 +10,0 @@\n-z\n--- /dev/null\n+++ b/b.md\n@@ -0,0 +1 @@\n+b\n";
    let found = in_diff(diff);
    assert_eq!(found["src/a.rs"], BTreeSet::from([3, 4]));
    assert_eq!(found["b.md"], BTreeSet::from([1]));
}
