//! One reconcile opened up in place: why it ran, how long it waited, its steps and calls as bars on the scale
//! of the reconcile, what it wrote, when it runs again. Pure: which lines there are does not depend on the
//! width, how they look does.

use super::detail::parts::clock_millis;
use super::pane::Tab;
use super::text::{Row, cut, cut_front, left, right, width};
use super::theme::Role;
use jiff::tz::TimeZone;
use opdev_event::{Action, Call, Cause, CauseKind, Outcome, Reconcile, WatchEvent, words};
use opdev_object::api_path::plural;
use std::time::Duration;

/// Changed fields that are named for one cause in place; the bars below should stay in sight.
pub const FEW: usize = 3;
/// Changed fields that are named for one cause where there is room.
pub(crate) const MANY: usize = 40;

/// One line below a reconcile; numbers are places in its lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line {
    /// The reason of a folded storm; it belongs to no single reconcile.
    Storm,
    Cause(usize),
    Field(usize, usize),
    MoreFields(usize),
    Scale,
    Queue,
    Step(usize),
    Call(usize),
    Object(usize),
    Status,
    Failure,
    Waiting,
    Requeue,
}

/// The lines of a reconcile from the first cause to the requeue, with at most `most` changed fields for each
/// cause.
pub fn lines(reconcile: &Reconcile, most: usize) -> Vec<Line> {
    let mut lines = Vec::new();
    for i in words::in_order(&reconcile.causes) {
        let cause = &reconcile.causes[i];
        lines.push(Line::Cause(i));
        let fields = changed(cause).len();
        lines.extend((0..fields.min(most)).map(|field| Line::Field(i, field)));
        if fields > most {
            lines.push(Line::MoreFields(fields - most));
        }
    }
    lines.extend([Line::Scale, Line::Queue]);
    let mut steps: Vec<usize> = (0..reconcile.steps.len()).collect();
    steps.sort_by_key(|i| reconcile.steps[*i].start);
    let mut calls: Vec<usize> = (0..reconcile.calls.len()).collect();
    calls.sort_by_key(|i| reconcile.calls[*i].start);
    let mut calls = calls.into_iter().peekable();
    for step in steps {
        let begun = reconcile.steps[step].start;
        while let Some(call) = calls.next_if(|call| reconcile.calls[*call].start < begun) {
            lines.push(Line::Call(call));
        }
        lines.push(Line::Step(step));
    }
    lines.extend(calls.map(Line::Call));
    lines.extend((0..reconcile.objects.len()).map(Line::Object));
    lines.extend((!reconcile.status.is_empty()).then_some(Line::Status));
    lines.extend(reconcile.failure.is_some().then_some(Line::Failure));
    lines.extend(reconcile.waiting.is_some().then_some(Line::Waiting));
    lines.extend(reconcile.requeue.is_some().then_some(Line::Requeue));
    lines
}

fn changed(cause: &Cause) -> &[opdev_event::FieldChange] {
    match &cause.kind {
        CauseKind::Watch { fields, .. } => fields,
        CauseKind::Start
        | CauseKind::Reload { .. }
        | CauseKind::Period
        | CauseKind::Retry { .. }
        | CauseKind::Wait { .. }
        | CauseKind::User
        | CauseKind::Check => &[],
    }
}

/// The tab that says more about a line.
pub fn tab(line: Line) -> Tab {
    match line {
        Line::Storm
        | Line::Cause(_)
        | Line::Field(..)
        | Line::MoreFields(..)
        | Line::Status
        | Line::Failure
        | Line::Waiting => Tab::STATUS,
        Line::Scale | Line::Queue | Line::Step(_) | Line::Call(_) | Line::Requeue => Tab::CALLS,
        Line::Object(_) => Tab::OBJECTS,
    }
}

/// The scale of a reconcile: where it begins and how long it is.
pub struct Scale {
    /// How much of the queue wait is drawn in front of the reconcile: all of it, or nothing where it would
    /// dwarf the rest.
    queued: Duration,
    total: Duration,
}

