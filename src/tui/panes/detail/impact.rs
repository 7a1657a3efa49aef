//! The impact of saved types and reconcilers on the objects in the cluster: the newest change of the selected
//! kind's type, the newest shadow run of its reconciler, and what waits for an answer.

use super::super::text::{Row, wrap};
use super::super::theme::Role;
use super::page::{DetailTab, Page};
use super::{changes, reconcile};
use crate::detail::parts::{clock, nothing};
use crate::keys::action::Do;
use crate::keys::action::{Action, Section, action};
use crate::pane::Tab;
use opdev_event::{
    Action as Wrote, Finding, Held, Hurt, ObjectChange, ShadowDecision, ShadowRun, TypeChanged, Weight, words,
};

/// How a weight looks.
fn role(weight: Weight) -> Role {
    match weight {
        Weight::Info => Role::Dim,
        Weight::Warn => Role::Text,
        Weight::Break => Role::Busy,
        Weight::Loss | Weight::Block => Role::Bad,
    }
}

/// One block of lines for each finding: weight, message, place.
pub fn findings(all: &[Finding], cells: usize) -> Vec<Row> {
    let mut rows = Vec::new();
    for finding in all {
        let mut text = words::finding(&Finding { place: None, ..finding.clone() });
        let weight = words::weight(finding.weight);
        text.drain(..weight.len());
        let lines = wrap(text.trim(), cells.saturating_sub(9).max(10));
        for (i, line) in lines.into_iter().enumerate() {
            let sign = if i == 0 { weight } else { "" };
            rows.push(
                Row::new(role(finding.weight), format!("   {sign:5} ")).and(Role::Text, format!("{line} ")),
            );
        }
        if let Some(place) = &finding.place {
            rows.push(Row::new(Role::Key, format!("         {place} ")));
        }
    }
    rows
}

/// One block of lines for each object.
pub fn hurts(all: &[Hurt], more: u32, cells: usize) -> Vec<Row> {
    let mut rows = Vec::new();
    for hurt in all {
        rows.push(
            Row::new(Role::Removed, format!("   {}", hurt.object))
                .and(Role::Key, format!(" {} ", hurt.field)),
        );
        let lines = wrap(&words::one_line(&hurt.message), cells.saturating_sub(6).max(10));
        rows.extend(lines.into_iter().map(|line| Row::new(Role::Text, format!("     {line} "))));
    }
    if more > 0 {
        rows.push(Row::new(Role::Dim, format!("   and {more} more")));
    }
    rows
}

impl Tab {
    pub(crate) const IMPACT: Tab = Tab("impact");
}

/// The tab.
pub(super) struct Impact;

impl DetailTab for Impact {
    fn tab(&self) -> Tab {
        Tab::IMPACT
    }

    fn title(&self) -> &'static str {
        "Impact"
    }

    fn action(&self) -> Action {
        action(Tab::IMPACT.0, Do::Show(Tab::IMPACT), &["i"], Section::Look)
            .about("impact", "Show what the last saved type, reconciler or held chart changes.")
    }

    fn place(&self) -> u8 {
        3
    }

    fn about(&self, page: &Page<'_>) -> Option<String> {
        page.root.map(|seen| seen.key.kind.clone())
    }

    fn rows(&self, page: &Page<'_>) -> Vec<Row> {
        let (state, width) = (page.state, page.cells);
        let kind = page.root.map(|seen| seen.object_ref.gvk.clone());
        let Some(kind) = kind.or_else(|| state.impact.held.first().map(|held| held.kind.clone())) else {
            return nothing(
                "No kind is selected. What a saved type or reconciler changes shows here.",
                width,
            );
        };
        let mut rows = Vec::new();
        for held in state.impact.held_of(&kind) {
            rows.extend(self::held(held, page));
        }
        if let Some(run) = state.impact.shadow_of(&kind) {
            rows.extend(shadow(run, page));
        }
        if let Some(changed) = state.impact.type_of(&kind) {
            rows.extend(type_changed(changed, page));
        }
        if rows.is_empty() {
            let text = format!(
                "No type or reconciler of {} was saved yet. What a save changes shows here.",
                kind.kind
            );
            return nothing(&text, width);
        }
        rows
    }
}

