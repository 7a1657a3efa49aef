//! A terminal that is gone, or that takes nothing in: opdev ends without a panic, and what was typed is kept.

use crate::inner_loop::demo_project;
use portable_pty::{Child, CommandBuilder, ExitStatus, MasterPty, PtySize, native_pty_system};
use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, Signal, kill_process};
use rustix::termios::{Action, tcflow};
use std::fs;
use std::io::{Read, Write};
use std::path::Path;
use std::time::{Duration, Instant};

/// A terminal that this test can take away.
struct Line {
    master: Box<dyn MasterPty + Send>,
    reader: Box<dyn Read + Send>,
    keys: Box<dyn Write + Send>,
    child: Box<dyn Child + Send + Sync>,
    screen: vt100::Parser,
}

impl Line {
    fn opdev(project: &Path, editor: &str) -> Line {
        let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_opdev"));
        command.args(["run", "--embedded"]);
        Line::start(project, editor, command)
    }

    fn start(project: &Path, editor: &str, mut command: CommandBuilder) -> Line {
        let pair = native_pty_system()
            .openpty(PtySize { rows: 36, cols: 120, pixel_width: 0, pixel_height: 0 })
            .unwrap();
        command.cwd(project);
        command.env("TERM", "xterm-256color");
        command.env("XDG_STATE_HOME", "/nonexistent");
        command.env("XDG_CONFIG_HOME", "/nonexistent");
        fs::write(project.join("editor.sh"), editor).unwrap();
        command.env("KUBE_EDITOR", format!("sh {}", project.join("editor.sh").display()));
        let child = pair.slave.spawn_command(command).unwrap();
        let reader = pair.master.try_clone_reader().unwrap();
        let keys = pair.master.take_writer().unwrap();
        Line { master: pair.master, reader, keys, child, screen: vt100::Parser::new(36, 120, 0) }
    }

    /// Reads until a text is on the screen.
    fn wait_for(&mut self, text: &str) {
        let mut buffer = [0; 4096];
        while !self.screen.screen().contents().contains(text) {
            let count = self.reader.read(&mut buffer).unwrap_or(0);
            assert_ne!(count, 0, "ended without {text}:\n{}", self.screen.screen().contents());
            self.screen.process(&buffer[..count]);
        }
    }

    fn keys(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
        self.keys.flush().unwrap();
    }

    /// The connection is gone.
    fn cut(self) -> ExitStatus {
        let Line { master, reader, keys, child, .. } = self;
        drop((master, reader, keys));
        ended(child)
    }
}

fn ended(mut child: Box<dyn Child + Send + Sync>) -> ExitStatus {
    let begun = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        if begun.elapsed() > Duration::from_secs(60) {
            let _ = child.kill();
            panic!("still running");
        }
        std::thread::yield_now();
    }
}

/// The log file of opdev.
fn log(project: &Path) -> String {
    let names = fs::read_dir(project.join(".opdev")).unwrap().flatten().map(|entry| entry.path());
    let logs = names.filter(|path| path.extension().is_some_and(|end| end == "log"));
    logs.map(|path| fs::read_to_string(path).unwrap()).collect()
}

fn with_sample(line: &mut Line) {
    line.wait_for("to apply a sample");
    line.keys("a");
    line.wait_for("type to narrow");
    line.keys("memcached-sample\r");
    line.wait_for(" 3/3");
}

#[test]
fn a_lost_terminal_is_no_bug_of_opdev() {
    let (_folder, project) = demo_project();
    let mut line = Line::opdev(&project, "");
    line.wait_for("to apply a sample");
    line.cut();
    let log = log(&project);
    assert!(!log.contains("panicked"), "{log}");
    assert!(!project.join(".opdev/kubeconfig").exists());
}

/// The hangup is a signal to the shell, which leads the session, and to nobody else.
#[test]
fn a_terminal_that_is_lost_without_a_signal_ends_opdev() {
    let (_folder, project) = demo_project();
    let mut shell = CommandBuilder::new("sh");
    let script = "trap : HUP; \"$OPDEV\" run --embedded; echo $? > ended";
    shell.args(["-c", script]);
    shell.env("OPDEV", env!("CARGO_BIN_EXE_opdev"));
    let mut line = Line::start(&project, "", shell);
    line.wait_for("to apply a sample");
    line.cut();
    assert!(fs::read_to_string(project.join("ended")).is_ok(), "opdev has ended before the shell");
    assert!(!project.join(".opdev/kubeconfig").exists());
    assert!(!log(&project).contains("panicked"));
}

