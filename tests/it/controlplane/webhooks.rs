//! Admission webhooks over real HTTPS: when they are asked and what, what their answers do, and the words of
//! the real server where something goes wrong.

use super::webhook_server::{Webhook, given, identity, response};
use http::Request;
use http_body_util::{BodyExt, Full};
use opdev_controlplane::{Config, ControlPlane, Controllers};
use serde_json::{Value, json};
use std::time::Duration;
use tower::ServiceExt;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const APPS: &str = "/apis/apps/v1/namespaces/default/deployments";
const HOOKS: &str = "/apis/admissionregistration.k8s.io/v1";

/// An answer: code, warnings and body.
pub(crate) type Told = (u16, Vec<String>, Value);

pub(crate) async fn ask_as(plane: &ControlPlane, method: &str, path: &str, kind: &str, body: Value) -> Told {
    let text = if body.is_null() { String::new() } else { body.to_string() };
    let request = Request::builder().method(method).uri(path).header("content-type", kind);
    let request = request.header("user-agent", "tester/1").body(Full::<bytes::Bytes>::from(text)).unwrap();
    let (parts, body) = plane.service().oneshot(request).await.unwrap().into_parts();
    let warnings = parts.headers.get_all("warning").iter();
    let warnings = warnings.map(|value| value.to_str().unwrap().to_owned()).collect();
    let bytes = body.collect().await.unwrap().to_bytes();
    (parts.status.as_u16(), warnings, serde_json::from_slice(&bytes).unwrap_or_default())
}

pub(crate) async fn ask(plane: &ControlPlane, method: &str, path: &str, body: Value) -> Told {
    ask_as(plane, method, path, "application/json", body).await
}

async fn merge(plane: &ControlPlane, path: &str, body: Value) -> Told {
    ask_as(plane, "PATCH", path, "application/merge-patch+json", body).await
}

pub(crate) async fn bare_plane() -> ControlPlane {
    let mut config = Config::default();
    config.controllers = Controllers::None;
    ControlPlane::start_with(config).await.unwrap()
}

fn rules(resources: &[&str]) -> Value {
    json!([{"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": resources}])
}

/// A webhook of a configuration; `more` replaces fields of it.
fn hook(name: &str, client: Value, more: Value) -> Value {
    let mut hook = json!({"name": format!("{name}.example.com"), "clientConfig": client, "sideEffects": "None",
        "admissionReviewVersions": ["v1"], "rules": rules(&["configmaps"])});
    for (field, value) in more.as_object().unwrap() {
        hook[field] = value.clone();
    }
    hook
}

/// Configures webhooks of a sort, in place of what was configured under the name.
async fn configure(plane: &ControlPlane, sort: &str, name: &str, hooks: Value) {
    let list = format!("{HOOKS}/{}webhookconfigurations", sort.to_lowercase());
    let one = format!("{list}/{name}");
    ask(plane, "DELETE", &one, Value::Null).await;
    let kind = format!("{sort}WebhookConfiguration");
    let object = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind,
        "metadata": {"name": name}, "webhooks": hooks});
    let (code, _, body) = ask(plane, "POST", &list, object).await;
    assert_eq!(code, 201, "{body:#}");
}

fn map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": "1"}})
}

fn deployment(name: &str) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": {
        "selector": {"matchLabels": {"app": name}},
        "template": {"metadata": {"labels": {"app": name}},
            "spec": {"containers": [{"name": "main", "image": "nginx"}]}}}})
}

/// A request's operation, resource and subresource, such as `UPDATE deployments/scale`.
fn said(request: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (operation, resource) = (text(&request["operation"]), text(&request["resource"]["resource"]));
    match text(&request["subResource"]) {
        below if below.is_empty() => format!("{operation} {resource}"),
        below => format!("{operation} {resource}/{below}"),
    }
}

