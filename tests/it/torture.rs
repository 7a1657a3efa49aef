//! `opdev torture` as a user runs it: operators with planted bugs, and their twins without, which must be
//! quiet.

mod checks;
mod elects;
mod fields;
mod go;
mod ignored;
mod program;
mod ruled;

use crate::gadget::{RECONCILER, SAMPLE, gadgets};
use crate::inner_loop::demo_project;
use expect_test::expect;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

fn torture(root: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_opdev"));
    command.arg("torture").args(args).current_dir(root).env("HOME", root).env_remove("KUBECONFIG");
    command.stdin(Stdio::null()).output().unwrap()
}

fn told(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    format!("{}{}", text(&output.stdout), text(&output.stderr))
}

/// A project whose gadgets a script reconciles.
fn project(script: &str) -> (tempfile::TempDir, PathBuf) {
    let (folder, root) = demo_project();
    gadgets(&root);
    fs::write(root.join(RECONCILER), script).unwrap();
    (folder, root)
}

/// Two ConfigMaps. Who finds the first one takes the second one for initialised, unless `careful`.
fn two_writes(careful: bool) -> String {
    let fresh = if careful { "true" } else { "!get(\"v1/ConfigMap\", `${name}-a-marker`)" };
    format!(
        r#"import {{ get }} from "opdev";
export const owns = ["v1/ConfigMap"];

export function reconcile(self: any) {{
  const name = self.metadata.name;
  const fresh = {fresh};
  const init = get("v1/ConfigMap", `${{name}}-data`)?.data?.init ?? (fresh ? "yes" : "no");
  const map = (part: string, data: object) => ({{
    apiVersion: "v1", kind: "ConfigMap", metadata: {{ name: `${{name}}-${{part}}` }}, data,
  }});
  return {{ children: [map("a-marker", {{}}), map("data", {{ init }})], status: {{ seen: self.spec.size }} }};
}}
"#
    )
}

/// Keeps the largest size it has seen, where `largest`; else the size.
fn seen_sizes(largest: bool) -> String {
    let size =
        if largest { "Math.max(self.spec.size, Number(before?.data?.size ?? 0))" } else { "self.spec.size" };
    format!(
        r#"import {{ get }} from "opdev";
export const owns = ["v1/ConfigMap"];

export function reconcile(self: any) {{
  const name = `${{self.metadata.name}}-size`;
  const before = get("v1/ConfigMap", name);
  const child = {{ apiVersion: "v1", kind: "ConfigMap", metadata: {{ name }}, data: {{ size: String({size}) }} }};
  return {{ children: [child], status: {{ seen: self.spec.size }} }};
}}
"#
    )
}

