//! Open findings in free rows: a first look has to tell them in whole sentences, without a key. They stand
//! below the custom resources; where that pane is low, below the reconciles.

use super::super::view::ViewState;
use super::boxes::divider;
use super::lists::put;
use super::pieces::below;
use crate::act::open_file;
use opdev_event::{FindingSeverity, RuleFinding, words};
use opdev_panes::finding_sign::{role, sign};
use opdev_panes::keys::action::Do;
use opdev_panes::pages::finding::named;
use opdev_panes::pane::Pane;
use opdev_panes::text::{Row, clean, cut, cut_path, width, wrap};
use opdev_panes::theme::Role;
use opdev_state::State;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use std::sync::Arc;

/// So many rows hold a title and what it means.
pub(super) const LEAST: u16 = 3;

/// So many rows hold a border, why, where, the cure and the keys.
const LEAST_CARD: u16 = 6;

/// The width of the names before its texts.
const NAME: usize = 6;

/// True if something is open that is more than a hint.
pub(super) fn any(state: &State) -> bool {
    state.findings.counts() != (0, 0)
}

/// Draws them in these rows, where there is room for a sentence.
pub(super) fn draw(state: &State, view: &mut ViewState, buffer: &mut Buffer, free: Rect) {
    if free.height < LEAST || free.width < 20 {
        return;
    }
    view.screen.found_told = any(state);
    let mut rows = rows(state, view, free.width as usize, free.height as usize);
    // A blank row keeps them apart from the list, where one is left.
    let blank = (free.height as usize).saturating_sub(rows.len()).min(1);
    rows.splice(0..0, std::iter::repeat_n(Row::default(), blank));
    put(&rows, view, buffer, free);
}

/// Draws the one that is looked at below the reconciles, where nothing else on the screen tells it.
pub(super) fn draw_card(state: &State, view: &ViewState, buffer: &mut Buffer, free: Rect) {
    let told = view.screen.found_told || view.screen.shows(Pane::Detail);
    if told || free.height < LEAST_CARD || free.width < 40 {
        return;
    }
    let Some(finding) = open_file::finding(view, state) else { return };
    let cells = free.width as usize;
    let count = state.findings.open().count();
    let keys = |does: Do| view.keys.map.keys(does).first().map(ToString::to_string).unwrap_or_default();
    let mut tail = Vec::new();
    if let Some(place) = &finding.place {
        let place = cut_path(&clean(&place.to_string()), cells.saturating_sub(8));
        tail.push(Row::new(Role::Dim, " Code  ").and(Role::Changed, place));
    }
    tail.extend(named(("Fix", NAME), Role::Text, &finding.fix, cells).into_iter().take(2));
    let mut last = Row::new(Role::Text, " ");
    if finding.place.is_some() && open_file::place(view, state) == finding.place {
        last = last.and(Role::Key, keys(Do::OpenFile)).and(Role::Text, " open the code   ");
    }
    tail.push(last.and(Role::Key, keys(Do::Findings)).and(Role::Text, " all findings"));
    let mut rows = named(("Why", NAME), Role::Text, &finding.why, cells);
    let room = (free.height as usize).saturating_sub(1 + tail.len()).max(1);
    if rows.len() > room {
        rows.truncate(room);
        if let Some((_, text)) = rows.last_mut().and_then(|row| row.0.last_mut()) {
            *text = cut(&format!("{text} …"), cells.saturating_sub(8));
        }
    }
    rows.extend(tail);
    let blank = u16::from(free.height as usize > rows.len() + 1);
    let about = words::short_ref(finding.about.as_ref().unwrap_or(&finding.object));
    let title = format!("{} {} · {about} · {count} open", sign(finding), clean(&finding.short()));
    let whole = Rect { x: free.x.saturating_sub(1), width: free.width + 2, ..free };
    let border = if view.focus == Pane::Reconciles { Role::Focus } else { Role::Border };
    divider(buffer, view, whole, free.y + blank, (border, &title));
    put(&rows, view, buffer, below(free, usize::from(blank) + 1));
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
