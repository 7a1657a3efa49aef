//! The methods of `authorizer`: each adds to a question, the last one asks it.

use super::authorizer::{AUTHORIZER, Check, DECISION, GROUP, PATH, RESOURCE};
use super::runtime::Runtime;
use super::value::{Evaluated, Val, no_overload};
use std::sync::Arc;

/// The cost of one question, as upstream counts it.
const COST: u64 = 350_000;

/// A field of a check: the authorizer has one.
pub(super) fn select(runtime: &Runtime<'_>, check: &Check, field: &str) -> Evaluated {
    match (check.kind, field, runtime.authorizer) {
        (AUTHORIZER, "requestResource", Some(authorizer)) => {
            Ok(Val::Check(Arc::new(Check::new(RESOURCE, authorizer.request_resource()))))
        }
        _ => no_overload(),
    }
}

/// Calls a method of a check.
pub(super) fn call(runtime: &mut Runtime<'_>, name: &str, check: &Check, args: &[Val]) -> Evaluated {
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
            runtime.spend(COST)?;
            asked.verb = verb.clone();
            let Some(authorizer) = runtime.authorizer else { return no_overload() };
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
