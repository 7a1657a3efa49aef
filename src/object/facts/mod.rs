//! Kubernetes as data: the built-in resources and the schema of every built-in kind, of its newest minor and
//! of older ones. Decoded on first use from the compressed files under `assets/`; each definition is parsed
//! and becomes a `Schema` when it is first asked for. Nothing here knows how a server serves them.

pub mod minors;
pub mod pod_fields;
pub mod removed;
pub mod replicas;

use crate::meta::Gvk;
pub use crate::schema::OBJECT_META;
use crate::schema::{Definition, SchemaRef};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use std::io::Read;
use std::sync::OnceLock;

/// The minor version of Kubernetes that the facts describe where no other one is chosen.
pub const KUBERNETES_MINOR: &str = "1.37";

/// The definition of amounts such as `100m`: a text or a number.
pub const QUANTITY: &str = "io.k8s.apimachinery.pkg.api.resource.Quantity";

/// Numbers with a default, by definition and field, that objects have only once they are more than zero. No
/// schema tells.
pub const SHOWN_FROM_ONE: [(&str, &str); 2] = [
    ("io.k8s.api.autoscaling.v1.ScaleSpec", "replicas"),
    ("io.k8s.api.core.v1.ReplicationControllerSpec", "minReadySeconds"),
];

static SCHEMAS: &[u8] = include_bytes!("../assets/schemas.tsv.gz");
static RESOURCES: &[u8] = include_bytes!("../assets/resources.json.gz");

/// One built-in resource, as discovery describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceFact {
    /// API group, `""` for the core group.
    pub group: String,
    /// API version.
    pub version: String,
    /// Plural name, as in URLs.
    pub resource: String,
    /// Singular name.
    pub singular: String,
    /// Kind of its objects.
    pub kind: String,
    /// True if its objects live in namespaces.
    pub namespaced: bool,
    /// The verbs that it allows.
    pub verbs: Vec<String>,
    /// Short names.
    #[serde(default)]
    pub short_names: Vec<String>,
    /// Categories, such as `all`.
    #[serde(default)]
    pub categories: Vec<String>,
    /// Subresources.
    #[serde(default)]
    pub subresources: Vec<SubresourceFact>,
}

impl ResourceFact {
    /// Group, version and kind of its objects.
    pub fn gvk(&self) -> Gvk {
        Gvk::new(self.group.as_str(), self.version.as_str(), self.kind.as_str())
    }
}

/// One subresource, such as `status` or `scale`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubresourceFact {
    /// Last part of its URL.
    pub name: String,
    /// Kind of its request and answer.
    pub kind: String,
    /// Group of that kind, where it differs from the resource's.
    #[serde(default)]
    pub group: String,
    /// Version of that kind, where it differs from the resource's.
    #[serde(default)]
    pub version: String,
    /// The verbs that it allows.
    pub verbs: Vec<String>,
}

/// The decoded facts. Get them from [`facts`].
#[derive(Debug)]
pub struct Facts {
    minor: &'static str,
    resources_packed: &'static [u8],
    /// The definitions in which it differs from the home version.
    differing: &'static [u8],
    resources: OnceLock<Vec<ResourceFact>>,
    definitions: OnceLock<Definitions>,
}

#[derive(Debug, Default)]
struct Definitions {
    by_name: HashMap<&'static str, Definition>,
    by_kind: BTreeMap<Gvk, &'static str>,
}

impl Definitions {
    /// Takes lines in; a line that is a bare name takes away what was known by it.
    fn read(&mut self, lines: &'static str) {
        for line in lines.lines() {
            let mut columns = line.splitn(3, '\t');
            let Some(name) = columns.next() else { continue };
            if self.by_name.remove(name).is_some() {
                self.by_kind.retain(|_, known| *known != name);
            }
            let (Some(kinds), Some(body)) = (columns.next(), columns.next()) else { continue };
            for kind in kinds.split(' ') {
                if let [group, version, kind] = kind.split('/').collect::<Vec<_>>()[..] {
                    self.by_kind.insert(Gvk::new(group, version, kind), name);
                }
            }
            // The body is not looked into before somebody asks for it.
            self.by_name.insert(name, Definition::new(name, body, find));
        }
    }
}

/// The facts of this process. Costs nothing until something is read.
pub fn facts() -> &'static Facts {
    minors::chosen()
}

pub(crate) fn inflate(bytes: &[u8]) -> Vec<u8> {
    let mut text = Vec::with_capacity(bytes.len() * 12);
    flate2::read::GzDecoder::new(bytes).read_to_end(&mut text).expect("embedded facts are valid gzip");
    text
}

