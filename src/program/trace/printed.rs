//! Lines that a process both prints and tells: each is shown once. Whichever of the two comes first, the told
//! one is shown, for it belongs to its reconcile. The printed one is left out only while the process is
//! connected and tells; what its connection did not tell to its end is shown as it was printed.

use opdev_event::LogLine;
use opdev_facts::record::{LineName, PrintedLine};
use std::collections::BTreeMap;

/// Lines that wait for their other half. An older one than these is shown, perhaps twice.
const MOST: usize = 4096;

/// Halves of lines.
#[derive(Debug, Default)]
pub(super) struct Printed {
    /// Process ids by connection, while they are open.
    connected: BTreeMap<u64, u32>,
    /// Told and not yet read from the output, with the reconcile of each.
    told: BTreeMap<LineName, Option<u64>>,
    /// Read from the output and not yet told.
    waiting: BTreeMap<LineName, PrintedLine>,
}

impl Printed {
    /// A process has connected.
    pub(super) fn connected(&mut self, connection: u64, pid: u32) {
        self.connected.insert(connection, pid);
    }

    /// A connection has ended: what was to come over it does not come any more, and is shown as it was
    /// printed.
    pub(super) fn closed(&mut self, connection: u64) -> Vec<LogLine> {
        let Some(pid) = self.connected.remove(&connection) else { return Vec::new() };
        let all = std::mem::take(&mut self.waiting).into_iter();
        let left: BTreeMap<LineName, PrintedLine>;
        (left, self.waiting) = all.partition(|(name, _)| name.pid == pid);
        left.into_values().map(|printed| printed.line).collect()
    }

    /// Takes in a line that was told; the stack of its printed half goes with it.
    pub(super) fn told(&mut self, name: LineName, line: &mut LogLine) {
        match self.waiting.remove(&name) {
            Some(printed) if printed.stack.is_empty() => {}
            Some(printed) => line.message = format!("{}\n{}", line.message, printed.stack),
            None => {
                self.told.insert(name, line.reconcile);
                if self.told.len() > MOST {
                    self.told.pop_first();
                }
            }
        }
    }

    /// Takes in a line that was printed; the answer is what is shown of it now.
    pub(super) fn printed(&mut self, printed: PrintedLine) -> Option<LogLine> {
        let PrintedLine { name, line, stack } = &printed;
        if let Some(reconcile) = self.told.remove(name) {
            let rest = LogLine { message: stack.clone(), reconcile, ..line.clone() };
            return (!stack.is_empty()).then_some(rest);
        }
        if !self.connected.values().any(|pid| *pid == name.pid) {
            return Some(printed.line);
        }
        self.waiting.insert(*name, printed);
        if self.waiting.len() <= MOST {
            return None;
        }
        self.waiting.pop_first().map(|(_, oldest)| oldest.line)
    }
}
