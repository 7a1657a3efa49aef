//! The CRDs of Go types as the project deploys them: with the patches of `config/crd/kustomization.yaml`,
//! and, where the Makefile changes the generated files afterwards, as the committed files have them. Reads
//! files; writes and runs nothing.

use crate::Project;
use crate::program::kustomization::Overlaid;
use opdev_kustomize::NAMES;
use opdev_object::{meta, yaml};
use opdev_os::small_file::small_text;
use opdev_sources::definitions::Made;
use opdev_types::crd;
use opdev_types::diagnostic::Diagnostic;
use opdev_types::emit;
use opdev_types::pin::{self, Source};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const FOLDER: &str = "config/crd";
/// The folder in which projects keep the CRDs of their Go types.
pub const BASES: [&str; 2] = ["config/crd/bases", "config/components/crd/bases"];
/// Programs that change text or YAML.
const EDITORS: [&str; 6] = ["yq", "sed", "gsed", "perl", "awk", "jq"];

/// A committed file, and the CRD that its type made when the file was read.
#[derive(Debug)]
struct Committed {
    text: String,
    generated: Arc<Value>,
}

/// The committed files, by the name of the CRD.
#[derive(Debug, Default)]
pub(crate) struct Patches {
    committed: BTreeMap<String, Committed>,
}

impl Patches {
    /// Makes the CRDs what they are once they are deployed; the answer is what the user should know.
    pub(crate) fn apply(&mut self, root: &Path, made: &mut [Made]) -> Vec<Diagnostic> {
        let mut said = Vec::new();
        let edited = edited_by(root);
        let (mut files, mut served, mut behind) = (Overlaid::default(), Vec::new(), Vec::new());
        for one in made.iter_mut().filter(|one| !one.broken) {
            let Ok(artifact) = emit::crd(&one.crd, "") else { continue };
            let place =
                BASES.iter().find_map(|base| root.join(base).join(&artifact.name).canonicalize().ok());
            let Some(place) = place else { continue };
            let name = meta::name(&one.crd).unwrap_or_default().to_owned();
            if edited.is_some()
                && let Some(crd) = self.committed(&name, &place, &one.crd)
            {
                one.crd = crd;
                served.push(name);
                continue;
            }
            behind.extend(edited.is_some().then_some(name));
            files.0.insert(place, artifact.text.into_bytes());
        }
        if let Some(how) = &edited {
            said.extend((!served.is_empty()).then(|| {
                Diagnostic::warning(
                    format!("{how}: {} as committed serve until a type changes", count(&served)),
                    None,
                )
            }));
            said.extend((!behind.is_empty()).then(|| {
                Diagnostic::warning(
                    format!(
                        "{how}: the type of {} has changed, and it serves without that",
                        behind.join(", ")
                    ),
                    None,
                )
                .with_hint("Run that target of the Makefile; the file that it writes serves then.")
            }));
        }
        said.extend(patch(root, &files, made));
        said
    }

    /// The committed CRD, as long as the type is what it was when the file was read first.
    fn committed(&mut self, name: &str, place: &Path, generated: &Arc<Value>) -> Option<Arc<Value>> {
        let text = small_text(place)?;
        let known = self.committed.get(name).filter(|known| known.text == text);
        if known.is_some_and(|known| known.generated != *generated) {
            return None;
        }
        let crd = yaml::from_str(text.trim_start_matches("---")).ok()?;
        if meta::name(&crd) != Some(name) {
            return None;
        }
        self.committed.insert(name.to_owned(), Committed { text, generated: Arc::clone(generated) });
        Some(Arc::new(crd))
    }
}

fn count(names: &[String]) -> String {
    match names {
        [one] => one.clone(),
        many => format!("{} CRDs", many.len()),
    }
}

/// The words with which a Makefile changes the generated CRDs afterwards; `None` where it does not.
fn edited_by(root: &Path) -> Option<String> {
    let text = small_text(&root.join("Makefile"))?;
    let commands = pin::commands(&[Source { path: "Makefile", text: &text }], "", "");
    commands.into_iter().find_map(|command| {
        let name =
            |word: &String| Path::new(word).file_name().map(|name| name.to_string_lossy().into_owned());
        let of = |editor: &&&str| {
            command.words.iter().filter_map(name).any(|name| {
                name.strip_prefix(**editor).is_some_and(|rest| rest.is_empty() || rest.starts_with("-v"))
            })
        };
        let editor = EDITORS.iter().find(of)?;
        let target = command.target.split_whitespace().next().unwrap_or_default();
        let of_crds = command.words.iter().any(|word| word.contains("config/crd"));
        of_crds.then(|| format!("target {target} of the Makefile changes generated CRDs with {editor}"))
    })
}

