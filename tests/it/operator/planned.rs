//! A plan says exactly what the reconcile then does, object by object and field by field, and a plan writes
//! nothing. With `OPDEV_CORPUS=DIR` also for the charts of a corpus (`DIR/charts/NAME`, values in
//! `DIR/cases/NAME`): one value flipped for each chart, or all cases with `OPDEV_PLAN_CASES=all`, which are
//! the default values, the charts' own and each `flip-*.yaml`. `OPDEV_PLAN_CHARTS` picks charts by a part of
//! their name.

use super::world::{World, chart, settings, sources, web};
use expect_test::expect;
use futures::FutureExt as _;
use kube::api::ListParams;
use opdev_event::{Action, Event, ObjectChange, Outcome, PauseScope, Reconcile, ShadowObject, StepAhead};
use opdev_helm::chart::{self, Chart};
use opdev_object::meta::Gvk;
use opdev_object::yaml;
use opdev_operator::manager::ManagerRequest;
use opdev_reconcile::dry_run_report::Shadowed;
use opdev_reconcile::plan_all::foresee;
use opdev_sources::Watch;
use serde_json::{Value, json};
use std::fs;
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;

/// Far longer than anything takes.
const LONG: Duration = Duration::from_secs(300);

/// A chart with values to begin with, and values to go on with.
struct Case {
    name: String,
    chart: Arc<Chart>,
    flip: Value,
}

/// The charts of this repository, each with one value changed.
fn own_cases() -> Vec<Case> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let flips = [
        ("charts/memcached", json!({"memcached": {"maxConnections": 77}})),
        ("charts/memcached", json!({"autoscaling": {"enabled": true}})),
        ("charts/memcached", json!({"service": {"port": 11222}})),
        ("charts/hello", json!({"greeting": "good morning"})),
        ("charts/testchart", json!({"replicaCount": 4})),
        ("tests/golden/charts/web", json!({"replicas": 2})),
    ];
    flips.into_iter().map(|(path, flip)| case(&root.join(path), path.to_owned(), flip)).collect()
}

fn case(folder: &Path, name: String, flip: Value) -> Case {
    let files = chart::read_dir(folder).unwrap();
    Case { name, chart: Arc::new(Chart::load(&files).unwrap()), flip }
}

/// The charts of a corpus beside the repository.
fn corpus_cases() -> Vec<Case> {
    let Some(corpus) = std::env::var_os("OPDEV_CORPUS").map(PathBuf::from) else { return Vec::new() };
    let all = std::env::var("OPDEV_PLAN_CASES").is_ok_and(|which| which == "all");
    let picked = std::env::var("OPDEV_PLAN_CHARTS").unwrap_or_default();
    let sorted = |folder: PathBuf| {
        let mut paths: Vec<PathBuf> =
            fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        paths
    };
    let mut cases = Vec::new();
    for folder in sorted(corpus.join("charts")) {
        let name = folder.file_name().unwrap().to_str().unwrap().to_owned();
        if !name.contains(&picked) {
            continue;
        }
        let files = sorted(corpus.join("cases").join(&name));
        let flipped = |path: &&PathBuf| path.file_name().unwrap().to_str().unwrap().starts_with("flip-");
        let files: Vec<&PathBuf> = match all {
            true => files.iter().collect(),
            false => files.iter().filter(flipped).take(1).collect(),
        };
        if all {
            // A value that no template knows: the chart's own values stay.
            cases.push(case(&folder, format!("{name}/default"), json!({"unknownToTheChart": true})));
        }
        for flip in files {
            let values = yaml::from_str(&fs::read_to_string(flip).unwrap()).unwrap();
            let name = format!("{name}/{}", flip.file_stem().unwrap().to_str().unwrap());
            cases.push(case(&folder, name, values));
        }
    }
    cases
}

async fn pause(world: &World, on: bool) {
    let scope = PauseScope::Kind { gvk: Gvk::new("test.my.domain", "v1", "Web") };
    let (reply, answer) = oneshot::channel();
    let request = match on {
        true => ManagerRequest::Pause { scope, why: None, reply },
        false => ManagerRequest::Resume { scope, reply },
    };
    world.requests.send(request).await.unwrap();
    answer.await.unwrap().unwrap();
}

async fn shadow(world: &World, watch: &Arc<Watch>) -> Shadowed {
    let (reply, answer) = oneshot::channel();
    world.requests.send(ManagerRequest::Shadow { watch: Arc::clone(watch), reply }).await.unwrap();
    tokio::time::timeout(LONG, answer).await.unwrap().unwrap()
}

/// The store's revision.
async fn revision(world: &World) -> String {
    let list = world.api("", "ConfigMap").list(&ListParams::default()).await.unwrap();
    list.metadata.resource_version.unwrap()
}

