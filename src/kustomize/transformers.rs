//! `transformers`: changes that a file of its own, or YAML in the entry, describes. Built are kustomize's
//! plugins for labels, annotations, names, namespaces, images, replicas, patches and replacements; nothing is
//! ever run.

use crate::error::{Error, ErrorKind, KustomizationError};
use crate::fields::FieldSpec;
use crate::files::{Files, load_text};
use crate::images;
use crate::kustomization::{
    BUILD_IT, File, Image, Kustomization, Patch, PatchOptions, ReplacementEntry, Replica, Selector,
};
use crate::patches;
use crate::read;
use crate::replacements;
use crate::resource::Resource;
use crate::transform::{self, End, Placing, Subjects, add_pairs, affix};
use serde::Deserialize;
use std::collections::BTreeMap;

/// A change as a file describes it. The places are only those of the file, without kustomize's defaults.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Described {
    api_version: String,
    kind: String,
    metadata: DescribedMetadata,
    labels: BTreeMap<String, String>,
    annotations: BTreeMap<String, String>,
    prefix: String,
    suffix: String,
    unset_only: bool,
    set_role_binding_subjects: Subjects,
    image_tag: Image,
    replica: Replica,
    path: String,
    paths: Vec<String>,
    patch: String,
    patches: String,
    json_op: String,
    target: Option<Selector>,
    options: PatchOptions,
    replacements: Vec<ReplacementEntry>,
    field_specs: Vec<FieldSpec>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct DescribedMetadata {
    namespace: String,
}

impl Described {
    /// Bytes that one name may grow by: a place may be named many times.
    pub(crate) fn growth(&self) -> usize {
        (self.prefix.len() + self.suffix.len()).saturating_mul(self.field_specs.len())
    }

    /// Bytes that are written into one object at most.
    pub(crate) fn weight(&self) -> usize {
        let pairs = self.labels.iter().chain(&self.annotations).map(|(key, value)| key.len() + value.len());
        let Image { new_name, new_tag, tag_suffix, digest, .. } = &self.image_tag;
        let image = new_name.len() + new_tag.len() + tag_suffix.len() + digest.len();
        let all = pairs.sum::<usize>() + image + self.metadata.namespace.len();
        all.saturating_mul(self.field_specs.len().max(1))
    }

    /// Its parts, each one change: the size of the objects is looked at after each.
    fn parts(self) -> Vec<Described> {
        let (api_version, kind) = (self.api_version.clone(), self.kind.clone());
        let empty = || {
            let (api_version, kind) = (api_version.clone(), kind.clone());
            Described { api_version, kind, ..Described::default() }
        };
        match self.kind.as_str() {
            "PatchStrategicMergeTransformer" => {
                let of_files = self.paths.into_iter().map(|path| Described { paths: vec![path], ..empty() });
                let inline = Some(self.patches).filter(|text| !text.trim().is_empty());
                of_files.chain(inline.map(|patches| Described { patches, ..empty() })).collect()
            }
            "ReplacementTransformer" => {
                let one = |entry| Described { replacements: vec![entry], ..empty() };
                self.replacements.into_iter().map(one).collect()
            }
            _ => vec![self],
        }
    }
}

/// The entries of `transformers` in kustomize's order: those that are written in the entry come first.
pub(crate) fn in_order(file: &File) -> Vec<usize> {
    let entries = &file.content.transformers;
    let mut order: Vec<usize> = (0..entries.len()).collect();
    order.sort_by_key(|at| !is_inline(&entries[*at]));
    order
}

fn is_inline(entry: &str) -> bool {
    entry.contains('\n')
}

