//! Authorization: decides requests by Roles, ClusterRoles and their bindings, as the RBAC authorizer does.
//! Pure: sees attributes and a [`Policy`], never a request, a response or the store. Read `rules` for what
//! one rule matches, `escalation` for who may grant what.

mod escalation;
mod rules;
#[cfg(test)]
mod tests;

pub use escalation::{Grant, check_grant, full_authority};

use opdev_apimachinery::identity::User;
use rules::texts;
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// The group of those that no role has to allow anything.
pub const MASTERS: &str = "system:masters";
/// The API group of roles and bindings.
pub const GROUP: &str = "rbac.authorization.k8s.io";

/// The roles and bindings there are.
pub trait Policy {
    /// A Role.
    fn role(&self, namespace: &str, name: &str) -> Option<Arc<Value>>;
    /// A ClusterRole.
    fn cluster_role(&self, name: &str) -> Option<Arc<Value>>;
    /// The RoleBindings of a namespace, by name.
    fn role_bindings(&self, namespace: &str) -> Vec<Arc<Value>>;
    /// The ClusterRoleBindings, by name.
    fn cluster_role_bindings(&self) -> Vec<Arc<Value>>;
}

/// A request in the terms of RBAC rules.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attributes {
    /// Such as `get`, `list`, `deletecollection`; the method in lower case for a path that names no resource.
    pub verb: String,
    /// API group; empty for the core group.
    pub group: String,
    /// Plural of the resource.
    pub resource: String,
    /// Empty where there is none.
    pub subresource: String,
    /// Empty for all namespaces and for what lives in none.
    pub namespace: String,
    /// Empty where no object is named.
    pub name: String,
    /// Set where the request is for a path that names no resource.
    pub path: Option<String>,
}

impl Attributes {
    /// A verb on a resource or on an object of it.
    pub fn on(verb: &str, group: &str, resource: &str, namespace: &str, name: &str) -> Self {
        Attributes {
            verb: verb.to_owned(),
            group: group.to_owned(),
            resource: resource.to_owned(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            ..Attributes::default()
        }
    }

    /// The resource as rules name it, with its subresource.
    pub fn combined(&self) -> String {
        match self.subresource.as_str() {
            "" => self.resource.clone(),
            sub => format!("{}/{sub}", self.resource),
        }
    }

    /// `User "u" cannot get resource "pods" in API group "" in the namespace "default"`.
    pub fn cannot(&self, user: &User) -> String {
        let (user, verb) = (&user.name, &self.verb);
        if let Some(path) = &self.path {
            return format!("User {user:?} cannot {verb} path {path:?}");
        }
        let place = match self.namespace.as_str() {
            "" => "at the cluster scope".to_owned(),
            namespace => format!("in the namespace {namespace:?}"),
        };
        let (resource, group) = (self.combined(), &self.group);
        format!("User {user:?} cannot {verb} resource {resource:?} in API group {group:?} {place}")
    }
}

/// An answer, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// True if it may be done.
    pub allowed: bool,
    /// The binding that allows it, or the roles that could not be found; empty where there is nothing to say.
    pub reason: String,
}

impl Decision {
    fn allowed(reason: String) -> Self {
        Decision { allowed: true, reason }
    }
}

/// Decides one request.
pub fn decide(policy: &dyn Policy, user: &User, wanted: &Attributes) -> Decision {
    if user.groups.iter().any(|group| group == MASTERS) {
        return Decision::allowed(String::new());
    }
    let mut missing = Vec::new();
    for found in applying(policy, user, &wanted.namespace) {
        match found.rules {
            Err(error) => missing.push(error.to_string()),
            Ok(role) if rules::of_role(&role).iter().any(|rule| rules::allows(rule, wanted)) => {
                return Decision::allowed(format!("RBAC: allowed by {}", found.because));
            }
            Ok(_) => {}
        }
    }
    let reason = if missing.is_empty() { String::new() } else { format!("RBAC: {}", together(&missing)) };
    Decision { allowed: false, reason }
}

/// The rules that apply to a user in a namespace, and the errors of those that could not be read.
pub(crate) fn rules_for(policy: &dyn Policy, user: &User, namespace: &str) -> (Vec<Value>, Vec<String>) {
    let (mut held, mut missing) = (Vec::new(), Vec::new());
    for found in applying(policy, user, namespace) {
        match found.rules {
            Err(error) => missing.push(error.to_string()),
            Ok(role) => held.extend(rules::of_role(&role).iter().cloned()),
        }
    }
    (held, missing)
}

