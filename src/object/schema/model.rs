//! The types of schemas. A definition becomes a schema when it is first asked for.

use super::convert;
use super::error::FieldError;
use super::pattern::Pattern;
use serde_json::Value;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

/// The JSON type a schema asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    /// No type given: anything.
    #[default]
    Any,
    /// An object.
    Object,
    /// A list.
    Array,
    /// A string.
    String,
    /// An integer.
    Integer,
    /// Any number.
    Number,
    /// A boolean.
    Boolean,
    /// An integer or a string.
    IntOrString,
}

/// How a list is merged and what makes its items the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListType {
    /// Replaced as a whole.
    Atomic,
    /// A set of scalars.
    Set,
    /// Objects told apart by these keys.
    Map(Vec<String>),
}

/// How a map or object is merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MapType {
    /// Field by field.
    Granular,
    /// Replaced as a whole.
    Atomic,
}

/// `x-kubernetes-patch-merge-key` and `x-kubernetes-patch-strategy`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PatchRule {
    /// The field that tells list items apart.
    pub merge_key: Option<String>,
    /// Lists merge instead of being replaced.
    pub merge: bool,
    /// `$retainKeys` is sent: fields that are not named go away.
    pub retain_keys: bool,
    /// The object is replaced as a whole.
    pub replace: bool,
}

/// The keys that an object may have beside the named properties.
#[derive(Clone, Debug)]
pub enum Additional {
    /// Any value.
    Any,
    /// Values of this schema.
    Schema(SchemaRef),
}

/// Rules that span the fields of a value, such as those in CEL; who compiles them puts them into the schema.
pub trait ValueRules: std::fmt::Debug + Send + Sync {
    /// Everything that is wrong with `value`, which may replace `old`.
    fn validate(&self, value: &Value, old: Option<&Value>, schema: &SchemaRef) -> Vec<FieldError>;
}

/// A schema.
#[derive(Clone, Debug, Default)]
pub struct Schema {
    /// The JSON type.
    pub kind: Kind,
    /// The format, where it is one that is checked.
    pub format: Option<String>,
    /// True if `null` is a value.
    pub nullable: bool,
    /// Named fields.
    pub properties: BTreeMap<String, SchemaRef>,
    /// Other fields.
    pub additional: Option<Additional>,
    /// Items of a list.
    pub items: Option<SchemaRef>,
    /// `x-kubernetes-preserve-unknown-fields`, also free-form built-in objects.
    pub preserve_unknown: bool,
    /// `x-kubernetes-embedded-resource`; the root of a custom resource is one too.
    pub embedded_resource: bool,
    /// How a list merges; `None` where the schema does not say.
    pub list_type: Option<ListType>,
    /// How an object merges; `None` where the schema does not say.
    pub map_type: Option<MapType>,
    /// The checks of values. `None` where there are none.
    pub checks: Option<Box<Checks>>,
    /// The rules in CEL of the whole schema; set at the root of a custom resource's.
    pub rules: Option<Arc<dyn ValueRules>>,
    pub(crate) own_default: Option<Value>,
    pub(crate) own_patch: PatchRule,
}

/// Value validations.
#[derive(Clone, Debug, Default)]
pub struct Checks {
    /// Fields that must be there.
    pub required: Vec<String>,
    /// Allowed values.
    pub enumeration: Vec<Value>,
    /// Largest number.
    pub maximum: Option<f64>,
    /// True if `maximum` itself is too large.
    pub exclusive_maximum: bool,
    /// Smallest number.
    pub minimum: Option<f64>,
    /// True if `minimum` itself is too small.
    pub exclusive_minimum: bool,
    /// Numbers are multiples of it.
    pub multiple_of: Option<f64>,
    /// Longest string, in characters.
    pub max_length: Option<i64>,
    /// Shortest string, in characters.
    pub min_length: Option<i64>,
    /// Regular expression for strings.
    pub(crate) pattern: Option<Pattern>,
    /// Longest list.
    pub max_items: Option<i64>,
    /// Shortest list.
    pub min_items: Option<i64>,
    /// No two items alike.
    pub unique_items: bool,
    /// Most fields.
    pub max_properties: Option<i64>,
    /// Fewest fields.
    pub min_properties: Option<i64>,
    /// A value matches all of them.
    pub all_of: Vec<SchemaRef>,
    /// A value matches at least one of them.
    pub any_of: Vec<SchemaRef>,
    /// A value matches exactly one of them.
    pub one_of: Vec<SchemaRef>,
    /// A value does not match it.
    pub not: Option<SchemaRef>,
}

