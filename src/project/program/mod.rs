//! The programs of a project as its files describe them: how each is found, built, configured and deployed. Starts none.

pub mod detect;
pub(crate) mod detect_all;
pub(crate) mod files;
pub mod kustomization;
pub mod manager_manifest;
pub mod settings;
pub mod webhooks;
