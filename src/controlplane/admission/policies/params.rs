//! The parameters of a policy: the objects that a binding names, at the version the policy speaks of.

use super::super::matching::selects;
use super::{ParamRef, Policy};
use crate::admission::attributes::{Attributes, Surroundings};
use opdev_object::meta::Gvk;
use serde_json::Value;

/// A kind as Go prints it.
fn shown(kind: &Gvk) -> String {
    format!("{}/{}, Kind={}", kind.group, kind.version, kind.kind)
}

impl<S> Policy<S> {
    /// That the kind of the parameters is not served.
    pub(super) fn unknown_params(&self, around: &dyn Surroundings) -> Option<String> {
        let kind = self.params.as_ref()?;
        let known = around.of_kind(kind).is_some();
        (!known).then(|| format!("failed to find resource referenced by paramKind: '{}'", shown(kind)))
    }

    /// What the policy is evaluated with, once for each: `None` where it is evaluated without any.
    ///
    /// # Errors
    /// They cannot be found, or there have to be some and are not.
    pub(super) fn params(
        &self,
        wanted: Option<&ParamRef>,
        around: &dyn Surroundings,
        asked: &Attributes<'_>,
    ) -> Result<Vec<Option<Value>>, String> {
        let (Some(kind), Some(wanted)) = (&self.params, wanted) else { return Ok(vec![None]) };
        let Some(resource) = around.of_kind(kind) else {
            return Err(format!("paramKind kind `{}` not known", shown(kind)));
        };
        let namespace = match (resource.namespaced, wanted.namespace.as_str(), asked.namespace) {
            (true, "", "") => {
                return Err(
                    "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources"
                        .to_owned(),
                );
            }
            (true, "", own) => Some(own),
            (true, named, _) => Some(named),
            (false, "", _) => None,
            (false, ..) => {
                return Err(
                    "paramRef.namespace must not be provided for a cluster-scoped `paramKind`".to_owned()
                );
            }
        };
        let selector = match &wanted.selector {
            Some(Err(why)) => return Err(why.clone()),
            Some(Ok(_)) if !wanted.name.is_empty() => {
                return Err("paramRef.name and paramRef.selector are mutually exclusive".to_owned());
            }
            Some(Ok(selector)) => Some(selector),
            None if wanted.name.is_empty() => {
                return Err("one of name or selector must be provided".to_owned());
            }
            None => None,
        };
        let mut found = around
            .objects(&resource, namespace, Some(wanted.name.as_str()).filter(|name| !name.is_empty()))
            .map_err(|status| status.message)?;
        found.retain(|object| selector.is_none_or(|selector| selects(selector, object)));
        if found.is_empty() && wanted.needed {
            return Err("no params found for policy binding with `Deny` parameterNotFoundAction".to_owned());
        }
        Ok(found.into_iter().map(Some).collect())
    }
}
