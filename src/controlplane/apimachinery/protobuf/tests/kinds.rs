//! Every kind of k8s.io/api, of served versions and of others, as its real serializer writes it: of each, an
//! object in which everything is set and one in which all messages are there and none has a value. The golden
//! file has the hashes that `tests/reference/apimachinery kinds` found; nothing but the table of fields is
//! needed to build the objects.

use super::*;
use crate::protobuf::encode::put_message;
use crate::protobuf::messages::Unserved;
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;

/// The value, in a full object, of a message whose JSON is no object of its fields.
fn special_value(definition: &str) -> Value {
    match definition.rsplit('.').next().unwrap() {
        "Quantity" => json!("1500m"),
        "IntOrString" => json!("http"),
        "Time" => json!("2026-01-01T00:00:00Z"),
        "MicroTime" => json!("2026-01-01T00:00:00.000001Z"),
        "JSONSchemaPropsOrArray" => json!({"type": "string"}),
        "JSONSchemaPropsOrBool" => json!(true),
        "JSONSchemaPropsOrStringArray" => json!(["item"]),
        _ => json!({"of": "json"}),
    }
}

/// An object of a definition; `None` where nothing is to be written. `around` are the definitions it is in.
fn build(definition: &str, full: bool, name: &str, around: &mut Vec<String>) -> Option<Value> {
    let scalar = match definition {
        "s" => Some(json!(format!("{name}Value"))),
        "b" => Some(json!(true)),
        "i" => Some(json!(7)),
        "d" => Some(json!(1.5)),
        "y" => Some(json!("Ynl0ZXM=")),
        special if special::reader(special).is_some() => Some(special_value(special)),
        _ => None,
    };
    if scalar.is_some() {
        return scalar.filter(|_| full);
    }
    if around.iter().any(|outer| outer == definition) {
        return None;
    }
    let fields = messages::fields(definition).unwrap_or_else(|| panic!("{definition} is not in the tables"));
    if matches!(fields, [(_, name, ..)] if *name == "*") {
        return Some(if full { json!(["*Value"]) } else { json!([]) });
    }
    around.push(definition.to_owned());
    let mut object = Map::new();
    for (_, name, kind, flags) in fields {
        let Some(value) = build(kind, full, name, around) else { continue };
        match value {
            Value::Object(inner) if name.is_empty() => object.extend(inner),
            value if flags & MAP != 0 => drop(object.insert((*name).to_owned(), json!({"key": value}))),
            value if flags & REPEATED != 0 => drop(object.insert((*name).to_owned(), json!([value]))),
            value => drop(object.insert((*name).to_owned(), value)),
        }
    }
    around.pop();
    Some(object.into())
}

fn without_nulls(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|_, inner| !inner.is_null());
            map.values_mut().for_each(without_nulls);
        }
        Value::Array(list) => list.iter_mut().for_each(without_nulls),
        _ => {}
    }
}

fn hash(bytes: &[u8]) -> String {
    Sha256::digest(bytes)[..8].iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Through the codec: the message, and what is read from it. The event of a watch is of no kind, so it is
/// written and read by its definition.
fn through(api_version: &str, kind: &str, object: &mut Value) -> (Vec<u8>, Value) {
    if kind == "WatchEvent" {
        let definition = messages::definition(api_version, kind).unwrap();
        let mut inside = Vec::new();
        put_message(&mut inside, definition, object, 0).unwrap();
        let read = message(definition, &inside, 0).unwrap();
        return (encode::envelope("", "", &inside), read);
    }
    object["apiVersion"] = api_version.into();
    object["kind"] = kind.into();
    let bytes = encode(object).unwrap_or_else(|why| panic!("{api_version} {kind}: {why}"));
    let read = decode(&bytes).unwrap_or_else(|why| panic!("{api_version} {kind}: {why}"));
    (bytes, read)
}

#[test]
fn every_kind_goes_round_as_the_real_serializer_has_it() {
    let path =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/golden/protobuf/kinds.txt");
    let golden = std::fs::read_to_string(&path).unwrap();
    let (mut seen, mut wrong) = (BTreeSet::new(), Vec::new());
    for line in golden.lines() {
        let [api_version, kind, full, hollow, read] = line.split(' ').collect::<Vec<_>>()[..] else {
            panic!("{line}");
        };
        seen.insert(format!("{api_version} {kind}"));
        let definition = messages::definition(api_version, kind).unwrap();
        let mut note = |what: &str, is_so: bool| {
            if !is_so {
                wrong.push(format!("{api_version} {kind}: {what}"));
            }
        };
        let mut object = build(definition, true, "", &mut Vec::new()).unwrap();
        let (bytes, mut back) = through(api_version, kind, &mut object);
        note("the message of the full object", hash(&bytes) == full);
        note("the full object", back == object);
        let mut object = build(definition, false, "", &mut Vec::new()).unwrap();
        let (bytes, hollow_back) = through(api_version, kind, &mut object);
        note("the message of the hollow object", hash(&bytes) == hollow);
        back = hollow_back;
        without_nulls(&mut back);
        note("the hollow object", hash(back.to_string().as_bytes()) == read);
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), seen.len(), wrong.join("\n"));
    // Nothing that the tables have is left out, and no kind is in both of them.
    let Unserved { kinds, .. } = unserved();
    assert!(kinds.keys().all(|kind| seen.contains(*kind)));
    assert!(
        kinds.keys().all(|kind| kind.split_once(' ').is_some_and(|(version, kind)| !serves(version, kind)))
    );
    assert_eq!((seen.len(), kinds.len()), (197, 119));
}
