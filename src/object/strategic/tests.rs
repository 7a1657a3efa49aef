//! Patches applied and made, case by case, and a property: a made patch leads where it should.

mod tables;

use super::*;
use crate::facts::facts;
use crate::meta::Gvk;
use serde_json::json;

fn deployment() -> SchemaRef {
    facts().schema(&Gvk::new("apps", "v1", "Deployment")).unwrap()
}

fn pod(spec: Value) -> Value {
    json!({"spec": {"template": {"spec": spec}}})
}

fn applied(target: Value, patch: Value) -> Result<Value, String> {
    let mut target = target;
    apply(&mut target, &patch, &deployment()).map_err(|error| error.0)?;
    Ok(target)
}

#[test]
fn lists_merge_by_key() {
    let two = json!({"containers": [{"name": "a", "image": "1"}, {"name": "b", "image": "1"}]});
    let cases = [
        (
            json!({"containers": [{"name": "b", "image": "2"}]}),
            json!([{"name": "a", "image": "1"}, {"name": "b", "image": "2"}]),
        ),
        (
            json!({"containers": [{"name": "c"}]}),
            json!([{"name": "c"}, {"name": "a", "image": "1"}, {"name": "b", "image": "1"}]),
        ),
        (json!({"containers": [{"name": "a", "$patch": "delete"}]}), json!([{"name": "b", "image": "1"}])),
        (json!({"containers": [{"$patch": "replace"}, {"name": "z"}]}), json!([{"name": "z"}])),
        (
            json!({"containers": [{"name": "a", "image": null}]}),
            json!([{"name": "a"}, {"name": "b", "image": "1"}]),
        ),
        (
            json!({"$setElementOrder/containers": [{"name": "b"}, {"name": "a"}]}),
            json!([{"name": "b", "image": "1"}, {"name": "a", "image": "1"}]),
        ),
        (
            json!({"$setElementOrder/containers": [{"name": "c"}, {"name": "b"}], "containers": [{"name": "c"}]}),
            json!([{"name": "c"}, {"name": "a", "image": "1"}, {"name": "b", "image": "1"}]),
        ),
        (
            json!({"containers": [{"name": "a", "args": ["x"], "env": [{"name": "E", "value": "1"}]}]}),
            json!([{"name": "a", "image": "1", "args": ["x"], "env": [{"name": "E", "value": "1"}]}, {"name": "b", "image": "1"}]),
        ),
    ];
    for (patch, expected) in cases {
        let result = applied(pod(two.clone()), pod(patch.clone())).unwrap();
        assert_eq!(result["spec"]["template"]["spec"]["containers"], expected, "{patch}");
    }
}

#[test]
fn objects_scalars_and_directives() {
    let cases = [
        (
            json!({"metadata": {"labels": {"a": "1", "b": "1"}}}),
            json!({"metadata": {"labels": {"a": null, "c": "2"}}}),
            json!({"metadata": {"labels": {"b": "1", "c": "2"}}}),
        ),
        (
            json!({"spec": {"replicas": 1}}),
            json!({"spec": {"replicas": 2, "paused": null}}),
            json!({"spec": {"replicas": 2}}),
        ),
        (
            json!({"spec": {"replicas": 1, "paused": true}}),
            json!({"spec": {"$patch": "replace", "replicas": 5}}),
            json!({"spec": {"replicas": 5}}),
        ),
        (
            json!({"metadata": {"labels": {"a": "1"}}}),
            json!({"metadata": {"labels": {"$patch": "delete"}}}),
            json!({"metadata": {"labels": {}}}),
        ),
        (
            json!({"metadata": {"finalizers": ["a", "b"]}}),
            json!({"metadata": {"finalizers": ["c"]}}),
            json!({"metadata": {"finalizers": ["c", "a", "b"]}}),
        ),
        (
            json!({"metadata": {"finalizers": ["a", "b"]}}),
            json!({"metadata": {"$deleteFromPrimitiveList/finalizers": ["a"]}}),
            json!({"metadata": {"finalizers": ["b"]}}),
        ),
        (
            json!({"spec": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}}}),
            json!({"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}}),
            json!({"spec": {"strategy": {"type": "Recreate"}}}),
        ),
        (json!({}), json!({"spec": {"x": null, "y": {"z": null}}}), json!({"spec": {"y": {}}})),
    ];
    for (target, patch, expected) in cases {
        assert_eq!(applied(target, patch.clone()).unwrap(), expected, "{patch}");
    }
}

#[test]
fn patches_that_make_no_sense() {
    let containers = pod(json!({"containers": [{"name": "a"}]}));
    let cases = [
        (
            pod(json!({"containers": [{"image": "x"}]})),
            "map: map[image:x] does not contain declared merge key: name",
        ),
        (json!({"spec": {"$patch": "fly"}}), "unknown patch type: fly in map: map[$patch:fly]"),
        (
            pod(json!({"$setElementOrder/containers": [{"name": "z"}], "containers": [{"name": "b"}]})),
            "The order in patch list:\n[map[name:b]]\n doesn't match $setElementOrder list:\n[map[name:z]]\n",
        ),
        (
            json!({"spec": {"strategy": {"$retainKeys": ["x"], "type": "Recreate"}}}),
            "invalid patch format of retainKeys",
        ),
    ];
    for (patch, text) in cases {
        let mut target = containers.clone();
        target["spec"]["strategy"] = json!({"type": "RollingUpdate"});
        assert_eq!(applied(target, patch).unwrap_err(), text);
    }
}

