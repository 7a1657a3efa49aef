//! Text that the user writes or looks at before it is written to the cluster: a file in the editor, a change
//! to confirm. The file's text is in the file only; changes are masked.

use super::ObjectChange;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// Numbers drafts; the number of the request that opened it.
pub type DraftId = u64;

/// A draft and how far it is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Draft {
    /// The draft.
    pub id: DraftId,
    /// When it got this far.
    pub at: Timestamp,
    /// The subject, such as `edit Memcached default/web`.
    pub about: String,
    /// How far it is.
    #[serde(flatten)]
    pub stage: DraftStage,
}

/// How far a draft is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "stage", rename_all = "camelCase")]
pub enum DraftStage {
    /// Its file is to be opened in the editor, once for each round.
    Editing {
        /// The file.
        path: String,
        /// Counted from 1.
        round: u32,
    },
    /// It waits for the user's word.
    Review(Review),
    /// It is over.
    Closed,
}

/// The writes that would be made.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Review {
    /// The changes, as the API server's dry run says.
    pub changes: Vec<ObjectChange>,
    /// The API server's warnings.
    pub warnings: Vec<String>,
    /// Notes to read before: data that is lost, changes that others have made meanwhile.
    pub notes: Vec<String>,
    /// Why it cannot be written as it is.
    pub problem: Option<String>,
    /// True if its text can be opened in the editor once more.
    pub editable: bool,
}

/// Something that was done and may be undone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Undoable {
    /// Its number; newer drafts have larger ones.
    pub id: u64,
    /// When it was done.
    pub at: Timestamp,
    /// The action, such as `scale Memcached default/web to 5`.
    pub what: String,
    /// Why it cannot be undone, where that is so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why_not: Option<String>,
}
