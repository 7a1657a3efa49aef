//! One child process in a process group of its own. Nothing of the group outlives opdev, however opdev ends:
//! a small shell leads the group, waits on a pipe that only opdev holds open, and kills the group once that
//! pipe closes. Works without `unsafe` and on every Unix; a process that leaves the group on purpose
//! (`setsid`) is not followed.

use anyhow::{Context as _, Result};
use rustix::process::{Pid, Signal, kill_process_group};
use std::collections::BTreeMap;
use std::path::Path;
use std::pin::Pin;
use std::process::{ExitStatus, Stdio};
use std::task::{self, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt as _, ReadBuf};
use tokio::process::{Child as Process, ChildStderr, ChildStdin, ChildStdout, Command};

/// The script of the group's leader. The signals are those that ask the program to stop.
const LEADER: &str = "trap '' TERM INT HUP QUIT; echo; read -r _; kill -KILL 0";
/// The script where something in the group has to end processes outside of the group first, as a debugger
/// has.
const PATIENT_LEADER: &str =
    "trap '' TERM INT HUP QUIT; echo; read -r _; kill -TERM 0; sleep 1; kill -KILL 0";

/// How a process group ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GroupEnd {
    /// It is killed.
    #[default]
    AtOnce,
    /// It is asked to stop, and killed a second later.
    Asked,
}

/// A running process.
#[derive(Debug)]
pub struct Child {
    process: Process,
    group: ProcessGroup,
    /// The number of the process.
    pub pid: u32,
}

/// A process group. Dropping it kills what is left of it, and it does not outlive opdev.
#[derive(Debug)]
pub struct ProcessGroup {
    id: Pid,
    leader: Process,
    ends: GroupEnd,
    /// Closes with opdev.
    _held: Option<ChildStdin>,
}

/// The start of a process.
#[derive(Debug)]
pub struct Launch<'a> {
    /// The program and its arguments; never empty.
    pub command: &'a [String],
    /// The working directory.
    pub dir: &'a Path,
    /// Variables beside those of opdev itself.
    pub env: &'a BTreeMap<String, String>,
    /// Variables of opdev itself that it must not see.
    pub without: &'a [&'a str],
    /// The end of its group.
    pub ends: GroupEnd,
}

impl Child {
    /// Starts a process; its standard output and standard error come beside it.
    ///
    /// # Errors
    /// Where the program does not exist or may not be run.
    pub async fn start(launch: &Launch<'_>) -> Result<(Child, ChildStdout, ChildStderr)> {
        let (program, arguments) = launch.command.split_first().context("there is no command to run")?;
        let group =
            ProcessGroup::start(launch.ends).await.context("a process group cannot be made with `sh`")?;
        let mut command = Command::new(program);
        command
            .args(arguments)
            .current_dir(launch.dir)
            .envs(launch.env)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        group.take_in(&mut command);
        for name in launch.without.iter().filter(|name| !launch.env.contains_key(**name)) {
            command.env_remove(name);
        }
        let mut process = command.spawn().with_context(|| format!("{program} cannot be started"))?;
        let pid = process.id().context("the process has ended before it was looked at")?;
        let (stdout, stderr) = (process.stdout.take(), process.stderr.take());
        let (stdout, stderr) = (stdout.context("no standard output")?, stderr.context("no standard error")?);
        Ok((Child { process, group, pid }, stdout, stderr))
    }

    /// Waits until the process has ended by itself.
    pub async fn wait(&mut self) -> std::io::Result<ExitStatus> {
        self.process.wait().await
    }

    /// Asks the process to stop, kills it after `patience`, and then whatever it has started and left behind.
    /// The answer is how it ended, and whether it had to be killed.
    pub async fn stop(mut self, patience: Duration) -> (Option<ExitStatus>, bool) {
        self.group.signal(Signal::TERM);
        if let Ok(status) = tokio::time::timeout(patience, self.process.wait()).await {
            self.end().await;
            return (status.ok(), false);
        }
        self.group.signal(Signal::KILL);
        let status = self.process.wait().await.ok();
        self.end().await;
        (status, true)
    }

