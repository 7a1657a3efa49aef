//! Operations on one object, one after another, and what they leave behind.

mod sequences;

use super::*;
use crate::facts::facts;
use crate::fieldset::{Atom, Element, FieldPath};
use crate::meta::Gvk;
use crate::path::{Path, Segment};
use crate::structural::structural;
use expect_test::expect;
use serde_json::{Value, json};

/// One object and the operations on it; each takes place a second after the one before.
struct Live {
    schema: SchemaRef,
    api_version: &'static str,
    object: Option<Value>,
    second: u32,
}

impl Live {
    fn deployment() -> Self {
        let schema = facts().schema(&Gvk::new("apps", "v1", "Deployment")).unwrap();
        Live { schema, api_version: "apps/v1", object: None, second: 0 }
    }

    fn custom(properties: &Value) -> Self {
        let schema = structural(
            &json!({"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}}),
        );
        Live { schema: schema.unwrap(), api_version: "ex.io/v1", object: None, second: 0 }
    }

    fn now(&mut self) -> String {
        self.second += 1;
        format!("2026-01-01T00:00:{:02}Z", self.second)
    }

    fn whole(&self, rest: &Value) -> Value {
        let kind = if self.api_version == "apps/v1" { "Deployment" } else { "Web" };
        let mut object = json!({"apiVersion": self.api_version, "kind": kind, "metadata": {"name": "web", "namespace": "default"}});
        crate::patch::merge_patch(&mut object, rest);
        object
    }

    fn apply(&mut self, manager: &str, rest: &Value, force: bool) -> Result<(), String> {
        let now = self.now();
        let writer = FieldManager {
            manager,
            api_version: self.api_version,
            subresource: None,
            schema: &self.schema,
            now: &now,
            reset: None,
            versions: None,
        };
        let result = writer
            .apply(self.object.as_ref(), &self.whole(rest), force)
            .map_err(|error| error.to_string())?;
        self.object = Some(result);
        Ok(())
    }

    fn update(&mut self, manager: &str, rest: &Value) {
        let mut new = self.object.clone().unwrap_or_else(|| self.whole(&json!({})));
        crate::patch::merge_patch(&mut new, rest);
        let now = self.now();
        let writer = FieldManager {
            manager,
            api_version: self.api_version,
            subresource: None,
            schema: &self.schema,
            now: &now,
            reset: None,
            versions: None,
        };
        writer.update(self.object.as_ref(), &mut new);
        new["metadata"]["uid"] = json!("1");
        self.object = Some(new);
    }

    fn spec(&self) -> &Value {
        &self.object.as_ref().unwrap()["spec"]
    }

    fn managers(&self) -> Vec<(String, String, Value)> {
        let entries = managed(self.object.as_ref().unwrap());
        let text = |entry: &Value, key: &str| entry[key].as_str().unwrap_or("-").to_owned();
        entries
            .as_array()
            .into_iter()
            .flatten()
            .map(|e| (text(e, "manager"), text(e, "operation"), e["fieldsV1"].clone()))
            .collect()
    }

    fn names(&self) -> Vec<String> {
        self.managers().into_iter().map(|(name, operation, _)| format!("{name} {operation}")).collect()
    }
}

/// The `managedFields` of an object as clients see them.
fn managed(object: &Value) -> Value {
    compact::expanded(object).pointer("/metadata/managedFields").cloned().unwrap_or_default()
}

fn containers(list: Value) -> Value {
    json!({"spec": {"template": {"spec": {"containers": list}}}})
}

#[test]
fn a_created_object_names_its_applier() {
    let mut live = Live::deployment();
    live.apply("curl", &json!({"metadata": {"labels": {"a": "b"}}, "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "x"}},
        "template": {"spec": {"containers": [{"name": "web", "image": "i", "ports": [{"containerPort": 80}]}]}}}}), false).unwrap();
    assert_eq!(
        managed(live.object.as_ref().unwrap()),
        json!([{"manager": "curl", "operation": "Apply", "apiVersion": "apps/v1", "fieldsType": "FieldsV1",
            "time": "2026-01-01T00:00:01Z",
            "fieldsV1": {"f:metadata": {"f:labels": {"f:a": {}}}, "f:spec": {"f:replicas": {}, "f:selector": {},
                "f:template": {"f:spec": {"f:containers": {"k:{\"name\":\"web\"}": {".": {}, "f:image": {}, "f:name": {},
                    "f:ports": {"k:{\"containerPort\":80,\"protocol\":\"TCP\"}": {".": {}, "f:containerPort": {}}}}}}}}}}])
    );
}

#[test]
fn another_managers_value_is_a_conflict_until_forced() {
    let mut live = Live::deployment();
    live.apply("a", &json!({"spec": {"replicas": 1, "paused": true}}), false).unwrap();
    assert_eq!(
        live.apply("b", &json!({"spec": {"replicas": 2}}), false).unwrap_err(),
        "Apply failed with 1 conflict: conflict with \"a\": .spec.replicas"
    );
    live.update("edit", &json!({"spec": {"minReadySeconds": 5}}));
    assert_eq!(
        live.apply("b", &json!({"spec": {"replicas": 2, "minReadySeconds": 6, "paused": false}}), false)
            .unwrap_err(),
        "Apply failed with 3 conflicts: conflicts with \"a\":\n- .spec.paused\n- .spec.replicas\nconflicts with \"edit\" using apps/v1:\n- .spec.minReadySeconds"
    );
    live.apply("b", &json!({"spec": {"replicas": 2}}), true).unwrap();
    assert_eq!(live.spec()["replicas"], 2);
    let managers = live.managers();
    assert_eq!(managers[0].2, json!({"f:spec": {"f:paused": {}}}));
    assert_eq!(managers[1].2, json!({"f:spec": {"f:replicas": {}}}));
}

#[test]
fn what_is_no_longer_applied_goes_unless_somebody_else_owns_it() {
    let mut live = Live::deployment();
    live.apply(
        "a",
        &json!({"metadata": {"labels": {"x": "1", "y": "1"}}, "spec": {"replicas": 1, "paused": true}}),
        false,
    )
    .unwrap();
    live.apply("b", &json!({"spec": {"replicas": 1}}), false).unwrap();
    live.update("edit", &json!({"spec": {"minReadySeconds": 5}}));
    live.apply("a", &json!({"metadata": {"labels": {"y": "1"}}}), false).unwrap();
    assert_eq!(*live.spec(), json!({"replicas": 1, "minReadySeconds": 5}));
    assert_eq!(live.object.as_ref().unwrap()["metadata"]["labels"], json!({"y": "1"}));
    live.apply("b", &json!({}), false).unwrap();
    assert_eq!(*live.spec(), json!({"minReadySeconds": 5}));
    assert_eq!(live.names(), ["a Apply", "edit Update"]);
    live.apply("a", &json!({}), false).unwrap();
    assert!(live.object.as_ref().unwrap()["metadata"].get("labels").is_none());
    assert_eq!(live.names(), ["edit Update"]);
}

#[test]
fn list_items_have_owners_of_their_own() {
    let mut live = Live::deployment();
    live.apply(
        "a",
        &containers(json!([{"name": "web", "image": "1"}, {"name": "side", "image": "1"}])),
        false,
    )
    .unwrap();
    live.apply(
        "b",
        &containers(
            json!([{"name": "proxy", "image": "2"}, {"name": "web", "env": [{"name": "E", "value": "v"}]}]),
        ),
        false,
    )
    .unwrap();
    assert_eq!(
        live.spec()["template"]["spec"]["containers"],
        json!([{"name": "proxy", "image": "2"}, {"name": "web", "image": "1", "env": [{"name": "E", "value": "v"}]}, {"name": "side", "image": "1"}])
    );
    live.apply("a", &containers(json!([{"name": "side", "image": "1"}])), false).unwrap();
    assert_eq!(
        live.spec()["template"]["spec"]["containers"],
        json!([{"name": "proxy", "image": "2"}, {"name": "web", "env": [{"name": "E", "value": "v"}]}, {"name": "side", "image": "1"}])
    );
    live.apply("b", &json!({}), false).unwrap();
    assert_eq!(live.spec()["template"]["spec"]["containers"], json!([{"name": "side", "image": "1"}]));
}

#[test]
fn the_applied_order_wins() {
    let properties =
        json!({"l": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}}});
    let cases = [
        (vec!["a", "b"], vec!["b", "a"], vec!["b", "a"]),
        (vec!["a", "b", "c"], vec!["c", "a"], vec!["b", "c", "a"]),
        (vec!["a", "b"], vec!["a", "c", "b"], vec!["a", "c", "b"]),
        (vec!["x", "a", "y"], vec!["a", "b"], vec!["x", "a", "y", "b"]),
        (vec![], vec!["b", "a"], vec!["b", "a"]),
    ];
    for (live_list, applied, expected) in cases {
        let mut live = Live::custom(&properties);
        live.update("u", &json!({"spec": {"l": live_list}}));
        live.apply("a", &json!({"spec": {"l": applied}}), true).unwrap();
        assert_eq!(live.spec()["l"], json!(expected));
    }
}

