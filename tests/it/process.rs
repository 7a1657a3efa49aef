//! Operators that are programs of their own: started, swapped on save, told about when they crash, never left
//! behind. The programs are shell scripts, so that every machine can run them.

use crate::inner_loop::Opdev;
use crate::masked::masked;
use expect_test::expect;
use opdev_cluster::Choice;
use opdev_event::{Event, KindHealth, ProcessChanged, ProcessExit, ProcessState, ReloadFailed, SourcesTask};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The `opdev.yaml` of these tests.
const SETTINGS: &str = "operator:\n  command: [sh, op.sh]\n  watch: [op.sh]\n  stopAfter: 1s\n";

async fn start(settings: &str, script: &str) -> Opdev {
    let embedded = Choice { embedded: true, ..Choice::default() };
    Opdev::start_against(embedded, |root| {
        std::fs::write(root.join("opdev.yaml"), settings).unwrap();
        std::fs::write(root.join("op.sh"), script).unwrap();
    })
    .await
}

/// Saves a file as editors do.
fn save(opdev: &Opdev, path: &str, text: &str) {
    let beside = opdev.root.join(format!("{path}~"));
    std::fs::write(&beside, text).unwrap();
    std::fs::rename(beside, opdev.root.join(path)).unwrap();
}

async fn process(
    opdev: &Opdev,
    what: &str,
    mark: usize,
    pick: impl Fn(&ProcessState) -> bool,
) -> Arc<ProcessChanged> {
    opdev
        .wait(what, mark, |event| match event {
            Event::ProcessChanged(changed) if pick(&changed.state) => Some(Arc::clone(changed)),
            _ => None,
        })
        .await
}

/// The pid of the program, once it runs.
async fn pid(opdev: &Opdev, mark: usize) -> u32 {
    let running =
        process(opdev, "a start", mark, |state| matches!(state, ProcessState::Running { .. })).await;
    match running.state {
        ProcessState::Running { pid, .. } => pid,
        _ => unreachable!(),
    }
}

/// The pid of the program that runs in place of another one.
async fn next_pid(opdev: &Opdev, mark: usize, before: u32) -> u32 {
    let is_next = |state: &ProcessState| matches!(state, ProcessState::Running { pid, .. } if *pid != before);
    match process(opdev, "another start", mark, is_next).await.state {
        ProcessState::Running { pid, .. } => pid,
        _ => unreachable!(),
    }
}

async fn logged(opdev: &Opdev, mark: usize, text: &str) -> String {
    opdev
        .wait(text, mark, |event| match event {
            Event::Log(line) if line.message.contains(text) => Some(line.message.clone()),
            _ => None,
        })
        .await
}

/// Returns true if a process still runs; one that only waits to be collected does not.
fn lives(pid: u32) -> bool {
    match std::fs::read_to_string(format!("/proc/{pid}/stat")) {
        Ok(stat) => !stat.rsplit(") ").next().unwrap().starts_with('Z'),
        // Without /proc the shell is asked.
        Err(_) if Path::new("/proc/self").exists() => false,
        Err(_) => Command::new("kill").args(["-0", &pid.to_string()]).status().unwrap().success(),
    }
}

