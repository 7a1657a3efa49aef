//! The selected object in words: what it is waiting for, why it does not go, and what it is. Everything else
//! has a tab of its own.

use super::super::text::{Row, cut, left, width, wrap};
use super::super::theme::Role;
use super::page::{DetailTab, Page};
use super::yaml;
use crate::detail::parts::{clock, nothing};
use crate::keys::action::Do;
use crate::keys::action::{Action, Section, action};
use crate::pane::{Pane, Tab};
use opdev_event::words;
use opdev_object::meta;
use opdev_state::health::Level;
use opdev_state::waiting;
use opdev_state::waiting::Wait;
use opdev_state::{Seen, State, deletion, tree};
use serde_json::Value;
use std::collections::BTreeMap;

impl Tab {
    pub const DESCRIBE: Tab = Tab("describe");
}

/// The tab.
pub(super) struct Describe;

impl DetailTab for Describe {
    fn tab(&self) -> Tab {
        Tab::DESCRIBE
    }

    fn title(&self) -> &'static str {
        "Describe"
    }

    fn action(&self) -> Action {
        action(Tab::DESCRIBE.0, Do::Show(Tab::DESCRIBE), &["d"], Section::Look)
            .about(
                "describe",
                "Say what the selected object is, what it waits for, and why it is not deleted yet.",
            )
            .also(&["waiting", "why"])
            .footer(&[Pane::Resources, Pane::Owned])
    }

    fn place(&self) -> u8 {
        4
    }

    fn rows(&self, page: &Page<'_>) -> Vec<Row> {
        let (state, cells) = (page.state, page.cells);
        let Some(seen) = page.subject else {
            let text = "Nothing is selected. What a custom resource or an owned object is, and what it waits for, shows here.";
            return nothing(text, cells);
        };
        let mut rows = yaml::gone(page, state, seen);
        let health = &seen.health;
        let word = [health.word.clone(), health.counts()].into_iter().filter(|text| !text.is_empty());
        rows.push(
            Row::new(Role::Title, format!(" {}", seen.key))
                .and(level_role(health.level), format!("  {}", word.collect::<Vec<_>>().join(" "))),
        );
        if state.gone_at(&seen.key).is_none() {
            rows.extend(leaving(page, state, seen, cells));
            rows.extend(waits(page, state, seen, cells));
        }
        rows.extend(about(page, seen, cells));
        rows.extend(conditions(&seen.object, cells));
        rows.extend(owned(state, seen));
        rows
    }

    fn is_of_object(&self) -> bool {
        true
    }

    fn shows_whole_object(&self) -> bool {
        true
    }
}

fn level_role(level: Level) -> Role {
    match level {
        Level::Plain => Role::Dim,
        Level::Done | Level::Good => Role::Good,
        Level::Busy => Role::Busy,
        Level::Bad => Role::Bad,
    }
}

/// A text below a sign, as many lines as it needs.
fn item(role: Role, sign: &str, text: &str, cells: usize) -> Vec<Row> {
    let lines = wrap(text, cells.saturating_sub(6).max(10)).into_iter().enumerate();
    lines.map(|(i, line)| Row::new(role, format!("   {} {line}", if i == 0 { sign } else { " " }))).collect()
}

fn more(text: &str, cells: usize) -> Vec<Row> {
    let lines = wrap(text, cells.saturating_sub(8).max(10)).into_iter();
    lines.map(|line| Row::new(Role::Dim, format!("       {line}"))).collect()
}

fn waits(page: &Page<'_>, state: &State, seen: &Seen, cells: usize) -> Vec<Row> {
    let mut rows = vec![Row::new(Role::Title, " Waiting for")];
    let all = waiting::of(state, seen);
    for Wait { level, what, why, until } in &all {
        let (role, sign) = if *level == Level::Bad { (Role::Bad, "⚠") } else { (Role::Busy, "◐") };
        rows.extend(item(role, sign, what, cells));
        if !why.is_empty() {
            rows.extend(more(why, cells));
        }
        if let Some(until) = until {
            rows.extend(more(&format!("tried again at {}", clock(*until, page.zone)), cells));
        }
    }
    if all.is_empty() {
        let next = state
            .history
            .last(&seen.key)
            .and_then(|last| Some((waiting::again(last)?, last.requeue.as_ref()?)));
        let next = next.map_or_else(String::new, |(at, requeue)| {
            format!(
                "; it is reconciled again at {} ({})",
                clock(at, page.zone),
                words::one_line(requeue.reason.words())
            )
        });
        rows.extend(item(Role::Good, "✓", &format!("nothing{next}"), cells));
    }
    rows
}

