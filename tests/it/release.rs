//! The makers of a release: the script that packs it, and the workflows of the hosting service, as far as
//! that can be seen from here: jobs that need each other, commands that exist, words that are defined.

use crate::pull::sha256;
use opdev_object::yaml;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &Path) -> Value {
    let text = fs::read_to_string(path).unwrap();
    yaml::to_json(&yaml::parse(&text).unwrap_or_else(|error| panic!("{}: {error:?}", path.display())))
        .unwrap()
}

/// The words between `${{` and `}}`.
fn expressions(text: &str) -> Vec<&str> {
    text.split("${{").skip(1).filter_map(|rest| Some(rest.split_once("}}")?.0.trim())).collect()
}

fn check_job(workflow: &str, name: &str, job: &Value, jobs: &Value, wrong: &mut Vec<String>) {
    let mut say = |what: String| wrong.push(format!("{workflow}, job {name}: {what}"));
    let text = job.to_string();
    if !job["runs-on"].is_string() {
        say("it runs nowhere".to_owned());
    }
    if !job["timeout-minutes"].is_u64() {
        say("it has no timeout-minutes, so it may hang for six hours".to_owned());
    }
    let needs: Vec<&Value> = match &job["needs"] {
        Value::Array(many) => many.iter().collect(),
        Value::Null => Vec::new(),
        one => vec![one],
    };
    for needed in needs {
        if jobs.get(needed.as_str().unwrap()).is_none() {
            say(format!("it needs {needed}, which is no job"));
        }
    }
    let rows = job["strategy"]["matrix"]["include"].as_array().cloned().unwrap_or_default();
    for used in expressions(&text) {
        if let Some(key) = used.strip_prefix("matrix.")
            && (rows.is_empty() || rows.iter().any(|row| row.get(key).is_none()))
        {
            say(format!("matrix.{key} is not set in each row"));
        }
    }
    for step in job["steps"].as_array().unwrap_or(&Vec::new()) {
        match (&step["uses"], &step["run"]) {
            (Value::String(action), Value::Null) => {
                let pinned = action.split_once("@v").is_some_and(|(_, version)| !version.is_empty());
                if !pinned {
                    say(format!("{action} names no version"));
                }
            }
            (Value::Null, Value::String(script)) => commands(script).iter().for_each(|command| {
                if command.starts_with(".ci/") && !is_executable(&root().join(command)) {
                    say(format!("{command} is no program of this repository"));
                }
                let known = ["cargo", "rustup", "sudo", "gh", "export", "if", "version=$(sed"];
                let is_own =
                    command.starts_with(".ci/") || command.starts_with("\"$") || command.contains('=');
                if !is_own && !known.contains(&command.as_str()) {
                    say(format!("{command} is a command that this test does not know"));
                }
            }),
            _ => say("a step runs nothing, or two things".to_owned()),
        }
    }
}

/// The first word of each line of a script.
fn commands(script: &str) -> Vec<String> {
    let lines = script.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
}

fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    path.metadata().is_ok_and(|about| about.is_file() && about.permissions().mode() & 0o111 != 0)
}

