//! The versions of the selected object, one at a time: when it was seen, who wrote it, which of our
//! reconciles that was, what differs from the version before, and the object as it was then.

use super::super::text::{Row, wrap};
use super::super::theme::Role;
use super::page::{DetailTab, Page, Stamp};
use super::{changes, yaml};
use crate::detail::parts::{clock_millis, nothing};
use crate::keys::action::Do;
use crate::keys::action::See;
use crate::keys::action::{Action, Section, action};
use crate::pane::Tab;
use jiff::{SignedDuration, Timestamp};
use opdev_event::{Reconcile, words};
use opdev_object::diff::{Change, diff};
use opdev_object::meta::ObjectKey;
use opdev_object::path::Segment;
use opdev_state::State;
use opdev_state::managers;
use opdev_state::managers::Manager;
use opdev_state::versions::{Version, Versions};
use std::sync::Arc;

/// A watch tells of a write after the reconcile may have ended; later than this it was hardly that reconcile.
const LAG: SignedDuration = SignedDuration::from_secs(2);

impl Tab {
    pub const HISTORY: Tab = Tab("history");
}

/// The tab.
pub(super) struct History;

impl DetailTab for History {
    fn tab(&self) -> Tab {
        Tab::HISTORY
    }

    fn title(&self) -> &'static str {
        "History"
    }

    fn action(&self) -> Action {
        action(Tab::HISTORY.0, Do::Show(Tab::HISTORY), &["V"], Section::Look)
            .about("history", "Show the versions of the selected object.")
            .also(&["versions"])
    }

    fn place(&self) -> u8 {
        6
    }

    fn stamp(&self, page: &Page<'_>) -> Stamp {
        // Made of versions that may be large: only what is new of the object itself, or who wrote it, counts.
        Stamp::of_subject(page, page.state.history.total)
    }

    fn rows(&self, page: &Page<'_>) -> Vec<Row> {
        let (state, cells) = (page.state, page.cells);
        let Some(seen) = page.subject else {
            return nothing(
                "Nothing is selected. The versions of a custom resource or of an owned object show here.",
                cells,
            );
        };
        let Some(versions) = state.versions(&seen.key) else {
            if seen.metadata_only {
                return nothing(
                    "Only its metadata was read so far; versions are kept of what is read whole.",
                    cells,
                );
            }
            return nothing("No version of this object was seen yet.", cells);
        };
        let number = page.how.version_of(&seen.key).unwrap_or(versions.newest());
        let number = number.clamp(versions.oldest(), versions.newest());
        let Some((version, before)) = versions.pair(number) else { return Vec::new() };
        let mut rows = yaml::gone(page, state, seen);
        rows.push(slider(versions, number, cells));
        rows.extend(headline(page, state, &seen.key, versions, &version, before.as_ref(), cells));
        rows.push(Row::default());
        match &before {
            Some(before) => {
                let managed = page.how.managed;
                let mut changes = diff(&before.object, &version.object);
                changes.retain(|change| managed || !is_bookkeeping(change));
                rows.push(Row::new(Role::Title, format!(" Changed since version {}", before.number)));
                if changes.is_empty() {
                    let does = Do::See(See::ManagedFields);
                    let key = page.keys.first(does);
                    let text = format!(
                        "   Only bookkeeping: resourceVersion, generation or managedFields. {key} shows it."
                    );
                    rows.push(Row::new(Role::Dim, text));
                }
                rows.extend(changes::rows(&changes, 0));
            }
            None if version.number == 1 => {
                rows.push(Row::new(Role::Dim, " The first version that opdev has seen of it."));
            }
            None => {
                rows.push(Row::new(
                    Role::Dim,
                    " The oldest version that is kept; those before it are dropped.",
                ));
            }
        }
        rows.push(Row::default());
        rows.push(Row::new(Role::Title, " As it was"));
        rows.extend(yaml::plain(&version.object, page.how.managed));
        rows
    }

    fn is_of_object(&self) -> bool {
        true
    }

    fn shows_whole_object(&self) -> bool {
        true
    }
}

