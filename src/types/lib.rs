//! Type files: Go type files to CRDs (`go`), CRD YAML as a source of its own (`crd`), the declarations that
//! scripts see (`declarations`), and what is wrong with them (`diagnostic`). Pure: text in, JSON out.
//! Reconcilers have a package of their own, `opdev-script`.
//!
//! A Go type with markers becomes a CRD, without Go:
//!
//! ```
//! use opdev_types::go::{Files, Generator, Options};
//! use std::sync::Arc;
//!
//! /// A project of one package, in memory.
//! struct Project;
//!
//! impl Files for Project {
//!     fn read(&self, path: &str) -> Option<Arc<str>> {
//!         match path {
//!             "go.mod" => Some("module example.com/shop\n\nrequire k8s.io/apimachinery v0.34.0\n".into()),
//!             "api/v1/web_types.go" => Some(
//!                 r#"// +groupName=shop.example.com
//! package v1
//!
//! import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
//!
//! // +kubebuilder:object:root=true
//! type Web struct {
//!     metav1.TypeMeta   `json:",inline"`
//!     metav1.ObjectMeta `json:"metadata,omitempty"`
//!
//!     Spec WebSpec `json:"spec,omitempty"`
//! }
//!
//! type WebSpec struct {
//!     // +kubebuilder:validation:Minimum=1
//!     Replicas int32 `json:"replicas"`
//! }
//! "#
//!                     .into(),
//!             ),
//!             _ => None,
//!         }
//!     }
//!
//!     fn list(&self, dir: &str) -> Vec<String> {
//!         let names: &[&str] = match dir {
//!             "api/v1" => &["web_types.go"],
//!             _ => &[],
//!         };
//!         names.iter().map(|name| (*name).to_owned()).collect()
//!     }
//!
//!     fn module_cache(&self) -> Option<String> {
//!         None
//!     }
//! }
//!
//! let generated = Generator::new().generate(&Project, &["api/v1".to_owned()], &Options::default());
//! let crd = &generated.crds[0].object;
//! assert_eq!(crd["metadata"]["name"], "webs.shop.example.com");
//! let replicas = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/replicas";
//! assert_eq!(crd.pointer(replicas).unwrap()["minimum"], 1);
//! ```

#![warn(missing_docs)]

pub mod crd;
pub mod declarations;
pub mod diagnostic;
#[cfg(test)]
mod edits;
pub mod emit;
pub mod go;
pub mod impact;
pub mod kinds;
pub mod pin;
pub mod plural;
pub mod rbac;
pub mod webhook;
