//! Going from match to match in the detail pane.

use super::super::view::ViewState;
use opdev_panes::pane::Pane;

/// Goes to the next match after the one gone to last, or from the first visible line; round and round.
pub(crate) fn step(view: &mut ViewState, forward: bool) {
    let height = view.screen.heights[Pane::Detail.index()];
    let visible = view.detail.scroll..view.detail.scroll + height;
    let at = view.detail.search.line.filter(|line| visible.contains(line));
    let found = view.detail.search.lines(&view.detail.lines.rows);
    let next = match (at, forward) {
        (Some(at), true) => found.iter().find(|line| **line > at),
        (Some(at), false) => found.iter().rev().find(|line| **line < at),
        (None, true) => found.iter().find(|line| **line >= visible.start),
        (None, false) => found.iter().rev().find(|line| **line < visible.end),
    };
    let to = next.or(if forward { found.first() } else { found.last() }).copied();
    view.detail.search.line = to;
    let Some(to) = to else {
        view.told.message = Some(format!("{} is not in these lines", view.detail.search.text));
        return;
    };
    if !visible.contains(&to) {
        let end = view.detail.lines.rows.len().saturating_sub(height);
        view.detail.scroll = to.saturating_sub(height / 3).min(end);
    }
    // A log that runs on would run away from the match.
    view.detail.stick = false;
}
