//! When a release gets a new revision: a saved chart whose hooks differ, a chart that reads which revision it
//! is, what somebody else did to the history. What the Operator SDK's operator does is done here, too, and
//! its reason told.

use super::world::{World, chart, condition, settings, sources, web};
use opdev_event::{Action, Event, LoopFound, LoopKind, Outcome, Reconcile, ReleaseStep};
use opdev_helm::chart::Chart;
use opdev_release::settings::Settings;
use opdev_sources::on_save::OnSave;
use serde_json::json;
use std::sync::Arc;

const CONFIG: &str = "apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Release.Name }}-config
data:
  greeting: {{ .Values.greeting | default `hello` }}
";

const BUDGET: &str = "apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ .Release.Name }}-pdb
  annotations:
    helm.sh/hook: post-install,post-upgrade
spec:
  minAvailable: {{ .Values.pdbMinAvailable }}
  selector:
    matchLabels: {app: web}
";

fn memcached(min: u32, config: &str) -> Arc<Chart> {
    let values = format!("pdbMinAvailable: {min}\n");
    let files =
        [("values.yaml", values.as_str()), ("templates/all.yaml", config), ("templates/pdb.yaml", BUDGET)];
    chart("web", &files)
}

fn serve(world: &World, number: u64, chart: Arc<Chart>) {
    let mut watch = web(chart);
    watch.changed_in = number;
    world.sources.send(sources(number, vec![watch])).unwrap();
}

/// The step of a reconcile's only release, with its revision and reason.
fn told(reconcile: &Reconcile) -> (ReleaseStep, i64, &str) {
    let [release] = reconcile.releases.as_slice() else { panic!("{:?}", reconcile.releases) };
    assert_eq!(release.name, "site");
    (release.step, release.revision, &release.why)
}

