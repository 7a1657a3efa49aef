//! Errors of `go build` as diagnostics with place, excerpt and hint. Pure: texts in, diagnostics out.

use opdev_event::{Diagnostic, Place, Severity};
use opdev_sources::chart_problems;
use serde_json::Value;
use std::path::Path;

/// More diagnostics than these of one build are not shown.
const MOST: usize = 20;

/// The text of a build: lines of `-json` are opened, others are taken as they are.
pub(super) fn text_of(stdout: &str, stderr: &str) -> String {
    let mut text = String::new();
    for line in stdout.lines() {
        match serde_json::from_str::<Value>(line) {
            Ok(Value::Object(action)) => {
                if let Some(output) = action.get("Output").and_then(Value::as_str) {
                    text.push_str(output);
                    if !output.ends_with('\n') {
                        text.push('\n');
                    }
                }
            }
            Ok(_) | Err(_) => {
                text.push_str(line);
                text.push('\n');
            }
        }
    }
    text + stderr
}

/// Reads the diagnostics. `dir` is where the build ran, `root` the project's root, `read` gives a file's
/// text: a `//line` comment of the project may name any file, such as a device that never ends.
pub(super) fn diagnostics(
    text: &str,
    dir: &Path,
    root: &Path,
    read: impl Fn(&Path) -> Option<String>,
) -> Vec<Diagnostic> {
    let mut found: Vec<Diagnostic> = Vec::new();
    for line in text.lines() {
        if line.starts_with("# ") || line.trim().is_empty() || line.starts_with("go: downloading ") {
            continue;
        }
        if let Some(more) = line.strip_prefix('\t')
            && let Some(last) = found.last_mut()
        {
            last.message.push('\n');
            last.message.push_str(more);
            continue;
        }
        if line == "too many errors" {
            continue;
        }
        found.push(one(line, dir, root, &read));
    }
    for diagnostic in &mut found {
        diagnostic.hint = hint(&diagnostic.message);
    }
    // A file that does not compile fails once for each package that needs it.
    let mut unique: Vec<Diagnostic> = Vec::new();
    for diagnostic in found {
        if !unique.contains(&diagnostic) {
            unique.push(diagnostic);
        }
    }
    unique.truncate(MOST);
    unique
}

fn one(line: &str, dir: &Path, root: &Path, read: &impl Fn(&Path) -> Option<String>) -> Diagnostic {
    let mut diagnostic = Diagnostic {
        severity: Severity::Error,
        message: line.strip_prefix("go: ").unwrap_or(line).to_owned(),
        place: None,
        excerpt: None,
        hint: None,
        kind: None,
    };
    match placed(line) {
        Some((file, number, column, message)) => {
            let path = dir.join(file.trim_start_matches("./"));
            let shown = path.strip_prefix(root).unwrap_or(&path).display().to_string();
            diagnostic.excerpt = read(&path).and_then(|text| chart_problems::excerpt(&text, number, column));
            diagnostic.place = Some(Place { file: shown, line: number, column });
            message.clone_into(&mut diagnostic.message);
        }
        None if line.starts_with("go: ") || line.contains("go.mod") || line.contains("go.sum") => {
            let path = dir.join("go.mod");
            let shown = path.strip_prefix(root).unwrap_or(&path).display().to_string();
            diagnostic.place = Some(Place { file: shown, line: 0, column: 0 });
        }
        None => {}
    }
    diagnostic
}

/// `file:line[:column]: message`.
fn placed(line: &str) -> Option<(&str, u32, u32, &str)> {
    let at = line.find(": ")?;
    let (place, message) = (&line[..at], &line[at + 2..]);
    let mut parts = place.rsplitn(3, ':');
    let last: u32 = parts.next()?.parse().ok()?;
    let middle = parts.next()?;
    match (parts.next(), middle.parse::<u32>()) {
        (Some(file), Ok(number)) => Some((file, number, last, message)),
        (None, _) => {
            Some((middle, last, 0, message)).filter(|(file, ..)| file.ends_with(".go") || *file == "go.mod")
        }
        (Some(_), Err(_)) => None,
    }
}

fn hint(message: &str) -> Option<String> {
    let says = |words: &str| message.contains(words);
    let text = if says("missing go.sum entry")
        || says("no required module provides package")
        || says("updates to go.mod")
    {
        "run `go mod tidy`, or the `go get` that is named"
    } else if says("GOTOOLCHAIN=local") {
        "install this version of Go, or let the go command fetch it once: `GOTOOLCHAIN=auto go build ./...`"
    } else if says("dial tcp")
        || says("proxyconnect")
        || says("no such host")
        || says("module lookup disabled")
    {
        "the module is not in the module cache and cannot be fetched: go online once and run `go mod download`"
    } else if says("no space left on device") {
        "make room on the disk, for example with `go clean -cache`"
    } else {
        return None;
    };
    Some(text.to_owned())
}

