//! Lists to choose from by typing a few letters: the palette of all actions, the jump to anything,
//! namespaces, contexts, themes. What can be chosen is gathered when the list opens (`gather`); `find` does
//! what was chosen.

use super::choice::Picker;
use super::gather::gather;
use crate::act::programs::possible;
use crate::dialog::{Answer, Scale, background};
use crate::draw::frame::plain_box;
use crate::layer::{Canvas, Layer, Need};
use crate::view::ViewState;
use crossterm::event::KeyCode;
use opdev_event::FaultRule;
use opdev_panes::click_targets::Dialog;
use opdev_panes::keys::action::Do;
use opdev_panes::keys::chord::Key;
use opdev_panes::lists::candidates::{Item, Remembered, What};
use opdev_panes::text::{Row, cut, right, width};
use opdev_panes::theme::{Role, Theme};
use opdev_state::State;
use ratatui::layout::Rect;
use std::sync::Arc;

/// How many commands are kept to be brought back.
const KEPT: usize = 50;

/// Opens a list over the panes.
pub(crate) fn open(view: &mut ViewState, what: What, state: &State) {
    let picker = Picker::open(what, view, state);
    view.open(picker);
}

impl Picker {
    /// Opens a list; the jump goes on where it was left.
    pub(crate) fn open(what: What, view: &mut ViewState, state: &State) -> Self {
        let of = match &view.finder.jump_index {
            Some(known) if what == What::Jump && known.fits(state) => Arc::clone(&known.index),
            Some(_) | None => Arc::new(gather(what, view, state).done()),
        };
        if what == What::Jump {
            view.finder.jump_index = Some(Remembered::of(&of, state));
        }
        let (typed, index) = match what {
            What::Jump => view.finder.last_jump.clone(),
            What::Palette
            | What::Namespace
            | What::Context
            | What::Theme
            | What::Failure
            | What::Disturbance
            | What::Commands
            | What::Ports => (String::new(), 0),
        };
        let mut picker = Picker {
            what,
            resumed: !typed.is_empty(),
            typed,
            index: 0,
            before: None,
            has_kinds: state.served.is_some(),
            files: state.files.clone(),
            recalled: None,
            of,
            matched: Arc::default(),
            best: Arc::default(),
        };
        picker.search(false);
        picker.index = index.min(picker.best.len().saturating_sub(1));
        picker
    }

    /// A theme shows while it is selected.
    fn preview(&mut self, view: &mut ViewState) {
        let selected = self.best.get(self.index).map(|at| self.of.item(*at));
        match selected {
            Some(Item::Theme(name)) => {
                self.before.get_or_insert(view.look.theme);
                view.look.theme = Theme::named(name).unwrap_or(view.look.theme);
            }
            Some(_) | None => view.look.theme = self.before.take().unwrap_or(view.look.theme),
        }
    }

    fn answer(&mut self, key: Key, view: &mut ViewState, state: &State) -> Answer {
        let last = self.best.len().saturating_sub(1);
        let step = |key: Key| match key.code {
            KeyCode::Down | KeyCode::Tab => Some(1),
            KeyCode::Up | KeyCode::BackTab => Some(-1),
            KeyCode::Char('n' | 'j') if key.ctrl => Some(1),
            KeyCode::Char('p' | 'k') if key.ctrl => Some(-1),
            KeyCode::PageDown => Some(10),
            KeyCode::PageUp => Some(-10),
            _ => None,
        };
        if self.what == What::Palette && self.recall(key, view) {
            return Answer::Stay;
        }
        if let Some(step) = step(key) {
            self.index = self.index.saturating_add_signed(step).min(last);
            self.resumed = false;
            return Answer::Stay;
        }
        match (key.code, key.typed()) {
            (KeyCode::Esc, _) => {
                view.look.theme = self.before.take().unwrap_or(view.look.theme);
                self.remember(view);
                return Answer::Close;
            }
            (KeyCode::Enter, _) if self.what == What::Palette && self.has_argument(state) => {
                self.remember(view);
                return self.with_argument(view, state);
            }
            (KeyCode::Enter, _) if self.what == What::Ports && self.is_own_port() => {
                return view.choose(Item::Port(self.typed.clone()), state);
            }
            (KeyCode::Enter, _) if self.what == What::Disturbance && self.is_rule() => {
                return disturb(&self.typed, view, state);
            }
            (KeyCode::Enter, _) if self.what == What::Palette && self.means_table(state) => {
                self.remember(view);
                let (word, filter) = self.table_words();
                view.open_typed_table(&word, &filter, state);
                return Answer::Close;
            }
            (KeyCode::Enter, _) => {
                let Some(at) = self.best.get(self.index) else { return Answer::Stay };
                let item = self.of.item(*at).clone();
                self.remember(view);
                return view.choose(item, state);
            }
            (KeyCode::Backspace, _) => {
                self.resumed = false;
                self.typed.pop();
                self.search(false);
            }
            (KeyCode::Char('u' | 'w'), None) if key.ctrl => {
                self.typed.clear();
                self.search(false);
            }
            (_, Some(c)) if self.typed.len() < 200 => self.push(c.encode_utf8(&mut [0; 4])),
            _ => {}
        }
        Answer::Stay
    }

