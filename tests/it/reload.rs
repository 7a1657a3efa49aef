//! A saved file reaches the cluster: only the affected kind reconciles, the cause names the file, a broken
//! edit replaces nothing, and `watches.yaml` itself is live.

use crate::inner_loop::Opdev;
use expect_test::expect;
use opdev_event::{
    CauseKind, Event, KindHealth, ObjectTask, Outcome, Reconcile, RequestOutcome, ValueFrom, ViewRequest,
};
use opdev_object::meta::ObjectRef;
use std::fs;

fn files_of(reconcile: &Reconcile) -> Vec<&str> {
    reconcile
        .causes
        .iter()
        .filter_map(|cause| match &cause.kind {
            CauseKind::Reload { files, .. } => Some(files),
            _ => None,
        })
        .flatten()
        .map(String::as_str)
        .collect()
}

async fn with_both_samples() -> Opdev {
    let mut opdev = Opdev::start().await;
    let mark = opdev.mark();
    for path in ["samples/memcached.yaml", "samples/hello.yaml"] {
        let outcome = opdev.ask(ObjectTask::Apply { path: path.to_owned() }).await;
        assert!(matches!(outcome, RequestOutcome::Done { .. }), "{outcome:?}");
    }
    for kind in ["Memcached", "Hello"] {
        opdev
            .reconcile("an install", mark, |reconcile| {
                reconcile.object.gvk.kind == kind && reconcile.outcome == Outcome::Installed
            })
            .await;
    }
    opdev
}

#[tokio::test(flavor = "multi_thread")]
async fn a_saved_template_reconciles_only_its_kind_and_names_the_file() {
    let opdev = with_both_samples().await;
    let mark = opdev.mark();
    opdev.edit("charts/memcached/templates/deployment.yaml", |text| {
        text.replace("--conn-limit=", "--max-conns=")
    });
    let settled = opdev
        .wait("the reload", mark, |event| match event {
            Event::ReloadSettled(settled) => Some(settled.clone()),
            _ => None,
        })
        .await;
    assert_eq!((settled.objects, settled.failed), (1, 0));
    let reconcile = opdev.reconcile("the upgrade", mark, |reconcile| !files_of(reconcile).is_empty()).await;
    assert_eq!(reconcile.object.gvk.kind, "Memcached");
    assert_eq!(reconcile.outcome, Outcome::Upgraded);
    assert_eq!(files_of(&reconcile), ["charts/memcached/templates/deployment.yaml"]);
    let changed: Vec<String> = reconcile
        .objects
        .iter()
        .flat_map(|object| &object.changes)
        .map(|change| change.path.to_string())
        .collect();
    assert!(changed.iter().any(|path| path.contains(".args")), "{changed:?}");
    let hello_ran = opdev.since(mark).iter().any(|event| {
        matches!(event, Event::Reconciled(reconcile) if reconcile.object.gvk.kind == "Hello" && !files_of(reconcile).is_empty())
    });
    assert!(!hello_ran, "Hello was reconciled for a file of Memcached");
    opdev.stop().await;
}

/// The line of the chart's values.yaml that says this.
fn line_of(text: &str, wanted: &str) -> usize {
    text.lines().position(|line| line.trim_start().starts_with(wanted)).unwrap() + 1
}

