//! Tests: each kind of change with the severity it must have.

#![allow(clippy::needless_pass_by_value, clippy::too_many_lines)]

use super::*;
use expect_test::expect;
use serde_json::json;
use std::sync::Arc;

/// A definition with one version and this schema of `spec`.
pub(super) fn crd(spec: &Value) -> Value {
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.ex.io"},
        "spec": {"group": "ex.io", "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget", "singular": "widget", "listKind": "WidgetList"},
            "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "spec": spec, "status": {"type": "object", "properties": {"ready": {"type": "integer"}}}}}}}]}})
}

fn object(properties: Value) -> Value {
    json!({"type": "object", "properties": properties})
}

fn found(old: &Value, new: &Value) -> Vec<(Severity, Change, String)> {
    compare(Some(&crd(old)), &crd(new)).into_iter().map(|f| (f.severity, f.kind, f.path)).collect()
}

/// The one finding.
#[track_caller]
fn one(old: Value, new: Value) -> (Severity, Change, String) {
    let all = found(&object(json!({"a": old})), &object(json!({"a": new})));
    assert_eq!(all.len(), 1, "{all:?}");
    all.into_iter().next().unwrap()
}

#[track_caller]
fn expect(old: Value, new: Value, severity: Severity, kind: Change) {
    let (got, what, path) = one(old, new);
    assert_eq!((got, what), (severity, kind));
    assert_eq!(path, "spec.a");
}

