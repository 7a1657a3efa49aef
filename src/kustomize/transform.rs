//! Changes that a kustomization makes to all objects: namespace, prefix and suffix, labels, annotations,
//! replicas; and those that a file of its own describes.

use crate::config::Config;
use crate::error::{Error, ErrorKind, FieldError, KustomizationError, ObjectError};
use crate::fields::{self, CreateMissing, FieldSpec, put, visit};
use crate::files::{Files, load_text};
use crate::kustomization::{BUILD_IT, File, Label, Replica};
use crate::read::{self, text};
use crate::resource::{Id, Resource, by_any_id};
use crate::scopes;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Puts every object into a namespace.
pub(crate) fn namespace(
    resources: &mut [Resource],
    namespace: &str,
    config: &Config,
) -> Result<(), ErrorKind> {
    for at in 0..resources.len() {
        let resource = &mut resources[at];
        if resource.is_nothing() {
            continue;
        }
        resource.remember_id();
        put_into(resource, namespace, config).map_err(|why| why.in_object(resource.id().show()))?;
        let id = resources[at].id();
        if resources.iter().filter(|one| one.id().is_same(&id)).count() > 1 {
            return Err(ObjectError::TwiceInNamespace { object: id.show() }.into());
        }
    }
    Ok(())
}

fn put_into(resource: &mut Resource, namespace: &str, config: &Config) -> Result<(), ErrorKind> {
    let mut set = |place: &mut Value| put(place, Value::from(namespace));
    let gvk = resource.gvk();
    if !scopes::is_of_the_cluster(&gvk) {
        let own = FieldSpec { path: "metadata/namespace".to_owned(), create: true, ..FieldSpec::default() };
        visit(&mut resource.object, &own, CreateMissing::Scalar, &mut set)?;
    }
    let is_binding = matches!(gvk.kind.as_str(), "RoleBinding" | "ClusterRoleBinding");
    if is_binding {
        for subject in resource.object["subjects"].as_array_mut().into_iter().flatten() {
            if subject["name"] == "default" {
                subject["namespace"] = Value::from(namespace);
            }
        }
    }
    let is_core = resource.object["apiVersion"] == "v1";
    for spec in &config.namespace {
        let of_binding = matches!(spec.kind.as_str(), "RoleBinding" | "ClusterRoleBinding");
        let is_left_out = spec.path == "metadata/namespace"
            || (!is_core && spec.path == "metadata/name")
            || (is_binding && of_binding && spec.path == "subjects/namespace");
        if !is_left_out {
            visit(&mut resource.object, spec, CreateMissing::Scalar, &mut set)?;
        }
    }
    Ok(())
}

/// One end of a name.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Prefix,
    Suffix,
}

/// Puts a text before, or after, every name but those of CRDs, APIServices and Namespaces.
pub(crate) fn affix(
    resources: &mut [Resource],
    affix: &str,
    end: End,
    specs: &[FieldSpec],
) -> Result<(), ErrorKind> {
    for resource in resources {
        let gvk = resource.original_id().gvk;
        let is_api_service = gvk.kind == "APIService" && gvk.group == "apiregistration.k8s.io";
        if is_api_service || matches!(gvk.kind.as_str(), "CustomResourceDefinition" | "Namespace") {
            continue;
        }
        for spec in specs.iter().filter(|spec| spec.selects(&gvk)) {
            if spec.path == "metadata/name" {
                match end {
                    End::Prefix => resource.prefixes.push(affix.to_owned()),
                    End::Suffix => resource.suffixes.push(affix.to_owned()),
                }
                resource.remember_id();
            }
            visit(&mut resource.object, spec, CreateMissing::Scalar, &mut |place| {
                let name = text(place);
                let name =
                    if end == End::Prefix { format!("{affix}{name}") } else { format!("{name}{affix}") };
                put(place, Value::from(name))
            })?;
        }
    }
    Ok(())
}

/// Adds the entries to the maps at the places.
fn add_pairs(
    resources: &mut [Resource],
    pairs: &BTreeMap<String, String>,
    specs: &[FieldSpec],
) -> Result<(), ErrorKind> {
    for resource in resources {
        for (key, value) in pairs {
            for spec in specs {
                visit(&mut resource.object, spec, CreateMissing::Map, &mut |place| {
                    if place.is_null() {
                        *place = Value::Object(Map::new());
                    }
                    let Some(map) = place.as_object_mut() else {
                        return Err(FieldError::NoLabels.into());
                    };
                    map.insert(key.clone(), Value::from(value.as_str()));
                    Ok(())
                })
                .map_err(|why| why.in_object(resource.id().show()))?;
            }
        }
    }
    Ok(())
}

