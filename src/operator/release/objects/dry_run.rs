//! The outcome of writes before they are made: asked of the API server as dry runs, and computed where it may
//! not be asked. Writes nothing.

use super::apply::{Force, Mode};
use super::compare::changes_to;
use super::hand_over;
use super::overlay::overlay;
use super::plain_write;
use super::{PARALLEL, Wanted};
use futures::stream::{self, StreamExt};
use opdev_client::read_only::REFUSAL;
use opdev_client::{Api, ApiError, At};
use opdev_event::reconcile::object_change::managers_of;
use opdev_event::{Action, ObjectChange, mask};
use opdev_object::meta::{self, ObjectRef};
use serde_json::Value;

/// The side that says what a write would do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ask {
    /// The API server, in dry runs.
    Server,
    /// Nobody: what would be written is laid over what is there.
    Nobody,
}

/// One write that may be made.
pub struct Intent<'a> {
    pub wanted: &'a Wanted,
    /// The object in the manifest before, where it is an object of a chart.
    pub old: Option<&'a Value>,
    pub live: Option<&'a Value>,
    pub manager: &'a str,
    pub mode: Mode,
}

/// The effects of writes, had they been made.
#[derive(Debug, Default)]
pub struct Foretold {
    /// In the order of the writes; those that change nothing are left out.
    pub changes: Vec<ObjectChange>,
    /// Objects that the API server would refuse, in its words.
    pub refused: Vec<(ObjectRef, String)>,
    /// Objects that it could not be asked about, and why.
    pub unsure: Vec<String>,
}

/// The result of one dry run.
pub enum Answer {
    /// The object after the write.
    After(Value),
    /// The API server would refuse the write, in its words.
    Refused(String),
    /// It could not be asked, and why.
    Unknown(String),
}

