//! Acting in a terminal: pausing and stepping, several at once, copying, reading files again, and unlocking a
//! cluster.

use super::leaving::{cluster, opdev_on};
use super::runs::{lines, opdev};
use super::{apply, quit, with_sample};
use crate::inner_loop::demo_project;
use base64::Engine as _;
use rustix::process::Signal;
use std::fs;

#[test]
fn what_is_paused_collects_its_causes_and_goes_on_by_steps() {
    let (_folder, project) = demo_project();
    let mut pty = opdev(&project);
    pty.wait_for("to apply a sample");
    apply(&mut pty, "podset-sample");
    pty.wait_until("three running pods", |screen| lines(screen, " Running ") == 3);
    pty.keys("p");
    pty.wait_for("· 1 paused");
    pty.wait_for("paused ");
    pty.keys("s");
    pty.wait_for("replicas  3");
    pty.keys("5\r");
    pty.wait_for("scaled to 5");
    pty.wait_until("as many pods as before", |screen| lines(screen, " Running ") == 3);
    // One step, and paused still.
    pty.keys(".");
    pty.wait_until("five running pods", |screen| lines(screen, " Running ") == 5);
    pty.wait_for("· 1 paused");
    pty.keys("p");
    pty.wait_without("· 1 paused");
    quit(pty);
}

#[test]
fn marked_ones_are_scaled_and_deleted_together() {
    let (_folder, project) = demo_project();
    let mut pty = opdev(&project);
    with_sample(&mut pty);
    apply(&mut pty, "podset-sample");
    pty.wait_until("both", |screen| {
        screen.contents().contains("podset-sample") && screen.contents().contains("Custom resources · 2")
    });
    pty.keys("1*");
    pty.wait_for("· 2 marked");
    pty.keys("s");
    pty.wait_for("Scale 2 objects");
    pty.keys("2\r");
    pty.wait_until("two pods each", |screen| lines(screen, " 2/2") >= 4);
    // A finished action is not done again by accident: the marks are gone.
    pty.wait_without("marked");
    pty.keys("*D");
    pty.wait_for("Delete 2 objects?");
    // Enter alone deletes nothing.
    pty.keys("\rn");
    pty.wait_without("Delete 2 objects?");
    pty.keys("D");
    pty.wait_for("Delete 2 objects?");
    pty.keys("y");
    pty.wait_for("to apply a sample");
    quit(pty);
}

#[test]
fn a_name_goes_to_the_clipboard_and_files_are_read_again() {
    let (_folder, project) = demo_project();
    let mut pty = opdev(&project);
    with_sample(&mut pty);
    pty.keys("c");
    pty.wait_for("Copy · esc closes");
    pty.keys("n");
    pty.wait_without("Copy · esc closes");
    let name = base64::engine::general_purpose::STANDARD.encode("memcached-sample");
    let sequence = format!("\u{1b}]52;c;{name}\u{7}");
    // No screen shows the sequence; it stands before the frame without the dialog.
    assert!(pty.raw().contains(&sequence), "no {sequence:?}");
    pty.keys("R");
    pty.wait_for("✓ live");
    pty.keys("=");
    pty.wait_for("no further writes");
    pty.keys("T");
    pty.wait_for("Tasks");
    pty.wait_for("✓ reload");
    pty.keys("\u{1b}");
    pty.wait_without("✓ reload");
    pty.keys("ge");
    pty.wait_for("No custom resource has a fault");
    pty.keys("ge");
    pty.wait_for("● Memcached");
    quit(pty);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_that_is_not_local_is_unlocked_by_its_name() {
    let (_folder, project) = demo_project();
    let (plane, _listening, kubeconfig) = cluster(&project).await;
    let text = fs::read_to_string(&kubeconfig).unwrap();
    fs::write(&kubeconfig, text.replace(": opdev\n", ": production\n")).unwrap();
    let mut pty = opdev_on(&project, &kubeconfig, &[]);
    pty.wait_for("read-only");
    pty.keys("a");
    pty.wait_for("U unlocks it");
    pty.keys("U");
    pty.wait_for("Unlock production?");
    pty.keys("prod\r");
    pty.wait_for("Unlock production?");
    pty.keys("uction\r");
    pty.wait_without("read-only");
    with_sample(&mut pty);
    pty.signal(Signal::TERM);
    pty.wait_exit();
    pty.assert_restored();
    plane.stop().await;
}
