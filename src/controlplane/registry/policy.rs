//! The roles of the store as a policy, what is refused by it, and the check on writes of roles and bindings.
//! Whether the policy is enforced is settled when the registry is made.

use super::{Context, Registry};
use opdev_admission::authorization::{
    self, Attributes, Decision, GROUP, Grant, MASTERS, Policy, check_grant, full_authority,
};
use opdev_apimachinery::contract::View;
use opdev_apimachinery::error::Status;
use opdev_apimachinery::identity::User;
use opdev_apimachinery::resource::{Resource, metadata};
use serde_json::Value;
use std::sync::Arc;

/// The paths that anybody may read where nothing is enforced.
const PUBLIC: [&str; 4] = ["healthz", "livez", "readyz", "version"];

impl Policy for Registry {
    fn role(&self, namespace: &str, name: &str) -> Option<Arc<Value>> {
        self.get("rbac.authorization.k8s.io/roles", Some(namespace), name)
    }

    fn cluster_role(&self, name: &str) -> Option<Arc<Value>> {
        self.get("rbac.authorization.k8s.io/clusterroles", None, name)
    }

    fn role_bindings(&self, namespace: &str) -> Vec<Arc<Value>> {
        self.list("rbac.authorization.k8s.io/rolebindings", Some(namespace))
    }

    fn cluster_role_bindings(&self) -> Vec<Arc<Value>> {
        self.list("rbac.authorization.k8s.io/clusterrolebindings", None)
    }
}

impl Registry {
    /// Returns true if roles decide; otherwise everybody who is known may do everything.
    pub fn enforces_roles(&self) -> bool {
        self.rbac
    }

    /// Returns true if this user may do whatever he wants.
    pub fn allows_all(&self, user: &User) -> bool {
        match self.rbac {
            true => user.groups.iter().any(|group| group == MASTERS),
            false => !user.is_anonymous(),
        }
    }

    /// Decides one request.
    pub fn decide(&self, user: &User, wanted: &Attributes) -> Decision {
        if self.rbac {
            return authorization::decide(self, user, wanted);
        }
        let public = || {
            let first =
                wanted.path.as_deref().and_then(|path| path.trim_start_matches('/').split('/').next());
            first.is_some_and(|first| PUBLIC.contains(&first))
        };
        let reason = "the control plane runs without --rbac: whoever is known may do everything".to_owned();
        match !user.is_anonymous() || public() {
            true => Decision { allowed: true, reason },
            false => Decision { allowed: false, reason: String::new() },
        }
    }

    /// Refuses what the user may not do, in the words of the real server.
    pub fn authorize(&self, user: &User, wanted: &Attributes) -> Result<(), Status> {
        let decision = self.decide(user, wanted);
        if decision.allowed { Ok(()) } else { Err(forbidden(user, wanted, &decision.reason)) }
    }

    /// Refuses a role or a binding that would grant more than its writer has. It may replace `current`.
    pub(super) fn check_escalation(
        &self,
        ctx: &Context,
        resource: &Resource,
        namespace: &str,
        object: &Value,
        current: Option<&Value>,
    ) -> Result<(), Status> {
        let plural = resource.plural.as_str();
        if !self.rbac || ctx.user.groups.iter().any(|group| group == MASTERS) {
            return Ok(());
        }
        if current.is_some_and(|current| only_collected(object, current)) {
            return Ok(());
        }
        let name = metadata::text(object, "name");
        let refuse = |text: String| Status::forbidden(GROUP, plural, name, &text);
        let user = &ctx.user;
        if matches!(plural, "roles" | "clusterroles") {
            let authority = Attributes::on("escalate", GROUP, plural, namespace, name);
            let aggregates = |role: &Value| role["aggregationRule"].is_object();
            let authorized = authorization::decide(self, user, &authority).allowed;
            if authorized {
                return Ok(());
            }
            if (aggregates(object) || current.is_some_and(aggregates)) && !full_authority(self, user) {
                return Err(refuse(
                    "must have cluster-admin privileges to use the aggregationRule".to_owned(),
                ));
            }
            let grant = Grant { user, namespace, role: object, authority };
            return check_grant(self, &grant).map_err(|escalation| refuse(escalation.to_string()));
        }
        let reference = &object["roleRef"];
        let (kind, bound) = (&reference["kind"], reference["name"].as_str().unwrap_or_default());
        let (roles, place) = match kind.as_str() {
            Some("Role") => ("roles", namespace),
            _ => ("clusterroles", namespace),
        };
        let authority = Attributes::on("bind", GROUP, roles, place, bound);
        if authorization::decide(self, user, &authority).allowed {
            return Ok(());
        }
        // The real server names the missing role as if it were a binding.
        let role = authorization::referenced(self, reference, namespace)
            .map_err(|_| Status::not_found(GROUP, plural, bound))?;
        let grant = Grant { user, namespace, role: &role, authority };
        check_grant(self, &grant).map_err(|escalation| refuse(escalation.to_string()))
    }
}

/// The 403, in the words of the real server.
pub fn forbidden(user: &User, wanted: &Attributes, reason: &str) -> Status {
    let mut why = wanted.cannot(user);
    if !reason.is_empty() {
        why.push_str(": ");
        why.push_str(reason);
    }
    match wanted.path {
        Some(_) => Status::new(403, "Forbidden", format!("forbidden: {why}")),
        None => Status::forbidden(&wanted.group, &wanted.resource, &wanted.name, &why),
    }
}

/// Returns true if only what the garbage collector works with differs: owners and finalizers.
fn only_collected(object: &Value, current: &Value) -> bool {
    let bare = |object: &Value| {
        let mut object = object.clone();
        for field in ["ownerReferences", "finalizers", "managedFields", "resourceVersion"] {
            metadata::map_mut(&mut object).remove(field);
        }
        object
    };
    let changed = ["ownerReferences", "finalizers"]
        .iter()
        .any(|field| object["metadata"][*field] != current["metadata"][*field]);
    changed && bare(object) == bare(current)
}

/// The roles and bindings of a new cluster.
pub(super) fn bootstrap() -> Vec<Value> {
    use std::io::Read;
    static ROLES: &[u8] = include_bytes!("assets/rbac.json.gz");
    let mut text = Vec::new();
    flate2::read::GzDecoder::new(ROLES).read_to_end(&mut text).expect("the embedded roles are valid gzip");
    serde_json::from_slice(&text).expect("the embedded roles are a list in JSON")
}
