//! How the new version settled: reconciles that fail, kinds that are not served, conditions that are worse,
//! loops.

use super::observed::Observed;
use super::words::named;
use super::writes;
use crate::finding::{Class, Finding, Level};
use crate::swap::Variant;
use opdev_event::{Reconcile, words};
use opdev_object::meta::ObjectKey;
use opdev_state::waiting::is_bad_news;
use serde_json::Value;

pub(super) fn findings(observed: &Observed, refused: &[Finding]) -> Vec<Finding> {
    let mut found = Vec::new();
    let blocked = writes::blocked(observed);
    let is_told =
        |message: &str| refused.iter().any(|one| one.lines.iter().any(|line| shares(line, message)));
    for (key, reconcile) in &observed.rest.failing {
        let why = failure(reconcile);
        if observed.rest_before.failing.contains_key(key)
            || blocked.contains(key)
            || is_told(&why)
            || is_of_application(reconcile, &why)
        {
            continue;
        }
        found.push(fails(observed, key, reconcile, &why));
    }
    for (program, why) in &observed.rest.ended {
        let title = format!("{program} of {} does not run", observed.to);
        let finding =
            Finding::new(Level::Error, Class::DoesNotStart, program.clone(), title).line(why.clone());
        found.push(finding.fix("look at its last words: an argument, a variable or a port may be missing"));
    }
    if let Some(why) = observed.rest.unserved_webhooks.as_ref().filter(|_| observed.rest.ended.is_empty()) {
        let title = format!("nobody of {} serves its webhooks", observed.to);
        let finding =
            Finding::new(Level::Error, Class::WebhookNotServed, "webhooks", title).line(why.clone());
        found.push(
            finding.fix("serve them, or take their configurations and the converter out of the manifests"),
        );
    }
    for kind in &observed.rest.unserved {
        let name = format!("{} {}", kind.gvk.kind, kind.gvk.api_version());
        let why = words::one_line(kind.problem.as_deref().unwrap_or_default());
        let title = format!("{} watches {name}, which is not served: nothing reconciles it", observed.to);
        let old = observed.variant == Variant::CrdLeftOld;
        let level = if old { Level::Hint } else { Level::Error };
        let fix = if old { "apply the CRDs before the operator" } else { "serve the version in the CRD" };
        found.push(Finding::new(level, Class::KindNotServed, name, title).line(why).fix(fix));
    }
    let failing = |key: &ObjectKey| observed.rest.failing.contains_key(key);
    found.extend(
        conditions(observed)
            .into_iter()
            .filter(|(key, _)| !blocked.contains(key) && !failing(key))
            .map(|(_, one)| one),
    );
    for one in &observed.rest.loops {
        let object = named(&one.object.key());
        let title = format!("{object}: reconciles go round in a loop");
        let lines = one.fields.iter().map(|field| field.path.clone());
        found.push(
            Finding::new(Level::Error, Class::Loop, object, title)
                .fields(lines.collect())
                .lines(one.blame.clone())
                .fix("write only what differs from what is stored"),
        );
    }
    if let Some(why) = &observed.rest.restless {
        let title = format!("{} does not settle after the swap", observed.to);
        found.push(Finding::new(Level::Warning, Class::Restless, "", title).line(why.clone()));
    }
    found
}

fn failure(reconcile: &Reconcile) -> String {
    let chain = reconcile.failure.as_ref().map(|failure| failure.chain.join(": ")).unwrap_or_default();
    words::one_line(&chain)
}

/// Words of errors about a connection to something else than the API server: pods are simulated, and the
/// application that should run in them does not answer.
const OF_CONNECTIONS: [&str; 7] = [
    "HTTP/1.1 400 Bad Request",
    "connection refused",
    "connection reset",
    "i/o timeout",
    "no such host",
    "no route to host",
    "server misbehaving",
];

/// Returns true if a program's reconcile failed because an application that it manages does not answer, not
/// because of a call to the API server.
fn is_of_application(reconcile: &Reconcile, why: &str) -> bool {
    let refused =
        reconcile.calls.iter().any(|call| call.status >= 400 && !matches!(call.status, 404 | 409 | 501));
    reconcile.process.is_some() && !refused && is_of_connection(why)
}

fn is_of_connection(why: &str) -> bool {
    OF_CONNECTIONS.iter().any(|words| why.contains(words))
}

/// Returns true if a reconcile failed of a refusal that is told.
fn shares(line: &str, why: &str) -> bool {
    let message = line.split_once(": ").map_or(line, |(_, message)| message);
    message.len() > 20 && why.contains(message)
}

fn fails(observed: &Observed, key: &ObjectKey, reconcile: &Reconcile, why: &str) -> Finding {
    let object = named(key);
    let title = format!("{object}: its reconcile fails");
    let place =
        reconcile.failure.as_ref().and_then(|failure| failure.diagnostic.as_ref()).map(words::diagnostic);
    let old = observed.variant == Variant::CrdLeftOld;
    Finding::new(Level::Error, Class::ReconcileFails, object, title)
        .line(place.unwrap_or_else(|| why.to_owned()))
        .fix(if old {
            "apply the CRDs before the operator"
        } else {
            "look at what the objects of the old version lack"
        })
}

/// Conditions of custom resources that were good settled, and are not any more.
fn conditions(observed: &Observed) -> Vec<(ObjectKey, Finding)> {
    let mut found = Vec::new();
    for (key, before) in observed.before.0.iter().filter(|(key, _)| observed.is_custom(key)) {
        let Some(after) = observed.after.get(key) else { continue };
        for (name, now) in list(after) {
            let then = list(before)
                .into_iter()
                .find(|(known, _)| *known == name)
                .map(|(_, one)| text(one, "status"));
            let good = if is_bad_news(name) { "False" } else { "True" };
            let is = text(now, "status");
            let was_good = then == Some(good) || then.is_none() && is_bad_news(name);
            if !was_good || is == good {
                continue;
            }
            let object = named(key);
            let title = format!("{object}: condition {name} is {is}");
            let why = words::one_line(&format!("{}: {}", text(now, "reason"), text(now, "message")));
            let finding = Finding::new(Level::Warning, Class::Condition, object, title)
                .fields(vec![format!(".status.conditions[type={name}]")])
                .line(why);
            found.push((key.clone(), finding));
        }
    }
    found
}

fn list(object: &Value) -> Vec<(&str, &Value)> {
    let conditions = object.pointer("/status/conditions").and_then(Value::as_array);
    conditions.into_iter().flatten().map(|condition| (text(condition, "type"), condition)).collect()
}

fn text<'a>(condition: &'a Value, field: &str) -> &'a str {
    condition.get(field).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_application_that_does_not_answer_is_told_from_an_error_of_the_operator() {
        assert!(is_of_connection("redis: can't parse map reply: \"HTTP/1.1 400 Bad Request\""));
        assert!(is_of_connection("dial tcp: lookup grafana-service: no such host"));
        assert!(!is_of_connection("spec.size has to be set"));
    }
}
