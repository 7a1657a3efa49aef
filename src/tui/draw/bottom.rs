//! Rows that come and go at the lower edge: the errors of the files, until it is fixed or hidden; the answer
//! to a key that failed, until esc; a short message in the lowest border. The faulty line and the caret come
//! first, then the fix in full, then the path.

use super::super::toast::Toast;
use super::super::view::ViewState;
use super::frame;
use crate::act::open_file;
use opdev_event::{Diagnostic, Severity, words};
use opdev_panes::header::programs;
use opdev_panes::keys::action::Do;
use opdev_panes::text::{Row, cut, cut_front, cut_path, cut_words, width, wrap};
use opdev_panes::theme::Role;
use opdev_state::health::signs::diagnostic_sign;
use opdev_state::{Program, State};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

/// A block over the whole width: what stands in its upper border, and its rows.
struct BottomBlock {
    title: Row,
    keys: Row,
    rows: Vec<Row>,
}

/// The content of the lower edge.
pub(crate) struct Bottom {
    parts: Vec<BottomBlock>,
    /// The text of the lowest border.
    note: Option<Toast>,
}

impl Bottom {
    /// The message of the moment.
    pub(super) fn of(state: &State, view: &mut ViewState, toast: Option<Toast>, body: Rect) -> Self {
        let cells = (body.width as usize).saturating_sub(4);
        let mut parts = Vec::new();
        let half = (body.height as usize / 2).saturating_sub(1).max(1);
        if let Some(banner) = banner(state, view, cells, half) {
            parts.push(banner);
        }
        let taken: usize = parts.iter().map(|part| part.rows.len() + 1).sum();
        if let Some(left) = toast.as_ref().and_then(|toast| toast.left) {
            view.wake_in(left);
        }
        let long = |toast: &Toast| toast.lines.len() > 1 || width(&toast.lines.concat()) + 2 > cells;
        let note = match toast {
            Some(toast) if toast.left.is_none() && long(&toast) => {
                let room = (body.height as usize * 2 / 3).saturating_sub(taken + 1).clamp(1, 10);
                parts.push(message(&toast, cells, room));
                None
            }
            other => other,
        };
        Bottom { parts, note }
    }

    /// The row of its upper border; the lower border of the body where there is nothing.
    pub(super) fn from(&self, body: Rect) -> u16 {
        let rows: usize = self.parts.iter().map(|part| part.rows.len() + 1).sum();
        body.bottom() - 1 - rows.min(body.height as usize - 2) as u16
    }

    /// Draws it; the panes above are drawn already.
    pub(super) fn draw(&self, view: &ViewState, buffer: &mut Buffer, body: Rect) {
        let mut y = self.from(body);
        for part in &self.parts {
            let height = (part.rows.len() as u16 + 2).min(body.bottom() - y);
            let area = Rect { y, height, ..body };
            frame::block(buffer, view, area);
            let inner = (area.width as usize).saturating_sub(4);
            let keys = if width(&part.title.text()) + width(&part.keys.text()) < inner {
                part.keys.clone()
            } else {
                Row::default()
            };
            part.title.draw(
                buffer,
                view.look.theme,
                (area.x + 2, y),
                width(&part.title.text()).min(inner),
                false,
            );
            let size = width(&keys.text());
            let x = area.right() - 2 - size as u16;
            keys.draw(buffer, view.look.theme, (x, y), size, false);
            for (i, row) in part.rows.iter().take(height.saturating_sub(2) as usize).enumerate() {
                let at = (area.x + 2, y + 1 + i as u16);
                row.draw(buffer, view.look.theme, at, inner, false);
            }
            y = area.bottom() - 1;
        }
        if let Some(note) = &self.note {
            let cells = (body.width as usize).saturating_sub(4);
            let text = note.lines.first().map_or("", String::as_str);
            let text = format!(" {} ", cut_words(text, cells.saturating_sub(2)));
            let x = body.right() - 2 - width(&text) as u16;
            buffer.set_stringn(x, body.bottom() - 1, &text, cells, view.look.theme.style(note.role));
        }
    }
}

fn message(toast: &Toast, cells: usize, room: usize) -> BottomBlock {
    let lines = toast.lines.iter().enumerate();
    let mut rows: Vec<Row> = lines
        .flat_map(|(at, text)| {
            let role = if at == 0 { toast.role } else { Role::Text };
            wrap(text, cells).into_iter().map(move |line| Row::new(role, line))
        })
        .collect();
    if rows.len() > room {
        rows.truncate(room);
        if let Some(last) = rows.last_mut() {
            *last = last.clone().and(Role::Dim, " …");
        }
    }
    let keys = Row::new(Role::Key, " esc").and(Role::Dim, " closes ");
    BottomBlock { title: Row::default(), keys, rows }
}

/// Errors in the files, until they are fixed.
fn banner(state: &State, view: &ViewState, cells: usize, most: usize) -> Option<BottomBlock> {
    let problems = state.problems();
    let first = problems.first().filter(|_| view.told.hidden.as_ref() != Some(&problems))?;
    let of_build = |program: &&Program| {
        program.build_failed.as_ref().is_some_and(|failed| failed.diagnostics.contains(first))
    };
    let built = state.programs.iter().find(of_build);
    let mut rows = faulty_line(first, cells);
    let fix = fix(first, built, state);
    rows.extend(wrap(&fix, cells).into_iter().map(|line| Row::new(Role::Text, line)));
    // The fix is whole; what follows takes the rest.
    let room = most.clamp(rows.len(), rows.len().max(7));
    if let Some(place) = first.place.as_ref().filter(|place| place.file.contains('/')) {
        rows.push(Row::new(Role::Dim, cut_path(&place.file, cells)));
    }
    for other in problems.iter().skip(1) {
        let place = other.place.as_ref().map(|place| format!("{place} ")).unwrap_or_default();
        let text = format!("{place}{}", words::one_line(&other.message));
        rows.push(Row::new(Role::Dim, format!("Also: {}", cut_front(&text, cells.saturating_sub(6)))));
    }
    rows.truncate(room);
    let place = first.place.as_ref().map(|place| words::file_name(&place.to_string()).to_owned());
    let place = place.unwrap_or_else(|| "the project".to_owned());
    let what = built.and_then(|program| program.build.as_ref()).map(|build| format!("{}: ", build.build));
    let many = match problems.len() {
        0 | 1 => String::new(),
        many => format!(" · 1 of {many}"),
    };
    let title = format!(" {} {}{place}{many} ", diagnostic_sign(first, state), what.unwrap_or_default());
    let title = Row::new(diagnostic_role(first), title);
    Some(BottomBlock { title, keys: keys(first, problems.len(), state, view), rows })
}