impl Scale {
    pub fn of(reconcile: &Reconcile) -> Self {
        let steps = reconcile.steps.iter().map(|step| step.start + step.took);
        let calls = reconcile.calls.iter().map(|call| call.start + call.took);
        let end = steps.chain(calls).max().unwrap_or_default().max(reconcile.took);
        let queued = if reconcile.queued <= end { reconcile.queued } else { Duration::ZERO };
        Scale { queued, total: (queued + end).max(Duration::from_micros(1)) }
    }

    /// Where on `cells` cells a time is that is counted from the start of the reconcile.
    fn cell(&self, at: Duration, cells: usize) -> usize {
        let part = (self.queued + at).as_nanos() * cells as u128 / self.total.as_nanos();
        usize::try_from(part).unwrap_or(cells).min(cells)
    }

    /// A bar; what is too short to be seen still gets one cell.
    pub fn bar(&self, (start, took): (Duration, Duration), sign: char, cells: usize) -> String {
        let from = self.cell(start, cells).min(cells.saturating_sub(1));
        let to = self.cell(start + took, cells).max(from + 1);
        let mut bar = " ".repeat(from);
        bar.extend(std::iter::repeat_n(sign, to - from));
        left(&bar, cells)
    }
}

/// How wide label and bar are; no bar where there is no room for one.
fn columns(cells: usize) -> (usize, usize) {
    let tail = if cells >= 64 { 24 } else { 13 };
    let label = (cells / 2).clamp(12, 48).min(cells.saturating_sub(tail + 2));
    let bar = cells.saturating_sub(label + tail + 2);
    if bar < 6 { (label + bar, 0) } else { (label, bar) }
}

/// How a line looks on this many cells.
pub fn row(line: Line, reconcile: &Reconcile, zone: &TimeZone, cells: usize) -> Row {
    match line {
        Line::Cause(i) => {
            reconcile.causes.get(i).map(|cause| self::cause(cause, zone, cells)).unwrap_or_default()
        }
        Line::Field(i, field) => {
            let change = reconcile.causes.get(i).and_then(|cause| changed(cause).get(field));
            change
                .map(|change| Row::new(Role::Text, format!("       {}", words::field(change))))
                .unwrap_or_default()
        }
        Line::Storm => Row::default(),
        Line::MoreFields(1) => Row::new(Role::Dim, "       and 1 more field"),
        Line::MoreFields(more) => Row::new(Role::Dim, format!("       and {more} more fields")),
        Line::Scale | Line::Queue | Line::Step(_) | Line::Call(_) => timed(line, reconcile, cells),
        Line::Object(i) => reconcile
            .objects
            .get(i)
            .map(|change| {
                let (sign, role) = match change.action {
                    Action::Created => ("+", Role::Added),
                    Action::Updated => ("~", Role::Changed),
                    Action::Deleted => ("-", Role::Removed),
                };
                let fields = match change.changes.len() {
                    0 => String::new(),
                    1 => ", 1 field".to_owned(),
                    n => format!(", {n} fields"),
                };
                Row::new(role, format!("   {sign} {}", words::short_ref(&change.object)))
                    .and(Role::Dim, format!("  {}{fields}", words::action(change.action)))
            })
            .unwrap_or_default(),
        Line::Status => {
            let places: Vec<String> = reconcile.status.iter().map(|change| change.path.to_string()).collect();
            Row::new(Role::Changed, "   ~ status").and(Role::Dim, format!("  {}", places.join(", ")))
        }
        Line::Failure => {
            let failure = reconcile.failure.as_ref();
            let place = failure.and_then(|failure| failure.diagnostic.as_ref()).map(words::diagnostic);
            let last = place.or_else(|| failure.and_then(|failure| failure.chain.last().cloned()));
            Row::new(Role::Bad, format!("   ✗ {}", words::one_line(&last.unwrap_or_default())))
        }
        Line::Waiting => {
            let why = words::one_line(reconcile.waiting.as_deref().unwrap_or_default());
            Row::new(Role::Busy, format!("   … waits: {why}"))
        }
        Line::Requeue => reconcile
            .requeue
            .as_ref()
            .map(|requeue| {
                let after = words::took(requeue.after);
                Row::new(
                    Role::Dim,
                    format!("   ↻ again in {after}: {}", words::one_line(requeue.reason.words())),
                )
            })
            .unwrap_or_default(),
    }
}

