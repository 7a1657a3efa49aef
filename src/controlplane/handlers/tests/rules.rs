//! `x-kubernetes-validations` of custom resources: refused definitions, and what create, update, patch,
//! apply, dry-run and status say.

use super::*;
use expect_test::expect;

const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const PODSETS: &str = "/apis/ex.io/v1/namespaces/default/podsets";
const MERGE: &str = "application/merge-patch+json";
const APPLY: &str = "application/apply-patch+yaml";

fn definition(rules: &Value) -> Value {
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "podsets.ex.io"},
        "spec": {"group": "ex.io", "scope": "Namespaced", "names": {"plural": "podsets", "kind": "PodSet"},
            "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "spec": {"type": "object", "x-kubernetes-validations": rules, "properties": {
                        "low": {"type": "integer"}, "high": {"type": "integer"}, "note": {"type": "string"},
                        "class": {"type": "string", "x-kubernetes-validations": [
                            {"rule": "self == oldSelf", "message": "class is immutable"}]},
                        "names": {"type": "array", "items": {"type": "string"}}}},
                    "status": {"type": "object", "properties": {"count": {"type": "integer"}},
                        "x-kubernetes-validations": [{"rule": "self.count >= 0",
                            "messageExpression": "self.count < 0 ? 'count is negative' : ''", "fieldPath": ".count"}]}}}}}]}})
}

fn podset(name: &str, low: i64, high: i64) -> Value {
    json!({"apiVersion": "ex.io/v1", "kind": "PodSet", "metadata": {"name": name},
        "spec": {"low": low, "high": high, "class": "a"}})
}

async fn with_podsets() -> Api {
    let api = api();
    let rules = json!([{"rule": "self.low <= self.high", "message": "low must not be above high"}]);
    post(&api, CRDS, definition(&rules)).await.expect(StatusCode::CREATED);
    api
}

