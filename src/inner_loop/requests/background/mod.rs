//! Runs `opdev torture` and `opdev upgrade` beside the screen: opdev itself, in a process of its own, which tells
//! each step as a line of JSON. The lines become a run that the screen shows (`torture`, `upgrade`; parts that
//! both need are in `lines`).

mod lines;
pub(crate) mod opdev;
mod torture;
mod upgrade;

use super::Requests;
use super::outcome::Done;
use super::output_lines::each_line;
use anyhow::{Context as _, Result, anyhow, bail};
use jiff::Timestamp;
use lines::Lines;
use opdev_event::{BackgroundCommand, BackgroundEnd, BackgroundRun, Event, RequestId, words};
use opdev_os::child::{GroupEnd, ProcessGroup};
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, BufReader};
use tokio::process::Command;

/// Bytes of a line of JSON; a report of many findings is one line.
const LONGEST: u64 = 16 << 20;
/// Lines of an error that are told with it.
const TOLD: usize = 8;
/// The least time between two events of progress.
const PAUSE: Duration = Duration::from_millis(200);

impl Requests {
    /// Runs a command beside the screen, and tells how far it is.
    pub(super) async fn run_background(&self, id: RequestId, command: &BackgroundCommand) -> Result<Done> {
        let begun = Instant::now();
        let mut run = BackgroundRun {
            command: command.clone(),
            request: id,
            began: Timestamp::now(),
            about: String::new(),
            done: 0,
            now: "the project is read".to_owned(),
            columns: Vec::new(),
            rows: Vec::new(),
            findings: Vec::new(),
            notes: Vec::new(),
            end: None,
        };
        {
            let mut under_way = self.opdev.under_way();
            if under_way.values().any(|other| other.command.is_like(command)) {
                bail!("one is under way already; its page stops it with `x`");
            }
            under_way.insert(id, Arc::new(run.clone()));
        }
        let ended = self.follow(&mut run).await;
        self.opdev.under_way().remove(&id);
        let problem = ended.as_ref().err().map(opdev_client::error_words::told);
        run.end = Some(BackgroundEnd { took: begun.elapsed(), problem });
        let found = match run.findings.len() {
            0 => "nothing is wrong".to_owned(),
            1 => "1 finding".to_owned(),
            many => format!("{many} findings"),
        };
        self.events.emit(Event::BackgroundChanged(Arc::new(run))).await;
        ended.map(|()| Done::said(found))
    }

    /// A run was cancelled: what it had found stays.
    pub(super) async fn background_cancelled(&self, id: RequestId) {
        let run = self.opdev.under_way().remove(&id);
        if let Some(mut run) = run.map(Arc::unwrap_or_clone) {
            let took = Timestamp::now().duration_since(run.began);
            let took = Duration::try_from(took).unwrap_or_default();
            run.end = Some(BackgroundEnd { took, problem: Some("stopped".to_owned()) });
            self.events.emit(Event::BackgroundChanged(Arc::new(run))).await;
        }
    }

    /// Tells how far a run is, and keeps that for the case that it is cancelled.
    async fn tell_progress(&self, run: &BackgroundRun) {
        let run = Arc::new(run.clone());
        self.opdev.under_way().insert(run.request, Arc::clone(&run));
        self.events.emit(Event::BackgroundChanged(run)).await;
    }

    async fn follow(&self, run: &mut BackgroundRun) -> Result<()> {
        let mut lines: Box<dyn Lines> = match &run.command {
            BackgroundCommand::Torture { .. } => Box::new(torture::Torture::default()),
            BackgroundCommand::Upgrade { .. } => Box::new(upgrade::Upgrade::default()),
        };
        let format: &[&str] = match &run.command {
            BackgroundCommand::Torture { .. } => &["--json"],
            BackgroundCommand::Upgrade { .. } => &["--output", "json-lines"],
        };
        self.tell_progress(run).await;
        // Its own programs end with it, and its worktrees are taken away.
        let group =
            ProcessGroup::start(GroupEnd::Asked).await.context("a process group cannot be made with `sh`")?;
        let mut command = Command::new(&self.opdev.program);
        command
            .arg(run.command.name())
            .args(format)
            .args(&self.opdev.options)
            .arg("--project")
            .arg(&self.project.root)
            .args(run.command.arguments())
            .current_dir(&self.project.root)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        group.take_in(&mut command);
        let program = self.opdev.program.display();
        let mut child = command.spawn().with_context(|| format!("{program} cannot be started"))?;
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let (_, errors) = tokio::join!(self.take_lines(stdout, lines.as_mut(), run), first_lines(stderr));
        let status = child.wait().await.with_context(|| format!("{program} got lost"))?;
        group.end().await;
        if lines.is_whole() {
            return lines.problem().map_or(Ok(()), |problem| Err(anyhow!(problem)));
        }
        match errors.is_empty() {
            true => bail!("{} ended with {status}", run.command.line()),
            false => bail!("{}", errors.join("\n")),
        }
    }

    async fn take_lines(
        &self,
        stream: Option<impl AsyncRead + Unpin>,
        lines: &mut dyn Lines,
        run: &mut BackgroundRun,
    ) {
        let Some(stream) = stream else { return };
        let mut reader = BufReader::new(stream);
        let mut bytes = Vec::new();
        let mut told = Instant::now();
        // A line that is not told yet waits no longer than this for the next one.
        let mut untold = false;
        loop {
            let mut limited = (&mut reader).take(LONGEST);
            let next = limited.read_until(b'\n', &mut bytes);
            let pause = if untold { PAUSE } else { Duration::MAX };
            let Ok(read) = tokio::time::timeout(pause, next).await else {
                self.tell_progress(run).await;
                (told, untold) = (Instant::now(), false);
                continue;
            };
            if !read.is_ok_and(|read| read > 0) && bytes.is_empty() {
                break;
            }
            let found = run.findings.len();
            lines.take(&String::from_utf8_lossy(&bytes), run);
            bytes.clear();
            untold = told.elapsed() < PAUSE && run.findings.len() == found;
            if !untold {
                self.tell_progress(run).await;
                told = Instant::now();
            }
        }
    }
}

/// The first lines of a stream, once it ends: they say what is wrong, and those of a stack follow.
async fn first_lines(stream: Option<impl AsyncRead + Unpin>) -> Vec<String> {
    let mut told: Vec<String> = Vec::new();
    each_line(stream, |line| {
        let line = words::visible_line(line.trim_end());
        // Notes are told by the report.
        if !line.is_empty() && !line.starts_with("note: ") && told.len() < TOLD {
            told.push(line.strip_prefix("error: ").unwrap_or(&line).to_owned());
        }
    })
    .await;
    told
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_error_is_told_without_notes_and_its_first_word() {
        let text = "note: 2 files are not committed\nerror: no tag leads to HEAD\n  to do: name a version\n";
        assert_eq!(
            first_lines(Some(text.as_bytes())).await,
            ["no tag leads to HEAD", "  to do: name a version"]
        );
    }
}
