//! Kinds of other projects that the program watches, such as those of cert-manager. On the embedded control
//! plane their CRDs are installed from the Go module that the project requires, in the version that it
//! requires; elsewhere, and where no module has them, they are named.

use super::notices::tell;
use http::Method;
use kube::Client;
use opdev_client::{ApiError, OWN_MANAGER, send};
use opdev_event::Level;
use opdev_event::sink::EventSink;
use opdev_facts::missing_kinds::MissingKind;
use opdev_object::yaml;
use opdev_os::read;
use opdev_os::small_file::small_text;
use opdev_project::go::files;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use tokio::sync::mpsc;

/// Files of one module that are looked at.
const MOST: usize = 20_000;

/// Kinds that are looked for; each search reads through modules, and a program may print anything.
const MOST_KINDS: usize = 64;

/// Where the kinds are missing.
pub(crate) struct Cluster {
    pub(crate) client: Client,
    pub(crate) events: EventSink,
    pub(crate) embedded: bool,
}

/// The CRDs of a group in one module.
#[derive(Debug, PartialEq)]
struct Found {
    /// Such as `github.com/cert-manager/cert-manager@v1.20.0`.
    module: String,
    crds: Vec<Value>,
}

/// Installs what is missing, once for each kind, until nobody tells of kinds any more.
pub(crate) async fn install(mut missing: mpsc::Receiver<MissingKind>, cluster: Cluster, root: PathBuf) {
    let mut done = BTreeSet::new();
    while let Some(kind) = missing.recv().await {
        if done.len() == MOST_KINDS || !done.insert(kind.clone()) {
            continue;
        }
        let (root, wanted) = (root.clone(), kind.clone());
        let search = move || files::module_cache().and_then(|cache| find(&root, &cache, &wanted));
        let found = tokio::task::spawn_blocking(search).await.ok().flatten();
        let what =
            format!("the program watches {}.{}, which this cluster does not have", kind.kind, kind.group);
        let apply = "apply its CRD with kubectl; the program asks again every ten seconds";
        let (level, message, hint) = match found {
            Some(found) if cluster.embedded => match apply_all(&cluster.client, &found.crds).await {
                Ok(names) if names.is_empty() => (
                    Level::Warn,
                    format!("{what}; the CRD that is there stays, and {} has another one", found.module),
                    Some(apply),
                ),
                Ok(names) => (
                    Level::Info,
                    format!("{what}: installed {} from {}", names.join(", "), found.module),
                    None,
                ),
                Err(error) => (
                    Level::Error,
                    format!("{what}, and its CRD in {} was refused: {error:#}", found.module),
                    Some(apply),
                ),
            },
            Some(found) => (Level::Warn, format!("{what}; its CRD is in {}", found.module), Some(apply)),
            None => (Level::Warn, format!("{what}, and no module of go.mod has its CRD"), Some(apply)),
        };
        tell(&cluster.events, level, message, hint.map(str::to_owned)).await;
    }
}

