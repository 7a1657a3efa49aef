//! The objects of a file of manifests, each with its place.

use anyhow::{Context as _, Result, bail};
use opdev_object::meta::Gvk;
use opdev_object::yaml::{self, Node};
use serde_json::Value;

/// An object of a file.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Manifest {
    /// `file:line`.
    pub(crate) place: String,
    pub(crate) object: Value,
}

/// The objects in the text of a file; empty documents are none.
///
/// # Errors
/// `file:line:column` and what is wrong, where it is no YAML or a document is no object.
pub(crate) fn manifests(text: &str, file: &str) -> Result<Vec<Manifest>> {
    Ok(placed(text, file)?.into_iter().map(|(manifest, _)| manifest).collect())
}

/// The objects, each with a tree that knows the place of every part of it.
///
/// # Errors
/// As [`manifests`].
pub(crate) fn placed(text: &str, file: &str) -> Result<Vec<(Manifest, Node)>> {
    let wrong =
        |error: yaml::Error| anyhow::anyhow!("{file}:{}:{}: {}", error.line, error.column, error.message);
    let mut found = Vec::new();
    for node in yaml::documents(text).map_err(wrong)? {
        let place = format!("{file}:{}", node.line);
        let object = yaml::to_json(&node).with_context(|| place.clone())?;
        if object.is_null() {
            continue;
        }
        if Gvk::of(&object).is_none() {
            bail!("{place}: apiVersion or kind is missing");
        }
        found.push((Manifest { place, object }, node));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_all_its_objects_and_its_errors_have_places() {
        let text = "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\n---\n---\napiVersion: g/v1\nkind: B\n";
        let places: Vec<String> =
            manifests(text, "a.yaml").unwrap().into_iter().map(|manifest| manifest.place).collect();
        assert_eq!(places, ["a.yaml:1", "a.yaml:6"]);
        let error = |text: &str| manifests(text, "a.yaml").unwrap_err().to_string();
        assert_eq!(error("kind: X\n"), "a.yaml:1: apiVersion or kind is missing");
        assert!(error("a: b\nc: [\n").starts_with("a.yaml:"), "{}", error("a: b\nc: [\n"));
    }
}
