//! Texts in tests, held by figures that only get better. A snapshot shows a reader the text that a user sees; a test
//! that looks for a phrase does not.

use crate::newer::{Place, among};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The folders that are counted.
const FOLDERS: [&str; 2] = ["src", "tests/it"];

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(rust_files(&path));
        } else if path.extension().is_some_and(|ext| ext == "rs") {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// The lines of asserts that look for a written phrase. Those that say that a phrase is absent are left out.
fn asserted(text: &str) -> Vec<usize> {
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(at) = text[from..].find("assert!(").map(|at| from + at) {
        let end = text[at..].find(";\n").map_or(text.len(), |end| at + end);
        let conditions = text[at + "assert!(".len()..end].split("&&").map(str::trim_start);
        let looks = conditions.filter(|one| !one.starts_with('!') && one.contains(".contains(\"")).count();
        let line = text[..at].matches('\n').count() + 1;
        found.extend(std::iter::repeat_n(line, looks));
        from = end;
    }
    found
}

#[test]
fn phrases_that_are_looked_for_are_counted() {
    let text = "assert!(said.contains(\"a\"), \"{said}\");\nassert!(\n    said.contains(\"b\") && said.contains(\"c\"),\n);\n\
                assert!(!said.contains(\"d\"));\nassert!(names.contains(&\"e\"));\n";
    assert_eq!(asserted(text), [1, 2, 2]);
}

/// Fewer phrases that asserts look for: never more.
#[test]
fn texts_are_shown_and_not_searched() {
    let kept = "tests/golden/searched.tsv";
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found: Vec<(&str, Vec<Place>)> = Vec::new();
    for folder in FOLDERS {
        let mut places = Vec::new();
        for path in rust_files(&root.join(folder)) {
            let text = fs::read_to_string(&path).unwrap();
            let lines: Vec<&str> = text.lines().collect();
            let place =
                |at: usize| Place { path: path.clone(), lines: (at, at), text: lines[at - 1].to_owned() };
            places.extend(asserted(&text).into_iter().map(place));
        }
        found.push((folder, places));
    }
    let golden = root.join(kept);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        let rows = found.iter().map(|(folder, places)| format!("{folder}\t{}\n", places.len()));
        fs::write(&golden, rows.collect::<String>()).unwrap();
    }
    let known = fs::read_to_string(&golden).unwrap();
    let most: BTreeMap<&str, usize> = known
        .lines()
        .filter_map(|line| line.split_once('\t'))
        .map(|(folder, count)| (folder, count.parse().unwrap()))
        .collect();
    let mut wrong = Vec::new();
    for (folder, places) in &found {
        let most = most.get(folder).copied().unwrap_or_default();
        if places.len() > most {
            let places_by_age: Vec<&Place> = places.iter().collect();
            wrong.push(format!(
                "{folder}: {}, at most {most}; {}",
                places.len(),
                among(&places_by_age, kept)
            ));
        }
    }
    let way_out = "write `expect![[\"\"]].assert_eq(&text)` instead, and UPDATE_EXPECT=1 fills it in";
    assert!(wrong.is_empty(), "asserts that look for a phrase in a text; {way_out}:\n{}", wrong.join("\n"));
}
