//! The image of the operator: put into a kustomization as `kustomize edit set image` does, and checked before
//! anything is applied. Pure.

use super::input::{Say, shown};
use anyhow::{Result, anyhow, bail};
use opdev_event::words;
use opdev_object::go::duration::non_negative;
use opdev_object::meta;
use opdev_object::yaml::{self, Kind};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Duration;

/// The name that scaffolded Deployments use until somebody names an image.
const PLACEHOLDER: &str = "controller";

/// Where `make deploy` sets the image, and what the manifests call it there.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Slot {
    /// A folder with a kustomization, below the project's root.
    pub(super) folder: String,
    /// The name of the image in it.
    pub(super) name: String,
}

impl Default for Slot {
    fn default() -> Self {
        Slot { folder: "config/manager".to_owned(), name: PLACEHOLDER.to_owned() }
    }
}

impl Slot {
    /// The `kustomize edit set image` of a Makefile: that of the target `deploy`, else the first; that of
    /// kubebuilder's scaffold where there is none.
    pub(super) fn of_makefile(text: &str) -> Slot {
        let mut first = None;
        let mut is_deploy = false;
        for line in text.lines() {
            if !line.starts_with(['\t', ' ', '#']) && !line.is_empty() {
                is_deploy = line.starts_with("deploy:");
            }
            let Some(slot) = Slot::of_line(line) else { continue };
            if is_deploy {
                return slot;
            }
            first = first.or(Some(slot));
        }
        first.unwrap_or_default()
    }

    /// `cd FOLDER && KUSTOMIZE edit set image NAME=REFERENCE`
    fn of_line(line: &str) -> Option<Slot> {
        let (before, after) = line.split_once("edit set image ")?;
        let (name, _) = after.trim_start().split_once('=')?;
        let (_, place) = before.split_once("cd ")?;
        let folder = place.split("&&").next()?.trim();
        let is_plain = |text: &str| !text.is_empty() && !text.contains(['$', ' ', '"', ';']);
        (is_plain(name) && is_plain(folder))
            .then(|| Slot { folder: folder.to_owned(), name: name.to_owned() })
    }

    /// The name of the image that is meant, and the reference that takes its place: `NAME=REFERENCE`, or a
    /// reference alone.
    pub(super) fn named<'a>(&'a self, image: &'a str) -> (&'a str, &'a str) {
        image.split_once('=').unwrap_or((&self.name, image))
    }
}

/// A kustomization with another reference for an image. Other lines stay as they are.
pub(super) fn set(text: &str, (old, reference): (&str, &str)) -> Result<String> {
    let (name, tag, digest) = split(reference)?;
    let mut entry = json!({ "name": old, "newName": name });
    if !digest.is_empty() {
        meta::put(&mut entry, &["digest"], digest);
    } else if !tag.is_empty() {
        meta::put(&mut entry, &["newTag"], tag);
    }
    let node = yaml::parse(text).map_err(|error| anyhow!("{error}"))?;
    let value = yaml::to_json(&node).map_err(|error| anyhow!("{error}"))?;
    let mut images = value["images"].as_array().cloned().unwrap_or_default();
    match images.iter_mut().find(|image| image["name"] == old) {
        Some(image) => *image = entry,
        None => images.push(entry),
    }
    let block = yaml::to_string(&json!({ "images": images }));
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let Some((key, _)) = node.entry("images") else {
        let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
        return Ok(format!("{text}{end}{block}"));
    };
    let Kind::Mapping(pairs) = &node.kind else { bail!("it is no map") };
    // The list ends before the next key, and before the comments of that one.
    let next = pairs.iter().map(|(other, _)| other.line).filter(|line| *line > key.line).min();
    let from = (key.line as usize).saturating_sub(1);
    let mut to = next.map_or(lines.len(), |line| line as usize - 1);
    while to > from + 1 && (lines[to - 1].trim().is_empty() || lines[to - 1].starts_with('#')) {
        to -= 1;
    }
    Ok(format!("{}{block}{}", lines[..from].concat(), lines[to..].concat()))
}

/// Name, tag and digest of a reference.
fn split(reference: &str) -> Result<(&str, &str, &str)> {
    let is_empty = reference.trim().is_empty() || reference.contains(char::is_whitespace);
    if is_empty {
        bail!("{reference:?} is no reference of an image");
    }
    let (rest, digest) = reference.split_once('@').unwrap_or((reference, ""));
    let slash = rest.rfind('/').map_or(0, |at| at + 1);
    Ok(match rest[slash..].find(':') {
        Some(at) => (&rest[..slash + at], &rest[slash + at + 1..], digest),
        None => (rest, "", digest),
    })
}

