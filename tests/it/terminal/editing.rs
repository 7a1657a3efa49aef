//! The user's editor in a terminal: a script stands in for it. The screen comes back, whatever becomes of it.

use super::runs::{edit, lines};
use super::{SIZE, quit, with_sample};
use crate::inner_loop::demo_project;
use crate::pty::Pty;
use portable_pty::CommandBuilder;
use rustix::process::Signal;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

/// `opdev run --embedded`, its editor this script.
fn opdev(project: &Path, script: &str) -> Pty {
    let editor = project.join("editor.sh");
    fs::write(&editor, script).unwrap();
    let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_opdev"));
    command.args(["run", "--embedded"]);
    command.cwd(project);
    command.env("KUBE_EDITOR", format!("sh {}", editor.display()));
    Pty::start(command, SIZE)
}

#[test]
fn an_edit_is_refused_mended_shown_written_and_undone() {
    let (_folder, project) = demo_project();
    // First a number that the schema refuses, then, with the errors on top, one that it takes.
    let script = "if grep -q 'NOT WRITTEN' \"$1\"; then n=5; else n=-5; fi\n\
                  sed -i \"s/replicaCount: .*/replicaCount: $n/\" \"$1\"\n";
    let mut pty = opdev(&project, script);
    with_sample(&mut pty);
    pty.keys("e");
    pty.wait_until("what changes", |screen| {
        let text = screen.contents();
        ["edit Memcached default/memcached-sample", "replicaCount: 5", "[w] Write"]
            .iter()
            .all(|part| text.contains(part))
    });
    pty.keys("\r");
    pty.wait_until("five running pods", |screen| lines(screen, " Running ") == 5);
    pty.keys("u");
    pty.wait_for("shows what changes");
    pty.keys("\r");
    pty.wait_for("undo: edit Memcached");
    pty.keys("\r");
    pty.wait_until("three running pods", |screen| lines(screen, " Running ") == 3);
    quit(pty);
}

#[test]
fn a_new_object_comes_from_its_schema() {
    let (_folder, project) = demo_project();
    let script = "sed -i 's/name: podset-sample/name: fresh/; s/^  # replicas: 1/  replicas: 2/' \"$1\"\n\
                  sed -i 's/name: hello-sample/name: own/; s/^  # replicaCount: 1/  replicaCount: 2/' \"$1\"\n";
    let mut pty = opdev(&project, script);
    pty.wait_for("to apply a sample");
    pty.keys("n");
    pty.wait_for("from its schema");
    pty.keys("podset its\r");
    pty.wait_until("what is created", |screen| {
        let text = screen.contents();
        text.contains("PodSet default/fresh is created") && text.contains("[w] Write")
    });
    pty.keys("\r");
    pty.wait_until("two pods of it", |screen| lines(screen, "Pod fresh") == 2);
    // A kind without a schema, fed by a chart, offers the chart's values.
    pty.keys("n");
    pty.wait_for("from its schema");
    pty.keys("hello its\r");
    pty.wait_until("what is created", |screen| {
        let text = screen.contents();
        text.contains("Hello default/own is created") && text.contains("replicaCount: 2")
    });
    pty.keys("\r");
    pty.wait_until("two pods of each deployment", |screen| lines(screen, " 4/4") >= 1);
    quit(pty);
}

#[cfg(target_os = "linux")]
#[test]
fn the_operator_goes_on_and_the_job_can_be_stopped_while_the_editor_is_open() {
    let stopped = |pid: i32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with('T'))
    };
    let until = |what: &str, is: &dyn Fn() -> bool| {
        let start = Instant::now();
        while !is() {
            assert!(start.elapsed() < Duration::from_secs(60), "no {what}");
            std::thread::yield_now();
        }
    };
    let (_folder, project) = demo_project();
    let script = "echo the editor is open\nread answer\necho \"# $answer\" >> \"$1\"\n";
    let mut pty = opdev(&project, script);
    with_sample(&mut pty);
    pty.keys("e");
    pty.wait_until("the editor on the plain screen", |screen| {
        !screen.alternate_screen() && screen.contents().contains("the editor is open")
    });
    // A save is live although nobody looks.
    edit(&project.join("charts/memcached/templates/deployment.yaml"), |text| {
        text.replace("--conn-limit=", "--max-conns=")
    });
    let journal = || fs::read_to_string(project.join(".opdev/events.jsonl")).unwrap_or_default();
    until("settled reload", &|| {
        journal()
            .lines()
            .any(|line| line.contains("\"event\":\"reloadSettled\",") && line.contains("deployment.yaml"))
    });

    pty.keys("\u{1a}");
    until("stopped job", &|| stopped(pty.pid()));
    pty.signal_group(Signal::CONT);
    until("running job", &|| !stopped(pty.pid()));
    pty.keys("done\r");
    pty.wait_until("the screen, with the save on it", |screen| {
        let text = screen.contents();
        screen.alternate_screen()
            && text.contains("Custom resources")
            && text.contains("deployment.yaml live")
    });
    // Only a comment was added.
    pty.wait_for("it is so already");
    quit(pty);
}

#[test]
fn ctrl_c_is_the_editors_and_a_missing_editor_says_what_to_do() {
    let (_folder, project) = demo_project();
    let mut pty = opdev(&project, "echo the editor is open\nread answer\n");
    with_sample(&mut pty);
    pty.keys("e");
    pty.wait_for("the editor is open");
    pty.keys("\u{3}");
    pty.wait_until("the screen and the reason", |screen| {
        screen.alternate_screen() && screen.contents().contains("nothing was written")
    });
    // The message of the first editor is not taken for the second one's.
    pty.keys("\u{1b}");
    pty.wait_without("nothing was written");
    fs::remove_file(project.join("editor.sh")).unwrap();
    pty.keys("e");
    pty.wait_until("the screen and the reason", |screen| {
        screen.alternate_screen() && screen.contents().contains("editor.sh")
    });
    quit(pty);
}

#[test]
fn a_terminal_that_goes_away_takes_the_editor_and_the_file_along() {
    let (_folder, project) = demo_project();
    let mut pty = opdev(&project, "echo \"file: $1 .\"\nread answer\n");
    with_sample(&mut pty);
    pty.keys("e");
    pty.wait_for("file: ");
    let screen = pty.screen();
    let shown = screen.split_once("file: ").unwrap().1.split_once(" .").unwrap().0.replace('\n', "");
    assert!(Path::new(&shown).exists(), "{shown:?}");
    pty.signal(Signal::TERM);
    pty.wait_exit();
    assert!(!Path::new(&shown).exists(), "{shown} is still there");
    pty.assert_restored();
}
