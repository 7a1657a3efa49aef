//! `patches`, `patchesStrategicMerge` and `patchesJson6902`: strategic merge and JSON patches, from files or
//! in line.

use crate::error::{Error, ErrorKind, ObjectError, PatchError};
use crate::files::{Files, load_text};
use crate::kustomization::{File, Patch};
use crate::merge;
use crate::read;
use crate::resource::{Resource, append, by_any_id, map_of, set_metadata, texts_only};
use crate::selector::Target;
use opdev_object::{patch as json_patches, yaml};
use serde_json::Value;
use std::path::PathBuf;

/// A patch that has been read.
enum Change {
    /// Parts of objects.
    Merge(Vec<Value>),
    /// Operations of RFC 6902.
    Json(Value),
}

/// The changes of its identity that a patch may make.
#[derive(Clone, Copy, Default)]
struct Allowed {
    name: bool,
    kind: bool,
}

/// One entry of `patchesStrategicMerge`.
pub(crate) fn strategic(
    files: &dyn Files,
    file: &File,
    at: usize,
    resources: &mut Vec<Resource>,
) -> Result<(), Error> {
    let entry = &file.content.patches_strategic_merge[at];
    let failed = |why: ErrorKind| file.error("patchesStrategicMerge", Some(at), why);
    let parts = match parts(entry) {
        Ok(parts) if !parts.is_empty() => parts,
        Ok(_) | Err(_) => {
            let (path, text) = load_text(files, &file.root, entry).map_err(|why| failed(why.into()))?;
            parts(&text).map_err(|(line, why)| Error::new(&path, line, why))?
        }
    };
    if parts.is_empty() {
        return Err(failed(PatchError::Empty.into()));
    }
    for part in &parts {
        let target = only_target(resources, part).map_err(|why| failed(why.into()))?;
        apply(&mut resources[target], part, Allowed::default()).map_err(|why| failed(why.into()))?;
    }
    drop_nothing(resources);
    Ok(())
}

/// One entry of `patches`.
pub(crate) fn patch(
    files: &dyn Files,
    file: &File,
    at: usize,
    resources: &mut Vec<Resource>,
) -> Result<(), Error> {
    let entry = &file.content.patches[at];
    let failed = |why: ErrorKind| file.error("patches", Some(at), why);
    let (path, text) = text_of(files, file, entry).map_err(failed)?;
    let change = read_patch(&text).map_err(|(line, why)| match &path {
        Some(path) => Error::new(path, line, why),
        None => failed(why),
    })?;
    let allowed = Allowed { name: entry.options.allow_name_change, kind: entry.options.allow_kind_change };
    match (&change, &entry.target) {
        (Change::Json(_), None) => Err(failed(PatchError::NoTarget.into())),
        (Change::Json(operations), Some(target)) => {
            let target = Target::new(target).map_err(|why| failed(why.into()))?;
            for resource in resources.iter_mut().filter(|resource| target.selects(resource)) {
                resource.remember_id();
                json_over_annotations(resource, operations).map_err(|why| failed(why.into()))?;
            }
            Ok(())
        }
        // Since kustomize 5.8 a file of comments changes nothing.
        (Change::Merge(parts), Some(_)) if parts.is_empty() => Ok(()),
        (Change::Merge(parts), Some(target)) => {
            let [part] = parts.as_slice() else {
                return Err(failed(PatchError::SeveralParts.into()));
            };
            let target = Target::new(target).map_err(|why| failed(why.into()))?;
            for resource in resources.iter_mut().filter(|resource| target.selects(resource)) {
                apply(resource, &for_many(part, resource), allowed).map_err(|why| failed(why.into()))?;
            }
            again(resources).map_err(|why| failed(why.into()))
        }
        (Change::Merge(parts), None) => {
            for part in parts {
                let target = only_target(resources, part).map_err(|why| failed(why.into()))?;
                apply(&mut resources[target], part, allowed).map_err(|why| failed(why.into()))?;
            }
            drop_nothing(resources);
            Ok(())
        }
    }
}

/// One entry of `patchesJson6902`.
pub(crate) fn json6902(
    files: &dyn Files,
    file: &File,
    at: usize,
    resources: &mut [Resource],
) -> Result<(), Error> {
    let entry = &file.content.patches_json6902[at];
    let failed = |why: ErrorKind| file.error("patchesJson6902", Some(at), why);
    let Some(target) = entry.target.as_ref().filter(|target| !target.name.is_empty()) else {
        return Err(failed(PatchError::NoTargetName.into()));
    };
    let (path, text) = text_of(files, file, entry).map_err(failed)?;
    let operations = operations(&text).ok_or_else(|| match &path {
        Some(path) => Error::new(path, 0, PatchError::NotOperations),
        None => failed(PatchError::NotOperations.into()),
    })?;
    let target = Target::new(target).map_err(|why| failed(why.into()))?;
    for resource in resources.iter_mut().filter(|resource| target.selects(resource)) {
        json(resource, &operations).map_err(|why| failed(why.into()))?;
    }
    Ok(())
}

