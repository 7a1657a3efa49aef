//! Reads an object as the built-in Go type would be read and written back: types checked, unknown fields
//! dropped and named, nulls and empty collections gone, zero values of required fields filled in, quantities
//! canonical. Custom resources go through their own schema; only their metadata comes here. Read `accept`
//! next.

use super::decode_error::{DecodeError, GoField};
use super::{gotype, time};
use base64::Engine;
use opdev_apimachinery::protobuf;
use opdev_apimachinery::resource::quantity;
use opdev_object::apply::compact;
use opdev_object::facts::{OBJECT_META, QUANTITY, facts};
use opdev_object::schema::{Additional, Kind, Schema, SchemaRef};
use serde_json::{Map, Value};

const TIME: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Time";
const MICRO_TIME: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime";
const FIELDS_V1: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1";
const INT_OR_STRING: &str = "io.k8s.apimachinery.pkg.util.intstr.IntOrString";

/// The findings of a decode.
#[derive(Debug, Default)]
pub struct Decoded {
    /// `unknown field "spec.foo"`, in path order.
    pub unknown: Vec<String>,
}

/// Decodes a whole built-in object in place. The error is Go's text for a wrong type.
pub fn decode(object: &mut Value, schema: &SchemaRef) -> Result<Decoded, DecodeError> {
    Walk::run(object, schema, "")
}

/// Decodes only `metadata`, for custom resources.
pub fn decode_metadata(object: &mut Value) -> Result<Decoded, DecodeError> {
    match object.get_mut("metadata").filter(|meta| !meta.is_null()).zip(facts().definition(OBJECT_META)) {
        Some((meta, schema)) => Walk::run(meta, &schema, "metadata"),
        None => Ok(Decoded::default()),
    }
}

struct Walk {
    decoded: Decoded,
    /// The first wrong type. Go reads on behind it, and what a type of its own cannot read comes before it.
    mismatch: Option<DecodeError>,
}

/// Where the walk is: what the walk went through to get here, and the struct at hand. It becomes text only
/// where something is reported about it.
#[derive(Clone, Copy)]
struct Place<'a> {
    outer: Option<&'a Place<'a>>,
    step: Step<'a>,
    owner: &'a str,
}

