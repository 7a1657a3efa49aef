//! The page of a run beside the screen: how far it is, its variants or scenarios, what it has found, and all of one finding.

use super::finding::named;
use crate::finding_sign::role_of;
use crate::text::{Row, clean, cut, left, right, width, wrap};
use crate::theme::{Role, Theme};
use jiff::Timestamp;
use opdev_event::{BackgroundCommand, BackgroundFinding, BackgroundRun, words};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use std::cell::Cell;
use std::time::Duration;

/// The width of the names before the texts.
const NAME: usize = 10;
/// From this width on, a finding stands beside the list.
const BESIDE: u16 = 100;
/// The width of the list there.
const LIST: u16 = 44;
/// The most rows of a list above a finding.
const ROWS: usize = 6;
/// From this width on, what was written undisturbed stands beside what was written here.
const TWO_LISTS: usize = 110;
/// The cells of the bar.
const BAR: usize = 24;
/// The page of a finding needs so many rows below the list.
const LEAST: u16 = 4;

/// Where one is on the page.
#[derive(Clone, Debug, Default)]
pub struct Position {
    /// The chosen finding.
    pub chosen: usize,
    /// True if it has the whole place.
    pub whole: bool,
    /// The first line of it that is shown.
    pub scroll: usize,
    /// The most that it can be, as last drawn.
    deepest: Cell<usize>,
}

impl Position {
    /// To another finding.
    pub fn step(&mut self, run: &BackgroundRun, down: bool) {
        let last = run.findings.len().saturating_sub(1);
        self.chosen = if down { self.chosen + 1 } else { self.chosen.saturating_sub(1) }.min(last);
        self.scroll = 0;
    }

    /// Other lines of it.
    pub fn scroll(&mut self, down: bool) {
        let to = if down { self.scroll + 5 } else { self.scroll.saturating_sub(5) };
        self.scroll = to.min(self.deepest.get());
    }
}

/// The title of the page.
pub fn title(run: &BackgroundRun) -> String {
    let name = match &run.command {
        BackgroundCommand::Torture { .. } => "Torture",
        BackgroundCommand::Upgrade { .. } => "Upgrade",
    };
    let about = if run.about.is_empty() { String::new() } else { format!(" · {}", run.about) };
    format!("{name}{about} · your own objects are not touched")
}

/// Its progress in a few words, for the first line of the screen; nothing once it is over.
pub fn short(run: &BackgroundRun) -> Option<String> {
    run.end.is_none().then(|| format!("{} {} %", run.command.name(), run.done / 10))
}