/// Puts the patches of the kustomization in. How a webhook converts is left out: the program is reached in
/// another way here.
fn patch(root: &Path, files: &Overlaid, made: &mut [Made]) -> Option<Diagnostic> {
    let crds: BTreeMap<String, Arc<Value>> = made
        .iter()
        .filter_map(|one| Some((meta::name(&one.crd)?.to_owned(), Arc::clone(&one.crd))))
        .collect();
    match patched(root, files, &crds) {
        Ok(patched) => {
            for one in made {
                if let Some(crd) = meta::name(&one.crd).and_then(|name| patched.get(name)) {
                    one.crd = Arc::clone(crd);
                }
            }
            None
        }
        Err(why) => Some(Diagnostic::warning(why, None)),
    }
}

/// Without patches the kustomization changes nothing of a CRD, and large ones cost time.
fn has_patches(root: &Path) -> bool {
    let text = NAMES.iter().find_map(|name| small_text(&root.join(FOLDER).join(name)));
    text.is_some_and(|text| text.lines().any(|line| line.starts_with("patches")))
}

/// The CRDs that differ with the patches of the kustomization, by name; or why these are left out.
fn patched(
    root: &Path,
    files: &Overlaid,
    crds: &BTreeMap<String, Arc<Value>>,
) -> Result<BTreeMap<String, Arc<Value>>, String> {
    if !has_patches(root) {
        return Ok(BTreeMap::new());
    }
    let built = opdev_kustomize::build(files, &root.join(FOLDER)).map_err(|mut error| {
        error.file = shown(root, &error.file);
        format!("the CRDs serve without the patches of {FOLDER}/kustomization.yaml: {error}")
    })?;
    let mut found = BTreeMap::new();
    for mut part in built.parts.into_iter().filter(|part| part.object["kind"] == "CustomResourceDefinition") {
        let Some(name) = meta::name(&part.object).map(str::to_owned) else { continue };
        let Some(crd) = crds.get(&name) else { continue };
        if let Some(spec) = part.object.get_mut("spec").and_then(Value::as_object_mut) {
            match crd.pointer("/spec/conversion") {
                Some(conversion) => _ = spec.insert("conversion".to_owned(), conversion.clone()),
                None => _ = spec.remove("conversion"),
            }
        }
        if part.object != **crd {
            found.insert(name, Arc::new(part.object));
        }
    }
    Ok(found)
}

/// The CRDs of files as the kustomization patches them.
#[derive(Debug, Default)]
pub(crate) struct FilePatches {
    found: Option<BTreeMap<String, Arc<Value>>>,
}

impl FilePatches {
    /// The patches that differ from their files, by name. `changed` are the files that were saved; without
    /// any, all may have changed. The reason why patches are left out goes to `unread`.
    pub(crate) fn read(
        &mut self,
        project: &Project,
        crds: &[(String, String)],
        changed: &[String],
        unread: &mut Vec<(String, String)>,
    ) -> BTreeMap<String, Arc<Value>> {
        let root = &project.root;
        // CRDs of Go types are patched where they are made.
        if !project.types.is_empty() || !has_patches(root) {
            return BTreeMap::new();
        }
        let is_known = !changed.is_empty() && !changed.iter().any(|file| file.starts_with("config/"));
        if let Some(found) = self.found.as_ref().filter(|_| is_known) {
            return found.clone();
        }
        // A file that cannot be read is told of by whoever loads it.
        let all = crds.iter().filter_map(|(_, text)| crd::read(text).ok()).flatten();
        let named = |crd: Value| Some((meta::name(&crd)?.to_owned(), Arc::new(crd)));
        let all: BTreeMap<String, Arc<Value>> = all.filter_map(named).collect();
        let found = match patched(root, &Overlaid::default(), &all) {
            Ok(found) => found,
            Err(why) => {
                unread.push((format!("{FOLDER}/kustomization.yaml"), why));
                return BTreeMap::new();
            }
        };
        self.found.insert(found).clone()
    }
}

