//! Schemas of objects, one type for the built-in definitions and the structural schemas of CRDs.
//! Drives pruning, defaulting, validation (here), patches (`strategic`) and server-side apply.
//! Read `model` and `convert` for how they are read, then `prune` and `validate`.

mod convert;
mod error;
mod formats;
mod model;
mod pattern;
mod presence;
mod prune;
mod step;
mod validate;

pub(crate) use convert::{custom, embed};
pub use error::{FieldError, Reason};
pub use formats::duration_nanos;
pub use model::ValueRules;
pub use model::{
    Additional, Checks, Definition, Find, Kind, ListType, MapType, OBJECT_META, PatchRule, Schema, SchemaRef,
};
pub use pattern::Pattern;
pub use presence::missing;
pub use prune::{default, default_of_applied, prune};
pub(crate) use step::{Step, below};
pub(crate) use validate::same;
pub use validate::{admit, admit_unless, unchanged, validate, validate_at, validate_update};

#[cfg(test)]
#[allow(clippy::needless_pass_by_value)]
mod tests;
