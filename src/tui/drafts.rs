//! Wishes of drafts to the screen: the editor for a text, a dialog for a change. Each round is asked for
//! once. Pure.

use super::dialog::{ReviewDialog, review_of};
use super::view::ViewState;
use opdev_event::{DraftId, DraftStage};
use opdev_state::State;
use std::path::PathBuf;

/// The draft whose file is to be opened now, and the file.
pub(super) fn editor_due(view: &mut ViewState, state: &State) -> Option<(DraftId, PathBuf)> {
    if view.leaving || state.stopping.is_some() {
        return None;
    }
    view.questions.edited.retain(|(id, _)| state.drafts.get(*id).is_some());
    let due = state.drafts.all().find_map(|draft| match &draft.stage {
        DraftStage::Editing { path, round } if !view.questions.edited.contains(&(draft.id, *round)) => {
            Some((draft.id, *round, PathBuf::from(path)))
        }
        DraftStage::Editing { .. } | DraftStage::Review(_) | DraftStage::Closed => None,
    });
    let (id, round, path) = due?;
    view.questions.edited.push((id, round));
    Some((id, path))
}

/// Opens the dialog of a change that has come to wait.
pub(super) fn open_reviews(view: &mut ViewState, state: &State) {
    view.questions.reviewed.retain(|(id, _)| state.drafts.get(*id).is_some());
    for draft in state.drafts.all() {
        if review_of(state, draft.id).is_some() && !view.questions.reviewed.contains(&(draft.id, draft.at)) {
            view.questions.reviewed.push((draft.id, draft.at));
            view.open(ReviewDialog::of(draft));
        }
    }
}