#[test]
fn a_crash_between_two_writes_is_found_replayed_and_gone_once_the_script_is_careful() {
    let (_folder, root) = project(&two_writes(false));
    let args = [SAMPLE, "--scenario", "recreate", "--only", "crash", "--seed", "7", "--junit", "junit.xml"];
    let output = torture(&root, &args);
    let text = told(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("-data stays at .data.init no, undisturbed it is yes"), "{text}");
    assert!(text.contains("disturbance   killed after"), "{text}");
    assert!(text.contains("-a-marker"), "{text}");
    let junit = fs::read_to_string(root.join("junit.xml")).unwrap();
    assert!(
        junit.contains("<testsuites name=\"opdev torture\"") && junit.contains("<failure message="),
        "{junit}"
    );

    let replay = [".opdev/torture/1.yaml"];
    let again = torture(&root, &["--replay", replay[0]]);
    assert_eq!(again.status.code(), Some(1), "{}", told(&again));
    expect![[r#"
        disturbance   killed after patch configmaps default/top-a-marker
        different     ConfigMap default/top-data stays at .data.init no, undisturbed it is yes
    "#]]
    .assert_eq(&told(&again));
    assert!(!told(&again).contains("none of this"), "{}", told(&again));

    fs::write(root.join(RECONCILER), two_writes(true)).unwrap();
    let fixed = torture(&root, &["--replay", replay[0]]);
    assert_eq!(fixed.status.code(), Some(0), "{}", told(&fixed));
    let quiet = torture(&root, &args);
    assert_eq!(quiet.status.code(), Some(0), "{}", told(&quiet));
    assert!(told(&quiet).contains("0 findings in"), "{}", told(&quiet));
}

#[test]
fn a_change_that_was_never_seen_is_found_unless_only_the_newest_one_counts() {
    let args = [SAMPLE, "--scenario", "up-down", "--only", "blind,down", "--seed", "7"];
    for (largest, code) in [(true, 1), (false, 0)] {
        let (_folder, root) = project(&seen_sizes(largest));
        let size = fs::read_to_string(root.join(SAMPLE)).unwrap();
        expect![[r#"
            apiVersion: toys.example.com/v1alpha1
            kind: Gadget
            metadata: {name: top, namespace: default}
            spec: {size: 3, tier: gold}
        "#]]
        .assert_eq(&size);
        let output = torture(&root, &args);
        let text = told(&output);
        assert_eq!(output.status.code(), Some(code), "{text}");
        assert_eq!(text.contains("saw no event of gadgets during"), largest, "{text}");
    }
}

/// A kill may come while the step goes on: the first of several objects is reconciled before the last one is
/// applied.
#[test]
fn a_kill_in_the_middle_of_a_step_is_followed_by_a_new_start() {
    let (_folder, root) = project(&two_writes(true));
    let one = fs::read_to_string(root.join(SAMPLE)).unwrap();
    let named = |name: &str| one.replace("name: top", &format!("name: {name}"));
    let all: Vec<String> = (0..6).map(|at| named(&format!("top-{at}"))).collect();
    fs::write(root.join(SAMPLE), all.join("---\n")).unwrap();
    let output = torture(
        &root,
        &[SAMPLE, "--scenario", "child", "--only", "crash", "--seed", "7", "--level", "quick"],
    );
    let text = told(&output);
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(text.contains("crash") && text.contains("0 findings in"), "{text}");
}

/// A size that never goes down: changed back it stays, and a smaller one reaches only a new object.
#[test]
fn a_field_that_does_not_come_back_is_found() {
    for (largest, code) in [(true, 1), (false, 0)] {
        let (_folder, root) = project(&seen_sizes(largest));
        let output = torture(&root, &[SAMPLE, "--fields", "--seed", "7", "--write-baseline", "known.yaml"]);
        let text = told(&output);
        assert_eq!(output.status.code(), Some(code), "{text}");
        let back = text.contains("top-size keeps .data.size 4, before the change it was 3");
        let new = text.contains("top-size has .data.size 3 for a changed object, and 2 for a new one");
        assert_eq!((back, new), (largest, largest), "{text}");
        assert!(text.contains("no effect") && text.contains(".spec.tier"), "{text}");
        if largest {
            let again = torture(&root, &["--replay", ".opdev/torture/1.yaml"]);
            assert_eq!(again.status.code(), Some(1), "{}", told(&again));
            assert!(!told(&again).contains("none of this"), "{}", told(&again));
        }
    }
}

#[test]
fn a_run_follows_from_its_seed() {
    let (_folder, root) = project(&two_writes(false));
    let lines = || {
        let args = [SAMPLE, "--scenario", "recreate,child", "--level", "quick", "--seed", "3", "--json"];
        let output = torture(&root, &args);
        assert_eq!(output.status.code(), Some(1), "{}", told(&output));
        let text = String::from_utf8(output.stdout).unwrap();
        let events = text.lines().map(|line| {
            let mut event: Value = serde_json::from_str(line).unwrap();
            event.as_object_mut().unwrap().remove("tookMs");
            event
        });
        events.collect::<Vec<_>>()
    };
    let first = lines();
    let kinds: Vec<&str> = first.iter().filter_map(|event| event["event"].as_str()).collect();
    for kind in ["torture.learned", "torture.plan", "torture.finding", "torture.done"] {
        assert!(kinds.contains(&kind), "{kinds:?}");
    }
    assert_eq!(first, lines());
}

#[test]
fn known_findings_fail_nothing_and_what_is_ignored_is_none() {
    let (_folder, root) = project(&two_writes(false));
    let with = |more: &[&str]| {
        let args = [SAMPLE, "--scenario", "recreate", "--only", "crash", "--level", "quick"];
        torture(&root, &[&args, more].concat())
    };
    let found = with(&["--write-baseline", "known.yaml"]);
    assert_eq!(found.status.code(), Some(1), "{}", told(&found));
    let known = with(&["--baseline", "known.yaml"]);
    assert_eq!(known.status.code(), Some(0), "{}", told(&known));
    assert!(told(&known).contains("known 1  ConfigMap"), "{}", told(&known));
    let ignored = with(&["--ignore", "ConfigMap/* .data"]);
    assert_eq!(ignored.status.code(), Some(0), "{}", told(&ignored));
}

/// A second gadget is never reconciled.
#[test]
fn what_is_wrong_without_any_disturbance_is_told_once() {
    let picky = r#"export const owns = ["v1/ConfigMap"];
export function reconcile(self: any) {
  if (self.metadata.name.endsWith("-twin")) throw new Error("one is enough");
  return { status: { seen: self.spec.size } };
}
"#;
    let (_folder, root) = project(picky);
    let output = torture(&root, &[SAMPLE, "--scenario", "twin", "--only", "restart"]);
    let text = told(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("fail again and again") && text.contains("one is enough"), "{text}");
    assert!(text.contains("nothing disturbed it: each undisturbed run ends like that"), "{text}");
}

#[test]
fn what_cannot_be_run_says_why() {
    let (_folder, root) = project(&two_writes(true));
    let wrong = torture(&root, &["--only", "flood"]);
    assert_eq!(wrong.status.code(), Some(2), "{}", told(&wrong));
    assert!(
        told(&wrong).contains("flood is no disturbance; they are restart, down, crash"),
        "{}",
        told(&wrong)
    );
    let none = torture(&root, &["--filter", "no such sample"]);
    assert_eq!(none.status.code(), Some(3), "{}", told(&none));
    let no_file = torture(&root, &["--replay", "nothing.yaml"]);
    assert_eq!(no_file.status.code(), Some(3), "{}", told(&no_file));
    fs::write(root.join(RECONCILER), "export function reconcile(").unwrap();
    let broken = torture(&root, &[SAMPLE]);
    assert_eq!(broken.status.code(), Some(3), "{}", told(&broken));
    assert!(told(&broken).contains(RECONCILER), "{}", told(&broken));
}

/// The demo's own operators have no finding.
#[test]
fn the_demo_is_quiet() {
    let (_folder, root) = demo_project();
    let output = torture(
        &root,
        &[
            "samples/podset.yaml",
            "samples/hello.yaml",
            "--scenario",
            "recreate,up-down",
            "--level",
            "quick",
            "--seed",
            "1",
        ],
    );
    let text = told(&output);
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(text.contains("0 findings in") && text.contains("down") && text.contains("crash"), "{text}");
}
