//! The `components.schemas` of a document: every definition its paths name, and what those name in turn.
//! Built-in definitions come from the facts; custom ones from the resource. Descriptions of what is built in
//! are those of Kubernetes.

use opdev_apimachinery::resource::{Custom, Resource};
use opdev_object::descriptions::Descriptions;
use opdev_object::facts::{facts, removed};
use opdev_object::meta::Gvk;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1";

/// A kind whose fields `apiVersion`, `kind` and `metadata` are described as those of all kinds are.
const ANY_KIND: &str = "io.k8s.api.core.v1.Pod";
const ANY_LIST: &str = "io.k8s.api.core.v1.PodList";
const CONVENTIONS: &str =
    "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md";

/// Collects the definitions that a document needs.
pub(crate) struct Wanted<'a> {
    descriptions: &'a Descriptions,
    open: Vec<String>,
    own: BTreeMap<String, Value>,
}

impl<'a> Wanted<'a> {
    pub(super) fn new(descriptions: &'a Descriptions) -> Self {
        Wanted { descriptions, open: Vec::new(), own: BTreeMap::new() }
    }

    /// A schema with the description that a field of all kinds has.
    fn usual(&self, of: &str, field: &str, mut schema: Value) -> Value {
        if let Some(text) = self.descriptions.field(of, field) {
            schema["description"] = text.into();
        }
        schema
    }

    /// A reference to a kind of `meta.k8s.io`, such as `DeleteOptions`.
    pub(super) fn meta(&mut self, kind: &str) -> Value {
        self.reference(format!("{META}.{kind}"))
    }

    /// A reference to what the resource's objects look like.
    pub(super) fn object(&mut self, resource: &Resource) -> Value {
        match &resource.custom {
            Some(custom) => {
                let name = custom_name(resource, &resource.kind);
                if !self.own.contains_key(&name) {
                    let schema = self.custom_object(resource, custom);
                    self.own.insert(name.clone(), schema);
                }
                pointer(&name)
            }
            None => self.kind(&resource.gvk()),
        }
    }

    /// A reference to lists of the resource.
    pub(super) fn list(&mut self, resource: &Resource) -> Value {
        if resource.custom.is_none() {
            return self.kind(&Gvk::new(&resource.group, &resource.version, &resource.list_kind));
        }
        let name = custom_name(resource, &resource.list_kind);
        let item = self.object(resource);
        let metadata = self.meta("ListMeta");
        let kind = json!({"group": resource.group, "version": resource.version, "kind": resource.list_kind});
        self.own.insert(
            name.clone(),
            json!({
                "type": "object",
                "description": format!("{} is a list of {}", resource.list_kind, resource.kind),
                "required": ["items"],
                "properties": {
                    "apiVersion": self.usual(ANY_LIST, "apiVersion", json!({"type": "string"})),
                    "kind": self.usual(ANY_LIST, "kind", json!({"type": "string"})),
                    "metadata": self.usual(ANY_LIST, "metadata", json!({"allOf": [metadata]})),
                    "items": {
                        "description": format!("List of {}. More info: {CONVENTIONS}", resource.plural),
                        "type": "array",
                        "items": item,
                    },
                },
                "x-kubernetes-group-version-kind": [kind],
            }),
        );
        pointer(&name)
    }

    /// A reference to a built-in kind; an open object where the facts do not have it.
    pub(super) fn kind(&mut self, gvk: &Gvk) -> Value {
        match facts().definition_name(gvk) {
            Some(name) => self.reference(name.to_owned()),
            None => json!({"type": "object"}),
        }
    }

    fn reference(&mut self, name: String) -> Value {
        let pointer = pointer(&name);
        self.open.push(name);
        pointer
    }

    fn custom_object(&mut self, resource: &Resource, custom: &Custom) -> Value {
        let metadata = self.meta("ObjectMeta");
        let mut schema = match custom.open_api_schema.as_deref() {
            Some(schema) if !custom.preserve_unknown_fields => schema.clone(),
            _ => json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}),
        };
        self.fill_embedded(&mut schema);
        let gvk = json!({"group": resource.group, "version": resource.version, "kind": resource.kind});
        schema["x-kubernetes-group-version-kind"] = json!([gvk]);
        if !schema["properties"].is_object() {
            schema["properties"] = json!({});
        }
        schema["properties"]["apiVersion"] = self.usual(ANY_KIND, "apiVersion", json!({"type": "string"}));
        schema["properties"]["kind"] = self.usual(ANY_KIND, "kind", json!({"type": "string"}));
        schema["properties"]["metadata"] = self.usual(ANY_KIND, "metadata", json!({"allOf": [metadata]}));
        schema
    }

    /// Embedded resources have the three fields of every object.
    fn fill_embedded(&mut self, schema: &mut Value) {
        if schema["x-kubernetes-embedded-resource"] == true {
            let metadata = self.meta("ObjectMeta");
            if !schema["properties"].is_object() {
                schema["properties"] = json!({});
            }
            schema["properties"]["apiVersion"] = json!({"type": "string"});
            schema["properties"]["kind"] = json!({"type": "string"});
            schema["properties"]["metadata"] = metadata;
            if !schema["required"].is_array() {
                schema["required"] = json!([]);
            }
            for name in ["kind", "apiVersion"] {
                match schema["required"].as_array_mut() {
                    Some(required) if !required.iter().any(|one| one == name) => required.push(name.into()),
                    _ => {}
                }
            }
        }
        if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
            properties.values_mut().for_each(|property| self.fill_embedded(property));
        }
        for below in ["items", "additionalProperties"] {
            if let Some(inner) = schema.get_mut(below).filter(|inner| inner.is_object()) {
                self.fill_embedded(inner);
            }
        }
    }

    /// All that was asked for, with what it refers to. Kinds that every group has a version of, such as
    /// `DeleteOptions`, keep only the marks of this group and version.
    pub(crate) fn into_schemas(self, group: &str, version: &str) -> Map<String, Value> {
        let mut done: BTreeMap<String, Value> = self.own;
        let mut open = self.open;
        while let Some(name) = open.pop() {
            if done.contains_key(&name) {
                continue;
            }
            let Some(raw) = facts().raw(&name) else { continue };
            let mut schema = rewritten(&described(raw, &name, self.descriptions), &mut open);
            if let Some(marks) =
                schema.get_mut("x-kubernetes-group-version-kind").and_then(Value::as_array_mut)
            {
                // A version that is gone shares the definitions of the one that stayed.
                if let Some(gone) = removed::removed(group, version) {
                    let of_group =
                        |mark: &&mut Value| mark["group"] == group && mark["version"] == gone.stayed;
                    marks.iter_mut().filter(of_group).for_each(|mark| mark["version"] = version.into());
                }
                if marks.len() > 1 {
                    marks.retain(|mark| mark["group"] == group && mark["version"] == version);
                }
            }
            done.insert(name, schema);
        }
        done.into_iter().collect()
    }
}

