//! The sequences of operations in the tests of structured-merge-diff, on an object of a custom resource, with
//! what the real server's field manager makes of each step (`tests/reference/apimachinery merges`): the
//! object, its managers, or the words of the refusal.

use super::*;
use std::collections::HashMap;

/// One after the other on one object; what is refused changes nothing.
fn run(case: &Value, schemas: &HashMap<String, SchemaRef>) -> Vec<String> {
    let mut schema = &schemas[case["schema"].as_str().unwrap()];
    let mut live: Option<Value> = None;
    let mut wrong = Vec::new();
    for (at, op) in case["ops"].as_array().unwrap().iter().enumerate() {
        let text = |field: &str| op[field].as_str().unwrap_or_default();
        if let Some(changed) = op.get("schema") {
            schema = &schemas[changed.as_str().unwrap()];
        }
        let api_version = format!("ex.io/{}", text("version"));
        let mut sent = op["object"].as_object().cloned().unwrap_or_default();
        sent.insert("apiVersion".to_owned(), json!(api_version));
        sent.insert("kind".to_owned(), json!("Thing"));
        sent.insert("metadata".to_owned(), json!({"name": "one"}));
        let mut sent = Value::Object(sent);
        if let Some(live) = &mut live {
            live["apiVersion"] = json!(api_version);
        }
        let now = format!("2026-01-01T00:00:{at:02}Z");
        let writer = FieldManager {
            manager: text("manager"),
            api_version: &api_version,
            subresource: None,
            schema,
            now: &now,
            reset: None,
            versions: None,
        };
        let left = match text("do") {
            "update" => {
                writer.update(live.as_ref(), &mut sent);
                Ok(sent)
            }
            how => writer.apply(live.as_ref(), &sent, how == "force").map_err(|why| why.to_string()),
        };
        let (found, wanted) = match left {
            Err(why) => (json!({"error": why}), golden(op)),
            Ok(left) => {
                let found = seen(&left);
                live = Some(left);
                (found, golden(op))
            }
        };
        if found != wanted {
            wrong.push(format!("  {at} {} by {}: {found}\n    not {wanted}", text("do"), text("manager")));
        }
    }
    wrong
}

fn golden(op: &Value) -> Value {
    match op.get("error") {
        Some(why) => json!({"error": why}),
        None => {
            json!({"left": op["left"], "managers": ordered(op["managers"].as_array().cloned().unwrap_or_default())})
        }
    }
}

/// The object without what the harness put around it, and its managers without times.
fn seen(object: &Value) -> Value {
    let mut left = object.as_object().unwrap().clone();
    let mut metadata = left.remove("metadata").unwrap();
    left.remove("apiVersion");
    left.remove("kind");
    let mut managers = metadata["managedFields"].take().as_array().cloned().unwrap_or_default();
    for entry in &mut managers {
        compact::expand_entry(entry);
        entry.as_object_mut().unwrap().retain(|key, _| key != "time" && key != "fieldsType");
    }
    json!({"left": left, "managers": ordered(managers)})
}

/// By name: the real ones were all written in one second.
fn ordered(mut managers: Vec<Value>) -> Vec<Value> {
    managers
        .sort_by_key(|entry| format!("{} {} {}", entry["manager"], entry["operation"], entry["apiVersion"]));
    managers
}

#[test]
fn the_sequences_of_structured_merge_diff() {
    let mut schemas = HashMap::from([("DeducedParser".to_owned(), crate::structural::untyped_resource())]);
    let (mut count, mut steps, mut wrong) = (0, 0, Vec::new());
    for line in include_str!("../../../../tests/golden/managers/sequences.jsonl").lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        let name = line["schema"].as_str().unwrap();
        if let Some(is) = line.get("is") {
            schemas.insert(name.to_owned(), structural(is).unwrap());
            continue;
        }
        count += 1;
        steps += line["ops"].as_array().unwrap().len();
        let found = run(&line, &schemas);
        if !found.is_empty() {
            wrong.push(format!("{}:\n{}", line["name"], found.join("\n")));
        }
    }
    assert!(wrong.is_empty(), "{} of {count} differ:\n{}", wrong.len(), wrong.join("\n"));
    assert_eq!((count, steps), (122, 298));
}