/// The status of a SelfSubjectRulesReview.
pub fn rules_review(policy: &dyn Policy, user: &User, namespace: &str) -> Value {
    let (held, missing) = rules_for(policy, user, namespace);
    let with = |field: &str, wanted: &[&str]| -> Vec<Value> {
        let picked = held.iter().filter(|rule| !texts(rule, field).is_empty());
        let pick = |rule: &Value| {
            let kept = wanted.iter().filter(|name| !texts(rule, name).is_empty());
            Value::Object(kept.map(|name| ((*name).to_owned(), rule[*name].clone())).collect::<Map<_, _>>())
        };
        picked.map(pick).collect()
    };
    let mut status = json!({
        "resourceRules": with("resources", &["verbs", "apiGroups", "resources", "resourceNames"]),
        "nonResourceRules": with("nonResourceURLs", &["verbs", "nonResourceURLs"]),
        "incomplete": false,
    });
    if !missing.is_empty() {
        status["evaluationError"] = Value::from(together(&missing));
    }
    status
}

/// Several errors as one text, each once.
pub(crate) fn together(texts: &[String]) -> String {
    let mut distinct: Vec<&str> = Vec::new();
    for text in texts {
        if !distinct.contains(&text.as_str()) {
            distinct.push(text);
        }
    }
    match distinct.as_slice() {
        [one] => (*one).to_owned(),
        many => format!("[{}]", many.join(", ")),
    }
}

/// One binding that names the user.
struct BoundRole {
    /// `ClusterRoleBinding "b" of ClusterRole "view" to User "jane"`.
    because: String,
    /// The role, or that it is not there.
    rules: Result<Arc<Value>, RoleError>,
}

/// The bindings that name the user: those of the cluster first, then those of the namespace.
fn applying(policy: &dyn Policy, user: &User, namespace: &str) -> Vec<BoundRole> {
    let mut found = Vec::new();
    let mut look = |binding: &Value, own: &str| {
        let subjects = binding["subjects"].as_array().map(Vec::as_slice).unwrap_or_default();
        let Some(subject) = subjects.iter().find(|subject| rules::names(subject, user, own)) else { return };
        let (role, name) = (&binding["roleRef"], binding["metadata"]["name"].as_str().unwrap_or_default());
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (kind, of) = (text(&role["kind"]), text(&role["name"]));
        let binding = match own {
            "" => format!("ClusterRoleBinding {name:?}"),
            own => format!("RoleBinding {:?}", format!("{name}/{own}")),
        };
        let because = format!("{binding} of {kind} {of:?} to {}", rules::described(subject));
        found.push(BoundRole { because, rules: referenced(policy, role, own) });
    };
    for binding in policy.cluster_role_bindings() {
        look(&binding, "");
    }
    if !namespace.is_empty() {
        for binding in policy.role_bindings(namespace) {
            look(&binding, namespace);
        }
    }
    found
}

/// Why a `roleRef` leads to no role, with the text of the real server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RoleError {
    /// There is no Role with this name.
    Role(String),
    /// There is no ClusterRole with this name.
    ClusterRole(String),
    /// It names another kind.
    Kind(String),
}

impl std::error::Error for RoleError {}

impl std::fmt::Display for RoleError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            RoleError::Role(name) => write!(f, "role.{GROUP} {name:?} not found"),
            RoleError::ClusterRole(name) => write!(f, "clusterrole.{GROUP} {name:?} not found"),
            RoleError::Kind(kind) => write!(f, "unsupported role reference kind: {kind:?}"),
        }
    }
}

/// The role that a `roleRef` names.
pub fn referenced(policy: &dyn Policy, role: &Value, namespace: &str) -> Result<Arc<Value>, RoleError> {
    let text = |field: &str| role[field].as_str().unwrap_or_default();
    let name = text("name");
    match text("kind") {
        "Role" => policy.role(namespace, name).ok_or_else(|| RoleError::Role(name.to_owned())),
        "ClusterRole" => policy.cluster_role(name).ok_or_else(|| RoleError::ClusterRole(name.to_owned())),
        other => Err(RoleError::Kind(other.to_owned())),
    }
}
