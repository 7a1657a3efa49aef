//! The CRDs whose versions the program converts, as the project deploys them: its kustomization is built
//! where patches are about conversion, for they may say so in many ways. Where it cannot be built, patches
//! and files that name a CRD whole count.

use super::kustomization::{ProjectFiles, documents, is_none, items, shown, texts};
use super::webhooks::objects;
use opdev_kustomize::build_what_can_be;
use opdev_object::yaml;
use opdev_os::read::Walk;
use opdev_os::small_file::small_text;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

const CRD: &str = "CustomResourceDefinition";
/// The folder with the patches of CRDs, and that of the CRDs themselves.
const FOLDER: &str = "config/crd";
const BASES: &str = "bases";
/// Folders whose kustomizations have the CRDs as they are deployed.
const BUILT: [&str; 2] = ["config/default", FOLDER];
/// Where patches lie, and how many folders deep.
const CONFIG: &str = "config";
const FOLDERS: usize = 4;

/// Their names, and why they are read from patches alone, where they are.
pub(super) fn names(root: &Path, manifests: Option<&Path>) -> (Vec<String>, Option<String>) {
    let named = |objects: Vec<Value>| -> BTreeSet<String> {
        let name = |object: &Value| object["metadata"]["name"].as_str().map(str::to_owned);
        objects.iter().filter(|object| converts(object)).filter_map(name).collect()
    };
    let in_files = || {
        let bases = root.join(FOLDER).join(BASES);
        named(crd_patches(root).into_iter().chain(objects(&bases)).collect()).into_iter().collect()
    };
    let mut places = manifests.into_iter().chain([Path::new(CONFIG)]);
    if !places.any(|place| is_patched(&root.join(place))) {
        return (in_files(), None);
    }
    let mut unbuilt = None;
    for folder in manifests.into_iter().chain(BUILT.map(Path::new)) {
        match build_what_can_be(&ProjectFiles, &root.join(folder), &[CRD]) {
            Ok(built) => {
                let crds: Vec<Value> = built.parts.into_iter().map(|part| part.object).collect();
                if crds.iter().any(|object| object["kind"] == CRD) {
                    return (named(crds).into_iter().collect(), None);
                }
            }
            Err(error) if is_none(&error) => {}
            Err(error) => {
                unbuilt.get_or_insert_with(|| {
                    format!("{} cannot be built: {}", folder.display(), shown(root, &error))
                });
            }
        }
    }
    (in_files(), unbuilt)
}

fn converts(object: &Value) -> bool {
    object["kind"] == CRD && object["spec"]["conversion"]["strategy"] == "Webhook"
}

/// Returns true if a file beside the CRDs speaks of conversion.
fn is_patched(config: &Path) -> bool {
    let mut walk = Walk::from(config);
    let mut open: Vec<(PathBuf, usize)> = vec![(config.to_owned(), 0)];
    while let Some((folder, depth)) = open.pop() {
        for path in walk.paths(&folder) {
            if path.is_dir() {
                let is_base = path.file_name().is_some_and(|name| name == BASES);
                if !is_base && !path.is_symlink() && depth < FOLDERS {
                    open.push((path, depth + 1));
                }
            } else if path.extension().is_some_and(|end| end == "yaml" || end == "yml" || end == "json")
                && small_text(&path).is_some_and(|text| text.contains("conversion"))
            {
                return true;
            }
        }
    }
    false
}

/// The patches of CRDs. Of a kustomization those that it names: scaffolds leave others beside them.
fn crd_patches(root: &Path) -> Vec<Value> {
    let folder = root.join("config/crd");
    let mut files = ["kustomization.yaml", "kustomization.yml", "Kustomization"].iter();
    let Some(text) = files.find_map(|name| small_text(&folder.join(name))) else {
        return objects(&folder.join("patches"));
    };
    let kustomization: Value = yaml::from_str(&text).unwrap_or_default();
    let (mut paths, mut found) = (Vec::new(), Vec::new());
    for patch in items(&kustomization["patches"]) {
        paths.extend(patch["path"].as_str());
        found.extend(patch["patch"].as_str().into_iter().flat_map(documents));
    }
    for patch in texts(&kustomization["patchesStrategicMerge"]) {
        match patch.contains('\n') {
            true => found.extend(documents(patch)),
            false => paths.push(patch),
        }
    }
    let inside = |path: &&&str| {
        Path::new(path).components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir))
    };
    let texts = paths.iter().filter(inside).filter_map(|path| small_text(&folder.join(path)));
    found.extend(texts.flat_map(|text| documents(&text).collect::<Vec<_>>()));
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_converter_is_known_by_whichever_patch_the_kustomization_has() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let write = |path: &str, text: &str| {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let crd = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: as.b.c}\n\
                   spec: {group: b.c, names: {kind: A, plural: as}, versions: [{name: v1}]}\n";
        write("config/crd/bases/as.yaml", crd);
        let patch = "- {op: add, path: /spec/conversion, value: {strategy: Webhook}}\n";
        write("config/crd/patches/as.yaml", patch);
        let target =
            "patches:\n- {path: patches/as.yaml, target: {kind: CustomResourceDefinition, name: as.b.c}}\n";
        write("config/crd/kustomization.yaml", &format!("resources: [bases/as.yaml]\n{target}"));
        assert_eq!(names(root, None), (vec!["as.b.c".to_owned()], None));
        // A patch that the kustomization does not name is none.
        write("config/crd/kustomization.yaml", "resources: [bases/as.yaml]\n");
        assert_eq!(names(root, None), (Vec::new(), None));
        // The outermost kustomization has the last word.
        let outer = format!("resources: [../crd]\n{}", target.replace("patches/as", "as"));
        write("config/default/kustomization.yaml", &outer);
        write("config/default/as.yaml", patch);
        assert_eq!(names(root, None), (vec!["as.b.c".to_owned()], None));
        assert_eq!(names(root, Some(Path::new("config/crd"))), (Vec::new(), None));
        write("config/default/kustomization.yaml", "resources: [");
        write("config/crd/kustomization.yaml", "resources: {");
        let (found, unbuilt) = names(root, None);
        assert!(
            found.is_empty()
                && unbuilt.unwrap().starts_with("config/default cannot be built: config/default")
        );
    }
}
