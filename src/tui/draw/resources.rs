//! The list of the custom resources: only its visible window, with the columns that fit. An empty one says what will
//! fill it.

use super::super::action::Do;
use super::super::table::Column;
use super::super::text::{Row, cut, cut_apart, cut_front, left, right, width};
use super::super::theme::Role;
use super::super::view::ViewState;
use super::findings;
use super::lists::{mark, put, sign, star, words_of};
use crate::event::{KindHealth, PrinterColumn, words};
use crate::state::health::Level;
use crate::state::{Seen, State, columns, tree};
use crate::tui::action::Seek;
use crate::tui::draw::pieces::age;
use crate::tui::pane::Pane;
use crate::tui::spots::Spot;
use jiff::Timestamp;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use std::sync::Arc;

/// Less of a path says nothing.
const LEAST_OF_PATH: usize = 8;

/// A column that is shown, and how wide it is.
struct Slot {
    column: Column,
    size: usize,
}

impl Slot {
    fn fit(&self, text: &str) -> String {
        match self.column {
            Column::Ready | Column::Age => right(text, self.size),
            Column::Kind | Column::Namespace | Column::Name | Column::Status | Column::Printer(_) => {
                left(text, self.size)
            }
        }
    }
}

/// The columns that the list shows, in their order.
pub(in crate::tui) fn shown_columns(view: &ViewState, state: &State) -> Vec<Column> {
    let mut all = vec![Column::Kind];
    if view.resources.namespaces_differ || view.resources.namespace_shown {
        all.push(Column::Namespace);
    }
    all.push(Column::Name);
    all.extend(printer_columns(view, state).into_iter().map(Column::Printer));
    all.extend([Column::Status, Column::Ready, Column::Age]);
    all
}

/// The printer columns of the selected kind, where they are wanted.
fn printer_columns(view: &ViewState, state: &State) -> Vec<PrinterColumn> {
    let kind = view.root(state).filter(|_| view.resources.wide).and_then(|root| {
        state.kinds().iter().find(|kind| kind.gvk.group == root.key.group && kind.gvk.kind == root.key.kind)
    });
    kind.map(|kind| kind.columns.clone()).unwrap_or_default()
}

/// What the longest kind, namespace and name need.
struct Needs {
    kind: usize,
    namespace: usize,
    name: usize,
}

impl Needs {
    fn of(view: &ViewState, namespaces: bool) -> Needs {
        let longest = &view.resources.longest;
        Needs {
            // A mark behind the heading takes room, too.
            kind: longest.kind.max(5),
            namespace: if namespaces { longest.namespace.clamp(10, 20) } else { 0 },
            name: longest.name.max(5),
        }
    }
}

/// READY and AGE, and STATUS where the pane is made for it.
const READY: usize = 7;
const AGE: usize = 6;
const STATUS: usize = 16;
/// Marks in front of a row.
const MARKS: usize = 2;

/// How many columns the list asks for, its border included. STATUS is no reason for a wider pane beside reconciles,
/// which have the room.
pub(super) fn asked(view: &ViewState, state: &State, status: bool) -> u16 {
    if view.resources.rows.is_empty() {
        return 46;
    }
    let all = state.started.as_ref().is_some_and(|started| started.all_namespaces);
    let needs = Needs::of(view, view.resources.namespaces_differ || (status && all));
    let namespace = if needs.namespace > 0 { needs.namespace + 1 } else { 0 };
    let status = if status { STATUS + 1 } else { 0 };
    let cells = MARKS + needs.kind + 1 + namespace + needs.name + 1 + status + READY + 1 + AGE;
    u16::try_from(cells + 2).unwrap_or(u16::MAX)
}

/// The columns that fit: as wide as what stands in them. AGE and STATUS give way first, then the printer columns; kind
/// and name are cut last.
fn slots(
    view: &ViewState,
    state: &State,
    cells: usize,
    printer: Vec<(PrinterColumn, usize)>,
    status: usize,
) -> Vec<Slot> {
    let all = cells >= 70 && state.started.as_ref().is_some_and(|started| started.all_namespaces);
    let needs = Needs::of(view, view.resources.namespaces_differ || all);
    let namespace = if needs.namespace > 0 { needs.namespace + 1 } else { 0 };
    let fixed = MARKS + 1 + namespace + 1 + READY;
    let base = fixed + needs.kind + needs.name;
    let asked: usize = printer.iter().map(|(_, size)| size + 1).sum();
    // The kind's own columns say more than the word.
    let ways = [(status, AGE), (status, 0), (0, AGE), (0, 0)];
    let fits = |(status, age): &(usize, usize)| {
        let more = |size: usize| if size > 0 { size + 1 } else { 0 };
        base + asked + more(*status) + more(*age) <= cells
    };
    let preferred = if asked > 0 { [ways[0], ways[2], ways[1], ways[3]] } else { ways };
    let (status, age) = preferred.into_iter().find(fits).unwrap_or((0, 0));
    let tail = if status > 0 { status + 1 } else { 0 } + if age > 0 { age + 1 } else { 0 };
    let mut room = cells.saturating_sub(fixed + tail);
    let kind = if base + tail <= cells { needs.kind } else { needs.kind.min((room * 2 / 5).max(8)) };
    let name = needs.name.min(room.saturating_sub(kind)).max(1);
    room = room.saturating_sub(kind + name);
    let mut slots = vec![Slot { column: Column::Kind, size: kind }];
    if namespace > 0 {
        slots.push(Slot { column: Column::Namespace, size: namespace - 1 });
    }
    slots.push(Slot { column: Column::Name, size: name });
    for (column, size) in printer {
        let given = (size + 1).min(room);
        room -= given;
        if given >= 4 {
            slots.push(Slot { column: Column::Printer(column), size: given - 1 });
        }
    }
    for (column, size) in [(Column::Status, status), (Column::Ready, READY), (Column::Age, age)] {
        if size > 0 {
            slots.push(Slot { column, size });
        }
    }
    slots
}

