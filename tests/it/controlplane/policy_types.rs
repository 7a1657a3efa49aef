//! `status.typeChecking` of ValidatingAdmissionPolicies: what their expressions make of the kinds that they
//! match.

use super::webhooks::ask;
use expect_test::expect;
use opdev_controlplane::ControlPlane;
use serde_json::{Value, json};
use std::time::Duration;

const POLICIES: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const FOREVER: Duration = Duration::from_secs(600);

fn rule(group: &str, version: &str, resources: &[&str]) -> Value {
    json!({"apiGroups": [group], "apiVersions": [version], "operations": ["*"], "resources": resources})
}

/// The findings about a policy: places and warnings.
async fn found(plane: &ControlPlane, name: &str, rules: Value, spec: Value) -> Vec<(String, String)> {
    let mut policy = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": name}, "spec": {"matchConstraints": {"resourceRules": rules}}});
    for (field, value) in spec.as_object().unwrap() {
        policy["spec"][field] = value.clone();
    }
    let (code, _, body) = ask(plane, "POST", POLICIES, policy).await;
    assert_eq!(code, 201, "{body:#}");
    let path = format!("{POLICIES}/{name}");
    let checked = async {
        loop {
            let (_, _, body) = ask(plane, "GET", &path, Value::Null).await;
            if body["status"]["typeChecking"].is_object() {
                return body;
            }
            tokio::task::yield_now().await;
        }
    };
    let body = tokio::time::timeout(FOREVER, checked).await.expect(name);
    assert_eq!(body["status"]["observedGeneration"], body["metadata"]["generation"]);
    let warnings =
        body["status"]["typeChecking"]["expressionWarnings"].as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    warnings.iter().map(|warning| (text(&warning["fieldRef"]), text(&warning["warning"]))).collect()
}

