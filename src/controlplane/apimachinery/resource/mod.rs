//! One served resource at one version: its discovery and storage; and the rules of all objects: `metadata`,
//! `names`, `quantity`. Plain data with a lazily decoded schema; never touches the store.

pub mod metadata;
pub mod names;
mod priority;
pub mod quantity;
mod rules;
mod webhook;

pub use priority::compare_versions;
pub use rules::ResourceRules;
pub use rules::{MetadataChecks, MetadataOrder};
pub use webhook::{ClientConfig, Conversion, Target, is_kubectls};

use crate::contract::ResourceInfo;
use crate::protobuf;
use opdev_object::facts::facts;
use opdev_object::meta::Gvk;
use opdev_object::schema::SchemaRef;
use serde_json::Value;
use std::any::Any;
use std::sync::{Arc, OnceLock};

/// A subresource as discovery shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subresource {
    /// Name behind the slash, such as `status`.
    pub name: String,
    /// Kind it speaks.
    pub kind: String,
    /// Group of that kind; `None` where it is the resource's own.
    pub group: Option<String>,
    /// Version of that kind; `None` where it is the resource's own.
    pub version: Option<String>,
    /// Verbs.
    pub verbs: Vec<String>,
}

/// Where the scale subresource of a custom resource reads and writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScalePaths {
    /// Such as `.spec.replicas`.
    pub spec_replicas: String,
    /// Such as `.status.replicas`.
    pub status_replicas: String,
    /// Such as `.status.selector`.
    pub label_selector: Option<String>,
}

/// The additions of a CustomResourceDefinition to a resource at one version.
#[derive(Clone, Debug, PartialEq)]
pub struct Custom {
    /// Name of the definition, `<plural>.<group>`.
    pub definition: String,
    /// Uid of the definition.
    pub uid: String,
    /// True if `/status` is a resource of its own.
    pub has_status: bool,
    /// The scale subresource.
    pub scale: Option<ScalePaths>,
    /// `additionalPrinterColumns`, as written.
    pub printer_columns: Vec<Value>,
    /// JSON paths of `selectableFields`, such as `.spec.color`.
    pub selectable_fields: Vec<String>,
    /// `openAPIV3Schema`, as written; `None` where the version has none.
    pub open_api_schema: Option<Arc<Value>>,
    /// `spec.preserveUnknownFields`.
    pub preserve_unknown_fields: bool,
    /// Tells this state of the definition from earlier and later ones.
    pub mark: String,
    /// The revision that wrote the definition last. What is older may not fit its schema.
    pub since: u64,
    /// The webhook that converts between versions.
    pub conversion: Option<Arc<Conversion>>,
    /// The warning for a deprecated version.
    pub deprecation_warning: Option<String>,
}

/// A served resource at one version.
#[derive(Clone, Debug)]
pub struct Resource {
    /// API group, `""` for the core group.
    pub group: String,
    /// Version.
    pub version: String,
    /// Plural, as in paths.
    pub plural: String,
    /// Singular.
    pub singular: String,
    /// Kind.
    pub kind: String,
    /// Kind of lists.
    pub list_kind: String,
    /// True if objects live in namespaces.
    pub namespaced: bool,
    /// Verbs, sorted.
    pub verbs: Vec<String>,
    /// Short names.
    pub short_names: Vec<String>,
    /// Categories, such as `all`.
    pub categories: Vec<String>,
    /// Subresources, sorted.
    pub subresources: Vec<Subresource>,
    /// Name of the table in the store; versions, and groups that share objects, share it.
    pub table: Arc<str>,
    /// apiVersion that objects of the table are kept at.
    pub storage_api_version: String,
    /// The differences between kinds that several rooms need.
    pub rules: ResourceRules,
    /// The kind's `Strategy`. It names types of the registry: only `registry::strategy_of` can read it.
    pub strategy: &'static (dyn Any + Send + Sync),
    /// Set for custom resources.
    pub custom: Option<Custom>,
    /// Values derived from the other fields, computed on first use.
    pub known: DerivedFields,
}

/// Derived facts that every request for a resource needs.
#[derive(Clone, Debug, Default)]
pub struct DerivedFields {
    schema: OnceLock<SchemaRef>,
    id: OnceLock<String>,
    api_version: OnceLock<String>,
    in_protobuf: OnceLock<bool>,
}

impl Resource {
    /// The schema: of the definition for custom resources, else of the facts.
    pub fn schema(&self) -> &SchemaRef {
        let decode = || match &self.custom {
            Some(custom) => custom
                .open_api_schema
                .as_ref()
                .filter(|_| !custom.preserve_unknown_fields)
                .and_then(|schema| opdev_cel::structural(schema).ok())
                .unwrap_or_else(opdev_object::structural::untyped_resource),
            None => facts().schema(&self.gvk()).unwrap_or_else(opdev_object::structural::untyped_resource),
        };
        self.known.schema.get_or_init(decode)
    }

    /// Group, version and kind.
    pub fn gvk(&self) -> Gvk {
        Gvk::new(&self.group, &self.version, &self.kind)
    }

    /// `group/version`, or the version for the core group.
    pub fn api_version(&self) -> &str {
        self.known.api_version.get_or_init(|| self.gvk().api_version())
    }

    /// Returns true if an object says that it is at the resource's version.
    pub fn is_at(&self, object: &Value) -> bool {
        self.is_named(object["apiVersion"].as_str().unwrap_or_default())
    }

    /// Returns true if this apiVersion names the resource's version.
    pub fn is_named(&self, api_version: &str) -> bool {
        api_version.split_once('/').unwrap_or(("", api_version))
            == (self.group.as_str(), self.version.as_str())
    }

    /// Returns true if a webhook converts between its versions, so that even reading may have to wait.
    pub fn converts(&self) -> bool {
        self.conversion().is_some()
    }

    /// The webhook that converts between its versions, where there is one.
    pub fn conversion(&self) -> Option<&Conversion> {
        self.custom.as_ref()?.conversion.as_deref()
    }

    /// Returns true if its objects have protobuf messages.
    pub fn in_protobuf(&self) -> bool {
        let knows = || self.custom.is_none() && protobuf::serves(self.api_version(), &self.kind);
        *self.known.in_protobuf.get_or_init(knows)
    }

    /// `apps/deployments`, or `pods` for the core group: the name controllers use.
    pub fn id(&self) -> &str {
        self.known.id.get_or_init(|| resource_id(&self.group, &self.plural))
    }

    /// Returns true if the resource has the verb.
    pub fn has_verb(&self, verb: &str) -> bool {
        self.verbs.iter().any(|v| v == verb)
    }

    /// A subresource by name.
    pub fn subresource(&self, name: &str) -> Option<&Subresource> {
        self.subresources.iter().find(|sub| sub.name == name)
    }

    /// Returns true if objects are kept at this version.
    pub fn is_stored_version(&self) -> bool {
        self.api_version() == self.storage_api_version
    }

    /// The part of it that controllers know.
    pub fn info(&self) -> ResourceInfo {
        ResourceInfo {
            resource: self.id().to_owned(),
            group: self.group.clone(),
            version: self.version.clone(),
            kind: self.kind.clone(),
            namespaced: self.namespaced,
            deletable: self.has_verb("list") && self.has_verb("delete"),
        }
    }

    /// Returns true if `status` is written through a path of its own.
    pub fn has_status(&self) -> bool {
        self.subresource("status").is_some()
    }
}

/// `group/plural`, or the plural for the core group.
pub fn resource_id(group: &str, plural: &str) -> String {
    if group.is_empty() { plural.to_owned() } else { format!("{group}/{plural}") }
}
