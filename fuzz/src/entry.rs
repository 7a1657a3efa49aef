//! Functions that a fuzzer calls: bytes in, nothing out; a panic, a hang or unbounded memory is the finding.

use opdev_helm::chart::{Chart, FileSet, read_dir};
use opdev_helm::engine::{Capabilities, Compat, Environment, ReleaseInfo, RenderInput, Rendered, render};
use opdev_types::go::{Files, Generated, Generator, Options};
use serde_json::json;
use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A world that stands still.
pub struct Still;

impl Environment for Still {
    fn now(&self) -> jiff::Timestamp {
        jiff::Timestamp::from_second(1_700_000_000).unwrap_or_default()
    }

    fn random(&self, buffer: &mut [u8]) {
        for (i, byte) in buffer.iter_mut().enumerate() {
            *byte = (i * 37 % 256) as u8;
        }
    }

    fn lookup(&self, _: &str, _: &str, _: &str, _: &str) -> Result<serde_json::Value, String> {
        Ok(json!({}))
    }
}

/// Renders a chart of these files; the error is Helm's text.
pub fn render_files(files: &FileSet, compat: Compat) -> Result<Rendered, String> {
    let chart = Chart::load_for(files, compat).map_err(|error| error.message)?;
    let values = json!({});
    let capabilities = Capabilities::default_for(compat);
    let release = ReleaseInfo::install("release-name", "default");
    let input = RenderInput { compat, ..RenderInput::new(&values, release, &capabilities, &Still) };
    render(&chart, &input).map_err(|error| error.message)
}

/// Reads a YAML text in every way there is, and writes it again.
pub fn yaml(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let _ = opdev_object::yaml::documents(text);
    if let Ok(value) = opdev_object::yaml::from_str(text) {
        let written = opdev_object::yaml::to_string(&value);
        if comes_back(&value) {
            let again = opdev_object::yaml::from_str(&written);
            assert!(again.is_ok_and(|again| same(&again, &value)), "{value} is written as {written:?}");
        }
        let _ = opdev_object::yaml::to_string_pretty(&value);
    }
    let _ = opdev_object::yaml::values_from_str(text);
}

/// Returns true if a value comes back from being written. Helm has texts that do not: U+0085 and its kin are
/// left as they are and folded, and a key of two less-than signs is not quoted.
fn comes_back(value: &serde_json::Value) -> bool {
    use serde_json::Value;
    let plain = |text: &str| !text.contains(['\u{85}', '\u{2028}', '\u{2029}', '\u{feff}']);
    match value {
        Value::String(text) => plain(text),
        Value::Array(items) => items.iter().all(comes_back),
        Value::Object(map) => map.iter().all(|(key, value)| key != "<<" && plain(key) && comes_back(value)),
        Value::Null | Value::Bool(_) | Value::Number(_) => true,
    }
}

/// Returns true if both are one value, whatever the form of their numbers.
fn same(a: &serde_json::Value, b: &serde_json::Value) -> bool {
    use serde_json::Value;
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| same(a, b)))
        }
        _ => a == b,
    }
}

/// Parses and runs a program; what follows a zero byte is values.yaml.
pub fn template(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let (program, values) = text.split_once('\0').unwrap_or((text, "s: x\nl: [1, a]\nd: {a: {b: 1}}\n"));
    let files: FileSet = [
        ("Chart.yaml", "apiVersion: v2\nname: probe\nversion: 0.1.0\n"),
        ("values.yaml", values),
        ("templates/NOTES.txt", program),
    ]
    .into_iter()
    .map(|(path, text)| (path, text.as_bytes()))
    .collect();
    for compat in [Compat::V3, Compat::V4] {
        let _ = render_files(&files, compat);
    }
}

/// Loads a packaged chart, as `charts/x.tgz` and by itself, and renders it.
pub fn chart(data: &[u8]) {
    let files: FileSet = [
        ("Chart.yaml", &b"apiVersion: v2\nname: probe\nversion: 0.1.0\n"[..]),
        ("templates/a.yaml", b"a: 1\n"),
        ("charts/x.tgz", data),
    ]
    .into_iter()
    .collect();
    let _ = render_files(&files, Compat::V3);
    let path = std::env::temp_dir().join(format!("opdev-fuzz-{}.tgz", std::process::id()));
    if std::fs::write(&path, data).is_ok() {
        if let Ok(files) = read_dir(&path) {
            let _ = render_files(&files, Compat::V4);
        }
        let _ = std::fs::remove_file(&path);
    }
}

/// A Go module on disk with one more file.
struct OneMore {
    root: PathBuf,
    text: Arc<str>,
}

const FILE: &str = "fuzzed/v1/types.go";

impl Files for OneMore {
    fn read(&self, path: &str) -> Option<Arc<str>> {
        if path == FILE {
            return Some(self.text.clone());
        }
        std::fs::read_to_string(self.root.join(path)).ok().map(Into::into)
    }

    fn list(&self, dir: &str) -> Vec<String> {
        if dir == "fuzzed/v1" {
            return vec!["types.go".to_owned()];
        }
        let entries = std::fs::read_dir(self.root.join(dir)).into_iter().flatten().flatten();
        let mut names: Vec<String> =
            entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort();
        names
    }

    fn module_cache(&self) -> Option<String> {
        None
    }
}

thread_local! {
    /// A generator that has seen all inputs before this one, and what it made last.
    static WARM: RefCell<(Generator, Generated)> = RefCell::default();
}

/// Makes CRDs of a Go type file, once after all the others and once from nothing: both must agree. Writes,
/// compares and checks what comes out.
pub fn go(data: &[u8]) {
    let text = opdev_types::go::source(data);
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/golden/types/go");
    let files = OneMore { root, text: text.into() };
    let packages = ["fuzzed/v1".to_owned()];
    let options = Options::default();
    let fresh = Generator::new().generate(&files, &packages, &options);
    WARM.with_borrow_mut(|(generator, last)| {
        let made = generator.generate(&files, &packages, &options);
        assert_eq!(made.diagnostics, fresh.diagnostics);
        assert_eq!(made.crds.len(), fresh.crds.len());
        for (made, fresh) in made.crds.iter().zip(&fresh.crds) {
            assert_eq!(made.object, fresh.object);
            assert_eq!((&made.places, made.broken), (&fresh.places, fresh.broken));
        }
        for crd in &made.crds {
            let _ = opdev_types::emit::crd(&crd.object, "");
            if !crd.broken {
                let before = last.crds.iter().find(|old| old.object["metadata"] == crd.object["metadata"]);
                let _ = opdev_types::impact::compare(before.map(|old| &*old.object), &crd.object);
                let _ = opdev_types::impact::check(&crd.object);
                let _ = opdev_types::declarations::declarations(&[serde_json::Value::clone(&crd.object)]);
            }
        }
        let lines = u32::try_from(files.text.matches('\n').count() + 1).unwrap_or(u32::MAX);
        for place in made.diagnostics.iter().filter_map(|found| found.place.as_ref()) {
            assert!(place.file != FILE || (1..=lines).contains(&place.line), "{place:?}");
        }
        *last = made;
    });
}
