//! Open drafts: texts in the editor and changes that wait for the user's word.

use super::file::DraftFile;
use super::file_change::FileChange;
use crate::objects::write::Write;
use anyhow::{Context as _, Result};
use opdev_event::DraftId;
use opdev_object::meta::ObjectRef;
use serde_json::Value;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Mutex as AsyncMutex;

/// The purpose of a draft.
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
    /// True if errors stood on top of it.
    pub(crate) refused: bool,
    pub(crate) round: u32,
    /// Writes that are made once the user says so.
    pub(crate) writes: Vec<Write>,
    pub(crate) notes: Vec<String>,
    /// When the editor was asked for.
    pub(crate) opened: Option<Instant>,
}

/// An editor that is back sooner with nothing changed has not waited for its user.
const AT_ONCE: Duration = Duration::from_secs(1);
/// Texts in windows of editors that did not wait.
const WINDOWS: usize = 16;

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
            opened: None,
        }
    }

    /// Keeps the text in the project where the user has changed it; says where, to end a message.
    pub(crate) fn keep(&self) -> String {
        self.file.as_ref().and_then(DraftFile::keep).unwrap_or_default()
    }
}

/// Open drafts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Drafts {
    open: Arc<Mutex<HashMap<DraftId, Arc<AsyncMutex<Draft>>>>>,
    /// Files that an editor may still show in a window of its own. What is saved there is kept when opdev
    /// ends.
    in_windows: Arc<Mutex<VecDeque<DraftFile>>>,
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

    /// Where the editor was back at once, takes the file out of the draft, and says what the user may want to
    /// know.
    pub(crate) fn returned_at_once(&self, draft: &mut Draft) -> Option<String> {
        draft.opened.filter(|opened| opened.elapsed() < AT_ONCE)?;
        let file = draft.file.take()?;
        let hint = format!(
            "; the editor was back at once. One with a window of its own must be told to wait, such as `code --wait`; what \
             is saved in {} is kept in .opdev/drafts when opdev ends",
            file.path().display()
        );
        let mut windows = self.in_windows.lock().unwrap_or_else(PoisonError::into_inner);
        windows.push_back(file);
        while windows.len() > WINDOWS {
            windows.pop_front();
        }
        Some(hint)
    }

    pub(crate) fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<DraftId, Arc<AsyncMutex<Draft>>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
