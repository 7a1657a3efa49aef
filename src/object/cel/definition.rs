//! CustomResourceDefinitions as a server sees them: what it fills in, and what it refuses, with its texts.
//! Says nothing about other definitions that are there; names that are taken are the registry's business.

use crate::structural::structural_at;
use crate::{RuleFault, Rules, cost};
use opdev_object::names;
use opdev_object::schema::FieldError;
use serde_json::{Map, Value, json};
use std::fmt;

/// Fills in what a server fills in: singular, list kind, conversion strategy.
pub fn complete(crd: &mut Value) {
    let Some(spec) = crd.get_mut("spec").and_then(Value::as_object_mut) else { return };
    let kind = spec.get("names").and_then(|names| names["kind"].as_str()).unwrap_or_default().to_owned();
    if let Some(names) = spec.get_mut("names").and_then(Value::as_object_mut).filter(|_| !kind.is_empty()) {
        for (field, value) in [("singular", kind.to_lowercase()), ("listKind", format!("{kind}List"))] {
            if names.get(field).and_then(Value::as_str).unwrap_or_default().is_empty() {
                names.insert(field.to_owned(), Value::from(value));
            }
        }
    }
    let conversion = spec.entry("conversion").or_insert_with(|| Value::Object(Map::new()));
    if let Some(conversion) = conversion.as_object_mut()
        && conversion.get("strategy").and_then(Value::as_str).unwrap_or_default().is_empty()
    {
        conversion.insert("strategy".to_owned(), Value::from("None"));
    }
}

fn absent(value: &Value) -> bool {
    value.is_null() || value.as_str().is_some_and(str::is_empty)
}