    /// Returns true if what was typed is a port of its own, and no part of the selected one.
    fn is_own_port(&self) -> bool {
        let Some(at) = self.best.get(self.index) else { return true };
        let is_number = self.typed.trim().split(':').all(|part| part.parse::<u16>().is_ok());
        let means =
            |pair: &str| pair == self.typed.trim() || pair.split(':').any(|part| part == self.typed.trim());
        is_number && matches!(self.of.item(*at), Item::Port(pair) if !means(pair))
    }

    /// Up brings back what was typed before, down what was typed after that; false where the key is for the
    /// list.
    fn recall(&mut self, key: Key, view: &ViewState) -> bool {
        let older = match key.code {
            KeyCode::Up if self.index == 0 && (self.typed.is_empty() || self.recalled.is_some()) => {
                self.recalled.map_or(0, |at| at + 1)
            }
            KeyCode::Down if self.recalled.is_some_and(|at| at > 0) => self.recalled.unwrap_or(1) - 1,
            _ => {
                self.recalled = None;
                return false;
            }
        };
        let Some(text) = view.finder.commands.iter().rev().nth(older) else { return self.recalled.is_some() };
        (self.typed, self.recalled) = (text.clone(), Some(older));
        self.search(false);
        true
    }

    /// The word and the argument of what was typed, where the word takes one.
    fn argument(&self) -> Option<(&str, &str)> {
        let (word, rest) = self.typed.trim().split_once(char::is_whitespace)?;
        matches!(word, "scale" | "ns" | "namespace" | "disturb" | "save" | "forward" | "upgrade")
            .then(|| (word, rest.trim()))
    }

    /// Returns true if what was typed says all: a number to scale to, or a namespace by its whole name.
    fn has_argument(&self, state: &State) -> bool {
        match self.argument() {
            Some(("scale" | "disturb" | "save" | "forward" | "upgrade", _)) => true,
            Some((_, name)) => {
                let known = state.objects.census().has_namespace(name);
                name != "all" && (known || self.matching() == 0) && state.started.is_some()
            }
            None => false,
        }
    }

    /// A kind and a filter, as they were typed.
    fn table_words(&self) -> (String, String) {
        let typed = self.typed.trim();
        let (word, rest) = typed.split_once(char::is_whitespace).unwrap_or((typed, ""));
        (word.to_owned(), rest.trim().to_owned())
    }

    /// Returns true if what was typed is a kind with a filter, or nothing that the palette knows: then the
    /// API server may know it.
    fn means_table(&self, state: &State) -> bool {
        let (word, filter) = self.table_words();
        let is_kind = || state.served.iter().flat_map(|kinds| kinds.iter()).any(|kind| kind.is_called(&word));
        let could_be = word.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-'));
        !word.is_empty() && could_be && (self.best.is_empty() || (!filter.is_empty() && is_kind()))
    }

