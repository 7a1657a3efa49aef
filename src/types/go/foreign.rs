//! Types whose source is not on the machine: built-in Kubernetes types from the schema facts (which know no
//! descriptions), types of the standard library by name, and for the rest a diagnostic that names the module.

use super::build::Builder;
use super::imports::Missing;
use super::known;
use super::package::TypeId;
use super::schema::{Additional, Schema};
use crate::diagnostic::Diagnostic;
use opdev_object::facts::facts;
use serde_json::Value;
use std::sync::Arc;

/// The best schema there is without source; what is wrong with it is noted.
pub(crate) fn schema(builder: &mut Builder<'_>, id: &TypeId, missing: &Missing) -> Schema {
    let (package, name) = (&*id.package, &*id.name);
    if !package.split('/').next().unwrap_or_default().contains('.') {
        return known::standard(package, name).unwrap_or_else(|| {
            let message = format!("type {package}.{name} of Go's standard library has no schema of its own");
            let hint = match (package, name) {
                ("time", "Time") => "Use metav1.Time.",
                _ => "Use a type of your own, or mark the field +kubebuilder:validation:Schemaless.",
            };
            builder.problem(Diagnostic::error(message, None).with_hint(hint));
            open()
        });
    }
    if let Some(schema) = built_in(package, name) {
        let module = module_of(package, missing);
        if builder.without_source.insert(module.0.clone()) {
            let version = if module.1.is_empty() { String::new() } else { format!(" {}", module.1) };
            let message = format!(
                "the source of {}{version} is not on this machine: schemas of Kubernetes {} are used, and descriptions are missing",
                module.0,
                opdev_object::facts::KUBERNETES_MINOR
            );
            builder.loader.notes.push(Diagnostic::warning(message, None).with_hint("Run `go mod download`."));
        }
        return schema;
    }
    let diagnostic = match &missing.module {
        Some((module, version)) => Diagnostic::error(
            format!(
                "the schema of {package}.{name} is unknown: the source of module {module} {version} is not on this machine"
            ),
            None,
        )
        .with_hint(format!("Run `go mod download {module}` or `go mod vendor`.")),
        None => Diagnostic::error(
            format!("the schema of {package}.{name} is unknown: no go.mod requires a module with this package"),
            None,
        )
        .with_hint(format!("Run `go get {package}`.")),
    };
    builder.problem(diagnostic);
    open()
}

/// Any value: what is said of a type that is not known.
fn open() -> Schema {
    Schema { preserve_unknown: Some(true), ..Schema::default() }
}

fn module_of(package: &str, missing: &Missing) -> (String, String) {
    missing.module.clone().unwrap_or_else(|| {
        let name: Vec<&str> = package.split('/').take(2).collect();
        (name.join("/"), String::new())
    })
}

/// A built-in type of Kubernetes.
fn built_in(package: &str, name: &str) -> Option<Schema> {
    let rest = package.strip_prefix("k8s.io/")?;
    if package == "k8s.io/apimachinery/pkg/apis/meta/v1" && name == "TypeMeta" {
        let text = Arc::new(Schema::of("string"));
        let properties = ["apiVersion", "kind"].into_iter().map(|name| (name.into(), text.clone()));
        return Some(Schema { properties: properties.collect(), ..Schema::of("object") });
    }
    if known::is_named_string(package, name) {
        return Some(Schema::of("string"));
    }
    if (package, name) == ("k8s.io/api/core/v1", "ResourceList") {
        let quantity = known::schema("k8s.io/apimachinery/pkg/api/resource", "Quantity", false)?;
        return Some(Schema {
            additional: Some(Additional::Schema(Arc::new(quantity))),
            ..Schema::of("object")
        });
    }
    let definition = format!("io.k8s.{}.{name}", rest.replace('/', "."));
    Some(from_json(facts().raw(&definition)?, 0))
}

fn from_json(value: &Value, depth: usize) -> Schema {
    let text = |name: &str| value.get(name).and_then(Value::as_str).map(Into::into);
    let names = |name: &str| -> Vec<Arc<str>> {
        let list = value.get(name).and_then(Value::as_array).into_iter().flatten();
        list.filter_map(Value::as_str).map(Into::into).collect()
    };
    if depth > 30 {
        return Schema::default();
    }
    let inner = |value: &Value| Arc::new(from_json(value, depth + 1));
    if let Some(reference) = value.get("$ref").and_then(Value::as_str) {
        return Schema { reference: type_of(reference), ..Schema::default() };
    }
    // A reference with something beside it stands alone in an allOf.
    if let Some([only]) = value.get("allOf").and_then(Value::as_array).map(Vec::as_slice) {
        return from_json(only, depth + 1);
    }
    let mut required = names("required");
    required.sort();
    Schema {
        kind: text("type"),
        format: text("format"),
        default: value
            .get("default")
            .filter(|default| !default.as_object().is_some_and(serde_json::Map::is_empty))
            .cloned()
            .map(Arc::new),
        required,
        items: value.get("items").map(inner),
        properties: value
            .get("properties")
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
            .map(|(name, schema)| (name.as_str().into(), inner(schema)))
            .collect(),
        additional: value.get("additionalProperties").map(|values| match values {
            Value::Bool(_) => Additional::Anything,
            values => Additional::Schema(inner(values)),
        }),
        list_type: text("x-kubernetes-list-type"),
        list_map_keys: names("x-kubernetes-list-map-keys"),
        map_type: text("x-kubernetes-map-type"),
        preserve_unknown: value.get("x-kubernetes-preserve-unknown-fields").and_then(Value::as_bool),
        int_or_string: value.get("x-kubernetes-int-or-string").and_then(Value::as_bool).unwrap_or(false),
        ..Schema::default()
    }
}

/// `io.k8s.api.core.v1.PodSpec` as a Go type.
fn type_of(definition: &str) -> Option<TypeId> {
    let (package, name) = definition.strip_prefix("io.k8s.")?.rsplit_once('.')?;
    Some(TypeId { package: format!("k8s.io/{}", package.replace('.', "/")).into(), name: name.into() })
}
