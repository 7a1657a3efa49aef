//! The folders that patterns such as `./...` stand for, as Go counts them.

use super::Files;
use super::imports::{clean, join};

/// How many folders are looked at.
const MOST: usize = 20_000;

/// The folders of some patterns, each once, in order.
pub(crate) fn folders(files: &dyn Files, patterns: &[String]) -> Vec<String> {
    let mut out = Vec::new();
    for pattern in patterns {
        // The form of controller-gen's own option.
        for pattern in pattern.strip_prefix("paths=").unwrap_or(pattern).split(';') {
            let pattern = pattern.trim_matches(['"', '\'', '{', '}']);
            match pattern.strip_suffix("...") {
                Some(base) => walk(files, &clean(base), &mut out),
                None => out.push(clean(pattern)),
            }
        }
    }
    let mut seen = std::collections::BTreeSet::new();
    out.retain(|dir| seen.insert(dir.clone()));
    out
}

fn walk(files: &dyn Files, base: &str, out: &mut Vec<String>) {
    let mut open = vec![base.to_owned()];
    let mut seen = 0;
    while let Some(dir) = open.pop() {
        seen += 1;
        // Links can make a circle of folders.
        if seen > MOST || dir.matches('/').count() > 40 {
            continue;
        }
        let names = files.list(&dir);
        if dir != base && names.iter().any(|name| name == "go.mod") {
            continue;
        }
        if names.iter().any(|name| name.ends_with(".go")) {
            out.push(dir.clone());
        }
        let skipped = |name: &str| {
            name.is_empty()
                || name.starts_with(['.', '_'])
                || matches!(name, "vendor" | "testdata" | "node_modules")
        };
        // A name with an ending is a file, most likely; listing a file gives nothing.
        let folders = names.into_iter().filter(|name| !skipped(name) && !is_file(name));
        let mut folders: Vec<String> = folders.map(|name| join(&dir, &name)).collect();
        folders.reverse();
        open.extend(folders);
    }
}

fn is_file(name: &str) -> bool {
    name.rsplit_once('.').is_some_and(|(_, ending)| {
        matches!(
            ending,
            "go" | "mod"
                | "sum"
                | "md"
                | "yaml"
                | "yml"
                | "json"
                | "txt"
                | "sh"
                | "tpl"
                | "tmpl"
                | "toml"
                | "lock"
        )
    }) || matches!(name, "Makefile" | "Dockerfile" | "LICENSE" | "PROJECT" | "OWNERS")
}
