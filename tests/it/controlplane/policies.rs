//! Admission policies: what they make of requests, and the words of the real server where they refuse. The
//! expected texts were given by a kube-apiserver 1.36 that was asked the same.

use super::tools::Cluster;
use super::webhooks::{ask, ask_as, bare_plane};
use opdev_controlplane::{Config, ControlPlane, Controllers};
use serde_json::{Value, json};

const ADMISSION: &str = "/apis/admissionregistration.k8s.io/v1";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const APPS: &str = "/apis/apps/v1/namespaces/default/deployments";

fn rule(group: &str, resource: &str, operations: &[&str]) -> Value {
    json!({"apiGroups": [group], "apiVersions": ["v1"], "operations": operations, "resources": [resource]})
}

/// A policy of a sort about ConfigMaps that are written; `spec` replaces fields of it.
fn policy(sort: &str, name: &str, spec: &Value) -> Value {
    let mut object = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": format!("{sort}AdmissionPolicy"),
        "metadata": {"name": name},
        "spec": {"matchConstraints": {"resourceRules": [rule("", "configmaps", &["CREATE", "UPDATE"])]}}});
    if sort == "Mutating" {
        object["spec"]["reinvocationPolicy"] = json!("Never");
    }
    for (field, value) in spec.as_object().unwrap() {
        object["spec"][field] = value.clone();
    }
    object
}

fn binding(sort: &str, name: &str, policy: &str, spec: &Value) -> Value {
    let mut object = json!({"apiVersion": "admissionregistration.k8s.io/v1",
        "kind": format!("{sort}AdmissionPolicyBinding"), "metadata": {"name": name}, "spec": {"policyName": policy}});
    if sort == "Validating" {
        object["spec"]["validationActions"] = json!(["Deny"]);
    }
    for (field, value) in spec.as_object().unwrap() {
        object["spec"][field] = value.clone();
    }
    object
}

/// Puts a policy into force, in place of the one before.
async fn enforce(plane: &ControlPlane, sort: &str, spec: Value, bound: Value) {
    let lower = sort.to_lowercase();
    let (policies, bindings) = (
        format!("{ADMISSION}/{lower}admissionpolicies"),
        format!("{ADMISSION}/{lower}admissionpolicybindings"),
    );
    ask(plane, "DELETE", &format!("{policies}/p"), Value::Null).await;
    ask(plane, "DELETE", &format!("{bindings}/b"), Value::Null).await;
    for (path, object) in [(policies, policy(sort, "p", &spec)), (bindings, binding(sort, "b", "p", &bound))]
    {
        let (code, _, body) = ask(plane, "POST", &path, object).await;
        assert_eq!(code, 201, "{body:#}");
    }
}

fn map(name: &str, data: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data})
}

fn deployment(name: &str, replicas: u32) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": {
        "replicas": replicas, "selector": {"matchLabels": {"app": name}},
        "template": {"metadata": {"labels": {"app": name}},
            "spec": {"containers": [{"name": "main", "image": "nginx"}]}}}})
}

/// The text after the binding's name in the refusal of a ConfigMap that is not kept; `""` where it is
/// accepted.
async fn said(plane: &ControlPlane, object: Value) -> String {
    let (code, _, body) = ask(plane, "POST", &format!("{MAPS}?dryRun=All"), object).await;
    if code == 201 {
        return String::new();
    }
    let message = body["message"].as_str().unwrap();
    assert_eq!(body["code"], json!(code), "{body}");
    message.split_once("denied request: ").unwrap_or(("", message)).1.to_owned()
}

