//! The newest log lines, and how many are missing.

use crate::event::LogLine;
use std::collections::VecDeque;
use std::sync::Arc;

/// Log lines, oldest first.
#[derive(Clone, Debug, Default)]
pub struct Log {
    lines: Arc<VecDeque<Arc<LogLine>>>,
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

    pub(super) fn push(&mut self, line: LogLine, limit: usize) {
        self.total += 1;
        let lines = Arc::make_mut(&mut self.lines);
        lines.push_back(Arc::new(line));
        while lines.len() > limit {
            lines.pop_front();
        }
    }
}
