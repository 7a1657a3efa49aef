//! One immutable, numbered set of charts, watches, CRDs and samples. A reconcile sees exactly one of them.
//! Pure: file sets come in, a set of sources comes out. `dev/reload.rs` reads the files.

pub mod broken;
pub mod load;
mod overrides;
mod watches;

use crate::event::{Diagnostic, Sample};
use opdev_helm::chart::Chart;
use opdev_object::meta::Gvk;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A set of sources.
#[derive(Debug, Default)]
pub struct Sources {
    /// Counted from 1.
    pub number: u64,
    /// The files that led to it, relative to the project's root; empty at start.
    pub files: Vec<String>,
    /// When the last of those files was closed or renamed into place; `None` at start.
    pub saved_at: Option<Instant>,
    /// One entry per line of `watches.yaml` that names a kind.
    pub watches: Vec<Arc<Watch>>,
    /// CRDs to apply: the project's own, or the schema-less one the Operator SDK would scaffold.
    pub crds: Vec<Arc<Value>>,
    /// Files to apply with a key.
    pub samples: Vec<Sample>,
    /// What is wrong, warnings included.
    pub diagnostics: Vec<Diagnostic>,
}

/// One entry of `watches.yaml`, with its chart loaded.
#[derive(Debug)]
pub struct Watch {
    /// The kind it reconciles.
    pub gvk: Gvk,
    /// The chart's folder, relative to the project's root.
    pub chart_path: String,
    /// The newest chart that loaded; `None` where there was none yet.
    pub chart: Option<Arc<Chart>>,
    /// Why the newest files are not the ones that serve.
    pub broken: Option<Diagnostic>,
    /// The set of sources that last changed anything about this entry.
    pub changed_in: u64,
    /// Whether objects of the release are watched, too. Default true.
    pub watch_dependents: bool,
    /// Values forced by the operator, expanded; each a `--set-string` pair.
    pub overrides: BTreeMap<String, String>,
    /// How often an object is reconciled without a cause; `None` means the flag's default.
    pub reconcile_period: Option<Duration>,
    /// Label selector of the objects to reconcile, as in `metav1.LabelSelector`; null means all.
    pub selector: Value,
    /// `server` lets `lookup` see the cluster while the candidate is rendered.
    pub dry_run_option: String,
    /// How many objects of this kind are reconciled at once; `None` means the flag's default.
    pub max_concurrent: Option<usize>,
}

impl Sources {
    /// The entry of a kind, whatever the version.
    pub fn watch(&self, group: &str, kind: &str) -> Option<&Arc<Watch>> {
        self.watches.iter().find(|watch| watch.gvk.group == group && watch.gvk.kind == kind)
    }
}

/// A Go duration such as `1h2m4s`, `300ms` or `1.5m`; `0` needs no unit. Negative ones count as zero.
pub fn duration(text: &str) -> Option<Duration> {
    let (negative, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Some(Duration::ZERO);
    }
    if rest.is_empty() {
        return None;
    }
    let mut seconds = 0.0;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let number: f64 = rest[..end].parse().ok()?;
        let after = &rest[end..];
        let unit_end = after.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(after.len());
        seconds += number
            * match &after[..unit_end] {
                "h" => 3600.0,
                "m" => 60.0,
                "s" => 1.0,
                "ms" => 1e-3,
                "us" | "µs" => 1e-6,
                "ns" => 1e-9,
                _ => return None,
            };
        rest = &after[unit_end..];
    }
    if negative { Some(Duration::ZERO) } else { Duration::try_from_secs_f64(seconds).ok() }
}

/// The candidate that differs from `word` in at most two letters, for suggestions.
pub fn nearest<'a>(word: &str, candidates: &[&'a str]) -> Option<&'a str> {
    candidates
        .iter()
        .map(|candidate| (edits(&word.to_lowercase(), &candidate.to_lowercase()), *candidate))
        .filter(|(edits, _)| *edits <= 2)
        .min_by_key(|(edits, _)| *edits)
        .map(|(_, candidate)| candidate)
}

/// Letters to insert, remove or replace.
fn edits(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let cost = if x == *y { diagonal } else { diagonal + 1 };
            diagonal = row[j + 1];
            row[j + 1] = cost.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn go_durations() {
        assert_eq!(duration("1h2m4s"), Some(Duration::from_secs(3724)));
        assert_eq!(duration("1.5m"), Some(Duration::from_secs(90)));
        assert_eq!(duration("250ms"), Some(Duration::from_millis(250)));
        assert_eq!(duration("0"), Some(Duration::ZERO));
        assert_eq!(duration("-5m"), Some(Duration::ZERO));
        for wrong in ["", "5", "m", "5 m", "1x"] {
            assert_eq!(duration(wrong), None, "{wrong}");
        }
    }
}
