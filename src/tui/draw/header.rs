//! The first line: what runs where, as whom, and how far the newest save is. Project, version and counts give way on a
//! narrow screen; cluster, namespace, identity and the state of the newest save never do.

use super::super::action::Do;
use super::super::text::{Row, cut, width};
use super::super::theme::Role;
use super::super::view::ViewState;
use super::{findings, process};
use crate::event::{Diagnostic, Protection, ShadowRun, TroubleKind, words};
use crate::state::State;
use jiff::Timestamp;
use std::sync::Arc;
use std::time::Duration;

/// A part of the left side.
struct Part {
    /// What stands between it and the part before.
    join: &'static str,
    role: Role,
    text: String,
    /// The lowest one gives way first.
    keep: u8,
}

/// Parts with this never give way.
const ALWAYS: u8 = 9;

/// How far the newest save is: what led to it, and the word for it.
struct Save {
    role: Role,
    /// Gives way where there is no room.
    sources: String,
    text: String,
}

/// The line.
pub(super) fn header(state: &State, view: &mut ViewState, cells: usize, now: Timestamp) -> Row {
    let badge = findings::badge(state);
    let cells = cells.saturating_sub(width(&badge.text()));
    let mut save = newest_save(state, view, now);
    // What went well says so in a quiet voice while something waits or is broken.
    let calm =
        state.problems().is_empty() && state.impact.held.is_empty() && state.impact.discarded.is_empty();
    if save.role == Role::Good && !calm {
        save.role = Role::Text;
    }
    let traced = process::traced(state);
    let full = format!("{}{}{traced}", save.sources, save.text);
    let mut parts = parts(state, view);
    while used(&parts) + width(&full) + 3 > cells {
        let least = parts.iter().map(|part| part.keep).filter(|keep| *keep < ALWAYS).min();
        let Some(least) = least else { break };
        parts.retain(|part| part.keep != least);
    }
    let room = cells.saturating_sub(used(&parts) + 3);
    let right =
        if width(&full) <= room { full } else { cut(&format!("{}{traced}", save.text), room.max(12)) };
    let room = cells.saturating_sub(width(&right) + 2);
    let mut left = Row::default();
    let mut at = 0;
    for (i, part) in parts.iter().enumerate() {
        let text = format!("{}{}", if i == 0 { " " } else { part.join }, part.text);
        let text = cut(&text, room.saturating_sub(at));
        at += width(&text);
        left = left.and(part.role, text);
    }
    let gap = cells.saturating_sub(at + width(&right) + 1);
    let mut row = left.and(Role::Text, " ".repeat(gap)).and(save.role, right);
    if !badge.0.is_empty() {
        row = row.and(Role::Text, " ");
        row.0.extend(badge.0);
    }
    row
}

fn used(parts: &[Part]) -> usize {
    let join = |i: usize, part: &Part| if i == 0 { 1 } else { width(part.join) };
    parts.iter().enumerate().map(|(i, part)| join(i, part) + width(&part.text)).sum()
}

fn parts(state: &State, view: &ViewState) -> Vec<Part> {
    let part = |keep, role, text: String| Part { join: " · ", role, text, keep };
    let beside = |keep, role, text: String| Part { join: " ", role, text, keep };
    let mut parts = vec![part(1, Role::Title, "opdev".to_owned())];
    match &state.started {
        None => parts.push(part(ALWAYS, Role::Dim, "starting".to_owned())),
        Some(started) => {
            let cluster = &started.cluster;
            let version = cluster.version.trim_start_matches('v');
            let minor = version.match_indices('.').nth(1).map_or(version, |(at, _)| &version[..at]);
            let role = if cluster.embedded { Role::Text } else { Role::Changed };
            parts.push(part(3, Role::Text, started.project.clone()));
            parts.push(part(ALWAYS, role, cut(&cluster.name, 40)));
            parts.push(beside(2, role, minor.to_owned()));
            match cluster.protection {
                Protection::Local => {}
                Protection::Confirmed => parts.push(beside(ALWAYS, Role::Changed, "confirmed".to_owned())),
                Protection::ReadOnly => parts.push(beside(ALWAYS, Role::Bad, "read-only".to_owned())),
            }
            if cluster.insecure {
                parts.push(beside(ALWAYS, Role::Bad, "TLS unchecked".to_owned()));
            }
            parts.push(match &view.namespace {
                Some(chosen) => part(ALWAYS, Role::Changed, format!("only ns {chosen}")),
                None if started.all_namespaces => part(ALWAYS, Role::Text, "all namespaces".to_owned()),
                None => part(ALWAYS, Role::Text, format!("ns {}", started.namespace)),
            });
            if let Some(name) = &started.identity {
                parts.push(part(ALWAYS, Role::Changed, format!("as {name}")));
            }
        }
    }
    if state.hold {
        parts.push(part(8, Role::Busy, "charts held".to_owned()));
    }
    if let Some(rule) = state.disturbed.first() {
        let more = state.disturbed.len() - 1;
        let more = if more > 0 { format!(" +{more}") } else { String::new() };
        parts.push(part(ALWAYS, Role::Bad, format!("disturbed: {rule}{more}")));
    }
    parts.extend(counts(state, view).into_iter().map(|(keep, role, text)| part(keep, role, text)));
    if view.leaving || state.stopping.is_some() {
        parts.push(part(ALWAYS, Role::Bad, "stopping".to_owned()));
    }
    parts
}

