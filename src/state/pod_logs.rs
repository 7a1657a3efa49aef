//! Logs of pods: the newest lines of each container that was looked at, bounded for each and in their number.

use opdev_event::{LogSource, PodLine, PodLog};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// Lines of one container that are kept.
const LINES: usize = 1_000;
/// Containers that are kept; the one that was silent for longest goes first.
const CONTAINERS: usize = 40;

/// Logs of pods.
#[derive(Clone, Debug, Default)]
pub struct PodLogs {
    by_source: Arc<BTreeMap<LogSource, Arc<ContainerLog>>>,
    /// Counts what came, so that equal numbers are equal logs.
    pub total: u64,
    lines: usize,
    bytes: usize,
    forgotten: u64,
}

/// The log of one container.
#[derive(Clone, Debug, Default)]
pub struct ContainerLog {
    /// Its newest lines, the oldest first.
    pub lines: VecDeque<Arc<PodLine>>,
    /// Lines that came and are no longer kept.
    pub dropped: u64,
    /// Why no more come; `None` while it is followed.
    pub ended: Option<String>,
    /// The count at which it was told of last.
    last: u64,
    bytes: usize,
}

impl ContainerLog {
    fn pop(&mut self) {
        self.bytes -= self.lines.pop_front().map_or(0, |line| size(&line));
        self.dropped += 1;
    }
}

fn size(line: &PodLine) -> usize {
    size_of::<PodLine>() + 24 + line.text.len()
}

impl PodLogs {
    /// The log of one container.
    pub fn of(&self, source: &LogSource) -> Option<&ContainerLog> {
        self.by_source.get(source).map(Arc::as_ref)
    }

    /// How many lines of all containers are kept.
    pub fn lines(&self) -> usize {
        self.lines
    }

    /// How many lines came and are no longer kept.
    pub fn forgotten(&self) -> u64 {
        self.forgotten
    }

    /// The bytes of all lines, estimated.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn push(&mut self, event: PodLog) {
        self.total += 1;
        let all = Arc::make_mut(&mut self.by_source);
        let log = Arc::make_mut(all.entry(event.source).or_default());
        let before = (log.lines.len(), log.bytes);
        if event.fresh {
            *log = ContainerLog::default();
        }
        log.last = self.total;
        log.ended = event.ended;
        log.bytes += event.lines.iter().map(size).sum::<usize>();
        log.lines.extend(event.lines.into_iter().map(Arc::new));
        while log.lines.len() > LINES {
            log.pop();
            self.forgotten += 1;
        }
        (self.lines, self.bytes) =
            (self.lines + log.lines.len() - before.0, self.bytes + log.bytes - before.1);
        while self.by_source.len() > CONTAINERS && self.drop_silent() {}
    }

    /// Forgets lines until no more than this many bytes are left: of the container that was silent for
    /// longest all, of the only one the oldest.
    pub(super) fn shed(&mut self, goal: usize) {
        while self.bytes > goal && self.by_source.len() > 1 && self.drop_silent() {}
        if self.bytes <= goal {
            return;
        }
        let all = Arc::make_mut(&mut self.by_source);
        let Some(log) = all.values_mut().next().map(Arc::make_mut) else { return };
        while self.bytes > goal && !log.lines.is_empty() {
            let before = log.bytes;
            log.pop();
            self.bytes -= before - log.bytes;
            self.lines -= 1;
            self.forgotten += 1;
        }
    }

    /// Forgets the container that was silent for longest.
    fn drop_silent(&mut self) -> bool {
        let silent = self.by_source.iter().min_by_key(|(_, log)| log.last).map(|(source, _)| source.clone());
        let gone = silent.and_then(|source| Arc::make_mut(&mut self.by_source).remove(&source));
        let Some(gone) = gone else { return false };
        self.lines -= gone.lines.len();
        self.bytes -= gone.bytes;
        self.forgotten += gone.lines.len() as u64;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::Timestamp;

    fn source(pod: usize) -> LogSource {
        LogSource {
            namespace: "d".to_owned(),
            pod: pod.to_string(),
            uid: None,
            container: "c".to_owned(),
            restarts: 0,
            previous: false,
        }
    }

    fn log(pod: usize, fresh: bool, lines: usize) -> PodLog {
        let line = |i: usize| PodLine { at: Timestamp::UNIX_EPOCH, text: i.to_string() };
        let lines = (0..lines).map(line).collect();
        PodLog { at: Timestamp::UNIX_EPOCH, source: source(pod), fresh, lines, ended: None }
    }

    #[test]
    fn lines_and_containers_are_bounded() {
        let mut logs = PodLogs::default();
        logs.push(log(0, true, 700));
        logs.push(log(0, false, 700));
        let one = logs.of(&source(0)).unwrap();
        assert_eq!((one.lines.len(), one.dropped), (LINES, 400));
        assert_eq!(one.lines.back().unwrap().text, "699");
        logs.push(log(0, true, 2));
        let one = logs.of(&source(0)).unwrap();
        assert_eq!((one.lines.len(), one.dropped), (2, 0), "begun anew");
        for pod in 1..=CONTAINERS {
            logs.push(log(pod, true, 1));
        }
        assert!(logs.of(&source(0)).is_none() && logs.of(&source(1)).is_some());
    }
}
