//! The lists of owned objects and of reconciles. Each draws only its visible window, and an empty one says what will
//! fill it. That of the custom resources is in `resources`.

use super::super::text::{Row, cut, cut_apart, left, right, width, wrap};
use super::super::theme::Role;
use super::super::view::ViewState;
use super::super::waterfall;
use crate::event::{FindingSeverity, Outcome, Reconcile, ReconcileStarted, words};
use crate::state::State;
use crate::state::health::Level;
use crate::state::tree::Node;
use crate::tui::detail::parts::clock;
use crate::tui::draw::pieces::age;
use crate::tui::looks::{PassRow, only_retries};
use crate::tui::pane::Pane;
use jiff::Timestamp;
use opdev_object::meta::{ObjectKey, ObjectRef};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use std::sync::Arc;

/// The symbol and the role of a level.
pub(super) fn sign(level: Level) -> (&'static str, Role) {
    match level {
        Level::Plain => ("○", Role::Dim),
        Level::Done => ("✓", Role::Good),
        Level::Good => ("●", Role::Good),
        Level::Busy => ("◐", Role::Busy),
        Level::Bad => ("⚠", Role::Bad),
    }
}

pub(super) fn put(rows: &[Row], view: &ViewState, buffer: &mut Buffer, area: Rect) {
    for (i, row) in rows.iter().take(area.height as usize).enumerate() {
        row.draw(buffer, view.look.theme, (area.x, area.y + i as u16), area.width as usize, false);
    }
}

/// A paragraph for an empty pane; an empty text makes an empty line.
pub(super) fn words_of(texts: &[String], area: Rect) -> Vec<Row> {
    let lines = texts.iter().flat_map(|text| wrap(text, (area.width as usize).saturating_sub(2)));
    lines.map(|line| Row::new(Role::Dim, format!(" {line}"))).collect()
}

/// The mark in front of a row: the selection, also without colours and focus.
pub(super) fn mark(selected: bool) -> &'static str {
    if selected { "▸" } else { " " }
}

/// The mark of a row that the user has marked.
pub(super) fn star(view: &ViewState, key: &ObjectKey) -> &'static str {
    if view.marks.has(key) { "*" } else { " " }
}

/// The owned objects as a tree.
pub(super) fn owned(state: &State, view: &mut ViewState, buffer: &mut Buffer, area: Rect, now: Timestamp) {
    let root = view.root(state).cloned();
    let fault = root.and_then(|root| view.row(state, &root).fault);
    let mut list = area;
    if let Some(fault) = fault.filter(|_| area.height > 2) {
        let lines = wrap(&words::one_line(&fault), (area.width as usize).saturating_sub(4));
        let most = if area.height > 8 { 2 } else { 1 };
        let cut_off = lines.len() > most;
        let rows: Vec<Row> = lines
            .into_iter()
            .take(most)
            .enumerate()
            .map(|(i, text)| {
                let text = if cut_off && i + 1 == most { format!("{text} …") } else { text };
                Row::new(Role::Bad, format!(" {} {text}", if i == 0 { "⚠" } else { " " }))
            })
            .collect();
        put(&rows, view, buffer, area);
        list = Rect { y: area.y + rows.len() as u16, height: area.height - rows.len() as u16, ..area };
    }
    view.screen.heights[Pane::Owned.index()] = (list.height as usize).max(1);
    if view.owned.nodes.is_empty() {
        let text = match view.root(state) {
            _ if !view.filter(Pane::Owned).is_empty() => "No owned object passes the filter. esc clears it.",
            Some(_) => "Nothing is owned yet. What a reconcile creates shows here, with its pods.",
            None => "What the selected custom resource owns shows here.",
        };
        return put(&words_of(&[text.to_owned()], list), view, buffer, list);
    }
    let window = view.owned.selection.window(view.owned.nodes.len(), list.height as usize);
    for (line, i) in window.enumerate().take(list.height as usize) {
        let node = view.owned.nodes[i].clone();
        let selected = i == view.owned.selection.index;
        let row = node_row(&node, selected, view, list.width as usize, now);
        let at = (list.x, list.y + line as u16);
        row.draw(buffer, view.look.theme, at, list.width as usize, selected && view.focus == Pane::Owned);
    }
}

