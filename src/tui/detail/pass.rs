//! One reconcile in detail: why it ran and what came of it, what it wrote, which calls it made.

use super::super::action::Do;
use super::super::text::{Row, clean, wrap};
use super::super::theme::Role;
use super::super::view::ViewState;
use super::super::waterfall::{self, Line, outcome_role};
use super::{changes, log};
use crate::event::{Action, Diagnostic, ObjectChange, Reconcile, words};
use crate::state::{State, health, managers};
use crate::tui::detail::parts::nothing;
use opdev_object::yaml;
use serde_json::Value;
use std::sync::Arc;

const NO_PASS: &str = "No reconcile yet. Apply a custom resource (a), or ask for one (r).";

/// The status tab.
pub(super) fn status(view: &ViewState, state: &State, width: usize) -> Vec<Row> {
    let Some(pass) = view.pass() else {
        let under_way = view.root(state).and_then(|seen| state.running.get(seen.key.as_ref()));
        let mut rows = match under_way {
            Some(pass) => {
                let text =
                    format!(" #{} is under way: {}", pass.id, words::causes_of(&pass.object, &pass.causes));
                vec![Row::new(Role::Busy, text)]
            }
            None => match view.root(state).and_then(|seen| state.only_shown(&seen.key.group, &seen.key.kind))
            {
                Some(why) => {
                    let other = view.root(state).and_then(|seen| managers::operator_of(state, seen));
                    let text = match other {
                        Some((name, how)) => format!(
                            "Nothing of this project reconciles this kind: {why}. But {name} seems to: it {how}."
                        ),
                        None => format!("Nothing reconciles this kind: {why}."),
                    };
                    nothing(&text, width)
                }
                None => nothing(&own_program(view, state).unwrap_or_else(|| NO_PASS.to_owned()), width),
            },
        };
        if let Some(seen) = view.root(state) {
            rows.extend(conditions(&seen.object));
        }
        return rows;
    };
    let mut rows = vec![headline(pass)];
    rows.extend(failure(pass, width));
    rows.extend(findings(pass, width));
    let title = match (pass.is_guessed(), pass.causes.len()) {
        (true, _) => " Probable causes",
        (false, 1) => " Cause",
        (false, _) => " Causes",
    };
    rows.push(Row::new(Role::Title, title));
    if pass.is_guessed() {
        let lines = wrap(GUESSED, width.saturating_sub(4).max(20));
        rows.extend(lines.into_iter().map(|line| Row::new(Role::Dim, format!("   {line}"))));
    }
    for line in waterfall::lines(pass, waterfall::MANY) {
        if matches!(line, Line::Cause(_) | Line::Field(..) | Line::MoreFields(..)) {
            rows.extend(waterfall::row(line, pass, &view.look.zone, width).wrapped(width.max(20)));
        }
    }
    if !pass.releases.is_empty() {
        rows.push(Row::new(Role::Title, if pass.releases.len() == 1 { " Release" } else { " Releases" }));
        for release in &pass.releases {
            let lines = wrap(&words::release(release), width.saturating_sub(4).max(20));
            rows.extend(lines.into_iter().map(|line| Row::new(Role::Text, format!("   {line}"))));
        }
    }
    rows.extend(reads(pass));
    rows.push(Row::new(Role::Title, " Status"));
    if pass.status.is_empty() {
        rows.push(Row::new(Role::Dim, "   This reconcile left the status as it was."));
    }
    rows.extend(changes::rows(&pass.status, 0));
    if !pass.steps.is_empty() || !pass.calls.is_empty() {
        rows.push(Row::new(Role::Title, " Timeline"));
        rows.extend(timeline(pass, view, width));
    }
    let logged: Vec<Row> = state
        .log
        .lines()
        .iter()
        .filter(|line| line.reconcile == Some(pass.id))
        .map(|line| log::row(line, view, false))
        .collect();
    if !logged.is_empty() {
        rows.push(Row::new(Role::Title, " Log"));
        rows.extend(logged.into_iter().map(|mut row| {
            row.0.insert(0, (Role::Dim, "   ".to_owned()));
            row
        }));
    }
    rows
}

/// What the user has to know of a pass that nobody told of.
const GUESSED: &str = "The program tells nothing of its reconciles: where this one begins and ends is guessed from its calls, and \
                       what led to it from the events that it was sent before.";

