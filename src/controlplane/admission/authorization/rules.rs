//! Rules and subjects: requests that a rule matches, users that a subject names, rules that cover another.

use super::Attributes;
use opdev_apimachinery::identity::{User, service_account_name};
use serde_json::Value;

const ALL: &str = "*";

/// The rules of a role.
pub(super) fn of_role(role: &Value) -> &[Value] {
    role["rules"].as_array().map(Vec::as_slice).unwrap_or_default()
}

/// A list of texts of a rule.
pub(super) fn texts<'a>(rule: &'a Value, field: &str) -> Vec<&'a str> {
    rule[field].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

/// Returns true if a rule allows it.
pub(super) fn allows(rule: &Value, wanted: &Attributes) -> bool {
    let has = |field: &str, value: &str| {
        rule[field].as_array().into_iter().flatten().any(|found| found == ALL || found == value)
    };
    if !has("verbs", &wanted.verb) {
        return false;
    }
    if let Some(path) = &wanted.path {
        return texts(rule, "nonResourceURLs").iter().any(|url| url_matches(url, path));
    }
    has("apiGroups", &wanted.group) && resource_matches(rule, wanted) && name_matches(rule, &wanted.name)
}

fn resource_matches(rule: &Value, wanted: &Attributes) -> bool {
    let combined = wanted.combined();
    texts(rule, "resources").iter().any(|resource| {
        *resource == ALL
            || *resource == combined
            || (!wanted.subresource.is_empty()
                && resource.strip_prefix("*/").is_some_and(|sub| sub == wanted.subresource))
    })
}

fn name_matches(rule: &Value, name: &str) -> bool {
    let names = texts(rule, "resourceNames");
    names.is_empty() || names.contains(&name)
}

fn url_matches(url: &str, path: &str) -> bool {
    url == ALL || url == path || (url.ends_with('*') && path.starts_with(url.trim_end_matches('*')))
}

/// Returns true if a subject of a binding of this namespace (empty: of the cluster) names the user.
pub(super) fn names(subject: &Value, user: &User, namespace: &str) -> bool {
    let text = |field: &str| subject[field].as_str().unwrap_or_default();
    match text("kind") {
        "User" => user.name == text("name"),
        "Group" => user.groups.iter().any(|group| group == text("name")),
        "ServiceAccount" => {
            let own = if text("namespace").is_empty() { namespace } else { text("namespace") };
            !own.is_empty() && user.name == service_account_name(own, text("name"))
        }
        _ => false,
    }
}

/// A subject in words: `User "jane"`, `ServiceAccount "name/namespace"`.
pub(super) fn described(subject: &Value) -> String {
    let text = |field: &str| subject[field].as_str().unwrap_or_default();
    match text("kind") {
        "ServiceAccount" => format!("ServiceAccount {:?}", format!("{}/{}", text("name"), text("namespace"))),
        kind => format!("{kind} {:?}", text("name")),
    }
}

/// A rule that cannot be divided: one verb on one resource, or on one object of it, or on one path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SingleRule {
    Resource { verb: String, group: String, resource: String, name: Option<String> },
    Path { verb: String, path: String },
}

/// A rule as single ones, in its order.
pub(super) fn divided(rule: &Value) -> Vec<SingleRule> {
    let verbs = texts(rule, "verbs");
    let names = texts(rule, "resourceNames");
    let names: Vec<Option<String>> = match names.as_slice() {
        [] => vec![None],
        names => names.iter().map(|name| Some((*name).to_owned())).collect(),
    };
    let mut out = Vec::new();
    for group in texts(rule, "apiGroups") {
        for resource in texts(rule, "resources") {
            for verb in &verbs {
                for name in &names {
                    out.push(SingleRule::Resource {
                        verb: (*verb).to_owned(),
                        group: group.to_owned(),
                        resource: resource.to_owned(),
                        name: name.clone(),
                    });
                }
            }
        }
    }
    for path in texts(rule, "nonResourceURLs") {
        for verb in &verbs {
            out.push(SingleRule::Path { verb: (*verb).to_owned(), path: path.to_owned() });
        }
    }
    out
}

/// Returns true if the rule includes all rights of the single one.
pub(super) fn covers(held: &Value, wanted: &SingleRule) -> bool {
    let has = |field: &str, value: &str| {
        let found = texts(held, field);
        found.contains(&ALL) || found.contains(&value)
    };
    match wanted {
        SingleRule::Resource { verb, group, resource, name } => {
            let resources = texts(held, "resources");
            let sub = resource.split_once('/').map(|(_, sub)| format!("*/{sub}"));
            let resource = resources.contains(&ALL)
                || resources.contains(&resource.as_str())
                || sub.is_some_and(|sub| resources.contains(&sub.as_str()));
            let names = texts(held, "resourceNames");
            let named = names.is_empty() || name.as_deref().is_some_and(|name| names.contains(&name));
            has("verbs", verb) && has("apiGroups", group) && resource && named
        }
        SingleRule::Path { verb, path } => {
            let urls = texts(held, "nonResourceURLs");
            let covered = urls.iter().any(|url| {
                *url == ALL
                    || *url == path.as_str()
                    || url.strip_suffix('*').is_some_and(|prefix| path.starts_with(prefix))
            });
            has("verbs", verb) && covered
        }
    }
}