    fn with_argument(&self, view: &mut ViewState, state: &State) -> Answer {
        match self.argument() {
            Some(("scale", number)) => match (number.parse::<i32>(), view.possible(Do::Scale, state)) {
                (Ok(replicas @ 0..), Ok(())) => {
                    return Answer::Ask(Scale::of(&view.targets(state), state).task(replicas).into());
                }
                (_, Err(why)) => view.told.message = Some(format!("scale: {why}")),
                (Ok(_) | Err(_), Ok(())) => {
                    view.told.message = Some(format!("scale: {number} is no number of replicas"));
                }
            },
            Some(("disturb", rule)) => return disturb(rule, view, state),
            Some(("forward", pair)) => return view.choose(Item::Port(pair.to_owned()), state),
            Some(("save", path)) => match view.possible(Do::Save, state) {
                Ok(()) => return Answer::Save(path.to_owned()),
                Err(why) => view.told.message = Some(format!("save: {why}")),
            },
            Some(("upgrade", from)) => return background::upgrade_from(from, view, state),
            Some((_, name)) => return view.choose(Item::Namespace(Some(name.to_owned())), state),
            None => {}
        }
        Answer::Close
    }

    /// Returns true if what was typed is meant as a rule of its own: no rule of the list is like it.
    fn is_rule(&self) -> bool {
        let typed = self.typed.trim();
        !typed.is_empty() && (self.matching() == 0 || typed.parse::<FaultRule>().is_ok())
    }

    fn remember(&self, view: &mut ViewState) {
        if self.what == What::Palette && !self.typed.trim().is_empty() {
            view.finder.commands.retain(|known| *known != self.typed);
            view.finder.commands.push(self.typed.clone());
            if view.finder.commands.len() > KEPT {
                view.finder.commands.remove(0);
            }
        }
        if self.what == What::Jump {
            view.finder.last_jump = (self.typed.clone(), self.index);
        }
    }
}

impl Layer for Picker {
    fn key(&mut self, key: Key, view: &mut ViewState, state: &State) -> Answer {
        let answer = self.answer(key, view, state);
        if matches!(answer, Answer::Stay) {
            self.preview(view);
        }
        answer
    }

    fn draw(&self, state: &State, view: &mut ViewState, canvas: &mut Canvas<'_>) {
        draw(self, state, view, canvas);
    }

    fn paste(&mut self, text: &str, _view: &mut ViewState) {
        if self.typed.len() + text.len() < 500 {
            self.push(text.trim());
        }
    }

    fn scrolls(&self) -> bool {
        true
    }

    fn picks_rows(&self) -> bool {
        true
    }

    fn need(&self) -> Option<Need> {
        match self.what {
            What::Palette => Some(Need::Kinds),
            What::Jump => Some(Need::Files),
            What::Namespace
            | What::Context
            | What::Theme
            | What::Failure
            | What::Disturbance
            | What::Commands
            | What::Ports => None,
        }
    }

    /// The kinds of the API server may come while the palette is open, the files of the project while the
    /// jump is.
    fn catch_up(&mut self, view: &mut ViewState, state: &State) {
        if self.what == What::Jump && self.files != state.files {
            self.fill(Picker::open(What::Jump, view, state));
        }
        if self.what == What::Palette && !self.has_kinds && state.served.is_some() {
            self.fill(Picker::open(What::Palette, view, state));
        }
    }
}

/// Asks for a rule as it was typed; what is wrong with it is said.
fn disturb(typed: &str, view: &mut ViewState, state: &State) -> Answer {
    if matches!(typed, "off" | "none" | "end") && view.possible(Do::Disturb, state).is_ok() {
        return view.choose(Item::Disturb(None), state);
    }
    match (typed.parse::<FaultRule>(), view.possible(Do::Disturb, state)) {
        (Ok(rule), Ok(())) => return view.choose(Item::Disturb(Some(rule)), state),
        (_, Err(why)) => view.told.message = Some(format!("inject faults: {why}")),
        (Err(why), Ok(())) => view.told.message = Some(format!("inject faults: {why}")),
    }
    Answer::Close
}