fn shown(root: &Path, file: &Path) -> PathBuf {
    let root = root.canonicalize().unwrap_or_else(|_| root.to_owned());
    file.strip_prefix(&root).unwrap_or(file).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;
    use serde_json::json;

    fn crd(ty: &str) -> Arc<Value> {
        Arc::new(json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "carts.shop.example.com"},
            "spec": {"group": "shop.example.com", "names": {"kind": "Cart", "plural": "carts"}, "scope": "Namespaced",
                "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                    "type": "object", "properties": {"config": {"type": ty}}}}}]}}))
    }

    fn made(ty: &str) -> Vec<Made> {
        let (files, places) = (Vec::new(), BTreeMap::new());
        vec![Made { crd: crd(ty), file: "api/v1/cart_types.go".to_owned(), files, places, broken: false }]
    }

    fn project(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        folder
    }

    const TYPE: &str = "/spec/versions/0/schema/openAPIV3Schema/properties/config/type";

    #[test]
    fn patches_of_the_kustomization_count_and_conversion_stays() {
        let patch = "patches:\n- target: { kind: CustomResourceDefinition }\n  patch: |-\n\
            \x20   - { op: replace, path: /spec/versions/0/schema/openAPIV3Schema/properties/config/type, value: object }\n\
            \x20   - { op: add, path: /spec/conversion, value: { strategy: Webhook } }\n";
        let kustomization = format!("resources: [bases/shop.example.com_carts.yaml]\n{patch}");
        let folder = project(&[
            ("config/crd/kustomization.yaml", &kustomization),
            // The committed file is older than the type.
            (
                "config/crd/bases/shop.example.com_carts.yaml",
                "apiVersion: v1\nkind: Old\nmetadata: { name: old }\n",
            ),
        ]);
        let mut made = made("string");
        let said = Patches::default().apply(folder.path(), &mut made);
        assert!(said.is_empty(), "{said:?}");
        assert_eq!(made[0].crd.pointer(TYPE).unwrap(), "object");
        assert_eq!(made[0].crd.pointer("/spec/conversion"), None);
        let broken = kustomization.replace("config/type", "none/type");
        std::fs::write(folder.path().join("config/crd/kustomization.yaml"), broken).unwrap();
        let mut made = self::made("string");
        let said = Patches::default().apply(folder.path(), &mut made);
        assert!(
            said[0].message.contains("serve without the patches of config/crd/kustomization.yaml"),
            "{said:?}"
        );
        assert_eq!(made[0].crd, crd("string"));
    }

    #[test]
    fn crds_in_files_are_patched_too() {
        let patch = "patches:\n- target: { kind: CustomResourceDefinition }\n  patch: |-\n\
            \x20   - { op: replace, path: /spec/versions/0/schema/openAPIV3Schema/properties/config/type, value: object }\n";
        let path = "config/crd/bases/shop.example.com_carts.yaml";
        let text = emit::crd(&super::tests::crd("string"), "").unwrap().text;
        let kustomization = format!("resources: [bases/shop.example.com_carts.yaml]\n{patch}");
        let folder = project(&[
            ("watches.yaml", "[]\n"),
            (path, &text),
            ("config/crd/kustomization.yaml", &kustomization),
        ]);
        let (mut patches, mut unread) = (FilePatches::default(), Vec::new());
        let project = Project::discover(Some(folder.path()), folder.path()).unwrap();
        let crds = [(path.to_owned(), text)];
        let found = patches.read(&project, &crds, &[], &mut unread);
        assert_eq!(found["carts.shop.example.com"].pointer(TYPE).unwrap(), "object");
        std::fs::write(folder.path().join("config/crd/kustomization.yaml"), "patches: [").unwrap();
        let kept = patches.read(&project, &crds, &["charts/a".to_owned()], &mut unread);
        assert!(kept == found && unread.is_empty(), "no file of config has changed");
        assert!(patches.read(&project, &crds, &[], &mut unread).is_empty());
        expect!["the CRDs serve without the patches of config/crd/kustomization.yaml: config/crd/kustomization.yaml:2: yaml: line 1: did not find expected node content"]
        .assert_eq(&unread[0].1);
    }

    #[test]
    fn committed_files_that_a_makefile_has_changed_serve_until_the_type_changes() {
        let path = "config/crd/bases/shop.example.com_carts.yaml";
        let committed = |ty: &str| emit::crd(&crd(ty), "").unwrap().text;
        let makefile = "manifests:\n\tcontroller-gen crd paths=./...\n\t$(LOCALBIN)/yq-v4 -i '.x = 1' config/crd/bases/*.yaml\n";
        let folder = project(&[("Makefile", makefile), (path, &committed("object"))]);
        let mut patches = Patches::default();
        let mut look = |ty: &str| {
            let mut made = made(ty);
            let said = patches.apply(folder.path(), &mut made);
            (made[0].crd.pointer(TYPE).unwrap().as_str().unwrap().to_owned(), said[0].message.clone())
        };
        let (ty, said) = look("string");
        assert_eq!(ty, "object", "{said}");
        expect!["target manifests of the Makefile changes generated CRDs with yq: carts.shop.example.com as committed serve until a type changes"]
        .assert_eq(&said);
        let (ty, said) = look("integer");
        assert_eq!(ty, "integer", "{said}");
        expect!["target manifests of the Makefile changes generated CRDs with yq: the type of carts.shop.example.com has changed, and it serves without that"]
        .assert_eq(&said);
        assert_eq!(look("string").0, "object", "taken back");
        // The Makefile has run again.
        std::fs::write(folder.path().join(path), committed("boolean")).unwrap();
        assert_eq!(look("integer").0, "boolean");
        // Without such a step the type counts.
        std::fs::write(folder.path().join("Makefile"), "manifests:\n\tcontroller-gen crd paths=./...\n")
            .unwrap();
        let mut made = made("string");
        assert!(Patches::default().apply(folder.path(), &mut made).is_empty());
        assert_eq!(made[0].crd, crd("string"));
    }
}
