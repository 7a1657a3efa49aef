//! Go type files to CRDs, without a Go toolchain: what controller-gen makes of types, documentation and
//! markers, from syntax alone. Start at [`Generator::generate`]; source comes in through [`Files`]. Tolerates
//! files that are being typed: what cannot be read is a diagnostic with its place, never a panic. Never does
//! IO, writes no YAML.

mod apply;
mod assemble;
mod brackets;
mod build;
mod comments;
mod deepcopy;
mod description;
mod flatten;
mod foreign;
#[cfg(test)]
mod golden;
mod imports;
mod known;
mod lint;
mod marker_error;
mod markers;
mod model;
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

pub use deepcopy::{DeepCopies, DeepCopyFile, FILE as DEEP_COPY_FILE};
pub use model::{Crd, Files, Generated, Options, RbacMarker, WebhookMarker, source};
pub use profile::{Level, Profile};

use crate::diagnostic::Diagnostic;
use std::sync::Arc;

/// The folder of a package by its import path: of the project's module, of one beside it, or of one that it
/// requires.
pub fn package_folder(files: &dyn Files, import_path: &str) -> Option<String> {
    imports::Modules::read(files, ".").find(files, import_path, None).ok().map(|found| found.dir)
}

/// Makes CRDs. Keeps what it parsed, so that after one saved file one file is parsed again.
#[derive(Debug, Default)]
pub struct Generator {
    store: sources::Store,
    kept: build::Kept,
    /// The options that the kept schemas were made with.
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

    /// The CRDs and RBAC markers of some folders, given as paths or as patterns such as `./...` and
    /// `./api/...`.
    pub fn generate(&mut self, files: &dyn Files, packages: &[String], options: &Options) -> Generated {
        let dirs = roots::folders(files, packages);
        let start = dirs.first().map_or(".", String::as_str);
        let modules = imports::Modules::read(files, start);
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
        let webhooks = assemble::webhooks(&roots, &options.profile);
        let crds = assemble::crds(&mut builder, &roots, &mut diagnostics);
        builder.kept.packages = builder.loader.packages();
        diagnostics.append(&mut builder.loader.notes);
        diagnostics.sort_by(|a, b| {
            let key = |diagnostic: &Diagnostic| diagnostic.place.is_none();
            (key(a), &a.place, &a.message).cmp(&(key(b), &b.place, &b.message))
        });
        diagnostics.dedup();
        Generated { crds, rbac, webhooks, diagnostics, read: builder.loader.read.into_iter().collect() }
    }
}