#[test]
fn constraints_have_a_direction() {
    use Change::*;
    use Severity::*;
    let cases = [
        (json!({"type": "integer"}), json!({"type": "string"}), Break, Type),
        (json!({"x-kubernetes-int-or-string": true}), json!({"type": "integer"}), Break, Type),
        (json!({"type": "integer"}), json!({"x-kubernetes-int-or-string": true}), Warn, TypeWidened),
        (json!({"type": "integer"}), json!({"type": "number"}), Warn, TypeWidened),
        (json!({"type": "number"}), json!({"type": "integer"}), Break, Type),
        (json!({"type": "string"}), json!({"type": "array", "items": {"type": "string"}}), Break, Type),
        (
            object(json!({"x": {"type": "string"}})),
            json!({"type": "object", "additionalProperties": {"type": "string"}}),
            Break,
            Type,
        ),
        (json!({"type": "string"}), json!({"type": "string", "enum": ["A"]}), Break, Enum),
        (
            json!({"type": "string", "enum": ["A", "B"]}),
            json!({"type": "string", "enum": ["A"]}),
            Break,
            Enum,
        ),
        (
            json!({"type": "string", "enum": ["A"]}),
            json!({"type": "string", "enum": ["A", "B"]}),
            Warn,
            EnumWidened,
        ),
        (json!({"type": "string", "enum": ["A"]}), json!({"type": "string"}), Warn, EnumWidened),
        (json!({"type": "string"}), json!({"type": "string", "pattern": "^a"}), Break, Pattern),
        (
            json!({"type": "string", "pattern": "^b"}),
            json!({"type": "string", "pattern": "^a"}),
            Break,
            Pattern,
        ),
        (json!({"type": "string", "pattern": "^b"}), json!({"type": "string"}), Warn, Relaxed),
        (json!({"type": "string"}), json!({"type": "string", "format": "ipv4"}), Break, Pattern),
        (
            json!({"type": "integer", "format": "int64"}),
            json!({"type": "integer", "format": "int32"}),
            Break,
            Pattern,
        ),
        (
            json!({"type": "integer", "format": "int32"}),
            json!({"type": "integer", "format": "int64"}),
            Warn,
            Relaxed,
        ),
        (json!({"type": "integer"}), json!({"type": "integer", "minimum": 1}), Break, Bound),
        (json!({"type": "integer", "minimum": 2}), json!({"type": "integer", "minimum": 1}), Warn, Relaxed),
        (json!({"type": "integer", "maximum": 2}), json!({"type": "integer", "maximum": 1}), Break, Bound),
        (json!({"type": "integer", "maximum": 2}), json!({"type": "integer", "maximum": 3}), Warn, Relaxed),
        (
            json!({"type": "integer", "maximum": 2}),
            json!({"type": "integer", "maximum": 2, "exclusiveMaximum": true}),
            Break,
            Bound,
        ),
        (json!({"type": "integer"}), json!({"type": "integer", "multipleOf": 2}), Break, Bound),
        (
            json!({"type": "integer", "multipleOf": 4}),
            json!({"type": "integer", "multipleOf": 2}),
            Warn,
            Relaxed,
        ),
        (json!({"type": "string", "nullable": true}), json!({"type": "string"}), Break, NullableRemoved),
        (json!({"type": "string"}), json!({"type": "string", "nullable": true}), Warn, NullableAdded),
        (json!({"type": "string"}), json!({"type": "string", "not": {"enum": ["x"]}}), Break, Composition),
        (json!({"type": "string", "allOf": [{"minLength": 1}]}), json!({"type": "string"}), Warn, Relaxed),
        (json!({"type": "string"}), json!({"type": "string", "default": "x"}), Warn, Default),
        (json!({"type": "string", "default": "y"}), json!({"type": "string", "default": "x"}), Warn, Default),
        (json!({"type": "string"}), json!({"type": "string", "description": "x"}), Info, Documentation),
        (json!({"type": "string"}), json!({"type": "string", "x-other": 1}), Warn, Unknown),
        (
            json!({"type": "string"}),
            json!({"type": "string", "x-kubernetes-validations": [{"rule": "self != ''"}]}),
            Break,
            Rule,
        ),
        (
            json!({"type": "string", "x-kubernetes-validations": [{"rule": "self != ''"}]}),
            json!({"type": "string"}),
            Warn,
            Relaxed,
        ),
        (
            json!({"type": "string", "x-kubernetes-validations": [{"rule": "self != ''", "message": "a"}]}),
            json!({"type": "string", "x-kubernetes-validations": [{"rule": "self != ''", "message": "b"}]}),
            Info,
            Documentation,
        ),
        (
            json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}),
            json!({"type": "object"}),
            Loss,
            UnknownFieldsPruned,
        ),
        (
            json!({"type": "object"}),
            json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}),
            Warn,
            Relaxed,
        ),
        (
            json!({"type": "object"}),
            json!({"type": "object", "x-kubernetes-map-type": "atomic"}),
            Warn,
            Topology,
        ),
    ];
    for (old, new, severity, kind) in cases {
        expect(old, new, severity, kind);
    }
}

#[test]
fn lists_change_their_kind() {
    let list = |kind: &str| {
        let mut schema = json!({"type": "array", "items": object(json!({"n": {"type": "string"}, "m": {"type": "string"}}))});
        if !kind.is_empty() {
            schema["x-kubernetes-list-type"] = json!(kind);
        }
        if kind == "map" {
            schema["x-kubernetes-list-map-keys"] = json!(["n"]);
        }
        schema
    };
    expect(list(""), list("map"), Severity::Break, Change::ListType);
    expect(list("map"), list(""), Severity::Warn, Change::Topology);
    assert!(found(&object(json!({"a": list("")})), &object(json!({"a": list("atomic")}))).is_empty());
    let mut other = list("map");
    other["x-kubernetes-list-map-keys"] = json!(["m"]);
    expect(list("map"), other, Severity::Break, Change::MapKeys);
}

