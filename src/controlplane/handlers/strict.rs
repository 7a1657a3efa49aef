//! Fields that stand more than once in a body, and the order in which `fieldValidation` tells of them and of
//! those that nobody knows. Go's decoders find duplicates, each in its own words; the order of the words is
//! part of them.

use super::body::{self, Read};
use super::write::Call;
use opdev_apimachinery::resource::Resource;
use opdev_object::yaml::{self, Kind, Node};
use opdev_registry::{AcceptError, Context, FieldValidation, accept};
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};
use std::collections::HashSet;
use std::fmt;

/// The number of them that are reported for one body: as many as Go's decoder collects.
const MOST: usize = 100;

/// Reads JSON as `serde_json` does, and notices whether any field stands there twice; the last one counts.
pub(super) struct Noticing<'a>(pub(super) &'a mut bool);

impl<'de> DeserializeSeed<'de> for Noticing<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Noticing<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any valid JSON value")
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_string<E: Error>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(Noticing(self.0))? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(name) = entries.next_key::<String>()? {
            let value = entries.next_value_seed(Noticing(self.0))?;
            *self.0 |= map.insert(name, value).is_some();
        }
        Ok(Value::Object(map))
    }
}

/// Goes over the fields of a body in the order in which they stand there: with the path of each, and whether
/// it stood there before. There is one path for all of them, so that a long name with many fields below it
/// costs its length once.
struct Listing<'a, F> {
    path: &'a mut String,
    tell: &'a mut F,
}

impl<'de, F: FnMut(&str, bool)> DeserializeSeed<'de> for Listing<'_, F> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, F: FnMut(&str, bool)> Visitor<'de> for Listing<'_, F> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any valid JSON value")
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let (length, mut index) = (self.path.len(), 0);
        loop {
            self.path.push_str(&format!("[{index}]"));
            let item = items.next_element_seed(Listing { path: &mut *self.path, tell: &mut *self.tell })?;
            self.path.truncate(length);
            if item.is_none() {
                return Ok(());
            }
            index += 1;
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<(), A::Error> {
        let length = self.path.len();
        let mut seen = HashSet::new();
        while let Some(name) = entries.next_key::<String>()? {
            if length > 0 {
                self.path.push('.');
            }
            self.path.push_str(&name);
            (self.tell)(self.path, !seen.insert(name));
            entries.next_value_seed(Listing { path: &mut *self.path, tell: &mut *self.tell })?;
            self.path.truncate(length);
        }
        Ok(())
    }
}

/// Calls `tell` for each field of a JSON body.
fn each_field(bytes: &[u8], mut tell: impl FnMut(&str, bool)) {
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    // It was read once already.
    let _ = Listing { path: &mut String::new(), tell: &mut tell }.deserialize(&mut reader);
}

fn duplicate(path: &str) -> String {
    format!("duplicate field {path:?}")
}

/// Duplicate fields of a JSON body that is read without a type: every field counts.
fn of_json(bytes: &[u8]) -> Vec<String> {
    let mut told = Vec::new();
    each_field(bytes, |path, again| {
        if again && told.len() < MOST {
            told.push(duplicate(path));
        }
    });
    told
}

/// Warnings about a body that is read as a built-in kind, in the body's order. An unknown field is reported
/// once, and never as a duplicate.
fn of_typed(bytes: &[u8], unknown: &[String]) -> Vec<String> {
    let all: HashSet<&str> = unknown.iter().map(String::as_str).collect();
    let mut told: Vec<String> = Vec::new();
    each_field(bytes, |path, again| {
        if told.len() == MOST {
            return;
        }
        let text = format!("unknown field {path:?}");
        if all.contains(text.as_str()) {
            if !told.contains(&text) {
                told.push(text);
            }
        } else if again {
            told.push(duplicate(path));
        }
    });
    // Whatever is named in another way than the body does.
    let missing = unknown.iter().filter(|text| !told.contains(text)).take(MOST - told.len());
    let missing: Vec<String> = missing.cloned().collect();
    told.extend(missing);
    told
}

/// Keys that stand twice in a YAML body, with their lines: those inside of a value before its own.
pub(super) fn of_yaml(bytes: &[u8]) -> Vec<String> {
    fn walk(node: &Node, into: &mut Vec<String>) {
        match &node.kind {
            Kind::Sequence(items) => items.iter().for_each(|item| walk(item, into)),
            Kind::Mapping(pairs) => {
                let mut seen = HashSet::new();
                for (key, value) in pairs {
                    walk(value, into);
                    if let Kind::String(name) = &key.kind
                        && !seen.insert(name)
                    {
                        into.push(format!("line {}: key {name:?} already set in map", value.line));
                    }
                }
            }
            Kind::Null | Kind::Bool(_) | Kind::Int(_) | Kind::Uint(_) | Kind::Float(_) | Kind::String(_) => {}
        }
    }
    let mut found = Vec::new();
    if let Some(node) = std::str::from_utf8(bytes).ok().and_then(|text| yaml::parse(text).ok()) {
        walk(&node, &mut found);
    }
    found
}

/// Go's one error for everything that is wrong with a YAML text.
pub(super) fn yaml_errors(found: &[String]) -> String {
    format!("yaml: unmarshal errors:\n  {}", found.join("\n  "))
}

