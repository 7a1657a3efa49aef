//! Kinds that a program watches and its cluster does not have, as controller-runtime says it in its log: it
//! asks again every ten seconds, and ends the program after two minutes.

use jiff::{SignedDuration, Timestamp};
use opdev_event::LogLine;
use std::collections::BTreeMap;

/// The words of controller-runtime about a watched kind, and about a reconcile that failed.
const SIGNS: [&str; 2] =
    ["if kind is a CRD, it should be installed before calling Start", "Reconciler error"];

/// A kind that the cluster does not have.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MissingKind {
    /// Such as `Certificate`.
    pub kind: String,
    /// Such as `cert-manager.io`.
    pub group: String,
    /// Such as `v1`; empty where the program asks for any.
    pub version: String,
}

impl MissingKind {
    /// Reads the text of a log line; kinds without a group are the cluster's own.
    pub fn read(text: &str) -> Option<MissingKind> {
        if !SIGNS.iter().any(|sign| text.contains(sign)) {
            return None;
        }
        let (_, rest) = text.split_once("no matches for kind \"")?;
        let (kind, rest) = rest.split_once("\" in ")?;
        let quoted = rest.split_once('"')?.1.split_once('"')?.0;
        let (group, version) = match rest.starts_with("version") {
            true => quoted.split_once('/')?,
            false => (quoted, ""),
        };
        let own = |text: &str| text.to_owned();
        Some(MissingKind { kind: own(kind), group: own(group), version: own(version) })
    }
}

/// The words of a controller whose cache was not filled in time: with them the program ends.
const ENDS: &str = "timed out waiting for cache to be synced";
/// The least time between two sayings; controller-runtime waits ten seconds.
const AGAIN: SignedDuration = SignedDuration::from_secs(5);
/// The time after which a kind is there that nobody misses any more.
const SILENT: SignedDuration = SignedDuration::from_secs(25);

/// A kind of which the running program has said that it is missing.
#[derive(Clone, Copy, Debug)]
struct Said {
    first: Timestamp,
    last: Timestamp,
    /// The time between the last two; none the first time, for opdev may install it then.
    gap: SignedDuration,
}

/// The kinds that the running program misses.
#[derive(Debug, Default)]
pub struct MissingKinds {
    said: BTreeMap<MissingKind, Said>,
    /// When it said that a cache was not filled.
    ends: Option<Timestamp>,
}

impl MissingKinds {
    /// Takes in a line of the program. The kind, where it has said before that it is missing.
    pub fn hear(&mut self, line: &LogLine) -> Option<MissingKind> {
        if line.message.contains(ENDS) {
            self.ends = Some(line.at);
        }
        let kind = MissingKind::read(&line.message)?;
        let new = Said { first: line.at, last: line.at, gap: SignedDuration::ZERO };
        let said = self.said.entry(kind.clone()).or_insert(new);
        // A line may be told twice.
        let gap = line.at.duration_since(said.last);
        let later = gap >= AGAIN;
        if later {
            (said.last, said.gap) = (line.at, gap);
        }
        later.then_some(kind)
    }

    /// The program has ended: the kinds because of which, with the seconds that it has waited.
    pub fn ended(&mut self, at: Timestamp) -> Vec<(MissingKind, i64)> {
        let ends = self.ends.take().is_some_and(|ends| at.duration_since(ends) < SILENT);
        let said = std::mem::take(&mut self.said);
        let missed = said
            .into_iter()
            .filter(|(_, said)| ends && !said.gap.is_zero() && at.duration_since(said.last) < SILENT)
            .map(|(kind, said)| (kind, at.duration_since(said.first).as_secs()));
        missed.collect()
    }

    /// True if a program that runs since a time would have said it again.
    pub fn are_there(&self, started: Timestamp, now: Timestamp) -> bool {
        // A reconcile that fails is tried again with growing pauses.
        let silent = |said: &Said| now.duration_since(said.last) >= SILENT.max(said.gap * 3);
        now.duration_since(started) >= SILENT && self.said.values().all(silent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_read_from_what_controller_runtime_says() {
        let read = |text: &str| MissingKind::read(text).map(|one| [one.kind, one.group, one.version]);
        let of = |kind: &str, group: &str, version: &str| Some([kind, group, version].map(str::to_owned));
        let line = "if kind is a CRD, it should be installed before calling Start: no matches for kind \"Certificate\" in \
                    version \"cert-manager.io/v1\" kind=Certificate.cert-manager.io";
        assert_eq!(read(line), of("Certificate", "cert-manager.io", "v1"));
        let any = line.replace("version \"cert-manager.io/v1\"", "group \"cert-manager.io\"");
        assert_eq!(read(&any), of("Certificate", "cert-manager.io", ""));
        let failed =
            "Reconciler error error=no matches for kind \"Certificate\" in version \"cert-manager.io/v1\"";
        assert_eq!(read(failed), of("Certificate", "cert-manager.io", "v1"));
        assert_eq!(read("no matches for kind \"Certificate\" in version \"cert-manager.io/v1\""), None);
        assert_eq!(read(&line.replace("cert-manager.io/v1", "v1")), None);
    }
}
