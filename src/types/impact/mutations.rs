//! Random schemas and random changes of them, with the properties that every change must have.

use super::tests::crd;
use super::*;
use serde_json::{Map, json};
use std::sync::Arc;

/// A small generator of numbers, the same in every run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }
}

fn schema(dice: &mut Dice, depth: usize) -> Value {
    let kinds = if depth == 0 { 4 } else { 7 };
    let mut schema = match dice.roll(kinds) {
        0 => json!({"type": "string", "minLength": 1, "maxLength": 20}),
        1 => json!({"type": "integer", "minimum": 1, "maximum": 90}),
        2 => json!({"type": "boolean"}),
        3 => json!({"type": "string", "enum": ["A", "B", "C"]}),
        4 => json!({"type": "array", "maxItems": 5, "items": schema(dice, depth - 1)}),
        5 => json!({"type": "object", "additionalProperties": schema(dice, depth - 1)}),
        _ => object(dice, depth - 1),
    };
    if dice.roll(6) == 0 {
        schema["nullable"] = json!(true);
    }
    if dice.roll(4) == 0 {
        schema["description"] = json!("words");
    }
    schema
}

fn object(dice: &mut Dice, depth: usize) -> Value {
    let mut properties = Map::new();
    for index in 0..=dice.roll(4) {
        properties.insert(format!("field{index}"), schema(dice, depth));
    }
    let required: Vec<String> = properties.keys().filter(|_| dice.roll(3) == 0).cloned().collect();
    json!({"type": "object", "properties": properties, "required": required})
}

/// The known effect of a change.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Known {
    /// Everything that was accepted still is, nothing is lost.
    Relaxed,
    /// A field is gone.
    Lost,
    /// Something that was accepted is not any more.
    Tightened,
    /// Only words changed.
    Words,
}

/// A node of the schema that is picked by chance.
fn pick<'a>(schema: &'a mut Value, dice: &mut Dice) -> &'a mut Value {
    let keys: Vec<String> = match schema["type"].as_str() {
        Some("object") => {
            let names = schema["properties"].as_object().into_iter().flat_map(|map| map.keys());
            names
                .map(|name| format!("/properties/{name}"))
                .chain(schema.get("additionalProperties").map(|_| "/additionalProperties".to_owned()))
                .collect()
        }
        Some("array") => vec!["/items".to_owned()],
        _ => Vec::new(),
    };
    if keys.is_empty() || dice.roll(3) == 0 {
        return schema;
    }
    let key = &keys[dice.roll(keys.len() as u64) as usize];
    pick(schema.pointer_mut(key).unwrap(), dice)
}

/// Changes a schema in one place; `None` where nothing came of it.
fn mutate(schema: &mut Value, dice: &mut Dice) -> Option<Known> {
    let before = schema.clone();
    let node = pick(schema, dice);
    let kind = node["type"].as_str().unwrap_or_default().to_owned();
    let known = match (dice.roll(12), kind.as_str()) {
        (0, "string") => change(node, "maxLength", json!(5), Known::Tightened),
        (0, "integer") => change(node, "maximum", json!(5), Known::Tightened),
        (1, "string") => drop_key(node, "maxLength", Known::Relaxed),
        (1, "integer") => change(node, "minimum", json!(0), Known::Relaxed),
        (2, "string") => change(node, "enum", json!(["A"]), Known::Tightened),
        (3, "string") if node.get("enum").is_some() => {
            change(node, "enum", json!(["A", "B", "C", "D"]), Known::Relaxed)
        }
        (4, "array") => change(node, "maxItems", json!(1), Known::Tightened),
        (5, "array") => drop_key(node, "maxItems", Known::Relaxed),
        (6, _) => change(node, "description", json!("other words"), Known::Words),
        (7, "object") if node.get("properties").is_some() => {
            let name = node["properties"].as_object()?.keys().next()?.clone();
            node["properties"].as_object_mut()?.remove(&name);
            node["required"].as_array_mut()?.retain(|other| *other != json!(name));
            Known::Lost
        }
        (8, "object") if node.get("properties").is_some() => {
            node["properties"]["fresh"] = json!({"type": "string"});
            Known::Relaxed
        }
        (9, "object") if node.get("properties").is_some() => drop_key(node, "required", Known::Relaxed),
        (10, "object") if node.get("properties").is_some() => {
            let names: Vec<String> = node["properties"].as_object()?.keys().cloned().collect();
            change(node, "required", json!(names), Known::Tightened)
        }
        (11, _) if !node["nullable"].is_boolean() => change(node, "nullable", json!(true), Known::Relaxed),
        (11, _) => drop_key(node, "nullable", Known::Tightened),
        _ => return None,
    };
    (before != *schema).then_some(known)
}

fn change(node: &mut Value, key: &str, value: Value, known: Known) -> Known {
    node[key] = value;
    known
}

fn drop_key(node: &mut Value, key: &str, known: Known) -> Known {
    node.as_object_mut().unwrap().remove(key);
    known
}

/// A value that the schema takes.
fn value(schema: &Value, dice: &mut Dice) -> Value {
    match schema["type"].as_str() {
        Some("string") => match schema["enum"].as_array() {
            Some(values) => values[dice.roll(values.len() as u64) as usize].clone(),
            None => json!("x".repeat(1 + dice.roll(20) as usize)),
        },
        Some("integer") => json!(1 + dice.roll(90)),
        Some("boolean") => json!(dice.roll(2) == 0),
        Some("array") => json!((0..dice.roll(5)).map(|_| value(&schema["items"], dice)).collect::<Vec<_>>()),
        _ => match schema["properties"].as_object() {
            Some(properties) => {
                let required = schema["required"].as_array().cloned().unwrap_or_default();
                let mut there = Map::new();
                for (name, schema) in properties {
                    if required.contains(&json!(name)) || dice.roll(2) == 0 {
                        there.insert(name.clone(), value(schema, dice));
                    }
                }
                Value::Object(there)
            }
            None => json!({"key": value(&schema["additionalProperties"], dice)}),
        },
    }
}

