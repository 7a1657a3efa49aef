//! Records in several Secrets, as the chunked driver of helm-operator-plugins writes and reads them: an index
//! Secret with the labels of the revision, the first part and the names of the others, and one Secret for
//! each further part. In memory a record is the index with all of the bytes: `split` and `join` are the way
//! to Secrets and back.

use super::{RecordError, Release, labels, pack, secret_name, unpack};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The type of index Secrets.
pub const INDEX_TYPE: &str = "operatorframework.io/index.v1";
/// The type of Secrets that hold a further part.
pub const CHUNK_TYPE: &str = "operatorframework.io/chunk.v1";
/// How much a label holds.
pub(super) const LONGEST_LABEL: usize = 63;

/// The splitting of records.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Chunking {
    /// The label `owner` of all Secrets.
    pub owner: String,
    /// The bytes of a part, at most.
    pub size: usize,
    /// The largest number of parts that are read; 0 reads any number.
    pub most_read: usize,
    /// The largest number of parts that are written; 0 writes any number.
    pub most_written: usize,
}

impl Default for Chunking {
    /// A Secret holds 1 MiB, and the index has names beside its part.
    fn default() -> Self {
        Chunking { owner: "helm".to_owned(), size: 1_000_000, most_read: 0, most_written: 0 }
    }
}

/// A record and the labels of its release, which the driver keeps beside it.
#[derive(Serialize)]
struct Wrapped<'a> {
    #[serde(flatten)]
    release: &'a Release,
    labels: BTreeMap<String, String>,
}

/// Returns true if an object is the index of a record.
pub fn is_index(object: &Value) -> bool {
    object["type"] == INDEX_TYPE
}

/// The whole record of a revision, as an index; `stamp` is `createdAt` or `modifiedAt` with the time.
pub fn record(release: &Release, stamp: (&str, Timestamp), owner: &str) -> Value {
    let key = secret_name(&release.name, release.version);
    let mut labels = labels(release);
    for (name, value) in
        [("owner", owner), ("key", &key), ("type", "index"), (stamp.0, &stamp.1.as_second().to_string())]
    {
        labels.insert(name.to_owned(), value.to_owned());
    }
    let packed = pack(&Wrapped { release, labels: BTreeMap::new() });
    json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": key, "namespace": release.namespace, "labels": labels},
        "type": INDEX_TYPE,
        "immutable": false,
        "data": {"chunk": STANDARD.encode(packed)},
    })
}

/// The Secrets of a record: its index, and the further parts. These lack the reference to the index, which
/// has no uid yet.
///
/// # Errors
/// A record that needs more parts than are allowed, or whose name no label holds.
pub fn split(record: &Value, how: &Chunking) -> Result<(Value, Vec<Value>), RecordError> {
    let text = |pointer: &str| record.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let key = text("/metadata/name");
    if key.len() > LONGEST_LABEL {
        return Err(RecordError::NameTooLong { name: key.to_owned() });
    }
    let packed = STANDARD.decode(text("/data/chunk")).map_err(|error| RecordError::data(key, error))?;
    let parts: Vec<&[u8]> = packed.chunks(how.size.max(1)).collect();
    if how.most_written > 0 && parts.len() > how.most_written {
        return Err(RecordError::TooManyToWrite {
            release: text("/metadata/labels/name").to_owned(),
            count: parts.len(),
            most: how.most_written,
        });
    }
    let mut marks = json!({"owner": how.owner, "key": key, "type": "chunk"});
    let created = record.pointer("/metadata/labels/createdAt");
    if let Some(created) = created {
        marks["createdAt"] = created.clone();
    }
    let further = parts.iter().skip(1).map(|part| {
        json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {
                "name": format!("{key}-{}", digest(part)),
                "namespace": text("/metadata/namespace"),
                "labels": marks,
            },
            "type": CHUNK_TYPE,
            "immutable": true,
            "data": {"chunk": STANDARD.encode(part)},
        })
    });
    let further: Vec<Value> = further.collect();
    let names: Vec<&str> = further.iter().filter_map(|part| part["metadata"]["name"].as_str()).collect();
    let mut index = record.clone();
    let first = parts.first().copied().unwrap_or_default();
    index["data"] = json!({
        "chunk": STANDARD.encode(first),
        "extraChunks": STANDARD.encode(Value::from(names).to_string()),
    });
    Ok((index, further))
}