#[tokio::test]
async fn every_write_is_shown_to_both_sorts_of_webhooks() {
    let (plane, server) = (bare_plane().await, Webhook::start().await);
    server
        .patch("/change", json!([{"op": "add", "path": "/metadata/annotations", "value": {"seen": "yes"}}]));
    server.allow("/look");
    let all = rules(&["*/*"]);
    let written = json!([{"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["CREATE"],
        "resources": ["configmaps"]}]);
    configure(&plane, "Mutating", "m", json!([hook("m", server.url("/change"), json!({"rules": written}))]))
        .await;
    configure(&plane, "Validating", "v", json!([hook("v", server.url("/look"), json!({"rules": all}))]))
        .await;

    let (code, _, made) = ask(&plane, "POST", &format!("{MAPS}?fieldManager=me"), map("a")).await;
    assert_eq!((code, &made["metadata"]["annotations"]["seen"]), (201, &json!("yes")));
    // A field that a webhook has set belongs to nobody.
    let fields = json!([{"f:data": {".": {}, "f:a": {}}}]);
    let managed = made["metadata"]["managedFields"].as_array().unwrap();
    assert_eq!(managed.iter().map(|entry| entry["fieldsV1"].clone()).collect::<Value>(), fields);
    let asked = server.asked();
    let [(first, changed), (second, looked)] = asked.as_slice() else { panic!("{asked:#?}") };
    assert_eq!((first.as_str(), second.as_str()), ("/change", "/look"));
    assert_eq!(changed["object"]["metadata"]["uid"], Value::Null);
    assert_eq!(looked["object"]["metadata"]["uid"], made["metadata"]["uid"]);
    assert_eq!(looked["object"]["metadata"]["annotations"]["seen"], "yes");
    let options = json!({"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1", "fieldManager": "me"});
    assert_eq!(looked["options"], options);
    assert_eq!(looked["userInfo"]["username"], "kubernetes-admin");
    assert_eq!((&looked["dryRun"], &looked["oldObject"]), (&json!(false), &Value::Null));
    assert_eq!(looked["requestKind"], json!({"group": "", "version": "v1", "kind": "ConfigMap"}));

    for (method, path, kind, body, expected) in [
        ("PUT", "a", "application/json", map("a"), "UPDATE configmaps"),
        ("PATCH", "a", "application/merge-patch+json", json!({"data": {"b": "2"}}), "UPDATE configmaps"),
        ("PATCH", "a", "application/merge-patch+json", json!({}), "UPDATE configmaps"),
        ("PATCH", "a?fieldManager=x", "application/apply-patch+yaml", map("a"), "UPDATE configmaps"),
        ("PATCH", "b?fieldManager=x", "application/apply-patch+yaml", map("b"), "CREATE configmaps"),
        ("DELETE", "a?dryRun=All", "application/json", Value::Null, "DELETE configmaps"),
        ("DELETE", "a", "application/json", Value::Null, "DELETE configmaps"),
        ("DELETE", "", "application/json", Value::Null, "DELETE configmaps"),
    ] {
        let path = format!("{MAPS}/{path}");
        let (code, _, body) = ask_as(&plane, method, &path, kind, body).await;
        assert!(code < 300, "{method} {path}: {body:#}");
        let asked = server.asked();
        let (_, last) = asked.last().unwrap();
        assert_eq!(said(last), expected, "{method} {path}");
        assert_eq!(last["object"].is_null(), method == "DELETE");
        assert_eq!(last["oldObject"].is_null(), expected.starts_with("CREATE"));
    }

    ask(&plane, "POST", APPS, deployment("web")).await;
    let scale = json!({"spec": {"replicas": 3}});
    merge(&plane, &format!("{APPS}/web/scale"), scale).await;
    merge(&plane, &format!("{APPS}/web/status"), json!({"status": {"replicas": 1}})).await;
    ask(&plane, "POST", "/api/v1/namespaces", json!({"metadata": {"name": "other"}})).await;
    ask(&plane, "POST", "/api/v1/namespaces/default/pods/p/exec?command=ls", Value::Null).await;
    let review = json!({"spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}});
    ask(&plane, "POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", review).await;
    let asked = server.asked();
    let words: Vec<String> = asked.iter().map(|(_, request)| said(request)).collect();
    assert_eq!(
        words,
        [
            "CREATE deployments",
            "UPDATE deployments/scale",
            "UPDATE deployments/status",
            "CREATE namespaces",
            "CONNECT pods/exec",
            "CREATE selfsubjectaccessreviews"
        ]
    );
    assert_eq!(asked[1].1["kind"], json!({"group": "autoscaling", "version": "v1", "kind": "Scale"}));
    assert_eq!(asked[1].1["object"]["spec"], json!({"replicas": 3}));
    assert_eq!(asked[3].1["namespace"], "other");
    assert_eq!(asked[4].1["object"]["command"], json!(["ls"]));
    // Reading asks nobody, nor does what configures webhooks.
    ask(&plane, "GET", MAPS, Value::Null).await;
    configure(&plane, "Validating", "v", json!([])).await;
    assert_eq!(server.paths(), [""; 0]);
    plane.stop().await;
}

#[tokio::test]
async fn denials_and_warnings_read_as_from_the_real_server() {
    let (plane, server) = (bare_plane().await, Webhook::start().await);
    configure(&plane, "Validating", "v", json!([hook("v", server.url("/v"), json!({}))])).await;
    let by = "admission webhook \"v.example.com\" denied the request";
    for (status, code, reason, message) in [
        (Value::Null, 400, Value::Null, format!("{by} without explanation")),
        (json!({"message": "no"}), 400, Value::Null, format!("{by}: no")),
        (json!({"reason": "Forbidden"}), 400, json!("Forbidden"), format!("{by}: Forbidden")),
        (json!({"code": 200, "status": "Success", "message": "m"}), 400, Value::Null, format!("{by}: m")),
        (json!({"code": 499, "reason": "Odd", "message": "m"}), 499, json!("Odd"), format!("{by}: m")),
    ] {
        server.deny("/v", status.clone());
        let (found, _, body) = ask(&plane, "POST", MAPS, map("a")).await;
        assert_eq!((found, &body["code"], &body["reason"]), (code, &json!(code), &reason), "{status}");
        assert_eq!((&body["message"], &body["status"]), (&json!(message), &json!("Failure")), "{status}");
        assert_eq!(body.get("details"), None);
    }
    let details = json!({"name": "n", "causes": [{"reason": "r", "message": "m", "field": "f"}]});
    server.deny("/v", json!({"code": 422, "reason": "Invalid", "message": "m", "details": details}));
    assert_eq!(ask(&plane, "POST", MAPS, map("a")).await.2["details"], details);

    let warnings = json!(["careful", "say \"hi\""]);
    server.on("/v", move |review| (200, response(review, json!({"allowed": true, "warnings": warnings}))));
    let (code, warnings, _) = ask(&plane, "POST", MAPS, map("a")).await;
    assert_eq!((code, warnings), (201, vec!["299 - \"careful\"".into(), "299 - \"say \\\"hi\\\"\"".into()]));
    server.on("/v", |review| (200, response(review, json!({"allowed": false, "warnings": ["w"]}))));
    let (code, warnings, _) = ask(&plane, "DELETE", &format!("{MAPS}/a"), Value::Null).await;
    assert_eq!((code, warnings), (400, vec!["299 - \"w\"".into()]));
    assert_eq!(ask(&plane, "GET", &format!("{MAPS}/a"), Value::Null).await.0, 200);
    plane.stop().await;
}

#[tokio::test]
async fn a_webhook_that_cannot_be_asked_fails_the_write_or_is_ignored() {
    let (plane, server) = (bare_plane().await, Webhook::start().await);
    let stranger = Webhook::start().await;
    let named = Webhook::start_for(&["other.example.com"]).await;
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let free = silent.local_addr().unwrap().port();
    drop(silent);
    server.on("/500", |_| (500, json!("boom")));
    server.on("/empty", |_| (200, json!({})));
    server.on("/words", |_| (200, json!("hello")));
    server.on("/uid", |_| {
        (
            200,
            json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
            "response": {"uid": "other", "allowed": true}}),
        )
    });
    let call = "failed to call webhook:";
    let at = |port: u16, path: &str| json!({"url": format!("https://127.0.0.1:{port}{path}"), "caBundle": server.bundle});
    let post =
        |port: u16, why: &str| format!("{call} Post \"https://127.0.0.1:{port}/v?timeout=10s\": {why}");
    let cases = [
        (at(free, "/v"), post(free, &format!("dial tcp 127.0.0.1:{free}: connect: connection refused"))),
        (
            at(stranger.port, "/v"),
            post(
                stranger.port,
                "tls: failed to verify certificate: x509: certificate signed by unknown authority",
            ),
        ),
        (
            json!({"url": format!("https://127.0.0.1:{}/v", named.port), "caBundle": named.bundle}),
            post(
                named.port,
                "tls: failed to verify certificate: x509: certificate is valid for other.example.com, not 127.0.0.1",
            ),
        ),
        (server.url("/nowhere"), format!("{call} the server could not find the requested resource")),
        (
            server.url("/500"),
            format!("{call} an error on the server (\"boom\") has prevented the request from succeeding"),
        ),
        (server.url("/empty"), "received invalid webhook response: webhook response was absent".to_owned()),
        (
            server.url("/words"),
            format!(
                "{call} couldn't get version/kind; json parse error: json: cannot unmarshal string into Go value of \
                 type struct {{ APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \
                 \"json:\\\"kind,omitempty\\\"\" }}"
            ),
        ),
    ];
    for (client, why) in cases {
        for sort in ["Validating", "Mutating"] {
            configure(&plane, sort, "x", json!([hook("x", client.clone(), json!({}))])).await;
            let (code, _, body) = ask(&plane, "POST", MAPS, map("a")).await;
            let message = format!("Internal error occurred: failed calling webhook \"x.example.com\": {why}");
            assert_eq!((code, body["message"].as_str()), (500, Some(message.as_str())));
            assert_eq!(body["reason"], "InternalError");
            let ignored = json!({"failurePolicy": "Ignore"});
            configure(&plane, sort, "x", json!([hook("x", client.clone(), ignored)])).await;
            assert_eq!(ask(&plane, "POST", &format!("{MAPS}?dryRun=All"), map("a")).await.0, 201, "{why}");
            configure(&plane, sort, "x", json!([])).await;
        }
    }
    configure(&plane, "Validating", "x", json!([hook("x", server.url("/uid"), json!({}))])).await;
    let (_, _, body) = ask(&plane, "POST", MAPS, map("a")).await;
    let message = body["message"].as_str().unwrap();
    assert!(
        message.contains("received invalid webhook response: expected response.uid=")
            && message.ends_with("got \"other\"")
    );
    plane.stop().await;
}

