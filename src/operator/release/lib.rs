//! Helm releases over an API server: install, upgrade, rollback, uninstall, repair. `engine` holds what one
//! release needs, `history` its revisions, `render` its manifest, `objects` the objects that it writes. Knows
//! no queue.

pub mod annotations;
pub(crate) mod crds;
pub(crate) mod decide;
pub mod engine;
pub mod history;
pub(crate) mod hooks;
pub mod memory;
pub mod objects;
pub mod options;
pub mod plan;
pub(crate) mod ready;
pub mod recorder;
pub mod render;
pub(crate) mod rollback;
pub mod script;
pub mod settings;
pub mod status;
pub(crate) mod too_large;
pub mod unfit;
pub(crate) mod uninstall;
pub(crate) mod upgrade;
pub mod verdict;
pub mod wait;