#[test]
fn what_was_typed_into_the_editor_of_a_lost_terminal_is_kept() {
    let (_folder, project) = demo_project();
    // One text is saved; the rest is what an editor writes down for itself as it ends, by a signal and not
    // because nothing can be read any more.
    let script = "trap 'printf typed > \"$(dirname \"$1\")/.$(basename \"$1\").swp\"; exit 1' HUP TERM\n\
                  sed -i 's/replicaCount: .*/replicaCount: 7/' \"$1\"\n\
                  echo the editor is open\nwhile :; do sleep 0.1; done\n";
    let mut line = Line::opdev(&project, script);
    with_sample(&mut line);
    line.keys("e");
    line.wait_for("the editor is open");
    line.cut();
    let drafts = project.join(".opdev/drafts");
    let name = "edit-Memcached-default-memcached-sample.yaml";
    let text = fs::read_to_string(drafts.join(name)).unwrap();
    assert!(text.contains("replicaCount: 7") && !text.contains("# opdev"), "{text}");
    assert_eq!(fs::read_to_string(drafts.join(format!(".{name}.swp"))).unwrap(), "typed");
    assert!(log(&project).contains(&format!("kept in .opdev/drafts/{name}")), "{}", log(&project));
    // The next editor of that object tells of it.
    let mut line = Line::opdev(&project, "sed -n 4p \"$1\"\necho the editor is open\nread answer\n");
    line.wait_for(" 3/3");
    line.keys("e");
    line.wait_for("the editor is open");
    let shown = line.screen.screen().contents();
    assert!(shown.contains(&format!("kept in .opdev/drafts/{name}")), "{shown}");
    line.cut();
}

#[cfg(target_os = "linux")]
#[test]
fn a_terminal_that_takes_nothing_in_keeps_nobody_from_ending_opdev() {
    for signal in [Some(Signal::TERM), Some(Signal::INT), None] {
        let (_folder, project) = demo_project();
        let mut line = Line::opdev(&project, "");
        line.wait_for("to apply a sample");
        let name = line.master.tty_name().unwrap();
        let terminal =
            rustix::fs::open(name, OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty()).unwrap();
        // As behind a network that is gone: every write waits from now on.
        tcflow(&terminal, Action::OOff).unwrap();
        line.keys("?");
        until_the_screen_waits(&line);
        let pid = i32::try_from(line.child.process_id().unwrap()).unwrap();
        match signal {
            Some(signal) => kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap(),
            // The first key is kept: it does not end opdev. Nor do impatient ones keep it from cleaning up.
            None => line.keys("j\x03\x03\x03"),
        }
        ended(line.child);
        assert!(!project.join(".opdev/kubeconfig").exists(), "{signal:?}");
    }
}

/// Waits until the thread that draws is in a write to the terminal.
#[cfg(target_os = "linux")]
fn until_the_screen_waits(line: &Line) {
    let tasks = format!("/proc/{}/task", line.child.process_id().unwrap());
    let begun = Instant::now();
    loop {
        let threads = fs::read_dir(&tasks).unwrap().flatten().map(|entry| entry.path());
        let mut screens = threads
            .filter(|path| fs::read_to_string(path.join("comm")).is_ok_and(|name| name.trim() == "screen"));
        // The first word is the number of the call; 1 is write on x86_64, 64 on arm64.
        let writes = |path: std::path::PathBuf| {
            let call = fs::read_to_string(path.join("syscall")).unwrap_or_default();
            matches!(call.split(' ').next(), Some("1" | "64"))
        };
        if screens.any(writes) {
            return;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "the screen goes on");
        std::thread::yield_now();
    }
}

/// Keys that come in while the terminal takes nothing in are neither lost nor taken twice.
#[cfg(target_os = "linux")]
#[test]
fn what_is_typed_at_a_terminal_that_takes_nothing_in_is_done_later() {
    let (_folder, project) = demo_project();
    let mut line = Line::opdev(&project, "");
    line.wait_for("to apply a sample");
    let name = line.master.tty_name().unwrap();
    let terminal =
        rustix::fs::open(name, OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty()).unwrap();
    tcflow(&terminal, Action::OOff).unwrap();
    line.keys(":");
    until_the_screen_waits(&line);
    line.keys("plan");
    // The other thread has read them: nothing is left in the terminal.
    let begun = Instant::now();
    while rustix::io::ioctl_fionread(&terminal).unwrap() > 0 {
        assert!(begun.elapsed() < Duration::from_secs(60), "nobody reads");
        std::thread::yield_now();
    }
    tcflow(&terminal, Action::OOn).unwrap();
    line.wait_for("plan");
    line.keys("\x03");
    ended(line.child);
}
