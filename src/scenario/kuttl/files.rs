//! The files of kuttl: which folders are tests, and what their steps are. Reads; runs nothing.

use super::expect::Expect;
use super::expressions::Expressions;
use super::keys;
use crate::manifest;
pub(crate) use crate::manifest::Manifest;
use anyhow::{Context as _, Result, anyhow, bail};
use opdev_object::meta::Gvk;
use opdev_object::yaml::{self, Node};
use opdev_os::read;
use opdev_os::small_file::{small_text, unreadable};
use regex::Regex;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::Duration;

/// A folder of steps.
#[derive(Clone, Debug)]
pub struct KuttlTest {
    /// Its path, relative to the project's root where it lies inside.
    pub name: String,
    pub(super) folder: PathBuf,
    pub(super) suite: TestSuite,
    pub(super) steps: Vec<Step>,
    /// Files that are no steps.
    pub ignored: Vec<String>,
}

/// The content of a `TestSuite`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct TestSuite {
    pub(super) crd_dir: String,
    pub(super) manifest_dirs: Vec<String>,
    pub(super) test_dirs: Vec<String>,
    pub(super) start_control_plane: bool,
    #[serde(rename = "startKIND")]
    pub(super) start_kind: bool,
    pub(super) kind_containers: Vec<String>,
    pub(super) timeout: u64,
    pub(super) namespace: String,
    pub(super) commands: Vec<Command>,
    /// Where its paths begin.
    #[serde(skip)]
    pub(super) base: PathBuf,
}

/// A command of a step.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Command {
    pub(super) command: String,
    pub(super) script: String,
    pub(super) namespaced: bool,
    pub(super) ignore_failure: bool,
    pub(super) timeout: u64,
}

/// The content of a `TestStep`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct TestStep {
    apply: Vec<String>,
    assert: Vec<String>,
    error: Vec<String>,
    delete: Vec<Deletion>,
    commands: Vec<Command>,
    kubeconfig: String,
}

/// An object that a step deletes first.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Deletion {
    pub(super) api_version: String,
    pub(super) kind: String,
    pub(super) name: String,
    pub(super) namespace: String,
    pub(super) labels: BTreeMap<String, String>,
}

/// The content of a `TestAssert`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct TestAssert {
    timeout: u64,
    commands: Vec<Command>,
}

/// One step: all files with its number.
#[derive(Clone, Debug, Default)]
pub(super) struct Step {
    pub(super) index: u32,
    pub(super) name: String,
    pub(super) delete: Vec<Deletion>,
    pub(super) commands: Vec<Command>,
    pub(super) apply: Vec<Manifest>,
    pub(super) asserts: Vec<Manifest>,
    pub(super) errors: Vec<Manifest>,
    pub(super) assert_commands: Vec<Command>,
    pub(super) expressions: Vec<Expressions>,
    pub(super) timeout: Option<Duration>,
    pub(super) expects: Vec<(String, Expect)>,
}

const SUITE: &str = "kuttl-test.yaml";
const EXPECTED: &str = ".opdev.yaml";

/// The tests at a path: a folder with steps, one of folders with steps, or a suite with `kuttl-test.yaml`.
/// None where it is nothing of kuttl's.
///
/// # Errors
/// Where a file cannot be read, or asks for what opdev does not have.
pub fn tests(root: &Path, path: &Path) -> Result<Vec<KuttlTest>> {
    let path = root.join(path);
    let (folder, suite) = match path.is_file() {
        true if path.file_name().is_some_and(|name| name == SUITE) => (path.parent().unwrap_or(root), true),
        true => return Ok(Vec::new()),
        false => (path.as_path(), path.join(SUITE).is_file()),
    };
    let mut settings = TestSuite::default();
    let mut folders = vec![folder.to_owned()];
    if suite {
        settings = read_suite(&folder.join(SUITE))?;
        let base = [root, folder]
            .into_iter()
            .find(|base| settings.test_dirs.iter().all(|dir| base.join(dir).is_dir()));
        let named = settings.test_dirs.join(", ");
        settings.base = base
            .with_context(|| format!("{SUITE}: no folder {named} below {}", folder.display()))?
            .to_owned();
        folders = settings.test_dirs.iter().map(|dir| settings.base.join(dir)).collect();
        if folders.is_empty() {
            folders.push(folder.to_owned());
        }
    }
    let mut found = Vec::new();
    for folder in folders {
        if has_steps(&folder) {
            found.push(read(root, &folder, &settings)?);
            continue;
        }
        let below = read::entries(&folder).with_context(|| format!("{} cannot be read", folder.display()))?;
        for folder in below.into_iter().map(|entry| entry.path()).filter(|path| path.is_dir()) {
            if !has_steps(&folder) {
                refuse_yml(&folder)?;
                continue;
            }
            found.push(read(root, &folder, &settings)?);
        }
    }
    Ok(found)
}