#[tokio::test(flavor = "multi_thread")]
async fn the_effective_values_say_who_gives_each_and_follow_a_save() {
    let mut opdev = with_both_samples().await;
    let memcached = |event: &Event| match event {
        Event::ObjectSeen(seen) if seen.object_ref.gvk.kind == "Memcached" => Some(seen.object_ref.clone()),
        _ => None,
    };
    let object = opdev.wait("the custom resource", 0, memcached).await;
    let mut text = String::new();
    opdev.edit("charts/memcached/values.yaml", |before| {
        text = format!("# one more line\n{before}\nsession:\n  token: hunter22\n");
        text.clone()
    });
    opdev
        .wait("the save", 0, |event| match event {
            Event::ReloadSettled(settled) if settled.files == ["charts/memcached/values.yaml"] => Some(()),
            _ => None,
        })
        .await;
    let mark = opdev.mark();
    opdev.begin(ViewRequest::ExplainValues { object: object.clone() }).await;
    let told = opdev
        .wait("the values", mark, |event| match event {
            Event::ValuesExplained(told) => Some(told.clone()),
            _ => None,
        })
        .await;
    assert_eq!((told.chart.as_str(), told.problem.as_deref()), ("charts/memcached", None));
    assert_eq!(told.object.key(), object.key());
    let of = |path: &str| told.values.iter().find(|value| value.path == path).unwrap();
    assert_eq!(of("replicaCount").from, ValueFrom::CustomResource);
    let pull = of("image.pullPolicy");
    assert_eq!(pull.from, ValueFrom::Default);
    let line = line_of(&text, "pullPolicy:");
    assert_eq!(pull.origin, format!("charts/memcached/values.yaml:{line}"));
    assert_eq!(of("session.token").value, "\"••••••\"");
    let gone = ObjectRef { name: "nobody".to_owned(), uid: None, ..object };
    let mark = opdev.mark();
    opdev.begin(ViewRequest::ExplainValues { object: gone }).await;
    opdev
        .wait("the refusal", mark, |event| match event {
            Event::ValuesExplained(told) => told.problem.clone().filter(|why| why.contains("not found")),
            _ => None,
        })
        .await;
    opdev.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broken_edit_is_placed_and_mended_and_the_operator_serves_on() {
    let mut opdev = with_both_samples().await;
    let mark = opdev.mark();
    opdev.edit("charts/memcached/templates/service.yaml", |text| {
        text.replace("{{ .Values.service.type }}", "{{ .Values.service.type")
    });
    let failed = opdev.reload_failure("the failure", mark).await;
    let place = failed.diagnostics[0].place.clone().unwrap();
    // An action may go over the line, so Go trips over the first thing on the next one.
    assert_eq!((place.file.as_str(), place.line), ("charts/memcached/templates/service.yaml", 9));
    expect![[r#"
         8 |   type: {{ .Values.service.type
         9 |   ports:
           |   ^
        10 |     - name: memcached"#]]
    .assert_eq(failed.diagnostics[0].excerpt.as_deref().unwrap_or_default());

    // The kind still serves from the last good chart.
    let mark = opdev.mark();
    let object = opdev
        .since(0)
        .iter()
        .find_map(|event| match event {
            Event::ObjectSeen(seen) if seen.object_ref.gvk.kind == "Memcached" => {
                Some(seen.object_ref.clone())
            }
            _ => None,
        })
        .unwrap();
    opdev.ask(ObjectTask::Scale { object, replicas: 2 }).await;
    let reconcile =
        opdev.reconcile("an upgrade", mark, |reconcile| reconcile.outcome == Outcome::Upgraded).await;
    assert_eq!(reconcile.object.gvk.kind, "Memcached");

    let mark = opdev.mark();
    opdev.edit("charts/memcached/templates/service.yaml", |text| {
        text.replace("{{ .Values.service.type", "{{ .Values.service.type }}")
    });
    opdev
        .wait("the error to go", mark, |event| match event {
            Event::SourcesChanged(changed) => {
                changed.kinds.iter().all(|kind| kind.health == KindHealth::Serving).then_some(())
            }
            _ => None,
        })
        .await;
    opdev.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_saved_chart_that_the_api_server_refuses_gives_way_to_the_older_one() {
    let opdev = with_both_samples().await;
    let template = "charts/memcached/templates/deployment.yaml";
    let mark = opdev.mark();
    opdev.edit(template, |text| text.replace("  replicas:", "  minReadySeconds: -1\n  replicas:"));
    let failed = opdev.reload_failure("the refusal", mark).await;
    let problem = &failed.diagnostics[0];
    assert!(problem.message.contains("refuses what the saved chart of Memcached writes"), "{problem:?}");
    assert!(problem.message.contains("must be greater than or equal to 0"), "{problem:?}");
    let text = fs::read_to_string(opdev.root.join(template)).unwrap();
    let place = problem.place.as_ref().unwrap();
    assert_eq!((place.file.as_str(), place.line as usize), (template, line_of(&text, "minReadySeconds:")));
    assert_eq!(problem.hint.as_deref(), Some("the older chart runs again; correct the file and save it"));
    let succeeds = |reconcile: &Reconcile| !files_of(reconcile).is_empty() && reconcile.failure.is_none();
    opdev.reconcile("a reconcile by the older chart", mark, succeeds).await;
    let tries = opdev
        .since(mark)
        .iter()
        .filter(|event| matches!(event, Event::Reconciled(reconcile) if reconcile.failure.is_some()))
        .count();
    assert_eq!(tries, 1, "one refusal is enough");

    let mark = opdev.mark();
    opdev.edit(template, |text| text.replace("minReadySeconds: -1", "minReadySeconds: 1"));
    let reconcile =
        opdev.reconcile("the corrected chart", mark, |reconcile| !files_of(reconcile).is_empty()).await;
    assert_eq!((reconcile.outcome, reconcile.failure.is_none()), (Outcome::Upgraded, true));
    opdev.stop().await;
}

/// None of the others is written to by a chart that has been refused for one.
#[tokio::test(flavor = "multi_thread")]
async fn a_chart_that_is_refused_for_one_object_is_not_tried_on_the_others() {
    let names = ["one", "two", "three", "four"];
    let mut opdev = Opdev::start_after(|root| {
        let watches = root.join("config/watches.yaml");
        let text = fs::read_to_string(&watches).unwrap();
        let chart = "chart: charts/memcached\n";
        fs::write(watches, text.replace(chart, &format!("{chart}  maxConcurrentReconciles: 1\n"))).unwrap();
        let object = |name| {
            format!(
                "apiVersion: cache.my.domain/v1alpha1\nkind: Memcached\nmetadata: {{name: {name}}}\nspec: {{}}\n"
            )
        };
        fs::write(root.join("samples/four.yaml"), names.map(object).join("---\n")).unwrap();
    })
    .await;
    let mark = opdev.mark();
    opdev.ask(ObjectTask::Apply { path: "samples/four.yaml".to_owned() }).await;
    let template = "charts/memcached/templates/deployment.yaml";
    for name in names {
        let installed =
            |reconcile: &Reconcile| reconcile.object.name == name && reconcile.outcome == Outcome::Installed;
        opdev.reconcile("an install", mark, installed).await;
    }
    let mark = opdev.mark();
    opdev.edit(template, |text| text.replace("  replicas:", "  minReadySeconds: -1\n  replicas:"));
    for name in names {
        let back = |reconcile: &Reconcile| {
            reconcile.object.name == name && !files_of(reconcile).is_empty() && reconcile.failure.is_none()
        };
        opdev.reconcile("a reconcile by the older chart", mark, back).await;
    }
    let refused =
        |event: &&Event| matches!(event, Event::Reconciled(reconcile) if reconcile.failure.is_some());
    assert_eq!(opdev.since(mark).iter().filter(refused).count(), 1);
    opdev.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn watches_yaml_adds_and_removes_kinds_while_it_runs() {
    let mut opdev = Opdev::start_after(|root| {
        let path = root.join("config/watches.yaml");
        let text = fs::read_to_string(&path).unwrap();
        let only_memcached = text.split("- group: charts.my.domain").next().unwrap().to_owned();
        fs::write(path, only_memcached).unwrap();
    })
    .await;
    let mark = opdev.mark();
    opdev.edit("config/watches.yaml", |text| {
        text + "- group: charts.my.domain\n  version: v1alpha1\n  kind: Hello\n  chart: charts/hello\n"
    });
    opdev
        .wait("the new kind", mark, |event| match event {
            Event::SourcesChanged(changed) => {
                changed.kinds.iter().any(|kind| kind.gvk.kind == "Hello").then_some(())
            }
            _ => None,
        })
        .await;
    let outcome = opdev.ask(ObjectTask::Apply { path: "samples/hello.yaml".to_owned() }).await;
    assert!(matches!(outcome, RequestOutcome::Done { .. }), "{outcome:?}");
    opdev.reconcile("its install", mark, |reconcile| reconcile.outcome == Outcome::Installed).await;

    let mark = opdev.mark();
    opdev.edit("config/watches.yaml", |text| {
        text.replace("kind: Hello", "kind: Hallo").replace("- group", "-  group")
    });
    opdev.wait("a broken file", mark, |event| matches!(event, Event::ReloadFailed(_)).then_some(())).await;
    opdev.stop().await;
}

/// An object whose kind comes with a save is reconciled because of that save, not because opdev starts.
#[tokio::test(flavor = "multi_thread")]
async fn a_kind_that_comes_back_names_the_file_as_the_cause() {
    let opdev = with_both_samples().await;
    let mark = opdev.mark();
    let mut removed = String::new();
    opdev.edit("config/watches.yaml", |text| {
        let (rest, hello) = text.split_once("- group: charts.my.domain").unwrap();
        removed = format!("- group: charts.my.domain{hello}");
        rest.to_owned()
    });
    let has_hello =
        |changed: &opdev_event::SourcesChanged| changed.kinds.iter().any(|kind| kind.gvk.kind == "Hello");
    let gone = opdev
        .wait("the kind is gone", mark, |event| match event {
            Event::SourcesChanged(changed) => (!has_hello(changed)).then_some(changed.sources),
            _ => None,
        })
        .await;
    let mark = opdev.mark();
    opdev.edit("config/watches.yaml", |text| text + &removed);
    // A reconcile that was under way when the kind went may still end. What its Deployment tells of its install
    // may come before the list of the kind.
    let is_new = |reconcile: &opdev_event::Reconcile| {
        let told = |cause: &opdev_event::Cause| matches!(cause.kind, opdev_event::CauseKind::Watch { .. });
        let is_of = reconcile.object.gvk.kind == "Hello" && reconcile.sources > gone;
        is_of && !reconcile.causes.iter().all(told)
    };
    let reconcile = opdev.reconcile("its first pass", mark, is_new).await;
    assert_eq!(files_of(&reconcile), ["config/watches.yaml"], "{:?}", reconcile.causes);
    opdev.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn five_hundred_files_at_once_are_one_reload() {
    let opdev = with_both_samples().await;
    let mark = opdev.mark();
    let folder = opdev.root.join("charts/memcached/files");
    fs::create_dir(&folder).unwrap();
    for i in 0..500 {
        fs::write(folder.join(format!("{i}.txt")), "x").unwrap();
    }
    opdev.edit("charts/memcached/values.yaml", |text| {
        text.replace("maxConnections: 1024", "maxConnections: 2048")
    });
    opdev.reconcile("the upgrade", mark, |reconcile| reconcile.outcome == Outcome::Upgraded).await;
    let reloads = opdev.since(mark).iter().filter(|event| matches!(event, Event::SourcesChanged(_))).count();
    assert_eq!(reloads, 1);
    opdev.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn files_survive_how_editors_save() {
    let opdev = with_both_samples().await;
    let path = opdev.root.join("charts/memcached/values.yaml");
    let text = fs::read_to_string(&path).unwrap();
    let with = |limit: u32| text.replace("maxConnections: 1024", &format!("maxConnections: {limit}"));

    // In place, in chunks.
    let mark = opdev.mark();
    {
        use std::io::Write as _;
        let mut file = fs::File::create(&path).unwrap();
        for chunk in with(1).as_bytes().chunks(64) {
            file.write_all(chunk).unwrap();
        }
    }
    opdev.reconcile("chunks", mark, |reconcile| reconcile.outcome == Outcome::Upgraded).await;
    // Deleted and written anew.
    let mark = opdev.mark();
    fs::remove_file(&path).unwrap();
    fs::write(&path, with(2)).unwrap();
    opdev.reconcile("delete and recreate", mark, |reconcile| reconcile.outcome == Outcome::Upgraded).await;
    // The whole chart is replaced.
    let mark = opdev.mark();
    let chart = opdev.root.join("charts/memcached");
    let aside = opdev.root.join("charts/aside");
    fs::rename(&chart, &aside).unwrap();
    fs::rename(&aside, &chart).unwrap();
    fs::write(&path, with(3)).unwrap();
    opdev.reconcile("a replaced folder", mark, |reconcile| reconcile.outcome == Outcome::Upgraded).await;
    // Written again with the same bytes: nothing happens until the next real change.
    let mark = opdev.mark();
    fs::write(&path, with(3)).unwrap();
    opdev.edit("charts/memcached/values.yaml", |_| with(4));
    opdev.reconcile("a real change", mark, |reconcile| reconcile.outcome == Outcome::Upgraded).await;
    opdev.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_linked_chart_is_followed() {
    let mut opdev = Opdev::start_after(|root| {
        let elsewhere = root.join("elsewhere");
        fs::rename(root.join("charts/memcached"), &elsewhere).unwrap();
        std::os::unix::fs::symlink(&elsewhere, root.join("charts/memcached")).unwrap();
    })
    .await;
    let mark = opdev.mark();
    opdev.ask(ObjectTask::Apply { path: "samples/memcached.yaml".to_owned() }).await;
    opdev.reconcile("an install", mark, |reconcile| reconcile.outcome == Outcome::Installed).await;
    let mark = opdev.mark();
    opdev.edit("elsewhere/values.yaml", |text| text.replace("maxConnections: 1024", "maxConnections: 7"));
    let reconcile =
        opdev.reconcile("the upgrade", mark, |reconcile| reconcile.outcome == Outcome::Upgraded).await;
    assert_eq!(files_of(&reconcile), ["charts/memcached/values.yaml"]);
    opdev.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chart_that_is_broken_at_start_disables_its_kind_and_no_other() {
    let mut opdev = Opdev::start_after(|root| {
        fs::write(root.join("charts/hello/Chart.yaml"), "apiVersion: v2\nname: [\n").unwrap();
    })
    .await;
    let kinds = opdev
        .wait("the sources", 0, |event| match event {
            Event::SourcesChanged(changed) => Some(changed.kinds.clone()),
            _ => None,
        })
        .await;
    assert_eq!(kinds[0].health, KindHealth::Serving);
    assert!(matches!(kinds[1].health, KindHealth::Disabled { .. }), "{:?}", kinds[1].health);
    let mark = opdev.mark();
    opdev.ask(ObjectTask::Apply { path: "samples/memcached.yaml".to_owned() }).await;
    opdev.reconcile("an install", mark, |reconcile| reconcile.outcome == Outcome::Installed).await;
    opdev.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn polling_sees_a_save_too() {
    let opdev = Opdev::start_polling().await;
    let path = opdev.root.join("charts/memcached/values.yaml");
    let text = fs::read_to_string(&path).unwrap();
    // The first save may still be caught by the look at the files that starts the watch, which names none.
    let mut files = Vec::new();
    for limit in [7, 8] {
        let mark = opdev.mark();
        fs::write(&path, text.replace("maxConnections: 1024", &format!("maxConnections: {limit}"))).unwrap();
        files = opdev
            .wait("the reload", mark, |event| match event {
                Event::SourcesChanged(changed) => Some(changed.files.clone()),
                _ => None,
            })
            .await;
    }
    assert_eq!(files, ["charts/memcached/values.yaml"]);
    opdev.stop().await;
}
