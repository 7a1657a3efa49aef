//! The list of the custom resources: only its visible window, with the columns that fit. An empty one says
//! what will fill it.

use super::super::view::ViewState;
use super::columns::printer_columns;
use super::found;
use super::lists::{mark, put, sign, star, words_of};
use crate::draw::pieces::{age, below};
use jiff::Timestamp;
use opdev_event::{KindHealth, PrinterColumn, TroubleKind, words};
use opdev_panes::click_targets::Spot;
use opdev_panes::finding_sign;
use opdev_panes::keys::action::Do;
use opdev_panes::keys::action::Seek;
use opdev_panes::lists::table::Column;
use opdev_panes::pane::Pane;
use opdev_panes::text::{Row, cut, cut_apart, cut_path, left, right, width};
use opdev_panes::theme::Role;
use opdev_state::health::Level;
use opdev_state::{Seen, State, columns, tree};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use std::sync::Arc;

/// Less of a path says nothing.
const LEAST_OF_PATH: usize = 8;

/// A column that is shown, and how wide it is.
struct ResourceColumn {
    column: Column,
    size: usize,
}

impl ResourceColumn {
    fn fit(&self, text: &str) -> String {
        match self.column {
            Column::Ready | Column::Age => right(text, self.size),
            Column::Kind | Column::Namespace | Column::Name | Column::Status | Column::Printer(_) => {
                left(text, self.size)
            }
        }
    }
}

/// Widths that no row changes; what is left over goes to the names and to what is said of them.
const READY: usize = 5;
const AGE: usize = 4;
const LEAST_NAME: usize = 12;
/// A name and its status in fewer cells say nothing.
const WITH_STATUS: usize = 18;
const LEAST_STATUS: usize = 9;
const LEAST_NAMESPACE: usize = 9;
/// So much for a name and its status lets both be read: 16 and 13 cells, and a blank.
const WELL: usize = 30;
/// From this width on there is an age, and a blank before the border.
const WITH_AGE: usize = 54;
const WITH_MARGIN: usize = 60;
/// The selection, the star of a marked row, the sign, and the blanks between them.
pub(super) const SIGN: usize = 4;

/// The columns for this many cells. They follow the pane and the kinds of the project, never the rows. AGE
/// gives way first, then STATUS down to its least, NAMESPACE, KIND where there is but one; a kind is cut last
/// of all.
fn slots(
    view: &ViewState,
    state: &State,
    cells: usize,
    printer: Vec<(PrinterColumn, usize)>,
) -> Vec<ResourceColumn> {
    let kinds = state.kinds().iter().map(|kind| width(&kind.gvk.kind)).max();
    let mut kind = kinds.unwrap_or(view.resources.longest.kind).clamp(8, 16) + 1;
    let several = view.resources.namespaces_differ
        || state.started.as_ref().is_some_and(|started| started.all_namespaces && view.namespace.is_none());
    let mut namespace = if several { (cells / 6).clamp(LEAST_NAMESPACE, 20) + 1 } else { 0 };
    let mut age = if cells >= WITH_AGE { AGE + 1 } else { 0 };
    let least = LEAST_NAME + 1 + LEAST_STATUS;
    let room = |kind: usize, namespace: usize, age: usize| {
        let margin = usize::from(cells >= WITH_MARGIN || (age == 0 && cells >= WITH_AGE));
        cells.saturating_sub(SIGN + READY + 1 + margin + kind + namespace + age)
    };
    if room(kind, namespace, age) < least && namespace > 0 {
        namespace = LEAST_NAMESPACE + 1;
    }
    // A name and its status that can be read are worth more than an age.
    if room(kind, namespace, age) < WELL {
        age = 0;
    }
    if room(kind, namespace, age) < least {
        namespace = 0;
    }
    if room(kind, namespace, age) < least && state.kinds().len() == 1 {
        kind = 0;
    }
    if kind > 0 {
        let lacks = least.saturating_sub(room(kind, namespace, age));
        kind = kind.saturating_sub(lacks).max(kind.min(9));
    }
    // Where not both fit, the state of an object says more than its kind.
    if room(kind, namespace, age) < WITH_STATUS {
        kind = 0;
    }
    let mut rest = room(kind, namespace, age);
    let mut shown = Vec::new();
    for (column, size) in printer {
        let given = size.min(rest.saturating_sub(least + 1));
        if given >= 4 {
            rest -= given + 1;
            shown.push(ResourceColumn { column: Column::Printer(column), size: given });
        }
    }
    let (name, status) = divided(rest);
    let mut slots = Vec::new();
    let sized = [(Column::Kind, kind.saturating_sub(1)), (Column::Namespace, namespace.saturating_sub(1))];
    slots.extend(sized.into_iter().map(|(column, size)| ResourceColumn { column, size }));
    slots.push(ResourceColumn { column: Column::Name, size: name });
    slots.extend(shown);
    let sized = [(Column::Status, status), (Column::Ready, READY), (Column::Age, age.saturating_sub(1))];
    slots.extend(sized.into_iter().map(|(column, size)| ResourceColumn { column, size }));
    slots.retain(|slot| slot.size > 0);
    slots
}

