//! Objects that a project's kustomization would deploy beside its CRDs and roles: the manager's Deployment,
//! its webhooks with their Service, Secrets and ConfigMaps. It is built as `kubectl kustomize` builds it, but
//! files with other kinds only are not read, and what cannot be built is left out, for a program runs without
//! it.

use crate::files::yaml_files_below;
use opdev_kustomize::{BuiltObject, Files, build_what_can_be};
use opdev_object::yaml;
use opdev_os::small_file::{small_file, small_text};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

/// The kinds that are read; files with others only, such as CRDs of a megabyte, are skipped by their text.
const KINDS: [&str; 6] = [
    "Deployment",
    "MutatingWebhookConfiguration",
    "ValidatingWebhookConfiguration",
    "Service",
    "Secret",
    // Replacements take values from them.
    "ConfigMap",
];

/// How many folders deep manifests are looked for that are no kustomization.
const FOLDERS: usize = 3;

/// The files of this machine, as far as somebody wrote them.
#[derive(Clone, Copy, Debug)]
pub struct ProjectFiles;

impl Files for ProjectFiles {
    fn real(&self, path: &Path) -> Option<PathBuf> {
        path.canonicalize().ok()
    }

    fn is_folder(&self, path: &Path) -> bool {
        path.is_dir()
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        small_file(path).ok_or_else(|| io::Error::other("it is no plain file, too large, or may not be read"))
    }
}

/// Files of the project, some with other texts than those on disk.
#[derive(Debug, Default)]
pub struct Overlaid(pub BTreeMap<PathBuf, Vec<u8>>);

impl Files for Overlaid {
    fn real(&self, path: &Path) -> Option<PathBuf> {
        ProjectFiles.real(path)
    }

    fn is_folder(&self, path: &Path) -> bool {
        ProjectFiles.is_folder(path)
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        match self.0.get(path) {
            Some(text) => Ok(text.clone()),
            None => ProjectFiles.read(path),
        }
    }
}

/// The objects that a kustomization deploys.
#[derive(Clone, Debug, Default)]
pub struct Kustomized {
    pub(crate) parts: Vec<BuiltObject>,
    /// The namespace that all of it is put into.
    pub namespace: Option<String>,
    /// The prefix of every name.
    pub(crate) prefix: String,
}

impl Kustomized {
    /// The objects that a project deploys: its manifests, where the user has named them.
    pub fn of(root: &Path, manifests: Option<&Path>) -> Kustomized {
        match manifests {
            Some(path) => Kustomized::named(&root.join(path)),
            None => Kustomized::read(root),
        }
    }

    /// The objects of a kustomization, of a file, or of all files of a folder.
    fn named(path: &Path) -> Kustomized {
        if path.is_dir()
            && let Ok(built) = build_what_can_be(&ProjectFiles, path, &KINDS)
        {
            return Kustomized { parts: built.parts, namespace: built.namespace, prefix: built.name_prefix };
        }
        let of_file = |file: PathBuf| {
            let text = small_text(&file).unwrap_or_default();
            let part = |object: Value| BuiltObject {
                first_name: object["metadata"]["name"].as_str().unwrap_or_default().to_owned(),
                object,
                file: file.canonicalize().unwrap_or_else(|_| file.clone()),
                ..BuiltObject::default()
            };
            documents(&text).map(part).collect::<Vec<_>>()
        };
        let parts = yaml_files_below(path, FOLDERS).into_iter().flat_map(of_file);
        let parts = parts.filter(|part| KINDS.iter().any(|kind| part.object["kind"] == *kind));
        Kustomized { parts: parts.collect(), ..Kustomized::default() }
    }

    /// Builds `config/default`, else `config/manager`; nothing where neither is a kustomization.
    pub fn read(root: &Path) -> Kustomized {
        let starts = ["config/default", "config/manager"].map(|start| root.join(start));
        let built = starts.iter().filter(|folder| folder.is_dir()).find_map(|folder| {
            let built = build_what_can_be(&ProjectFiles, folder, &KINDS);
            built.inspect_err(|error| tracing::warn!("what is deployed is not known: {error}")).ok()
        });
        let Some(built) = built else { return Kustomized::default() };
        for error in &built.left_out {
            tracing::info!("left out of what is deployed: {error}");
        }
        Kustomized { parts: built.parts, namespace: built.namespace, prefix: built.name_prefix }
    }

    /// The objects of a kind.
    pub(crate) fn of_kind(&self, kind: &str) -> impl Iterator<Item = &Value> {
        self.parts.iter().map(|part| &part.object).filter(move |object| object["kind"] == kind)
    }
}

/// The documents of a YAML file that can be read.
pub(crate) fn documents(text: &str) -> impl Iterator<Item = Value> {
    let parts = text.split("\n---").map(|part| part.trim_start_matches("---"));
    parts.filter_map(|part| yaml::from_str(part).ok()).filter(|value: &Value| !value.is_null())
}

/// The entries of a list.
pub(crate) fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

/// The texts of a list.
pub(crate) fn texts(list: &Value) -> impl Iterator<Item = &str> {
    items(list).filter_map(Value::as_str)
}
