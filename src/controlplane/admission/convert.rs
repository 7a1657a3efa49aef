//! Conversion webhooks: objects of a custom resource at another version of its definition. A webhook may
//! change everything but the identity of an object. Errors have the texts of the real server.

use super::client;
use super::dispatch::Dispatcher;
use super::error::{ConversionError, UnusableMetadata, UnusableObject, UnusableReview};
use super::resolver::CallFailure;
use super::review::check_head;
use bytes::Bytes;
use opdev_apimachinery::blocking::MayWait;
use opdev_apimachinery::error::Cause;
use opdev_apimachinery::resource::{Conversion, metadata};
use opdev_object::meta::group_version;
use opdev_object::names::{label_key, label_value};
use serde_json::{Map, Value, json};
use std::time::Duration;

/// How long a conversion may take, as the real server's client has it.
const LIMIT: Duration = Duration::from_secs(30);

/// `group/version, Kind=kind` of an object.
fn kind_of(object: &Value) -> String {
    let text = |field: &str| object[field].as_str().unwrap_or_default();
    format!("{}, Kind={}", group_version(text("apiVersion")), text("kind"))
}

impl Dispatcher<'_> {
    /// Objects of one kind at another version, in their order. Waits, and so only works on a thread that may.
    ///
    /// # Errors
    /// The webhook cannot be asked, or its answer cannot be used.
    pub fn convert(
        self,
        conversion: &Conversion,
        objects: &[&Value],
        wanted: &str,
    ) -> Result<Vec<Value>, ConversionError> {
        let Some(first) = objects.first() else { return Ok(Vec::new()) };
        let permit = MayWait::here().ok_or(ConversionError::MustWait)?;
        let kind = kind_of(first);
        let failed = |why| ConversionError::Failed { kind: kind.clone(), why };
        let known = conversion.versions.iter().find(|version| matches!(version.as_str(), "v1" | "v1beta1"));
        let version = known.ok_or(ConversionError::NoReviewVersion)?;
        let uid = opdev_apimachinery::random::uuid();
        let review = json!({"kind": "ConversionReview", "apiVersion": format!("apiextensions.k8s.io/{version}"),
            "request": {"uid": uid, "desiredAPIVersion": wanted, "objects": objects},
            "response": {"uid": "", "convertedObjects": null, "result": {"metadata": {}}}});
        let call = self.call(&conversion.client, Bytes::from(review.to_string()), LIMIT);
        let text = match client::start(self.admission.caller.clone(), call, LIMIT).wait(&permit) {
            Ok(text) => text,
            Err(CallFailure::Failed(why)) => {
                let why = why.strip_prefix("failed to call webhook: ").unwrap_or(&why);
                return Err(failed(UnusableReview::NoAnswer(why.to_owned())));
            }
            Err(CallFailure::Simulated(service)) => {
                tracing::warn!(
                    service,
                    "a conversion webhook was not asked: the pods behind it are simulated"
                );
                return Ok(objects.iter().map(|object| renamed(object, wanted)).collect());
            }
        };
        let converted = read(&text, version, &uid).map_err(failed)?;
        if converted.len() != objects.len() {
            return Err(ConversionError::Count { kind, found: converted.len(), expected: objects.len() });
        }
        let pairs = objects.iter().zip(converted);
        let returned = |why| ConversionError::Object { kind: kind.clone(), why };
        pairs.map(|(old, new)| checked(old, new, wanted).map_err(returned)).collect()
    }
}

/// The object under another version's name.
pub fn renamed(object: &Value, api_version: &str) -> Value {
    let mut object = object.clone();
    object["apiVersion"] = Value::from(api_version);
    object
}

/// The objects of an answer.
fn read(text: &[u8], version: &str, uid: &str) -> Result<Vec<Value>, UnusableReview> {
    let review: Value =
        serde_json::from_slice(text).unwrap_or_else(|_| Value::from(String::from_utf8_lossy(text).as_ref()));
    check_head("apiextensions.k8s.io", version, "ConversionReview", &review).map_err(UnusableReview::Head)?;
    let response = &review["response"];
    let kind = review["kind"].as_str().unwrap_or_default();
    if version == "v1" && kind.is_empty() {
        return Err(UnusableReview::NoKind);
    }
    if !response.is_object() {
        return Err(UnusableReview::NoResponse);
    }
    let answered = response["uid"].as_str().unwrap_or_default();
    if version == "v1" && answered != uid {
        return Err(UnusableReview::Uid { expected: uid.to_owned(), found: answered.to_owned() });
    }
    let result = &response["result"];
    let said = |field: &str| result[field].as_str().unwrap_or_default();
    if said("status") != "Success" {
        return Err(match said("message") {
            "" => UnusableReview::Status(said("status").to_owned()),
            message => UnusableReview::Message(message.to_owned()),
        });
    }
    Ok(response["convertedObjects"].as_array().cloned().unwrap_or_default())
}

/// A converted object with the metadata of the one before, but for labels and annotations.
fn checked(old: &Value, mut new: Value, wanted: &str) -> Result<Value, UnusableObject> {
    let text = |object: &Value, field: &str| object[field].as_str().unwrap_or_default().to_owned();
    let found = text(&new, "apiVersion");
    if found != wanted {
        let (expected, found) = (group_version(wanted), group_version(&found));
        return Err(UnusableObject::Version { expected, found });
    }
    let (kind, other) = (text(old, "kind"), text(&new, "kind"));
    if kind != other {
        return Err(UnusableObject::Kind { expected: kind, found: other });
    }
    for (field, name) in [("name", "name"), ("namespace", "namespace"), ("uid", "UID")] {
        let (was, is) = (metadata::text(old, field), metadata::text(&new, field));
        if was != is {
            return Err(UnusableObject::Moved { name, was: was.to_owned(), is: is.to_owned() });
        }
    }
    let metadata = restored(old, &new).map_err(UnusableObject::Metadata)?;
    new["metadata"] = Value::Object(metadata);
    Ok(new)
}

fn restored(old: &Value, new: &Value) -> Result<Map<String, Value>, UnusableMetadata> {
    let mut kept = old["metadata"].as_object().cloned().unwrap_or_default();
    let Some(changed) = new["metadata"].as_object() else {
        return Err(UnusableMetadata::Missing);
    };
    for field in ["labels", "annotations"] {
        match changed.get(field) {
            None | Some(Value::Null) => _ = kept.remove(field),
            Some(Value::Object(map)) => {
                if kept.get(field).and_then(Value::as_object) != Some(map) {
                    check_texts(field, map)?;
                }
                kept.insert(field.to_owned(), Value::Object(map.clone()));
            }
            Some(_) => return Err(UnusableMetadata::NoMap(field)),
        }
    }
    Ok(kept)
}

fn check_texts(field: &'static str, map: &Map<String, Value>) -> Result<(), UnusableMetadata> {
    let mut causes = Vec::new();
    for (key, value) in map {
        let Some(text) = value.as_str() else {
            return Err(UnusableMetadata::NoText { field, key: key.clone() });
        };
        let place = if field == "labels" { "metadata.labels" } else { "metadata.annotation" };
        causes.extend(label_key(key).iter().map(|why| Cause::invalid(place, &json!(key), why)));
        if field == "labels" {
            causes.extend(label_value(text).iter().map(|why| Cause::invalid(place, value, why)));
        }
    }
    if causes.is_empty() { Ok(()) } else { Err(UnusableMetadata::Causes(causes)) }
}
