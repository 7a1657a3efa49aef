//! Open findings in the free rows below the custom resources: a first look has to tell them in whole
//! sentences, without a key.

use super::super::view::ViewState;
use super::lists::put;
use opdev_event::{FindingSeverity, RuleFinding, words};
use opdev_panes::finding_sign::{role, sign};
use opdev_panes::keys::action::Do;
use opdev_panes::text::{Row, clean, cut, width, wrap};
use opdev_panes::theme::Role;
use opdev_state::State;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use std::sync::Arc;

/// So many rows hold a title and what it means.
pub(super) const LEAST: u16 = 3;

/// True if something is open that is more than a hint.
pub(super) fn any(state: &State) -> bool {
    state.findings.counts() != (0, 0)
}

/// Draws them in these rows, where there is room for a sentence.
pub(super) fn draw(state: &State, view: &ViewState, buffer: &mut Buffer, free: Rect) {
    if free.height < LEAST || free.width < 20 {
        return;
    }
    let mut rows = rows(state, view, free.width as usize, free.height as usize);
    // A blank row keeps them apart from the list, where one is left.
    let blank = (free.height as usize).saturating_sub(rows.len()).min(1);
    rows.splice(0..0, std::iter::repeat_n(Row::default(), blank));
    put(&rows, view, buffer, free);
}

/// The worst one with its reason and its place, and the titles of the others.
fn rows(state: &State, view: &ViewState, cells: usize, most: usize) -> Vec<Row> {
    let mut open = state.findings.open().filter(|finding| finding.severity != FindingSeverity::Hint);
    let Some(worst) = open.next() else { return Vec::new() };
    let others: Vec<&Arc<RuleFinding>> = open.collect();
    let titles = others.len().min(most.saturating_sub(5));
    let room = most - titles;
    let mut rows = vec![title(worst, cells)];
    let mut tail = Vec::new();
    if room > 3 {
        tail.push(where_and_key(worst, view, cells));
    }
    let lines = wrap(&clean(&worst.why), cells.saturating_sub(4).max(10));
    let fits = room - rows.len() - tail.len();
    for (at, line) in lines.iter().take(fits).enumerate() {
        let line = if at + 1 == fits && lines.len() > fits {
            cut(&format!("{line} …"), cells - 3)
        } else {
            line.clone()
        };
        rows.push(Row::new(Role::Text, format!("   {line}")));
    }
    rows.extend(tail);
    rows.extend(others.into_iter().take(titles).map(|finding| title(finding, cells)));
    rows
}

fn title(finding: &RuleFinding, cells: usize) -> Row {
    let short = cut(&clean(&finding.short()), cells.saturating_sub(4));
    let name = format!(" · {}", words::short_ref(&finding.object));
    let row = Row::new(role(finding), format!(" {} {short}", sign(finding)));
    if width(&short) + width(&name) + 4 > cells { row } else { row.and(Role::Dim, name) }
}

/// The place in the code, and the key of the list, which has the fix.
fn where_and_key(finding: &RuleFinding, view: &ViewState, cells: usize) -> Row {
    let key = view.keys.map.keys(Do::Findings).first().map(ToString::to_string).unwrap_or_default();
    let told = format!("{key} shows the fix");
    let place = finding.place.as_ref().map(|place| format!("{place} · ")).unwrap_or_default();
    let place = if width(&place) + width(&told) + 4 > cells { String::new() } else { place };
    Row::new(Role::Changed, format!("   {place}")).and(Role::Key, key).and(Role::Dim, " shows the fix")
}
