//! Slash-separated paths, as Go's package path cuts and cleans them. The `os…` names do the same: charts run
//! on Linux.

use super::super::host::Ty;
use super::super::value::Value;
use super::{Function, fixed, string};

const TEXT: &[Ty] = &[Ty::Str];

pub(super) const FUNCTIONS: &[Function] = &[
    fixed("base", TEXT, |_, args| Ok(base(&string(args, 0)).into())),
    fixed("osBase", TEXT, |_, args| Ok(base(&string(args, 0)).into())),
    fixed("dir", TEXT, |_, args| Ok(dir(&string(args, 0)).into())),
    fixed("osDir", TEXT, |_, args| Ok(dir(&string(args, 0)).into())),
    fixed("clean", TEXT, |_, args| Ok(clean(&string(args, 0)).into())),
    fixed("osClean", TEXT, |_, args| Ok(clean(&string(args, 0)).into())),
    fixed("ext", TEXT, |_, args| Ok(ext(&string(args, 0)).into())),
    fixed("osExt", TEXT, |_, args| Ok(ext(&string(args, 0)).into())),
    fixed("isAbs", TEXT, |_, args| Ok(Value::Bool(string(args, 0).starts_with('/')))),
    fixed("osIsAbs", TEXT, |_, args| Ok(Value::Bool(string(args, 0).starts_with('/')))),
];

/// The last element.
pub(in super::super) fn base(path: &str) -> String {
    if path.is_empty() {
        return ".".to_owned();
    }
    match path.trim_end_matches('/').rsplit('/').next() {
        None | Some("") => "/".to_owned(),
        Some(last) => last.to_owned(),
    }
}

fn dir(path: &str) -> String {
    clean(&path[..path.rfind('/').map_or(0, |i| i + 1)])
}

fn ext(path: &str) -> String {
    let last = path.rsplit('/').next().unwrap_or(path);
    last.rfind('.').map_or_else(String::new, |i| last[i..].to_owned())
}

fn clean(path: &str) -> String {
    let rooted = path.starts_with('/');
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => {
                parts.pop();
            }
            ".." if rooted => {}
            other => parts.push(other),
        }
    }
    match (rooted, parts.is_empty()) {
        (true, _) => format!("/{}", parts.join("/")),
        (false, true) => ".".to_owned(),
        (false, false) => parts.join("/"),
    }
}
