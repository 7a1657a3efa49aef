//! Kustomizations, built to the bytes that `kubectl kustomize` prints (kustomize 5.8).
//! Pure: files come through `Files`. What kustomize would fetch or run (addresses, plugins, Helm charts) is
//! refused with the field's name. Read `assemble` for the order of things, `merge` for patches, `references`
//! for names that follow a prefix.
//!
//! ```
//! use opdev_kustomize::{ErrorKind, Files, KustomizationError, build};
//! use std::collections::BTreeMap;
//! use std::io;
//! use std::path::{Path, PathBuf};
//!
//! /// Files in memory, by path.
//! struct Memory(BTreeMap<PathBuf, &'static str>);
//!
//! impl Files for Memory {
//!     fn real(&self, path: &Path) -> Option<PathBuf> {
//!         (self.0.contains_key(path) || self.is_folder(path)).then(|| path.to_owned())
//!     }
//!
//!     fn is_folder(&self, path: &Path) -> bool {
//!         self.0.keys().any(|known| known != path && known.starts_with(path))
//!     }
//!
//!     fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
//!         self.0.get(path).map(|text| text.as_bytes().to_vec()).ok_or_else(|| io::ErrorKind::NotFound.into())
//!     }
//! }
//!
//! # fn main() -> Result<(), opdev_kustomize::Error> {
//! let files = [
//!     ("/app/kustomization.yaml", "namePrefix: dev-\nresources: [account.yaml]\n"),
//!     ("/app/account.yaml", "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: web}\n"),
//!     ("/empty/other.yaml", ""),
//! ];
//! let files = Memory(files.map(|(path, text)| (PathBuf::from(path), text)).into());
//!
//! let built = build(&files, Path::new("/app"))?;
//! assert_eq!(built.to_yaml(), "apiVersion: v1\nkind: ServiceAccount\nmetadata:\n  name: dev-web\n");
//!
//! // An error says what is wrong, and where.
//! let error = build(&files, Path::new("/empty")).unwrap_err();
//! assert!(matches!(*error.kind, ErrorKind::Kustomization(KustomizationError::Missing { .. })));
//! assert_eq!(error.file, Path::new("/empty"));
//! # Ok(())
//! # }
//! ```

#![warn(missing_docs)]

mod assemble;
mod config;
mod crds;
mod defaults;
mod error;
mod fields;
mod files;
mod generate;
mod images;
mod kustomization;
mod merge;
mod order;
mod patches;
mod read;
mod references;
mod replacements;
mod resource;
mod scopes;
mod selector;
#[cfg(test)]
mod tests;
mod transform;
mod transformers;
mod vars;

pub use assemble::{Built, BuiltObject, build, build_what_can_be, to_yaml};
pub use error::{
    Error, ErrorKind, FieldError, FileError, GeneratorError, KustomizationError, Limit, MergeError,
    MergeErrorKind, ObjectError, PatchError, ReplacementError, SelectorError, VarError,
};
pub use files::{Files, NAMES, is_far};
