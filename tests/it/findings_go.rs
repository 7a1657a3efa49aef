//! Faults of a real Go operator, each of which opdev has to name: `tests/reference/findings` shows them.

use crate::oracle::oracle;
use crate::traced::go_is_there;
use std::path::Path;
use std::process::Command;

/// Faults that no storm hides. The storms, and what looks like a fault and is none, are in the whole run of the script.
const FAULTS: [&str; 9] = [
    "missing-watch",
    "missing-watch-owner",
    "event-dropped",
    "left-behind",
    "name-collision",
    "no-observed-generation",
    "error-swallowed",
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
