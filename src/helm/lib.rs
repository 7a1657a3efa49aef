//! Helm charts rendered as Helm renders them, byte for byte: templates, values, manifests, release records.
//! Pure: the only IO is `chart::read_dir`; clock, randomness, lookup and capabilities are handed in. Read
//! `template` (the language), `chart` and `values` (the input), `engine` (the run), `manifest` and `release`
//! (the output).
//!
//! A chart is loaded from a set of files and rendered with values, as `helm template` does it:
//!
//! ```
//! use opdev_helm::chart::{Chart, FileSet};
//! use opdev_helm::engine::{Capabilities, Compat, Environment, FuncError, ReleaseInfo, RenderInput, render};
//! use serde_json::{Value, json};
//!
//! /// What templates learn of the outside: here a fixed time, and no cluster.
//! struct Fixed;
//!
//! impl Environment for Fixed {
//!     fn now(&self) -> jiff::Timestamp {
//!         jiff::Timestamp::UNIX_EPOCH
//!     }
//!
//!     fn random(&self, buffer: &mut [u8]) {
//!         buffer.fill(0);
//!     }
//!
//!     fn lookup(&self, _version: &str, _kind: &str, _namespace: &str, _name: &str) -> Result<Value, FuncError> {
//!         Ok(json!({}))
//!     }
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let files: FileSet = [
//!     ("Chart.yaml", "apiVersion: v2\nname: web\nversion: 1.0.0\n"),
//!     ("values.yaml", "replicas: 1\n"),
//!     ("templates/scale.yaml", "kind: Scale\nname: {{ .Release.Name | quote }}\nreplicas: {{ .Values.replicas }}\n"),
//! ]
//! .into_iter()
//! .map(|(path, text)| (path, text.as_bytes()))
//! .collect();
//! let chart = Chart::load(&files)?;
//!
//! let values = json!({"replicas": 3});
//! let capabilities = Capabilities::default_for(Compat::V3).with_kube_version("v1.36.0", Compat::V3)?;
//! let release = ReleaseInfo::install("shop", "default");
//! let rendered = render(&chart, &RenderInput::new(&values, release, &capabilities, &Fixed))?;
//!
//! assert_eq!(
//!     rendered.manifest,
//!     "---\n# Source: web/templates/scale.yaml\nkind: Scale\nname: \"shop\"\nreplicas: 3\n"
//! );
//! # Ok(())
//! # }
//! ```

#![warn(missing_docs)]

pub mod chart;
pub mod dependencies;
pub mod engine;
pub mod explain;
mod imports;
pub mod manifest;
mod merge_values;
pub mod release;
mod spread;
pub mod values;
