//! JSON values as Kubernetes objects: paths, differences, patches, field sets, schemas, YAML.
//! Pure: no IO, no clock, no async. Read `meta` for names, `path` and `diff` for places, then `schema`
//! with `facts` for what kinds look like, `patch` and `strategic` for patches, `fieldset` and `apply`
//! for server-side apply, `selector` for label and field selectors, `pack` for texts of objects in little memory,
//! `spelling` for mistyped words, `structural` and `definition` for CRDs.

pub mod apply;
pub mod cel;
pub mod definition;
pub mod depth;
pub mod descriptions;
pub mod diff;
pub mod facts;
pub mod fieldset;
mod guard;
pub mod lines;
pub mod meta;
pub mod names;
pub mod pack;
pub mod patch;
pub mod path;
pub mod quote;
#[cfg(test)]
mod random;
pub mod schema;
pub mod selector;
pub mod spelling;
pub mod strategic;
pub mod structural;
pub mod yaml;
