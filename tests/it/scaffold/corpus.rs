//! `opdev init` with every chart of a corpus of public ones: `OPDEV_CORPUS=DIR`, a folder that holds
//! `charts/NAME`.

use super::{done, files};
use crate::inner_loop::Opdev;
use opdev_cluster::Choice;
use opdev_event::{Event, ObjectTask, OperatorTask, Outcome};
use std::fs;
use std::path::Path;
use std::time::Instant;

/// Namespaces that a chart names and its user makes first: istioctl and Istio's documentation do.
const NAMESPACES: &[(&str, &str)] =
    &[("istio-base", "istio-system"), ("istio-istio-discovery", "istio-system")];

/// Charts that an operator never leaves alone after the install, with what the next reconcile does: the
/// Operator SDK's does the same. Passwords of Bitnami's charts and Harbor's certificates come from `lookup`,
/// which finds nothing when an operator renders the next revision; Istio's webhook asks whether the release
/// is an upgrade.
const NEVER_DONE: &[(&str, Outcome)] = &[
    ("bitnami-kafka", Outcome::Failed),
    ("bitnami-mariadb-galera", Outcome::Failed),
    ("bitnami-mongodb", Outcome::Failed),
    ("bitnami-redis", Outcome::Failed),
    ("goharbor-harbor-helm", Outcome::Upgraded),
    ("istio-base", Outcome::Upgraded),
    ("istio-istio-discovery", Outcome::Upgraded),
];

/// Each chart: a project of it, a run, its sample. It is installed, and a second reconcile finds nothing to
/// do.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs OPDEV_CORPUS, a folder that holds charts/ with public charts; takes minutes"]
async fn each_chart_of_a_corpus_begins_a_project_whose_sample_settles() {
    let corpus = std::env::var_os("OPDEV_CORPUS").expect("OPDEV_CORPUS names no folder");
    let mut charts: Vec<_> = fs::read_dir(Path::new(&corpus).join("charts"))
        .unwrap()
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.join("Chart.yaml").is_file())
        .collect();
    charts.sort();
    assert!(!charts.is_empty());
    let mut wrong = Vec::new();
    for chart in &charts {
        let began = Instant::now();
        let found = passes(chart).await;
        eprintln!("{:>6} ms {found:?} {}", began.elapsed().as_millis(), chart.display());
        let name = chart.file_name().unwrap();
        let next =
            NEVER_DONE.iter().find(|(of, _)| name == *of).map_or(Outcome::Unchanged, |(_, next)| *next);
        if found != (Outcome::Installed, next) {
            wrong.push((name.to_owned(), found));
        }
    }
    assert!(wrong.is_empty(), "{} of {}: {wrong:?}", wrong.len(), charts.len());
}

/// The outcomes of the sample's first reconcile and of the one after it.
async fn passes(chart: &Path) -> (Outcome, Outcome) {
    let reference = chart.display().to_string();
    let name = chart.file_name().unwrap();
    let namespace = NAMESPACES.iter().find(|(of, _)| name == *of).map(|(_, namespace)| namespace);
    let embedded = Choice { embedded: true, ..Choice::default() };
    let mut running = Opdev::start_against(embedded, |root| {
        for part in ["charts", "config", "samples"] {
            fs::remove_dir_all(root.join(part)).unwrap();
        }
        done(root, &["init", "--project-name", "made", "--helm-chart", &reference]);
    })
    .await;
    let samples = files(&running.root.join("config/samples"));
    let sample = samples.iter().find(|path| !path.ends_with("kustomization.yaml")).unwrap();
    let path = sample.strip_prefix(&running.root).unwrap().display().to_string();
    if let Some(namespace) = namespace {
        let text = format!("apiVersion: v1\nkind: Namespace\nmetadata: {{name: {namespace}}}\n");
        fs::write(running.root.join("config/samples/namespace.yaml"), text).unwrap();
        running.ask(ObjectTask::Apply { path: "config/samples/namespace.yaml".to_owned() }).await;
    }
    let mark = running.mark();
    running.ask(ObjectTask::Apply { path }).await;
    let first = |event: &Event| match event {
        Event::Reconciled(reconcile) if reconcile.outcome != Outcome::Unchanged => {
            Some((reconcile.outcome, reconcile.object.clone()))
        }
        _ => None,
    };
    let (installed, object) = running.wait("the first pass", mark, first).await;
    let mark = running.mark();
    running.ask(OperatorTask::Reconcile { object }).await;
    let second = running.reconcile("the second pass", mark, |_| true).await.outcome;
    running.stop().await;
    (installed, second)
}
