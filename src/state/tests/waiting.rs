//! Reasons for which an object waits or does not go, and the rest of it once it has gone.

use super::{cr, lose, memcached, owned, reconcile, see, sources};
use crate::conditions::Truth;
use crate::{Seen, State, deletion, waiting};
use opdev_event::{Action, Event, KindHealth, ObjectChange, Outcome, Requeue, RequeueReason};
use opdev_object::meta::ObjectRef;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

fn get(state: &State, object: &Value) -> Arc<Seen> {
    Arc::clone(state.present_or_gone(&ObjectRef::of(object).unwrap().key()).unwrap())
}

fn waits(state: &State, object: &Value) -> Vec<String> {
    let line = |wait: waiting::Wait| match wait.why.as_str() {
        "" => wait.what,
        why => format!("{} <- {why}", wait.what),
    };
    waiting::of(state, &get(state, object)).into_iter().map(line).collect()
}

#[test]
fn what_holds_an_object_up_is_named() {
    let mut state = memcached();
    let mut root = cr("a");
    see(&mut state, &root);
    let crd = "the CustomResourceDefinition of Memcached <- the API server does not serve the kind yet";
    assert_eq!(waits(&state, &root), [crd]);
    let status = json!({"status": {"phase": "Pending", "containerStatuses": [
        {"name": "c", "ready": false, "state": {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}}]},
        "spec": {"containers": [{"name": "c"}]}});
    see(&mut state, &owned("v1", "Pod", "web-1", &root, status));
    root["status"] = json!({"conditions": [
        {"type": "Ready", "status": "False", "reason": "Wait", "message": "for pods"},
        {"type": "Stalled", "status": "False"}, {"type": "Irreconcilable", "status": "True", "reason": "Odd"}]});
    see(&mut state, &root);
    let mut failed = reconcile(7, "a", Outcome::Failed);
    failed.requeue = Some(Requeue { after: Duration::from_secs(4), reason: RequeueReason::Retry });
    state.reduce(Event::Reconciled(Arc::new(failed)));
    let all = waits(&state, &root);
    assert_eq!(all[0], crd);
    assert!(all[1].starts_with("reconcile #7 failed"), "{all:?}");
    let rest = [
        "Pod web-1: ImagePullBackOff, 0/1 ready <- no such image",
        "condition Ready is False <- Wait: for pods",
        "condition Irreconcilable is True <- Odd",
    ];
    assert_eq!(all[2..], rest);
    let again = waiting::of(&state, &get(&state, &root))[1].until;
    assert_eq!(again.map(jiff::Timestamp::as_second), Some(4));
    state.reduce(sources(2, &[("Memcached", KindHealth::Shown { why: "no chart".to_owned() })]));
    assert!(waits(&state, &root).contains(&"nothing reconciles this kind <- no chart".to_owned()));
    // Ready children and true conditions hold nothing up.
    let pod = owned(
        "v1",
        "Pod",
        "alone",
        &cr("b"),
        json!({"status": {"phase": "Running", "conditions": [
        {"type": "Ready", "status": "True"}], "containerStatuses": [{"name": "c", "ready": true, "state": {"running": {}}}]},
        "spec": {"containers": [{"name": "c"}]}}),
    );
    see(&mut state, &pod);
    assert_eq!(waits(&state, &pod), Vec::<String>::new());
}

#[test]
fn what_a_reconcile_has_created_is_waited_for_until_a_watch_has_shown_it() {
    let mut state = memcached();
    let change = |object: &Value| ObjectChange {
        object: ObjectRef::of(object).unwrap(),
        action: Action::Created,
        changes: Vec::new(),
        taken_from: Vec::new(),
    };
    let (root, mut elsewhere, child) = (cr("a"), cr("far"), cr("child"));
    see(&mut state, &root);
    elsewhere["metadata"]["namespace"] = "another".into();
    let pod = owned("v1", "Pod", "web-1", &child, json!({}));
    let mut made = reconcile(7, "a", Outcome::Installed);
    made.objects = vec![change(&child), change(&elsewhere), change(&pod)];
    state.reduce(Event::Reconciled(Arc::new(made)));
    let key = ObjectRef::of(&child).unwrap().key();
    assert_eq!(
        waiting::unseen(&state),
        [(key, 7)],
        "pods have no reconciles, and another namespace may not be watched"
    );
    see(&mut state, &child);
    assert!(waiting::unseen(&state).is_empty());
    assert!(!waits(&state, &child).is_empty(), "nobody has reconciled it yet");
    lose(&mut state, &child);
    assert!(waiting::unseen(&state).is_empty(), "what has come and gone is no longer to come");
    let mut more = reconcile(8, "a", Outcome::Upgraded);
    more.objects = vec![change(&cr("another"))];
    state.reduce(Event::Reconciled(Arc::new(more)));
    assert_eq!(waiting::unseen(&state).len(), 1);
    lose(&mut state, &root);
    assert!(waiting::unseen(&state).is_empty(), "what its owner had made goes with it");
}