fn pods(objects: &[Value]) -> impl Iterator<Item = (&Value, &Value)> {
    objects.iter().filter_map(|object| Some((object, object.pointer("/spec/template/spec")?)))
}

fn containers(pod: &Value) -> impl Iterator<Item = &Value> {
    let lists = ["containers", "initContainers"];
    lists.into_iter().flat_map(|list| pod[list].as_array().into_iter().flatten())
}

/// Refuses where no container has the image that was asked for: the kustomization has no such image then.
pub(super) fn check_taken(objects: &[Value], (name, reference): (&str, &str)) -> Result<()> {
    let images: BTreeSet<&str> = pods(objects)
        .flat_map(|(_, pod)| containers(pod))
        .filter_map(|container| container["image"].as_str())
        .collect();
    if images.contains(reference) {
        return Ok(());
    }
    let there: Vec<&str> = images.into_iter().collect();
    bail!(
        "no container has the image {name}, so --image changes nothing\n  where: the Deployments of config/default have {}\n  \
         to do: name the image that is meant: --image NAME={reference}",
        if there.is_empty() { "no image".to_owned() } else { there.join(", ") }
    )
}

/// Refuses the image of a scaffold, which no registry has.
pub(super) fn check(objects: &[Value]) -> Result<()> {
    for (object, pod) in pods(objects) {
        let is_placeholder = |container: &Value| {
            matches!(container["image"].as_str(), Some("controller:latest" | "controller"))
        };
        if containers(pod).any(is_placeholder) {
            bail!(
                "{} still has the image controller:latest, which no registry has\n  to do: name the operator's image: \
                 `opdev deploy --image REGISTRY/NAME:TAG`; --save keeps it in the files",
                shown(object)
            );
        }
    }
    Ok(())
}

/// Several replicas without an election would all reconcile at once.
pub(super) fn warn_of_replicas(objects: &[Value], say: Say<'_>) {
    for (object, pod) in pods(objects) {
        let replicas = object["spec"]["replicas"].as_u64().unwrap_or(1);
        let is_manager = object["kind"] == "Deployment";
        let elects = containers(pod).any(|container| {
            words_of(container).any(|word| {
                let name = word.trim_start_matches('-').split('=').next().unwrap_or_default();
                matches!(name, "leader-elect" | "enable-leader-election") && !word.ends_with("=false")
            })
        });
        if is_manager && replicas > 1 && !elects {
            say(&format!(
                "warning: {} has {replicas} replicas and no --leader-elect, so all of them would reconcile at once",
                shown(object)
            ));
        }
    }
}

/// The words of a container's command line.
fn words_of(container: &Value) -> impl Iterator<Item = &str> {
    let lists = ["command", "args"].into_iter();
    lists.flat_map(|list| container[list].as_array().into_iter().flatten()).filter_map(Value::as_str)
}

