//! `configMapGenerator` and `secretGenerator`, and the hash of their content that goes into the name.

use crate::error::{Error, ErrorKind, FileError, GeneratorError};
use crate::files::{Files, load};
use crate::kustomization::{File, Generator, GeneratorOptions};
use crate::read::text;
use crate::resource::{Behavior, Resource, append, by_any_id, map_of};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Characters of a line of base64.
const LINE: usize = 70;

/// The kind of a generated object.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum GeneratorKind {
    ConfigMap,
    Secret,
}

impl GeneratorKind {
    pub(crate) fn key(self) -> &'static str {
        match self {
            GeneratorKind::ConfigMap => "configMapGenerator",
            GeneratorKind::Secret => "secretGenerator",
        }
    }
}

/// Makes the object of one entry.
pub(crate) fn generate(
    files: &dyn Files,
    file: &File,
    sort: GeneratorKind,
    at: usize,
) -> Result<Resource, Error> {
    let list = match sort {
        GeneratorKind::ConfigMap => &file.content.config_map_generator,
        GeneratorKind::Secret => &file.content.secret_generator,
    };
    let entry = &list[at];
    make(files, file, sort, entry).map_err(|why| file.error(sort.key(), Some(at), why))
}

fn make(
    files: &dyn Files,
    file: &File,
    sort: GeneratorKind,
    entry: &Generator,
) -> Result<Resource, ErrorKind> {
    if entry.name.is_empty() {
        return Err(GeneratorError::NoName.into());
    }
    if sort == GeneratorKind::ConfigMap && !entry.secret_type.is_empty() {
        return Err(GeneratorError::ConfigMapType.into());
    }
    let (content, sources) = content(files, file, entry)?;
    let options = merged(entry.options.as_ref(), file.content.generator_options.as_ref());
    let mut metadata = json!({ "name": entry.name });
    if !entry.namespace.is_empty() {
        metadata["namespace"] = Value::from(entry.namespace.as_str());
    }
    for (field, map) in [("labels", &options.labels), ("annotations", &options.annotations)] {
        if !map.is_empty() {
            metadata[field] = json!(map);
        }
    }
    let mut object = json!({ "apiVersion": "v1", "metadata": metadata });
    match sort {
        GeneratorKind::ConfigMap => {
            object["kind"] = Value::from("ConfigMap");
            for (key, bytes) in content {
                match String::from_utf8(bytes) {
                    Ok(text) => object["data"][key] = Value::from(text),
                    Err(bytes) => object["binaryData"][key] = Value::from(base64(bytes.as_bytes())),
                }
            }
        }
        GeneratorKind::Secret => {
            object["kind"] = Value::from("Secret");
            let kind = entry.secret_type.as_str();
            object["type"] = Value::from(if kind.is_empty() { "Opaque" } else { kind });
            let data = content.into_iter().map(|(key, bytes)| (key, Value::from(base64(&bytes))));
            object["data"] = Value::Object(data.collect());
        }
    }
    if options.immutable {
        object["immutable"] = Value::Bool(true);
    }
    let behavior = match entry.behavior.as_str() {
        "replace" => Behavior::Replace,
        "merge" => Behavior::Merge,
        // Kustomize takes any other word for `create`.
        _ => Behavior::Create,
    };
    let needs_hash = !options.disable_name_suffix_hash;
    Ok(Resource { object, needs_hash, behavior, sources, file: file.path.clone(), ..Resource::default() })
}

/// The entry's own options win; what is switched on for all stays on.
fn merged(own: Option<&GeneratorOptions>, all: Option<&GeneratorOptions>) -> GeneratorOptions {
    let mut own = own.cloned().unwrap_or_default();
    let Some(all) = all else { return own };
    for (mine, theirs) in [(&mut own.labels, &all.labels), (&mut own.annotations, &all.annotations)] {
        for (key, value) in theirs {
            mine.entry(key.clone()).or_insert_with(|| value.clone());
        }
    }
    own.disable_name_suffix_hash |= all.disable_name_suffix_hash;
    own.immutable |= all.immutable;
    own
}

type Content = BTreeMap<String, Vec<u8>>;

/// Keys and their content, and the files that some come from.
fn content(
    files: &dyn Files,
    file: &File,
    entry: &Generator,
) -> Result<(Content, BTreeMap<String, PathBuf>), ErrorKind> {
    let mut found: Vec<(String, Vec<u8>)> = Vec::new();
    let mut sources = BTreeMap::new();
    for path in &entry.envs {
        let (_, bytes) = load(files, &file.root, path)?;
        let text = String::from_utf8(bytes).map_err(|_| FileError::NotText { path: path.clone() })?;
        found.extend(variables(&text));
    }
    for literal in &entry.literals {
        let (key, value) = literal.split_once('=').filter(|(key, _)| !key.is_empty()).ok_or_else(|| {
            GeneratorError::Literal { key: literal.split('=').next().unwrap_or_default().to_owned() }
        })?;
        found.push((key.to_owned(), without_quotes(value).as_bytes().to_vec()));
    }
    for source in &entry.files {
        let (key, path) = match source.split_once('=') {
            None => (source.rsplit('/').next().unwrap_or(source), source.as_str()),
            Some((key, path)) if key.is_empty() || path.is_empty() || path.contains('=') => {
                return Err(GeneratorError::FileForm { entry: source.clone() }.into());
            }
            Some(pair) => pair,
        };
        let (real, bytes) = load(files, &file.root, path)?;
        sources.insert(key.to_owned(), real);
        found.push((key.to_owned(), bytes));
    }
    let mut content = BTreeMap::new();
    for (key, bytes) in found {
        if content.insert(key.clone(), bytes).is_some() {
            return Err(GeneratorError::KeyTwice { key }.into());
        }
    }
    Ok((content, sources))
}