/// Draws the box over the upper part of the panes.
fn draw(picker: &Picker, state: &State, view: &mut ViewState, canvas: &mut Canvas<'_>) {
    let Canvas { buffer, body, .. } = canvas;
    let cells = body.width.saturating_sub(4).clamp(20.min(body.width), 110);
    let lines = picker.best.len().clamp(1, 18) as u16;
    let height = (lines + 4).min(body.height);
    let area = Rect { x: body.x + (body.width - cells) / 2, y: body.y, width: cells, height };
    let (title, prompt) = match picker.what {
        What::Palette => ("Commands", ":"),
        What::Jump => ("Go to anything", "▸"),
        What::Namespace => ("Namespace", "▸"),
        What::Context => ("Context", "▸"),
        What::Theme => ("Theme", "▸"),
        What::Commands => ("Your own commands", "▸"),
        What::Ports => ("Forward a port (8080:80 takes any other)", "▸"),
        What::Failure => ("Make it fail", "▸"),
        What::Disturbance => ("Inject a fault; one that is on ends", "rule"),
    };
    let inner = plain_box(buffer, view, area, title);
    let room = (inner.width as usize).saturating_sub(1);
    let typed = Row::new(Role::Key, format!(" {prompt} "))
        .and(if picker.resumed { Role::Selected } else { Role::Text }, picker.typed.clone())
        .and(Role::Text, "▏")
        .and(Role::Dim, format!("  {} of {}", picker.matching(), picker.of.count()));
    typed.draw(buffer, view.look.theme, (inner.x, inner.y), room, false);
    let height = (inner.height as usize).saturating_sub(2);
    let skip = (picker.index + 1).saturating_sub(height);
    for (i, at) in picker.best.iter().enumerate().skip(skip).take(height) {
        let row = line(picker, *at, state, view, room);
        let y = inner.y + 1 + (i - skip) as u16;
        row.draw(buffer, view.look.theme, (inner.x, y), room, i == picker.index);
    }
    let chosen = (!picker.best.is_empty()).then(|| inner.y + 1 + (picker.index - skip) as u16);
    view.screen.spots.dialog = Some(Dialog { area, chosen, below: area.bottom() });
    if picker.best.is_empty() {
        let text =
            if picker.of.count() == 0 { " There is nothing to choose. " } else { " Nothing matches. " };
        Row::new(Role::Dim, text).draw(buffer, view.look.theme, (inner.x, inner.y + 1), room, false);
    }
    let keys = Row::new(Role::Key, " enter")
        .and(Role::Text, " chooses  ")
        .and(Role::Key, "↑↓")
        .and(Role::Text, " move  ");
    let keys = keys.and(Role::Key, "esc").and(Role::Text, " closes");
    if inner.height >= 3 {
        keys.draw(buffer, view.look.theme, (inner.x, inner.bottom() - 1), room, false);
    }
}

/// One line: its text with the matching letters marked, and the keys of an action or why it is not possible.
fn line(picker: &Picker, at: u32, state: &State, view: &ViewState, room: usize) -> Row {
    let (mut role, mut tail) = (Role::Text, String::new());
    if let Item::Action(does) = picker.of.item(at) {
        tail = view.keys.map.text(*does);
        if let Err(why) = view.possible(*does, state) {
            (role, tail) = (Role::Dim, format!("not now: {why}"));
        } else if view.keys.map.by(*does).is_none() {
            role = Role::Dim;
        }
    }
    if let Item::File(_) = picker.of.item(at) {
        tail = "opens in your editor".to_owned();
    }
    if let Item::Own(own) = picker.of.item(at)
        && let Some(own) = view.keys.own.get(*own)
        && let Err(why) = possible(own, view, state)
    {
        (role, tail) = (Role::Dim, format!("not now: {why}"));
    }
    let tail = cut(&tail, room / 2);
    let text = picker.of.shown(at);
    let shown = cut(text, room.saturating_sub(width(&tail) + 3));
    let hits = picker.of.matches(at, &picker.query());
    let mut row = Row::new(Role::Text, " ");
    let mut piece = String::new();
    let mut marked = false;
    for (byte, c) in shown.char_indices() {
        // A cut text ends in an ellipsis, which matches nothing.
        let hit = hits.binary_search(&byte).is_ok() && text[byte..].starts_with(c);
        if hit != marked && !piece.is_empty() {
            row = row.and(if marked { Role::Match } else { role }, std::mem::take(&mut piece));
        }
        marked = hit;
        piece.push(c);
    }
    row = row.and(if marked { Role::Match } else { role }, piece);
    let used = width(&row.text());
    row.and(Role::Dim, right(&tail, room.saturating_sub(used + 1))).and(Role::Text, " ")
}
