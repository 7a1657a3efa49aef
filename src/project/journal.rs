//! `.opdev/events.jsonl`: every event of the running opdev, one JSON object a line, for `opdev tail` and
//! other tools. Written by a thread of its own; a slow disk drops lines (counted in the file) and never
//! delays the operator.

use anyhow::{Context as _, Result};
use opdev_event::Event;
use opdev_os::private_folder::PrivateFolder;
use std::fs::File;
use std::io::{BufRead as _, BufReader, BufWriter, Write as _};
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// The name of the file inside the state folder.
pub const FILE: &str = "events.jsonl";

/// Lines that may wait for the disk.
const WAITING: usize = 8_192;

/// How long the thread gathers lines before it writes them: to wake it for each of many events costs more
/// than the event.
const GATHERED: Duration = Duration::from_millis(5);

/// The size at which the file starts over; the one before is kept as `events.jsonl.1`.
const LIMIT: u64 = 64 * 1024 * 1024;

/// A running journal.
#[derive(Debug)]
pub struct Journal {
    lines: Option<SyncSender<(u64, Event)>>,
    dropped: u64,
    writer: Option<JoinHandle<()>>,
}

impl Journal {
    /// Starts over at `folder/events.jsonl`; the file of the run before becomes `events.jsonl.1`.
    ///
    /// # Errors
    /// Where the file cannot be created.
    pub fn start(folder: &PrivateFolder) -> Result<Journal> {
        let folder = folder.clone();
        let file = fresh(&folder)?;
        let (lines, waiting) = sync_channel(WAITING);
        let writer = std::thread::Builder::new()
            .name("journal".to_owned())
            .spawn(move || write(&folder, file, &waiting))
            .context("no thread for the event journal")?;
        Ok(Journal { lines: Some(lines), dropped: 0, writer: Some(writer) })
    }

    /// Appends an event, which is made a line where it is written: what waits shares its objects with the
    /// state. A table that the user looks at and a run beside the screen come whole at each change,
    /// and would push all else out of the file: they are left out, but for the end of a run.
    pub fn record(&mut self, event: &Event) {
        let whole_each_time = match event {
            Event::TableChanged { .. } | Event::KindsServed { .. } | Event::FilesListed { .. } => true,
            Event::BackgroundChanged(run) => run.end.is_none(),
            _ => false,
        };
        if whole_each_time {
            return;
        }
        let Some(lines) = &self.lines else { return };
        match lines.try_send((self.dropped, event.clone())) {
            Ok(()) => self.dropped = 0,
            Err(TrySendError::Full(_)) => self.dropped += 1,
            Err(TrySendError::Disconnected(_)) => self.lines = None,
        }
    }
}

impl Drop for Journal {
    /// Waits until everything is on disk.
    fn drop(&mut self) {
        self.lines = None;
        if let Some(writer) = self.writer.take() {
            let _ = writer.join();
        }
    }
}

fn fresh(folder: &PrivateFolder) -> Result<File> {
    // There may be none.
    let _ = folder.rename(FILE, &format!("{FILE}.1"));
    folder.create(FILE)
}

fn write(folder: &PrivateFolder, file: File, waiting: &Receiver<(u64, Event)>) {
    let mut out = BufWriter::new(file);
    let mut size = 0u64;
    while let Ok(first) = waiting.recv() {
        std::thread::sleep(GATHERED);
        for (dropped, event) in std::iter::once(first).chain(waiting.try_iter().take(WAITING)) {
            let Ok(mut line) = event.line() else { continue };
            if dropped > 0 {
                line = format!("{{\"event\":\"journalDropped\",\"lines\":{dropped}}}\n{line}");
            }
            if writeln!(out, "{line}").is_err() {
                return;
            }
            size += line.len() as u64 + 1;
        }
        if out.flush().is_err() {
            return;
        }
        if size > LIMIT {
            let Ok(file) = fresh(folder) else { return };
            out = BufWriter::new(file);
            size = 0;
        }
    }
}

/// Hands every line of the file at `path` to `take`, in order, and with `wait` those that are still to come;
/// starts over where a new run starts the file over. Ends when `take` says false, or, at the end of the file,
/// `goes_on`: that is asked again and again while nothing comes, and what was written meanwhile is still
/// handed over.
///
/// # Errors
/// Where the file cannot be read.
pub fn follow(
    path: &Path,
    wait: bool,
    mut take: impl FnMut(&str) -> bool,
    mut goes_on: impl FnMut() -> bool,
) -> Result<()> {
    let open = || File::open(path).with_context(|| format!("{} cannot be read", path.display()));
    let mut reader = BufReader::new(open()?);
    let mut identity = identity(path);
    let mut line = String::new();
    let mut ended = false;
    loop {
        // A line without its end is still being written.
        if reader.read_line(&mut line).is_ok_and(|read| read > 0) && line.ends_with('\n') {
            if !take(line.trim_end()) {
                return Ok(());
            }
            line.clear();
            continue;
        }
        if !wait || ended {
            return Ok(());
        }
        if !goes_on() {
            ended = true;
            continue;
        }
        std::thread::sleep(Duration::from_millis(50));
        let now = self::identity(path);
        if now.is_some() && now != identity {
            identity = now;
            line.clear();
            reader = BufReader::new(open()?);
        }
    }
}

/// The identity of a file, which tells it from one that took its place.
fn identity(path: &Path) -> Option<u64> {
    use std::os::unix::fs::MetadataExt as _;
    path.metadata().ok().map(|data| data.ino())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_before_the_end_is_still_handed_over() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE);
        std::fs::write(&path, "a\nb\n").unwrap();
        let mut lines = Vec::new();
        let append = || {
            let mut file = File::options().append(true).open(&path).unwrap();
            writeln!(file, "c").unwrap();
            false
        };
        let take = |line: &str| {
            lines.push(line.to_owned());
            true
        };
        follow(&path, true, take, append).unwrap();
        assert_eq!(lines, ["a", "b", "c"]);
    }

    #[test]
    fn every_event_is_a_line_and_the_run_before_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        for run in 0..2 {
            let mut journal = Journal::start(&PrivateFolder::make(folder.path()).unwrap()).unwrap();
            journal.record(&Event::TableChanged { table: None });
            for _ in 0..=run {
                journal.record(&Event::LogDropped { lines: 7 });
            }
        }
        let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
        assert_eq!(read("events.jsonl").lines().count(), 2);
        assert_eq!(read("events.jsonl.1"), "{\"event\":\"logDropped\",\"lines\":7}\n");
    }
}
