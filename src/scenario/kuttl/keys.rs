//! Keys of kuttl's files. kuttl leaves out a key that it does not know, and so a misspelt one makes a test
//! green that checks nothing. Pure.

use opdev_object::spelling;
use serde_json::Value;

/// Keys of kuttl's kinds, also those that have no effect here.
const SUITE: &[&str] = &[
    "artifactsDir",
    "attachControlPlaneOutput",
    "commands",
    "config",
    "controlPlaneArgs",
    "crdDir",
    "fullName",
    "kindConfig",
    "kindContainers",
    "kindContext",
    "kindNodeCache",
    "manifestDirs",
    "namespace",
    "parallel",
    "reportFormat",
    "reportGranularity",
    "reportName",
    "skipClusterDelete",
    "skipDelete",
    "startControlPlane",
    "startKIND",
    "suppress",
    "testDirs",
    "timeout",
];
const STEP: &[&str] = &[
    "apply",
    "assert",
    "commands",
    "context",
    "delete",
    "error",
    "index",
    "kubeconfig",
    "kubeconfigLoading",
    "skipDelete",
    "unitTest",
];
const ASSERT: &[&str] = &["assertAll", "assertAny", "collectors", "commands", "timeout"];
const COMMAND: &[&str] =
    &["background", "command", "ignoreFailure", "namespaced", "script", "skipLogOutput", "timeout"];
const DELETION: &[&str] = &["apiVersion", "kind", "labels", "name", "namespace"];
/// Keys of every object.
const OBJECT: &[&str] = &["apiVersion", "kind", "metadata"];

/// The first misspelt key of a `TestSuite`, `TestStep` or `TestAssert`, in words; `None` where there is none.
/// A key that looks like none that is known stays kuttl's own affair.
pub(super) fn misspelt(kind: &str, object: &Value) -> Option<String> {
    let known = match kind {
        "TestSuite" => SUITE,
        "TestStep" => STEP,
        "TestAssert" => ASSERT,
        _ => return None,
    };
    let all: Vec<&str> = known.iter().chain(OBJECT).copied().collect();
    let items =
        |field: &str| object.get(field).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    wrong(kind, object, &all)
        .or_else(|| items("commands").iter().find_map(|item| wrong("a command", item, COMMAND)))
        .or_else(|| items("delete").iter().find_map(|item| wrong("an item of delete", item, DELETION)))
}

fn wrong(of: &str, object: &Value, known: &[&str]) -> Option<String> {
    object.as_object()?.keys().filter(|key| !known.contains(&key.as_str())).find_map(|key| {
        let same = known.iter().find(|known| known.eq_ignore_ascii_case(key)).copied();
        let meant = same.or_else(|| spelling::nearest(key, known.iter().copied()))?;
        Some(format!(
            "{of} has no key {key:?}, and kuttl would leave it out without a word; {meant:?} is meant"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;
    use serde_json::json;

    #[test]
    fn a_misspelt_key_is_found_wherever_it_stands() {
        let says = |kind: &str, object: Value| misspelt(kind, &object).unwrap_or_default();
        expect![[r#"TestStep has no key "Commands", and kuttl would leave it out without a word; "commands" is meant"#]]
        .assert_eq(&says("TestStep", json!({"Commands": []})));
        expect![[
            r#"TestStep has no key "appply", and kuttl would leave it out without a word; "apply" is meant"#
        ]]
        .assert_eq(&says("TestStep", json!({"appply": []})));
        expect![[r#"TestAssert has no key "timeuot", and kuttl would leave it out without a word; "timeout" is meant"#]]
        .assert_eq(&says("TestAssert", json!({"timeuot": 3})));
        expect![[r#"TestSuite has no key "testdirs", and kuttl would leave it out without a word; "testDirs" is meant"#]]
        .assert_eq(&says("TestSuite", json!({"testdirs": []})));
        expect![[
            r#"a command has no key "scrpt", and kuttl would leave it out without a word; "script" is meant"#
        ]]
        .assert_eq(&says("TestStep", json!({"commands": [{"scrpt": "x"}]})));
        expect![[r#"an item of delete has no key "apiVersoin", and kuttl would leave it out without a word; "apiVersion" is meant"#]]
        .assert_eq(&says("TestStep", json!({"delete": [{"apiVersoin": "v1"}]})));
    }

    #[test]
    fn keys_of_kuttl_and_keys_that_look_like_none_are_left() {
        let object = json!({"apiVersion": "kuttl.dev/v1beta1", "kind": "TestStep", "metadata": {}, "unitTest": true,
            "somethingElseEntirely": 1, "commands": [{"command": "x", "skipLogOutput": true}]});
        assert_eq!(misspelt("TestStep", &object), None);
        assert_eq!(misspelt("Secret", &json!({"kid": 1})), None);
    }
}
