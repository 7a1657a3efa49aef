//! The table of one kind: the API server's columns, only the visible window of its rows, and above them
//! nothing but the headings. A table that is not there says why.

use super::super::view::ViewState;
use super::lists::{mark, put, star};
use super::pieces::age;
use jiff::Timestamp;
use opdev_event::{KindTable, PrinterColumn, TableRow};
use opdev_panes::click_targets::Spot;
use opdev_panes::lists::kind_table::TableSort;
use opdev_panes::lists::table::Column;
use opdev_panes::pane::Pane;
use opdev_panes::text::{Row, cut_apart, left, right, width, wrap};
use opdev_panes::theme::Role;
use opdev_state::State;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use std::sync::Arc;

/// Rows whose cells say how wide a column is, beside the visible ones.
const SAMPLE: usize = 300;
/// No cell is wider, but a name.
const WIDEST: usize = 48;
/// A name is not cut to less.
const LEAST_NAME: usize = 18;
/// Marks in front of a row.
const MARKS: usize = 2;

/// A column that is shown.
struct TableSlot {
    /// Its place among the cells; the namespace has none.
    at: Option<usize>,
    name: String,
    number: bool,
    size: usize,
}

/// The name of an open table, and how much of it is shown.
pub(super) fn title(view: &ViewState, state: &State) -> Option<(String, String)> {
    let browse = view.browse.as_ref()?;
    let Some(table) = browse.table(view.namespace.as_deref(), state) else {
        return Some((browse.word.clone(), "being read".to_owned()));
    };
    let Some(kind) = &table.kind else {
        // Why stands below it.
        return Some((browse.word.clone(), String::new()));
    };
    let name = kind.full_name();
    let (shown, all) = (browse.shown.len(), table.rows.len());
    let mut about = match table.namespace.as_ref().filter(|_| view.namespace.is_none()) {
        Some(namespace) => format!("ns {namespace} · "),
        None => String::new(),
    };
    match (table.complete, shown == all) {
        (true, true) => about.push_str(&all.to_string()),
        (true, false) => about.push_str(&format!("{shown} of {all}")),
        (false, true) if table.missing > 0 => {
            about.push_str(&format!("{all} of {}, being read", all as u64 + table.missing));
        }
        (false, true) => about.push_str(&format!("{all}, being read")),
        (false, false) => about.push_str(&format!("{shown} of {all}, being read")),
    }
    Some((name, about))
}

