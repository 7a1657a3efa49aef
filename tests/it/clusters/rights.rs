//! A developer with `edit` in one namespace and nothing else.

use super::door::write_kubeconfig;
use crate::inner_loop::Opdev;
use expect_test::expect;
use opdev_cluster::Choice;
use opdev_controlplane::{Config, ControlPlane, Listen};
use opdev_event::{Event, KindHealth, ObjectTask, OperatorTask, Outcome, SourcesTask};
use opdev_project::Project;
use serde_json::{Value, json};
use std::path::Path;
use std::time::Duration;

const JANE: &str = "system:serviceaccount:dev:jane";

async fn send(plane: &ControlPlane, verb: &str, path: &str, body: &Value) -> Value {
    let kind = if verb == "PATCH" { "application/apply-patch+yaml" } else { "application/json" };
    let request = http::Request::builder().method(verb).uri(path).header("content-type", kind);
    let request = request.body(serde_json::to_vec(body).unwrap()).unwrap();
    plane.client().request(request).await.unwrap_or_else(|error| panic!("{verb} {path}: {error}"))
}

/// Applies what `opdev rbac --for` prints, as the administrator.
async fn give(plane: &ControlPlane, root: &Path) {
    let project = Project::discover(Some(root), root).unwrap();
    let text = opdev_deploy::developer_role::grant(&project, JANE, "dev").unwrap();
    for document in opdev_object::yaml::documents(&text).unwrap() {
        let object = opdev_object::yaml::to_json(&document).unwrap();
        let name = object["metadata"]["name"].as_str().unwrap();
        let of = |group: &str, plural: &str, place: &str| {
            format!("/apis/{group}/v1/{place}{plural}/{name}?fieldManager=admin")
        };
        let path = match object["kind"].as_str().unwrap() {
            "CustomResourceDefinition" => of("apiextensions.k8s.io", "customresourcedefinitions", ""),
            "Role" => of("rbac.authorization.k8s.io", "roles", "namespaces/dev/"),
            "RoleBinding" => of("rbac.authorization.k8s.io", "rolebindings", "namespaces/dev/"),
            other => panic!("{other}"),
        };
        send(plane, "PATCH", &path, &object).await;
    }
}

