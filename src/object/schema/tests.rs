//! Pruning, defaulting, validation and structural checks, case by case.

use super::*;
use crate::facts::facts;
use crate::meta::Gvk;
use crate::structural::{schema_of, structural};
use serde_json::{Value, json};

fn spec(schema: Value) -> SchemaRef {
    structural(&json!({"type": "object", "properties": {"spec": schema}})).unwrap()
}

fn errors(schema: Value, value: Value) -> Vec<String> {
    let object = json!({"apiVersion": "ex.io/v1", "kind": "Web", "metadata": {"name": "a"}, "spec": value});
    validate(&object, &spec(schema)).iter().map(ToString::to_string).collect()
}

#[test]
fn numbers() {
    let n = json!({"type": "object", "properties": {"n": {"type": "integer", "minimum": 1, "maximum": 5}}});
    assert_eq!(
        errors(n.clone(), json!({"n": 0})),
        ["spec.n: Invalid value: 0: spec.n in body should be greater than or equal to 1"]
    );
    assert_eq!(
        errors(n.clone(), json!({"n": 6})),
        ["spec.n: Invalid value: 6: spec.n in body should be less than or equal to 5"]
    );
    assert_eq!(
        errors(n.clone(), json!({"n": "x"})),
        ["spec.n: Invalid value: \"string\": spec.n in body must be of type integer: \"string\""]
    );
    assert_eq!(
        errors(n.clone(), json!({"n": 1.5})),
        [
            "spec.n: Invalid value: \"number\": spec.n in body must be of type integer: \"number\"",
            "<nil>: Invalid value: \"\": Checked value must be of type integer (default format) in spec.n",
        ]
    );
    assert!(errors(n, json!({"n": 2.0})).is_empty());
    let x = json!({"type": "object", "properties": {
        "x": {"type": "number", "exclusiveMinimum": true, "minimum": 0.5, "multipleOf": 0.1},
        "i": {"type": "integer", "format": "int32"}}});
    assert_eq!(
        errors(x.clone(), json!({"x": 0.5})),
        ["spec.x: Invalid value: 0.5: spec.x in body should be greater than 0.5"]
    );
    assert_eq!(
        errors(x.clone(), json!({"x": 0.75})),
        ["spec.x: Invalid value: 0.75: spec.x in body should be a multiple of 0.1"]
    );
    assert_eq!(
        errors(x, json!({"i": 3_000_000_000_i64})),
        ["<nil>: Invalid value: \"\": Checked value must be of type integer with format int32 in spec.i"]
    );
    let ratio = json!({"type": "object", "properties": {
        "ratio": {"type": "number", "multipleOf": 0.25, "maximum": 2, "exclusiveMaximum": true}}});
    assert_eq!(
        errors(ratio, json!({"ratio": 3})),
        [
            "spec.ratio: Invalid value: 0: factor MultipleOf declared for spec.ratio must be positive: 0",
            "spec.ratio: Invalid value: 3: spec.ratio in body should be less than 2",
        ]
    );
}

#[test]
fn strings() {
    let s = json!({"type": "object", "properties": {
        "mode": {"type": "string", "enum": ["A", "B"]},
        "name": {"type": "string", "pattern": "^[a-z]+$", "maxLength": 3},
        "least": {"type": "string", "minLength": 2},
        "when": {"type": "string", "format": "date-time"}}});
    let cases = [
        (json!({"mode": "x"}), "spec.mode: Unsupported value: \"x\": supported values: \"A\", \"B\""),
        (
            json!({"name": "ABC"}),
            "spec.name: Invalid value: \"ABC\": spec.name in body should match '^[a-z]+$'",
        ),
        (json!({"name": "abcd"}), "spec.name: Too long: may not be more than 3 bytes"),
        (
            json!({"least": "a"}),
            "spec.least: Invalid value: \"a\": spec.least in body should be at least 2 chars long",
        ),
        (
            json!({"when": "x"}),
            "spec.when: Invalid value: \"x\": spec.when in body must be of type date-time: \"x\"",
        ),
    ];
    for (value, text) in cases {
        assert_eq!(errors(s.clone(), value), [text]);
    }
    assert!(
        errors(
            s,
            json!({"mode": "A", "name": "äöü".replace(['ä', 'ö', 'ü'], "a"), "when": "2026-01-01T00:00:00Z"})
        )
        .is_empty()
    );
}

