//! Applies every object of a file or folder, server-side.

use super::send::{object_path, without_secrets};
use super::{Done, MANAGER, Requests};
use anyhow::{Context as _, Result, anyhow, bail};
use opdev_object::meta::Gvk;
use opdev_object::yaml;
use serde_json::Value;
use std::path::{Path, PathBuf};

impl Requests {
    pub(super) async fn apply(&self, path: &str) -> Result<Done> {
        let files = yaml_files(&self.project.root.join(path))?;
        let mut applied = Vec::new();
        let mut warnings = Vec::new();
        for file in files {
            let name = self.project.relative(&file);
            let text =
                tokio::fs::read_to_string(&file).await.with_context(|| format!("{name} cannot be read"))?;
            for document in yaml::documents(&text).map_err(|error| anyhow!("{name}: {error}"))? {
                let object = yaml::to_json(&document).map_err(|error| anyhow!("{name}: {error}"))?;
                if object.is_null() {
                    continue;
                }
                let done = self.apply_object(object).await.with_context(|| name.clone())?;
                applied.push(done.summary);
                warnings.extend(done.warnings);
            }
        }
        if applied.is_empty() {
            bail!("{path} holds no object");
        }
        Ok(Done { summary: applied.join(", "), warnings })
    }

    async fn apply_object(&self, mut object: Value) -> Result<Done> {
        let gvk = Gvk::of(&object).context("an object needs apiVersion and kind")?;
        let (resource, namespaced) = self.resource(&gvk).await?;
        if namespaced && opdev_object::meta::namespace(&object).is_none() {
            object["metadata"]["namespace"] = Value::from(self.namespace.as_str());
        }
        let name = opdev_object::meta::name(&object).context("an object needs metadata.name")?.to_owned();
        let namespace =
            if namespaced { opdev_object::meta::namespace(&object).map(str::to_owned) } else { None };
        let path = object_path(&resource, namespace.as_deref(), &name);
        let uri = format!("{path}?fieldManager={MANAGER}&force=true&fieldValidation=Warn");
        let sent = self.send("PATCH", &uri, "application/apply-patch+yaml", Some(&object)).await;
        let (_, warnings) = sent.map_err(|error| without_secrets(error, &object))?;
        Ok(Done { summary: format!("{} {name} applied", gvk.kind), warnings })
    }
}

/// A file, or the YAML files of a folder in name order.
pub(in crate::dev) fn yaml_files(path: &Path) -> Result<Vec<PathBuf>> {
    if path.is_file() {
        return Ok(vec![path.to_owned()]);
    }
    let entries = std::fs::read_dir(path).with_context(|| format!("{} cannot be read", path.display()))?;
    let mut files: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|end| end == "yaml" || end == "yml" || end == "json"))
        .filter(|path| path.file_stem().is_some_and(|stem| stem != "kustomization"))
        .collect();
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_applied_in_name_order_without_kustomization() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["b.yaml", "a.yml", "kustomization.yaml", "notes.txt"] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        let names: Vec<_> = yaml_files(folder.path())
            .unwrap()
            .iter()
            .map(|path| path.file_name().unwrap().to_owned())
            .collect();
        assert_eq!(names, ["a.yml", "b.yaml"]);
    }
}
