//! `transformers`: changes that files of their own describe, as kustomize's built-in plugins make them. Those
//! of labels, annotations, prefixes and suffixes are built; nothing is ever run.

use crate::error::{Error, ErrorKind, KustomizationError};
use crate::fields::FieldSpec;
use crate::files::{Files, load_text};
use crate::kustomization::{BUILD_IT, File};
use crate::read;
use crate::resource::Resource;
use crate::transform::{End, add_pairs, affix};
use serde::Deserialize;
use std::collections::BTreeMap;

/// A change as a file describes it. The places are only those of the file, without kustomize's defaults.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Described {
    api_version: String,
    kind: String,
    labels: BTreeMap<String, String>,
    annotations: BTreeMap<String, String>,
    prefix: String,
    suffix: String,
    field_specs: Vec<FieldSpec>,
}

/// Makes the changes of one entry: of a file, or of YAML that stands in the entry itself.
pub(crate) fn transform(
    files: &dyn Files,
    file: &File,
    at: usize,
    resources: &mut [Resource],
) -> Result<(), Error> {
    let wrong = |kind: ErrorKind| file.error("transformers", Some(at), kind);
    let entry = &file.content.transformers[at];
    let (path, text) = if entry.contains('\n') {
        (file.path.clone(), entry.clone())
    } else {
        load_text(files, &file.root, entry).map_err(|why| wrong(why.into()))?
    };
    let documents = read::documents(&text)
        .map_err(|error| Error::new(&path, error.line, ErrorKind::Yaml { message: error.message }))?;
    for document in documents {
        let described: Described =
            serde_json::from_value(document.value).map_err(|error| Error::form(&path, &error))?;
        let made = match (described.api_version.as_str(), described.kind.as_str()) {
            ("builtin", "LabelTransformer") => {
                add_pairs(resources, &described.labels, &described.field_specs)
            }
            ("builtin", "AnnotationsTransformer") => {
                add_pairs(resources, &described.annotations, &described.field_specs)
            }
            ("builtin", "PrefixTransformer") => {
                affix(resources, &described.prefix, End::Prefix, &described.field_specs)
            }
            ("builtin", "SuffixTransformer") => {
                affix(resources, &described.suffix, End::Suffix, &described.field_specs)
            }
            (_, kind) => {
                let kind = KustomizationError::Transformer { kind: kind.to_owned() };
                return Err(wrong(kind.into()).hint(BUILD_IT));
            }
        };
        made.map_err(wrong)?;
    }
    Ok(())
}
