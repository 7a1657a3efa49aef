//! Dialogs over the panes. What their keys do is in `dialog`.

use super::super::dialog::{Choice, Confirm, Scale, choices};
use super::super::text::{Row, left, wrap};
use super::super::theme::Role;
use super::super::view::ViewState;
use super::boxes::{boxed, buttons};
use crate::state::State;
use crate::tui::layer::Layer;
use jiff::Timestamp;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

/// Draws one dialog.
pub(super) fn draw(
    layer: &Layer,
    state: &State,
    view: &mut ViewState,
    buffer: &mut Buffer,
    body: Rect,
    now: Timestamp,
) {
    match layer {
        Layer::Help { scroll, typed } => {
            super::help::draw(*scroll, typed.as_deref(), state, view, buffer, body);
        }
        Layer::Picker(picker) => super::picker::draw(picker, state, view, buffer, body),
        Layer::Filter { .. } | Layer::Search { .. } => {}
        Layer::Samples { typed, index } => samples(typed, *index, state, view, buffer, body),
        Layer::Scale(scale) => self::scale(scale, view, buffer, body),
        Layer::Delete(delete) => super::delete::draw(delete, view, buffer, body),
        Layer::Unlock(unlock) => super::unlock::draw(unlock, view, buffer, body),
        Layer::Held(held) => super::held::draw(held, state, view, buffer, body),
        Layer::Trust(trust) => super::trust::draw(trust, state, view, buffer, body),
        Layer::Confirm(confirm) => self::confirm(confirm, view, buffer, body),
        Layer::Review(review) => super::review::draw(review, state, view, buffer, body),
        Layer::New { typed, index } => super::review::new(typed, *index, state, view, buffer, body),
        Layer::Copy { index } => super::leave::copy(*index, state, view, buffer, body),
        Layer::Leave { index, to } => super::leave::draw(*index, to.as_ref(), state, view, buffer, body),
        Layer::Switching(switching) => super::leave::switching(switching, state, view, buffer, body),
        Layer::Undo { index } => super::review::undo(*index, state, view, buffer, body, now),
        Layer::Memory => super::memory::draw(state, view, buffer, body),
        Layer::Tasks { index } => super::tasks::draw(*index, state, view, buffer, body, now),
    }
}

fn samples(typed: &str, index: usize, state: &State, view: &ViewState, buffer: &mut Buffer, body: Rect) {
    let choices = choices(state, typed);
    let index = index.min(choices.len().saturating_sub(1));
    let mut rows = vec![
        Row::new(Role::Key, " ▸ ")
            .and(Role::Text, format!("{typed}▏"))
            .and(Role::Dim, if typed.is_empty() { "type to narrow, or a path" } else { "" }),
    ];
    let height = (body.height as usize).saturating_sub(5).max(1);
    let skip = (index + 1).saturating_sub(height);
    for choice in choices.iter().skip(skip).take(height) {
        rows.push(match choice {
            Choice::Sample(sample) => Row::new(
                Role::Text,
                format!(" {} {}", left(&sample.kind_among(state.samples()), 18), sample.object.name),
            )
            .and(Role::Dim, format!("  {} ", sample.path)),
            Choice::Path(path) if path.ends_with('/') => Row::new(Role::Text, format!(" the folder {path} ")),
            Choice::Path(path) => Row::new(Role::Text, format!(" the file {path} ")),
        });
    }
    if choices.is_empty() {
        let text = match state.samples() {
            [_, ..] => " No sample matches; a path ends in .yaml.",
            [] if state.reload.live.is_none() => " The project is not read yet; type the path of a file.",
            [] => " The project has no samples; type the path of a file.",
        };
        rows.push(Row::new(Role::Dim, text));
    }
    rows.push(
        Row::new(Role::Key, " enter")
            .and(Role::Text, " apply  ")
            .and(Role::Key, "esc")
            .and(Role::Text, " cancel"),
    );
    let selected = (!choices.is_empty()).then_some(1 + index - skip);
    boxed("Apply", &rows, selected, view, buffer, body);
}

fn scale(scale: &Scale, view: &ViewState, buffer: &mut Buffer, body: Rect) {
    let field = format!("{}▏", scale.typed);
    let from = scale.from.map_or_else(|| "not set".to_owned(), |n| n.to_string());
    let roomy = body.height > 12;
    let mut rows = super::delete::named(&scale.objects, if roomy { 8 } else { 2 });
    rows.extend(roomy.then(Row::default));
    rows.push(
        Row::new(Role::Text, " replicas  ").and(Role::Key, field).and(Role::Dim, format!("   now {from}")),
    );
    if let Some(owner) = &scale.owner {
        let text = format!("{owner} owns it: its reconciler puts the number back, unless it is paused (p).");
        let lines = wrap(&text, (body.width as usize).saturating_sub(8).min(60));
        rows.extend(lines.into_iter().map(|line| Row::new(Role::Busy, format!(" {line} "))));
    }
    rows.extend(roomy.then(Row::default));
    rows.push(
        Row::new(Role::Key, " enter")
            .and(Role::Text, " scale  ")
            .and(Role::Key, "↑↓")
            .and(Role::Text, " more, fewer  ")
            .and(Role::Key, "esc")
            .and(Role::Text, " cancel "),
    );
    let title = match scale.objects.as_slice() {
        [one] => format!("Scale {one}"),
        many => format!("Scale {} objects", many.len()),
    };
    boxed(&title, &rows, None, view, buffer, body);
}

fn confirm(confirm: &Confirm, view: &ViewState, buffer: &mut Buffer, body: Rect) {
    let roomy = body.height > 12;
    let mut rows = super::delete::named(&confirm.objects, if roomy { 12 } else { 3 });
    rows.extend(roomy.then(Row::default));
    rows.push(buttons(confirm.on_yes, "Cancel", confirm.word));
    boxed(&confirm.title, &rows, None, view, buffer, body);
}