#[tokio::test]
async fn expressions_are_checked_against_the_built_in_kinds_that_they_match() {
    let plane = ControlPlane::start().await.unwrap();
    let deployments = json!([rule("apps", "v1", &["deployments", "deployments/status"])]);
    let right =
        json!({"validations": [{"expression": "object.spec.replicas > 1 && object.metadata.name != ''"}]});
    assert_eq!(found(&plane, "right", deployments.clone(), right).await, []);
    let wrong = json!({"validations": [
        {"expression": "has(object.metadata.labels)"},
        {"expression": "object.spec.replicas > '1'",
            "messageExpression": "'wants replicas > 1, got ' + object.spec.replicas"},
    ]});
    let message = |expression: &str, at: usize, why: &str| {
        let dots = ".".repeat(at - 1);
        format!("apps/v1, Kind=Deployment: ERROR: <input>:1:{at}: {why}\n | {expression}\n | {dots}^\n")
    };
    assert_eq!(
        found(&plane, "wrong", deployments.clone(), wrong).await,
        [
            (
                "spec.validations[1].expression".to_owned(),
                message(
                    "object.spec.replicas > '1'",
                    22,
                    "found no matching overload for '_>_' applied to '(int, string)'"
                )
            ),
            (
                "spec.validations[1].messageExpression".to_owned(),
                message(
                    "'wants replicas > 1, got ' + object.spec.replicas",
                    28,
                    "found no matching overload for '_+_' applied to '(string, int)'"
                )
            ),
        ]
    );
    // A variable brings the type that its expression comes to.
    let variables = json!({"variables": [{"name": "count", "expression": "object.spec.replicas"}],
        "validations": [{"expression": "variables.count == 'a' || oldObject.spec.nothing == 1"}]});
    let [(place, warning)] =
        found(&plane, "variables", deployments.clone(), variables).await.try_into().unwrap();
    assert_eq!(place, "spec.validations[0].expression");
    expect![[r#"
        apps/v1, Kind=Deployment: ERROR: <input>:1:17: found no matching overload for '_==_' applied to '(int, string)'
         | variables.count == 'a' || oldObject.spec.nothing == 1
         | ................^
        ERROR: <input>:1:41: undefined field 'nothing'
         | variables.count == 'a' || oldObject.spec.nothing == 1
         | ........................................^
    "#]]
    .assert_eq(&warning);
    // A number-or-text field is left to the request; times are times, and quantities cannot be named.
    let values = json!({"validations": [
        {"expression": "object.spec.strategy.rollingUpdate.maxSurge == 1 && \
            object.metadata.creationTimestamp < timestamp('2026-01-01T00:00:00Z')"},
        {"expression": "has(object.spec.template.spec.containers[0].resources.limits)"},
    ]});
    let [(place, warning)] = found(&plane, "values", deployments.clone(), values).await.try_into().unwrap();
    assert_eq!(place, "spec.validations[1].expression");
    expect![[r#"
        apps/v1, Kind=Deployment: ERROR: <input>:1:4: undefined field 'limits'
         | has(object.spec.template.spec.containers[0].resources.limits)
         | ...^
    "#]]
    .assert_eq(&warning);
    // Two types are never the same, though the kinds are.
    let twice = json!({"paramKind": {"apiVersion": "apps/v1", "kind": "Deployment"},
        "validations": [{"expression": "object == params"}, {"expression": "params.spec.replicas == 1"}]});
    let [(_, warning)] = found(&plane, "twice", deployments, twice).await.try_into().unwrap();
    expect![[r#"
        apps/v1, Kind=Deployment: ERROR: <input>:1:8: found no matching overload for '_==_' applied to '(Deployment1, Deployment2)'
         | object == params
         | .......^
    "#]]
    .assert_eq(&warning);
    plane.stop().await;
}

#[tokio::test]
async fn each_kind_has_its_own_warning_in_order_and_wildcards_are_left_out() {
    let plane = ControlPlane::start().await.unwrap();
    let rules = json!([
        rule("apps", "v1", &["statefulsets", "daemonsets", "*/scale"]),
        rule("*", "v1", &["pods"]),
        rule("", "v1", &["configmaps"]),
    ]);
    let spec = json!({"paramKind": {"apiVersion": "v1", "kind": "Secret"},
        "validations": [{"expression": "object.spec.serviceName == params.type && request.name != ''"}]});
    let [(_, warning)] = found(&plane, "kinds", rules, spec).await.try_into().unwrap();
    let kinds: Vec<&str> =
        warning.lines().filter_map(|line| line.split_once(": ERROR").map(|(kind, _)| kind)).collect();
    assert_eq!(kinds, ["/v1, Kind=ConfigMap", "apps/v1, Kind=DaemonSet"], "{warning}");
    expect![[r#"
        /v1, Kind=ConfigMap: ERROR: <input>:1:7: undefined field 'spec'
         | object.spec.serviceName == params.type && request.name != ''
         | ......^

        apps/v1, Kind=DaemonSet: ERROR: <input>:1:12: undefined field 'serviceName'
         | object.spec.serviceName == params.type && request.name != ''
         | ...........^
    "#]]
    .assert_eq(&warning);
    let anything = json!([rule("apps", "*", &["deployments"])]);
    let spec = json!({"validations": [{"expression": "object.nothing == 1"}]});
    assert_eq!(found(&plane, "anything", anything, spec).await, []);
    plane.stop().await;
}

#[tokio::test]
async fn custom_resources_are_checked_against_their_schemas() {
    let plane = ControlPlane::start().await.unwrap();
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
        "replicas": {"type": "integer"}, "extra": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        "child": {"type": "object", "x-kubernetes-embedded-resource": true,
            "x-kubernetes-preserve-unknown-fields": true}}}}});
    let crd = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "crontabs.example.com"}, "spec": {"group": "example.com", "scope": "Namespaced",
            "names": {"plural": "crontabs", "singular": "crontab", "kind": "CronTab"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}]}});
    let (code, _, body) = ask(&plane, "POST", DEFINITIONS, crd).await;
    assert_eq!(code, 201, "{body:#}");
    let path = format!("{DEFINITIONS}/crontabs.example.com");
    let served = async {
        loop {
            let (_, _, body) = ask(&plane, "GET", &path, Value::Null).await;
            let conditions = body["status"]["conditions"].as_array().cloned().unwrap_or_default();
            if conditions.iter().any(|one| one["type"] == "Established" && one["status"] == "True") {
                return;
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(FOREVER, served).await.unwrap();
    let rules = json!([rule("example.com", "v1", &["crontabs"])]);
    let right = json!({"validations": [{"expression": "object.spec.replicas > 1 && object.kind == 'CronTab' && \
        has(object.metadata.annotations) && has(object.spec.child.metadata.labels)"}]});
    assert_eq!(found(&plane, "right", rules.clone(), right).await, []);
    let wrong = json!({"validations": [
        {"expression": "object.spec.replicas > '1'"}, {"expression": "object.spec.extra.a == 1"}]});
    let found = found(&plane, "wrong", rules, wrong).await;
    let [(_, first), (_, second)] = found.as_slice() else { panic!("{found:?}") };
    assert!(
        first.starts_with("example.com/v1, Kind=CronTab: ERROR: <input>:1:22: found no matching"),
        "{first}"
    );
    expect![[r#"
        example.com/v1, Kind=CronTab: ERROR: <input>:1:18: undefined field 'a'
         | object.spec.extra.a == 1
         | .................^
    "#]]
    .assert_eq(second);
    plane.stop().await;
}

/// A policy whose expression makes no program is not kept, as a definition with such a rule is not.
#[tokio::test]
async fn an_expression_with_a_constant_that_has_no_value_is_refused() {
    let plane = ControlPlane::start().await.unwrap();
    let regexp = "error parsing regexp: missing closing ]: `[`";
    for (expression, why) in [
        ("int('a') == 1", "type conversion error from 'string' to 'int'"),
        ("bool('maybe')", "type conversion error from 'string' to 'bool'"),
        ("object.metadata.name.find('[') == ''", regexp),
        ("matches(object.metadata.name, '[')", regexp),
    ] {
        let spec = json!({"matchConstraints": {"resourceRules": [rule("apps", "v1", &["deployments"])]},
            "variables": [{"name": "v", "expression": expression}],
            "matchConditions": [{"name": "c", "expression": expression}],
            "validations": [{"expression": expression}]});
        let policy = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
            "metadata": {"name": "p"}, "spec": spec});
        let (code, _, body) = ask(&plane, "POST", POLICIES, policy).await;
        assert_eq!(code, 422, "{body:#}");
        let causes = body["details"]["causes"].as_array().unwrap();
        assert_eq!(causes.len(), 3, "{body:#}");
        for cause in causes {
            let message = format!("Internal error: program instantiation failed: {why}");
            assert_eq!((&cause["reason"], &cause["message"]), (&json!("InternalError"), &json!(message)));
        }
    }
    let schema = json!({"type": "object", "properties": {"spec": {"type": "string", "maxLength": 5,
        "x-kubernetes-validations": [{"rule": "matches(self, '[')"}]}}});
    let crd = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "xs.example.com"}, "spec": {"group": "example.com", "scope": "Namespaced",
            "names": {"plural": "xs", "singular": "x", "kind": "X"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}]}});
    let (code, _, body) = ask(&plane, "POST", DEFINITIONS, crd).await;
    let message = body["message"].as_str().unwrap();
    assert!(code == 422 && message.contains(&format!("program instantiation failed: {regexp}")), "{message}");
    plane.stop().await;
}