/// The text of a patch, and its file unless it stands in line.
fn text_of(files: &dyn Files, file: &File, entry: &Patch) -> Result<(Option<PathBuf>, String), ErrorKind> {
    let inline = entry.patch.trim();
    match (inline.is_empty(), entry.path.is_empty()) {
        (true, true) => Err(PatchError::Neither.into()),
        (false, false) => Err(PatchError::Both.into()),
        (false, true) => Ok((None, inline.to_owned())),
        (true, false) => {
            let (path, text) = load_text(files, &file.root, &entry.path)?;
            Ok((Some(path), text))
        }
    }
}

fn read_patch(text: &str) -> Result<Change, (u32, ErrorKind)> {
    if let Some(operations) = operations(text) {
        return Ok(Change::Json(operations));
    }
    parts(text).map(Change::Merge)
}

/// A list of operations. As kustomize has it, a text that starts with a bracket is JSON and not YAML.
fn operations(text: &str) -> Option<Value> {
    let value =
        if text.starts_with('[') { serde_json::from_str(text).ok()? } else { yaml::from_str(text).ok()? };
    value.as_array().is_some_and(|list| !list.is_empty()).then_some(value)
}

/// The parts of objects that a text holds, or the line and the reason why it holds none.
fn parts(text: &str) -> Result<Vec<Value>, (u32, ErrorKind)> {
    let documents =
        read::documents(text).map_err(|error| (error.line, ErrorKind::Yaml { message: error.message }))?;
    let documents = documents.into_iter().map(|document| document.value);
    documents
        .filter(|part| !part.as_object().is_some_and(serde_json::Map::is_empty))
        .map(|part| match (part["kind"].as_str(), part["metadata"]["name"].is_null()) {
            (None, _) => Err((0, PatchError::NoKind.into())),
            (Some(kind), true) => Err((0, PatchError::NoName { kind: kind.to_owned() }.into())),
            (Some(_), false) => Ok(part),
        })
        .collect()
}

/// The one object that a patch names.
fn only_target(resources: &[Resource], part: &Value) -> Result<usize, PatchError> {
    let id = Resource { object: part.clone(), ..Resource::default() }.id();
    match by_any_id(resources, |other| other.is_same(&id)).as_slice() {
        [one] => Ok(*one),
        [] => Err(PatchError::NoObject { object: id.show() }),
        more => Err(PatchError::SeveralObjects { count: more.len(), object: id.show() }),
    }
}

/// A patch for whatever a target selects: it has the kind's version, and labels and annotations that are
/// text.
fn for_many(part: &Value, resource: &Resource) -> Value {
    let mut part = part.clone();
    for field in ["labels", "annotations"] {
        if map_of(&part, field).is_some() || !part["metadata"][field].is_null() {
            texts_only(&mut part, field);
        } else if let Some(metadata) = part["metadata"].as_object_mut() {
            metadata.remove(field);
        }
    }
    part["apiVersion"] = resource.object["apiVersion"].clone();
    part
}

fn apply(resource: &mut Resource, part: &Value, allowed: Allowed) -> Result<(), PatchError> {
    let (name, namespace, kind) = (resource.name(), resource.namespace(), resource.object["kind"].clone());
    let shown = resource.id().show();
    if allowed.name || allowed.kind {
        resource.remember_id();
    }
    for path in std::mem::take(&mut resource.empty) {
        remove_null(&mut resource.object, &path);
    }
    let merged = merge::merge(&mut resource.object, &mut part.clone())
        .map_err(|source| PatchError::Merge { object: shown, source })?;
    if merged.is_none() {
        resource.object = Value::Null;
        return Ok(());
    }
    if !allowed.kind {
        resource.object["kind"] = kind;
    }
    if !allowed.name {
        set_metadata(&mut resource.object, "name", &name);
    }
    set_metadata(&mut resource.object, "namespace", &namespace);
    Ok(())
}

/// Removes a field that is still without a value.
fn remove_null(object: &mut Value, path: &[String]) {
    let Some((last, before)) = path.split_last() else { return };
    let mut at = object;
    for name in before {
        let Some(next) = at.get_mut(name) else { return };
        at = next;
    }
    if at.get(last).is_some_and(Value::is_null)
        && let Some(map) = at.as_object_mut()
    {
        map.remove(last);
    }
}

/// A patch of `patches`. By then kustomize has noted the former names of an object in its annotations, so
/// these are always there.
fn json_over_annotations(resource: &mut Resource, operations: &Value) -> Result<(), PatchError> {
    if let Some(metadata) = resource.object["metadata"].as_object_mut() {
        metadata.entry("annotations").or_insert_with(|| Value::Object(serde_json::Map::new()));
    }
    json(resource, operations)?;
    if map_of(&resource.object, "annotations").is_some_and(serde_json::Map::is_empty)
        && let Some(metadata) = resource.object["metadata"].as_object_mut()
    {
        metadata.remove("annotations");
    }
    Ok(())
}

fn json(resource: &mut Resource, operations: &Value) -> Result<(), PatchError> {
    json_patches::json_patch(&mut resource.object, operations)
        .map_err(|source| PatchError::Json { object: resource.id().show(), source })?;
    resource.empty.clear();
    Ok(())
}

fn drop_nothing(resources: &mut Vec<Resource>) {
    resources.retain(|resource| !resource.is_nothing());
}

/// Finds the objects again after their names may have changed.
fn again(resources: &mut Vec<Resource>) -> Result<(), ObjectError> {
    let all = std::mem::take(resources);
    all.into_iter().filter(|one| !one.is_nothing()).try_for_each(|one| append(resources, one))
}
