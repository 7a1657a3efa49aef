//! Declarations of CRDs; the real compiler's opinion of them is kept as golden text.

use super::declarations;
use serde_json::{Value, json};

fn crd() -> Value {
    json!({"spec": {"group": "app.example.com", "names": {"kind": "PodSet", "plural": "podsets"}, "versions": [
        {"name": "v1alpha1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
            "type": "object", "description": "PodSet keeps pods.",
            "properties": {
                "apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": {"type": "object"},
                "spec": {"type": "object", "required": ["replicas"], "properties": {
                    "replicas": {"type": "integer", "minimum": 1, "maximum": 10, "description": "How many. */ really"},
                    "mode": {"type": "string", "enum": ["Fast", "Slow"], "default": "Fast"},
                    "port": {"x-kubernetes-int-or-string": true},
                    "labels": {"type": "object", "additionalProperties": {"type": "string"}},
                    "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                    "many": {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}},
                    "deep": {"type": "array", "items": {"type": "object", "properties": {"x-y": {"type": "boolean", "nullable": true}}}},
                    "raw": {"type": "object", "x-kubernetes-embedded-resource": true}}},
                "status": {"type": "object", "properties": {
                    "podNames": {"type": "array", "items": {"type": "string"}},
                    "availableReplicas": {"type": "integer"}}}}}}},
        {"name": "v1beta1", "served": true, "storage": false, "schema": {"openAPIV3Schema": {"type": "object"}}},
        {"name": "v1", "served": false, "storage": false, "schema": {}}]}})
}

#[test]
fn a_kind_becomes_an_interface() {
    let text = declarations(&[crd()]);
    for line in [
        "  export interface PodSet {\n    apiVersion: \"app.example.com/v1alpha1\";\n    kind: \"PodSet\";\n    metadata: ObjectMeta;\n    spec: PodSetSpec;\n    status?: PodSetStatus;\n  }",
        "    /**\n     * How many. *\u{200b}/ really\n     *\n     * at least 1, at most 10\n     */\n    replicas: number;",
        "    /** @default \"Fast\" */\n    mode: \"Fast\" | \"Slow\";",
        "    port?: number | string;",
        "    labels?: {\n      [key: string]: string;\n    };",
        "    free?: {\n      [key: string]: unknown;\n    };",
        "    many?: (\"a\" | \"b\")[];",
        "    deep?: {\n      \"x-y\"?: boolean | null;\n    }[];",
        "    raw?: AnyObject;",
        "  export interface PodSetV1beta1 {",
        "    \"app.example.com/v1alpha1/PodSet\": PodSet;\n    \"app.example.com/v1beta1/PodSet\": PodSetV1beta1;",
        "    podNames?: string[];",
    ] {
        assert!(text.contains(line), "{line}\nis not in\n{text}");
    }
    assert!(!text.contains("app.example.com/v1/PodSet"), "only what is served");
    assert!(text.ends_with('\n'));
}

#[test]
fn names_stay_apart() {
    let other = |group: &str, kind: &str| {
        json!({"spec": {"group": group, "names": {"kind": kind, "plural": "x"}, "versions": [
            {"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}]}})
    };
    let text = declarations(&[
        other("a.io", "Backup"),
        other("b.io", "Backup"),
        other("c.io", "Condition"),
        json!({}),
        json!(null),
    ]);
    for name in ["interface Backup {", "interface BIoBackupV1 {", "interface CIoConditionV1 {"] {
        assert!(text.contains(name), "{name}");
    }
}
