//! Keys become view changes and commands. Pure: the same view, input and state give the same result.

use super::act;
use super::act::change_view;
use super::act::enabled::enabled;
use super::act::leave::asks_before_leaving;
use super::act::mouse;
use super::act::programs;
use super::command::{Command, Input, ask};
use super::dialog::{Answer, FilterLine, Help, Leave, Memory, Samples};
use super::find;
use super::layer::Layer;
use super::toast;
use super::view::ViewState;
use crossterm::event::KeyCode;
use opdev_event::{Asker, Place, SessionRequest};
use opdev_panes::detail::TABS;
use opdev_panes::keys::action::Do;
use opdev_panes::keys::chord::{Chord, Key};
use opdev_panes::keys::keymap::Found;
use opdev_panes::layout::Shape;
use opdev_panes::pane::{Pane, Tab};
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
        return perform(view, action.does, state);
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
    if let Err(why) = enabled(action.does, view, state) {
        view.told.message = Some(format!("{}: {why}", action.title));
        return Vec::new();
    }
    perform(view, action.does, state)
}

/// What keys mean among the user's own commands.
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

/// What a dialog's answer leads to.
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
        Answer::OpenFile(file) => {
            vec![super::act::open_file::command(&Place { file, line: 0, column: 0 }, state)]
        }
        Answer::Act(does) => perform(view, does, state),
        Answer::Open(opening) => {
            view.layers.push(opening);
            Vec::new()
        }
    }
}

fn perform(view: &mut ViewState, does: Do, state: &State) -> Vec<Command> {
    let page = view.screen.heights[view.focus.index()].max(1);
    let at = view.at();
    match does {
        Do::Up => view.go(at.saturating_sub(1)),
        Do::Down => view.go(at + 1),
        Do::PageUp => view.go(at.saturating_sub(page)),
        Do::PageDown => view.go(at + page),
        Do::HalfUp => view.go(at.saturating_sub(page.div_ceil(2))),
        Do::HalfDown => view.go(at + page.div_ceil(2)),
        Do::Top => view.go(0),
        Do::Bottom => view.go(view.rows().saturating_sub(1)),
        Do::Left => sideways(view, false),
        Do::Right => sideways(view, true),
        Do::NextPane => view.look_at(beside(view, 1)),
        Do::PreviousPane => view.look_at(beside(view, Pane::COUNT - 1)),
        Do::Pane(pane) => view.look_at(pane),
        Do::Open => open(view, state),
        Do::Back => back(view, state),
        Do::NextTab => tab(view, true),
        Do::PreviousTab => tab(view, false),
        Do::See(see) => change_view::perform(view, see, state),
        // No reconcile has written a log about the objects of a table; their pods may have logs.
        Do::Show(Tab::LOG) if view.browse.is_some() => show(view, Tab::PODS),
        Do::Show(tab) => show(view, tab),
        Do::Apply
        | Do::New
        | Do::Edit
        | Do::Undo
        | Do::AddRules
        | Do::FetchDependencies
        | Do::Scale
        | Do::Delete
        | Do::Held
        | Do::HoldCharts
        | Do::Disturb
        | Do::Reconcile
        | Do::Pause
        | Do::PauseKind
        | Do::Step
        | Do::Check
        | Do::Fail
        | Do::Tasks
        | Do::Notices
        | Do::Findings
        | Do::Unlock
        | Do::Freeze
        | Do::Shell
        | Do::Forward
        | Do::OwnCommands
        | Do::Save
        | Do::Copy
        | Do::Reload => return act::act(does, view, state),
        Do::Mark if matches!(view.focus, Pane::Reconciles | Pane::Detail | Pane::Log) => view.go(at + page),
        Do::Mark => view.mark(),
        Do::MarkRange => view.mark_range(),
        Do::MarkOthers => view.mark_others(),
        Do::Zoom => view.zoom = !view.zoom,
        Do::Border(side) => return view.move_border(side),
        Do::OpenFile => return super::act::open_file::open(view, state),
        Do::Scope => view.all = !view.all,
        Do::Wrap => view.detail.wrap = !view.detail.wrap,
        Do::Filter => view.open(FilterLine::of(view)),
        Do::Seek(seek) => find::perform(view, seek, state),
        Do::Help => view.open(Help::default()),
        Do::Memory => view.open(Memory),
        Do::Redraw => return vec![Command::Redraw],
        Do::Suspend => return vec![Command::Suspend],
        Do::Quit | Do::Stop if view.leaving => return vec![Command::Leave],
        Do::Quit if asks_before_leaving(state) => view.open(Leave::default()),
        Do::Quit | Do::Stop => {
            view.leaving = true;
            view.layers.clear();
            return ask(view, SessionRequest::Quit { by: Asker::User });
        }
    }
    Vec::new()
}