#[test]
fn workflows_name_what_exists() {
    let mut wrong = Vec::new();
    let mut jobs_seen = Vec::new();
    for entry in fs::read_dir(root().join(".github/workflows")).unwrap() {
        let path = entry.unwrap().path();
        let workflow = path.file_name().unwrap().to_str().unwrap().to_owned();
        let value = read(&path);
        // `on` is a truth of YAML 1.1 and a word of 1.2.
        assert!(value.get("on").or(value.get("true")).is_some(), "{workflow} is never started");
        assert!(value["permissions"].is_object(), "{workflow} gets all permissions");
        for (name, job) in value["jobs"].as_object().unwrap() {
            check_job(&workflow, name, job, &value["jobs"], &mut wrong);
            jobs_seen.push(name.clone());
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    for wanted in ["lint", "ci", "macos", "msrv", "build", "draft"] {
        assert!(jobs_seen.iter().any(|job| job == wanted), "no job {wanted}: {jobs_seen:?}");
    }
}

fn release(args: &[&str], out: &Path, tag: Option<&str>) -> Output {
    let mut command = Command::new(root().join(".ci/release"));
    command.args(args).arg("--out").arg(out).env_remove("SOURCE_DATE_EPOCH");
    match tag {
        Some(tag) => command.env("GITHUB_REF_TYPE", "tag").env("GITHUB_REF_NAME", tag),
        None => command.env_remove("GITHUB_REF_TYPE"),
    };
    command.output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&[output.stdout.as_slice(), &output.stderr].concat()).into_owned()
}

#[test]
fn a_release_is_packed_with_what_package_managers_read() {
    let folder = tempfile::tempdir().unwrap();
    // Stands for the program of a release, which would be large.
    let program = folder.path().join("program");
    fs::write(&program, format!("#!/bin/sh\nexec {} \"$@\"\n", env!("CARGO_BIN_EXE_opdev"))).unwrap();
    assert!(Command::new("chmod").arg("755").arg(&program).status().unwrap().success());
    let version = env!("CARGO_PKG_VERSION");
    let pack = |target: &str, out: &str| -> (PathBuf, Vec<u8>) {
        let out = folder.path().join(out);
        let args = ["--target", target, "--program", program.to_str().unwrap()];
        let made = release(&args, &out, Some(&format!("v{version}")));
        assert!(made.status.success(), "{}", said(&made));
        let archive = out.join(format!("opdev-{version}-{target}.tar.gz"));
        let bytes = fs::read(&archive).unwrap();
        (archive, bytes)
    };
    let (archive, bytes) = pack("x86_64-unknown-linux-musl", "one");
    assert_eq!(pack("x86_64-unknown-linux-musl", "other").1, bytes, "the same program, packed again");
    let sum = fs::read_to_string(format!("{}.sha256", archive.display())).unwrap();
    assert_eq!(sum.split_whitespace().next(), Some(sha256(&bytes).as_str()));
    let mut tar = tar::Archive::new(flate2::read::GzDecoder::new(bytes.as_slice()));
    let entries = tar.entries().unwrap().map(|entry| entry.unwrap().path().unwrap().display().to_string());
    let names: Vec<String> = entries.filter_map(|path| Some(path.split_once('/')?.1.to_owned())).collect();
    for wanted in [
        "opdev",
        "README.md",
        "LICENSE-MIT",
        "LICENSE-APACHE",
        "complete/_opdev",
        "complete/opdev.bash",
        "man/opdev-run.1",
    ] {
        assert!(names.iter().any(|name| name == wanted), "{wanted} is missing: {names:?}");
    }
    let (_, apple) = pack("aarch64-apple-darwin", "one");
    let made = release(&["--manifests"], &folder.path().join("one"), None);
    assert!(made.status.success(), "{}", said(&made));
    let krew = read(&folder.path().join("one/opdev.yaml"));
    let platforms = krew["spec"]["platforms"].as_array().unwrap();
    let sums: Vec<&Value> = platforms.iter().map(|platform| &platform["sha256"]).collect();
    assert_eq!(sums, [&Value::from(sha256(&bytes)), &Value::from(sha256(&apple))]);
    let formula = fs::read_to_string(folder.path().join("one/opdev.rb")).unwrap();
    assert!(
        formula.contains(&sha256(&apple)) && formula.contains(&format!("v{version}/opdev-{version}-aarch64"))
    );
    let wrong = release(&["--manifests"], &folder.path().join("one"), Some("v9.9.9"));
    assert!(!wrong.status.success() && said(&wrong).contains("v9.9.9"), "{}", said(&wrong));
    let none = release(&["--manifests"], &folder.path().join("empty"), None);
    assert!(!none.status.success() && said(&none).contains("no archives"), "{}", said(&none));
}
