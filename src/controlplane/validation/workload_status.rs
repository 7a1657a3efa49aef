//! Rules for the numbers in the status of deployments, replica sets, stateful sets and daemon sets.

use super::checks::at_least_zero;
use opdev_apimachinery::error::Cause;
use serde_json::Value;

/// A deployment's status.
pub fn deployment(object: &Value, current: &Value, causes: &mut Vec<Cause>) {
    let status = &object["status"];
    let all = ["replicas", "updatedReplicas", "readyReplicas", "availableReplicas", "unavailableReplicas"];
    positive(status, &all, causes);
    let parts = ["updatedReplicas", "readyReplicas", "availableReplicas"];
    of_replicas(status, &parts, "readyReplicas", causes);
    collisions(status, &current["status"], causes);
}

/// A replica set's or a replication controller's status.
pub fn replica_set(object: &Value, _: &Value, causes: &mut Vec<Cause>) {
    let status = &object["status"];
    let parts = ["fullyLabeledReplicas", "readyReplicas", "availableReplicas"];
    positive(status, &["replicas", parts[0], parts[1], parts[2]], causes);
    of_replicas(status, &parts, "readyReplicas", causes);
}

/// A stateful set's status.
pub fn stateful_set(object: &Value, current: &Value, causes: &mut Vec<Cause>) {
    let status = &object["status"];
    let parts = ["readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas"];
    positive(status, &["replicas", parts[0], parts[1], parts[2], parts[3]], causes);
    of_replicas(status, &parts, "status.readyReplicas", causes);
    collisions(status, &current["status"], causes);
}

/// A daemon set's status.
pub fn daemon_set(object: &Value, current: &Value, causes: &mut Vec<Cause>) {
    let status = &object["status"];
    let all = [
        "currentNumberScheduled",
        "numberMisscheduled",
        "desiredNumberScheduled",
        "numberReady",
        "updatedNumberScheduled",
        "numberAvailable",
        "numberUnavailable",
    ];
    positive(status, &all, causes);
    collisions(status, &current["status"], causes);
}

fn positive(status: &Value, fields: &[&str], causes: &mut Vec<Cause>) {
    for field in fields.iter().chain(&["observedGeneration", "collisionCount", "terminatingReplicas"]) {
        at_least_zero(&format!("status.{field}"), &status[*field], causes);
    }
}

/// Parts of the replicas are no more than these, and only what is ready is available.
fn of_replicas(status: &Value, fields: &[&str], ready: &str, causes: &mut Vec<Cause>) {
    let number = |field: &str| status[field].as_i64().unwrap_or_default();
    for field in fields.iter().filter(|field| number(field) > number("replicas")) {
        let detail = "cannot be greater than status.replicas";
        causes.push(Cause::invalid(format!("status.{field}"), &status[*field], detail));
    }
    if number("availableReplicas") > number("readyReplicas") {
        let (field, value) = ("status.availableReplicas", &status["availableReplicas"]);
        causes.push(Cause::invalid(field, value, &format!("cannot be greater than {ready}")));
    }
}

/// The count of collisions only grows.
fn collisions(status: &Value, before: &Value, causes: &mut Vec<Cause>) {
    let (now, then) = (status["collisionCount"].as_i64(), before["collisionCount"].as_i64());
    if then.is_some_and(|then| now.is_none_or(|now| now < then)) {
        let shown = Value::from(now.unwrap_or_default());
        causes.push(Cause::invalid("status.collisionCount", &shown, "cannot be decremented"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;
    use serde_json::json;

    #[test]
    fn more_replicas_are_not_ready_than_there_are() {
        let mut causes = Vec::new();
        let status =
            json!({"replicas": 1, "readyReplicas": 2, "availableReplicas": 3, "updatedReplicas": -1});
        deployment(&json!({"status": status}), &json!({"status": {"collisionCount": 1}}), &mut causes);
        let told: String = causes.iter().map(|one| format!("{}: {}\n", one.field, one.message)).collect();
        expect![[r#"
            status.updatedReplicas: Invalid value: -1: must be greater than or equal to 0
            status.readyReplicas: Invalid value: 2: cannot be greater than status.replicas
            status.availableReplicas: Invalid value: 3: cannot be greater than status.replicas
            status.availableReplicas: Invalid value: 3: cannot be greater than readyReplicas
            status.collisionCount: Invalid value: 0: cannot be decremented
        "#]]
        .assert_eq(&told);
    }
}