#[tokio::test]
async fn a_validation_refuses_with_its_own_words_and_reason() {
    let plane = bare_plane().await;
    let validations = json!([
        {"expression": "object.data.a == '1'"},
        {"expression": "object.metadata.name != 'b'", "message": "not b", "reason": "Forbidden"},
        {"expression": "object.metadata.name != 'c'",
            "messageExpression": "'bad ' + object.metadata.name + ' in ' + namespaceObject.metadata.name + ' by ' + request.operation"},
    ]);
    enforce(&plane, "Validating", json!({"validations": validations}), json!({})).await;
    assert_eq!(ask(&plane, "POST", MAPS, map("a", json!({"a": "1"}))).await.0, 201);
    let (code, _, body) = ask(&plane, "POST", MAPS, map("b", json!({"a": "1"}))).await;
    let message = "ValidatingAdmissionPolicy 'p' with binding 'b' denied request: not b";
    assert_eq!(
        (code, &body),
        (
            403,
            &json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": 403,
                "reason": "Forbidden", "message": format!("configmaps \"b\" is forbidden: {message}"),
                "details": {"name": "b", "kind": "configmaps", "causes": [{"message": message}]}})
        )
    );
    let (code, _, body) = ask(&plane, "POST", MAPS, map("x", json!({"a": "2"}))).await;
    assert_eq!((code, &body["reason"]), (422, &json!("Invalid")));
    let texts = [
        (map("x", json!({"a": "2"})), "failed expression: object.data.a == '1'"),
        (map("c", json!({"a": "1"})), "bad c in default by CREATE"),
        (map("x", json!({})), "expression 'object.data.a == '1'' resulted in error: no such key: data"),
        (map("x", json!({"b": "1"})), "expression 'object.data.a == '1'' resulted in error: no such key: a"),
        (map("x", json!({"a": "1"})), ""),
    ];
    for (object, text) in texts {
        let without_data = object["data"] == json!({});
        let object = if without_data { json!({"metadata": {"name": "x"}}) } else { object };
        assert_eq!(said(&plane, object).await, text);
    }
    // Updates and applies are asked about too, deletes are not, for no rule names them.
    let patch = json!({"data": {"a": "2"}});
    let merge = "application/merge-patch+json";
    assert_eq!(ask_as(&plane, "PATCH", &format!("{MAPS}/a"), merge, patch).await.0, 422);
    let applied = map("d", json!({"a": "5"}));
    let apply = "application/apply-patch+yaml";
    assert_eq!(ask_as(&plane, "PATCH", &format!("{MAPS}/d?fieldManager=x"), apply, applied).await.0, 422);
    assert_eq!(ask(&plane, "DELETE", &format!("{MAPS}/a"), Value::Null).await.0, 200);
    // Without its binding a policy says nothing.
    ask(&plane, "DELETE", &format!("{ADMISSION}/validatingadmissionpolicybindings/b"), Value::Null).await;
    assert_eq!(ask(&plane, "POST", MAPS, map("b", json!({}))).await.0, 201);
    plane.stop().await;
}

#[tokio::test]
async fn variables_and_conditions_are_evaluated_when_they_are_needed() {
    let plane = bare_plane().await;
    let spec = json!({
        "variables": [{"name": "a", "expression": "object.data.a"}, {"name": "n", "expression": "int(variables.a)"}],
        "matchConditions": [{"name": "has", "expression": "has(object.data.a)"}],
        "validations": [{"expression": "variables.n < 5", "messageExpression": "'got ' + string(variables.n)"}]});
    enforce(&plane, "Validating", spec, json!({})).await;
    let failed = "expression 'variables.n < 5' resulted in error: composited variable \"n\" fails to evaluate: type \
                  conversion error from 'string' to 'int'";
    for (data, text) in [
        (json!({"a": "7"}), "got 7"),
        (json!({"a": "x"}), failed),
        (json!({"b": "7"}), ""),
        (json!({"a": "3"}), ""),
    ] {
        assert_eq!(said(&plane, map("x", data)).await, text);
    }
    let spec = json!({"matchConditions": [{"name": "q", "expression": "object.data.q == '1'"}],
        "validations": [{"expression": "false"}]});
    enforce(&plane, "Validating", spec.clone(), json!({})).await;
    let failed = "expression 'object.data.q == '1'' resulted in error: no such key: q";
    assert_eq!(said(&plane, map("x", json!({"a": "1"}))).await, failed);
    assert_eq!(said(&plane, map("x", json!({"q": "1"}))).await, "failed expression: false");
    let mut ignoring = spec;
    ignoring["failurePolicy"] = json!("Ignore");
    enforce(&plane, "Validating", ignoring, json!({})).await;
    assert_eq!(said(&plane, map("x", json!({"a": "1"}))).await, "");
    // One expression may not cost more than a server allows.
    let list = "[1,2,3,4,5,6,7,8,9,10]";
    let loops = ["a", "b", "c", "d", "e"].map(|name| format!("{list}.all({name}, ")).concat();
    let text = format!("{loops}a+b+c+d+e < 1000)))))");
    enforce(&plane, "Validating", json!({"validations": [{"expression": text.clone()}]}), json!({})).await;
    let failed =
        format!("expression '{text}' resulted in error: operation cancelled: actual cost limit exceeded");
    assert_eq!(said(&plane, map("x", json!({"a": "1"}))).await, failed);
    plane.stop().await;
}