#[test]
fn fields_come_and_go() {
    let text = || json!({"type": "string"});
    let with = |required: Value, properties: Value| json!({"type": "object", "required": required, "properties": properties});
    let all = found(&object(json!({"a": text()})), &object(json!({})));
    assert_eq!(all, [(Severity::Loss, Change::PropertyRemoved, "spec.a".to_owned())]);
    let all = found(&object(json!({})), &object(json!({"a": text()})));
    assert_eq!(all, [(Severity::Info, Change::PropertyAdded, "spec.a".to_owned())]);
    let all = found(&with(json!([]), json!({})), &with(json!(["a"]), json!({"a": text()})));
    assert_eq!(all[0], (Severity::Break, Change::Required, "spec.a".to_owned()));
    let defaulted = json!({"type": "string", "default": "x"});
    let all = found(&with(json!([]), json!({})), &with(json!(["a"]), json!({"a": defaulted})));
    assert_eq!(all[0], (Severity::Warn, Change::Required, "spec.a".to_owned()));
    let all = found(&with(json!(["a"]), json!({"a": defaulted})), &with(json!(["a"]), json!({"a": text()})));
    assert_eq!(all[0], (Severity::Break, Change::RequiredDefaultRemoved, "spec.a".to_owned()));
    let all = found(&with(json!(["a"]), json!({"a": text()})), &with(json!([]), json!({"a": text()})));
    assert_eq!(all, [(Severity::Warn, Change::Relaxed, "spec.a".to_owned())]);
}

#[test]
fn a_renamed_field_is_told_from_a_removed_one() {
    let size = |words: &str| json!({"type": "integer", "format": "int32", "description": words});
    let old = object(json!({"replicas": size("How many pods"), "image": {"type": "string"}}));
    let new = object(json!({"replicaCount": size("How many pods"), "image": {"type": "string"}}));
    let all = compare(Some(&crd(&old)), &crd(&new));
    assert_eq!(all[0].kind, Change::PropertyRenamed);
    assert_eq!(all[0].severity, Severity::Loss);
    assert_eq!(all[0].renamed_to.as_deref(), Some("spec.replicaCount"));
    assert!(all[0].what.starts_with("renamed replicas → replicaCount: stored values of replicas are lost"));
    let other = object(json!({"hostname": {"type": "string"}, "image": {"type": "string"}}));
    let all = compare(Some(&crd(&old)), &crd(&other));
    assert_eq!((all[0].kind, &all[0].renamed_to), (Change::PropertyRemoved, &None));
    let moved =
        object(json!({"image": {"type": "string"}, "scaling": object(json!({"replicas": size("x")}))}));
    let all = compare(Some(&crd(&old)), &crd(&moved));
    assert_eq!(all[0].kind, Change::PropertyMoved);
    assert_eq!(all[0].renamed_to.as_deref(), Some("spec.scaling.replicas"));
}

