//! One difference between two definitions: how bad it is, where it is, and what it means.

/// The severity of a difference, the least first.
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

/// The kind of difference.
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
    /// The conversion of versions.
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
    /// The severity.
    pub severity: Severity,
    /// The version it is about; empty where it is about all of them.
    pub version: String,
    /// Where in an object (`spec.replicas`, `spec.ports[*].name`), or in the definition
    /// (`spec.names.plural`).
    pub path: String,
    /// One sentence for the user.
    pub what: String,
    /// Where the field has gone, as a path like `path`.
    pub renamed_to: Option<String>,
    /// The kind of difference.
    pub kind: Change,
    /// The number of live objects that break or lose data by it; `None` as long as [`live()`](super::live())
    /// was not asked.
    pub objects: Option<usize>,
}

impl Finding {
    pub(super) fn new(
        severity: Severity,
        kind: Change,
        path: impl Into<String>,
        what: impl Into<String>,
    ) -> Finding {
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

pub(super) fn sort(findings: &mut [Finding]) {
    findings.sort_by(|a, b| {
        b.severity
            .cmp(&a.severity)
            .then_with(|| (&a.version, &a.path, a.kind, &a.what).cmp(&(&b.version, &b.path, b.kind, &b.what)))
    });
}
