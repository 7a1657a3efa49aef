//! The compact form of `metadata.managedFields` in a tree: each `fieldsV1` is its JSON text, as one string.
//! These fields are often half of an object, and seldom looked at. `FieldManager` reads both forms and writes
//! the compact one; nobody outside the API server sees it: `expand` before a tree is sent or shown,
//! `write_metadata` for its text.

use crate::fieldset::{FieldSet, FieldsV1Error};
use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor,
};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::fmt;

/// With what a string begins that is a compact `fieldsV1`. No client sends it: such a string is no `fieldsV1`
/// there.
const MARK: char = '\0';

/// The JSON text of a compact `fieldsV1`; `None` for any other value.
pub fn text_of(fields: &Value) -> Option<&str> {
    fields.as_str()?.strip_prefix(MARK)
}

/// Returns true if it is a compact `fieldsV1`: anybody may send a string that only begins like one, and its
/// text would be written as it is.
pub fn is_compact(fields: &Value) -> bool {
    text_of(fields).is_some_and(|text| {
        let control = text.bytes().any(|byte| byte < b' ');
        !control && text.starts_with('{') && serde_json::from_str::<IgnoredAny>(text).is_ok()
    })
}

/// Returns true if a compact `fieldsV1` stands in a JSON text, or in a string of it, which nobody outside the
/// API server may see.
pub fn is_in_text(text: &[u8]) -> bool {
    // Data of a client may have a NUL before a brace, too.
    memchr::memmem::find_iter(text, br"\u0000{").any(|at| {
        let before = text[..at].iter().rposition(|byte| !br#"\": "#.contains(byte));
        before.is_some_and(|last| text[..=last].ends_with(b"fieldsV1"))
    })
}

/// A set as compact `fieldsV1`.
pub(super) fn of_set(set: &FieldSet) -> Value {
    of_text(&set.to_fields_v1_text())
}

fn of_text(text: &str) -> Value {
    let mut compact = String::with_capacity(text.len() + 1);
    compact.push(MARK);
    compact.push_str(text);
    Value::String(compact)
}

/// The set of a `fieldsV1` of either form.
pub(super) fn read_set(fields: &Value) -> Result<FieldSet, FieldsV1Error> {
    let Some(text) = text_of(fields) else { return FieldSet::from_fields_v1(fields) };
    match FieldSet::from_fields_v1_text(text) {
        Some(set) => Ok(set),
        // It says what is wrong, or leaves out what it does not know.
        None => FieldSet::from_fields_v1(&expanded_fields(fields)),
    }
}

fn expanded_fields(fields: &Value) -> Cow<'_, Value> {
    match text_of(fields) {
        // It was taken from JSON.
        Some(text) => Cow::Owned(serde_json::from_str(text).unwrap_or_default()),
        None => Cow::Borrowed(fields),
    }
}

/// Returns true if two `fieldsV1` are the same, whichever form each has.
pub fn same_fields(a: &Value, b: &Value) -> bool {
    a == b || text_of(a).is_some() != text_of(b).is_some() && expanded_fields(a) == expanded_fields(b)
}

/// The entries of the `managedFields` of an object that has them.
fn entries(object: &mut Value) -> impl Iterator<Item = &mut Value> {
    let all = object.get_mut("metadata").and_then(|metadata| metadata.get_mut("managedFields"));
    all.and_then(Value::as_array_mut).into_iter().flatten()
}

fn has_compact(object: &Value) -> bool {
    let all = object.get("metadata").and_then(|metadata| metadata.get("managedFields"));
    let mut all = all.and_then(Value::as_array).into_iter().flatten();
    all.any(|entry| entry.get("fieldsV1").is_some_and(|fields| text_of(fields).is_some()))
}

/// Gives an object its `managedFields` as clients know them.
pub fn expand(object: &mut Value) {
    entries(object).for_each(expand_entry);
}

/// Gives an entry of `managedFields` its fields as clients know them.
pub fn expand_entry(entry: &mut Value) {
    if let Some(fields) = entry.get_mut("fieldsV1")
        && let Cow::Owned(expanded) = expanded_fields(fields)
    {
        *fields = expanded;
    }
}

