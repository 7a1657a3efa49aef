//! Texts from the editor: an object to change, objects to create. What cannot be used opens again with the
//! errors as comments on top; what can is tried on the API server and shown before it is written.

use super::draft::{Draft, Work};
use super::error_places::{Refusal, refusals};
use super::file::kept_before;
use crate::Requests;
use crate::objects::write::{How, Write, shown};
use crate::outcome::Done;
use anyhow::{Context as _, Result, bail};
use opdev_client::{ApiError, is_not_found, without_secrets};
use opdev_event::{DraftId, DraftStage, Review, mask};
use opdev_object::diff::diff;
use opdev_object::meta::{self, Gvk, ObjectRef};
use opdev_object::patch::{create_merge_patch, merge_patch};
use opdev_object::yaml::{self, Node};
use serde_json::Value;

/// Ends the comments that opdev puts on top.
const RULE: &str = "#---";

/// The outcome for a text.
enum Judged {
    /// It can be written.
    Fine(Box<Review>),
    /// It cannot, for these reasons.
    Refused(Vec<Refusal>),
    /// It asks for what is there already.
    Same,
}

impl Requests {
    /// Opens an object in the editor.
    pub(crate) async fn edit(&self, id: DraftId, object: &ObjectRef) -> Result<Done> {
        let (_, live) = self.live(object).await?;
        let body = yaml::to_string(&shown(&live));
        let about = format!("edit {object}");
        let mut draft = Draft::new(about, Work::Edit { object: object.clone(), base: live });
        draft.handed.clone_from(&body);
        let text = with_header(&self.intro(&draft.about, true), &body);
        let open = self.under_way.drafts.open(id, draft);
        let mut draft = open.lock().await;
        self.to_editor(id, &mut draft, &text).await?;
        Ok(Done::default())
    }

    /// Opens a text for new objects in the editor.
    pub(crate) async fn open_new(&self, id: DraftId, about: String, body: String) -> Result<Done> {
        let text = with_header(&self.intro(&about, false), &body);
        let mut draft = Draft::new(about, Work::New);
        draft.handed = body;
        let open = self.under_way.drafts.open(id, draft);
        let mut draft = open.lock().await;
        self.to_editor(id, &mut draft, &text).await?;
        Ok(Done::default())
    }

    /// The editor has ended: takes the text.
    pub(crate) async fn edited(&self, id: DraftId, problem: Option<&str>) -> Result<Done> {
        let open = self.under_way.drafts.get(id)?;
        let mut draft = open.lock().await;
        if let Some(problem) = problem {
            let kept = draft.keep();
            self.close(id, &draft).await;
            bail!("{problem}; nothing was written{kept}");
        }
        let text = draft.file.as_ref().context("this draft has no file")?.read();
        let text = match text {
            Ok(text) => text,
            Err(error) => {
                let kept = draft.keep();
                self.close(id, &draft).await;
                bail!("{error:#}; nothing was written{kept}");
            }
        };
        let body = body_of(&text).to_owned();
        let blank = body.lines().all(|line| line.trim().is_empty() || line.trim_start().starts_with('#'));
        if blank {
            self.close(id, &draft).await;
            return Ok(Done::said("the text was emptied, so nothing was written"));
        }
        if body == draft.handed && draft.refused {
            let kept = draft.keep();
            self.close(id, &draft).await;
            return Ok(Done::said(format!("closed with its errors as they were: nothing was written{kept}")));
        }
        if body == draft.handed && draft.round == 1 && matches!(draft.work, Work::Edit { .. }) {
            let hint = self.under_way.drafts.returned_at_once(&mut draft).unwrap_or_default();
            self.close(id, &draft).await;
            return Ok(Done::said(format!("nothing was changed, so nothing was written{hint}")));
        }
        draft.handed.clone_from(&body);
        match self.judge(id, &mut draft, &body).await {
            Ok(summary) => Ok(Done::said(summary)),
            Err(error) => {
                self.stuck(id, &draft, &error).await;
                Err(error)
            }
        }
    }

    /// Looks whether a text can be written, and goes on accordingly.
    pub(crate) async fn judge(&self, id: DraftId, draft: &mut Draft, body: &str) -> Result<String> {
        let judged = match yaml::documents(body) {
            Err(error) => Judged::Refused(vec![Refusal {
                line: error.line,
                column: error.column,
                message: error.message.clone(),
            }]),
            Ok(documents) => match draft.work.clone() {
                Work::Edit { object, base } => self.judge_edit(draft, &object, &base, &documents).await?,
                Work::New | Work::Undo { .. } | Work::File(_) => self.judge_new(draft, &documents).await?,
            },
        };
        match judged {
            Judged::Same => {
                self.close(id, draft).await;
                Ok("it is so already, so nothing was written".to_owned())
            }
            Judged::Fine(review) => {
                draft.refused = false;
                self.tell(id, draft, DraftStage::Review(*review)).await;
                Ok("the API server would take it".to_owned())
            }
            Judged::Refused(refusals) => {
                draft.refused = true;
                let text = with_header(&complaint(&refusals), body);
                self.to_editor(id, draft, &text).await?;
                let many = if refusals.len() == 1 { "1 error" } else { "several errors" };
                Ok(format!("{many}: the editor opens again"))
            }
        }
    }