/// The changes of one entry of `transformers`: of a file, or of YAML that stands in the entry itself.
pub(crate) fn described(files: &dyn Files, file: &File, at: usize) -> Result<Vec<Described>, Error> {
    let entry = &file.content.transformers[at];
    let (path, text) = if is_inline(entry) {
        (file.path.clone(), entry.clone())
    } else {
        load_text(files, &file.root, entry).map_err(|why| file.error("transformers", Some(at), why))?
    };
    let documents = read::documents(&text)
        .map_err(|error| Error::new(&path, error.line, ErrorKind::Yaml { message: error.message }))?;
    let form = |document: read::Document| {
        serde_json::from_value(document.value).map_err(|error| Error::form(&path, &error))
    };
    let all: Vec<Described> = documents.into_iter().map(form).collect::<Result<_, Error>>()?;
    Ok(all.into_iter().flat_map(Described::parts).collect())
}

/// Makes such a change, which stands in an entry of a kustomization.
pub(crate) fn change(
    files: &dyn Files,
    (file, at): (&File, usize),
    described: &Described,
    resources: &mut Vec<Resource>,
) -> Result<(), Error> {
    let in_entry = |why: ErrorKind| file.error("transformers", Some(at), why);
    if let Some(made) = by_patches(files, file, described, resources) {
        // A file of its own is named with its line.
        return made.map_err(|error| if error.file == file.path { in_entry(*error.kind) } else { error });
    }
    let Described { labels, annotations, prefix, suffix, field_specs: specs, .. } = described;
    let made = match (described.api_version.as_str(), described.kind.as_str()) {
        ("builtin", "LabelTransformer") => add_pairs(resources, labels, specs),
        ("builtin", "AnnotationsTransformer") => add_pairs(resources, annotations, specs),
        ("builtin", "PrefixTransformer") => affix(resources, prefix, End::Prefix, specs),
        ("builtin", "SuffixTransformer") => affix(resources, suffix, End::Suffix, specs),
        ("builtin", "NamespaceTransformer") if described.metadata.namespace.is_empty() => Ok(()),
        ("builtin", "NamespaceTransformer") => {
            let (unset_only, subjects) = (described.unset_only, described.set_role_binding_subjects);
            let placing = Placing { specs, unset_only, subjects };
            transform::namespace(resources, &described.metadata.namespace, placing)
        }
        ("builtin", "ImageTagTransformer") => images::images(resources, &described.image_tag, specs),
        ("builtin", "ReplicaCountTransformer") => transform::replicas(resources, &described.replica, specs),
        (_, kind) => {
            let kind = KustomizationError::Transformer { kind: kind.to_owned() };
            return Err(in_entry(kind.into()).hint(BUILD_IT));
        }
    };
    made.map_err(in_entry)
}

/// Makes a change of patches or replacements, as the only entry of a kustomization; `None` for any other one.
fn by_patches(
    files: &dyn Files,
    file: &File,
    described: &Described,
    resources: &mut Vec<Resource>,
) -> Option<Result<(), Error>> {
    let patch = |text: &str| Patch {
        path: described.path.clone(),
        patch: text.to_owned(),
        target: described.target.clone(),
        options: described.options,
    };
    let whole = Kustomization::default();
    Some(match (described.api_version.as_str(), described.kind.as_str()) {
        ("builtin", "PatchTransformer") => {
            let content = Kustomization { patches: vec![patch(&described.patch)], ..whole };
            patches::patch(files, &file.with(content), 0, resources)
        }
        ("builtin", "PatchJson6902Transformer") => {
            let content = Kustomization { patches_json6902: vec![patch(&described.json_op)], ..whole };
            patches::json6902(files, &file.with(content), 0, resources)
        }
        ("builtin", "PatchStrategicMergeTransformer") => {
            let entry = described.paths.first().unwrap_or(&described.patches).clone();
            let content = Kustomization { patches_strategic_merge: vec![entry], ..whole };
            patches::strategic(files, &file.with(content), 0, resources)
        }
        ("builtin", "ReplacementTransformer") => {
            let content = Kustomization { replacements: described.replacements.clone(), ..whole };
            replacements::replace(files, &file.with(content), 0, resources)
        }
        _ => return None,
    })
}
