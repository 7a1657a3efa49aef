//! Adds the rules that the operator's role lacks to the project's role file, or the markers that a Go
//! operator lacks to its source, once the user has seen the change.

use super::Requests;
use super::drafts::draft::{Draft, Work};
use super::drafts::file_change::FileChange;
use super::outcome::Done;
use anyhow::{Context as _, Result, anyhow};
use opdev_event::{DraftStage, Review};
use opdev_generate::rbac;
use opdev_generate::rbac::addition::Addition;
use opdev_object::lines;

impl Requests {
    /// Opens a draft with the role file's change.
    pub(super) async fn add_rules(&self, id: u64) -> Result<Done> {
        let (rules, root, program) =
            (self.operator.rules.clone(), self.project.root.clone(), self.project.has_program());
        let made = tokio::task::spawn_blocking(move || match rules {
            _ if program => rbac::addition(&root),
            Some(rules) => rules.addition(),
            None => Err(anyhow!("the operator does not run as its ServiceAccount")),
        })
        .await;
        let Addition { path, file, before, after, notes } =
            made.context("reading the role files failed")??;
        let old = before.clone().unwrap_or_default();
        let diff = lines::unified(&format!("a/{file}"), &format!("b/{file}"), &old, &after);
        let mut review = Review { notes, ..Review::default() };
        review.notes.push(diff.unwrap_or_default());
        let about = format!("add the missing rules to {file}");
        let draft = Draft::new(about, Work::File(FileChange { path, file, before, after }));
        let draft = self.under_way.drafts.open(id, draft);
        let draft = draft.lock().await;
        self.tell(id, &draft, DraftStage::Review(review)).await;
        Ok(Done::said("nothing is written yet; the rules are shown"))
    }
}