#[test]
fn every_change_is_seen_and_none_is_seen_where_there_is_none() {
    let mut dice = Dice(0x5eed_1234_abcd);
    let mut seen = [0usize; 4];
    for _ in 0..4000 {
        let old = object(&mut dice, 3);
        assert!(compare(Some(&crd(&old)), &crd(&old)).is_empty());
        assert!(same(&crd(&old), &crd(&old)));
        let mut new = old.clone();
        let Some(known) = mutate(&mut new, &mut dice) else { continue };
        let (old_crd, new_crd) = (crd(&old), crd(&new));
        let findings = compare(Some(&old_crd), &new_crd);
        // An empty list of required fields means the same as none.
        if findings.is_empty() {
            assert!(same(&old_crd, &new_crd), "{old:#}\n{new:#}");
            continue;
        }
        assert!(!same(&old_crd, &new_crd));
        let worst = findings[0].severity;
        match known {
            Known::Relaxed => assert!(worst <= Severity::Warn, "{findings:?}"),
            Known::Lost => assert_eq!(worst, Severity::Loss, "{findings:?}"),
            Known::Tightened => assert_eq!(worst, Severity::Break, "{findings:?}"),
            Known::Words => assert_eq!(worst, Severity::Info, "{findings:?}"),
        }
        seen[known as usize] += 1;
    }
    assert!(seen.iter().all(|count| *count > 50), "{seen:?}");
}

/// A change that narrows one way widens the other way, and an added field is lost on the way back.
#[test]
fn the_way_back_is_the_other_way_round() {
    let mut dice = Dice(0x0fed_cba9_8765);
    let mut seen = [0usize; 4];
    for _ in 0..4000 {
        let old = object(&mut dice, 3);
        let mut new = old.clone();
        let Some(known) = mutate(&mut new, &mut dice) else { continue };
        let back = compare(Some(&crd(&new)), &crd(&old));
        let there = compare(Some(&crd(&old)), &crd(&new));
        assert_eq!(there.is_empty(), back.is_empty(), "{there:#?}\n{back:#?}");
        let Some(worst) = back.iter().map(|finding| finding.severity).max() else { continue };
        match known {
            Known::Tightened => assert!(worst <= Severity::Warn, "{back:#?}"),
            Known::Relaxed => assert!(matches!(worst, Severity::Break | Severity::Loss), "{back:#?}"),
            Known::Words => assert_eq!(worst, Severity::Info, "{back:#?}"),
            // A field that comes back hurts only where it is required.
            Known::Lost => assert!(worst <= Severity::Break, "{back:#?}"),
        }
        // Nothing is lost but where a path of the schema is gone.
        let fields = |schema: &Value| {
            let mut paths = Vec::new();
            names(schema, "", &mut paths);
            paths
        };
        let (before, after) = (fields(&old), fields(&new));
        let gone = before.iter().any(|path| !after.contains(path));
        let lost = there.iter().any(|finding| finding.severity == Severity::Loss);
        assert_eq!(gone, lost, "{there:#?}");
        seen[known as usize] += 1;
    }
    assert!(seen.iter().all(|count| *count > 50), "{seen:?}");
}

/// The paths of all properties below a schema.
fn names(schema: &Value, path: &str, out: &mut Vec<String>) {
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let path = format!("{path}.{name}");
        names(property, &path, out);
        out.push(path);
    }
    for inner in ["items", "additionalProperties"] {
        if schema[inner].is_object() {
            names(&schema[inner], &format!("{path}[]"), out);
        }
    }
}

/// Objects that fit the old schema: whoever breaks or loses something is announced, and where nothing is
/// announced nobody does.
#[test]
fn objects_break_only_where_it_was_said() {
    let mut dice = Dice(0x00de_adbe_ef77);
    let (mut broken, mut lost) = (0, 0);
    for _ in 0..2000 {
        let old = object(&mut dice, 3);
        let mut new = old.clone();
        if mutate(&mut new, &mut dice).is_none() {
            continue;
        }
        let (old_crd, new_crd) = (crd(&old), crd(&new));
        let objects: Vec<Arc<Value>> = (0..4)
            .map(|index| {
                Arc::new(json!({"apiVersion": "ex.io/v1", "kind": "Widget",
                    "metadata": {"name": format!("w{index}"), "namespace": "default"},
                    "spec": value(&old, &mut dice)}))
            })
            .collect();
        let said = compare(Some(&old_crd), &new_crd);
        let worst = said.first().map_or(Severity::Info, |finding| finding.severity);
        let mut judged = said.clone();
        let all = live(Some(&old_crd), &new_crd, &objects, &mut judged);
        if !all.broken.is_empty() {
            assert!(worst >= Severity::Break, "{old:#}\n{new:#}\n{all:#?}");
            assert!(judged.iter().any(|f| f.severity == Severity::Break), "{judged:#?}\n{all:#?}");
            assert!(all.broken.iter().all(|one| one.untouched_update_passes), "{all:#?}");
            broken += 1;
        } else {
            assert!(judged.iter().all(|f| f.severity != Severity::Break), "{judged:#?}");
        }
        if !all.lost.is_empty() {
            assert_eq!(worst, Severity::Loss, "{all:#?}");
            assert_eq!(judged[0].severity, Severity::Loss);
            lost += 1;
        } else {
            assert!(judged.iter().all(|f| f.severity != Severity::Loss), "{judged:#?}");
        }
    }
    assert!(broken > 20 && lost > 20, "{broken} {lost}");
}