/// One step down from a struct, a map or a list.
#[derive(Clone, Copy)]
enum Step<'a> {
    /// The beginning, with its own name.
    Root(&'a str),
    /// A field, and the struct that Go embeds it with.
    Field(&'a str, Option<&'static str>),
    /// The default of a field: Go's path has it already, that of users has not.
    Default(&'a str),
    /// An entry of a map; Go does not name it.
    Entry(&'a str),
    /// An item of a list; Go does not name it.
    Item(usize),
}

fn dotted(path: &mut String, name: &str) {
    if !path.is_empty() {
        path.push('.');
    }
    path.push_str(name);
}

impl Place<'_> {
    /// The path users see.
    fn path(&self) -> String {
        let mut path = self.outer.map(Place::path).unwrap_or_default();
        match self.step {
            Step::Root(name) | Step::Field(name, _) => dotted(&mut path, name),
            Step::Default(_) => {}
            Step::Entry(name) => {
                path.push('.');
                path.push_str(name);
            }
            Step::Item(index) => path.push_str(&format!("[{index}]")),
        }
        path
    }

    /// Go's path: without keys and positions, with embedded structs.
    fn go_path(&self) -> String {
        let mut path = self.outer.map(Place::go_path).unwrap_or_default();
        match self.step {
            Step::Field(name, Some(embedded)) if !path.is_empty() => {
                dotted(&mut path, embedded);
                dotted(&mut path, name);
            }
            Step::Field(name, _) => dotted(&mut path, name),
            Step::Default(name) => {
                path.push('.');
                path.push_str(name);
            }
            Step::Root(_) | Step::Entry(_) | Step::Item(_) => {}
        }
        path
    }

    fn mismatch(&self, value: &Value, go_type: &str) -> DecodeError {
        let found = match value {
            Value::Null => "null".to_owned(),
            Value::Bool(_) => "bool".to_owned(),
            Value::Number(n) if go_type.starts_with("int") || go_type.starts_with("uint") => {
                format!("number {n}")
            }
            Value::Number(_) => "number".to_owned(),
            Value::String(_) => "string".to_owned(),
            Value::Array(_) => "array".to_owned(),
            Value::Object(_) => "object".to_owned(),
        };
        let go_path = self.go_path();
        if go_path.is_empty() {
            return DecodeError::WrongType { found, field: None, go_type: go_type.to_owned() };
        }
        let named = gotype::named(self.owner, &go_path, go_type);
        let go_type = named.unwrap_or_else(|| go_type.to_owned());
        let field = Some(GoField { owner: self.owner.to_owned(), path: go_path });
        DecodeError::WrongType { found, field, go_type }
    }
}

fn short(definition: &str) -> &str {
    definition.rsplit('.').next().unwrap_or(definition)
}

/// A Go type's name as json errors print it.
fn go_type(schema: &SchemaRef) -> String {
    let Some(name) = schema.definition_name() else { return go_kind(schema) };
    let mut parts = name.rsplit('.');
    let kind = parts.next().unwrap_or_default();
    format!("{}.{kind}", parts.next().unwrap_or_default())
}

/// A Go type as json errors print it where it has no name.
fn go_kind(schema: &Schema) -> String {
    match (schema.kind, &schema.additional) {
        (Kind::Integer, _) => integer_type(schema).to_owned(),
        (Kind::Boolean, _) => "bool".to_owned(),
        (Kind::Number, _) => "float64".to_owned(),
        (Kind::Array, _) => format!("[]{}", schema.items.as_ref().map(go_type).unwrap_or_default()),
        (Kind::Object, Some(Additional::Schema(inner))) => format!("map[string]{}", go_type(inner)),
        (Kind::Object, _) => "object".to_owned(),
        (Kind::String, _) if schema.format.as_deref() == Some("byte") => "[]uint8".to_owned(),
        (Kind::String, _) => "string".to_owned(),
        (Kind::Any | Kind::IntOrString, _) => String::new(),
    }
}

fn integer_type(schema: &Schema) -> &str {
    schema.format.as_deref().unwrap_or("int64")
}

impl Walk {
    fn run(value: &mut Value, schema: &SchemaRef, path: &str) -> Result<Decoded, DecodeError> {
        let mut walk = Walk { decoded: Decoded::default(), mismatch: None };
        let owner = short(schema.definition_name().unwrap_or_default());
        walk.value(value, schema, Place { outer: None, step: Step::Root(path), owner })?;
        walk.mismatch.map_or(Ok(walk.decoded), Err)
    }

    fn keep(&mut self, outcome: Result<(), DecodeError>) {
        if let Err(mismatch) = outcome {
            self.mismatch.get_or_insert(mismatch);
        }
    }

    fn value(&mut self, value: &mut Value, schema: &SchemaRef, place: Place<'_>) -> Result<(), DecodeError> {
        match schema.definition_name() {
            Some(QUANTITY) => return quantity(value),
            Some(INT_OR_STRING) => return int_or_string(value, place),
            Some(TIME | MICRO_TIME) if !value.is_string() => return Err(place.mismatch(value, "string")),
            Some(TIME) => return Ok(time::seconds(value)?),
            Some(MICRO_TIME) => return Ok(time::micros(value)?),
            // The content that was read from the store and patched.
            Some(FIELDS_V1) if compact::is_compact(value) => return Ok(()),
            _ => {}
        }
        match schema.kind {
            Kind::Object if schema.properties.is_empty() => return self.map(value, schema, place),
            Kind::Object => return self.structure(value, schema, place),
            Kind::Array => return self.list(value, schema, place),
            Kind::String if schema.format.as_deref() == Some("byte") => {
                self.keep(bytes(value, schema, place));
            }
            Kind::String if !value.is_string() => self.keep(Err(place.mismatch(value, "string"))),
            Kind::Boolean if !value.is_boolean() => self.keep(Err(place.mismatch(value, "bool"))),
            Kind::Integer => self.keep(integer(value, schema, place)),
            Kind::Number if !value.is_number() => self.keep(Err(place.mismatch(value, "float64"))),
            Kind::Number => whole_numbers(value),
            _ => {}
        }
        Ok(())
    }

    fn structure(
        &mut self,
        value: &mut Value,
        schema: &SchemaRef,
        place: Place<'_>,
    ) -> Result<(), DecodeError> {
        let Value::Object(map) = value else {
            self.keep(Err(place.mismatch(value, &go_type(schema))));
            return Ok(());
        };
        let definition = schema.definition_name();
        let owner = definition.map_or(place.owner, short);
        let required =
            |key: &String| schema.checks.as_ref().is_some_and(|checks| checks.required.contains(key));
        let mut gone = Vec::new();
        for (key, item) in map.iter_mut() {
            let step = Step::Field(key, gotype::embedded(owner, key));
            let here = Place { outer: Some(&place), step, owner };
            let Some(field) = schema.properties.get(key) else {
                self.decoded.unknown.push(format!("unknown field {:?}", here.path()));
                gone.push(key.clone());
                continue;
            };
            if item.is_null() {
                gone.push(key.clone());
                continue;
            }
            self.value(item, field, here)?;
            let empty = match item {
                Value::Array(list) => list.is_empty(),
                Value::Object(map) => map.is_empty() && field.additional.is_some(),
                _ => false,
            };
            let kept = || field.default_value().is_some() || required(key) || !field.properties.is_empty();
            let zero =
                || definition.is_some_and(|name| is_zero(item) && protobuf::leaves_zero_out(name, key));
            if (empty && !kept()) || zero() {
                gone.push(key.clone());
            }
        }
        for key in gone {
            map.remove(&key);
        }
        for (key, field) in &schema.properties {
            let Some(default) = field.default_value().filter(|default| !default.is_null()) else { continue };
            if !map.contains_key(key) {
                let mut filled = default.clone();
                let here = Place { outer: Some(&place), step: Step::Default(key), owner };
                self.value(&mut filled, field, here)?;
                // A default that is zero shows only where zero does.
                let zero =
                    definition.is_some_and(|name| is_zero(&filled) && protobuf::leaves_zero_out(name, key));
                if !zero {
                    map.insert(key.clone(), filled);
                }
            }
        }
        Ok(())
    }

    fn map(&mut self, value: &mut Value, schema: &Schema, place: Place<'_>) -> Result<(), DecodeError> {
        let Value::Object(map) = value else {
            self.keep(Err(place.mismatch(value, &go_kind(schema))));
            return Ok(());
        };
        let Some(Additional::Schema(inner)) = &schema.additional else { return Ok(()) };
        for (key, item) in map.iter_mut() {
            if item.is_null() && inner.kind == Kind::String {
                *item = Value::from("");
                continue;
            }
            let step = Step::Entry(key);
            self.value(item, inner, Place { outer: Some(&place), step, ..place })?;
        }
        Ok(())
    }

    fn list(&mut self, value: &mut Value, schema: &Schema, place: Place<'_>) -> Result<(), DecodeError> {
        let Value::Array(list) = value else {
            self.keep(Err(place.mismatch(value, &go_kind(schema))));
            return Ok(());
        };
        let Some(inner) = &schema.items else { return Ok(()) };
        for (i, item) in list.iter_mut().enumerate() {
            if item.is_null() {
                // Go leaves what such an item begins with.
                *item = match inner.kind {
                    Kind::String => Value::from(""),
                    Kind::Integer | Kind::Number => Value::from(0),
                    Kind::Boolean => Value::from(false),
                    _ if !inner.properties.is_empty() => Value::Object(Map::new()),
                    _ => Value::Null,
                };
            }
            let step = Step::Item(i);
            self.value(item, inner, Place { outer: Some(&place), step, ..place })?;
        }
        Ok(())
    }
}

fn is_zero(value: &Value) -> bool {
    match value {
        Value::Bool(yes) => !yes,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Null | Value::Array(_) | Value::Object(_) => false,
    }
}

fn integer(value: &mut Value, schema: &Schema, place: Place<'_>) -> Result<(), DecodeError> {
    let kind = integer_type(schema);
    let Value::Number(number) = &*value else { return Err(place.mismatch(value, kind)) };
    let whole = number.as_i64().or_else(|| {
        // `3.0` and `1e3` are whole numbers to us as to the YAML that people write.
        let float = number.as_f64().filter(|f| f.fract() == 0.0 && f.abs() < 9e15)?;
        Some(float as i64)
    });
    match whole {
        Some(n) if kind != "int32" || i32::try_from(n).is_ok() => {
            if !number.is_i64() {
                *value = Value::from(n);
            }
            Ok(())
        }
        _ => Err(place.mismatch(value, kind)),
    }
}

fn quantity(value: &mut Value) -> Result<(), DecodeError> {
    let text = match &*value {
        Value::String(text) => text.trim().to_owned(),
        Value::Number(number) => number.to_string(),
        Value::Null => return Ok(()),
        _ => String::new(),
    };
    let canonical = quantity::canonical(&text).ok_or(DecodeError::Quantity)?;
    *value = Value::from(canonical);
    Ok(())
}

fn int_or_string(value: &mut Value, place: Place<'_>) -> Result<(), DecodeError> {
    match value {
        Value::Number(n) if n.is_f64() => {
            if let Some(whole) = n.as_f64().filter(|f| f.fract() == 0.0 && f.abs() < 9e15) {
                *value = Value::from(whole as i64);
                return Ok(());
            }
            Err(place.mismatch(value, "int32"))
        }
        Value::Number(_) | Value::String(_) | Value::Null => Ok(()),
        Value::Bool(_) | Value::Array(_) | Value::Object(_) => Err(place.mismatch(value, "int32")),
    }
}

fn bytes(value: &mut Value, schema: &Schema, place: Place<'_>) -> Result<(), DecodeError> {
    let text = match &*value {
        Value::String(text) => text,
        Value::Array(list) => {
            let wrong = list.iter().find(|item| !item.is_number());
            return Err(wrong.map_or_else(
                || place.mismatch(value, &go_kind(schema)),
                |item| place.mismatch(item, "uint8"),
            ));
        }
        _ => return Err(place.mismatch(value, &go_kind(schema))),
    };
    let clean: String = text.chars().filter(|c| !matches!(c, '\r' | '\n')).collect();
    match base64::engine::general_purpose::STANDARD.decode(&clean) {
        Ok(_) => {
            if clean.len() != text.len() {
                *value = Value::from(clean);
            }
            Ok(())
        }
        Err(_) => {
            let legal = |c: char| c.is_ascii_alphanumeric() || c == '+' || c == '/';
            let at = clean.find(|c| !legal(c)).unwrap_or(clean.len() / 4 * 4);
            Err(DecodeError::Base64(at))
        }
    }
}

/// Numbers as Go writes them: `2.0` becomes `2`, which is what a client would read back as an integer.
pub fn whole_numbers(value: &mut Value) {
    match value {
        Value::Number(number) if number.is_f64() => {
            if let Some(whole) = number.as_f64().and_then(protobuf::whole) {
                *value = Value::from(whole);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(whole_numbers),
        Value::Object(map) => map.values_mut().for_each(whole_numbers),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const DEPLOYMENT: &str = "io.k8s.api.apps.v1.Deployment";

    fn decode(object: &mut Value, definition: &str) -> Result<Decoded, DecodeError> {
        super::decode(object, &facts().definition(definition).unwrap())
    }

    #[test]
    fn unknown_fields_are_named_and_dropped() {
        let mut object = json!({"spec": {"foo": 1, "template": {"spec": {"containers": [
            {"name": "a", "image": "b", "bar": {}}]}}}});
        let decoded = decode(&mut object, DEPLOYMENT).unwrap();
        assert_eq!(
            decoded.unknown,
            ["unknown field \"spec.foo\"", "unknown field \"spec.template.spec.containers[0].bar\""]
        );
        assert!(object["spec"].get("foo").is_none());
    }

    #[test]
    fn wrong_types_read_like_go() {
        let mut object = json!({"spec": {"replicas": "three"}});
        assert_eq!(
            decode(&mut object, DEPLOYMENT).unwrap_err().to_string(),
            "json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32"
        );
        let mut object = json!({"spec": {"template": {"spec": {"containers": [
            {"name": "a", "env": [{"name": "A", "value": 1}]}]}}}});
        assert_eq!(
            decode(&mut object, DEPLOYMENT).unwrap_err().to_string(),
            "json: cannot unmarshal number into Go struct field \
             EnvVar.spec.template.spec.containers.env.value of type string"
        );
    }

    #[test]
    fn a_quantity_that_cannot_be_read_comes_before_a_wrong_type() {
        let mut object = json!({"metadata": {"labels": {"n": 5}}, "spec": {"template": {"spec": {"containers": [
            {"name": "a", "resources": {"limits": {"cpu": "much"}}}]}}}});
        assert_eq!(decode(&mut object, DEPLOYMENT).unwrap_err(), DecodeError::Quantity);
        let mut object = json!({"metadata": {"labels": {"n": 5}}, "spec": {"replicas": "x"}});
        assert_eq!(
            decode(&mut object, DEPLOYMENT).unwrap_err().to_string(),
            "json: cannot unmarshal number into Go struct field ObjectMeta.metadata.labels of type string"
        );
    }

    #[test]
    fn what_go_would_not_write_is_gone() {
        let mut object = json!({"metadata": {"name": "a", "labels": {}, "annotations": null,
            "creationTimestamp": null}, "spec": {"replicas": 3.0, "template": {"spec": {
            "nodeSelector": {}, "tolerations": [], "securityContext": {}, "containers": [
            {"name": "a", "resources": {"limits": {"cpu": 1, "memory": "1024Mi"}}}]}}}});
        decode(&mut object, DEPLOYMENT).unwrap();
        assert_eq!(object["metadata"], json!({"name": "a"}));
        assert_eq!(object["spec"]["replicas"].to_string(), "3");
        let pod = &object["spec"]["template"]["spec"];
        assert_eq!(pod["securityContext"], json!({}));
        assert!(pod.get("nodeSelector").is_none() && pod.get("tolerations").is_none());
        assert_eq!(pod["containers"][0]["resources"]["limits"], json!({"cpu": "1", "memory": "1Gi"}));
        assert_eq!(object["status"], json!({}));
    }

    #[test]
    fn secret_data_must_be_base64() {
        let mut object = json!({"data": {"a": "!!"}});
        let error = decode(&mut object, "io.k8s.api.core.v1.Secret").unwrap_err();
        assert_eq!(error.to_string(), "illegal base64 data at input byte 0");
    }
}
