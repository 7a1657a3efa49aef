//! `--fields` on a program: a Secret beside the sample that it does not watch, and the errors of a program
//! without a trace.

use super::program::{OPERATOR, with_operator};
use super::{told, torture};
use std::fs;

/// Puts the token of a Secret into a ConfigMap, and cannot serve a mode that the schema lets.
const RECONCILE: &str = r#"
def reconcile(gadget):
    meta, spec = gadget["metadata"], gadget.get("spec", {})
    if meta.get("deletionTimestamp"):
        return
    core = "/api/v1/namespaces/%s/" % meta["namespace"]
    if spec.get("mode") == "new":
        for attempt in range(6):
            print("2026-01-01 00:00:0%d ERROR mode new is not known, attempt %d" % (attempt, attempt), flush=True)
        return
    token = call("GET", core + "secrets/one-key").get("data", {}).get("token", "")
    owner = {"apiVersion": gadget["apiVersion"], "kind": gadget["kind"], "name": meta["name"], "uid": meta["uid"]}
    name = meta["name"] + "-config"
    made(core + "configmaps", name, {"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name, "ownerReferences": [owner]}, "data": {"token": token}})
"#;

#[test]
#[cfg_attr(not(python), ignore = "needs python3")]
fn a_secret_that_is_not_watched_and_errors_that_are_only_printed_are_told() {
    let from = OPERATOR.find("def reconcile(").unwrap();
    let to = OPERATOR.find("GADGETS = ").unwrap();
    let operator = format!("{}{}\n{}", &OPERATOR[..from], RECONCILE, &OPERATOR[to..]);
    let (_folder, root) = with_operator(&operator, "  command: [python3, operator.py]\n");
    let crd = root.join("config/crd/gadgets.yaml");
    let text = fs::read_to_string(&crd).unwrap();
    let new = text.replace("{size: {type: integer}}", "{mode: {type: string, enum: [old, new]}}");
    assert_ne!(new, text);
    fs::write(crd, new).unwrap();
    fs::write(
        root.join("config/samples/gadget.yaml"),
        "apiVersion: v1\nkind: Secret\nmetadata: {name: one-key}\nstringData: {token: geheim}\n---\n\
         apiVersion: toys.example.com/v1alpha1\nkind: Gadget\nmetadata: {name: one}\nspec: {mode: old}\n",
    )
    .unwrap();
    let output = torture(
        &root,
        &["--fields", "--field", "Secret one-key.stringData", "--field", "spec.mode", "--seed", "7"],
    );
    let text = told(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    for words in [
        "the program says again and again: mode new is not known, attempt #",
        "note: Secret one-key .stringData.token changed: a new object gets it",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    assert!(!text.contains("geheim"), "{text}");
}