/// One entry of `labels`.
pub(crate) fn labels(resources: &mut [Resource], label: &Label, config: &Config) -> Result<(), ErrorKind> {
    let mut specs = label.fields.clone();
    let mut add_all = |more: &[FieldSpec]| more.iter().try_for_each(|spec| fields::add(&mut specs, spec));
    add_all(&config.labels)?;
    if label.include_selectors {
        add_all(&config.common_labels)?;
    } else {
        if label.include_templates {
            add_all(&config.template_labels)?;
        }
        let own = FieldSpec { path: "metadata/labels".to_owned(), create: true, ..FieldSpec::default() };
        add_all(&[own])?;
    }
    add_pairs(resources, &label.pairs, &specs)
}

/// `commonLabels`, which go into selectors too.
pub(crate) fn common_labels(
    resources: &mut [Resource],
    labels: &BTreeMap<String, String>,
    config: &Config,
) -> Result<(), ErrorKind> {
    add_pairs(resources, labels, &config.common_labels)
}

/// `commonAnnotations`.
pub(crate) fn annotations(
    resources: &mut [Resource],
    annotations: &BTreeMap<String, String>,
    config: &Config,
) -> Result<(), ErrorKind> {
    add_pairs(resources, annotations, &config.common_annotations)
}

/// One entry of `replicas`.
pub(crate) fn replicas(
    resources: &mut [Resource],
    replica: &Replica,
    config: &Config,
) -> Result<(), ErrorKind> {
    let mut found = false;
    for spec in &config.replicas {
        let is_meant = |id: &Id| id.name == replica.name && spec.selects(&id.gvk);
        for at in by_any_id(resources, is_meant) {
            found = true;
            let mut set = |place: &mut Value| put(place, Value::from(replica.count));
            visit(&mut resources[at].object, spec, CreateMissing::Scalar, &mut set)?;
        }
    }
    if found {
        return Ok(());
    }
    let kinds = config.replicas.iter().map(|spec| spec.kind.clone()).collect();
    Err(KustomizationError::NoReplicas { kinds, name: replica.name.clone() }.into())
}

/// A change as a file describes it. The places are only those of the file, without kustomize's defaults.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Described {
    api_version: String,
    kind: String,
    labels: BTreeMap<String, String>,
    annotations: BTreeMap<String, String>,
    prefix: String,
    suffix: String,
    field_specs: Vec<FieldSpec>,
}

impl Described {
    /// Bytes that one name may grow by: a place may be named many times.
    pub(crate) fn growth(&self) -> usize {
        (self.prefix.len() + self.suffix.len()).saturating_mul(self.field_specs.len())
    }
}

/// The changes of one entry of `transformers`: of a file, or of YAML that stands in the entry itself.
pub(crate) fn described(files: &dyn Files, file: &File, at: usize) -> Result<Vec<Described>, Error> {
    let entry = &file.content.transformers[at];
    let (path, text) = if entry.contains('\n') {
        (file.path.clone(), entry.clone())
    } else {
        load_text(files, &file.root, entry).map_err(|why| file.error("transformers", Some(at), why))?
    };
    let documents = read::documents(&text)
        .map_err(|error| Error::new(&path, error.line, ErrorKind::Yaml { message: error.message }))?;
    let form = |document: read::Document| {
        serde_json::from_value(document.value).map_err(|error| Error::form(&path, &error))
    };
    documents.into_iter().map(form).collect()
}

/// Makes such a change. Built are kustomize's plugins for labels, annotations, prefixes and suffixes; nothing
/// is ever run.
pub(crate) fn change(
    file: &File,
    at: usize,
    described: &Described,
    resources: &mut [Resource],
) -> Result<(), Error> {
    let Described { labels, annotations, prefix, suffix, field_specs, .. } = described;
    let made = match (described.api_version.as_str(), described.kind.as_str()) {
        ("builtin", "LabelTransformer") => add_pairs(resources, labels, field_specs),
        ("builtin", "AnnotationsTransformer") => add_pairs(resources, annotations, field_specs),
        ("builtin", "PrefixTransformer") => affix(resources, prefix, End::Prefix, field_specs),
        ("builtin", "SuffixTransformer") => affix(resources, suffix, End::Suffix, field_specs),
        (_, kind) => {
            let kind = KustomizationError::Transformer { kind: kind.to_owned() };
            return Err(file.error("transformers", Some(at), kind).hint(BUILD_IT));
        }
    };
    made.map_err(|why| file.error("transformers", Some(at), why))
}
