//! Rights of the new version: those that it uses and its own roles do not give, and those that the roles of
//! the old version do not give yet. A rehearsal enforces no roles, for a program that may not list waits
//! without a word; its calls are held against the rules instead.

use super::Observed;
use crate::finding::{Class, Finding, Level};
use opdev_generate::rbac::observed::{Difference, Rights};
use serde_json::Value;

/// Rights that were used, and the roles of both versions.
#[derive(Clone, Debug, Default)]
pub(crate) struct RightsSeen {
    /// The rights that the old version used before the swap.
    pub(crate) before: Rights,
    /// The rights that the new version used after it.
    pub(crate) after: Rights,
    /// The roles of the old version; none where its files have none.
    pub(crate) old_roles: Vec<Value>,
    /// The roles of the new version.
    pub(crate) new_roles: Vec<Value>,
}

impl RightsSeen {
    /// A rule that is limited to some names counts as one for all names: the names of calls are not compared.
    pub(crate) fn new((before, after): (Rights, Rights), (old, new): (Vec<Value>, Vec<Value>)) -> RightsSeen {
        RightsSeen { before, after, old_roles: without_names(old), new_roles: without_names(new) }
    }

    /// The rights that the new version used and these roles do not give. What the old version did without the
    /// right comes from elsewhere.
    fn missing(&self, roles: &[Value]) -> Vec<Difference> {
        if roles.is_empty() {
            return Vec::new();
        }
        let mut missing = self.after.missing(roles);
        if self.old_roles.is_empty() {
            return missing;
        }
        let known = self.before.missing(&self.old_roles);
        for one in &mut missing {
            let known = known.iter().find(|known| known.resource == one.resource);
            one.verbs.retain(|verb| known.is_none_or(|known| !known.verbs.contains(verb)));
        }
        missing.retain(|one| !one.verbs.is_empty());
        missing
    }
}

/// Rights that the new version's own roles do not give.
pub(super) fn own(observed: &Observed) -> Vec<Finding> {
    let missing = observed.rights.missing(&observed.rights.new_roles);
    let told = missing.iter().map(|one| {
        let title = format!("the roles of {} do not allow the operator to {} them", observed.to, verbs(one));
        finding(Level::Error, one, title).fix(format!(
            "allow it in config/rbac; for a Go operator with the marker `{}` and `opdev rbac`",
            one.marker()
        ))
    });
    told.collect()
}

/// Rights that the new version's roles give and the old version's do not.
pub(super) fn left_old(observed: &Observed) -> Vec<Finding> {
    let seen = &observed.rights;
    // Nobody knows what the new version's roles give where its files have none.
    if seen.new_roles.is_empty() {
        return Vec::new();
    }
    let own = seen.missing(&seen.new_roles);
    let mut missing = seen.missing(&seen.old_roles);
    for one in &mut missing {
        let own = own.iter().find(|own| own.resource == one.resource);
        one.verbs.retain(|verb| own.is_none_or(|own| !own.verbs.contains(verb)));
    }
    let told = missing.iter().filter(|one| !one.verbs.is_empty()).map(|one| {
        let title =
            format!("the roles of {} do not allow the new operator to {} them", observed.from, verbs(one));
        finding(Level::Hint, one, title).fix(format!(
            "apply the roles of {} before its operator starts, and say so in the release notes",
            observed.to
        ))
    });
    told.collect()
}

fn without_names(mut roles: Vec<Value>) -> Vec<Value> {
    let rules = roles.iter_mut().filter_map(|role| role.get_mut("rules")?.as_array_mut()).flatten();
    for rule in rules.filter_map(Value::as_object_mut) {
        rule.remove("resourceNames");
    }
    roles
}

fn finding(level: Level, missing: &Difference, title: String) -> Finding {
    let resource = &missing.resource;
    let dot = if resource.group.is_empty() { "" } else { "." };
    let object = format!("{}{dot}{}", resource.name, resource.group);
    Finding::new(level, Class::RightsMissing, object, title)
        .fields(missing.verbs.clone())
        .line("the API server answers 403 to these calls")
}

/// `list and watch`.
fn verbs(missing: &Difference) -> String {
    match missing.verbs.as_slice() {
        [all @ .., last] if !all.is_empty() => format!("{} and {last}", all.join(", ")),
        verbs => verbs.concat(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn role(resources: &[&str], verbs: &[&str]) -> Value {
        json!({"kind": "ClusterRole", "rules": [{"apiGroups": [""], "resources": resources, "verbs": verbs}]})
    }

    fn used(calls: &[(&str, &str)]) -> Rights {
        let mut rights = Rights::default();
        for (verb, path) in calls {
            rights.add_call(verb, path, false);
        }
        rights
    }

    #[test]
    fn a_rule_for_some_names_may_be_for_the_name_that_is_called() {
        let mut named = role(&["secrets"], &["get"]);
        named["rules"][0]["resourceNames"] = json!(["webhook-certificate"]);
        let after = used(&[("get", "/api/v1/namespaces/a/secrets/webhook-certificate")]);
        let seen =
            RightsSeen::new((Rights::default(), after), (vec![role(&["pods"], &["get"])], vec![named]));
        assert!(seen.missing(&seen.new_roles).is_empty());
        assert_eq!(seen.missing(&seen.old_roles).len(), 1);
    }

    #[test]
    fn a_right_is_missing_in_the_own_roles_or_in_the_old_ones_alone() {
        let (list, watch) = (("list", "/api/v1/configmaps"), ("watch", "/api/v1/configmaps"));
        let get = ("get", "/api/v1/namespaces/a/secrets/b");
        let update = ("update", "/api/v1/namespaces/a/pods/b/status");
        let seen = RightsSeen {
            before: used(&[get]),
            after: used(&[get, list, watch, update]),
            old_roles: vec![role(&["pods"], &["*"])],
            new_roles: vec![role(&["pods", "configmaps"], &["list", "watch"])],
        };
        let named = |found: Vec<Difference>| -> Vec<String> {
            found.iter().map(|one| format!("{} {}", verbs(one), one.resource.name)).collect()
        };
        assert_eq!(
            named(seen.missing(&seen.new_roles)),
            ["update pods/status"],
            "secrets were read before, too"
        );
        assert_eq!(named(seen.missing(&seen.old_roles)), ["list and watch configmaps", "update pods/status"]);
        let unknown = RightsSeen { old_roles: Vec::new(), ..seen.clone() };
        assert!(
            unknown.missing(&unknown.old_roles).is_empty(),
            "nobody knows the roles of a version without files"
        );
        assert_eq!(named(unknown.missing(&unknown.new_roles)), ["update pods/status", "get secrets"]);
    }
}
