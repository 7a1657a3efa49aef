//! Torture and upgrades beside the screen: begun by a key, followed, stopped, and gone with opdev.

use super::runs::{edit, opdev};
use crate::inner_loop::demo_project;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

fn git(project: &Path, arguments: &[&str]) {
    let mut all = vec!["-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false"];
    all.extend(arguments);
    let done = Command::new("git").args(all).current_dir(project).output().unwrap();
    assert!(done.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&done.stderr));
}

#[test]
fn an_upgrade_is_rehearsed_beside_the_screen() {
    let (_folder, project) = demo_project();
    fs::write(project.join(".gitignore"), ".opdev\n").unwrap();
    git(&project, &["init", "-q"]);
    git(&project, &["add", "."]);
    git(&project, &["commit", "-qm", "one"]);
    git(&project, &["tag", "v1.0.0"]);
    edit(&project.join("charts/memcached/templates/deployment.yaml"), |text| {
        text.replace("  selector:\n    matchLabels:\n", "  selector:\n    matchLabels:\n      new: \"yes\"\n")
            .replace("      labels:\n", "      labels:\n        new: \"yes\"\n")
    });
    let mut pty = opdev(&project);
    pty.wait_for("to apply a sample");
    pty.keys("gv");
    pty.wait_for("the newest tag");
    pty.keys("\r");
    pty.wait_for("v1.0.0 → your working tree");
    // It can be left and come back to.
    pty.keys("\x1b");
    pty.wait_without("v1.0.0 → your working tree");
    pty.keys("gv");
    pty.wait_for("rehearsed in");
    pty.wait_for("spec.selector");
    pty.wait_for("Found · 1");
    pty.keys("\r");
    pty.wait_without("Found · 1");
    pty.wait_for("opdev upgrade --from v1.0.0 --only plain");
    // Back to the list, then to the panes.
    pty.keys("\x1b");
    pty.wait_for("Found · 1");
    pty.keys("\x1b");
    pty.wait_for("to apply a sample");
    pty.keys("q");
    assert!(pty.wait_exit().success(), "{}", pty.screen());
    pty.assert_restored();
}

#[test]
fn an_operator_is_tortured_beside_the_screen_until_it_is_stopped() {
    let (_folder, project) = demo_project();
    let mut pty = opdev(&project);
    pty.wait_for("to apply a sample");
    pty.keys("gt");
    pty.wait_for("all samples");
    pty.keys("\r");
    pty.wait_for("your own objects are not touched");
    // Its first scenario was learned, and plans are tried.
    pty.wait_for(" recreate ");
    pty.wait_for("about ");
    pty.keys("R");
    pty.keys("x");
    pty.wait_for(" stopped");
    pty.keys("n");
    pty.wait_for("all samples");
    pty.keys("\r");
    // Its first scenario may be learned before the next frame.
    pty.wait_for("x stop");
    // It ends with opdev.
    pty.keys("\x1b");
    pty.wait_for("↻ torture");
    pty.keys("q");
    assert!(pty.wait_exit().success(), "{}", pty.screen());
    pty.assert_restored();
    let is_of_project = || {
        let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
        let mut lines =
            processes.map(|process| fs::read_to_string(process.path().join("cmdline")).unwrap_or_default());
        lines.any(|line| line.contains(&*project.to_string_lossy()))
    };
    let since = Instant::now();
    while is_of_project() {
        assert!(since.elapsed() < Duration::from_secs(20), "a process is left");
        std::thread::yield_now();
    }
}
