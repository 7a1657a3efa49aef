//! The first line: what runs where, as whom, and how far the newest save is. The program's name, versions and
//! counts give way on a narrow screen; project, cluster, namespace, identity and the state of the newest save
//! never do.

use super::super::view::ViewState;
use jiff::Timestamp;
use opdev_event::{Fault, FaultRule, Protection, TroubleKind, words};
use opdev_panes::finding_sign;
use opdev_panes::header::parts::{ALWAYS, HeaderPart, LEAST_NAME, fitting, used};
use opdev_panes::header::programs;
use opdev_panes::header::saves::{Save, live, refused};
use opdev_panes::keys::action::Do;
use opdev_panes::pages::background::short;
use opdev_panes::text::{Row, cut, cut_apart, width};
use opdev_panes::theme::Role;
use opdev_state::State;
use opdev_state::health::signs::failing;
use std::time::Duration;

/// The counts of errors and warnings stand at the end of the line; their place stays free where there are none,
/// so that nothing moves when the first one comes.
const BADGE: usize = 9;
/// On a narrower screen that place is needed.
const WITH_BADGE: usize = 88;
/// From this width on it says what it counts.
const WITH_WORDS: usize = 130;
/// Its place there.
const BADGE_IN_WORDS: usize = 23;

/// The line.
pub(super) fn header(state: &State, view: &mut ViewState, cells: usize, now: Timestamp) -> Row {
    let badge = finding_sign::badge(state, cells >= WITH_WORDS);
    let mut save = newest_save(state, view, now);
    if save.counts {
        view.wake_in(Duration::from_secs(1));
    }
    // A success says so in a quiet voice while something waits or is broken.
    let calm =
        state.problems().is_empty() && state.impact.held.is_empty() && state.impact.discarded.is_empty();
    if save.role == Role::Good && !calm {
        save.role = Role::Text;
    }
    let free = match cells {
        WITH_WORDS.. => BADGE_IN_WORDS + 2,
        WITH_BADGE.. => BADGE + 2,
        _ => 0,
    };
    let all = cells;
    let cells = all.saturating_sub(free.max(width(&badge.text())));
    let parts = parts(state, view);
    let (mut parts, right) = fitting(parts, &save.texts, cells);
    let mut lacks = (used(&parts) + width(&right) + 3).saturating_sub(cells);
    for part in parts.iter_mut().filter(|part| part.long) {
        let size = width(&part.text);
        let gives = lacks.min(size.saturating_sub(LEAST_NAME));
        part.text = cut_apart(&[part.text.as_str()], size - gives).concat();
        lacks -= gives;
    }
    let room = cells.saturating_sub(width(&right) + 2).max(cells / 2);
    let mut left = Row::default();
    let mut at = 0;
    for (i, part) in parts.iter().enumerate() {
        let text = format!("{}{}", if i == 0 { " " } else { part.join }, part.text);
        let text = cut(&text, room.saturating_sub(at));
        at += width(&text);
        left = left.and(part.role, text);
    }
    let right = cut(&right, cells.saturating_sub(at + 2));
    let gap = cells.saturating_sub(at + width(&right) + 1);
    let mut row = left.and(Role::Text, " ".repeat(gap)).and(save.role, right);
    if !badge.0.is_empty() {
        row = row.and(Role::Text, " ");
        row.0.extend(badge.0);
    }
    row
}

fn parts(state: &State, view: &ViewState) -> Vec<HeaderPart> {
    let part = |keep, role, text: String| HeaderPart { join: " · ", role, text, keep, long: false };
    let beside = |keep, role, text: String| HeaderPart { join: " ", role, text, keep, long: false };
    let mut parts = vec![part(1, Role::Title, "opdev".to_owned())];
    match &state.started {
        None => parts.push(part(ALWAYS, Role::Dim, "starting".to_owned())),
        Some(started) => {
            let cluster = &started.cluster;
            let version = cluster.version.trim_start_matches('v');
            let minor = version.match_indices('.').nth(1).map_or(version, |(at, _)| &version[..at]);
            let role = if cluster.embedded { Role::Text } else { Role::Changed };
            parts.push(HeaderPart { long: true, ..part(ALWAYS, Role::Title, started.project.clone()) });
            parts.push(part(ALWAYS, role, cut_apart(&[cluster.name.as_str()], 40).concat()));
            // A number alone would look like a part of the name of a real cluster.
            let minor = if cluster.embedded { minor.to_owned() } else { format!("v{minor}") };
            parts.push(beside(2, Role::Dim, minor));
            match cluster.protection {
                Protection::Local => {}
                Protection::Confirmed => parts.push(beside(ALWAYS, Role::Changed, "writable".to_owned())),
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
                parts.push(HeaderPart { long: true, ..part(ALWAYS, Role::Changed, format!("as {name}")) });
            }
        }
    }
    if state.hold {
        parts.push(part(8, Role::Busy, "charts wait for approval".to_owned()));
    }
    parts.extend(faults(state).map(|text| part(ALWAYS, Role::Bad, text)));
    parts.extend(counts(state, view).into_iter().map(|(keep, role, text)| part(keep, role, text)));
    if let Some(traced) = programs::traced(state) {
        parts.push(part(3, Role::Dim, traced));
    }
    if view.leaving || state.stopping.is_some() {
        parts.push(part(ALWAYS, Role::Bad, "stopping".to_owned()));
    }
    parts
}