/// Reconciles have the time that the operator's flag gives them only where the kubelet lets the pod live that
/// long.
pub(super) fn warn_of_grace(objects: &[Value], say: Say<'_>) {
    const FLAG: &str = "graceful-shutdown-timeout";
    /// The grace period of Kubernetes for a pod that sets none.
    const DEFAULT: u64 = 30;
    for (object, pod) in pods(objects) {
        let grace = pod["terminationGracePeriodSeconds"].as_u64().unwrap_or(DEFAULT);
        for container in containers(pod) {
            let words: Vec<&str> = words_of(container).map(|word| word.trim_start_matches('-')).collect();
            let given = words.iter().enumerate().find_map(|(at, word)| match word.strip_prefix(FLAG)? {
                "" => words.get(at + 1).copied(),
                rest => rest.strip_prefix('='),
            });
            let Some(timeout) = given.and_then(|text| non_negative(text).ok()) else { continue };
            if timeout >= Duration::from_secs(grace) {
                say(&format!(
                    "warning: {} has --{FLAG}={}, but its pods are killed after {grace} s\n  to do: raise \
                     terminationGracePeriodSeconds in the manifests, or lower the flag",
                    shown(object),
                    words::visible_line(given.unwrap_or_default())
                ));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;
    use std::sync::Mutex;

    #[test]
    fn a_pod_that_is_killed_before_its_reconciles_may_end_is_told_of() {
        let said = |args: Value, grace: Value| {
            let pod = json!({ "containers": [{ "image": "op:v1", "args": args }], "terminationGracePeriodSeconds": grace });
            let object = json!({ "kind": "Deployment", "metadata": { "name": "m" }, "spec": { "template": { "spec": pod } } });
            let lines = Mutex::new(Vec::new());
            warn_of_grace(&[object], &|line: &str| lines.lock().unwrap().push(line.to_owned()));
            lines.into_inner().unwrap().join("\n")
        };
        let short = said(json!(["--graceful-shutdown-timeout=25s"]), json!(10));
        expect![[r#"
            warning: deployment/m has --graceful-shutdown-timeout=25s, but its pods are killed after 10 s
              to do: raise terminationGracePeriodSeconds in the manifests, or lower the flag"#]]
        .assert_eq(&short);
        expect![[r#"
            warning: deployment/m has --graceful-shutdown-timeout=1m, but its pods are killed after 30 s
              to do: raise terminationGracePeriodSeconds in the manifests, or lower the flag"#]]
        .assert_eq(&said(json!(["--graceful-shutdown-timeout", "1m"]), Value::Null));
        assert_eq!(said(json!(["--graceful-shutdown-timeout=25s"]), json!(30)), "");
        assert_eq!(said(json!(["--leader-elect"]), json!(10)), "");
    }

    #[test]
    fn an_image_is_set_as_kustomize_edit_does() {
        let text = "# first\nresources:\n- manager.yaml\nimages:\n- name: other\n  newTag: a\n- name: controller\n  newName: \
                    old\n  newTag: b\n\n# last\nnamePrefix: x-\n";
        assert_eq!(
            set(text, (PLACEHOLDER, "host:5000/a/op:v2")).unwrap(),
            "# first\nresources:\n- manager.yaml\nimages:\n- name: other\n  newTag: a\n- name: controller\n  newName: \
             host:5000/a/op\n  newTag: v2\n\n# last\nnamePrefix: x-\n"
        );
        assert_eq!(
            set("resources: [a]", (PLACEHOLDER, "op@sha256:00")).unwrap(),
            "resources: [a]\nimages:\n- digest: sha256:00\n  name: controller\n  newName: op\n"
        );
        assert_eq!(
            set("images: []\na: b\n", (PLACEHOLDER, "op")).unwrap(),
            "images:\n- name: controller\n  newName: op\na: b\n"
        );
        assert!(set("a: b\n", (PLACEHOLDER, "")).is_err());
        assert_eq!(
            set("images:\n- name: a/b\n  newTag: v1\n", ("a/b", "op:v2")).unwrap(),
            "images:\n- name: a/b\n  newName: op\n  newTag: v2\n"
        );
    }

    #[test]
    fn the_makefile_says_where_the_image_is_set() {
        let slot = |folder: &str, name: &str| Slot { folder: folder.to_owned(), name: name.to_owned() };
        let go = "build:\n\tcd other && kustomize edit set image x=y\n\ndeploy: manifests\n\tcd config/components/manager && \
                  $(KUSTOMIZE) edit set image controller=${IMG}\n";
        assert_eq!(Slot::of_makefile(go), slot("config/components/manager", "controller"));
        let other =
            "dev-deploy:\n\tcd config/manager && kustomize edit set image fluxcd/source-controller=$(IMG)\n";
        let found = Slot::of_makefile(other);
        assert_eq!(found, slot("config/manager", "fluxcd/source-controller"));
        assert_eq!(found.named("op:v1"), ("fluxcd/source-controller", "op:v1"));
        assert_eq!(found.named("a/b=op:v1"), ("a/b", "op:v1"));
        let unclear = "deploy:\n\tcd $(DIR) && kustomize edit set image controller=${IMG}\n";
        assert_eq!(Slot::of_makefile(unclear), slot("config/manager", "controller"));
    }

    #[test]
    fn the_image_of_a_scaffold_is_refused() {
        let with = |image: &str| {
            json!({ "kind": "Deployment", "metadata": { "name": "m" },
                    "spec": { "template": { "spec": { "containers": [{ "image": image }] } } } })
        };
        expect![[r#"
            deployment/m still has the image controller:latest, which no registry has
              to do: name the operator's image: `opdev deploy --image REGISTRY/NAME:TAG`; --save keeps it in the files"#]]
        .assert_eq(&check(&[with("controller:latest")]).unwrap_err().to_string());
        assert!(check(&[with("example.com/controller:latest")]).is_ok());
        assert!(check_taken(&[with("op:v1")], (PLACEHOLDER, "op:v1")).is_ok());
        let refused = check_taken(&[with("mine:v0")], (PLACEHOLDER, "op:v1")).unwrap_err().to_string();
        expect![[r#"
            no container has the image controller, so --image changes nothing
              where: the Deployments of config/default have mine:v0
              to do: name the image that is meant: --image NAME=op:v1"#]]
        .assert_eq(&refused);
    }
}
