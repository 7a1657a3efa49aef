//! Faults of a real Go operator, each of which opdev has to name: `tests/reference/findings` shows them.

use crate::oracle::oracle;
use crate::traced::go_is_there;
use std::path::Path;
use std::process::Command;

/// Faults that no storm hides. The storms, and what looks like a fault and is none, are in the whole run of
/// the script.
const FAULTS: [&str; 12] = [
    "missing-watch",
    "missing-watch-owner",
    "event-dropped",
    "left-behind",
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
#[cfg_attr(not(oracles), ignore = "needs OPDEV_ORACLES")]
fn faults_of_a_go_operator_are_named() {
    let kubectl = oracle("kubectl");
    if !go_is_there() {
        return;
    }
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
fn a_second_reconcile_of_a_go_operator_is_judged() {
    if !go_is_there() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let project = folder.path().join("operator");
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reference/findings/operator");
    copy(&from, &project);
    let opdev = |arguments: &[&str]| {
        let mut opdev = Command::new(env!("CARGO_BIN_EXE_opdev"));
        opdev.args(arguments).current_dir(&project).env("XDG_STATE_HOME", folder.path().join("state"));
        opdev.env_remove("KUBECONFIG").output().unwrap()
    };
    assert!(opdev(&["trust"]).status.success());
    for (shows, good) in [("healthy-order", true), ("still-writes", false)] {
        let sample = format!(
            "apiVersion: findings.example.com/v1\nkind: Case\nmetadata: {{name: a}}\nspec: {{shows: {shows}, env: {{A: b}}}}\n"
        );
        std::fs::write(project.join("config/samples/a.yaml"), sample).unwrap();
        let out = opdev(&["ci", "config/samples/a.yaml", "--findings", "none"]);
        let said = String::from_utf8_lossy(&out.stdout);
        assert_eq!(out.status.success(), good, "{shows}: {said}{}", String::from_utf8_lossy(&out.stderr));
        if !good {
            assert!(said.contains("second reconcile writes nothing"), "{said}");
            assert!(said.contains("still writes") && said.contains("data.at"), "{said}");
            assert!(said.contains("(controllers/reconciler.go:"), "{said}");
        }
    }
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