fn items(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// Errors of a definition that was completed.
pub fn validate(crd: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let spec = &crd["spec"];
    let plural = spec["names"]["plural"].as_str().unwrap_or_default();
    let group = spec["group"].as_str().unwrap_or_default();
    let name = &crd["metadata"]["name"];
    if name.as_str() != Some(&format!("{plural}.{group}")) {
        errors.push(FieldError::invalid("metadata.name", name, "must be spec.names.plural+\".\"+spec.group"));
    }
    check_group(crd, group, &mut errors);
    let scope = &spec["scope"];
    if absent(scope) {
        errors.push(FieldError::required("spec.scope", ""));
    } else if scope != "Cluster" && scope != "Namespaced" {
        errors.push(FieldError::not_supported("spec.scope", scope, &["Cluster", "Namespaced"]));
    }
    check_names(&spec["names"], &mut errors);
    check_versions(spec, &mut errors);
    // Parts that versions share are checked with each of them.
    let mut seen: Vec<FieldError> = Vec::new();
    errors.retain(|error| {
        let new = !seen.contains(error);
        if new {
            seen.push(error.clone());
        }
        new
    });
    if spec["preserveUnknownFields"] == true {
        let detail = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead";
        errors.push(FieldError::invalid("spec.preserveUnknownFields", &json!(true), detail));
    }
    check_conversion(&spec["conversion"], &mut errors);
    errors
}

fn check_conversion(conversion: &Value, errors: &mut Vec<FieldError>) {
    const CONFIG: &str = "spec.conversion.webhookClientConfig";
    const VERSIONS: &str = "spec.conversion.conversionReviewVersions";
    let strategy = &conversion["strategy"];
    let (config, versions) =
        (&conversion["webhook"]["clientConfig"], items(&conversion["webhook"]["conversionReviewVersions"]));
    if strategy == "Webhook" {
        if config.is_null() {
            errors.push(FieldError::required(CONFIG, "required when strategy is set to Webhook"));
        } else if config["url"].is_null() == config["service"].is_null() {
            errors.push(FieldError::required(CONFIG, "exactly one of url or service is required"));
        }
        if versions.is_empty() {
            errors.push(FieldError::required(VERSIONS, ""));
        }
        return;
    }
    if strategy != "None" {
        let supported = ["None", "Webhook"];
        errors.push(FieldError::not_supported("spec.conversion.strategy", strategy, &supported));
    }
    let detail = "should not be set when strategy is not set to Webhook";
    if !config.is_null() {
        errors.push(FieldError::forbidden(CONFIG, detail));
    }
    if !versions.is_empty() {
        errors.push(FieldError::forbidden(VERSIONS, detail));
    }
}

fn check_group(crd: &Value, group: &str, errors: &mut Vec<FieldError>) {
    let value = json!(group);
    if group.is_empty() {
        errors.push(FieldError::required("spec.group", ""));
        return;
    }
    for wrong in names::dns1123_subdomain(group) {
        errors.push(FieldError::invalid("spec.group", &value, &wrong));
    }
    if !group.contains('.') {
        errors.push(FieldError::invalid("spec.group", &value, "should be a domain with at least one dot"));
    }
    let protected = ["k8s.io", "kubernetes.io"]
        .iter()
        .any(|domain| group == *domain || group.ends_with(&format!(".{domain}")));
    if protected && crd["metadata"]["annotations"]["api-approved.kubernetes.io"].is_null() {
        errors.push(FieldError::required(
            "metadata.annotations[api-approved.kubernetes.io]",
            "protected groups must have approval annotation \"api-approved.kubernetes.io\", see \
             https://github.com/kubernetes/enhancements/pull/1111",
        ));
    }
}

fn check_names(given: &Value, errors: &mut Vec<FieldError>) {
    for field in ["plural", "singular", "kind", "listKind"] {
        let place = format!("spec.names.{field}");
        let value = &given[field];
        if absent(value) {
            errors.push(FieldError::required(place, ""));
            continue;
        }
        let text = value.as_str().unwrap_or_default();
        let is_kind = field.ends_with("ind");
        let wrong = names::dns1035_label(&if is_kind { text.to_lowercase() } else { text.to_owned() });
        if !wrong.is_empty() {
            let detail = wrong.join(",");
            let detail = if is_kind {
                format!("may have mixed case, but should otherwise match: {detail}")
            } else {
                detail
            };
            errors.push(FieldError::invalid(place, value, &detail));
        }
    }
    if !absent(&given["kind"]) && given["kind"] == given["listKind"] {
        let detail = "kind and listKind may not be the same";
        errors.push(FieldError::invalid("spec.names.listKind", &given["listKind"], detail));
    }
    for field in ["shortNames", "categories"] {
        for (i, value) in items(&given[field]).iter().enumerate() {
            let wrong = names::dns1035_label(value.as_str().unwrap_or_default());
            if !wrong.is_empty() {
                errors.push(FieldError::invalid(format!("spec.names.{field}[{i}]"), value, &wrong.join(",")));
            }
        }
    }
}

fn check_versions(spec: &Value, errors: &mut Vec<FieldError>) {
    let versions = items(&spec["versions"]);
    let shown = &spec["versions"];
    if versions.is_empty() {
        errors.push(FieldError::required("spec.versions", "must have at least one version"));
        return;
    }
    let mut seen: Vec<&Value> = Vec::new();
    for (i, version) in versions.iter().enumerate() {
        let place = format!("spec.versions[{i}]");
        let name = &version["name"];
        for wrong in names::dns1035_label(name.as_str().unwrap_or_default()) {
            errors.push(FieldError::invalid(format!("{place}.name"), name, &wrong));
            if i == 0 {
                errors.push(FieldError::invalid("spec.version", name, &wrong));
            }
        }
        if !absent(&version["deprecationWarning"]) && version["deprecated"] != true {
            let detail = "can only be set for deprecated versions";
            let at = format!("{place}.deprecationWarning");
            errors.push(FieldError::invalid(at, &version["deprecationWarning"], detail));
        }
        if seen.contains(&name) {
            let detail = "must contain unique version names";
            errors.push(FieldError::invalid("spec.versions", shown, detail));
        }
        seen.push(name);
        check_version(spec, version, i, errors);
    }
    if versions.iter().filter(|version| version["storage"] == true).count() != 1 {
        let detail = "must have exactly one version marked as storage version";
        errors.push(FieldError::invalid("spec.versions", shown, detail));
    }
}

/// Where errors about a part of a version stand: what all versions share is one field of the definition.
fn part_of(spec: &Value, index: usize, field: &str, shared: &str) -> String {
    let versions = items(&spec["versions"]);
    let same = versions.iter().all(|version| version.get(field) == versions[0].get(field));
    if same { format!("spec.{shared}") } else { format!("spec.versions[{index}].{field}") }
}

/// The schemas of the versions, each once, with their places.
fn schemas(spec: &Value) -> Vec<(String, &Value)> {
    let mut schemas: Vec<(String, &Value)> = Vec::new();
    for (index, version) in items(&spec["versions"]).iter().enumerate() {
        let path = format!("{}.openAPIV3Schema", part_of(spec, index, "schema", "validation"));
        if !schemas.iter().any(|(known, _)| *known == path) {
            schemas.push((path, &version["schema"]["openAPIV3Schema"]));
        }
    }
    schemas
}

/// Rules whose estimated cost a server does not accept. It looks at those of a version again only where its
/// schema is another than in `current`; at all of them together always.
pub fn expensive(crd: &Value, current: Option<&Value>) -> Vec<RuleFault> {
    let known = |version: &Value| {
        let old = current.map_or(&[][..], |current| items(&current["spec"]["versions"]));
        old.iter().any(|old| old["name"] == version["name"] && old["schema"] == version["schema"])
    };
    let mut seen: Vec<String> = Vec::new();
    let mut faults = Vec::new();
    for (index, version) in items(&crd["spec"]["versions"]).iter().enumerate() {
        let path = format!("{}.openAPIV3Schema", part_of(&crd["spec"], index, "schema", "validation"));
        if !seen.contains(&path) {
            faults.extend(cost::expensive(&path, &version["schema"]["openAPIV3Schema"], known(version)));
            seen.push(path);
        }
    }
    faults
}

/// Rules that do not compile, with what nearly was meant.
pub fn uncompiled(crd: &Value) -> Vec<RuleFault> {
    let compiled = schemas(&crd["spec"]).into_iter().map(|(path, schema)| Rules::compile(&path, schema));
    compiled.filter_map(Result::err).flatten().collect()
}

fn check_version(spec: &Value, version: &Value, index: usize, errors: &mut Vec<FieldError>) {
    let schema = &version["schema"]["openAPIV3Schema"];
    let path = format!("{}.openAPIV3Schema", part_of(spec, index, "schema", "validation"));
    let subresources = part_of(spec, index, "subresources", "subresources");
    let columns = part_of(spec, index, "additionalPrinterColumns", "additionalPrinterColumns");
    if !schema.is_object() {
        let place = format!("spec.versions[{index}].schema.openAPIV3Schema");
        errors.push(FieldError::required(place, "schemas are required"));
    } else if let Err(wrong) = structural_at(&path, schema) {
        errors.extend(wrong);
    }
    let scale = &version["subresources"]["scale"];
    if scale.is_object() {
        for (field, start) in [("specReplicasPath", ".spec."), ("statusReplicasPath", ".status.")] {
            let value = &scale[field];
            let at = format!("{subresources}.scale.{field}");
            if absent(value) {
                errors.push(FieldError::required(at, ""));
            } else if !value.as_str().is_some_and(|path| path.starts_with(start)) {
                let detail = format!("should be a json path under {}", start.trim_end_matches('.'));
                errors.push(FieldError::invalid(at, value, &detail));
            }
        }
    }
    let selector = &scale["labelSelectorPath"];
    let known = [".spec.", ".status."];
    if selector
        .as_str()
        .is_some_and(|path| !path.is_empty() && !known.iter().any(|start| path.starts_with(start)))
    {
        let detail = "should be a json path under either .spec or .status";
        errors.push(FieldError::invalid(format!("{subresources}.scale.labelSelectorPath"), selector, detail));
    }
    check_columns(version, &columns, errors);
    let selectable = part_of(spec, index, "selectableFields", "selectableFields");
    check_selectable(version, schema, &selectable, errors);
}

fn check_columns(version: &Value, columns: &str, errors: &mut Vec<FieldError>) {
    const TYPES: [&str; 5] = ["boolean", "date", "integer", "number", "string"];
    const FORMATS: [&str; 8] = ["byte", "date", "date-time", "double", "float", "int32", "int64", "password"];
    for (i, column) in items(&version["additionalPrinterColumns"]).iter().enumerate() {
        let at = format!("{columns}[{i}]");
        for (field, shown) in [("name", "name"), ("type", "type"), ("jsonPath", "JSONPath")] {
            if absent(&column[field]) {
                errors.push(FieldError::required(format!("{at}.{shown}"), ""));
            }
        }
        for (field, known) in [("type", &TYPES[..]), ("format", &FORMATS[..])] {
            let value = &column[field];
            if !absent(value) && !value.as_str().is_some_and(|text| known.contains(&text)) {
                let detail = format!("must be one of {}", known.join(","));
                errors.push(FieldError::invalid(format!("{at}.{field}"), value, &detail));
            }
        }
    }
}

fn check_selectable(version: &Value, schema: &Value, place: &str, errors: &mut Vec<FieldError>) {
    const MOST: usize = 8;
    let mut seen: Vec<&str> = Vec::new();
    for (i, field) in items(&version["selectableFields"]).iter().enumerate() {
        let at = format!("{place}[{i}].jsonPath");
        let value = &field["jsonPath"];
        let path = value.as_str().unwrap_or_default();
        if path.is_empty() {
            errors.push(FieldError::required(at, ""));
            continue;
        }
        let found = match pointed(schema, path) {
            Ok(found) => found,
            Err(why) => {
                errors.push(FieldError::invalid(at, value, &format!("is an invalid path: {why}")));
                continue;
            }
        };
        if !matches!(found["type"].as_str(), Some("string" | "boolean" | "integer")) {
            let detail = "must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed.";
            errors.push(FieldError::invalid(at.clone(), value, detail));
        }
        if seen.contains(&path) {
            errors.push(FieldError::duplicate(at, value));
        } else {
            seen.push(path);
        }
    }
    if seen.len() > MOST {
        errors.push(FieldError::too_many(place, seen.len(), MOST as i64));
    }
}

/// Why a path names no schema.
#[derive(Debug)]
enum PathError<'a> {
    /// It names an item of a list.
    Array,
    /// It begins with something else than a dot.
    Start(&'a str),
    /// The schema has no such field.
    NoField,
}

impl fmt::Display for PathError<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PathError::Array => f.write_str("array notation is not allowed"),
            PathError::Start(found) => write!(f, "expected [ or . but got: {found}"),
            PathError::NoField => f.write_str("does not refer to a valid field"),
        }
    }
}

