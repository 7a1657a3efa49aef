//! Go type files to CRDs, without a Go toolchain: what controller-gen makes of types, documentation and markers, from
//! syntax alone. Start at [`Generator::generate`]; source comes in through [`Files`]. Tolerates files that are being
//! typed: what cannot be read is a diagnostic with its place, never a panic. Never does IO, writes no YAML.

mod apply;
mod assemble;
mod build;
mod comments;
mod description;
mod flatten;
mod foreign;
#[cfg(test)]
mod golden;
mod imports;
mod known;
mod lint;
mod markers;
mod names;
mod outline;
mod package;
mod profile;
mod roots;
mod schema;
mod sources;
mod structs;
mod syntax;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod warm;

pub use profile::{Level, Profile};

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

    /// The folder of a Go installation, for types of the standard library; without it, only what is known of them.
    fn go_root(&self) -> Option<String> {
        None
    }
}

/// The text of a Go file. What is no UTF-8 becomes zero bytes, one for one: Go reads neither, and both have a place.
pub fn source(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().iter().map(|_| '\0'));
    }
    text
}

/// What controller-gen's `crd` generator can be told, and which release of it to follow.
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
}

/// What came out. A file that cannot be read costs the CRDs that need it, not the others: where there is an error
/// among the diagnostics and a CRD is `broken` or gone, the one that was made before it should be kept.
#[derive(Clone, Debug, Default)]
pub struct Generated {
    /// The CRDs, by kind and group.
    pub crds: Vec<Crd>,
    /// RBAC markers, by file and place.
    pub rbac: Vec<RbacMarker>,
    /// What is wrong, by place.
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
    /// Where each field is declared, by version and path: `v1.spec.replicas`, `v1.spec.ports[].name` for items,
    /// `v1.spec.limits{}.max` for the values of a map. Only fields that the project itself declares.
    pub places: Arc<BTreeMap<String, Place>>,
    /// Something in it could not be read; see the diagnostics.
    pub broken: bool,
}

/// One `+kubebuilder:rbac` marker.
#[derive(Clone, Debug, PartialEq)]
pub struct RbacMarker {
    /// Its arguments: `groups`, `resources`, `resourceNames`, `verbs`, `urls` as lists, `namespace`, `roleName` as
    /// texts.
    pub args: Map<String, Value>,
    /// Where it stands.
    pub place: Place,
}

/// Makes CRDs. Keeps what it parsed, so that after one saved file one file is parsed again.
#[derive(Debug, Default)]
pub struct Generator {
    store: sources::Store,
    kept: build::Kept,
    /// What the kept schemas were made with.
    made_with: Option<(Options, Vec<Option<Arc<str>>>)>,
    said: lint::Said,
}

impl Generator {
    /// A generator that has read nothing yet.
    pub fn new() -> Generator {
        Generator::default()
    }

    /// The text of a file as it was read last.
    pub fn text(&self, path: &str) -> Option<Arc<str>> {
        self.store.text(path)
    }

    /// The CRDs and RBAC markers of some folders, given as paths or as patterns such as `./...` and `./api/...`.
    pub fn generate(&mut self, files: &dyn Files, packages: &[String], options: &Options) -> Generated {
        let dirs = roots::folders(files, packages);
        let start = dirs.first().map_or(".", String::as_str);
        let modules = imports::Modules::of(files, start);
        let made_with = (options.clone(), modules.texts(files));
        if self.made_with.as_ref() != Some(&made_with) {
            self.kept = build::Kept::default();
            self.store.look_again();
            self.made_with = Some(made_with);
        }
        let mut loader = sources::Loader::new(&mut self.store, files, modules);
        let roots: Vec<_> = dirs.iter().filter_map(|dir| loader.root(dir)).collect();
        let mut builder = build::Builder::new(loader, options, &mut self.kept);
        builder.forget_changes();
        let mut diagnostics = lint::lint(&roots, &options.profile, &mut self.said);
        let rbac = assemble::rbac(&roots, &options.profile);
        let crds = assemble::crds(&mut builder, &roots, &mut diagnostics);
        builder.kept.packages = builder.loader.packages();
        diagnostics.append(&mut builder.loader.notes);
        diagnostics.sort_by(|a, b| {
            let key = |diagnostic: &Diagnostic| diagnostic.place.is_none();
            (key(a), &a.place, &a.message).cmp(&(key(b), &b.place, &b.message))
        });
        diagnostics.dedup();
        Generated { crds, rbac, diagnostics, read: builder.loader.read.into_iter().collect() }
    }
}
