//! JSON values as Kubernetes objects: paths, differences, patches, field sets, schemas, YAML. Pure: no IO, no
//! clock, no async. Read `meta` for names, `path` and `diff` for places, then `schema` with `facts` for what
//! kinds look like, `patch` and `strategic` for patches, `fieldset` and `apply` for server-side apply,
//! `selector` for label and field selectors, `pack` for texts of objects in little memory, `jsonpath` for
//! printer columns, `spelling` for mistyped words, `structural` for the schemas of CRDs. Rules in CEL have a
//! package of their own, `opdev-cel`.
//!
//! Two managers apply the same field. The second one is refused, as the API server does it:
//!
//! ```
//! use opdev_object::apply::{ApplyError, FieldManager};
//! use opdev_object::facts::facts;
//! use opdev_object::meta::Gvk;
//! use serde_json::json;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let schema = facts().schema(&Gvk::new("apps", "v1", "Deployment")).ok_or("no such kind")?;
//! let manager = |manager| FieldManager {
//!     manager,
//!     api_version: "apps/v1",
//!     subresource: None,
//!     schema: &schema,
//!     now: "2026-01-01T00:00:00Z",
//!     reset: None,
//!     versions: None,
//! };
//! let deployment = |replicas: u32| json!({
//!     "apiVersion": "apps/v1",
//!     "kind": "Deployment",
//!     "metadata": {"name": "web"},
//!     "spec": {"replicas": replicas},
//! });
//!
//! let live = manager("helm").apply(None, &deployment(1), false)?; let refused =
//! manager("kubectl").apply(Some(&live), &deployment(3), false).unwrap_err(); let
//! ApplyError::Conflicts(conflicts) = refused else { return Err(refused.into()) };
//! assert_eq!((conflicts[0].manager.as_str(), conflicts[0].path.to_string().as_str()), ("helm",
//! ".spec.replicas"));
//!
//! // With `force` the field changes its owner.
//! let live = manager("kubectl").apply(Some(&live), &deployment(3), true)?;
//! assert_eq!(live["spec"]["replicas"], 3);
//! # Ok(())
//! # }
//! ```

#![warn(missing_docs)]

pub mod api_path;
pub mod apply;
pub mod depth;
pub mod descriptions;
pub mod diff;
pub mod facts;
pub mod fieldset;
pub mod go;
pub mod jsonpath;
pub mod lines;
pub mod meta;
pub mod names;
pub mod pack;
pub mod patch;
pub mod path;
#[cfg(test)]
mod random;
pub mod schema;
pub mod selector;
pub mod spelling;
pub mod strategic;
pub mod structural;
pub mod yaml;
