//! Server-side apply and the tracking of who owns which field, as the API server does it.
//! The caller gives schema, time and live object; defaulting and storing are the caller's too.
//! Read `merge` for the merge, `managed` for `metadata.managedFields`, `typed` for what is refused,
//! `compact` for its short form in a tree, `hand_over` for fields that pass to another manager, `overlay` for
//! a merge without owners, `prune` for what an apply takes away, `versions` for managers that wrote at other
//! versions.

pub mod compact;
mod error;
mod hand_over;
mod managed;
mod merge;
mod overlay;
mod prune;
mod typed;
mod versions;

use crate::facts::{SHOWN_FROM_ONE, minors};
use crate::fieldset::{Comparison, FieldSet, compare};
use crate::meta;
use crate::schema::{Kind, SchemaRef, same};
use managed::{ManagerId, Managers, Owned};
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::sync::OnceLock;

pub use error::{
    ApplyError, Conflict, ManagedFieldsError, MergeError, Mismatch, MismatchKind, Mismatches, OverlayError,
    RequestError, TypedError, VersionError,
};
pub use hand_over::{HandOver, dropped};
pub use overlay::overlay;
pub use versions::Versions;

/// The annotation of client-side apply.
pub const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// One writer of one object.
#[derive(Clone, Debug)]
pub struct FieldManager<'a> {
    /// The writer's name.
    pub manager: &'a str,
    /// The version it writes at.
    pub api_version: &'a str,
    /// The subresource it writes through.
    pub subresource: Option<&'a str>,
    /// The kind's schema at that version.
    pub schema: &'a SchemaRef,
    /// The time of the write, RFC 3339 with seconds.
    pub now: &'a str,
    /// Fields that this endpoint does not write (`status`, or all but it), with all below them.
    pub reset: Option<&'a FieldSet>,
    /// The kind's other versions, at which others may have written; `None` where its objects look the same at
    /// all of them.
    pub versions: Option<&'a dyn Versions>,
}

/// Fields that nobody owns.
fn never_owned() -> &'static FieldSet {
    static SET: OnceLock<FieldSet> = OnceLock::new();
    SET.get_or_init(|| {
        FieldSet::of_fields(&[
            &["apiVersion"],
            &["kind"],
            &["metadata"],
            &["metadata", "name"],
            &["metadata", "namespace"],
            &["metadata", "creationTimestamp"],
            &["metadata", "selfLink"],
            &["metadata", "uid"],
            &["metadata", "clusterName"],
            &["metadata", "generation"],
            &["metadata", "managedFields"],
            &["metadata", "resourceVersion"],
        ])
    })
}

/// The object before it existed.
fn nothing(like: &Value) -> Value {
    json!({"apiVersion": like["apiVersion"], "kind": like["kind"]})
}

/// The value of a struct's field before anybody sets it; `None` where the field may be absent, or have
/// another value.
fn unset(owner: &SchemaRef, name: &str, field: &SchemaRef) -> Option<Value> {
    let zero = match field.kind {
        Kind::Integer | Kind::Number => json!(0),
        Kind::Boolean => json!(false),
        Kind::Any | Kind::Object | Kind::Array | Kind::String | Kind::IntOrString => Value::Null,
    };
    let required = || owner.checks.as_ref().is_some_and(|checks| checks.required.iter().any(|at| at == name));
    let has = match field.default_value() {
        Some(default) => {
            *default == zero && !SHOWN_FROM_ONE.contains(&(owner.definition_name().unwrap_or_default(), name))
        }
        None => required(),
    };
    has.then_some(zero)
}

