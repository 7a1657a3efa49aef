//! Programs: a small operator in Python that speaks HTTP with nothing but its standard library. Skipped where
//! there is none.

use super::{told, torture};
use crate::inner_loop::demo_project;
use expect_test::expect;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Lists and watches gadgets and makes two ConfigMaps of each. Who finds the first one takes the second one
/// for made, unless it is careful.
pub(super) const OPERATOR: &str = r#"import base64, json, os, ssl, sys, threading, time, urllib.error, urllib.request

CAREFUL = "--careful" in sys.argv

def field(name):
    for line in open(os.environ["KUBECONFIG"]):
        line = line.strip().lstrip("- ")
        if line.startswith(name + ":"):
            return line.split(":", 1)[1].strip().strip('"')

context = ssl.create_default_context(cadata=base64.b64decode(field("certificate-authority-data")).decode())
server, token = field("server"), field("token")

def call(method, path, body=None, stream=False):
    data = json.dumps(body).encode() if body is not None else None
    request = urllib.request.Request(server + path, data=data, method=method)
    request.add_header("Authorization", "Bearer " + token)
    request.add_header("Content-Type", "application/json")
    answer = urllib.request.urlopen(request, context=context, timeout=3600 if stream else 30)
    return answer if stream else json.load(answer)

def made(path, name, body):
    try:
        call("GET", path + "/" + name)
        return False
    except urllib.error.HTTPError as error:
        if error.code != 404:
            raise
    call("POST", path, body)
    return True

def reconcile(gadget):
    meta = gadget["metadata"]
    if meta.get("deletionTimestamp"):
        return
    path = "/api/v1/namespaces/%s/configmaps" % meta["namespace"]
    owner = {"apiVersion": gadget["apiVersion"], "kind": gadget["kind"], "name": meta["name"], "uid": meta["uid"]}
    def body(part):
        return {"apiVersion": "v1", "kind": "ConfigMap",
                "metadata": {"name": meta["name"] + part, "ownerReferences": [owner]}, "data": {}}
    fresh = made(path, meta["name"] + "-first", body("-first"))
    if fresh or CAREFUL:
        made(path, meta["name"] + "-second", body("-second"))

GADGETS = "/apis/toys.example.com/v1alpha1/gadgets"
while True:
    try:
        listed = call("GET", GADGETS + "?limit=500")
        for item in listed["items"]:
            item.update(apiVersion="toys.example.com/v1alpha1", kind="Gadget")
            reconcile(item)
        since = listed["metadata"]["resourceVersion"]
        for line in call("GET", GADGETS + "?watch=true&resourceVersion=" + since, stream=True):
            event = json.loads(line)
            if event["type"] == "ERROR":
                break
            if event["type"] != "DELETED":
                reconcile(event["object"])
    except (OSError, ValueError) as error:
        print("again:", error, flush=True)
        time.sleep(0.05)
"#;

const DEFINITION: &str = "apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.toys.example.com}
spec:
  group: toys.example.com
  scope: Namespaced
  names: {kind: Gadget, plural: gadgets, singular: gadget, listKind: GadgetList}
  versions:
  - name: v1alpha1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, properties: {size: {type: integer}}}
";

fn project(args: &str) -> (tempfile::TempDir, PathBuf) {
    with_operator(OPERATOR, &format!("  command: [python3, operator.py{args}]\n"))
}

/// A trusted project of an operator, with what `operator` of its settings says.
pub(super) fn with_operator(operator: &str, settings: &str) -> (tempfile::TempDir, PathBuf) {
    let (folder, demo) = demo_project();
    let root = demo.parent().unwrap().join("program");
    let files = [
        ("operator.py", operator.to_owned()),
        ("config/crd/gadgets.yaml", DEFINITION.to_owned()),
        (
            "config/samples/gadget.yaml",
            "apiVersion: toys.example.com/v1alpha1\nkind: Gadget\nmetadata: {name: one}\nspec: {size: 1}\n"
                .to_owned(),
        ),
        ("opdev.yaml", format!("operator:\n{settings}")),
    ];
    for (path, text) in files {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    trusted(&root);
    (folder, root)
}

fn trusted(root: &Path) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_opdev"));
    command.arg("trust").current_dir(root).env("HOME", root).stdin(Stdio::null());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", told(&output));
}

