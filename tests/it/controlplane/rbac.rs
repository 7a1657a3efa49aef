//! Roles that are enforced: refusals in the words of the real server, reviews, tokens, impersonation, and
//! kubectl's own commands around them.

use super::tools::Cluster;
use expect_test::expect;
use http::Request;
use http_body_util::{BodyExt, Full};
use opdev_controlplane::{Config, ControlPlane, User};
use serde_json::{Value, json};
use std::time::Duration;
use tower::ServiceExt;

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
const REVIEWS: &str = "/apis/authorization.k8s.io/v1";

fn enforced() -> Config {
    let mut config = Config::default();
    config.rbac = true;
    config
}

async fn plane() -> ControlPlane {
    let plane = ControlPlane::start_with(enforced()).await.unwrap();
    let put = |path: String, body: Value| {
        let plane = &plane;
        async move { assert_eq!(ask(plane, &User::admin(), "POST", &path, Some(body)).await.0, 201) }
    };
    put("/api/v1/namespaces".to_owned(), json!({"metadata": {"name": "a"}})).await;
    put("/api/v1/namespaces/a/serviceaccounts".to_owned(), json!({"metadata": {"name": "sa1"}})).await;
    for (name, role, user) in [("jb", "nope", "jane"), ("ab", "cluster-admin", "root"), ("rw", "rw", "rw")] {
        put(format!("{RBAC}/clusterrolebindings"), binding(name, "ClusterRole", role, user)).await;
    }
    put(format!("{RBAC}/namespaces/a/rolebindings"), binding("jb2", "Role", "nope2", "jane")).await;
    let rules = json!([
        {"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["*"], "verbs": ["create", "update", "patch", "get"]},
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["patch", "update", "get"]},
    ]);
    put(format!("{RBAC}/clusterroles"), json!({"metadata": {"name": "rw"}, "rules": rules})).await;
    plane
}

fn binding(name: &str, kind: &str, role: &str, user: &str) -> Value {
    let group = "rbac.authorization.k8s.io";
    json!({"metadata": {"name": name}, "subjects": [{"kind": "User", "name": user, "apiGroup": group}],
        "roleRef": {"apiGroup": group, "kind": kind, "name": role}})
}

async fn send(plane: &ControlPlane, user: &User, request: Request<String>) -> (u16, Value) {
    let request = request.map(Full::<bytes::Bytes>::from);
    let response = plane.service().as_user(user.clone()).oneshot(request).await.unwrap();
    let (parts, body) = response.into_parts();
    let bytes = body.collect().await.unwrap().to_bytes();
    (parts.status.as_u16(), serde_json::from_slice(&bytes).unwrap_or(Value::Null))
}

async fn ask(
    plane: &ControlPlane,
    user: &User,
    method: &str,
    path: &str,
    body: Option<Value>,
) -> (u16, Value) {
    let kind = if method == "PATCH" { "application/apply-patch+yaml" } else { "application/json" };
    let request = Request::builder().method(method).uri(path).header("content-type", kind);
    send(plane, user, request.body(body.map(|body| body.to_string()).unwrap_or_default()).unwrap()).await
}

fn user(name: &str) -> User {
    User::authenticated(name, Vec::<String>::new())
}

