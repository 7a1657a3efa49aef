//! CustomResourceDefinitions: reading them from YAML and scaffolding the schema-less one for a chart.
//! Never talks to an API server.

use crate::plural::regular;
use anyhow::{Context as _, Result, bail};
use opdev_object::meta::Gvk;
use opdev_object::yaml;
use serde_json::{Value, json};

/// Every CRD in a YAML text; documents of other kinds are passed over.
///
/// # Errors
/// The YAML error with its line, or the first CRD that lacks its group, kind or versions.
pub fn read(text: &str) -> Result<Vec<Value>> {
    let mut crds = Vec::new();
    for document in yaml::documents(text)? {
        let object = yaml::to_json(&document)?;
        if object.get("kind").and_then(Value::as_str) == Some("CustomResourceDefinition") {
            check(&object)?;
            crds.push(object);
        }
    }
    Ok(crds)
}

fn check(crd: &Value) -> Result<()> {
    let name = crd.pointer("/metadata/name").and_then(Value::as_str).context("metadata.name is missing")?;
    for field in ["/spec/group", "/spec/names/kind", "/spec/names/plural"] {
        let there = crd.pointer(field).and_then(Value::as_str).is_some_and(|text| !text.is_empty());
        if !there {
            bail!("CustomResourceDefinition {name}: {} is missing", field[1..].replace('/', "."));
        }
    }
    if crd.pointer("/spec/versions").and_then(Value::as_array).is_none_or(Vec::is_empty) {
        bail!("CustomResourceDefinition {name}: spec.versions is missing");
    }
    Ok(())
}

/// The kinds a CRD serves, one for each served version.
pub fn kinds(crd: &Value) -> Vec<Gvk> {
    let text = |pointer: &str| crd.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let (group, kind) = (text("/spec/group"), text("/spec/names/kind"));
    let versions = crd.pointer("/spec/versions").and_then(Value::as_array);
    versions
        .into_iter()
        .flatten()
        .filter(|version| version.get("served").and_then(Value::as_bool).unwrap_or(false))
        .filter_map(|version| version.get("name")?.as_str())
        .map(|version| Gvk::new(group, version, kind))
        .collect()
}

/// The CRD the Operator SDK writes for a chart: namespaced, one version, status subresource, any fields.
pub fn scaffold(gvk: &Gvk) -> Value {
    let singular = gvk.kind.to_lowercase();
    let plural = regular(&gvk.kind);
    let open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{}", gvk.group)},
        "spec": {
            "group": gvk.group,
            "scope": "Namespaced",
            "names": {
                "kind": gvk.kind,
                "listKind": format!("{}List", gvk.kind),
                "plural": plural,
                "singular": singular,
            },
            "versions": [{
                "name": gvk.version,
                "served": true,
                "storage": true,
                "schema": {"openAPIV3Schema": {
                    "type": "object",
                    "properties": {
                        "apiVersion": {"type": "string"},
                        "kind": {"type": "string"},
                        "metadata": {"type": "object"},
                        "spec": open,
                        "status": open,
                    },
                }},
                "subresources": {"status": {}},
            }],
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scaffold_serves_its_kind() {
        let gvk = Gvk::new("charts.my.domain", "v1alpha1", "Hello");
        let crd = scaffold(&gvk);
        assert_eq!(crd["metadata"]["name"], "hellos.charts.my.domain");
        assert_eq!(kinds(&crd), [gvk]);
        assert!(check(&crd).is_ok());
    }

    #[test]
    fn other_documents_are_passed_over_and_broken_crds_named() {
        assert!(read("kind: ConfigMap\n").is_ok_and(|crds| crds.is_empty()));
        let error =
            read("kind: CustomResourceDefinition\nmetadata: {name: a.b}\nspec: {group: b}\n").unwrap_err();
        assert_eq!(error.to_string(), "CustomResourceDefinition a.b: spec.names.kind is missing");
    }
}