/// One cause: when, which object, what happened to it, who did it.
fn cause(cause: &Cause, zone: &TimeZone, cells: usize) -> Row {
    let role = if words::is_echo(cause) { Role::Dim } else { Role::Text };
    let text = match &cause.kind {
        CauseKind::Watch { object, event, by, own_write, .. } => {
            let event = match event {
                WatchEvent::Added => "added",
                WatchEvent::Modified => "modified",
                WatchEvent::Deleted => "deleted",
            };
            let by = match by.as_deref() {
                _ if *own_write => " by this operator".to_owned(),
                Some(by) if !by.is_empty() => format!(" by {by}"),
                Some(_) | None => String::new(),
            };
            format!("{object} {event}{by}")
        }
        CauseKind::Reload { files, .. } if !files.is_empty() => format!("edit {}", files.join(", ")),
        CauseKind::Start
        | CauseKind::Reload { .. }
        | CauseKind::Period
        | CauseKind::Retry { .. }
        | CauseKind::Wait { .. }
        | CauseKind::User
        | CauseKind::Check => words::cause_with(cause, usize::MAX),
    };
    let time = if cells >= 60 { format!("{} ", clock_millis(cause.at, zone)) } else { String::new() };
    Row::new(Role::Key, "   ⚑ ").and(Role::Dim, time).and(role, text)
}

/// A line with a bar.
fn timed(line: Line, reconcile: &Reconcile, cells: usize) -> Row {
    let scale = Scale::of(reconcile);
    let (label, bar) = columns(cells);
    let drawn = |what: (Duration, Duration), sign: char| match bar {
        0 => String::new(),
        bar => format!(" {}", scale.bar(what, sign, bar)),
    };
    match line {
        Line::Scale if bar == 0 => Row::new(Role::Dim, format!("   {} in all", words::took(reconcile.took))),
        Line::Scale => {
            let ruler = format!("├{}┤", "─".repeat(bar.saturating_sub(2)));
            Row::new(
                Role::Dim,
                format!("{} {ruler} {}", left("   in all", label), right(&took(scale.total), 7)),
            )
        }
        Line::Queue => {
            let whole = scale.queued == reconcile.queued;
            let bar = match (whole, bar) {
                (_, 0) => String::new(),
                (true, bar) => {
                    let cells = scale.cell(Duration::ZERO, bar).max(1);
                    format!(" {}", left(&"░".repeat(cells), bar))
                }
                (false, bar) => format!(" {}", left("« before the reconcile, not to scale", bar)),
            };
            Row::new(
                Role::Dim,
                format!("{}{bar} {}", left("   in the queue", label), right(&took(reconcile.queued), 7)),
            )
        }
        Line::Step(i) => reconcile
            .steps
            .get(i)
            .map(|step| {
                Row::new(Role::Key, left(&format!("   {}", step.name), label))
                    .and(Role::Dim, drawn((step.start, step.took), '━'))
                    .and(Role::Text, format!(" {}", right(&took(step.took), 7)))
            })
            .unwrap_or_default(),
        Line::Call(i) => reconcile
            .calls
            .get(i)
            .map(|call| {
                let row = call_row(call, reconcile, label, &drawn((call.start, call.took), '█'));
                mark(row, reconcile, i)
            })
            .unwrap_or_default(),
        Line::Storm
        | Line::Cause(_)
        | Line::Field(..)
        | Line::MoreFields(..)
        | Line::Object(_)
        | Line::Status
        | Line::Failure
        | Line::Waiting
        | Line::Requeue => Row::default(),
    }
}

fn took(duration: Duration) -> String {
    words::took(duration).replace(' ', "")
}

/// Returns true if an answer is a refusal; a miss is an answer, not a fault.
pub(crate) fn refused(call: &Call) -> bool {
    (call.status == 0 || call.status >= 400) && call.status != 404
}

