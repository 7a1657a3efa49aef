//! The operator as its own ServiceAccount: what its roles do not allow is refused, the missing rule is told,
//! and a saved role file cures it without a restart.

use crate::inner_loop::Opdev;
use expect_test::expect;
use opdev_cluster::Choice;
use opdev_controlplane::{Config, ControlPlane, Listen};
use opdev_event::{
    DraftStage, DraftTask, Event, Level, MissingRule, Notice, ObjectTask, Outcome, Reconcile, RequestOutcome,
};
use std::fs;
use std::path::Path;

const USER: &str = "system:serviceaccount:system:controller-manager";

fn choice() -> Choice {
    Choice { embedded: true, service_account: Some(String::new()), ..Choice::default() }
}

/// The scaffold of the Operator SDK, without a rule for Ingresses.
pub(crate) fn scaffold(root: &Path) {
    let folder = root.join("config/rbac");
    fs::create_dir_all(&folder).unwrap();
    let write = |name: &str, text: &str| fs::write(folder.join(name), text).unwrap();
    write(
        "service_account.yaml",
        "apiVersion: v1\nkind: ServiceAccount\nmetadata:\n  name: controller-manager\n  namespace: system\n",
    );
    write(
        "role_binding.yaml",
        "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata:\n  name: manager-rolebinding\n\
         roleRef:\n  apiGroup: rbac.authorization.k8s.io\n  kind: ClusterRole\n  name: manager-role\nsubjects:\n\
         - kind: ServiceAccount\n  name: controller-manager\n  namespace: system\n",
    );
    let mut role =
        "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata:\n  name: manager-role\n\
                    rules:\n# what the charts make\n"
            .to_owned();
    for (group, resources) in [
        (
            "\"\"",
            "secrets, events, namespaces, configmaps, services, serviceaccounts, pods, persistentvolumeclaims",
        ),
        ("apps", "deployments, statefulsets, daemonsets"),
        ("batch", "jobs, cronjobs"),
        ("charts.my.domain", "hellos, hellos/status, hellos/finalizers"),
        ("cache.my.domain, armada.airshipit.org, app.example.com", "\"*\""),
        ("apiextensions.k8s.io", "customresourcedefinitions"),
    ] {
        role.push_str(&format!("- apiGroups: [{group}]\n  resources: [{resources}]\n  verbs: [\"*\"]\n"));
    }
    write("role.yaml", &role);
    // Files that only people and scaffolds read are no trouble.
    write("kustomization.yaml", "resources:\n- role.yaml\n");
}

async fn missing(opdev: &Opdev, mark: usize, resource: &str) -> (MissingRule, Notice) {
    let rule = opdev
        .wait("the missing rule", mark, |event| match event {
            Event::RulesMissing { missing } => missing.iter().find(|rule| rule.resource == resource).cloned(),
            _ => None,
        })
        .await;
    let group = format!("resource \"{resource}\"");
    let notice = opdev
        .wait("the notice", mark, |event| match event {
            Event::Noticed(notice) if notice.level == Level::Error && notice.message.contains(&group) => {
                Some(notice.clone())
            }
            _ => None,
        })
        .await;
    (rule, notice)
}

fn done(reconcile: &Reconcile) -> bool {
    reconcile.object.gvk.kind == "Hello"
        && matches!(reconcile.outcome, Outcome::Installed | Outcome::Upgraded | Outcome::Repaired)
        && reconcile.failure.is_none()
}

