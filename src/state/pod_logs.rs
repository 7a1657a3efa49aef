//! Logs of pods: the newest lines of each container that was looked at, bounded for each and in their number.

use crate::event::{LogSource, PodLine, PodLog};
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
}

impl PodLogs {
    /// The log of one container.
    pub fn of(&self, source: &LogSource) -> Option<&ContainerLog> {
        self.by_source.get(source).map(Arc::as_ref)
    }

    pub(super) fn push(&mut self, event: PodLog) {
        self.total += 1;
        let all = Arc::make_mut(&mut self.by_source);
        let log = Arc::make_mut(all.entry(event.source).or_default());
        if event.fresh {
            *log = ContainerLog::default();
        }
        log.last = self.total;
        log.ended = event.ended;
        log.lines.extend(event.lines.into_iter().map(Arc::new));
        while log.lines.len() > LINES {
            log.lines.pop_front();
            log.dropped += 1;
        }
        while all.len() > CONTAINERS {
            let silent = all.iter().min_by_key(|(_, log)| log.last).map(|(source, _)| source.clone());
            silent.into_iter().for_each(|source| _ = all.remove(&source));
        }
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
