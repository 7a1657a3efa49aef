//! The mouse, where the user wants it: a click goes to a pane and selects a row, the wheel scrolls what is
//! below it. A click on a tab, a heading or a key of the footer does what its key does; a border can be
//! dragged.

use crate::command::{Command, Input, Mouse};
use crate::update::update;
use crate::view::ViewState;
use crossterm::event::{KeyCode, MouseButton, MouseEvent, MouseEventKind};
use opdev_panes::click_targets::{Shown, Spot};
use opdev_panes::keys::action::Do;
use opdev_panes::keys::chord::Key;
use opdev_panes::layout;
use opdev_panes::lists::kind_table::TableSort;
use opdev_panes::lists::table::{Column, Sort};
use opdev_panes::pane::Pane;
use opdev_state::State;
use ratatui::layout::{Position, Rect};
use std::cmp::Ordering;

/// Rows of one turn of the wheel.
const TURN: usize = 3;

impl Mouse {
    /// The meaning of an event of the terminal.
    pub fn of(event: MouseEvent) -> Option<Mouse> {
        let at = (event.column, event.row);
        match event.kind {
            MouseEventKind::Down(MouseButton::Left) => Some(Mouse::Click(at.0, at.1)),
            MouseEventKind::Drag(MouseButton::Left) => Some(Mouse::Drag(at.0, at.1)),
            MouseEventKind::Up(MouseButton::Left) => Some(Mouse::Release),
            MouseEventKind::ScrollUp => Some(Mouse::Wheel { up: true, at }),
            MouseEventKind::ScrollDown => Some(Mouse::Wheel { up: false, at }),
            _ => None,
        }
    }
}

/// The pane at a place of the screen, as last drawn.
fn pane(view: &ViewState, (x, y): (u16, u16)) -> Option<(Pane, Rect)> {
    let inside = |area: &Rect| area.contains(Position { x, y });
    let hit = |pane: Pane| Some((pane, view.screen.places[pane.index()])).filter(|(_, area)| inside(area));
    // Neighbours share a border; the focused one is drawn on top.
    hit(view.focus).or_else(|| Pane::ALL.into_iter().find_map(hit))
}

