//! The parts of a call that a run looks at: its query, and what a traced program says of itself in a header.
//! Pure.

use opdev_controlplane::{Asked, Observation};
use opdev_normal::LEADER;
use opdev_object::api_path::ApiPath;
use opdev_object::meta;
use serde_json::Value;

/// The place in the operator's code that a traced program puts behind the id of its reconcile.
pub(super) fn place(asked: &Asked) -> Option<String> {
    asked.mark.as_deref()?.split(' ').nth(2).map(str::to_owned)
}

/// The plural in the name of a table: the group comes before it.
pub(super) fn plural(table: &str) -> &str {
    table.rsplit('/').next().unwrap_or(table)
}

/// A parameter of a query.
pub(super) fn parameter<'a>(query: &'a str, name: &str) -> Option<&'a str> {
    let mut parts = query.split('&').map(|part| part.split_once('=').unwrap_or((part, "")));
    parts.find(|(key, _)| *key == name).map(|(_, value)| value)
}

/// A query for a list as it was at a revision.
pub(super) fn at(query: &str, revision: u64) -> String {
    let others = query.split('&').filter(|part| !part.starts_with("resourceVersion") && !part.is_empty());
    let mut parts: Vec<String> = others.map(str::to_owned).collect();
    parts.push(format!("resourceVersion={revision}"));
    parts.push("resourceVersionMatch=Exact".to_owned());
    parts.join("&")
}

/// Returns true if an object is the lock of an older leader election, which is renewed every two seconds.
pub(super) fn is_leader(object: &Value) -> bool {
    meta::annotation(object, LEADER).is_some()
}

/// Resources whose calls say nothing about the operator's work.
pub(super) fn is_beside(resource: &str) -> bool {
    matches!(
        resource,
        "" | "events"
            | "leases"
            | "tokenreviews"
            | "subjectaccessreviews"
            | "selfsubjectaccessreviews"
            | "selfsubjectrulesreviews"
    )
}

/// Resources that older programs elect their leader by. Their other objects are somebody's work.
fn may_lead(resource: &str) -> bool {
    matches!(resource, "configmaps" | "endpoints")
}

/// Returns true if what was seen is none of the operator's work.
pub(super) fn says_nothing(observation: &Observation) -> bool {
    match observation {
        Observation::Answered(exchange) => {
            let target = ApiPath::of(&exchange.asked.path);
            let leads = || exchange.answer.value().is_some_and(|object| is_leader(&object));
            is_beside(target.resource) || (may_lead(target.resource) && !target.name.is_empty() && leads())
        }
        // Whoever watches the kind of its own lock is told of each renewal.
        Observation::Delivered(delivery) => {
            let resource = ApiPath::of(&delivery.asked.path).resource;
            is_beside(resource) || (may_lead(resource) && says_who_leads(&delivery.chunk.events()))
        }
        Observation::WatchEnded(_) => false,
    }
}

/// Returns true if events of a watch tell of leader election and of nothing else.
fn says_who_leads(events: &[(String, Value)]) -> bool {
    let leads = |(kind, object): &(String, Value)| kind == "BOOKMARK" || is_leader(object);
    !events.is_empty() && events.iter().all(leads)
}

#[cfg(test)]
mod tests {
    use super::*;
    use opdev_controlplane::resource::resource_id;
    use serde_json::json;

    #[test]
    fn tables_of_every_group_are_known_by_their_plural() {
        for group in ["", "coordination.k8s.io", "events.k8s.io"] {
            assert_eq!(plural(&resource_id(group, "leases")), "leases");
        }
    }

    #[test]
    fn a_renewed_lead_is_no_work_and_another_object_beside_it_is() {
        let lock = json!({"metadata": {"name": "lock", "annotations": {LEADER: "{}"}}});
        let other = json!({"metadata": {"name": "settings"}});
        let event = |object: &Value| ("MODIFIED".to_owned(), object.clone());
        assert!(says_who_leads(&[event(&lock), event(&lock)]));
        assert!(!says_who_leads(&[event(&lock), event(&other)]));
        assert!(!says_who_leads(&[]), "a chunk that cannot be read may be anything");
    }

    #[test]
    fn a_list_from_a_cache_is_asked_for_at_a_revision() {
        let query = "limit=500&resourceVersion=0&resourceVersionMatch=NotOlderThan";
        assert_eq!(at(query, 42), "limit=500&resourceVersion=42&resourceVersionMatch=Exact");
        assert_eq!(at("", 3), "resourceVersion=3&resourceVersionMatch=Exact");
        assert_eq!(parameter(query, "resourceVersion"), Some("0"));
    }
}