async fn min_available(world: &World) -> serde_json::Value {
    let budget = world.get(&world.api("policy", "PodDisruptionBudget"), "site-pdb").await.unwrap();
    budget["spec"]["minAvailable"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_saved_chart_whose_hook_differs_is_an_upgrade() {
    let mut world = World::start(vec![web(memcached(3, CONFIG))]).await;
    world.create_web("site", json!({})).await;
    let reconcile = world.outcome("site", Outcome::Installed).await;
    assert_eq!(told(&reconcile), (ReleaseStep::Installed, 1, "no revision was deployed"));
    assert_eq!(min_available(&world).await, 3);

    serve(&world, 2, memcached(4, CONFIG));
    let reconcile = world.outcome("site", Outcome::Upgraded).await;
    assert_eq!(
        told(&reconcile),
        (
            ReleaseStep::Upgraded,
            2,
            "hook PodDisruptionBudget site-pdb (templates/pdb.yaml) changed; the Operator SDK's operator compares no \
             hooks and would not have upgraded"
        )
    );
    assert_eq!(min_available(&world).await, 4, "the hook ran");
    assert_eq!(world.revisions("site").await, ["1 superseded", "2 deployed"]);
    let object = world.get(&world.webs(), "site").await.unwrap();
    assert_eq!(condition(&object, "Deployed").unwrap().1, "UpgradeSuccessful");

    let edited = CONFIG.replace("hello", "edited");
    serve(&world, 3, memcached(4, &edited));
    let reconcile = world.outcome("site", Outcome::Upgraded).await;
    assert_eq!(told(&reconcile), (ReleaseStep::Rewritten, 2, "no hook changed"));
    assert_eq!(world.revisions("site").await, ["1 superseded", "2 deployed"]);

    // A hook that goes together with an object is what production would do.
    serve(&world, 4, chart("web", &[("templates/all.yaml", CONFIG)]));
    let reconcile = world.outcome("site", Outcome::Upgraded).await;
    let gone = "hook PodDisruptionBudget site-pdb (templates/pdb.yaml) is gone";
    assert_eq!(told(&reconcile), (ReleaseStep::Upgraded, 3, gone));
    world.stop().await;
}

/// Helm's upgrade copies the values of the deployed revision where it is given none.
#[tokio::test(flavor = "multi_thread")]
async fn a_spec_that_becomes_empty_keeps_the_values_as_in_production() {
    let mut world = World::start(vec![web(chart("web", &[("templates/all.yaml", CONFIG)]))]).await;
    world.create_web("site", json!({"greeting": "two", "unused": 1})).await;
    world.outcome("site", Outcome::Installed).await;
    world.patch(&world.webs(), "site", json!({"spec": {"greeting": null, "unused": null}})).await;
    let said = world
        .until("that the values stay", |event| match event {
            Event::Noticed(notice) if notice.message.contains("the spec is empty") => {
                Some(notice.message.clone())
            }
            _ => None,
        })
        .await;
    assert_eq!(said, "the spec is empty, so that Helm keeps the values of revision 1: greeting, unused");
    world.outcome("site", Outcome::Unchanged).await;
    world.greeting("site-config", "two").await;
    assert_eq!(world.revisions("site").await, ["1 deployed"]);

    world.patch(&world.webs(), "site", json!({"spec": {"unused": 2}})).await;
    world.outcome("site", Outcome::Upgraded).await;
    world.greeting("site-config", "hello").await;
    assert_eq!(world.revisions("site").await, ["1 superseded", "2 deployed"]);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_user_may_say_what_a_save_does() {
    for (on_save, step, revision, why) in [
        (OnSave::Rewrite, ReleaseStep::Rewritten, 1, "opdev.yaml says `reload: rewrite`"),
        (OnSave::Upgrade, ReleaseStep::Upgraded, 2, "opdev.yaml says `reload: upgrade`"),
    ] {
        let mut world =
            World::start_with(vec![web(memcached(3, CONFIG))], Settings { on_save, ..settings() }).await;
        world.create_web("site", json!({})).await;
        world.outcome("site", Outcome::Installed).await;
        serve(&world, 2, memcached(4, &CONFIG.replace("hello", "edited")));
        let reconcile = world.outcome("site", Outcome::Upgraded).await;
        assert_eq!(told(&reconcile), (step, revision, why));
        let hook_ran = on_save == OnSave::Upgrade;
        assert_eq!(min_available(&world).await, if hook_ran { 4 } else { 3 });
        world.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_value_that_reaches_only_a_hook_is_told_to_reach_nothing() {
    let mut world = World::start(vec![web(memcached(3, CONFIG))]).await;
    world.create_web("site", json!({})).await;
    world.outcome("site", Outcome::Installed).await;
    world.patch(&world.webs(), "site", json!({"spec": {"pdbMinAvailable": 4}})).await;
    let reconcile = world.outcome("site", Outcome::Unchanged).await;
    assert!(reconcile.releases.is_empty());
    assert_eq!(min_available(&world).await, 3, "as in production");
    let words = "hook PodDisruptionBudget site-pdb (templates/pdb.yaml) changed, and nothing else: the Operator SDK's \
                 operator compares manifests and no hooks";
    assert!(world.notices.iter().any(|text| text.contains(words)), "{:?}", world.notices);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_only_an_install_makes_is_deleted_by_the_next_reconcile_and_the_line_is_named() {
    let once =
        format!("{{{{ if .Release.IsInstall }}}}\n{}\n{{{{ end }}}}", CONFIG.replace("-config", "-once"));
    let files = [("templates/all.yaml", CONFIG), ("templates/once.yaml", once.as_str())];
    let mut world = World::start(vec![web(chart("web", &files))]).await;
    world.create_web("site", json!({})).await;
    let reconcile = world.outcome("site", Outcome::Installed).await;
    let again = reconcile.requeue.as_ref().unwrap();
    assert_eq!(
        again.reason.words(),
        ".Release.IsInstall in templates/once.yaml:1 may not be the same in the next revision"
    );
    let reconcile = world.outcome("site", Outcome::Upgraded).await;
    let why = ".Release.IsInstall in templates/once.yaml:1 is not the same in the next revision";
    assert_eq!(told(&reconcile), (ReleaseStep::Upgraded, 2, why));
    let deleted = reconcile.objects.iter().find(|change| change.action == Action::Deleted).unwrap();
    assert_eq!(deleted.object.name, "site-once");
    let told = world.notices.iter().find(|text| text.contains("templates/once.yaml:1")).unwrap();
    assert!(told.contains("it deleted") && told.contains("site-once"), "{told}");
    assert!(world.get(&world.api("", "ConfigMap"), "site-once").await.is_none());
    assert_eq!(world.revisions("site").await, ["1 superseded", "2 deployed"]);

    // One upgrade too many is no loop: the chart is at rest from then on.
    assert_eq!(world.outcome("site", Outcome::Unchanged).await.requeue, None);
    world.reconcile_now("site").await;
    assert_eq!(world.outcome("site", Outcome::Unchanged).await.requeue, None);

    // Revision 2 is an upgrade, and so is the next one: what only upgrades make may be written into it.
    let back = once.replace("IsInstall", "IsUpgrade");
    serve(&world, 2, chart("web", &[("templates/all.yaml", CONFIG), ("templates/once.yaml", &back)]));
    let reconcile = world.outcome("site", Outcome::Upgraded).await;
    assert_eq!(reconcile.releases[0].step, ReleaseStep::Rewritten, "{:?}", reconcile.releases);
    assert!(world.get(&world.api("", "ConfigMap"), "site-once").await.is_some());
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chart_that_reads_its_revision_upgrades_in_every_reconcile_until_the_guard_stops_it() {
    let config = CONFIG.replace("`hello`", "(include `rev` .)");
    let names = "{{ define `rev` }}\n{{- `revision` }} {{ .Release.Revision }}\n{{- end }}";
    let files = [("templates/all.yaml", config.as_str()), ("templates/_names.tpl", names)];
    let mut world = World::start(vec![web(chart("web", &files))]).await;
    world.create_web("site", json!({})).await;
    world.outcome("site", Outcome::Installed).await;
    for revision in 2..=4 {
        let reconcile = world.outcome("site", Outcome::Upgraded).await;
        let why = ".Release.Revision in templates/_names.tpl:2 is not the same in the next revision";
        assert_eq!(told(&reconcile), (ReleaseStep::Upgraded, revision, why));
    }
    let found: Arc<LoopFound> = world
        .until("the loop", |event| match event {
            Event::LoopFound(found) => Some(Arc::clone(found)),
            _ => None,
        })
        .await;
    assert_eq!((found.kind, found.reconciles, found.paused), (LoopKind::Upgrade, 3, false));
    assert!(
        found.blame.as_ref().unwrap().starts_with(".Release.Revision in templates/_names.tpl:2"),
        "{found}"
    );
    assert_eq!(found.fields[0].path, ".data.greeting", "{found}");
    assert_eq!(world.outcome("site", Outcome::Unchanged).await.requeue, None);
    assert!(
        world
            .notices
            .iter()
            .any(|text| text.contains("is kept, where the Operator SDK's operator would upgrade")),
        "{:?}",
        world.notices
    );
    assert_eq!(world.revisions("site").await.last().unwrap(), "4 deployed");
    world.reconcile_now("site").await;
    assert_eq!(world.outcome("site", Outcome::Unchanged).await.requeue, None);

    // A save goes through, and begins to count anew.
    let mended = chart("web", &[("templates/all.yaml", CONFIG)]);
    serve(&world, 2, mended);
    let reconcile = world.outcome("site", Outcome::Upgraded).await;
    assert_eq!(told(&reconcile), (ReleaseStep::Rewritten, 4, "no hook changed"));
    world.stop().await;
}
