//! The samples of a version: files with custom resources of the kinds that it reconciles. Each goes where it
//! says, or into `default`; where another sample has taken that name, into a namespace of its own. Samples of
//! scaffolds are often empty, and the good ones lie among the examples of the documentation.

use super::end::End;
use anyhow::{Context as _, Result, anyhow};
use opdev_object::meta::{self, Gvk, ObjectRef};
use opdev_object::yaml;
use opdev_os::read::Walk;
use opdev_os::small_file::{small_text, unreadable};
use opdev_project::files::yaml_files_of;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

/// Custom resources of one kind that are tried at most.
const OF_A_KIND: usize = 5;
/// Where projects keep examples.
const EXAMPLES: [&str; 4] = ["example", "examples", "config/examples", "docs/examples"];
/// How many folders deep, and how many files are looked at.
const FOLDERS: usize = 3;
const MOST_FILES: usize = 500;
/// How long examples are looked for: they may be many, and lie far away.
const LOOKING: Duration = Duration::from_secs(10);

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

/// The samples of a version.
#[derive(Clone, Debug, Default)]
pub(super) struct Samples {
    /// Those that the project has as such.
    pub(super) own: Vec<Sample>,
    /// Its examples, a file each: for kinds of which no sample is taken.
    pub(super) examples: Vec<Vec<Sample>>,
    /// Notes about what is left out.
    pub(super) notes: Vec<String>,
}

impl Samples {
    /// Reads them.
    ///
    /// # Errors
    /// Where a file cannot be read.
    pub(super) fn read(end: &End) -> Result<Samples> {
        let mut places = Places::default();
        let (own, mut notes) = own(end, &mut places)?;
        Ok(Samples { own, examples: examples(end, &mut places, &mut notes), notes })
    }

    /// All of them.
    pub(super) fn all(&self) -> impl Iterator<Item = &Sample> {
        self.own.iter().chain(self.examples.iter().flatten())
    }
}

/// The names that are taken.
#[derive(Default)]
struct Places(BTreeSet<(String, String, String)>);

impl Places {
    /// The objects of a file, where they go to; `None` where one of them says itself where, and another file
    /// has taken that place.
    fn put(&mut self, end: &End, objects: Vec<(String, Value)>) -> Option<Vec<Sample>> {
        let key = |object: &Value, namespace: &str| {
            let namespace = meta::namespace(object).unwrap_or(namespace).to_owned();
            let kind = object["kind"].as_str().unwrap_or_default().to_owned();
            (kind, namespace, meta::name(object).unwrap_or_default().to_owned())
        };
        let says = |(_, object): &&(String, Value)| meta::namespace(object).is_some();
        if objects.iter().filter(says).any(|(_, object)| self.0.contains(&key(object, ""))) {
            return None;
        }
        let is_free =
            |namespace: &str| !objects.iter().any(|(_, object)| self.0.contains(&key(object, namespace)));
        let namespace = match is_free("default") {
            true => "default".to_owned(),
            false => {
                (2..).map(|number| format!("sample-{number}")).find(|name| is_free(name)).unwrap_or_default()
            }
        };
        self.0.extend(objects.iter().map(|(_, object)| key(object, &namespace)));
        let sample = |(place, object): (String, Value)| Sample {
            place,
            reconciled: Gvk::of(&object).is_some_and(|gvk| reconciled(end, &gvk)),
            namespace: namespace.clone(),
            object,
        };
        Some(objects.into_iter().map(sample).collect())
    }
}

/// The samples that the project has as such, and notes about what is left out.
fn own(end: &End, places: &mut Places) -> Result<(Vec<Sample>, Vec<String>)> {
    let (mut found, mut notes) = (Vec::new(), Vec::new());
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
        match places.put(end, objects) {
            Some(samples) => found.extend(samples),
            None => {
                notes.push(format!("{} is left out: another sample has its name and namespace", file.path));
            }
        }
    }
    Ok((found, notes))
}

/// The files with custom resources in the folders for examples, the ones next to the root first. What cannot
/// be read is none.
fn examples(end: &End, places: &mut Places, notes: &mut Vec<String>) -> Vec<Vec<Sample>> {
    let root = &end.project.root;
    let mut walk = Walk::from(root).within(LOOKING);
    let mut files: Vec<PathBuf> = Vec::new();
    for folder in EXAMPLES {
        files.extend(yaml_files_of(&mut walk, &root.join(folder), FOLDERS));
    }
    files.truncate(MOST_FILES);
    files.sort_by_key(|file| (file.components().count(), file.clone()));
    let mut found = Vec::new();
    let real = root.canonicalize().unwrap_or_else(|_| root.clone());
    for file in files {
        if walk.is_cut() {
            notes.push(format!("{}: only the first examples are looked at, for they are many", end.name));
            break;
        }
        let name = end.project.relative(&file);
        // A link may lead out of the project.
        let Ok(target) = file.canonicalize() else { continue };
        if !target.starts_with(&real) {
            let target = target.display();
            notes.push(format!("{name} is left out: it leads out of the project, to {target}"));
            continue;
        }
        let Some(objects) = small_text(&file).and_then(|text| objects(&text, &name).ok()) else { continue };
        let mut kinds = objects.iter().filter_map(|(_, object)| Gvk::of(object));
        let groups = objects.iter().filter_map(|(_, object)| Gvk::of(object)).map(|gvk| gvk.group);
        if groups.into_iter().any(|group| is_of_the_server(&group)) {
            continue;
        }
        if kinds.any(|gvk| reconciled(end, &gvk)) {
            found.extend(places.put(end, objects));
        }
    }
    found
}

/// Returns true for objects by which the API server itself changes: types, webhooks and other servers. Those
/// of a version come from its own manifests.
fn is_of_the_server(group: &str) -> bool {
    ["apiextensions.k8s.io", "admissionregistration.k8s.io", "apiregistration.k8s.io"].contains(&group)
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