fn node_row(node: &Node, selected: bool, view: &mut ViewState, cells: usize, now: Timestamp) -> Row {
    let mut branch = String::new();
    if let Some((own, above)) = node.more.split_last()
        && !above.is_empty()
    {
        branch.extend(above[1..].iter().map(|more| if *more { "│ " } else { "  " }));
        branch.push_str(if *own { "├─" } else { "└─" });
    }
    let (symbol, role) = if node.gone.is_some() { ("†", Role::Dim) } else { sign(node.seen.health.level) };
    let older = if node.older > 0 { format!(" (+{} older)", node.older) } else { String::new() };
    let age = match node.gone {
        Some(at) => format!("deleted {}", clock(at, &view.look.zone)),
        None => age(view, node.seen.created, now),
    };
    let word = if node.gone.is_some() { String::new() } else { words::one_line(&node.seen.health.word) };
    let word_room = (cells / 3).clamp(8, 28);
    let counts = if node.gone.is_some() { String::new() } else { node.seen.health.counts() };
    let tail = [cut(&word, word_room), counts.clone(), age.clone()];
    let tail_text = tail.iter().filter(|text| !text.is_empty()).cloned().collect::<Vec<_>>().join(" ");
    let head = width(&branch) + 4;
    let room = cells.saturating_sub(head + width(&tail_text) + 1);
    let name = if node.seen.key.name.starts_with("sh.helm.release.v1.") && room < 40 {
        node.seen.key.name.replacen("sh.helm.release.v1.", "…", 1)
    } else {
        node.seen.key.name.clone()
    };
    let label = format!("{} {name}{older}", node.seen.key.kind);
    let label = if width(&label) > room { shorten(&node.seen.key.kind, &name, &older, room) } else { label };
    let row = Row::new(Role::Text, format!("{}{}", mark(selected), star(view, &node.seen.key)))
        .and(Role::Dim, branch)
        .and(role, format!("{symbol} "));
    let row = row.and(Role::Text, format!("{} ", left(&label, room)));
    let mut row = row;
    if !word.is_empty() {
        row = row
            .and(role, cut(&word, word_room))
            .and(Role::Text, if counts.is_empty() && age.is_empty() { "" } else { " " });
    }
    if !counts.is_empty() {
        row = row.and(role, counts).and(Role::Text, if age.is_empty() { "" } else { " " });
    }
    row.and(Role::Dim, age)
}

/// The kind and the end of the name: generated names differ at the end.
fn shorten(kind: &str, name: &str, older: &str, room: usize) -> String {
    let rest = room.saturating_sub(width(kind) + width(older) + 1);
    if rest < 6 {
        return cut(&format!("{kind} {name}{older}"), room);
    }
    format!("{kind} {}{older}", super::cut_front(name, rest))
}

