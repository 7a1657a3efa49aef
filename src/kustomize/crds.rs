//! `crds`: OpenAPI definitions whose extensions say which fields hold names, labels and annotations.

use crate::config::{Config, Referrers};
use crate::error::{ErrorKind, KustomizationError, Limit};
use crate::fields::FieldSpec;
use serde_json::{Map, Value};

/// Levels of references that are followed.
const DEEPEST: usize = 32;
/// Fields that are looked at; types may name each other again and again.
const MOST_FIELDS: usize = 50_000;

/// The configuration in the definitions of a file: type name → `{ "Schema": … }`.
pub(crate) fn config(definitions: &Value) -> Result<Config, ErrorKind> {
    let Some(all) = definitions.as_object() else {
        return Err(KustomizationError::TypesNotAMap.into());
    };
    let mut found = Config::default();
    let mut left = MOST_FIELDS;
    for name in all.keys() {
        let Some(properties) = properties(all, name) else { continue };
        if ["kind", "apiVersion", "metadata"].iter().all(|field| properties.contains_key(*field)) {
            let kind = name.rsplit('.').next().unwrap_or(name);
            collect(
                all,
                name,
                &mut Vec::new(),
                &mut |spec| FieldSpec { kind: kind.to_owned(), ..spec },
                (&mut found, &mut left),
            )?;
        }
    }
    Ok(found)
}

fn properties<'a>(all: &'a Map<String, Value>, name: &str) -> Option<&'a Map<String, Value>> {
    let definition = all.get(name)?;
    let schema = definition.get("Schema").or_else(|| definition.get("schema"))?;
    schema.get("properties")?.as_object()
}

fn collect(
    all: &Map<String, Value>,
    name: &str,
    path: &mut Vec<String>,
    of_kind: &mut dyn FnMut(FieldSpec) -> FieldSpec,
    (found, left): (&mut Config, &mut usize),
) -> Result<(), ErrorKind> {
    let Some(properties) = properties(all, name) else { return Ok(()) };
    if path.len() > DEEPEST {
        return Err(KustomizationError::RecursiveType { name: name.to_owned() }.into());
    }
    for (field, schema) in properties {
        *left = left.checked_sub(1).ok_or(Limit::TypeFields(MOST_FIELDS))?;
        path.push(field.clone());
        let extension = |what: &str| schema.get(format!("x-kubernetes-{what}")).and_then(Value::as_str);
        let mut spec = |path: String| of_kind(FieldSpec { path, ..FieldSpec::default() });
        let mut more = Config::default();
        if extension("annotation").is_some() {
            more.common_annotations.push(spec(path.join("/")));
        }
        if extension("label-selector").is_some() {
            more.common_labels.push(spec(path.join("/")));
        }
        if extension("identity").is_some() {
            more.name_prefix.push(spec(path.join("/")));
        }
        if let (Some(version), Some(kind)) =
            (extension("object-ref-api-version"), extension("object-ref-kind"))
        {
            let key = extension("object-ref-name-key").unwrap_or("name");
            more.name_reference.push(Referrers {
                version: version.to_owned(),
                kind: kind.to_owned(),
                field_specs: vec![spec(format!("{}/{key}", path.join("/")))],
                ..Referrers::default()
            });
        }
        found.merge(&more)?;
        if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
            collect(all, reference, path, of_kind, (&mut *found, &mut *left))?;
        }
        path.pop();
    }
    Ok(())
}
