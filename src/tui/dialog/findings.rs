//! Errors of the operator: a list, worst first, and below it the page of the chosen one. Enter gives the page
//! the whole place, where the reconciles that show it can be opened.

use super::answer::Answer;
use super::ignore::IgnoreFinding;
use crate::draw::boxes::{boxed, divider, key_row};
use crate::draw::frame::plain_box;
use crate::layer::{Canvas, Layer};
use crate::view::ViewState;
use crossterm::event::KeyCode;
use opdev_event::{RuleFinding, words};
use opdev_panes::click_targets::Dialog;
use opdev_panes::keys::chord::Key;
use opdev_panes::lists::finding_columns::FindingColumns;
use opdev_panes::pages::finding::{ids, page, reconciles, shown_by};
use opdev_panes::text::Row;
use opdev_panes::theme::Role;
use opdev_state::State;
use ratatui::layout::Rect;
use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

/// The most rows of the list beside a page.
const ROWS: usize = 8;
/// From this width on, the reconciles stand beside the page.
const BESIDE: usize = 110;
/// The width of the reconciles there.
const RECONCILES: usize = 40;

/// The dialog. It holds on to a finding, not to a place: what is counted meanwhile moves nothing.
#[derive(Clone, Debug, Default)]
pub(crate) struct FindingsList {
    chosen: Option<u64>,
    /// True if the page has the whole place.
    whole: bool,
    /// The chosen reconcile of a whole page; the newest where it is none that is shown.
    reconcile: u64,
    /// The first line of the page that is shown.
    scroll: usize,
    /// The most that it can be, as last drawn.
    deepest: Cell<usize>,
}

impl FindingsList {
    fn index(&self, state: &State) -> usize {
        let all = state.findings.all();
        self.chosen.and_then(|id| all.iter().position(|finding| finding.id == id)).unwrap_or(0)
    }

    fn go(&mut self, state: &State, to: usize) {
        let all = state.findings.all();
        self.chosen = all.get(to.min(all.len().saturating_sub(1))).map(|finding| finding.id);
        (self.scroll, self.reconcile) = (0, 0);
    }

    /// Up and down: in the list another finding, on a whole page another reconcile.
    fn step(&mut self, state: &State, down: bool) {
        let index = self.index(state);
        let stepped = |at: usize| if down { at + 1 } else { at.saturating_sub(1) };
        if !self.whole {
            return self.go(state, stepped(index));
        }
        let Some(finding) = state.findings.all().get(index) else { return };
        let ids = ids(finding);
        let to = stepped(self.chosen_reconcile(&ids)).min(ids.len().saturating_sub(1));
        self.reconcile = ids.get(to).copied().unwrap_or_default();
    }

    fn chosen_reconcile(&self, ids: &[u64]) -> usize {
        ids.iter().position(|id| *id == self.reconcile).unwrap_or(0)
    }

    /// Enter: the whole page, and on it the chosen reconcile.
    fn enter(&mut self, finding: &RuleFinding, view: &mut ViewState, state: &State) -> Answer {
        if !std::mem::replace(&mut self.whole, true) {
            (self.chosen, self.scroll) = (Some(finding.id), 0);
            self.reconcile = ids(finding).first().copied().unwrap_or_default();
            return Answer::Stay;
        }
        let ids = ids(finding);
        let Some(id) = ids.get(self.chosen_reconcile(&ids)).copied() else { return Answer::Stay };
        view.go_to(&finding.object.key(), state);
        view.go_to_reconcile(id, state);
        Answer::Close
    }
}

impl Layer for FindingsList {
    fn key(&mut self, key: Key, view: &mut ViewState, state: &State) -> Answer {
        let index = self.index(state);
        let Some(finding) = state.findings.all().get(index).map(Arc::clone) else { return Answer::Close };
        match (key.code, key.typed()) {
            (KeyCode::Esc, _) | (_, Some('q')) if self.whole => (self.whole, self.scroll) = (false, 0),
            (KeyCode::Esc, _) | (_, Some('q' | 'f')) => return Answer::Close,
            (KeyCode::Down, _) | (_, Some('j')) => self.step(state, true),
            (KeyCode::Up, _) | (_, Some('k')) => self.step(state, false),
            (_, Some('>')) => self.go(state, index + 1),
            (_, Some('<')) => self.go(state, index.saturating_sub(1)),
            (KeyCode::PageDown, _) => self.scroll = (self.scroll + 5).min(self.deepest.get()),
            (KeyCode::PageUp, _) => self.scroll = self.scroll.saturating_sub(5),
            (KeyCode::Enter, _) => return self.enter(&finding, view, state),
            (KeyCode::Char('o'), _) => {
                if let Some(place) = &finding.place {
                    return Answer::OpenFile(place.clone());
                }
                view.told.message = Some("no place in the code is known for this finding".to_owned());
            }
            (_, Some('x')) => return Answer::Open(Box::new(IgnoreFinding::of(&finding, self.clone()))),
            _ => {}
        }
        Answer::Stay
    }