    async fn judge_edit(
        &self,
        draft: &mut Draft,
        object: &ObjectRef,
        base: &Value,
        documents: &[Node],
    ) -> Result<Judged> {
        let mut found = Vec::new();
        for document in documents {
            match yaml::to_json(document) {
                Ok(Value::Null) => {}
                Ok(value) => found.push((document, value)),
                Err(error) => return Ok(refused(document, error.message)),
            }
        }
        let [(document, wanted)] = found.as_slice() else {
            return Ok(refused(&documents[0], "the text must hold one object".to_owned()));
        };
        if ObjectRef::of(wanted).map(|found| found.key()) != Some(object.key()) {
            let message = format!("kind, namespace and name cannot be changed here: this is {object}");
            return Ok(refused(document, message));
        }
        let patch = create_merge_patch(&shown(base), wanted);
        if patch.as_object().is_some_and(serde_json::Map::is_empty) {
            return Ok(Judged::Same);
        }
        let (path, live) = match self.live(object).await {
            Err(error) if is_not_found(&error) => bail!("{object} was deleted meanwhile"),
            found => found?,
        };
        if meta::uid(&live) != meta::uid(base) {
            bail!("{object} was deleted meanwhile, and another object has its name now");
        }
        let mut review = Review { editable: true, ..Review::default() };
        let meanwhile = mask::changes(&object.gvk.kind, diff(&shown(base), &shown(&live)));
        if !meanwhile.is_empty() {
            let paths: Vec<String> = meanwhile.iter().map(|change| change.path.to_string()).collect();
            review.notes.push(format!(
                "It was changed by somebody else while the editor was open: {}. Yours is put on top of that.",
                paths.join(", ")
            ));
        }
        let write = Write::patch(object, path, patch, live);
        match self.trial(&write).await {
            Ok((after, warnings)) => {
                review.changes.push(write.change(after.as_ref()));
                review.warnings = warnings;
                draft.writes = vec![write];
                Ok(Judged::Fine(Box::new(review)))
            }
            Err(error) => complaints(error, document, wanted).map(Judged::Refused),
        }
    }

    async fn judge_new(&self, draft: &mut Draft, documents: &[Node]) -> Result<Judged> {
        let mut review = Review { editable: true, ..Review::default() };
        let (mut writes, mut wrong) = (Vec::new(), Vec::new());
        for document in documents {
            let object = match yaml::to_json(document) {
                Ok(Value::Null) => continue,
                Ok(object) => object,
                Err(error) => return Ok(refused(document, error.message)),
            };
            let write = match self.new_object(object).await {
                Ok(write) => write,
                Err(error) => {
                    let (line, column) = (document.line, document.column);
                    wrong.push(Refusal { line, column, message: opdev_client::error_words::told(&error) });
                    continue;
                }
            };
            match self.trial(&write).await {
                Ok((after, warnings)) => {
                    review.changes.push(write.change(after.as_ref()));
                    review.warnings.extend(warnings);
                    writes.push(write);
                }
                Err(error) => wrong.extend(complaints(error, document, &write.body)?),
            }
        }
        if !wrong.is_empty() {
            return Ok(Judged::Refused(wrong));
        }
        if writes.is_empty() {
            bail!("the text holds no object");
        }
        draft.writes = writes;
        Ok(Judged::Fine(Box::new(review)))
    }

    /// The write that creates an object.
    async fn new_object(&self, mut object: Value) -> Result<Write> {
        let gvk = Gvk::of(&object).context("an object needs apiVersion and kind")?;
        let (resource, namespaced) = self.resource_soon(&gvk).await?;
        if object["metadata"]["name"].is_null() && object["metadata"]["generateName"].is_null() {
            bail!("an object needs metadata.name");
        }
        if namespaced && meta::namespace(&object).is_none() {
            meta::put(&mut object, &["metadata", "namespace"], self.cluster.namespace.as_str());
        }
        // A skeleton whose fields are all comments.
        if object.get("spec").is_some_and(Value::is_null) {
            meta::put(&mut object, &["spec"], serde_json::json!({}));
        }
        let namespace = namespaced.then(|| meta::namespace(&object).map(str::to_owned)).flatten();
        let path = opdev_client::plural_path(&resource, namespace.as_deref());
        let name = meta::name(&object).or(object["metadata"]["generateName"].as_str());
        let name = name.unwrap_or_default().to_owned();
        let reference = ObjectRef { gvk, namespace, name, uid: None };
        Ok(Write { object: reference, path, body: object, before: None, how: How::Create })
    }

