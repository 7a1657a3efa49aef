//! The wait for another cluster; and, for whatever is done to custom resources before opdev leaves one, how
//! far that is.

use super::answer::Answer;
use crate::draw::boxes::boxed;
use crate::layer::{Canvas, Layer};
use crate::view::ViewState;
use crossterm::event::KeyCode;
use opdev_event::{Destination, OnExit, RequestId, Task};
use opdev_panes::keys::chord::Key;
use opdev_panes::text::{Row, cut, wrap};
use opdev_panes::theme::Role;
use opdev_state::State;

/// The request to go to another cluster is under way.
#[derive(Clone, Debug)]
pub(crate) struct Switching {
    /// The request.
    pub(crate) id: RequestId,
    /// Where to.
    pub(crate) to: Destination,
}

impl Layer for Switching {
    /// Until the other cluster answers one can stay; after that, what is still done to custom resources can
    /// be left.
    fn key(&mut self, key: Key, _view: &mut ViewState, _state: &State) -> Answer {
        match (key.code, key.typed()) {
            (KeyCode::Esc, _) | (_, Some('q')) => Answer::AskOn(Task::Cancel { id: self.id }.into()),
            _ => Answer::Stay,
        }
    }

    /// Once the other cluster answers, what is done here has a box of its own.
    fn draw(&self, state: &State, view: &mut ViewState, canvas: &mut Canvas<'_>) {
        if state.leaving.is_some() {
            return;
        }
        let here = state.started.as_ref().map_or("the cluster", |started| started.cluster.name.as_str());
        let cells = (canvas.body.width as usize).saturating_sub(8).min(72);
        let text = format!("Connecting. Nothing changes on {here} until it answers.");
        let mut rows: Vec<Row> =
            wrap(&text, cells).into_iter().map(|line| Row::new(Role::Text, format!(" {line} "))).collect();
        rows.push(Row::new(Role::Key, " esc").and(Role::Dim, format!(" stays on {here} ")));
        boxed(&format!("Going to {}", self.to), &rows, None, view, canvas);
    }

    fn is_open(&self, state: &State) -> bool {
        !state.requests.finished.iter().any(|finished| finished.id == self.id)
    }
}

/// Draws how far leaving is, while it is under way.
pub(crate) fn progress(state: &State, view: &mut ViewState, canvas: &mut Canvas<'_>) {
    let goes_on = view.top::<Switching>().is_some();
    let Some(leaving) = state.leaving.as_ref().filter(|_| view.leaving || goes_on) else { return };
    let done = (leaving.total as usize).saturating_sub(leaving.left.len());
    let (title, word) = match leaving.how {
        OnExit::Uninstall => ("Uninstalling", "gone"),
        OnExit::Release => ("Releasing finalizers", "released"),
        OnExit::Leave => return,
    };
    let most = (canvas.body.height as usize).saturating_sub(6).clamp(1, 8);
    let mut rows = vec![Row::new(Role::Text, format!(" {done} of {} {word} ", leaving.total))];
    for object in leaving.left.iter().take(most) {
        let waits = state.objects.get(&object.key()).map(|seen| opdev_object::meta::finalizers(&seen.object));
        let waits = waits.filter(|names| !names.is_empty()).map(|names| format!(": {}", names.join(", ")));
        let text = format!("{object}{}", waits.unwrap_or_default());
        rows.push(Row::new(
            Role::Busy,
            format!("   {} ", cut(&text, (canvas.body.width as usize).saturating_sub(10))),
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
        rows.push(Row::new(
            Role::Dim,
            format!(" {} ", cut(&text, (canvas.body.width as usize).saturating_sub(10))),
        ));
    }
    let then = if goes_on { " leaves the rest as it is and goes on " } else { " leaves the rest as it is " };
    rows.push(Row::new(Role::Key, " q").and(Role::Dim, then));
    boxed(title, &rows, None, view, canvas);
}