/// An object with its `managedFields` as clients know them.
pub fn expanded(object: &Value) -> Cow<'_, Value> {
    if !has_compact(object) {
        return Cow::Borrowed(object);
    }
    let mut object = object.clone();
    expand(&mut object);
    Cow::Owned(object)
}

/// Reads the text of an object into a tree with compact `managedFields`.
///
/// # Errors
/// The text is no JSON.
pub fn read(text: &[u8]) -> Result<Value, serde_json::Error> {
    let mut reader = serde_json::Deserializer::from_slice(text);
    let value = Place::Object.deserialize(&mut reader)?;
    reader.end()?;
    Ok(value)
}

/// Writes the `metadata` of an object as clients know it.
///
/// # Errors
/// The writer fails.
pub fn write_metadata(metadata: &Value, out: &mut Vec<u8>) -> Result<(), serde_json::Error> {
    let (Some(map), Some(managed)) = (metadata.as_object(), metadata.get("managedFields")) else {
        return serde_json::to_writer(out, metadata);
    };
    write_map(map, out, |name, value, out| match managed.as_array() {
        Some(all) if name == "managedFields" => write_entries(all, out),
        _ => serde_json::to_writer(out, value),
    })
}

type WriteResult = Result<(), serde_json::Error>;

fn write_map(
    map: &Map<String, Value>,
    out: &mut Vec<u8>,
    mut write: impl FnMut(&str, &Value, &mut Vec<u8>) -> WriteResult,
) -> WriteResult {
    out.push(b'{');
    for (i, (name, value)) in map.iter().enumerate() {
        if i > 0 {
            out.push(b',');
        }
        serde_json::to_writer(&mut *out, name)?;
        out.push(b':');
        write(name, value, out)?;
    }
    out.push(b'}');
    Ok(())
}

fn write_entries(all: &[Value], out: &mut Vec<u8>) -> WriteResult {
    out.push(b'[');
    for (i, entry) in all.iter().enumerate() {
        if i > 0 {
            out.push(b',');
        }
        let Some(map) = entry.as_object() else {
            serde_json::to_writer(&mut *out, entry)?;
            continue;
        };
        write_map(map, out, |name, value, out| match text_of(value) {
            Some(text) if name == "fieldsV1" => {
                out.extend_from_slice(text.as_bytes());
                Ok(())
            }
            _ => serde_json::to_writer(out, value),
        })?;
    }
    out.push(b']');
    Ok(())
}

/// Where in an object a value is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Object,
    Metadata,
    ManagedFields,
    Entry,
}

impl Place {
    /// The place below a field, if it is one on the way to the fields of managers.
    fn below(self, name: &str) -> Option<Place> {
        match (self, name) {
            (Place::Object, "metadata") => Some(Place::Metadata),
            (Place::Metadata, "managedFields") => Some(Place::ManagedFields),
            _ => None,
        }
    }
}

impl<'de> DeserializeSeed<'de> for Place {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

/// A value on the way that is neither map nor list is read as it is.
impl<'de> Visitor<'de> for Place {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any valid JSON value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let mut all = Vec::new();
        if self == Place::ManagedFields {
            while let Some(entry) = seq.next_element_seed(Place::Entry)? {
                all.push(entry);
            }
        } else {
            while let Some(item) = seq.next_element()? {
                all.push(item);
            }
        }
        Ok(Value::Array(all))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(name) = map.next_key::<String>()? {
            let value = match self.below(&name) {
                Some(below) => map.next_value_seed(below)?,
                None if self == Place::Entry && name == "fieldsV1" => map.next_value::<Fields>()?.0,
                None => map.next_value()?,
            };
            object.insert(name, value);
        }
        Ok(Value::Object(object))
    }
}