#[test]
fn updates_take_what_they_change() {
    let mut live = Live::deployment();
    live.update(
        "create",
        &json!({"metadata": {"labels": {"a": "b"}}, "spec": {"replicas": 1, "paused": true}}),
    );
    assert_eq!(
        live.managers(),
        [(
            "create".to_owned(),
            "Update".to_owned(),
            json!({"f:metadata": {"f:labels": {".": {}, "f:a": {}}}, "f:spec": {"f:paused": {}, "f:replicas": {}}})
        )]
    );
    live.update("edit", &json!({"spec": {"replicas": 2, "paused": null}}));
    assert_eq!(live.managers()[0].2, json!({"f:metadata": {"f:labels": {".": {}, "f:a": {}}}}));
    assert_eq!(live.managers()[1].2, json!({"f:spec": {"f:replicas": {}}}));
    let before = live.object.clone();
    live.update("nobody", &json!({"spec": {"replicas": 2}}));
    assert_eq!(live.object, before);
    live.update("create", &json!({"spec": {"minReadySeconds": 1}}));
    assert_eq!(live.names(), ["edit Update", "create Update"]);
}

#[test]
fn objects_without_managers() {
    let mut live = Live::deployment();
    live.object = Some(live.whole(&json!({"metadata": {"uid": "1"}, "spec": {"replicas": 1}})));
    live.update("edit", &json!({"spec": {"paused": true}}));
    assert!(live.managers().is_empty());
    expect![[
        r#"Apply failed with 1 conflict: conflict with "before-first-apply" using apps/v1: .spec.replicas"#
    ]]
    .assert_eq(&live.apply("a", &json!({"spec": {"replicas": 2}}), false).unwrap_err());
    live.apply("a", &json!({"spec": {"replicas": 2}}), true).unwrap();
    assert_eq!(live.names(), ["a Apply", "before-first-apply Update"]);
    assert_eq!(live.managers()[1].2, json!({"f:spec": {"f:paused": {}}}));
    for reset in [json!([]), json!([{}])] {
        live.update("edit", &json!({"metadata": {"managedFields": reset}}));
        assert!(live.managers().is_empty());
    }
}