#[test]
fn lists_objects_and_required() {
    let s = json!({"type": "object", "required": ["a", "b"], "minProperties": 2, "maxProperties": 3, "properties": {
        "a": {"type": "array", "minItems": 1, "maxItems": 2, "items": {"type": "string"}},
        "b": {"type": "string"},
        "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        "map": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
                "items": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}}},
        "more": {"type": "object", "additionalProperties": {"type": "integer"}}}});
    let cases = [
        (
            json!({"a": ["x"]}),
            vec![
                "spec: Invalid value: 1: spec in body should have at least 2 properties",
                "spec.b: Required value",
            ],
        ),
        (
            json!({"a": [], "b": "x"}),
            vec!["spec.a: Invalid value: 0: spec.a in body should have at least 1 items"],
        ),
        (json!({"a": ["1", "2", "3"], "b": "x"}), vec!["spec.a: Too many: 3: must have at most 2 items"]),
        (
            json!({"a": [1], "b": "x"}),
            vec![
                "spec.a[0]: Invalid value: \"integer\": spec.a[0] in body must be of type string: \"integer\"",
            ],
        ),
        (json!({"a": ["1"], "b": "x", "set": ["q", "q", "q"]}), vec!["spec.set[1]: Duplicate value: \"q\""]),
        (
            json!({"a": ["1"], "b": "x", "map": [{"name": "n"}, {"name": "n"}]}),
            vec!["spec.map[1]: Duplicate value: {\"name\":\"n\"}"],
        ),
        (
            json!({"a": ["1"], "b": "x", "more": {"k": "v"}}),
            vec![
                "spec.more.k: Invalid value: \"string\": spec.more.k in body must be of type integer: \"string\"",
            ],
        ),
        (
            json!({"a": ["1"], "b": null}),
            vec!["spec.b: Invalid value: \"null\": spec.b in body must be of type string: \"null\""],
        ),
    ];
    for (value, texts) in cases {
        assert_eq!(errors(s.clone(), value), texts);
    }
}

#[test]
fn combinations() {
    let s = json!({"type": "object", "properties": {
        "a": {"type": "string"}, "b": {"type": "string"}, "p": {"x-kubernetes-int-or-string": true}},
        "oneOf": [{"required": ["a"]}, {"required": ["b"]}]});
    assert_eq!(
        errors(s.clone(), json!({})),
        [
            "<nil>: Invalid value: \"\": \"spec\" must validate one and only one schema (oneOf). Found none valid",
            "spec.a: Required value",
        ]
    );
    assert_eq!(
        errors(s.clone(), json!({"a": "", "b": ""})),
        [
            "<nil>: Invalid value: \"\": \"spec\" must validate one and only one schema (oneOf). Found 2 valid alternatives"
        ]
    );
    assert!(errors(s.clone(), json!({"a": "", "p": 1})).is_empty());
    assert!(errors(s.clone(), json!({"a": "", "p": "50%"})).is_empty());
    assert_eq!(
        errors(s, json!({"a": "", "p": true})),
        ["spec.p: Invalid value: \"boolean\": spec.p in body must be of type integer,string: \"boolean\""]
    );
    let not = json!({"type": "object", "properties": {"a": {"type": "integer", "not": {"enum": [3]}}},
        "anyOf": [{"required": ["a"]}, {"required": ["b"]}], "allOf": [{"required": ["c"]}]});
    assert_eq!(
        errors(not.clone(), json!({"a": 3, "c": 1})),
        ["<nil>: Invalid value: \"\": \"spec.a\" must not validate the schema (not)"]
    );
    assert_eq!(
        errors(not, json!({})),
        [
            "<nil>: Invalid value: \"\": \"spec\" must validate at least one schema (anyOf)",
            "spec.a: Required value",
            "spec.c: Required value",
            "<nil>: Invalid value: \"\": \"spec\" must validate all the schemas (allOf). None validated",
        ]
    );
}