#[tokio::test]
async fn rules_selectors_and_names_say_what_is_meant() {
    let plane = bare_plane().await;
    ask(&plane, "POST", "/api/v1/namespaces", json!({"metadata": {"name": "other"}})).await;
    ask(&plane, "POST", MAPS, map("gone", json!({"a": "1"}))).await;
    let mut free = rule("", "configmaps", &["*"]);
    free["resourceNames"] = json!(["free"]);
    let meant = json!({"resourceRules": [rule("", "configmaps", &["CREATE", "DELETE"])],
        "excludeResourceRules": [free],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "default"}},
        "objectSelector": {"matchExpressions": [{"key": "skip", "operator": "DoesNotExist"}]}});
    let look = "request.operation == 'DELETE' ? (object == null && oldObject.data.a != '1') : false";
    let spec = json!({"matchConstraints": meant, "validations": [{"expression": look, "message": "no"}]});
    enforce(&plane, "Validating", spec, json!({})).await;
    let mut skipped = map("x", json!({}));
    skipped["metadata"]["labels"] = json!({"skip": "y"});
    assert_eq!(said(&plane, map("x", json!({}))).await, "no");
    assert_eq!(said(&plane, map("free", json!({}))).await, "");
    assert_eq!(said(&plane, skipped).await, "");
    let other = "/api/v1/namespaces/other/configmaps";
    assert_eq!(ask(&plane, "POST", other, map("x", json!({}))).await.0, 201);
    let (code, _, body) = ask(&plane, "DELETE", &format!("{MAPS}/gone"), Value::Null).await;
    assert_eq!((code, &body["details"]["name"]), (422, &json!("gone")));
    let (_, _, body) = ask(&plane, "DELETE", MAPS, Value::Null).await;
    assert!(body["message"].as_str().unwrap().starts_with("configmaps \"Unknown\" is forbidden"), "{body}");

    // Another version of the resource is seen at the version that the policy names.
    let scaled = json!({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "h"},
        "spec": {"maxReplicas": 3, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "x"},
            "metrics": [{"type": "Resource", "resource": {"name": "cpu",
                "target": {"type": "Utilization", "averageUtilization": 70}}}]}});
    let words = "request.kind.version + ' ' + request.requestKind.version + ' ' + \
                 string(object.spec.targetCPUUtilizationPercentage)";
    let mut spec = json!({"matchConstraints":
            {"resourceRules": [rule("autoscaling", "horizontalpodautoscalers", &["CREATE"])]},
        "validations": [{"expression": "object.apiVersion != 'autoscaling/v1'", "messageExpression": words}]});
    enforce(&plane, "Validating", spec.clone(), json!({})).await;
    let path = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers?dryRun=All";
    let (_, _, body) = ask(&plane, "POST", path, scaled.clone()).await;
    assert!(body["message"].as_str().unwrap().ends_with("denied request: v1 v2 70"), "{body}");
    spec["matchConstraints"]["matchPolicy"] = json!("Exact");
    enforce(&plane, "Validating", spec, json!({})).await;
    assert_eq!(ask(&plane, "POST", path, scaled).await.0, 201);

    // A Scale is asked about as such; and what may be done is known.
    let words =
        "object.kind + ' ' + request.resource.resource + ' ' + request.subResource + ' ' + request.name";
    let spec = json!({"matchConstraints": {"resourceRules": [rule("apps", "deployments/scale", &["*"])]},
        "validations": [{"expression": "object.spec.replicas < 4", "messageExpression": words},
            {"expression": "authorizer.requestResource.check('update').allowed()"}]});
    enforce(&plane, "Validating", spec, json!({})).await;
    assert_eq!(ask(&plane, "POST", APPS, deployment("d", 9)).await.0, 201);
    let (path, merge) = (format!("{APPS}/d/scale"), "application/merge-patch+json");
    let (_, _, body) = ask_as(&plane, "PATCH", &path, merge, json!({"spec": {"replicas": 7}})).await;
    assert!(body["message"].as_str().unwrap().ends_with("Scale deployments scale d"), "{body}");
    assert_eq!(ask_as(&plane, "PATCH", &path, merge, json!({"spec": {"replicas": 2}})).await.0, 200);
    plane.stop().await;
}