#[test]
fn the_oldest_updaters_become_one() {
    let mut live = Live::deployment();
    for i in 0..13 {
        live.update(&format!("m{i:02}"), &json!({"metadata": {"labels": {format!("l{i:02}"): "x"}}}));
    }
    let names = live.names();
    assert_eq!(names.len(), 10);
    assert_eq!(names[0], "ancient-changes Update");
    assert_eq!(names[9], "m12 Update");
    assert_eq!(
        live.managers()[0].2,
        json!({"f:metadata": {"f:labels": {".": {}, "f:l00": {}, "f:l01": {}, "f:l02": {}, "f:l03": {}}}})
    );
}

#[test]
fn subresources_track_only_their_part() {
    let schema = facts().schema(&Gvk::new("apps", "v1", "Deployment")).unwrap();
    let all_but_status = FieldSet::of_fields(&[&["spec"], &["metadata"]]);
    let old = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a", "uid": "1", "managedFields": [
        {"manager": "m", "operation": "Update", "apiVersion": "apps/v1", "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {"f:replicas": {}}}}]},
        "spec": {"replicas": 1}});
    let mut new = old.clone();
    new["status"] = json!({"replicas": 1, "conditions": [{"type": "Available", "status": "True"}]});
    let writer = FieldManager {
        manager: "ctl",
        api_version: "apps/v1",
        subresource: Some("status"),
        schema: &schema,
        now: "2026-01-01T00:00:00Z",
        reset: Some(&all_but_status),
        versions: None,
    };
    writer.update(Some(&old), &mut new);
    assert_eq!(
        managed(&new)[1],
        json!({"manager": "ctl", "operation": "Update", "apiVersion": "apps/v1", "subresource": "status", "time": "2026-01-01T00:00:00Z",
            "fieldsType": "FieldsV1", "fieldsV1": {"f:status": {"f:conditions": {".": {}, "k:{\"type\":\"Available\"}": {".": {}, "f:status": {}, "f:type": {}}}, "f:replicas": {}}}})
    );
    let error = FieldManager { subresource: None, reset: None, manager: "x", ..writer }
        .apply(Some(&new), &json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"}, "status": {"replicas": 3}}), false)
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "Apply failed with 1 conflict: conflict with \"ctl\" with subresource \"status\" using apps/v1: .status.replicas"
    );
}

