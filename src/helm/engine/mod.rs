//! The run: a chart, values, a release and capabilities in; manifest, documents, hooks and notes out.
//! Clock, randomness and the cluster come in through `Environment`. Read `render` for the order of things.

mod ahead;
mod capabilities;
mod cores;
mod documents;
mod facts;
mod files;
mod glob;
mod hints;
mod input;
mod memory;
mod objects;
mod origin;
mod places;
mod release_read;
mod render;
mod reuse;
mod run;
mod scope;
#[cfg(test)]
mod tables;
#[cfg(test)]
mod tests;

pub use crate::values::schema::{Fetch, reaches_out};
pub use capabilities::{Capabilities, KubeVersion, KubeVersionError};
pub use input::{ReleaseInfo, RenderError, RenderErrorKind, RenderInput, Rendered, Unreadable};
pub use memory::Memory;
pub use opdev_template::{Compat, Environment, FuncError, ParseCache};
pub use release_read::ReleaseRead;
pub use render::render;
