//! Types whose source is not on the machine: built-in Kubernetes types from the facts and descriptions of one
//! release, types of the standard library by name, and for the rest a diagnostic that names the module.

mod markers;

use super::build::Builder;
use super::description::of_lines;
use super::imports::Missing;
use super::known;
use super::package::TypeId;
use super::profile::Profile;
use super::schema::{Additional, Schema};
use crate::diagnostic::Diagnostic;
use opdev_object::descriptions::Descriptions;
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
    let profile = &builder.options.profile;
    let known = match builder.kept.built_in.get(id) {
        Some(schema) => Some(Schema::clone(schema)),
        None => built_in(package, name, || Said {
            descriptions: builder.descriptions.get_or_insert_with(Descriptions::read),
            definition: definition_of(package, name).unwrap_or_default(),
            profile,
        }),
    };
    if let Some(schema) = known {
        builder.kept.built_in.entry(id.clone()).or_insert_with(|| schema.clone());
        let module = module_of(package, missing);
        let hint = match &missing.module {
            Some(_) => Some("Run `go mod download`.".to_owned()),
            // Without a go.mod the project names no release: these are its schemas.
            None => builder.loader.in_a_module().then(|| format!("Run `go get {}`.", module.0)),
        };
        let known = format!("v0.{}.", opdev_object::facts::KUBERNETES_MINOR.trim_start_matches("1."));
        // These are the same in every release.
        let is_steady =
            matches!(name, "TypeMeta" | "ObjectMeta" | "ListMeta" | "Time" | "MicroTime" | "Duration");
        let differs = missing.module.is_some() && !module.1.starts_with(&known) && !is_steady;
        let refused = builder.options.exact && differs;
        // One that may be another one is refused though one that is the same everywhere came before.
        let told = if refused { format!("{} refused", module.0) } else { module.0.clone() };
        if let Some(hint) = hint
            && builder.without_source.insert(told)
        {
            if refused {
                let message = format!(
                    "the source of {} {} is not on this machine, and what is known without it is of Kubernetes {}",
                    module.0,
                    module.1,
                    opdev_object::facts::KUBERNETES_MINOR
                );
                let hint = format!("Run `go mod download {}` or `go mod vendor`.", module.0);
                builder.problem(Diagnostic::error(message, None).with_hint(hint));
                return schema;
            }
            let version = if module.1.is_empty() { String::new() } else { format!(" {}", module.1) };
            let message = format!(
                "the source of {}{version} is not on this machine: its types have the schemas and descriptions of Kubernetes {} instead",
                module.0,
                opdev_object::facts::KUBERNETES_MINOR
            );
            builder.loader.notes.push(Diagnostic::warning(message, None).with_hint(hint));
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

/// The words about a built-in type.
struct Said<'a> {
    descriptions: &'a Descriptions,
    definition: String,
    profile: &'a Profile,
}

impl Said<'_> {
    /// At a place in the type, as in `Descriptions::comment`.
    fn at(&self, path: &str) -> Option<Arc<str>> {
        let comment = self.descriptions.comment(&self.definition, path)?;
        let lines: Vec<&str> = comment.split('\n').collect();
        Some(of_lines(&lines, self.profile).into()).filter(|text: &Arc<str>| !text.is_empty())
    }

    /// The type and each of its fields are described.
    fn fill(&self, schema: &mut Schema) {
        schema.description = self.at("");
        for (name, field) in &mut schema.properties {
            self.field(name, Arc::make_mut(field));
        }
    }

    /// A field, its items and its values.
    fn field(&self, path: &str, schema: &mut Schema) {
        if let Some(items) = &mut schema.items {
            self.field(&format!("{path}[]"), Arc::make_mut(items));
        }
        if let Some(Additional::Schema(values)) = &mut schema.additional {
            self.field(&format!("{path}.*"), Arc::make_mut(values));
        }
        schema.description = self.at(path);
    }
}

/// A built-in type of Kubernetes.
fn built_in<'a>(package: &str, name: &str, said: impl FnOnce() -> Said<'a>) -> Option<Schema> {
    let mut schema = undescribed(package, name)?;
    said().fill(&mut schema);
    Some(schema)
}

