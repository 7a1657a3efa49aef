//! One reconcile in the order in which one asks: why it ran, what is wrong, what it changed, what it did.

use super::page::{DetailTab, Page, Stamp};
use super::reconcile;
use super::reconcile::{NO_PASS, headline, timeline};
use super::{changes, log};
use crate::detail::parts::nothing;
use crate::finding_sign::{role as colour, sign};
use crate::keys::action::{Action, Do, Section, action};
use crate::pane::Tab;
use crate::text::{Row, clean, cut_path, wrap};
use crate::theme::Role;

use crate::waterfall;
use crate::waterfall::Line;
use opdev_event::{Reconcile, words};
use opdev_state::{State, health, managers};
use serde_json::Value;

impl Tab {
    pub const STATUS: Tab = Tab("status");
}

/// The tab.
pub(super) struct Status;

impl DetailTab for Status {
    fn tab(&self) -> Tab {
        Tab::STATUS
    }

    fn title(&self) -> &'static str {
        "Reconcile"
    }

    fn action(&self) -> Action {
        action(Tab::STATUS.0, Do::Show(Tab::STATUS), &["v"], Section::Look).about(
            "reconcile page",
            "Show why the selected reconcile ran, and what it read, wrote and changed.",
        )
    }

    fn place(&self) -> u8 {
        0
    }

    fn about(&self, page: &Page<'_>) -> Option<String> {
        page.reconcile_name()
    }

    fn stamp(&self, page: &Page<'_>) -> Stamp {
        let state = page.state;
        Stamp::of_subject(page, if page.reconcile.is_none() { state.version } else { state.log.total })
    }

    fn rows(&self, page: &Page<'_>) -> Vec<Row> {
        let (state, width) = (page.state, page.cells);
        let Some(reconcile) = page.reconcile else {
            let under_way = page.root.and_then(|seen| state.running.get(seen.key.as_ref()));
            let mut rows = match under_way {
                Some(reconcile) => {
                    let text = format!(
                        " #{} is under way: {}",
                        reconcile.id,
                        words::causes_of(&reconcile.object, &reconcile.causes)
                    );
                    vec![Row::new(Role::Busy, text)]
                }
                None => match page.root.and_then(|seen| state.only_shown(&seen.key.group, &seen.key.kind)) {
                    Some(why) => {
                        let other = page.root.and_then(|seen| managers::operator_of(state, seen));
                        let text = match other {
                            Some((name, how)) => format!(
                                "Nothing of this project reconciles this kind: {why}. But {name} seems to: it {how}."
                            ),
                            None => format!("Nothing reconciles this kind: {why}."),
                        };
                        nothing(&text, width)
                    }
                    None => nothing(&own_program(page).unwrap_or_else(|| NO_PASS.to_owned()), width),
                },
            };
            if let Some(seen) = page.root {
                rows.extend(conditions(&seen.object));
            }
            return rows;
        };
        let mut rows = vec![headline(reconcile)];
        rows.extend(failure(reconcile, width));
        rows.extend(shown_by(state, reconcile, width));
        rows.extend(notes(reconcile, width));
        let title = if reconcile.is_guessed() { " Why it probably ran" } else { " Why it ran" };
        rows.push(Row::new(Role::Title, title));
        if reconcile.is_guessed() {
            let lines = wrap(GUESSED, width.saturating_sub(4).max(20));
            rows.extend(lines.into_iter().map(|line| Row::new(Role::Dim, format!("   {line}"))));
        }
        for line in waterfall::lines(reconcile, waterfall::MANY) {
            if matches!(line, Line::Cause(_) | Line::Field(..) | Line::MoreFields(..)) {
                rows.extend(waterfall::row(line, reconcile, page.zone, width).wrapped(width.max(20)));
            }
        }
        if !reconcile.releases.is_empty() {
            rows.push(Row::new(
                Role::Title,
                if reconcile.releases.len() == 1 { " Release" } else { " Releases" },
            ));
            for release in &reconcile.releases {
                let lines = wrap(&words::release(release), width.saturating_sub(4).max(20));
                rows.extend(lines.into_iter().map(|line| Row::new(Role::Text, format!("   {line}"))));
            }
        }
        rows.extend(reads(reconcile));
        rows.push(Row::new(Role::Title, " What changed in the status"));
        if reconcile.status.is_empty() {
            rows.push(Row::new(Role::Dim, "   This reconcile left the status as it was."));
        }
        rows.extend(changes::rows(&reconcile.status, 0));
        if !reconcile.steps.is_empty() || !reconcile.calls.is_empty() {
            rows.push(Row::new(Role::Title, " What it read and wrote"));
            rows.extend(timeline(reconcile, page));
        }
        let logged: Vec<Row> = state
            .log
            .lines()
            .iter()
            .filter(|line| line.reconcile == Some(reconcile.id))
            .map(|line| log::row(line, page.zone, false))
            .collect();
        if !logged.is_empty() {
            rows.push(Row::new(Role::Title, " What it logged"));
            rows.extend(logged.into_iter().map(|mut row| {
                row.0.insert(0, (Role::Dim, "   ".to_owned()));
                row
            }));
        }
        rows
    }
}

/// The note for a reconcile that nobody told of.
const GUESSED: &str = "The program tells nothing of its reconciles: where this one begins and ends is guessed from its calls, and \
                       what led to it from the events that it was sent before.";

