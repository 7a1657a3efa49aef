//! Fields of the messages: two tables of facts, each decoded when it is first asked. One has what served
//! kinds need; the other one, which hardly any process reads, all the rest of k8s.io/api. What is served,
//! neither says.

use super::error::{Error, Fault};
use flate2::read::GzDecoder;
use opdev_object::facts::facts;
use opdev_object::meta::Gvk;
use serde::Deserialize;
use std::collections::HashMap;
use std::io::Read;
use std::sync::OnceLock;

pub(super) const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.";
pub(super) const EXTENSIONS: &str = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.";

static SERVED: &[u8] = include_bytes!("../assets/protobuf.json.gz");
static UNSERVED: &[u8] = include_bytes!("../assets/protobuf-unserved.json.gz");

/// Field number, JSON name (empty: its fields belong to the message around it), what it holds, flags.
pub(super) type Field = (u64, &'static str, &'static str, u8);
/// Zero is written in JSON too: it is a value of its own, or the field is always there.
pub(super) const KEPT: u8 = 1;
pub(super) const REPEATED: u8 = 2;
pub(super) const MAP: u8 = 4;
/// There may be none of it in a message; of any other field there is always one.
pub(super) const POINTER: u8 = 8;

/// The fields of definitions, in the order of their numbers, in which they are written.
pub(super) type Messages = HashMap<&'static str, Vec<Field>>;

/// Kinds of versions that are not served, and what only they hold.
#[derive(Deserialize)]
pub(super) struct Unserved {
    /// Definitions by apiVersion and kind, with a blank between them.
    #[serde(borrow)]
    pub(super) kinds: HashMap<&'static str, &'static str>,
    pub(super) messages: Messages,
}

/// Decodes a table into parts of its text, which therefore stays for as long as the process lives.
fn decode<T: Deserialize<'static>>(table: &[u8]) -> T {
    let mut text = String::new();
    GzDecoder::new(table).read_to_string(&mut text).expect("an embedded table is valid gzip");
    serde_json::from_str(text.leak()).expect("an embedded table is valid JSON")
}

pub(super) fn served() -> &'static Messages {
    static DECODED: OnceLock<Messages> = OnceLock::new();
    DECODED.get_or_init(|| decode(SERVED))
}

pub(super) fn unserved() -> &'static Unserved {
    static DECODED: OnceLock<Unserved> = OnceLock::new();
    DECODED.get_or_init(|| decode(UNSERVED))
}

/// Returns true if a kind of a served version has a message. Of versions that are not served this is never
/// true.
pub fn serves(api_version: &str, kind: &str) -> bool {
    let definition = facts().definition_name(&Gvk::from_api_version(api_version, kind));
    definition.is_some_and(|name| served().contains_key(name))
}

/// Returns true if there is a kind at all, in a served version or in another one.
pub fn knows(api_version: &str, kind: &str) -> bool {
    definition(api_version, kind).is_ok()
}

/// The definition of a kind, of any version there ever was a message for.
pub(super) fn definition(api_version: &str, kind: &str) -> Result<&'static str, Error> {
    if kind == "DeleteOptions" {
        return Ok("io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions");
    }
    let known = match (api_version, kind) {
        ("v1", "Status") => served().get_key_value(format!("{META}Status").as_str()),
        ("meta.k8s.io/v1" | "meta.k8s.io/v1beta1", "PartialObjectMetadata") => {
            served().get_key_value(format!("{META}PartialObjectMetadata").as_str())
        }
        _ => None,
    };
    known
        .map(|(name, _)| *name)
        .or_else(|| facts().definition_name(&Gvk::from_api_version(api_version, kind)))
        .or_else(|| unserved().kinds.get(format!("{api_version} {kind}").as_str()).copied())
        .ok_or_else(|| Fault::UnknownKind(api_version.to_owned(), kind.to_owned()).into())
}

/// The fields of a definition.
pub(super) fn fields(definition: &str) -> Option<&'static [Field]> {
    let found = served().get(definition).or_else(|| unserved().messages.get(definition));
    found.map(Vec::as_slice)
}

/// The fields of a definition that has to be there.
pub(super) fn known(definition: &str) -> Result<&'static [Field], Error> {
    fields(definition).ok_or_else(|| Fault::UnknownDefinition(definition.to_owned()).into())
}
