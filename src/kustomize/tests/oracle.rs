//! Beside `kubectl kustomize`: golden cases, the kustomizations of a folder, and those with random changes.
//!
//! `UPDATE_GOLDEN=1` with `OPDEV_ORACLES` asks kubectl for what the golden cases should give.
//! `OPDEV_KUSTOMIZATIONS` names a folder with projects, such as those of kubebuilder's and the Operator SDK's
//! test data:
//!
//! ```text
//! OPDEV_ORACLES=… OPDEV_KUSTOMIZATIONS=… cargo test --workspace --lib -- --ignored kubectl
//! ```

mod mutate;

use crate::files::{Files, NAMES};
use crate::{build, build_what_can_be};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The disk.
struct Disk;

impl Files for Disk {
    fn real(&self, path: &Path) -> Option<PathBuf> {
        path.canonicalize().ok()
    }

    fn is_folder(&self, path: &Path) -> bool {
        path.is_dir()
    }

    fn read(&self, path: &Path) -> std::io::Result<Vec<u8>> {
        fs::read(path)
    }
}

fn kubectl() -> PathBuf {
    PathBuf::from(std::env::var_os("OPDEV_ORACLES").expect("OPDEV_ORACLES names no folder")).join("kubectl")
}

/// The output of kubectl; an error as its text.
fn theirs(folder: &Path) -> Result<String, String> {
    let done = Command::new(kubectl()).arg("kustomize").arg(folder).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    if done.status.success() { Ok(text(done.stdout)) } else { Err(text(done.stderr)) }
}

fn ours(folder: &Path) -> Result<String, String> {
    build(&Disk, folder).map(|built| built.to_yaml()).map_err(|error| error.to_string())
}

/// The first line that differs, with what stands around it.
fn difference(ours: &str, theirs: &str) -> String {
    let (a, b): (Vec<&str>, Vec<&str>) = (ours.lines().collect(), theirs.lines().collect());
    let at = (0..a.len().max(b.len())).find(|at| a.get(*at) != b.get(*at)).unwrap_or(0);
    let show =
        |lines: &[&str]| lines[at.saturating_sub(12).min(lines.len())..(at + 6).min(lines.len())].join("\n");
    format!("line {}\n--- ours\n{}\n--- kubectl\n{}", at + 1, show(&a), show(&b))
}

fn folders(root: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![root.to_owned()];
    while let Some(folder) = open.pop() {
        if NAMES.iter().any(|name| folder.join(name).is_file()) {
            found.push(folder.clone());
        }
        open.extend(
            fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()),
        );
    }
    found.sort();
    found
}

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/kustomize")
}

#[test]
fn the_golden_cases_give_what_kubectl_gives() {
    let mut cases: Vec<PathBuf> =
        fs::read_dir(golden()).unwrap().map(|entry| entry.unwrap().path()).collect();
    cases.sort();
    assert!(cases.len() > 8, "{} cases", cases.len());
    for case in cases {
        let wanted = case.join("expected.yaml");
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            fs::write(&wanted, theirs(&case.join("in")).unwrap()).unwrap();
        }
        let (ours, theirs) = (ours(&case.join("in")).unwrap(), fs::read_to_string(&wanted).unwrap());
        assert!(ours == theirs, "{}: {}", case.display(), difference(&ours, &theirs));
    }
}

