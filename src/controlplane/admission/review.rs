//! AdmissionReviews: what a webhook is asked, and what its answer says. Pure; the texts of wrong answers are
//! those of the real server.

use super::error::{HeadError, UnusableAnswer};
use super::matching::VersionedRequest;
use crate::attributes::Attributes;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use opdev_apimachinery::error::Status;
use opdev_object::go::kind::kind as go_kind;
use serde_json::{Value, json};

/// The `request` of a review.
pub(super) fn request(asked: &Attributes<'_>, seen: &VersionedRequest, uid: &str) -> Value {
    let own = asked.resource;
    let at = seen.at.as_deref().unwrap_or(own);
    let named = |group: &str, version: &str, field: &str, value: &str| json!({"group": group, "version": version, field: value});
    // A Scale or an Eviction is the same kind at every version of the resource.
    let kind = match &seen.at {
        Some(at) if asked.kind == own.gvk() => at.gvk(),
        _ => asked.kind.clone(),
    };
    let mut request = json!({
        "uid": uid,
        "kind": named(&kind.group, &kind.version, "kind", &kind.kind),
        "resource": named(&at.group, &at.version, "resource", &at.plural),
        "requestKind": named(&asked.kind.group, &asked.kind.version, "kind", &asked.kind.kind),
        "requestResource": named(&own.group, &own.version, "resource", &own.plural),
        "operation": asked.operation.name(),
        "userInfo": asked.user.info(),
        "object": seen.object,
        "oldObject": seen.old,
        "dryRun": asked.dry_run,
        "options": asked.options,
    });
    let optional = [
        ("subResource", asked.subresource),
        ("requestSubResource", asked.subresource),
        ("name", asked.name),
        ("namespace", asked.namespace),
    ];
    for (field, value) in optional.into_iter().filter(|(_, value)| !value.is_empty()) {
        request[field] = Value::from(value);
    }
    request
}

/// The first version of reviews that both sides know.
pub(super) fn version(known: &[String]) -> Option<&'static str> {
    known.iter().find_map(|version| match version.as_str() {
        "v1" => Some("v1"),
        "v1beta1" => Some("v1beta1"),
        _ => None,
    })
}

/// The answer of a webhook.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Answer {
    pub allowed: bool,
    /// The operations of a JSON patch; `null` where there are none.
    pub(super) patch: Value,
    pub(super) patch_type: String,
    /// The status of a denial.
    pub(super) result: Value,
    pub warnings: Vec<String>,
}

/// A field of the answer that has to be of a type.
fn field<'a>(
    response: &'a Value,
    name: &str,
    go: &str,
    fits: impl Fn(&Value) -> bool,
) -> Result<&'a Value, UnusableAnswer> {
    let value = &response[name];
    if value.is_null() || fits(value) {
        return Ok(value);
    }
    Err(UnusableAnswer::FieldType { found: go_kind(value), field: name.to_owned(), go_type: go.to_owned() })
}

/// Refuses a document whose head is not that of this kind.
pub(super) fn check_head(group: &str, version: &str, kind: &str, document: &Value) -> Result<(), HeadError> {
    if !document.is_object() {
        return Err(HeadError::NoObject(go_kind(document)));
    }
    let said = |field: &str| document[field].as_str().unwrap_or_default();
    let (found_version, found_kind) = (said("apiVersion"), said("kind"));
    if found_version.is_empty() && found_kind.is_empty() {
        return Ok(());
    }
    let known = found_version.strip_prefix(group).and_then(|rest| rest.strip_prefix('/'));
    match known {
        Some(known) if known == version && found_kind == kind => Ok(()),
        Some(known @ ("v1" | "v1beta1")) if found_kind == kind => Err(HeadError::OtherVersion {
            kind: kind.to_owned(),
            found: known.to_owned(),
            expected: version.to_owned(),
        }),
        _ => Err(HeadError::UnknownKind { version: found_version.to_owned(), kind: found_kind.to_owned() }),
    }
}