/// Adds what a built-in object always has, however empty: `spec: {}`, `0` for a number that is always there,
/// `null` for a required list. The server sees such objects as structs, so that nobody comes to own these
/// places by filling them.
fn fill_in(value: &mut Value, schema: &SchemaRef) {
    let Value::Object(map) = value else { return };
    for (name, property) in &schema.properties {
        if property.default_value().is_some_and(|default| default.as_object().is_some_and(Map::is_empty)) {
            let inner = map.entry(name.clone()).or_insert_with(|| Value::Object(Map::new()));
            fill_in(inner, property);
        } else if !map.contains_key(name)
            && let Some(unset) = unset(schema, name, property)
        {
            map.insert(name.clone(), unset);
        }
    }
}

/// Returns true if `fill_in` would add anything: most objects are whole and need not be copied for it.
fn lacks(value: &Value, schema: &SchemaRef) -> bool {
    let Value::Object(map) = value else { return false };
    schema.properties.iter().any(|(name, property)| match property.default_value() {
        Some(default) if default.as_object().is_some_and(Map::is_empty) => {
            map.get(name).is_none_or(|inner| lacks(inner, property))
        }
        _ => !map.contains_key(name) && unset(schema, name, property).is_some(),
    })
}

/// A built-in object with all that it always has; other objects as they are.
fn filled<'a>(value: &'a Value, schema: &SchemaRef) -> Cow<'a, Value> {
    if !schema.is_built_in() || !lacks(value, schema) {
        return Cow::Borrowed(value);
    }
    let mut value = value.clone();
    fill_in(&mut value, schema);
    Cow::Owned(value)
}