/// Steps and calls as bars on the scale of the pass.
fn timeline(pass: &Reconcile, view: &ViewState, width: usize) -> Vec<Row> {
    let lines = waterfall::lines(pass, waterfall::MANY).into_iter();
    lines
        .filter(|line| matches!(line, Line::Scale | Line::Queue | Line::Step(_) | Line::Call(_)))
        .map(|line| waterfall::row(line, pass, &view.look.zone, width))
        .collect()
}

/// About an object that the operator's own program reconciles, of which no pass was seen.
fn own_program(view: &ViewState, state: &State) -> Option<String> {
    let key = &view.root(state)?.key;
    let program = state.program_of(&key.group, &key.kind)?;
    let run = state.process.run.as_ref();
    let idle = match run {
        Some(run) => words::not_running(&run.state),
        None => Some("it is not started".to_owned()),
    };
    Some(match idle {
        Some(why) => format!("{program} reconciles this kind, but {why}."),
        None => format!("{program} runs and reconciles this kind. No reconcile of this object was seen yet."),
    })
}

fn headline(pass: &Reconcile) -> Row {
    let mut text = format!(" in {}, {} calls", words::took(pass.took), pass.calls.len());
    // A program of its own is made of no sources of opdev's.
    if pass.process.is_none() {
        text.push_str(&format!(", sources {}", pass.sources));
    }
    if pass.queued.as_millis() > 0 {
        text.push_str(&format!(", queued {}", words::took(pass.queued)));
    }
    if let Some(words) = &pass.waiting {
        text.push_str(&format!(", waits: {}", words::one_line(words)));
    }
    if let Some(requeue) = &pass.requeue {
        text.push_str(&format!(
            ", again in {} ({})",
            words::took(requeue.after),
            words::one_line(&requeue.why)
        ));
    }
    Row::new(Role::Dim, format!(" #{} ", pass.id))
        .and(outcome_role(pass.outcome), words::result(pass))
        .and(Role::Text, text)
}

/// The whole chain, the place and the excerpt.
fn failure(pass: &Reconcile, width: usize) -> Vec<Row> {
    let Some(failure) = &pass.failure else { return Vec::new() };
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
        rows.extend(self::diagnostic(
            diagnostic,
            width,
            !failure.chain.iter().any(|t| t.contains(&diagnostic.message)),
        ));
    }
    rows
}

/// What is wrong with a pass of a process, each with what to do.
fn findings(pass: &Reconcile, width: usize) -> Vec<Row> {
    let findings = pass.process.iter().flat_map(|process| &process.findings);
    let rows = findings.flat_map(|finding| {
        let cells = width.saturating_sub(5).max(10);
        let message = wrap(&clean(&finding.message), cells).into_iter().enumerate();
        let message = message.map(|(at, line)| {
            Row::new(Role::Changed, format!(" {} {line}", if at == 0 { "⚠" } else { " " }))
        });
        let hint =
            wrap(&finding.hint, cells).into_iter().map(|line| Row::new(Role::Dim, format!("   {line}")));
        message.chain(hint).collect::<Vec<_>>()
    });
    rows.collect()
}

/// What a process's cache answered to a pass.
fn reads(pass: &Reconcile) -> Vec<Row> {
    let Some(process) = pass.process.as_ref().filter(|process| !process.reads.is_empty()) else {
        return Vec::new();
    };
    let mut rows = vec![Row::new(Role::Title, " Read from its cache")];
    rows.extend(process.reads.iter().map(|read| {
        let what = match read.count {
            Some(count) if read.selector.is_empty() => format!("{}: {count}", read.object.gvk.kind),
            Some(count) => format!("{} {}: {count}", read.object.gvk.kind, read.selector),
            None => format!("{} at {}", read.object, read.resource_version),
        };
        let row = Row::new(Role::Dim, format!("   {:<5}", read.verb));
        if read.problem.is_empty() {
            row.and(Role::Text, clean(&what))
        } else {
            row.and(Role::Text, format!("{} ", read.object)).and(Role::Bad, clean(&read.problem))
        }
    }));
    rows
}

