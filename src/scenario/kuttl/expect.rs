//! Expectations that only opdev can judge about a step: how reconciles ended, how many there were, what they
//! wrote and why they ran. It stands in `NN-name.opdev.yaml` beside the step, a name that kuttl leaves alone.

use opdev_event::{LoopFound, Outcome, Reconcile, words};
use serde::Deserialize;
use std::sync::Arc;

/// The expectations of a step about reconciles.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Expect {
    #[serde(rename = "apiVersion")]
    _api_version: ExpectVersion,
    #[serde(rename = "kind")]
    _kind: ExpectKind,
    #[serde(default)]
    of: Of,
    /// The outcome of the last reconcile.
    outcome: Option<Outcome>,
    /// A part of its error.
    error: Option<String>,
    reconciles: Option<Bounds>,
    writes: Option<Writes>,
    /// The only causes there may be.
    causes: Option<Vec<String>>,
    #[serde(default)]
    no_loops: bool,
    forbidden: Option<Forbidden>,
}

#[derive(Clone, Debug, Default, Deserialize)]
enum ExpectVersion {
    #[default]
    #[serde(rename = "opdev.dev/v1")]
    V1,
}

#[derive(Clone, Debug, Default, Deserialize)]
enum ExpectKind {
    #[default]
    Expect,
}

