//! `opdev plan` as a user runs it beside an opdev that works, and saved charts that wait for the user's word.

use crate::inner_loop::{Opdev, demo_project};
use expect_test::expect;
use opdev_event::{Event, Held, HeldChange, ObjectTask, Outcome, RequestOutcome, SourcesTask, Verdict};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Arc;

fn plan(root: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_opdev"))
        .arg("plan")
        .args(args)
        .current_dir(root)
        .env("HOME", root)
        .env_remove("KUBECONFIG")
        .output()
        .unwrap()
}

fn told(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    format!("{}{}", text(&output.stdout), text(&output.stderr))
}

async fn with_a_memcached() -> Opdev {
    let mut opdev = Opdev::start().await;
    let mark = opdev.mark();
    let outcome = opdev.ask(ObjectTask::Apply { path: "samples/memcached.yaml".to_owned() }).await;
    assert!(matches!(outcome, RequestOutcome::Done { .. }), "{outcome:?}");
    opdev.reconcile("the install", mark, |reconcile| reconcile.outcome == Outcome::Installed).await;
    opdev
}

/// Every file below a folder with its text.
fn files(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(at) = open.pop() {
        for entry in fs::read_dir(at).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else {
                found.push((path.clone(), fs::read(path).unwrap()));
            }
        }
    }
    found.sort();
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_says_what_would_change_and_its_exit_code_says_whether() {
    let opdev = with_a_memcached().await;
    let kubeconfig = opdev.kubeconfig();
    let at = ["--kubeconfig", kubeconfig.to_str().unwrap(), "-A"];
    // A copy of these files in another folder describes what is there.
    let (_folder, root) = demo_project();
    let before = files(&root);
    let same = plan(&root, &at);
    assert_eq!(same.status.code(), Some(0), "{}", told(&same));
    expect![[r#"
        Memcached default/memcached-sample  nothing
        0 of 1 would change: 0 created, 0 changed, 0 deleted, 0 hooks
    "#]]
    .assert_eq(&told(&same));

    let template = root.join("charts/memcached/templates/deployment.yaml");
    let old = fs::read_to_string(&template).unwrap();
    fs::write(&template, old.replace("--conn-limit=", "--max-conns=")).unwrap();
    let changed = plan(&root, &at);
    let text = told(&changed);
    assert_eq!(changed.status.code(), Some(2), "{text}");
    expect![[r#"
        Memcached default/memcached-sample  revision 1, rewritten in place  because charts/memcached/templates/deployment.yaml  (no hook changed)
          ~ Deployment memcached-sample   .spec.template.spec.containers[name=memcached].args[1] --conn-limit=1024 → --max-conns=1024
        1 of 1 would change: 0 created, 1 changed, 0 deleted, 0 hooks
    "#]]
    .assert_eq(&text);
    let full = told(&plan(&root, &[&at[..], &["--diff", "memcached/memcached-sample"]].concat()));
    expect![[r#"
        Memcached default/memcached-sample  revision 1, rewritten in place  because charts/memcached/templates/deployment.yaml  (no hook changed)
          ~ Deployment memcached-sample
              .spec.template.spec.containers[name=memcached].args[1]
              - --conn-limit=1024
              + --max-conns=1024
        1 of 1 would change: 0 created, 1 changed, 0 deleted, 0 hooks
    "#]]
    .assert_eq(&full);
    let json = plan(&root, &[&at[..], &["-o", "json"]].concat());
    let json: Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(json["objects"][0]["children"][0]["action"], "updated", "{json}");

    fs::write(&template, old.replace("memcached.selectorLabels", "memcached.labels")).unwrap();
    let refused = plan(&root, &at);
    let text = told(&refused);
    assert_eq!(refused.status.code(), Some(1), "{text}");
    assert!(
        text.contains("✗ charts/memcached/templates/deployment.yaml") && text.contains("immutable"),
        "{text}"
    );

    fs::write(&template, &old).unwrap();
    assert_eq!(files(&root), before, "a plan has written into the project");
    let unknown = plan(&root, &[&at[..], &["memcachd"]].concat());
    expect![[r#"
        error: memcachd: the project has no such kind; did you mean Memcached?
    "#]]
    .assert_eq(&told(&unknown));
    let missing = plan(&root, &[&at[..], &["memcached/other"]].concat());
    assert_eq!(missing.status.code(), Some(1));
    expect![[r#"
        error: memcached/other is not there (looked in any namespace on opdev-demo)
    "#]]
    .assert_eq(&told(&missing));
    opdev.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_of_the_embedded_control_plane_reads_what_it_keeps_and_leaves_it_as_it_is() {
    let opdev = with_a_memcached().await;
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("demo");
    opdev.stop_keeping(&root).await;
    let before = files(&root.join(".opdev/data"));
    let same = plan(&root, &["--embedded"]);
    assert_eq!(same.status.code(), Some(0), "{}", told(&same));
    expect![[r#"
        Memcached default/memcached-sample  nothing
        0 of 1 would change: 0 created, 0 changed, 0 deleted, 0 hooks
    "#]]
    .assert_eq(&told(&same));
    assert_eq!(files(&root.join(".opdev/data")), before, "a plan has written into the store");
}

#[test]
fn without_objects_only_types_would_come() {
    let (_folder, root) = demo_project();
    let first = plan(&root, &["--embedded"]);
    let text = told(&first);
    assert_eq!(first.status.code(), Some(2), "{text}");
    expect![[r#"
        + CustomResourceDefinition armadabackups.armada.airshipit.org
        + CustomResourceDefinition armadachartgroups.armada.airshipit.org
        + CustomResourceDefinition armadacharts.armada.airshipit.org
        + CustomResourceDefinition armadamanifests.armada.airshipit.org
        + CustomResourceDefinition armadarestores.armada.airshipit.org
        + CustomResourceDefinition memcachedbackups.cache.my.domain
        + CustomResourceDefinition podsets.app.example.com
        + CustomResourceDefinition memcacheds.cache.my.domain
        + CustomResourceDefinition hellos.charts.my.domain
        0 of 0 would change: 0 created, 0 changed, 0 deleted, 0 hooks; 9 types first
    "#]]
    .assert_eq(&text);
    assert!(!root.join(".opdev").exists(), "a plan has made a folder in the project");
}

#[test]
fn a_plan_that_cannot_be_made_is_not_taken_for_one_with_changes() {
    let (_folder, root) = demo_project();
    for wrong in [["--embedded", "--offlin"], ["--embedded", "a/b/c/d"], ["--embedded", "--context=x"]] {
        let output = plan(&root, &wrong);
        assert_eq!(output.status.code(), Some(1), "{wrong:?}: {}", told(&output));
    }
    assert_eq!(plan(&root, &["--help"]).status.code(), Some(0));
}

#[test]
fn a_plan_that_is_stopped_leaves_no_copy_of_the_objects() {
    let (folder, root) = demo_project();
    let copies = folder.path().join("copies");
    fs::create_dir(&copies).unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_opdev"))
        .args(["plan", "--embedded"])
        .current_dir(&root)
        .env("HOME", &root)
        .env("TMPDIR", &copies)
        .env_remove("KUBECONFIG")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let there = || fs::read_dir(&copies).unwrap().map(|entry| entry.unwrap().path());
    let mut ended = None;
    while ended.is_none() && !there().any(|copy| copy.join(".opdev/kubeconfig").exists()) {
        ended = child.try_wait().unwrap();
        std::thread::yield_now();
    }
    if ended.is_none() {
        let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
        kill_process(pid, Signal::INT).unwrap();
    }
    let ended = child.wait().unwrap();
    assert!(ended.code().is_some(), "{ended}");
    assert_eq!(there().collect::<Vec<_>>(), Vec::<PathBuf>::new(), "a plan has left a copy of the objects");
}

async fn held(opdev: &Opdev, mark: usize) -> Arc<Held> {
    opdev
        .wait("a held chart", mark, |event| match event {
            Event::Held(held) if held.change == HeldChange::Chart => Some(Arc::clone(held)),
            _ => None,
        })
        .await
}

async fn released(opdev: &Opdev, mark: usize) -> Verdict {
    opdev
        .wait("the end of it", mark, |event| match event {
            Event::Released(released) => Some(released.verdict),
            _ => None,
        })
        .await
}

const TEMPLATE: &str = "charts/memcached/templates/deployment.yaml";

#[tokio::test(flavor = "multi_thread")]
async fn a_held_chart_waits_with_what_it_would_do_until_it_is_answered_or_undone() {
    let mut opdev = with_a_memcached().await;
    let mark = opdev.mark();
    opdev.ask(SourcesTask::HoldCharts { on: true }).await;
    opdev
        .wait("the hold", mark, |event| matches!(event, Event::HoldChanged { on: true }).then_some(()))
        .await;
    let rename = |text: String| text.replace("--conn-limit=", "--max-conns=");
    let back = |text: String| text.replace("--max-conns=", "--conn-limit=");

    // Undone: nothing has happened.
    let mark = opdev.mark();
    opdev.edit(TEMPLATE, rename);
    let waiting = held(&opdev, mark).await;
    assert_eq!(waiting.why, "a reconcile of 1 object would change something");
    assert_eq!(waiting.objects[0].object.gvk.kind, "Deployment");
    let run = opdev
        .wait("the list", mark, |event| match event {
            Event::ShadowRun(run) => Some(Arc::clone(run)),
            _ => None,
        })
        .await;
    expect![".spec.template.spec.containers[name=memcached].args[1]"]
        .assert_eq(&run.objects[0].children[0].changes[0].path.to_string());
    // Something else is saved meanwhile: the held chart does not slip in with it, broken or not.
    let before = opdev.mark();
    opdev.edit("samples/hello.yaml", |text| format!("{text}# more\n"));
    opdev
        .wait("other sources", before, |event| matches!(event, Event::SourcesChanged(_)).then_some(()))
        .await;
    let before = opdev.mark();
    opdev.edit(TEMPLATE, |text| format!("{text}\n{{{{ if }}}}"));
    opdev.wait("a broken chart", before, |event| matches!(event, Event::ReloadFailed(_)).then_some(())).await;
    assert_eq!(released(&opdev, before).await, Verdict::Undone);
    // Mended, the same chart is held again.
    let before = opdev.mark();
    opdev.edit(TEMPLATE, |text| text.replace("\n{{ if }}", ""));
    held(&opdev, before).await;
    let before = opdev.mark();
    opdev.edit(TEMPLATE, back);
    assert_eq!(released(&opdev, before).await, Verdict::Undone);
    let wrote =
        |event: &Event| matches!(event, Event::Reconciled(reconcile) if !reconcile.objects.is_empty());
    assert!(!opdev.since(mark).iter().any(wrote), "a held chart has gone live");

    // Discarded: the older one goes on.
    let mark = opdev.mark();
    opdev.edit(TEMPLATE, rename);
    let id = held(&opdev, mark).await.id.clone();
    let outcome = opdev.ask(SourcesTask::DiscardHeld { id }).await;
    assert!(matches!(outcome, RequestOutcome::Done { .. }), "{outcome:?}");
    assert_eq!(released(&opdev, mark).await, Verdict::Discarded);
    // Asked again, and let through.
    let mark = opdev.mark();
    opdev.ask(SourcesTask::Reload).await;
    let id = held(&opdev, mark).await.id.clone();
    assert!(!opdev.since(mark).iter().any(wrote), "a discarded chart has gone live");
    let outcome = opdev.ask(SourcesTask::ApplyHeld { id }).await;
    assert!(matches!(outcome, RequestOutcome::Done { .. }), "{outcome:?}");
    let reconcile =
        opdev.reconcile("the upgrade", mark, |reconcile| reconcile.outcome == Outcome::Upgraded).await;
    assert_eq!(
        reconcile.objects.iter().map(|change| &change.changes).collect::<Vec<_>>(),
        run.objects[0].children.iter().map(|change| &change.changes).collect::<Vec<_>>(),
        "what came is what was told"
    );
    opdev.stop().await;
}