fn read_suite(path: &Path) -> Result<TestSuite> {
    let text = small_text(path).with_context(|| unreadable(&path.display().to_string()))?;
    let value = yaml::from_str(&text).map_err(|error| anyhow!("{}", error.in_file(path.display())))?;
    if let Some(why) = keys::misspelt("TestSuite", &value) {
        bail!("{}: {why}", path.display());
    }
    let suite: TestSuite = serde_json::from_value(value).with_context(|| path.display().to_string())?;
    if suite.start_kind || !suite.kind_containers.is_empty() {
        bail!(
            "{}: startKIND and kindContainers need containers, which opdev does not run; `opdev ci -- kubectl kuttl test` runs \
             kuttl itself",
            path.display()
        );
    }
    Ok(suite)
}

/// A name such as `00-install-web.yaml`, as kuttl takes it: number, first word, and the rest. The first word
/// says whether it is an assert.
fn parts(name: &str) -> Option<(u32, String, String)> {
    static NAME: LazyLock<Option<Regex>> =
        LazyLock::new(|| Regex::new(r"^(\d+)-([^-.]+)(?:-([^.]+))?\.yaml$").ok());
    let found = NAME.as_ref()?.captures(name)?;
    let text = |at: usize| found.get(at).map(|part| part.as_str().to_owned());
    Some((text(1)?.parse().ok()?, text(2)?, text(3).unwrap_or_default()))
}

/// Refuses files that kuttl takes for a part of a test and opdev does not: without them a test would prove
/// nothing.
fn refuse_unknown(folder: &Path, relative: &str) -> Result<()> {
    let entries = read::entries(folder).into_iter().flatten();
    for entry in entries {
        let name = entry.file_name().to_string_lossy().into_owned();
        let numbered = name.split_once('-').is_some_and(|(number, _)| number.parse::<u32>().is_ok());
        if !numbered {
            continue;
        }
        if entry.path().is_dir() {
            continue;
        }
        if name.contains(".gotmpl.") {
            bail!("{relative}/{name}: templates are not expanded; write the objects themselves");
        }
        if name.contains(".opdev.") && !name.ends_with(EXPECTED) {
            bail!("{relative}/{name}: what opdev expects stands in a file that ends with {EXPECTED}");
        }
    }
    Ok(())
}

/// The folders that are steps, such as `02-install`: what is in them has names without a number, or with any.
fn step_folders(folder: &Path) -> Vec<(u32, String, PathBuf)> {
    let below = read::paths(folder).into_iter().filter(|path| path.is_dir());
    let mut found: Vec<_> = below
        .filter_map(|path| {
            let name = path.file_name()?.to_str()?.to_owned();
            let (index, first, last) = parts(&format!("{name}.yaml"))?;
            Some((index, whole_name(first, &last), path))
        })
        .collect();
    found.sort();
    found
}

fn whole_name(first: String, last: &str) -> String {
    if last.is_empty() { first } else { format!("{first}-{last}") }
}

fn names(folder: &Path) -> Vec<String> {
    let files = read::paths(folder).into_iter().filter(|path| path.is_file());
    let mut names: Vec<String> =
        files.filter_map(|path| Some(path.file_name()?.to_str()?.to_owned())).collect();
    names.sort();
    names
}

fn has_steps(folder: &Path) -> bool {
    names(folder).iter().any(|name| parts(name).is_some())
}

/// A folder whose steps all end in `.yml`, which kuttl does not read, would be left out.
fn refuse_yml(folder: &Path) -> Result<()> {
    let step = |name: &String| {
        name.strip_suffix(".yml").is_some_and(|stem| parts(&format!("{stem}.yaml")).is_some())
    };
    match names(folder).iter().find(|name| step(name)) {
        Some(name) => bail!(
            "{}: kuttl reads steps from files that end in .yaml only; rename it, or the test is left out",
            folder.join(name).display()
        ),
        None => Ok(()),
    }
}

