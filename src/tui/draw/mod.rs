//! A state and a view become a frame. Draws only what is visible, and notes when something on it will have
//! changed by itself. Nothing is decided here: what is shown comes from `view`, what it means from the state.

pub(super) mod bottom;
pub(super) mod boxes;
mod columns;
mod detail;
mod footer;
mod found;
pub(super) mod frame;
mod header;
mod kind_table;
mod lists;
mod operator_log;
mod panes;
pub(super) mod pieces;
mod reconciles;
mod resources;
mod which_key;

pub(super) use columns::shown_columns;
use pieces::line;

use super::dialog::progress;
use super::layer::Canvas;
use super::toast::toast;
use super::view::ViewState;
use jiff::Timestamp;
use opdev_panes::click_targets::Spots;
use opdev_panes::glyphs;
use opdev_panes::layout::Shape;
use opdev_panes::text::wrap;
use opdev_panes::theme::Role;
use opdev_state::State;
use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

/// Below this nothing useful fits.
const LEAST: (u16, u16) = (30, 8);

/// Draws one frame.
pub fn draw(state: &State, view: &mut ViewState, frame: &mut Frame<'_>, now: Timestamp) {
    let area = frame.area();
    paint(state, view, frame.buffer_mut(), area, now);
    if view.look.ascii {
        glyphs::make_ascii(frame.buffer_mut());
    }
}

/// Brings lists and layers up to date: what is over closes, what asks the user opens.
fn take_in(state: &State, view: &mut ViewState) {
    view.refresh(state);
    view.layers.retain(|layer| layer.is_open(state));
    view.open_trust(state);
    view.open_held(state);
    super::drafts::open_reviews(view, state);
}

/// Takes in what is new, and draws into a buffer; too small a screen may open no question that takes a key.
pub(super) fn paint(state: &State, view: &mut ViewState, buffer: &mut Buffer, area: Rect, now: Timestamp) {
    view.screen.wake = None;
    view.screen.found_told = false;
    if area.width < LEAST.0 || area.height < LEAST.1 {
        return too_small(view, buffer, area);
    }
    take_in(state, view);
    view.screen.shape = Shape::of(area.width, area.height);
    view.screen.spots = Spots::default();
    let top = header::header(state, view, area.width as usize, now);
    line(buffer, view, Rect { height: 1, ..area }, &top);
    let body = Rect { y: area.y + 1, height: area.height - 2, ..area };
    let toast = toast(view, state, now);
    // Boxes that come and go take rows from the bottom edge: the text one reads stays on its line.
    let bottom = bottom::Bottom::of(state, view, toast, body);
    panes::draw(state, view, buffer, body, bottom.from(body), now);
    bottom.draw(view, buffer, body);
    footer::draw(state, view, buffer, Rect { y: area.bottom() - 1, height: 1, ..area });
    which_key::draw(view, state, buffer, body, now);
    let mut canvas = Canvas { buffer, body, now };
    progress(state, view, &mut canvas);
    for layer in std::mem::take(&mut view.layers) {
        // Only the topmost one takes the mouse.
        view.screen.spots.answers.clear();
        layer.draw(state, view, &mut canvas);
        view.layers.push(layer);
    }
}

fn too_small(view: &ViewState, buffer: &mut Buffer, area: Rect) {
    let text = format!(
        "opdev needs {}x{}, this is {}x{}. It keeps running.",
        LEAST.0, LEAST.1, area.width, area.height
    );
    let lines = wrap(&text, area.width as usize);
    for (i, text) in lines.iter().take(area.height as usize).enumerate() {
        buffer.set_stringn(
            area.x,
            area.y + i as u16,
            text,
            area.width as usize,
            view.look.theme.style(Role::Text),
        );
    }
}