/// Draws the page; the answer is the row of the chosen finding, and the row below the list.
pub fn draw(
    run: &BackgroundRun,
    position: &Position,
    (buffer, theme): (&mut Buffer, Theme),
    place: Rect,
    now: Timestamp,
) -> (Option<u16>, u16) {
    let at = position.chosen.min(run.findings.len().saturating_sub(1));
    let finding = run.findings.get(at);
    if let Some(finding) = finding.filter(|_| position.whole) {
        draw_finding(finding, position, (buffer, theme), place);
        return (None, place.bottom());
    }
    let cells = place.width as usize;
    let mut rows = head(run, cells, now);
    let room = (place.height as usize / 2).max(3);
    rows.extend(table(run, cells).into_iter().take(room.saturating_sub(rows.len()).max(2)));
    if !run.findings.is_empty() && place.width < BESIDE {
        rows.extend(notes(run, cells).into_iter().take(2));
    }
    if run.findings.is_empty() {
        rows.push(Row::default());
        rows.extend(nothing(run, cells));
        rows.extend(notes(run, cells));
    }
    let y = put(&rows, (buffer, theme), place);
    let Some(finding) = finding else { return (None, y) };
    let below = Rect { y: y + 1, height: place.bottom().saturating_sub(y + 1), ..place };
    if below.height == 0 {
        return (None, y);
    }
    divider((buffer, theme), (place, y), &format!("Found · {}", run.findings.len()));
    let beside = place.width >= BESIDE;
    let listed = Rect { width: if beside { LIST } else { place.width }, ..below };
    let most = if beside { below.height as usize } else { ROWS.min((below.height as usize / 3).max(1)) };
    let skip = (at + 1).saturating_sub(most);
    let mut end = below.y;
    for (row, one) in run.findings.iter().enumerate().skip(skip).take(most) {
        let drawn = line(one, listed.width as usize, row == at);
        drawn.draw(buffer, theme, (below.x, end), listed.width as usize, row == at);
        end += 1;
    }
    let chosen = Some(below.y + (at - skip) as u16);
    if beside {
        let notes = notes(run, LIST as usize - 1);
        let free = Rect { y: end + 1, height: below.bottom().saturating_sub(end + 1), ..listed };
        put(&notes, (buffer, theme), free);
        let right = Rect { x: below.x + LIST, width: below.width - LIST, ..below };
        for y in right.y..right.bottom() {
            buffer.set_stringn(right.x, y, "│", 1, theme.style(Role::Dim));
        }
        let right = Rect { x: right.x + 1, width: right.width - 1, ..right };
        draw_finding(finding, position, (buffer, theme), right);
    } else if below.bottom() >= end + LEAST {
        divider((buffer, theme), (place, end), &format!("{} of {}", at + 1, run.findings.len()));
        let page = Rect { y: end + 1, height: below.bottom() - end - 1, ..place };
        draw_finding(finding, position, (buffer, theme), page);
    }
    (chosen, end)
}

/// The bar and what is under way; once it is over, what it came to.
fn head(run: &BackgroundRun, cells: usize, now: Timestamp) -> Vec<Row> {
    let text = |role, text: &str| -> Vec<Row> {
        let lines = wrap(&clean(text), cells.saturating_sub(2).max(10));
        lines.into_iter().map(|line| Row::new(role, format!(" {line}"))).collect()
    };
    match &run.end {
        None => {
            let full = usize::from(run.done) * BAR / 1000;
            let bar = Row::new(Role::Busy, format!(" {}", "█".repeat(full)))
                .and(Role::Dim, "░".repeat(BAR - full))
                .and(Role::Text, format!("  {} %{}", run.done / 10, time_left(run, now)));
            let mut rows = vec![bar];
            rows.extend(text(Role::Text, &run.now));
            rows
        }
        Some(end) => {
            let mut rows = Vec::new();
            if let Some(problem) = &end.problem {
                for line in problem.lines() {
                    rows.extend(text(Role::Bad, line));
                }
            } else {
                rows.extend(text(Role::Text, &run.now));
            }
            rows
        }
    }
}

/// The time that is left, guessed from the time that it took so far.
fn time_left(run: &BackgroundRun, now: Timestamp) -> String {
    let took = Duration::try_from(now.duration_since(run.began)).unwrap_or_default();
    // The first part says too little.
    if run.done < 50 {
        return format!("  {}", words::short_age(took));
    }
    let done = f64::from(run.done) / 1000.0;
    let left = took.mul_f64((1.0 - done) / done);
    format!("  {}, about {} left", words::short_age(took), words::short_age(left))
}

