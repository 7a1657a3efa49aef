//! What is refused of a CustomResourceDefinition.

use crate::error::Cause;
use crate::registry::names;
use crate::registry::validate::{absent, immutable, items};
use serde_json::{Value, json};

/// What is wrong with a definition.
pub(crate) fn validate(object: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let spec = &object["spec"];
    let plural = spec["names"]["plural"].as_str().unwrap_or_default();
    let group = spec["group"].as_str().unwrap_or_default();
    let name = &object["metadata"]["name"];
    if name.as_str() != Some(&format!("{plural}.{group}")) {
        causes.push(Cause::invalid("metadata.name", name, "must be spec.names.plural+\".\"+spec.group"));
    }
    check_group(object, group, &mut causes);
    let scope = &spec["scope"];
    if absent(scope) {
        causes.push(Cause::required("spec.scope", ""));
    } else if scope != "Cluster" && scope != "Namespaced" {
        causes.push(Cause::not_supported("spec.scope", scope, &["Cluster", "Namespaced"]));
    }
    check_names(&spec["names"], &mut causes);
    check_versions(spec, &mut causes);
    if spec["preserveUnknownFields"] == true {
        let detail = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead";
        causes.push(Cause::invalid("spec.preserveUnknownFields", &json!(true), detail));
    }
    let strategy = &spec["conversion"]["strategy"];
    if strategy != "None" && strategy != "Webhook" {
        causes.push(Cause::not_supported("spec.conversion.strategy", strategy, &["None", "Webhook"]));
    }
    causes
}

fn check_group(object: &Value, group: &str, causes: &mut Vec<Cause>) {
    let value = json!(group);
    if group.is_empty() {
        causes.push(Cause::required("spec.group", ""));
        return;
    }
    for wrong in names::subdomain(group) {
        causes.push(Cause::invalid("spec.group", &value, &wrong));
    }
    if !group.contains('.') {
        causes.push(Cause::invalid("spec.group", &value, "should be a domain with at least one dot"));
    }
    let protected = ["k8s.io", "kubernetes.io"]
        .iter()
        .any(|domain| group == *domain || group.ends_with(&format!(".{domain}")));
    if protected && object["metadata"]["annotations"]["api-approved.kubernetes.io"].is_null() {
        causes.push(Cause::required(
            "metadata.annotations[api-approved.kubernetes.io]",
            "protected groups must have approval annotation \"api-approved.kubernetes.io\", see \
             https://github.com/kubernetes/enhancements/pull/1111",
        ));
    }
}

fn check_names(names: &Value, causes: &mut Vec<Cause>) {
    for field in ["plural", "singular", "kind", "listKind"] {
        let place = format!("spec.names.{field}");
        let value = &names[field];
        if absent(value) {
            causes.push(Cause::required(place, ""));
            continue;
        }
        let text = value.as_str().unwrap_or_default();
        let is_kind = field.ends_with("ind");
        let wrong = names::label_1035(&if is_kind { text.to_lowercase() } else { text.to_owned() });
        if !wrong.is_empty() {
            let detail = wrong.join(",");
            let detail = if is_kind {
                format!("may have mixed case, but should otherwise match: {detail}")
            } else {
                detail
            };
            causes.push(Cause::invalid(place, value, &detail));
        }
    }
    if !absent(&names["kind"]) && names["kind"] == names["listKind"] {
        let detail = "kind and listKind may not be the same";
        causes.push(Cause::invalid("spec.names.listKind", &names["listKind"], detail));
    }
    for field in ["shortNames", "categories"] {
        for (i, value) in items(&names[field]).iter().enumerate() {
            let wrong = names::label_1035(value.as_str().unwrap_or_default());
            if !wrong.is_empty() {
                causes.push(Cause::invalid(format!("spec.names.{field}[{i}]"), value, &wrong.join(",")));
            }
        }
    }
}

fn check_versions(spec: &Value, causes: &mut Vec<Cause>) {
    let versions = items(&spec["versions"]);
    let shown = &spec["versions"];
    if versions.is_empty() {
        causes.push(Cause::required("spec.versions", "must have at least one version"));
        return;
    }
    let mut seen: Vec<&Value> = Vec::new();
    for (i, version) in versions.iter().enumerate() {
        let place = format!("spec.versions[{i}]");
        let name = &version["name"];
        for wrong in names::label_1035(name.as_str().unwrap_or_default()) {
            causes.push(Cause::invalid(format!("{place}.name"), name, &wrong));
        }
        if seen.contains(&name) {
            let detail = "must contain unique version names";
            causes.push(Cause::invalid("spec.versions", shown, detail));
        }
        seen.push(name);
        check_version(version, &place, causes);
    }
    if versions.iter().filter(|version| version["storage"] == true).count() != 1 {
        let detail = "must have exactly one version marked as storage version";
        causes.push(Cause::invalid("spec.versions", shown, detail));
    }
}

fn check_version(version: &Value, place: &str, causes: &mut Vec<Cause>) {
    let schema = &version["schema"]["openAPIV3Schema"];
    let path = format!("{place}.schema.openAPIV3Schema");
    if !schema.is_object() {
        causes.push(Cause::required(path, "schemas are required"));
    } else if let Err(errors) = opdev_object::schema::structural_at(&path, schema) {
        causes.extend(errors.into_iter().map(|e| Cause::text(e.reason.cause(), e.path, e.message)));
    }
    let scale = &version["subresources"]["scale"];
    if scale.is_object() {
        for (field, start) in [("specReplicasPath", ".spec."), ("statusReplicasPath", ".status.")] {
            let value = &scale[field];
            let at = format!("{place}.subresources.scale.{field}");
            if absent(value) {
                causes.push(Cause::required(at, ""));
            } else if !value.as_str().is_some_and(|path| path.starts_with(start)) {
                let detail = format!("should be a json path under {}", start.trim_end_matches('.'));
                causes.push(Cause::invalid(at, value, &detail));
            }
        }
    }
    for (i, column) in items(&version["additionalPrinterColumns"]).iter().enumerate() {
        let at = format!("{place}.additionalPrinterColumns[{i}]");
        for field in ["name", "type", "jsonPath"] {
            if absent(&column[field]) {
                causes.push(Cause::required(format!("{at}.{field}"), ""));
            }
        }
        const TYPES: [&str; 5] = ["boolean", "date", "integer", "number", "string"];
        let kind = &column["type"];
        if !absent(kind) && !kind.as_str().is_some_and(|kind| TYPES.contains(&kind)) {
            causes.push(Cause::not_supported(format!("{at}.type"), kind, &TYPES));
        }
    }
}

/// What is wrong with a definition that is to replace another.
pub(crate) fn validate_update(object: &Value, current: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let (new, old) = (&object["spec"], &current["spec"]);
    immutable("spec.group", &new["group"], &old["group"], &mut causes);
    immutable("spec.names.plural", &new["names"]["plural"], &old["names"]["plural"], &mut causes);
    immutable("spec.scope", &new["scope"], &old["scope"], &mut causes);
    immutable("spec.names.kind", &new["names"]["kind"], &old["names"]["kind"], &mut causes);
    for (i, stored) in items(&current["status"]["storedVersions"]).iter().enumerate() {
        if !items(&new["versions"]).iter().any(|version| version["name"] == *stored) {
            let field = format!("status.storedVersions[{i}]");
            causes.push(Cause::invalid(field, stored, "missing from spec.versions; v1 was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in v1 and removes v1 from status.storedVersions".replace("v1", stored.as_str().unwrap_or_default()).as_str()));
        }
    }
    causes
}