impl Call<'_> {
    /// The body, read as the resource's kind; unknown fields and duplicate fields become warnings or are
    /// refused.
    pub(super) fn accepted(&self, ctx: &mut Context, read: Read) -> Result<Value, AcceptError> {
        let resource = self.resource();
        let before = ctx.warnings.len();
        let fit = accept(ctx, resource, read.value);
        let unknown = match (ctx.validation, &fit) {
            (FieldValidation::Strict, Err(AcceptError::Strict(unknown))) => unknown.clone(),
            (FieldValidation::Ignore, _) | (_, Err(_)) => return fit,
            (FieldValidation::Strict, Ok(_)) => Vec::new(),
            (FieldValidation::Warn, Ok(_)) => ctx.warnings.split_off(before),
        };
        let is_yaml = body::is_yaml(self.headers);
        let told = match (resource.custom.is_some(), is_yaml, read.twice || unknown.len() > 1) {
            (_, true, _) => {
                let found = of_yaml(self.body);
                let found = match ctx.validation {
                    FieldValidation::Strict if !found.is_empty() => vec![yaml_errors(&found)],
                    _ => found,
                };
                found.into_iter().chain(unknown).collect()
            }
            (_, _, false) => unknown,
            (false, ..) => of_typed(self.body, &unknown),
            (true, ..) => of_json(self.body).into_iter().chain(unknown).collect(),
        };
        match ctx.validation {
            FieldValidation::Strict if !told.is_empty() => return Err(AcceptError::Strict(told)),
            FieldValidation::Warn => told.into_iter().for_each(|text| ctx.warn(text)),
            FieldValidation::Strict | FieldValidation::Ignore => {}
        }
        fit
    }

    /// Duplicate fields of a patch, and fields that an operation of a JSON patch does not have.
    pub(super) fn of_patch(&self, ctx: &Context, read: &Read) -> Vec<String> {
        const OWN: [&str; 4] = ["op", "path", "from", "value"];
        if ctx.validation == FieldValidation::Ignore {
            return Vec::new();
        }
        let Some(operations) = read.value.as_array() else {
            return if read.twice { of_json(self.body) } else { Vec::new() };
        };
        let strange = |operation: &Value| {
            operation.as_object().is_some_and(|map| map.keys().any(|name| !OWN.contains(&name.as_str())))
        };
        if !read.twice && !operations.iter().any(strange) {
            return Vec::new();
        }
        let mut told = Vec::new();
        each_field(self.body, |path, again| {
            // Only the fields of operations: `[1].path`. What is below them is any value.
            let name = path.split_once("].").map(|(_, name)| name).filter(|name| !name.contains(['.', '[']));
            match name.filter(|_| told.len() < MOST) {
                Some(name) if !OWN.contains(&name) => told.push(format!("json patch unknown field {path:?}")),
                Some(_) if again => told.push(format!("json patch {}", duplicate(path))),
                Some(_) | None => {}
            }
        });
        told
    }
}

/// A patched object, read as the resource's kind; what the patch itself has too much is told before.
pub(super) fn accepted_patch(
    ctx: &mut Context,
    resource: &Resource,
    object: Value,
    of_patch: &[String],
) -> Result<Value, AcceptError> {
    if ctx.validation == FieldValidation::Warn {
        of_patch.iter().for_each(|text| ctx.warn(text.as_str()));
    }
    match accept(ctx, resource, object) {
        Err(AcceptError::Strict(unknown)) => {
            Err(AcceptError::Strict(of_patch.iter().cloned().chain(unknown).collect()))
        }
        Ok(_) if ctx.validation == FieldValidation::Strict && !of_patch.is_empty() => {
            Err(AcceptError::Strict(of_patch.to_vec()))
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_listed_in_the_order_of_the_body() {
        let body = br#"{"a": {"b": 1, "c": [{"d": null, "d": "x"}], "b": 2.5}, "a": true}"#;
        let mut twice = false;
        let mut reader = serde_json::Deserializer::from_slice(body);
        let read = Noticing(&mut twice).deserialize(&mut reader).unwrap();
        assert_eq!((read, twice), (serde_json::json!({"a": true}), true));
        let told = ["duplicate field \"a.c[0].d\"", "duplicate field \"a.b\"", "duplicate field \"a\""];
        assert_eq!(of_json(body), told);
        let unknown = ["unknown field \"a.c[0].d\"".to_owned()];
        assert_eq!(of_typed(body, &unknown), [unknown[0].as_str(), told[1], told[2]]);
    }

    #[test]
    fn of_a_body_of_many_unknown_fields_as_many_are_told_as_go_collects() {
        // As many as a body has room for: comparing each with each would take hours.
        let names = (0..200_000).map(|n| format!("f{n}"));
        let fields: Vec<String> = names.clone().map(|name| format!("{name:?}:1")).collect();
        let unknown: Vec<String> = names.map(|name| format!("unknown field \"spec.{name}\"")).collect();
        let body = format!("{{\"spec\":{{{}}}}}", fields.join(","));
        assert_eq!(of_typed(body.as_bytes(), &unknown), &unknown[..MOST]);
    }

    #[test]
    fn lines_of_keys_that_are_set_already() {
        let text = "a: 1\nb:\n  c: 1\n  c: 2\nb:\n  - d: 1\n    d: 2\n";
        assert_eq!(
            of_yaml(text.as_bytes()),
            [
                "line 4: key \"c\" already set in map",
                "line 7: key \"d\" already set in map",
                "line 6: key \"b\" already set in map"
            ]
        );
        assert_eq!(yaml_errors(&["x".to_owned(), "y".to_owned()]), "yaml: unmarshal errors:\n  x\n  y");
    }
}
