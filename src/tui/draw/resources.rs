//! The list of the custom resources: only its visible window, with the columns that fit. An empty one says what will
//! fill it.

use super::super::action::Do;
use super::super::table::Column;
use super::super::text::{Row, cut, left, right, width};
use super::super::theme::Role;
use super::super::view::ViewState;
use super::lists::{mark, put, sign, star, words_of};
use crate::event::{KindHealth, PrinterColumn, words};
use crate::state::health::Level;
use crate::state::{Seen, State, columns};
use crate::tui::action::Seek;
use crate::tui::draw::pieces::age;
use crate::tui::pane::Pane;
use jiff::Timestamp;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use std::sync::Arc;

/// How wide each column is; 0 leaves it out.
struct Widths {
    kind: usize,
    namespace: usize,
    name: usize,
    status: usize,
    printer: Vec<usize>,
}

/// One row as text.
struct Cells {
    kind: String,
    namespace: String,
    name: String,
    printer: Vec<String>,
    status: String,
    ready: String,
    age: String,
}

/// The columns that the list shows, in their order.
pub(in crate::tui) fn shown_columns(view: &ViewState, state: &State) -> Vec<Column> {
    let mut all = vec![Column::Kind];
    if view.lists.namespaces_differ || view.namespace_shown {
        all.push(Column::Namespace);
    }
    all.push(Column::Name);
    all.extend(printer_columns(view, state).into_iter().map(Column::Printer));
    all.extend([Column::Status, Column::Ready, Column::Age]);
    all
}

/// The printer columns of the selected kind, where they are wanted.
fn printer_columns(view: &ViewState, state: &State) -> Vec<PrinterColumn> {
    let kind = view.root(state).filter(|_| view.wide).and_then(|root| {
        state.kinds().iter().find(|kind| kind.gvk.group == root.key.group && kind.gvk.kind == root.key.kind)
    });
    kind.map(|kind| kind.columns.clone()).unwrap_or_default()
}

impl Widths {
    fn line(&self, of: &Cells) -> (String, String, String) {
        let mut front = format!("{} ", left(&of.kind, self.kind));
        if self.namespace > 0 {
            front.push_str(&format!("{} ", left(&of.namespace, self.namespace)));
        }
        front.push_str(&left(&of.name, self.name));
        for (text, cells) in of.printer.iter().zip(&self.printer) {
            front.push_str(&format!(" {}", left(text, *cells)));
        }
        let status =
            if self.status > 0 { format!(" {}", left(&of.status, self.status - 1)) } else { String::new() };
        (front, format!("{status} {}", right(&of.ready, 7)), right(&of.age, 6))
    }
}

/// Columns are as wide as what stands in them, so that names get the room; a sample of rows is enough to tell.
fn widths(
    view: &ViewState,
    state: &State,
    cells: usize,
    printer: &[PrinterColumn],
    window: &[Arc<Seen>],
    now: Timestamp,
) -> Widths {
    let wide = cells >= 70;
    let longest = |of: &dyn Fn(&Seen) -> usize, head: usize| {
        view.lists.resources.iter().take(500).map(|seen| of(seen)).max().unwrap_or(0).max(head)
    };
    let all = view.lists.namespaces_differ
        || wide && state.started.as_ref().is_some_and(|started| started.all_namespaces);
    // A mark behind the heading takes room, too.
    let kind = longest(&|seen| width(&seen.key.kind), 5).min((cells * 23 / 100).clamp(8, 22));
    let namespace = if all {
        longest(&|seen| seen.key.namespace.as_deref().map_or(0, width), 10).min((cells / 6).clamp(6, 20))
    } else {
        0
    };
    let mut status = if wide { 16 } else { 0 };
    let used = |status: usize| 2 + kind + 1 + namespace + usize::from(all) + 8 + status + 7;
    let names = longest(&|seen| width(&seen.key.name), 10).min(cells / 3).max(12);
    let mut sizes: Vec<usize> = printer
        .iter()
        .map(|column| {
            let text = |seen: &Arc<Seen>| width(&columns::text(&seen.object, &column.path, now, column.date));
            window.iter().map(text).max().unwrap_or(0).max(width(&column.name) + 1).min(24)
        })
        .collect();
    let asked: usize = sizes.iter().map(|size| size + 1).sum();
    if asked > 0 && used(status) + asked + names > cells {
        // The kind's own columns say more than the word.
        status = 0;
    }
    let mut room = cells.saturating_sub(used(status) + names);
    for size in &mut sizes {
        let given = (*size + 1).min(room);
        room -= given;
        *size = given.saturating_sub(1);
    }
    sizes.retain(|size| *size >= 3);
    let taken: usize = sizes.iter().map(|size| size + 1).sum();
    Widths { kind, namespace, name: cells.saturating_sub(used(status) + taken), status, printer: sizes }
}

