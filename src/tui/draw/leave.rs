//! Leaving and copying: the question before opdev leaves a cluster, how far leaving is, the wait for another cluster,
//! what one can copy.

use super::super::dialog::{Switching, WAYS, copies};
use super::super::text::{Row, cut, left, wrap};
use super::super::theme::Role;
use super::super::view::ViewState;
use crate::event::{Destination, OnExit};
use crate::state::State;
use crate::tui::draw::boxes::boxed;
use crate::tui::layer::Layer;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

/// Draws the question.
pub(super) fn draw(
    index: usize,
    to: Option<&Destination>,
    state: &State,
    view: &ViewState,
    buffer: &mut Buffer,
    body: Rect,
) {
    let cells = (body.width as usize).saturating_sub(8).min(72);
    let many = state.objects.custom_len();
    let cluster = state.started.as_ref().map_or("the cluster", |started| started.cluster.name.as_str());
    let roomy = body.height > 12;
    let mut rows = Vec::new();
    if roomy {
        let text = format!("{many} custom resources live on {cluster}. What becomes of them?");
        rows.extend(wrap(&text, cells).into_iter().map(|line| Row::new(Role::Text, format!(" {line} "))));
    }
    let mut selected = None;
    for (i, (_, name, means)) in WAYS.iter().enumerate() {
        if i == index {
            selected = Some(rows.len());
        }
        let mark = if i == index { "▸" } else { " " };
        rows.push(Row::new(Role::Key, format!(" {mark} {name} ")));
        if roomy || i == index {
            let lines = wrap(means, cells.saturating_sub(4)).into_iter().take(if roomy { 3 } else { 2 });
            rows.extend(lines.map(|line| Row::new(Role::Dim, format!("     {line} "))));
        }
    }
    rows.push(
        Row::new(Role::Key, " ↑↓")
            .and(Role::Dim, " choose  ")
            .and(Role::Key, "enter")
            .and(Role::Dim, " leaves  ")
            .and(Role::Key, "esc")
            .and(Role::Dim, " stays "),
    );
    let title = to.map_or_else(|| "Leave opdev?".to_owned(), |to| format!("Leave {cluster} for {to}?"));
    boxed(&title, &rows, selected, view, buffer, body);
}

/// Draws how far leaving is, while it is under way.
pub(super) fn progress(state: &State, view: &ViewState, buffer: &mut Buffer, body: Rect) {
    let goes_on = matches!(view.layers.last(), Some(Layer::Switching(_)));
    let Some(leaving) = state.leaving.as_ref().filter(|_| view.leaving || goes_on) else { return };
    let done = (leaving.total as usize).saturating_sub(leaving.left.len());
    let (title, word) = match leaving.how {
        OnExit::Uninstall => ("Uninstalling", "gone"),
        OnExit::Release => ("Releasing finalizers", "released"),
        OnExit::Leave => return,
    };
    let most = (body.height as usize).saturating_sub(6).clamp(1, 8);
    let mut rows = vec![Row::new(Role::Text, format!(" {done} of {} {word} ", leaving.total))];
    for object in leaving.left.iter().take(most) {
        let waits = state.objects.get(&object.key()).map(|seen| opdev_object::meta::finalizers(&seen.object));
        let waits = waits.filter(|names| !names.is_empty()).map(|names| format!(": {}", names.join(", ")));
        let text = format!("{object}{}", waits.unwrap_or_default());
        rows.push(Row::new(
            Role::Busy,
            format!("   {} ", cut(&text, (body.width as usize).saturating_sub(10))),
        ));
    }
    if leaving.left.len() > most {
        rows.push(Row::new(Role::Dim, format!("   and {} more ", leaving.left.len() - most)));
    }
    if let Some(first) = leaving.spared.first() {
        let more = match leaving.spared.len() {
            1 => String::new(),
            many => format!(" and {} more", many - 1),
        };
        let text = format!("not this operator's, and spared: {first}{more}");
        rows.push(Row::new(Role::Dim, format!(" {} ", cut(&text, (body.width as usize).saturating_sub(10)))));
    }
    let then = if goes_on { " leaves the rest as it is and goes on " } else { " leaves the rest as it is " };
    rows.push(Row::new(Role::Key, " q").and(Role::Dim, then));
    boxed(title, &rows, None, view, buffer, body);
}

/// Draws the wait for another cluster. Once that answers, what is done here has a box of its own.
pub(super) fn switching(
    switching: &Switching,
    state: &State,
    view: &ViewState,
    buffer: &mut Buffer,
    body: Rect,
) {
    if state.leaving.is_some() {
        return;
    }
    let here = state.started.as_ref().map_or("the cluster", |started| started.cluster.name.as_str());
    let cells = (body.width as usize).saturating_sub(8).min(72);
    let text = format!("Connecting. Nothing changes on {here} until it answers.");
    let mut rows: Vec<Row> =
        wrap(&text, cells).into_iter().map(|line| Row::new(Role::Text, format!(" {line} "))).collect();
    rows.push(Row::new(Role::Key, " esc").and(Role::Dim, format!(" stays on {here} ")));
    boxed(&format!("Going to {}", switching.to), &rows, None, view, buffer, body);
}

/// Draws what one can copy.
pub(super) fn copy(index: usize, state: &State, view: &ViewState, buffer: &mut Buffer, body: Rect) {
    let all = copies(view, state);
    let cells = (body.width as usize).saturating_sub(34).clamp(6, 64);
    let mut rows: Vec<Row> = all
        .iter()
        .map(|(key, what, text)| {
            let first = text.lines().next().unwrap_or_default();
            Row::new(Role::Key, format!(" {key} "))
                .and(Role::Text, format!("{} ", left(what, 22)))
                .and(Role::Dim, format!("{} ", cut(first, cells)))
        })
        .collect();
    if rows.is_empty() {
        rows.push(Row::new(Role::Dim, " Nothing is selected that could be copied. "));
    }
    let selected = (!all.is_empty()).then_some(index.min(all.len().saturating_sub(1)));
    boxed("Copy · esc closes", &rows, selected, view, buffer, body);
}
