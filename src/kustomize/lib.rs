//! Kustomizations, built to the bytes that `kubectl kustomize` prints (kustomize 5.7).
//! Pure: files come through `Files`. What kustomize would fetch or run (addresses, plugins, Helm charts) is refused with the
//! field's name. Read `assemble` for the order of things, `merge` for patches, `references` for names that follow a prefix.

mod assemble;
mod config;
mod crds;
mod defaults;
mod error;
mod fields;
mod files;
mod generate;
#[cfg(test)]
mod hostile;
mod images;
mod kustomization;
mod merge;
#[cfg(test)]
mod oracle;
mod order;
mod patches;
mod read;
mod references;
mod replacements;
mod resource;
mod scopes;
mod selector;
mod transform;

pub use assemble::{Built, Part, build, build_what_can_be, to_yaml};
pub use error::Error;
pub use files::{Files, NAMES, is_far};
