//! Objects that a project's kustomization would deploy beside its CRDs and roles: the manager's Deployment,
//! its webhooks with their Service, Secrets and ConfigMaps. It is built as `kubectl kustomize` builds it, but
//! files with other kinds only are not read, and what cannot be built is left out, for a program runs without
//! it.

use super::chart;
use crate::folders::yaml_files_below;
pub use opdev_kustomize::BuiltObject;
use opdev_kustomize::{Error, ErrorKind, Files, KustomizationError, build_what_can_be};
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

/// The objects of some kinds that a file, a folder, a kustomization or a chart deploys.
#[derive(Clone, Debug, Default)]
pub struct Manifests {
    /// The objects, each with its file.
    pub parts: Vec<BuiltObject>,
    /// Why some of them may be missing, in words.
    pub missing: Vec<String>,
    namespace: Option<String>,
    prefix: String,
}

impl Manifests {
    /// Reads them: a chart with its own values, a kustomization as it is built, or all files of a folder.
    pub fn read(root: &Path, path: &Path, kinds: &[&str]) -> Manifests {
        let at = root.join(path);
        let is_wanted = |part: &BuiltObject| kinds.iter().any(|kind| part.object["kind"] == *kind);
        if chart::is_chart(&at) {
            return match chart::rendered(root, &at) {
                Ok(mut parts) => {
                    parts.retain(is_wanted);
                    Manifests { parts, ..Manifests::default() }
                }
                Err(why) => {
                    let missing = vec![format!("the chart {} does not render: {why}", path.display())];
                    Manifests { missing, ..Manifests::default() }
                }
            };
        }
        let mut missing = Vec::new();
        if at.is_dir() {
            match build_what_can_be(&ProjectFiles, &at, kinds) {
                Ok(built) => {
                    let lost = built.left_out.iter().filter(|error| loses_objects(&error.kind));
                    let missing = lost.map(|error| shown(root, error)).collect();
                    let (namespace, prefix) = (built.namespace, built.name_prefix);
                    return Manifests { parts: built.parts, missing, namespace, prefix };
                }
                Err(error) if is_none(&error) => {}
                Err(error) => missing.push(format!(
                    "{} is no kustomization that can be built, and its files are read one by one: {}",
                    path.display(),
                    shown(root, &error)
                )),
            }
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
        let mut parts: Vec<BuiltObject> =
            yaml_files_below(&at, FOLDERS).into_iter().flat_map(of_file).collect();
        parts.retain(is_wanted);
        Manifests { parts, missing, ..Manifests::default() }
    }
}

/// Returns true if a folder has no kustomization.
pub(crate) fn is_none(error: &Error) -> bool {
    matches!(
        *error.kind,
        ErrorKind::Kustomization(KustomizationError::Missing { .. } | KustomizationError::NoFolder)
    )
}

/// Returns true if whole objects are left out. A patch for an object of a kind that nobody asked for changes
/// nothing.
fn loses_objects(kind: &ErrorKind) -> bool {
    match kind {
        ErrorKind::InKey { source, .. }
        | ErrorKind::InField { source, .. }
        | ErrorKind::InObject { source, .. } => loses_objects(source),
        ErrorKind::Yaml { .. } | ErrorKind::Form { .. } | ErrorKind::Limit(_) | ErrorKind::File(_) => true,
        _ => false,
    }
}

/// An error with its file as the project calls it.
pub(crate) fn shown(root: &Path, error: &Error) -> String {
    let root = root.canonicalize().unwrap_or_else(|_| root.to_owned());
    let mut error = error.clone();
    if let Ok(inside) = error.file.strip_prefix(&root) {
        error.file = inside.to_owned();
    }
    error.to_string()
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
            Some(path) => Kustomized::named(root, path),
            None => Kustomized::read(root),
        }
    }

    fn named(root: &Path, path: &Path) -> Kustomized {
        let Manifests { parts, missing, namespace, prefix } = Manifests::read(root, path, &KINDS);
        for why in &missing {
            tracing::warn!("{why}");
        }
        Kustomized { parts, namespace, prefix }
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
