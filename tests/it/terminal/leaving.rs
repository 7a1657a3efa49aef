//! Leaving a cluster that lives on: what becomes of its custom resources.

use super::runs::lines;
use super::{SIZE, with_sample};
use crate::inner_loop::demo_project;
use crate::pty::Pty;
use kube::api::{Api, ApiResource, DynamicObject};
use kube::core::GroupVersionKind;
use opdev_controlplane::{ControlPlane, Listen};
use portable_pty::CommandBuilder;
use rustix::process::Signal;
use std::fs;
use std::path::Path;

/// A cluster that does not end with opdev, and its kubeconfig.
pub(super) async fn cluster(folder: &Path) -> (ControlPlane, impl Sized, std::path::PathBuf) {
    let plane = ControlPlane::start().await.unwrap();
    let listening = plane.listen(Listen::default()).await.unwrap();
    let path = folder.join("kubeconfig");
    fs::write(&path, &listening.kubeconfig).unwrap();
    (plane, listening, path)
}

pub(super) fn opdev_on(project: &Path, kubeconfig: &Path, more: &[&str]) -> Pty {
    let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_opdev"));
    command.args(["run", "--kubeconfig"]);
    command.arg(kubeconfig);
    command.args(more);
    command.cwd(project);
    Pty::start(command, SIZE)
}

async fn sample(plane: &ControlPlane, kind: &str, group: &str, version: &str) -> Option<DynamicObject> {
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
    let api: Api<DynamicObject> = Api::namespaced_with(plane.client(), "default", &resource);
    api.get_opt("memcached-sample").await.unwrap()
}

async fn memcached(plane: &ControlPlane) -> Option<DynamicObject> {
    sample(plane, "Memcached", "cache.my.domain", "v1alpha1").await
}

#[tokio::test(flavor = "multi_thread")]
async fn q_asks_first_and_each_answer_does_what_it_says() {
    let (_folder, project) = demo_project();
    let (plane, _listening, kubeconfig) = cluster(&project).await;
    let mut pty = opdev_on(&project, &kubeconfig, &[]);
    with_sample(&mut pty);
    pty.keys("q");
    pty.wait_for("Leave opdev?");
    pty.keys("\u{1b}");
    pty.wait_without("Leave opdev?");
    // As it is: the finalizer stays.
    pty.keys("q");
    pty.wait_for("▸ Leave as is");
    pty.keys("\r");
    assert!(pty.wait_exit().success(), "{}", pty.screen());
    pty.assert_restored();
    let live = memcached(&plane).await.unwrap();
    assert_eq!(live.metadata.finalizers.unwrap().len(), 1);

    // Released: it stays, and nothing holds it.
    let mut pty = opdev_on(&project, &kubeconfig, &[]);
    pty.wait_until("the sample", |screen| lines(screen, " 3/3") >= 2);
    pty.keys("q");
    pty.wait_for("Leave opdev?");
    pty.keys("jj");
    pty.wait_for("▸ Release finalizers");
    pty.keys("\r");
    assert!(pty.wait_exit().success(), "{}", pty.screen());
    pty.assert_restored();
    let live = memcached(&plane).await.unwrap();
    assert_eq!(live.metadata.finalizers.unwrap_or_default(), Vec::<String>::new());

    // Uninstalled, although it is paused: it is gone, and what it owned with it.
    let mut pty = opdev_on(&project, &kubeconfig, &[]);
    pty.wait_until("the sample", |screen| lines(screen, " 3/3") >= 2);
    pty.keys("p");
    pty.wait_for("· 1 paused");
    pty.keys("q");
    pty.wait_for("Leave opdev?");
    pty.keys("j\r");
    assert!(pty.wait_exit().success(), "{}", pty.screen());
    pty.assert_restored();
    assert!(memcached(&plane).await.is_none());
    assert!(sample(&plane, "Deployment", "apps", "v1").await.is_none());
    plane.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_said_before_is_done_without_a_question_also_after_a_signal() {
    let (_folder, project) = demo_project();
    let (plane, _listening, kubeconfig) = cluster(&project).await;
    let mut pty = opdev_on(&project, &kubeconfig, &["--on-exit", "uninstall"]);
    with_sample(&mut pty);
    pty.signal(Signal::TERM);
    pty.wait_exit();
    pty.assert_restored();
    assert!(memcached(&plane).await.is_none());
    // Without a word and without a terminal: as it is.
    let mut pty = opdev_on(&project, &kubeconfig, &[]);
    with_sample(&mut pty);
    pty.signal(Signal::TERM);
    pty.wait_exit();
    assert!(memcached(&plane).await.is_some_and(|live| live.metadata.finalizers.is_some()));
    plane.stop().await;
}