#[test]
fn made_patches_have_their_directives() {
    let old = json!({"metadata": {"labels": {"a": "1"}, "finalizers": ["x", "y"]}, "spec": {
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}},
        "template": {"spec": {"containers": [{"name": "a", "image": "1"}, {"name": "b"}]}}}});
    let new = json!({"metadata": {"labels": {"b": "1"}, "finalizers": ["y"]}, "spec": {
        "strategy": {"type": "Recreate"},
        "template": {"spec": {"containers": [{"name": "a", "image": "2"}, {"name": "c"}]}}}});
    let patch = two_way(&old, &new, &deployment()).unwrap();
    assert_eq!(
        patch,
        json!({"metadata": {"labels": {"a": null, "b": "1"}, "$deleteFromPrimitiveList/finalizers": ["x"], "$setElementOrder/finalizers": ["y"]},
            "spec": {"strategy": {"$retainKeys": ["type"], "rollingUpdate": null, "type": "Recreate"},
                "template": {"spec": {"$setElementOrder/containers": [{"name": "a"}, {"name": "c"}],
                    "containers": [{"name": "a", "image": "2"}, {"name": "c"}, {"name": "b", "$patch": "delete"}]}}}})
    );
    assert_eq!(applied(old, patch).unwrap(), new);
}

#[test]
fn three_states_keep_what_others_added() {
    let original = pod(json!({"containers": [{"name": "a", "image": "1"}, {"name": "b"}]}));
    let mut current = pod(
        json!({"containers": [{"name": "a", "image": "1", "terminationMessagePath": "/x"}, {"name": "b"}, {"name": "injected"}]}),
    );
    current["spec"]["replicas"] = json!(7);
    let modified = pod(json!({"containers": [{"name": "a", "image": "2"}]}));
    let patch = three_way(&original, &modified, &current, &deployment(), true).unwrap();
    let mut expected = pod(
        json!({"containers": [{"name": "a", "image": "2", "terminationMessagePath": "/x"}, {"name": "injected"}]}),
    );
    expected["spec"]["replicas"] = json!(7);
    assert_eq!(applied(current.clone(), patch).unwrap(), expected);
    // The order is sent as long as the lists differ in length; it changes nothing.
    let again = three_way(&modified, &modified, &expected, &deployment(), true).unwrap();
    assert_eq!(again, pod(json!({"$setElementOrder/containers": [{"name": "a"}]})));
    assert_eq!(applied(expected.clone(), again).unwrap(), expected);

    let theirs = json!({"spec": {"replicas": 9}});
    let (before, ours) = (json!({"spec": {"replicas": 1}}), json!({"spec": {"replicas": 2}}));
    let refused = three_way(&before, &ours, &theirs, &deployment(), false).unwrap_err();
    assert!(refused.0.starts_with("patch:\nspec:\n  replicas: 2\n"), "{refused}");
    assert!(three_way(&before, &ours, &before, &deployment(), false).is_ok());
}

#[test]
fn a_made_patch_leads_to_the_modified_state() {
    let mut seed = 11_u64;
    let mut next = |most: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(seed >> 33).unwrap() % most
    };
    let mut object = || {
        let mut list = Vec::new();
        for name in ["a", "b", "c", "d"] {
            if next(3) > 0 {
                let mut container = json!({"name": name, "args": vec!["x"; next(3)]});
                if next(2) == 0 {
                    container["env"] = json!([{"name": "E", "value": format!("{}", next(3))}]);
                }
                list.insert(next(list.len() + 1), container);
            }
        }
        let mut finalizers: Vec<&str> = ["f", "g", "h"].into_iter().filter(|_| next(2) == 0).collect();
        if next(2) == 0 {
            finalizers.reverse();
        }
        let mut object = json!({"metadata": {"labels": {}, "finalizers": finalizers}, "spec": {"strategy": {"type": "Recreate"}}});
        object["spec"]["template"] = json!({"spec": {"containers": list}});
        if next(2) == 0 {
            object["spec"]["strategy"] =
                json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": next(3)}});
        }
        if next(2) == 0 {
            object["metadata"]["labels"][["l", "m"][next(2)]] = json!("x");
        }
        object
    };
    for _ in 0..500 {
        let (old, new) = (object(), object());
        let patch = two_way(&old, &new, &deployment()).unwrap();
        assert_eq!(applied(old.clone(), patch.clone()).unwrap(), new, "{old} {patch}");
        let patch = three_way(&old, &new, &old, &deployment(), false).unwrap();
        assert_eq!(applied(old.clone(), patch.clone()).unwrap(), new, "{old} {patch}");
        assert_eq!(two_way(&new, &new, &deployment()).unwrap(), json!({}));
        let mut merged = old.clone();
        crate::patch::merge_patch(&mut merged, &crate::patch::create_merge_patch(&old, &new));
        assert_eq!(merged, new);
    }
}
