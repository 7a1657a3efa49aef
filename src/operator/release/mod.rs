//! Helm releases over an API server: install, upgrade, rollback, uninstall, repair. `engine` holds what one release needs,
//! `history` its revisions, `render` its manifest, `objects` the objects that it writes. Knows no queue.

pub(crate) mod annotations;
pub(crate) mod crds;
pub(crate) mod decide;
pub(crate) mod engine;
pub(crate) mod history;
pub(crate) mod hooks;
pub(crate) mod memory;
pub(crate) mod objects;
pub(crate) mod options;
pub(crate) mod plan;
pub(crate) mod ready;
pub(crate) mod recorder;
pub(crate) mod render;
pub(crate) mod rollback;
pub(crate) mod script;
pub mod settings;
pub(crate) mod status;
pub(crate) mod unfit;
pub(crate) mod uninstall;
pub(crate) mod upgrade;
pub(crate) mod verdict;
pub(crate) mod wait;