fn leaving(page: &Page<'_>, state: &State, seen: &Seen, cells: usize) -> Vec<Row> {
    let Some(deletion) = deletion::of(state, seen) else { return Vec::new() };
    let since =
        deletion.since.map_or_else(String::new, |at| format!(", asked for at {}", clock(at, page.zone)));
    let mut rows = vec![Row::new(Role::Bad, format!(" Why it is not deleted yet{since}"))];
    for finalizer in &deletion.finalizers {
        rows.extend(item(Role::Busy, "◐", &format!("finalizer {}", finalizer.name), cells));
        rows.extend(more(&format!("to be removed by {}", finalizer.who), cells));
    }
    for child in deletion.blocking.iter().take(10) {
        rows.extend(item(
            Role::Busy,
            "◐",
            &format!("{} {} has to go first", child.key.kind, child.key.name),
            cells,
        ));
    }
    if deletion.blocking.len() > 10 {
        rows.extend(more(&format!("and {} more", deletion.blocking.len() - 10), cells));
    }
    if deletion.finalizers.is_empty() {
        let grace = seen.object.pointer("/metadata/deletionGracePeriodSeconds").and_then(Value::as_i64);
        let text = match grace {
            Some(seconds) if seconds > 0 => format!("its grace period of {seconds} s, and whoever runs it"),
            Some(_) | None => "nothing that it names; it should be gone any moment".to_owned(),
        };
        rows.extend(item(Role::Busy, "◐", &text, cells));
    }
    rows
}

fn about(page: &Page<'_>, seen: &Seen, cells: usize) -> Vec<Row> {
    let object = &seen.object;
    let mut rows = vec![Row::new(Role::Title, " About")];
    let mut line = |name: &str, text: String| {
        if !text.is_empty() {
            rows.push(
                Row::new(Role::Key, format!("   {} ", left(name, 12)))
                    .and(Role::Text, cut(&text, cells.saturating_sub(17).max(10))),
            );
        }
    };
    line("apiVersion", meta::Gvk::of(object).map(|gvk| gvk.api_version()).unwrap_or_default());
    let created =
        seen.created.map(|at| at.to_zoned(page.zone.clone()).strftime("%Y-%m-%d %H:%M:%S").to_string());
    line("created", created.unwrap_or_default());
    let observed = object.pointer("/status/observedGeneration").and_then(Value::as_i64);
    let generation = meta::generation(object);
    let generation = match observed {
        _ if generation == 0 => String::new(),
        Some(observed) if observed < generation => {
            format!("{generation}, its controller has seen {observed}")
        }
        Some(_) | None => generation.to_string(),
    };
    line("generation", generation);
    for owner in meta::owner_references(object) {
        line("owned by", format!("{} {}", owner.kind, owner.name));
    }
    line("finalizers", meta::finalizers(object).join(", "));
    for (name, field) in [("labels", "labels"), ("annotations", "annotations")] {
        let fields = object.pointer(&format!("/metadata/{field}")).and_then(Value::as_object);
        for (i, (key, value)) in fields.into_iter().flatten().enumerate() {
            let value = words::one_line(value.as_str().unwrap_or_default());
            line(if i == 0 { name } else { "" }, format!("{key}={value}"));
        }
    }
    rows
}

fn conditions(object: &Value, cells: usize) -> Vec<Row> {
    let list = object.pointer("/status/conditions").and_then(Value::as_array);
    let Some(list) = list.filter(|list| !list.is_empty()) else { return Vec::new() };
    let text = |condition: &Value, field: &str| {
        words::one_line(condition.get(field).and_then(Value::as_str).unwrap_or_default())
    };
    let longest = list.iter().map(|c| width(&text(c, "type"))).max().unwrap_or(0).min((cells / 3).max(8));
    let mut rows = vec![Row::new(Role::Title, " Conditions")];
    for condition in list {
        let (status, reason, message) =
            (text(condition, "status"), text(condition, "reason"), text(condition, "message"));
        let role = if status == "True" { Role::Text } else { Role::Busy };
        rows.push(
            Row::new(Role::Key, format!("   {} ", left(&text(condition, "type"), longest)))
                .and(role, format!("{} ", left(&status, 7)))
                .and(Role::Text, format!("{reason}  "))
                .and(Role::Dim, message),
        );
    }
    rows
}

/// Owned objects by kind: how many, and how many of them are as they should be.
fn owned(state: &State, seen: &Seen) -> Vec<Row> {
    let mut kinds: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    let nodes = tree::owned(state, &seen.key);
    for node in &nodes {
        let (all, bad) = kinds.entry(&node.seen.key.kind).or_default();
        *all += 1 + node.older;
        *bad += usize::from(matches!(node.seen.health.level, Level::Busy | Level::Bad));
    }
    if kinds.is_empty() {
        return Vec::new();
    }
    let mut rows = vec![Row::new(Role::Title, " Owns")];
    for (kind, (all, bad)) in kinds {
        let row = Row::new(Role::Text, format!("   {all} {kind}"));
        rows.push(if bad > 0 { row.and(Role::Busy, format!("  {bad} not ready")) } else { row });
    }
    rows
}
