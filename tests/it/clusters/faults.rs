//! Whatever breaks between opdev and the API server: opdev goes on by itself once it is mended, and says
//! meanwhile what it waits for.

use super::door::{Answer, Door};
use crate::inner_loop::Opdev;
use http::Method;
use opdev_event::{Event, KindHealth, KindStatus, ObjectTask, Outcome, RequestOutcome, TroubleKind};
use serde_json::{Value, json};
use tokio::sync::watch;

struct World {
    door: Door,
    opdev: Opdev,
    _folder: tempfile::TempDir,
}

/// opdev on a door, with a release installed.
async fn installed() -> World {
    let door = Door::open().await;
    let folder = tempfile::tempdir().unwrap();
    let choice = door.choice(folder.path(), "opdev", &json!({}));
    let mut opdev = Opdev::start_against(choice, |_| {}).await;
    let mark = opdev.mark();
    opdev.ask(ObjectTask::Apply { path: "samples/memcached.yaml".to_owned() }).await;
    opdev.reconcile("an install", mark, |reconcile| reconcile.outcome == Outcome::Installed).await;
    World { door, opdev, _folder: folder }
}

impl World {
    async fn trouble(&self, mark: usize, kind: TroubleKind) {
        self.opdev
            .wait("a word about the connection", mark, |event| match event {
                Event::ConnectionChanged(changed) => {
                    changed.trouble.as_ref().filter(|trouble| trouble.kind == kind).map(|_| ())
                }
                _ => None,
            })
            .await;
        // The header comes from the state, the notice from a notice.
        self.opdev
            .wait("a notice", mark, |event| match event {
                Event::Noticed(notice) if notice.message.contains("API server") => Some(()),
                _ => None,
            })
            .await;
    }

    async fn well(&self, mark: usize) {
        self.opdev
            .wait("a word that all is well", mark, |event| match event {
                Event::ConnectionChanged(changed) if changed.trouble.is_none() => Some(()),
                _ => None,
            })
            .await;
    }

    /// Somebody else sets the replicas, whatever opdev can see of it.
    async fn drift(&self, replicas: u32) {
        let client = self.door.plane.client();
        let patch = json!({"spec": {"replicas": replicas}});
        let request = http::Request::patch("/apis/apps/v1/namespaces/default/deployments/memcached-sample")
            .header("content-type", "application/merge-patch+json")
            .body(serde_json::to_vec(&patch).unwrap())
            .unwrap();
        client.request::<Value>(request).await.unwrap();
    }