/// Draws it.
pub(super) fn draw(state: &State, view: &mut ViewState, buffer: &mut Buffer, area: Rect, now: Timestamp) {
    let Some(browse) = view.browse.clone() else { return };
    let table = browse.table(view.namespace.as_deref(), state).cloned();
    let mut list = area;
    let told = table.as_ref().and_then(|table| {
        let problem = table.problem.as_ref().map(|why| (Role::Bad, format!("⚠ {why}")));
        problem.or_else(|| table.note.as_ref().map(|note| (Role::Changed, note.clone())))
    });
    if let Some((role, text)) = told {
        let lines = wrap(&text, (area.width as usize).saturating_sub(3));
        let most = (area.height / 2).max(1) as usize;
        let rows: Vec<Row> =
            lines.into_iter().take(most).map(|line| Row::new(role, format!(" {line}"))).collect();
        put(&rows, view, buffer, list);
        list.y += rows.len() as u16;
        list.height -= rows.len() as u16;
    }
    view.screen.heights[Pane::Resources.index()] = (list.height as usize).saturating_sub(1).max(1);
    let Some(table) = table.filter(|table| !table.rows.is_empty()) else {
        let rows = empty(view, state, list);
        return put(&rows, view, buffer, list);
    };
    if browse.shown.is_empty() {
        let row = Row::new(Role::Dim, " No row passes the filter. esc clears it.");
        return put(&[row], view, buffer, list);
    }
    let height = (list.height as usize).saturating_sub(1).max(1);
    let mut selection = browse.selection.clone();
    let window = selection.window(browse.shown.len(), height);
    let visible: Vec<Arc<TableRow>> =
        window.clone().filter_map(|at| browse.row_at(&table, at).cloned()).collect();
    let cells = list.width as usize;
    let slots = slots(view, &table, &visible, cells);
    headings(view, &slots, browse.sort.as_ref(), buffer, list);
    let names: Vec<&str> = visible.iter().map(|row| row.object_ref.name.as_str()).collect();
    let name_slot = slots.iter().find(|slot| is_name(slot, &table));
    let names = cut_apart(&names, name_slot.map_or(0, |slot| slot.size));
    for (line, (at, row)) in window.zip(&visible).enumerate() {
        let selected = at == selection.index;
        let (own, word) = look(&table, row);
        let mut drawn = Row::new(own, format!("{}{}", mark(selected), star(view, &row.object_ref.key())));
        for (i, slot) in slots.iter().enumerate() {
            let name = &names[line];
            let (role, text) = match slot.at {
                None => (own, row.object_ref.namespace.clone().unwrap_or_default()),
                Some(_) if is_name(slot, &table) => (own, name.clone()),
                Some(_) if slot.name == "Age" && row.created.is_some() => {
                    (Role::Dim, age(view, row.created, now))
                }
                Some(cell) => {
                    let role = if slot.name == "Status" { word } else { own };
                    (role, row.cells.get(cell).cloned().unwrap_or_default())
                }
            };
            let fitted = if slot.number { right(&text, slot.size) } else { left(&text, slot.size) };
            drawn = drawn.and(role, format!("{}{fitted}", if i > 0 { "  " } else { "" }));
        }
        let place = (list.x, list.y + 1 + line as u16);
        drawn.draw(buffer, view.look.theme, place, cells, selected && view.focus == Pane::Resources);
    }
    if let Some(open) = &mut view.browse {
        open.selection = selection;
    }
}

fn is_name(slot: &TableSlot, table: &KindTable) -> bool {
    slot.at == Some(0) && table.columns.first().is_some_and(|column| column.name == "Name")
}

/// How a row looks, and the word of its status.
fn look(table: &KindTable, row: &TableRow) -> (Role, Role) {
    if row.deleting.is_some() {
        return (Role::Dim, Role::Busy);
    }
    let status = table.columns.iter().position(|column| column.name == "Status");
    let word = status.and_then(|at| row.cells.get(at)).map_or("", String::as_str);
    let bad = ["Error", "BackOff", "Fail", "Evicted", "OOMKilled", "NotReady", "Lost", "Unknown", "Invalid"];
    let busy = ["Pending", "Creating", "Terminating", "Init:", "NotReady", "Released", "SchedulingDisabled"];
    let role = match word {
        _ if bad.iter().any(|part| word.contains(part)) => Role::Bad,
        _ if busy.iter().any(|part| word.contains(part)) => Role::Busy,
        "Completed" | "Succeeded" => Role::Dim,
        "Running" | "Ready" | "Active" | "Bound" | "Available" => Role::Good,
        _ => Role::Text,
    };
    (Role::Text, role)
}