/// How wide names and their status are, which share these cells and a blank between them. Most names have
/// less than 17 letters; what is said of an object can be longer.
fn divided(rest: usize) -> (usize, usize) {
    if rest < LEAST_NAME + 1 + LEAST_STATUS {
        let status = if rest >= WITH_STATUS { LEAST_STATUS } else { 0 };
        return (rest.saturating_sub(status + usize::from(status > 0)), status);
    }
    let mut extra = rest - 1 - LEAST_NAME - LEAST_STATUS;
    let mut take = |most: usize| {
        let taken = extra.min(most);
        extra -= taken;
        taken
    };
    let name = LEAST_NAME + take(4);
    let status = LEAST_STATUS + take(11);
    let shared = take(21);
    let (name, status) = (name + shared / 3, status + shared - shared / 3);
    let name = name + take(17);
    (name, status + extra)
}

/// The sign, the word and the role of a row; the word for so many cells.
fn look(state: &State, seen: &Seen, info: &tree::Row, cells: usize) -> (&'static str, String, Role) {
    if state.gone_at(&seen.key).is_some() {
        return ("○", "deleted".to_owned(), Role::Dim);
    }
    if let Some(finding) = state.findings.of(&seen.key) {
        return (finding_sign::sign(finding), finding.within(cells), finding_sign::role(finding));
    }
    let (symbol, role) = sign(info.level);
    let symbol = if info.running && info.level != Level::Bad { "↻" } else { symbol };
    let paused = state.paused(&seen.key).is_some() && !info.running;
    let loops = state.loops.contains_key(&seen.key);
    let (symbol, role) = match (info.level, paused, loops) {
        (Level::Bad, ..) | (_, false, false) => (symbol, role),
        (_, _, true) => ("⚠", Role::Busy),
        (_, true, false) => ("◐", Role::Busy),
    };
    let word = match (paused, loops) {
        (true, true) => "paused, loops".to_owned(),
        (true, false) => "paused".to_owned(),
        (false, true) => "loops".to_owned(),
        (false, false) => status(seen, info),
    };
    // The state that was seen last may be true no more.
    let lost = state.connection.as_ref().and_then(|told| told.trouble.as_ref());
    if lost.is_some_and(|trouble| trouble.kind == TroubleKind::Unreachable) {
        return (symbol, format!("was: {word}"), Role::Dim);
    }
    (symbol, word, role)
}

/// The word of a row for its object: its own, unless the fault lies elsewhere.
fn status(seen: &Seen, info: &tree::Row) -> String {
    let elsewhere =
        info.fault.as_deref().filter(|_| info.level == Level::Bad && seen.health.level != Level::Bad);
    let Some(fault) = elsewhere else { return words::one_line(&info.word) };
    let fault = words::one_line(fault);
    match fault.split_once(": ") {
        // The tree of what it owns names the object.
        Some((object, what)) if object.split(' ').count() == 2 => {
            format!("{}: {what}", object.split(' ').next().unwrap_or_default())
        }
        Some(_) | None => format!("failed: {fault}"),
    }
}

