//! Runs beside the screen: a question before one begins, and its page while it runs and after it.

use super::answer::Answer;
use crate::act::writable::connected;
use crate::draw::boxes::{boxed, key_row};
use crate::draw::frame::plain_box;
use crate::layer::{Canvas, Layer};
use crate::view::ViewState;
use crossterm::event::KeyCode;
use opdev_event::{BackgroundCommand, ProjectTask, Request, Task};
use opdev_panes::click_targets::Dialog;
use opdev_panes::disabled::NotNow;
use opdev_panes::keys::action::Do;
use opdev_panes::keys::chord::Key;
use opdev_panes::pages::background::{Position, draw, title};
use opdev_panes::text::{Row, wrap};
use opdev_panes::theme::Role;
use opdev_state::State;
use std::time::Duration;

const TORTURE: BackgroundCommand = BackgroundCommand::Torture { sample: None };
const UPGRADE: BackgroundCommand = BackgroundCommand::Upgrade { from: None };

/// Returns no error if a run may begin.
pub(crate) fn possible(_: &ViewState, state: &State) -> Result<(), NotNow> {
    connected(state)?;
    match state.samples().is_empty() {
        true => Err("the project has no sample; put one into config/samples".into()),
        false => Ok(()),
    }
}

/// Opens the page of torture, or asks which sample is to be tortured.
pub(crate) fn open_torture(view: &mut ViewState, state: &State) {
    match state.requests.run_like(&TORTURE) {
        Some(_) => view.open(BackgroundPage::of(TORTURE)),
        None => view.open(Begin::torture(view, state)),
    }
}

/// Opens the page of the upgrade, or asks from which version.
pub(crate) fn open_upgrade(view: &mut ViewState, state: &State) {
    match state.requests.run_like(&UPGRADE) {
        Some(_) => view.open(BackgroundPage::of(UPGRADE)),
        None => view.open(Begin { command: UPGRADE, index: 0, typed: String::new() }),
    }
}

/// Rehearses the upgrade from a version that was typed.
pub(crate) fn upgrade_from(from: &str, view: &mut ViewState, state: &State) -> Answer {
    if let Err(why) = view.possible(Do::Upgrade, state) {
        view.told.message = Some(format!("upgrade: {why}"));
        return Answer::Close;
    }
    view.open(BackgroundPage::of(UPGRADE));
    Answer::Ask(request(BackgroundCommand::Upgrade { from: Some(from.to_owned()) }))
}

fn request(command: BackgroundCommand) -> Request {
    ProjectTask::Background { command }.into()
}

/// The question before a run.
#[derive(Debug)]
struct Begin {
    command: BackgroundCommand,
    /// The chosen sample; 0 is all of them.
    index: usize,
    /// The typed version.
    typed: String,
}

impl Begin {
    /// The sample of the selected custom resource is chosen.
    fn torture(view: &ViewState, state: &State) -> Begin {
        let selected = view.root(state).map(|seen| (seen.key.name.clone(), seen.key.kind.clone()));
        let is_selected = |object: &opdev_object::meta::ObjectRef| {
            selected.as_ref().is_some_and(|(name, kind)| *name == object.name && *kind == object.gvk.kind)
        };
        let at = state.samples().iter().position(|sample| is_selected(&sample.object));
        Begin { command: TORTURE, index: at.map_or(0, |at| at + 1), typed: String::new() }
    }

    fn asked(&self, state: &State) -> BackgroundCommand {
        match &self.command {
            BackgroundCommand::Torture { .. } => {
                let sample = self.index.checked_sub(1).and_then(|at| state.samples().get(at));
                BackgroundCommand::Torture { sample: sample.map(|sample| sample.path.clone()) }
            }
            BackgroundCommand::Upgrade { .. } => {
                let typed = self.typed.trim();
                BackgroundCommand::Upgrade { from: (!typed.is_empty()).then(|| typed.to_owned()) }
            }
        }
    }
}

