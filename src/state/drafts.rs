//! Drafts that are open: texts in the editor, changes that wait for the user's word.

use opdev_event::{Draft, DraftId, DraftStage};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Open drafts, by number.
#[derive(Clone, Debug, Default)]
pub struct Drafts {
    open: Arc<BTreeMap<DraftId, Arc<Draft>>>,
}

impl Drafts {
    /// One draft.
    pub fn get(&self, id: DraftId) -> Option<&Arc<Draft>> {
        self.open.get(&id)
    }

    /// All of them, the oldest first.
    pub fn all(&self) -> impl Iterator<Item = &Arc<Draft>> {
        self.open.values()
    }

    pub(super) fn take(&mut self, draft: Arc<Draft>) {
        let open = Arc::make_mut(&mut self.open);
        match draft.stage {
            DraftStage::Closed => open.remove(&draft.id),
            DraftStage::Editing { .. } | DraftStage::Review(_) => open.insert(draft.id, draft),
        };
    }
}