/// A definition by its name.
pub(crate) fn find(name: &str) -> Option<&'static Definition> {
    facts().definitions().by_name.get(name)
}

impl Facts {
    /// All built-in resources, in discovery order.
    pub fn resources(&self) -> &[ResourceFact] {
        self.resources.get_or_init(|| {
            let packed = inflate(self.resources_packed);
            removed::with_removed(serde_json::from_slice(&packed).expect("embedded resources are valid JSON"))
        })
    }

    fn definitions(&self) -> &Definitions {
        self.definitions.get_or_init(|| minors::definitions(self.differing))
    }

    /// The schema of a built-in kind.
    pub fn schema(&self, gvk: &Gvk) -> Option<SchemaRef> {
        self.definition(self.definition_name(gvk)?)
    }

    /// The name of a built-in kind's definition, such as `io.k8s.api.apps.v1.Deployment`.
    pub fn definition_name(&self, gvk: &Gvk) -> Option<&'static str> {
        let known = &facts().definitions().by_kind;
        known.get(gvk).copied().or_else(|| known.get(&removed::now(gvk)?).copied())
    }

    /// The schema of a definition by its name.
    pub fn definition(&self, name: &str) -> Option<SchemaRef> {
        find(name).map(SchemaRef::of_definition)
    }

    /// A definition as it was read, for OpenAPI documents. `$ref`s in it are bare definition names.
    pub fn raw(&self, name: &str) -> Option<&'static Value> {
        find(name).map(Definition::raw)
    }

    /// All definitions as they were read, by name.
    pub fn raw_definitions(&self) -> BTreeMap<&'static str, &'static Value> {
        let all = &facts().definitions().by_name;
        all.iter().map(|(name, definition)| (*name, definition.raw())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::{Kind, ListType};

    #[test]
    fn all_definitions_convert_and_all_references_resolve() {
        let all = facts().raw_definitions();
        assert_eq!(all.len(), 618);
        fn refs<'a>(value: &'a Value, out: &mut Vec<&'a str>) {
            match value {
                Value::Object(map) => {
                    out.extend(map.get("$ref").and_then(Value::as_str));
                    map.values().for_each(|v| refs(v, out));
                }
                Value::Array(list) => list.iter().for_each(|v| refs(v, out)),
                _ => {}
            }
        }
        for (name, raw) in all {
            let schema = facts().definition(name).unwrap();
            for gvk in raw["x-kubernetes-group-version-kind"].as_array().into_iter().flatten() {
                let part = |key: &str| gvk[key].as_str().unwrap();
                let gvk = Gvk::new(part("group"), part("version"), part("kind"));
                assert_eq!(facts().definition_name(&gvk), Some(name));
            }
            assert_eq!(
                schema.properties.len(),
                raw["properties"].as_object().map_or(0, serde_json::Map::len),
                "{name}"
            );
            let mut named = Vec::new();
            refs(raw, &mut named);
            for target in named {
                assert!(facts().definition(target).is_some(), "{name} -> {target}");
            }
        }
    }

    #[test]
    fn every_resource_that_can_be_written_has_a_schema() {
        let resources = facts().resources();
        assert_eq!(resources.len(), 72);
        for resource in resources {
            let gvk = resource.gvk();
            assert!(facts().schema(&gvk).is_some(), "{gvk} has no schema");
        }
        let deployments = resources.iter().find(|r| r.resource == "deployments").unwrap();
        assert_eq!(
            (deployments.short_names.as_slice(), deployments.namespaced),
            (&["deploy".to_owned()][..], true)
        );
        assert!(deployments.subresources.iter().any(|s| s.name == "scale" && s.kind == "Scale"));
    }

    #[test]
    fn merge_keys_and_recursion_are_there() {
        let deployment = facts().schema(&Gvk::new("apps", "v1", "Deployment")).unwrap();
        let pod = deployment.field("spec").unwrap().field("template").unwrap().field("spec").unwrap();
        let containers = pod.field("containers").unwrap();
        assert_eq!(containers.patch().merge_key.as_deref(), Some("name"));
        assert_eq!(containers.list_type, Some(ListType::Map(vec!["name".into()])));
        let ports = containers.items.as_ref().unwrap().field("ports").unwrap();
        assert_eq!(ports.list_type, Some(ListType::Map(vec!["containerPort".into(), "protocol".into()])));
        assert_eq!(ports.patch().merge_key.as_deref(), Some("containerPort"));
        let props = facts()
            .definition("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps")
            .unwrap();
        assert_eq!(
            props.field("not").unwrap().field("not").unwrap().field("type").unwrap().kind,
            Kind::String
        );
    }
}