/// The reconciles, newest first, with the ones under way on top.
pub(super) fn reconciles(state: &State, view: &mut ViewState, buffer: &mut Buffer, area: Rect) {
    let root = view.root(state).map(|root| Arc::clone(&root.key));
    let all = view.all || root.is_none();
    let running: Vec<Arc<ReconcileStarted>> = match &root {
        Some(root) if !all => state.running.get(root.as_ref()).into_iter().cloned().collect(),
        _ => state.running.values().take(3).cloned().collect(),
    };
    if view.passes.list.is_empty() && running.is_empty() {
        let text = if view.filter(Pane::Reconciles).is_empty() && state.history.forgotten() > 0 {
            "No reconcile is kept. Older ones are forgotten; :memory says why."
        } else if view.filter(Pane::Reconciles).is_empty() {
            "No reconcile yet. Each one shows here with its causes: a created or changed custom resource, a changed child, a saved file, the period, a key."
        } else {
            "No reconcile passes the filter. esc clears it."
        };
        return put(&words_of(&[text.to_owned()], area), view, buffer, area);
    }
    let cells = area.width as usize;
    let top = 1 + running.len().min((area.height as usize).saturating_sub(2)) as u16;
    let height = (area.height.saturating_sub(top) as usize).max(1);
    view.screen.heights[Pane::Reconciles.index()] = height;
    let window = view.passes.selection.window(view.passes.rows.len(), height);
    let columns = PassColumns::of(state, view, all, (&running, window.clone()), cells);
    let heading = columns.row(["TIME", "OBJECT", "CAUSES", "RESULT", "TOOK", "CHANGED"].map(str::to_owned));
    put(&[Row::new(Role::Dim, format!("  {}", heading.concat()))], view, buffer, area);
    let mut y = area.y + 1;
    for pass in running.iter().take((area.height as usize).saturating_sub(2)) {
        let causes = words::causes_of(&pass.object, &pass.causes);
        let time = clock(pass.at, &view.look.zone);
        let cells_of = [
            time,
            columns.called(&pass.object),
            causes,
            "⟳ running".to_owned(),
            String::new(),
            String::new(),
        ];
        let text = columns.row(cells_of).concat();
        Row::new(Role::Busy, format!("  {text}")).draw(buffer, view.look.theme, (area.x, y), cells, false);
        y += 1;
    }
    for i in window {
        if y >= area.bottom() {
            break;
        }
        let PassRow { pass, line, times, .. } = view.passes.rows[i];
        let pass = &view.passes.list[pass];
        let selected = i == view.passes.selection.index;
        let focused = selected && view.focus == Pane::Reconciles;
        if let Some(line) = line {
            let mut row = Row::new(Role::Text, mark(selected));
            row.0.extend(waterfall::row(line, pass, &view.look.zone, cells.saturating_sub(1)).0);
            row.draw(buffer, view.look.theme, (area.x, y), cells, focused);
            y += 1;
            continue;
        }
        let fold = if view.passes.open.contains(&pass.id) { "▾" } else { " " };
        let took = words::took(pass.took).replace(' ', "");
        let (mut symbol, mut role) = result(pass);
        let mut word = words::result(pass).to_owned();
        let found = state.findings.shown_by(pass).filter(|found| found.severity != FindingSeverity::Hint);
        if let Some(found) = found {
            (symbol, role) = (if found.severity == FindingSeverity::Error { "✗ " } else { "⚠ " }, Role::Busy);
            if found.severity == FindingSeverity::Error {
                role = Role::Bad;
            }
            if found.storm {
                word = found.per_second.map_or_else(|| "storm".to_owned(), |rate| format!("{rate}/s"));
            }
        }
        let why = if times > 1 { format!("×{times} {}", why(pass)) } else { why(pass) };
        let [time, what, why, result, took, changed] = columns.row([
            clock(pass.at, &view.look.zone),
            columns.called(&pass.object),
            why,
            format!("{symbol}{word}"),
            took,
            words::counts(pass),
        ]);
        let row = Row::new(Role::Text, format!("{}{fold}{time}{what}{why}", mark(selected)))
            .and(role, result)
            .and(Role::Text, format!("{took}{changed}"));
        row.draw(buffer, view.look.theme, (area.x, y), cells, focused);
        y += 1;
    }
    let forgotten = state.history.forgotten();
    if forgotten > 0 && y < area.bottom() {
        let text = format!("  {forgotten} older ones of all objects are forgotten; :memory says why");
        Row::new(Role::Dim, text).draw(buffer, view.look.theme, (area.x, y), cells, false);
    }
}

/// The columns of the reconciles that fit; 0 leaves one out. CHANGED and TOOK give way first, then TIME.
struct PassColumns {
    time: usize,
    object: usize,
    causes: usize,
    took: usize,
    changed: usize,
    /// Whether an object is called by its kind, and by its namespace.
    kind: bool,
    namespace: bool,
}

