//! The eyes of one start of the operator: what it asks for, what it is answered, and when the answer leaves.

use super::{OpenCall, Record};
use crate::point::Call;
use crate::query::{at, is_beside, parameter, place, says_nothing};
use opdev_controlplane::{Asked, Leaving, Observation, Observer, Reset, Treatment};
use opdev_object::api_path::ApiPath;
use std::sync::Arc;

pub(super) struct Eyes {
    pub(super) record: Arc<Record>,
    pub(super) start: u32,
}

impl Observer for Eyes {
    fn treatment(&self, asked: &Asked) -> Treatment {
        let target = ApiPath::of(&asked.path);
        let verb = target.verb(asked.method.as_str(), Some(asked.query.as_str()));
        let mut inner = self.record.lock();
        if inner.start != self.start {
            return Treatment { reset: Some(Reset::Before), ..Treatment::default() };
        }
        match verb {
            "watch" => {
                inner.possible.watched.insert(target.resource.to_owned());
                let gate = inner.gate(target.resource).subscribe();
                return Treatment { gate: Some(gate), ..Treatment::default() };
            }
            "list" => {
                let from_cache = parameter(&asked.query, "resourceVersion") == Some("0");
                if from_cache {
                    inner.possible.from_cache.insert(target.resource.to_owned());
                }
                let past =
                    inner.past.clone().filter(|(resource, _)| from_cache && resource == target.resource);
                if let Some((_, revision)) = past {
                    inner.met = true;
                    return Treatment { query: Some(at(&asked.query, revision)), ..Treatment::default() };
                }
            }
            "create" | "update" | "patch" | "delete"
                if !is_beside(target.resource)
                    && parameter(&asked.query, "dryRun").is_none()
                    && inner.step.is_some()
                    && inner.bystander.as_deref() != Some(target.namespace) =>
            {
                let call = Call {
                    verb,
                    resource: target.resource,
                    subresource: target.subresource,
                    namespace: target.namespace,
                    name: target.name,
                };
                let point = inner.calls.next(call.words(None));
                if let Some(refusal) = inner.refusal(&point, &target) {
                    inner.met_at = place(asked);
                    return Treatment { refusal: Some(refusal), ..Treatment::default() };
                }
                let revision = self.record.registry.store.revision();
                inner.called.insert(asked.number, OpenCall { point, revision });
            }
            _ => {}
        }
        Treatment::default()
    }

    fn seen(&self, observation: Observation) {
        let record = &self.record;
        record.ruled.observed(&observation);
        if says_nothing(&observation) {
            if let Observation::Answered(exchange) = &observation {
                record.lock().called.remove(&exchange.asked.number);
            }
            return;
        }
        record.lock().hear();
        match &observation {
            Observation::Answered(exchange) => {
                let target = ApiPath::of(&exchange.asked.path);
                let verb = target.verb(exchange.asked.method.as_str(), Some(exchange.asked.query.as_str()));
                if verb == "watch" {
                    if exchange.status == 200 {
                        *record.lock().open_watches.entry(target.resource.to_owned()).or_default() += 1;
                    }
                } else {
                    record.lock().ask(verb, &target, exchange.status);
                    if (200..300).contains(&exchange.status) {
                        record.write(exchange);
                    } else {
                        record.not_done(exchange, &target);
                    }
                }
            }
            Observation::Delivered(_) => {}
            Observation::WatchEnded(asked) => {
                let target = ApiPath::of(&asked.path);
                if let Some(open) = record.lock().open_watches.get_mut(target.resource) {
                    *open = open.saturating_sub(1);
                }
            }
        }
        record.news.send_modify(|count| *count += 1);
    }

    fn leaving(&self, asked: &Asked) -> Leaving {
        self.record.lock().leaving.remove(&asked.number).unwrap_or_default()
    }
}
