//! JSON values as Kubernetes objects: paths, differences, patches, field sets, schemas, YAML.
//! Pure: no IO, no clock, no async. Read `meta` for names, `path` and `diff` for places, then the rest.

pub mod diff;
pub mod meta;
pub mod path;
pub mod yaml;