#[test]
fn resources_without_a_schema_are_deduced() {
    let mut live = Live::custom(&json!({}));
    live.schema = crate::structural::untyped_resource();
    live.apply("a", &json!({"spec": {"deep": {"x": 1}, "list": [1, {"k": "v"}]}}), false).unwrap();
    assert_eq!(
        live.managers()[0].2,
        json!({"f:spec": {".": {}, "f:deep": {".": {}, "f:x": {}}, "f:list": {}}})
    );
    live.apply("b", &json!({"spec": {"deep": {"y": 2}}}), false).unwrap();
    live.apply("a", &json!({"spec": {"list": [2]}}), false).unwrap();
    assert_eq!(*live.spec(), json!({"deep": {"y": 2}, "list": [2]}));
}

#[test]
fn sets_and_atomic_places() {
    let mut live = Live::custom(&json!({
        "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        "atomic": {"type": "object", "x-kubernetes-map-type": "atomic", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}},
        "map": {"type": "object", "additionalProperties": {"type": "object", "properties": {"v": {"type": "integer"}}}}}));
    live.apply("a", &json!({"spec": {"set": ["x", "y"], "atomic": {"a": 1}, "map": {"k": {"v": 1}}}}), false)
        .unwrap();
    assert_eq!(
        live.managers()[0].2,
        json!({"f:spec": {"f:atomic": {}, "f:map": {"f:k": {".": {}, "f:v": {}}}, "f:set": {"v:\"x\"": {}, "v:\"y\"": {}}}})
    );
    assert_eq!(
        live.apply("b", &json!({"spec": {"atomic": {"b": 1}}}), false).unwrap_err(),
        "Apply failed with 1 conflict: conflict with \"a\": .spec.atomic"
    );
    live.apply("b", &json!({"spec": {"set": ["y", "z"]}}), false).unwrap();
    live.apply("a", &json!({"spec": {"set": ["x"], "map": {"k": {"v": 2}}}}), false).unwrap();
    assert_eq!(*live.spec(), json!({"set": ["x", "y", "z"], "map": {"k": {"v": 2}}}));
}

#[test]
fn a_place_that_becomes_atomic_keeps_its_owner() {
    let list = |list_type: &str| {
        json!({"l": {"type": "array", "x-kubernetes-list-type": list_type, "items": {"type": "string"}},
        "other": {"type": "integer"}})
    };
    let mut live = Live::custom(&list("set"));
    live.apply("a", &json!({"spec": {"l": ["x"]}}), false).unwrap();
    assert_eq!(live.managers()[0].2, json!({"f:spec": {"f:l": {"v:\"x\"": {}}}}));
    live.schema = Live::custom(&list("atomic")).schema;
    assert_eq!(
        live.apply("b", &json!({"spec": {"l": ["y"]}}), false).unwrap_err(),
        "Apply failed with 1 conflict: conflict with \"a\": .spec.l"
    );
    live.update("edit", &json!({"spec": {"other": 1}}));
    assert_eq!(live.managers()[0].2, json!({"f:spec": {"f:l": {}}}));
}

