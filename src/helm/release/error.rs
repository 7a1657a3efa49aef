//! Why the record of a release cannot be read, or cannot be written in several Secrets.

use super::chunked::LONGEST_LABEL;
use std::fmt;

/// The error of the record of a release. `Display` already holds the text of a source.
#[derive(Debug)]
#[non_exhaustive]
pub enum RecordError {
    /// The bytes of a record are not base64.
    Base64(base64::DecodeError),
    /// The bytes of a record begin as gzip does and are not gzip.
    Gzip(std::io::Error),
    /// A record is not the JSON of a release.
    Json(serde_json::Error),
    /// A Secret or ConfigMap holds a record that cannot be read.
    In {
        /// The kind of the object: `Secret` or `ConfigMap`.
        kind: &'static str,
        /// The name of the object.
        name: String,
        /// The error of the record.
        source: Box<RecordError>,
    },
    /// The data of a Secret are not base64.
    Data {
        /// The name of the Secret.
        secret: String,
        /// Their errors.
        source: base64::DecodeError,
    },
    /// A Secret lacks the key that holds a record, or a part of one.
    NoData {
        /// The name of the Secret.
        secret: String,
        /// The key of its data.
        key: &'static str,
    },
    /// `data.extraChunks` of an index is not a list of names.
    NoChunkNames {
        /// The name of the index.
        index: String,
    },
    /// A Secret that an index names does not exist.
    MissingChunk {
        /// The name of the index.
        index: String,
        /// The place of the chunk among all chunks, from 1.
        place: usize,
        /// The number of chunks.
        count: usize,
        /// The name of the Secret.
        secret: String,
    },
    /// A record consists of more chunks than may be read.
    TooManyToRead {
        /// The name of the index.
        index: String,
        /// The number of chunks.
        count: usize,
        /// The largest number that may be read.
        most: usize,
    },
    /// A record needs more chunks than may be written.
    TooManyToWrite {
        /// The name of the release.
        release: String,
        /// The number of chunks that it needs.
        count: usize,
        /// The largest number that may be written.
        most: usize,
    },
    /// The name of a record is longer than a label's value may be.
    NameTooLong {
        /// The name of the record.
        name: String,
    },
    /// The chunks of a record could not be joined when they were read (see [`super::chunked::join`]).
    NotJoined {
        /// Why not.
        reason: String,
    },
}

impl RecordError {
    /// This error for the record that an object holds.
    pub(super) fn in_object(self, kind: &'static str, name: &str) -> RecordError {
        RecordError::In { kind, name: name.to_owned(), source: Box::new(self) }
    }

    pub(super) fn data(secret: &str, source: base64::DecodeError) -> RecordError {
        RecordError::Data { secret: secret.to_owned(), source }
    }

    pub(super) fn no_data(secret: &str, key: &'static str) -> RecordError {
        RecordError::NoData { secret: secret.to_owned(), key }
    }
}

impl fmt::Display for RecordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RecordError::Base64(error) => write!(f, "release record: {error}"),
            RecordError::Gzip(error) => write!(f, "release record: {error}"),
            RecordError::Json(error) => write!(f, "release record: {error}"),
            RecordError::In { kind, name, source } => write!(f, "{kind} {name}: {source}"),
            RecordError::Data { secret, source } => write!(f, "Secret {secret}: {source}"),
            RecordError::NoData { secret, key } => write!(f, "Secret {secret} has no data.{key}"),
            RecordError::NoChunkNames { index } => {
                write!(f, "Secret {index}: data.extraChunks is no list of names")
            }
            RecordError::MissingChunk { index, place, count, secret } => {
                write!(f, "Secret {index}: chunk {place} of {count}, Secret {secret}, is missing")
            }
            RecordError::TooManyToRead { index, count, most } => write!(
                f,
                "release too large: {index:?} consists of {count} chunks, which exceeds the maximum of {most}"
            ),
            RecordError::TooManyToWrite { release, count, most } => write!(
                f,
                "release too large: {release:?} requires {count} chunks, which exceeds the maximum of {most}"
            ),
            RecordError::NameTooLong { name } => write!(
                f,
                "the name of the record, {name}, has {} characters; storage chunked keeps it in a label, which \
                 holds {LONGEST_LABEL}: give the custom resource a shorter name, or use storage secret",
                name.len()
            ),
            RecordError::NotJoined { reason } => f.write_str(reason),
        }
    }
}

impl std::error::Error for RecordError {}