/// The table: columns are left out from the right side, but for the last one, until the rest has room.
fn table(run: &BackgroundRun, cells: usize) -> Vec<Row> {
    let texts =
        |at: usize| run.rows.iter().filter_map(move |row| row.cells.get(at)).chain(run.columns.get(at));
    let widths: Vec<usize> =
        (0..run.columns.len()).map(|at| texts(at).map(|text| width(text)).max().unwrap_or(0)).collect();
    let mut shown: Vec<usize> = (0..widths.len()).collect();
    let room = cells.saturating_sub(4);
    while shown.len() > 2 && shown.iter().map(|at| widths[*at] + 2).sum::<usize>() > room {
        shown.remove(shown.len() - 2);
    }
    let is_number = |text: &String| text.chars().all(|letter| letter.is_ascii_digit());
    let numbers: Vec<bool> = (0..widths.len())
        .map(|at| run.rows.iter().filter_map(|row| row.cells.get(at)).all(is_number))
        .collect();
    let lined = |texts: &[String]| -> String {
        let all = shown.iter().map(|at| {
            let text = clean(texts.get(*at).map(String::as_str).unwrap_or_default());
            let pad = if numbers[*at] { right } else { left };
            format!("{}  ", pad(&text, widths[*at]))
        });
        cut(all.collect::<String>().trim_end(), room)
    };
    if run.rows.is_empty() {
        return Vec::new();
    }
    let mut rows = vec![Row::new(Role::Dim, format!("   {}", lined(&run.columns)))];
    let mut waits = false;
    for row in &run.rows {
        let judged = run.end.is_some() || matches!(run.command, BackgroundCommand::Torture { .. });
        let (role, sign) = match row.worst {
            Some(worst) => (role_of(worst), worst.sign()),
            None if row.over && judged => (Role::Good, "●"),
            None if row.over => (Role::Dim, "·"),
            None if run.end.is_some() || waits => (Role::Dim, " "),
            None => (Role::Busy, "◐"),
        };
        waits |= !row.over;
        rows.push(Row::new(role, format!(" {sign} ")).and(Role::Text, lined(&row.cells)));
    }
    rows
}

fn nothing(run: &BackgroundRun, cells: usize) -> Vec<Row> {
    let (role, text) = match (&run.end, &run.command) {
        (None, _) => (Role::Dim, "Nothing is found so far. esc leaves it running."),
        (Some(end), _) if end.problem.is_some() => (Role::Dim, "Nothing was found until then."),
        (Some(_), BackgroundCommand::Torture { .. }) => {
            (Role::Good, "Nothing is wrong: each disturbed run ends as the undisturbed ones.")
        }
        (Some(_), BackgroundCommand::Upgrade { .. }) => {
            (Role::Good, "Nothing is wrong: the objects of the old version live on under the new one.")
        }
    };
    wrap(text, cells.saturating_sub(2).max(10))
        .into_iter()
        .map(|line| Row::new(role, format!(" {line}")))
        .collect()
}

fn notes(run: &BackgroundRun, cells: usize) -> Vec<Row> {
    let all = run.notes.iter().flat_map(|note| wrap(&clean(note), cells.saturating_sub(2).max(10)));
    all.map(|line| Row::new(Role::Dim, format!(" {line}"))).collect()
}

/// A finding in one row.
fn line(finding: &BackgroundFinding, cells: usize, chosen: bool) -> Row {
    let mark = if chosen { "▸" } else { " " };
    let times = if finding.times.is_empty() { String::new() } else { format!("  {}", finding.times) };
    let room = cells.saturating_sub(5 + width(&times));
    Row::new(Role::Text, format!(" {mark}"))
        .and(role_of(finding.severity), format!("{} ", finding.severity.sign()))
        .and(Role::Text, left(&clean(&finding.title), room))
        .and(Role::Dim, times)
}

/// All of a finding: what is wrong, where, the cure, and what was written.
fn page(finding: &BackgroundFinding, cells: usize) -> Vec<Row> {
    let room = cells.saturating_sub(4).max(10);
    let mut rows: Vec<Row> = wrap(&clean(&finding.title), room)
        .into_iter()
        .enumerate()
        .map(|(at, line)| {
            let sign = if at == 0 { finding.severity.sign() } else { " " };
            Row::new(role_of(finding.severity), format!(" {sign} ")).and(Role::Title, line)
        })
        .collect();
    for (name, text) in &finding.about {
        let as_code = name == "Code";
        let role = if as_code { Role::Changed } else { Role::Text };
        rows.extend(named((name, NAME), role, text, cells));
    }
    if !finding.times.is_empty() {
        let runs = format!("{} runs of the plan", finding.times);
        rows.extend(named(("Seen in", NAME), Role::Text, &runs, cells));
    }
    if !finding.replay.is_empty() {
        rows.extend(named(("Again", NAME), Role::Dim, &finding.replay, cells));
    }
    rows.extend(writes(finding, cells));
    rows
}