#[tokio::test]
async fn parameters_come_from_the_objects_that_a_binding_names() {
    let plane = bare_plane().await;
    let meant = json!({"resourceRules": [rule("apps", "deployments", &["CREATE"])]});
    let spec = json!({"matchConstraints": meant, "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
        "validations": [{"expression": "object.spec.replicas <= int(params.data.max)",
            "messageExpression": "'at most ' + params.data.max + ' ' + params.kind + ' ' + params.metadata.name"}]});
    let named = json!({"paramRef": {"name": "limit", "parameterNotFoundAction": "Deny"}});
    enforce(&plane, "Validating", spec.clone(), named).await;
    let path = format!("{APPS}?dryRun=All");
    let refused = async |replicas: u32| {
        let (code, _, body) = ask(&plane, "POST", &path, deployment("d", replicas)).await;
        let message = body["message"].as_str().unwrap_or_default();
        if code == 201 { String::new() } else { message.split_once("denied request: ").unwrap().1.to_owned() }
    };
    assert_eq!(
        refused(1).await,
        "failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction"
    );
    let mut limit = map("limit", json!({"max": "2"}));
    limit["metadata"]["labels"] = json!({"limits": "yes"});
    ask(&plane, "POST", MAPS, limit).await;
    assert_eq!((refused(2).await.as_str(), refused(3).await.as_str()), ("", "at most 2 ConfigMap limit"));

    let selected = |value: &str, action: &str| json!({"paramRef": {"selector": {"matchLabels": {"limits": value}}, "parameterNotFoundAction": action}});
    enforce(&plane, "Validating", spec.clone(), selected("yes", "Allow")).await;
    assert_eq!(refused(3).await, "at most 2 ConfigMap limit");
    enforce(&plane, "Validating", spec.clone(), selected("no", "Allow")).await;
    assert_eq!(refused(3).await, "");

    let mut unknown = spec;
    unknown["paramKind"] = json!({"apiVersion": "example.com/v1", "kind": "Foo"});
    enforce(&plane, "Validating", unknown, selected("yes", "Allow")).await;
    let (_, _, body) = ask(&plane, "POST", &path, deployment("d", 1)).await;
    let text = "deployments.apps \"d\" is forbidden: ValidatingAdmissionPolicy 'p' denied request: failed to configure \
                policy: failed to find resource referenced by paramKind: 'example.com/v1, Kind=Foo'";
    assert_eq!(body["message"], json!(text));
    plane.stop().await;
}

/// The error of a policy or a binding that is not kept.
async fn refusal(plane: &ControlPlane, object: Value) -> String {
    let kind = object["kind"].as_str().unwrap().to_lowercase();
    let plural = if kind.ends_with('y') { kind.replace("policy", "policies") } else { format!("{kind}s") };
    let (code, _, body) = ask(plane, "POST", &format!("{ADMISSION}/{plural}?dryRun=All"), object).await;
    if code == 201 {
        return String::new();
    }
    let message = body["message"].as_str().unwrap();
    message.split_once(" is invalid: ").unwrap_or(("", message)).1.to_owned()
}