impl std::error::Error for PathError<'_> {}

/// The schema a path such as `.spec.color` names.
fn pointed<'a, 'p>(schema: &'a Value, path: &'p str) -> Result<&'a Value, PathError<'p>> {
    if path.contains('[') {
        return Err(PathError::Array);
    }
    let Some(rest) = path.strip_prefix('.') else {
        return Err(PathError::Start(path.split('.').next().unwrap_or(path)));
    };
    rest.split('.').try_fold(schema, |at, name| {
        at.get("properties")
            .and_then(|properties| properties.get(name))
            .or_else(|| at.get("additionalProperties").filter(|more| more.is_object()))
            .ok_or(PathError::NoField)
    })
}

/// Errors of a definition that is to replace another.
pub fn validate_update(crd: &Value, current: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let (new, old) = (&crd["spec"], &current["spec"]);
    for (field, new, old) in [
        ("spec.group", &new["group"], &old["group"]),
        ("spec.names.plural", &new["names"]["plural"], &old["names"]["plural"]),
        ("spec.scope", &new["scope"], &old["scope"]),
        ("spec.names.kind", &new["names"]["kind"], &old["names"]["kind"]),
    ] {
        if new != old {
            errors.push(FieldError::invalid(field, new, "field is immutable"));
        }
    }
    for (i, stored) in items(&current["status"]["storedVersions"]).iter().enumerate() {
        if !items(&new["versions"]).iter().any(|version| version["name"] == *stored) {
            let name = stored.as_str().unwrap_or_default();
            let detail = format!(
                "missing from spec.versions; {name} was previously a storage version, and must remain in \
                 spec.versions until a storage migration ensures no data remains persisted in {name} and \
                 removes {name} from status.storedVersions"
            );
            errors.push(FieldError::invalid(format!("status.storedVersions[{i}]"), stored, &detail));
        }
    }
    errors
}

#[cfg(test)]
mod tests;
