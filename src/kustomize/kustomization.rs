//! The file itself: its keys, with the lines they stand on. A key that kustomize does not know is an error,
//! as is one that would fetch or run something.

use crate::error::{Error, ErrorKind, KustomizationError};
use crate::fields::FieldSpec;
use crate::files::{Files, NAMES};
use opdev_object::spelling;
use opdev_object::yaml::{self, Node};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A kustomization.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Kustomization {
    pub(crate) kind: String,
    pub(crate) api_version: String,
    pub(crate) name_prefix: String,
    pub(crate) name_suffix: String,
    pub(crate) namespace: String,
    pub(crate) common_labels: BTreeMap<String, String>,
    pub(crate) labels: Vec<Label>,
    pub(crate) common_annotations: BTreeMap<String, String>,
    pub(crate) patches_strategic_merge: Vec<String>,
    pub(crate) patches_json6902: Vec<Patch>,
    pub(crate) patches: Vec<Patch>,
    pub(crate) images: Vec<Image>,
    pub(crate) image_tags: Vec<Image>,
    pub(crate) replacements: Vec<ReplacementEntry>,
    pub(crate) replicas: Vec<Replica>,
    pub(crate) sort_options: Option<SortOptions>,
    pub(crate) resources: Vec<String>,
    pub(crate) components: Vec<String>,
    pub(crate) crds: Vec<String>,
    pub(crate) bases: Vec<String>,
    pub(crate) config_map_generator: Vec<Generator>,
    pub(crate) secret_generator: Vec<Generator>,
    pub(crate) generator_options: Option<GeneratorOptions>,
    pub(crate) configurations: Vec<String>,
    pub(crate) vars: Vec<Var>,
    pub(crate) transformers: Vec<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Label {
    pub(crate) pairs: BTreeMap<String, String>,
    pub(crate) include_selectors: bool,
    pub(crate) include_templates: bool,
    pub(crate) fields: Vec<FieldSpec>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Patch {
    pub(crate) path: String,
    pub(crate) patch: String,
    pub(crate) target: Option<Selector>,
    pub(crate) options: PatchOptions,
}

/// Changes that a patch may make beside its fields.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct PatchOptions {
    pub(crate) allow_name_change: bool,
    pub(crate) allow_kind_change: bool,
}

/// The objects that are meant. In patches group, version, kind, name and namespace are anchored regular
/// expressions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Selector {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) kind: String,
    pub(crate) name: String,
    pub(crate) namespace: String,
    pub(crate) annotation_selector: String,
    pub(crate) label_selector: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Image {
    pub(crate) name: String,
    pub(crate) new_name: String,
    pub(crate) tag_suffix: String,
    pub(crate) new_tag: String,
    pub(crate) digest: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct ReplacementEntry {
    pub(crate) path: String,
    pub(crate) source: Option<ReplacementSource>,
    pub(crate) source_value: Option<String>,
    pub(crate) targets: Vec<ReplacementTarget>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct ReplacementSource {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) kind: String,
    pub(crate) name: String,
    pub(crate) namespace: String,
    pub(crate) field_path: String,
    pub(crate) options: Option<FieldOptions>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct ReplacementTarget {
    pub(crate) select: Option<Selector>,
    pub(crate) reject: Vec<Selector>,
    pub(crate) field_paths: Vec<String>,
    pub(crate) options: Option<FieldOptions>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct FieldOptions {
    pub(crate) delimiter: String,
    pub(crate) index: i64,
    pub(crate) encoding: String,
    pub(crate) create: bool,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Replica {
    pub(crate) name: String,
    pub(crate) count: i64,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct SortOptions {
    pub(crate) order: String,
    pub(crate) legacy_sort_options: Option<LegacySortOptions>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct LegacySortOptions {
    pub(crate) order_first: Vec<String>,
    pub(crate) order_last: Vec<String>,
}

/// A name, and the value of an object that it stands for.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Var {
    pub(crate) name: String,
    pub(crate) objref: ObjRef,
    pub(crate) fieldref: FieldRef,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct ObjRef {
    pub(crate) api_version: String,
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) kind: String,
    pub(crate) name: String,
    pub(crate) namespace: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct FieldRef {
    #[serde(alias = "fieldPath")]
    pub(crate) fieldpath: String,
}

/// A generator of ConfigMaps or Secrets; `type` is of Secrets alone.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Generator {
    pub(crate) name: String,
    pub(crate) namespace: String,
    pub(crate) behavior: String,
    pub(crate) literals: Vec<String>,
    pub(crate) files: Vec<String>,
    pub(crate) envs: Vec<String>,
    pub(crate) env: String,
    pub(crate) options: Option<GeneratorOptions>,
    #[serde(rename = "type")]
    pub(crate) secret_type: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct GeneratorOptions {
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) annotations: BTreeMap<String, String>,
    pub(crate) disable_name_suffix_hash: bool,
    pub(crate) immutable: bool,
}

/// Keys that are understood.
const KEYS: [&str; 27] = [
    "kind",
    "apiVersion",
    "metadata",
    "namePrefix",
    "nameSuffix",
    "namespace",
    "commonLabels",
    "labels",
    "commonAnnotations",
    "patchesStrategicMerge",
    "patchesJson6902",
    "patches",
    "images",
    "imageTags",
    "replacements",
    "replicas",
    "sortOptions",
    "resources",
    "components",
    "crds",
    "bases",
    "configMapGenerator",
    "secretGenerator",
    "generatorOptions",
    "configurations",
    "vars",
    "transformers",
];

/// Keys of kustomize that opdev does not build, and why.
const REFUSED: [(&str, &str); 7] = [
    ("helmCharts", "opdev fetches no charts while it builds a kustomization"),
    ("helmGlobals", "opdev fetches no charts while it builds a kustomization"),
    ("helmChartInflationGenerator", "opdev fetches no charts while it builds a kustomization"),
    ("generators", "opdev runs no generators"),
    ("validators", "opdev runs no validators"),
    ("openapi", "opdev merges lists by the schemas that kustomize brings along"),
    ("buildMetadata", "opdev adds no build metadata"),
];

pub(crate) const BUILD_IT: &str = "let `kubectl kustomize` build it";

/// A kustomization and where it stands.
#[derive(Debug)]
pub(crate) struct File {
    pub(crate) path: PathBuf,
    /// Its folder, without links.
    pub(crate) root: PathBuf,
    pub(crate) content: Kustomization,
    lines: Node,
}

impl File {
    /// The line of a key, or of an entry of its list; 0 where it is not there.
    pub(crate) fn line(&self, key: &str, entry: Option<usize>) -> u32 {
        let Some((key, value)) = self.lines.entry(key) else { return 0 };
        entry.and_then(|at| value.items().get(at)).map_or(key.line, |item| item.line)
    }

    /// Another content at the same place.
    pub(crate) fn with(&self, content: Kustomization) -> File {
        let lines = Node { line: 0, column: 0, kind: yaml::Kind::Null };
        File { path: self.path.clone(), root: self.root.clone(), content, lines }
    }

    /// An error about a key, or an entry of its list.
    pub(crate) fn error(&self, key: &str, entry: Option<usize>, kind: impl Into<ErrorKind>) -> Error {
        let source = Box::new(kind.into());
        Error::new(&self.path, self.line(key, entry), ErrorKind::InKey { key: key.to_owned(), entry, source })
    }
}

/// The kustomization's file in a real folder.
pub(crate) fn find(files: &dyn Files, root: &Path) -> Result<PathBuf, Error> {
    let found: Vec<PathBuf> = NAMES
        .iter()
        .map(|name| root.join(name))
        // As everywhere, a link does not lead out of the folder.
        .filter(|path| files.real(path).is_some_and(|real| real.starts_with(root) && !files.is_folder(&real)))
        .collect();
    match found.as_slice() {
        [one] => Ok(one.clone()),
        [] => Err(Error::new(root, 0, KustomizationError::Missing { names: &NAMES })),
        _ => Err(Error::new(root, 0, KustomizationError::Several { names: &NAMES })),
    }
}

/// Reads the kustomization of a real folder. With `left_out`, keys that cannot be built are left out and
/// noted there.
pub(crate) fn read(files: &dyn Files, root: &Path, left_out: Option<&mut Vec<Error>>) -> Result<File, Error> {
    let path = find(files, root)?;
    let unreadable = |reason: String| Error::new(&path, 0, KustomizationError::Unreadable { reason });
    let bytes = files.read(&path).map_err(|error| unreadable(error.to_string()))?;
    let text = String::from_utf8(bytes).map_err(|_| unreadable("it is not UTF-8".to_owned()))?;
    let lines = yaml::parse(&text).map_err(|error| Error::yaml(&path, error))?;
    let value = yaml::to_json(&lines).map_err(|error| Error::yaml(&path, error))?;
    let Value::Object(map) = value else {
        return Err(Error::new(&path, 0, KustomizationError::NotAMap));
    };
    let mut map = without_nulls(map);
    let line = |key: &str| lines.entry(key).map_or(0, |(key, _)| key.line);
    let mut wrong: Vec<Error> = Vec::new();
    map.retain(|key, value| match problem(key, value) {
        None => true,
        Some((kind, hint)) => {
            wrong.push(Error { hint, ..Error::new(&path, line(key), kind) });
            false
        }
    });
    wrong.sort_by_key(|error| error.line);
    match left_out {
        Some(left_out) => left_out.append(&mut wrong),
        None => wrong.into_iter().next().map_or(Ok(()), Err)?,
    }
    let content: Kustomization =
        serde_json::from_value(Value::Object(map.clone())).map_err(|error| Error::form(&path, &error))?;
    if map.keys().all(|key| matches!(key.as_str(), "kind" | "apiVersion")) {
        return Err(Error::new(&path, 0, KustomizationError::Empty));
    }
    let is_component = content.kind == "Component";
    if !matches!(content.kind.as_str(), "" | "Kustomization" | "Component") {
        return Err(Error::new(&path, line("kind"), KustomizationError::Kind { kind: content.kind }));
    }
    let wanted = format!("kustomize.config.k8s.io/{}", if is_component { "v1alpha1" } else { "v1beta1" });
    if !content.api_version.is_empty() && content.api_version != wanted {
        let kind = KustomizationError::ApiVersion { found: content.api_version, wanted };
        return Err(Error::new(&path, line("apiVersion"), kind));
    }
    Ok(File { path, root: root.to_owned(), content: fixed(content), lines })
}

/// Why a key cannot be built, and what to do about it.
fn problem(key: &str, value: &Value) -> Option<(KustomizationError, Option<String>)> {
    let key_of = || key.to_owned();
    if key == "metadata" {
        return None;
    }
    if KEYS.contains(&key) {
        let alone = Value::Object([(key.to_owned(), value.clone())].into_iter().collect());
        let error = serde_json::from_value::<Kustomization>(alone).err()?;
        return Some((KustomizationError::Value { key: key_of(), message: error.to_string() }, None));
    }
    if let Some((_, reason)) = REFUSED.iter().find(|(refused, _)| *refused == key) {
        let is_empty = match value {
            Value::Array(list) => list.is_empty(),
            Value::Object(map) => map.is_empty(),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
        };
        let refused = || KustomizationError::Refused { key: key_of(), reason };
        return (!is_empty).then(|| (refused(), Some(BUILD_IT.to_owned())));
    }
    let hint = spelling::nearest(key, KEYS).map(|known| format!("did you mean {known}?"));
    Some((KustomizationError::UnknownKey { key: key_of() }, hint))
}

/// Older spellings become today's.
fn fixed(mut content: Kustomization) -> Kustomization {
    let bases = std::mem::take(&mut content.bases);
    content.resources.extend(bases);
    let tags = std::mem::take(&mut content.image_tags);
    content.images.extend(tags);
    for generator in content.config_map_generator.iter_mut().chain(&mut content.secret_generator) {
        if !generator.env.is_empty() {
            let env = std::mem::take(&mut generator.env);
            generator.envs.push(env);
        }
    }
    content
}

/// Go takes `null` for nothing at all.
fn without_nulls(map: Map<String, Value>) -> Map<String, Value> {
    fn deep(value: Value) -> Value {
        match value {
            Value::Object(map) => Value::Object(without_nulls(map)),
            Value::Array(list) => Value::Array(list.into_iter().map(deep).collect()),
            plain => plain,
        }
    }
    map.into_iter().filter(|(_, value)| !value.is_null()).map(|(key, value)| (key, deep(value))).collect()
}
