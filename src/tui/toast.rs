//! The one message beside the panes: what a key could not do, a request under way, how the last one ended,
//! a notice. What went well and notices leave by themselves, and the list of notices keeps them; the answer
//! to a key that failed stays until it is dismissed.

use super::view::ViewState;
use jiff::Timestamp;
use opdev_event::{Level, MissingRule, Notice, RequestFinished, RequestOutcome, words};
use opdev_panes::keys::action::Do;
use opdev_panes::theme::Role;
use opdev_state::State;
use std::sync::Arc;
use std::time::Duration;

/// How long good news stay.
const STAY: Duration = Duration::from_secs(6);

/// A message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Toast {
    /// Good, bad or neither.
    pub(super) role: Role,
    /// The text; more than one line needs a box.
    pub(super) lines: Vec<String>,
    /// How long it is still to be seen; `None` until it is dismissed.
    pub(super) left: Option<Duration>,
}

/// The message of the moment.
pub(super) fn toast(view: &ViewState, state: &State, now: Timestamp) -> Option<Toast> {
    if let Some(panic) = &view.told.panicked {
        let lines = vec![
            format!("✗ a part of opdev panicked: {}", words::one_line(panic)),
            "The log has more; restart opdev.".into(),
        ];
        return Some(Toast { role: Role::Bad, lines, left: None });
    }
    if let Some(message) = &view.told.message {
        // A key that did something says so itself; one that could not is a warning.
        let done = message.starts_with("✓ ");
        let (role, text) = match done {
            true => (Role::Good, message.clone()),
            false => (Role::Busy, format!("⚠ {message}")),
        };
        return Some(Toast { role, lines: vec![text], left: None });
    }
    if let Some(lines) = view.look.following.told() {
        return Some(Toast { role: Role::Bad, lines, left: None });
    }
    if let Some((_, request)) = state.requests.in_flight.iter().rev().find(|(_, request)| !request.lasting) {
        return Some(Toast { role: Role::Busy, lines: vec![format!("… {}", request.what)], left: None });
    }
    let finished = state.requests.finished.back();
    if let Some(rule) = missing(view, state).filter(|rule| finished.is_none_or(|last| last.at <= rule.at)) {
        return Some(from_missing(rule, view, state));
    }
    let notice = warning(view, state).and_then(|notice| Some((notice.at, from_notice(notice, view, now)?)));
    match (finished, notice) {
        // A newer notice hides no answer that is still to be read.
        (Some(finished), Some((at, notice))) if at > finished.at && !stays(finished) => Some(notice),
        (Some(finished), notice) => from_request(view, finished, now).or(notice.map(|(_, notice)| notice)),
        (None, notice) => notice.map(|(_, notice)| notice),
    }
}

/// The time of the message that stays until it is dismissed, if there is one.
pub(super) fn lasting(view: &ViewState, state: &State) -> Option<Timestamp> {
    let failed =
        state.requests.finished.back().filter(|finished| stays(finished)).map(|finished| finished.at);
    let failed = failed.filter(|at| view.told.dismissed.is_none_or(|until| *at > until));
    failed.max(missing(view, state).map(|rule| rule.at))
}

fn stays(finished: &RequestFinished) -> bool {
    match &finished.outcome {
        RequestOutcome::Failed { .. } => true,
        RequestOutcome::Cancelled { .. } => false,
        RequestOutcome::Done { warnings, .. } => !warnings.is_empty(),
    }
}

fn warning<'a>(view: &ViewState, state: &'a State) -> Option<&'a Arc<Notice>> {
    let loud = |notice: &&Arc<Notice>| matches!(notice.level, Level::Error | Level::Warn);
    let newest = state.notices.iter().rev().find(loud)?;
    view.told.dismissed.is_none_or(|until| newest.at > until).then_some(newest)
}

/// The rule that was missed last.
fn missing<'a>(view: &ViewState, state: &'a State) -> Option<&'a MissingRule> {
    let newest = state.missing_rules.iter().max_by_key(|rule| rule.at)?;
    view.told.dismissed.is_none_or(|until| newest.at > until).then_some(newest)
}

fn from_missing(rule: &MissingRule, view: &ViewState, state: &State) -> Toast {
    let key =
        view.keys.map.keys(Do::AddRules).first().map_or_else(|| ":rbac".to_owned(), ToString::to_string);
    let all = match state.missing_rules.len() {
        1 => String::new(),
        all => format!("; {all} rules are missing in all"),
    };
    let mut lines = vec![
        format!("⚠ forbidden: {}", words::one_line(&rule.message)),
        format!(
            "missing in {} ({}); {key} adds it, once you have seen the change{all}:",
            rule.role, rule.file
        ),
    ];
    lines.extend(rule.lines());
    Toast { role: Role::Bad, lines, left: None }
}

/// A notice stands for a moment; what helps against it is in the list.
fn from_notice(notice: &Notice, view: &ViewState, now: Timestamp) -> Option<Toast> {
    let left = stays_for(notice.at, now)?;
    let about = notice.object.as_ref().map_or_else(String::new, |object| format!("{object}: "));
    let (sign, role) = match notice.level {
        Level::Error => ("✗", Role::Bad),
        Level::Warn | Level::Info | Level::Debug | Level::Trace => ("⚠", Role::Busy),
    };
    let key = view.keys.map.keys(Do::Notices).first().map(ToString::to_string);
    let key = key.map_or_else(String::new, |key| format!("{key} "));
    let text = format!("{key}{sign} {about}{}", words::one_line(&notice.message));
    Some(Toast { role, lines: vec![text], left: Some(left) })
}

/// How long what came at a time is still to be seen.
fn stays_for(at: Timestamp, now: Timestamp) -> Option<Duration> {
    let age = now.duration_since(at).unsigned_abs();
    STAY.checked_sub(age).filter(|left| !left.is_zero())
}

fn from_request(view: &ViewState, finished: &RequestFinished, now: Timestamp) -> Option<Toast> {
    let took = words::took(finished.took);
    if stays(finished) && view.told.dismissed.is_some_and(|until| finished.at <= until) {
        return None;
    }
    match &finished.outcome {
        RequestOutcome::Failed { message, hint } => {
            let mut lines = vec![format!("✗ {}: {}", finished.what, message.trim())];
            lines.extend(hint.as_deref().map(words::one_line));
            Some(Toast { role: Role::Bad, lines, left: None })
        }
        RequestOutcome::Done { warnings, .. } if !warnings.is_empty() => {
            let mut lines = vec![format!("✓ {} in {took}, with warnings", finished.what)];
            lines.extend(warnings.iter().map(|warning| format!("⚠ {}", words::one_line(warning))));
            Some(Toast { role: Role::Busy, lines, left: None })
        }
        RequestOutcome::Cancelled { message } => {
            let left = stays_for(finished.at, now)?;
            let text = format!("– {} was cancelled: {message}", finished.what);
            Some(Toast { role: Role::Busy, lines: vec![text], left: Some(left) })
        }
        RequestOutcome::Done { summary, .. } => {
            let left = stays_for(finished.at, now)?;
            let what = if summary.is_empty() { finished.what.as_str() } else { summary.as_str() };
            let what = words::one_line(what);
            // Behind a sentence of two parts the time would belong to the last one.
            let text = if what.contains(", ") {
                format!("✓ {what} ({took})")
            } else {
                format!("✓ {what} in {took}")
            };
            Some(Toast { role: Role::Good, lines: vec![text], left: Some(left) })
        }
    }
}