async fn apply_all(client: &Client, crds: &[Value]) -> anyhow::Result<Vec<String>> {
    let mut names = Vec::new();
    for crd in crds {
        let name = crd["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let list = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        let uri = format!("{list}?fieldManager={OWN_MANAGER}");
        match send(client, Method::POST, &uri, "application/json", Some(crd)).await {
            Ok(_) => names.push(name),
            // A definition that is there may be newer, and objects may have its fields.
            Err(error) if ApiError::of(&error).is_some_and(ApiError::already_exists) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(names)
}

/// Looks through the modules that `go.mod` requires directly for the CRD of a kind, and takes all CRDs of its
/// group there.
fn find(root: &Path, cache: &Path, wanted: &MissingKind) -> Option<Found> {
    let go_mod = small_text(&root.join("go.mod"))?;
    required(&go_mod).find_map(|(path, version)| {
        let crds = crds(&cache.join(format!("{}@{}", escaped(path), escaped(version))), &wanted.group);
        let is_wanted = |crd: &Value| {
            crd["spec"]["names"]["kind"] == wanted.kind
                && (wanted.version.is_empty() || versions(crd).any(|version| version == wanted.version))
        };
        crds.iter().any(is_wanted).then(|| Found { module: format!("{path}@{version}"), crds })
    })
}

/// The modules that a `go.mod` requires directly. Those of Kubernetes itself have no CRDs that anybody
/// installs.
fn required(go_mod: &str) -> impl Iterator<Item = (&str, &str)> {
    let lines = go_mod.lines().filter(|line| !line.contains("// indirect"));
    let words = lines.map(|line| line.trim().trim_start_matches("require ").split_whitespace());
    words.filter_map(|mut words| Some((words.next()?, words.next()?))).filter(|(path, version)| {
        let is_inside = path.split('/').all(|part| !matches!(part, "" | "." | ".."));
        let is_version = version.starts_with('v') && !version.contains('/');
        path.contains('.') && is_inside && is_version && !path.starts_with("k8s.io/")
    })
}

/// A path as the module cache writes it: capitals behind an exclamation mark.
fn escaped(path: &str) -> String {
    path.chars().fold(String::new(), |mut out, one| {
        if one.is_ascii_uppercase() {
            out.push('!');
        }
        out.push(one.to_ascii_lowercase());
        out
    })
}

fn versions(crd: &Value) -> impl Iterator<Item = &str> {
    crd["spec"]["versions"].as_array().into_iter().flatten().filter_map(|version| version["name"].as_str())
}

/// The CRDs of a group below a folder, each name once; an experimental one counts less. Files for Helm cannot
/// be read.
fn crds(folder: &Path, group: &str) -> Vec<Value> {
    let mut files = yaml_files(folder);
    files.sort_by_key(|path| (path.to_string_lossy().contains("experimental"), path.clone()));
    let mut found = BTreeMap::new();
    for path in files {
        let text = small_text(&path).unwrap_or_default();
        if !text.contains("kind: CustomResourceDefinition") || !text.contains(group) {
            continue;
        }
        for part in text.split("\n---") {
            let Ok(object) = yaml::from_str(part) else { continue };
            let object: Value = object;
            let is_crd = object["kind"] == "CustomResourceDefinition" && object["spec"]["group"] == group;
            if let Some(name) = object["metadata"]["name"].as_str().filter(|_| is_crd) {
                found.entry(name.to_owned()).or_insert_with(|| clean(object.clone()));
            }
        }
    }
    found.into_values().collect()
}

/// A CRD without what only a server writes, and without a conversion that nobody answers here.
fn clean(mut crd: Value) -> Value {
    if let Some(fields) = crd.as_object_mut() {
        fields.remove("status");
    }
    if let Some(spec) = crd.get_mut("spec").and_then(Value::as_object_mut) {
        spec.remove("conversion");
    }
    if let Some(metadata) = crd.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("creationTimestamp");
    }
    crd
}

fn yaml_files(folder: &Path) -> Vec<PathBuf> {
    let (mut open, mut files, mut seen) = (vec![folder.to_owned()], Vec::new(), 0_usize);
    while let Some(folder) = open.pop() {
        for entry in read::entries(&folder).into_iter().flatten() {
            seen += 1;
            if seen > MOST {
                return files;
            }
            let (path, name) = (entry.path(), entry.file_name());
            let Ok(kind) = entry.file_type() else { continue };
            let is_foreign = ["vendor", "testdata", "test", "node_modules"].iter().any(|one| name == *one);
            if kind.is_dir() && !is_foreign {
                open.push(path);
            } else if kind.is_file() && path.extension().is_some_and(|end| end == "yaml" || end == "yml") {
                files.push(path);
            }
        }
    }
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crd_is_found_in_the_module_that_the_project_requires() {
        let folder = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        let crd = |name: &str, kind: &str| {
            format!(
                "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {{ name: {name}.acme.io }}\n\
                 spec: {{ group: acme.io, names: {{ kind: {kind} }}, conversion: {{ strategy: Webhook }}, \
                 versions: [ {{ name: v1 }} ] }}\nstatus: {{}}\n"
            )
        };
        write(
            "project/go.mod",
            "module a.b/c\nrequire (\n\tgithub.com/Acme/api v1.2.3\n\tgithub.com/other/api v1.0.0 // indirect\n)\n",
        );
        write(
            "cache/github.com/!acme/api@v1.2.3/crds/both.yaml",
            &format!("{}---\n{}", crd("a", "A"), crd("b", "B")),
        );
        write(
            "cache/github.com/!acme/api@v1.2.3/chart/crd.yaml",
            "{{ if .x }}\nkind: CustomResourceDefinition\nacme.io\n",
        );
        write("cache/github.com/other/api@v1.0.0/crds/c.yaml", &crd("c", "C"));
        let missing = |kind: &str, version: &str| MissingKind {
            kind: kind.to_owned(),
            group: "acme.io".to_owned(),
            version: version.to_owned(),
        };
        let search =
            |wanted: MissingKind| find(&folder.path().join("project"), &folder.path().join("cache"), &wanted);
        let found = search(missing("B", "v1")).unwrap();
        assert_eq!(found.module, "github.com/Acme/api@v1.2.3");
        let names: Vec<_> = found.crds.iter().map(|crd| crd["metadata"]["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["a.acme.io", "b.acme.io"]);
        assert_eq!((found.crds[0].get("status"), found.crds[0]["spec"].get("conversion")), (None, None));
        assert_eq!(search(missing("B", "v2")), None);
        assert_eq!(search(missing("C", "v1")), None, "it is required by others only");
        write("aside@v1/crds/d.yaml", &crd("d", "D"));
        write("project/go.mod", "module a.b/c\nrequire ../aside v1\nrequire a.b/../../../aside v1\n");
        assert_eq!(search(missing("D", "v1")), None, "nothing beside the module cache is read");
    }
}