/// The sign, the word and the role of a row.
fn look(state: &State, seen: &Seen, info: &tree::Row) -> (&'static str, String, Role) {
    if state.gone_at(&seen.key).is_some() {
        return ("†", "deleted".to_owned(), Role::Dim);
    }
    if let Some(finding) = state.findings.of(&seen.key) {
        return (findings::sign(finding), finding.short(), findings::role(finding));
    }
    let (symbol, role) = sign(info.level);
    let symbol = if info.running && info.level != Level::Bad { "⟳" } else { symbol };
    let paused = state.paused(&seen.key).is_some() && !info.running;
    let loops = state.loops.contains_key(&seen.key);
    let role = if (paused || loops) && info.level != Level::Bad { Role::Busy } else { role };
    match (paused, loops) {
        (true, true) => ("‖", "loops".to_owned(), role),
        (true, false) => ("‖", "paused".to_owned(), role),
        (false, true) => ("↻", "loops".to_owned(), role),
        (false, false) => (symbol, info.word.clone(), role),
    }
}

/// The custom resources.
pub(super) fn draw(state: &State, view: &mut ViewState, buffer: &mut Buffer, area: Rect, now: Timestamp) {
    if view.resources.rows.is_empty() {
        let rows = empty(state, view, area);
        return put(&rows, view, buffer, area);
    }
    let cells = area.width as usize;
    let list = Rect { y: area.y + 1, height: area.height.saturating_sub(1), ..area };
    let height = (list.height as usize).max(1);
    view.screen.heights[Pane::Resources.index()] = height;
    let window = view.resources.selection.window(view.resources.rows.len(), height);
    let visible: Vec<Arc<Seen>> = view.resources.rows[window.clone()].to_vec();
    let infos: Vec<tree::Row> = visible.iter().map(|seen| view.row(state, seen)).collect();
    let looks: Vec<_> = visible.iter().zip(&infos).map(|(seen, info)| look(state, seen, info)).collect();
    let status = looks.iter().map(|(_, word, _)| width(word)).max().unwrap_or(0).clamp(7, STATUS + 4);
    let printer = printer_columns(view, state).into_iter().map(|column| {
        let text = |seen: &Arc<Seen>| width(&columns::text(&seen.object, &column.path, now, column.date));
        let size = visible.iter().map(text).max().unwrap_or(0).max(width(&column.name) + 1).min(24);
        (column, size)
    });
    let slots = slots(view, state, cells, printer.collect(), status);
    view.resources.namespace_shown = slots.iter().any(|slot| slot.column == Column::Namespace);
    headings(view, &slots, buffer, area);
    let size_of =
        |column: &Column| slots.iter().find(|slot| slot.column == *column).map_or(0, |slot| slot.size);
    let kinds: Vec<&str> = visible.iter().map(|seen| seen.key.kind.as_str()).collect();
    let names: Vec<&str> = visible.iter().map(|seen| seen.key.name.as_str()).collect();
    let kinds = cut_apart(&kinds, size_of(&Column::Kind));
    let names = cut_apart(&names, size_of(&Column::Name));
    for ((line, i), seen) in window.enumerate().take(list.height as usize).zip(&visible) {
        let selected = i == view.resources.selection.index;
        let (symbol, word, role) = &looks[line];
        let gone = *symbol == "†";
        let ready = infos[line].ready.filter(|_| !gone);
        let ready = ready.map_or_else(String::new, |(ready, wanted)| format!(" {ready}/{wanted}"));
        let own = if gone { Role::Dim } else { Role::Text };
        let mut row = Row::new(own, format!("{}{}", mark(selected), star(view, &seen.key)));
        for (at, slot) in slots.iter().enumerate() {
            let (role, text) = match &slot.column {
                Column::Kind => (own, kinds[line].clone()),
                Column::Namespace => (own, seen.key.namespace.clone().unwrap_or_default()),
                Column::Name => (own, names[line].clone()),
                Column::Printer(c) => (own, columns::text(&seen.object, &c.path, now, c.date)),
                Column::Status => (*role, word.clone()),
                Column::Ready => (*role, format!("{symbol}{ready}")),
                Column::Age => (Role::Dim, age(view, seen.created, now)),
            };
            let gap = if at > 0 { " " } else { "" };
            row = row.and(role, format!("{gap}{}", slot.fit(&text)));
        }
        let at = (list.x, list.y + line as u16);
        row.draw(buffer, view.look.theme, at, cells, selected && view.focus == Pane::Resources);
    }
}

