//! From what was refused to the rule that is missing, and from the rule to the text of a role file. Pure.

use anyhow::{Context as _, Result, bail};
use opdev_event::MissingRule;
use opdev_object::yaml;
use serde_json::{Value, json};

/// The verbs of a reader.
const READ: [&str; 3] = ["get", "list", "watch"];
/// The verbs of a writer.
pub(super) const WRITE: [&str; 7] = ["create", "delete", "get", "list", "patch", "update", "watch"];

/// The verbs to allow where these were refused: a few calls later the others would be refused, too.
pub fn verbs(refused: &[String], resource: &str) -> Vec<String> {
    let among = |known: &[&str]| refused.iter().all(|verb| known.contains(&verb.as_str()));
    let all: &[&str] = match resource.split_once('/') {
        Some(_) if among(&["get", "patch", "update"]) => &["get", "patch", "update"],
        None if among(&READ) => &READ,
        None if among(&WRITE) => &WRITE,
        _ => return refused.to_vec(),
    };
    all.iter().map(|verb| (*verb).to_owned()).collect()
}

/// A rule as an item of a list in YAML, as scaffolds write it.
fn rule_text(missing: &MissingRule) -> String {
    let MissingRule { group, resource, .. } = missing;
    let list = |items: &[String]| -> String { items.iter().map(|item| format!("  - {item}\n")).collect() };
    let group = if group.is_empty() { "\"\"" } else { group };
    format!("- apiGroups:\n  - {group}\n  resources:\n  - {resource}\n  verbs:\n{}", list(&missing.allow))
}

/// The text of a role file with these rules added at the end of the role's rules; comments and order stay.
/// `text` is empty where there is no such file yet.
///
/// # Errors
/// Where the text cannot be added to by machine.
pub(crate) fn with_rules(text: &str, kind: &str, name: &str, missing: &[&MissingRule]) -> Result<String> {
    let items: String = missing.iter().map(|missing| rule_text(missing)).collect();
    if text.trim().is_empty() {
        let head =
            format!("apiVersion: rbac.authorization.k8s.io/v1\nkind: {kind}\nmetadata:\n  name: {name}\n");
        return Ok(format!("{head}rules:\n{items}"));
    }
    let text = without_narrower(text, missing);
    let mut lines: Vec<&str> = text.lines().collect();
    let (from, to) =
        document(&lines, kind, name).with_context(|| format!("no {kind} {name} was found in it"))?;
    let at = (from..to).find(|line| lines[*line].starts_with("rules:"));
    let (place, indent) = match at {
        None => (to, ""),
        Some(rules) => {
            let value = lines[rules]["rules:".len()..].split('#').next().unwrap_or_default().trim();
            match value {
                "" => {}
                "[]" | "null" => lines[rules] = "rules:",
                _ => bail!("its rules stand on one line; write them one below the other"),
            }
            let inside = |line: &&str| line.starts_with([' ', '-', '#']) || line.trim().is_empty();
            let end = (rules + 1..to).find(|line| !inside(&lines[*line])).unwrap_or(to);
            let last = (rules + 1..end).rev().find(|line| {
                let text = lines[*line].trim();
                !text.is_empty() && !text.starts_with('#')
            });
            let first = lines[rules + 1..end].iter().find(|line| line.trim_start().starts_with('-'));
            let indent = first.map_or("", |line| &line[..line.len() - line.trim_start().len()]);
            (last.map_or(rules + 1, |last| last + 1), indent)
        }
    };
    let mut added: Vec<String> = Vec::new();
    if at.is_none() {
        added.push("rules:".to_owned());
    }
    added.extend(items.lines().map(|line| format!("{indent}{line}")));
    let mut all: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
    all.splice(place..place, added);
    let made = format!("{}\n", all.join("\n"));
    check(&made, kind, name, missing)?;
    Ok(made)
}

/// The text without rules that were added for who only looked, where he turns out to write, too.
fn without_narrower(text: &str, missing: &[&MissingRule]) -> String {
    let mut text = format!("{}\n", text.trim_end_matches('\n'));
    for one in missing {
        let allow: Vec<String> = READ.iter().map(|verb| (*verb).to_owned()).collect();
        if !allow.iter().all(|verb| one.allow.contains(verb)) {
            continue;
        }
        let narrow = rule_text(&MissingRule { allow, ..MissingRule::clone(one) });
        for indent in ["", "  "] {
            let block: String = narrow.lines().map(|line| format!("{indent}{line}\n")).collect();
            // The next line must be another item or the end: a longer list of verbs is another rule.
            let found = text.find(&format!("\n{block}")).map(|at| at + 1);
            if let Some(at) = found
                && !text[at + block.len()..].starts_with(&format!("{indent}  "))
            {
                text.replace_range(at..at + block.len(), "");
            }
        }
    }
    text
}

/// The lines of the document with this role.
fn document(lines: &[&str], kind: &str, name: &str) -> Option<(usize, usize)> {
    let mut from = 0;
    let marks = (0..lines.len()).filter(|line| lines[*line].starts_with("---")).chain([lines.len()]);
    for to in marks {
        let text = lines[from..to].join("\n");
        if yaml::from_str(&text).is_ok_and(|object| is(&object, kind, name)) {
            return Some((from, to));
        }
        from = to + 1;
    }
    None
}

