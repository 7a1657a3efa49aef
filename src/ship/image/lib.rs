//! Container images as bytes: entries become layers, layers an image, images an OCI layout. The same input
//! gives the same digests. `contents` finds what goes in, `build` writes or uploads what comes out; the rest
//! is pure.

pub mod build;
pub(crate) mod contents;
mod entries;
mod executable;
mod ignore;
mod layer;
mod layout;
mod manifest;
mod secret;

pub use entries::{Entries, Entry};
pub use executable::{Program, ProgramError};
pub use ignore::{IgnoreFile, PatternError};
pub use layer::Layer;
pub use layout::{Layout, LayoutFile, OCI_LAYOUT, merge_indexes};
pub use manifest::{BINARY, HOME, Image, ImageSettings};
pub use secret::secret_in;