#[test]
fn unknown_fields_go_and_are_named() {
    let schema = spec(json!({"type": "object", "properties": {
        "known": {"type": "object", "properties": {"x": {"type": "string"}}},
        "list": {"type": "array", "items": {"type": "object", "properties": {"x": {"type": "string"}}}},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true,
                 "properties": {"typed": {"type": "object", "properties": {"x": {"type": "string"}}}}},
        "map": {"type": "object", "additionalProperties": {"type": "object", "properties": {"x": {"type": "string"}}}},
        "inner": {"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true}}}));
    let mut value = json!({"apiVersion": "a/v1", "kind": "K", "top": 1,
        "metadata": {"name": "n", "labels": {"a.b/c": "d"}, "odd": 1},
        "spec": {"foo": 1, "known": {"x": "1", "y": 2}, "list": [{"x": "1"}, {"z": {}}],
                 "free": {"any": {"thing": 1}, "typed": {"x": "1", "y": 1}}, "map": {"k": {"x": "1", "w": 1}},
                 "inner": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"any": 1}}}});
    let dropped = prune(&mut value, &schema);
    assert_eq!(
        dropped,
        [
            "metadata.odd",
            "spec.foo",
            "spec.free.typed.y",
            "spec.known.y",
            "spec.list[1].z",
            "spec.map.k.w",
            "top"
        ]
    );
    assert_eq!(value["spec"]["free"], json!({"any": {"thing": 1}, "typed": {"x": "1"}}));
    assert_eq!(value["spec"]["inner"]["spec"], json!({"any": 1}));
    assert_eq!(value["metadata"]["labels"], json!({"a.b/c": "d"}));
}

#[test]
fn built_in_kinds_are_pruned_by_the_facts() {
    let schema = facts().schema(&Gvk::new("apps", "v1", "Deployment")).unwrap();
    let mut value = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"},
        "spec": {"foo": 1, "template": {"spec": {"containers": [{"name": "a", "bar": 1, "ports": [{"containerPort": 80}]}]}}}});
    assert_eq!(prune(&mut value, &schema), ["spec.foo", "spec.template.spec.containers[0].bar"]);
    let crd = facts().schema(&Gvk::new("apiextensions.k8s.io", "v1", "CustomResourceDefinition")).unwrap();
    let mut value = json!({"spec": {"versions": [{"name": "v1", "schema": {"openAPIV3Schema": {
        "type": "object", "properties": {"a": {"default": {"x": [1]}, "items": {"type": "string"}, "odd": 1}}}}}]}});
    assert_eq!(prune(&mut value, &crd), ["spec.versions[0].schema.openAPIV3Schema.properties.a.odd"]);
}

#[test]
fn defaults_are_filled_in() {
    let schema = spec(json!({"type": "object", "default": {}, "properties": {
        "n": {"type": "integer", "default": 1},
        "s": {"type": "string", "nullable": true, "default": "x"},
        "plain": {"type": "string"},
        "o": {"type": "object", "properties": {"d": {"type": "string", "default": "deep"}}},
        "l": {"type": "array", "items": {"type": "object", "properties": {"d": {"type": "string", "default": "item"}}}}}}));
    let cases = [
        (json!({}), json!({"spec": {"n": 1, "s": "x"}})),
        (json!({"spec": {"n": null, "s": null, "plain": null}}), json!({"spec": {"n": 1, "s": null}})),
        (
            json!({"spec": {"o": {}, "l": [{}, {"d": "q"}]}}),
            json!({"spec": {"n": 1, "s": "x", "o": {"d": "deep"}, "l": [{"d": "item"}, {"d": "q"}]}}),
        ),
    ];
    for (mut value, expected) in cases {
        default(&mut value, &schema);
        assert_eq!(value, expected);
    }
    let typed = spec(json!({"type": "object", "properties": {"plain": {"type": "string"},
        "map": {"type": "object", "additionalProperties": {"type": "string"}}}}));
    let given = json!({"spec": {"plain": null, "map": {"other": null, "more": "x"}}});
    let (mut read, mut applied) = (given.clone(), given.clone());
    default(&mut read, &typed);
    default_of_applied(&mut applied, &typed);
    assert_eq!((read, applied), (json!({"spec": {"map": {"more": "x"}}}), given), "an apply keeps null");
    let config_map = facts().schema(&Gvk::new("", "v1", "ConfigMap")).unwrap();
    let mut value = json!({"data": {"a": null, "b": "c"}, "immutable": null});
    default(&mut value, &config_map);
    assert_eq!(value, json!({"data": {"a": "", "b": "c"}, "metadata": {}}));
}

