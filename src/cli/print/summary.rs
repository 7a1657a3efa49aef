//! The findings that are still open when opdev ends, below the last line of `--plain`.

use opdev_event::{Event, FindingSeverity, RuleFinding, words};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Findings that are named; more are counted.
const NAMED: usize = 20;

/// Findings that are open.
#[derive(Debug, Default)]
pub struct Summary(BTreeMap<u64, Arc<RuleFinding>>);

impl Summary {
    /// Takes in an event. At the end it says what is open; nothing where nothing is.
    pub fn see(&mut self, event: &Event) -> Option<String> {
        match event {
            Event::FindingOpened(finding) | Event::FindingCounted(finding) => {
                self.0.insert(finding.id, Arc::clone(finding));
            }
            Event::FindingClosed(finding) => _ = self.0.remove(&finding.id),
            Event::Stopping { .. } => return self.text(),
            _ => {}
        }
        None
    }

    fn text(&self) -> Option<String> {
        let mut open: Vec<&RuleFinding> = self.0.values().map(Arc::as_ref).collect();
        open.sort_by_key(|finding| (finding.severity, finding.id));
        let of = |severity| open.iter().filter(|finding| finding.severity == severity).count();
        let counts: Vec<String> = [FindingSeverity::Error, FindingSeverity::Warning, FindingSeverity::Hint]
            .into_iter()
            .filter_map(|severity| match of(severity) {
                0 => None,
                1 => Some(format!("1 {}", severity.name())),
                count => Some(format!("{count} {}s", severity.name())),
            })
            .collect();
        if counts.is_empty() {
            return None;
        }
        let mut text = format!("findings   {} open", counts.join(", "));
        for finding in open.iter().take(NAMED) {
            let place = finding.place.as_ref().map_or_else(String::new, |place| format!(" at {place}"));
            let times = if finding.times > 1 { format!(" ×{}", finding.times) } else { String::new() };
            let (sign, title) = (finding.severity.sign(), words::one_line(&finding.title));
            text.push_str(&format!("\n             {sign} {title} {}{times}{place}", finding.object));
        }
        if open.len() > NAMED {
            text.push_str(&format!("\n             and {} more", open.len() - NAMED));
        }
        Some(text)
    }
}
