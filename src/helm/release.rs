//! The release record: what Helm keeps of an installed revision, and how it is stored in a Secret.
//! Helm 3 and 4 read what this writes; this reads what they write.

pub mod chunked;
mod error;

pub use error::RecordError;

use crate::chart::{Chart, File, Metadata};
use crate::manifest::{Hook, HookEvent};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::fmt;
use std::io::{Read, Write};

/// The status of a revision.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs)]
pub enum Status {
    #[default]
    Unknown,
    Deployed,
    Uninstalled,
    Superseded,
    Failed,
    Uninstalling,
    PendingInstall,
    PendingUpgrade,
    PendingRollback,
}

impl Status {
    /// The word in the record and in the Secret's label.
    pub fn word(self) -> &'static str {
        match self {
            Status::Unknown => "unknown",
            Status::Deployed => "deployed",
            Status::Uninstalled => "uninstalled",
            Status::Superseded => "superseded",
            Status::Failed => "failed",
            Status::Uninstalling => "uninstalling",
            Status::PendingInstall => "pending-install",
            Status::PendingUpgrade => "pending-upgrade",
            Status::PendingRollback => "pending-rollback",
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// One revision of a release.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Release {
    /// The release's name.
    pub name: String,
    /// When and how it went.
    pub info: Info,
    /// The chart, without its subcharts.
    pub chart: StoredChart,
    /// The user's values.
    #[serde(skip_serializing_if = "is_empty_object")]
    pub config: Value,
    /// The rendered objects, hooks left out.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub manifest: String,
    /// The hooks.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hooks: Vec<StoredHook>,
    /// The revision.
    pub version: i64,
    /// Where it is installed.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// `ssa` or `csa`; Helm 3 writes nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub apply_method: Option<String>,
}

/// When and how a revision went.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Info {
    /// When revision 1 was installed.
    #[serde(with = "time")]
    pub first_deployed: Option<Timestamp>,
    /// When this revision was written.
    #[serde(with = "time")]
    pub last_deployed: Option<Timestamp>,
    /// When it was uninstalled.
    #[serde(with = "time")]
    pub deleted: Option<Timestamp>,
    /// One sentence.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// The status.
    pub status: Status,
    /// NOTES.txt.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub notes: String,
}

/// The part of a chart that the record keeps.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct StoredChart {
    /// Chart.yaml.
    pub metadata: Metadata,
    /// Chart.lock.
    pub lock: Option<Value>,
    /// Templates.
    #[serde(deserialize_with = "null_is_default")]
    pub templates: Vec<StoredFile>,
    /// Defaults.
    pub values: Value,
    /// values.schema.json, base64.
    pub schema: Option<String>,
    /// Other files.
    #[serde(deserialize_with = "null_is_default")]
    pub files: Vec<StoredFile>,
}

/// A file, its content in base64.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct StoredFile {
    /// The path in the chart.
    pub name: String,
    /// The content, base64.
    #[serde(deserialize_with = "null_is_default")]
    pub data: String,
}

/// A hook and its last run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct StoredHook {
    /// The object's name.
    pub name: String,
    /// Its kind.
    pub kind: String,
    /// The template it comes from.
    pub path: String,
    /// Its text.
    pub manifest: String,
    /// When it runs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<HookEvent>,
    /// How it went.
    pub last_run: HookRun,
    /// Its weight.
    #[serde(skip_serializing_if = "is_zero")]
    pub weight: i64,
    /// When it is deleted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub delete_policies: Vec<String>,
    /// When its log is kept.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub output_log_policies: Vec<String>,
}

/// How a hook went.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HookRun {
    /// When it was created.
    #[serde(with = "time")]
    pub started_at: Option<Timestamp>,
    /// When it was through.
    #[serde(with = "time")]
    pub completed_at: Option<Timestamp>,
    /// `Running`, `Succeeded`, `Failed`, `Unknown` or nothing.
    pub phase: String,
}

fn is_zero(number: &i64) -> bool {
    *number == 0
}

fn is_empty_object(value: &Value) -> bool {
    value.is_null() || value.as_object().is_some_and(Map::is_empty)
}

