//! Kubernetes Events of the selected object, and what opdev has noticed, the newest first.

use super::page::{DetailTab, Page};
use super::parts::clock;
use crate::keys::action::{Action, Do, Section, action};
use crate::pane::Tab;
use crate::text::Row;
use crate::theme::Role;
use jiff::Timestamp;
use opdev_event::{Level, words};
use opdev_state::Recorded;
use std::sync::Arc;

impl Tab {
    pub const EVENTS: Tab = Tab("events");
}

/// The tab.
pub(super) struct Events;

impl DetailTab for Events {
    fn tab(&self) -> Tab {
        Tab::EVENTS
    }

    fn title(&self) -> &'static str {
        "Events"
    }

    fn action(&self) -> Action {
        action(Tab::EVENTS.0, Do::Show(Tab::EVENTS), &[], Section::Look)
            .about("events", "Show the Events of the selected object, and what opdev has noticed.")
            .also(&["ev"])
    }

    fn place(&self) -> u8 {
        7
    }

    fn rows(&self, page: &Page<'_>) -> Vec<Row> {
        let (state, subject) = (page.state, page.subject);
        let is_about = |kind: &str, namespace: Option<&str>, name: &str| {
            subject.is_none_or(|seen| {
                seen.key.kind == kind && seen.key.name == name && seen.key.namespace.as_deref() == namespace
            })
        };
        let mut lines: Vec<(Timestamp, Row)> = Vec::new();
        let shown = |e: &&Arc<Recorded>| page.all || is_about(&e.kind, e.namespace.as_deref(), &e.name);
        for event in state.objects.recorded().filter(shown) {
            let at = event.at.unwrap_or_default();
            let (sign, role) = if event.warning { ("⚠", Role::Bad) } else { ("·", Role::Text) };
            let times = if event.count > 1 { format!(" ×{}", event.count) } else { String::new() };
            let about = if page.all { format!("{} {}: ", event.kind, event.name) } else { String::new() };
            let row = Row::new(Role::Dim, clock(at, page.zone))
                .and(role, format!(" {sign} {}{times}  ", event.reason))
                .and(Role::Text, format!("{about}{}", words::one_line(&event.message)))
                .and(Role::Dim, format!("  {}", event.from));
            lines.push((at, row));
        }
        for notice in state.notices.iter() {
            let about = notice.object.as_ref();
            let elsewhere = about.is_some_and(|o| !is_about(&o.gvk.kind, o.namespace.as_deref(), &o.name));
            if elsewhere && !page.all {
                continue;
            }
            let (sign, role) = match notice.level {
                Level::Error | Level::Warn => ("⚠", Role::Bad),
                Level::Info | Level::Debug | Level::Trace => ("·", Role::Text),
            };
            let hint =
                notice.hint.as_ref().map_or_else(String::new, |hint| format!("  {}", words::one_line(hint)));
            let row = Row::new(Role::Dim, clock(notice.at, page.zone))
                .and(role, format!(" {sign} "))
                .and(Role::Text, words::one_line(&notice.message))
                .and(Role::Dim, hint);
            lines.push((notice.at, row));
        }
        lines.sort_by_key(|(at, _)| std::cmp::Reverse(*at));
        if lines.is_empty() {
            return vec![Row::new(
                Role::Dim,
                " No Events of this object yet. What the operator and Kubernetes record shows here.",
            )];
        }
        lines.into_iter().map(|(_, row)| row).collect()
    }

    fn is_of_object(&self) -> bool {
        true
    }
}
