//! What a project's kustomizations would deploy beside its CRDs and roles: the manager's Deployment, its webhooks with
//! their Service, and Secrets, with the patches that lead there. Reads files; what it does not know of kustomize changes
//! nothing.

use super::small_file::small_text;
use opdev_object::{facts, patch, strategic, yaml};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Folders deep that kustomizations may lead.
const DEEPEST: usize = 8;

/// The kinds that are read; others, such as CRDs of a megabyte, are skipped by their text.
const KINDS: [&str; 5] =
    ["Deployment", "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration", "Service", "Secret"];

/// An object and the file it stands in.
#[derive(Debug)]
pub(super) struct Manifest {
    pub(super) file: PathBuf,
    pub(super) object: Value,
}

/// What a kustomization makes, before names get their prefix.
#[derive(Debug, Default)]
pub(super) struct Kustomized {
    pub(super) objects: Vec<Manifest>,
    /// Files of generated ConfigMaps: name of the map → key → file.
    pub(super) files: BTreeMap<String, BTreeMap<String, PathBuf>>,
    /// The namespace that all of it is put into.
    pub(super) namespace: Option<String>,
    /// What stands before every name.
    pub(super) prefix: String,
}

impl Kustomized {
    /// Reads `config/default`, else `config/manager`; `None` where neither is a kustomization.
    pub(super) fn read(root: &Path) -> Option<Kustomized> {
        let starts = ["config/default", "config/manager"].map(|start| root.join(start));
        let (folder, outermost) = starts.iter().find_map(|folder| Some((folder, kustomization(folder)?)))?;
        let text = |name: &str| outermost[name].as_str().filter(|text| !text.is_empty()).map(str::to_owned);
        let mut found = Kustomized {
            namespace: text("namespace"),
            prefix: text("namePrefix").unwrap_or_default(),
            ..Kustomized::default()
        };
        found.gather(folder, &mut BTreeSet::new(), 0);
        Some(found)
    }

    /// The objects of a kind.
    pub(super) fn of_kind(&self, kind: &str) -> impl Iterator<Item = &Value> {
        self.objects.iter().map(|one| &one.object).filter(move |object| object["kind"] == kind)
    }

    fn gather(&mut self, folder: &Path, seen: &mut BTreeSet<PathBuf>, depth: usize) {
        let Ok(folder) = folder.canonicalize() else { return };
        if depth > DEEPEST || !seen.insert(folder.clone()) {
            return;
        }
        let Some(kustomization) = kustomization(&folder) else { return };
        let from = self.objects.len();
        let lists = ["resources", "bases", "components"];
        for path in lists.iter().flat_map(|list| texts(&kustomization[*list])) {
            let path = folder.join(path);
            if path.is_dir() {
                self.gather(&path, seen, depth + 1);
            } else {
                self.objects.extend(objects(&path));
            }
        }
        for map in items(&kustomization["configMapGenerator"]) {
            let files = texts(&map["files"]).map(|entry| match entry.split_once('=') {
                Some((key, path)) => (key.to_owned(), folder.join(path)),
                None => (entry.rsplit('/').next().unwrap_or(entry).to_owned(), folder.join(entry)),
            });
            self.files.entry(map["name"].as_str().unwrap_or_default().to_owned()).or_default().extend(files);
        }
        patch_all(&mut self.objects[from..], &kustomization, &folder);
    }
}

/// Applies the patches of a kustomization to what it has gathered.
fn patch_all(objects: &mut [Manifest], kustomization: &Value, folder: &Path) {
    let read = |entry: &Value| match (entry["path"].as_str(), entry["patch"].as_str()) {
        (Some(path), _) => small_text(&folder.join(path)),
        (None, inline) => inline.map(str::to_owned),
    };
    let entries = ["patches", "patchesJson6902"].iter().flat_map(|list| items(&kustomization[*list]));
    for (text, target) in entries.filter_map(|entry| Some((read(entry)?, &entry["target"]))) {
        objects.iter_mut().for_each(|one| apply(&mut one.object, &text, target));
    }
    for text in texts(&kustomization["patchesStrategicMerge"]) {
        let text = if text.contains('\n') { Some(text.to_owned()) } else { small_text(&folder.join(text)) };
        if let Some(text) = text {
            objects.iter_mut().for_each(|one| apply(&mut one.object, &text, &Value::Null));
        }
    }
}

fn kustomization(folder: &Path) -> Option<Value> {
    let names = ["kustomization.yaml", "kustomization.yml", "Kustomization"];
    let path = names.iter().map(|name| folder.join(name)).find(|path| path.is_file())?;
    yaml::from_str(&small_text(&path)?).ok()
}

fn objects(path: &Path) -> Vec<Manifest> {
    let text = small_text(path).unwrap_or_default();
    if !KINDS.iter().any(|kind| text.contains(&format!("kind: {kind}"))) {
        return Vec::new();
    }
    documents(&text)
        .filter(|object| object["kind"].as_str().is_some_and(|kind| KINDS.contains(&kind)))
        .map(|object| Manifest { file: path.to_owned(), object })
        .collect()
}

/// The documents of a YAML file that can be read.
pub(super) fn documents(text: &str) -> impl Iterator<Item = Value> {
    let parts = text.split("\n---").map(|part| part.trim_start_matches("---"));
    parts.filter_map(|part| yaml::from_str(part).ok()).filter(|value: &Value| !value.is_null())
}

/// The entries of a list.
pub(super) fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

/// The texts of a list.
pub(super) fn texts(list: &Value) -> impl Iterator<Item = &str> {
    items(list).filter_map(Value::as_str)
}

/// Whether an object has the kind and the name that are wanted.
fn is_target(object: &Value, kind: &Value, name: &Value) -> bool {
    let is_kind = kind.as_str().is_none_or(|kind| object["kind"] == kind);
    // A name may carry the prefix of an outer kustomization.
    let name = name.as_str().unwrap_or_default();
    let is = object["metadata"]["name"].as_str().unwrap_or_default();
    is_kind && (is.ends_with(name) || name.ends_with(is))
}

/// Applies a patch of either sort; one that is about something else, or cannot be applied, changes nothing.
fn apply(object: &mut Value, text: &str, target: &Value) {
    let is_named = !target.is_null();
    if is_named && !is_target(object, &target["kind"], &target["name"]) {
        return;
    }
    for change in documents(text) {
        let mut changed = object.clone();
        let done = if change.is_array() {
            is_named && patch::json_patch(&mut changed, &change).is_ok()
        } else if change["kind"].is_string()
            && (is_named || is_target(object, &change["kind"], &change["metadata"]["name"]))
            && change["kind"] == object["kind"]
            && let Some(gvk) = opdev_object::meta::Gvk::of(object)
            && let Some(schema) = facts::facts().schema(&gvk)
        {
            strategic::apply(&mut changed, &change, &schema).is_ok()
        } else {
            false
        };
        if done {
            *object = changed;
        }
    }
}