/// A plan between two reads that saw nothing written. Controllers go on beside it for a while, a plan that
/// writes does for ever.
async fn plan_that_writes_nothing(world: &World, watch: &Arc<Watch>) -> Shadowed {
    let look = async {
        loop {
            let before = revision(world).await;
            let found = shadow(world, watch).await;
            if before == revision(world).await && found.ran == 1 {
                return found;
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(LONG, look).await.expect("something is written each time a plan is made")
}

/// The changes of one object, in a form that compares. Two things that nobody can foresee are left out:
/// values that are drawn, and replicas that an autoscaler of the same reconcile may have set before the rest
/// is written.
fn said(changes: &[ObjectChange], left_out: &ShadowObject) -> Vec<String> {
    let hook =
        |change: &&ObjectChange| !left_out.hooks.iter().any(|hook| hook.object.key() == change.object.key());
    let scaled = changes.iter().any(|change| change.object.gvk.kind == "HorizontalPodAutoscaler");
    let told = |change: &ObjectChange| {
        let known = change.changes.iter().filter(|one| !(scaled && one.path.to_string() == ".spec.replicas"));
        let mut fields: Vec<String> = known
            .map(|one| match is_drawn(&one.path.to_string()) {
                true => format!("{} drawn", one.path),
                false => {
                    format!("{} {:?}→{:?}", one.path, drawn(one.old.as_ref()), drawn(one.new.as_ref()))
                }
            })
            .collect();
        fields.sort();
        let nothing = change.action == Action::Updated && fields.is_empty();
        let (action, object, from) = (change.action, &change.object, &change.taken_from);
        (!nothing).then(|| format!("{action:?} {object} {} by {from:?}", fields.join(", ")))
    };
    changes.iter().filter(hook).filter_map(told).collect()
}

/// Returns true if a value is drawn by the API server, or is a checksum, which may be one of a certificate
/// that a template has drawn.
fn is_drawn(path: &str) -> bool {
    path.contains("checksum/") || DRAWN.iter().any(|name| path.ends_with(name))
}

/// Fields that the API server draws.
const DRAWN: [&str; 4] = ["nodePort", "healthCheckNodePort", "clusterIP", "clusterIPs"];

/// A value without what the API server draws.
fn drawn(value: Option<&Value>) -> Option<Value> {
    fn cover(value: &mut Value) {
        match value {
            Value::Object(fields) => {
                fields.iter_mut().for_each(|(name, value)| match DRAWN.contains(&name.as_str()) {
                    true => *value = "drawn".into(),
                    false => cover(value),
                });
            }
            Value::Array(items) => items.iter_mut().for_each(cover),
            _ => {}
        }
    }
    let mut value = value?.clone();
    cover(&mut value);
    Some(value)
}

/// The reconcile that begins when the kind is let go.
async fn reconcile_after(world: &mut World) -> Arc<Reconcile> {
    pause(world, false).await;
    world.reconcile("site").await
}

/// Ends a pause with a reconcile of its own, so that nothing is under way.
async fn at_rest(world: &mut World) {
    pause(world, true).await;
    let object = opdev_object::meta::ObjectRef {
        gvk: Gvk::new("test.my.domain", "v1", "Web"),
        namespace: Some("default".into()),
        name: "site".to_owned(),
        uid: None,
    };
    let (reply, answer) = oneshot::channel();
    world.requests.send(ManagerRequest::Step { object, reply }).await.unwrap();
    answer.await.unwrap().unwrap();
    world
        .until("the step", |event| match event {
            Event::Reconciled(reconcile)
                if reconcile
                    .causes
                    .iter()
                    .any(|cause| matches!(cause.kind, opdev_event::CauseKind::User)) =>
            {
                Some(())
            }
            _ => None,
        })
        .await;
}

/// Plans the install and the flip of one chart, and compares both with the reconciles. Says why it could not.
async fn compare(case: &Case) -> Result<(), String> {
    let watch = Arc::new(web(Arc::clone(&case.chart)));
    let mut world = World::start_with(vec![Watch::clone(&watch)], settings()).await;
    // The charts of Istio name it.
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "istio-system"}});
    world.create(&world.cluster_api("", "Namespace"), namespace).await;
    pause(&world, true).await;
    world.create_web("site", json!({})).await;
    let found = foresee(&world.client, &settings(), &watch, |_| true, false).await.unwrap();
    let planned = found.objects.into_iter().next().unwrap();
    let reconcile = reconcile_after(&mut world).await;
    if reconcile.outcome != Outcome::Installed {
        world.stop().await;
        let why = reconcile.failure.as_ref().map(|failure| failure.chain.join(": ")).unwrap_or_default();
        assert!(planned.problem.is_some(), "{}: no failure of the install was foreseen: {why}", case.name);
        return Err(format!("the install fails as foreseen: {why}"));
    }
    assert_eq!(planned.problem, None, "{}", case.name);
    let release = planned.release.as_ref().unwrap();
    assert_eq!((release.step, release.to), (StepAhead::Install, Some(1)));
    assert_eq!(
        said(&planned.children, &planned),
        said(&reconcile.objects, &planned),
        "{}: install",
        case.name
    );
    let hooks: Vec<_> = reconcile.objects.iter().filter(|change| change.action == Action::Created).collect();
    for hook in &planned.hooks {
        assert!(hooks.iter().any(|made| made.object.key() == hook.object.key()), "{}: {hook:?}", case.name);
    }

    at_rest(&mut world).await;
    world.patch(&world.webs(), "site", json!({"spec": case.flip})).await;
    let found = plan_that_writes_nothing(&world, &watch).await;
    let planned = found.objects.into_iter().next();
    let reconcile = reconcile_after(&mut world).await;
    let planned = planned.unwrap_or_default();
    let failed = reconcile.outcome == Outcome::Failed;
    let why = reconcile.failure.as_ref().map(|failure| failure.chain.join(": ")).unwrap_or_default();
    // Hooks are listed, not tried.
    let by_hook = failed && why.contains("hooks failed") && !planned.hooks.is_empty();
    assert!(
        by_hook || planned.problem.is_some() == failed,
        "{}: {:?} beside {why}",
        case.name,
        planned.problem
    );
    if !failed {
        assert_eq!(
            said(&planned.children, &planned),
            said(&reconcile.objects, &planned),
            "{}: flip",
            case.name
        );
        let revisions: Vec<i64> = reconcile.releases.iter().map(|release| release.revision).collect();
        let foreseen: Vec<i64> = planned.release.iter().filter_map(|release| release.to).collect();
        assert_eq!(foreseen, revisions, "{}", case.name);
    }
    world.stop().await;
    if failed { Err(format!("the flip fails as foreseen: {why}")) } else { Ok(()) }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_writes_of_a_reconcile_equal_its_plan() {
    let (own, corpus) = (own_cases(), corpus_cases());
    let beside = corpus.len();
    let (mut compared, mut differing) = (0, Vec::new());
    for case in own.iter().chain(&corpus) {
        match AssertUnwindSafe(compare(case)).catch_unwind().await {
            Ok(Ok(())) => compared += 1,
            Ok(Err(why)) => println!("{}: {}", case.name, why.chars().take(200).collect::<String>()),
            Err(_) => differing.push(case.name.as_str()),
        }
    }
    println!("{compared} of {} cases compared as far as their flip", own.len() + beside);
    assert!(differing.is_empty(), "plan and pass differ for {differing:?}");
    assert!(compared >= own.len(), "only {compared} cases could be compared");
}

const MAP: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}-{{ .Values.suffix | default \"map\" }}}\n\
                   data: {greeting: {{ .Values.greeting | default \"hello\" | quote }}}\n";
const JOB: &str = "apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: {{ .Release.Name }}-migrate\n  annotations: {helm.sh/hook: post-upgrade}\n\
                   spec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: b}]}}}\n";

#[tokio::test(flavor = "multi_thread")]
async fn a_saved_chart_is_planned_with_hooks_deletions_and_the_template_to_blame() {
    let old = chart("web", &[("templates/map.yaml", MAP), ("templates/job.yaml", JOB)]);
    let mut world = World::start(vec![web(Arc::clone(&old))]).await;
    world.create_web("site", json!({"greeting": "hello"})).await;
    world.outcome("site", Outcome::Installed).await;
    at_rest(&mut world).await;
    // Another name, and another hook.
    let (map, job) = (MAP.replace("\"map\"", "\"text\""), JOB.replace("name: a,", "name: c,"));
    let saved = chart("web", &[("templates/map.yaml", &map), ("templates/job.yaml", &job)]);
    let saved = Watch { changed_in: 2, ..web(saved) };
    let found = plan_that_writes_nothing(&world, &Arc::new(saved.clone())).await;
    let planned = &found.objects[0];
    assert_eq!(
        said(&planned.children, planned),
        [
            "Created ConfigMap default/site-text  by []".to_owned(),
            "Deleted ConfigMap default/site-map  by []".to_owned()
        ]
    );
    let release = planned.release.as_ref().unwrap();
    assert_eq!((release.step, release.from, release.to), (StepAhead::Upgrade, Some(1), Some(2)));
    assert_eq!(release.files, ["charts/web/templates/map.yaml"]);
    expect!["hook Job site-migrate (templates/job.yaml) changed"].assert_eq(&release.why);
    assert_eq!((planned.hooks[0].event.as_str(), planned.hooks.len()), ("post-upgrade", 1));
    // And so it comes.
    world.sources.send_replace(sources(2, vec![saved]));
    let reconcile = reconcile_after(&mut world).await;
    assert_eq!(said(&planned.children, planned), said(&reconcile.objects, planned));
    world.stop().await;
}

/// Helm deletes what has left the manifest by its name, also what the hook has made in its place.
#[tokio::test(flavor = "multi_thread")]
async fn an_object_that_becomes_a_hook_is_taken_out_of_the_release() {
    let hook = MAP.replace(
        "metadata: {name: {{",
        "metadata: {annotations: {helm.sh/hook: pre-upgrade, helm.sh/hook-delete-policy: before-hook-creation}, name: {{",
    );
    assert_ne!(hook, MAP);
    let old = chart("web", &[("templates/map.yaml", MAP)]);
    let mut world = World::start(vec![web(old)]).await;
    world.create_web("site", json!({})).await;
    world.outcome("site", Outcome::Installed).await;
    at_rest(&mut world).await;
    let saved = Watch { changed_in: 2, ..web(chart("web", &[("templates/map.yaml", &hook)])) };
    let found = plan_that_writes_nothing(&world, &Arc::new(saved.clone())).await;
    let planned = &found.objects[0];
    assert_eq!((planned.children.len(), planned.children[0].action), (1, Action::Deleted));
    world.sources.send_replace(sources(2, vec![saved]));
    let reconcile = reconcile_after(&mut world).await;
    assert_eq!(reconcile.outcome, Outcome::Upgraded, "{:?}", reconcile.failure);
    let map = world.api("", "ConfigMap").get_opt("site-map").await.unwrap();
    assert!(map.is_none(), "{map:?}");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_immutable_field_is_told_before_the_change_goes_live() {
    let deployment = |label: &str| {
        format!(
            "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: web}}\nspec:\n  selector: {{matchLabels: {{app: {label}}}}}\n  \
             template:\n    metadata: {{labels: {{app: {label}}}}}\n    spec: {{containers: [{{name: a, image: b}}]}}\n"
        )
    };
    let old = chart("web", &[("templates/deployment.yaml", &deployment("a"))]);
    let mut world = World::start(vec![web(old)]).await;
    world.create_web("site", json!({})).await;
    world.outcome("site", Outcome::Installed).await;
    at_rest(&mut world).await;
    let saved = chart("web", &[("templates/deployment.yaml", &deployment("b"))]);
    let saved = Arc::new(Watch { changed_in: 2, ..web(saved) });
    let found = plan_that_writes_nothing(&world, &saved).await;
    let problem = found.problem().unwrap();
    expect![[r#"the API server would refuse Deployment default/web: Deployment.apps "web" is invalid: spec.selector: Invalid value: {"matchLabels":{"app":"b"}}: field is immutable"#]]
    .assert_eq(&problem.message);
    assert_eq!(problem.place.as_ref().unwrap().file, "charts/web/templates/deployment.yaml");
    // Without the server's word it is a change like any other.
    let found = foresee(&world.client, &settings(), &saved, |_| true, true).await.unwrap();
    assert_eq!(found.problem(), None);
    assert_eq!(found.objects[0].children[0].action, Action::Updated);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn drift_and_a_deletion_are_planned_too() {
    let web_chart = chart("web", &[("templates/map.yaml", MAP)]);
    let watch = Arc::new(web(web_chart));
    let mut world = World::start(vec![Watch::clone(&watch)]).await;
    world.create_web("site", json!({})).await;
    world.outcome("site", Outcome::Installed).await;
    at_rest(&mut world).await;
    let found = plan_that_writes_nothing(&world, &watch).await;
    assert_eq!((found.objects.len(), found.unchanged.len()), (0, 1));
    world.patch(&world.api("", "ConfigMap"), "site-map", json!({"data": {"greeting": "drift"}})).await;
    let found = plan_that_writes_nothing(&world, &watch).await;
    let planned = &found.objects[0];
    assert_eq!(planned.release, None);
    let said = said(&planned.children, planned);
    assert_eq!(said.len(), 1);
    expect![[r#"Updated ConfigMap default/site-map .data.greeting Some(String("drift"))→Some(String("hello")) by ["somebody"]"#]]
    .assert_eq(&said[0]);
    world.delete(&world.webs(), "site").await;
    let found = plan_that_writes_nothing(&world, &watch).await;
    assert_eq!(found.objects[0].release.as_ref().unwrap().step, StepAhead::Uninstall);
    assert_eq!(found.objects[0].children[0].action, Action::Deleted);
    world.stop().await;
}