/// The effects of these writes, had they been made.
pub async fn foretell(api: &Api, intents: &[Intent<'_>], ask: Ask) -> Foretold {
    let mut calls = Vec::with_capacity(intents.len());
    for intent in intents {
        calls.push(try_out(api, intent, ask));
    }
    let answers: Vec<Option<Answer>> = stream::iter(calls).buffered(PARALLEL).collect().await;
    let coming: Vec<&str> =
        intents.iter().filter(|one| one.live.is_none()).map(|one| one.wanted.at().name).collect();
    let mut found = Foretold::default();
    for (intent, answer) in intents.iter().zip(answers) {
        let after = match answer {
            Some(Answer::After(after)) => after,
            // It is there once the writes before this one are made.
            Some(Answer::Refused(message)) if names_one(&message, &coming) => computed(intent),
            Some(Answer::Refused(message)) => {
                found.refused.push((intent.wanted.reference(), message));
                computed(intent)
            }
            Some(Answer::Unknown(why)) => {
                found.unsure.push(format!("{}: {why}", intent.wanted.reference()));
                computed(intent)
            }
            None => computed(intent),
        };
        found.changes.extend(change(intent, &after));
    }
    found
}

/// Returns true if a refusal says that something is missing which is about to be created.
fn names_one(message: &str, coming: &[&str]) -> bool {
    message.contains("not found") && coming.iter().any(|name| message.contains(&format!("{name:?}")))
}

async fn try_out(api: &Api, intent: &Intent<'_>, ask: Ask) -> Option<Answer> {
    if ask == Ask::Nobody {
        return None;
    }
    let Intent { wanted, live, mode, .. } = intent;
    let applied = match (live, mode.force) {
        (Some(live), Force::Replace) => replaced(api, wanted, live).await,
        (Some(live), Force::Fallback) => match applied(api, intent).await {
            Err(ApiError::Refused { code: 422, .. }) => replaced(api, wanted, live).await,
            other => other,
        },
        (Some(_), Force::No) | (None, _) => applied(api, intent).await,
    };
    Some(answer(applied))
}

/// The object after an apply without the fields that are handed over to Helm's manager, or after the plain
/// write in its place.
async fn applied(api: &Api, intent: &Intent<'_>) -> Result<Value, ApiError> {
    let Intent { wanted, old, live, manager, mode } = intent;
    let after = match api.try_apply(&wanted.at(), "", wanted.sent(), manager).await {
        Ok(after) => after,
        Err(refused) => {
            let of = (*wanted, *old, *live);
            let written = plain_write::instead(api, refused, of, mode.compat, true).await;
            return written.map(|(object, _)| object);
        }
    };
    let given = old.zip(*live).and_then(|(old, live)| hand_over::plan(old, wanted, live, mode.compat));
    match given {
        // Defaults of what goes come back.
        Some(given) => api.try_update(&wanted.at(), &given.without(&after)).await,
        None => Ok(after),
    }
}

fn answer(applied: Result<Value, ApiError>) -> Answer {
    match applied {
        Ok(after) => Answer::After(after),
        Err(error) => judge(&error),
    }
}

/// The effect of the write of a status. `object` is applied to the `subresource`.
pub async fn foretell_status(
    api: &Api,
    at: &At<'_>,
    (object, subresource): (&Value, &str),
    manager: &str,
    ask: Ask,
) -> Answer {
    match ask {
        Ask::Server => answer(api.try_apply(at, subresource, object, manager).await),
        Ask::Nobody => Answer::After(object.clone()),
    }
}

/// Returns true if the API server refused what was to be written because it does not fit its kind: the same
/// text is refused again.
pub(crate) fn is_unfit(error: &ApiError) -> bool {
    match error {
        ApiError::Refused { code: 400 | 422, .. } => matches!(judge(error), Answer::Refused(_)),
        ApiError::Refused { message, .. } => is_untyped(message),
        ApiError::Unreachable(_) | ApiError::NotServed(_) | ApiError::NoMatch(_) | ApiError::ReadOnly => {
            false
        }
    }
}

async fn replaced(api: &Api, wanted: &Wanted, live: &Value) -> Result<Value, ApiError> {
    let mut object = wanted.sent().clone();
    if let Some(version) = meta::resource_version(live) {
        meta::put(&mut object, &["metadata", "resourceVersion"], version);
    }
    api.try_update(&wanted.at(), &object).await
}

/// How the API server begins where an applied object does not fit its kind.
const UNFIT: [&str; 2] = ["failed to convert new object", "failed to create typed patch object"];

/// Returns true if a refusal says that an applied object does not fit its kind, in the words of server-side
/// apply alone.
pub(crate) fn is_untyped(message: &str) -> bool {
    UNFIT.iter().any(|begin| message.starts_with(begin))
}

/// Returns true if the write itself would be refused, and not only the question.
fn judge(error: &ApiError) -> Answer {
    let text = error.to_string();
    match error {
        // A user who may not write may not try to write either; the operator may have other rights. Where
        // opdev is read-only, the dry run of a replacement is not sent.
        ApiError::Refused { code: 403, message, .. }
            if message.contains("is forbidden: User ") || message == REFUSAL =>
        {
            Answer::Unknown(text)
        }
        // A webhook that has side effects refuses dry runs.
        ApiError::Refused { message, .. } if message.contains("does not support dry run") => {
            Answer::Unknown(text)
        }
        ApiError::Refused { code: 400 | 403 | 404 | 409 | 413 | 415 | 422, .. } => Answer::Refused(text),
        // A merged object that does not fit its kind: the API server answers with 500, and will again.
        ApiError::Refused { message, .. } if is_untyped(message) => Answer::Refused(text),
        ApiError::Refused { .. }
        | ApiError::Unreachable(_)
        | ApiError::NotServed(_)
        | ApiError::NoMatch(_)
        | ApiError::ReadOnly => Answer::Unknown(text),
    }
}

/// The object after the write, as far as that can be told without the API server.
fn computed(intent: &Intent<'_>) -> Value {
    let mut after = intent.live.cloned().unwrap_or(Value::Null);
    overlay(&mut after, &intent.wanted.object);
    let given = intent.old.zip(intent.live);
    let given = given.and_then(|(old, live)| hand_over::plan(old, intent.wanted, live, intent.mode.compat));
    if let Some(given) = given {
        after = given.without(&after);
    }
    after
}

fn change(intent: &Intent<'_>, after: &Value) -> Option<ObjectChange> {
    let object = intent.wanted.reference();
    let Some(live) = intent.live else {
        return Some(ObjectChange {
            object,
            action: Action::Created,
            changes: Vec::new(),
            taken_from: Vec::new(),
        });
    };
    let changed = changes_to(live, after, intent.manager, &intent.wanted.object);
    let mut taken_from: Vec<String> = changed
        .iter()
        .filter(|change| change.old.is_some())
        .flat_map(|change| managers_of(live, &change.path, intent.manager))
        .collect();
    taken_from.sort();
    taken_from.dedup();
    let changes = mask::changes(&object.gvk.kind, changed);
    (!changes.is_empty()).then_some(ObjectChange { object, action: Action::Updated, changes, taken_from })
}

/// The removal of an object.
pub fn removal(object: ObjectRef) -> ObjectChange {
    ObjectChange { object, action: Action::Deleted, changes: Vec::new(), taken_from: Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(code: u16, message: &str) -> ApiError {
        ApiError::Refused { code, reason: String::new(), message: message.to_owned(), details: None }
    }

    #[test]
    fn what_the_server_would_refuse_is_told_from_what_it_could_not_be_asked() {
        let is_refused = |error: ApiError| matches!(judge(&error), Answer::Refused(_));
        assert!(is_refused(refused(422, "spec.selector: field is immutable")));
        assert!(is_refused(refused(403, "exceeded quota: pods")));
        assert!(!is_refused(refused(403, "pods \"a\" is forbidden: User \"u\" cannot patch resource")));
        assert!(!is_refused(refused(403, REFUSAL)), "the server was not asked");
        assert!(!is_refused(refused(400, "admission webhook \"a\" does not support dry run")));
        assert!(!is_refused(refused(500, "oh")));
        assert!(is_refused(refused(
            500,
            "failed to convert new object (default/web; apps/v1, Kind=Deployment) …"
        )));
        assert!(!is_refused(ApiError::Unreachable("gone".to_owned())));
    }

    #[test]
    fn only_a_text_that_does_not_fit_its_kind_is_refused_again_for_sure() {
        assert!(is_unfit(&refused(422, "spec.selector: field is immutable")));
        assert!(is_unfit(&refused(500, "failed to create typed patch object (default/top): .status.x")));
        assert!(!is_unfit(&refused(409, "the object has been modified")));
        assert!(!is_unfit(&refused(403, "exceeded quota: pods")));
        assert!(!is_unfit(&refused(404, "namespaces \"a\" not found")));
    }

    #[test]
    fn what_is_about_to_be_created_is_not_missing() {
        let message = "error looking up service account default/web: serviceaccount \"web\" not found";
        assert!(names_one(message, &["db", "web"]));
        assert!(!names_one(message, &["we"]));
        assert!(!names_one("\"web\" already exists", &["web"]));
    }
}
