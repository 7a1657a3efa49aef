//! The parameters of a policy: the objects that a binding names, at the version the policy speaks of.

use super::super::matching::selects;
use super::{ParamRef, Policy};
use crate::attributes::{Attributes, Cluster};
use opdev_apimachinery::error::Status;
use opdev_object::meta::Gvk;
use opdev_object::selector::SelectorError;
use serde_json::Value;

/// A kind as Go prints it.
fn shown(kind: &Gvk) -> String {
    format!("{}/{}, Kind={}", kind.group, kind.version, kind.kind)
}

/// Why a policy has no parameters to be evaluated with.
#[derive(Debug)]
pub(super) enum ParamsError {
    /// Their kind is not served.
    UnknownKind(Gvk),
    /// They are in a namespace, and neither the binding nor the request has one.
    NoNamespace,
    /// They are in no namespace, and the binding names one.
    NeedlessNamespace,
    Selector(SelectorError),
    NameAndSelector,
    NeitherNameNorSelector,
    /// They cannot be listed.
    NotFound(Status),
    /// There are none, and the binding needs some.
    None,
}

impl std::error::Error for ParamsError {}

impl std::fmt::Display for ParamsError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            ParamsError::UnknownKind(kind) => return write!(f, "paramKind kind `{}` not known", shown(kind)),
            ParamsError::NoNamespace => {
                "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources"
            }
            ParamsError::NeedlessNamespace => {
                "paramRef.namespace must not be provided for a cluster-scoped `paramKind`"
            }
            ParamsError::Selector(error) => return error.fmt(f),
            ParamsError::NameAndSelector => "paramRef.name and paramRef.selector are mutually exclusive",
            ParamsError::NeitherNameNorSelector => "one of name or selector must be provided",
            ParamsError::NotFound(status) => &status.message,
            ParamsError::None => "no params found for policy binding with `Deny` parameterNotFoundAction",
        })
    }
}

impl<S> Policy<S> {
    /// That the kind of the parameters is not served.
    pub(super) fn unknown_params(&self, cluster: &dyn Cluster) -> Option<String> {
        let kind = self.params.as_ref()?;
        let known = cluster.of_kind(kind).is_some();
        (!known).then(|| format!("failed to find resource referenced by paramKind: '{}'", shown(kind)))
    }

    /// The parameters of a policy. It is evaluated once with each; `None` is an evaluation without any.
    ///
    /// # Errors
    /// They cannot be found, or there have to be some and are not.
    pub(super) fn params(
        &self,
        wanted: Option<&ParamRef>,
        cluster: &dyn Cluster,
        asked: &Attributes<'_>,
    ) -> Result<Vec<Option<Value>>, ParamsError> {
        let (Some(kind), Some(wanted)) = (&self.params, wanted) else { return Ok(vec![None]) };
        let Some(resource) = cluster.of_kind(kind) else {
            return Err(ParamsError::UnknownKind(kind.clone()));
        };
        let namespace = match (resource.namespaced, wanted.namespace.as_str(), asked.namespace) {
            (true, "", "") => {
                return Err(ParamsError::NoNamespace);
            }
            (true, "", own) => Some(own),
            (true, named, _) => Some(named),
            (false, "", _) => None,
            (false, ..) => {
                return Err(ParamsError::NeedlessNamespace);
            }
        };
        let selector = match &wanted.selector {
            Some(Err(error)) => return Err(ParamsError::Selector(error.clone())),
            Some(Ok(_)) if !wanted.name.is_empty() => {
                return Err(ParamsError::NameAndSelector);
            }
            Some(Ok(selector)) => Some(selector),
            None if wanted.name.is_empty() => {
                return Err(ParamsError::NeitherNameNorSelector);
            }
            None => None,
        };
        let mut found = cluster
            .objects(&resource, namespace, Some(wanted.name.as_str()).filter(|name| !name.is_empty()))
            .map_err(ParamsError::NotFound)?;
        found.retain(|object| selector.is_none_or(|selector| selects(selector, object)));
        if found.is_empty() && wanted.needed {
            return Err(ParamsError::None);
        }
        Ok(found.into_iter().map(Some).collect())
    }
}