fn read(root: &Path, folder: &Path, suite: &TestSuite) -> Result<KuttlTest> {
    let relative = folder.strip_prefix(root).unwrap_or(folder).display().to_string();
    let mut steps: BTreeMap<u32, Step> = BTreeMap::new();
    let mut ignored = Vec::new();
    refuse_unknown(folder, &relative)?;
    for name in names(folder) {
        let expects = name.strip_suffix(EXPECTED).map(|stem| format!("{stem}.yaml"));
        let Some((index, first, last)) = parts(expects.as_deref().unwrap_or(&name)) else {
            ignored.push(format!("{relative}/{name}"));
            continue;
        };
        let step = steps.entry(index).or_default();
        step.index = index;
        let path = folder.join(&name);
        if expects.is_some() {
            step.expects.extend(read_expects(&path, &format!("{relative}/{name}"))?);
            continue;
        }
        add(step, folder, (&path, &relative), whole_name(first, &last))?;
    }
    for (index, whole, below) in step_folders(folder) {
        let step = steps.entry(index).or_default();
        step.index = index;
        if step.name.is_empty() {
            step.name = whole;
        }
        let shown = below.strip_prefix(root).unwrap_or(&below).display().to_string();
        refuse_unknown(&below, &shown)?;
        for name in names(&below) {
            // Without a number of its own it has that of its folder.
            let known = parts(&name).or_else(|| parts(&format!("{index}-{name}")));
            let Some((_, first, last)) = known else {
                ignored.push(format!("{shown}/{name}"));
                continue;
            };
            add(step, folder, (&below.join(&name), &shown), whole_name(first, &last))?;
        }
    }
    Ok(KuttlTest {
        name: relative,
        folder: folder.to_owned(),
        suite: suite.clone(),
        steps: steps.into_values().collect(),
        ignored,
    })
}

/// Adds a file to a step: the first word of its name says what it is.
fn add(step: &mut Step, folder: &Path, (path, shown): (&Path, &str), name: String) -> Result<()> {
    match name.split('-').next().unwrap_or_default().to_lowercase().as_str() {
        "assert" => asserts(step, path, shown),
        "errors" => {
            step.errors.extend(manifests(path, shown)?);
            Ok(())
        }
        _ => {
            if step.name.is_empty() {
                step.name = name;
            }
            applies(step, folder, path, shown)
        }
    }
}

/// The objects of a file, or of the files of a folder.
pub(super) fn manifests(path: &Path, shown: &str) -> Result<Vec<Manifest>> {
    Ok(placed(path, shown)?.into_iter().map(|(manifest, _)| manifest).collect())
}