/// What is under way, paused and marked, where there is any.
fn counts(state: &State, view: &ViewState) -> Vec<(u8, Role, String)> {
    let running = state.copies.iter().filter(|copy| copy.replicas > 0).count();
    let frozen = state.copies.iter().filter(|copy| copy.frozen.is_some()).count();
    let asked = &state.requests.in_flight;
    let programs = asked.values().filter(|request| request.lasting).count();
    let all = [
        (8, running, if running == 1 { "copy runs" } else { "copies run" }, Role::Bad),
        (7, frozen, if frozen == 1 { "copy frozen" } else { "copies frozen" }, Role::Changed),
        (4, asked.len() - programs, "asked", Role::Busy),
        (4, programs, if programs == 1 { "program runs" } else { "programs run" }, Role::Changed),
        (6, state.paused.len(), "paused", Role::Busy),
        (5, view.marks.len(), "marked", Role::Changed),
    ];
    let some = all.into_iter().filter(|(_, count, ..)| *count > 0);
    some.map(|(keep, count, word, role)| (keep, role, format!("{count} {word}"))).collect()
}

/// One word for each state a save can be in: building, live, held, refused, broken, discarded.
fn newest_save(state: &State, view: &mut ViewState, now: Timestamp) -> Save {
    let told = |(role, text): (Role, String)| Save { role, sources: String::new(), text };
    if let Some(trouble) = connection(state, view, now) {
        return told(trouble);
    }
    let live = state.reload.live.as_ref();
    let sources = live.map_or_else(String::new, |live| format!("sources {} ◂ ", live.sources));
    if let Some(files) = refused(state) {
        return Save { role: Role::Bad, sources, text: format!("{} saved → refused", words::files(files)) };
    }
    if let Some(failed) = &state.reload.failed {
        let place = failed.diagnostics.iter().find_map(|diagnostic| diagnostic.place.as_ref());
        let what = place
            .map_or_else(|| words::files(&failed.files), |p| words::file_name(&p.to_string()).to_owned());
        return Save { role: Role::Bad, sources, text: format!("✗ {what} broken") };
    }
    if let Some(held) = state.impact.held.last() {
        let keys = view.keys.map.keys(Do::Held);
        let key = keys.first().map_or_else(|| ":held".to_owned(), ToString::to_string);
        let what = if held.files.is_empty() { held.kind.kind.clone() } else { words::files(&held.files) };
        return Save { role: Role::Busy, sources, text: format!("{what} saved → held, {key} answers") };
    }
    if let Some(save) = process::newest_save(state, view, now) {
        return told(save);
    }
    if let Some(held) = state.impact.discarded.last() {
        let what = if held.files.is_empty() { held.kind.kind.clone() } else { words::files(&held.files) };
        let text = format!("{what} saved → discarded, the older one serves");
        return Save { role: Role::Changed, sources, text };
    }
    self::live(state)
}