    /// Waits until the drift is put back on the server itself.
    async fn repaired(&self, mark: usize) {
        let look = async {
            loop {
                let request =
                    http::Request::get("/apis/apps/v1/namespaces/default/deployments/memcached-sample")
                        .body(Vec::new())
                        .unwrap();
                let live: Value = self.door.plane.client().request(request).await.unwrap();
                if live["spec"]["replicas"] == 3 {
                    return;
                }
                // Until the next event of any sort.
                let now = self.opdev.mark();
                self.opdev.wait("another event", now, |_| Some(())).await;
            }
        };
        if tokio::time::timeout(std::time::Duration::from_secs(60), look).await.is_err() {
            let lines: Vec<_> = self.opdev.since(mark).iter().filter_map(opdev::print::plain).collect();
            panic!("the drift stays; since then:\n{}", lines.join("\n"));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_killed_and_started_again() {
    let world = installed().await;
    let mark = world.opdev.mark();
    world.door.kill();
    world.drift(7).await;
    world.trouble(mark, TroubleKind::Unreachable).await;
    world
        .opdev
        .edit("charts/memcached/values.yaml", |text| format!("{text}\n# saved while nobody answers\n"));
    world.door.restart().await;
    world.well(mark).await;
    world.repaired(mark).await;
    // Nobody is told of every watch: one word about the connection is enough.
    let noise = world
        .opdev
        .since(mark)
        .iter()
        .filter_map(opdev::print::plain)
        .filter(|line| line.contains("cannot watch"))
        .count();
    assert_eq!(noise, 0);
    world.opdev.stop().await;
}

/// A proxy in front of the API server closes the connection of each call about Services. All others are
/// answered at once: each answer looks as if all was well again.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_drops_some_calls_is_told_of_once() {
    let world = installed().await;
    let (dropped, mut drops) = watch::channel(0);
    world.door.fault(move |_, path| {
        let about_services = path.contains("/services?");
        dropped.send_modify(|count| *count += usize::from(about_services));
        about_services.then_some(Answer::Drop)
    });
    let mark = world.opdev.mark();
    world.door.restart().await;
    drops.wait_for(|count| *count >= 6).await.unwrap();
    let lines: Vec<_> = world.opdev.since(mark).iter().filter_map(opdev::print::plain).collect();
    let told = lines.iter().filter(|line| line.contains("the API server answers again")).count();
    assert!(told <= 2, "told {told} times:\n{}", lines.join("\n"));
    world.door.mend();
    // The rest goes on.
    world.drift(5).await;
    world.repaired(mark).await;
    world.opdev.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_comes_back_empty_gets_its_crds_again() {
    let mut world = installed().await;
    let mark = world.opdev.mark();
    world.door.kill();
    world.trouble(mark, TroubleKind::Unreachable).await;
    world.door.restart_empty().await;
    world.well(mark).await;
    let said = |event: &Event| match event {
        Event::Noticed(notice) if notice.message.contains("the CRDs are installed again") => Some(()),
        _ => None,
    };
    world.opdev.wait("a word about it", mark, said).await;
    world
        .opdev
        .wait("the CRD", mark, |event| match event {
            Event::TypeChanged(changed) if changed.kind.kind == "Memcached" => Some(()),
            _ => None,
        })
        .await;
    world
        .opdev
        .wait("the end of the object of before", mark, |event| match event {
            Event::ObjectGone(gone) if gone.object_ref.gvk.kind == "Memcached" => Some(()),
            _ => None,
        })
        .await;
    // All goes on as at the first start.
    let mark = world.opdev.mark();
    world.opdev.ask(ObjectTask::Apply { path: "samples/memcached.yaml".to_owned() }).await;
    world.opdev.reconcile("an install", mark, |reconcile| reconcile.outcome == Outcome::Installed).await;
    world.opdev.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn watches_that_are_cut_and_too_old() {
    let world = installed().await;
    let mark = world.opdev.mark();
    let mut left = 40;
    world.door.fault(move |_, path| {
        let watches = path.contains("watch=true") || path.contains("watch=1");
        if !watches || left == 0 {
            return None;
        }
        left -= 1;
        Some(Answer::Refuse(410, "Expired", None))
    });
    // Cuts every connection, and with it every watch.
    world.door.restart().await;
    world.drift(7).await;
    world.repaired(mark).await;
    world.opdev.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn conflicts_and_errors_of_writes() {
    let world = installed().await;
    for (code, reason) in [(409, "Conflict"), (500, "InternalError")] {
        let mark = world.opdev.mark();
        let mut left = 3;
        world.door.fault(move |method, path| {
            if *method == Method::GET || left == 0 || !path.contains("/deployments/") {
                return None;
            }
            left -= 1;
            Some(Answer::Refuse(code, reason, None))
        });
        world.drift(7).await;
        world.repaired(mark).await;
        world.door.mend();
    }
    world.opdev.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_asks_to_come_back_later() {
    let world = installed().await;
    let mark = world.opdev.mark();
    let mut left = 2;
    world.door.fault(move |method, path| {
        if *method == Method::GET || left == 0 || !path.contains("/deployments/") {
            return None;
        }
        left -= 1;
        Some(Answer::Refuse(429, "TooManyRequests", Some(1)))
    });
    world.drift(7).await;
    world.trouble(mark, TroubleKind::Busy).await;
    world.repaired(mark).await;
    world.well(mark).await;
    let failed =
        world.opdev.since(mark).iter().any(
            |event| matches!(event, Event::Reconciled(reconcile) if reconcile.outcome == Outcome::Failed),
        );
    assert!(!failed, "a pass failed although the server only asked to wait");
    world.opdev.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_takes_its_time() {
    let world = installed().await;
    let mark = world.opdev.mark();
    let (go, held) = watch::channel(false);
    world.door.fault(move |method, path| {
        (*method != Method::GET && path.contains("/deployments/")).then(|| Answer::Hold(held.clone()))
    });
    world.drift(7).await;
    // The call is held until the user has been told.
    world.trouble(mark, TroubleKind::Slow).await;
    go.send_replace(true);
    world.well(mark).await;
    world.repaired(mark).await;
    world.opdev.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn credentials_that_are_refused_while_it_runs() {
    let door = Door::open().await;
    door.require("one");
    let folder = tempfile::tempdir().unwrap();
    let token = folder.path().join("token");
    std::fs::write(&token, "one\n").unwrap();
    let choice = door.choice(folder.path(), "opdev", &json!({"tokenFile": token}));
    let mut opdev = Opdev::start_against(choice, |_| {}).await;
    let mark = opdev.mark();
    opdev.ask(ObjectTask::Apply { path: "samples/memcached.yaml".to_owned() }).await;
    opdev.reconcile("an install", mark, |reconcile| reconcile.outcome == Outcome::Installed).await;
    let world = World { door, opdev, _folder: folder };
    let mark = world.opdev.mark();
    world.door.require("two");
    world.door.restart().await;
    world.drift(7).await;
    world.trouble(mark, TroubleKind::Unauthorized).await;
    // The user logs in again.
    std::fs::write(&token, "two\n").unwrap();
    world.well(mark).await;
    world.repaired(mark).await;
    world.opdev.stop().await;
}

/// A server that has just come up fails and sends away; the kinds come to be served without a save.
#[tokio::test(flavor = "multi_thread")]
async fn a_definition_that_a_busy_server_did_not_take_is_sent_again() {
    let door = Door::open().await;
    let folder = tempfile::tempdir().unwrap();
    let mut left = 40;
    door.fault(move |method, path| {
        if method != Method::PATCH || !path.contains("/customresourcedefinitions/") || left == 0 {
            return None;
        }
        left -= 1;
        let (code, reason) = if left % 2 == 0 { (500, "InternalError") } else { (429, "TooManyRequests") };
        Some(Answer::Refuse(code, reason, Some(0)))
    });
    let choice = door.choice(folder.path(), "opdev", &json!({}));
    let opdev = Opdev::start_against(choice, |_| {}).await;
    opdev
        .wait("all kinds", 0, |event| match event {
            Event::SourcesChanged(sources) => {
                let serves = |kind: &KindStatus| kind.health == KindHealth::Serving;
                sources.kinds.iter().all(serves).then_some(())
            }
            _ => None,
        })
        .await;
    let failed = |event: &&Event| matches!(event, Event::ReloadFailed(_));
    assert_eq!(opdev.since(0).iter().filter(failed).count(), 1, "each try is no failure of its own");
    opdev.stop().await;
}

/// Sets a sample to be applied at the start.
fn applies_on_start(root: &std::path::Path) {
    std::fs::write(root.join("config/opdev.yaml"), "applyOnStart: [samples/memcached.yaml]\n").unwrap();
}

async fn outcome_of_start(opdev: &Opdev) -> RequestOutcome {
    opdev
        .wait("the end of what is applied at the start", 0, |event| match event {
            Event::RequestFinished(finished) => Some(finished.outcome.clone()),
            _ => None,
        })
        .await
}

/// Neither the definition nor the object is taken at first: both are tried again, and nothing counts as
/// failed.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_applied_on_start_waits_for_a_server_that_fails() {
    let door = Door::open().await;
    let folder = tempfile::tempdir().unwrap();
    let mut left = [2, 2];
    door.fault(move |method, path| {
        let at = ["/customresourcedefinitions/memcacheds.", "/memcacheds/"]
            .iter()
            .position(|part| path.contains(part))?;
        if *method != Method::PATCH || left[at] == 0 || path.ends_with("/status") {
            return None;
        }
        left[at] -= 1;
        Some(Answer::Refuse(500, "InternalError", None))
    });
    let choice = door.choice(folder.path(), "opdev", &json!({}));
    let opdev = Opdev::start_against(choice, applies_on_start).await;
    let outcome = outcome_of_start(&opdev).await;
    assert!(matches!(outcome, RequestOutcome::Done { .. }), "{outcome:?}");
    let waits = |event: &&Event| match event {
        Event::Noticed(notice) => notice.message.starts_with("samples/memcached.yaml:1 is not applied yet"),
        _ => false,
    };
    assert_eq!(opdev.since(0).iter().filter(waits).count(), 1, "said once");
    opdev.reconcile("an install", 0, |reconcile| reconcile.outcome == Outcome::Installed).await;
    opdev.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_refused_on_start_is_not_tried_again() {
    let door = Door::open().await;
    let folder = tempfile::tempdir().unwrap();
    door.fault(|method, path| {
        (*method == Method::PATCH && path.contains("/memcacheds/")).then_some(Answer::Refuse(
            403,
            "Forbidden",
            None,
        ))
    });
    let choice = door.choice(folder.path(), "opdev", &json!({}));
    let opdev = Opdev::start_against(choice, applies_on_start).await;
    let outcome = outcome_of_start(&opdev).await;
    assert!(matches!(outcome, RequestOutcome::Failed { .. }), "{outcome:?}");
    opdev.stop().await;
}