/// A definition with what is said about it and its fields.
fn described(raw: &Value, name: &str, descriptions: &Descriptions) -> Value {
    let mut schema = raw.clone();
    if let Some(text) = descriptions.definition(name) {
        schema["description"] = text.into();
    }
    let properties = schema.get_mut("properties").and_then(Value::as_object_mut);
    for (field, property) in properties.into_iter().flatten() {
        if let Some(text) = descriptions.field(name, field) {
            property["description"] = text.into();
        }
    }
    schema
}

fn pointer(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}

/// `io.example.v1.Kind` for `v1.Kind` of `example.io`.
fn custom_name(resource: &Resource, kind: &str) -> String {
    let mut parts: Vec<&str> = resource.group.split('.').collect();
    parts.reverse();
    format!("{}.{}.{kind}", parts.join("."), resource.version)
}

/// A definition with bare references turned into pointers; a reference with something beside it goes into
/// `allOf`.
fn rewritten(schema: &Value, open: &mut Vec<String>) -> Value {
    match schema {
        Value::Object(fields) => {
            let mut out: Map<String, Value> = Map::new();
            for (field, value) in fields {
                match (field.as_str(), value) {
                    ("$ref", Value::String(name)) => {
                        open.push(name.clone());
                        if fields.len() == 1 {
                            return pointer(name);
                        }
                        out.insert("allOf".to_owned(), json!([pointer(name)]));
                    }
                    // By the names of fields, which may be those of keywords.
                    ("properties", Value::Object(properties)) => {
                        let below =
                            properties.iter().map(|(name, value)| (name.clone(), rewritten(value, open)));
                        out.insert(field.clone(), Value::Object(below.collect()));
                    }
                    // Instances, not schemas: nothing in them is a reference.
                    ("default" | "enum" | "example", _) => {
                        out.insert(field.clone(), value.clone());
                    }
                    _ => {
                        out.insert(field.clone(), rewritten(value, open));
                    }
                }
            }
            Value::Object(out)
        }
        Value::Array(items) => items.iter().map(|item| rewritten(item, open)).collect(),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_is_put_where_it_belongs() {
        let descriptions = Descriptions::read();
        let mut wanted = Wanted::new(&descriptions);
        wanted.reference("io.k8s.api.core.v1.PodSpec".to_owned());
        wanted.meta("FieldsV1");
        let schemas = wanted.into_schemas("", "v1");
        let spec = &schemas["io.k8s.api.core.v1.PodSpec"];
        assert_eq!(spec["description"], "PodSpec is a description of a pod.");
        let affinity = &spec["properties"]["affinity"];
        assert!(
            affinity["description"].is_string() && affinity["allOf"][0]["$ref"].is_string(),
            "{affinity}"
        );
        let open = &schemas["io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1"];
        assert!(open["description"].is_string() && open.get("properties").is_none(), "{open}");
    }

    #[test]
    fn references_become_pointers() {
        let mut open = Vec::new();
        let schema = json!({"properties": {
            "a": {"$ref": "x.A"},
            "b": {"$ref": "x.B", "default": {}},
            "$ref": {"type": "string"},
            "default": {"$ref": "x.C"},
        }});
        let rewritten = rewritten(&schema["properties"]["a"], &mut open);
        assert_eq!(rewritten, json!({"$ref": "#/components/schemas/x.A"}));
        let rewritten = super::rewritten(&schema["properties"]["b"], &mut open);
        assert_eq!(rewritten, json!({"allOf": [{"$ref": "#/components/schemas/x.B"}], "default": {}}));
        assert_eq!(open, ["x.A", "x.B"]);
        let rewritten = super::rewritten(&schema, &mut open);
        assert_eq!(rewritten["properties"]["default"], json!({"$ref": "#/components/schemas/x.C"}));
        assert_eq!(rewritten["properties"]["$ref"], json!({"type": "string"}));
    }
}