/// The columns that fit. The namespace shows where all are listed; what the server calls wide where it is
/// wanted, or fits. Where there is no room the name is cut first, then columns go: AGE, then from the right.
fn slots(view: &ViewState, table: &KindTable, visible: &[Arc<TableRow>], cells: usize) -> Vec<TableSlot> {
    let sample = || table.rows.iter().take(SAMPLE).chain(visible);
    let widest = |of: &dyn Fn(&TableRow) -> usize, head: usize| {
        sample().map(|row| of(row)).max().unwrap_or(0).max(head)
    };
    let mut slots: Vec<TableSlot> = Vec::new();
    let namespaced = table.kind.as_ref().is_some_and(|kind| kind.namespaced);
    if namespaced && table.namespace.is_none() {
        let size = widest(&|row| row.object_ref.namespace.as_deref().map_or(0, width), 10).min(24);
        slots.push(TableSlot { at: None, name: "Namespace".to_owned(), number: false, size });
    }
    let slot = |at: usize| {
        let column = &table.columns[at];
        // A mark behind the heading takes room, too.
        let size = match column.name.as_str() {
            "Age" => 5,
            _ => widest(&|row| row.cells.get(at).map_or(0, |cell| width(cell)), width(&column.name) + 1),
        };
        let most = if at == 0 { size } else { WIDEST };
        TableSlot { at: Some(at), name: column.name.clone(), number: column.number, size: size.min(most) }
    };
    let needs = |slots: &[TableSlot]| MARKS + slots.iter().map(|slot| slot.size + 2).sum::<usize>();
    slots.extend((0..table.columns.len()).filter(|at| !table.columns[*at].wide).map(slot));
    for at in (0..table.columns.len()).filter(|at| table.columns[*at].wide) {
        let wide = slot(at);
        if view.resources.wide || needs(&slots) + wide.size + 2 <= cells {
            slots.push(wide);
        }
    }
    let name = slots.iter().position(|slot| is_name(slot, table));
    if let Some(name) = name {
        let over = needs(&slots).saturating_sub(cells);
        slots[name].size = slots[name].size.saturating_sub(over).max(LEAST_NAME.min(slots[name].size));
    }
    while needs(&slots) > cells + 2 && slots.len() > 1 {
        let age = slots.iter().position(|slot| slot.name == "Age").filter(|_| slots.len() > 3);
        slots.remove(age.unwrap_or(slots.len() - 1));
    }
    // The rest of the width belongs to the last column: messages are long.
    let room = cells.saturating_sub(needs(&slots));
    if let Some(last) = slots.last_mut().filter(|last| last.size >= WIDEST) {
        last.size += room;
    }
    slots
}

fn headings(
    view: &mut ViewState,
    slots: &[TableSlot],
    sort: Option<&TableSort>,
    buffer: &mut Buffer,
    area: Rect,
) {
    let mut text = " ".repeat(MARKS);
    for (i, slot) in slots.iter().enumerate() {
        let sign = match sort.filter(|sort| sort.column == slot.name) {
            None => "",
            Some(sort) if sort.down => "↓",
            Some(_) => "↑",
        };
        if i > 0 {
            text.push_str("  ");
        }
        let from = area.x + width(&text) as u16;
        let heading = format!("{}{sign}", slot.name.to_uppercase());
        text.push_str(&if slot.number { right(&heading, slot.size) } else { left(&heading, slot.size) });
        let column = PrinterColumn { name: slot.name.clone(), path: String::new(), date: false };
        let to = area.x + width(&text) as u16;
        view.screen.spots.headings.push(Spot { y: area.y, from, to, what: Column::Printer(column) });
    }
    put(&[Row::new(Role::Dim, text)], view, buffer, area);
}

/// Why there is no row.
fn empty(view: &ViewState, state: &State, area: Rect) -> Vec<Row> {
    let Some(browse) = &view.browse else { return Vec::new() };
    let text = match browse.table(view.namespace.as_deref(), state) {
        None => format!("Asking the API server for {}.", browse.word),
        Some(table) if table.problem.is_some() => "esc goes back to the lists.".to_owned(),
        Some(table) => {
            let what = table.kind.as_ref().map_or(&browse.word, |kind| &kind.plural);
            match &table.namespace {
                Some(namespace) => {
                    format!("No {what} in the namespace {namespace}. :ns shows other ones, esc goes back.")
                }
                None => format!("No {what}. esc goes back to the lists."),
            }
        }
    };
    let lines = wrap(&text, (area.width as usize).saturating_sub(2));
    lines.into_iter().map(|line| Row::new(Role::Dim, format!(" {line}"))).collect()
}