/// The names of the Secrets that hold the further parts.
///
/// # Errors
/// An index that names none in the way that it should.
pub fn further_names(index: &Value) -> Result<Vec<String>, RecordError> {
    let name = index["metadata"]["name"].as_str().unwrap_or_default();
    let wrong = || RecordError::NoChunkNames { index: name.to_owned() };
    let names = index["data"]["extraChunks"].as_str().ok_or_else(wrong)?;
    let names = STANDARD.decode(names).map_err(|_| wrong())?;
    serde_json::from_slice(&names).map_err(|_| wrong())
}

/// Returns true if a record lacks parts, as one of which not all was stored.
pub fn is_torn(record: &Value) -> bool {
    is_index(record) && record["data"]["torn"] == true
}

/// Puts the whole bytes into an index; where that cannot be, why not, for whoever reads the record.
pub fn join(index: &mut Value, further: &BTreeMap<&str, &Value>, how: &Chunking) {
    let names = further_names(index).unwrap_or_default();
    let torn = names.iter().any(|name| !further.contains_key(name.as_str()));
    index["data"] = match joined(index, further, how) {
        Ok(packed) => json!({"chunk": STANDARD.encode(packed)}),
        Err(why) => json!({"unreadable": why.to_string(), "torn": torn}),
    };
}

fn joined(index: &Value, further: &BTreeMap<&str, &Value>, how: &Chunking) -> Result<Vec<u8>, RecordError> {
    let name = index["metadata"]["name"].as_str().unwrap_or_default();
    let names = further_names(index)?;
    let count = names.len() + 1;
    if how.most_read > 0 && count > how.most_read {
        return Err(RecordError::TooManyToRead { index: name.to_owned(), count, most: how.most_read });
    }
    let mut packed = Vec::new();
    let parts = names.iter().map(|part| (part.as_str(), further.get(part.as_str()).copied()));
    for (at, (part, secret)) in [(name, Some(index))].into_iter().chain(parts).enumerate() {
        let secret = secret.ok_or_else(|| RecordError::MissingChunk {
            index: name.to_owned(),
            place: at + 1,
            count,
            secret: part.to_owned(),
        })?;
        let text = secret["data"]["chunk"].as_str();
        let text = text.ok_or_else(|| RecordError::no_data(part, "chunk"))?;
        packed.extend(STANDARD.decode(text).map_err(|error| RecordError::data(part, error))?);
    }
    Ok(packed)
}

/// Reads a whole record.
pub(super) fn read(record: &Value) -> Result<Release, RecordError> {
    let name = record["metadata"]["name"].as_str().unwrap_or_default();
    if let Some(why) = record["data"]["unreadable"].as_str() {
        return Err(RecordError::NotJoined { reason: why.to_owned() });
    }
    let text = record["data"]["chunk"].as_str().ok_or_else(|| RecordError::no_data(name, "chunk"))?;
    let packed = STANDARD.decode(text).map_err(|error| RecordError::data(name, error))?;
    unpack(packed).map_err(|error| error.in_object("Secret", name))
}

/// FNV-1a of 64 bits in the driver's own letters: the end of a part's name.
fn digest(part: &[u8]) -> String {
    const LETTERS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz123456";
    let hash = part.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    // 64 bits are twelve letters of five bits, and one of four with a zero behind them.
    let letter = |at: u32| {
        let bits = if at < 12 { hash >> (59 - at * 5) } else { hash << 1 };
        char::from(LETTERS[usize::try_from(bits & 31).unwrap_or_default()])
    };
    (0..13).map(letter).collect()
}

#[cfg(test)]
mod tests {
    use super::super::from_secret;
    use super::*;
    use expect_test::expect;