/// Reads the answer to the review `uid`.
pub(super) fn read(text: &[u8], version: &str, uid: &str, mutating: bool) -> Result<Answer, UnusableAnswer> {
    // The real server reads text that is no JSON as a scalar of YAML.
    let review: Value =
        serde_json::from_slice(text).unwrap_or_else(|_| Value::from(String::from_utf8_lossy(text).as_ref()));
    check_head("admission.k8s.io", version, "AdmissionReview", &review).map_err(UnusableAnswer::Head)?;
    let response = &review["response"];
    if !response.is_object() {
        return Err(UnusableAnswer::Invalid("webhook response was absent"));
    }
    let allowed = field(response, "allowed", "bool", Value::is_boolean)?.as_bool().unwrap_or(false);
    let answered = field(response, "uid", "types.UID", Value::is_string)?.as_str().unwrap_or_default();
    let patch = field(response, "patch", "[]uint8", Value::is_string)?.as_str().unwrap_or_default();
    let patch_type = field(response, "patchType", "v1.PatchType", Value::is_string)?;
    let warnings = field(response, "warnings", "[]string", Value::is_array)?;
    if version == "v1" {
        if answered != uid {
            return Err(UnusableAnswer::Uid { expected: uid.to_owned(), found: answered.to_owned() });
        }
        if review["kind"].as_str().unwrap_or_default().is_empty() {
            return Err(UnusableAnswer::Invalid(
                "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got /, Kind=",
            ));
        }
        check_patch(patch, patch_type, mutating)?;
    }
    let bytes = STANDARD.decode(patch).map_err(UnusableAnswer::Base64)?;
    let patch = if mutating && !bytes.is_empty() { decoded(&bytes)? } else { Value::Null };
    Ok(Answer {
        allowed,
        patch,
        patch_type: match version {
            "v1" => patch_type.as_str().unwrap_or_default().to_owned(),
            _ => "JSONPatch".to_owned(),
        },
        result: response["status"].clone(),
        warnings: warnings
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect(),
    })
}

fn check_patch(patch: &str, patch_type: &Value, mutating: bool) -> Result<(), UnusableAnswer> {
    match (mutating, patch.is_empty(), patch_type.as_str()) {
        (false, false, _) => Err(UnusableAnswer::Invalid("validating webhook may not return response.patch")),
        (false, true, Some(_)) => {
            Err(UnusableAnswer::Invalid("validating webhook may not return response.patchType"))
        }
        (true, false, None) => {
            Err(UnusableAnswer::Invalid("webhook returned response.patch but not response.patchType"))
        }
        (true, true, Some(_)) => {
            Err(UnusableAnswer::Invalid("webhook returned response.patchType but not response.patch"))
        }
        (true, false, Some("")) => {
            Err(UnusableAnswer::Invalid("webhook returned invalid response.patchType of \"\""))
        }
        _ => Ok(()),
    }
}

/// The operations of a patch.
fn decoded(bytes: &[u8]) -> Result<Value, UnusableAnswer> {
    let patch: Value = serde_json::from_slice(bytes).map_err(UnusableAnswer::PatchJson)?;
    if patch.is_array() || patch.is_null() {
        return Ok(patch);
    }
    Err(UnusableAnswer::PatchType(go_kind(&patch)))
}

/// The error that a client gets for a denial.
pub(super) fn denied(hook: &str, result: &Value) -> Status {
    let mut status = if result.is_object() { result.clone() } else { json!({}) };
    let said = |field: &str| result[field].as_str().unwrap_or_default();
    let by = format!("admission webhook {hook:?} denied the request");
    let message = match (said("message"), said("reason")) {
        ("", "") => format!("{by} without explanation"),
        ("", why) | (why, _) => format!("{by}: {why}"),
    };
    let code = result["code"].as_u64().and_then(|code| u16::try_from(code).ok()).filter(|code| *code >= 400);
    let code = code.unwrap_or(400);
    status["kind"] = Value::from("Status");
    status["apiVersion"] = Value::from("v1");
    if !status["metadata"].is_object() {
        status["metadata"] = json!({});
    }
    if matches!(said("status"), "" | "Success") {
        status["status"] = Value::from("Failure");
    }
    status["message"] = Value::from(message.as_str());
    status["code"] = Value::from(code);
    Status { told: Some(status.into()), ..Status::new(code, "", message) }
}

/// The refusal of a dry run by a webhook that may do more than answer.
pub(super) fn no_dry_run(hook: &str) -> Status {
    Status::bad_request(format!("admission webhook {hook:?} does not support dry run"))
}

/// The failure of a webhook that cannot be asked, or whose answer cannot be used.
pub(super) fn failed(hook: &str, why: &str) -> Status {
    Status::internal(&format!("failed calling webhook {hook:?}: {why}"))
}

/// The 500 of a patch where nothing can be patched.
pub(super) fn nothing_to_patch(hook: &str) -> Status {
    Status::internal(&format!(
        "admission webhook {hook:?} attempted to modify the object, which is not supported for this operation"
    ))
}