/// The answer: the status and the reason of a refusal.
pub(crate) fn answer(call: &Call) -> String {
    let text = match (call.status, &call.reason) {
        (0, reason) => reason.clone().unwrap_or_else(|| "no answer".to_owned()),
        (status, Some(reason)) => format!("{status} {reason}"),
        (status, None) => status.to_string(),
    };
    words::one_line(&text)
}

/// Kinds that operators call about without writing them; a path has only their plural.
const COMMON: [&str; 22] = [
    "ConfigMap",
    "CronJob",
    "CustomResourceDefinition",
    "DaemonSet",
    "Deployment",
    "Endpoints",
    "EndpointSlice",
    "Event",
    "Ingress",
    "Job",
    "Lease",
    "Namespace",
    "NetworkPolicy",
    "Node",
    "PersistentVolumeClaim",
    "Pod",
    "PodDisruptionBudget",
    "ReplicaSet",
    "Secret",
    "Service",
    "ServiceAccount",
    "StatefulSet",
];

/// The object of a call as everything else on the screen names it: `Deployment web` for `deployments/web`.
/// The kind stays whole, and a name that has no room loses its front. A list keeps its plural.
fn called(call: &Call, reconcile: &Reconcile, room: usize) -> String {
    let Some((resource, name)) = call.target.split_once('/') else { return cut_front(&call.target, room) };
    let about = reconcile.objects.iter().map(|change| &change.object).chain([&reconcile.object]);
    let mut kinds = about.map(|object| object.gvk.kind.as_str()).chain(COMMON);
    let kind = kinds.find(|kind| plural(kind) == resource).unwrap_or(resource);
    // Where next to nothing of the name were left, the name counts more.
    match room.saturating_sub(width(kind) + 1) {
        short if short < 8.min(width(name)) => cut_front(&format!("{kind} {name}"), room),
        left => format!("{kind} {}", cut_front(name, left)),
    }
}

fn call_row(call: &Call, reconcile: &Reconcile, label: usize, bar: &str) -> Row {
    let role = if refused(call) { Role::Bad } else { Role::Text };
    let sign = if refused(call) { "✗" } else { " " };
    let verb = left(&call.verb, 6);
    let room = label.saturating_sub(width(&verb) + 6);
    let cached = if call.path.starts_with("cache:") { " cache" } else { "" };
    Row::new(role, format!("   {sign} "))
        .and(Role::Key, verb)
        .and(Role::Text, format!(" {}", left(&called(call, reconcile, room), room)))
        .and(role, bar)
        .and(Role::Dim, format!(" {}", right(&took(call.took), 7)))
        .and(role, format!(" {}", cut(&answer(call), 15)))
        .and(Role::Dim, cached)
        .and(Role::Dim, call.place.as_ref().map(|place| format!(" {place}")).unwrap_or_default())
}

/// What else is known of a call of a process: that it was disturbed on request, or is only guessed to be the
/// reconcile's own.
fn mark(row: Row, reconcile: &Reconcile, at: usize) -> Row {
    let Some(process) = &reconcile.process else { return row };
    let among = |places: &[u32]| u32::try_from(at).is_ok_and(|at| places.contains(&at));
    if among(&process.disturbed_calls) {
        return row.and(Role::Changed, " on request");
    }
    if among(&process.guessed_calls) {
        // A guess is drawn dim.
        let pieces = row.0.into_iter().map(|(_, text)| (Role::Dim, text));
        return Row(pieces.collect()).and(Role::Dim, " guessed");
    }
    row
}

/// How an outcome looks.
pub(crate) fn outcome_role(outcome: Outcome) -> Role {
    match outcome {
        Outcome::Failed => Role::Bad,
        Outcome::Installed | Outcome::Upgraded | Outcome::Applied | Outcome::Repaired => Role::Good,
        Outcome::Waiting => Role::Busy,
        Outcome::Unchanged | Outcome::Uninstalled | Outcome::Gone => Role::Text,
    }
}