/// The custom resources.
pub(super) fn draw(state: &State, view: &mut ViewState, buffer: &mut Buffer, area: Rect, now: Timestamp) {
    if view.lists.resources.is_empty() {
        let rows = empty(state, view, area);
        return put(&rows, view, buffer, area);
    }
    let cells = area.width as usize;
    let list = Rect { y: area.y + 1, height: area.height.saturating_sub(1), ..area };
    let height = (list.height as usize).max(1);
    view.heights[Pane::Resources.index()] = height;
    let window = view.resources.window(view.lists.resources.len(), height);
    let visible: Vec<Arc<Seen>> = view.lists.resources[window.clone()].to_vec();
    let mut printer = printer_columns(view, state);
    let widths = widths(view, state, cells, &printer, &visible, now);
    printer.truncate(widths.printer.len());
    view.namespace_shown = widths.namespace > 0;
    put(&[Row::new(Role::Dim, headings(view, &widths, &printer))], view, buffer, area);
    for ((line, i), seen) in window.enumerate().take(list.height as usize).zip(&visible) {
        let info = view.row(state, seen);
        let selected = i == view.resources.index;
        let (symbol, role) = sign(info.level);
        let symbol = if info.running && info.level != Level::Bad { "⟳" } else { symbol };
        let paused = state.paused(&seen.key).is_some() && !info.running;
        let loops = state.loops.contains_key(&seen.key);
        let (symbol, word) = match (paused, loops) {
            (true, true) => ("‖", "loops".to_owned()),
            (true, false) => ("‖", "paused".to_owned()),
            (false, true) => ("↻", "loops".to_owned()),
            (false, false) => (symbol, info.word),
        };
        let role = if (paused || loops) && info.level != Level::Bad { Role::Busy } else { role };
        let gone = state.gone_at(&seen.key).is_some();
        let (symbol, word, role) =
            if gone { ("†", "deleted".to_owned(), Role::Dim) } else { (symbol, word, role) };
        let ready = info.ready.filter(|_| !gone);
        let ready = ready.map_or_else(String::new, |(ready, wanted)| format!(" {ready}/{wanted}"));
        let of = Cells {
            kind: seen.key.kind.clone(),
            namespace: seen.key.namespace.clone().unwrap_or_default(),
            name: seen.key.name.clone(),
            printer: printer.iter().map(|c| columns::text(&seen.object, &c.path, now, c.date)).collect(),
            status: word,
            ready: format!("{symbol}{ready}"),
            age: age(view, seen.created, now),
        };
        let (front, tail, age) = widths.line(&of);
        let name = if gone { Role::Dim } else { Role::Text };
        let row = Row::new(name, format!("{}{}{front}", mark(selected), star(view, &seen.key)))
            .and(role, tail)
            .and(Role::Dim, format!(" {age}"));
        let at = (list.x, list.y + line as u16);
        row.draw(buffer, view.theme, at, cells, selected && view.focus == Pane::Resources);
    }
}

/// The headings, with a mark at the one that the rows are sorted by.
fn headings(view: &ViewState, widths: &Widths, printer: &[PrinterColumn]) -> String {
    let head = |column: &Column, text: &str| {
        let sort = &view.sort;
        let is_default = sort.by == Column::Kind && !sort.down;
        let mark = match (sort.by == *column && !is_default, sort.down) {
            (false, _) => "",
            (true, false) => "↑",
            (true, true) => "↓",
        };
        format!("{text}{mark}")
    };
    let printer = printer.iter().map(|c| head(&Column::Printer(c.clone()), &c.name.to_uppercase()));
    let (front, tail, age) = widths.line(&Cells {
        kind: head(&Column::Kind, "KIND"),
        namespace: head(&Column::Namespace, "NAMESPACE"),
        name: head(&Column::Name, "NAME"),
        printer: printer.collect(),
        status: head(&Column::Status, "STATUS"),
        ready: head(&Column::Ready, "READY"),
        age: head(&Column::Age, "AGE"),
    });
    format!("  {front}{tail} {age}")
}

/// The first start explains itself.
fn empty(state: &State, view: &ViewState, area: Rect) -> Vec<Row> {
    let key = |does| view.keymap.keys(does).first().map(ToString::to_string).unwrap_or_default();
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
        if view.faults {
            why.push(format!("has a fault ({} shows all)", key(Do::Seek(Seek::Faults))));
        }
        return words_of(&[format!("No custom resource {}.", why.join(" and "))], area);
    }
    if state.started.is_none() {
        return words_of(&["Starting. Custom resources of the project's kinds show here.".to_owned()], area);
    }
    if state.reload.live.is_none() {
        return words_of(&["The project is being read.".to_owned()], area);
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
            let what = format!("{} {}", sample.object.gvk.kind, sample.object.name);
            rows.push(Row::new(Role::Text, format!("   {what}  ")).and(Role::Dim, sample.path.clone()));
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