impl Layer for Begin {
    fn key(&mut self, key: Key, view: &mut ViewState, state: &State) -> Answer {
        let types = matches!(self.command, BackgroundCommand::Upgrade { .. });
        match (key.code, key.typed()) {
            (KeyCode::Esc, _) => return Answer::Close,
            (KeyCode::Enter, _) => {
                view.open(BackgroundPage::of(self.command.clone()));
                return Answer::Ask(request(self.asked(state)));
            }
            (KeyCode::Backspace, _) => drop(self.typed.pop()),
            (KeyCode::Char('u' | 'w'), None) if key.ctrl => self.typed.clear(),
            (_, Some(c)) if types && self.typed.len() < 200 => self.typed.push(c),
            (KeyCode::Down | KeyCode::Tab, _) | (_, Some('j')) => {
                self.index = (self.index + 1).min(state.samples().len());
            }
            (KeyCode::Up | KeyCode::BackTab, _) | (_, Some('k')) => self.index = self.index.saturating_sub(1),
            _ => {}
        }
        Answer::Stay
    }

    fn paste(&mut self, text: &str, _view: &mut ViewState) {
        self.typed.extend(text.trim().chars().take_while(|c| !c.is_control()).take(200));
    }

    fn draw(&self, state: &State, view: &mut ViewState, canvas: &mut Canvas<'_>) {
        let cells = (canvas.body.width as usize).saturating_sub(6).min(84);
        let (name, about) = match &self.command {
            BackgroundCommand::Torture { .. } => (
                "Torture",
                "The operator is killed between two writes, misses events, hears late, and is judged by how that ends. It runs \
                 beside the screen on control planes of its own: your objects are not touched. Which sample?",
            ),
            BackgroundCommand::Upgrade { .. } => (
                "Upgrade",
                "The released version makes the objects of its samples, then your working tree takes over. It runs beside the \
                 screen on control planes of its own: your objects are not touched. From which tag, commit or folder?",
            ),
        };
        let mut rows: Vec<Row> =
            wrap(about, cells).into_iter().map(|line| Row::new(Role::Text, format!(" {line}"))).collect();
        rows.push(Row::default());
        let mut selected = None;
        match &self.command {
            BackgroundCommand::Torture { .. } => {
                let before = rows.len();
                let all =
                    std::iter::once("all samples").chain(state.samples().iter().map(|one| one.path.as_str()));
                let room = (canvas.body.height as usize).saturating_sub(before + 5).max(1);
                let skip = (self.index + 1).saturating_sub(room);
                rows.extend(all.skip(skip).take(room).map(|text| Row::new(Role::Text, format!(" {text} "))));
                selected = Some(before + self.index - skip);
            }
            BackgroundCommand::Upgrade { .. } => {
                let hint = if self.typed.is_empty() { "the newest tag" } else { "" };
                rows.push(
                    Row::new(Role::Key, " ▸ ")
                        .and(Role::Text, format!("{}▏", self.typed))
                        .and(Role::Dim, hint),
                );
            }
        }
        rows.push(Row::default());
        rows.push(
            Row::new(Role::Key, " enter")
                .and(Role::Text, " begins  ")
                .and(Role::Key, "esc")
                .and(Role::Text, format!(" not now   the same in a shell: {}", self.asked(state).line())),
        );
        boxed(name, &rows, selected, view, canvas);
    }

    fn picks_rows(&self) -> bool {
        matches!(self.command, BackgroundCommand::Torture { .. })
    }
}

/// The page of the newest run of a command.
#[derive(Debug)]
struct BackgroundPage {
    command: BackgroundCommand,
    position: Position,
}

impl BackgroundPage {
    fn of(command: BackgroundCommand) -> Self {
        BackgroundPage { command, position: Position::default() }
    }
}

