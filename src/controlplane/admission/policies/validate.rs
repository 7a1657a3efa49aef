//! Validating policies at work on a request: a refusal, warnings, or nothing. The texts are the real
//! server's.

use super::super::matching::{Roles, VersionedRequest, meets, seen};
use super::super::review;
use super::{Binding, Policies, Policy, Validating, Validation};
use crate::attributes::{Attributes, Cluster};
use opdev_apimachinery::error::{Cause, Status};
use opdev_cel::{BUDGET, CONDITIONS_BUDGET, Evaluation, Given, Libraries, Spent};
use serde_json::Value;

/// The longest text that a `messageExpression` may make.
const LONGEST: usize = 5 * 1024;

/// Why a request is refused.
struct Denial {
    message: String,
    reason: String,
}

impl Denial {
    fn failed(message: impl Into<String>) -> Self {
        Denial { message: message.into(), reason: String::new() }
    }
}

/// The denials that are reported: with their binding, or without one where a policy cannot be used at all.
type Denials<'a> = Vec<(&'a str, Option<&'a str>, Denial)>;

impl Policies {
    /// Decides whether a request may go on; adds warnings.
    ///
    /// # Errors
    /// The first denial, or a namespace that is not there.
    pub(crate) fn validate(
        &self,
        cluster: &dyn Cluster,
        asked: &Attributes<'_>,
        object: Option<&Value>,
        old: Option<&Value>,
        warnings: &mut Vec<String>,
    ) -> Result<(), Status> {
        let mut denials = Vec::new();
        for policy in &self.validating {
            policy.judge(cluster, asked, (object, old), warnings, &mut denials)?;
        }
        match denials.first() {
            Some((policy, binding, denial)) => Err(refusal(asked, object, policy, *binding, denial)),
            None => Ok(()),
        }
    }
}

/// The refusal that a client reads.
fn refusal(
    asked: &Attributes<'_>,
    object: Option<&Value>,
    policy: &str,
    binding: Option<&str>,
    denial: &Denial,
) -> Status {
    let by = binding.map(|binding| format!(" with binding '{binding}'")).unwrap_or_default();
    let message = format!("ValidatingAdmissionPolicy '{policy}'{by} denied request: {}", denial.message);
    let said = |field: &str| object.and_then(|object| object["metadata"][field].as_str()).unwrap_or_default();
    let names = [asked.name, said("name"), said("generateName"), "Unknown"];
    let name = names.into_iter().find(|name| !name.is_empty()).unwrap_or_default();
    let (code, reason) = match denial.reason.as_str() {
        "Forbidden" => (403, "Forbidden"),
        "Unauthorized" => (401, "Unauthorized"),
        "RequestEntityTooLarge" => (413, "RequestEntityTooLarge"),
        _ => (422, "Invalid"),
    };
    let status = Status::forbidden(&asked.resource.group, &asked.resource.plural, name, &message);
    Status { code, reason, causes: vec![Cause::text("", "", message)], ..status }
}