fn diagnostic_role(of: &Diagnostic) -> Role {
    match of.severity {
        Severity::Error => Role::Banner,
        Severity::Warning => Role::Busy,
    }
}

/// The keys that help with a problem.
fn keys(of: &Diagnostic, many: usize, state: &State, view: &ViewState) -> Row {
    let key = |does: Do| view.keys.map.keys(does).first().map(ToString::to_string);
    let opens =
        key(Do::OpenFile).filter(|_| open_file::place(view, state) == of.place).map(|key| (key, "opens"));
    let lists = key(Do::Notices).filter(|_| many > 1).map(|key| (key, "all"));
    let hides = key(Do::Back).map(|key| (key, "hides"));
    let mut row = Row::new(Role::Dim, " ");
    for (at, (key, word)) in opens.into_iter().chain(lists).chain(hides).enumerate() {
        row = row.and(Role::Dim, if at > 0 { "· " } else { "" });
        row = row.and(Role::Key, key).and(Role::Dim, format!(" {word} "));
    }
    row
}

/// The line of the file that is at fault, and below it the caret with the message; the message alone where no
/// line is known.
fn faulty_line(of: &Diagnostic, cells: usize) -> Vec<Row> {
    let message = words::one_line(&of.message);
    let alone =
        || wrap(&message, cells).into_iter().map(|line| Row::new(diagnostic_role(of), line)).collect();
    let Some((number, code, caret)) = at_fault(of) else { return alone() };
    let gutter = number.len().max(3);
    let room = cells.saturating_sub(gutter + 3);
    // A long line is shown around its fault.
    let code: Vec<char> = code.chars().collect();
    let skip = if caret + 12 > room && code.len() > room { caret.saturating_sub(room / 3) } else { 0 };
    let shown: String = code.iter().skip(skip).collect();
    let shown = if skip > 0 { cut_front(&shown, width(&shown).saturating_sub(1)) } else { shown };
    let mut rows =
        vec![Row::new(Role::Dim, format!("{number:>gutter$} │ ")).and(Role::Text, cut(&shown, room))];
    let before = width(&code.iter().skip(skip).take(caret - skip).collect::<String>());
    let beside = Row::new(Role::Dim, format!("{:gutter$} │ {}", "", " ".repeat(before)));
    if before + 2 + width(&message) <= room {
        rows.push(beside.and(diagnostic_role(of), format!("^ {message}")));
        return rows;
    }
    rows.push(beside.and(diagnostic_role(of), "^"));
    rows.extend(alone());
    rows
}

/// The number and the text of the line at fault, and how many characters stand before the fault.
fn at_fault(of: &Diagnostic) -> Option<(String, String, usize)> {
    let excerpt = of.excerpt.as_deref()?;
    let lines: Vec<(&str, &str)> = excerpt.lines().filter_map(|line| line.split_once('|')).collect();
    let strip = |code: &str| code.strip_prefix(' ').unwrap_or(code).to_owned();
    let is_caret = |code: &str| code.contains('^') && code.trim_matches([' ', '^', '~']).is_empty();
    if let Some(at) = lines.iter().position(|(number, code)| number.trim().is_empty() && is_caret(code)) {
        let caret = strip(lines[at].1).chars().position(|c| c == '^')?;
        let (number, code) = lines[..at].last()?;
        return Some((number.trim().to_owned(), strip(code), caret));
    }
    let place = of.place.as_ref()?;
    let (number, code) = lines.iter().find(|(number, _)| number.trim().parse() == Ok(place.line))?;
    let caret = usize::try_from(place.column).unwrap_or(1).saturating_sub(1);
    Some((number.trim().to_owned(), strip(code), caret))
}

/// How to fix it, and what runs meanwhile.
fn fix(of: &Diagnostic, built: Option<&Program>, state: &State) -> String {
    let hint =
        of.hint.as_deref().map_or_else(|| "save the file again once it is fixed".to_owned(), words::one_line);
    let still = match (built, &state.reload.live) {
        (Some(program), _) => programs::goes_on(program),
        (None, Some(_)) => "Until then the last working version keeps running.".to_owned(),
        (None, None) => "Nothing of it runs until then.".to_owned(),
    };
    format!("{} {still}", sentence(&hint))
}

/// With a capital at the beginning and a full stop at the end; names of files and code stay as they are.
fn sentence(text: &str) -> String {
    let first = text.split(' ').next().unwrap_or_default();
    let is_word = first.len() > 1 && first.chars().all(|c| c.is_ascii_lowercase());
    let mut out: String = if is_word || first == "a" {
        let mut chars = text.chars();
        chars.next().into_iter().flat_map(char::to_uppercase).chain(chars).collect()
    } else {
        text.to_owned()
    };
    if !out.ends_with(['.', '?', '!', ':']) {
        out.push('.');
    }
    out
}
