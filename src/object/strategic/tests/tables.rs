//! The inputs of apimachinery's own tables for strategic merge patches, with what its code makes of them
//! (`tests/reference/apimachinery strategic`): patches applied, made from two states and from three.

use super::*;
use crate::schema::Definition;
use std::sync::OnceLock;

/// A field for each way in which such patches treat fields, and the object inside it that keeps no other
/// keys.
fn find(name: &str) -> Option<&'static Definition> {
    static ITEM: OnceLock<Definition> = OnceLock::new();
    static RETAINED: OnceLock<Definition> = OnceLock::new();
    let text = json!({"type": "string"});
    let items = json!({"type": "array", "items": {"$ref": "item"}});
    let with = |of: &Value, more: Value| {
        let mut of = of.clone();
        of.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        of
    };
    let strategy = |text: &str| json!({"x-kubernetes-patch-strategy": text});
    let by_name =
        |text: &str| json!({"x-kubernetes-patch-strategy": text, "x-kubernetes-patch-merge-key": "name"});
    let numbers = json!({"type": "array", "items": {"type": "integer"}});
    let map = json!({"type": "object", "additionalProperties": {"type": "string"}});
    let open = json!({"type": "object"});
    let mut properties = json!({
        "name": text, "value": text, "other": text, "simpleMap": map,
        "mergingList": with(&items, by_name("merge")), "nonMergingList": items,
        "mergingIntList": with(&numbers, strategy("merge")),
    });
    let made = |properties: &Value| json!({"type": "object", "properties": properties}).to_string();
    match name {
        "retained" => {
            Some(RETAINED.get_or_init(|| Definition::new(name.to_owned(), made(&properties), find)))
        }
        "item" => Some(ITEM.get_or_init(|| {
            properties.as_object_mut().unwrap().extend([
                ("nonMergingIntList".to_owned(), numbers),
                ("mergeItemPtr".to_owned(), with(&items, by_name("merge"))),
                ("replacingItem".to_owned(), with(&open, strategy("replace"))),
                ("jsonItem".to_owned(), open),
                ("retainKeysMap".to_owned(), with(&json!({"$ref": "retained"}), strategy("retainKeys"))),
                ("retainKeysMergingList".to_owned(), with(&items, by_name("merge,retainKeys"))),
            ]);
            Definition::new(name.to_owned(), made(&properties), find)
        })),
        _ => None,
    }
}

/// Upstream's error for a change inside a field that the type does not have.
const UNKNOWN: &str = "unable to find api field in struct";

/// Both as JSON, or the words of the refusal.
fn check(what: &str, golden: &Value, made: &Result<Value, StrategicError>) -> Option<String> {
    let same = match made {
        Ok(made) => golden.get("out") == Some(made),
        Err(why) => golden["error"] == why.0.as_str(),
    };
    (!same).then(|| {
        format!(
            "{what}: {}\n    not {golden}",
            made.as_ref().map_or_else(|why| why.0.clone(), Value::to_string)
        )
    })
}

fn applied_to(target: &Value, patch: &Value, schema: &SchemaRef) -> Result<Value, StrategicError> {
    let mut target = target.clone();
    apply(&mut target, patch, schema)?;
    Ok(target)
}

#[test]
fn the_tables_of_apimachinery() {
    let schema = SchemaRef::of_definition(find("item").unwrap());
    let (mut count, mut asked, mut further, mut wrong) = (0, 0, 0, Vec::new());
    for line in include_str!("../../../../tests/golden/strategic/tables.jsonl").lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let (original, modified, current) = (&case["original"], &case["modified"], &case["current"]);
        let mut found = Vec::new();
        if case["twoWay"]["error"].as_str().is_some_and(|why| why.starts_with(UNKNOWN)) {
            // Here we go further than upstream: the change is made.
            let patch = two_way(original, modified, &schema).unwrap();
            assert_eq!(&applied_to(original, &patch, &schema).unwrap(), modified);
            further += 1;
            continue;
        }
        let mut compare = |what: &str, made: &dyn Fn() -> Result<Value, StrategicError>| {
            if let Some(golden) = case.get(what) {
                asked += 1;
                found.extend(check(what, golden, &made()));
            }
        };
        compare("applied", &|| applied_to(original, &case["patch"], &schema));
        compare("twoWay", &|| two_way(original, modified, &schema));
        compare("twoWayResult", &|| applied_to(original, &case["twoWay"]["out"], &schema));
        compare("threeWay", &|| three_way(original, modified, current, &schema, true));
        compare("threeWayResult", &|| applied_to(current, &case["threeWay"]["out"], &schema));
        if case["threeWay"].get("out").is_some() {
            let conflict = three_way(original, modified, current, &schema, false).is_err();
            if conflict != case.get("conflict").is_some() {
                found.push(format!("conflict: {conflict}"));
            }
        }
        count += 1;
        if !found.is_empty() {
            wrong.push(format!("{original} -> {modified} ({current}):\n  {}", found.join("\n  ")));
        }
    }
    assert!(wrong.is_empty(), "{} of {count} cases:\n{}", wrong.len(), wrong.join("\n"));
    assert_eq!((count, asked, further), (164, 724, 2));
}