    fn draw(&self, state: &State, view: &mut ViewState, canvas: &mut Canvas<'_>) {
        let all = state.findings.all();
        if all.is_empty() {
            let text = " Nothing is wrong with the operator, as far as opdev has seen it. ";
            boxed("Findings", &[Row::new(Role::Dim, text)], None, view, canvas);
            return;
        }
        view.wake_in(Duration::from_secs(1));
        let index = self.index(state);
        let Some(finding) = all.get(index) else { return };
        let about = format!(
            "{} of {} · {} · {}",
            index + 1,
            all.len(),
            finding.short(),
            words::short_ref(&finding.object)
        );
        let area = canvas.body;
        if self.whole {
            let inner = plain_box(canvas.buffer, view, area, &format!("Finding {about}"));
            view.screen.spots.dialog = Some(Dialog { area, chosen: None, below: area.bottom() });
            self.draw_page(finding, state, view, canvas, inner);
            return;
        }
        let open = state.findings.open().count();
        let title = match all.len() - open {
            0 => format!("Findings · {open} open"),
            ended => format!("Findings · {open} open · {ended} ended"),
        };
        let inner = plain_box(canvas.buffer, view, area, &title);
        let shown = all.len().min(ROWS).min((inner.height as usize / 3).max(1));
        let skip = (index + 1).saturating_sub(shown);
        let columns = FindingColumns::of(inner.width as usize);
        let mut y = inner.y;
        let mut put = |row: &Row, selected: bool, view: &ViewState, canvas: &mut Canvas<'_>| {
            row.draw(canvas.buffer, view.look.theme, (inner.x, y), inner.width as usize, selected);
            y += 1;
        };
        put(&columns.head(), false, view, canvas);
        for (at, finding) in all.iter().enumerate().skip(skip).take(shown) {
            put(&columns.row(finding, at == index, canvas.now), at == index, view, canvas);
        }
        view.screen.spots.dialog =
            Some(Dialog { area, chosen: Some(inner.y + 1 + (index - skip) as u16), below: y });
        // A blank row keeps the list apart, where there is room for one.
        y += u16::from(inner.height > 16);
        divider(canvas.buffer, view, area, y, (Role::Focus, &about));
        let below = Rect { y: y + 1, height: inner.bottom().saturating_sub(y + 1), ..inner };
        self.draw_page(finding, state, view, canvas, below);
    }

    fn footer(&self, _view: &ViewState, state: &State) -> Option<Row> {
        let keys: &[(&str, &str)] = match self.whole {
            _ if state.findings.all().is_empty() => &[("esc", "close")],
            true => &[
                ("enter", "open reconcile"),
                ("o", "code"),
                ("x", "ignore"),
                ("< >", "other finding"),
                ("esc", "back"),
            ],
            false => &[
                ("enter", "whole page"),
                ("o", "code"),
                ("x", "ignore"),
                ("↑↓", "other finding"),
                ("esc", "close"),
            ],
        };
        Some(key_row(keys))
    }

    fn catch_up(&mut self, _view: &mut ViewState, state: &State) {
        // What comes while one reads takes no other place.
        self.chosen = self.chosen.or_else(|| state.findings.all().first().map(|finding| finding.id));
    }

    fn scrolls(&self) -> bool {
        true
    }

    fn picks_rows(&self) -> bool {
        !self.whole
    }
}

impl FindingsList {
    /// The page in a place; where it is wide, the reconciles stand on its right side, else below.
    fn draw_page(
        &self,
        finding: &RuleFinding,
        state: &State,
        view: &mut ViewState,
        canvas: &mut Canvas<'_>,
        place: Rect,
    ) {
        let chosen = self.whole.then(|| self.chosen_reconcile(&ids(finding)));
        let told = reconciles(finding, state, chosen, &view.look.zone);
        let beside = place.width as usize >= BESIDE && !told.is_empty();
        let text = match beside {
            true => Rect { width: place.width - RECONCILES as u16, ..place },
            false => place,
        };
        let mut looked_at = None;
        let mut rows = page(finding, text.width as usize, &view.look.zone);
        let head = Row::new(Role::Title, format!(" {}", shown_by(finding)));
        if beside {
            let right = Rect { x: text.right(), width: RECONCILES as u16, ..place };
            for (at, row) in std::iter::once(head).chain(told).enumerate().take(right.height as usize) {
                let at = (right.x, right.y + at as u16);
                row.draw(canvas.buffer, view.look.theme, at, right.width as usize, false);
            }
        } else if !told.is_empty() {
            rows.push(head);
            looked_at = chosen.map(|at| rows.len() + at);
            rows.extend(told);
        }
        let room = text.height as usize;
        let deepest = rows.len().saturating_sub(room);
        self.deepest.set(deepest);
        // The chosen reconcile is in sight, above the line that says how much follows.
        let seen = looked_at.map_or(0, |at| (at + 2).saturating_sub(room));
        let from = self.scroll.max(seen).min(deepest);
        let left = rows.len().saturating_sub(from + room);
        let mut rows: Vec<Row> = rows.into_iter().skip(from).take(room).collect();
        if let Some(last) = rows.last_mut().filter(|_| left > 0) {
            *last = Row::new(Role::Dim, format!(" ↓ {} more lines (pgdn)", left + 1));
        }
        for (at, row) in rows.iter().enumerate() {
            let at = (text.x, text.y + at as u16);
            row.draw(canvas.buffer, view.look.theme, at, text.width as usize, false);
        }
    }
}