#[test]
#[cfg_attr(not(python), ignore = "needs python3")]
fn a_program_that_is_killed_between_two_writes_is_found() {
    let args = ["--scenario", "recreate", "--only", "crash,restart", "--level", "quick"];
    for (careful, code) in [("", 1), (", --careful", 0)] {
        let (_folder, root) = project(careful);
        let output = torture(&root, &args);
        let text = told(&output);
        assert_eq!(output.status.code(), Some(code), "{text}");
        let found = text.contains("ConfigMap default/one-second is missing");
        assert_eq!(found, code == 1, "{text}");
        assert!(code == 0 || text.contains("killed after create configmaps default/one-first"), "{text}");
    }
}

#[cfg(target_os = "linux")]
#[test]
#[cfg_attr(not(python), ignore = "needs python3")]
fn a_program_with_a_fixed_port_runs_alone_and_the_report_says_why() {
    use std::net::{Ipv4Addr, TcpListener};
    let free = |port: &u16| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok();
    let port = (21_000..30_000).find(free).unwrap().to_string();
    let first = format!("import socket\nheld = socket.create_server((\"127.0.0.1\", {port}))\n");
    let (most, text) = side_by_side(&first, &ONE);
    assert_eq!(most, 1, "{text}");
    let note = text.lines().find(|line| line.contains(&port)).unwrap_or_default();
    let (note, _) = note.split_once(", so its runs").unwrap_or_default();
    expect!["note: the program listens on port PORT"].assert_eq(&note.replace(&port, "PORT"));
}

#[cfg(target_os = "linux")]
#[test]
#[cfg_attr(not(python), ignore = "needs python3")]
fn a_program_without_a_fixed_port_runs_beside_itself_once_that_is_known() {
    let (most, text) = side_by_side("", &ONE);
    assert!(most > 1, "{text}");
}

#[cfg(target_os = "linux")]
#[test]
#[cfg_attr(not(python), ignore = "needs python3")]
fn several_scenarios_of_a_program_are_learned_and_tried_at_once() {
    let two = ["--scenario", "recreate,child", "--only", "restart", "--level", "quick", "--parallel", "6"];
    let (most, text) = side_by_side("", &two);
    // Of one scenario alone there would be two: its last undisturbed runs.
    assert!((3..=6).contains(&most), "{most} at once\n{text}");
    let learned = text.lines().find(|line| line.starts_with("learned")).unwrap_or_default();
    let (in_order, _) = learned.split_once(" of ").unwrap_or_default();
    expect!["learned  recreate, child"].assert_eq(in_order);
}

/// One scenario with two kinds of plans.
#[cfg(target_os = "linux")]
const ONE: [&str; 6] = ["--scenario", "child", "--only", "restart,crash", "--level", "quick"];

/// Tortures a healthy operator that begins with these lines. How many of it ran at once, and what was told.
#[cfg(target_os = "linux")]
fn side_by_side(first: &str, how: &[&str]) -> (u32, String) {
    let counting = r#"
import os

def lives(number):
    try:
        return open("/proc/%s/stat" % number).read().rsplit(") ", 1)[1][0] != "Z"
    except OSError:
        return False

others = [name for name in os.listdir(".") if name.startswith("run-") and lives(name[4:])]
open("run-%d" % os.getpid(), "w").close()
with open("at-once", "a") as at_once:
    at_once.write("%d\n" % (len(others) + 1))
"#;
    let operator = format!("{first}{counting}{OPERATOR}");
    let (_folder, root) = with_operator(&operator, "  command: [python3, operator.py, --careful]\n");
    let output = torture(&root, how);
    let text = told(&output);
    assert_eq!(output.status.code(), Some(0), "{text}");
    let counts = fs::read_to_string(root.join("at-once")).unwrap();
    (counts.lines().filter_map(|line| line.parse().ok()).max().unwrap(), text)
}

#[test]
#[cfg_attr(not(python), ignore = "needs python3")]
fn a_program_that_ends_by_itself_is_no_environment() {
    let (_folder, root) = project("");
    fs::write(root.join("operator.py"), "raise SystemExit('no luck today')\n").unwrap();
    let output = torture(&root, &["--scenario", "recreate"]);
    assert_eq!(output.status.code(), Some(3), "{}", told(&output));
    assert!(told(&output).contains("no luck today"), "{}", told(&output));
}
