//! Calls the policies and webhooks that match a request. Policies come before webhooks. Mutating ones are
//! called one after another, and once more where their reinvocation policy asks for it. Validating webhooks
//! are called at the same time. A call blocks until all have answered, so it needs a thread that may block.

use super::Admission;
use super::attributes::{Attributes, Cluster};
use super::client;
use super::error::UnusableAnswer;
use super::hook::Hook;
use super::matching::{VersionedRequest, concerns};
use super::policies::Reinvocations;
use super::resolver::{self, CallFailure};
use super::review::{self, Answer};
use bytes::Bytes;
use opdev_apimachinery::blocking::MayWait;
use opdev_apimachinery::body::checked;
use opdev_apimachinery::error::Status;
use opdev_apimachinery::resource::{ClientConfig, Resource};
use opdev_object::patch;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// Somebody who asks webhooks.
#[derive(Clone, Copy)]
pub struct Dispatcher<'a> {
    pub admission: &'a Admission,
    pub cluster: &'a dyn Cluster,
}

/// Returns true if webhooks are asked about a resource: never about what configures them or policies.
fn asks_hooks(resource: &Resource) -> bool {
    let configuring = ["validatingwebhookconfigurations", "mutatingwebhookconfigurations"];
    resource.group != "admissionregistration.k8s.io" || !configuring.contains(&resource.plural.as_str())
}

/// A review on its way.
struct PendingReview {
    uid: String,
    version: &'static str,
    call: Result<client::WebhookCall, CallFailure>,
}

impl Dispatcher<'_> {
    /// Has policies and webhooks change an object before it is validated, or agree that one goes; adds their
    /// warnings.
    ///
    /// # Errors
    /// A denial, a webhook that cannot be asked and whose failure counts, or a patch that does not fit.
    pub fn mutate(
        self,
        asked: &Attributes<'_>,
        mut object: Option<&mut Value>,
        old: Option<&Value>,
        warnings: &mut Vec<String>,
    ) -> Result<(), Status> {
        let (policies, hooks) = (self.admission.policies(), self.admission.hooks());
        let asks_hooks = asks_hooks(asked.resource);
        let mut rounds = Reinvocations::default();
        // Webhooks that want to be asked again, and those that have to be since another one has changed the
        // object.
        let (mut eager, mut due) = (BTreeSet::new(), BTreeSet::new());
        for round in 0..2 {
            let mut changed_any = false;
            if let Some(object) = object.as_deref_mut()
                && policies.mutate(self.cluster, asked, object, old, &mut rounds)?
            {
                changed_any = true;
                due.append(&mut eager);
            }
            for (index, hook) in hooks.mutating.iter().enumerate() {
                if !asks_hooks || round == 1 && !due.contains(&index) {
                    continue;
                }
                let Some(seen) = concerns(hook, self.cluster, asked, object.as_deref(), old)? else {
                    continue;
                };
                let changed = self.change(hook, asked, seen, object.as_deref_mut(), warnings)?;
                if changed {
                    changed_any = true;
                    due.append(&mut eager);
                }
                if hook.again {
                    eager.insert(index);
                }
            }
            if !changed_any {
                break;
            }
        }
        Ok(())
    }

    /// Asks one webhook and does what it says; whether the object is another afterwards.
    fn change(
        self,
        hook: &Arc<Hook>,
        asked: &Attributes<'_>,
        seen: VersionedRequest,
        object: Option<&mut Value>,
        warnings: &mut Vec<String>,
    ) -> Result<bool, Status> {
        let permit = MayWait::here().ok_or_else(must_wait)?;
        let question = self.question(hook, asked, &seen)?;
        let text = match question.call {
            Ok(call) => client::start(self.admission.caller.clone(), call, hook.timeout).wait(&permit),
            Err(nowhere) => Err(nowhere),
        };
        let read = |text: Bytes| review::read(&text, question.version, &question.uid, true);
        let Some(answer) = settle(hook, asked, text.map(read), warnings)? else { return Ok(false) };
        if answer.patch.as_array().is_none_or(Vec::is_empty) {
            return Ok(false);
        }
        let (Some(object), Some(mut patched)) = (object, seen.object) else {
            return Err(review::nothing_to_patch(&hook.name));
        };
        if answer.patch_type != "JSONPatch" {
            let why = format!("unsupported patch type {:?}", answer.patch_type);
            return if hook.ignore { Ok(false) } else { Err(review::failed(&hook.name, &why)) };
        }
        patch::json_patch(&mut patched, &answer.patch)
            .map_err(|error| Status::internal(&error.to_string()))?;
        let at = seen.at.as_deref().unwrap_or(asked.resource);
        if asked.kind == asked.resource.gvk() {
            patched = self.cluster.completed(at, patched, false)?;
            if seen.at.is_some() {
                patched = self.cluster.converted(at, asked.resource, patched)?;
            }
        }
        let changed = patched != *object;
        *object = patched;
        Ok(changed)
    }

    /// Asks the policies, and then the webhooks that only look, all at once; adds their warnings.
    ///
    /// # Errors
    /// The first denial, or the first webhook that cannot be asked and whose failure counts.
    pub fn validate(
        self,
        asked: &Attributes<'_>,
        object: Option<&Value>,
        old: Option<&Value>,
        warnings: &mut Vec<String>,
    ) -> Result<(), Status> {
        self.admission.policies().validate(self.cluster, asked, object, old, warnings)?;
        if !asks_hooks(asked.resource) {
            return Ok(());
        }
        let hooks = self.admission.hooks();
        let mut waiting = Vec::new();
        for hook in &hooks.validating {
            let Some(seen) = concerns(hook, self.cluster, asked, object, old)? else { continue };
            waiting.push((hook, seen));
        }
        if waiting.is_empty() {
            return Ok(());
        }
        let permit = MayWait::here().ok_or_else(must_wait)?;
        let mut running = Vec::new();
        for (hook, seen) in waiting {
            let question = match self.question(hook, asked, &seen) {
                Ok(question) => question,
                Err(status) => {
                    running.push((hook, Err(status)));
                    continue;
                }
            };
            let started =
                question.call.map(|call| client::start(self.admission.caller.clone(), call, hook.timeout));
            running.push((hook, Ok((question.uid, question.version, started))));
        }
        let mut first = Ok(());
        for (hook, asked_of) in running {
            let told = asked_of.and_then(|(uid, version, started)| {
                let text = match started {
                    Ok(answer) => answer.wait(&permit),
                    Err(nowhere) => Err(nowhere),
                };
                settle(hook, asked, text.map(|text| review::read(&text, version, &uid, false)), warnings)
            });
            first = first.and(told.map(drop));
        }
        first
    }

    /// The review for a webhook, and where it goes.
    fn question(
        self,
        hook: &Hook,
        asked: &Attributes<'_>,
        seen: &VersionedRequest,
    ) -> Result<PendingReview, Status> {
        if asked.dry_run && !hook.dry {
            return Err(review::no_dry_run(&hook.name));
        }
        let uid = opdev_apimachinery::random::uuid();
        let Some(version) = review::version(&hook.versions) else {
            let why = "could not create admission objects: webhook does not accept known AdmissionReview versions \
                       (v1, v1beta1)";
            return Ok(PendingReview { uid, version: "v1", call: Err(CallFailure::Failed(why.to_owned())) });
        };
        let review = json!({"kind": "AdmissionReview", "apiVersion": format!("admission.k8s.io/{version}"),
            "request": review::request(asked, seen, &uid)});
        let body = Bytes::from(review.to_string());
        let call = self.call(&hook.client, body, hook.timeout);
        Ok(PendingReview { uid, version, call: Ok(call) })
    }

    /// A body on its way to where a configuration points.
    pub(crate) fn call(self, config: &ClientConfig, body: Bytes, timeout: Duration) -> client::WebhookCall {
        let place = resolver::find(self.cluster, &self.admission.settings, config);
        let (authorities, body) = (config.authorities.clone(), checked(body));
        client::WebhookCall { place, authorities, body, timeout }
    }
}