/// The files of the newest save, where all that keeps them from serving is that they were tried and refused: by the API server
/// in a dry run, or by what a program did in its shadow run.
fn refused(state: &State) -> Option<&[String]> {
    let run = state.impact.refused();
    let Some(failed) = &state.reload.failed else {
        let newest = |run: &&Arc<ShadowRun>| state.reload.live.as_ref().is_none_or(|live| run.at >= live.at);
        return run.filter(newest).map(|run| run.files.as_slice());
    };
    let in_run = |problem: &Diagnostic| {
        let told = run.into_iter().flat_map(|run| &run.objects).filter_map(|object| object.problem.as_ref());
        told.map(|told| words::one_line(&told.message)).any(|told| problem.message.starts_with(&told))
    };
    let by_server = |problem: &Diagnostic| problem.message.starts_with("the API server would refuse ");
    let all = failed.diagnostics.iter().all(|problem| by_server(problem) || in_run(problem));
    all.then_some(failed.files.as_slice()).filter(|files| !files.is_empty())
}

fn live(state: &State) -> Save {
    let reload = &state.reload;
    let Some(now) = &reload.live else {
        return Save { role: Role::Dim, sources: String::new(), text: "no sources yet".to_owned() };
    };
    let sources = format!("sources {} ◂ ", now.sources);
    let save = |role, text: String| Save { role, sources: sources.clone(), text };
    let files = words::files(&now.files);
    let saved = if now.removed { "removed" } else { "saved" };
    if !reload.unserved.is_empty() && !files.is_empty() {
        let kinds = reload.unserved.join(", ");
        return save(Role::Changed, format!("{files} {saved} → nothing reconciles {kinds}"));
    }
    let fresh = state.impact.fresh.iter().filter(|changed| !changed.files.is_empty());
    if let Some(took) = fresh.map(|changed| changed.took).max().filter(|_| !files.is_empty()) {
        let (role, then) = match &reload.settled {
            Some(settled) if settled.failed > 0 => {
                (Role::Bad, format!(", {} of {} failed", settled.failed, settled.objects))
            }
            Some(settled) if settled.objects > 0 => {
                (Role::Good, format!(", reconciled in {}", words::took(settled.took)))
            }
            Some(_) | None => (Role::Good, String::new()),
        };
        return save(role, format!("{files} {saved} → CRD live in {}{then}", words::took(took)));
    }
    match &reload.settled {
        Some(settled) if !settled.files.is_empty() || !files.is_empty() => {
            let files = if files.is_empty() { words::files(&settled.files) } else { files };
            let (role, failed) = match settled.failed {
                0 => (Role::Good, String::new()),
                n => (Role::Bad, format!(", {n} of {} failed", settled.objects)),
            };
            save(role, format!("{files} {saved} → live in {}{failed}", words::took(settled.took)))
        }
        None if !files.is_empty() && now.affected.is_empty() => {
            save(Role::Good, format!("{files} {saved} → live, no object to reconcile"))
        }
        None if !files.is_empty() => {
            let far = match state.live_objects() {
                (_, 0 | 1) => "reconciling".to_owned(),
                (live, all) => format!("{live} of {all} live"),
            };
            save(Role::Busy, format!("{files} {saved} → {far}"))
        }
        Some(_) | None => {
            Save { role: Role::Dim, sources: String::new(), text: format!("sources {}", now.sources) }
        }
    }
}

/// What opdev waits for, where the API server does not answer.
fn connection(state: &State, view: &mut ViewState, now: Timestamp) -> Option<(Role, String)> {
    let told = state.connection.as_ref()?;
    let trouble = told.trouble.as_ref()?;
    view.wake_in(Duration::from_secs(1));
    let (role, what) = match trouble.kind {
        TroubleKind::Unreachable => (Role::Bad, "✗ API server unreachable"),
        TroubleKind::Untrusted => (Role::Bad, "✗ API server not trusted"),
        TroubleKind::Unauthorized => (Role::Bad, "✗ credentials refused"),
        TroubleKind::Slow => (Role::Busy, "waiting for the API server"),
        TroubleKind::Busy => (Role::Busy, "the API server is busy"),
    };
    let since = trouble.since.to_zoned(view.look.zone.clone()).strftime("%H:%M:%S");
    let past = now.duration_since(told.at).unsigned_abs();
    let left = trouble.retry.map_or(0, |retry| retry.saturating_sub(past).as_millis().div_ceil(1000));
    let retry = if left == 0 { ", trying".to_owned() } else { format!(", retrying in {left} s") };
    Some((role, format!("{what} since {since}{retry}")))
}