#[tokio::test]
async fn a_serving_certificate_will_do_in_place_of_its_authority() {
    // As envtest of controller-runtime configures its webhooks.
    let mut identity = identity(&["127.0.0.1"]);
    identity.authority = identity.certificate.clone();
    let (plane, server) = (bare_plane().await, Webhook::start_as(identity).await);
    server.allow("/v");
    configure(&plane, "Validating", "v", json!([hook("v", server.url("/v"), json!({}))])).await;
    assert_eq!(ask(&plane, "POST", MAPS, map("a")).await.0, 201);
    assert_eq!(server.paths(), ["/v"]);
    plane.stop().await;
}

#[tokio::test]
async fn a_patch_changes_what_is_validated_and_others_are_asked_again() {
    let (plane, server) = (bare_plane().await, Webhook::start().await);
    server.patch("/one", json!([{"op": "add", "path": "/data/one", "value": "1"}]));
    server.patch("/two", json!([{"op": "add", "path": "/data/two", "value": "2"}]));
    server.allow("/eager");
    server.allow("/look");
    let eager = hook("eager", server.url("/eager"), json!({"reinvocationPolicy": "IfNeeded"}));
    configure(&plane, "Mutating", "b", json!([hook("two", server.url("/two"), json!({}))])).await;
    configure(&plane, "Mutating", "a", json!([eager, hook("one", server.url("/one"), json!({}))])).await;
    configure(&plane, "Validating", "v", json!([hook("v", server.url("/look"), json!({}))])).await;
    let (_, _, made) = ask(&plane, "POST", MAPS, map("a")).await;
    assert_eq!(made["data"], json!({"a": "1", "one": "1", "two": "2"}));
    // By the name of the configuration, then again whoever wants to see the changes of others.
    assert_eq!(server.paths(), ["/eager", "/one", "/two", "/eager", "/look"]);
    // An apply that leaves fields to the webhooks changes nothing.
    let apply = format!("{MAPS}/b?fieldManager=me");
    let applied = ask_as(&plane, "PATCH", &apply, "application/apply-patch+yaml", map("b")).await.2;
    let again = ask_as(&plane, "PATCH", &apply, "application/apply-patch+yaml", map("b")).await.2;
    assert_eq!(applied, again);
    server.asked();

    // Validation and defaults come after the patch.
    let labels = json!([{"op": "add", "path": "/metadata/labels", "value": {"a": "!!"}}]);
    server.patch("/one", labels);
    let (code, _, body) = ask(&plane, "POST", MAPS, map("c")).await;
    assert_eq!((code, &body["details"]["causes"][0]["field"]), (422, &json!("metadata.labels")));
    assert_eq!(server.paths(), ["/eager", "/one", "/two", "/eager"]);
    let container = json!([{"op": "add", "path": "/spec/template/spec/containers/-",
        "value": {"name": "side", "image": "side:latest"}}]);
    server.patch("/pods", container);
    let on_deployments = json!({"rules": rules(&["deployments"])});
    configure(&plane, "Mutating", "d", json!([hook("d", server.url("/pods"), on_deployments)])).await;
    let (_, _, made) = ask(&plane, "POST", APPS, deployment("web")).await;
    assert_eq!(made["spec"]["template"]["spec"]["containers"][1]["imagePullPolicy"], "Always");

    for (operations, message) in [
        (
            json!([{"op": "remove", "path": "/nope"}]),
            "error in remove for path: '/nope': Unable to remove nonexistent key: nope: missing value",
        ),
        (
            json!([{"op": "test", "path": "/data/a", "value": "9"}]),
            "testing value /data/a failed: test failed",
        ),
        (
            json!([{"op": "add", "path": "/data/q", "value": 7}]),
            "json: cannot unmarshal number into Go struct field ConfigMap.data of type string",
        ),
    ] {
        server.patch("/one", operations);
        let (code, _, body) = ask(&plane, "POST", MAPS, map("d")).await;
        assert_eq!((code, &body["message"]), (500, &json!(format!("Internal error occurred: {message}"))));
    }
    let deleted = json!([{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["DELETE"], "resources": ["configmaps"]}]);
    configure(&plane, "Mutating", "a", json!([hook("one", server.url("/one"), json!({"rules": deleted}))]))
        .await;
    let (code, _, body) = ask(&plane, "DELETE", &format!("{MAPS}/a"), Value::Null).await;
    let message = "Internal error occurred: admission webhook \"one.example.com\" attempted to modify the object, \
                   which is not supported for this operation";
    assert_eq!((code, &body["message"]), (500, &json!(message)));
    plane.stop().await;
}