#[tokio::test]
async fn refusals_read_as_those_of_the_real_server() {
    let plane = plane().await;
    let nope = r#"clusterrole.rbac.authorization.k8s.io "nope" not found"#;
    for (method, path, text) in [
        (
            "GET",
            "/apis/apps/v1/namespaces/default/deployments/x",
            r#"deployments.apps "x" is forbidden: User "jane" cannot get resource "deployments" in API group "apps" in the namespace "default""#,
        ),
        (
            "GET",
            "/api/v1/namespaces/default/pods/x/log",
            r#"pods "x" is forbidden: User "jane" cannot get resource "pods/log" in API group "" in the namespace "default""#,
        ),
        (
            "GET",
            "/api/v1/pods?watch=1",
            r#"pods is forbidden: User "jane" cannot watch resource "pods" in API group "" at the cluster scope"#,
        ),
        (
            "GET",
            "/api/v1/namespaces/x",
            r#"namespaces "x" is forbidden: User "jane" cannot get resource "namespaces" in API group "" in the namespace "x""#,
        ),
        (
            "DELETE",
            "/api/v1/namespaces/b/configmaps",
            r#"configmaps is forbidden: User "jane" cannot deletecollection resource "configmaps" in API group "" in the namespace "b""#,
        ),
        (
            "GET",
            "/apis/nope.io/v1/namespaces/b/foos/x",
            r#"foos.nope.io "x" is forbidden: User "jane" cannot get resource "foos" in API group "nope.io" in the namespace "b""#,
        ),
        ("GET", "/metrics", r#"forbidden: User "jane" cannot get path "/metrics""#),
        ("GET", "/livez/ping", r#"forbidden: User "jane" cannot get path "/livez/ping""#),
    ] {
        let (code, status) = ask(&plane, &user("jane"), method, path, None).await;
        assert_eq!(code, 403, "{path}");
        assert_eq!(status["message"], format!("{text}: RBAC: {nope}"), "{path}");
        assert_eq!((&status["reason"], &status["code"]), (&json!("Forbidden"), &json!(403)));
    }
    let (_, status) = ask(&plane, &user("jane"), "GET", "/api/v1/namespaces/a/pods", None).await;
    let both = format!(r#": RBAC: [{nope}, role.rbac.authorization.k8s.io "nope2" not found]"#);
    assert!(status["message"].as_str().unwrap().ends_with(&both), "{status}");
    assert_eq!(status["details"], json!({"kind": "pods"}));
    let (_, status) = ask(&plane, &user("jane"), "GET", "/metrics", None).await;
    assert_eq!(status["details"], json!({}));
    for path in ["/api", "/apis", "/apis/apps/v1", "/version", "/healthz"] {
        assert_eq!(ask(&plane, &user("jane"), "GET", path, None).await.0, 200, "{path}");
    }
    assert_eq!(ask(&plane, &User::anonymous(), "GET", "/version", None).await.0, 200);
    assert_eq!(ask(&plane, &User::anonymous(), "GET", "/api", None).await.0, 403);
    plane.stop().await;
}

#[tokio::test]
async fn an_apply_that_creates_needs_the_verb_create_too() {
    let plane = plane().await;
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}});
    let path = "/api/v1/namespaces/a/configmaps/x?fieldManager=m";
    let (code, status) = ask(&plane, &user("rw"), "PATCH", path, Some(map.clone())).await;
    let text = r#"configmaps "x" is forbidden: User "rw" cannot create resource "configmaps" in API group "" in the namespace "a""#;
    assert_eq!((code, &status["message"]), (403, &json!(text)));
    assert_eq!(ask(&plane, &user("root"), "PATCH", path, Some(map.clone())).await.0, 201);
    assert_eq!(ask(&plane, &user("rw"), "PATCH", path, Some(map)).await.0, 200);
    plane.stop().await;
}

