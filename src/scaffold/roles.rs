//! The rules of `config/rbac/role.yaml` for a chart's kind: what the chart may create, found by rendering it. Each
//! boolean default is also flipped once, so that objects that are off by default are seen.

use super::options::ChartSource;
use crate::sources::broken::{self, Trials};
use anyhow::{Context as _, Result};
use opdev_helm::chart::Chart;
use opdev_object::facts::facts;
use opdev_object::meta::Gvk;
use opdev_object::yaml;
use opdev_types::plural::plural;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fmt::Write as _;

/// More booleans than these are not flipped: each costs a render.
const MOST_FLIPS: usize = 64;
const VERBS: [&str; 7] = ["create", "delete", "get", "list", "patch", "update", "watch"];

/// The kinds that a chart may create, and those templates' failures that hid some of them.
#[derive(Debug, Default)]
pub(super) struct Created {
    kinds: BTreeSet<(String, String, String)>,
    /// Texts that were looked at: most are the same in every render.
    seen: HashSet<String>,
    /// Why the default values alone do not render, where they do not.
    pub(super) failure: Option<String>,
    /// How many flipped defaults were not tried.
    pub(super) untried: usize,
}

/// Renders a chart with its defaults and with each boolean flipped.
pub(super) fn created(source: &ChartSource) -> Result<Created> {
    let chart = Chart::load(&source.files).with_context(|| format!("the chart {}", source.reference))?;
    let mut created = Created::default();
    let trials = Trials::default();
    match broken::with_values(&chart, &json!({}), &trials) {
        Ok(rendered) => created.add(&rendered),
        Err(error) => created.failure = Some(error.message),
    }
    let mut paths = Vec::new();
    booleans(&chart.values, &mut Vec::new(), &mut paths);
    created.untried = paths.len().saturating_sub(MOST_FLIPS);
    for (path, value) in paths.into_iter().take(MOST_FLIPS) {
        // With other values a template may rightly refuse to render.
        if let Ok(rendered) = broken::with_values(&chart, &nested(&path, !value), &trials) {
            created.add(&rendered);
        }
    }
    for crd in chart.crds() {
        created.add_text(&crd.content);
    }
    Ok(created)
}

impl Created {
    fn add(&mut self, rendered: &opdev_helm::engine::Rendered) {
        let documents = rendered.documents.iter().map(|document| &*document.part.content);
        for text in documents.chain(rendered.hooks.iter().map(|hook| hook.manifest.as_str())) {
            if !self.seen.contains(text) {
                self.seen.insert(text.to_owned());
                self.add_text(text);
            }
        }
    }

    fn add_text(&mut self, text: &str) {
        for document in yaml::documents(text).unwrap_or_default() {
            if let Some(gvk) = yaml::to_json(&document).ok().and_then(|object| Gvk::of(&object)) {
                self.kinds.insert((gvk.group, gvk.version, gvk.kind));
            }
        }
    }

    /// The rules as text, and the kinds whose resource is a guess.
    fn rules(&self) -> (String, Vec<String>) {
        let mut by_group: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
        let mut guessed = Vec::new();
        let mut roles = BTreeSet::new();
        for (group, version, kind) in &self.kinds {
            let gvk = Gvk::new(group, version, kind);
            let known = facts().resources().iter().find(|fact| fact.gvk() == gvk);
            let Some(known) = known else {
                guessed.push(gvk.to_string());
                continue;
            };
            if group == "rbac.authorization.k8s.io" {
                roles.insert(known.resource.clone());
            }
            by_group.entry(group).or_default().insert(known.resource.clone());
        }
        let mut out = String::new();
        for (group, resources) in by_group {
            rule(&mut out, group, resources.iter().map(String::as_str), &VERBS);
        }
        // Whoever creates a role needs its rules, or these verbs.
        let escalated = roles.iter().map(String::as_str).filter(|one| one.ends_with("roles"));
        if escalated.clone().next().is_some() {
            rule(&mut out, "rbac.authorization.k8s.io", escalated, &["bind", "escalate"]);
        }
        for kind in &guessed {
            let _ = writeln!(
                out,
                "# {kind} is not built into Kubernetes; add a rule with the resource of its CRD."
            );
        }
        (out, guessed)
    }
}

/// The fragment for one kind: its own resource, and what its chart creates.
pub(super) fn fragment(gvk: &Gvk, plural: &str, created: &Created) -> (String, Vec<String>) {
    let mut out = format!("##\n## Rules for {}/{}, Kind: {}\n##\n", gvk.group, gvk.version, gvk.kind);
    let own = [plural.to_owned(), format!("{plural}/status"), format!("{plural}/finalizers")];
    rule(&mut out, &gvk.group, own.iter().map(String::as_str), &VERBS);
    let (rules, guessed) = created.rules();
    out.push_str(&rules);
    (out, guessed)
}

/// The role of an operator of types: what the markers of the scaffolded type ask for.
pub(super) fn typed_fragment(gvk: &Gvk, plural: &str) -> String {
    let mut out = format!("##\n## Rules for {}/{}, Kind: {}\n##\n", gvk.group, gvk.version, gvk.kind);
    let own = [plural.to_owned(), format!("{plural}/status"), format!("{plural}/finalizers")];
    rule(&mut out, &gvk.group, own.iter().map(String::as_str), &VERBS);
    rule(&mut out, "", ["configmaps"].into_iter(), &VERBS);
    out
}

fn rule<'a>(out: &mut String, group: &str, resources: impl Iterator<Item = &'a str>, verbs: &[&str]) {
    let group = if group.is_empty() { "\"\"" } else { group };
    let _ = writeln!(out, "- apiGroups:\n  - {group}\n  resources:");
    for resource in resources {
        let _ = writeln!(out, "  - {resource}");
    }
    out.push_str("  verbs:\n");
    for verb in verbs {
        let _ = writeln!(out, "  - {verb}");
    }
}

/// The regular plural of a kind, in lower case.
pub(super) fn regular_plural(kind: &str) -> String {
    plural(&kind.to_lowercase()).to_lowercase()
}

fn booleans(value: &Value, at: &mut Vec<String>, found: &mut Vec<(Vec<String>, bool)>) {
    match value {
        Value::Bool(value) => found.push((at.clone(), *value)),
        Value::Object(map) => {
            for (key, value) in map {
                at.push(key.clone());
                booleans(value, at, found);
                at.pop();
            }
        }
        Value::Null | Value::Number(_) | Value::String(_) | Value::Array(_) => {}
    }
}

fn nested(path: &[String], value: bool) -> Value {
    path.iter().rev().fold(Value::Bool(value), |inner, key| {
        let mut map = Map::new();
        map.insert(key.clone(), inner);
        Value::Object(map)
    })
}