#[tokio::test]
async fn selectors_conditions_and_rules_decide_who_is_asked() {
    let (plane, server) = (bare_plane().await, Webhook::start().await);
    server.allow("/v");
    let resources = |resources: &[&str], scope: &str| {
        json!({"rules": [{"apiGroups": ["*"], "apiVersions": ["v1"], "operations": ["CREATE"],
            "resources": resources, "scope": scope}]})
    };
    let conditions = |text: &str| json!({"matchConditions": [{"name": "c", "expression": text}]});
    for (more, expected) in [
        (resources(&["*"], "*"), ["configmaps", "namespaces"].as_slice()),
        (resources(&["*"], "Cluster"), &["namespaces"]),
        (resources(&["*"], "Namespaced"), &["configmaps"]),
        (resources(&["pods/*", "configmaps"], "*"), &["configmaps"]),
        (resources(&["configmaps/*"], "*"), &["configmaps"]),
        (resources(&["configmaps/status"], "*"), &[]),
        (
            json!({"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "default"}}}),
            &["configmaps"],
        ),
        (json!({"namespaceSelector": {"matchLabels": {"team": "a"}}}), &[]),
        (json!({"objectSelector": {"matchLabels": {"app": "x"}}}), &["configmaps"]),
        (json!({"objectSelector": {"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]}}), &[]),
        (conditions("object.metadata.name == 'a' && request.operation == 'CREATE'"), &["configmaps"]),
        (conditions("oldObject != null"), &[]),
        (conditions("authorizer.requestResource.check('create').allowed()"), &["configmaps"]),
    ] {
        configure(&plane, "Validating", "v", json!([hook("v", server.url("/v"), more.clone())])).await;
        let mut object = map("a");
        object["metadata"]["labels"] = json!({"app": "x"});
        ask(&plane, "POST", &format!("{MAPS}?dryRun=All"), object).await;
        let namespace = json!({"metadata": {"name": "b", "labels": {"team": "b"}}});
        ask(&plane, "POST", "/api/v1/namespaces?dryRun=All", namespace).await;
        let asked = server.asked();
        let found: Vec<&str> =
            asked.iter().map(|(_, request)| request["resource"]["resource"].as_str().unwrap()).collect();
        assert_eq!(found, expected, "{more}");
    }
    let failing = conditions("object.data.zzz == 'a'");
    configure(&plane, "Validating", "v", json!([hook("v", server.url("/v"), failing)])).await;
    let (code, _, body) = ask(&plane, "POST", MAPS, map("a")).await;
    let message = "configmaps \"a\" is forbidden: expression 'object.data.zzz == 'a'' resulted in error: no such key: zzz";
    assert_eq!((code, &body["message"]), (403, &json!(message)));
    plane.stop().await;
}

#[tokio::test]
async fn configurations_that_make_no_sense_are_refused() {
    let plane = bare_plane().await;
    let url = json!({"url": "https://localhost/v"});
    for (hook, message) in [
        (
            hook("v", url.clone(), json!({"sideEffects": "Some"})),
            "webhooks[0].sideEffects: Unsupported value: \"Some\": supported values: \"None\", \"NoneOnDryRun\"",
        ),
        (
            hook("v", url.clone(), json!({"rules": rules(&["*", "*/*"])})),
            "webhooks[0].rules[0].resources: Invalid value: [\"*\",\"*/*\"]: if '*/*' is present, must not specify other resources",
        ),
        (
            hook(
                "v",
                url.clone(),
                json!({"matchConditions": [{"name": "a", "expression": "object.metadata.name "}]}),
            ),
            "webhooks[0].matchConditions[0].expression: Invalid value: \"object.metadata.name\": must evaluate to bool but got dyn",
        ),
        (
            hook("v", json!({}), json!({})),
            "webhooks[0].clientConfig: Required value: exactly one of url or service is required",
        ),
        (
            hook("v", url.clone(), json!({"timeoutSeconds": 31})),
            "webhooks[0].timeoutSeconds: Invalid value: 31: the timeout value must be between 1 and 30 seconds",
        ),
        (
            hook("v", url.clone(), json!({"name": "short"})),
            "webhooks[0].name: Invalid value: \"short\": should be a domain with at least three segments separated by dots",
        ),
    ] {
        let object = json!({"metadata": {"name": "v"}, "webhooks": [hook]});
        let path = format!("{HOOKS}/validatingwebhookconfigurations");
        let (code, _, body) = ask(&plane, "POST", &path, object).await;
        let prefix = "ValidatingWebhookConfiguration.admissionregistration.k8s.io \"v\" is invalid: ";
        assert_eq!((code, body["message"].as_str()), (422, Some(format!("{prefix}{message}").as_str())));
    }
    plane.stop().await;
}

#[tokio::test]
async fn a_webhook_that_hangs_holds_up_nobody_else() {
    let (plane, server) = (ControlPlane::start().await.unwrap(), Webhook::start().await);
    server.allow("/held");
    let only = json!({"objectSelector": {"matchLabels": {"slow": "yes"}}, "timeoutSeconds": 30});
    configure(&plane, "Validating", "v", json!([hook("v", server.url("/held"), only)])).await;
    let mut slow = map("slow");
    slow["metadata"]["labels"] = json!({"slow": "yes"});
    let waiting = ask(&plane, "POST", MAPS, slow);
    let others = async {
        server.is_held().await;
        assert_eq!(ask(&plane, "POST", MAPS, map("quick")).await.0, 201);
        assert_eq!(ask(&plane, "GET", &format!("{MAPS}/slow"), Value::Null).await.0, 404);
        let service = json!({"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}});
        assert_eq!(ask(&plane, "POST", "/api/v1/namespaces/default/services", service).await.0, 201);
        server.release();
    };
    let ((code, _, _), ()) = tokio::join!(waiting, others);
    assert_eq!(code, 201);
    plane.stop().await;
}

#[tokio::test]
async fn a_webhook_that_takes_too_long_is_given_up() {
    let (plane, server) = (bare_plane().await, Webhook::start().await);
    server.allow("/held");
    let short = json!({"timeoutSeconds": 1});
    configure(&plane, "Mutating", "m", json!([hook("m", server.url("/held"), short)])).await;
    let (code, _, body) = ask(&plane, "POST", MAPS, map("a")).await;
    let why = format!(
        "Internal error occurred: failed calling webhook \"m.example.com\": failed to call webhook: Post \
         \"https://127.0.0.1:{}/held?timeout=1s\": context deadline exceeded",
        server.port
    );
    assert_eq!((code, body["message"].as_str()), (500, Some(why.as_str())));
    plane.stop().await;
}

#[tokio::test]
async fn what_controllers_write_is_shown_too() {
    let (plane, server) = (ControlPlane::start().await.unwrap(), Webhook::start().await);
    server.patch("/m", json!([{"op": "add", "path": "/metadata/labels/injected", "value": "yes"}]));
    let created = json!({"rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"],
        "resources": ["pods"]}]});
    configure(&plane, "Mutating", "m", json!([hook("m", server.url("/m"), created)])).await;
    ask(&plane, "POST", APPS, deployment("web")).await;
    let pods = "/api/v1/namespaces/default/pods?labelSelector=injected%3Dyes";
    tokio::time::timeout(Duration::from_secs(30), async {
        while ask(&plane, "GET", pods, Value::Null).await.2["items"].as_array().is_none_or(Vec::is_empty) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await
    .unwrap();
    let asked = server.asked();
    let user = &asked[0].1["userInfo"]["username"];
    assert_eq!(user, "system:serviceaccount:kube-system:replicaset-controller");
    plane.stop().await;
}

/// A configuration's client by a service, without an authority, as manifests for cert-manager leave it.
fn by_service(name: &str) -> Value {
    json!({"service": {"namespace": "default", "name": name, "path": "/v"}})
}

fn service(name: &str, annotations: Value) -> Value {
    json!({"metadata": {"name": name, "annotations": annotations}, "spec": {"selector": {"app": name},
        "ports": [{"port": 443, "targetPort": 9443}]}})
}

const SERVICES: &str = "/api/v1/namespaces/default/services";

#[tokio::test]
async fn a_service_leads_to_an_operator_on_this_machine() {
    let plane = bare_plane().await;
    let pair = plane.webhook_certificate().unwrap();
    let server = Webhook::start_as(given(&pair.certificate, &pair.key, &plane.authority())).await;
    server.allow("/v");
    configure(&plane, "Validating", "v", json!([hook("v", by_service("hooks"), json!({}))])).await;
    let (_, _, body) = ask(&plane, "POST", MAPS, map("a")).await;
    let message = "Internal error occurred: failed calling webhook \"v.example.com\": failed to call webhook: Post \
                   \"https://hooks.default.svc:443/v?timeout=10s\": service \"hooks\" not found";
    assert_eq!(body["message"], message);
    let annotations = json!({"opdev.dev/local-port": server.port.to_string()});
    assert_eq!(ask(&plane, "POST", SERVICES, service("hooks", annotations)).await.0, 201);
    assert_eq!(ask(&plane, "POST", MAPS, map("a")).await.0, 201);
    assert_eq!(server.paths(), ["/v"]);

    // Whoever is there by another authority's word has to have the service's name.
    let real = Webhook::start_for(&["hooks.default.svc"]).await;
    real.allow("/v");
    let port = json!({"metadata": {"annotations": {"opdev.dev/local-port": real.port.to_string()}}});
    merge(&plane, &format!("{SERVICES}/hooks"), port).await;
    let (code, _, body) = ask(&plane, "POST", MAPS, map("b")).await;
    assert_eq!(code, 500);
    assert!(body["message"].as_str().unwrap().ends_with("x509: certificate signed by unknown authority"));
    let mut client = by_service("hooks");
    client["caBundle"] = json!(real.bundle);
    configure(&plane, "Validating", "v", json!([hook("v", client, json!({}))])).await;
    assert_eq!(ask(&plane, "POST", MAPS, map("b")).await.0, 201);
    plane.stop().await;
}

#[tokio::test]
async fn a_service_of_simulated_pods_is_skipped_or_fails_as_configured() {
    for strict in [false, true] {
        let mut config = Config::default();
        config.webhooks.strict = strict;
        let plane = ControlPlane::start_with(config).await.unwrap();
        // A port of this machine on which nobody listens.
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut object = service("hooks", Value::Null);
        object["spec"]["ports"][0]["targetPort"] = json!(free);
        ask(&plane, "POST", SERVICES, object).await;
        ask(&plane, "POST", APPS, deployment("hooks")).await;
        let slices = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";
        tokio::time::timeout(Duration::from_secs(30), async {
            let ready = |list: Value| {
                let items = list["items"].as_array().cloned().unwrap_or_default();
                items.iter().any(|slice| slice["endpoints"][0]["conditions"]["ready"] == true)
            };
            while !ready(ask(&plane, "GET", slices, Value::Null).await.2) {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        })
        .await
        .unwrap();
        for sort in ["Mutating", "Validating"] {
            configure(&plane, sort, "v", json!([hook("v", by_service("hooks"), json!({}))])).await;
            let (code, warnings, body) = ask(&plane, "POST", &format!("{MAPS}?dryRun=All"), map("a")).await;
            let message = body["message"].as_str().unwrap_or_default();
            if strict {
                assert!(code == 500 && message.ends_with(":443: connect: connection refused"), "{body:#}");
            } else {
                let told = "299 - \"admission webhook \\\"v.example.com\\\" was not asked: the pods behind service \
                            default/hooks are simulated and nothing listens for it on this machine\"";
                assert_eq!((code, warnings), (201, vec![told.to_owned()]));
            }
            configure(&plane, sort, "v", json!([])).await;
        }
        plane.stop().await;
    }
}
