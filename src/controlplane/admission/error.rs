//! Answers of webhooks that cannot be used, with the texts of the real server.

use super::client::MUST_WAIT;
use opdev_apimachinery::error::Cause;
use std::fmt;

/// The head of a document, its apiVersion and kind, is not as it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HeadError {
    /// The document is no object; what it is, as Go names it.
    NoObject(&'static str),
    /// It is at another version.
    OtherVersion { kind: String, found: String, expected: String },
    /// There is no such kind.
    UnknownKind { version: String, kind: String },
}

impl std::error::Error for HeadError {}

impl fmt::Display for HeadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HeadError::NoObject(found) => write!(
                f,
                "couldn't get version/kind; json parse error: json: cannot unmarshal {found} into Go value of type \
                 struct {{ APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \
                 \"json:\\\"kind,omitempty\\\"\" }}"
            ),
            HeadError::OtherVersion { kind, found, expected } => {
                write!(f, "converting ({found}.{kind}) to ({expected}.{kind}): unknown conversion")
            }
            HeadError::UnknownKind { version, kind } => write!(
                f,
                "no kind {kind:?} is registered for version {version:?} in scheme \"pkg/runtime/scheme.go:111\""
            ),
        }
    }
}

/// The answer to an AdmissionReview cannot be used. Its text follows `failed calling webhook "…": `.
#[derive(Debug)]
pub(super) enum UnusableAnswer {
    Head(HeadError),
    /// A field of the response has another type.
    FieldType {
        found: &'static str,
        field: String,
        go_type: String,
    },
    /// The patch is not base64.
    Base64(base64::DecodeError),
    /// It answers another question.
    Uid {
        expected: String,
        found: String,
    },
    /// Anything else that a response may not be.
    Invalid(&'static str),
    /// The patch is not JSON.
    PatchJson(serde_json::Error),
    /// The patch is no list; what it is, as Go names it.
    PatchType(&'static str),
}

impl std::error::Error for UnusableAnswer {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            UnusableAnswer::Head(error) => Some(error),
            UnusableAnswer::Base64(error) => Some(error),
            UnusableAnswer::PatchJson(error) => Some(error),
            UnusableAnswer::FieldType { .. }
            | UnusableAnswer::Uid { .. }
            | UnusableAnswer::Invalid(_)
            | UnusableAnswer::PatchType(_) => None,
        }
    }
}

impl fmt::Display for UnusableAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            UnusableAnswer::Head(error) => write!(f, "failed to call webhook: {error}"),
            UnusableAnswer::FieldType { found, field, go_type } => write!(
                f,
                "failed to call webhook: json: cannot unmarshal {found} into Go struct field \
                 AdmissionResponse.response.{field} of type {go_type}"
            ),
            UnusableAnswer::Base64(_) => {
                f.write_str("failed to call webhook: illegal base64 data at input byte 0")
            }
            UnusableAnswer::Uid { expected, found } => write!(
                f,
                "received invalid webhook response: expected response.uid={expected:?}, got {found:?}"
            ),
            UnusableAnswer::Invalid(why) => write!(f, "received invalid webhook response: {why}"),
            UnusableAnswer::PatchJson(error) => {
                write!(f, "received undecodable patch in webhook response: {error}")
            }
            UnusableAnswer::PatchType(found) => write!(
                f,
                "received undecodable patch in webhook response: json: cannot unmarshal {found} into Go value of \
                 type jsonpatch.Patch"
            ),
        }
    }
}

/// Objects cannot be converted to another version. The kind is as Go prints it: `group/version, Kind=kind`.
#[derive(Debug)]
pub enum ConversionError {
    /// This thread may not wait for a webhook.
    MustWait,
    /// The webhook does not know any version of ConversionReview.
    NoReviewVersion,
    /// There is no answer that can be used.
    Failed { kind: String, why: UnusableReview },
    /// The answer has another number of objects.
    Count { kind: String, found: usize, expected: usize },
    /// An object of the answer cannot be used.
    Object { kind: String, why: UnusableObject },
}

