//! Fields that go when a manager applies less than the last time: its own fields of then, unless somebody
//! else has them. All of it is worked out at the versions that the managers wrote at.

use super::error::{TypedError, VersionError};
use super::managed::{ManagerId, Managers, Owned};
use super::{FieldManager, merge};
use crate::fieldset::FieldSet;
use crate::schema::SchemaRef;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::BTreeMap;

fn named(set: &FieldSet, schema: &SchemaRef) -> FieldSet {
    set.with_named_fields(Some(schema))
}

fn fields(value: &Value, schema: &SchemaRef) -> FieldSet {
    named(&FieldSet::from_value(value, schema), schema)
}

fn without(value: &Value, set: &FieldSet, schema: &SchemaRef) -> Value {
    match merge::remove(value, set, schema) {
        Value::Null => Value::Object(Map::new()),
        left => left,
    }
}

/// Returns true if a list without items is in it: who owned items of such a list may go with the last of
/// them.
fn has_empty_list(value: &Value) -> bool {
    match value {
        Value::Array(list) => list.is_empty() || list.iter().any(has_empty_list),
        Value::Object(map) => map.values().any(has_empty_list),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

impl FieldManager<'_> {
    /// Returns true if nothing of the last time is missing, so that nothing is to be dropped. (At one version
    /// only: what a conversion makes of it is not known before.)
    pub(super) fn applies_all(
        &self,
        last: &Owned,
        managers: &Managers,
        id: &ManagerId,
        applied: &Value,
    ) -> bool {
        let here = |owned: &Owned| owned.api_version == self.api_version;
        here(last)
            && managers.0.get(id).is_some_and(|owned| last.set.is_within(&owned.set))
            && (self.versions.is_none() || managers.0.iter().all(|(_, owned)| here(owned)))
            && !has_empty_list(applied)
    }

    /// Removes what this manager applied last time, does not apply now, and nobody else owns.
    pub(super) fn drop_unapplied(
        &self,
        merged: &Value,
        last: &Owned,
        managers: &Managers,
    ) -> Result<Value, TypedError> {
        let version = last.api_version.as_str();
        let failed = |what: &str, source: VersionError| TypedError::Version { what: what.to_owned(), source };
        let (then, schema) =
            self.at(merged, version).map_err(|e| failed("merged object to last applied version", e))?;
        let lasted = named(&last.set, &schema);
        // First everything of the last time goes, then what somebody owns comes back, version by version,
        let mut owned: BTreeMap<&str, FieldSet> = BTreeMap::new();
        for (_, owner) in managers.0.iter() {
            let all = owned.entry(&owner.api_version).or_default();
            *all = all.union(&owner.set);
        }
        let mut whole = Cow::Borrowed(&*then);
        let mut pruned = without(&then, &lasted, &schema);
        let first = owned.remove_entry(version);
        for (at, set) in first.into_iter().chain(owned) {
            let (all, schema) =
                self.at(&whole, at).map_err(|e| failed(&format!("merged object at version {at}"), e))?;
            let (rest, _) =
                self.at(&pruned, at).map_err(|e| failed(&format!("pruned object at version {at}"), e))?;
            let kept = fields(&rest, &schema).union(&named(&set, &schema));
            pruned = without(&all, &fields(&all, &schema).difference(&kept), &schema);
            whole = Cow::Owned(all.into_owned());
        }
        // and at last what was not of the last time comes back.
        let (rest, _) =
            self.at(&pruned, version).map_err(|e| failed("pruned object to last applied version", e))?;
        let dangling = fields(&then, &schema).difference(&fields(&rest, &schema)).intersection(&lasted);
        let result = without(&then, &dangling, &schema);
        let found = self.at(&result, self.api_version).map_err(TypedError::version)?;
        Ok(found.0.into_owned())
    }
}
