//! A saved reconciler that ran beside the older one, and waits.

use super::fixture::{at, gvk, reference};
use opdev_event::{
    Action, Event, Held, HeldChange, Hurt, ObjectChange, ShadowDecision, ShadowObject, ShadowRun,
};
use opdev_object::diff::diff;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

/// A reconciler was saved that would delete a Service.
pub(crate) fn shadow_run() -> Vec<Event> {
    let change = |action, kind: &str, old: Value, new: Value| ObjectChange {
        object: reference(kind, "memcached-sample"),
        action,
        changes: diff(&old, &new),
        taken_from: vec![],
    };
    let files = vec!["config/reconcilers/memcached.ts".to_owned()];
    let run = ShadowRun {
        at: at("17:02:12"),
        kind: gvk("Memcached"),
        files: files.clone(),
        objects: vec![ShadowObject {
            object: reference("Memcached", "memcached-sample"),
            children: vec![
                change(
                    Action::Updated,
                    "Deployment",
                    json!({"spec": {"replicas": 3}}),
                    json!({"spec": {"replicas": 4}}),
                ),
                change(Action::Deleted, "Service", json!({}), json!({})),
            ],
            status: diff(&json!({"status": {"nodes": ["a"]}}), &json!({"status": {"nodes": []}})),
            ..ShadowObject::default()
        }],
        ran: 2,
        decision: ShadowDecision::Held,
        took: Duration::from_millis(3),
    };
    let held = Held {
        at: at("17:02:12"),
        id: "Memcached@9".to_owned(),
        change: HeldChange::Reconciler,
        kind: gvk("Memcached"),
        files,
        why: "1 object would be deleted".to_owned(),
        findings: vec![],
        objects: vec![Hurt {
            object: reference("Service", "memcached-sample"),
            field: String::new(),
            message: "deleted, for Memcached default/memcached-sample does not list it any more".to_owned(),
        }],
        more: 0,
    };
    vec![Event::ShadowRun(Arc::new(run)), Event::Held(Arc::new(held))]
}