/// The refusal of a request that has to wait for a webhook on a thread that may not. Clients see it only
/// where a webhook was configured after the request had begun and nobody made it again.
fn must_wait() -> Status {
    Status::new(503, "ServiceUnavailable", client::MUST_WAIT)
}

/// Applies an answer to the request: it goes on with the change, goes on without it, or stops.
fn settle(
    hook: &Hook,
    asked: &Attributes<'_>,
    answer: Result<Result<Answer, UnusableAnswer>, CallFailure>,
    warnings: &mut Vec<String>,
) -> Result<Option<Answer>, Status> {
    let failed = |why: &str| {
        tracing::warn!(webhook = hook.name, ignored = hook.ignore, why, "a webhook could not be asked");
        if hook.ignore { Ok(None) } else { Err(review::failed(&hook.name, why)) }
    };
    match answer {
        Ok(Ok(answer)) => {
            // The warnings of a denial are sent, too.
            warnings.extend(answer.warnings.iter().cloned());
            if answer.allowed {
                return Ok(Some(answer));
            }
            tracing::debug!(webhook = hook.name, name = asked.name, "a webhook denied a request");
            Err(review::denied(&hook.name, &answer.result))
        }
        Ok(Err(unusable)) => failed(&unusable.to_string()),
        Err(CallFailure::Failed(why)) => failed(&why),
        Err(CallFailure::Simulated(service)) => {
            warnings.push(format!(
                "admission webhook {:?} was not asked: the pods behind service {service} are simulated and nothing \
                 listens for it on this machine",
                hook.name
            ));
            Ok(None)
        }
    }
}
