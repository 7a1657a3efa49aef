//! Runs a program beside the screen: what it prints are lines of the log, and it ends with opdev or where it
//! is cancelled.

use super::Requests;
use super::outcome::Done;
use super::output_lines::each_line;
use anyhow::{Context as _, Result, bail};
use jiff::Timestamp;
use opdev_event::sink::EventSink;
use opdev_event::{Level, LogLine, ProgramRun};
use opdev_os::child::{GroupEnd, ProcessGroup};
use std::process::Stdio;
use tokio::io::AsyncRead;
use tokio::process::Command;

/// Lines of an error that are told with it.
const TOLD: usize = 4;

impl Requests {
    pub(super) async fn run_program(&self, program: &ProgramRun) -> Result<Done> {
        let (first, arguments) = program.command.split_first().context("there is no program to run")?;
        // Dropped where the request is cancelled, it ends all that the program has started.
        let group = ProcessGroup::start(GroupEnd::AtOnce)
            .await
            .context("a process group cannot be made with `sh`")?;
        let mut command = Command::new(first);
        command
            .args(arguments)
            .envs(program.env.iter().map(|(name, value)| (name, value)))
            .current_dir(&self.project.root)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        group.take_in(&mut command);
        let mut child =
            command.spawn().with_context(|| format!("{first} cannot be started; is it on the PATH?"))?;
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let (_, errors) = tokio::join!(
            tell(stdout, &program.title, Level::Info, &self.events),
            tell(stderr, &program.title, Level::Warn, &self.events),
        );
        let status = child.wait().await.with_context(|| format!("{first} got lost"))?;
        group.end().await;
        if status.success() {
            return Ok(Done::said("ended; the log has what it printed"));
        }
        let said = if errors.is_empty() { String::new() } else { format!(": {}", errors.join("\n")) };
        bail!("{first} ended with {status}{said}")
    }
}

/// Tells each line of a stream until it ends; the answer is the last ones.
async fn tell(
    stream: Option<impl AsyncRead + Unpin>,
    name: &str,
    level: Level,
    events: &EventSink,
) -> Vec<String> {
    let mut last: Vec<String> = Vec::new();
    each_line(stream, |line| {
        let told = LogLine {
            at: Timestamp::now(),
            level,
            target: name.to_owned(),
            message: line.to_owned(),
            reconcile: None,
        };
        // Lines that come too fast for the screen are counted, and never hold the operator up.
        events.log(told);
        last.push(line.to_owned());
        if last.len() > TOLD {
            last.remove(0);
        }
    })
    .await;
    last
}

#[cfg(test)]
mod tests {
    use super::super::output_lines::LONGEST;
    use super::*;
    use opdev_event::Event;

    #[tokio::test]
    async fn lines_of_any_bytes_and_length_are_told() {
        let (events, mut told) = EventSink::channel(64);
        let text =
            [b"caf\xe9\r\n".to_vec(), vec![b'x'; 3 * LONGEST as usize / 2], b"\nlast".to_vec()].concat();
        let last = tell(Some(text.as_slice()), "test", Level::Info, &events).await;
        let mut lengths = Vec::new();
        while let Ok(Event::Log(line)) = told.try_recv() {
            lengths.push(line.message.chars().count());
        }
        assert_eq!(lengths, [4, LONGEST as usize, LONGEST as usize / 2, 4]);
        assert_eq!(last.last().map(String::as_str), Some("last"));
    }
}