/// The headings, with a mark at the one that the rows are sorted by.
fn headings(view: &mut ViewState, slots: &[Slot], buffer: &mut Buffer, area: Rect) {
    let mut text = " ".repeat(MARKS);
    for (at, slot) in slots.iter().enumerate() {
        let name = match &slot.column {
            Column::Kind => "KIND".to_owned(),
            Column::Namespace => "NAMESPACE".to_owned(),
            Column::Name => "NAME".to_owned(),
            Column::Printer(column) => column.name.to_uppercase(),
            Column::Status => "STATUS".to_owned(),
            Column::Ready => "READY".to_owned(),
            Column::Age => "AGE".to_owned(),
        };
        let sort = &view.resources.sort;
        let is_default = sort.by == Column::Kind && !sort.down;
        let mark = match (sort.by == slot.column && !is_default, sort.down) {
            (false, _) => "",
            (true, false) => "↑",
            (true, true) => "↓",
        };
        if at > 0 {
            text.push(' ');
        }
        let from = area.x + width(&text) as u16;
        text.push_str(&slot.fit(&format!("{name}{mark}")));
        let to = area.x + width(&text) as u16;
        view.screen.spots.headings.push(Spot { y: area.y, from, to, what: slot.column.clone() });
    }
    put(&[Row::new(Role::Dim, text)], view, buffer, area);
}

/// The first start explains itself.
fn empty(state: &State, view: &ViewState, area: Rect) -> Vec<Row> {
    let key = |does| view.keys.map.keys(does).first().map(ToString::to_string).unwrap_or_default();
    if state.objects.custom_len() > 0 {
        let mut why = Vec::new();
        if !view.filter(Pane::Resources).is_empty() {
            why.push("passes the filter (esc clears it)".to_owned());
        }
        if let Some(namespace) = &view.namespace {
            why.push(format!(
                "is in the namespace {namespace} ({} shows all)",
                key(Do::Seek(Seek::Namespace))
            ));
        }
        if view.resources.faults {
            why.push(format!("has a fault ({} shows all)", key(Do::Seek(Seek::Faults))));
        }
        return words_of(&[format!("No custom resource {}.", why.join(" and "))], area);
    }
    if state.started.is_none() {
        return words_of(&["Starting. Custom resources of the project's kinds show here.".to_owned()], area);
    }
    if state.reload.live.is_none() {
        let text = match state.trust {
            Some(_) => format!("The project waits for your word: {} shows what it wants.", key(Do::Held)),
            None => "The project is being read.".to_owned(),
        };
        return words_of(&[text], area);
    }
    if state.kinds().is_empty() {
        let text = "No kinds yet. Name a kind and its chart in watches.yaml; opdev takes it in as you save.";
        return words_of(&[text.to_owned()], area);
    }
    let kinds = state.kinds().iter().map(|kind| kind.gvk.kind.as_str()).collect::<Vec<_>>().join(", ");
    let mut rows = words_of(&[format!("No {kinds} yet.")], area);
    let samples = state.samples();
    if samples.is_empty() {
        let text = format!(
            "Press {} to write one, {} to apply a file, or put one into samples/.",
            key(Do::New),
            key(Do::Apply)
        );
        rows.extend(words_of(&[text], area));
    } else {
        let key = key(Do::Apply);
        rows.push(Row::new(Role::Text, " Press ").and(Role::Key, key).and(Role::Text, " to apply a sample:"));
        for sample in samples {
            let what = format!("   {} {}  ", sample.kind_among(samples), sample.object.name);
            // The end of a path says which file it is.
            let room = (area.width as usize).saturating_sub(width(&what));
            let path = if room < LEAST_OF_PATH { String::new() } else { cut_front(&sample.path, room) };
            rows.push(Row::new(Role::Text, what).and(Role::Dim, path));
        }
    }
    for kind in state.kinds() {
        if let KindHealth::Disabled { problem } = &kind.health {
            let text = format!(" ⚠ {} is disabled: {}", kind.gvk.kind, words::diagnostic(problem));
            rows.push(Row::new(Role::Bad, cut(&text, 400)));
        }
    }
    if let Some(kubeconfig) = state.started.as_ref().and_then(|started| started.kubeconfig.as_ref()) {
        rows.push(Row::default());
        rows.extend(words_of(&[format!("kubectl beside opdev: export KUBECONFIG={kubeconfig}")], area));
    }
    rows
}
