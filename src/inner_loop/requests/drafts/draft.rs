//! Open drafts: texts in the editor and changes that wait for the user's word.

use super::file::DraftFile;
use super::file_change::FileChange;
use crate::objects::write::Write;
use anyhow::{Context as _, Result};
use opdev_event::DraftId;
use opdev_object::meta::ObjectRef;
use serde_json::Value;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::Mutex as AsyncMutex;

/// What a draft is for.
#[derive(Clone, Debug)]
pub(crate) enum Work {
    /// To change an object; the text was made of it as it was then.
    Edit { object: ObjectRef, base: Value },
    /// To create objects.
    New,
    /// To undo something.
    Undo { entry: u64 },
    /// To change a file of the project.
    File(FileChange),
}

/// A draft.
#[derive(Debug)]
pub(crate) struct Draft {
    pub(crate) about: String,
    pub(crate) work: Work,
    pub(crate) file: Option<DraftFile>,
    /// The text as it was last handed to the editor, without the comments on top.
    pub(crate) handed: String,
    /// Whether errors stood on top of it.
    pub(crate) refused: bool,
    pub(crate) round: u32,
    /// What is written once the user says so.
    pub(crate) writes: Vec<Write>,
    pub(crate) notes: Vec<String>,
}

impl Draft {
    pub(crate) fn new(about: String, work: Work) -> Draft {
        Draft {
            about,
            work,
            file: None,
            handed: String::new(),
            refused: false,
            round: 0,
            writes: Vec::new(),
            notes: Vec::new(),
        }
    }
}

/// Open drafts.
#[derive(Clone, Debug, Default)]
pub struct Drafts {
    open: Arc<Mutex<HashMap<DraftId, Arc<AsyncMutex<Draft>>>>>,
}

impl Drafts {
    pub(crate) fn open(&self, id: DraftId, draft: Draft) -> Arc<AsyncMutex<Draft>> {
        let draft = Arc::new(AsyncMutex::new(draft));
        self.lock().insert(id, Arc::clone(&draft));
        draft
    }

    pub(crate) fn get(&self, id: DraftId) -> Result<Arc<AsyncMutex<Draft>>> {
        self.lock().get(&id).cloned().context("this draft is closed")
    }

    pub(crate) fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<DraftId, Arc<AsyncMutex<Draft>>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
