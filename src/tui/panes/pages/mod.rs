//! Pages that take the place of all panes.

pub mod background;
pub mod finding;