impl FieldManager<'_> {
    /// Merges an applied configuration into the live object. The result carries the managers; it is the live
    /// object itself where the configuration changes nothing.
    pub fn apply(&self, live: Option<&Value>, applied: &Value, force: bool) -> Result<Value, ApplyError> {
        if meta::field(applied, "managedFields").is_some_and(|v| !v.is_null()) {
            return Err(ApplyError::BadRequest(RequestError::ManagedFields));
        }
        let version = applied["apiVersion"].as_str().unwrap_or_default();
        if version != self.api_version {
            return Err(ApplyError::BadRequest(RequestError::Version {
                found: version.to_owned(),
                expected: self.api_version.to_owned(),
            }));
        }
        let live = live.map_or_else(|| Cow::Owned(nothing(applied)), Cow::Borrowed);
        let mut managers = Managers::read(&live).map_err(TypedError::ManagedFields)?;
        let live = managed::without(&live);
        if managers.0.is_empty() {
            self.fits(&live).map_err(|source| TypedError::New { object: self.shown(&live), source })?;
        }
        typed::check(applied, self.schema)
            .map_err(|source| TypedError::Applied { object: self.shown(applied), source })?;
        self.fits(&live).map_err(|source| TypedError::Live { object: self.shown(&live), source })?;
        self.reconcile(&mut managers, &live)?;
        if managers.0.is_empty() {
            let first = FieldManager { manager: "before-first-apply", ..self.clone() };
            first.track(&self.unwritten(&live), &live, &mut managers)?;
        }
        // Only then is it looked at once more who owned what.
        let before = (self.manager == "kubectl" && !force).then(|| managers.clone());
        let mut result = match (self.merge(&live, applied, managers, force), before) {
            (Err(ApplyError::Conflicts(conflicts)), Some(before)) => {
                self.migrate(&live, applied, before, conflicts)?
            }
            (other, _) => other?,
        };
        self.renew_last_applied(&mut result, applied);
        Ok(result)
    }

    /// An object as the server names it in its errors.
    fn shown(&self, object: &Value) -> String {
        format!(
            "{}/{}; {}, Kind={}",
            meta::namespace(object).unwrap_or_default(),
            meta::name(object).unwrap_or_default(),
            meta::group_version(self.api_version),
            object["kind"].as_str().unwrap_or_default(),
        )
    }

    /// Checks that a whole object fits its schema. A custom resource may have been written when the schema
    /// was another one; a built-in object was read as its type and always does.
    fn fits(&self, object: &Value) -> Result<(), Mismatches> {
        if self.schema.is_built_in() { Ok(()) } else { typed::check_kept(object, self.schema) }
    }

    /// The object before it existed. What a built-in object writes as `null`, it has even then.
    fn unwritten(&self, new: &Value) -> Value {
        let mut old = nothing(new);
        if self.schema.is_built_in() {
            let nulls = new.as_object().into_iter().flatten().filter(|(_, value)| value.is_null());
            nulls.for_each(|(name, _)| old[name.as_str()] = Value::Null);
        }
        old
    }

    fn id(&self, applied: bool) -> ManagerId {
        let name = if self.manager.is_empty() { "unknown" } else { self.manager };
        ManagerId::new(name, applied, self.api_version, self.subresource.unwrap_or_default())
    }

    fn merge(
        &self,
        live: &Value,
        applied: &Value,
        mut managers: Managers,
        force: bool,
    ) -> Result<Value, ApplyError> {
        let merged = merge::merge(live, applied, self.schema).map_err(TypedError::Merge)?;
        let id = self.id(true);
        let mut set = FieldSet::from_value(applied, self.schema);
        if let Some(reset) = self.reset {
            set.subtract_whole(reset);
        }
        let time = managers.0.get(&id).and_then(|owned| owned.time.clone());
        let before = managers
            .0
            .insert(id.clone(), Owned { set, api_version: self.api_version.to_owned(), time, fresh: false });
        let mut result = match before {
            Some(last) if !last.set.is_empty() => {
                let all = self.applies_all(&last, &managers, &id, applied);
                let dropped = || self.drop_unapplied(&merged, &last, &managers);
                debug_assert!(
                    !all || dropped().as_ref() == Ok(&merged),
                    "nothing is missing, and yet some goes"
                );
                if all { merged } else { dropped()? }
            }
            _ => merged,
        };
        self.resolve(&mut managers, live, &result, Some(&id), force)?;
        let changed = !same(live, &result);
        if let Some(owned) = managers.0.get_mut(&id) {
            owned.set.subtract(never_owned());
            // A configuration that changes nothing leaves no time.
            if changed {
                owned.time = Some(self.now.to_owned());
                owned.fresh = true;
            }
        }
        managers.0.drop_empty();
        managers.write(&mut result);
        Ok(result)
    }

    fn compare(&self, old: &Value, new: &Value) -> Comparison {
        let (old, new) = (filled(old, self.schema), filled(new, self.schema));
        let compared = compare(&old, &new, self.schema);
        match self.reset {
            Some(reset) => compared.without(reset),
            None => compared,
        }
    }

    /// The first server-side apply after client-side ones may change what was applied client-side.
    fn migrate(
        &self,
        live: &Value,
        applied: &Value,
        managers: Managers,
        conflicts: Vec<Conflict>,
    ) -> Result<Value, ApplyError> {
        let last: Option<Value> =
            meta::annotation(live, LAST_APPLIED).and_then(|text| serde_json::from_str(text).ok());
        let Some(last) = last.filter(|last| last["apiVersion"] == self.api_version) else {
            return Err(ApplyError::Conflicts(conflicts));
        };
        let compared = compare(&last, live, self.schema);
        let allowed = FieldSet::from_value(&last, self.schema)
            .difference(&compared.modified)
            .difference(&compared.added)
            .difference(&compared.removed);
        let left: Vec<Conflict> = conflicts.into_iter().filter(|c| !allowed.has(&c.path.0)).collect();
        if left.is_empty() {
            self.merge(live, applied, managers, true)
        } else {
            Err(ApplyError::Conflicts(left))
        }
    }

    fn renew_last_applied(&self, result: &mut Value, applied: &Value) {
        if self.manager != "kubectl" || meta::annotation(result, LAST_APPLIED).is_none_or(str::is_empty) {
            return;
        }
        let mut config = applied.clone();
        if let Some(annotations) = config.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut)
        {
            annotations.remove(LAST_APPLIED);
        }
        result["metadata"]["annotations"][LAST_APPLIED] = Value::String(format!("{config}\n"));
    }

    /// Tracks a create, update or patch: `new` is what will be stored, `live` what was there before.
    /// Writes `metadata.managedFields` into `new`.
    pub fn update(&self, live: Option<&Value>, new: &mut Value) {
        let of_live = || live.and_then(|live| Managers::read(live).ok()).unwrap_or_default();
        let mut managers = if self.subresource.is_some() {
            of_live()
        } else if managed::is_reset(new) {
            Managers::default()
        } else {
            match Managers::read(new) {
                Ok(given) if !given.0.is_empty() => given,
                _ => of_live(),
            }
        };
        managed::remove(new);
        let old = match live {
            Some(live) => managed::without(live),
            None => Cow::Owned(self.unwritten(new)),
        };
        // Where it cannot be said who owns what, all is as it was from 1.37 on. Older servers forget all.
        let as_before = |new: &mut Value| {
            let live = live.filter(|_| minors::since(37));
            if let Some(entries) = live.and_then(|live| live["metadata"].get("managedFields")) {
                new["metadata"]["managedFields"] = entries.clone();
            }
        };
        if self.reconcile(&mut managers, &old).is_err() {
            return as_before(new);
        }
        // An object that nobody owned so far stays so.
        if managers.0.is_empty() && live.and_then(meta::uid).is_some() {
            return;
        }
        if self.fits(new).and_then(|()| self.fits(&old)).is_err() {
            return as_before(new);
        }
        if self.track(&old, new, &mut managers).is_err() {
            return as_before(new);
        }
        managers.cap();
        managers.write(new);
    }

    /// Fields that changed from `old` to `new` now belong to this manager alone.
    fn track(&self, old: &Value, new: &Value, managers: &mut Managers) -> Result<(), ApplyError> {
        let compared = self.resolve(managers, old, new, None, true)?;
        let mut set = compared.modified.joined(compared.added);
        set.subtract(never_owned());
        if set.is_empty() {
            return Ok(());
        }
        let id = self.id(false);
        let set = match managers.0.remove(&id) {
            Some(before) => before.set.joined(set),
            None => set,
        };
        let time = Some(self.now.to_owned());
        managers.0.insert(id, Owned { set, api_version: self.api_version.to_owned(), time, fresh: true });
        Ok(())
    }

    /// Takes changed and removed fields away from the managers that owned them, each at the version it wrote
    /// at; without `force` a changed field of another manager is a conflict. Gives what differs at the own
    /// version.
    fn resolve(
        &self,
        managers: &mut Managers,
        old: &Value,
        new: &Value,
        writer: Option<&ManagerId>,
        force: bool,
    ) -> Result<Comparison, ApplyError> {
        let own = self.compare(old, new);
        let others = self.compare_elsewhere(managers, old, new, writer)?;
        let compared = |version: &str| others.get(version).unwrap_or(&own);
        let mut conflicts = Vec::new();
        if !force {
            for (id, owned) in managers.0.iter().filter(|(id, _)| Some(*id) != writer) {
                let compared = compared(&owned.api_version);
                let changed = compared.modified.union(&compared.added);
                for path in owned.set.intersection(&changed).leaves_first() {
                    conflicts.push(Conflict { manager: id.name.clone(), shown: id.shown(), path });
                }
            }
        }
        if !conflicts.is_empty() {
            // By manager; each manager's fields in the order of its set.
            conflicts.sort_by(|a, b| a.shown.cmp(&b.shown));
            return Err(ApplyError::Conflicts(conflicts));
        }
        for (id, owned) in managers.0.iter_mut() {
            if Some(id as &ManagerId) != writer {
                let compared = compared(&owned.api_version);
                owned.set.subtract(&compared.modified);
                owned.set.subtract(&compared.added);
                owned.set.subtract(&compared.removed);
            }
        }
        managers.0.drop_empty();
        Ok(own)
    }
}

#[cfg(test)]
#[allow(clippy::needless_pass_by_value)]
mod tests;