    fn release(text: &str) -> Release {
        let config = json!({"text": text});
        Release { name: "web".into(), namespace: "shop".into(), version: 3, config, ..Release::default() }
    }

    fn whole(text: &str) -> Value {
        record(&release(text), ("createdAt", Timestamp::from_second(1_700_000_001).unwrap()), "mine")
    }

    /// A text that gzip cannot make shorter by much.
    fn noise() -> String {
        let mut state = 1_u64;
        let mut next = move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            char::from(b'a' + u8::try_from((state >> 33) % 26).unwrap())
        };
        (0..3000).map(|_| next()).collect()
    }

    #[test]
    fn a_record_goes_into_secrets_and_back() {
        let how = Chunking { owner: "mine".into(), size: 500, ..Chunking::default() };
        let (mut index, further) = split(&whole(&noise()), &how).unwrap();
        assert!(further.len() > 2);
        let labels = &index["metadata"]["labels"];
        let wanted = json!({"name": "web", "owner": "mine", "status": "unknown", "version": "3", "type": "index",
            "key": "sh.helm.release.v1.web.v3", "createdAt": "1700000001"});
        assert_eq!((labels, &index["immutable"]), (&wanted, &json!(false)));
        let part = &further[0];
        let wanted = json!({"owner": "mine", "key": "sh.helm.release.v1.web.v3", "type": "chunk",
            "createdAt": "1700000001"});
        assert_eq!((&part["metadata"]["labels"], &part["type"]), (&wanted, &json!(CHUNK_TYPE)));
        assert_eq!(part["immutable"], true);
        let names = further_names(&index).unwrap();
        assert!(names.iter().zip(&further).all(|(name, part)| part["metadata"]["name"] == name.as_str()));
        let parts: BTreeMap<&str, &Value> = names.iter().map(String::as_str).zip(&further).collect();
        let mut lacking = parts.clone();
        lacking.remove(names[1].as_str());
        let mut torn = index.clone();
        join(&mut torn, &lacking, &how);
        assert!(is_torn(&torn) && !is_torn(&index));
        let why = from_secret(&torn).unwrap_err().to_string();
        expect!["Secret sh.helm.release.v1.web.v3: chunk 3 of 5, Secret sh.helm.release.v1.web.v3-g3pzoym26bejm, is missing"]
        .assert_eq(&why);
        let mut many = index.clone();
        join(&mut many, &parts, &Chunking { most_read: 2, ..how.clone() });
        expect![[r#"release too large: "sh.helm.release.v1.web.v3" consists of 5 chunks, which exceeds the maximum of 2"#]]
        .assert_eq(&from_secret(&many).unwrap_err().to_string());
        join(&mut index, &parts, &how);
        assert_eq!(from_secret(&index).unwrap().config, json!({"text": noise()}));
    }

    #[test]
    fn a_small_record_is_one_secret() {
        let (index, further) = split(&whole("a"), &Chunking::default()).unwrap();
        assert_eq!((further.len(), further_names(&index).unwrap().len()), (0, 0));
        assert_eq!(STANDARD.decode(index["data"]["extraChunks"].as_str().unwrap()).unwrap(), b"[]");
    }

    #[test]
    fn what_cannot_be_stored_is_told() {
        let how = Chunking { size: 500, most_written: 2, ..Chunking::default() };
        let why = split(&whole(&noise()), &how).unwrap_err().to_string();
        assert!(why.starts_with("release too large: \"web\" requires "), "{why}");
        let long = Release { name: "w".repeat(50), ..release("a") };
        let record = record(&long, ("createdAt", Timestamp::UNIX_EPOCH), "helm");
        let why = split(&record, &Chunking::default()).unwrap_err().to_string();
        assert!(why.contains("72 characters") && why.contains("a shorter name"), "{why}");
    }

    /// Digests that Go's hash/fnv and encoding/base32 give for the same bytes.
    #[test]
    fn digests_are_those_of_the_driver() {
        assert_eq!(digest(b""), "zpzjzzeeeirsk");
        assert_eq!(digest(b"chunk"), "b5byc4uhhshce");
    }
}
