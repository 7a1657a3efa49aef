//! New operator projects and new APIs: what `opdev init` and `opdev create api` write, as files in memory.
//! Pure: the project's present files come through [`ProjectFiles`], and `write` writes the result. The layout
//! is that of the Operator SDK 1.42 and kubebuilder 4.16, so that their tools go on with the project. Begin
//! with [`init`].

mod api;
mod base;
mod chart;
mod dockerfile;
mod draft;
mod draft_files;
mod go;
mod go_project;
mod markers;
mod names;
mod options;
mod project_file;
mod roles;
mod typed;
pub mod unfinished;
mod values_schema;
pub mod write;

pub use api::{create_api, is_go_project};
pub use base::{init, warn_of_others};
pub use draft::{Action, Draft, PlannedFile, PresentFile, ProjectFiles};
pub use names::camel_case;
pub use options::{ApiOptions, ChartSource, CrdSchema, InitOptions, Layout, OPERATOR_SDK, Reconciler};
pub use project_file::unreadable_for_operator_sdk;
