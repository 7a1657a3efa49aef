//! Scenarios that follow from what an operator makes, and deletions in the middle of a reconcile. Each has a small
//! operator with the planted bug, and its twin without, which must be quiet.

use super::program::{OPERATOR, with_operator};
use super::{told, torture};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

/// The part of the operator that reconciles; `RIGHT` is true for the twin.
const STRANGER: &str = r#"
def reconcile(gadget):
    meta = gadget["metadata"]
    if meta.get("deletionTimestamp"):
        return
    path = "/api/v1/namespaces/%s/configmaps" % meta["namespace"]
    owner = {"apiVersion": gadget["apiVersion"], "kind": gadget["kind"], "name": meta["name"], "uid": meta["uid"]}
    name = meta["name"] + "-data"
    body = {"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": name, "ownerReferences": [owner]}, "data": {"size": "1"}}
    try:
        found = call("GET", path + "/" + name)
    except urllib.error.HTTPError as error:
        if error.code != 404:
            raise
        call("POST", path, body)
        return
    owners = [one["uid"] for one in found["metadata"].get("ownerReferences", [])]
    if RIGHT and meta["uid"] not in owners:
        print("it belongs to somebody else", flush=True)
    elif found.get("data") != body["data"] or meta["uid"] not in owners:
        call("PUT", path + "/" + name, body)
"#;

const NAMES: &str = r#"
import hashlib

def reconcile(gadget):
    meta = gadget["metadata"]
    if meta.get("deletionTimestamp"):
        return
    path = "/api/v1/namespaces/%s/services" % meta["namespace"]
    owner = {"apiVersion": gadget["apiVersion"], "kind": gadget["kind"], "name": meta["name"], "uid": meta["uid"]}
    name = meta["name"]
    if RIGHT and (len(name) > 40 or "." in name or name[0].isdigit()):
        name = "g-" + hashlib.sha1(name.encode()).hexdigest()[:8]
    body = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name + "-read-replicas", "ownerReferences": [owner]},
            "spec": {"ports": [{"port": 80}]}}
    try:
        made(path, body["metadata"]["name"], body)
    except urllib.error.HTTPError as error:
        print("no service:", error, flush=True)
"#;

/// A pod for each image. The bug: while a pod is not ready, nothing is done.
const ROLLOUT: &str = r#"
def reconcile(gadget):
    meta = gadget["metadata"]
    if meta.get("deletionTimestamp"):
        return
    path = "/api/v1/namespaces/%s/pods" % meta["namespace"]
    owner = {"apiVersion": gadget["apiVersion"], "kind": gadget["kind"], "name": meta["name"], "uid": meta["uid"]}
    image = gadget["spec"].get("image", "none")
    name = meta["name"] + "-" + image.split(":")[-1]
    others = []
    for pod in call("GET", path)["items"]:
        if pod["metadata"]["name"].startswith(meta["name"] + "-") and pod["metadata"]["name"] != name:
            others.append(pod)
    ready = [condition["status"] for pod in others for condition in pod["status"].get("conditions", [])
             if condition["type"] == "Ready"]
    if not RIGHT and "False" in ready:
        print("a rollout is under way", flush=True)
        return
    for pod in others:
        if not pod["metadata"].get("deletionTimestamp"):
            call("DELETE", path + "/" + pod["metadata"]["name"])
    made(path, name, {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "ownerReferences": [owner]},
                      "spec": {"containers": [{"name": "main", "image": image}]}})
"#;

/// A ConfigMap that nothing owns, and a finalizer that deletes it. The bug: the finalizer comes too late.
const EARLY: &str = r#"
def reconcile(gadget):
    meta = gadget["metadata"]
    maps = "/api/v1/namespaces/%s/configmaps" % meta["namespace"]
    own = "/apis/toys.example.com/v1alpha1/namespaces/%s/gadgets/%s" % (meta["namespace"], meta["name"])
    name = meta["name"] + "-data"
    def finalizers(all):
        try:
            call("PATCH", own, {"metadata": {"finalizers": all}})
        except urllib.error.HTTPError as error:
            if error.code != 404:
                raise
    if meta.get("deletionTimestamp"):
        if meta.get("finalizers"):
            try:
                call("DELETE", maps + "/" + name)
            except urllib.error.HTTPError as error:
                if error.code != 404:
                    raise
            finalizers([])
        return
    if RIGHT and not meta.get("finalizers"):
        finalizers(["toys.example.com/data"])
    made(maps, name, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {}})
    if not RIGHT and not meta.get("finalizers"):
        finalizers(["toys.example.com/data"])
"#;

