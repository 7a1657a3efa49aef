//! `torture.ignore` of opdev.yaml: differences that a project knows, each with its reason.

use super::{project, told, torture, two_writes};
use crate::gadget::SAMPLE;
use expect_test::expect;
use std::fs::OpenOptions;
use std::io::Write as _;

const ARGS: [&str; 7] = [SAMPLE, "--scenario", "recreate", "--only", "crash", "--level", "quick"];

/// The exit code with this in opdev.yaml, and what was told.
fn with(settings: &str) -> (Option<i32>, String) {
    let (_folder, root) = project(&two_writes(false));
    let file = root.join("opdev.yaml");
    let mut file = OpenOptions::new().create(true).append(true).open(file).unwrap();
    file.write_all(settings.as_bytes()).unwrap();
    let output = torture(&root, &ARGS);
    (output.status.code(), told(&output))
}

#[test]
fn a_difference_that_is_ignored_with_a_reason_is_no_alarm() {
    let (code, text) = with("");
    assert_eq!(code, Some(1), "{text}");
    let settings = |what: &str| {
        format!("torture:\n  ignore:\n    - what: {what}\n      because: the marker tells it already\n")
    };
    let (code, text) = with(&settings("ConfigMap/* .data.init"));
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("0 findings in 2 plans (0 alarms, 0 flaky)"), "{text}");
    let (code, text) = with(&settings("ConfigMap/* .data.other"));
    assert_eq!(code, Some(1), "another field of it is still compared: {text}");
}

#[test]
fn a_difference_is_not_ignored_without_a_reason() {
    let (code, text) = with("torture:\n  ignore:\n    - what: ConfigMap/* .data\n      because: ' '\n");
    assert_ne!(code, Some(0), "{text}");
    expect![[r#"
        error: opdev.yaml:1:1: `torture`: say with `because` why `ConfigMap/* .data` is ignored
    "#]]
    .assert_eq(&text);
    let (code, text) = with("torture:\n  ignore:\n    - what: ConfigMap/* .data\n");
    assert_ne!(code, Some(0), "{text}");
    expect![[r#"
        error: opdev.yaml:1:1: `torture.ignore[0]` has a value of a wrong type: missing field `because`
    "#]]
    .assert_eq(&text);
    let (code, text) = with("torture:\n  ignore:\n    - {what: ConfigMap, because: it says too little}\n");
    assert_ne!(code, Some(0), "{text}");
    expect![[r#"
        error: opdev.yaml: `torture.ignore`: ConfigMap: expected KIND/NAME PATH, such as 'ConfigMap/web .data.seen' or 'Pod/* *'
    "#]]
    .assert_eq(&text);
}

#[test]
fn a_scenario_that_no_sample_has_is_named_with_those_there_are() {
    let (_folder, root) = project(&two_writes(true));
    let output = torture(&root, &[SAMPLE, "--scenario", "grow"]);
    let text = told(&output);
    assert_eq!(output.status.code(), Some(3), "{text}");
    expect![[r#"
        error: no sample has the scenario grow: the samples have child, down-up, namespace, recreate, twin, up-down
    "#]]
    .assert_eq(&text);
}