    /// Asks it to stop, and waits for nothing.
    pub fn ask_to_stop(&self) {
        self.group.ask_to_stop();
    }

    /// Ends the group of a process that has ended: nothing that it left behind goes on.
    pub async fn end(self) {
        self.group.end().await;
    }
}

impl ProcessGroup {
    /// Makes a group that holds nothing yet.
    ///
    /// # Errors
    /// Where there is no shell to lead it.
    pub async fn start(ends: GroupEnd) -> Result<ProcessGroup> {
        let script = match ends {
            GroupEnd::AtOnce => LEADER,
            GroupEnd::Asked => PATIENT_LEADER,
        };
        let mut leader = Command::new("sh")
            .args(["-c", script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()?;
        let pid = leader.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        let id = pid.context("the shell has ended at once")?;
        let held = leader.stdin.take();
        let mut ready = leader.stdout.take().context("no pipe from the shell")?;
        let group = ProcessGroup { id, leader, ends, _held: held };
        // From here on a signal to the group does not end its leader.
        let mut line = [0];
        ready.read_exact(&mut line).await.context("the shell has ended at once")?;
        Ok(group)
    }

    /// Lets a command start in the group.
    pub fn take_in(&self, command: &mut Command) {
        command.process_group(self.id.as_raw_nonzero().get());
    }

    /// Asks everything in the group to stop.
    pub fn ask_to_stop(&self) {
        self.signal(Signal::TERM);
    }

    /// Kills everything that is left in the group.
    pub async fn end(mut self) {
        self.signal(Signal::KILL);
        let _ = self.leader.wait().await;
    }

    fn signal(&self, signal: Signal) {
        let _ = kill_process_group(self.id, signal);
    }
}

/// The output of a command, and its end.
#[derive(Debug)]
pub struct Printed {
    /// The exit status; `None` where it took too long and was killed.
    pub status: Option<ExitStatus>,
    /// Standard output, and after it standard error.
    pub text: Vec<u8>,
}

/// Runs a command to its end. What it has started and left behind ends with it, and so it does where the
/// answer is not waited for.
///
/// # Errors
/// Where it cannot be started.
pub async fn printed(launch: &Launch<'_>, limit: Duration) -> Result<Printed> {
    printed_and_heard(launch, limit, &|_| {}).await
}

/// Runs a command as `printed` does, and hands each line on as soon as it is there, without its end.
///
/// # Errors
/// Where it cannot be started.
pub async fn printed_and_heard(
    launch: &Launch<'_>,
    limit: Duration,
    hear: &(dyn Fn(&str) + Sync),
) -> Result<Printed> {
    let (child, stdout, stderr) = Child::start(launch).await?;
    let streams = (Heard::new(stdout, hear), Heard::new(stderr, hear));
    let Said { status, stdout: mut text, stderr: mut errors } =
        said(child, streams, Some(limit), MOST_PRINTED).await;
    text.append(&mut errors);
    Ok(Printed { status: status.transpose()?, text })
}

/// Bytes of a stream that are kept of a command.
const MOST_PRINTED: u64 = 16 << 20;
/// How long the pipes of a command that has ended may stay open: what left its group may hold them for ever.
const CLOSING: Duration = Duration::from_secs(1);

/// The output of a command so far, and its end.
pub struct Said {
    /// The exit status; `None` where it took too long and was killed.
    pub status: Option<std::io::Result<ExitStatus>>,
    /// The first bytes of standard output.
    pub stdout: Vec<u8>,
    /// The first bytes of standard error.
    pub stderr: Vec<u8>,
}

/// Reads what a process says until it ends, and ends what it has left behind: a child in the background holds
/// the pipes open as long as it lives.
pub async fn said(
    mut child: Child,
    (stdout, stderr): (impl AsyncRead + Unpin, impl AsyncRead + Unpin),
    limit: Option<Duration>,
    most: u64,
) -> Said {
    let (mut text, mut errors) = (Vec::new(), Vec::new());
    let mut reading = Box::pin(async {
        tokio::join!(keep(stdout, &mut text, most), keep(stderr, &mut errors, most));
    });
    let ending = async {
        let status = match limit {
            Some(limit) => tokio::time::timeout(limit, child.wait()).await.ok(),
            None => Some(child.wait().await),
        };
        child.end().await;
        status
    };
    let mut ending = Box::pin(ending);
    let mut read = false;
    let status = loop {
        tokio::select! {
            status = &mut ending => break status,
            () = &mut reading, if !read => read = true,
        }
    };
    if !read {
        let _ = tokio::time::timeout(CLOSING, &mut reading).await;
    }
    drop(reading);
    Said { status, stdout: text, stderr: errors }
}

/// Reads a pipe to its end and keeps the first bytes.
async fn keep(mut pipe: impl AsyncRead + Unpin, kept: &mut Vec<u8>, most: u64) {
    let _ = (&mut pipe).take(most).read_to_end(kept).await;
    // Whoever writes more must not block.
    let _ = tokio::io::copy(&mut pipe, &mut tokio::io::sink()).await;
}

/// A stream whose lines are heard while it is read.
struct Heard<'a, R> {
    stream: R,
    hear: &'a (dyn Fn(&str) + Sync),
    line: Vec<u8>,
}

/// Bytes of a line that are heard.
const LONGEST_LINE: usize = 16 << 10;

impl<'a, R> Heard<'a, R> {
    fn new(stream: R, hear: &'a (dyn Fn(&str) + Sync)) -> Self {
        Heard { stream, hear, line: Vec::new() }
    }