#[tokio::test]
async fn what_is_no_policy_is_refused() {
    let plane = bare_plane().await;
    let rule_of = |text: &str| json!({"validations": [{"expression": text}]});
    let invalid = |field: &str, value: &str, why: &str| format!("{field}: Invalid value: {value:?}: {why}");
    let first = "spec.validations[0].expression";
    for (spec, text) in [
        (rule_of("true"), String::new()),
        (rule_of("object.x"), invalid(first, "object.x", "must evaluate to bool but got dyn")),
        (
            rule_of("params.x == 1"),
            invalid(
                first,
                "params.x == 1",
                "compilation failed: ERROR: <input>:1:1: undeclared reference to 'params' (in container '')\n | params.x \
                 == 1\n | ^",
            ),
        ),
        (rule_of(" "), format!("{first}: Required value: expression is not specified")),
        (
            json!({"variables": [{"name": "x", "expression": "1"}], "validations": [{"expression": "variables.y"}]}),
            invalid(
                first,
                "variables.y",
                "compilation failed: ERROR: <input>:1:10: undefined field 'y'\n | variables.y\n | .........^",
            ),
        ),
        (
            json!({"validations": [{"expression": "true", "messageExpression": "1"}]}),
            invalid("spec.validations[0].messageExpression", "1", "must evaluate to string but got int"),
        ),
        (
            json!({"validations": [{"expression": "true", "reason": "NotFound"}]}),
            "spec.validations[0].reason: Unsupported value: \"NotFound\": supported values: \"Forbidden\", \"Invalid\", \
             \"RequestEntityTooLarge\""
                .to_owned(),
        ),
        (
            json!({"auditAnnotations": [{"key": "a", "valueExpression": "1"}]}),
            invalid(
                "spec.auditAnnotations[0].valueExpression",
                "1",
                "must evaluate to one of [string null_type] but got int",
            ),
        ),
        (
            json!({"validations": [{"expression": "true"}], "matchConstraints": {}}),
            "spec.matchConstraints.resourceRules: Required value".to_owned(),
        ),
        (
            json!({"validations": [{"expression": "true"}], "variables": [{"name": "for", "expression": "1"}]}),
            invalid("spec.variables[0].name", "for", "must be a valid CEL identifier"),
        ),
    ] {
        assert_eq!(refusal(&plane, policy("Validating", "p", &spec)).await, text, "{spec}");
    }
    for (spec, text) in [
        (json!({}), ""),
        (
            json!({"validationActions": []}),
            "spec.validationActions: Required value: at least one validation action is required",
        ),
        (
            json!({"paramRef": {"parameterNotFoundAction": "Deny"}}),
            "spec.paramRef: Required value: one of name or selector must be specified",
        ),
    ] {
        assert_eq!(refusal(&plane, binding("Validating", "b", "p", &spec)).await, text, "{spec}");
    }
    plane.stop().await;
}

#[tokio::test]
#[cfg_attr(not(oracles), ignore = "needs OPDEV_ORACLES")]
async fn kubectl_is_warned_and_refused() {
    let cluster = Cluster::start().await;
    let text = "
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: replicas}
spec:
  matchConstraints:
    resourceRules:
    - {apiGroups: [apps], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [deployments]}
  validations:
  - {expression: object.spec.replicas <= 2, message: too many}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: everywhere}
spec: {policyName: replicas, validationActions: [ACTION]}
";
    cluster.apply(&text.replace("ACTION", "Warn")).await;
    let create = ["create", "deployment", "web", "--image=nginx", "--replicas=3"];
    let said = cluster.run("kubectl", &create).await;
    let about = "ValidatingAdmissionPolicy 'replicas' with binding 'everywhere'";
    assert_eq!(
        (said.code, said.err),
        (0, format!("Warning: Validation failed for {about}: too many\n")),
        "{}",
        said.out
    );
    cluster.kubectl("delete deployment web").await;
    cluster.apply(&text.replace("ACTION", "Deny")).await;
    let said = cluster.run("kubectl", &create).await;
    let denied = format!(
        "error: failed to create deployment: deployments.apps \"web\" is forbidden: {about} denied request: too many\n"
    );
    assert_eq!((said.code, said.err), (1, denied));
    cluster.kubectl("create deployment web --image=nginx --replicas=2").await;
    let text = cluster.kubectl("get validatingadmissionpolicies,validatingadmissionpolicybindings").await;
    assert!(text.contains("replicas") && text.contains("everywhere"), "{text}");
    cluster.plane.stop().await;
}