#[test]
fn metadata_may_restrict_names_only() {
    let schema = structural(&json!({"type": "object", "properties": {
        "metadata": {"type": "object", "properties": {"name": {"type": "string", "maxLength": 3}}}}}))
    .unwrap();
    let object = |name: &str| json!({"metadata": {"name": name, "labels": {"a": "b"}}});
    assert!(validate(&object("abc"), &schema).is_empty());
    let texts: Vec<_> = validate(&object("abcd"), &schema).iter().map(ToString::to_string).collect();
    assert_eq!(texts, ["metadata.name: Too long: may not be more than 3 bytes"]);
    assert!(prune(&mut object("abc"), &schema).is_empty());
}

#[test]
fn schemas_that_are_not_structural() {
    let cases = [
        (json!({}), "type: Required value: must not be empty at the root"),
        (json!({"type": "string"}), "type: Invalid value: \"string\": must be object at the root"),
        (
            json!({"type": "object", "properties": {"a": {}}}),
            "properties[a].type: Required value: must not be empty for specified object fields",
        ),
        (
            json!({"type": "object", "properties": {"a": {"type": "array"}}}),
            "properties[a].items: Required value: must be specified",
        ),
        (
            json!({"type": "object", "anyOf": [{"type": "object"}]}),
            "anyOf[0].type: Forbidden: must be empty to be structural",
        ),
        (
            json!({"type": "object", "additionalProperties": {"type": "string"}}),
            "additionalProperties: Forbidden: must not be used at the root",
        ),
        (
            json!({"type": "object", "properties": {"a": {"type": "array", "uniqueItems": true, "items": {"type": "string"}}}}),
            "properties[a].uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime complexity becomes quadratic",
        ),
        (
            json!({"type": "object", "properties": {"metadata": {"type": "object", "properties": {"labels": {"type": "object"}}}}}),
            "properties[metadata]: Forbidden: must not specify anything other than name and generateName, but metadata is implicitly specified",
        ),
        (
            json!({"type": "object", "properties": {"a": {"type": "string", "default": 5}}}),
            "properties[a].default: Invalid value: \"integer\":  in body must be of type string: \"integer\"",
        ),
        (
            json!({"type": "object", "properties": {"a": {"$ref": "#/x", "type": "string"}}}),
            "properties[a].$ref: Forbidden: $ref is not supported",
        ),
        (
            json!({"type": "object", "properties": {"l": {"type": "array", "x-kubernetes-list-type": "map", "items": {"type": "object", "properties": {"n": {"type": "string"}}},
            "x-kubernetes-list-map-keys": ["n"]}}}),
            "properties[l].items.properties[n].default: Required value: this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property",
        ),
    ];
    for (schema, text) in cases {
        let errors = structural(&schema).unwrap_err();
        assert_eq!(errors.iter().map(ToString::to_string).collect::<Vec<_>>(), [text], "{schema}");
    }
    let placed =
        schema_of("spec.versions[0].schema.openAPIV3Schema", &json!({}), |_, _| Ok(None)).unwrap_err();
    assert_eq!(placed[0].path, "spec.versions[0].schema.openAPIV3Schema.type");
}