fn null_is_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(from: D) -> Result<T, D::Error> {
    Ok(Option::<T>::deserialize(from)?.unwrap_or_default())
}

/// Helm's time: RFC 3339, or an empty text.
mod time {
    use super::{Deserialize, Deserializer, Serializer, Timestamp};

    pub(super) fn serialize<S: Serializer>(time: &Option<Timestamp>, to: S) -> Result<S::Ok, S::Error> {
        match time {
            Some(time) => to.collect_str(time),
            None => to.serialize_str(""),
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Timestamp>, D::Error> {
        let text = Option::<String>::deserialize(from)?.unwrap_or_default();
        Ok(text.parse().ok().filter(|_| !text.starts_with("0001-01-01")))
    }
}

impl From<&File> for StoredFile {
    fn from(file: &File) -> Self {
        StoredFile { name: file.name.clone(), data: STANDARD.encode(&*file.data) }
    }
}

impl From<&Chart> for StoredChart {
    fn from(chart: &Chart) -> Self {
        StoredChart {
            metadata: chart.metadata.clone(),
            lock: chart.lock.clone(),
            templates: chart.templates.iter().map(StoredFile::from).collect(),
            values: Value::clone(&chart.values),
            schema: chart.schema.as_ref().map(|schema| STANDARD.encode(schema)),
            files: chart.files.iter().map(StoredFile::from).collect(),
        }
    }
}

impl From<&Hook> for StoredHook {
    fn from(hook: &Hook) -> Self {
        StoredHook {
            name: hook.name.clone(),
            kind: hook.kind.clone(),
            path: hook.path.clone(),
            manifest: hook.manifest.clone(),
            events: hook.events.clone(),
            last_run: HookRun::default(),
            weight: hook.weight,
            delete_policies: hook.delete_policies.clone(),
            output_log_policies: hook.output_log_policies.clone(),
        }
    }
}

/// The type of Secrets that hold releases.
pub const SECRET_TYPE: &str = "helm.sh/release.v1";

/// The name of the Secret of a revision.
pub fn secret_name(name: &str, revision: i64) -> String {
    format!("sh.helm.release.v1.{name}.v{revision}")
}

/// The labels Helm finds a release by; it adds `createdAt` or `modifiedAt` (seconds) when it writes.
pub fn labels(release: &Release) -> BTreeMap<String, String> {
    BTreeMap::from([
        ("name".to_owned(), release.name.clone()),
        ("owner".to_owned(), "helm".to_owned()),
        ("status".to_owned(), release.info.status.word().to_owned()),
        ("version".to_owned(), release.version.to_string()),
    ])
}

/// The whole Secret of a revision; `stamp` is `createdAt` or `modifiedAt` with the time.
pub fn secret(release: &Release, stamp: (&str, Timestamp)) -> Value {
    let mut labels = labels(release);
    labels.insert(stamp.0.to_owned(), stamp.1.as_second().to_string());
    json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": secret_name(&release.name, release.version),
            "namespace": release.namespace,
            "labels": labels,
        },
        "type": SECRET_TYPE,
        "data": {"release": STANDARD.encode(encode(release))},
    })
}

/// The whole ConfigMap of a revision, as Helm's ConfigMap driver writes it.
pub fn config_map(release: &Release, stamp: (&str, Timestamp)) -> Value {
    let mut record = secret(release, stamp);
    record["kind"] = Value::from("ConfigMap");
    record["data"]["release"] = Value::from(encode(release));
    if let Some(fields) = record.as_object_mut() {
        fields.remove("type");
    }
    record
}

/// The record as base64 of gzip of JSON: the content of the Secret's `release` key.
pub fn encode(release: &Release) -> String {
    STANDARD.encode(pack(release))
}

/// gzip of JSON with Go's numbers.
fn pack(record: &impl Serialize) -> Vec<u8> {
    let mut json = Vec::new();
    let mut serializer = serde_json::Serializer::with_formatter(&mut json, GoNumbers);
    // A record holds nothing that JSON cannot.
    if record.serialize(&mut serializer).is_err() {
        json.clear();
    }
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(&json).and_then(|()| encoder.finish()).unwrap_or_default()
}