#[test]
fn what_stands_around_the_schema() {
    use Change::*;
    use Severity::*;
    let base = crd(&object(json!({"a": {"type": "string"}})));
    let change = |pointer: &str, value: Value| {
        let mut new = base.clone();
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        new.pointer_mut(parent).unwrap()[key] = value;
        compare(Some(&base), &new).into_iter().map(|f| (f.severity, f.kind)).collect::<Vec<_>>()
    };
    assert_eq!(change("/spec/group", json!("other.io")), [(Block, Identity)]);
    assert_eq!(change("/spec/scope", json!("Cluster")), [(Block, Identity)]);
    assert_eq!(change("/spec/names/kind", json!("Thing"))[0], (Block, Identity));
    assert_eq!(change("/spec/names/plural", json!("things")), [(Block, Identity)]);
    assert_eq!(change("/spec/names/shortNames", json!(["w"])), [(Warn, Names)]);
    assert_eq!(change("/spec/names/listKind", json!("Ws")), [(Warn, Names)]);
    assert_eq!(change("/spec/conversion", json!({"strategy": "Webhook"})), [(Warn, Conversion)]);
    assert_eq!(change("/spec/versions/0/deprecated", json!(true)), [(Warn, Deprecated)]);
    assert_eq!(change("/spec/versions/0/subresources", json!({})), [(Break, StatusSubresource)]);
    let scale =
        json!({"status": {}, "scale": {"specReplicasPath": ".spec.a", "statusReplicasPath": ".status.b"}});
    assert_eq!(change("/spec/versions/0/subresources", scale), [(Info, Scale)]);
    assert_eq!(
        change("/spec/versions/0/selectableFields", json!([{"jsonPath": ".spec.a"}])),
        [(Info, SelectableField)]
    );
    let columns = json!([{"name": "A", "type": "string", "jsonPath": ".spec.a"}]);
    assert_eq!(change("/spec/versions/0/additionalPrinterColumns", columns), [(Info, Column)]);
    assert_eq!(change("/spec/versions/0/served", json!(false)), [(Block, Refused), (Break, Unserved)]);
    assert_eq!(change("/spec/versions/0/storage", json!(false))[0], (Block, Refused));
    assert_eq!(change("/spec/odd", json!(1)), [(Warn, Unknown)]);
    assert_eq!(change("/metadata/labels", json!({"a": "b"})), [(Info, Metadata)]);
    let mut versions = vec![base["spec"]["versions"][0].clone(), base["spec"]["versions"][0].clone()];
    versions[1]["name"] = json!("v2");
    versions[1]["storage"] = json!(false);
    assert_eq!(change("/spec/versions", json!(versions)), [(Info, VersionAdded)]);
    versions[0]["storage"] = json!(false);
    versions[1]["storage"] = json!(true);
    assert_eq!(change("/spec/versions", json!(versions)), [(Info, StorageVersion), (Info, VersionAdded)]);
    versions[1]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"] = json!({});
    assert_eq!(change("/spec/versions", json!(versions))[0], (Loss, StorageVersion));
    assert_eq!(change("/spec/versions", json!([versions[1]]))[0], (Block, StoredVersionRemoved));
}

#[test]
fn the_same_meaning_is_no_difference() {
    let base = crd(&object(json!({"a": {"type": "string", "minLength": 1}})));
    let mut server = base.clone();
    server["status"] = json!({"storedVersions": ["v1"], "conditions": [{"type": "Established"}]});
    server["metadata"]["annotations"] =
        json!({"controller-gen.kubebuilder.io/version": "v0.18.0", "else": "1"});
    server["metadata"]["uid"] = json!("1");
    server["spec"]["conversion"] = json!({"strategy": "None"});
    server["spec"]["preserveUnknownFields"] = json!(false);
    let schema = "/spec/versions/0/schema/openAPIV3Schema/properties/spec";
    server.pointer_mut(schema).unwrap()["properties"]["a"]["minLength"] = json!(1.0);
    server.pointer_mut(schema).unwrap()["required"] = json!([]);
    assert!(same(&server, &base));
    assert!(compare(Some(&server), &base).is_empty());
    let mut wanted = base.clone();
    wanted["metadata"]["labels"] = json!({"new": "1"});
    assert!(!same(&server, &wanted));
    wanted = base.clone();
    wanted.pointer_mut(schema).unwrap()["description"] = json!("words");
    assert!(!same(&server, &wanted));
}

fn widget(name: &str, spec: Value) -> Arc<Value> {
    Arc::new(json!({"apiVersion": "ex.io/v1", "kind": "Widget",
        "metadata": {"name": name, "namespace": "default"}, "spec": spec}))
}

