//! ctrl-z: the job sleeps as a whole, and wakes as a whole.

use super::SIZE;
use crate::inner_loop::demo_project;
use crate::pty::Pty;
use portable_pty::CommandBuilder;
use rustix::process::Signal;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

/// Waits until a process is (or is not) stopped, by its state in `/proc`.
fn until_stopped(pid: &str, stopped: bool) {
    let begun = Instant::now();
    loop {
        let text = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        let state = text.rsplit(") ").next().and_then(|rest| rest.chars().next());
        if (state == Some('T')) == stopped {
            return;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "{pid} is {state:?}, not stopped: {stopped}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn said(path: &Path) -> Option<String> {
    fs::read_to_string(path).ok().filter(|text| text.ends_with('\n')).map(|text| text.trim().to_owned())
}

/// The API server stands still with opdev, so a program that went on would lose its lease.
#[cfg(target_os = "linux")]
#[test]
fn the_operators_program_stops_and_wakes_with_opdev() {
    let (folder, project) = demo_project();
    fs::write(project.join("opdev.yaml"), "operator: {command: [sh, op.sh], stopAfter: 1s}\n").unwrap();
    fs::write(project.join("op.sh"), "sleep 3600 &\necho $! > child\necho $$ > pid\nwait\n").unwrap();
    let home = folder.path().join("home");
    let mut trust = std::process::Command::new(env!("CARGO_BIN_EXE_opdev"));
    let trusted = trust.arg("trust").current_dir(&project).env("XDG_STATE_HOME", &home).output().unwrap();
    assert!(trusted.status.success(), "{trusted:?}");
    let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_opdev"));
    command.args(["run", "--embedded"]);
    command.cwd(&project);
    command.env("XDG_STATE_HOME", &home);
    let mut pty = Pty::start(command, SIZE);
    pty.wait_until("the program", |_| said(&project.join("pid")).is_some());
    let pids = [said(&project.join("pid")).unwrap(), said(&project.join("child")).unwrap()];
    // The start has been told by the time that this is on the screen.
    pty.wait_for("operator runs (op.sh)");
    pty.keys("\u{1a}");
    for pid in &pids {
        until_stopped(pid, true);
    }
    until_stopped(&pty.pid().to_string(), true);
    pty.signal(Signal::CONT);
    for pid in &pids {
        until_stopped(pid, false);
    }
    pty.keys("q");
    assert!(pty.wait_exit().success(), "{}", pty.screen());
    pty.assert_restored();
}

#[cfg(target_os = "linux")]
#[test]
fn a_terminal_that_was_reset_from_elsewhere_is_taken_again_by_ctrl_l() {
    let (_folder, project) = demo_project();
    let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_opdev"));
    command.args(["run", "--embedded"]);
    command.cwd(&project);
    let mut pty = Pty::start(command, SIZE);
    pty.wait_for("to apply a sample");
    pty.reset_modes();
    // Line mode: nothing arrives before the end of a line.
    pty.keys("\u{c}\n");
    pty.wait_for_written("\u{1b}[?1049h", 2);
    pty.wait_for("to apply a sample");
    pty.keys("q");
    assert!(pty.wait_exit().success(), "{}", pty.screen());
    pty.assert_restored();
}