/// The answer to a ConversionReview cannot be used.
#[derive(Debug)]
pub enum UnusableReview {
    /// The webhook could not be reached; in the words of the client.
    NoAnswer(String),
    Head(HeadError),
    NoKind,
    NoResponse,
    /// It answers another question.
    Uid {
        expected: String,
        found: String,
    },
    /// The webhook says that it failed, and not why.
    Status(String),
    /// The webhook says why it failed.
    Message(String),
}

/// A converted object is not what it was, at another version.
#[derive(Debug)]
pub enum UnusableObject {
    Version {
        expected: String,
        found: String,
    },
    Kind {
        expected: String,
        found: String,
    },
    /// It has another name, namespace or uid.
    Moved {
        name: &'static str,
        was: String,
        is: String,
    },
    Metadata(UnusableMetadata),
}

/// The error of the labels and annotations of a converted object.
#[derive(Debug)]
pub enum UnusableMetadata {
    Missing,
    /// A field is no map.
    NoMap(&'static str),
    /// A value of a field is no text.
    NoText {
        field: &'static str,
        key: String,
    },
    Causes(Vec<Cause>),
}

impl std::error::Error for ConversionError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            ConversionError::Failed { why, .. } => Some(why),
            ConversionError::Object { why, .. } => Some(why),
            ConversionError::MustWait | ConversionError::NoReviewVersion | ConversionError::Count { .. } => {
                None
            }
        }
    }
}

impl std::error::Error for UnusableReview {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            UnusableReview::Head(error) => Some(error),
            _ => None,
        }
    }
}

impl std::error::Error for UnusableObject {}

impl fmt::Display for ConversionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConversionError::MustWait => f.write_str(MUST_WAIT),
            ConversionError::NoReviewVersion => f.write_str("no supported conversion review versions"),
            ConversionError::Failed { kind, why } => write!(f, "conversion webhook for {kind} failed: {why}"),
            ConversionError::Count { kind, found, expected } => {
                write!(f, "conversion webhook for {kind} returned {found} objects, expected {expected}")
            }
            ConversionError::Object { kind, why } => {
                write!(f, "conversion webhook for {kind} returned {why}")
            }
        }
    }
}

impl fmt::Display for UnusableReview {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            UnusableReview::NoAnswer(why) | UnusableReview::Message(why) => f.write_str(why),
            UnusableReview::Head(error) => error.fmt(f),
            UnusableReview::NoKind => f.write_str(
                "expected webhook response of apiextensions.k8s.io/v1, Kind=ConversionReview, got /, Kind=",
            ),
            UnusableReview::NoResponse => f.write_str("no response provided"),
            UnusableReview::Uid { expected, found } => {
                write!(f, "expected response.uid={expected:?}, got {found:?}")
            }
            UnusableReview::Status(status) => {
                write!(f, "response.result.status was '{status}', not 'Success'")
            }
        }
    }
}

impl fmt::Display for UnusableObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const AT: &str = "invalid object at index 0";
        match self {
            UnusableObject::Version { expected, found } => {
                write!(f, "{AT}: invalid groupVersion (expected {expected}, received {found})")
            }
            UnusableObject::Kind { expected, found } => {
                write!(f, "{AT}: invalid kind (expected {expected}, received {found})")
            }
            UnusableObject::Moved { name, was, is } => {
                write!(f, "invalid object: must have the same {name}: {was} != {is}")
            }
            UnusableObject::Metadata(error) => write!(f, "invalid metadata: {error}"),
        }
    }
}

impl fmt::Display for UnusableMetadata {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            UnusableMetadata::Missing => f.write_str("missing metadata in converted object"),
            UnusableMetadata::NoMap(field) => write!(f, "invalid metadata.{field} in converted object"),
            UnusableMetadata::NoText { field, key } => {
                write!(f, "metadata.{field}[{key}] must be a string in converted object")
            }
            UnusableMetadata::Causes(causes) => match causes.as_slice() {
                [one] => one.fmt(f),
                many => {
                    let texts: Vec<String> = many.iter().map(ToString::to_string).collect();
                    write!(f, "[{}]", texts.join(", "))
                }
            },
        }
    }
}