/// The custom resources.
pub(super) fn draw(state: &State, view: &mut ViewState, buffer: &mut Buffer, area: Rect, now: Timestamp) {
    if view.resources.rows.is_empty() {
        let mut rows = empty(state, view, area);
        if found::any(state) {
            rows.truncate((area.height.saturating_sub(found::LEAST) as usize).max(1));
        }
        put(&rows, view, buffer, area);
        return found::draw(state, view, buffer, below(area, rows.len()));
    }
    let cells = area.width as usize;
    let list = Rect { y: area.y + 1, height: area.height.saturating_sub(1), ..area };
    let height = (list.height as usize).max(1);
    view.screen.heights[Pane::Resources.index()] = height;
    let window = view.resources.selection.window(view.resources.rows.len(), height);
    let visible: Vec<Arc<Seen>> = view.resources.rows[window.clone()].to_vec();
    let infos: Vec<tree::Row> = visible.iter().map(|seen| view.row(state, seen)).collect();
    let printer = printer_columns(view, state).into_iter().map(|column| {
        let text = |seen: &Arc<Seen>| width(&columns::text(&seen.object, &column.path, now, column.date));
        let size = visible.iter().map(text).max().unwrap_or(0).max(width(&column.name) + 1).min(24);
        (column, size)
    });
    let slots = slots(view, state, cells, printer.collect());
    view.resources.namespace_shown = slots.iter().any(|slot| slot.column == Column::Namespace);
    headings(view, &slots, buffer, area);
    let size_of =
        |column: &Column| slots.iter().find(|slot| slot.column == *column).map_or(0, |slot| slot.size);
    let status = size_of(&Column::Status);
    let looks: Vec<_> =
        visible.iter().zip(&infos).map(|(seen, info)| look(state, seen, info, status)).collect();
    let kinds: Vec<&str> = visible.iter().map(|seen| seen.key.kind.as_str()).collect();
    let names = called(&visible, &slots);
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let kinds = cut_apart(&kinds, size_of(&Column::Kind));
    let names = cut_apart(&names, size_of(&Column::Name));
    for ((line, i), seen) in window.enumerate().take(list.height as usize).zip(&visible) {
        let selected = i == view.resources.selection.index;
        let (symbol, word, role) = &looks[line];
        let gone = state.gone_at(&seen.key).is_some();
        let ready = infos[line].ready.filter(|_| !gone);
        let ready = ready.map_or_else(String::new, |(ready, wanted)| format!("{ready}/{wanted}"));
        let own = if gone { Role::Dim } else { Role::Text };
        let mut row = Row::new(own, format!("{}{}", mark(selected), star(view, &seen.key)))
            .and(*role, format!("{symbol} "));
        for (at, slot) in slots.iter().enumerate() {
            let (role, text) = match &slot.column {
                Column::Kind => (own, kinds[line].clone()),
                Column::Namespace => (own, seen.key.namespace.clone().unwrap_or_default()),
                Column::Name => (own, names[line].clone()),
                Column::Printer(c) => (own, columns::text(&seen.object, &c.path, now, c.date)),
                Column::Status => (*role, word.clone()),
                Column::Ready => (own, ready.clone()),
                Column::Age => (Role::Dim, age(view, seen.created, now)),
            };
            let gap = if at > 0 { " " } else { "" };
            row = row.and(role, format!("{gap}{}", slot.fit(&text)));
        }
        let at = (list.x, list.y + line as u16);
        row.draw(buffer, view.look.theme, at, cells, selected && view.focus == Pane::Resources);
    }
    found::draw(state, view, buffer, below(list, visible.len()));
}

/// The names of rows, with the namespace where no column says it and two would read alike.
fn called(visible: &[Arc<Seen>], slots: &[ResourceColumn]) -> Vec<String> {
    let told = |column: &Column| slots.iter().any(|slot| slot.column == *column);
    let (kinds, namespaces) = (told(&Column::Kind), told(&Column::Namespace));
    let alike = |a: &Seen, b: &Seen| a.key.name == b.key.name && (!kinds || a.key.kind == b.key.kind);
    let name = |at: usize, seen: &Seen| {
        let twin = |(other, with): (usize, &Arc<Seen>)| other != at && alike(seen, with);
        match &seen.key.namespace {
            Some(space) if !namespaces && visible.iter().enumerate().any(twin) => {
                format!("{space}/{}", seen.key.name)
            }
            Some(_) | None => seen.key.name.clone(),
        }
    };
    visible.iter().enumerate().map(|(at, seen)| name(at, seen)).collect()
}

/// The headings, with a mark at the one that the rows are sorted by.
fn headings(view: &mut ViewState, slots: &[ResourceColumn], buffer: &mut Buffer, area: Rect) {
    let mut text = " ".repeat(SIGN);
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
            Some(_) => format!("The project needs your answer: {} shows what it wants.", key(Do::Held)),
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
    if let Err(why) = view.possible(Do::Apply, state) {
        rows.extend(words_of(&[format!("{} applies none now: {why}.", key(Do::Apply))], area));
    } else if samples.is_empty() {
        let text = format!(
            "Press {} to write one, {} to apply a file, or put one into samples/.",
            key(Do::New),
            key(Do::Apply)
        );
        rows.extend(words_of(&[text], area));
    } else {
        let key = key(Do::Apply);
        rows.push(
            Row::new(Role::Text, " Press ")
                .and(Role::Key, key.clone())
                .and(Role::Text, " to apply a sample:"),
        );
        let room = (area.height as usize).saturating_sub(rows.len() + 1).max(1);
        let shown = if samples.len() > room { room - 1 } else { samples.len() };
        for sample in &samples[..shown] {
            let what = format!("   {} {}  ", sample.kind_among(samples), sample.object.name);
            // The end of a path says which file it is.
            let room = (area.width as usize).saturating_sub(width(&what));
            let path = if room < LEAST_OF_PATH { String::new() } else { cut_path(&sample.path, room) };
            rows.push(Row::new(Role::Text, what).and(Role::Dim, path));
        }
        if samples.len() > shown {
            rows.push(Row::new(Role::Dim, format!("   {} more ({key} lists all)", samples.len() - shown)));
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