/// Writes of the operator undisturbed and here: side by side, or one below the other.
fn writes(finding: &BackgroundFinding, cells: usize) -> Vec<Row> {
    let (undisturbed, here) = &finding.writes;
    if undisturbed.is_empty() && here.is_empty() {
        return Vec::new();
    }
    let told = |own: &[String], others: &[String], cells: usize| -> Vec<Row> {
        let mut others: Vec<&String> = others.iter().collect();
        let one = |text: &String| {
            let same = others.iter().position(|other| *other == text);
            let (role, sign) = match same.map(|at| others.remove(at)) {
                _ if text.starts_with("· ") => (Role::Bad, " "),
                Some(_) => (Role::Dim, " "),
                None => (Role::Changed, "≠"),
            };
            Row::new(Role::Changed, format!(" {sign} "))
                .and(role, left(&clean(text), cells.saturating_sub(4)))
        };
        own.iter().map(one).collect()
    };
    let mut rows = vec![Row::default()];
    let (names, heads) = (("Undisturbed it writes", "Disturbed it writes"), cells / 2);
    if cells < TWO_LISTS {
        rows.push(Row::new(Role::Title, format!(" {}", names.0)));
        rows.extend(told(undisturbed, here, cells));
        rows.push(Row::new(Role::Title, format!(" {}", names.1)));
        rows.extend(told(here, undisturbed, cells));
        return rows;
    }
    rows.push(
        Row::new(Role::Title, left(&format!(" {}", names.0), heads))
            .and(Role::Title, format!("│ {}", names.1)),
    );
    let (one, other) = (told(undisturbed, here, heads), told(here, undisturbed, cells - heads - 1));
    for at in 0..one.len().max(other.len()) {
        let mut row = one.get(at).cloned().unwrap_or_default();
        let used = width(&row.text());
        row = row.and(Role::Dim, " ".repeat(heads.saturating_sub(used))).and(Role::Dim, "│");
        row.0.extend(other.get(at).cloned().unwrap_or_default().0);
        rows.push(row);
    }
    rows
}

fn draw_finding(
    finding: &BackgroundFinding,
    position: &Position,
    (buffer, theme): (&mut Buffer, Theme),
    place: Rect,
) {
    let rows = page(finding, place.width as usize);
    let room = place.height as usize;
    let deepest = rows.len().saturating_sub(room);
    position.deepest.set(deepest);
    let from = position.scroll.min(deepest);
    let hidden = rows.len().saturating_sub(from + room);
    let mut rows: Vec<Row> = rows.into_iter().skip(from).take(room).collect();
    if let Some(last) = rows.last_mut().filter(|_| hidden > 0) {
        *last = Row::new(Role::Dim, format!(" ↓ {} more lines (pgdn)", hidden + 1));
    }
    put(&rows, (buffer, theme), place);
}

/// Draws rows from the top; the answer is the line below them.
fn put(rows: &[Row], (buffer, theme): (&mut Buffer, Theme), place: Rect) -> u16 {
    let mut y = place.y;
    for row in rows.iter().take(place.height as usize) {
        row.draw(buffer, theme, (place.x, y), place.width as usize, false);
        y += 1;
    }
    y
}

fn divider((buffer, theme): (&mut Buffer, Theme), (place, y): (Rect, u16), title: &str) {
    if y >= place.bottom() {
        return;
    }
    let cells = place.width as usize;
    let line = format!("├{}┤", "─".repeat(cells));
    buffer.set_stringn(place.x.saturating_sub(1), y, line, cells + 2, theme.style(Role::Focus));
    let title = format!(" {} ", cut(title, cells.saturating_sub(4)));
    buffer.set_stringn(place.x + 1, y, title, cells.saturating_sub(2), theme.style(Role::Title));
}