fn lacks_ingresses(missing: &[MissingRule]) -> bool {
    missing.iter().any(|rule| rule.resource == "ingresses")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rule_that_is_missing_is_told_and_a_saved_role_cures_it() {
    let mut opdev = Opdev::start_against(choice(), scaffold).await;
    let told = opdev
        .wait("who the operator is", 0, |event| match event {
            Event::Noticed(notice) if notice.message.contains(USER) => Some(notice.message.clone()),
            _ => None,
        })
        .await;
    expect!["the operator runs as system:serviceaccount:system:controller-manager, and roles are enforced; its roles: config/rbac"]
    .assert_eq(&told);
    let mark = opdev.mark();
    let outcome = opdev.ask(ObjectTask::Apply { path: "samples/hello-ingress.yaml".to_owned() }).await;
    assert!(matches!(outcome, RequestOutcome::Done { .. }), "{outcome:?}");
    let (rule, notice) = missing(&opdev, mark, "ingresses").await;
    assert_eq!((rule.group.as_str(), rule.file.as_str()), ("networking.k8s.io", "config/rbac/role.yaml"));
    assert!(notice.message.contains(&format!("User {USER:?} cannot ")), "{}", notice.message);
    let line = opdev::print::plain(&Event::Noticed(notice)).unwrap();
    for part in [
        "forbidden: ingresses.networking.k8s.io",
        "missing in ClusterRole manager-role (config/rbac/role.yaml)",
        "\n             - apiGroups: [networking.k8s.io]\n               resources: [ingresses]\n",
    ] {
        assert!(line.contains(part), "{line}");
    }
    // The rule is told with where it belongs, and not once more as a right that an administrator gives.
    let retried =
        |reconcile: &Reconcile| reconcile.failure.as_ref().is_some_and(|failure| failure.attempt > 2);
    opdev.reconcile("a retry", mark, retried).await;
    let given = |event: &Event| matches!(event, Event::Noticed(notice) if notice.message.starts_with("missing rights"));
    assert!(!opdev.since(mark).iter().any(given));
    let mark = opdev.mark();
    opdev.edit("config/rbac/role.yaml", |text| {
        format!("{text}- apiGroups: [networking.k8s.io]\n  resources: [ingresses]\n  verbs: [\"*\"]\n")
    });
    opdev
        .wait("that nothing is missing", mark, |event| match event {
            Event::RulesMissing { missing } if !lacks_ingresses(missing) => Some(()),
            _ => None,
        })
        .await;
    opdev.reconcile("the cure", mark, done).await;
    opdev
        .wait_for_state("the Ingress", |events| {
            let ingress = |event: &&Event| {
                matches!(event, Event::ObjectSeen(seen) if seen.object_ref.gvk.kind == "Ingress")
            };
            events.iter().find(ingress).map(|_| ())
        })
        .await;
    opdev.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_rule_is_added_to_the_file_once_its_change_was_seen() {
    let mut opdev = Opdev::start_against(choice(), scaffold).await;
    let mark = opdev.mark();
    opdev.ask(ObjectTask::Apply { path: "samples/hello-ingress.yaml".to_owned() }).await;
    missing(&opdev, mark, "ingresses").await;
    let path = opdev.root.join("config/rbac/role.yaml");
    let before = fs::read_to_string(&path).unwrap();
    let mark = opdev.mark();
    let outcome = opdev.ask(DraftTask::AddRules).await;
    assert!(matches!(outcome, RequestOutcome::Done { .. }), "{outcome:?}");
    let (id, notes) = opdev
        .wait("the change", mark, |event| match event {
            Event::DraftChanged(draft) => match &draft.stage {
                DraftStage::Review(review) => Some((draft.id, review.notes.join("\n"))),
                _ => None,
            },
            _ => None,
        })
        .await;
    assert!(notes.contains("+++ b/config/rbac/role.yaml"), "{notes}");
    assert!(notes.contains("\n+- apiGroups:\n+  - networking.k8s.io\n"), "{notes}");
    assert_eq!(fs::read_to_string(&path).unwrap(), before, "nothing is written before it is confirmed");
    let mark = opdev.mark();
    let outcome = opdev.ask(DraftTask::Write { draft: id }).await;
    assert!(matches!(outcome, RequestOutcome::Done { .. }), "{outcome:?}");
    // A read was refused; the chart says that writes follow, so that the rule is written once.
    let cured = opdev
        .wait("the next word", mark, |event| match event {
            Event::Reconciled(reconcile) if done(reconcile) => Some(true),
            Event::RulesMissing { missing } if lacks_ingresses(missing) => Some(false),
            _ => None,
        })
        .await;
    assert!(cured);
    let after = fs::read_to_string(&path).unwrap();
    assert!(
        after.starts_with(&before) && after.contains("  - networking.k8s.io\n  resources:\n  - ingresses\n")
    );
    opdev.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_role_files_the_roles_are_what_the_charts_ask_for() {
    let mut opdev = Opdev::start_against(choice(), |_| {}).await;
    let mark = opdev.mark();
    let outcome = opdev.ask(ObjectTask::Apply { path: "samples/memcached.yaml".to_owned() }).await;
    assert!(matches!(outcome, RequestOutcome::Done { .. }), "{outcome:?}");
    opdev
        .reconcile("an install", mark, |reconcile| {
            reconcile.object.gvk.kind == "Memcached" && reconcile.outcome == Outcome::Installed
        })
        .await;
    assert!(!opdev.root.join("config/rbac").exists(), "nothing is written unasked");
    opdev.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broken_role_file_is_placed_and_changes_nothing() {
    let mut opdev = Opdev::start_against(choice(), scaffold).await;
    let mark = opdev.mark();
    opdev.edit("config/rbac/role.yaml", |text| format!("{text}- apiGroups: [\n"));
    let notice = opdev
        .wait("the problem", mark, |event| match event {
            Event::Noticed(notice) if notice.message.starts_with("config/rbac/role.yaml:") => {
                Some(notice.message.clone())
            }
            _ => None,
        })
        .await;
    expect!["config/rbac/role.yaml:1: error converting YAML to JSON: yaml: line 25: did not find expected node content"]
    .assert_eq(&notice);
    opdev.ask(ObjectTask::Apply { path: "samples/hello.yaml".to_owned() }).await;
    opdev.reconcile("an install", mark, done).await;
    opdev.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn on_a_cluster_of_its_own_the_account_is_impersonated() {
    let mut config = Config::default();
    config.rbac = true;
    let plane = ControlPlane::start_with(config).await.unwrap();
    let listening = plane.listen(Listen::default()).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kubeconfig");
    fs::write(&path, &listening.kubeconfig).unwrap();
    let choice = Choice {
        kubeconfig: Some(path),
        allow_contexts: vec!["opdev".to_owned()],
        service_account: Some("apps/robot".to_owned()),
        ..Choice::default()
    };
    let opdev = Opdev::start_against(choice, scaffold).await;
    opdev
        .wait("who the operator is", 0, |event| match event {
            Event::Noticed(notice) => {
                notice.message.contains("impersonates system:serviceaccount:apps:robot").then_some(())
            }
            _ => None,
        })
        .await;
    let (rule, notice) = missing(&opdev, 0, "hellos").await;
    assert!(rule.verbs.contains(&"list".to_owned()), "{rule:?}");
    expect![[r#"forbidden: hellos.charts.my.domain is forbidden: User "system:serviceaccount:apps:robot" cannot list resource "hellos" in API group "charts.my.domain" in the namespace "default""#]]
    .assert_eq(&notice.message);
    let roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles/manager-role";
    let request = http::Request::get(roles).body(Vec::new()).unwrap();
    let role = plane.client().request::<serde_json::Value>(request).await;
    assert!(role.is_err(), "nothing of config/rbac is applied: {role:?}");
    opdev.stop().await;
    plane.stop().await;
}
