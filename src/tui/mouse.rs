//! The mouse, where the user wants it: a click goes to a pane and selects a row, the wheel scrolls what is below it.
//! Nothing is ever asked for by a click.

use super::command::{Command, Input, Mouse};
use super::keys::Key;
use super::layer::Layer;
use super::pane::Pane;
use super::update::update;
use super::view::ViewState;
use crate::state::State;
use crossterm::event::{KeyCode, MouseButton, MouseEvent, MouseEventKind};
use ratatui::layout::{Position, Rect};

/// Rows of one turn of the wheel.
const TURN: usize = 3;

impl Mouse {
    /// What an event of the terminal means here.
    pub fn of(event: MouseEvent) -> Option<Mouse> {
        let at = (event.column, event.row);
        match event.kind {
            MouseEventKind::Down(MouseButton::Left) => Some(Mouse::Click(at.0, at.1)),
            MouseEventKind::ScrollUp => Some(Mouse::Wheel { up: true, at }),
            MouseEventKind::ScrollDown => Some(Mouse::Wheel { up: false, at }),
            _ => None,
        }
    }
}

/// The pane at a place of the screen, as last drawn.
fn pane(view: &ViewState, (x, y): (u16, u16)) -> Option<(Pane, Rect)> {
    let inside = |area: &Rect| area.contains(Position { x, y });
    let hit = |pane: Pane| Some((pane, view.places[pane.index()])).filter(|(_, area)| inside(area));
    // Neighbours share a border; the focused one is drawn on top.
    hit(view.focus).or_else(|| Pane::ALL.into_iter().find_map(hit))
}

/// Takes what the mouse did.
pub(super) fn take(view: &mut ViewState, mouse: Mouse, state: &State) -> Vec<Command> {
    if let Some(layer) = view.layers.last() {
        // A dialog keeps the keys; in lists and texts the wheel moves, in others it could press something.
        let scrolls = matches!(layer, Layer::Help { .. } | Layer::Picker(_) | Layer::Samples { .. });
        return match mouse {
            Mouse::Wheel { up, .. } if scrolls => {
                let code = if up { KeyCode::Up } else { KeyCode::Down };
                update(view, Input::Key(Key::plain(code)), state)
            }
            Mouse::Wheel { .. } | Mouse::Click(..) => Vec::new(),
        };
    }
    match mouse {
        Mouse::Click(x, y) => {
            if let Some((pane, area)) = pane(view, (x, y)) {
                view.look_at(pane);
                click(view, pane, area, y);
            }
        }
        Mouse::Wheel { up, at } => {
            if let Some((pane, _)) = pane(view, at) {
                view.look_at(pane);
                let row = view.at();
                view.go(if up { row.saturating_sub(TURN) } else { row + TURN });
            }
        }
    }
    Vec::new()
}

/// The rows of a list stand at the bottom of its pane, whatever headings are above them.
fn click(view: &mut ViewState, pane: Pane, area: Rect, y: u16) {
    let bottom = area.bottom().saturating_sub(1);
    let first = bottom.saturating_sub(view.heights[pane.index()] as u16);
    if pane == Pane::Detail || !(first..bottom).contains(&y) {
        return;
    }
    let row = view.offset(pane) + usize::from(y - first);
    if row < view.rows() {
        view.go(row);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tui::tests::fixture::busy;
    use crate::tui::tests::frames::{screen, text};

    fn mouse(view: &mut ViewState, mouse: Mouse) -> Vec<Command> {
        let state = busy();
        screen(&state, view, "", (120, 36));
        update(view, Input::Mouse(mouse), &state)
    }

    #[test]
    fn a_click_selects_what_is_under_it_and_asks_for_nothing() {
        let (state, mut view) = (busy(), ViewState::default());
        let shown = text(&screen(&state, &mut view, "", (120, 36)));
        let row = |what: &str| shown.lines().position(|line| line.contains(what)).unwrap() as u16;
        assert_eq!(mouse(&mut view, Mouse::Click(10, row("nightly"))), []);
        assert_eq!(view.root(&state).unwrap().key.name, "nightly");
        mouse(&mut view, Mouse::Click(60, 5));
        assert_eq!((view.focus, view.lists.resources.len()), (Pane::Reconciles, 3));
        mouse(&mut view, Mouse::Click(60, 30));
        assert_eq!(view.focus, Pane::Detail);
        mouse(&mut view, Mouse::Click(10, 10));
        assert_eq!((view.focus, view.root(&state).unwrap().key.name.as_str()), (Pane::Resources, "nightly"));
    }

    #[test]
    fn the_wheel_scrolls_what_is_under_it_and_presses_nothing() {
        let (state, mut view) = (busy(), ViewState::default());
        let wheel = |up, at| Mouse::Wheel { up, at };
        mouse(&mut view, wheel(false, (10, 4)));
        assert_eq!(view.root(&state).unwrap().key.name, "nightly");
        mouse(&mut view, wheel(true, (10, 4)));
        assert_eq!(view.root(&state).unwrap().key.name, "big");
        screen(&state, &mut view, "D", (120, 36));
        let before = format!("{:?}", view.layers);
        assert_eq!(mouse(&mut view, wheel(false, (60, 15))), []);
        assert_eq!(mouse(&mut view, Mouse::Click(60, 15)), []);
        assert_eq!(format!("{:?}", view.layers), before, "a question is answered by keys");
    }
}
