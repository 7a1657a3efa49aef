//! The newest log lines, and how many are missing.

use opdev_event::LogLine;
use std::collections::VecDeque;
use std::sync::Arc;

/// Log lines, oldest first.
#[derive(Clone, Debug, Default)]
pub struct Log {
    lines: Arc<VecDeque<Arc<LogLine>>>,
    bytes: usize,
    /// Lines that never got here, because they came faster than they could be taken.
    pub dropped: u64,
    /// Lines seen, those included that are no longer kept.
    pub total: u64,
}

impl Log {
    /// The lines that are kept, oldest first.
    pub fn lines(&self) -> &VecDeque<Arc<LogLine>> {
        &self.lines
    }

    /// How many lines came and are no longer kept.
    pub fn forgotten(&self) -> u64 {
        self.total - self.lines.len() as u64
    }

    /// The bytes of all lines, estimated.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn push(&mut self, line: LogLine, limit: usize) {
        self.total += 1;
        self.bytes += size(&line);
        Arc::make_mut(&mut self.lines).push_back(Arc::new(line));
        while self.lines.len() > limit {
            self.pop();
        }
    }

    /// Forgets the oldest lines until no more than this many bytes are left.
    pub(super) fn shed(&mut self, goal: usize) {
        while self.bytes > goal && !self.lines.is_empty() {
            self.pop();
        }
    }

    fn pop(&mut self) {
        let gone = Arc::make_mut(&mut self.lines).pop_front();
        self.bytes -= gone.map_or(0, |line| size(&line));
    }
}

fn size(line: &LogLine) -> usize {
    size_of::<LogLine>() + 16 + line.target.len() + line.message.len()
}