/// The variables of an env file.
fn variables(text: &str) -> Vec<(String, Vec<u8>)> {
    let lines = text.trim_start_matches('\u{feff}').lines().map(str::trim_start);
    let pairs =
        lines.filter(|line| !line.starts_with('#')).map(|line| line.split_once('=').unwrap_or((line, "")));
    pairs
        .filter(|(key, _)| !key.is_empty())
        .map(|(key, value)| (key.to_owned(), value.as_bytes().to_vec()))
        .collect()
}

fn without_quotes(text: &str) -> &str {
    let inner = |quote: char| text.strip_prefix(quote)?.strip_suffix(quote);
    inner('"').or_else(|| inner('\'')).unwrap_or(text)
}

/// Base64; what is longer than a line is broken into lines, each with its end.
fn base64(bytes: &[u8]) -> String {
    let text = STANDARD.encode(bytes);
    if text.len() / LINE == 0 {
        return text;
    }
    let mut lines = String::with_capacity(text.len() + text.len() / LINE + 1);
    for line in text.as_bytes().chunks(LINE) {
        lines.extend(line.iter().map(|byte| char::from(*byte)));
        lines.push('\n');
    }
    lines
}

/// Adds a generated object, or merges it into the one of the same name.
pub(crate) fn absorb(resources: &mut Vec<Resource>, mut new: Resource) -> Result<(), ErrorKind> {
    let id = new.id();
    let old = match by_any_id(resources, |other| other.is_same(&id)).as_slice() {
        [] if new.behavior == Behavior::Create => return Ok(append(resources, new)?),
        [] => return Err(GeneratorError::NothingThere { object: id.show() }.into()),
        [one] => *one,
        _ => return Err(GeneratorError::Several { object: id.show() }.into()),
    };
    let there = &resources[old];
    match new.behavior {
        Behavior::Create => {
            return Err(GeneratorError::ThereAlready { object: id.show() }.into());
        }
        Behavior::Replace => {}
        Behavior::Merge => {
            for field in ["data", "binaryData"] {
                merge_data(&mut new.object, &there.object, field);
            }
            let mut sources = there.sources.clone();
            sources.append(&mut new.sources);
            new.sources = sources;
        }
    }
    for field in ["labels", "annotations"] {
        let mut map = map_of(&there.object, field).cloned().unwrap_or_default();
        map.extend(map_of(&new.object, field).cloned().unwrap_or_default());
        if !map.is_empty() {
            let texts = map.iter().map(|(key, value)| (key.clone(), Value::from(text(value))));
            new.object["metadata"][field] = Value::Object(texts.collect());
        }
    }
    new.set_metadata("name", &there.name());
    new.set_metadata("namespace", &there.namespace());
    new.former.clone_from(&there.former);
    new.prefixes.clone_from(&there.prefixes);
    new.suffixes.clone_from(&there.suffixes);
    new.needs_hash &= there.needs_hash;
    new.behavior = there.behavior;
    resources[old] = new;
    Ok(())
}

fn merge_data(new: &mut Value, old: &Value, field: &str) {
    let texts = |object: &Value| -> Map<String, Value> {
        let pairs = object[field].as_object().into_iter().flatten();
        pairs.map(|(key, value)| (key.clone(), Value::from(text(value)))).collect()
    };
    let mut map = texts(old);
    map.extend(texts(new));
    if let Some(new) = new.as_object_mut() {
        if map.is_empty() {
            new.remove(field);
        } else {
            new.insert(field.to_owned(), Value::Object(map));
        }
    }
}

/// Puts the hash of their content behind the names of generated objects.
pub(crate) fn add_hashes(resources: &mut [Resource]) {
    for resource in resources.iter_mut().filter(|resource| resource.needs_hash) {
        let hash = hash(&resource.object);
        resource.remember_id();
        let name = format!("{}-{hash}", resource.name());
        resource.set_metadata("name", &name);
    }
}

/// Kustomize's hash of a ConfigMap or Secret: ten characters that make no words.
fn hash(object: &Value) -> String {
    // The name is always empty, for kustomize looks for it in a wrong place.
    let mut hashed = json!({ "kind": object["kind"], "name": "" });
    let or_empty = |field: &str| object.get(field).cloned().unwrap_or_else(|| Value::from(""));
    hashed["data"] = or_empty("data");
    let more = if object["kind"] == "Secret" {
        hashed["type"] = or_empty("type");
        "stringData"
    } else {
        "binaryData"
    };
    if object[more].is_object() {
        hashed[more] = object[more].clone();
    }
    let digest = Sha256::digest(as_go_writes(&hashed).as_bytes());
    let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    let coded = hex.chars().take(10).map(|digit| match digit {
        '0' => 'g',
        '1' => 'h',
        '3' => 'k',
        'a' => 'm',
        'e' => 't',
        other => other,
    });
    coded.collect()
}

/// JSON as Go writes it: keys in order, and no `<`, `>`, `&` nor line separators in texts.
fn as_go_writes(value: &Value) -> String {
    let mut written = String::new();
    for c in sorted(value).to_string().chars() {
        match c {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                written.push_str(&format!("\\u{:04x}", u32::from(c)));
            }
            c => written.push(c),
        }
    }
    written
}

fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let ordered: BTreeMap<&String, Value> =
                map.iter().map(|(key, value)| (key, sorted(value))).collect();
            Value::Object(ordered.into_iter().map(|(key, value)| (key.clone(), value)).collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(sorted).collect()),
        plain => plain.clone(),
    }
}
