//! Judges one variant: the objects before and after the swap, and the writes between. Pure. What the old
//! version does by itself, too, is left out later, by what the variant `same` has given.

mod converted;
mod election;
mod gone;
mod objects;
mod observed;
mod rest;
mod rights;
mod stored;
mod template;
mod words;
mod writes;

use super::finding::Finding;
use super::swap::Variant;
pub(super) use election::Elections;
use objects::differences;
pub use observed::Tally;
pub(super) use observed::{Defined, Observed, Tried};
use opdev_object::diff::Change;
pub(super) use rights::RightsSeen;
use std::collections::BTreeSet;
pub(super) use words::named;

/// The findings of a variant.
pub(super) fn findings(observed: &Observed) -> Vec<Finding> {
    let mut found = stored::definitions(observed);
    let refused = writes::refused(observed);
    found.extend(rest::findings(observed, &refused));
    found.extend(refused);
    found.extend(writes::pruned(observed));
    found.extend(stored::findings(observed));
    found.extend(converted::findings(observed));
    match observed.variant {
        // Until it was put back, all else followed from the new version.
        Variant::Back => found.extend(gone::stays(observed)),
        Variant::RolesLeftOld => return rights::left_old(observed),
        Variant::Plain | Variant::CrdLeftOld | Variant::Same => {
            found.extend(gone::findings(observed));
            found.extend(template::findings(observed));
        }
    }
    if observed.variant == Variant::Plain {
        found.extend(rights::own(observed));
        found.extend(election::findings(observed));
    }
    found
}

/// Counts what differs.
pub(super) fn tally(observed: &Observed) -> Tally {
    let mut tally = Tally { before: observed.before.0.len(), ..Tally::default() };
    for (key, before) in &observed.before.0 {
        let Some(after) = observed.after.get(key) else { continue };
        let changes = differences(before, after);
        let of_version = |change: &Change| words::is_version_label(&change.path.to_string());
        match changes.as_slice() {
            [] => tally.same += 1,
            some if some.iter().all(of_version) => tally.labels += 1,
            some => {
                let fields: BTreeSet<String> = some.iter().map(|change| change.path.to_string()).collect();
                let fields: Vec<String> = fields.into_iter().collect();
                tally.changed.push(format!("{}: {}", named(key), words::some_of(&fields, 4)));
            }
        }
    }
    let new = observed.after.0.keys().filter(|key| observed.before.get(key).is_none());
    tally.created = new.map(named).collect();
    tally
}

#[cfg(test)]
mod tests;
