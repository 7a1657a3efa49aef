//! The question before the first write to a cluster that is not clearly local. What its keys do is in
//! `dialog/unlock`.

use super::super::dialog::Unlock;
use super::super::text::{Row, wrap};
use super::super::theme::Role;
use super::super::view::ViewState;
use crate::tui::draw::boxes::boxed;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

/// What stands there, what it means, and the name to type.
pub(super) fn draw(unlock: &Unlock, view: &ViewState, buffer: &mut Buffer, body: Rect) {
    let cells = (body.width as usize).saturating_sub(8).min(70);
    let text = |text: &str, role: Role| {
        wrap(text, cells).into_iter().map(|line| Row::new(role, format!(" {line} "))).collect::<Vec<_>>()
    };
    let mut rows = vec![Row::default()];
    let what = format!("{} is not clearly local: {}.", unlock.context, unlock.marks);
    rows.extend(text(&what, Role::Text));
    let then = format!(
        "Unlocked, opdev applies CRDs to {} and reconciles every custom resource of this project there, until it ends.",
        unlock.server
    );
    rows.extend(text(&then, Role::Busy));
    rows.push(Row::default());
    let role = if unlock.is_right() { Role::Good } else { Role::Key };
    rows.push(Row::new(Role::Text, " type the context's name  ").and(role, format!("{}▏", unlock.typed)));
    rows.push(Row::default());
    rows.push(
        Row::new(Role::Key, " enter")
            .and(if unlock.is_right() { Role::Text } else { Role::Dim }, " unlock  ")
            .and(Role::Key, "esc")
            .and(Role::Text, " stay read-only "),
    );
    boxed(&format!("Unlock {}?", unlock.context), &rows, None, view, buffer, body);
}