#[test]
fn objects_decide_how_bad_it_is() {
    let old = crd(&object(json!({"a": {"type": "string"}, "b": {"type": "integer"}})));
    let new = crd(&object(json!({"a": {"type": "string", "enum": ["x"]}})));
    let fit = widget("fit", json!({"a": "x"}));
    let odd = widget("odd", json!({"a": "y", "b": 3}));
    let mut findings = compare(Some(&old), &new);
    let all = live(Some(&old), &new, &[fit.clone(), odd], &mut findings);
    assert_eq!(all.broken.len(), 1);
    assert_eq!(all.broken[0].object.to_string(), "Widget default/odd");
    assert_eq!(all.broken[0].path, "spec.a");
    assert!(all.broken[0].untouched_update_passes);
    assert_eq!(
        all.lost,
        [Lost {
            object: all.broken[0].object.clone(),
            path: "spec.b".to_owned(),
            value: "integer".to_owned()
        }]
    );
    assert_eq!((findings[0].severity, findings[0].objects), (Severity::Loss, Some(1)));
    assert!(findings[0].what.ends_with("; 1 object loses it"), "{}", findings[0].what);
    assert_eq!((findings[1].severity, findings[1].objects), (Severity::Break, Some(1)));
    assert!(
        findings[1].what.ends_with("; 1 object no longer fits: Widget default/odd"),
        "{}",
        findings[1].what
    );
    let mut findings = compare(Some(&old), &new);
    let all = live(Some(&old), &new, &[fit], &mut findings);
    assert_eq!(all, Live::default());
    assert!(findings.iter().all(|finding| finding.severity == Severity::Warn));
    assert!(findings.iter().any(|f| f.what.ends_with("the one object does not have it: nothing to lose")));
    assert!(findings.iter().any(|f| f.what.ends_with("the one object there is still fits")));
}

#[test]
fn the_api_server_would_refuse_it() {
    assert!(check(&crd(&object(json!({"a": {"type": "string"}})))).is_empty());
    let wrong = check(&crd(&object(json!({"a": {}}))));
    assert_eq!((wrong[0].severity, wrong[0].version.as_str()), (Severity::Block, "v1"));
    assert_eq!(wrong[0].path, "spec.validation.openAPIV3Schema.properties[spec].properties[a].type");
}

#[test]
fn rules_are_part_of_the_check() {
    let with = |rule: &str| {
        let mut spec = object(
            json!({"replicas": {"type": "integer"}, "l": {"type": "array", "items": {"type": "string"}}}),
        );
        spec["x-kubernetes-validations"] = json!([{"rule": rule}]);
        check(&crd(&spec))
    };
    assert!(with("self.replicas > 0").is_empty());
    let wrong = with("self.replica > 0");
    assert_eq!((wrong[0].severity, wrong[0].version.as_str()), (Severity::Block, "v1"));
    expect![[r#"
        Invalid value: {"Rule":"self.replica \u003e 0","Message":"","MessageExpression":"","Reason":null,"FieldPath":"","OptionalOldSelf":null}: compilation failed: ERROR: <input>:1:5: undefined field 'replica'
         | self.replica > 0
         | ....^ (did you mean replicas?)"#]]
    .assert_eq(&wrong[0].what);
    assert!(wrong[0].what.ends_with("(did you mean replicas?)"), "{}", wrong[0].what);
    let dear = with("self.l.all(x, self.l.all(y, x != y))");
    assert_eq!((dear[0].severity, dear[0].kind), (Severity::Block, Change::Expensive));
}

#[test]
fn rules_break_live_objects() {
    let plain = object(json!({"a": {"type": "integer"}}));
    let mut ruled = plain.clone();
    ruled["x-kubernetes-validations"] = json!([{"rule": "self.a > 3", "message": "a is too small"}]);
    let (old, new) = (crd(&plain), crd(&ruled));
    let mut findings = compare(Some(&old), &new);
    let all = live(
        Some(&old),
        &new,
        &[widget("low", json!({"a": 1})), widget("high", json!({"a": 5}))],
        &mut findings,
    );
    assert_eq!(all.broken.len(), 1);
    assert_eq!(all.broken[0].message, "Invalid value: a is too small");
    assert!(all.broken[0].untouched_update_passes);
    assert_eq!(
        (findings[0].severity, findings[0].kind, findings[0].objects),
        (Severity::Break, Change::Rule, Some(1))
    );
}
