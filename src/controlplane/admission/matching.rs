//! Matches a request with a webhook or a policy: rules, selectors, match conditions. Never calls it.

use super::hook::{Constraints, Hook, Rule};
use super::review;
use crate::attributes::{Attributes, Cluster, Operation};
use crate::authorization;
use opdev_apimachinery::error::Status;
use opdev_apimachinery::resource::Resource;
use opdev_cel::{Asked, Authorizer, Verdict};
use opdev_object::selector::LabelSelector;
use serde_json::{Map, Value};
use std::sync::Arc;

/// A request as a webhook sees it.
#[derive(Clone, Debug)]
pub(super) struct VersionedRequest {
    /// The version it speaks of, where that is not the request's own.
    pub at: Option<Arc<Resource>>,
    /// The object at that version.
    pub object: Option<Value>,
    /// The object that is replaced or deleted.
    pub(super) old: Option<Value>,
}

impl Rule {
    fn fits(&self, asked: &Attributes<'_>, resource: &Resource) -> bool {
        let any = |list: &[String], wanted: &str| list.iter().any(|item| item == "*" || item == wanted);
        let cluster = resource.rules.is_namespace || asked.namespace.is_empty();
        let scope = match self.scope.as_str() {
            "" | "*" => true,
            "Namespaced" => !cluster,
            "Cluster" => cluster,
            _ => false,
        };
        let named = |item: &String| {
            let (plural, sub) = item.split_once('/').unwrap_or((item.as_str(), ""));
            (plural == "*" || plural == resource.plural) && (sub == "*" || sub == asked.subresource)
        };
        scope
            && any(&self.operations, asked.operation.name())
            && any(&self.groups, &resource.group)
            && any(&self.versions, &resource.version)
            && self.resources.iter().any(named)
            && (self.names.is_empty() || self.names.iter().any(|name| name == asked.name))
    }
}

/// The match of a request with any of the rules: `Some(None)` as it is, `Some(Some(…))` at another version.
fn by_rules(
    rules: &[Rule],
    exact: bool,
    cluster: &dyn Cluster,
    asked: &Attributes<'_>,
) -> Option<Option<Arc<Resource>>> {
    if rules.iter().any(|rule| rule.fits(asked, asked.resource)) {
        return Some(None);
    }
    if exact || rules.is_empty() {
        return None;
    }
    let others = cluster.equivalents(asked.resource);
    let found = rules.iter().find_map(|rule| others.iter().find(|other| rule.fits(asked, other)));
    found.map(|other| Some(other.clone()))
}

fn labels(object: &Value) -> Option<&Map<String, Value>> {
    object["metadata"]["labels"].as_object()
}

/// Returns true if a selector picks an object by its labels.
pub(super) fn selects(selector: &LabelSelector, object: &Value) -> bool {
    match labels(object) {
        Some(labels) => selector.matches(labels),
        None => selector.matches(&Map::new()),
    }
}

/// The match of the namespace.
fn by_namespace(
    meant: &Constraints,
    cluster: &dyn Cluster,
    asked: &Attributes<'_>,
    object: Option<&Value>,
) -> Result<bool, Status> {
    let of_namespace = asked.resource.plural == "namespaces";
    if asked.namespace.is_empty() && !of_namespace {
        return Ok(true);
    }
    let selector = meant.namespaces.as_ref().map_err(|error| Status::internal(&error.to_string()))?;
    if selector.is_empty() {
        return Ok(true);
    }
    let written = matches!(asked.operation, Operation::Create | Operation::Update);
    if of_namespace && asked.subresource.is_empty() && written {
        return Ok(object.is_some_and(|object| selects(selector, object)));
    }
    match cluster.get("namespaces", None, asked.namespace) {
        Some(found) => Ok(selects(selector, &found)),
        None => Err(Status::not_found("", "namespaces", asked.namespace)),
    }
}

fn by_object(meant: &Constraints, object: Option<&Value>, old: Option<&Value>) -> Result<bool, Status> {
    let selector = meant.objects.as_ref().map_err(|error| Status::internal(&error.to_string()))?;
    let fits = |object: Option<&Value>| {
        object.is_some_and(|object| object["metadata"].is_object() && selects(selector, object))
    };
    Ok(selector.is_empty() || fits(object) || fits(old))
}