#[test]
fn an_object_that_fits_its_schema_no_more_keeps_its_managers() {
    let size = |kind: &str| {
        json!({"size": {"type": kind}, "note": {"type": "string"}, "twice": {"type": "array",
        "x-kubernetes-list-type": "set", "items": {"type": "string"}}})
    };
    let mut live = Live::custom(&size("string"));
    live.apply("a", &json!({"spec": {"size": "x"}}), false).unwrap();
    live.schema = Live::custom(&size("integer")).schema;
    assert_eq!(
        live.apply("a", &json!({"spec": {"note": "n"}}), true).unwrap_err(),
        "failed to create typed live object (default/web; ex.io/v1, Kind=Web): .spec.size: expected numeric (int or float), got string"
    );
    live.update("b", &json!({"spec": {"note": "n"}}));
    assert_eq!(live.managers(), [("a".to_owned(), "Apply".to_owned(), json!({"f:spec": {"f:size": {}}}))]);
    assert_eq!(
        live.apply("a", &json!({"spec": {"note": "n"}}), true).unwrap_err(),
        "failed to create typed live object (default/web; ex.io/v1, Kind=Web): .spec.size: expected numeric (int or float), got string"
    );
    // The old value did not fit, so that nobody owns the new one. An item that is there twice does fit.
    live.update("b", &json!({"spec": {"size": 1, "twice": ["x", "x"]}}));
    live.apply("a", &json!({"spec": {"note": "n"}}), false).unwrap();
    let names: Vec<String> = live.managers().into_iter().map(|entry| entry.0).collect();
    assert_eq!(names, ["a"]);
}

#[test]
fn configurations_that_do_not_fit() {
    let mut live = Live::deployment();
    let cases = [
        (
            json!({"spec": {"foo": 1}}),
            "failed to create typed patch object (default/web; apps/v1, Kind=Deployment): .spec.foo: field not declared in schema",
        ),
        (
            json!({"spec": {"replicas": "x"}}),
            "failed to create typed patch object (default/web; apps/v1, Kind=Deployment): .spec.replicas: expected numeric (int or float), got string",
        ),
        (
            containers(json!([{"name": "a"}, {"name": "a"}])),
            "failed to create typed patch object (default/web; apps/v1, Kind=Deployment): .spec.template.spec.containers: duplicate entries for key [name=\"a\"]",
        ),
        (
            containers(json!([{"name": "a", "resources": {"limits": {"cpu": {"a": "b", "c": [1, "x"]}}}}])),
            "failed to create typed patch object (default/web; apps/v1, Kind=Deployment): .spec.template.spec.containers[name=\"a\"].resources.limits.cpu: expected any scalar, got &{map[a:b c:[1 x]]}",
        ),
        (json!({"metadata": {"managedFields": []}}), "metadata.managedFields must be nil"),
        (
            json!({"apiVersion": "apps/v2"}),
            "Incorrect version specified in apply patch. Specified patch version: apps/v2, expected: apps/v1",
        ),
    ];
    for (config, text) in cases {
        assert_eq!(live.apply("a", &config, false).unwrap_err(), text);
    }
}

