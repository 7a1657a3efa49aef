//! Kustomizations that somebody made to stop or fill the machine that builds them.

use crate::{Files, build, build_what_can_be};
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
    assert!(said.contains("MiB"), "{said}");
    let slashes = vec!["a"; 200_000].join("/");
    let label = format!(
        "resources: [a.yaml]\nlabels:\n- pairs: {{a: b}}\n  fields: [{{path: {slashes}, create: true}}]\n"
    );
    let said = refused(&files(label));
    assert!(said.contains("is too long"), "{}", &said[said.len() - 80..]);
}

#[test]
fn entries_objects_and_types_have_a_bound() {
    let many = vec!["a.yaml"; 20_000].join(", ");
    let made = Made::of(&[
        ("kustomization.yaml", format!("resources: [{many}]\n")),
        ("a.yaml", DEPLOYMENT.to_owned()),
    ]);
    let ended = build_what_can_be(&made, Path::new("/p"), &["Deployment"]).unwrap_err().to_string();
    assert!(ended.contains("more than 10000 files and folders"), "{ended}");

    let objects = (0..4_000)
        .map(|at| format!("---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: a-{at}}}\n"));
    let said =
        refused(&[("kustomization.yaml", "resources: [a.yaml]\n".to_owned()), ("a.yaml", objects.collect())]);
    assert!(said.contains("more than 3000 objects"), "{said}");

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
    assert!(said.contains("fields are to be read"), "{said}");
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
        assert!(said.contains("100"), "{said}");
    }
}

#[test]
fn a_kustomization_behind_a_link_out_of_its_folder_is_none() {
    let said = refused(&[("kustomization.yaml", "link".to_owned()), ("a.yaml", DEPLOYMENT.to_owned())]);
    assert!(said.contains("there is no kustomization.yaml") && !said.contains("secret"), "{said}");
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
        ("bad.yaml", "apiVersion: v1\nkind: Service\nmetadata: {name: nobody}\n".to_owned()),
    ]);
    let built = build_what_can_be(&made, Path::new("/p"), &["Deployment"]).unwrap();
    assert_eq!((built.parts[0].object["spec"]["replicas"].as_i64(), built.left_out.len()), (Some(3), 1));
}