/// Takes what the mouse did.
pub(crate) fn take(view: &mut ViewState, mouse: Mouse, state: &State) -> Vec<Command> {
    if let Some(layer) = view.layers.last() {
        let (scrolls, picks) = (layer.scrolls(), layer.picks_rows());
        return in_dialog(view, mouse, (scrolls, picks), state);
    }
    match mouse {
        Mouse::Drag(x, y) => view.drag_border((x, y)),
        Mouse::Release => {
            if view.screen.dragged.take().is_some() {
                return view.remember_borders();
            }
        }
        Mouse::Click(x, y) => {
            view.screen.dragged =
                layout::edge_at((x, y), view.screen.shape, &view.screen.places, view.screen.body)
                    .filter(|_| !view.zoom);
            if let Some(tab) = tab_at(view, x, y) {
                return click_tab(view, tab);
            }
            if let (Some(Column::Printer(column)), Some(table)) = (heading_at(view, x, y), &mut view.browse) {
                let down = table.sort.as_ref().is_some_and(|sort| sort.column == column.name && !sort.down);
                table.sort = Some(TableSort { column: column.name, down });
                view.look_at(Pane::Resources);
                return Vec::new();
            }
            if let Some(column) = heading_at(view, x, y) {
                let down = view.resources.sort.by == column && !view.resources.sort.down;
                view.look_at(Pane::Resources);
                view.resources.sort = Sort { by: column, down };
                return Vec::new();
            }
            if let Some(does) = footer_at(view, x, y) {
                let keys = view.keys.map.keys(does).first().map(|chord| chord.0.clone()).unwrap_or_default();
                return keys.into_iter().flat_map(|key| update(view, Input::Key(key), state)).collect();
            }
            if view.screen.dragged.is_some() {
                return Vec::new();
            }
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

/// The mouse while a dialog is open: a click presses the key that it hits, chooses a row, or closes the
/// dialog beside it; a row that is chosen already is opened. The wheel moves in lists and texts; in questions
/// it could press something.
fn in_dialog(
    view: &mut ViewState,
    mouse: Mouse,
    (scrolls, picks): (bool, bool),
    state: &State,
) -> Vec<Command> {
    let press = |view: &mut ViewState, keys: Vec<Key>| -> Vec<Command> {
        keys.into_iter().flat_map(|key| update(view, Input::Key(key), state)).collect()
    };
    let keys = match mouse {
        Mouse::Wheel { up, .. } if scrolls || picks => vec![if up { KeyCode::Up } else { KeyCode::Down }],
        Mouse::Click(x, y) => {
            if let Some(key) = at(&view.screen.spots.answers, x, y) {
                return press(view, vec![key]);
            }
            let Some(dialog) = view.screen.spots.dialog else { return Vec::new() };
            if !dialog.area.contains(Position { x, y }) {
                vec![KeyCode::Esc]
            } else if let Some(chosen) = dialog.chosen.filter(|_| picks && y < dialog.below) {
                match y.cmp(&chosen) {
                    Ordering::Equal => vec![KeyCode::Enter],
                    Ordering::Less => vec![KeyCode::Up; usize::from(chosen - y)],
                    Ordering::Greater => vec![KeyCode::Down; usize::from(y - chosen)],
                }
            } else {
                Vec::new()
            }
        }
        Mouse::Wheel { .. } | Mouse::Drag(..) | Mouse::Release => Vec::new(),
    };
    press(view, keys.into_iter().map(Key::plain).collect())
}

/// The target at a place of one row, as last drawn.
fn at<T: Clone>(spots: &[Spot<T>], x: u16, y: u16) -> Option<T> {
    let hit = |spot: &&Spot<T>| spot.y == y && (spot.from..spot.to).contains(&x);
    spots.iter().find(hit).map(|spot| spot.what.clone())
}

fn tab_at(view: &ViewState, x: u16, y: u16) -> Option<Shown> {
    at(&view.screen.spots.tabs, x, y)
}

fn heading_at(view: &ViewState, x: u16, y: u16) -> Option<Column> {
    at(&view.screen.spots.headings, x, y)
}

/// The action whose key stands at a place of the footer. What destroys is asked about after it.
fn footer_at(view: &ViewState, x: u16, y: u16) -> Option<Do> {
    at(&view.screen.spots.keys, x, y)
}

fn click_tab(view: &mut ViewState, shown: Shown) -> Vec<Command> {
    match shown {
        Shown::Tab(tab) => view.show(tab),
        Shown::Pane(pane) => view.look_at(pane),
    }
    Vec::new()
}

/// The rows of a list stand at the bottom of its pane, whatever headings are above them.
fn click(view: &mut ViewState, pane: Pane, area: Rect, y: u16) {
    let bottom = area.bottom().saturating_sub(1);
    let first = bottom.saturating_sub(view.screen.heights[pane.index()] as u16);
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
    use crate::dialog::Help;
    use crate::tests::fixture::busy;
    use crate::tests::frames::{screen, text};

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
        assert_eq!((view.focus, view.resources.rows.len()), (Pane::Reconciles, 3));
        mouse(&mut view, Mouse::Click(60, 30));
        assert_eq!(view.focus, Pane::Detail);
        mouse(&mut view, Mouse::Click(10, 7));
        assert_eq!((view.focus, view.root(&state).unwrap().key.name.as_str()), (Pane::Resources, "nightly"));
    }

    #[test]
    fn tabs_headings_keys_and_borders_take_the_mouse() {
        let (state, mut view) = (busy(), ViewState::default());
        let place = |view: &mut ViewState, what: &str| {
            let shown = text(&screen(&state, view, "", (120, 36)));
            let row = shown.lines().position(|line| line.contains(what)).unwrap();
            let line = shown.lines().nth(row).unwrap();
            (line[..line.find(what).unwrap()].chars().count() as u16, row as u16)
        };
        let (x, y) = place(&mut view, " YAML ");
        mouse(&mut view, Mouse::Click(x + 2, y));
        assert_eq!((view.focus, view.detail.tab), (Pane::Detail, opdev_panes::pane::Tab::YAML));
        let (x, y) = place(&mut view, "NAME");
        mouse(&mut view, Mouse::Click(x, y));
        assert_eq!(
            (view.focus, view.resources.sort.by.clone(), view.resources.sort.down),
            (Pane::Resources, Column::Name, false)
        );
        mouse(&mut view, Mouse::Click(x, y));
        assert!(view.resources.sort.down);
        let (x, y) = place(&mut view, "? help");
        mouse(&mut view, Mouse::Click(x, y));
        assert!(view.layers.len() == 1 && view.top::<Help>().is_some());
        view.layers.clear();
        screen(&state, &mut view, "", (120, 36));
        let edge = view.screen.places[0].right() - 1;
        mouse(&mut view, Mouse::Click(edge, 8));
        mouse(&mut view, Mouse::Drag(edge + 6, 8));
        let asked = mouse(&mut view, Mouse::Release);
        assert!(matches!(
            asked.as_slice(),
            [Command::Request(_, opdev_event::Request::View(opdev_event::ViewRequest::Remember { .. }))]
        ));
        screen(&state, &mut view, "", (120, 36));
        assert_eq!(view.screen.places[0].right() - 1, edge + 6);
        assert!(view.screen.dragged.is_none());
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