/// The objects whose reconciles count; empty means all of the test.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Of {
    kind: String,
    name: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Bounds {
    min: usize,
    max: Option<usize>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Writes {
    max: Option<usize>,
    /// The only kinds that may be written to.
    to: Option<Vec<String>>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Forbidden {
    /// No call was refused for want of a rule.
    None,
}

impl Expect {
    /// Returns true if a failed reconcile is what is waited for.
    pub(super) fn awaits_failure(&self) -> bool {
        self.outcome == Some(Outcome::Failed)
    }

    /// Returns true if a reconcile is one of those that it is about.
    pub(super) fn is_about(&self, reconcile: &Reconcile) -> bool {
        let object = &reconcile.object;
        (self.of.kind.is_empty() || self.of.kind == object.gvk.kind)
            && (self.of.name.is_empty() || self.of.name == object.name)
    }

    /// The expectations that are not met; `reconciles` and `loops` are those since the step began.
    pub(super) fn wrong(&self, reconciles: &[Arc<Reconcile>], loops: &[Arc<LoopFound>]) -> Vec<String> {
        let reconciles: Vec<&Arc<Reconcile>> =
            reconciles.iter().filter(|reconcile| self.is_about(reconcile)).collect();
        let mut wrong = Vec::new();
        if let Some(outcome) = self.outcome {
            let last = reconciles.last().map(|reconcile| reconcile.outcome);
            if last != Some(outcome) {
                let is = last.map_or("there was no reconcile", words::outcome);
                wrong.push(format!("outcome: wanted {}, is {is}", words::outcome(outcome)));
            }
        }
        if let Some(error) = &self.error {
            let failure = reconciles.last().and_then(|reconcile| reconcile.failure.as_ref());
            let said = failure.map(|failure| failure.chain.join(": ")).unwrap_or_default();
            if !said.contains(error.as_str()) {
                wrong.push(format!("error: wanted {error:?}, is {said:?}"));
            }
        }
        if let Some(Bounds { min, max }) = &self.reconciles {
            let count = reconciles.len();
            if count < *min || max.is_some_and(|max| count > max) {
                let most = max.map_or("any number".to_owned(), |max| max.to_string());
                wrong.push(format!("reconciles: wanted {min} to {most}, were {count}"));
            }
        }
        self.writes(&reconciles, &mut wrong);
        if let Some(allowed) = &self.causes {
            let all =
                reconciles.iter().flat_map(|reconcile| &reconcile.causes).map(|cause| cause.kind.name());
            for cause in all.filter(|cause| !allowed.iter().any(|one| one == cause)) {
                let line = format!("causes: wanted {}, was {cause}", allowed.join(", "));
                if !wrong.contains(&line) {
                    wrong.push(line);
                }
            }
        }
        if self.no_loops
            && let Some(found) = loops.first()
        {
            wrong.push(format!("noLoops: {}: {found}", found.object));
        }
        if let Some(Forbidden::None) = self.forbidden {
            let refused =
                reconciles.iter().flat_map(|reconcile| &reconcile.calls).filter(|call| call.status == 403);
            wrong.extend(refused.map(|call| format!("forbidden: {} {}", call.verb, call.target)));
        }
        wrong
    }

    /// Returns true if it concerns the rights of the operator.
    pub(super) fn asks_for_rights(&self) -> bool {
        self.forbidden.is_some()
    }

    fn writes(&self, reconciles: &[&Arc<Reconcile>], wrong: &mut Vec<String>) {
        let Some(Writes { max, to }) = &self.writes else { return };
        let written: Vec<_> = reconciles.iter().flat_map(|reconcile| &reconcile.objects).collect();
        if let Some(max) = max
            && written.len() > *max
        {
            wrong.push(format!("writes: wanted at most {max}, were {}", written.len()));
        }
        let Some(kinds) = to else { return };
        for one in written.iter().filter(|one| !kinds.contains(&one.object.gvk.kind)) {
            wrong.push(format!("writes: wanted to {}, was to {}", kinds.join(", "), one.object));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn reconcile(outcome: &str, cause: &str, written: &[&str]) -> Arc<Reconcile> {
        let object = |kind: &str| json!({"group": "", "version": "v1", "kind": kind, "name": "w"});
        let objects: Vec<Value> = written
            .iter()
            .map(|kind| json!({"object": object(kind), "action": "updated", "changes": []}))
            .collect();
        let call =
            json!({"verb": "get", "path": "", "target": "pods/a", "startMs": 0, "tookMs": 0, "status": 403});
        let text = json!({
            "id": 1, "object": {"group": "g", "version": "v1", "kind": "Memcached", "name": "a"}, "causes": [{"at": "2026-01-01T00:00:00Z", "cause": cause}],
            "sources": 1, "at": "2026-01-01T00:00:00Z", "queuedMs": 0, "tookMs": 1, "steps": [], "calls": [call],
            "outcome": outcome, "status": [], "objects": objects, "requeue": null, "failure": null
        });
        Arc::new(serde_json::from_value(text).unwrap())
    }

    fn expect(value: &Value) -> Expect {
        let mut all = json!({"apiVersion": "opdev.dev/v1", "kind": "Expect"});
        opdev_object::patch::merge_patch(&mut all, value);
        serde_json::from_value(all).unwrap()
    }

    #[test]
    fn each_expectation_is_judged() {
        let reconciles = [
            reconcile("installed", "user", &["Service", "Deployment"]),
            reconcile("unchanged", "period", &[]),
        ];
        let wrong = |value: Value| expect(&value).wrong(&reconciles, &[]);
        let good = json!({
            "of": {"kind": "Memcached", "name": "a"}, "outcome": "unchanged", "reconciles": {"max": 2, "min": 2},
            "writes": {"max": 2, "to": ["Service", "Deployment"]}, "causes": ["user", "period"], "noLoops": true
        });
        assert!(wrong(good).is_empty());
        assert_eq!(wrong(json!({"outcome": "failed"})), ["outcome: wanted failed, is unchanged"]);
        assert_eq!(wrong(json!({"reconciles": {"max": 1}})), ["reconciles: wanted 0 to 1, were 2"]);
        assert_eq!(wrong(json!({"writes": {"max": 1}})), ["writes: wanted at most 1, were 2"]);
        assert_eq!(wrong(json!({"writes": {"to": ["Service"]}})).len(), 1);
        assert_eq!(wrong(json!({"causes": ["watch"]})).len(), 2);
        assert_eq!(wrong(json!({"forbidden": "none"})), ["forbidden: get pods/a", "forbidden: get pods/a"]);
        assert_eq!(wrong(json!({"error": "x"})).len(), 1);
        assert!(wrong(json!({"of": {"kind": "Other"}, "reconciles": {"max": 0}})).is_empty());
        let unknown = json!({"apiVersion": "opdev.dev/v1", "kind": "Expect", "outcom": "failed"});
        assert!(serde_json::from_value::<Expect>(unknown).is_err());
    }
}
