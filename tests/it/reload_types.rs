//! A saved type or reconciler is the operator at once: the CRD follows, what would hurt waits for a word,
//! broken files take nothing away, and the new reconciler runs.

use crate::gadget::{GADGET, RECONCILER, SAMPLE, TYPES, is_gadget, start};
use crate::inner_loop::Opdev;
use expect_test::expect;
use opdev_event::{
    CauseKind, Event, Held, HeldChange, KindHealth, Level, ObjectTask, Outcome, Reconcile, RequestOutcome,
    ShadowDecision, SourcesChanged, SourcesTask, TypeChanged, Verdict, Weight,
};
use std::fs;
use std::sync::Arc;

async fn apply(opdev: &mut Opdev, path: &str) {
    let outcome = opdev.ask(ObjectTask::Apply { path: path.to_owned() }).await;
    let RequestOutcome::Done { warnings, .. } = &outcome else { panic!("{outcome:?}") };
    assert!(warnings.is_empty(), "{outcome:?}");
}

async fn type_changed(opdev: &Opdev, mark: usize) -> Arc<TypeChanged> {
    opdev
        .wait("the changed type", mark, |event| match event {
            Event::TypeChanged(changed) => Some(Arc::clone(changed)),
            _ => None,
        })
        .await
}

async fn held(opdev: &Opdev, mark: usize) -> Arc<Held> {
    opdev
        .wait("the question", mark, |event| match event {
            Event::Held(held) => Some(Arc::clone(held)),
            _ => None,
        })
        .await
}

async fn released(opdev: &Opdev, mark: usize) -> Verdict {
    opdev
        .wait("the end of the question", mark, |event| match event {
            Event::Released(released) => Some(released.verdict),
            _ => None,
        })
        .await
}

async fn sources(opdev: &Opdev, mark: usize) -> Arc<SourcesChanged> {
    opdev
        .wait("new sources", mark, |event| match event {
            Event::SourcesChanged(changed) => Some(Arc::clone(changed)),
            _ => None,
        })
        .await
}

fn health(sources: &SourcesChanged) -> &KindHealth {
    &sources.kinds.iter().find(|kind| kind.gvk.kind == "Gadget").unwrap().health
}

