//! Adds the rules that the operator's role lacks to the project's role file, once the user has seen the change.

use super::drafts::{Draft, Work};
use super::{Done, Requests};
use crate::dev::private_folder::write_in_project;
use crate::dev::service_account::Addition;
use crate::event::{DraftStage, Review};
use anyhow::{Context as _, Result, bail};
use opdev_object::lines;
use std::path::{Path, PathBuf};

/// A file that is written once the user says so.
#[derive(Clone, Debug)]
pub(super) struct FileChange {
    pub(super) path: PathBuf,
    /// As the user knows it.
    pub(super) file: String,
    /// `None` where there was none.
    pub(super) before: Option<String>,
    pub(super) after: String,
}

impl Requests {
    /// Opens a draft with the role file's change.
    pub(super) async fn add_rules(&self, id: u64) -> Result<Done> {
        let rules = self.rules.clone().context("the operator does not run as its ServiceAccount")?;
        let made = tokio::task::spawn_blocking(move || rules.addition()).await;
        let Addition { path, file, before, after, notes } =
            made.context("reading the role files failed")??;
        let old = before.clone().unwrap_or_default();
        let diff = lines::unified(&format!("a/{file}"), &format!("b/{file}"), &old, &after);
        let mut review = Review { notes, ..Review::default() };
        review.notes.push(diff.unwrap_or_default());
        let about = format!("add the missing rules to {file}");
        let draft = Draft::new(about, Work::File(FileChange { path, file, before, after }));
        let draft = self.drafts.open(id, draft);
        let draft = draft.lock().await;
        self.tell(id, &draft, DraftStage::Review(review)).await;
        Ok(Done::said("nothing is written yet; the rules are shown"))
    }
}

impl FileChange {
    /// Writes the file whole or not at all.
    ///
    /// # Errors
    /// Where it has changed since, or cannot be written.
    pub(super) fn write(&self, root: &Path) -> Result<()> {
        if std::fs::read_to_string(&self.path).ok() != self.before {
            bail!("{} has changed meanwhile; look at the change once more", self.file);
        }
        let inside = self.path.strip_prefix(root).unwrap_or(&self.path);
        write_in_project(root, inside, self.after.as_bytes())
    }
}
