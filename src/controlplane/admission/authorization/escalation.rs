//! Checks writes of roles and bindings for privilege escalation: nobody grants rights that he does not have.
//! Errors have the texts of the real server.

use super::rules::{self, SingleRule};
use super::{Attributes, Policy, decide, rules_for};
use opdev_apimachinery::identity::User;
use serde_json::Value;
use std::collections::BTreeSet;

/// The rights that a write of a role or a binding grants.
pub struct Grant<'a> {
    /// The user who grants.
    pub user: &'a User,
    /// The namespace it is granted in; empty for the whole cluster.
    pub namespace: &'a str,
    /// The role whose rules are granted.
    pub role: &'a Value,
    /// The verb that allows granting everything: `escalate` for a role, `bind` for the role that is bound.
    pub authority: Attributes,
}

/// Rights that somebody wants to give and does not have. Its text is what follows `is forbidden: `.
#[derive(Debug)]
pub struct Escalation {
    user: String,
    groups: Vec<String>,
    /// The rules that the user does not have, as the real server prints them.
    missing: BTreeSet<String>,
    /// Roles that the user is bound to and that are not there.
    unresolved: Vec<String>,
}

impl std::error::Error for Escalation {}

impl std::fmt::Display for Escalation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "user {:?} (groups={}) is attempting to grant RBAC permissions not currently held:",
            self.user,
            quoted(self.groups.iter().map(String::as_str)),
        )?;
        self.missing.iter().try_for_each(|line| write!(f, "\n{line}"))?;
        match self.unresolved.as_slice() {
            [] => Ok(()),
            unresolved => write!(f, "; resolution errors: [{}]", unresolved.join(" ")),
        }
    }
}

/// Checks that it may be granted.
pub fn check_grant(policy: &dyn Policy, grant: &Grant<'_>) -> Result<(), Escalation> {
    if decide(policy, grant.user, &grant.authority).allowed {
        return Ok(());
    }
    let (held, unresolved) = rules_for(policy, grant.user, grant.namespace);
    let singles = rules::of_role(grant.role).iter().flat_map(rules::divided);
    let beyond: Vec<SingleRule> =
        singles.filter(|single| !held.iter().any(|rule| rules::covers(rule, single))).collect();
    if beyond.is_empty() {
        return Ok(());
    }
    Err(Escalation {
        user: grant.user.name.clone(),
        groups: grant.user.groups.clone(),
        missing: described(&beyond),
        unresolved,
    })
}

/// Returns true if somebody may do everything to every resource and path, as an aggregation rule asks for.
pub fn full_authority(policy: &dyn Policy, user: &User) -> bool {
    let everything = Attributes { verb: "*".to_owned(), path: Some("*".to_owned()), ..Attributes::default() };
    decide(policy, user, &Attributes::on("*", "*", "*", "", "")).allowed
        && decide(policy, user, &everything).allowed
}

/// Rules on the same object of the same resource as one, each as the real server prints it.
fn described(singles: &[SingleRule]) -> BTreeSet<String> {
    type Place<'a> = (&'a str, &'a str, &'a Option<String>);
    let mut places: Vec<(Place<'_>, Vec<&str>)> = Vec::new();
    let mut lines = BTreeSet::new();
    for single in singles {
        match single {
            SingleRule::Resource { verb, group, resource, name } => {
                let place: Place<'_> = (group, resource, name);
                match places.iter_mut().find(|(known, _)| *known == place) {
                    Some((_, verbs)) if verbs.contains(&verb.as_str()) => {}
                    Some((_, verbs)) => verbs.push(verb),
                    None => places.push((place, vec![verb])),
                }
            }
            SingleRule::Path { verb, path } => {
                _ = lines.insert(format!("{{NonResourceURLs:[{path:?}], Verbs:[{verb:?}]}}"));
            }
        }
    }
    for ((group, resource, name), verbs) in places {
        let name = name.as_ref().map(|name| format!("ResourceNames:[{name:?}], ")).unwrap_or_default();
        let verbs = quoted(verbs.into_iter());
        lines.insert(format!("{{APIGroups:[{group:?}], Resources:[{resource:?}], {name}Verbs:{verbs}}}"));
    }
    lines
}

/// `["a" "b"]`.
fn quoted<'a>(texts: impl Iterator<Item = &'a str>) -> String {
    let texts: Vec<String> = texts.map(|text| format!("{text:?}")).collect();
    format!("[{}]", texts.join(" "))
}