/// A `fieldsV1`: a map becomes compact, anything else stays as it is. A string that only looks compact
/// becomes null: a store's file that somebody else made could have one.
struct Fields(Value);

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = <&RawValue>::deserialize(deserializer)?.get();
        if raw.starts_with('{') {
            return Ok(Fields(of_text(raw)));
        }
        let fields: Value = serde_json::from_str(raw).map_err(Error::custom)?;
        Ok(Fields(if text_of(&fields).is_some() { Value::Null } else { fields }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_object_reads_the_same_in_both_forms() {
        let fields = json!({"f:metadata": {"f:labels": {".": {}, "f:a\"b\\c\u{1}": {}}}, "f:spec": {"f:l": {
            "k:{\"name\":\"a\\\"b\",\"port\":1}": {".": {}, "f:name": {}}, "v:\"x\"": {}, "i:12": {}, "i:3": {}}}});
        let object = json!({"apiVersion": "v1", "kind": "A", "n": [1, -1, 0.5, true, null, "t", {"fieldsV1": {"a": {}}}],
            "metadata": {"name": "a", "managedFields": [
                {"manager": "m", "operation": "Update", "fieldsType": "FieldsV1", "fieldsV1": fields},
                {"manager": "n", "fieldsV1": {}}, {"manager": "o"}, {"manager": "p", "fieldsV1": "\\"},
                {"manager": "q", "fieldsV1": null}, 1]},
            "fieldsV1": {"f:a": {}}, "other": {"managedFields": [{"fieldsV1": {"f:a": {}}}]}});
        let compact = read(object.to_string().as_bytes()).unwrap();
        let of = |index: usize| &compact["metadata"]["managedFields"][index]["fieldsV1"];
        assert_eq!(text_of(of(0)), Some(fields.to_string().as_str()));
        assert_eq!((text_of(of(1)), text_of(of(3)), of(4)), (Some("{}"), None, &Value::Null));
        assert_eq!(compact["other"], object["other"]);
        assert_eq!(*expanded(&compact), object);
        let quoted = Value::from(compact.to_string()).to_string();
        assert!(is_in_text(compact.to_string().as_bytes()) && is_in_text(quoted.as_bytes()));
        assert!(!is_in_text(object.to_string().as_bytes()));
        assert!(!is_in_text(json!({"data": "\0{", "fieldsV1": {"f:a\0{": {}}}).to_string().as_bytes()));
        assert!(matches!((expanded(&compact), expanded(&object)), (Cow::Owned(_), Cow::Borrowed(_))));
        let mut written = Vec::new();
        write_metadata(&compact["metadata"], &mut written).unwrap();
        assert_eq!(String::from_utf8(written).unwrap(), object["metadata"].to_string());
        // Sets come out of both alike, and are written as the map would be.
        let set = FieldSet::from_fields_v1(&fields).unwrap();
        assert_eq!(read_set(of(0)).unwrap(), set);
        assert_eq!(text_of(&of_set(&set)), Some(fields.to_string().as_str()));
        assert!(same_fields(of(0), &fields) && same_fields(&fields, of(0)) && !same_fields(of(1), &fields));
        assert!(!same_fields(of(0), of(1)));
    }

    #[test]
    fn what_is_wrong_or_unknown_in_fields_is_told_alike_in_both_forms() {
        for fields in [
            json!({"x": {}}),
            json!({"f:a": 1}),
            json!({"k:1": {}}),
            json!({"v:": {}}),
            json!({"z:later": 3, "f:a": {}}),
            json!({"f:a": {"z:later": {}}}),
            json!({".": 1, "f:a": {".": 1}}),
        ] {
            let compact = of_text(&fields.to_string());
            assert_eq!(
                format!("{:?}", read_set(&compact)),
                format!("{:?}", FieldSet::from_fields_v1(&fields))
            );
        }
        for (text, good) in
            [("{}", true), ("{\n}", false), ("{", false), ("1", false), ("{}, {}", false), ("", false)]
        {
            assert_eq!(is_compact(&of_text(text)), good, "{text:?}");
        }
        assert!(!is_compact(&json!({})) && !is_compact(&json!("{}")));
        assert!(read(br#"{"metadata": {"managedFields": [{"fieldsV1": {"a": }}]}}"#).is_err());
        let foreign = read(br#"{"metadata": {"managedFields": [{"fieldsV1": "\u0000{"}]}}"#).unwrap();
        assert_eq!(foreign["metadata"]["managedFields"][0], json!({"fieldsV1": null}));
        assert!(read(b"{} x").is_err() && read(b"7").unwrap() == 7);
    }
}
