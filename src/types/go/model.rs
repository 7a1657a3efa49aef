//! Input and output of the generator.

use super::profile::Profile;
use crate::diagnostic::{Diagnostic, Place};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Where source files come from. Paths are relative to the project's root (`.`), or absolute.
pub trait Files {
    /// The text of a file; `None` where there is none.
    fn read(&self, path: &str) -> Option<Arc<str>>;

    /// Names of the files and folders in one folder, sorted; nothing where there is no such folder.
    fn list(&self, dir: &str) -> Vec<String>;

    /// The folder of Go's module cache: `$GOMODCACHE`, or `~/go/pkg/mod`.
    fn module_cache(&self) -> Option<String>;

    /// The names of the folders that the root lies in, its own first: a `go.mod` may lie above it.
    fn above(&self) -> Vec<String> {
        Vec::new()
    }

    /// The folder of a Go installation, for types of the standard library; without it, only what is known of
    /// them.
    fn go_root(&self) -> Option<String> {
        None
    }
}

/// The text of a Go file. What is no UTF-8 becomes zero bytes, one for one: Go reads neither, and both have a
/// place.
pub fn source(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().iter().map(|_| '\0'));
    }
    text
}

/// The options of controller-gen's `crd` generator, and the release of it to follow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// The release.
    pub profile: Profile,
    /// Descriptions have at most so many bytes; 0 leaves them out.
    pub max_desc_len: Option<usize>,
    /// Floats are allowed.
    pub allow_dangerous_types: bool,
    /// Fields that are not exported are passed over.
    pub ignore_unexported_fields: bool,
    /// `metav1.ObjectMeta` inside a type has a schema of its own.
    pub generate_embedded_object_meta: bool,
    /// No annotation says which release made a CRD.
    pub omit_tool_version: bool,
    /// The CRDs are written to files: a type of a module that is not on this machine is an error where what
    /// is known of it is of another release.
    pub exact: bool,
}

/// The result of a generation. A file that cannot be read costs the CRDs that need it, not the others: where
/// there is an error among the diagnostics and a CRD is `broken` or gone, the one that was made before it
/// should be kept.
#[derive(Clone, Debug, Default)]
pub struct Generated {
    /// The CRDs, by kind and group.
    pub crds: Vec<Crd>,
    /// RBAC markers, by file and place.
    pub rbac: Vec<RbacMarker>,
    /// Webhook markers, by package, file and place.
    pub webhooks: Vec<WebhookMarker>,
    /// Errors and warnings, by place.
    pub diagnostics: Vec<Diagnostic>,
    /// The project's files that were read, sorted.
    pub read: Vec<String>,
}

/// One CustomResourceDefinition.
#[derive(Clone, Debug)]
pub struct Crd {
    /// The whole object.
    pub object: Arc<Value>,
    /// The project's files its schema was made of, sorted.
    pub files: Vec<String>,
    /// Where each field is declared, by version and path: `v1.spec.replicas`, `v1.spec.ports[].name` for
    /// items, `v1.spec.limits{}.max` for the values of a map. Only fields that the project itself declares.
    pub places: Arc<BTreeMap<String, Place>>,
    /// Something in it could not be read; see the diagnostics.
    pub broken: bool,
}

/// One `+kubebuilder:rbac` marker.
#[derive(Clone, Debug, PartialEq)]
pub struct RbacMarker {
    /// Its arguments: `groups`, `resources`, `resourceNames`, `verbs`, `urls` as lists, `namespace`,
    /// `roleName` as texts.
    pub args: Map<String, Value>,
    /// Where it stands.
    pub place: Place,
}

/// One `+kubebuilder:webhook` or `+kubebuilder:webhookconfiguration` marker.
#[derive(Clone, Debug, PartialEq)]
pub struct WebhookMarker {
    /// Its arguments.
    pub args: Map<String, Value>,
    /// Where it stands.
    pub place: Place,
    /// The folder of its package.
    pub package: String,
    /// It is the marker that names the configuration itself.
    pub of_configuration: bool,
}
