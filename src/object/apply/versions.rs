//! Managers that wrote at another version of the kind than the one at hand: what they own is said in the
//! fields of theirs, so that objects are compared there too. As the real server does it; measured on 1.36.

use super::error::{TypedError, VersionError};
use super::managed::{ManagerId, Managers};
use super::{FieldManager, typed};
use crate::fieldset::{Comparison, compare};
use crate::schema::SchemaRef;
use serde_json::Value;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

/// The versions of a kind.
pub trait Versions: fmt::Debug {
    /// The schema of a version that the kind has, served or not.
    fn schema(&self, api_version: &str) -> Option<SchemaRef>;

    /// An object of one version at another one.
    ///
    /// # Errors
    /// What the real server says of it.
    fn convert(&self, object: &Value, api_version: &str) -> Result<Value, VersionError>;
}

impl FieldManager<'_> {
    /// An object at a version, and the schema there.
    pub(super) fn at<'v>(
        &self,
        object: &'v Value,
        api_version: &str,
    ) -> Result<(Cow<'v, Value>, SchemaRef), VersionError> {
        let Some(versions) = self.versions.filter(|_| api_version != self.api_version) else {
            let object = match self.versions {
                Some(versions) if object["apiVersion"] != self.api_version => {
                    Cow::Owned(versions.convert(object, self.api_version)?)
                }
                _ => Cow::Borrowed(object),
            };
            return Ok((object, self.schema.clone()));
        };
        let Some(schema) = versions.schema(api_version) else {
            return Err(VersionError::Unknown { api_version: api_version.to_owned() });
        };
        if object["apiVersion"] == api_version {
            return Ok((Cow::Borrowed(object), schema));
        }
        let converted = versions.convert(object, api_version)?;
        typed::check_kept(&converted, &schema)?;
        Ok((Cow::Owned(converted), schema))
    }

    /// Follows schemas that changed since the entries were written, each at its own version.
    pub(super) fn reconcile(&self, managers: &mut Managers, live: &Value) -> Result<(), TypedError> {
        for (_, owned) in managers.0.iter_mut() {
            let (_, schema) = self.at(live, &owned.api_version).map_err(TypedError::version)?;
            owned.set.reconcile(&schema);
        }
        Ok(())
    }

    /// Compares the objects at the other versions that managers wrote at.
    pub(super) fn compare_elsewhere(
        &self,
        managers: &Managers,
        old: &Value,
        new: &Value,
        writer: Option<&ManagerId>,
    ) -> Result<BTreeMap<String, Comparison>, TypedError> {
        let mut found = BTreeMap::new();
        if self.versions.is_none() {
            return Ok(found);
        }
        for (_, owned) in managers.0.iter().filter(|(id, _)| Some(*id) != writer) {
            let version = &owned.api_version;
            if version == self.api_version || found.contains_key(version) {
                continue;
            }
            let failed = |what: &str, source| TypedError::Version { what: format!("{what} object"), source };
            let (old, _) = self.at(old, version).map_err(|error| failed("old", error))?;
            let (new, schema) = self.at(new, version).map_err(|error| failed("new", error))?;
            found.insert(version.clone(), compare(&old, &new, &schema));
        }
        Ok(found)
    }
}
