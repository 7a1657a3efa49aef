//! Helm charts rendered as Helm renders them, byte for byte: templates, values, manifests, release records.
//! Pure: the only IO is `chart::read_dir`; clock, randomness, lookup and capabilities are handed in.
//! Read `template` (the language), `chart` and `values` (the input), `engine` (the run), `manifest` and `release` (the output).

pub mod chart;
pub mod dependencies;
pub mod engine;
pub mod explain;
pub mod manifest;
mod merge_values;
pub mod release;
pub mod semver;
mod spread;
pub mod template;
pub mod values;
