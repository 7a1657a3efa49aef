//! Real kubectl and helm beside a running opdev, through the kubeconfig it writes.

use crate::inner_loop::Opdev;
use crate::oracle::oracle;
use opdev_event::{CauseKind, ObjectTask, Outcome, Reconcile};
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

fn run(opdev: &Opdev, tool: &str, args: &[&str]) -> String {
    let output = Command::new(oracle(tool))
        .args(args)
        .env("KUBECONFIG", opdev.kubeconfig())
        .env("HOME", &opdev.root)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{tool} {args:?}: {text}{}", String::from_utf8_lossy(&output.stderr));
    text
}

async fn installed() -> Opdev {
    let mut opdev = Opdev::start().await;
    let mark = opdev.mark();
    opdev.ask(ObjectTask::Apply { path: "samples/memcached.yaml".to_owned() }).await;
    opdev.reconcile("an install", mark, |reconcile| reconcile.outcome == Outcome::Installed).await;
    opdev
}

/// Returns true if a reconcile ran because this field of this object changed.
fn because(reconcile: &Reconcile, kind: &str, field: &str) -> bool {
    reconcile.causes.iter().any(|cause| match &cause.kind {
        CauseKind::Watch { object, fields, own_write, .. } => {
            object.gvk.kind == kind && !own_write && fields.iter().any(|one| one.path == field)
        }
        _ => false,
    })
}

#[test]
fn the_kubeconfig_is_private() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let opdev = Opdev::start().await;
        let mode = opdev.kubeconfig().metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let path = opdev.kubeconfig();
        opdev.stop().await;
        assert!(!path.exists(), "a kubeconfig of a server that is gone was left behind");
    });
}

#[tokio::test(flavor = "multi_thread")]
#[cfg_attr(not(oracles), ignore = "needs OPDEV_ORACLES")]
async fn what_kubectl_changes_is_put_back_and_named() {
    let opdev = installed().await;
    let mark = opdev.mark();
    run(&opdev, "kubectl", &["scale", "deployment", "memcached-sample", "--replicas=5"]);
    // A reconcile that runs just then may repair it before the change is told.
    opdev.reconcile("a repair", mark, |reconcile| reconcile.outcome == Outcome::Repaired).await;
    opdev.reconcile("its cause", mark, |reconcile| because(reconcile, "Deployment", ".spec.replicas")).await;
    let jsonpath = "-o=jsonpath={.spec.replicas}";
    assert_eq!(run(&opdev, "kubectl", &["get", "deployment", "memcached-sample", jsonpath]), "3");

    let mark = opdev.mark();
    run(&opdev, "kubectl", &["delete", "service", "memcached-sample"]);
    opdev.reconcile("a repair", mark, |reconcile| reconcile.outcome == Outcome::Repaired).await;
    run(&opdev, "kubectl", &["get", "service", "memcached-sample"]);
    opdev.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
#[cfg_attr(not(oracles), ignore = "needs OPDEV_ORACLES")]
async fn both_helms_read_the_release() {
    let opdev = installed().await;
    for helm in ["helm3", "helm4"] {
        let list = run(&opdev, helm, &["list"]);
        assert!(list.contains("memcached-sample") && list.contains("deployed"), "{helm}: {list}");
        let history = run(&opdev, helm, &["history", "memcached-sample"]);
        assert!(history.contains("Install complete"), "{helm}: {history}");
        let all = run(&opdev, helm, &["get", "all", "memcached-sample"]);
        assert!(all.contains("replicaCount: 3") && all.contains("kind: Deployment"), "{helm}: {all}");
    }
    opdev.stop().await;
}