/// Where one is among the versions that are kept: `‹ ○○○●○○ ›`.
fn slider(versions: &Versions, number: u64, cells: usize) -> Row {
    let (oldest, newest) = (versions.oldest(), versions.newest());
    let room = cells.saturating_sub(28).clamp(5, 60) as u64;
    // Where not all fit, the window follows the one looked at.
    let from = oldest.max(number.saturating_sub(room / 2)).min(newest.saturating_sub(room - 1).max(oldest));
    let to = newest.min(from + room - 1);
    let (back, on) = (if number > oldest { "<" } else { " " }, if number < newest { ">" } else { " " });
    let marks =
        |range: std::ops::Range<u64>| "○".repeat(usize::try_from(range.end - range.start).unwrap_or(0));
    Row::new(Role::Key, format!(" {back} "))
        .and(Role::Dim, if from > oldest { "…" } else { "" })
        .and(Role::Dim, marks(from..number))
        .and(Role::Focus, "●")
        .and(Role::Dim, marks(number + 1..to + 1))
        .and(Role::Dim, if to < newest { "…" } else { "" })
        .and(Role::Key, format!(" {on} "))
        .and(Role::Text, format!(" version {number} of {newest}"))
}

fn headline(
    page: &Page<'_>,
    state: &State,
    key: &ObjectKey,
    versions: &Versions,
    version: &Version,
    before: Option<&Version>,
    cells: usize,
) -> Vec<Row> {
    let mut text = format!("seen {}", clock_millis(version.at, page.zone));
    let first = version.number > 1 && before.is_none();
    // The oldest version that is kept may have several writers, and nobody can tell the last one.
    let writer =
        managers::writer(before.map(|version| version.object.as_ref()), &version.object).filter(|_| !first);
    if let Some(writer) = &writer {
        let through = match writer.subresource.as_str() {
            "" => String::new(),
            subresource => format!(" through {subresource}"),
        };
        text.push_str(&format!(", written by {}{through} ({})", writer.name, writer.operation));
    }
    if let Some(reconcile) = writer.as_ref().and_then(|writer| reconcile_of(state, key, version.at, writer)) {
        let causes = words::causes_of(&reconcile.object, &reconcile.causes);
        text.push_str(&format!(
            ", by reconcile #{} ({}): {causes}",
            reconcile.id,
            words::outcome(reconcile.outcome)
        ));
    }
    if version.number == versions.newest() && state.gone_at(key).is_none() {
        text.push_str(", the newest");
    }
    wrap(&text, cells.saturating_sub(3))
        .into_iter()
        .map(|line| Row::new(Role::Text, format!("   {line}")))
        .collect()
}

/// The reconcile that wrote a version: one that wrote this object, at that time, under a name of ours.
fn reconcile_of<'a>(
    state: &'a State,
    key: &ObjectKey,
    at: Timestamp,
    writer: &Manager,
) -> Option<&'a Arc<Reconcile>> {
    let ours = writer.name == "helm" || writer.name == "opdev" || writer.name.starts_with("opdev/");
    let fits = |reconcile: &&Arc<Reconcile>| {
        let end = reconcile
            .at
            .checked_add(reconcile.took)
            .and_then(|end| end.checked_add(LAG))
            .unwrap_or(reconcile.at);
        let itself =
            reconcile.object.key() == *key && (!reconcile.status.is_empty() || !reconcile.calls.is_empty());
        let wrote = itself || reconcile.objects.iter().any(|change| change.object.key() == *key);
        reconcile.at <= at && at <= end && wrote
    };
    // The newest that had begun by then.
    state.history.all().iter().rev().filter(|_| ours).find(fits)
}

/// Changes that every write brings along.
fn is_bookkeeping(change: &Change) -> bool {
    let names: Vec<&str> = change
        .path
        .0
        .iter()
        .map_while(|segment| match segment {
            Segment::Field(name) => Some(name.as_str()),
            Segment::Index(_) | Segment::Key(_) => None,
        })
        .collect();
    matches!(names.as_slice(), ["metadata", "managedFields" | "resourceVersion" | "generation", ..])
}
