//! The help: first what the focused pane needs most, on one page, where there is room for that; then every
//! action with its keys and whether it is possible now. It scrolls, and narrows to what is searched for after
//! a slash.

use super::answer::Answer;
use crate::act::programs;
use crate::draw::boxes::{boxed, full};
use crate::layer::{Canvas, Layer};
use crate::view::ViewState;
use crossterm::event::KeyCode;
use opdev_panes::keys::action::{Do, Section, Seek};
use opdev_panes::keys::chord::Key;
use opdev_panes::lists::filter::Filter;
use opdev_panes::pane::{Pane, Tab};
use opdev_panes::text::{Row, left, width};
use opdev_panes::theme::Role;
use opdev_state::State;
use ratatui::layout::Rect;

/// The help.
#[derive(Debug, Default)]
pub(crate) struct Help {
    /// The first visible line.
    scroll: usize,
    /// The searched text.
    typed: Option<String>,
    /// True if all keys are shown, rather than those that matter here.
    all: bool,
}

/// A page takes so much of the body.
const PAGE: (u16, u16) = (70, 20);

/// The rows below the keys of the focused pane, and beside them.
const LEFT: [(&str, &[Do]); 2] = [
    ("TRY", &[Do::Pause, Do::Step, Do::Check, Do::Disturb, Do::Torture]),
    ("ANSWER", &[Do::Held, Do::Unlock]),
];
const RIGHT: [(&str, &[Do]); 3] = [
    (
        "MOVE",
        &[Do::NextPane, Do::Down, Do::Up, Do::Top, Do::Bottom, Do::Filter, Do::Seek(Seek::Jump), Do::Back],
    ),
    (
        "LOOK",
        &[
            Do::Pane(Pane::Log),
            Do::Show(Tab::YAML),
            Do::Show(Tab::DESCRIBE),
            Do::Seek(Seek::AllNamespaces),
            Do::Zoom,
        ],
    ),
    ("OPDEV", &[Do::Notices, Do::Tasks, Do::Reload, Do::Undo, Do::Quit]),
];

impl Layer for Help {
    fn key(&mut self, key: Key, view: &mut ViewState, _state: &State) -> Answer {
        let page = usize::from(view.screen.body.height.saturating_sub(3)).max(1);
        match (key.code, key.typed()) {
            (KeyCode::Down, _) => self.scroll += 1,
            (KeyCode::Up, _) => self.scroll = self.scroll.saturating_sub(1),
            (KeyCode::PageDown, _) => self.scroll += page,
            (KeyCode::PageUp, _) => self.scroll = self.scroll.saturating_sub(page),
            (KeyCode::Home, _) => self.scroll = 0,
            (KeyCode::Esc | KeyCode::Enter, _) if self.typed.is_none() => return Answer::Close,
            (KeyCode::Esc, _) => self.typed = None,
            (KeyCode::Enter, _) => {}
            (code, letter) => match &mut self.typed {
                Some(text) => narrow(text, &mut self.scroll, key),
                None => match (code, letter) {
                    (_, Some('/')) => (self.typed, self.scroll, self.all) = (Some(String::new()), 0, true),
                    (_, Some('?')) if !self.all && has_page(view.screen.body) => self.all = true,
                    (_, Some('j')) => self.scroll += 1,
                    (_, Some('k')) => self.scroll = self.scroll.saturating_sub(1),
                    (_, Some(' ')) => self.scroll += page,
                    (_, Some('g')) => self.scroll = 0,
                    (_, Some('q' | '?')) => return Answer::Close,
                    _ => {}
                },
            },
        }
        Answer::Stay
    }

    fn draw(&self, state: &State, view: &mut ViewState, canvas: &mut Canvas<'_>) {
        if !self.all && has_page(canvas.body) {
            let rows = self::page(view, state, (canvas.body.width as usize).saturating_sub(4).min(110));
            let pane = view.focus.title();
            return full(&format!("Keys · for {pane}"), &rows, None, view, canvas);
        }
        let filter = Filter::new(self.typed.as_deref().unwrap_or_default());
        let mut rows = actions(&filter, state, view);
        rows.extend(own(&filter, state, view));
        rows.extend(here(&filter, state));
        if rows.is_empty() {
            rows.push(Row::new(Role::Dim, " No action is described like this. "));
        }
        // A line that does not fit goes on below its words.
        let cells = (canvas.body.width as usize).saturating_sub(6).max(20);
        let rows: Vec<Row> = rows.into_iter().flat_map(|row| below_keys(&row, cells)).collect();
        let height = (canvas.body.height as usize).saturating_sub(2);
        let scroll = self.scroll.min(rows.len().saturating_sub(height));
        let all = rows.len();
        let rows: Vec<Row> = rows.into_iter().skip(scroll).take(height).collect();
        let place = if all > height {
            format!(" · {}-{} of {all}", scroll + 1, scroll + rows.len())
        } else {
            String::new()
        };
        let title = match &self.typed {
            Some(text) => format!("Keys: {text}▏{place} · esc shows all"),
            None => format!("Keys{place} · / finds · esc closes"),
        };
        boxed(&title, &rows, None, view, canvas);
    }