/// A ConfigMap as a mutation leaves it, or what is said where that fails.
async fn mutated(plane: &ControlPlane, mutations: Value, object: Value) -> Result<Value, String> {
    enforce(plane, "Mutating", json!({"mutations": mutations}), json!({})).await;
    let (code, _, body) = ask(plane, "POST", &format!("{MAPS}?dryRun=All"), object).await;
    if code == 201 {
        return Ok(json!([body["data"], body["metadata"]["labels"]]));
    }
    let message = body["message"].as_str().unwrap();
    Err(message.strip_prefix("policy 'p' with binding 'b' denied request: ").unwrap_or(message).to_owned())
}

fn apply(text: &str) -> Value {
    json!({"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": text}})
}

fn patch(text: &str) -> Value {
    json!({"patchType": "JSONPatch", "jsonPatch": {"expression": text}})
}

#[tokio::test]
async fn mutations_change_objects() {
    let plane = bare_plane().await;
    let one = || map("x", json!({"a": "1"}));
    for (mutations, after) in [
        (
            json!([apply(
                "Object{metadata: Object.metadata{labels: {'n': object.metadata.name, 'in': dyn(namespaceObject.metadata.name)}}, data: {'b': object.data.a}}"
            )]),
            json!([{"a": "1", "b": "1"}, {"n": "x", "in": "default"}]),
        ),
        // One after another, each sees what the one before has done.
        (
            json!([
                apply("Object{data: {'b': object.data.a + '!'}}"),
                apply("Object{data: {'c': object.data.b}}")
            ]),
            json!([{"a": "1", "b": "1!", "c": "1!"}, null]),
        ),
        (
            json!([patch(
                "[JSONPatch{op: 'add', path: '/metadata/labels', value: {}}, JSONPatch{op: 'add', path: '/metadata/labels/' + jsonpatch.escapeKey('example.com/y'), value: 'z'}, JSONPatch{op: 'move', from: '/data/a', path: '/data/b'}]"
            )]),
            json!([{"b": "1"}, {"example.com/y": "z"}]),
        ),
        // A test that fails is no failure.
        (
            json!([patch(
                "[JSONPatch{op: 'test', path: '/data/a', value: '9'}, JSONPatch{op: 'remove', path: '/data/a'}]"
            )]),
            json!([{"a": "1"}, null]),
        ),
        (json!([apply("Object{?data: optional.none()}")]), json!([{"a": "1"}, null])),
    ] {
        assert_eq!(mutated(&plane, mutations.clone(), one()).await, Ok(after), "{mutations}");
    }
    for (mutation, why) in [
        (
            apply("Object{data: {'b': object.data.zz}}"),
            "expression 'Object{data: {'b': object.data.zz}}' resulted in error: no such key: zz",
        ),
        (
            apply("Object{data: Object.dat{x: 'y'}}"),
            "type mismatch: unexpected type name \"Object.dat\", expected \"Object.data\", which matches field name path \
             from root Object type",
        ),
        (
            apply("Object{zzz: 1}"),
            "error applying patch: failed to convert patch object to typed object: .zzz: field not declared in schema",
        ),
    ] {
        assert_eq!(mutated(&plane, json!([mutation]), one()).await, Err(why.to_owned()));
    }
    let (code, _, body) = ask(&plane, "POST", MAPS, one()).await;
    assert_eq!((code, &body["reason"], &body["code"]), (403, &json!("Invalid"), &json!(403)), "{body}");
    plane.stop().await;
}