impl Layer for BackgroundPage {
    fn key(&mut self, key: Key, view: &mut ViewState, state: &State) -> Answer {
        let position = &mut self.position;
        let Some(run) = state.requests.run_like(&self.command) else { return Answer::Close };
        let finding = run.findings.get(position.chosen);
        match (key.code, key.typed()) {
            (KeyCode::Esc, _) | (_, Some('q')) if position.whole => {
                (position.whole, position.scroll) = (false, 0);
            }
            (KeyCode::Esc, _) | (_, Some('q')) => return Answer::Close,
            (KeyCode::Down, _) | (_, Some('j' | '>')) => position.step(run, true),
            (KeyCode::Up, _) | (_, Some('k' | '<')) => position.step(run, false),
            (KeyCode::PageDown, _) => position.scroll(true),
            (KeyCode::PageUp, _) => position.scroll(false),
            (KeyCode::Enter, _) => (position.whole, position.scroll) = (finding.is_some(), 0),
            (KeyCode::Char('o'), _) => match finding.and_then(|finding| finding.place.clone()) {
                Some(place) => return Answer::OpenFile(place),
                None => view.told.message = Some("no place in the code is known for this".to_owned()),
            },
            (_, Some('c')) => {
                let line = finding.map(|finding| finding.replay.clone()).filter(|line| !line.is_empty());
                return Answer::Copy("the command", line.unwrap_or_else(|| run.command.line()));
            }
            (_, Some('x')) if run.end.is_none() => {
                return Answer::AskOn(Task::Cancel { id: run.request }.into());
            }
            (_, Some('R')) if run.end.is_some() => {
                *position = Position::default();
                return Answer::AskOn(request(run.command.clone()));
            }
            (_, Some('n')) if run.end.is_some() => {
                return Answer::Open(Box::new(match &self.command {
                    BackgroundCommand::Torture { .. } => Begin::torture(view, state),
                    BackgroundCommand::Upgrade { .. } => {
                        Begin { command: UPGRADE, index: 0, typed: String::new() }
                    }
                }));
            }
            _ => {}
        }
        Answer::Stay
    }

    fn draw(&self, state: &State, view: &mut ViewState, canvas: &mut Canvas<'_>) {
        let area = canvas.body;
        let Some(run) = state.requests.run_like(&self.command) else {
            boxed("Beside the screen", &[Row::new(Role::Dim, " It begins. ")], None, view, canvas);
            return;
        };
        if run.end.is_none() {
            view.wake_in(Duration::from_secs(1));
        }
        let inner = plain_box(canvas.buffer, view, area, &title(run));
        let (chosen, below) = draw(run, &self.position, (canvas.buffer, view.look.theme), inner, canvas.now);
        view.screen.spots.dialog = Some(Dialog { area, chosen, below });
    }

    fn footer(&self, _view: &ViewState, state: &State) -> Option<Row> {
        let run = state.requests.run_like(&self.command)?;
        let finding = run.findings.get(self.position.chosen);
        let (some, runs) = (finding.is_some(), run.end.is_none());
        let all = [
            (some && !self.position.whole, ("enter", "whole page")),
            (finding.is_some_and(|finding| finding.place.is_some()), ("o", "code")),
            (run.findings.len() > 1 && self.position.whole, ("< >", "other finding")),
            (runs && !self.position.whole, ("x", "stop")),
            (!runs && !self.position.whole, ("R", "again")),
            (!runs && !self.position.whole, ("n", "another one")),
            (true, ("c", "copy the command")),
            (self.position.whole, ("esc", "back")),
            (runs && !self.position.whole, ("esc", "close, it goes on")),
            (!runs && !self.position.whole, ("esc", "close")),
        ];
        let shown: Vec<(&str, &str)> =
            all.into_iter().filter(|(shown, _)| *shown).map(|(_, key)| key).collect();
        Some(key_row(&shown))
    }

    fn scrolls(&self) -> bool {
        true
    }

    fn picks_rows(&self) -> bool {
        !self.position.whole
    }
}
