//! `authorizer` of conditions: a question is put together call by call, and somebody else answers it.

use super::eval::Eval;
use super::value::{Evaluated, Val, no_overload};
use std::sync::Arc;

pub(super) const AUTHORIZER: &str = "kubernetes.authorization.Authorizer";
pub(super) const PATH: &str = "kubernetes.authorization.PathCheck";
pub(super) const GROUP: &str = "kubernetes.authorization.GroupCheck";
pub(super) const RESOURCE: &str = "kubernetes.authorization.ResourceCheck";
pub(super) const DECISION: &str = "kubernetes.authorization.Decision";
/// What asking costs, as upstream counts it.
const COST: u64 = 350_000;

/// What somebody wants to do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    /// Such as `get`.
    pub verb: String,
    /// API group.
    pub group: String,
    /// Plural.
    pub resource: String,
    /// Subresource, `""` for none.
    pub subresource: String,
    /// Namespace, `""` for all.
    pub namespace: String,
    /// Name, `""` for all.
    pub name: String,
    /// A path that is no resource.
    pub path: Option<String>,
    /// Namespace and name of the ServiceAccount, where it is not the one who makes the request.
    pub service_account: Option<(String, String)>,
}

/// Whether it is allowed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// It is.
    pub allowed: bool,
    /// Why, where that is known.
    pub reason: String,
}

/// Knows who may do what.
pub trait Authorizer {
    /// Decides.
    fn decide(&self, wanted: &Asked) -> Verdict;
    /// The resource that the request itself is about.
    fn request_resource(&self) -> Asked;
}

/// A question that is put together, or its answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Check {
    /// One of the kinds above.
    pub(super) kind: &'static str,
    pub(super) asked: Asked,
    pub(super) verdict: Verdict,
}

impl Check {
    /// One of a kind, about this.
    pub(super) fn new(kind: &'static str, asked: Asked) -> Self {
        Check { kind, asked, verdict: Verdict::default() }
    }
}

/// A field of a check: the authorizer has one.
pub(super) fn select(eval: &Eval<'_>, check: &Check, field: &str) -> Evaluated {
    match (check.kind, field, eval.authorizer) {
        (AUTHORIZER, "requestResource", Some(authorizer)) => {
            Ok(Val::Check(Arc::new(Check::new(RESOURCE, authorizer.request_resource()))))
        }
        _ => no_overload(),
    }
}

/// Calls a method of a check.
pub(super) fn call(eval: &mut Eval<'_>, name: &str, check: &Check, args: &[Val]) -> Evaluated {
    let texts: Option<Vec<String>> = args
        .iter()
        .map(|arg| match arg {
            Val::Text(text) => Some(text.to_string()),
            _ => None,
        })
        .collect();
    let Some(texts) = texts else { return no_overload() };
    let mut asked = check.asked.clone();
    let kind = match (check.kind, name, texts.as_slice()) {
        (AUTHORIZER, "serviceAccount", [namespace, name]) => {
            asked.service_account = Some((namespace.clone(), name.clone()));
            AUTHORIZER
        }
        (AUTHORIZER, "path", [path]) => {
            asked.path = Some(path.clone());
            PATH
        }
        (AUTHORIZER, "group", [group]) => {
            asked.group = group.clone();
            GROUP
        }
        (GROUP, "resource", [resource]) => {
            asked.resource = resource.clone();
            RESOURCE
        }
        (RESOURCE, "subresource", [subresource]) => {
            asked.subresource = subresource.clone();
            RESOURCE
        }
        (RESOURCE, "namespace", [namespace]) => {
            asked.namespace = namespace.clone();
            RESOURCE
        }
        (RESOURCE, "name", [name]) => {
            asked.name = name.clone();
            RESOURCE
        }
        (RESOURCE | PATH, "check", [verb]) => {
            eval.spend(COST)?;
            asked.verb = verb.clone();
            let Some(authorizer) = eval.authorizer else { return no_overload() };
            let verdict = authorizer.decide(&asked);
            return Ok(Val::Check(Arc::new(Check { kind: DECISION, asked, verdict })));
        }
        (DECISION, "allowed", []) => return Ok(Val::Bool(check.verdict.allowed)),
        (DECISION, "reason", []) => return Ok(Val::text(&check.verdict.reason)),
        (DECISION, "errored", []) => return Ok(Val::Bool(false)),
        (DECISION, "error", []) => return Ok(Val::text("")),
        _ => return no_overload(),
    };
    Ok(Val::Check(Arc::new(Check::new(kind, asked))))
}
