//! Drafts: texts in the editor and changes that wait for the user's word. A draft is never lost to an error:
//! what cannot be written stays with its text, to be opened once more. `edit` and `new` make them of texts,
//! `undo` of deeds.

pub(crate) mod draft;
pub(crate) mod edit;
pub(crate) mod error_places;
pub(crate) mod file;
pub(crate) mod file_change;
pub(crate) mod new;
pub(crate) mod save_text;
pub(crate) mod skeleton;

use super::Requests;
use super::outcome::Done;
use crate::drafts::draft::{Draft, Work};
use crate::drafts::file::DraftFile;
use anyhow::{Context as _, Result, anyhow};
use jiff::Timestamp;
use opdev_client::ApiError;
use opdev_event::{DraftId, DraftStage, Event, Review};
use opdev_object::meta::ObjectRef;
use std::sync::Arc;
use std::time::Instant;

impl Requests {
    /// Tells how far a draft is.
    pub(super) async fn tell(&self, id: DraftId, draft: &Draft, stage: DraftStage) {
        let draft = opdev_event::Draft { id, at: Timestamp::now(), about: draft.about.clone(), stage };
        self.events.emit(Event::DraftChanged(Arc::new(draft))).await;
    }

    /// Opens the draft's file in the editor.
    pub(super) async fn to_editor(&self, id: DraftId, draft: &mut Draft, text: &str) -> Result<()> {
        match &draft.file {
            Some(file) => file.write(text)?,
            None => draft.file = Some(DraftFile::create(&self.project.root, &draft.about, text)?),
        }
        draft.round += 1;
        draft.opened = Some(Instant::now());
        let path = draft.file.as_ref().map(|file| file.path().display().to_string()).unwrap_or_default();
        let stage = DraftStage::Editing { path, round: draft.round };
        self.tell(id, draft, stage).await;
        Ok(())
    }

    /// Tries the writes of a new draft and shows what they would change.
    pub(super) async fn review(&self, id: DraftId, draft: Draft) -> Result<()> {
        let mut review = Review { notes: draft.notes.clone(), ..Review::default() };
        for write in &draft.writes {
            let (after, warnings) =
                self.trial(write).await.with_context(|| format!("{} is refused", write.object))?;
            let deleted = write.how == crate::objects::write::How::Delete;
            review.changes.push(write.change(after.as_ref().filter(|_| !deleted)));
            review.warnings.extend(warnings);
        }
        let draft = self.under_way.drafts.open(id, draft);
        let draft = draft.lock().await;
        self.tell(id, &draft, DraftStage::Review(review)).await;
        Ok(())
    }

    /// Writes what a draft holds.
    pub(super) async fn write_draft(&self, id: DraftId) -> Result<Done> {
        let open = self.under_way.drafts.get(id)?;
        let mut draft = open.lock().await;
        if let Work::File(change) = &draft.work {
            if let Err(error) = change.write(&self.project.root) {
                self.stuck(id, &draft, &error).await;
                return Err(error);
            }
            self.close(id, &draft).await;
            return Ok(Done::said(format!("{} is written", change.file)));
        }
        let (mut done, mut said) = (Done::default(), Vec::new());
        while let Some(write) = draft.writes.first().cloned() {
            let (after, warnings) = match self.commit(&write).await {
                Ok(written) => written,
                Err(error) => {
                    self.remember(draft.about.clone(), done.undo).await;
                    return self.not_written(id, &mut draft, error).await;
                }
            };
            // A write that was made is not made again, whatever happens to the rest.
            draft.writes.remove(0);
            let after = after.unwrap_or_default();
            done.undo.push(write.undo(&after));
            done.warnings.extend(warnings);
            let name = ObjectRef::of(&after).unwrap_or_else(|| write.object.clone());
            let verb = match write.how {
                crate::objects::write::How::Create => "created",
                crate::objects::write::How::Patch => "changed",
                crate::objects::write::How::Delete => "deleted",
            };
            said.push(format!("{name} {verb}"));
        }
        if let Work::Undo { entry } = draft.work {
            self.under_way.undo.remove(entry);
            self.tell_undo().await;
        }
        self.close(id, &draft).await;
        done.summary = said.join(", ");
        done.what = Some(draft.about.clone());
        Ok(done)
    }

    /// Another one was faster, or the API server refuses: the draft stays.
    async fn not_written(&self, id: DraftId, draft: &mut Draft, error: anyhow::Error) -> Result<Done> {
        let conflict = ApiError::of(&error).and_then(ApiError::code) == Some(409);
        if conflict && matches!(draft.work, Work::Edit { .. }) {
            let body = draft.handed.clone();
            self.judge(id, draft, &body).await?;
            return Err(anyhow!("somebody was faster: look at the change once more"));
        }
        self.stuck(id, draft, &error).await;
        Err(error)
    }

    /// Shows why a draft cannot go on; its text stays.
    pub(super) async fn stuck(&self, id: DraftId, draft: &Draft, error: &anyhow::Error) {
        let review = Review {
            problem: Some(opdev_client::error_words::told(error)),
            editable: draft.file.is_some(),
            ..Review::default()
        };
        self.tell(id, draft, DraftStage::Review(review)).await;
    }

    /// A request about a draft was dropped half-way: what it was about stays.
    pub(super) async fn draft_cancelled(&self, id: DraftId) {
        if let Ok(open) = self.under_way.drafts.get(id) {
            let draft = open.lock().await;
            self.stuck(id, &draft, &anyhow!("it was cancelled half-way")).await;
        }
    }

    /// Drops a draft.
    pub(super) async fn discard(&self, id: DraftId) -> Result<Done> {
        let open = self.under_way.drafts.get(id)?;
        let draft = open.lock().await;
        self.close(id, &draft).await;
        Ok(Done::said("nothing was written"))
    }

    /// The draft is over; its file goes with the last one who holds it.
    pub(super) async fn close(&self, id: DraftId, draft: &Draft) {
        if let Some(file) = &draft.file {
            file.decided();
        }
        self.under_way.drafts.lock().remove(&id);
        self.tell(id, draft, DraftStage::Closed).await;
    }
}
