//! Golden cases of `tests/golden/types/go`: own Go files, and what the real controller-gen made of them,
//! release by release. `OPDEV_TYPES_PROJECT=folder[,packages[,folder of
//! CRDs[,version[,maxDescLen[,dangerous+unexported+meta]]]]]` compares a whole project by hand.

#![allow(clippy::disallowed_methods)]

use super::*;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Files on disk below a folder.
pub(crate) struct Disk(pub(crate) PathBuf);

impl Files for Disk {
    fn read(&self, path: &str) -> Option<Arc<str>> {
        fs::read_to_string(self.0.join(path)).ok().map(Into::into)
    }

    fn list(&self, dir: &str) -> Vec<String> {
        let entries = fs::read_dir(self.0.join(dir)).into_iter().flatten().flatten();
        let mut names: Vec<String> =
            entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort();
        names
    }

    fn module_cache(&self) -> Option<String> {
        let home = std::env::var("HOME").ok()?;
        Some(std::env::var("GOMODCACHE").unwrap_or_else(|_| format!("{home}/go/pkg/mod")))
    }

    fn go_root(&self) -> Option<String> {
        std::env::var("GOROOT").ok()
    }
}

/// The CRDs of a folder, by name.
fn expected(folder: &Path) -> BTreeMap<String, Value> {
    let mut out = BTreeMap::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.extension().is_some_and(|ending| ending == "yaml") {
            let text = fs::read_to_string(&path).unwrap();
            for crd in crate::crd::read(&text).unwrap_or_default() {
                out.insert(crd["metadata"]["name"].as_str().unwrap_or_default().to_owned(), crd);
            }
        }
    }
    out
}

/// Paths at which two values differ.
pub(crate) fn differences(path: &str, want: &Value, have: &Value, out: &mut Vec<String>) {
    match (want, have) {
        (Value::Object(want), Value::Object(have)) => {
            for key in want.keys().chain(have.keys().filter(|key| !want.contains_key(*key))) {
                let path = format!("{path}/{key}");
                match (want.get(key), have.get(key)) {
                    (Some(want), Some(have)) => differences(&path, want, have, out),
                    (Some(want), None) => out.push(format!("{path}: lacks {}", brief(want))),
                    (None, Some(have)) => out.push(format!("{path}: has {}", brief(have))),
                    (None, None) => {}
                }
            }
        }
        (Value::Array(want), Value::Array(have)) if want.len() == have.len() => {
            for (index, (want, have)) in want.iter().zip(have).enumerate() {
                differences(&format!("{path}/{index}"), want, have, out);
            }
        }
        (Value::Number(want), Value::Number(have)) if want.as_f64() == have.as_f64() => {}
        _ if want == have => {}
        _ => out.push(format!("{path}: {} instead of {}", brief(have), brief(want))),
    }
}

fn brief(value: &Value) -> String {
    let text = value.to_string();
    if text.chars().count() > 160 { text.chars().take(160).collect::<String>() + "…" } else { text }
}

fn compare(want: &BTreeMap<String, Value>, made: &Generated) -> Vec<String> {
    let name = |crd: &Crd| crd.object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let have: BTreeMap<String, &Value> = made.crds.iter().map(|crd| (name(crd), &*crd.object)).collect();
    let mut out = Vec::new();
    for (name, want) in want {
        match have.get(name) {
            Some(have) => differences(name, want, have, &mut out),
            None => out.push(format!("{name}: was not made")),
        }
    }
    out.extend(
        have.keys().filter(|name| !want.contains_key(*name)).map(|name| format!("{name}: is too much")),
    );
    out
}

fn show(diagnostic: &Diagnostic) -> String {
    let place = diagnostic.place.clone().unwrap_or_default();
    let hint = diagnostic.hint.as_ref().map(|hint| format!(" [{hint}]")).unwrap_or_default();
    format!(
        "{:?} {}:{}:{} {}{hint}",
        diagnostic.severity, place.file, place.line, place.column, diagnostic.message
    )
}