/// The content of a Secret's `release` key, once Kubernetes' own base64 is taken off.
///
/// # Errors
/// Bytes that are not base64, gzip or the JSON of a release.
pub fn decode(data: &[u8]) -> Result<Release, RecordError> {
    unpack(STANDARD.decode(data.trim_ascii()).map_err(RecordError::Base64)?)
}

/// A record from JSON, or from gzip of it.
fn unpack(packed: Vec<u8>) -> Result<Release, RecordError> {
    let json = if packed.starts_with(&[0x1f, 0x8b, 0x08]) {
        let mut json = Vec::new();
        flate2::read::GzDecoder::new(packed.as_slice()).read_to_end(&mut json).map_err(RecordError::Gzip)?;
        json
    } else {
        packed
    };
    serde_json::from_slice(&json).map_err(RecordError::Json)
}

/// The record in a Secret, in a ConfigMap, or in the whole of several Secrets.
///
/// # Errors
/// What of the object is missing or cannot be read.
pub fn from_secret(secret: &Value) -> Result<Release, RecordError> {
    if chunked::is_index(secret) {
        return chunked::read(secret);
    }
    let name = secret["metadata"]["name"].as_str().unwrap_or_default();
    let text = secret["data"]["release"].as_str().ok_or_else(|| RecordError::no_data(name, "release"))?;
    if secret["kind"] == "ConfigMap" {
        return decode(text.as_bytes()).map_err(|error| error.in_object("ConfigMap", name));
    }
    let data = STANDARD.decode(text).map_err(|error| RecordError::data(name, error))?;
    decode(&data).map_err(|error| error.in_object("Secret", name))
}

/// Numbers in Go's words: 3, not 3.0.
struct GoNumbers;

impl serde_json::ser::Formatter for GoNumbers {
    fn write_f64<W: ?Sized + Write>(&mut self, writer: &mut W, value: f64) -> std::io::Result<()> {
        writer.write_all(opdev_object::yaml::number::format_json(value).as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn survives_its_own_coding() {
        let chart = Chart {
            metadata: Metadata { name: "web".into(), version: "1.0.0".into(), ..Metadata::default() },
            values: json!({"replicas": 3.0, "ratio": 0.5}).into(),
            templates: vec![File { name: "templates/a.yaml".into(), data: b"a: 1"[..].into() }],
            ..Chart::default()
        };
        let release = Release {
            name: "web".into(),
            namespace: "shop".into(),
            version: 2,
            chart: StoredChart::from(&chart),
            config: json!({"n": 1}),
            info: Info {
                first_deployed: Some(Timestamp::from_second(1_700_000_000).unwrap()),
                status: Status::Deployed,
                ..Info::default()
            },
            ..Release::default()
        };
        let secret = secret(&release, ("createdAt", Timestamp::from_second(1_700_000_001).unwrap()));
        assert_eq!(secret["metadata"]["name"], "sh.helm.release.v1.web.v2");
        assert_eq!(secret["metadata"]["labels"]["createdAt"], "1700000001");
        let back = from_secret(&secret).unwrap();
        assert_eq!(back.info, release.info);
        assert_eq!(back.chart.values, json!({"replicas": 3, "ratio": 0.5}));
        let kept = &back.chart.templates[0];
        assert_eq!(
            (&kept.name, STANDARD.decode(&kept.data).unwrap().as_slice()),
            (&chart.templates[0].name, &*chart.templates[0].data)
        );
        let packed = STANDARD.decode(encode(&release)).unwrap();
        let mut text = String::new();
        flate2::read::GzDecoder::new(packed.as_slice()).read_to_string(&mut text).unwrap();
        assert!(text.contains(r#""replicas":3"#) && text.contains(r#""deleted":"""#), "{text}");
        assert!(
            text.starts_with(r#"{"name":"web","info":{"first_deployed":"2023-11-14T22:13:20Z""#),
            "{text}"
        );
    }

    #[test]
    fn says_what_is_wrong_with_a_record() {
        let said = |error: RecordError| error.to_string();
        assert!(said(decode(b"%%%").unwrap_err()).starts_with("release record: "));
        let nothing = from_secret(&json!({"metadata": {"name": "x"}})).unwrap_err();
        assert_eq!(said(nothing), "Secret x has no data.release");
    }
}
