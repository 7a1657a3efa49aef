//! Changes that a kustomization makes to all objects: namespace, prefix and suffix, labels, annotations,
//! replicas.

use crate::config::Config;
use crate::error::{ErrorKind, FieldError, KustomizationError, ObjectError};
use crate::fields::{self, CreateMissing, FieldSpec, put, visit};
use crate::kustomization::{Label, Replica};
use crate::read::text;
use crate::resource::{Id, Resource, by_any_id};
use crate::scopes;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Where a namespace goes.
#[derive(Clone, Copy, Default)]
pub(crate) struct Placing<'a> {
    pub(crate) specs: &'a [FieldSpec],
    /// Only where no namespace stands yet.
    pub(crate) unset_only: bool,
    pub(crate) subjects: Subjects,
}

/// The subjects of role bindings that get a namespace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Subjects {
    /// The ServiceAccount `default`.
    #[default]
    #[serde(alias = "")]
    DefaultOnly,
    /// Each ServiceAccount.
    AllServiceAccounts,
    /// None of them.
    None,
}

/// Puts every object into a namespace.
pub(crate) fn namespace(
    resources: &mut [Resource],
    namespace: &str,
    placing: Placing<'_>,
) -> Result<(), ErrorKind> {
    for at in 0..resources.len() {
        let resource = &mut resources[at];
        if resource.is_nothing() {
            continue;
        }
        resource.remember_id();
        put_into(resource, namespace, placing).map_err(|why| why.in_object(resource.id().show()))?;
        let id = resources[at].id();
        if resources.iter().filter(|one| one.id().is_same(&id)).count() > 1 {
            return Err(ObjectError::TwiceInNamespace { object: id.show() }.into());
        }
    }
    Ok(())
}

fn put_into(resource: &mut Resource, namespace: &str, placing: Placing<'_>) -> Result<(), ErrorKind> {
    let mut set = |place: &mut Value| {
        let is_set = !place.is_null() && *place != "";
        if placing.unset_only && is_set { Ok(()) } else { put(place, Value::from(namespace)) }
    };
    let gvk = resource.gvk();
    if !scopes::is_of_the_cluster(&gvk) {
        let own = FieldSpec { path: "metadata/namespace".to_owned(), create: true, ..FieldSpec::default() };
        visit(&mut resource.object, &own, CreateMissing::Scalar, &mut set)?;
    }
    let is_binding = matches!(gvk.kind.as_str(), "RoleBinding" | "ClusterRoleBinding");
    if is_binding {
        for subject in resource.object["subjects"].as_array_mut().into_iter().flatten() {
            let is_meant = match placing.subjects {
                Subjects::DefaultOnly => subject["name"] == "default",
                Subjects::AllServiceAccounts => subject["kind"] == "ServiceAccount",
                Subjects::None => false,
            };
            if let Some(subject) = subject.as_object_mut().filter(|_| is_meant) {
                set(subject.entry("namespace").or_insert(Value::Null))?;
            }
        }
    }
    let is_core = resource.object["apiVersion"] == "v1";
    for spec in placing.specs {
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
pub(crate) fn add_pairs(
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
    specs: &[FieldSpec],
) -> Result<(), ErrorKind> {
    let mut found = false;
    for spec in specs {
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
    let kinds = specs.iter().map(|spec| spec.kind.clone()).collect();
    Err(KustomizationError::NoReplicas { kinds, name: replica.name.clone() }.into())
}