fn held(held: &Held, page: &Page<'_>) -> Vec<Row> {
    let (width, key) = (page.cells, page.keys.first(Do::Held));
    let mut rows = vec![
        Row::new(Role::Bad, format!(" ⚠ Held since {}", clock(held.at, page.zone)))
            .and(Role::Dim, format!("  {key} answers")),
    ];
    rows.extend(
        wrap(&held.why, width.saturating_sub(4))
            .into_iter()
            .map(|line| Row::new(Role::Text, format!("   {line}"))),
    );
    rows.extend(findings(&held.findings, width));
    rows.extend(hurts(&held.objects, held.more, width));
    rows
}

fn type_changed(changed: &TypeChanged, page: &Page<'_>) -> Vec<Row> {
    let width = page.cells;
    let what = if changed.created { "created" } else { "live" };
    let files = if changed.files.is_empty() { "at start".to_owned() } else { words::files(&changed.files) };
    let mut rows = vec![
        Row::new(Role::Title, format!(" Type {}", changed.name))
            .and(Role::Good, format!("  {what} in {}", words::took(changed.took)))
            .and(Role::Dim, format!("  {files}, {}", clock(changed.at, page.zone))),
    ];
    if changed.findings.is_empty() {
        rows.push(Row::new(Role::Dim, "   Nothing that objects or clients would notice."));
    }
    rows.extend(findings(&changed.findings, width));
    if !changed.objects.is_empty() {
        rows.push(Row::new(Role::Title, " Objects that it affects"));
        rows.extend(hurts(&changed.objects, 0, width));
    }
    rows
}

fn shadow(run: &ShadowRun, page: &Page<'_>) -> Vec<Row> {
    let width = page.cells;
    let (sign, decision) = match run.decision {
        ShadowDecision::Switched => (Role::Good, "took over"),
        ShadowDecision::Held => (Role::Bad, "is held"),
        ShadowDecision::Refused => (Role::Bad, "was refused"),
    };
    let mut rows = vec![
        Row::new(Role::Title, format!(" Shadow run of {}", words::files(&run.files)))
            .and(sign, format!("  {decision}"))
            .and(Role::Dim, format!("  {}, {}", words::took(run.took), clock(run.at, page.zone))),
        Row::new(Role::Text, format!("   {}", words::shadow(run))),
    ];
    for object in &run.objects {
        rows.push(Row::new(Role::Key, format!("   {}", object.object)));
        if let Some(problem) = &object.problem {
            rows.extend(reconcile::diagnostic(problem, width, true));
        }
        if let Some(release) = &object.release {
            let files = if release.files.is_empty() {
                String::new()
            } else {
                format!(", because of {}", words::files(&release.files))
            };
            rows.extend(
                wrap(&format!("{}{files}", release.why), width.saturating_sub(6).max(10))
                    .into_iter()
                    .map(|line| Row::new(Role::Dim, format!("     {line}"))),
            );
        }
        rows.extend(object.children.iter().flat_map(child));
        for hook in &object.hooks {
            let text = format!("     ! hook {} {} would run", hook.event, hook.object);
            rows.push(Row::new(Role::Changed, text));
        }
        for why in &object.unsure {
            rows.push(Row::new(
                Role::Dim,
                format!("     ? not asked of the API server: {}", words::one_line(why)),
            ));
        }
        if !object.status.is_empty() {
            rows.push(Row::new(Role::Changed, "     ~ status"));
            rows.extend(changes::rows(&object.status, 4));
        }
    }
    rows
}

fn child(change: &ObjectChange) -> Vec<Row> {
    let (sign, role) = match change.action {
        Wrote::Created => ("+", Role::Added),
        Wrote::Updated => ("~", Role::Changed),
        Wrote::Deleted => ("-", Role::Removed),
    };
    let mut rows = vec![Row::new(role, format!("     {sign} {}", change.object))];
    rows.extend(changes::rows(&change.changes, 4));
    rows
}
