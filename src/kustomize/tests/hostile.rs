//! Kustomizations that somebody made to stop or fill the machine that builds them.

use crate::{Files, build, build_what_can_be};
use expect_test::expect;
use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

/// Files below `/p`, and one outside that a link leads to.
struct Made(BTreeMap<PathBuf, String>);

impl Made {
    fn of(files: &[(&str, String)]) -> Made {
        Made(files.iter().map(|(path, text)| (Path::new("/p").join(path), text.clone())).collect())
    }
}

impl Files for Made {
    fn real(&self, path: &Path) -> Option<PathBuf> {
        let mut real = PathBuf::new();
        for part in path.components() {
            match part {
                Component::ParentDir => drop(real.pop()),
                Component::CurDir => {}
                other => real.push(other),
            }
        }
        if self.0.get(&real).is_some_and(|text| text.starts_with("link")) {
            return Some(PathBuf::from("/elsewhere/kustomization.yaml"));
        }
        (self.0.contains_key(&real) || self.is_folder(&real)).then_some(real)
    }

    fn is_folder(&self, path: &Path) -> bool {
        self.0.keys().any(|known| known != path && known.starts_with(path))
    }

    fn read(&self, path: &Path) -> std::io::Result<Vec<u8>> {
        let text = self.0.get(path).cloned().unwrap_or_else(|| "secret: text of another file\n".to_owned());
        Ok(text.into_bytes())
    }
}

const DEPLOYMENT: &str = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a, annotations: {x: y}}\n";

fn refused(files: &[(&str, String)]) -> String {
    let made = Made::of(files);
    let strict = build(&made, Path::new("/p")).map(|_| ()).unwrap_err().to_string();
    let ended = match build_what_can_be(&made, Path::new("/p"), &["Deployment"]) {
        Ok(built) => built.left_out.first().map(ToString::to_string).unwrap_or_default(),
        Err(error) => error.to_string(),
    };
    assert_eq!(ended, strict, "what may be left out is left out for the same reason");
    strict
}

#[test]
fn paths_without_end_and_copies_without_end_are_refused() {
    let deep = vec!["a"; 200_000].join(".");
    let replacement = |entries: &str| format!("resources: [a.yaml]\nreplacements:\n{entries}");
    let of = |paths: &str, delimiter: &str| {
        format!(
            "- source: {{kind: Deployment, fieldPath: metadata.annotations.x}}\n  targets:\n  - select: {{kind: Deployment}}\n    \
             fieldPaths: [{paths}]\n    options: {{create: true{delimiter}}}\n"
        )
    };
    let files = |text: String| [("kustomization.yaml", text), ("a.yaml", DEPLOYMENT.to_owned())];
    let said = refused(&files(replacement(&of(&deep, ""))));
    assert!(said.ends_with("the value, or the path to it, is too deep"), "{}", &said[said.len() - 80..]);
    // Each one doubles a text.
    let double = of("metadata.annotations.x", ", delimiter: \",\", index: 9");
    let said = refused(&files(replacement(&double.repeat(40))));
    expect!["/p/kustomization.yaml:103: replacements[20]: Deployment.apps a: metadata.annotations.x: it copies more than 2 MiB"]
    .assert_eq(&said);
    let slashes = vec!["a"; 200_000].join("/");
    let label = format!(
        "resources: [a.yaml]\nlabels:\n- pairs: {{a: b}}\n  fields: [{{path: {slashes}, create: true}}]\n"
    );
    let said = refused(&files(label));
    expect!["/p/kustomization.yaml:3: labels[0]: Deployment.apps a: a path of 200000 parts is too long"]
        .assert_eq(&said);
}

