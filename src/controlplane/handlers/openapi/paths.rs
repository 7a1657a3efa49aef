//! The `paths` of a document: which operations a resource has, with the marks that clients look for (kind,
//! action, `fieldValidation`, the patch content types).

use super::schemas::Wanted;
use opdev_apimachinery::resource::Resource;
use opdev_object::meta::Gvk;
use serde_json::{Map, Value, json};

const PATCHES: [&str; 4] = [
    "application/apply-patch+yaml",
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
];

/// Where an operation acts and what it is about.
struct Place<'a> {
    resource: &'a Resource,
    gvk: Gvk,
    object: Value,
}

/// Adds every path of a resource.
pub(crate) fn add(paths: &mut Map<String, Value>, resource: &Resource, wanted: &mut Wanted<'_>) {
    let root = if resource.group.is_empty() {
        format!("/api/{}", resource.version)
    } else {
        format!("/apis/{}/{}", resource.group, resource.version)
    };
    let everywhere = format!("{root}/{}", resource.plural);
    let collection = if resource.namespaced {
        format!("{root}/namespaces/{{namespace}}/{}", resource.plural)
    } else {
        everywhere.clone()
    };
    let place = Place { resource, gvk: resource.gvk(), object: wanted.object(resource) };

    let mut item = Map::new();
    if resource.has_verb("list") {
        let list = wanted.list(resource);
        item.insert("get".into(), place.operation("list", &list, None, &LIST));
        if resource.namespaced {
            let only_list = json!({"get": item["get"].clone(), "parameters": [pretty()]});
            paths.insert(everywhere, only_list);
        }
    }
    if resource.has_verb("create") {
        item.insert(
            "post".into(),
            place.operation("post", &place.object, Some(place.body(&["*/*"])), &WRITE),
        );
    }
    if resource.has_verb("deletecollection") {
        let status = wanted.meta("Status");
        let options = json!({"content": {"*/*": {"schema": wanted.meta("DeleteOptions")}}});
        item.insert("delete".into(), place.operation("deletecollection", &status, Some(options), &DELETE));
    }
    insert(paths, collection.clone(), item, resource, false);

    let verbs = &resource.verbs;
    let item = named(&place, verbs, wanted);
    insert(paths, format!("{collection}/{{name}}"), item, resource, true);
    for sub in &resource.subresources {
        let gvk = Gvk::new(
            sub.group.as_deref().unwrap_or(&resource.group),
            sub.version.as_deref().unwrap_or(&resource.version),
            &sub.kind,
        );
        let object = if gvk == resource.gvk() { place.object.clone() } else { wanted.kind(&gvk) };
        let below = Place { resource, gvk, object };
        let mut item = named(&below, &sub.verbs, wanted);
        if sub.verbs.iter().any(|verb| verb == "create") {
            let body = below.body(&["*/*"]);
            item.insert("post".into(), below.operation("post", &below.object, Some(body), &WRITE));
        }
        insert(paths, format!("{collection}/{{name}}/{}", sub.name), item, resource, true);
    }
}

/// The operations on one object.
fn named(place: &Place<'_>, verbs: &[String], wanted: &mut Wanted<'_>) -> Map<String, Value> {
    let has = |name: &str| verbs.iter().any(|verb| verb == name);
    let mut item = Map::new();
    if has("get") {
        item.insert("get".into(), place.operation("get", &place.object, None, &[]));
    }
    if has("update") {
        let body = place.body(&["*/*"]);
        item.insert("put".into(), place.operation("put", &place.object, Some(body), &WRITE));
    }
    if has("patch") {
        // Custom resources have no merge keys, so strategic merge is not for them.
        let types = if place.resource.custom.is_some() { &PATCHES[..3] } else { &PATCHES[..] };
        let patch = wanted.meta("Patch");
        let content: Map<String, Value> =
            types.iter().map(|media| (media.to_string(), json!({"schema": patch.clone()}))).collect();
        let body = json!({"content": content, "required": true});
        item.insert("patch".into(), place.operation("patch", &place.object, Some(body), &PATCH));
    }
    if has("delete") {
        let status = wanted.meta("Status");
        let options = json!({"content": {"*/*": {"schema": wanted.meta("DeleteOptions")}}});
        item.insert("delete".into(), place.operation("delete", &status, Some(options), &DELETE));
    }
    item
}

impl Place<'_> {
    fn body(&self, types: &[&str]) -> Value {
        let content: Map<String, Value> =
            types.iter().map(|media| (media.to_string(), json!({"schema": self.object.clone()}))).collect();
        json!({"content": content, "required": true})
    }

    fn operation(
        &self,
        action: &str,
        answer: &Value,
        body: Option<Value>,
        parameters: &[(&str, &str)],
    ) -> Value {
        let group = if self.resource.group.is_empty() { "core" } else { &self.resource.group };
        let mut operation = json!({
            "tags": [format!("{}_{}", group.replace(['.', '-'], "_"), self.resource.version)],
            "responses": {"200": {"description": "OK", "content": {"application/json": {"schema": answer}}}},
            "x-kubernetes-action": action,
            "x-kubernetes-group-version-kind":
                {"group": self.gvk.group, "version": self.gvk.version, "kind": self.gvk.kind},
        });
        if !parameters.is_empty() {
            operation["parameters"] = parameters.iter().map(|(name, kind)| parameter(name, kind)).collect();
        }
        if let Some(body) = body {
            operation["requestBody"] = body;
        }
        operation
    }
}

fn insert(
    paths: &mut Map<String, Value>,
    path: String,
    mut item: Map<String, Value>,
    resource: &Resource,
    named: bool,
) {
    if item.is_empty() {
        return;
    }
    let mut parameters = Vec::new();
    if named {
        parameters.push(in_path("name"));
    }
    if resource.namespaced {
        parameters.push(in_path("namespace"));
    }
    parameters.push(pretty());
    item.insert("parameters".into(), parameters.into());
    paths.insert(path, Value::Object(item));
}

fn in_path(name: &str) -> Value {
    json!({"name": name, "in": "path", "required": true, "schema": {"type": "string", "uniqueItems": true}})
}

fn pretty() -> Value {
    parameter("pretty", "string")
}

fn parameter(name: &str, kind: &str) -> Value {
    json!({"name": name, "in": "query", "schema": {"type": kind, "uniqueItems": true}})
}

const LIST: [(&str, &str); 10] = [
    ("allowWatchBookmarks", "boolean"),
    ("continue", "string"),
    ("fieldSelector", "string"),
    ("labelSelector", "string"),
    ("limit", "integer"),
    ("resourceVersion", "string"),
    ("resourceVersionMatch", "string"),
    ("sendInitialEvents", "boolean"),
    ("timeoutSeconds", "integer"),
    ("watch", "boolean"),
];

const WRITE: [(&str, &str); 3] =
    [("dryRun", "string"), ("fieldManager", "string"), ("fieldValidation", "string")];

const PATCH: [(&str, &str); 4] =
    [("dryRun", "string"), ("fieldManager", "string"), ("fieldValidation", "string"), ("force", "boolean")];

const DELETE: [(&str, &str); 4] = [
    ("dryRun", "string"),
    ("gracePeriodSeconds", "integer"),
    ("orphanDependents", "boolean"),
    ("propagationPolicy", "string"),
];