/// A diagnostic: place, message where asked for, excerpt, hint.
pub(super) fn diagnostic(of: &Diagnostic, width: usize, message: bool) -> Vec<Row> {
    let mut rows = Vec::new();
    if let Some(place) = &of.place {
        rows.push(Row::new(Role::Key, format!("   {place}")));
    }
    if message {
        rows.extend(
            wrap(&of.message, width.saturating_sub(4))
                .into_iter()
                .map(|l| Row::new(Role::Bad, format!("   {l}"))),
        );
    }
    if let Some(excerpt) = &of.excerpt {
        rows.extend(excerpt.lines().map(|line| Row::new(Role::Text, format!("   │ {line}"))));
    }
    if let Some(hint) = &of.hint {
        rows.extend(
            wrap(hint, width.saturating_sub(4)).into_iter().map(|l| Row::new(Role::Dim, format!("   {l}"))),
        );
    }
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

/// The objects tab.
pub(super) fn objects(view: &ViewState, state: &State, width: usize) -> Vec<Row> {
    let Some(pass) = view.pass() else { return nothing(NO_PASS, width) };
    if pass.objects.is_empty() {
        return vec![headline(pass), Row::new(Role::Dim, "   This reconcile wrote no other objects.")];
    }
    let mut rows = vec![headline(pass)];
    for change in &pass.objects {
        let (sign, role) = match change.action {
            Action::Created => ("+", Role::Added),
            Action::Updated => ("~", Role::Changed),
            Action::Deleted => ("-", Role::Removed),
        };
        let taken = match change.taken_from.as_slice() {
            [] => String::new(),
            names => format!("  fields taken back from {}", names.join(", ")),
        };
        rows.push(
            Row::new(role, format!("{sign} {}", change.object))
                .and(Role::Dim, format!("  {}{taken}", words::action(change.action))),
        );
        rows.extend(changes::rows(&change.changes, 2));
        rows.extend(whole(view, state, pass, change));
    }
    rows
}

/// Lines of an object that was created or deleted that are shown.
const WHOLE: usize = 60;

/// An object that was created as it was at first, and one that was deleted as it was at last, where that is known.
fn whole(view: &ViewState, state: &State, pass: &Reconcile, change: &ObjectChange) -> Vec<Row> {
    let key = change.object.key();
    let (sign, role, object) = match change.action {
        Action::Updated => return Vec::new(),
        Action::Created => {
            let versions = state.versions(&key);
            let first = versions
                .and_then(|versions| versions.backwards().take_while(|version| version.at >= pass.at).last());
            ("+", Role::Added, first.filter(|first| first.number == 1).map(|first| first.object))
        }
        Action::Deleted => {
            let gone = state.archive.gone_of(&key).filter(|gone| gone.at >= pass.at);
            ("-", Role::Removed, gone.map(|gone| Arc::new(gone.seen.object.value().clone())))
        }
    };
    let Some(object) = object.filter(|_| change.changes.is_empty()) else { return Vec::new() };
    let text = yaml::to_string(&wished(&object));
    let mut rows: Vec<Row> =
        text.lines().take(WHOLE).map(|line| Row::new(role, format!("{sign}     {}", clean(line)))).collect();
    let more = text.lines().count().saturating_sub(WHOLE);
    if more > 0 {
        let key = view.keys.map.keys(Do::ShowYaml).first().map(ToString::to_string).unwrap_or_default();
        rows.push(Row::new(
            Role::Dim,
            format!("      … {more} more lines; {key} shows the whole of a selected object"),
        ));
    }
    rows
}

/// What somebody wished for: without what the API server and controllers add.
fn wished(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(fields) = object.as_object_mut() {
        for name in ["apiVersion", "kind", "status"] {
            fields.remove(name);
        }
    }
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        for name in [
            "managedFields",
            "uid",
            "resourceVersion",
            "creationTimestamp",
            "generation",
            "name",
            "namespace",
        ] {
            metadata.remove(name);
        }
        // Which custom resource it belongs to is said above.
        metadata.remove("ownerReferences");
    }
    let empty = object.pointer("/metadata").and_then(Value::as_object).is_some_and(serde_json::Map::is_empty);
    if let (true, Some(fields)) = (empty, object.as_object_mut()) {
        fields.remove("metadata");
    }
    object
}

/// The calls tab.
pub(super) fn calls(view: &ViewState, width: usize) -> Vec<Row> {
    let Some(pass) = view.pass() else { return nothing(NO_PASS, width) };
    if pass.calls.is_empty() {
        return vec![headline(pass), Row::new(Role::Dim, "   This reconcile made no API calls.")];
    }
    let mut rows = vec![headline(pass)];
    rows.extend(timeline(pass, view, width));
    rows
}