    fn split(&mut self, bytes: &[u8]) {
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            let room = LONGEST_LINE.saturating_sub(self.line.len()).min(part.len());
            self.line.extend_from_slice(&part[..room]);
            if part.ends_with(b"\n") {
                (self.hear)(String::from_utf8_lossy(&self.line).trim_end_matches(['\n', '\r']));
                self.line.clear();
            }
        }
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for Heard<'_, R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut task::Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(context, buffer);
        self.split(&buffer.filled()[before..]);
        polled
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        // Until the leader is waited for, its number is nobody else's. A patient one does it by itself: its
        // pipe closes now.
        if self.leader.id().is_some() && self.ends == GroupEnd::AtOnce {
            let _ = kill_process_group(self.id, Signal::KILL);
        }
    }
}

/// How a process ended, in words.
pub fn status_words(status: Option<ExitStatus>) -> String {
    use std::os::unix::process::ExitStatusExt as _;
    let Some(status) = status else { return "an end that nobody saw".to_owned() };
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("signal {signal}{}", signal_name(signal)),
        (None, None) => status.to_string(),
    }
}

fn signal_name(signal: i32) -> &'static str {
    match signal {
        6 => " (SIGABRT)",
        9 => " (SIGKILL: by hand, or for lack of memory)",
        11 => " (SIGSEGV)",
        15 => " (SIGTERM)",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A child in the background holds the pipes; one that left the group cannot even be ended.
    #[tokio::test]
    async fn what_a_command_leaves_behind_is_not_waited_for() {
        for left in ["sleep 25", "setsid sleep 25"] {
            let command = ["sh", "-c", &format!("{left} & echo built; echo well >&2")].map(str::to_owned);
            let (dir, env) = (std::env::temp_dir(), BTreeMap::new());
            let launch =
                Launch { command: &command, dir: &dir, env: &env, without: &[], ends: GroupEnd::AtOnce };
            let run = async {
                let (child, stdout, stderr) = Child::start(&launch).await.unwrap();
                said(child, (stdout, stderr), None, 1 << 20).await
            };
            let said =
                tokio::time::timeout(Duration::from_secs(15), run).await.expect("it waits for the child");
            assert_eq!((&said.stdout[..], &said.stderr[..]), (&b"built\n"[..], &b"well\n"[..]), "{left}");
            assert!(said.status.unwrap().unwrap().success(), "{left}");
        }
    }
}