/// A reference to a schema: shared, cheap to clone, may be recursive through definitions.
/// What stands beside a `$ref` (default, map type, patch rule) belongs to the reference.
#[derive(Clone, Debug)]
pub struct SchemaRef {
    pub(super) target: Target,
    pub(super) site: Option<Arc<Site>>,
}

#[derive(Clone, Debug)]
pub(super) enum Target {
    Own(Arc<Schema>),
    Named(&'static Definition),
}

#[derive(Debug, Default)]
pub(super) struct Site {
    pub(super) default: Option<Value>,
    pub(super) map_type: Option<MapType>,
    pub(super) patch: Option<PatchRule>,
    pub(super) nullable: bool,
}

/// Finds a definition by its name.
pub type Find = fn(&str) -> Option<&'static Definition>;

/// The definition of `metadata`.
pub const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

/// A named definition: its JSON and, once asked for, its schema.
pub struct Definition {
    name: Cow<'static, str>,
    text: Cow<'static, str>,
    raw: OnceLock<Value>,
    find: Find,
    schema: OnceLock<Schema>,
}

impl std::fmt::Debug for Definition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Definition({})", self.name)
    }
}

impl Definition {
    /// A definition from its JSON text, which is parsed when it is first needed; `$ref`s are found with
    /// `find`.
    pub fn new(name: impl Into<Cow<'static, str>>, text: impl Into<Cow<'static, str>>, find: Find) -> Self {
        let (name, text) = (name.into(), text.into());
        Definition { name, text, raw: OnceLock::new(), find, schema: OnceLock::new() }
    }

    /// Its JSON; `null` where the text is none.
    pub fn raw(&self) -> &Value {
        self.raw.get_or_init(|| serde_json::from_str(&self.text).unwrap_or_default())
    }

    fn schema(&self) -> &Schema {
        self.schema.get_or_init(|| convert::definition(self.raw(), self.find))
    }
}

impl Deref for SchemaRef {
    type Target = Schema;

    fn deref(&self) -> &Schema {
        match &self.target {
            Target::Own(schema) => schema,
            Target::Named(definition) => definition.schema(),
        }
    }
}

impl From<Schema> for SchemaRef {
    fn from(schema: Schema) -> Self {
        SchemaRef { target: Target::Own(Arc::new(schema)), site: None }
    }
}

impl SchemaRef {
    /// The schema of a definition.
    pub fn of_definition(definition: &'static Definition) -> Self {
        SchemaRef { target: Target::Named(definition), site: None }
    }

    /// The schema of free-form values: nothing is known, nothing is pruned, lists are atomic.
    pub fn untyped() -> &'static Self {
        static UNTYPED: OnceLock<SchemaRef> = OnceLock::new();
        UNTYPED.get_or_init(|| Schema { preserve_unknown: true, ..Schema::default() }.into())
    }

    /// Returns true if it is a definition of the facts, so that its objects are structs to the real server.
    pub fn is_built_in(&self) -> bool {
        matches!(self.target, Target::Named(_))
    }

    /// The name of the definition that it is.
    pub fn definition_name(&self) -> Option<&'static str> {
        match self.target {
            Target::Named(definition) => Some(&definition.name),
            Target::Own(_) => None,
        }
    }

    /// The schema of a named property, else of additional fields.
    pub fn field(&self, name: &str) -> Option<&SchemaRef> {
        self.properties.get(name).or(match &self.additional {
            Some(Additional::Schema(schema)) => Some(schema),
            Some(Additional::Any) | None => None,
        })
    }

    /// The default at this place.
    pub fn default_value(&self) -> Option<&Value> {
        self.site.as_ref().and_then(|site| site.default.as_ref()).or(self.own_default.as_ref())
    }

    /// How the object at this place merges.
    pub fn map_type_here(&self) -> Option<MapType> {
        self.site.as_ref().and_then(|site| site.map_type).or(self.map_type)
    }

    /// The patch rule at this place.
    pub fn patch(&self) -> &PatchRule {
        self.site.as_ref().and_then(|site| site.patch.as_ref()).unwrap_or(&self.own_patch)
    }

    /// Returns true if `null` is a value at this place.
    pub fn nullable_here(&self) -> bool {
        self.nullable || self.site.as_ref().is_some_and(|site| site.nullable)
    }
}
