//! PodSet: create, look at the status, scale 3 → 5 → 1, delete a pod, patch from outside, delete the object.

use super::world::{World, newest, running};
use opdev_event::{CauseKind, PodFailure, Reconcile, Relation};
use opdev_object::meta;
use serde_json::{Value, json};

const PODSET: &str = "app.example.com/v1alpha1/PodSet";
const NAME: &str = "podset-sample";
const LABEL: (&str, &str) = ("app", "podset-sample");

/// Waits until the status names exactly the pods that run.
async fn settled(world: &World, count: usize) -> Vec<String> {
    world
        .opdev
        .wait_for_state("a status that names the pods", |events| {
            // As many may have run on the way, and others.
            let names = running(events, LABEL, count)?;
            let status = &newest(events, PODSET, NAME)?["status"];
            let named = status["availableReplicas"] == count && status["podNames"] == json!(names);
            named.then_some(names)
        })
        .await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_tutorial_step_by_step() {
    let mut world = World::start().await;
    world.apply("samples/podset.yaml").await;
    let three = settled(&world, 3).await;
    let podset = world.get(PODSET, NAME).await.unwrap();
    for name in &three {
        let pod = world.get("v1/Pod", name).await.unwrap();
        assert!(name.starts_with("podset-sample-pod"), "{name}");
        assert_eq!(pod["metadata"]["labels"], json!({"app": NAME, "version": "v0.1"}));
        let owner = &pod["metadata"]["ownerReferences"][0];
        assert_eq!(owner["uid"], podset["metadata"]["uid"]);
        assert_eq!((&owner["controller"], &owner["kind"]), (&json!(true), &json!("PodSet")));
        let security = &pod["spec"]["containers"][0]["securityContext"];
        assert_eq!(security["runAsNonRoot"], true);
        assert_eq!(security["allowPrivilegeEscalation"], false);
        assert_eq!(security["capabilities"]["drop"], json!(["ALL"]));
        assert_eq!(security["seccompProfile"]["type"], "RuntimeDefault");
    }

    world.scale(PODSET, NAME, 5).await;
    let five = settled(&world, 5).await;
    assert!(three.iter().all(|name| five.contains(name)), "scaling up keeps the pods: {three:?} {five:?}");

    world.patch(PODSET, NAME, &json!({"spec": {"replicas": 1}})).await;
    let one = settled(&world, 1).await;
    assert!(five.contains(&one[0]));

    world.kill("v1/Pod", &one[0]).await;
    world.until_gone("v1/Pod", &one[0]).await;
    let other = settled(&world, 1).await;
    assert_ne!(one, other);

    world.delete(PODSET, NAME).await;
    world.until_gone(PODSET, NAME).await;
    world.until_gone("v1/Pod", &other[0]).await;
    world.none_failed(NAME);
    world.opdev.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pods_fail_when_they_are_told_to() {
    let mut world = World::start().await;
    world.apply("samples/podset.yaml").await;
    let three = settled(&world, 3).await;
    let (one, other) = (&three[0], &three[1]);
    let ready = |pod: &Value| pod["status"]["containerStatuses"][0]["ready"] == true;

    world.fail(one, Some(PodFailure::Crash)).await;
    let state = "/status/containerStatuses/0/state/waiting/reason";
    let crashing = |pod: &Value| pod.pointer(state).is_some_and(|reason| reason == "CrashLoopBackOff");
    let pod = world.until("v1/Pod", one, "it crashes", crashing).await;
    assert_eq!(pod["status"]["containerStatuses"][0]["restartCount"], 1);
    assert!(!ready(&pod));
    world.fail(one, None).await;
    world.until("v1/Pod", one, "it recovers", ready).await;

    // An evicted pod is replaced.
    world.fail(other, Some(PodFailure::Evict)).await;
    world.until("v1/Pod", other, "it is evicted", |pod| pod["status"]["reason"] == "Evicted").await;
    let again = settled(&world, 3).await;
    assert!(!again.contains(other), "{other} is still counted: {again:?}");
    world.opdev.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pod_of_its_own_is_never_one_too_many() {
    let mut world = World::start().await;
    world.apply("samples/podset.yaml").await;
    // The last number is none of those before: what it settles on comes of it.
    for replicas in [7, 2, 9, 4, 10, 5] {
        world.patch(PODSET, NAME, &json!({"spec": {"replicas": replicas}})).await;
    }
    settled(&world, 5).await;
    // Pods that live at the same time are never more than were asked for. A reconcile may still work with the
    // number before the newest one, and pods are told by another stream than the PodSet: the numbers around
    // count, too.
    let events = world.opdev.since(0);
    let mut asked: Vec<(usize, i64)> = events
        .iter()
        .enumerate()
        .filter_map(|(at, event)| match event {
            opdev_event::Event::ObjectSeen(seen) if seen.object_ref.gvk.kind == "PodSet" => {
                Some((at, seen.object.pointer("/spec/replicas")?.as_i64()?))
            }
            _ => None,
        })
        .collect();
    asked.dedup_by_key(|(_, number)| *number);
    let most = |at: usize| {
        let newest = asked.iter().rposition(|(seen, _)| *seen <= at).unwrap_or_default();
        asked[newest.saturating_sub(1)..asked.len().min(newest + 2)]
            .iter()
            .map(|(_, number)| *number)
            .max()
            .unwrap()
    };
    let mut living: std::collections::BTreeSet<String> = std::collections::BTreeSet::new();
    for (at, event) in events.iter().enumerate() {
        match event {
            opdev_event::Event::ObjectSeen(seen) if seen.object_ref.gvk.kind == "Pod" => {
                if meta::deletion_timestamp(&seen.object).is_none() {
                    living.insert(seen.object_ref.name.clone());
                } else {
                    living.remove(&seen.object_ref.name);
                }
                let living_now = i64::try_from(living.len()).unwrap();
                assert!(living_now <= most(at), "{} were asked for: {living:?}", most(at));
            }
            opdev_event::Event::ObjectGone(gone) => {
                living.remove(&gone.object_ref.name);
            }
            _ => {}
        }
    }
    assert_eq!(living.len(), 5);
    world.none_failed(NAME);
    world.opdev.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_type_forbids_is_refused() {
    let mut world = World::start().await;
    world.apply("samples/podset.yaml").await;
    settled(&world, 3).await;
    for (replicas, why) in
        [(0, "should be greater than or equal to 1"), (11, "should be less than or equal to 10")]
    {
        let patch = kube::api::Patch::Merge(json!({"spec": {"replicas": replicas}}));
        let refused = world.api(PODSET).patch(NAME, &Default::default(), &patch).await.unwrap_err();
        assert!(refused.to_string().contains(why), "{refused}");
    }
    world.opdev.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_written_and_no_reconcile_runs_without_a_change() {
    let mut world = World::start().await;
    world.apply("samples/podset.yaml").await;
    settled(&world, 3).await;
    let version = |podset: &Value| podset["metadata"]["resourceVersion"].clone();
    let before = version(&world.get(PODSET, NAME).await.unwrap());
    // A pass by hand finds nothing to do.
    let mark = world.opdev.mark();
    let request = opdev_event::OperatorTask::Reconcile { object: super::outside::reference(PODSET, NAME) };
    world.opdev.ask(request).await;
    // The reconcile that wrote the status may only now be told of.
    let by_hand =
        |reconcile: &Reconcile| reconcile.causes.iter().any(|cause| matches!(cause.kind, CauseKind::User));
    let reconcile = world
        .opdev
        .reconcile("a pass by hand", mark, |reconcile| reconcile.object.name == NAME && by_hand(reconcile))
        .await;
    let writes: Vec<_> =
        reconcile.calls.iter().filter(|call| !matches!(call.verb.as_str(), "get" | "list")).collect();
    assert!(writes.is_empty(), "{writes:?}");
    assert!(reconcile.objects.is_empty() && reconcile.status.is_empty(), "{reconcile:?}");
    // An object that is applied again unchanged leads to no reconcile: only the change of `spec.replicas` is
    // a cause that comes from the object itself.
    let mark = world.opdev.mark();
    world.apply("samples/podset.yaml").await;
    world.patch(PODSET, NAME, &json!({"spec": {"replicas": 2}})).await;
    settled(&world, 2).await;
    let primary = |reconcile: &Reconcile| -> Vec<Vec<String>> {
        let of_itself = reconcile.causes.iter().filter_map(|cause| match &cause.kind {
            CauseKind::Watch { relation: Relation::Primary, fields, .. } => {
                Some(fields.iter().map(|field| field.path.clone()).collect())
            }
            _ => None,
        });
        of_itself.collect()
    };
    world.opdev.reconcile("the scale's pass", mark, |reconcile| !primary(reconcile).is_empty()).await;
    for reconcile in world.passes(mark, NAME) {
        for fields in primary(&reconcile) {
            assert!(fields.iter().any(|field| field == ".spec.replicas"), "{fields:?}");
        }
    }
    assert_ne!(before, version(&world.get(PODSET, NAME).await.unwrap()));
    world.opdev.stop().await;
}
