//! Objects of a stream that somebody is interested in: these are kept whole, of the others the metadata.
//! Pure.

use super::mapping::{OWNER_LABEL, Primary, primaries_of};
use opdev_object::meta;
use serde_json::Value;

/// See the module. It only grows as long as a stream lives: who has read objects once reads them again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Interest {
    /// All of them.
    #[default]
    All,
    /// Objects that lead to an object of one of these kinds.
    Leading(Vec<Primary>),
}

impl Interest {
    /// Returns true if an object is kept whole. Its metadata is enough to tell.
    pub(super) fn is_in(&self, object: &Value) -> bool {
        match self {
            Interest::All => true,
            Interest::Leading(kinds) => {
                meta::label(object, OWNER_LABEL).is_some() || !primaries_of(object, kinds).is_empty()
            }
        }
    }

    /// Takes another interest in; whether there is more of it now.
    pub(super) fn widen(&mut self, other: &Interest) -> bool {
        match (&mut *self, other) {
            (Interest::All, _) => false,
            (_, Interest::All) => {
                *self = Interest::All;
                true
            }
            (Interest::Leading(kinds), Interest::Leading(others)) => {
                let new: Vec<&Primary> = others.iter().filter(|other| !kinds.contains(other)).collect();
                kinds.extend(new.iter().copied().cloned());
                !new.is_empty()
            }
        }
    }
}