/// The match of a request: `Some(None)` as it is, `Some(Some(…))` at another version.
pub(super) fn meets(
    meant: &Constraints,
    cluster: &dyn Cluster,
    asked: &Attributes<'_>,
    object: Option<&Value>,
    old: Option<&Value>,
) -> Result<Option<Option<Arc<Resource>>>, Status> {
    let in_namespace = by_namespace(meant, cluster, asked, object);
    if matches!(in_namespace, Ok(false)) {
        return Ok(None);
    }
    let of_object = by_object(meant, object, old);
    if matches!(of_object, Ok(false)) || by_rules(&meant.excluded, meant.exact, cluster, asked).is_some() {
        return Ok(None);
    }
    let at = if meant.all { Some(None) } else { by_rules(&meant.rules, meant.exact, cluster, asked) };
    let Some(at) = at else { return Ok(None) };
    in_namespace?;
    of_object?;
    Ok(Some(at))
}

/// Decides whether the hook is asked, and how it sees the request.
pub(super) fn concerns(
    hook: &Hook,
    cluster: &dyn Cluster,
    asked: &Attributes<'_>,
    object: Option<&Value>,
    old: Option<&Value>,
) -> Result<Option<VersionedRequest>, Status> {
    let Some(at) = meets(&hook.meant, cluster, asked, object, old)? else { return Ok(None) };
    let seen = seen(cluster, asked, at, object, old)?;
    Ok(by_conditions(hook, cluster, asked, &seen)?.then_some(seen))
}

/// The request at the version that is spoken of.
pub(super) fn seen(
    cluster: &dyn Cluster,
    asked: &Attributes<'_>,
    at: Option<Arc<Resource>>,
    object: Option<&Value>,
    old: Option<&Value>,
) -> Result<VersionedRequest, Status> {
    let turned = |object: Option<&Value>| match (&at, object) {
        // An object of another kind than the resource's (a Scale, an Eviction) is the same at every version.
        (Some(to), Some(object)) if asked.kind == asked.resource.gvk() => {
            cluster.converted(asked.resource, to, object.clone()).map(Some)
        }
        (_, object) => Ok(object.cloned()),
    };
    Ok(VersionedRequest { object: turned(object)?, old: turned(old)?, at })
}

/// The questions of a condition, answered by the roles.
pub(super) struct Roles<'a> {
    pub(super) cluster: &'a dyn Cluster,
    pub asked: &'a Attributes<'a>,
    pub resource: &'a Resource,
}

impl Authorizer for Roles<'_> {
    fn decide(&self, wanted: &Asked) -> Verdict {
        let mut attributes = authorization::Attributes::on(
            &wanted.verb,
            &wanted.group,
            &wanted.resource,
            &wanted.namespace,
            &wanted.name,
        );
        attributes.subresource = wanted.subresource.clone();
        attributes.path = wanted.path.clone();
        let user = match &wanted.service_account {
            Some((namespace, name)) => opdev_apimachinery::identity::User::service_account(namespace, name),
            None => self.asked.user.clone(),
        };
        let decision = self.cluster.may(&user, &attributes);
        Verdict { allowed: decision.allowed, reason: decision.reason }
    }

    fn request_resource(&self) -> Asked {
        Asked {
            group: self.resource.group.clone(),
            resource: self.resource.plural.clone(),
            subresource: self.asked.subresource.to_owned(),
            namespace: self.asked.namespace.to_owned(),
            name: self.asked.name.to_owned(),
            ..Asked::default()
        }
    }
}

/// The value of the hook's conditions. An error is a refusal, unless failures are ignored.
fn by_conditions(
    hook: &Hook,
    cluster: &dyn Cluster,
    asked: &Attributes<'_>,
    seen: &VersionedRequest,
) -> Result<bool, Status> {
    let forbidden =
        |why: &str| Status::forbidden(&asked.resource.group, &asked.resource.plural, asked.name, why);
    let conditions = match &hook.conditions {
        Ok(conditions) if conditions.is_empty() => return Ok(true),
        Ok(conditions) => conditions,
        Err(_) if hook.ignore => return Ok(false),
        Err(why) => return Err(forbidden(&why.to_string())),
    };
    let request = review::request(asked, seen, "");
    let roles = Roles { cluster, asked, resource: seen.at.as_deref().unwrap_or(asked.resource) };
    match conditions.hold(seen.object.as_ref(), seen.old.as_ref(), &request, &roles) {
        Ok(hold) => Ok(hold),
        Err(_) if hook.ignore => Ok(false),
        Err(why) => Err(forbidden(&why.to_string())),
    }
}