#[tokio::test]
async fn nobody_writes_a_role_beyond_his_own() {
    let plane = plane().await;
    let head = r#"user "rw" (groups=["system:authenticated"]) is attempting to grant RBAC permissions not currently held:"#;
    let role = |rules: Value| json!({"metadata": {"name": "r1"}, "rules": rules});
    let roles = format!("{RBAC}/namespaces/a/roles");
    let wide = json!([
        {"apiGroups": ["batch.x"], "resources": ["foos", "bars"], "verbs": ["get", "list"]},
        {"apiGroups": [""], "resources": ["nodes"], "verbs": ["*"], "resourceNames": ["n1"]},
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]},
    ]);
    let (code, status) = ask(&plane, &user("rw"), "POST", &roles, Some(role(wide.clone()))).await;
    let text = format!(
        "roles.rbac.authorization.k8s.io \"r1\" is forbidden: {head}\n\
         {{APIGroups:[\"\"], Resources:[\"nodes\"], ResourceNames:[\"n1\"], Verbs:[\"*\"]}}\n\
         {{APIGroups:[\"batch.x\"], Resources:[\"bars\"], Verbs:[\"get\" \"list\"]}}\n\
         {{APIGroups:[\"batch.x\"], Resources:[\"foos\"], Verbs:[\"get\" \"list\"]}}"
    );
    assert_eq!((code, &status["message"]), (403, &json!(text)));
    let held = json!([{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "patch"]}]);
    assert_eq!(ask(&plane, &user("rw"), "POST", &roles, Some(role(held))).await.0, 201);
    assert_eq!(
        ask(&plane, &user("rw"), "PUT", &format!("{roles}/r1"), Some(role(wide.clone()))).await.0,
        403
    );
    assert_eq!(ask(&plane, &user("root"), "PUT", &format!("{roles}/r1"), Some(role(wide))).await.0, 200);
    let bindings = format!("{RBAC}/namespaces/a/rolebindings");
    let bind = |name: &str| binding("b1", "ClusterRole", name, "x");
    let (code, status) = ask(&plane, &user("rw"), "POST", &bindings, Some(bind("cluster-admin"))).await;
    let text = format!(
        "rolebindings.rbac.authorization.k8s.io \"b1\" is forbidden: {head}\n\
         {{APIGroups:[\"*\"], Resources:[\"*\"], Verbs:[\"*\"]}}\n{{NonResourceURLs:[\"*\"], Verbs:[\"*\"]}}"
    );
    assert_eq!((code, &status["message"]), (403, &json!(text)));
    let (code, status) = ask(&plane, &user("rw"), "POST", &bindings, Some(bind("none"))).await;
    let text = "rolebindings.rbac.authorization.k8s.io \"none\" not found";
    assert_eq!((code, &status["message"]), (404, &json!(text)));
    assert_eq!(ask(&plane, &user("rw"), "POST", &bindings, Some(bind("rw"))).await.0, 201);
    let gathering = json!({"metadata": {"name": "g"}, "rules": [],
        "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}});
    let (code, status) =
        ask(&plane, &user("rw"), "POST", &format!("{RBAC}/clusterroles"), Some(gathering)).await;
    let text = "clusterroles.rbac.authorization.k8s.io \"g\" is forbidden: must have cluster-admin privileges to use the aggregationRule";
    assert_eq!((code, &status["message"]), (403, &json!(text)));
    plane.stop().await;
}

#[tokio::test]
async fn reviews_answer_from_the_roles() {
    let plane = plane().await;
    let review = |path: String, who: &'static str, spec: Value| {
        let plane = &plane;
        async move { ask(plane, &user(who), "POST", &path, Some(json!({"spec": spec}))).await.1 }
    };
    let on = |verb: &str| json!({"verb": verb, "resource": "configmaps", "namespace": "a"});
    let sar = format!("{REVIEWS}/subjectaccessreviews");
    let found = review(sar.clone(), "root", json!({"user": "rw", "resourceAttributes": on("get")})).await;
    let reason = r#"RBAC: allowed by ClusterRoleBinding "rw" of ClusterRole "rw" to User "rw""#;
    assert_eq!(found["status"], json!({"allowed": true, "reason": reason}));
    let found = review(sar.clone(), "root", json!({"user": "x", "resourceAttributes": on("get")})).await;
    assert_eq!(found["status"], json!({"allowed": false}));
    let wrong = review(sar, "root", json!({})).await;
    assert_eq!(
        wrong["message"],
        ".authorization.k8s.io \"\" is invalid: [spec.resourceAttributes: Invalid value: null: exactly one of \
         nonResourceAttributes or resourceAttributes must be specified, spec.user: Invalid value: \"\": at least one \
         of user or group must be specified]"
    );
    let own = format!("{REVIEWS}/selfsubjectaccessreviews");
    let found = review(own, "rw", json!({"resourceAttributes": on("delete")})).await;
    assert_eq!(found["status"], json!({"allowed": false}));
    let local = format!("{REVIEWS}/namespaces/b/localsubjectaccessreviews");
    let found = review(local, "root", json!({"user": "rw", "resourceAttributes": on("get")})).await;
    assert_eq!(found["code"], 422);
    let rules = format!("{REVIEWS}/selfsubjectrulesreviews");
    let found = review(rules, "jane", json!({"namespace": "a"})).await;
    let missing = found["status"]["evaluationError"].as_str().unwrap();
    expect![[r#"[clusterrole.rbac.authorization.k8s.io "nope" not found, role.rbac.authorization.k8s.io "nope2" not found]"#]]
    .assert_eq(missing);
    let paths = &found["status"]["nonResourceRules"];
    assert!(paths.to_string().contains("/openapi"), "{paths}");
    plane.stop().await;
}

#[tokio::test]
async fn somebody_else_may_be_impersonated_by_who_is_allowed_to() {
    let plane = plane().await;
    let with = |who: &'static str, headers: &'static [(&'static str, &'static str)]| {
        let plane = &plane;
        async move {
            let mut request = Request::post("/apis/authentication.k8s.io/v1/selfsubjectreviews")
                .header("content-type", "application/json");
            for (name, value) in headers {
                request = request.header(*name, *value);
            }
            send(plane, &user(who), request.body("{}".to_owned()).unwrap()).await
        }
    };
    let (code, found) = with(
        "root",
        &[
            ("Impersonate-User", "vv"),
            ("Impersonate-Group", "g1"),
            ("Impersonate-Uid", "77"),
            ("Impersonate-Extra-Foo%2fBar", "x"),
        ],
    )
    .await;
    let expected = json!({"username": "vv", "uid": "77", "groups": ["g1", "system:authenticated"],
        "extra": {"foo/bar": ["x"]}});
    assert_eq!((code, &found["status"]["userInfo"]), (201, &expected));
    let (_, found) = with("root", &[("Impersonate-User", "system:serviceaccount:a:sa1")]).await;
    assert_eq!(
        found["status"]["userInfo"]["groups"],
        json!(["system:serviceaccounts", "system:serviceaccounts:a", "system:authenticated"])
    );
    let (code, found) = with("rw", &[("Impersonate-User", "vv")]).await;
    let text = r#"selfsubjectreviews.authentication.k8s.io is forbidden: User "rw" cannot impersonate-on:user-info:create resource "selfsubjectreviews" in API group "authentication.k8s.io" at the cluster scope"#;
    assert_eq!((code, &found["message"]), (403, &json!(text)));
    let (code, found) =
        with("rw", &[("Impersonate-User", "system:serviceaccount:a:sa1"), ("Impersonate-Group", "g")]).await;
    let text = r#"serviceaccounts "sa1" is forbidden: User "rw" cannot impersonate resource "serviceaccounts" in API group "" in the namespace "a""#;
    assert_eq!((code, &found["message"]), (403, &json!(text)));
    let (code, found) = with("root", &[("Impersonate-Group", "g1")]).await;
    let text = r#"requested &user.DefaultInfo{Name:"", UID:"", Groups:[]string{"g1"}, Extra:map[string][]string(nil)} without impersonating a user name"#;
    assert_eq!((code, &found["message"]), (400, &json!(text)));
    plane.stop().await;
}

/// Asks until the answer is yes: aggregated roles are filled in by a controller.
async fn until_yes(cluster: &Cluster, arguments: &str) {
    let words: Vec<&str> = arguments.split(' ').collect();
    let ask = async {
        while cluster.run("kubectl", &words).await.out != "yes\n" {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), ask)
        .await
        .unwrap_or_else(|_| panic!("{arguments}: still no"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[cfg_attr(not(oracles), ignore = "needs OPDEV_ORACLES")]
async fn kubectl_auth_and_tokens() {
    let cluster = Cluster::start_with(enforced()).await;
    cluster.kubectl("create serviceaccount robot").await;
    let can = |words: &str| format!("auth can-i {words} --as system:serviceaccount:default:robot");
    let asked = can("list pods");
    assert_eq!(cluster.run("kubectl", &asked.split(' ').collect::<Vec<_>>()).await.out, "no\n");
    cluster.kubectl("create rolebinding robot --clusterrole=view --serviceaccount=default:robot").await;
    until_yes(&cluster, &asked).await;
    cluster.kubectl("create role maps --verb=get,patch --resource=configmaps --resource-name=one").await;
    cluster.kubectl("create rolebinding maps --role=maps --serviceaccount=default:robot").await;
    assert_eq!(cluster.kubectl(&can("patch configmaps/one")).await, "yes\n");
    let list = cluster.kubectl("auth can-i --list --as system:serviceaccount:default:robot").await;
    let line = list.lines().find(|line| line.contains("[one]")).unwrap_or_else(|| panic!("{list}"));
    assert_eq!(line.split_whitespace().collect::<Vec<_>>(), ["configmaps", "[]", "[one]", "[get", "patch]"]);

    // The token alone: kubectl would show its certificate first.
    let token = cluster.kubectl("create token robot --duration=10m").await;
    let text = std::fs::read_to_string(cluster.path("kubeconfig")).unwrap();
    let text: String = text
        .lines()
        .filter(|line| !line.contains("client-"))
        .map(|line| match line.split_once("token: ") {
            Some((indent, _)) => format!("{indent}token: {}\n", token.trim()),
            None => format!("{line}\n"),
        })
        .collect();
    let robot = cluster.file("robot.kubeconfig", &text);
    let as_robot = |words: &str| format!("--kubeconfig {robot} {words}");
    let who = cluster.kubectl(&as_robot("auth whoami")).await;
    assert!(who.contains("system:serviceaccount:default:robot") && who.contains("JTI="), "{who}");
    assert!(cluster.kubectl(&as_robot("get pods")).await.is_empty());
    let words = as_robot("delete pod x");
    let said = cluster.run("kubectl", &words.split(' ').collect::<Vec<_>>()).await;
    expect![[r#"
        Error from server (Forbidden): pods "x" is forbidden: User "system:serviceaccount:default:robot" cannot delete resource "pods" in API group "" in the namespace "default"
    "#]]
    .assert_eq(&said.err);

    let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview",
        "spec": {"token": token.trim(), "audiences": ["else"]}});
    let said = cluster.kubectl_with("create -o json -f -", &review.to_string()).await;
    let found: Value = serde_json::from_str(&said.out).unwrap();
    let text = r#"[invalid bearer token, token audiences ["https://kubernetes.default.svc"] is invalid for the target audiences ["else"]]"#;
    assert_eq!(found["status"]["error"], text);

    cluster.kubectl("delete serviceaccount robot").await;
    let words = as_robot("get pods");
    let said = cluster.run("kubectl", &words.split(' ').collect::<Vec<_>>()).await;
    expect![[r#"
        error: You must be logged in to the server (Unauthorized)
    "#]]
    .assert_eq(&said.err);
    cluster.plane.stop().await;
}
