//! Faults of a real Go operator, each of which opdev has to name: `tests/reference/findings` shows them.

use crate::oracle::oracle;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Faults that no storm hides. The storms, and what looks like a fault and is none, are in the whole run of
/// the script.
const FAULTS: [&str; 15] = [
    "missing-watch",
    "missing-watch-owner",
    "event-dropped",
    "left-behind",
    "change-not-applied",
    "change-half-applied",
    "drift-left",
    "overlapping-selector",
    "foreign-metadata",
    "name-collision",
    "no-observed-generation",
    "error-swallowed",
    "deprecated-api",
    "ready-too-early",
    "panic",
];

#[test]
#[cfg_attr(not(all(go, oracles)), ignore = "needs Go and OPDEV_ORACLES")]
fn faults_of_a_go_operator_are_named() {
    let kubectl = oracle("kubectl");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reference/findings/run.py");
    let mut path = vec![kubectl.parent().unwrap().to_owned()];
    path.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()));
    let out = Command::new("python3")
        .arg(script)
        .arg(env!("CARGO_BIN_EXE_opdev"))
        .args(FAULTS)
        .env("PATH", std::env::join_paths(path).unwrap())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&out.stdout);
    assert!(out.status.success(), "{said}{}", String::from_utf8_lossy(&out.stderr));
    assert_eq!(said.lines().filter(|line| line.starts_with("ok ")).count(), FAULTS.len(), "{said}");
}

/// `opdev ci` reconciles each sample of a Go operator once more, and says what that one writes, and where in
/// the code.
#[test]
#[cfg_attr(not(go), ignore = "needs Go")]
fn a_second_reconcile_of_a_go_operator_is_judged() {
    let (_folder, project) = operator();
    for (shows, good) in [("healthy-order", true), ("healthy-events", true), ("still-writes", false)] {
        let out = ci(&project, shows, &["--findings", "none", "--no-disturb"]);
        let said = String::from_utf8_lossy(&out.stdout);
        assert_eq!(out.status.success(), good, "{shows}: {said}{}", String::from_utf8_lossy(&out.stderr));
        if !good {
            assert!(said.contains("second reconcile writes nothing"), "{said}");
            assert!(said.contains("still writes") && said.contains("data.at"), "{said}");
            assert!(said.contains("(controllers/reconciler.go:"), "{said}");
        }
    }
}

/// `opdev ci` turns client-go's detector on: what a program changes in its cache ends it, and is named.
#[test]
#[cfg_attr(not(go), ignore = "needs Go")]
fn an_object_of_the_cache_that_is_changed_fails_a_scenario() {
    let (_folder, project) = operator();
    let out = ci(&project, "cache-mutated", &["--no-disturb"]);
    let said = format!("{}{}", String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    assert_eq!(out.status.code(), Some(1), "{said}");
    assert!(said.lines().any(|line| line.ends_with("opdev explain cache-mutated")), "{said}");
    let out = ci(&project, "healthy-copy", &["--no-disturb"]);
    assert_eq!(out.status.code(), Some(0), "{}", String::from_utf8_lossy(&out.stdout));
}

/// `opdev ci` deletes a child of its own accord: that a controller does not hear of it is known then, and fails
/// the scenario.
#[test]
#[cfg_attr(not(go), ignore = "needs Go")]
fn a_child_that_nobody_watches_fails_a_scenario() {
    let (_folder, project) = operator();
    let out = ci(&project, "missing-watch", &[]);
    let said = format!("{}{}", String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    assert_eq!(out.status.code(), Some(1), "{said}");
    assert!(
        said.contains("opdev explain missing-watch") && said.contains("was deleted by somebody else"),
        "{said}"
    );
    let out = ci(&project, "missing-watch", &["--no-disturb"]);
    let said = String::from_utf8_lossy(&out.stdout);
    assert_eq!(out.status.code(), Some(0), "what nobody has disturbed is a warning: {said}");
    // One that hears of its children, and starts again where it was.
    let out = ci(&project, "healthy-order", &["--junit", "junit.xml"]);
    assert_eq!(out.status.code(), Some(0), "{}", String::from_utf8_lossy(&out.stdout));
    let junit = std::fs::read_to_string(project.join("junit.xml")).unwrap();
    for step in [
        "a child of each kind is deleted",
        "a child of each kind is changed",
        "changed while the program is stopped",
    ] {
        assert!(junit.contains(step), "{junit}");
    }
}

/// `opdev ci` changes a ConfigMap of the sample's file once: that nobody hears of it is known then.
#[test]
#[cfg_attr(not(go), ignore = "needs Go")]
fn a_config_of_the_file_that_nobody_watches_fails_a_scenario() {
    let (_folder, project) = operator();
    let mine = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: mine}\ndata: {mode: old}\n---\n";
    let run = |shows: &str, arguments: &[&str]| {
        let sample = format!(
            "{mine}apiVersion: findings.example.com/v1\nkind: Case\nmetadata: {{name: a}}\nspec: {{shows: {shows}, child: mine}}\n"
        );
        std::fs::write(project.join("config/samples/a.yaml"), sample).unwrap();
        let out =
            opdev(&project, &[&["ci", "config/samples/a.yaml", "--findings", "warning"], arguments].concat());
        (
            out.status.code(),
            format!("{}{}", String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr)),
        )
    };
    let (code, said) = run("referenced-unwatched", &["--junit", "junit.xml"]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("opdev explain referenced-unwatched"), "{said}");
    let junit = std::fs::read_to_string(project.join("junit.xml")).unwrap();
    assert!(junit.contains("a ConfigMap or Secret of the file is changed"), "{junit}");
    let (code, said) = run("referenced-unwatched", &["--no-disturb"]);
    assert_eq!(code, Some(0), "nobody has changed it: {said}");
    let (code, said) = run("healthy-referenced", &[]);
    assert_eq!(code, Some(0), "it makes no use of it: {said}");
}

/// The operator with a fault for each word in `shows`, and its folder.
fn operator() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let project = folder.path().join("operator");
    copy(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reference/findings/operator"), &project);
    let trusted = opdev(&project, &["trust"]);
    assert!(trusted.status.success());
    (folder, project)
}

fn opdev(project: &Path, arguments: &[&str]) -> Output {
    let mut opdev = Command::new(env!("CARGO_BIN_EXE_opdev"));
    opdev.args(arguments).current_dir(project).env("XDG_STATE_HOME", project.with_extension("state"));
    opdev.env_remove("KUBECONFIG").output().unwrap()
}

/// Runs `opdev ci` over a sample that asks for one of its faults.
fn ci(project: &Path, shows: &str, arguments: &[&str]) -> Output {
    let sample = format!(
        "apiVersion: findings.example.com/v1\nkind: Case\nmetadata: {{name: a}}\nspec: {{shows: {shows}, env: {{A: b}}}}\n"
    );
    std::fs::write(project.join("config/samples/a.yaml"), sample).unwrap();
    opdev(project, &[&["ci", "config/samples/a.yaml"], arguments].concat())
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let (path, name) = entry.map(|entry| (entry.path(), entry.file_name())).unwrap();
        if path.is_dir() {
            copy(&path, &to.join(name));
        } else {
            std::fs::copy(&path, to.join(name)).unwrap();
        }
    }
}