/// The objects, each with the places of its parts.
fn placed(path: &Path, shown: &str) -> Result<Vec<(Manifest, Node)>> {
    if path.is_dir() {
        let mut found = Vec::new();
        for name in names(path).into_iter().filter(|name| name.ends_with(".yaml") || name.ends_with(".yml")) {
            found.extend(placed(&path.join(name), shown)?);
        }
        return Ok(found);
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let text = small_text(path).with_context(|| unreadable(&path.display().to_string()))?;
    manifest::placed(&text, &format!("{shown}/{name}"))
}

fn is(manifest: &Manifest, kind: &str) -> bool {
    Gvk::of(&manifest.object).is_some_and(|gvk| gvk.group == "kuttl.dev" && gvk.kind == kind)
}

fn applies(step: &mut Step, folder: &Path, path: &Path, shown: &str) -> Result<()> {
    for manifest in manifests(path, shown)? {
        if !is(&manifest, "TestStep") {
            step.apply.push(manifest);
            continue;
        }
        let Manifest { place, object } = manifest;
        if let Some(name) = object.pointer("/metadata/name").and_then(Value::as_str) {
            step.name = name.to_owned();
        }
        if let Some(why) = keys::misspelt("TestStep", &object) {
            bail!("{place}: {why}");
        }
        let said: TestStep = serde_json::from_value(object).with_context(|| place.clone())?;
        if !said.kubeconfig.is_empty() {
            bail!("{place}: kubeconfig names another cluster, and a test has one control plane here");
        }
        for file in said.apply {
            step.apply.extend(manifests(&folder.join(file), shown)?);
        }
        for file in said.assert {
            asserts(step, &folder.join(file), shown)?;
        }
        for file in said.error {
            step.errors.extend(manifests(&folder.join(file), shown)?);
        }
        step.delete.extend(said.delete);
        step.commands.extend(said.commands);
    }
    Ok(())
}

fn asserts(step: &mut Step, path: &Path, shown: &str) -> Result<()> {
    for (manifest, node) in placed(path, shown)? {
        if !is(&manifest, "TestAssert") {
            step.asserts.push(manifest);
            continue;
        }
        let Manifest { place, object } = manifest;
        if let Some(why) = keys::misspelt("TestAssert", &object) {
            bail!("{place}: {why}");
        }
        let said: TestAssert = serde_json::from_value(object).with_context(|| place.clone())?;
        let file = place.rsplit_once(':').map_or(place.as_str(), |(file, _)| file);
        step.expressions.extend(Expressions::read(&node, file)?);
        step.assert_commands.extend(said.commands);
        if said.timeout > 0 {
            step.timeout = Some(Duration::from_secs(said.timeout));
        }
    }
    Ok(())
}

fn read_expects(path: &Path, shown: &str) -> Result<Vec<(String, Expect)>> {
    let text = small_text(path).with_context(|| unreadable(shown))?;
    let documents = yaml::documents(&text).map_err(|error| anyhow!("{}", error.in_file(shown)))?;
    let read = documents.iter().map(|node| {
        let place = format!("{shown}:{}", node.line);
        let value = yaml::to_json(node).with_context(|| place.clone())?;
        let expect = serde_json::from_value(value).with_context(|| place.clone())?;
        Ok((place, expect))
    });
    read.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    #[test]
    fn names_of_steps_are_those_of_kuttl() {
        let said = |name: &str| parts(name).map(|(index, name, what)| format!("{index} {name} {what}"));
        assert_eq!(said("00-install.yaml").as_deref(), Some("0 install "));
        assert_eq!(said("01-assert.yaml").as_deref(), Some("1 assert "));
        assert_eq!(said("02-scale-up.yaml").as_deref(), Some("2 scale up"));
        assert_eq!(said("02-assert-scale-up.yaml").as_deref(), Some("2 assert scale-up"));
        assert_eq!(said("03-a.opdev.yaml"), None);
        assert_eq!((said("README.md"), said("values.yaml")), (None, None));
    }

    #[test]
    fn a_test_that_would_check_nothing_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let test = folder.path().join("tests/one");
        std::fs::create_dir_all(&test).unwrap();
        let write = |name: &str, text: &str| std::fs::write(test.join(name), text).unwrap();
        let fails = || tests(folder.path(), Path::new("tests")).unwrap_err().to_string();
        write("00-install.yml", "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\n");
        assert!(fails().contains("one/00-install.yml: kuttl reads"), "{}", fails());
        write(
            "00-install.yaml",
            "apiVersion: kuttl.dev/v1beta1\nkind: TestStep\nCommands: [{script: 'false'}]\n",
        );
        expect![[r#"tests/one/00-install.yaml:1: TestStep has no key "Commands", and kuttl would leave it out without a word; "commands" is meant"#]]
        .assert_eq(&fails());
    }

    #[test]
    fn a_step_is_all_files_with_its_number() {
        let folder = tempfile::tempdir().unwrap();
        let test = folder.path().join("tests/one");
        std::fs::create_dir_all(&test).unwrap();
        let write = |name: &str, text: &str| std::fs::write(test.join(name), text).unwrap();
        write("00-install.yaml", "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\n");
        write(
            "00-assert.yaml",
            "apiVersion: kuttl.dev/v1beta1\nkind: TestAssert\ntimeout: 7\n---\napiVersion: v1\nkind: Secret\n",
        );
        write("00-errors.yaml", "apiVersion: v1\nkind: ConfigMap\n");
        write("00-install.opdev.yaml", "apiVersion: opdev.dev/v1\nkind: Expect\noutcome: installed\n");
        write(
            "01-go.yaml",
            "apiVersion: kuttl.dev/v1beta1\nkind: TestStep\nmetadata: {name: away}\ndelete: [{apiVersion: v1, kind: Secret, name: a}]\ncommands: [{script: 'true'}]\n",
        );
        let found = tests(folder.path(), Path::new("tests")).unwrap();
        assert_eq!((found.len(), found[0].name.as_str(), found[0].steps.len()), (1, "tests/one", 2));
        let [first, second] = found[0].steps.as_slice() else { panic!() };
        let counts = (first.apply.len(), first.asserts.len(), first.errors.len(), first.expects.len());
        assert_eq!(counts, (1, 1, 1, 1));
        assert_eq!((first.name.as_str(), first.timeout), ("install", Some(Duration::from_secs(7))));
        assert_eq!((second.name.as_str(), second.delete.len(), second.commands.len()), ("away", 1, 1));
        write("kuttl-test.yaml", "startKIND: true\n");
        assert!(tests(folder.path(), Path::new("tests/one")).unwrap_err().to_string().contains("startKIND"));
    }
}
