//! Rules of metadata, with the kinds that they are for.

use super::super::builtin_resources;
use opdev_apimachinery::resource::metadata::validate_update;
use serde_json::json;

#[test]
fn finalizers_are_frozen_during_deletion() {
    let current = json!({"metadata": {"deletionTimestamp": "t", "finalizers": ["a/b"]}});
    let next = json!({"metadata": {"finalizers": ["a/b", "c/d"]}});
    let maps = builtin_resources().into_iter().find(|found| found.plural == "configmaps");
    let (causes, _) = validate_update(&maps.unwrap(), &next, &current, None);
    assert_eq!(
        causes[0].to_string(),
        "metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, \
         found new finalizers []string{\"c/d\"}"
    );
}