/// The pane so many steps after the focused one, among those that have a place of their own.
fn beside(view: &ViewState, steps: usize) -> Pane {
    let shape = view.screen.shape;
    let has_place = |pane: Pane| match pane {
        Pane::Reconciles => view.browse.is_none(),
        Pane::Log => view.browse.is_none() && (shape == Shape::One || shape.has_log()),
        Pane::Resources | Pane::Owned | Pane::Detail => true,
    };
    let mut at = view.focus.index();
    loop {
        at = (at + steps) % Pane::COUNT;
        if has_place(Pane::ALL[at]) {
            return Pane::ALL[at];
        }
    }
}

fn sideways(view: &mut ViewState, right: bool) {
    if view.focus == Pane::Detail && (right || view.detail.tab != Tab::STATUS) {
        return tab(view, right);
    }
    if view.focus == Pane::Reconciles && change_view::fold_reconcile(view, right) {
        return;
    }
    if view.browse.is_some() {
        return view.look_at(if right { Pane::Detail } else { Pane::Resources });
    }
    let shape = view.screen.shape;
    let to = match (view.focus, right) {
        (Pane::Resources, true) if shape.has_pages() => Pane::Owned,
        (Pane::Owned, false) if shape.has_pages() => Pane::Resources,
        (Pane::Detail | Pane::Log, false) if shape.has_pages() => Pane::Reconciles,
        (Pane::Reconciles, true) if shape.has_pages() => Pane::Detail,
        (Pane::Resources, true) => Pane::Reconciles,
        (Pane::Owned, true) if shape == Shape::Three => Pane::Reconciles,
        (Pane::Owned, true) => Pane::Detail,
        (Pane::Reconciles | Pane::Log, true) if shape == Shape::Three => Pane::Detail,
        (Pane::Log, true) if shape == Shape::Logged => Pane::Detail,
        (Pane::Log, false) if shape != Shape::Logged => Pane::Owned,
        (Pane::Reconciles, false) => Pane::Resources,
        (Pane::Detail, false) if shape == Shape::Three => Pane::Reconciles,
        (Pane::Detail, false) => Pane::Owned,
        (pane, _) => pane,
    };
    view.look_at(to);
}

fn tab(view: &mut ViewState, next: bool) {
    let at = TABS.iter().position(|tab| tab.tab() == view.detail.tab).unwrap_or(0);
    let to = if next { at + 1 } else { at + TABS.len() - 1 };
    view.detail.open(TABS[to % TABS.len()].tab());
}

fn show(view: &mut ViewState, tab: Tab) {
    view.show(tab);
}

fn open(view: &mut ViewState, state: &State) {
    match view.focus {
        Pane::Resources if view.browse.is_some() => {
            if view.subject(state).is_some() {
                show(view, Tab::YAML);
            }
        }
        Pane::Resources if view.resources.rows.is_empty() => {
            if enabled(Do::Apply, view, state).is_ok() {
                view.open(Samples::default());
            }
        }
        // Its page says why it ran last; the tabs beside it say what it is.
        Pane::Resources if view.screen.shape.has_pages() => show(view, Tab::STATUS),
        Pane::Resources => view.look_at(Pane::Reconciles),
        Pane::Owned => show(view, Tab::YAML),
        Pane::Reconciles if view.screen.shape.has_pages() && !view.reconciles.stands_for_many() => {
            show(view, Tab::STATUS);
        }
        Pane::Reconciles => change_view::open_reconcile(view),
        Pane::Detail | Pane::Log => view.zoom = !view.zoom,
    }
}

/// The first of these that there is: a dismissable message, a filter, the zoom, a pane to go back to.
fn back(view: &mut ViewState, state: &State) {
    let panicked = view.told.panicked.take().is_some() || view.look.following.dismiss();
    let lasting = toast::lasting(view, state);
    view.told.dismissed = lasting.max(view.told.dismissed);
    if panicked || lasting.is_some() {
        return;
    }
    let problems = state.problems();
    if !problems.is_empty() && view.told.hidden.as_ref() != Some(&problems) {
        view.told.hidden = Some(problems);
        return;
    }
    if view.marks.clear() {
        return;
    }
    if view.focus == Pane::Detail && !view.detail.search.text.is_empty() {
        view.detail.search.set(String::new());
    } else if !view.filter(view.focus).is_empty() {
        view.part_mut(view.focus).filter_mut().clear();
    } else if (view.focus == Pane::Reconciles && view.reconciles.fold_selected()) || view.close_page() {
    } else if view.zoom {
        view.zoom = false;
    } else if view.browse.is_some() && view.focus == Pane::Resources {
        view.close_table();
    } else if view.browse.is_some() {
        view.look_at(Pane::Resources);
    } else if view.focus == Pane::Log && !view.screen.shape.has_log() {
        view.look_at(Pane::Detail);
    } else if view.focus == Pane::Detail {
        let to = if view.chosen_in == Pane::Owned && view.detail.tab == Tab::YAML {
            Pane::Owned
        } else {
            Pane::Reconciles
        };
        view.look_at(to);
    } else {
        view.look_at(Pane::Resources);
    }
}
