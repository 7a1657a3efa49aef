//! Built-in types without source have the schemas and descriptions that their source gives: all types of
//! k8s.io/api and of apimachinery's meta/v1, where the module cache of this machine has the release that the
//! facts are of.

#![allow(clippy::disallowed_methods)]

use crate::go::golden::{Disk, differences};
use crate::go::{Files, Generator, Options};
use opdev_object::facts::facts;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::Arc;

/// The release of the Go modules that the facts are of.
const RELEASE: &str = "v0.37.0";

/// A project in memory; what it imports lies in the module cache, or nowhere.
struct Project {
    texts: BTreeMap<String, Arc<str>>,
    disk: Disk,
    cache: Option<String>,
}

impl Files for Project {
    fn read(&self, path: &str) -> Option<Arc<str>> {
        self.texts.get(path).cloned().or_else(|| path.starts_with('/').then(|| self.disk.read(path))?)
    }

    fn list(&self, dir: &str) -> Vec<String> {
        if dir.starts_with('/') {
            return self.disk.list(dir);
        }
        let prefix = if dir == "." { String::new() } else { format!("{dir}/") };
        let below = self.texts.keys().filter_map(|path| path.strip_prefix(&prefix));
        let names: BTreeSet<&str> = below.filter_map(|rest| rest.split('/').next()).collect();
        names.into_iter().map(str::to_owned).collect()
    }

    fn module_cache(&self) -> Option<String> {
        self.cache.clone()
    }

    fn go_root(&self) -> Option<String> {
        self.disk.go_root()
    }
}

/// A kind per package, with a field of each of the package's types that is no kind itself.
fn types() -> String {
    let mut packages: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for (name, schema) in facts().raw_definitions() {
        let Some((package, ty)) = name.strip_prefix("io.k8s.").and_then(|rest| rest.rsplit_once('.')) else {
            continue;
        };
        let wanted = package.starts_with("api.") || package == "apimachinery.pkg.apis.meta.v1";
        let is_kind = schema.pointer("/properties/kind").is_some()
            && schema.pointer("/properties/apiVersion").is_some();
        if wanted && !is_kind && schema.get("properties").is_some() {
            packages.entry(format!("k8s.io/{}", package.replace('.', "/"))).or_default().push(ty);
        }
    }
    let mut text = "// +groupName=a.example.com\npackage v1\n\nimport (\n".to_owned();
    for (index, package) in packages.keys().enumerate() {
        let _ = writeln!(text, "\tp{index} \"{package}\"");
    }
    text.push_str("\tmetav1 \"k8s.io/apimachinery/pkg/apis/meta/v1\"\n)\n");
    for (index, types) in packages.values().enumerate() {
        let _ = writeln!(
            text,
            "\n// +kubebuilder:object:root=true\ntype K{index} struct {{\n\tmetav1.TypeMeta `json:\",inline\"`\n\t\
             metav1.ObjectMeta `json:\"metadata,omitempty\"`\n\tSpec S{index} `json:\"spec\"`\n}}\n\ntype S{index} struct {{"
        );
        for ty in types {
            let _ = writeln!(text, "\t{ty} p{index}.{ty} `json:\"{ty}\"`");
        }
        text.push_str("}\n");
    }
    text
}

#[test]
fn types_without_source_have_the_schemas_and_descriptions_of_their_source() {
    let disk = || Disk("/".into());
    let cache = disk().module_cache();
    let there = cache.as_ref().is_some_and(|cache| {
        ["api", "apimachinery"]
            .iter()
            .all(|name| std::path::Path::new(&format!("{cache}/k8s.io/{name}@{RELEASE}")).is_dir())
    });
    if !there {
        return;
    }
    let requires = format!("require (\n\tk8s.io/api {RELEASE}\n\tk8s.io/apimachinery {RELEASE}\n)\n");
    let texts: BTreeMap<String, Arc<str>> = [
        ("go.mod".to_owned(), format!("module example.com/a\n\n{requires}").into()),
        ("api/v1/types.go".to_owned(), types().into()),
    ]
    .into();
    let made = |cache: Option<String>| {
        let files = Project { texts: texts.clone(), disk: disk(), cache };
        let made = Generator::new().generate(&files, &["./...".to_owned()], &Options::default());
        let crds = made.crds.into_iter();
        let name = |crd: &Value| crd["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        crds.map(|crd| (name(&crd.object), crd.object)).collect::<BTreeMap<_, _>>()
    };
    let (want, have) = (made(cache), made(None));
    assert!(want.len() >= 20 && want.len() == have.len(), "{} and {}", want.len(), have.len());
    let mut found = Vec::new();
    for (name, want) in &want {
        differences(name, want, &have[name], &mut found);
    }
    // The markers `+k8s:immutable` and `+k8s:enum` of alpha fields are in no document of the API; the
    // conditions of apps/v1 have an empty default there that no marker sets.
    let unsaid = [
        "x-kubernetes-validations: lacks",
        "skipNodeOperations/items/enum",
        "properties/status/enum",
        "/default: has \"\"",
    ];
    found.retain(|one| !unsaid.iter().any(|part| one.contains(part)));
    let shown: Vec<&str> = found.iter().map(String::as_str).take(400).collect();
    assert!(found.is_empty(), "{} differences:\n{}", found.len(), shown.join("\n"));
}
