//! The help: every action with its keys and whether it is possible now; only those that hold what is searched for.

use super::super::action::{ACTIONS, Section};
use super::super::filter::Filter;
use super::super::text::{Row, left, width};
use super::super::theme::Role;
use super::super::view::ViewState;
use crate::state::State;
use crate::tui::draw::boxes::boxed;
use crate::tui::enabled::enabled;
use crate::tui::programs;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

/// Draws the visible part.
pub(super) fn draw(
    scroll: usize,
    typed: Option<&str>,
    state: &State,
    view: &ViewState,
    buffer: &mut Buffer,
    body: Rect,
) {
    let filter = Filter::new(typed.unwrap_or_default());
    let mut rows = actions(&filter, state, view);
    rows.extend(own(&filter, state, view));
    rows.extend(here(&filter, state));
    if rows.is_empty() {
        rows.push(Row::new(Role::Dim, " No action is described like this. "));
    }
    // A line that does not fit goes on below its words.
    let cells = (body.width as usize).saturating_sub(6).max(20);
    let rows: Vec<Row> = rows.into_iter().flat_map(|row| below_keys(&row, cells)).collect();
    let height = (body.height as usize).saturating_sub(2);
    let scroll = scroll.min(rows.len().saturating_sub(height));
    let all = rows.len();
    let rows: Vec<Row> = rows.into_iter().skip(scroll).take(height).collect();
    let place = if all > height {
        format!(" · {}-{} of {all}", scroll + 1, scroll + rows.len())
    } else {
        String::new()
    };
    let title = match typed {
        Some(text) => format!("Keys: {text}▏{place} · esc shows all"),
        None => format!("Keys{place} · / finds · esc closes"),
    };
    boxed(&title, &rows, None, view, buffer, body);
}

/// A row on as many lines as it needs; what follows stands below its words, not below its keys.
fn below_keys(row: &Row, cells: usize) -> Vec<Row> {
    if width(&row.text()) <= cells {
        return vec![row.clone()];
    }
    let Some(((role, keys), words)) = row.0.split_first() else { return vec![row.clone()] };
    let before = width(keys).min(cells / 2);
    let lines = Row(words.to_vec()).wrapped(cells.saturating_sub(before).max(10)).into_iter().enumerate();
    lines
        .map(|(i, mut line)| {
            let first = if i == 0 { keys.clone() } else { " ".repeat(before) };
            line.0.insert(0, (*role, first));
            line
        })
        .collect()
}

fn actions(filter: &Filter, state: &State, view: &ViewState) -> Vec<Row> {
    let mut rows = Vec::new();
    for section in Section::ALL {
        let mut lines = Vec::new();
        for action in ACTIONS.iter().filter(|action| action.section == section) {
            let keys = view.keymap.text(action.does);
            let names = action.aliases.iter().map(|name| format!(":{name}")).collect::<Vec<_>>().join(" ");
            let text = format!("{keys} {} {} {} {names}", action.title, action.id, action.about);
            if !filter.text(&text) {
                continue;
            }
            let row = Row::new(Role::Key, format!("  {} ", left(&keys, 18)));
            lines.push(match enabled(action.does, view, state) {
                Ok(()) => row.and(Role::Text, action.about).and(Role::Dim, format!("  {names}")),
                Err(why) => row.and(Role::Dim, format!("{} (not now: {why})", action.about)),
            });
        }
        if !lines.is_empty() {
            rows.push(Row::new(Role::Title, section.title()));
            rows.extend(lines);
        }
    }
    rows
}

/// The commands of the user's own.
fn own(filter: &Filter, state: &State, view: &ViewState) -> Vec<Row> {
    let mut rows = Vec::new();
    for own in &view.own_commands {
        let keys = own.key.as_ref().map_or_else(String::new, ToString::to_string);
        let text = format!("{}: {}", own.command.name, own.command.run.join(" "));
        if !filter.text(&format!("{keys} {text}")) {
            continue;
        }
        let row = Row::new(Role::Key, format!("  {} ", left(&keys, 18)));
        rows.push(match programs::possible(own, view, state) {
            Ok(()) => row.and(Role::Text, text),
            Err(why) => row.and(Role::Dim, format!("{text} (not now: {why})")),
        });
    }
    let title = (!rows.is_empty()).then(|| Row::new(Role::Title, "Your own"));
    title.into_iter().chain(rows).collect()
}

/// Where opdev runs, and where its files are.
fn here(filter: &Filter, state: &State) -> Vec<Row> {
    let Some(started) = &state.started else { return Vec::new() };
    let known = [
        ("project", Some(&started.root)),
        ("server", Some(&started.cluster.server)),
        ("KUBECONFIG", started.kubeconfig.as_ref()),
        ("log file", started.log_file.as_ref()),
    ];
    let lines = known.into_iter().filter_map(|(name, value)| Some(format!("  {name:18} {}", value?)));
    let lines: Vec<Row> =
        lines.filter(|line| filter.text(line)).map(|line| Row::new(Role::Text, line)).collect();
    let title = (!lines.is_empty()).then(|| Row::new(Role::Title, "Here"));
    title.into_iter().chain(lines).collect()
}