    /// Opens the text of a draft once more; an edit's on top of what others have changed meanwhile.
    pub(crate) async fn reopen(&self, id: DraftId) -> Result<Done> {
        let open = self.under_way.drafts.get(id)?;
        let mut draft = open.lock().await;
        let mut body = draft.handed.clone();
        if let Work::Edit { object, base } = draft.work.clone() {
            let (_, live) = self.live(&object).await?;
            let wanted = yaml::from_str(&body).ok().filter(|_| shown(&live) != shown(&base));
            if let Some(wanted) = wanted {
                let mut newest = shown(&live);
                merge_patch(&mut newest, &create_merge_patch(&shown(&base), &wanted));
                body = yaml::to_string(&newest);
            }
            draft.work = Work::Edit { object, base: live };
        }
        let edit = matches!(draft.work, Work::Edit { .. });
        draft.handed.clone_from(&body);
        draft.refused = false;
        let text = with_header(&self.intro(&draft.about, edit), &body);
        self.to_editor(id, &mut draft, &text).await?;
        Ok(Done::default())
    }

    /// Notes to read before one writes.
    fn intro(&self, about: &str, edit: bool) -> Vec<String> {
        let mut lines = intro(about, edit);
        let kept = kept_before(&self.project.root, about);
        lines.extend(kept.map(|kept| format!("A text of yours that was not written is kept in {kept}.")));
        lines
    }
}

fn refused(document: &Node, message: String) -> Judged {
    Judged::Refused(vec![Refusal { line: document.line, column: document.column, message }])
}

/// A refusal that another text would mend, as lines for the user; any other error stays one.
fn complaints(error: anyhow::Error, document: &Node, object: &Value) -> Result<Vec<Refusal>> {
    let error = without_secrets(error, object);
    if let Some(refused @ ApiError::Refused { code, message, details, .. }) = ApiError::of(&error) {
        let admission = *code == 403 && message.contains("denied");
        if matches!(code, 400 | 422) || admission || refused.already_exists() {
            return Ok(refusals(message, details.as_deref(), document));
        }
    }
    Err(error)
}

/// Notes to read before one writes.
fn intro(about: &str, edit: bool) -> Vec<String> {
    let nothing = match edit {
        true => "Close it unchanged, or empty it, and nothing happens.",
        false => "Empty it, and nothing happens.",
    };
    vec![
        format!("opdev: {about}"),
        "Save and close: you see what the API server makes of it before anything is written.".to_owned(),
        nothing.to_owned(),
    ]
}

/// The errors, with the lines as they are below these very comments.
fn complaint(refusals: &[Refusal]) -> Vec<String> {
    // The lines on top: a heading, one for each refusal, a hint, the rule.
    let above = u32::try_from(refusals.len()).unwrap_or(0) + 3;
    let mut lines = vec!["opdev: NOT WRITTEN, because:".to_owned()];
    for Refusal { line, message, .. } in refusals {
        let message = message.replace(['\n', '\r'], " ");
        match line {
            0 => lines.push(format!("  {message}")),
            line => lines.push(format!("  line {}: {message}", line + above)),
        }
    }
    lines.push("Correct it and save; close it as it is, or empty it, and nothing is written.".to_owned());
    lines
}

fn with_header(lines: &[String], body: &str) -> String {
    let comments: String = lines.iter().map(|line| format!("# {line}\n")).collect();
    format!("{comments}{RULE}\n{body}")
}

/// The text below the comments that opdev has put on top, where they are still there.
pub(super) fn body_of(text: &str) -> &str {
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        at += line.len();
        if line.trim_end() == RULE {
            return &text[at..];
        }
        if !line.starts_with('#') {
            break;
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    #[test]
    fn comments_on_top_go_and_come_and_the_text_stays() {
        let body = "# mine\nkind: Web\n";
        let text = with_header(&intro("edit Web a", true), body);
        assert_eq!(body_of(&text), body);
        assert_eq!(body_of(body), body, "somebody removed our comments");
        assert_eq!(body_of("#---\n"), "");
        assert_eq!(body_of(""), "");
    }

    #[test]
    fn errors_name_the_lines_of_the_file_that_is_opened() {
        let refusal = |line, message: &str| Refusal { line, column: 1, message: message.to_owned() };
        let all = [refusal(3, "spec.size: too\nsmall"), refusal(0, "denied")];
        let text = with_header(&complaint(&all), "kind: Web\nspec:\n  size: -1\n");
        let line = text.lines().position(|line| line.contains("size: -1")).unwrap() + 1;
        assert_eq!(line, 8, "the line that the text names");
        expect![[r#"
            # opdev: NOT WRITTEN, because:
            #   line 8: spec.size: too small
            #   denied
            # Correct it and save; close it as it is, or empty it, and nothing is written.
            #---
            kind: Web
            spec:
              size: -1
        "#]]
        .assert_eq(&text);
    }
}