/// An operator whose gadgets have a size and an image.
fn project(reconcile: &str, right: bool) -> (tempfile::TempDir, PathBuf) {
    let (head, rest) = OPERATOR.split_once("def reconcile(gadget):").unwrap();
    let (_, tail) = rest.split_once("\nGADGETS = ").unwrap();
    let plain = r#""Content-Type", "application/json""#;
    assert!(head.contains(plain));
    let head = head.replace(
        plain,
        r#""Content-Type", "application/merge-patch+json" if method == "PATCH" else "application/json""#,
    );
    let flag = if right { "True" } else { "False" };
    let operator = format!("{head}\nRIGHT = {flag}\n{reconcile}\nGADGETS = {tail}");
    let (folder, root) = with_operator(&operator, "  command: [python3, operator.py]\n");
    let definition = root.join("config/crd/gadgets.yaml");
    let text = fs::read_to_string(&definition).unwrap();
    let with_image = text.replace(
        "properties: {size: {type: integer}}",
        "properties: {size: {type: integer}, image: {type: string}}",
    );
    assert_ne!(text, with_image);
    fs::write(definition, with_image).unwrap();
    let sample = root.join("config/samples/gadget.yaml");
    let text = fs::read_to_string(&sample).unwrap();
    fs::write(sample, text.replace("{size: 1}", "{size: 1, image: 'toys/gadget:7'}")).unwrap();
    (folder, root)
}

/// Runs the operator with the bug, which has to say all of this, and its twin, which has to be quiet. Both run at
/// once: most of the time is waiting for a program to be quiet.
fn judged(reconcile: &str, args: &[&str], says: &[&str]) {
    let run = |right: bool| {
        let (folder, root) = project(reconcile, right);
        let output = torture(&root, &[args, &["--parallel", "4"]].concat());
        let text = told(&output);
        assert_eq!(output.status.code(), Some(i32::from(!right)), "{text}");
        let all = says.iter().all(|words| text.contains(words));
        assert_eq!(all, !right, "{says:?} in {text}");
        if !right && reconcile == STRANGER {
            again(&root);
        }
        drop(folder);
    };
    std::thread::scope(|scope| {
        let twin = scope.spawn(|| run(true));
        run(false);
        twin.join().unwrap();
    });
}

/// The file of the finding shows it again.
fn again(root: &Path) {
    let output = torture(root, &["--replay", ".opdev/torture/1.yaml"]);
    assert_eq!(output.status.code(), Some(1), "{}", told(&output));
    assert!(!told(&output).contains("none of this"), "{}", told(&output));
}

#[test]
#[cfg_attr(not(python), ignore = "needs python3")]
fn an_object_of_somebody_else_that_is_taken_is_found() {
    judged(
        STRANGER,
        &["--scenario", "stranger"],
        &[
            "ConfigMap default/one-data of somebody else got Gadget one as its owner, and goes with it",
            "steps         somebody else makes ConfigMap one-data · apply Gadget one",
            "fix           look before you write",
        ],
    );
}

#[test]
#[cfg_attr(not(python), ignore = "needs python3")]
fn names_that_are_too_long_for_children_are_found_with_what_the_api_server_said() {
    judged(
        NAMES,
        &["--scenario", "names", "--level", "quick"],
        &[
            "Gadget with a name of 52 letters: the API server said: Service",
            "has 0 Service, with a plain name it has 1",
        ],
    );
}

#[test]
#[cfg_attr(not(python), ignore = "needs python3")]
fn names_that_seldom_work_are_told_as_notes() {
    let (_folder, root) = project(NAMES, true);
    // Short enough, but not for 63 letters.
    let operator = fs::read_to_string(root.join("operator.py")).unwrap();
    let some = operator.replace("if RIGHT and (len(name) > 40", "if len(name) < 60 and (len(name) > 40");
    assert_ne!(operator, some);
    fs::write(root.join("operator.py"), some).unwrap();
    let output = torture(&root, &["--scenario", "names"]);
    let text = told(&output);
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(
        text.contains("note: names that seldom work of") && text.contains("a name of 63 letters"),
        "{text}"
    );
}

#[test]
#[cfg_attr(not(python), ignore = "needs python3")]
fn a_pod_that_never_starts_and_holds_up_the_way_back_is_found() {
    judged(
        ROLLOUT,
        &["--scenario", "bad-rollout"],
        &[
            "Pod default/one-7 is missing",
            "Pod default/one-8 is left over",
            "no pod started whose .spec.containers[].image is toys/gadget:8",
        ],
    );
}

#[test]
#[cfg_attr(not(python), ignore = "needs python3")]
fn a_finalizer_that_comes_after_the_first_child_is_found() {
    judged(
        EARLY,
        &["--scenario", "recreate", "--only", "deleted-early", "--level", "quick"],
        &[
            "ConfigMap default/one-data is left over",
            "the custom resource was deleted right after create configmaps default/one-data",
        ],
    );
}

#[test]
#[cfg_attr(not(python), ignore = "needs python3")]
fn checks_are_counted_as_plans_and_named_by_json() {
    let (_folder, root) = project(STRANGER, true);
    let output = torture(&root, &["--scenario", "stranger", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", told(&output));
    let text = String::from_utf8(output.stdout).unwrap();
    let events: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |name: &str| events.iter().find(|event| event["event"] == name).unwrap();
    assert_eq!(of("torture.plan")["disturbance"], "check");
    assert_eq!(of("torture.done")["plans"], 1);
}