impl PassColumns {
    fn of(
        state: &State,
        view: &ViewState,
        all: bool,
        (running, window): (&[Arc<ReconcileStarted>], std::ops::Range<usize>),
        cells: usize,
    ) -> Self {
        let namespace = view.resources.namespaces_differ;
        let mut columns = PassColumns {
            time: 9,
            object: 0,
            causes: 0,
            took: 7,
            changed: 9,
            kind: state.kinds().len() > 1,
            namespace,
        };
        if all {
            let shown = window.map(|row| &view.passes.list[view.passes.rows[row].pass].object);
            let objects = shown.chain(running.iter().map(|pass| &pass.object));
            let longest = objects.map(|object| width(&columns.called(object))).max().unwrap_or(0).max(6);
            columns.object = longest.min((cells / 3).max(8)) + 1;
        }
        let rest = |columns: &PassColumns| {
            let taken = 2 + columns.time + columns.object + 12 + columns.took + columns.changed;
            cells.saturating_sub(taken)
        };
        if rest(&columns) < 26 {
            columns.changed = 0;
        }
        if rest(&columns) < 22 {
            columns.took = 0;
        }
        if rest(&columns) < 12 {
            columns.time = 0;
        }
        columns.causes = rest(&columns);
        columns
    }

    /// An object as it is called in this list: by what tells it from the others.
    fn called(&self, object: &ObjectRef) -> String {
        let namespace = object.namespace.as_ref().filter(|_| self.namespace);
        let name = namespace.map_or_else(|| object.name.clone(), |space| format!("{space}/{}", object.name));
        if self.kind { format!("{} {name}", object.gvk.kind) } else { name }
    }

    /// One row, cell by cell: time, object, causes, result, took, changed.
    fn row(&self, [time, object, causes, result, took, changed]: [String; 6]) -> [String; 6] {
        let cell = |text: &str, size: usize| match size {
            0 => String::new(),
            size => format!("{} ", left(text, size - 1)),
        };
        let object = match self.object {
            0 => String::new(),
            // The ends of names tell them apart.
            size => cell(&cut_apart(&[object.as_str()], size - 1).concat(), size),
        };
        [
            cell(&time, self.time),
            object,
            left(&causes, self.causes),
            format!(" {}", left(&result, 11)),
            if self.took > 0 { format!("{} ", right(&took, self.took - 1)) } else { String::new() },
            if self.changed > 0 { left(&format!(" {changed}"), self.changed) } else { String::new() },
        ]
    }
}

/// The causes; of a failed pass the error, too.
fn why(pass: &Reconcile) -> String {
    let causes = match only_retries(pass) && pass.failure.is_some() {
        // The error of the pass before stands behind it already.
        true => "retry".to_owned(),
        false => words::causes_of_pass(pass),
    };
    let error = pass.failure.as_ref().and_then(|failure| {
        let place = failure.diagnostic.as_ref().map(words::diagnostic);
        place.or_else(|| failure.chain.last().cloned())
    });
    if let (Outcome::Waiting, Some(words)) = (pass.outcome, &pass.waiting) {
        return format!("{causes} … {}", words::one_line(words));
    }
    match error {
        Some(error) if pass.outcome == Outcome::Failed => format!("{causes} ✗ {}", words::one_line(&error)),
        _ => causes,
    }
}

fn result(pass: &Reconcile) -> (&'static str, Role) {
    match pass.outcome {
        Outcome::Failed => ("✗ ", Role::Bad),
        Outcome::Installed | Outcome::Upgraded | Outcome::Applied | Outcome::Repaired => ("", Role::Good),
        Outcome::Waiting => ("", Role::Busy),
        Outcome::Unchanged | Outcome::Gone => ("", Role::Dim),
        Outcome::Uninstalled => ("", Role::Text),
    }
}