impl Policy<Validating> {
    /// Adds what the policy has against a request.
    fn judge<'a>(
        &'a self,
        cluster: &dyn Cluster,
        asked: &Attributes<'_>,
        (object, old): (Option<&Value>, Option<&Value>),
        warnings: &mut Vec<String>,
        denials: &mut Denials<'a>,
    ) -> Result<(), Status> {
        let mut broken = |binding: Option<&'a str>, why: &str| {
            if !self.ignore {
                let what = if binding.is_some() { "binding" } else { "policy" };
                let denial = Denial::failed(format!("failed to configure {what}: {why}"));
                denials.push((self.name.as_str(), binding, denial));
            }
        };
        let at = match meets(&self.meant, cluster, asked, object, old) {
            Ok(Some(at)) => at,
            Ok(None) => return Ok(()),
            Err(status) => {
                broken(None, &status.message);
                return Ok(());
            }
        };
        if let Some(why) = self.unknown_params(cluster) {
            broken(None, &why);
            return Ok(());
        }
        let mut request: Option<(VersionedRequest, Given)> = None;
        for binding in &self.bindings {
            let mut broken = |why: &str| {
                if !self.ignore {
                    let denial = Denial::failed(format!("failed to configure binding: {why}"));
                    denials.push((self.name.as_str(), Some(binding.name.as_str()), denial));
                }
            };
            let meant = binding.meant.as_ref().map(|meant| meets(meant, cluster, asked, object, old));
            match meant {
                None | Some(Ok(Some(_))) => {}
                Some(Ok(None)) => continue,
                Some(Err(status)) => {
                    broken(&status.message);
                    continue;
                }
            }
            let params = match self.params(binding.params.as_ref(), cluster, asked) {
                Ok(params) => params,
                Err(error) => {
                    broken(&error.to_string());
                    continue;
                }
            };
            if params.is_empty() {
                continue;
            }
            if request.is_none() {
                match seen(cluster, asked, at.clone(), object, old) {
                    Ok(seen) => request = Some(given(cluster, asked, &seen)?),
                    Err(status) => {
                        broken(&format!("failed to convert object version: {}", status.message));
                        continue;
                    }
                }
            }
            let Some((seen, given)) = &request else { continue };
            for params in params {
                let given = given.with_params(params.as_ref());
                let roles = Roles { cluster, asked, resource: seen.at.as_deref().unwrap_or(asked.resource) };
                let (found, always) = self.decide(&given, &roles);
                self.act(binding, found, warnings, denials);
                denials.extend(
                    always
                        .into_iter()
                        .map(|denial| (self.name.as_str(), Some(binding.name.as_str()), denial)),
                );
            }
        }
        Ok(())
    }

    /// Does what the binding says with what is wrong. There is no audit log.
    fn act<'a>(
        &'a self,
        binding: &'a Binding,
        found: Vec<Denial>,
        warnings: &mut Vec<String>,
        denials: &mut Denials<'a>,
    ) {
        for denial in found {
            let has = |action: &str| binding.actions.iter().any(|own| own == action);
            if has("Warn") {
                warnings.push(format!(
                    "Validation failed for ValidatingAdmissionPolicy '{}' with binding '{}': {}",
                    self.name, binding.name, denial.message
                ));
            }
            if has("Audit") {
                tracing::info!(
                    policy = self.name,
                    binding = binding.name,
                    why = denial.message,
                    "a policy would audit"
                );
            }
            if has("Deny") {
                denials.push((self.name.as_str(), Some(binding.name.as_str()), denial));
            }
        }
    }

    /// Returns the violations that the binding acts on, and those that are refused whatever the binding says.
    fn decide(&self, given: &Given, roles: &Roles<'_>) -> (Vec<Denial>, Vec<Denial>) {
        let libraries = Libraries::default();
        let failed = |message: String| if self.ignore { Vec::new() } else { vec![Denial::failed(message)] };
        let evaluation = |given: &Given, asks: bool, budget: u64| {
            let authorizer = asks.then_some(roles as &dyn opdev_cel::Authorizer);
            Evaluation::new(given, &self.variables, authorizer, &libraries, budget)
        };
        if !self.conditions.is_empty() {
            // A condition does not see the namespace.
            let unplaced = given.with_namespace(None);
            match self.conditions.hold_in(evaluation(&unplaced, true, CONDITIONS_BUDGET)) {
                Ok(true) => {}
                Ok(false) => return Default::default(),
                Err(why) => return (failed(why.to_string()), Vec::new()),
            }
        }
        let mut rules = evaluation(given, true, BUDGET);
        let found: Result<Vec<_>, Spent> =
            self.sort.validations.iter().map(|validation| rules.run(&validation.expression)).collect();
        let found = match found {
            Ok(found) => found,
            Err(spent) => return (failed(spent.to_string()), Vec::new()),
        };
        let mut messages = evaluation(given, false, rules.left());
        let words: Result<Vec<Option<String>>, Spent> =
            self.sort.validations.iter().map(|validation| words(validation, &mut messages)).collect();
        let mut denials = Vec::new();
        for (index, (validation, outcome)) in self.sort.validations.iter().zip(found).enumerate() {
            match (outcome, &words) {
                (Err(why), _) => denials.extend(failed(why.to_string())),
                (Ok(_), Err(spent)) => denials.extend(failed(format!("failed messageExpression: {spent}"))),
                (Ok(outcome), Ok(_)) if outcome.holds() => {}
                (Ok(_), Ok(words)) => {
                    let message = words.get(index).cloned().flatten().unwrap_or_else(|| validation.said());
                    denials.push(Denial { message, reason: validation.reason.clone() });
                }
            }
        }
        let mut notes = evaluation(given, true, BUDGET);
        let mut always = Vec::new();
        for annotation in &self.sort.annotations {
            match notes.run(annotation) {
                Ok(Ok(_)) => {}
                Ok(Err(why)) => always.extend(failed(why.to_string())),
                Err(spent) => return (failed(spent.to_string()), Vec::new()),
            }
        }
        (denials, always)
    }
}

impl Validation {
    /// The message where no expression gives one.
    fn said(&self) -> String {
        match self.message.trim() {
            "" => format!("failed expression: {}", self.text.trim()),
            message => message.to_owned(),
        }
    }
}

/// The text of a `messageExpression`, if it can be evaluated.
fn words(validation: &Validation, messages: &mut Evaluation<'_>) -> Result<Option<String>, Spent> {
    let Some(words) = &validation.words else { return Ok(None) };
    let Ok(outcome) = messages.run(words)? else { return Ok(None) };
    let text = outcome.text().unwrap_or_default().trim();
    let fits = !text.is_empty() && text.len() <= LONGEST && !text.contains('\n');
    Ok(fits.then(|| text.to_owned()))
}

/// The variables of a request that a policy reads, at the version of its rules.
pub(super) fn given(
    cluster: &dyn Cluster,
    asked: &Attributes<'_>,
    seen: &VersionedRequest,
) -> Result<(VersionedRequest, Given), Status> {
    // The object of a request that creates or changes a namespace has none.
    let of_namespace = asked.kind.group.is_empty() && asked.kind.kind == "Namespace";
    let mut namespace = None;
    if !asked.namespace.is_empty() && !of_namespace {
        match cluster.get("namespaces", None, asked.namespace) {
            Some(found) => namespace = Some(found),
            None => return Err(Status::not_found("", "namespaces", asked.namespace)),
        }
    }
    let bare = VersionedRequest { at: seen.at.clone(), object: None, old: None };
    let request = review::request(asked, &bare, "");
    let given = Given::new(seen.object.as_ref(), seen.old.as_ref(), &request);
    Ok((bare, given.with_namespace(namespace.as_deref())))
}
