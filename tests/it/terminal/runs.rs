//! Whole runs of `opdev run` in a terminal: samples, edits, questions, and the way out.

use super::SIZE;
use crate::gadget::{RECONCILER, TYPES, gadgets};
use crate::inner_loop::demo_project;
use crate::pty::Pty;
use portable_pty::CommandBuilder;
use rustix::process::Signal;
use std::fs;
use std::path::Path;

/// `opdev run --embedded` in a terminal.
pub(super) fn opdev(project: &Path) -> Pty {
    let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_opdev"));
    command.args(["run", "--embedded"]);
    command.cwd(project);
    Pty::start(command, SIZE)
}

/// Changes a file, as an editor does.
pub(super) fn edit(path: &Path, change: impl Fn(&str) -> String) {
    let text = fs::read_to_string(path).unwrap();
    let changed = change(&text);
    assert_ne!(text, changed, "the edit of {} changes nothing", path.display());
    fs::write(path, changed).unwrap();
}

/// How many lines of the screen hold a text.
pub(super) fn lines(screen: &vt100::Screen, text: &str) -> usize {
    screen.contents().lines().filter(|line| line.contains(text)).count()
}

#[test]
fn a_session_from_the_first_sample_to_quit() {
    let (_folder, project) = demo_project();
    let mut pty = opdev(&project);
    pty.wait_for("to apply a sample");
    pty.keys("a");
    pty.wait_for("type to narrow");
    pty.keys("memcached-sample\r");
    pty.wait_until("three running pods, installed", |screen| {
        lines(screen, " Running ") == 3 && lines(screen, "created ") >= 1 && lines(screen, " 3/3") >= 2
    });
    let template = project.join("charts/memcached/templates/deployment.yaml");
    let good = fs::read_to_string(&template).unwrap();
    edit(&template, |text| text.replace("--conn-limit=", "--max-conns="));
    pty.wait_for("deployment.yaml live in");
    pty.wait_for("edit deployment.yaml");
    // Broken: the place is on the screen, and what served serves on. Mended: the message is gone.
    edit(&template, |text| text.replacen("{{", "{{ nope", 1));
    pty.wait_for("─ ✗ deployment.yaml:");
    pty.wait_for("version keeps running");
    fs::write(&template, good).unwrap();
    pty.wait_without("version keeps running");
    pty.keys("s");
    pty.wait_for("replicas  3");
    pty.keys("5\r");
    pty.wait_until("five running pods", |screen| {
        lines(screen, " Running ") == 5 && lines(screen, " 5/5") >= 2
    });
    pty.keys("D");
    pty.wait_for("[y] Delete");
    pty.keys("y");
    pty.wait_for("to apply a sample");
    pty.keys("q");
    assert!(pty.wait_exit().success(), "{}", pty.screen());
    pty.assert_restored();
    // Chance decides which of the reconciles it was, and how long it was the newest.
    let events = fs::read_to_string(project.join(".opdev/events.jsonl")).unwrap();
    let scaled = |line: &str| line.contains("reconcileStarted") && line.contains(".spec.replicaCount");
    assert!(events.lines().any(scaled), "{events}");
}

#[test]
fn types_and_reconcilers_are_saved_held_and_answered() {
    let (_folder, project) = demo_project();
    gadgets(&project);
    let mut pty = opdev(&project);
    pty.wait_for("to apply a sample");
    pty.keys("a");
    pty.wait_for("type to narrow");
    pty.keys("gadget\r");
    pty.wait_until("two children", |screen| lines(screen, "○ ConfigMap top-") == 2);
    let types = project.join(TYPES);
    let good = fs::read_to_string(&types).unwrap();

    // A value in use goes: the question names object and field, and undoing the edit clears it.
    edit(&types, |text| text.replace("gold;silver", "silver"));
    pty.wait_until("the question", |screen| {
        let text = screen.contents();
        ["Your answer is needed · Gadget", "BREAK", "Gadget default/top .spec.tier", "H answer"]
            .iter()
            .all(|part| text.contains(part))
    });
    fs::write(&types, &good).unwrap();
    pty.wait_without("Your answer is needed");

    // Half-typed: placed, and what served serves on.
    edit(&types, |text| text.replace("Size int32 `json:\"size\"`", "Size int32 `json:"));
    pty.wait_for("─ ✗ gadget_types.go:");
    pty.wait_for("version keeps running");
    fs::write(&types, &good).unwrap();
    pty.wait_without("version keeps running");

    // A new field is live at once.
    edit(&types, |text| {
        text.replace(
            "}\n\n// GadgetStatus",
            "\n\tNote string `json:\"note,omitempty\"`\n}\n\n// GadgetStatus",
        )
    });
    pty.wait_for("gadget_types.go CRD live in");

    // A reconciler that would delete waits for its letter.
    edit(&project.join(RECONCILER), |text| text.replace(", map(\"two\", 2)]", "]"));
    pty.wait_for("H answer");
    pty.keys("H");
    pty.wait_for("[a] Switch anyway");
    pty.keys("a");
    pty.wait_until("one child", |screen| lines(screen, "○ ConfigMap top-") == 1);
    pty.keys("q");
    assert!(pty.wait_exit().success(), "{}", pty.screen());
    pty.assert_restored();
}

#[test]
fn sigterm_ends_a_session_in_good_order() {
    let (_folder, project) = demo_project();
    let mut pty = opdev(&project);
    pty.wait_for("to apply a sample");
    pty.signal(Signal::TERM);
    pty.wait_exit();
    pty.assert_restored();
}
