//! A cloned repository runs nothing that the user was not asked about.

use crate::gadget::{self, gadgets};
use crate::inner_loop::Opdev;
use crate::masked::masked;
use expect_test::expect;
use opdev_cluster::Choice;
use opdev_event::{
    Event, ObjectTask, Outcome, Permission, ProjectTask, RequestOutcome, SourcesTask, TrustAnswer,
};
use opdev_project::trust::{Store, Trust};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Runs opdev with a home of its own beside the project, which it knows nothing of.
fn opdev(root: &Path, home: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_opdev"))
        .args(args)
        .current_dir(root)
        .env("HOME", home)
        .env_remove("XDG_STATE_HOME")
        .env_remove("XDG_CONFIG_HOME")
        .env_remove("KUBECONFIG")
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A project whose reconciler writes a file with a program, at every start.
fn hostile(root: &Path, mark: &Path) {
    gadgets(root);
    let script = format!(
        "import {{ exec }} from \"opdev\";\nexport async function reconcile(self: any) {{\n  await exec(\"touch\", [{:?}]);\n  return {{ children: [] }};\n}}\n",
        mark.display().to_string()
    );
    fs::write(root.join(gadget::RECONCILER), script).unwrap();
    fs::write(
        root.join("config/opdev.yaml"),
        format!("allow: {{programs: [touch]}}\napplyOnStart: [{}]\n", gadget::SAMPLE),
    )
    .unwrap();
}

fn launch(prepare: impl FnOnce(&Path), store: Store) -> Opdev {
    let cluster = Choice { embedded: true, ..Choice::default() };
    Opdev::launch_trusting(cluster, prepare, false, |project| Trust::of(&project.root, store))
}

async fn question(opdev: &Opdev, mark: usize) -> Vec<Permission> {
    opdev
        .wait("the question", mark, |event| match event {
            Event::TrustAsked(asked) => Some(asked.unanswered.clone()),
            _ => None,
        })
        .await
}

async fn answer(opdev: &mut Opdev, answer: TrustAnswer, permissions: &[Permission]) {
    let outcome = opdev.ask(ProjectTask::Trust { answer, permissions: permissions.to_vec() }).await;
    assert!(matches!(outcome, RequestOutcome::Done { .. }), "{outcome:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_runs_before_the_answer_and_nothing_after_a_refusal() {
    let outside = tempfile::tempdir().unwrap();
    let (mark_file, home) = (outside.path().join("ran"), outside.path().join("state"));
    let mut opdev = launch(|root| hostile(root, &mark_file), Store::at(&home));
    let asked = question(&opdev, 0).await;
    let run = Permission::RunProgram { program: "touch".to_owned() };
    let apply = Permission::ApplyOnStart { file: gadget::SAMPLE.to_owned() };
    assert_eq!(asked, [run, apply]);
    let loaded = |event: &Event| matches!(event, Event::SourcesChanged(_));
    assert!(!opdev.since(0).iter().any(loaded), "sources were loaded before the answer");
    answer(&mut opdev, TrustAnswer::Refuse, &asked).await;
    // Not applied by itself, but by the user's own hand.
    opdev
        .wait("sources without what was refused", 0, |event| match event {
            Event::SourcesChanged(_) => Some(()),
            _ => None,
        })
        .await;
    let seen =
        |event: &Event| matches!(event, Event::ObjectSeen(seen) if seen.object_ref.gvk.kind == "Gadget");
    assert!(!opdev.since(0).iter().any(seen), "a sample was applied that the user had refused");
    let outcome = opdev.ask(ObjectTask::Apply { path: gadget::SAMPLE.to_owned() }).await;
    assert!(matches!(outcome, RequestOutcome::Done { .. }), "{outcome:?}");
    let refused =
        opdev.reconcile("the refused pass", 0, |reconcile| reconcile.outcome == Outcome::Failed).await;
    let why = serde_json::to_string(&refused.failure).unwrap();
    assert!(why.contains("you have not allowed this project to"), "{why}");
    assert!(!mark_file.exists() && !home.exists());

    // Asked again, and allowed for now: nothing is remembered.
    let mark = opdev.mark();
    opdev.ask(SourcesTask::Reload).await;
    assert_eq!(question(&opdev, mark).await, asked);
    answer(&mut opdev, TrustAnswer::Once, &asked).await;
    opdev.reconcile("a pass that may", mark, |reconcile| reconcile.outcome != Outcome::Failed).await;
    assert!(mark_file.exists() && !home.exists());
    opdev.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_saved_file_that_wants_more_asks_again_while_opdev_runs() {
    let outside = tempfile::tempdir().unwrap();
    let store = Store::at(&outside.path().join("state"));
    let mut opdev = launch(|_| {}, store.clone());
    opdev
        .wait("sources of a project that wants nothing", 0, |event| {
            matches!(event, Event::SourcesChanged(_)).then_some(())
        })
        .await;
    let asked = |event: &Event| matches!(event, Event::TrustAsked(_));
    assert!(!opdev.since(0).iter().any(asked), "the demo asks nothing");
    let mark = opdev.mark();
    opdev.edit("config/watches.yaml", |text| {
        let more = "chart: charts/hello\n  overrideValues: {greeting: \"$HOME\"}";
        text.replace("chart: charts/hello", more)
    });
    let wanted = question(&opdev, mark).await;
    let key = ("HOME".to_owned(), "Hello.charts.my.domain".to_owned(), "greeting".to_owned());
    assert_eq!(wanted, [Permission::ReadVariable { variable: key.0, kind: key.1, key: key.2 }]);
    let loaded = |event: &Event| matches!(event, Event::SourcesChanged(_)).then_some(());
    assert!(!opdev.since(mark).iter().any(|event| loaded(event).is_some()));
    answer(&mut opdev, TrustAnswer::Trust, &wanted).await;
    opdev.wait("sources with the variable", mark, loaded).await;
    let remembered = store.all().unwrap();
    assert_eq!(remembered[0].trusted[0].what, wanted[0].to_string());
    opdev.stop().await;
}

/// The project's files want no more than before once the last edit is undone; the types were saved while they
/// did.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_saved_beside_an_open_question_is_loaded_once_nothing_is_asked() {
    let opdev = launch(gadgets, Store::none());
    let loaded = |event: &Event| matches!(event, Event::SourcesChanged(_)).then_some(());
    opdev.wait("the first sources", 0, loaded).await;
    let watches = fs::read_to_string(opdev.root.join("config/watches.yaml")).unwrap();
    let want = |variable: &str| {
        let more = format!("chart: charts/hello\n  overrideValues: {{greeting: \"${variable}\"}}");
        watches.replace("chart: charts/hello", &more)
    };
    let mark = opdev.mark();
    opdev.edit("config/watches.yaml", |_| want("HOME"));
    question(&opdev, mark).await;
    // The second question is asked of the files that were saved with or after the types.
    let mark = opdev.mark();
    opdev.edit(gadget::TYPES, |text| text.replace("gold;silver;iron", "gold;silver;iron;copper"));
    opdev.edit("config/watches.yaml", |_| want("PATH"));
    question(&opdev, mark).await;
    assert!(!opdev.since(mark).iter().any(|event| loaded(event).is_some()));
    opdev.edit("config/watches.yaml", |_| watches.clone());
    opdev
        .wait("the type that was saved", mark, |event| match event {
            Event::TypeChanged(changed) if changed.kind.kind == "Gadget" => Some(()),
            _ => None,
        })
        .await;
    opdev.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_variable_disables_its_kind_and_no_other() {
    let watches = "config/watches.yaml";
    let prepare = |root: &Path| {
        let text = fs::read_to_string(root.join(watches)).unwrap();
        let more = "chart: charts/hello\n  overrideValues: {greeting: \"$HOME\"}";
        fs::write(root.join(watches), text.replace("chart: charts/hello", more)).unwrap();
    };
    let mut opdev = launch(prepare, Store::none());
    let asked = question(&opdev, 0).await;
    answer(&mut opdev, TrustAnswer::Refuse, &asked).await;
    let kinds = opdev
        .wait("sources", 0, |event| match event {
            Event::SourcesChanged(sources) => Some(sources.kinds.clone()),
            _ => None,
        })
        .await;
    let health = |kind: &str| {
        let found = kinds.iter().find(|one| one.gvk.kind == kind).unwrap();
        serde_json::to_string(&found.health).unwrap()
    };
    assert!(
        health("Hello").contains("not allowed to read the environment variable HOME"),
        "{}",
        health("Hello")
    );
    assert!(health("Hello").contains("disabled"), "{}", health("Hello"));
    expect![[r#"{"state":"serving"}"#]].assert_eq(&health("Memcached"));
    opdev.stop().await;
}

/// Which of two programs is the operator's is not known, so neither is what it would be trusted with.
#[test]
fn a_project_whose_program_is_not_known_is_not_said_to_want_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (root, home) = (folder.path().join("demo"), folder.path().join("home"));
    let main = "package main\n\nimport ctrl \"sigs.k8s.io/controller-runtime\"\n\nfunc main() {\n\
        \tmgr, _ := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{})\n\t_ = mgr.Start(nil)\n}\n";
    for name in ["a", "b"] {
        fs::create_dir_all(root.join("cmd").join(name)).unwrap();
        fs::write(root.join("cmd").join(name).join("main.go"), main).unwrap();
    }
    fs::create_dir_all(&home).unwrap();
    let module = "module example.com/two\n\ngo 1.24\n\nrequire sigs.k8s.io/controller-runtime v0.21.0\n";
    fs::write(root.join("go.mod"), module).unwrap();
    fs::write(root.join("PROJECT"), "layout: [go.kubebuilder.io/v4]\n").unwrap();
    let listed = text(&opdev(&root, &home, &["trust", "--list"]).stdout);
    expect![[r#"
        TMP/demo wants
          its program is not known: the project has several main packages: ./cmd/a, ./cmd/b; name the operator's with `go` under `operator` in opdev.yaml
        no project is trusted
    "#]]
    .assert_eq(&masked(&listed));
    let trusted = text(&opdev(&root, &home, &["trust"]).stdout);
    expect![[r#"
        TMP/demo wants nothing yet
          its program is not known: the project has several main packages: ./cmd/a, ./cmd/b; name the operator's with `go` under `operator` in opdev.yaml
    "#]]
    .assert_eq(&masked(&trusted));
}

#[test]
fn without_a_terminal_run_refuses_with_the_command_that_trusts() {
    let (folder, root) = crate::inner_loop::demo_project();
    let home = folder.path().join("home");
    fs::create_dir_all(&home).unwrap();
    let nowhere = PathBuf::from("/nowhere/ran");
    hostile(&root, &nowhere);
    let run = ["run", "--embedded", "--plain", "--only", "NoSuchKind"];
    let refused = opdev(&root, &home, &run);
    let said = text(&refused.stderr);
    assert_eq!(refused.status.code(), Some(1), "{said}");
    expect![[r#"
        error: the project TMP/demo wants more than to render and to apply, and is not trusted to
          - run the program touch, called by reconcilers (allow.programs in opdev.yaml)
          - apply samples/gadget.yaml at every start, so that reconcilers run without a key (applyOnStart in opdev.yaml)
          to do: read these settings; where you trust the project, run `opdev trust --project TMP/demo` and start opdev again
    "#]]
    .assert_eq(&masked(&said));
    assert!(!root.join(".opdev").exists(), "a project that is refused is not written to");

    let listed = text(&opdev(&root, &home, &["trust", "--list"]).stdout);
    expect![[r#"
        TMP/demo wants
          - run the program touch, called by reconcilers (allow.programs in opdev.yaml): not trusted
          - apply samples/gadget.yaml at every start, so that reconcilers run without a key (applyOnStart in opdev.yaml): not trusted
        no project is trusted
    "#]]
    .assert_eq(&masked(&listed));
    let trusted = opdev(&root, &home, &["trust"]);
    assert!(trusted.status.success());
    expect![[r#"
        TMP/demo is trusted from now on to
          - run the program touch, called by reconcilers (allow.programs in opdev.yaml)
          - apply samples/gadget.yaml at every start, so that reconcilers run without a key (applyOnStart in opdev.yaml)
        A change of these settings asks again; `opdev trust --revoke` takes the trust back.
    "#]]
    .assert_eq(&masked(&text(&trusted.stdout)));
    assert!(home.join(".local/state/opdev/trusted").exists());
    // Past the question it is the flag that ends it.
    let said = text(&opdev(&root, &home, &run).stderr);
    expect![[r#"
        error: --only NoSuchKind: the project has no such kind; it has Memcached, Hello, ArmadaBackup, ArmadaChart, ArmadaChartGroup, ArmadaManifest, ArmadaRestore, Gadget, MemcachedBackup, PodSet
    "#]]
    .assert_eq(&said);

    // A change asks again.
    let settings = fs::read_to_string(root.join("config/opdev.yaml")).unwrap();
    fs::write(root.join("config/opdev.yaml"), settings.replace("[touch]", "[touch, nc]")).unwrap();
    let said = text(&opdev(&root, &home, &run).stderr);
    expect![[r#"
        error: the project TMP/demo wants more than to render and to apply, and is not trusted to
          - run the program nc, called by reconcilers (allow.programs in opdev.yaml)
          to do: read these settings; where you trust the project, run `opdev trust --project TMP/demo` and start opdev again
    "#]]
    .assert_eq(&masked(&said));
    expect![[r#"
        TMP/demo is not trusted any more; an opdev that runs there goes on until it ends
    "#]]
    .assert_eq(&masked(&text(&opdev(&root, &home, &["trust", "--revoke"]).stdout)));
    expect![[r#"
        error: the project TMP/demo wants more than to render and to apply, and is not trusted to
          - run the program nc, called by reconcilers (allow.programs in opdev.yaml)
          - run the program touch, called by reconcilers (allow.programs in opdev.yaml)
          - apply samples/gadget.yaml at every start, so that reconcilers run without a key (applyOnStart in opdev.yaml)
          to do: read these settings; where you trust the project, run `opdev trust --project TMP/demo` and start opdev again
    "#]]
    .assert_eq(&masked(&text(&opdev(&root, &home, &run).stderr)));
    assert_eq!(opdev(&root, &home, &["trust", "--revoke"]).status.code(), Some(1));
}

#[test]
fn a_project_cannot_choose_the_cluster_to_write_to() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("opdev.yaml"), "allowContexts: [prod]\n").unwrap();
    let project = opdev_project::Project::discover(Some(folder.path()), folder.path()).unwrap();
    let told = project.diagnostics[0].clone();
    expect!["the setting `allowContexts` of a project has no effect"].assert_eq(&told.message);
    expect![
        "start opdev with --allow-context NAME, or add allowContexts to your own ~/.config/opdev/config.yaml"
    ]
    .assert_eq(&told.hint.unwrap());
}