#[test]
fn a_whole_project_by_hand() {
    let Ok(project) = std::env::var("OPDEV_TYPES_PROJECT") else { return };
    let mut parts = project.split(',');
    let root = PathBuf::from(parts.next().unwrap_or("."));
    let packages: Vec<String> = parts.next().unwrap_or("./...").split(';').map(str::to_owned).collect();
    let folder = root.join(parts.next().unwrap_or("config/crd/bases"));
    let profile = Profile::parse(parts.next().unwrap_or("v0.21.0"));
    let max_desc_len = parts.next().and_then(|limit| limit.parse().ok());
    let flags = parts.next().unwrap_or_default();
    let options = Options {
        profile,
        max_desc_len,
        allow_dangerous_types: flags.contains("dangerous"),
        ignore_unexported_fields: flags.contains("unexported"),
        generate_embedded_object_meta: flags.contains("meta"),
        omit_tool_version: flags.contains("omit"),
        exact: false,
    };
    let files = Disk(root);
    let mut generator = Generator::new();
    let start = std::time::Instant::now();
    let made = generator.generate(&files, &packages, &options);
    let cold = start.elapsed();
    let start = std::time::Instant::now();
    generator.generate(&files, &packages, &options);
    let warm = start.elapsed();
    for diagnostic in &made.diagnostics {
        println!("{}", show(diagnostic));
    }
    let want = expected(&folder);
    let wrong = compare(&want, &made);
    for line in wrong.iter().take(60) {
        println!("{line}");
    }
    let versions: usize =
        want.values().map(|crd| crd["spec"]["versions"].as_array().map_or(0, Vec::len)).sum();
    println!(
        "== {project}: {} CRDs, {versions} versions expected, {} differences, {} rbac markers, {} files, cold {cold:?}, again {warm:?}",
        want.len(),
        wrong.len(),
        made.rbac.len(),
        made.read.len()
    );
    assert!(wrong.is_empty());
}

fn cases(folder: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/types").join(folder)
}

fn folders(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap().flatten().filter(|entry| entry.path().is_dir());
    let mut names: Vec<String> = entries.map(|entry| entry.file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// One module with every marker and every form of type, and the CRDs that the releases made of it.
#[test]
fn crds_are_what_each_release_of_controller_gen_makes() {
    let root = cases("go");
    let files = Disk(root.clone());
    let mut wrong = Vec::new();
    let mut count = 0;
    for version in folders(&root.join("expected")) {
        let want = expected(&root.join("expected").join(&version));
        let options = Options { profile: Profile::parse(&version), ..Options::default() };
        let mut made = Generator::new().generate(&files, &["./...".to_owned()], &options);
        // A release that fails on a package made nothing of it.
        made.crds.retain(|crd| want.contains_key(crd.object["metadata"]["name"].as_str().unwrap()));
        count += made.crds.len();
        wrong.extend(compare(&want, &made).into_iter().map(|line| format!("{version} {line}")));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count > 60, "{count} CRDs were compared");
}

/// Sources that controller-gen refuses are refused in its words, at a place in the file, and the CRD counts
/// as broken.
#[test]
fn errors_are_those_of_controller_gen() {
    let root = cases("errors");
    let files = Disk(root.clone());
    let names: Vec<String> = folders(&root).into_iter().filter(|name| name != "vendor").collect();
    assert!(names.len() > 30);
    for name in names {
        let want = fs::read_to_string(root.join(&name).join("expected.txt")).unwrap();
        let made = Generator::new().generate(&files, &[format!("./{name}")], &Options::default());
        let errors = made.diagnostics.iter().filter(|d| d.severity == crate::diagnostic::Severity::Error);
        let mut have: Vec<&str> = errors.clone().map(|error| error.message.as_str()).collect();
        have.sort_unstable();
        have.dedup();
        assert_eq!(have.join("\n"), want.trim_end(), "{name}");
        for error in errors {
            let place = error.place.as_ref().unwrap();
            assert!(place.file.ends_with("types.go") && place.line > 3, "{name}: {error:?}");
        }
        assert!(made.crds.iter().all(|crd| crd.broken), "{name}");
    }
}