    fn paste(&mut self, text: &str, _view: &mut ViewState) {
        if let Some(typed) = &mut self.typed {
            typed.push_str(text);
            self.scroll = 0;
        }
    }

    fn scrolls(&self) -> bool {
        true
    }
}

fn has_page(body: Rect) -> bool {
    body.width >= PAGE.0 && body.height >= PAGE.1
}

/// The keys that the focused pane needs most, in two columns.
fn page(view: &ViewState, state: &State, cells: usize) -> Vec<Row> {
    let size = cells / 2;
    let always = [Do::Seek(Seek::Palette), Do::Help];
    let rows = view.keys.map.rows().iter();
    let most: Vec<Do> = rows
        .filter(|action| action.footer.contains(&view.focus) && !always.contains(&action.does))
        .map(|action| action.does)
        .take(9)
        .collect();
    let group = |title: &'static str, all: &[Do]| {
        let shown = all.iter().filter(|does| title == "MOST USED" || !most.contains(does));
        let rows = shown.filter_map(|does| entry(*does, view, state, size));
        std::iter::once(Row::new(Role::Title, title)).chain(rows).collect::<Vec<_>>()
    };
    let left = std::iter::once(group("MOST USED", &most));
    let left: Vec<Row> = left.chain(LEFT.map(|(title, all)| group(title, all))).flatten().collect();
    let right: Vec<Row> = RIGHT.into_iter().flat_map(|(title, all)| group(title, all)).collect();
    let mut rows: Vec<Row> = (0..left.len().max(right.len()))
        .map(|at| {
            let mut row = Row::new(Role::Text, " ");
            row.0.extend(left.get(at).into_iter().flat_map(|row| row.0.clone()));
            let gap = (size + 1).saturating_sub(width(&row.text()));
            row = row.and(Role::Text, " ".repeat(gap));
            row.0.extend(right.get(at).into_iter().flat_map(|row| row.0.clone()));
            row
        })
        .collect();
    let signs = " Signs  ✗ wrong ⚠ risky ◐ on its way ● good ✓ done · nothing to do";
    rows.push(Row::new(Role::Dim, signs));
    let keys = Row::new(Role::Key, " ?").and(Role::Dim, " all keys   ").and(Role::Key, "/");
    let keys = keys.and(Role::Dim, " search   ").and(Role::Key, ":").and(Role::Dim, " commands   ");
    rows.push(keys.and(Role::Key, "esc").and(Role::Dim, " closes"));
    rows
}

/// A key and what it does: in the words of the action where they fit, else by its name.
fn entry(does: Do, view: &ViewState, state: &State, cells: usize) -> Option<Row> {
    const KEYS: usize = 8;
    let action = view.keys.map.by(does)?;
    let keys = view.keys.map.keys(does).first().map(ToString::to_string)?;
    let clause = action.about.split([';', ',']).next().unwrap_or_default().trim_end_matches('.');
    let mut chars = clause.chars();
    let clause: String = chars.next().into_iter().flat_map(char::to_lowercase).chain(chars).collect();
    let text = if width(&clause) + KEYS < cells { clause } else { action.title.to_owned() };
    let role = if view.possible(does, state).is_ok() { Role::Text } else { Role::Dim };
    Some(Row::new(Role::Key, left(&keys, KEYS)).and(role, text))
}

fn narrow(text: &mut String, scroll: &mut usize, key: Key) {
    match (key.code, key.typed()) {
        (KeyCode::Backspace, _) => {
            text.pop();
        }
        (KeyCode::Char('u' | 'w'), None) if key.ctrl => text.clear(),
        (_, Some(c)) if text.len() < 200 => text.push(c),
        _ => return,
    }
    *scroll = 0;
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
        for action in view.keys.map.rows().iter().filter(|action| action.section == section) {
            let keys = view.keys.map.text(action.does);
            let names = action.aliases.iter().map(|name| format!(":{name}")).collect::<Vec<_>>().join(" ");
            let text = format!("{keys} {} {} {} {names}", action.title, action.id, action.about);
            if !filter.text(&text) {
                continue;
            }
            let keys = if keys.is_empty() { format!(":{}", action.id) } else { keys };
            let row = Row::new(Role::Key, format!("  {} ", left(&keys, 18)));
            lines.push(match action.possible(view, state) {
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
    for own in &view.keys.own {
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