#[test]
fn entries_objects_and_types_have_a_bound() {
    let many = vec!["a.yaml"; 20_000].join(", ");
    let made = Made::of(&[
        ("kustomization.yaml", format!("resources: [{many}]\n")),
        ("a.yaml", DEPLOYMENT.to_owned()),
    ]);
    let ended = build_what_can_be(&made, Path::new("/p"), &["Deployment"]).unwrap_err().to_string();
    expect!["/p/kustomization.yaml: more than 10000 files and folders are named"].assert_eq(&ended);

    let objects = (0..4_000)
        .map(|at| format!("---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: a-{at}}}\n"));
    let said =
        refused(&[("kustomization.yaml", "resources: [a.yaml]\n".to_owned()), ("a.yaml", objects.collect())]);
    expect!["/p/a.yaml: there are more than 3000 objects"].assert_eq(&said);

    let types = (0..30).map(|at| {
        let fields =
            ["a", "b", "c"].map(|name| format!("\"{name}\": {{\"$ref\": \"T{}\"}}", at + 1)).join(", ");
        let whole = if at == 0 { "\"kind\": {}, \"apiVersion\": {}, \"metadata\": {}, " } else { "" };
        format!("\"T{at}\": {{\"Schema\": {{\"properties\": {{{whole}{fields}}}}}}}")
    });
    let said = refused(&[
        ("kustomization.yaml", "resources: [a.yaml]\ncrds: [types.json]\n".to_owned()),
        ("a.yaml", DEPLOYMENT.to_owned()),
        ("types.json", format!("{{{}}}", types.collect::<Vec<_>>().join(", "))),
    ]);
    expect!["/p/types.json: more than 50000 fields are to be read"].assert_eq(&said);
}

#[test]
fn names_that_grow_without_end_are_refused() {
    let kustomization = || ("kustomization.yaml", "resources: [a.yaml]\ntransformers: [t.yaml]\n".to_owned());
    let grows = |size: usize, places: usize| {
        let (prefix, places) = ("x".repeat(size), "- path: metadata/name\n".repeat(places));
        format!("apiVersion: builtin\nkind: PrefixTransformer\nprefix: {prefix}\nfieldSpecs:\n{places}---\n")
    };
    for text in [grows(1, 1000), grows(1000, 1), grows(200, 1).repeat(101)] {
        let said = refused(&[kustomization(), ("a.yaml", DEPLOYMENT.to_owned()), ("t.yaml", text)]);
        expect![
            "/p/kustomization.yaml: its transformers make more than 100 changes, or names that are too long"
        ]
        .assert_eq(&said);
    }
}

#[test]
fn a_kustomization_behind_a_link_out_of_its_folder_is_none() {
    let said = refused(&[("kustomization.yaml", "link".to_owned()), ("a.yaml", DEPLOYMENT.to_owned())]);
    assert!(!said.contains("secret"), "{said}");
    expect!["/p: there is no kustomization.yaml, no kustomization.yml, no Kustomization"].assert_eq(&said);
}

#[test]
fn a_patch_that_fails_takes_no_other_one_with_it() {
    let made = Made::of(&[
        (
            "kustomization.yaml",
            "resources: [a.yaml]\npatchesStrategicMerge: [good.yaml, bad.yaml]\n".to_owned(),
        ),
        ("a.yaml", DEPLOYMENT.to_owned()),
        ("good.yaml", format!("{DEPLOYMENT}spec: {{replicas: 3}}\n")),
        ("bad.yaml", DEPLOYMENT.replace("name: a", "name: nobody")),
    ]);
    let built = build_what_can_be(&made, Path::new("/p"), &["Deployment"]).unwrap();
    assert_eq!((built.parts[0].object["spec"]["replicas"].as_i64(), built.left_out.len()), (Some(3), 1));
}

#[test]
fn what_changes_kinds_that_nobody_asked_for_is_not_told() {
    let made = Made::of(&[
        (
            "kustomization.yaml",
            "resources: [a.yaml, b.yaml]\nconfigurations: [empty.yaml]\npatches: [{path: patch.yaml}]\n\
             replacements: [{source: {kind: Certificate}, targets: [{select: {kind: Deployment}}]}]\n"
                .to_owned(),
        ),
        ("a.yaml", DEPLOYMENT.to_owned()),
        ("b.yaml", "apiVersion: v1\nkind: Service\nmetadata: {name: somebody}\n".to_owned()),
        ("empty.yaml", "# nothing yet\n".to_owned()),
        ("patch.yaml", "apiVersion: v1\nkind: Service\nmetadata: {name: somebody}\nspec: {}\n".to_owned()),
    ]);
    let built = build_what_can_be(&made, Path::new("/p"), &["Deployment"]).unwrap();
    assert_eq!(built.left_out, []);
    let (parts, left_out) = {
        let all = build_what_can_be(&made, Path::new("/p"), &["Deployment", "Certificate"]).unwrap();
        (all.parts.len(), all.left_out.iter().map(ToString::to_string).collect::<Vec<_>>())
    };
    assert_eq!(parts, 1);
    assert_eq!(
        left_out,
        ["/p/kustomization.yaml:4: replacements[0]: the source selects nothing (Certificate)"]
    );
}