#[tokio::test]
async fn a_rule_that_does_not_compile_is_refused_with_its_place() {
    let api = api();
    let refused = post(&api, CRDS, definition(&json!([{"rule": "self.lo > 0"}]))).await;
    assert_eq!(refused.code, 422);
    let cause = &refused.json["details"]["causes"][0];
    assert_eq!(
        cause["field"],
        "spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-validations[0].rule"
    );
    let message = cause["message"].as_str().unwrap();
    expect![[r#"
        Invalid value: {"Rule":"self.lo \u003e 0","Message":"","MessageExpression":"","Reason":null,"FieldPath":"","OptionalOldSelf":null}: compilation failed: ERROR: <input>:1:5: undefined field 'lo'
         | self.lo > 0
         | ....^"#]]
    .assert_eq(message);
    post(&api, CRDS, definition(&json!([]))).await.expect(StatusCode::CREATED);
    let patch = json!({"spec": {"versions": definition(&json!([{"rule": "1 + 1"}]))["spec"]["versions"]}});
    let refused = ask_as(&api, "PATCH", &format!("{CRDS}/podsets.ex.io"), MERGE, patch).await;
    assert_eq!(refused.code, 422);
    assert!(refused.message().contains("cel expression must evaluate to a bool"), "{}", refused.message());
}

#[tokio::test]
async fn every_way_of_writing_is_held_to_the_rules() {
    let api = with_podsets().await;
    let wrong = "spec: Invalid value: low must not be above high";
    let refused = post(&api, PODSETS, podset("a", 3, 2)).await;
    assert_eq!(refused.code, 422);
    assert_eq!(refused.message(), format!("PodSet.ex.io \"a\" is invalid: {wrong}"));
    let cause = &refused.json["details"]["causes"][0];
    assert_eq!((&cause["reason"], &cause["field"]), (&json!("FieldValueInvalid"), &json!("spec")));
    let dry = post(&api, &format!("{PODSETS}?dryRun=All"), podset("a", 3, 2)).await;
    assert_eq!(dry.code, 422);
    let made = post(&api, PODSETS, podset("a", 1, 2)).await.expect(StatusCode::CREATED);
    let one = format!("{PODSETS}/a");
    let mut next = made.clone();
    next["spec"]["low"] = json!(5);
    assert!(ask(&api, "PUT", &one, next).await.message().contains(wrong));
    let patch = json!({"spec": {"low": 5}});
    assert!(ask_as(&api, "PATCH", &one, MERGE, patch.clone()).await.message().contains(wrong));
    let dry = format!("{one}?dryRun=All");
    assert!(ask_as(&api, "PATCH", &dry, MERGE, patch).await.message().contains(wrong));
    let apply = format!("{one}?fieldManager=t&force=true");
    assert!(ask_as(&api, "PATCH", &apply, APPLY, podset("a", 9, 2)).await.message().contains(wrong));
    let fresh = format!("{PODSETS}/b?fieldManager=t");
    assert!(ask_as(&api, "PATCH", &fresh, APPLY, podset("b", 9, 2)).await.message().contains(wrong));
    let class = ask_as(&api, "PATCH", &one, MERGE, json!({"spec": {"class": "b"}})).await;
    expect![[r#"PodSet.ex.io "a" is invalid: spec.class: Invalid value: "b": class is immutable"#]]
        .assert_eq(class.message());
    let status = format!("{one}/status");
    let count = ask_as(&api, "PATCH", &status, MERGE, json!({"status": {"count": -1}})).await;
    expect![[r#"PodSet.ex.io "a" is invalid: status.count: Invalid value: count is negative"#]]
        .assert_eq(count.message());
    ask_as(&api, "PATCH", &status, MERGE, json!({"status": {"count": 1}})).await.expect(StatusCode::OK);
}

#[tokio::test]
async fn what_has_not_changed_is_not_held_against_an_object() {
    let api = api();
    post(&api, CRDS, definition(&json!([]))).await.expect(StatusCode::CREATED);
    post(&api, PODSETS, podset("a", 3, 2)).await.expect(StatusCode::CREATED);
    let rules = json!([{"rule": "self.low <= self.high"}]);
    let mut stricter = definition(&rules)["spec"]["versions"].clone();
    let spec = &mut stricter[0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"];
    spec["high"]["minimum"] = json!(10);
    let patch = json!({"spec": {"versions": stricter}});
    ask_as(&api, "PATCH", &format!("{CRDS}/podsets.ex.io"), MERGE, patch).await.expect(StatusCode::OK);
    let one = format!("{PODSETS}/a");
    let label = json!({"metadata": {"labels": {"a": "b"}}});
    ask_as(&api, "PATCH", &one, MERGE, label).await.expect(StatusCode::OK);
    ask_as(&api, "PATCH", &format!("{one}/status"), MERGE, json!({"status": {"count": 1}}))
        .await
        .expect(StatusCode::OK);
    // The spec changed, so its rule counts; the number did not, so its minimum does not.
    let note = ask_as(&api, "PATCH", &one, MERGE, json!({"spec": {"note": "x"}})).await;
    assert_eq!(
        note.message(),
        "PodSet.ex.io \"a\" is invalid: spec: Invalid value: failed rule: self.low <= self.high"
    );
    let low = ask_as(&api, "PATCH", &one, MERGE, json!({"spec": {"low": 1}})).await;
    low.expect(StatusCode::OK);
    let high = ask_as(&api, "PATCH", &one, MERGE, json!({"spec": {"high": 9}})).await;
    expect![[r#"PodSet.ex.io "a" is invalid: spec.high: Invalid value: 9: spec.high in body should be greater than or equal to 10"#]]
    .assert_eq(high.message());
    assert_eq!(post(&api, PODSETS, podset("b", 1, 2)).await.code, 422);
}

#[tokio::test]
async fn rules_are_not_checked_where_the_object_is_too_wrong() {
    let api = with_podsets().await;
    let mut wrong = podset("a", 3, 2);
    wrong["spec"]["names"] = json!(5);
    let refused = post(&api, PODSETS, wrong).await;
    assert!(refused.message().contains(
        "<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct \
         the existing errors to complete validation"
    ), "{}", refused.message());
    assert!(!refused.message().contains("low must not"));
}

#[tokio::test]
async fn a_rule_that_may_cost_too_much_is_refused() {
    let api = api();
    let rules = json!([{"rule": "self.names.all(x, self.names.all(y, x == y))"}]);
    let refused = post(&api, CRDS, definition(&rules)).await;
    assert_eq!(refused.code, 422);
    assert!(refused.message().contains("estimated rule cost exceeds budget"), "{}", refused.message());
}