fn undescribed(package: &str, name: &str) -> Option<Schema> {
    if package == "k8s.io/apimachinery/pkg/apis/meta/v1" && name == "Condition" {
        return Some(condition());
    }
    if package == "k8s.io/apimachinery/pkg/apis/meta/v1" && name == "TypeMeta" {
        let text = Arc::new(Schema::with_type("string"));
        let properties = ["apiVersion", "kind"].into_iter().map(|name| (name.into(), text.clone()));
        return Some(Schema { properties: properties.collect(), ..Schema::with_type("object") });
    }
    if known::is_named_string(package, name) {
        return Some(Schema::with_type("string"));
    }
    if (package, name) == ("k8s.io/api/core/v1", "ResourceList") {
        let quantity = known::schema("k8s.io/apimachinery/pkg/api/resource", "Quantity", false)?;
        return Some(Schema {
            additional: Some(Additional::Schema(Arc::new(quantity))),
            ..Schema::with_type("object")
        });
    }
    let mut schema = from_json(facts().raw(&definition_of(package, name)?)?, true, 0);
    markers::amend(name, &mut schema);
    Some(schema)
}

/// A schema of the facts. OpenAPI has a default for each value that cannot be missing (`""`, `0`), which no
/// marker of the Go type gave: of fields that must be there, of items and of values of maps. `markers` knows
/// the others.
fn from_json(value: &Value, may_be_missing: bool, depth: usize) -> Schema {
    let text = |name: &str| value.get(name).and_then(Value::as_str).map(Into::into);
    let names = |name: &str| -> Vec<Arc<str>> {
        let list = value.get(name).and_then(Value::as_array).into_iter().flatten();
        list.filter_map(Value::as_str).map(Into::into).collect()
    };
    if depth > 30 {
        return Schema::default();
    }
    let inner = |value: &Value| Arc::new(from_json(value, false, depth + 1));
    if let Some(reference) = value.get("$ref").and_then(Value::as_str) {
        return Schema { reference: type_of(reference), ..Schema::default() };
    }
    // A reference with something beside it stands alone in an allOf.
    if let Some([only]) = value.get("allOf").and_then(Value::as_array).map(Vec::as_slice) {
        return from_json(only, may_be_missing, depth + 1);
    }
    let mut required = names("required");
    required.sort();
    let field = |name: &str, value: &Value| {
        let optional = !required.iter().any(|required| **required == *name);
        Arc::new(from_json(value, optional, depth + 1))
    };
    let properties = value.get("properties").and_then(Value::as_object).into_iter().flatten();
    let properties = properties.map(|(name, schema)| (name.as_str().into(), field(name, schema))).collect();
    Schema {
        kind: text("type"),
        format: text("format"),
        default: value
            .get("default")
            .filter(|default| may_be_missing && !default.as_object().is_some_and(serde_json::Map::is_empty))
            .cloned()
            .map(Arc::new),
        required,
        items: value.get("items").map(inner),
        properties,
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

/// `metav1.Condition`, whose Go type has markers that OpenAPI does not show.
fn condition() -> Schema {
    let text = |most: Option<u32>, least: Option<u32>, pattern: Option<&str>| Schema {
        max_length: most.map(Value::from),
        min_length: least.map(Value::from),
        pattern: pattern.map(Into::into),
        ..Schema::with_type("string")
    };
    let reason = r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$";
    let status = Schema {
        choices: ["True", "False", "Unknown"].into_iter().map(Value::from).collect(),
        ..Schema::with_type("string")
    };
    let generation = Schema {
        format: Some("int64".into()),
        minimum: Some(Value::from(0)),
        ..Schema::with_type("integer")
    };
    let time = Schema { format: Some("date-time".into()), ..Schema::with_type("string") };
    let properties = [
        ("type", text(Some(316), None, Some(markers::QUALIFIED_NAME))),
        ("status", status),
        ("observedGeneration", generation),
        ("lastTransitionTime", time),
        ("reason", text(Some(1024), Some(1), Some(reason))),
        ("message", text(Some(32768), None, None)),
    ];
    let required = ["lastTransitionTime", "message", "reason", "status", "type"];
    Schema {
        properties: properties.into_iter().map(|(name, schema)| (name.into(), Arc::new(schema))).collect(),
        required: required.into_iter().map(Into::into).collect(),
        ..Schema::with_type("object")
    }
}

/// `io.k8s.api.core.v1.PodSpec` as a Go type.
fn type_of(definition: &str) -> Option<TypeId> {
    let (package, name) = definition.strip_prefix("io.k8s.")?.rsplit_once('.')?;
    Some(TypeId { package: format!("k8s.io/{}", package.replace('.', "/")).into(), name: name.into() })
}

/// A Go type as `io.k8s.api.core.v1.PodSpec`.
fn definition_of(package: &str, name: &str) -> Option<String> {
    Some(format!("io.k8s.{}.{name}", package.strip_prefix("k8s.io/")?.replace('/', ".")))
}

#[cfg(test)]
mod tests;