#[test]
fn why_an_object_does_not_go() {
    let mut state = memcached();
    let mut root = cr("a");
    see(&mut state, &root);
    assert!(deletion::of(&state, &get(&state, &root)).is_none());
    root["metadata"]["deletionTimestamp"] = json!("1970-01-01T00:01:00Z");
    root["metadata"]["finalizers"] =
        json!(["foregroundDeletion", "uninstall-helm-release", "example.com/lock", "example.com/old"]);
    root["metadata"]["managedFields"] = json!([{"manager": "locksmith", "operation": "Update",
        "fieldsV1": {"f:metadata": {"f:finalizers": {"v:\"example.com/lock\"": {}}}}}]);
    see(&mut state, &root);
    let (mut blocking, free) =
        (owned("v1", "Pod", "web-1", &root, json!({})), owned("v1", "Pod", "web-2", &root, json!({})));
    blocking["metadata"]["ownerReferences"][0]["blockOwnerDeletion"] = json!(true);
    see(&mut state, &blocking);
    see(&mut state, &free);
    let of = |state: &State| deletion::of(state, &get(state, &root)).unwrap();
    let deletion = of(&state);
    assert_eq!(deletion.since.map(jiff::Timestamp::as_second), Some(60));
    let blocks: Vec<_> = deletion.blocking.iter().map(|seen| seen.key.name.as_str()).collect();
    assert_eq!(blocks, ["web-1"]);
    let who: Vec<_> = deletion.finalizers.iter().map(|finalizer| finalizer.who.as_str()).collect();
    assert_eq!(
        who,
        [
            "the garbage collector, once the objects that block it are gone",
            "opdev, once the release is uninstalled",
            "whoever set it, which was locksmith",
            "whoever set it; the object does not say who",
        ]
    );
    state.reduce(sources(2, &[("Memcached", KindHealth::Shown { why: "no chart".to_owned() })]));
    let who = of(&state).finalizers[1].who.clone();
    assert_eq!(who, "the operator of Memcached; but nothing here reconciles it: no chart");
}

#[test]
fn what_has_gone_leaves_its_versions_and_conditions() {
    let mut state = memcached();
    let mut object = cr("a");
    for truth in ["False", "True"] {
        object["status"] = json!({"conditions": [{"type": "Ready", "status": truth}]});
        see(&mut state, &object);
    }
    let key = ObjectRef::of(&object).unwrap().key();
    assert_eq!(state.gone_at(&key), None);
    lose(&mut state, &object);
    assert!(state.objects.get(&key).is_none() && state.gone_at(&key).is_some());
    assert_eq!(*get(&state, &object).object, object);
    assert_eq!(state.versions(&key).unwrap().count(), 2);
    let spans = &state.conditions_of(&key)[0].spans;
    assert_eq!(spans.iter().map(|span| span.truth).collect::<Vec<_>>(), [Truth::False, Truth::True]);
    // One of the same name takes its place, and begins anew.
    let mut next = cr("a");
    next["metadata"]["uid"] = json!("another");
    see(&mut state, &next);
    assert_eq!((state.gone_at(&key), state.versions(&key).unwrap().count()), (None, 1));
    assert!(state.conditions_of(&key).is_empty());
}

#[test]
fn what_the_watches_have_not_shown_is_behind() {
    let mut state = memcached();
    let at = |object: &Value, version: &str| {
        let mut object = object.clone();
        object["metadata"]["resourceVersion"] = json!(version);
        Arc::new(object)
    };
    let root = at(&cr("a"), "3");
    let pod = at(&owned("v1", "Pod", "web", &root, json!({})), "4");
    let stranger = at(&owned("v1", "Pod", "other", &cr("elsewhere"), json!({})), "5");
    let there = [Arc::clone(&root), Arc::clone(&pod), stranger];
    let behind = |state: &State| waiting::behind(state, &there).map(|key| key.name);
    assert_eq!(behind(&state).as_deref(), Some("a"), "a custom resource of the project");
    see(&mut state, &at(&root, "2"));
    assert_eq!(behind(&state).as_deref(), Some("a"), "an older state of it");
    see(&mut state, &root);
    assert_eq!(behind(&state).as_deref(), Some("web"), "what belongs to it");
    see(&mut state, &at(&pod, "7"));
    assert_eq!(behind(&state), None, "newer is as good, and what belongs to nobody here is not shown");
    lose(&mut state, &pod);
    assert_eq!(behind(&state), None, "it has gone since");
    let mut again = Value::clone(&pod);
    again["metadata"]["uid"] = json!("another");
    assert_eq!(waiting::behind(&state, &[Arc::new(again)]).map(|key| key.name).as_deref(), Some("web"));
}
