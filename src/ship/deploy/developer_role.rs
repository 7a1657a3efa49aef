//! Rights that an administrator has to give a developer so that `opdev run -n NAMESPACE` lacks nothing: the
//! project's CustomResourceDefinitions, and a Role with its RoleBinding for one namespace. Asks no cluster.

use anyhow::{Context as _, Result, anyhow, bail};
use opdev_generate::manifests;
use opdev_generate::manifests::Asked;
use opdev_object::facts::facts;
use opdev_object::yaml;
use opdev_project::Project;
use opdev_project::files;
use opdev_project::load;
use opdev_project::trust::{Store, Trust};
use serde_json::{Value, json};
use std::collections::BTreeMap;

const ALL: [&str; 8] = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];
const READ: [&str; 3] = ["get", "list", "watch"];

/// The name of the Role and of its binding.
const NAME: &str = "opdev-developer";

/// The YAML for a user (`jane`), a group (`group:team`) or a ServiceAccount
/// (`system:serviceaccount:dev:jane`).
///
/// # Errors
/// Where the project cannot be read, or has no kinds.
pub fn grant(project: &Project, user: &str, namespace: &str) -> Result<String> {
    // Without trust nothing of the environment is read; which kinds there are does not depend on it.
    let trust = Trust::of(&project.root, Store::none());
    let options = files::options(project, &[], Vec::new());
    let (_, loaded) = load::load_first(project, (&options, &trust));
    let sources = loaded.context("the project cannot be read; this is a bug in opdev")?.sources;
    if sources.definitions.is_empty() {
        bail!("the project {} has no kinds", project.root.display());
    }
    let mut rules = vec![json!({"apiGroups": [""], "resources": ["secrets", "events"], "verbs": ALL})];
    for definition in &sources.definitions {
        let spec = &definition.crd["spec"];
        let plural = spec["names"]["plural"].as_str().unwrap_or_default();
        let parts = ["", "/status", "/finalizers", "/scale"].map(|part| format!("{plural}{part}"));
        rules.push(json!({"apiGroups": [spec["group"]], "resources": parts, "verbs": ALL}));
    }
    rules.extend(of_operator(project)?);
    let mut seen: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for gvk in opdev_observe::shown() {
        if let Some(fact) = facts().resources().iter().find(|fact| fact.gvk() == gvk) {
            seen.entry(gvk.group).or_default().push(fact.resource.clone());
        }
    }
    rules.extend(
        seen.iter()
            .map(|(group, resources)| json!({"apiGroups": [group], "resources": resources, "verbs": READ})),
    );
    rules.push(json!({"apiGroups": [""], "resources": ["pods/log"], "verbs": ["get"]}));
    let metadata = json!({"name": NAME, "namespace": namespace});
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": metadata, "rules": rules});
    let binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": metadata,
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": NAME}, "subjects": [subject(user)]});
    let definitions = sources.definitions.iter().map(|definition| Value::clone(&definition.crd));
    let texts: Vec<String> =
        definitions.chain([role, binding]).map(|object| yaml::to_string(&object)).collect();
    Ok(texts.join("---\n"))
}

/// The operator's own rights: its markers, and the objects its charts create. A project without them has no
/// such rules.
///
/// # Errors
/// Where a marker cannot be read: its rules would be missing.
fn of_operator(project: &Project) -> Result<Vec<Value>> {
    let of = |charts| {
        let asked = Asked { output: Some("-".into()), charts, ..Asked::default() };
        let made = manifests::roles(&project.root, &asked).ok()?;
        if let Some(wrong) = made.wrong() {
            return Some(Err(anyhow!("the RBAC markers cannot be read; correct this first:\n{wrong}")));
        }
        let texts = made.files.iter().map(|file| file.artifact.text.as_str());
        let objects = texts.flat_map(|text| yaml::documents(text).unwrap_or_default());
        let objects = objects.filter_map(|node| yaml::to_json(&node).ok());
        let rules = objects.filter_map(|role| role["rules"].as_array().cloned()).flatten();
        Some(Ok(rules.collect::<Vec<Value>>()))
    };
    let rules = of(true).or_else(|| of(false)).unwrap_or_else(|| Ok(Vec::new()))?;
    // URLs belong to the whole cluster.
    Ok(rules.into_iter().filter(|rule| rule.get("nonResourceURLs").is_none()).collect())
}

fn subject(user: &str) -> Value {
    let account = user.strip_prefix("system:serviceaccount:").and_then(|rest| rest.split_once(':'));
    match (account, user.strip_prefix("group:")) {
        (Some((namespace, name)), _) => {
            json!({"kind": "ServiceAccount", "namespace": namespace, "name": name})
        }
        (None, Some(group)) => {
            json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": group})
        }
        (None, None) => json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}),
    }
}
