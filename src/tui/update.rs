//! Keys become view changes and commands. Pure: the same view, input and state give the same result.

use super::act;
use super::act::mouse;
use super::act::programs;
use super::command::{Command, Input};
use super::dialog::Answer;
use super::keys::keymap::Found;
use super::layer::Layer;
use super::view::ViewState;
use crate::act::ask::ask;
use crossterm::event::KeyCode;
use opdev_panes::keys::action::Do;
use opdev_panes::keys::chord::{Chord, Key};
use opdev_panes::pane::Pane;
use opdev_state::State;

/// Longer texts do not get through to a clipboard: terminals take about 75 kB in base64.
const MOST_COPIED: usize = 55_000;

/// One input.
pub fn update(view: &mut ViewState, input: Input, state: &State) -> Vec<Command> {
    view.refresh(state);
    let commands = match input {
        Input::Key(key) if comes_after_esc(view, key) => {
            let mut commands = self::key(view, Key::plain(KeyCode::Esc), state);
            view.refresh(state);
            commands.extend(self::key(view, Key { alt: false, ..key }, state));
            commands
        }
        Input::Key(key) => self::key(view, key, state),
        Input::Mouse(mouse) => mouse::take(view, mouse, state),
        Input::Paste(text) => {
            if let Some(mut layer) = view.layers.pop() {
                let text: String = text.chars().filter(|c| !c.is_control()).take(500).collect();
                layer.paste(&text, view);
                view.layers.push(layer);
            }
            Vec::new()
        }
    };
    view.refresh(state);
    commands
}

/// Returns true if this is escape and a key after it. A terminal sends both as it sends alt and that key, and
/// a slow connection delivers them together: where alt and the key mean nothing, the two are what was typed.
fn comes_after_esc(view: &ViewState, key: Key) -> bool {
    let ambiguous = matches!(key.code, KeyCode::Char(_) | KeyCode::Enter | KeyCode::Tab | KeyCode::Backspace);
    let mut typed = view.keys.typed.clone();
    typed.push(key);
    let means = |keys: &[Key]| {
        own_command(view, keys).is_some() || !matches!(view.keys.map.find(keys, true), Found::Nothing)
    };
    key.alt && ambiguous && !means(&typed) && !means(&[key])
}

fn key(view: &mut ViewState, key: Key, state: &State) -> Vec<Command> {
    view.told.message = None;
    let mut typed = std::mem::take(&mut view.keys.typed);
    view.keys.typed_at = None;
    if let Found::Action(action) = view.keys.map.find(&[key], false)
        && matches!(action.does, Do::Stop | Do::Redraw | Do::Suspend)
    {
        return action.perform(view, state);
    }
    if let Some(mut layer) = view.layers.pop() {
        let answer = layer.key(key, view, state);
        if !matches!(answer, Answer::Pass) {
            return answered(view, state, layer, answer);
        }
    }
    typed.push(key);
    match own_command(view, &typed) {
        Some(Own::Start(at)) => return start_own(view, at, state),
        Some(Own::Prefix) => {
            view.keys.typed = typed;
            return Vec::new();
        }
        None => {}
    }
    let finding = view.focus == Pane::Detail && !view.detail.search.text.is_empty();
    let action = match view.keys.map.find(&typed, finding) {
        Found::Action(action) => action,
        Found::Prefix => {
            view.keys.typed = typed;
            return Vec::new();
        }
        Found::Nothing => {
            if key != Key::plain(KeyCode::Esc) {
                let keys = view.keys.map.keys(Do::Help);
                let help = keys.first().map_or_else(|| ":help".to_owned(), ToString::to_string);
                view.told.message = Some(format!("{} does nothing; {help} shows all keys", Chord(typed)));
            }
            return Vec::new();
        }
    };
    if let Err(why) = action.possible(view, state) {
        view.told.message = Some(format!("{}: {why}", action.title));
        return Vec::new();
    }
    action.perform(view, state)
}

/// The meaning of keys among the user's own commands.
enum Own {
    /// The command at this place.
    Start(usize),
    /// They begin a longer one.
    Prefix,
}

/// The command of the user that these keys start. They come first: a key of one's own is taken from the
/// action that has it.
fn own_command(view: &ViewState, typed: &[Key]) -> Option<Own> {
    let keys = || view.keys.own.iter().map(|own| own.key.as_ref().map_or(&[][..], |key| &key.0));
    let longer = |key: &[Key]| key.len() > typed.len() && key.starts_with(typed);
    match keys().position(|key| key == typed) {
        Some(at) => Some(Own::Start(at)),
        None => keys().any(longer).then_some(Own::Prefix),
    }
}

fn start_own(view: &mut ViewState, at: usize, state: &State) -> Vec<Command> {
    match programs::start(at, view, state) {
        Ok(programs::Start::Ask(request)) => return ask(view, request),
        Ok(programs::Start::Confirm(confirm)) => view.open(confirm),
        Err(why) => view.told.message = Some(why.to_string()),
    }
    Vec::new()
}

/// The result of a dialog's answer.
fn answered(view: &mut ViewState, state: &State, layer: Box<dyn Layer>, answer: Answer) -> Vec<Command> {
    match answer {
        Answer::Stay => {
            view.layers.push(layer);
            Vec::new()
        }
        Answer::Close | Answer::Pass => Vec::new(),
        Answer::Ask(request) => {
            view.marks.clear();
            ask(view, request)
        }
        Answer::Copy(what, text) => {
            if text.len() > MOST_COPIED {
                view.told.message = Some(format!("the {what} is too long for the clipboard of a terminal"));
                return Vec::new();
            }
            view.told.message = Some(format!("✓ asked the terminal to copy: {what}"));
            vec![Command::Copy(text)]
        }
        Answer::AskOn(request) => {
            view.layers.push(layer);
            ask(view, request)
        }
        Answer::Save(path) => act::save(Some(path), view, state),
        Answer::OpenFile(place) => vec![super::act::open_file::command(&place, state)],
        Answer::Act(does) => view.perform(does, state),
        Answer::Open(opening) => {
            view.layers.push(opening);
            Vec::new()
        }
    }
}