/// Waits until a killed process is gone: nobody waits for what it has started, so that this takes a moment.
async fn gone(pid: u32) {
    let gone = async {
        while lives(pid) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), gone).await.expect("something of the old program is left");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_save_swaps_the_program_and_the_end_of_opdev_is_its_end() {
    let script = |version: u32| {
        format!("echo \"level=info msg=hello v={version} kubeconfig=$KUBECONFIG\"\nexec sleep 1000\n")
    };
    let opdev = start(SETTINGS, &script(1)).await;
    let first = pid(&opdev, 0).await;
    let line = logged(&opdev, 0, "v=1").await;
    expect!["hello kubeconfig=TMP/demo/.opdev/process.kubeconfig v=1"].assert_eq(&masked(&line));
    // The demo's charts and scripts stay opdev's own; what has neither is the program's.
    let health = opdev
        .wait("the kinds", 0, |event| match event {
            Event::SourcesChanged(sources) => {
                let kinds = sources.kinds.iter();
                Some(kinds.map(|kind| matches!(kind.health, KindHealth::Shown { .. })).collect::<Vec<_>>())
            }
            _ => None,
        })
        .await;
    assert!(!health.contains(&true), "{health:?}");
    // Equal bytes are no change, so this start is the next one.
    save(&opdev, "op.sh", &script(1));
    let mark = opdev.mark();
    save(&opdev, "op.sh", &script(2));
    let is_next = |state: &ProcessState| matches!(state, ProcessState::Running { pid, .. } if *pid != first);
    let second = process(&opdev, "a swap", mark, is_next).await;
    assert_eq!(second.starts, 2);
    let ProcessState::Running { pid: second, files, .. } = &second.state else { unreachable!() };
    assert_eq!(files, &["op.sh"]);
    logged(&opdev, mark, "v=2").await;
    assert!(!lives(first), "two programs at once");
    let second = *second;
    assert!(lives(second));
    opdev.stop().await;
    assert!(!lives(second), "the program outlives opdev");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_cannot_come_up_is_told_with_its_reason_until_a_save() {
    let script = "echo 'panic: no luck'\necho\necho 'goroutine 1 [running]:'\nprintf '\\t%s/op.sh:7 +0x1d\\n' \"$PWD\"\nexit 2\n";
    let mut opdev = start(SETTINGS, script).await;
    let is_failed = |state: &ProcessState| matches!(state, ProcessState::Failed { .. });
    let failed = process(&opdev, "a crash loop", 0, is_failed).await;
    assert_eq!(failed.starts, 3);
    let ProcessState::Failed { exit } = &failed.state else { unreachable!() };
    let ProcessExit { status, message, place, .. } = exit;
    assert_eq!((status.as_str(), message.as_deref()), ("exit code 2", Some("panic: no luck")));
    assert_eq!(place.as_ref().unwrap().to_string(), "op.sh:7");
    // `R` tries again, and a save that mends it ends the trouble.
    let mark = opdev.mark();
    opdev.ask(SourcesTask::Reload).await;
    let again =
        process(&opdev, "another try", mark, |state| matches!(state, ProcessState::Restarting { .. })).await;
    assert_eq!(again.starts, 4);
    let mark = opdev.mark();
    save(&opdev, "op.sh", "exec sleep 1000\n");
    pid(&opdev, mark).await;
    // An end with 0 is an end.
    let mark = opdev.mark();
    save(&opdev, "op.sh", "echo done\n");
    process(&opdev, "an end", mark, |state| matches!(state, ProcessState::Ended { .. })).await;
    opdev.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broken_build_keeps_the_last_good_program() {
    let settings =
        "operator:\n  command: [sh, op.sh]\n  build: [sh, build.sh]\n  watch: [\"*.sh\"]\n  env: { A: b }\n";
    let embedded = Choice { embedded: true, ..Choice::default() };
    let opdev = Opdev::start_against(embedded, |root| {
        std::fs::write(root.join("opdev.yaml"), settings).unwrap();
        std::fs::write(root.join("op.sh"), "echo \"A is $A\"\nexec sleep 1000\n").unwrap();
        std::fs::write(root.join("build.sh"), "test \"$A\" = b\n").unwrap();
    })
    .await;
    let first = pid(&opdev, 0).await;
    logged(&opdev, 0, "A is b").await;
    let broken = |mark| {
        let opdev = &opdev;
        async move {
            opdev
                .wait("a broken build", mark, |event| match event {
                    Event::ReloadFailed(failed) if failed.build => Some(failed.clone()),
                    _ => None,
                })
                .await
        }
    };
    let mark = opdev.mark();
    save(&opdev, "build.sh", "echo './op.sh:2:6: undefined: sleep' >&2\nexit 1\n");
    let ReloadFailed { files, diagnostics, .. } = broken(mark).await;
    assert_eq!(files, ["build.sh"]);
    assert_eq!(diagnostics[0].place.as_ref().unwrap().to_string(), "op.sh:2:6");
    assert_eq!(diagnostics[0].message, "undefined: sleep");
    expect![[r#"
        1 | echo "A is $A"
        2 | exec sleep 1000
          |      ^"#]]
    .assert_eq(diagnostics[0].excerpt.as_ref().unwrap());
    let mark = opdev.mark();
    save(&opdev, "build.sh", "echo nothing works\nexit 3\n");
    let failed = broken(mark).await;
    assert_eq!(failed.files, ["build.sh"]);
    assert_eq!(failed.diagnostics[0].message, "`sh build.sh` ended with exit code 3");
    assert_eq!(failed.diagnostics[0].excerpt.as_deref(), Some("nothing works"));
    assert!(lives(first));
    // A build that never ends is killed by the next save.
    save(&opdev, "build.sh", "sleep 1000\n");
    let mark = opdev.mark();
    save(&opdev, "build.sh", "true\n");
    next_pid(&opdev, mark, first).await;
    opdev.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_ignores_the_signal_is_killed_with_all_it_started() {
    let script = "trap '' TERM\nsleep 1000 &\necho child=$!\nwait\n";
    let opdev = start(SETTINGS, script).await;
    let first = pid(&opdev, 0).await;
    let line = logged(&opdev, 0, "child=").await;
    let child: u32 = line.rsplit('=').next().unwrap().trim().parse().unwrap();
    assert!(lives(first) && lives(child));
    let mark = opdev.mark();
    save(&opdev, "op.sh", "exec sleep 1000\n");
    next_pid(&opdev, mark, first).await;
    assert!(!lives(first), "the old program goes before the new one comes");
    gone(child).await;
    opdev
        .wait("a word about it", mark, |event| match event {
            Event::Noticed(notice) if notice.message.contains("did not stop within 1.0 s") => Some(()),
            _ => None,
        })
        .await;
    opdev.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_lines_is_counted_and_harms_nobody() {
    let opdev = start(SETTINGS, "yes 'a line like many others'\n").await;
    opdev
        .wait("dropped lines", 0, |event| match event {
            Event::LogDropped { lines } if *lines > 1_000 => Some(()),
            _ => None,
        })
        .await;
    // Whatever is asked for in between is done.
    let mark = opdev.mark();
    save(&opdev, "op.sh", "exec sleep 1000\n");
    pid(&opdev, mark).await;
    opdev.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_is_not_there_is_told_with_what_to_do() {
    let opdev = start("operator: { command: [no-such-program] }\n", "").await;
    let is_failed = |state: &ProcessState| matches!(state, ProcessState::Failed { .. });
    let failed = process(&opdev, "the refusal", 0, is_failed).await;
    let ProcessState::Failed { exit } = &failed.state else { unreachable!() };
    expect!["no-such-program cannot be started: No such file or directory (os error 2)"]
        .assert_eq(exit.message.as_ref().unwrap());
    expect!["correct `operator` in opdev.yaml and start opdev again, or press R to try again"]
        .assert_eq(exit.hint.as_ref().unwrap());
    opdev.stop().await;
}

const GO_MAIN: &str = "package main

import (
\t\"fmt\"
\t\"os\"
\t\"os/signal\"
\t\"syscall\"
)

var version = \"unset\"

func main() {
\tfmt.Println(\"hello\", version, os.Getenv(\"FROM_MAKE\"), os.Args[1:])
\tstop := make(chan os.Signal, 1)
\tsignal.Notify(stop, syscall.SIGTERM)
\t<-stop
}
";

/// Files that builds write below `.opdev/bin`.
const PLANTED: [&str; 3] = ["overlay.json", "vet.json", "operator.next"];

/// The go command builds with the project's own flags, its errors have places, and its panics, too.
#[tokio::test(flavor = "multi_thread")]
#[cfg_attr(not(go), ignore = "needs Go")]
async fn a_go_program_is_built_as_its_makefile_says_and_its_errors_have_places() {
    let embedded = Choice { embedded: true, ..Choice::default() };
    let opdev = Opdev::start_against(embedded, |root| {
        std::fs::create_dir_all(root.join("cmd")).unwrap();
        let makefile = "run:\n\tFROM_MAKE=yes go run -tags dev ./cmd/main.go --level 3\n\
                        build:\n\tgo build -ldflags '-X main.version=1.2' -o bin/manager cmd/main.go\n";
        for (path, text) in [
            ("opdev.yaml", "operator: { go: ./cmd, args: [last] }\n"),
            ("go.mod", "module example.com/demo\n\ngo 1.21\n"),
            ("Makefile", makefile),
            ("cmd/main.go", GO_MAIN),
        ] {
            std::fs::write(root.join(path), text).unwrap();
        }
        // Links that came with the project lie where builds write by path.
        std::fs::create_dir_all(root.join(".opdev/bin")).unwrap();
        for name in PLANTED {
            std::os::unix::fs::symlink(root.join("victim"), root.join(".opdev/bin").join(name)).unwrap();
        }
        // The first build compiles what it needs of the standard library, and may take its time.
        let mut warm = Command::new("go");
        warm.args(["build", "-o", "/dev/null", "./cmd"]).current_dir(root);
        assert!(warm.status().unwrap().success());
    })
    .await;
    let first = pid(&opdev, 0).await;
    logged(&opdev, 0, "hello 1.2 yes [--level 3 last]").await;
    assert!(PLANTED.iter().all(|name| !opdev.root.join(".opdev/bin").join(name).is_symlink()));
    assert!(!opdev.root.join("victim").exists(), "a build has written through a link");
    let mark = opdev.mark();
    save(&opdev, "cmd/main.go", &GO_MAIN.replace("<-stop", "<-stopp"));
    let failed = opdev
        .wait("a broken build", mark, |event| match event {
            Event::ReloadFailed(failed) if failed.build => Some(failed.clone()),
            _ => None,
        })
        .await;
    let place = |at: usize| failed.diagnostics[at].place.as_ref().unwrap().to_string();
    assert_eq!(
        (place(0).as_str(), failed.diagnostics[0].message.as_str()),
        ("cmd/main.go:16:4", "undefined: stopp")
    );
    expect![[r#"
        15 | 	signal.Notify(stop, syscall.SIGTERM)
        16 | 	<-stopp
           | 	  ^
        17 | }"#]]
    .assert_eq(failed.diagnostics[0].excerpt.as_ref().unwrap());
    assert!(lives(first), "a broken build has ended the last good program");
    // A comment may say that a line is from any file, such as one that never ends.
    assert!(Command::new("mkfifo").arg(opdev.root.join("pipe")).status().unwrap().success());
    let mark = opdev.mark();
    save(&opdev, "cmd/main.go", &GO_MAIN.replace("\t<-stop", "//line pipe:7:1\n\t<-stopp"));
    let elsewhere = opdev
        .wait("a broken line of a pipe", mark, |event| match event {
            Event::ReloadFailed(failed) if failed.build => Some(failed.diagnostics[0].clone()),
            _ => None,
        })
        .await;
    assert_eq!(elsewhere.place.unwrap().to_string(), "pipe:7:4");
    assert_eq!(elsewhere.excerpt, None);
    // A finding of go vet in a saved file is shown, and the program keeps running. Vet gets the flags of the
    // build.
    save(&opdev, "cmd/main.go", GO_MAIN);
    let mark = opdev.mark();
    let vetted = "//go:build dev\n\npackage main\n\nimport \"fmt\"\n\nfunc init() {\n\tfmt.Printf(\"%d\\n\", \"text\")\n}\n";
    save(&opdev, "cmd/dev.go", vetted);
    let found = opdev
        .wait("what go vet finds", mark, |event| match event {
            Event::Noticed(notice) if notice.message.starts_with("go vet: ") => Some(notice.message.clone()),
            _ => None,
        })
        .await;
    assert!(found.contains("cmd/dev.go:8:") && found.contains("%d"), "{found}");
    next_pid(&opdev, mark, first).await;
    let mark = opdev.mark();
    save(&opdev, "cmd/main.go", &GO_MAIN.replace("\t<-stop", "\tpanic(\"out of luck\")"));
    let crashed = opdev.reload_failure("a crash", mark).await;
    let found = &crashed.diagnostics[0];
    assert!(
        found.message.contains("ends at once") && found.message.contains("panic: out of luck"),
        "{found:?}"
    );
    assert_eq!(found.place.as_ref().unwrap().to_string(), "cmd/main.go:16");
    // Nothing but what opdev keeps for itself was written.
    assert!(!opdev.root.join("bin").exists() && !opdev.root.join("cmd/cmd").exists());
    opdev.stop().await;
}

const GO_TYPES: &str = "// +kubebuilder:object:generate=true
package api

type Plan struct {
\tName string `json:\"name\"`
}
";

const GO_COPIES: &str = "package main

import (
\t\"fmt\"
\t\"os\"
\t\"os/signal\"
\t\"syscall\"

\t\"example.com/demo/api\"
)

func main() {
\tplan := api.Plan{Name: \"one\"}
\tfmt.Println(\"copied\", plan.DeepCopy().Name)
\tstop := make(chan os.Signal, 1)
\tsignal.Notify(stop, syscall.SIGTERM)
\t<-stop
}
";

/// Copy methods follow the types before the build does, and what opdev writes leads to no build of its own.
#[tokio::test(flavor = "multi_thread")]
#[cfg_attr(not(go), ignore = "needs Go")]
async fn copy_methods_are_made_before_the_build_of_a_saved_type() {
    let embedded = Choice { embedded: true, ..Choice::default() };
    let opdev = Opdev::start_against(embedded, |root| {
        for folder in ["cmd", "api"] {
            std::fs::create_dir_all(root.join(folder)).unwrap();
        }
        for (path, text) in [
            ("opdev.yaml", "operator: { go: ./cmd }\n"),
            ("go.mod", "module example.com/demo\n\ngo 1.21\n"),
            ("api/types.go", GO_TYPES),
            ("cmd/main.go", GO_COPIES),
        ] {
            std::fs::write(root.join(path), text).unwrap();
        }
    })
    .await;
    let copies = || std::fs::read_to_string(opdev.root.join("api/zz_generated.deepcopy.go")).unwrap();
    // Without the file the program would not compile.
    let first = pid(&opdev, 0).await;
    logged(&opdev, 0, "copied one").await;
    assert!(copies().contains("func (in *Plan) DeepCopyInto(out *Plan)"), "{}", copies());
    // With another header the methods are the same, so the file stays.
    let older = format!("// Copyright of somebody.\n\n{}", copies());
    save(&opdev, "api/zz_generated.deepcopy.go", &older);
    let second = next_pid(&opdev, 0, first).await;
    assert_eq!(copies(), older);
    let mark = opdev.mark();
    save(&opdev, "api/types.go", &GO_TYPES.replace("}\n", "\tTags []string `json:\"tags\"`\n}\n"));
    let started = |before: u32| move |state: &ProcessState| matches!(state, ProcessState::Running { pid, .. } if *pid != before);
    let third = process(&opdev, "the start after the type", mark, started(second)).await;
    assert!(copies().contains("copy(*out, *in)"), "{}", copies());
    let ProcessState::Running { pid: third_pid, files, .. } = &third.state else { unreachable!() };
    assert_eq!((third.starts, files.as_slice()), (3, &["api/types.go".to_owned()][..]));
    let mark = opdev.mark();
    save(&opdev, "cmd/main.go", &GO_COPIES.replace("copied", "made"));
    let fourth = process(&opdev, "the start after the program", mark, started(*third_pid)).await;
    let ProcessState::Running { files, .. } = &fourth.state else { unreachable!() };
    assert_eq!((fourth.starts, files.as_slice()), (4, &["cmd/main.go".to_owned()][..]));
    opdev.stop().await;
}

/// A stand-in for Delve with the ways of the real one (1.27): its program is in a group of its own and ends
/// with SIGTERM of the debugger, not with its SIGKILL; the debugger itself goes on after the program's end.
const DEBUGGER: &str = "#!/bin/sh
echo \"dlv $*\"
while [ \"$1\" != -- ]; do binary=$1; shift; done
shift
setsid \"$binary\" \"$@\" &
program=$!
echo \"two $$ $program\"
trap 'kill -KILL $program; exit 0' TERM
wait $program
echo 'Stop reason: exited'
while :; do sleep 0.1; done
";

const GO_DEBUGGED: &str = "package main

import (
\t\"fmt\"
\t\"os\"
\t\"time\"
)

func main() {
\tfmt.Println(\"runs\", os.Args[1:])
\tfor i := 0; ; i++ {
\t\tif _, err := os.Stat(\"end\"); err == nil {
\t\t\tos.Exit(7)
\t\t}
\t\ttime.Sleep(10 * time.Millisecond)
\t}
}
";

/// An address that nobody listens at: opdev starts no debugger where somebody does.
fn free_address() -> String {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string()
}

/// Answers at this address as Delve does where its program has ended with 7, until the answer is called.
fn delve_after_the_end(address: &str) -> impl FnOnce() {
    let listener = std::net::TcpListener::bind(address).unwrap();
    let (address, over) =
        (address.to_owned(), std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false)));
    let is_over = std::sync::Arc::clone(&over);
    let answering = std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            if is_over.load(std::sync::atomic::Ordering::Relaxed) {
                return;
            }
            let mut asked = [0; 512];
            let read = stream.read(&mut asked).unwrap();
            assert!(String::from_utf8_lossy(&asked[..read]).contains("RPCServer.State"));
            let error = "Process 9 has exited with status 7";
            let _ = writeln!(stream, "{{\"id\":1,\"result\":null,\"error\":\"{error}\"}}");
        }
    });
    move || {
        over.store(true, std::sync::atomic::Ordering::Relaxed);
        drop(std::net::TcpStream::connect(address));
        answering.join().unwrap();
    }
}

/// Starts opdev on a folder with a Go program, with a debugger of its own in PATH; the lines it prints.
fn debugged(root: &Path, address: &str) -> (std::process::Child, std::sync::mpsc::Receiver<String>) {
    use std::os::unix::fs::PermissionsExt as _;
    for folder in ["config/types", "cmd", "tools"] {
        std::fs::create_dir_all(root.join(folder)).unwrap();
    }
    for (path, text) in [
        ("opdev.yaml", "operator: { go: ./cmd, args: [last], watch: ['**/*.go'] }\n"),
        ("go.mod", "module example.com/demo\n\ngo 1.21\n"),
        ("cmd/main.go", GO_DEBUGGED),
        ("Makefile", "build:\n\tgo build -trimpath -ldflags '-s -w -X main.a=b' -o bin/manager ./cmd\n"),
        ("tools/dlv", DEBUGGER),
    ] {
        std::fs::write(root.join(path), text).unwrap();
    }
    std::fs::set_permissions(root.join("tools/dlv"), std::fs::Permissions::from_mode(0o755)).unwrap();
    let opdev = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_opdev"));
        command.args(arguments).current_dir(root).env_remove("KUBECONFIG");
        command.env("XDG_STATE_HOME", root.join("state"));
        let path = std::env::var("PATH").unwrap();
        command.env("PATH", format!("{}:{path}", root.join("tools").display()));
        command
    };
    assert!(opdev(&["trust"]).output().unwrap().status.success());
    let mut opdev = opdev(&["run", "--embedded", "--plain", &format!("--debug={address}")])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let lines = BufReader::new(opdev.stdout.take().unwrap()).lines().map_while(Result::ok);
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::spawn(move || lines.into_iter().try_for_each(|line| tell.send(line)));
    (opdev, told)
}

fn pids_of(line: &str) -> Vec<u32> {
    let (_, pids) = line.split_once("two ").unwrap();
    pids.split_whitespace().map(|pid| pid.parse().unwrap()).collect()
}

/// A debugged program is no orphan either, and its end is noticed although the debugger goes on.
#[test]
#[cfg_attr(not(go), ignore = "needs Go")]
fn a_program_under_the_debugger_ends_with_opdev() {
    let folder = tempfile::tempdir().unwrap();
    let address = free_address();
    let (mut opdev, lines) = debugged(folder.path(), &address);
    let line = |text: &str| loop {
        let line = lines.recv_timeout(Duration::from_secs(60)).unwrap_or_else(|_| panic!("no {text}"));
        if line.contains(text) {
            break line;
        }
    };
    // The program's lines and opdev's own notices come in any order.
    let texts = ["dlv exec", "two ", "runs [last]", "built without -s -w -trimpath"];
    let mut seen: Vec<String> = Vec::new();
    while !texts.iter().all(|text| seen.iter().any(|line| line.contains(text))) {
        seen.push(line(""));
    }
    let gone = delve_after_the_end(&address);
    let first = |text: &str| seen.iter().find(|line| line.contains(text)).unwrap();
    let command = first("dlv exec");
    assert!(command.contains(&format!("--listen={address}")) && command.ends_with("-- last"), "{command}");
    let pids = pids_of(first("two "));
    assert!(pids.len() == 2 && pids.iter().all(|pid| lives(*pid)), "{pids:?}");
    // The program's own end is an end, although the debugger goes on; and a failure, although the debugger
    // has none.
    std::fs::write(folder.path().join("end"), "").unwrap();
    line("Stop reason: exited");
    let stopped = line("has stopped");
    assert!(stopped.contains("exit code 7") && !stopped.contains("Stop reason"), "{stopped}");
    gone();
    std::fs::remove_file(folder.path().join("end")).unwrap();
    let saved = GO_DEBUGGED.replace("\"runs\"", "\"runs again\"");
    std::fs::write(folder.path().join("cmd/main.go"), saved).unwrap();
    // The debugger tells the numbers after it has started the program, which may speak first.
    let (mut newest, mut runs_again) = (pids.clone(), false);
    while !runs_again || !newest.iter().all(|pid| lives(*pid)) {
        let line = line("");
        runs_again |= line.contains("runs again [last]");
        if line.contains("two ") {
            newest = pids_of(&line);
        }
    }
    opdev.kill().unwrap();
    opdev.wait().unwrap();
    let until = Instant::now() + Duration::from_secs(20);
    while pids.iter().chain(&newest).any(|pid| lives(*pid)) {
        assert!(Instant::now() < until, "{pids:?} or {newest:?} outlive opdev");
        std::thread::yield_now();
    }
}

/// Also where opdev has no time for a last word.
#[test]
fn a_killed_opdev_leaves_no_program_behind() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    std::fs::create_dir_all(root.join("config/types")).unwrap();
    std::fs::write(root.join("opdev.yaml"), SETTINGS).unwrap();
    std::fs::write(root.join("op.sh"), "trap '' TERM\nsleep 1000 &\necho \"two $$ $!\"\nwait\n").unwrap();
    let opdev = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_opdev"));
        command.args(arguments).current_dir(root).env_remove("KUBECONFIG");
        command.env("XDG_STATE_HOME", root.join("state"));
        command
    };
    // Nothing of a project is started before its user has said so.
    let refused = opdev(&["run", "--embedded", "--plain"]).output().unwrap();
    let why = String::from_utf8(refused.stderr).unwrap();
    assert!(!refused.status.success(), "{why}");
    expect![[r#"
        error: the project TMP wants more than to render and to apply, and is not trusted to
          - start the operator's own program, `sh op.sh`, in TMP (operator in opdev.yaml, or the Go files and the Makefile)
          to do: read these settings; where you trust the project, run `opdev trust --project TMP` and start opdev again
    "#]]
    .assert_eq(&masked(&why));
    assert!(opdev(&["trust"]).output().unwrap().status.success());
    let mut opdev = opdev(&["run", "--embedded", "--plain"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let lines = BufReader::new(opdev.stdout.take().unwrap()).lines().map_while(Result::ok);
    let said =
        lines.filter_map(|line| line.split_once("two ").map(|(_, pids)| pids.to_owned())).next().unwrap();
    let pids: Vec<u32> = said.split_whitespace().map(|pid| pid.parse().unwrap()).collect();
    assert!(pids.len() == 2 && pids.iter().all(|pid| lives(*pid)), "{said}");
    opdev.kill().unwrap();
    opdev.wait().unwrap();
    let until = Instant::now() + Duration::from_secs(20);
    while pids.iter().any(|pid| lives(*pid)) {
        assert!(Instant::now() < until, "{said} outlive opdev");
        std::thread::yield_now();
    }
}
