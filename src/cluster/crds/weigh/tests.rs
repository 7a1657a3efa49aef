//! Changes that go through, changes that wait, and changes that are never sent.

use super::*;
use expect_test::expect;
use opdev_event::Place;
use opdev_types::crd;
use serde_json::json;

fn definition(spec: Value) -> Definition {
    let mut object = crd::scaffold(&Gvk::new("a.b", "v1", "Set"));
    object["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"] = spec;
    let place = |line| Place { file: "set_types.go".to_owned(), line, column: 2 };
    Definition {
        crd: Arc::new(object),
        file: "set_types.go".to_owned(),
        files: vec!["set_types.go".to_owned()],
        places: [("v1.spec.tier".to_owned(), place(7)), ("v1.spec.size".to_owned(), place(5))].into(),
        texts: [("set_types.go".to_owned(), Arc::from("1\n2\n3\n4\n\tSize int32\n6\n\tTier string\n"))]
            .into(),
        broken: None,
        scaffolded: false,
    }
}

fn spec(fields: &Value) -> Value {
    json!({"type": "object", "properties": fields})
}

fn set(spec: &Value) -> Vec<Arc<Value>> {
    vec![Arc::new(json!({"apiVersion": "a.b/v1", "kind": "Set",
        "metadata": {"name": "web", "namespace": "default"}, "spec": spec}))]
}

fn old() -> Value {
    spec(&json!({"size": {"type": "integer"}, "tier": {"type": "string", "enum": ["gold", "iron"]}}))
}

fn weighed(new: Value, objects: &[Arc<Value>], cautious: bool) -> Weighed {
    weigh(&definition(new), Some(&definition(old()).crd), objects, cautious)
}

fn why(weighed: &Weighed) -> &str {
    match &weighed.decision {
        Decision::Apply => "applied",
        Decision::Hold(why) => why,
        Decision::Refuse(_) => "refused",
    }
}

#[test]
fn an_enum_value_in_use_is_held_with_object_and_field() {
    let new = || spec(&json!({"size": {"type": "integer"}, "tier": {"type": "string", "enum": ["iron"]}}));
    let held = weighed(new(), &set(&json!({"tier": "gold"})), false);
    assert_eq!(why(&held), "1 object would not be valid any more");
    let hurt = &held.objects[0];
    assert_eq!((hurt.object.to_string().as_str(), hurt.field.as_str()), ("Set default/web", ".spec.tier"));
    expect![[r#"Unsupported value: "gold": supported values: "iron""#]].assert_eq(&hurt.message);
    let finding = &held.findings[0];
    assert_eq!((finding.weight, finding.field.as_str()), (Weight::Break, ".spec.tier"));
    assert_eq!(finding.place.as_ref().unwrap().to_string(), "set_types.go:7:2");
    assert_eq!(why(&weighed(new(), &set(&json!({"tier": "iron"})), false)), "applied");
    assert_eq!(why(&weighed(new(), &[], false)), "applied");
}

#[test]
fn a_rename_says_so_before_it_is_applied() {
    let new =
        || spec(&json!({"count": {"type": "integer"}, "tier": {"type": "string", "enum": ["gold", "iron"]}}));
    let held = weighed(new(), &set(&json!({"size": 3})), false);
    assert_eq!(why(&held), ".spec.size is renamed to .spec.count: stored values are lost");
    assert_eq!(held.objects[0].field, ".spec.size");
    assert!(!held.objects[0].message.contains('3') || held.objects[0].message.contains("number"));
    assert_eq!(why(&weighed(new(), &set(&json!({})), false)), "applied", "nobody has it");
}

#[test]
fn elsewhere_only_what_nobody_notices_goes_through() {
    let optional =
        spec(&json!({"size": {"type": "integer"}, "tier": {"type": "string", "enum": ["gold", "iron"]},
        "note": {"type": "string"}}));
    assert_eq!(why(&weighed(optional, &[], true)), "applied");
    let default = spec(
        &json!({"size": {"type": "integer", "default": 1}, "tier": {"type": "string", "enum": ["gold", "iron"]}}),
    );
    assert_eq!(why(&weighed(default.clone(), &[], false)), "applied");
    assert!(why(&weighed(default, &[], true)).starts_with("this cluster is not clearly local"));
}

#[test]
fn what_the_server_would_refuse_is_placed_and_never_sent() {
    let new = spec(
        &json!({"size": {"type": "integer", "default": "three"}, "tier": {"type": "string", "enum": ["gold", "iron"]}}),
    );
    let refused = weighed(new, &[], false);
    let Decision::Refuse(problem) = &refused.decision else { panic!("{}", why(&refused)) };
    assert_eq!(problem.place.as_ref().unwrap().to_string(), "set_types.go:5:2", "{problem:?}");
    expect![[r#"the API server would refuse sets.a.b: .spec.size: Invalid value: "string":  in body must be of type integer: "string""#]]
    .assert_eq(&problem.message);
    expect![[r#"
        4 | 4
        5 | 	Size int32
          | 	^
        6 | 6"#]]
    .assert_eq(problem.excerpt.as_deref().unwrap());
}

#[test]
fn paths_of_the_schema_are_those_of_objects() {
    let of = |path: &str| object_path(path).unwrap();
    let start = "spec.versions[0].schema.openAPIV3Schema";
    assert_eq!(of(&format!("{start}.properties[spec].properties[size].default")), "spec.size");
    assert_eq!(of(&format!("{start}.properties[spec].items.properties[a].pattern")), "spec[*].a");
    assert_eq!(of(&format!("{start}.type")), "");
    assert!(object_path("spec.names.plural").is_none() && !is_in_object("spec.names.plural"));
    assert!(is_in_object("spec.namesake") && is_in_object("status.x"));
}
