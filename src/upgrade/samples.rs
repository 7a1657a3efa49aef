//! The samples of a version: files with custom resources of the kinds that it reconciles. Each goes where it
//! says, or into `default`; where another sample has taken that name, into a namespace of its own.

use super::end::End;
use anyhow::{Context as _, Result, anyhow};
use opdev_object::meta::{self, Gvk, ObjectRef};
use opdev_object::yaml;
use opdev_os::small_file::{small_text, unreadable};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Custom resources of one kind that are tried at most.
const OF_A_KIND: usize = 5;

/// An object of a sample.
#[derive(Clone, Debug)]
pub(super) struct Sample {
    /// `file:line`.
    pub(super) place: String,
    pub(super) object: Value,
    /// Where it goes, where its kind is namespaced and it names no namespace.
    pub(super) namespace: String,
    /// True if the operator reconciles it.
    pub(super) reconciled: bool,
}

/// The samples of a version, and notes about what is left out.
pub(super) fn samples(end: &End) -> Result<(Vec<Sample>, Vec<String>)> {
    let (mut found, mut notes) = (Vec::new(), Vec::new());
    let mut taken: BTreeSet<(String, String, String)> = BTreeSet::new();
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for file in &end.sources.samples {
        let text = small_text(&end.project.root.join(&file.path)).with_context(|| unreadable(&file.path))?;
        let objects = objects(&text, &file.path)?;
        let kinds: Vec<Gvk> = objects.iter().filter_map(|(_, object)| Gvk::of(object)).collect();
        let is_reconciled = |gvk: &Gvk| reconciled(end, gvk);
        if !kinds.iter().any(is_reconciled) {
            notes.push(format!("{} is left out: {} reconciles none of its kinds", file.path, end.name));
            continue;
        }
        let many = kinds.iter().filter(|gvk| is_reconciled(gvk)).any(|gvk| {
            let count = counts.entry(gvk.kind.clone()).or_default();
            *count += 1;
            *count > OF_A_KIND
        });
        if many {
            notes.push(format!("{} is left out: {OF_A_KIND} samples of a kind are tried", file.path));
            continue;
        }
        let key = |object: &Value, namespace: &str| {
            let namespace = meta::namespace(object).unwrap_or(namespace).to_owned();
            let kind = object["kind"].as_str().unwrap_or_default().to_owned();
            (kind, namespace, meta::name(object).unwrap_or_default().to_owned())
        };
        let is_free =
            |namespace: &str| !objects.iter().any(|(_, object)| taken.contains(&key(object, namespace)));
        let namespace = match is_free("default") {
            true => "default".to_owned(),
            false => {
                (2..).map(|number| format!("sample-{number}")).find(|name| is_free(name)).unwrap_or_default()
            }
        };
        taken.extend(objects.iter().map(|(_, object)| key(object, &namespace)));
        found.extend(objects.into_iter().map(|(place, object)| Sample {
            place,
            reconciled: Gvk::of(&object).is_some_and(|gvk| is_reconciled(&gvk)),
            namespace: namespace.clone(),
            object,
        }));
    }
    Ok((found, notes))
}

/// Returns true if a version reconciles a kind, whatever the version of the API.
fn reconciled(end: &End, gvk: &Gvk) -> bool {
    let shown =
        |shown: &opdev_sources::Shown| shown.gvk.group_kind() == gvk.group_kind() && shown.program.is_some();
    end.sources.watch(&gvk.group, &gvk.kind).is_some() || end.sources.shown.iter().any(shown)
}

fn objects(text: &str, file: &str) -> Result<Vec<(String, Value)>> {
    let wrong = |error: yaml::Error| anyhow!("{file}:{}:{}: {}", error.line, error.column, error.message);
    let mut found = Vec::new();
    for node in yaml::documents(text).map_err(wrong)? {
        let place = format!("{file}:{}", node.line);
        let object = yaml::to_json(&node).with_context(|| place.clone())?;
        if ObjectRef::of(&object).is_some() {
            found.push((place, object));
        }
    }
    Ok(found)
}