/// Faults that are injected. A program whose watches get nothing is paused.
fn faults(state: &State) -> Option<String> {
    let is_pause = |rule: &FaultRule| rule.fault == Fault::Hold(None) && rule.resource.is_empty();
    let rule = state.disturbed.first()?;
    let more = match state.disturbed.len() {
        1 => String::new(),
        many => format!(" +{}", many - 1),
    };
    Some(if is_pause(rule) { format!("paused{more}") } else { format!("fault: {rule}{more}") })
}

/// Parts for work under way, pauses and marks, where there are any.
fn counts(state: &State, view: &ViewState) -> Vec<(u8, Role, String)> {
    let running = state.copies.iter().filter(|copy| copy.replicas > 0).count();
    let frozen = state.copies.iter().filter(|copy| copy.frozen.is_some()).count();
    let asked = &state.requests.in_flight;
    let lasting = asked.values().filter(|request| request.lasting).count();
    let beside: Vec<String> = state.requests.background.iter().filter_map(|run| short(run)).collect();
    let programs = lasting.saturating_sub(beside.len());
    let all = [
        (8, running, if running == 1 { "copy runs" } else { "copies run" }, Role::Bad),
        (7, frozen, if frozen == 1 { "copy frozen" } else { "copies frozen" }, Role::Changed),
        (4, asked.len() - lasting, "asked", Role::Busy),
        (4, programs, if programs == 1 { "program runs" } else { "programs run" }, Role::Changed),
        (6, state.paused.len(), "paused", Role::Busy),
        (5, view.marks.count(), "marked", Role::Changed),
    ];
    let some = all.into_iter().filter(|(_, count, ..)| *count > 0);
    let beside = beside.into_iter().map(|text| (7, Role::Busy, format!("↻ {text}")));
    let some = some.map(|(keep, count, word, role)| (keep, role, format!("{count} {word}")));
    some.chain(failing(state).map(|text| (8, Role::Bad, text))).chain(beside).collect()
}

/// Where the newest save stands: building, live, waiting for an answer, refused, broken, kept out.
fn newest_save(state: &State, view: &ViewState, now: Timestamp) -> Save {
    if let Some(trouble) = connection(state, view, now) {
        return trouble;
    }
    if let Some(files) = refused(state) {
        return Save::new(Role::Bad, [format!("✗ {} refused", words::files(files)), "✗ refused".to_owned()]);
    }
    if let Some(failed) = &state.reload.failed {
        let place = failed.diagnostics.iter().find_map(|diagnostic| diagnostic.place.as_ref());
        let what = place
            .map_or_else(|| words::files(&failed.files), |p| words::file_name(&p.to_string()).to_owned());
        return Save::new(Role::Bad, [format!("✗ {what}"), "✗ broken".to_owned()]);
    }
    if let Some(held) = state.impact.held.last() {
        let keys = view.keys.map.keys(Do::Held);
        let key = keys.first().map_or_else(|| ":held".to_owned(), ToString::to_string);
        let what = if held.files.is_empty() { held.kind.kind.clone() } else { words::files(&held.files) };
        let short = format!("needs your answer ({key})");
        return Save::new(Role::Busy, [format!("? {what} {short}"), format!("? {short}")]);
    }
    if let Some(save) = programs::newest_save(state, now) {
        return save;
    }
    if let Some(held) = state.impact.discarded.last() {
        let what = if held.files.is_empty() { held.kind.kind.clone() } else { words::files(&held.files) };
        let short = "the old version is kept";
        return Save::new(Role::Changed, [format!("⚠ {what}: {short}"), format!("⚠ {short}")]);
    }
    live(state)
}

/// The part that tells why the API server does not answer.
fn connection(state: &State, view: &ViewState, now: Timestamp) -> Option<Save> {
    let told = state.connection.as_ref()?;
    let trouble = told.trouble.as_ref()?;
    let (role, what) = match trouble.kind {
        TroubleKind::Unreachable => (Role::Bad, "✗ cluster lost"),
        TroubleKind::Untrusted => (Role::Bad, "✗ API server not trusted"),
        TroubleKind::Unauthorized => (Role::Bad, "✗ credentials refused"),
        TroubleKind::Slow => (Role::Busy, "◐ waiting for the API server"),
        TroubleKind::Busy => (Role::Busy, "◐ the API server is busy"),
    };
    let since = trouble.since.to_zoned(view.look.zone.clone()).strftime("%H:%M:%S");
    let past = now.duration_since(told.at).unsigned_abs();
    let left = trouble.retry.map_or(0, |retry| retry.saturating_sub(past).as_millis().div_ceil(1000));
    let retry = if left == 0 { ", trying".to_owned() } else { format!(", again in {left} s") };
    Some(Save::new(role, [format!("{what} since {since}{retry}"), format!("{what}{retry}")]).counting())
}