fn caused_by(reconcile: &Reconcile, file: &str) -> bool {
    reconcile.causes.iter().any(|cause| match &cause.kind {
        CauseKind::Reload { files, .. } => files.iter().any(|one| one == file),
        _ => false,
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_field_that_is_added_is_usable_as_soon_as_it_is_saved() {
    let mut opdev = start().await;
    let declarations = opdev.root.join(".opdev/types/opdev.d.ts");
    assert!(fs::read_to_string(&declarations).unwrap().contains("tier?"));
    let mark = opdev.mark();
    opdev.edit(TYPES, |text| {
        text.replace(
            "}\n\n// GadgetStatus",
            "\n\t// +optional\n\tColour string `json:\"colour,omitempty\"`\n}\n\n// GadgetStatus",
        )
    });
    let changed = type_changed(&opdev, mark).await;
    assert_eq!(changed.files, [TYPES]);
    assert!(
        !changed.created && changed.findings.iter().all(|finding| finding.weight == Weight::Info),
        "{changed:?}"
    );
    assert!(changed.findings.iter().any(|finding| finding.field == ".spec.colour"), "{changed:?}");
    opdev
        .reconcile("the pass on the new type", mark, |reconcile| {
            is_gadget(reconcile) && caused_by(reconcile, TYPES)
        })
        .await;
    assert!(fs::read_to_string(&declarations).unwrap().contains("colour?"));
    opdev.edit(SAMPLE, |text| text.replace("tier: gold", "tier: gold, colour: red"));
    let mark = opdev.mark();
    apply(&mut opdev, SAMPLE).await;
    // Watches that the server cut with the change see this one, and nobody was troubled with it.
    opdev
        .reconcile("the pass on the new field", mark, |reconcile| {
            is_gadget(reconcile) && format!("{:?}", reconcile.causes).contains(".spec.colour")
        })
        .await;
    let troubles: Vec<_> = opdev
        .since(0)
        .into_iter()
        .filter_map(|event| match event {
            Event::Noticed(notice) if notice.level <= Level::Warn => Some(notice.message),
            _ => None,
        })
        .collect();
    assert!(troubles.is_empty(), "{troubles:?}");
    opdev.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_server_would_refuse_is_placed_and_never_sent() {
    let opdev = start().await;
    let mark = opdev.mark();
    opdev.edit(TYPES, |text| {
        text.replace("// +kubebuilder:validation:Minimum=0", "// +kubebuilder:default=three")
    });
    let failed = opdev.reload_failure("the refusal", mark).await;
    let problem = &failed.diagnostics[0];
    expect![[r#"the API server would refuse gadgets.toys.example.com: .spec.size: Invalid value: "string":  in body must be of type integer: "string""#]]
    .assert_eq(&problem.message);
    let place = problem.place.as_ref().unwrap();
    let line = GADGET.lines().position(|line| line.contains("Size int32")).unwrap() + 1;
    assert_eq!((place.file.as_str(), place.line as usize), (TYPES, line), "{problem:?}");
    let sent = opdev.since(mark).iter().any(|event| matches!(event, Event::TypeChanged(_)));
    assert!(!sent);
    let mark = opdev.mark();
    opdev.edit(TYPES, |text| {
        text.replace("// +kubebuilder:default=three", "// +kubebuilder:validation:Minimum=0")
    });
    let live = sources(&opdev, mark).await;
    assert_eq!(health(&live), &KindHealth::Serving);
    opdev.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_type_that_is_gone_leaves_its_crd_and_its_objects() {
    let mut opdev = start().await;
    let mark = opdev.mark();
    fs::remove_file(opdev.root.join(TYPES)).unwrap();
    let told = opdev
        .wait("the notice", mark, |event| match event {
            Event::Noticed(notice) if notice.message.contains("gadgets.toys.example.com") => {
                Some(notice.message.clone())
            }
            _ => None,
        })
        .await;
    expect!["the files define gadgets.toys.example.com no more; its CRD and its objects stay on the API server (kubectl delete crd gadgets.toys.example.com would delete both)"]
    .assert_eq(&told);
    apply(&mut opdev, SAMPLE).await;
    opdev.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_enum_value_in_use_is_held_and_undoing_the_edit_clears_it() {
    let opdev = start().await;
    let mark = opdev.mark();
    opdev.edit(TYPES, |text| text.replace("Enum=gold;silver;iron", "Enum=silver;iron"));
    let question = held(&opdev, mark).await;
    assert_eq!((question.change, question.kind.kind.as_str()), (HeldChange::Type, "Gadget"));
    assert_eq!(question.objects[0].object.to_string(), "Gadget default/top");
    assert_eq!(question.objects[0].field, ".spec.tier");
    assert_eq!(question.findings[0].place.as_ref().unwrap().file, TYPES);
    let live = sources(&opdev, mark).await;
    assert!(matches!(health(&live), KindHealth::Stale { .. }), "{:?}", health(&live));
    let back = opdev.mark();
    opdev.edit(TYPES, |text| text.replace("Enum=silver;iron", "Enum=gold;silver;iron"));
    assert_eq!(released(&opdev, back).await, Verdict::Undone);
    let live = sources(&opdev, back).await;
    assert_eq!(health(&live), &KindHealth::Serving);
    let sent = opdev.since(mark).iter().any(|event| matches!(event, Event::TypeChanged(_)));
    assert!(!sent, "nothing of it reached the API server");
    opdev.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rename_is_named_and_waits_for_the_answer() {
    let mut opdev = start().await;
    let rename = |text: String| text.replace("Size int32 `json:\"size\"`", "Count int32 `json:\"count\"`");
    let mark = opdev.mark();
    opdev.edit(TYPES, rename);
    let question = held(&opdev, mark).await;
    expect![
        ".spec.size is renamed to .spec.count: stored values are lost; 1 object would not be valid any more"
    ]
    .assert_eq(&question.why);
    assert_eq!(question.findings[0].weight, Weight::Loss);
    let discarded = opdev.mark();
    let outcome = opdev.ask(SourcesTask::DiscardHeld { id: question.id.clone() }).await;
    assert!(matches!(outcome, RequestOutcome::Done { .. }), "{outcome:?}");
    assert_eq!(released(&opdev, discarded).await, Verdict::Discarded);
    let again = opdev.ask(SourcesTask::ApplyHeld { id: question.id.clone() }).await;
    assert!(matches!(again, RequestOutcome::Failed { .. }), "{again:?}");

    let mark = opdev.mark();
    opdev.ask(SourcesTask::Reload).await;
    let question = held(&opdev, mark).await;
    let mark = opdev.mark();
    let outcome = opdev.ask(SourcesTask::ApplyHeld { id: question.id.clone() }).await;
    assert!(matches!(outcome, RequestOutcome::Done { .. }), "{outcome:?}");
    let changed = type_changed(&opdev, mark).await;
    assert!(changed.findings.iter().any(|finding| finding.weight == Weight::Loss), "{changed:?}");
    assert_eq!(released(&opdev, mark).await, Verdict::Applied);
    opdev.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn broken_files_keep_the_last_good_type_and_the_last_good_program() {
    let opdev = start().await;
    for (path, good, bad) in [
        (TYPES, "\tSize int32 `json:\"size\"`", "\tSize int32 `json:"),
        (RECONCILER, "return { children: [", "return { children: [ [ }"),
    ] {
        let mark = opdev.mark();
        opdev.edit(path, |text| text.replace(good, bad));
        let failed = opdev.reload_failure("the failure", mark).await;
        let problem = &failed.diagnostics[0];
        let place = problem.place.as_ref().unwrap();
        assert!(place.file == path && place.line > 0 && place.column > 0, "{problem:?}");
        assert!(problem.excerpt.is_some(), "{problem:?}");
        let live = sources(&opdev, mark).await;
        assert!(matches!(health(&live), KindHealth::Stale { .. }), "{:?}", health(&live));
        let mark = opdev.mark();
        opdev.edit(path, |text| text.replace(bad, good));
        let live = sources(&opdev, mark).await;
        assert_eq!(health(&live), &KindHealth::Serving, "{path}");
    }
    let all = opdev.since(0);
    let sent = all
        .iter()
        .filter(|event| matches!(event, Event::TypeChanged(changed) if changed.kind.kind == "Gadget"));
    assert_eq!(sent.count(), 1, "only the first one");
    opdev.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_saved_reconciler_runs_after_a_shadow_run() {
    let opdev = start().await;
    let mark = opdev.mark();
    opdev.edit(RECONCILER, |text| text.replace("map(\"two\", 2)", "map(\"two\", 22)"));
    let run = shadow_run(&opdev, mark).await;
    assert_eq!((run.decision, run.ran, run.objects.len()), (ShadowDecision::Switched, 1, 1), "{run:?}");
    let change = &run.objects[0].children[0];
    assert_eq!(
        (change.object.name.as_str(), change.changes[0].path.to_string().as_str()),
        ("top-two", ".data.n")
    );
    let reconcile = opdev
        .reconcile("the pass", mark, |reconcile| is_gadget(reconcile) && caused_by(reconcile, RECONCILER))
        .await;
    assert_eq!(reconcile.objects.len(), 1, "{reconcile:?}");

    // A script that throws on an existing object does not get to run.
    let mark = opdev.mark();
    opdev.edit(RECONCILER, |text| {
        text.replace("  const map", "  if (self.spec.size > 2) throw new Error(\"too many\");\n  const map")
    });
    let run = shadow_run(&opdev, mark).await;
    assert_eq!(run.decision, ShadowDecision::Refused);
    let live = sources(&opdev, mark).await;
    let KindHealth::Stale { problem } = health(&live) else { panic!("{:?}", health(&live)) };
    expect!["too many (on Gadget default/top)"].assert_eq(&problem.message);
    assert_eq!(problem.place.as_ref().map(|place| (place.file.as_str(), place.line)), Some((RECONCILER, 4)));
    opdev.stop().await;
}

async fn shadow_run(opdev: &Opdev, mark: usize) -> Arc<opdev_event::ShadowRun> {
    opdev
        .wait("the shadow run", mark, |event| match event {
            Event::ShadowRun(run) => Some(Arc::clone(run)),
            _ => None,
        })
        .await
}

fn failed_gadgets(opdev: &Opdev, mark: usize) -> usize {
    let failed = |event: &Event| matches!(event, Event::Reconciled(reconcile) if is_gadget(reconcile) && reconcile.outcome == Outcome::Failed);
    opdev.since(mark).iter().filter(|event| failed(event)).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_status_field_that_the_type_lacks_is_refused_before_it_serves_and_serves_once_it_is_declared() {
    let opdev = start().await;
    let mark = opdev.mark();
    opdev.edit(RECONCILER, |text| {
        text.replace("seen: self.spec.size }", "seen: self.spec.size, colour: \"red\" }")
    });
    let run = shadow_run(&opdev, mark).await;
    assert_eq!(run.decision, ShadowDecision::Refused, "{run:?}");
    let live = sources(&opdev, mark).await;
    let KindHealth::Stale { problem } = health(&live) else { panic!("{:?}", health(&live)) };
    expect!["the API server would refuse Gadget default/top: failed to create typed patch object (default/top; toys.example.com/v1alpha1, Kind=Gadget): .status.colour: field not declared in schema (on Gadget default/top)"]
    .assert_eq(&problem.message);
    assert!(problem.hint.as_ref().is_some_and(|hint| hint.contains("declare the field")), "{problem:?}");
    assert_eq!(failed_gadgets(&opdev, mark), 0, "the older program serves on");

    let mark = opdev.mark();
    opdev.edit(TYPES, |text| {
        text.replace(
            "\tSeen int32 `json:\"seen,omitempty\"`",
            "\tSeen int32 `json:\"seen,omitempty\"`\n\t// +optional\n\tColour string `json:\"colour,omitempty\"`",
        )
    });
    let run = shadow_run(&opdev, mark).await;
    assert_eq!(run.decision, ShadowDecision::Switched, "{run:?}");
    opdev
        .reconcile("the status", mark, |reconcile| {
            is_gadget(reconcile)
                && reconcile.status.iter().any(|change| change.path.to_string() == ".status.colour")
        })
        .await;
    assert_eq!(failed_gadgets(&opdev, mark), 0);
    opdev.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_whose_first_write_is_refused_gives_way_to_the_one_before_it() {
    let opdev = start().await;
    let mark = opdev.mark();
    // Each dry run has the port to itself.
    opdev.edit(RECONCILER, |text| {
        text.replace("export const owns = [", "export const owns = [\"v1/Service\", ").replace(
            "map(\"two\", 2)]",
            "map(\"two\", 2), ...[\"a\", \"b\"].map((name) => ({ apiVersion: \"v1\", kind: \"Service\", \
             metadata: { name }, spec: { type: \"NodePort\", ports: [{ port: 80, nodePort: 30123 }] } }))]",
        )
    });
    assert_eq!(shadow_run(&opdev, mark).await.decision, ShadowDecision::Switched);
    let reconcile = opdev
        .reconcile("the refused pass", mark, |reconcile| {
            is_gadget(reconcile) && reconcile.outcome == Outcome::Failed
        })
        .await;
    let back = opdev
        .wait("the program before it", mark, |event| match event {
            Event::SourcesChanged(live) if matches!(health(live), KindHealth::Stale { .. }) => {
                Some(Arc::clone(live))
            }
            _ => None,
        })
        .await;
    let KindHealth::Stale { problem } = health(&back) else { panic!("{:?}", health(&back)) };
    assert!(
        problem.message.contains("30123") && problem.message.contains("Gadget default/top"),
        "{problem:?}"
    );
    let after = opdev
        .reconcile("the pass of the older one", mark, |reconcile| {
            is_gadget(reconcile) && reconcile.sources == back.sources && reconcile.outcome != Outcome::Failed
        })
        .await;
    assert!(after.id > reconcile.id);
    assert!(failed_gadgets(&opdev, mark) <= 2, "it is not tried again and again");
    opdev.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reconciler_that_would_delete_waits_for_a_word() {
    let mut opdev = start().await;
    let mark = opdev.mark();
    let fewer = |text: String| text.replace(", map(\"two\", 2)]", "]");
    opdev.edit(RECONCILER, fewer);
    let question = held(&opdev, mark).await;
    assert_eq!(question.change, HeldChange::Reconciler);
    assert_eq!(question.objects.len(), 1);
    assert_eq!(question.objects[0].object.to_string(), "ConfigMap default/top-two");
    let ran = opdev
        .since(mark)
        .iter()
        .any(|event| matches!(event, Event::Reconciled(reconcile) if is_gadget(reconcile) && !reconcile.objects.is_empty()));
    assert!(!ran, "nothing was deleted");

    let mark = opdev.mark();
    opdev.edit(RECONCILER, |text| text.replace("self.spec.size)]", "self.spec.size), map(\"two\", 2)]"));
    assert_eq!(released(&opdev, mark).await, Verdict::Undone);

    let mark = opdev.mark();
    opdev.edit(RECONCILER, fewer);
    let question = held(&opdev, mark).await;
    let mark = opdev.mark();
    let outcome = opdev.ask(SourcesTask::ApplyHeld { id: question.id.clone() }).await;
    assert!(matches!(outcome, RequestOutcome::Done { .. }), "{outcome:?}");
    let reconcile = opdev
        .reconcile("the deletion", mark, |reconcile| is_gadget(reconcile) && reconcile.objects.len() == 1)
        .await;
    assert_eq!(reconcile.objects[0].object.name, "top-two");
    opdev.stop().await;
}