#[test]
#[ignore = "needs OPDEV_ORACLES and OPDEV_KUSTOMIZATIONS"]
fn the_kustomizations_of_projects_give_what_kubectl_gives() {
    let root = PathBuf::from(
        std::env::var_os("OPDEV_KUSTOMIZATIONS").expect("OPDEV_KUSTOMIZATIONS names no folder"),
    );
    let folders = folders(&root);
    let mut wrong = Vec::new();
    for folder in &folders {
        match (ours(folder), theirs(folder)) {
            (Ok(ours), Ok(theirs)) if ours == theirs => {}
            (Ok(ours), Ok(theirs)) => {
                wrong.push(format!("{}: {}", folder.display(), difference(&ours, &theirs)));
            }
            (Err(_), Err(_)) => {}
            (ours, theirs) => {
                wrong.push(format!("{}: ours {:?}, theirs {:?}", folder.display(), ours.err(), theirs.err()));
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), folders.len(), wrong.join("\n\n"));
    println!("{} kustomizations", folders.len());
}

#[test]
#[ignore = "needs OPDEV_ORACLES and OPDEV_KUSTOMIZATIONS"]
fn changed_kustomizations_give_what_kubectl_gives() {
    let root = PathBuf::from(
        std::env::var_os("OPDEV_KUSTOMIZATIONS").expect("OPDEV_KUSTOMIZATIONS names no folder"),
    );
    let number = |name: &str, or: u64| std::env::var(name).map_or(or, |text| text.parse().unwrap());
    let (first, count) = (number("OPDEV_FIRST", 1), number("OPDEV_CASES", 300));
    let scratch = std::env::temp_dir().join(format!("opdev-kustomize-{}", std::process::id()));
    let (mut wrong, mut built, mut refused) = (Vec::new(), 0, 0);
    let starts = folders(&root);
    // Some changes do not fit each other; those are refused by both.
    for seed in first.. {
        if built == count || wrong.len() > 20 {
            break;
        }
        let _ = fs::remove_dir_all(&scratch);
        let (folder, changes) = mutate::project(&starts, &scratch, seed);
        match (ours(&folder), theirs(&folder)) {
            (Ok(ours), Ok(theirs)) if ours == theirs => built += 1,
            (Ok(ours), Ok(theirs)) => {
                wrong.push(format!("seed {seed} ({changes}): {}", difference(&ours, &theirs)));
            }
            (Err(why), Err(_)) => {
                refused += 1;
                println!("seed {seed} ({changes}) is refused: {why}");
                assert!(refused < count, "too few can be built at all");
            }
            (ours, theirs) => wrong.push(format!(
                "seed {seed} ({changes}): ours {:?}, theirs {:?}",
                ours.err(),
                theirs.err()
            )),
        }
    }
    let _ = fs::remove_dir_all(&scratch);
    println!("{built} built alike, {refused} refused alike, {} not alike", wrong.len());
    assert!(wrong.is_empty(), "{} of {count}:\n{}", wrong.len(), wrong.join("\n\n"));
}

#[test]
fn what_cannot_be_built_is_said_with_its_place() {
    let folder = std::env::temp_dir().join(format!("opdev-kustomize-errors-{}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(folder.join("below")).unwrap();
    let folder = folder.canonicalize().unwrap();
    fs::write(folder.join("a.yaml"), "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n").unwrap();
    fs::write(folder.join("below/kustomization.yaml"), "resources: [../]\n").unwrap();
    let said = |text: &str| {
        fs::write(folder.join("kustomization.yaml"), text).unwrap();
        let error = build(&Disk, &folder).unwrap_err().to_string();
        error.replace(&format!("{}/", folder.display()), "").replace(&folder.display().to_string(), ".")
    };
    for (text, wanted) in [
        (
            "resources:\n- a.yaml\n- b.yaml\n",
            "kustomization.yaml:3: resources[1]: there is no file or folder b.yaml",
        ),
        (
            "resource: [a.yaml]\n",
            "kustomization.yaml:1: kustomize knows no field resource (did you mean resources?)",
        ),
        (
            "resources: [a.yaml]\nvalidators:\n- a.yaml\n",
            "kustomization.yaml:2: validators: opdev runs no validators (let `kubectl kustomize` build it)",
        ),
        (
            "resources: [a.yaml]\nvars:\n- name: X\n  objref: { apiVersion: v1, kind: ConfigMap, name: b }\n",
            "kustomization.yaml: objref of the var X means no object",
        ),
        (
            "resources: [a.yaml]\nvars:\n- name: X\n  objref: { apiVersion: v1, kind: ConfigMap, name: a }\n  \
             fieldref: { fieldpath: data.none }\n",
            "kustomization.yaml: ConfigMap a has no field data.none, which the var X stands for",
        ),
        (
            "resources: [a.yaml]\nvars:\n- { name: X, objref: { apiVersion: v1, kind: ConfigMap, name: a } }\n\
             - { name: X, objref: { apiVersion: v1, kind: ConfigMap, name: a } }\n",
            "kustomization.yaml:4: vars[1]: the var X is there twice",
        ),
        (
            "resources:\n- https://example.com/a.yaml\n",
            "kustomization.yaml:2: resources[0]: https://example.com/a.yaml would have to be fetched, which opdev does not \
             do (copy it into the project, or let `kubectl kustomize` build it)",
        ),
        (
            "resources: [/etc/passwd]\n",
            "kustomization.yaml:1: resources[0]: /etc/passwd is not below the folder of this kustomization, and kustomize \
             reads no file outside of it",
        ),
        (
            "resources: [below]\n",
            "below/kustomization.yaml:1: resources[0]: ../ leads back to ., which is being built",
        ),
        ("resources: [a.yaml, a.yaml]\n", "a.yaml: ConfigMap a is there twice (in a.yaml)"),
        (
            "resources: [a.yaml]\npatches:\n- patch: '[{\"op\": \"remove\", \"path\": \"/x\"}]'\n",
            "kustomization.yaml:3: patches[0]: a JSON patch needs a target",
        ),
        ("", "kustomization.yaml: it is empty, or no map"),
        ("namePrefix: 1\n", "kustomization.yaml:1: namePrefix: invalid type: integer `1`, expected a string"),
    ] {
        assert_eq!(said(text), wanted, "{text}");
    }
    let text = "resources: [a.yaml, b.yaml]\nnamePrefix: x-\nvalidators: [x]\nother: 1\n";
    fs::write(folder.join("kustomization.yaml"), text).unwrap();
    let built = build_what_can_be(&Disk, &folder, &["ConfigMap"]).unwrap();
    let left_out: Vec<u32> = built.left_out.iter().map(|error| error.line).collect();
    assert_eq!((built.parts.len(), left_out), (1, vec![3, 4, 1]));
    assert_eq!(built.parts[0].object["metadata"]["name"], "x-a");
    assert_eq!(built.parts[0].first_name, "a");
    assert!(build_what_can_be(&Disk, &folder, &["Deployment"]).unwrap().parts.is_empty());
    fs::remove_dir_all(&folder).unwrap();
}