/// About an object that the operator's own program reconciles, of which no reconcile was seen.
fn own_program(page: &Page<'_>) -> Option<String> {
    let (key, state) = (&page.root?.key, page.state);
    let program = state.program_of(&key.group, &key.kind)?;
    let idle = match state.programs.run_of(program) {
        Some(run) => words::not_running(&run.state),
        None => Some("it is not started".to_owned()),
    };
    Some(match idle {
        Some(why) => format!("{program} reconciles this kind, but {why}."),
        None => format!("{program} runs and reconciles this kind. No reconcile of this object was seen yet."),
    })
}

/// The whole chain, the place and the excerpt.
fn failure(of: &Reconcile, width: usize) -> Vec<Row> {
    let Some(failure) = &of.failure else { return Vec::new() };
    let attempt = match failure.attempt {
        0 | 1 => String::new(),
        n => format!(" ({n} times in a row)"),
    };
    let mut rows = vec![Row::new(Role::Bad, format!(" ✗ Failure{attempt}"))];
    for (depth, text) in failure.chain.iter().enumerate() {
        let indent = 3 + depth.min(6) * 2;
        for (i, line) in wrap(text, width.saturating_sub(indent + 2).max(10)).into_iter().enumerate() {
            let sign = if depth > 0 && i == 0 { "└ " } else { "  " };
            rows.push(Row::new(Role::Bad, format!("{:indent$}{sign}{line}", "", indent = indent - 2)));
        }
    }
    if let Some(diagnostic) = &failure.diagnostic {
        rows.extend(reconcile::diagnostic(
            diagnostic,
            width,
            !failure.chain.iter().any(|t| t.contains(&diagnostic.message)),
        ));
    }
    rows
}

/// Findings that show in this reconcile.
fn shown_by(state: &State, reconcile: &Reconcile, width: usize) -> Vec<Row> {
    let Some(finding) = state.findings.shown_by(reconcile) else { return Vec::new() };
    let cells = width.saturating_sub(5).max(10);
    let (sign, role) = (sign(finding), colour(finding));
    let times = if finding.times > 1 { format!(" ×{}", finding.times) } else { String::new() };
    let mut rows = vec![Row::new(role, format!(" {sign} {}{times}", clean(&finding.short())))];
    let mut say = |role, text: &str| {
        rows.extend(wrap(&clean(text), cells).into_iter().map(|line| Row::new(role, format!("   {line}"))));
    };
    say(Role::Text, &finding.why);
    let fix = format!("Fix: {}", finding.fix);
    match &finding.place {
        Some(place) => {
            rows.push(Row::new(Role::Changed, format!("   {}", cut_path(&clean(&place.to_string()), cells))));
            rows.extend(
                wrap(&clean(&fix), cells).into_iter().map(|line| Row::new(Role::Text, format!("   {line}"))),
            );
        }
        None => say(Role::Text, &fix),
    }
    rows
}

/// The notes of this one reconcile of a process, each with what to do about it.
fn notes(reconcile: &Reconcile, width: usize) -> Vec<Row> {
    let findings = reconcile.process.iter().flat_map(|process| &process.findings);
    let rows = findings.flat_map(|finding| {
        let cells = width.saturating_sub(5).max(10);
        let message = wrap(&clean(&finding.message), cells).into_iter().enumerate();
        let message = message
            .map(|(at, line)| Row::new(Role::Text, format!(" {} {line}", if at == 0 { "i" } else { " " })));
        let hint =
            wrap(&finding.hint, cells).into_iter().map(|line| Row::new(Role::Dim, format!("   {line}")));
        message.chain(hint).collect::<Vec<_>>()
    });
    rows.collect()
}

/// Answers of a process's cache to a reconcile.
fn reads(reconcile: &Reconcile) -> Vec<Row> {
    let Some(process) = reconcile.process.as_ref().filter(|process| !process.reads.is_empty()) else {
        return Vec::new();
    };
    let mut rows = vec![Row::new(Role::Title, " What it read from its cache")];
    rows.extend(process.reads.iter().map(|read| {
        let what = match read.count {
            Some(count) if read.selector.is_empty() => format!("{}: {count}", read.object.gvk.kind),
            Some(count) => format!("{} {}: {count}", read.object.gvk.kind, read.selector),
            None => {
                let near = read.object.namespace == reconcile.object.namespace;
                let name = if near { words::short_ref(&read.object) } else { read.object.to_string() };
                format!("{name} at resourceVersion {}", read.resource_version)
            }
        };
        let row = Row::new(Role::Dim, format!("   {:<5}", read.verb));
        let row = if read.problem.is_empty() {
            row.and(Role::Text, clean(&what))
        } else {
            row.and(Role::Text, format!("{} ", read.object)).and(Role::Bad, clean(&read.problem))
        };
        if read.waited.as_millis() == 0 {
            return row;
        }
        row.and(Role::Changed, format!("  waited {} for the own write", words::took(read.waited)))
    }));
    rows
}

fn conditions(object: &Value) -> Vec<Row> {
    let list = object.pointer("/status/conditions").and_then(Value::as_array);
    let names = list.into_iter().flatten().filter_map(|c| c.get("type")?.as_str());
    let rows = names.filter_map(|name| {
        let (status, reason, message) = health::condition(object, name)?;
        Some(
            Row::new(Role::Text, format!("   {name}={status}"))
                .and(Role::Dim, format!("  {reason}  {message}")),
        )
    });
    rows.collect()
}