#[tokio::test]
async fn lists_are_merged_by_their_keys_and_atomic_ones_are_left_alone() {
    let plane = bare_plane().await;
    let meant = json!({"resourceRules": [rule("apps", "deployments", &["CREATE"])]});
    let container = "Object.spec.template.spec.containers";
    let spec = |inside: &str| {
        let text = format!(
            "Object{{spec: Object.spec{{template: Object.spec.template{{spec: Object.spec.template.spec{{containers: [{container}{{{inside}}}]}}}}}}}}"
        );
        json!({"matchConstraints": meant, "mutations": [apply(&text)]})
    };
    let path = format!("{APPS}?dryRun=All");
    enforce(&plane, "Mutating", spec("name: 'side', image: 'x'"), json!({})).await;
    let (_, _, body) = ask(&plane, "POST", &path, deployment("d", 1)).await;
    let containers = &body["spec"]["template"]["spec"]["containers"];
    assert_eq!(containers.as_array().unwrap().len(), 2, "{body:#}");
    // A missing field is filled in as for any container.
    assert!(containers.as_array().unwrap().iter().all(|one| one["imagePullPolicy"] == "Always"), "{body:#}");
    enforce(&plane, "Mutating", spec("name: 'main', args: ['a']"), json!({})).await;
    let (_, _, body) = ask(&plane, "POST", &path, deployment("d", 1)).await;
    let text = "policy 'p' with binding 'b' denied request: error applying patch: invalid ApplyConfiguration: may not \
                mutate atomic arrays, maps or structs: .spec.template.spec.containers[0].args";
    assert_eq!(body["message"], json!(text));
    plane.stop().await;
}

#[tokio::test]
async fn policies_are_asked_about_what_is_below_a_pod() {
    let plane = bare_plane().await;
    let pods = "/api/v1/namespaces/default/pods";
    let pod = json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    assert_eq!(ask(&plane, "POST", pods, pod).await.0, 201);
    let words = "request.operation + ' ' + request.kind.kind + ' ' + request.subResource + ' ' + object.kind";
    let spec = json!({"matchConstraints": {"resourceRules": [rule("", "pods/*", &["*"])]},
        "validations": [{"expression": "false", "messageExpression": words}]});
    enforce(&plane, "Validating", spec, json!({})).await;
    let eviction = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}});
    let bound = json!({"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n"}});
    for (below, body, words) in [
        ("eviction", eviction, "CREATE Eviction eviction Eviction"),
        ("exec?command=ls", Value::Null, "CONNECT PodExecOptions exec PodExecOptions"),
        ("binding", bound, "CREATE Binding binding Binding"),
    ] {
        let (code, _, body) = ask(&plane, "POST", &format!("{pods}/p/{below}"), body).await;
        assert_eq!(code, 422, "{below} {body:#}");
        assert!(body["message"].as_str().unwrap().ends_with(words), "{body:#}");
    }
    plane.stop().await;
}

#[tokio::test]
async fn a_policy_is_asked_again_where_it_wants_to_be() {
    let plane = bare_plane().await;
    let again = json!({"reinvocationPolicy": "IfNeeded",
        "mutations": [patch("[JSONPatch{op: 'replace', path: '/data/a', value: string(int(object.data.a) + 1)}]")]});
    enforce(&plane, "Mutating", again.clone(), json!({})).await;
    let (_, _, body) = ask(&plane, "POST", MAPS, map("twice", json!({"a": "1"}))).await;
    assert_eq!(body["data"]["a"], json!("3"), "{body}");
    let mut once = again;
    once["reinvocationPolicy"] = json!("Never");
    enforce(&plane, "Mutating", once, json!({})).await;
    let (_, _, body) = ask(&plane, "POST", MAPS, map("once", json!({"a": "1"}))).await;
    assert_eq!(body["data"]["a"], json!("2"), "{body}");
    plane.stop().await;
}

#[tokio::test]
async fn policies_are_in_force_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let start = async || {
        let mut config = Config::default();
        config.controllers = Controllers::None;
        config.data_dir = Some(folder.path().to_owned());
        ControlPlane::start_with(config).await.unwrap()
    };
    let plane = start().await;
    enforce(
        &plane,
        "Validating",
        json!({"validations": [{"expression": "false", "message": "never"}]}),
        json!({}),
    )
    .await;
    plane.stop().await;
    let plane = start().await;
    assert_eq!(said(&plane, map("x", json!({}))).await, "never");
    plane.stop().await;
}
