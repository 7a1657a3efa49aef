//! From a definition to the resources it serves, one per served version.

use crate::strategy;
use opdev_apimachinery::resource::{Conversion, Custom, DerivedFields, Resource, ResourceRules, ScalePaths};
use opdev_apimachinery::resource::{Subresource, metadata, resource_id};
use serde_json::Value;
use std::sync::Arc;

const VERBS: [&str; 8] = ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"];

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn texts(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().map(text).collect()
}

/// The table that holds the definition's objects.
pub(super) fn table(definition: &Value) -> String {
    let spec = &definition["spec"];
    resource_id(
        spec["group"].as_str().unwrap_or_default(),
        spec["names"]["plural"].as_str().unwrap_or_default(),
    )
}

/// The resources that the definition serves.
pub(super) fn resources(definition: &Value) -> Vec<Resource> {
    let versions = definition["spec"]["versions"].as_array();
    let served = versions.into_iter().flatten().filter(|version| version["served"] == true);
    served.map(|version| resource(definition, version)).collect()
}

/// A version that the definition has, as a resource that nobody serves.
pub(crate) fn unserved(definition: &Value, group: &str, version: &str) -> Option<Resource> {
    let mut versions = definition["spec"]["versions"].as_array().into_iter().flatten();
    let found = versions.find(|known| known["name"] == version && definition["spec"]["group"] == group)?;
    Some(resource(definition, found))
}

fn resource(definition: &Value, version: &Value) -> Resource {
    let spec = &definition["spec"];
    let names = &definition["status"]["acceptedNames"];
    let (group, name) = (text(&spec["group"]), text(&version["name"]));
    let storage = spec["versions"].as_array().into_iter().flatten().find(|v| v["storage"] == true);
    let storage = storage.map_or_else(|| name.clone(), |v| text(&v["name"]));
    let kind = text(&names["kind"]);
    Resource {
        table: table(definition).into(),
        storage_api_version: format!("{group}/{storage}"),
        plural: text(&names["plural"]),
        singular: text(&names["singular"]),
        list_kind: text(&names["listKind"]),
        namespaced: spec["scope"] == "Namespaced",
        verbs: VERBS.iter().map(ToString::to_string).collect(),
        short_names: texts(&names["shortNames"]),
        categories: texts(&names["categories"]),
        subresources: subresources(version, &kind),
        rules: ResourceRules { generation: true, unconditional_update: false, ..ResourceRules::COMMON },
        strategy: &strategy::COMMON,
        custom: Some(custom(definition, version, &group)),
        known: DerivedFields::default(),
        version: name,
        group,
        kind,
    }
}

fn subresources(version: &Value, kind: &str) -> Vec<Subresource> {
    let verbs = || ["get", "patch", "update"].iter().map(ToString::to_string).collect();
    let mut found = Vec::new();
    if version["subresources"]["scale"].is_object() {
        found.push(Subresource {
            name: "scale".to_owned(),
            kind: "Scale".to_owned(),
            group: Some("autoscaling".to_owned()),
            version: Some("v1".to_owned()),
            verbs: verbs(),
        });
    }
    if version["subresources"]["status"].is_object() {
        found.push(Subresource {
            name: "status".to_owned(),
            kind: kind.to_owned(),
            group: None,
            version: None,
            verbs: verbs(),
        });
    }
    found
}

fn custom(definition: &Value, version: &Value, group: &str) -> Custom {
    let scale = &version["subresources"]["scale"];
    let schema = &version["schema"]["openAPIV3Schema"];
    let kind = &definition["spec"]["names"]["kind"];
    let deprecation = (version["deprecated"] == true).then(|| {
        version["deprecationWarning"].as_str().map_or_else(
            || {
                let (name, kind) = (text(&version["name"]), text(kind));
                format!("{group}/{name} {kind} is deprecated")
            },
            str::to_owned,
        )
    });
    Custom {
        definition: text(&definition["metadata"]["name"]),
        uid: text(&definition["metadata"]["uid"]),
        has_status: version["subresources"]["status"].is_object(),
        scale: scale.is_object().then(|| ScalePaths {
            spec_replicas: text(&scale["specReplicasPath"]),
            status_replicas: text(&scale["statusReplicasPath"]),
            label_selector: scale["labelSelectorPath"].as_str().map(str::to_owned),
        }),
        printer_columns: version["additionalPrinterColumns"].as_array().cloned().unwrap_or_default(),
        selectable_fields: version["selectableFields"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|field| text(&field["jsonPath"]))
            .collect(),
        open_api_schema: schema.is_object().then(|| Arc::new(schema.clone())),
        preserve_unknown_fields: definition["spec"]["preserveUnknownFields"] == true,
        mark: format!("{}/{}", text(&definition["metadata"]["uid"]), definition["metadata"]["generation"]),
        since: metadata::text(definition, "resourceVersion").parse().unwrap_or(0),
        conversion: Conversion::from_definition(definition).map(Arc::new),
        deprecation_warning: deprecation,
    }
}
