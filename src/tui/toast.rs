//! The one message beside the panes: what a key could not do, a request under way, how the last one ended,
//! a notice. What went well leaves by itself, what went wrong stays until it is dismissed.

use super::action::Do;
use super::theme::Role;
use super::view::ViewState;
use crate::event::{Level, MissingRule, Notice, RequestFinished, RequestOutcome, words};
use crate::state::State;
use jiff::Timestamp;
use std::sync::Arc;
use std::time::Duration;

/// How long good news stay.
const STAY: Duration = Duration::from_secs(6);

/// A message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Toast {
    /// Good, bad or neither.
    pub(super) role: Role,
    /// What to say; more than one line needs a box.
    pub(super) lines: Vec<String>,
    /// How long it is still to be seen; `None` until it is dismissed.
    pub(super) left: Option<Duration>,
}

/// What to say now.
pub(super) fn toast(view: &ViewState, state: &State, now: Timestamp) -> Option<Toast> {
    if let Some(panic) = &view.told.panicked {
        let lines = vec![
            format!("✗ a part of opdev panicked: {}", words::one_line(panic)),
            "The log has more; restart opdev.".into(),
        ];
        return Some(Toast { role: Role::Bad, lines, left: None });
    }
    if let Some(message) = &view.told.message {
        return Some(Toast { role: Role::Busy, lines: vec![format!("⚠ {message}")], left: None });
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
    let notice = warning(view, state);
    match (finished, notice) {
        (Some(finished), Some(notice)) if notice.at > finished.at => Some(from_notice(notice)),
        (None, Some(notice)) => Some(from_notice(notice)),
        (Some(finished), _) => {
            from_request(view, finished, now).or_else(|| notice.map(|notice| from_notice(notice)))
        }
        (None, None) => None,
    }
}

/// The time of the message that stays until it is dismissed, if there is one.
pub(super) fn lasting(view: &ViewState, state: &State) -> Option<Timestamp> {
    let failed =
        state.requests.finished.back().filter(|finished| stays(finished)).map(|finished| finished.at);
    let failed = failed.filter(|at| view.told.dismissed.is_none_or(|until| *at > until));
    failed.max(warning(view, state).map(|notice| notice.at)).max(missing(view, state).map(|rule| rule.at))
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

fn from_notice(notice: &Notice) -> Toast {
    let about = notice.object.as_ref().map_or_else(String::new, |object| format!("{object}: "));
    let mut lines = vec![format!("⚠ {about}{}", words::one_line(&notice.message))];
    lines.extend(notice.hint.as_deref().map(words::lines).unwrap_or_default());
    Toast { role: if notice.level == Level::Error { Role::Bad } else { Role::Busy }, lines, left: None }
}

/// How long good news are still to be seen.
fn good_for(finished: &RequestFinished, now: Timestamp) -> Option<Duration> {
    let age = now.duration_since(finished.at).unsigned_abs();
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
            let left = good_for(finished, now)?;
            let text = format!("– {} was cancelled: {message}", finished.what);
            Some(Toast { role: Role::Busy, lines: vec![text], left: Some(left) })
        }
        RequestOutcome::Done { summary, .. } => {
            let left = good_for(finished, now)?;
            let what = if summary.is_empty() { finished.what.as_str() } else { summary.as_str() };
            let text = format!("✓ {} in {took}", words::one_line(what));
            Some(Toast { role: Role::Good, lines: vec![text], left: Some(left) })
        }
    }
}
