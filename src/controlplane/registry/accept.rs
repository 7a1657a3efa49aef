//! From a parsed body to an object of its kind: types, unknown fields, pruning, defaults. Never looks at the
//! store.

use super::context::{Context, FieldValidation};
use super::strategy::strategy_of;
use opdev_apimachinery::error::Status;
use opdev_apimachinery::resource::Resource;
use opdev_apis::DecodeError;
use opdev_apis::decode;
use opdev_object::schema::{self, SchemaRef};
use serde_json::{Map, Value};

/// Why a body is no object of its kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AcceptError {
    /// It cannot be read at all.
    Malformed(DecodeError),
    /// It has fields nobody knows, and the request is strict. Each text is one `unknown field "…"`.
    Strict(Vec<String>),
}

impl std::fmt::Display for AcceptError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            AcceptError::Malformed(error) => error.fmt(f),
            AcceptError::Strict(fields) => write!(f, "strict decoding error: {}", fields.join(", ")),
        }
    }
}

impl AcceptError {
    /// The 400 of a create or update.
    pub fn bad_request(&self, resource: &Resource) -> Status {
        let (kind, version) = (&resource.kind, &resource.version);
        Status::bad_request(format!("{kind} in version {version:?} cannot be handled as a {kind}: {self}"))
    }
}

/// Keeps what was sent as labels and is gone once empty ones are taken for none.
fn note_labels(ctx: &mut Context, resource: &Resource, object: &Value) {
    let empty = |path: &str| object.pointer(path).and_then(Value::as_object).map(Map::is_empty);
    let of_pods = empty("/spec/template/metadata/labels");
    ctx.emptied_labels = of_pods == Some(true);
    ctx.shares_labels = strategy_of(resource).takes_template_labels
        && of_pods == Some(false)
        && empty("/metadata/labels") != Some(false);
}

/// Reads `object` as the resource's kind: drops (or refuses) what the schema does not know and fills in
/// defaults.
pub fn accept(ctx: &mut Context, resource: &Resource, object: Value) -> Result<Value, AcceptError> {
    accept_with(ctx, resource, object, schema::default)
}

/// As `accept`, for the result of an apply: in a custom resource each null stays that has no default.
pub fn accept_applied(ctx: &mut Context, resource: &Resource, object: Value) -> Result<Value, AcceptError> {
    accept_with(ctx, resource, object, schema::default_of_applied)
}

fn accept_with(
    ctx: &mut Context,
    resource: &Resource,
    mut object: Value,
    of_schema: fn(&mut Value, &SchemaRef),
) -> Result<Value, AcceptError> {
    note_labels(ctx, resource, &object);
    let unknown = strip(resource, &mut object).map_err(AcceptError::Malformed)?;
    match ctx.validation {
        FieldValidation::Strict if !unknown.is_empty() => return Err(AcceptError::Strict(unknown)),
        FieldValidation::Warn => unknown.into_iter().for_each(|text| ctx.warn(text)),
        FieldValidation::Strict | FieldValidation::Ignore => {}
    }
    complete(resource, &mut object, of_schema);
    object["apiVersion"] = Value::from(resource.api_version());
    object["kind"] = Value::from(resource.kind.as_str());
    Ok(object)
}

/// Drops what the schema does not know and says what it was.
fn strip(resource: &Resource, object: &mut Value) -> Result<Vec<String>, DecodeError> {
    if resource.custom.is_some() {
        let mut unknown = decode::decode_metadata(object)?.unknown;
        let schema = resource.schema();
        let pruned = schema::prune(object, schema);
        embedded(object, schema);
        let mut pruned: Vec<String> = pruned.iter().map(|path| format!("unknown field {path:?}")).collect();
        pruned.retain(|text| !unknown.contains(text));
        unknown.extend(pruned);
        return Ok(unknown);
    }
    Ok(decode::decode(object, resource.schema())?.unknown)
}

/// Reads the metadata of objects inside the object as those of a built-in kind: what would not be written
/// back goes.
fn embedded(value: &mut Value, schema: &SchemaRef) {
    match value {
        Value::Object(map) => {
            for (name, inner) in map {
                let Some(property) = schema.properties.get(name) else { continue };
                embedded(inner, property);
                if property.embedded_resource {
                    let mut read = inner.clone();
                    // Metadata that cannot be read is left for the schema to refuse.
                    if decode::decode_metadata(&mut read).is_ok() {
                        *inner = read;
                    }
                }
            }
        }
        Value::Array(items) => {
            if let Some(schema) = &schema.items {
                items.iter_mut().for_each(|item| embedded(item, schema));
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Fills in defaults.
fn complete(resource: &Resource, object: &mut Value, of_schema: fn(&mut Value, &SchemaRef)) {
    if resource.custom.is_some() {
        of_schema(object, resource.schema());
    } else {
        (strategy_of(resource).set_defaults)(resource, object);
    }
}