#[test]
fn client_side_apply_migrates() {
    let mut live = Live::deployment();
    let last = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "annotations": {}}, "spec": {"replicas": 1}});
    live.update("kubectl-client-side-apply", &json!({"metadata": {"annotations": {LAST_APPLIED: last.to_string()}}, "spec": {"replicas": 1, "paused": true}}));
    live.apply("kubectl", &json!({"spec": {"replicas": 3}}), false).unwrap();
    assert_eq!(live.spec()["replicas"], 3);
    let renewed = meta::annotation(live.object.as_ref().unwrap(), LAST_APPLIED).unwrap();
    assert_eq!(serde_json::from_str::<Value>(renewed).unwrap()["spec"], json!({"replicas": 3}));
    expect![[r#"Apply failed with 1 conflict: conflict with "kubectl-client-side-apply" using apps/v1: .spec.paused"#]]
    .assert_eq(&live.apply("kubectl", &json!({"spec": {"replicas": 3, "paused": false}}), false).unwrap_err());
}

#[test]
fn applying_again_changes_nothing() {
    let mut seed = 7_u64;
    let mut next = |most: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % most
    };
    for _ in 0..120 {
        let mut live = Live::deployment();
        let config = |next: &mut dyn FnMut(u64) -> u64| {
            let mut list = Vec::new();
            for name in ["a", "b", "c", "d"] {
                // An empty list owns nothing and is another story.
                if list.is_empty() || next(2) == 0 {
                    let mut container = json!({"name": name, "image": format!("i{}", next(2))});
                    if next(2) == 0 {
                        container["ports"] = json!([{"containerPort": 80 + next(2), "name": "p"}]);
                    }
                    let place = usize::try_from(next(u64::try_from(list.len()).unwrap() + 1)).unwrap();
                    list.insert(place, container);
                }
            }
            let mut config = containers(Value::Array(list));
            if next(2) == 0 {
                config["spec"]["replicas"] = json!(next(3));
            }
            // Something is always owned: an object without managers is one from before the first apply.
            config["metadata"] = json!({"labels": {format!("l{}", next(3)): "x"}});
            config
        };
        for round in 0..4 {
            let manager = ["a", "b", "c"][usize::try_from(next(3)).unwrap()];
            let wanted = config(&mut next);
            if next(3) == 0 {
                live.update("u", &json!({"spec": {"replicas": next(4)}}));
            }
            live.apply(manager, &wanted, true).unwrap();
            let once = live.object.clone();
            live.apply(manager, &wanted, false).unwrap();
            assert_eq!(live.object, once, "round {round}");
            // Every applied value is there, and its owner owns exactly that.
            let applied = FieldSet::from_value(&live.whole(&wanted), &live.schema).difference(never_owned());
            let owned = live
                .managers()
                .into_iter()
                .find(|(name, operation, _)| name == manager && operation == "Apply");
            match owned {
                Some((_, _, fields)) => assert_eq!(fields, applied.to_fields_v1()),
                None => assert!(applied.is_empty()),
            }
            for path in applied.paths() {
                let place = to_path(&path);
                let (there, wanted) = (place.get(live.object.as_ref().unwrap()), live.whole(&wanted));
                if !path.to_string().ends_with(']') && !path.to_string().contains("ports") {
                    assert_eq!(there, place.get(&wanted), "{path}");
                }
            }
        }
    }
}

#[test]
fn field_sets_survive_the_wire() {
    let fields = json!({"f:a": {".": {}, "f:b": {}}, "f:l": {"k:{\"n\":1,\"p\":\"TCP\"}": {".": {}, "f:n": {}}, "v:\"x\"": {}, "i:3": {}}});
    let set = FieldSet::from_fields_v1(&fields).unwrap();
    assert_eq!(set.to_fields_v1(), fields);
    let shown: Vec<_> = set.paths().iter().map(ToString::to_string).collect();
    assert_eq!(shown, [".a", ".a.b", ".l[n=1,p=\"TCP\"]", ".l[n=1,p=\"TCP\"].n", ".l[=\"x\"]", ".l[3]"]);
    assert!(set.difference(&set).is_empty());
    assert_eq!(set.intersection(&set), set);
    assert_eq!(set.union(&FieldSet::new()), set);
    let top = FieldSet::of_fields(&[&["a"]]);
    assert_eq!(set.difference(&top).to_fields_v1()["f:a"], json!({"f:b": {}}));
    let mut rest = set.clone();
    rest.subtract_whole(&top);
    assert!(rest.to_fields_v1().get("f:a").is_none() && rest.to_fields_v1().get("f:l").is_some());
    assert!(FieldSet::from_fields_v1(&json!({"x": {}})).is_err());
}

/// A place of a field set as a path for reading; the items of a set have none, so it ends at their list.
fn to_path(place: &FieldPath) -> Path {
    let mut segments = Vec::with_capacity(place.0.len());
    for element in &place.0 {
        segments.push(match element {
            Element::Field(name) => Segment::Field(name.clone()),
            Element::Key(keys) => {
                Segment::Key(keys.iter().map(|(name, Atom(value))| (name.clone(), value.clone())).collect())
            }
            Element::Index(index) => Segment::Index(usize::try_from(*index).unwrap_or_default()),
            Element::Value(_) => break,
        });
    }
    Path(segments)
}
