//! Generators of cases: `template` (programs with values) and `yaml` (texts).

pub mod functions;
pub mod go;
pub mod http;
mod pools;
pub mod pull;
pub mod template;
pub mod yaml;

use serde_json::{Value, json};

/// The case of that kind with that seed.
pub fn case(kind: &str, seed: u64) -> Value {
    match kind {
        "yaml" => json!({"yaml": yaml::text(seed)}),
        "manifest" => json!({"manifest": yaml::manifest(seed)}),
        _ => template::case(seed),
    }
}