fn notices(opdev: &Opdev, words: &str) -> Vec<String> {
    let text = |event: &Event| match event {
        Event::Noticed(notice) if notice.message.contains(words) => Some(notice.message.clone()),
        _ => None,
    };
    opdev.since(0).iter().filter_map(text).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_missing_is_said_once_and_what_an_administrator_gives_is_enough() {
    let mut config = Config::default();
    config.rbac = true;
    let plane = ControlPlane::start_with(config).await.unwrap();
    let listening = plane.listen(Listen::default()).await.unwrap();
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "dev"}});
    send(&plane, "POST", "/api/v1/namespaces", &namespace).await;
    let jane = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "jane"}});
    send(&plane, "POST", "/api/v1/namespaces/dev/serviceaccounts", &jane).await;
    let edit = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "edit"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "edit"},
        "subjects": [{"kind": "ServiceAccount", "name": "jane", "namespace": "dev"}]});
    send(&plane, "POST", "/apis/rbac.authorization.k8s.io/v1/namespaces/dev/rolebindings", &edit).await;
    let token = send(
        &plane,
        "POST",
        "/api/v1/namespaces/dev/serviceaccounts/jane/token",
        &json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"audiences": []}}),
    )
    .await;
    let admin = opdev_object::yaml::from_str(&listening.kubeconfig).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let user = json!({"token": token["status"]["token"]});
    let kubeconfig = write_kubeconfig(folder.path(), "opdev", &admin["clusters"][0]["cluster"], &user);
    let choice =
        Choice { kubeconfig: Some(kubeconfig), namespace: Some("dev".to_owned()), ..Choice::default() };

    let mut opdev = Opdev::start_against(choice, |_| {}).await;
    opdev
        .wait("a word about missing rights", 0, |event| match event {
            Event::Noticed(notice) if notice.message.starts_with("missing rights: ") => Some(()),
            _ => None,
        })
        .await;
    let problem = opdev
        .wait("kinds that are not served", 0, |event| match event {
            Event::SourcesChanged(sources) => sources.kinds.iter().find_map(|kind| match &kind.health {
                KindHealth::Stale { problem } if kind.gvk.kind == "Memcached" => Some(problem.clone()),
                _ => None,
            }),
            _ => None,
        })
        .await;
    assert!(
        problem.message.contains("you may not create its CustomResourceDefinition"),
        "{}",
        problem.message
    );
    expect!["`opdev rbac --for USER -n NAMESPACE` writes what an administrator can apply, this CustomResourceDefinition with it; then press R"]
    .assert_eq(problem.hint.as_ref().unwrap());

    give(&plane, &opdev.root).await;
    let mark = opdev.mark();
    opdev.ask(SourcesTask::Reload).await;
    opdev
        .wait("kinds that serve", mark, |event| match event {
            Event::SourcesChanged(sources) => {
                sources.kinds.iter().all(|kind| kind.health == KindHealth::Serving).then_some(())
            }
            _ => None,
        })
        .await;
    opdev.ask(ObjectTask::Apply { path: "samples/memcached.yaml".to_owned() }).await;
    opdev.reconcile("an install", mark, |reconcile| reconcile.outcome == Outcome::Installed).await;
    // A message that was shown once was not shown again, and the served types are those of the files.
    let told = notices(&opdev, "missing rights");
    assert_eq!(told.len(), 1, "{told:#?}");
    expect!["missing rights: you may not list and watch Role.rbac.authorization.k8s.io, RoleBinding.rbac.authorization.k8s.io in namespace dev, so their objects are not shown; all else works"]
    .assert_eq(&told[0]);
    assert_eq!(notices(&opdev, "with another type than your files"), Vec::<String>::new());

    // A right that is taken away later: said once, tried again rarely, and all is well once it is back.
    const BINDINGS: &str = "/apis/rbac.authorization.k8s.io/v1/namespaces/dev/rolebindings";
    send(&plane, "DELETE", BINDINGS, &json!({})).await;
    let mark = opdev.mark();
    let scaled = json!({"apiVersion": "cache.my.domain/v1alpha1", "kind": "Memcached",
        "metadata": {"name": "memcached-sample"}, "spec": {"replicaCount": 2}});
    let memcached = "/apis/cache.my.domain/v1alpha1/namespaces/dev/memcacheds/memcached-sample";
    send(&plane, "PATCH", &format!("{memcached}?fieldManager=admin&force=true"), &scaled).await;
    let failed =
        opdev.reconcile("a refused pass", mark, |reconcile| reconcile.outcome == Outcome::Failed).await;
    let again = failed.requeue.as_ref().unwrap();
    assert!(again.after >= Duration::from_secs(5), "{again:?} {:?}", failed.failure);
    opdev
        .wait("a word about the right", mark, |event| match event {
            Event::Noticed(notice) if notice.message.contains("which reconciling a Memcached needs") => {
                Some(())
            }
            _ => None,
        })
        .await;
    opdev.ask(OperatorTask::Reconcile { object: failed.object.clone() }).await;
    opdev.reconcile("a second one", opdev.mark(), |reconcile| reconcile.outcome == Outcome::Failed).await;
    let told = notices(&opdev, "which reconciling a Memcached needs");
    assert_eq!(told.len(), 1, "{told:#?}");
    expect!["missing rights: you may not get memcacheds.cache.my.domain in namespace dev, which reconciling a Memcached needs; all else works"]
    .assert_eq(&told[0]);
    send(&plane, "POST", BINDINGS, &edit).await;
    give(&plane, &opdev.root).await;
    let mark = opdev.mark();
    opdev.ask(OperatorTask::Reconcile { object: failed.object.clone() }).await;
    opdev.reconcile("an upgrade", mark, |reconcile| reconcile.outcome == Outcome::Upgraded).await;
    opdev.stop().await;
    drop(listening);
    plane.stop().await;
}