/// The version of controller-runtime that a `go.mod` asks for; empty where a folder takes its place, `None`
/// where it asks for none.
pub(super) fn controller_runtime(go_mod: &str) -> Option<String> {
    const PATH: &str = "sigs.k8s.io/controller-runtime";
    let lines = || go_mod.lines().map(|line| line.split("//").next().unwrap_or_default().trim());
    let replaced = lines().find_map(|line| {
        let line = line.strip_prefix("replace").unwrap_or(line).trim();
        let (old, new) = line.split_once("=>")?;
        (old.split_whitespace().next() == Some(PATH))
            .then(|| new.split_whitespace().nth(1).unwrap_or_default())
    });
    let required = lines().filter(|line| !line.contains("=>")).find_map(|line| {
        let line = line.strip_prefix("require").unwrap_or(line).trim();
        line.strip_prefix(PATH)?.strip_prefix(' ').map(str::trim)
    });
    replaced.or(required).map(str::to_owned)
}

/// The path of a `go.mod`'s module; empty where it has none.
pub(super) fn module_path(go_mod: &str) -> String {
    let line = go_mod.lines().find_map(|line| line.trim().strip_prefix("module "));
    line.unwrap_or_default().trim().trim_matches('"').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<String> {
        let file =
            |path: &Path| path.ends_with("cmd/main.go").then(|| "package main\n\nfunc main() {\n".to_owned());
        diagnostics(text, Path::new("/p"), Path::new("/p"), file)
            .iter()
            .map(|one| {
                let place = one.place.as_ref().map(ToString::to_string).unwrap_or_default();
                let excerpt = if one.excerpt.is_some() { " +excerpt" } else { "" };
                let hint = if one.hint.is_some() { " +hint" } else { "" };
                format!("{place}|{}{excerpt}{hint}", one.message)
            })
            .collect()
    }

    #[test]
    fn json_and_plain_text_give_the_same_diagnostics() {
        let plain = "# a.b/c/cmd\ncmd/main.go:3:6: undefined: foo\n\thave (int)\n\twant (string)\n./cmd/main.go:3:9: too\n";
        let json = plain
            .lines()
            .map(|line| serde_json::json!({"ImportPath": "x", "Action": "build-output", "Output": format!("{line}\n")}))
            .map(|line| format!("{line}\n"))
            .collect::<String>()
            + "{\"ImportPath\":\"x\",\"Action\":\"build-fail\"}\n";
        let expected = [
            "cmd/main.go:3:6|undefined: foo\nhave (int)\nwant (string) +excerpt",
            "cmd/main.go:3:9|too +excerpt",
        ];
        assert_eq!(read(&text_of("", plain)), expected);
        assert_eq!(read(&text_of(&json, "")), expected);
    }

    #[test]
    fn what_has_no_place_in_code_is_shown_at_go_mod_with_what_to_do() {
        assert_eq!(
            read("cmd/main.go:5:2: no required module provides package x.y/z; to add it:\n\tgo get x.y/z\n"),
            ["cmd/main.go:5:2|no required module provides package x.y/z; to add it:\ngo get x.y/z +hint"]
        );
        assert_eq!(
            read("go: go.mod requires go >= 1.99 (running go 1.26.8; GOTOOLCHAIN=local)\n"),
            ["go.mod|go.mod requires go >= 1.99 (running go 1.26.8; GOTOOLCHAIN=local) +hint"]
        );
        assert_eq!(
            read("go: downloading a.b/c v1.0.0\n/usr/lib/go/link: out of luck\n"),
            ["|/usr/lib/go/link: out of luck"]
        );
    }

    #[test]
    fn the_version_of_controller_runtime_is_what_go_mod_asks_for() {
        let version = |text: &str| controller_runtime(text);
        assert_eq!(
            version("require sigs.k8s.io/controller-runtime v0.19.0 // indirect\n").as_deref(),
            Some("v0.19.0")
        );
        let block = "module \"a/b\"\nrequire (\n\tsigs.k8s.io/controller-runtime v0.24.1\n)\n";
        assert_eq!((version(block).as_deref(), module_path(block).as_str()), (Some("v0.24.1"), "a/b"));
        let replaced = format!("{block}replace sigs.k8s.io/controller-runtime => x.y/z v0.23.0\n");
        assert_eq!(version(&replaced).as_deref(), Some("v0.23.0"));
        let folder = format!("{block}replace sigs.k8s.io/controller-runtime => ../cr\n");
        assert_eq!(version(&folder).as_deref(), Some(""));
        assert_eq!(version("module a\n"), None);
    }
}