fn is(object: &Value, kind: &str, name: &str) -> bool {
    object["kind"] == kind && object["metadata"]["name"] == name
}

/// A text that was made by lines has to hold the rules as data.
fn check(text: &str, kind: &str, name: &str, missing: &[&MissingRule]) -> Result<()> {
    let lines: Vec<&str> = text.lines().collect();
    let (from, to) = document(&lines, kind, name).context("the rules cannot be added to it by machine")?;
    let role = yaml::from_str(&lines[from..to].join("\n"))?;
    let rules = role["rules"].as_array().cloned().unwrap_or_default();
    for one in missing {
        let wanted = yaml::from_str(&rule_text(one))?;
        if !rules.contains(&wanted[0]) {
            bail!("the rules cannot be added to it by machine; add them by hand:\n{}", rule_text(one));
        }
    }
    Ok(())
}

/// The question whether a ServiceAccount may do something.
pub fn question(user: &str, groups: &[String], missing: &MissingRule, verb: &str, namespace: &str) -> Value {
    let (resource, sub) = missing.resource.split_once('/').unwrap_or((missing.resource.as_str(), ""));
    json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": {
        "user": user, "groups": groups,
        "resourceAttributes": {"verb": verb, "group": missing.group, "resource": resource, "subresource": sub,
            "namespace": namespace},
    }})
}

#[cfg(test)]
mod tests {
    use super::*;

    fn missing(group: &str, resource: &str, verb: &str) -> MissingRule {
        let verbs = vec![verb.to_owned()];
        MissingRule {
            at: jiff::Timestamp::UNIX_EPOCH,
            allow: super::verbs(&verbs, resource),
            verbs,
            group: group.to_owned(),
            resource: resource.to_owned(),
            namespaces: Vec::new(),
            message: String::new(),
            role: String::new(),
            file: String::new(),
        }
    }

    #[test]
    fn rules_are_added_where_they_belong() {
        let rule = missing("networking.k8s.io", "ingresses", "get");
        let made = with_rules("", "ClusterRole", "manager-role", &[&rule]).unwrap();
        assert!(made.ends_with(
            "rules:\n- apiGroups:\n  - networking.k8s.io\n  resources:\n  - ingresses\n  verbs:\n  - get\n  - list\n  - watch\n"
        ));
        let other = missing("", "pods", "create");
        let twice = with_rules(&made, "ClusterRole", "manager-role", &[&other]).unwrap();
        assert_eq!(yaml::from_str(&twice).unwrap()["rules"].as_array().unwrap().len(), 2);
        let wide = missing("networking.k8s.io", "ingresses", "patch");
        let wider = with_rules(&made, "ClusterRole", "manager-role", &[&wide]).unwrap();
        assert_eq!(yaml::from_str(&wider).unwrap()["rules"].as_array().unwrap().len(), 1, "{wider}");
        let text = "---\nkind: Role\nmetadata: {name: other}\nrules:\n- {apiGroups: [a], resources: [b], verbs: [c]}\n\
                    ---\n# kept\nkind: ClusterRole\nmetadata:\n  name: manager-role\nrules:\n  # base\n  \
                    - apiGroups: [a]\n    resources: [b]\n    verbs: [c]\n  ##\n\n#+scaffold\n";
        let made = with_rules(text, "ClusterRole", "manager-role", &[&rule, &other]).unwrap();
        assert!(made.contains("    verbs: [c]\n  - apiGroups:\n    - networking.k8s.io\n"), "{made}");
        assert!(made.contains("# kept") && made.contains("  ##\n\n#+scaffold\n"), "{made}");
        let none = "kind: ClusterRole\nmetadata:\n  name: m\nrules: [] # none yet\n";
        assert!(with_rules(none, "ClusterRole", "m", &[&rule]).unwrap().contains("rules:\n- apiGroups"));
        let bare = "kind: ClusterRole\nmetadata:\n  name: m\n";
        assert!(with_rules(bare, "ClusterRole", "m", &[&rule]).unwrap().contains("rules:\n- apiGroups"));
        let flow = "kind: ClusterRole\nmetadata:\n  name: m\nrules: [{verbs: [get]}]\n";
        assert!(with_rules(flow, "ClusterRole", "m", &[&rule]).is_err());
        assert!(with_rules(flow, "ClusterRole", "n", &[&rule]).is_err());
    }

    #[test]
    fn who_writes_is_allowed_to_read_and_rare_verbs_stay_alone() {
        let of = |verb: &str, resource: &str| verbs(&[verb.to_owned()], resource);
        assert_eq!(of("watch", "pods"), READ);
        assert_eq!(of("patch", "pods"), WRITE);
        assert_eq!(of("update", "memcacheds/status"), ["get", "patch", "update"]);
        assert_eq!(of("escalate", "roles"), ["escalate"]);
        assert_eq!(of("create", "pods/eviction"), ["create"]);
    }
}
