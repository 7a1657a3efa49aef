//! What a change of a CustomResourceDefinition does to those who use it: every difference classified (`compare`),
//! what the API server would refuse (`check`), and what it means for the objects there are (`live`).
//! Pure: two definitions and some objects in, sentences out. A difference nobody has thought of is a warning, never
//! silence. Read `around` for what stands around the schemas and `schema` for what is in them.

mod around;
mod live;
mod paths;
mod rename;
mod same;
mod schema;
mod words;

pub use live::{Broken, Live, Lost, ObjectRef, live};
pub use same::same;

use opdev_object::definition;
use serde_json::Value;

/// How bad a difference is, the least first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Nothing that works today stops working.
    Info,
    /// Something behaves differently.
    Warn,
    /// Existing objects or clients fail.
    Break,
    /// Stored data disappears.
    Loss,
    /// The API server refuses the definition.
    Block,
}

impl Severity {
    /// Its name on the screen, such as `BREAK`.
    pub fn word(self) -> &'static str {
        match self {
            Severity::Info => "INFO",
            Severity::Warn => "WARN",
            Severity::Break => "BREAK",
            Severity::Loss => "LOSS",
            Severity::Block => "BLOCK",
        }
    }
}

/// What kind of difference it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Change {
    /// Group, plural, kind or scope: the identity of the resource.
    Identity,
    /// A version that objects may still be stored at is gone.
    StoredVersionRemoved,
    /// The API server refuses the definition for what stands in it.
    Refused,
    /// The whole definition is gone.
    DefinitionRemoved,
    /// A new definition.
    DefinitionAdded,
    /// A field is gone.
    PropertyRemoved,
    /// A field is gone and another that looks like it has come.
    PropertyRenamed,
    /// A field is gone and the same one has come at another place.
    PropertyMoved,
    /// Unknown fields are pruned from now on.
    UnknownFieldsPruned,
    /// Objects are stored at another version with another schema.
    StorageVersion,
    /// The type.
    Type,
    /// A type that takes more than before.
    TypeWidened,
    /// A field that has to be there.
    Required,
    /// A required field whose default is gone.
    RequiredDefaultRemoved,
    /// Allowed values were given or became fewer.
    Enum,
    /// More values are allowed.
    EnumWidened,
    /// A pattern or format was added or changed.
    Pattern,
    /// A bound became tighter.
    Bound,
    /// Null is no value any more.
    NullableRemoved,
    /// Null is a value now.
    NullableAdded,
    /// allOf, anyOf, oneOf or not.
    Composition,
    /// A validation rule in CEL was added or changed.
    Rule,
    /// A validation rule that a server finds too expensive.
    Expensive,
    /// A list has become a set or a map.
    ListType,
    /// The keys that tell the items of a list apart.
    MapKeys,
    /// An object has to say its own apiVersion and kind.
    Embedded,
    /// A version is not served any more.
    Unserved,
    /// A version is gone that was served.
    VersionRemoved,
    /// The status subresource came or went.
    StatusSubresource,
    /// The scale subresource or its paths.
    Scale,
    /// Fields that field selectors can name.
    SelectableField,
    /// The default.
    Default,
    /// A list, map or object is merged in another way.
    Topology,
    /// Something is checked no more, or less strictly.
    Relaxed,
    /// How versions are converted.
    Conversion,
    /// Singular, list kind, short names or categories.
    Names,
    /// A version is deprecated, or no longer.
    Deprecated,
    /// A keyword nobody knows.
    Unknown,
    /// A new optional field.
    PropertyAdded,
    /// A new version.
    VersionAdded,
    /// Columns of tables.
    Column,
    /// Words for people: description, title, example, messages of rules.
    Documentation,
    /// Labels and annotations of the definition.
    Metadata,
}

/// One difference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// How bad.
    pub severity: Severity,
    /// The version it is about; empty where it is about all of them.
    pub version: String,
    /// Where in an object (`spec.replicas`, `spec.ports[*].name`), or in the definition (`spec.names.plural`).
    pub path: String,
    /// One sentence for the user.
    pub what: String,
    /// Where the field has gone, as a path like `path`.
    pub renamed_to: Option<String>,
    /// What kind of difference.
    pub kind: Change,
    /// How many live objects break or lose data by it; `None` as long as [`live()`] was not asked.
    pub objects: Option<usize>,
}

impl Finding {
    fn new(severity: Severity, kind: Change, path: impl Into<String>, what: impl Into<String>) -> Finding {
        Finding {
            severity,
            version: String::new(),
            path: path.into(),
            what: what.into(),
            renamed_to: None,
            kind,
            objects: None,
        }
    }
}

impl std::fmt::Display for Finding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ", self.severity.word())?;
        if !self.version.is_empty() {
            write!(f, "{} ", self.version)?;
        }
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        f.write_str(&self.what)
    }
}

/// Every difference between two definitions, worst first. Definitions that mean the same have none.
pub fn compare(old: Option<&Value>, new: &Value) -> Vec<Finding> {
    let Some(old) = old else {
        let name = words::name(new);
        return vec![Finding::new(Severity::Info, Change::DefinitionAdded, "", format!("{name} is new"))];
    };
    let (old, new) = (same::normal(old), same::normal(new));
    let mut findings = around::compare(&old, &new);
    sort(&mut findings);
    findings
}

/// What it means that a definition goes.
pub fn removed(old: &Value) -> Finding {
    let name = words::name(old);
    let what = format!("{name} goes, and with it every {} there is", words::kind(old));
    Finding::new(Severity::Loss, Change::DefinitionRemoved, "", what)
}

/// What the API server would refuse of a definition, with what nearly was meant where a rule names something that is
/// not there; and rules that it finds too expensive.
pub fn check(crd: &Value) -> Vec<Finding> {
    let mut crd = crd.clone();
    definition::complete(&mut crd);
    let hints = definition::uncompiled(&crd);
    let mut findings = Vec::new();
    for error in definition::validate(&crd) {
        let hint = hints.iter().find(|fault| fault.error == error).and_then(|fault| fault.hint.as_deref());
        let hint = hint.map(|hint| format!(" ({hint})")).unwrap_or_default();
        let what = format!("{}{hint}", error.message);
        let mut finding = Finding::new(Severity::Block, Change::Refused, error.path, what);
        finding.version = version_at(&crd, &finding.path);
        findings.push(finding);
    }
    for fault in definition::expensive(&crd, None) {
        let mut finding =
            Finding::new(Severity::Block, Change::Expensive, fault.error.path, fault.error.message);
        finding.version = version_at(&crd, &finding.path);
        findings.push(finding);
    }
    sort(&mut findings);
    findings
}

/// The version an error is about; the only one where there is one.
fn version_at(crd: &Value, path: &str) -> String {
    let versions = crd.pointer("/spec/versions").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let index = path.strip_prefix("spec.versions[").and_then(|rest| rest.split(']').next());
    let found = match (index.and_then(|index| index.parse::<usize>().ok()), versions) {
        (Some(index), _) => versions.get(index),
        (None, [only]) if path.starts_with("spec.validation.") => Some(only),
        (None, _) => None,
    };
    found.and_then(|version| version["name"].as_str()).unwrap_or_default().to_owned()
}

fn sort(findings: &mut [Finding]) {
    findings.sort_by(|a, b| {
        b.severity
            .cmp(&a.severity)
            .then_with(|| (&a.version, &a.path, a.kind, &a.what).cmp(&(&b.version, &b.path, b.kind, &b.what)))
    });
}

#[cfg(test)]
mod mutations;
#[cfg(test)]
mod tests;
