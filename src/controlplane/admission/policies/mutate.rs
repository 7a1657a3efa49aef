//! Mutating policies at work on an object, before any webhook sees it: it is changed, or refused. The texts
//! are the real server's.

use super::super::matching::{Roles, meets, seen};
use super::validate::given;
use super::{Binding, Mutating, Mutation, Policies, Policy};
use crate::attributes::{Attributes, Cluster};
use opdev_apimachinery::error::{Cause, Status};
use opdev_apimachinery::resource::Resource;
use opdev_cel::{Authorizer, BUDGET, CONDITIONS_BUDGET, Evaluation, Libraries, Outcome};
use opdev_object::apply::overlay;
use opdev_object::patch::{self, PatchError};
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::Arc;

/// A policy with a binding and a parameter.
type Invocation = (String, String, String);

/// The known facts about a request from one round to the next.
#[derive(Debug, Default)]
pub(in super::super) struct Reinvocations {
    /// It is the second round.
    again: bool,
    /// Policies that were asked and want to be asked again.
    eager: BTreeSet<Invocation>,
    /// Policies that have to be asked again, since the object was changed after them.
    due: BTreeSet<Invocation>,
    /// The object as the policies left it.
    last: Option<Value>,
}

impl Reinvocations {
    fn changed(&mut self) {
        let mut eager = std::mem::take(&mut self.eager);
        self.due.append(&mut eager);
    }
}

/// A policy that is to be asked, at the version it speaks of.
struct DueMutation<'a> {
    policy: &'a Policy<Mutating>,
    binding: &'a Binding,
    at: Option<Arc<Resource>>,
    params: Option<Value>,
}

/// Failures: the text of each, and true if the object is at fault.
struct Failures(Vec<(String, bool)>);

impl Failures {
    fn add(&mut self, policy: &Policy<Mutating>, binding: Option<&Binding>, why: &str, invalid: bool) {
        if policy.ignore {
            return;
        }
        let name = &policy.name;
        let text = match binding {
            Some(binding) => format!("policy '{name}' with binding '{}' denied request: {why}", binding.name),
            None => format!("policy {name:?} denied request: {why}"),
        };
        self.0.push((text, invalid));
    }
}

impl Policies {
    /// Has the policies change an object; whether everybody who wants to be is to be asked again.
    ///
    /// # Errors
    /// A policy could not do what it says and its failure counts.
    pub(crate) fn mutate(
        &self,
        cluster: &dyn Cluster,
        asked: &Attributes<'_>,
        object: &mut Value,
        old: Option<&Value>,
        rounds: &mut Reinvocations,
    ) -> Result<bool, Status> {
        if self.mutating.is_empty() {
            return Ok(false);
        }
        if rounds.again && rounds.last.as_ref() != Some(object) {
            rounds.changed();
        }
        let mut failures = Failures(Vec::new());
        let wanted = self.wanted(cluster, asked, (object, old), &mut failures);
        let mut touched = false;
        for invocation in wanted {
            touched |= invocation.carry_out(cluster, asked, object, old, rounds, &mut failures)?;
        }
        if touched {
            rounds.changed();
        }
        rounds.again = true;
        rounds.last = Some(object.clone());
        match failures.0.as_slice() {
            [] => Ok(touched),
            [(first, invalid), ..] => {
                let status =
                    Status::forbidden(&asked.resource.group, &asked.resource.plural, name(asked, object), "");
                let causes = failures.0.iter().map(|(text, _)| Cause::text("", "", text)).collect();
                let reason = if *invalid { "Invalid" } else { "Forbidden" };
                Err(Status { reason, message: first.clone(), causes, ..status })
            }
        }
    }

    /// The policies that the request concerns, each with its binding and its parameters.
    fn wanted(
        &self,
        cluster: &dyn Cluster,
        asked: &Attributes<'_>,
        (object, old): (&Value, Option<&Value>),
        failures: &mut Failures,
    ) -> Vec<DueMutation<'_>> {
        let mut wanted = Vec::new();
        for policy in &self.mutating {
            let at = match meets(&policy.meant, cluster, asked, Some(object), old) {
                Ok(Some(at)) => at,
                Ok(None) => continue,
                Err(status) => {
                    let why = format!("failed to configure policy: {}", status.message);
                    failures.add(policy, None, &why, false);
                    continue;
                }
            };
            if let Some(why) = policy.unknown_params(cluster) {
                failures.add(policy, None, &format!("failed to configure policy: {why}"), false);
                continue;
            }
            for binding in &policy.bindings {
                let meant = binding.meant.as_ref();
                let meant = meant.map(|meant| meets(meant, cluster, asked, Some(object), old));
                let found = match meant {
                    Some(Ok(None)) => continue,
                    Some(Err(status)) => Err(status.message),
                    None | Some(Ok(Some(_))) => {
                        let params = policy.params(binding.params.as_ref(), cluster, asked);
                        params.map_err(|error| error.to_string())
                    }
                };
                match found {
                    Ok(found) => wanted.extend(found.into_iter().map(|params| DueMutation {
                        policy,
                        binding,
                        at: at.clone(),
                        params,
                    })),
                    Err(why) => {
                        let why = format!("failed to configure binding: {why}");
                        failures.add(policy, Some(binding), &why, false);
                    }
                }
            }
        }
        wanted
    }
}

/// The name that a refusal names.
fn name<'a>(asked: &Attributes<'a>, object: &'a Value) -> &'a str {
    let said = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
    let names = [asked.name, said("name"), said("generateName"), "Unknown"];
    names.into_iter().find(|name| !name.is_empty()).unwrap_or_default()
}

impl DueMutation<'_> {
    fn key(&self) -> Invocation {
        let said =
            |params: &Value, field: &str| params["metadata"][field].as_str().unwrap_or_default().to_owned();
        let params = self.params.as_ref();
        let params = params.map(|params| format!("{}/{}", said(params, "namespace"), said(params, "name")));
        (self.policy.name.clone(), self.binding.name.clone(), params.unwrap_or_default())
    }

    /// Does to the object what the policy says; whether anything was done.
    fn carry_out(
        &self,
        cluster: &dyn Cluster,
        asked: &Attributes<'_>,
        object: &mut Value,
        old: Option<&Value>,
        rounds: &mut Reinvocations,
        failures: &mut Failures,
    ) -> Result<bool, Status> {
        let (policy, libraries) = (self.policy, Libraries::default());
        let at = self.at.as_deref().unwrap_or(asked.resource);
        let roles = Roles { cluster, asked, resource: at };
        let authorizer: Option<&dyn Authorizer> = Some(&roles);
        let look = |object: &Value| {
            let seen = seen(cluster, asked, self.at.clone(), Some(object), old)?;
            let (_, given) = given(cluster, asked, &seen)?;
            Ok::<_, Status>((seen.object.unwrap_or_default(), given.with_params(self.params.as_ref())))
        };
        let (mut current, mut given) = look(object)?;
        if !policy.conditions.is_empty() {
            let unplaced = given.with_namespace(None);
            let evaluation =
                Evaluation::new(&unplaced, &policy.variables, authorizer, &libraries, CONDITIONS_BUDGET);
            match policy.conditions.hold_in(evaluation) {
                Ok(true) => {}
                Ok(false) => return Ok(false),
                Err(why) => {
                    failures.add(policy, Some(self.binding), &why.to_string(), true);
                    return Ok(false);
                }
            }
        }
        let key = self.key();
        if rounds.again && !rounds.due.contains(&key) {
            return Ok(false);
        }
        let (before, mut touched) = (object.clone(), false);
        for mutation in &policy.sort.mutations {
            let expression = match mutation {
                Mutation::Apply(expression) | Mutation::Patch(expression) => expression,
            };
            // An expression that does not compile is reported as it is.
            let outcome = match expression.fault() {
                Some(why) => Err(why.to_string()),
                None => {
                    let mut evaluation =
                        Evaluation::new(&given, &policy.variables, authorizer, &libraries, BUDGET);
                    match evaluation.run(expression) {
                        Ok(outcome) => outcome.map_err(|why| why.to_string()),
                        Err(spent) => Err(spent.to_string()),
                    }
                }
            };
            match outcome.map(|outcome| changed(cluster, asked, at, (&current, mutation), &outcome)) {
                Ok(Ok(after)) => {
                    touched = true;
                    *object = if self.at.is_some() && asked.kind == asked.resource.gvk() {
                        cluster.converted(at, asked.resource, after)?
                    } else {
                        after
                    };
                    (current, given) = look(object)?;
                }
                Ok(Err(Unchanged::Refused(status))) => return Err(status),
                Ok(Err(Unchanged::Failed(why))) | Err(why) => {
                    failures.add(policy, Some(self.binding), &why, true);
                }
            }
        }
        if *object != before {
            rounds.changed();
        }
        if policy.sort.again {
            rounds.eager.insert(key);
        }
        Ok(touched)
    }
}

/// Why a mutation did nothing.
enum Unchanged {
    /// The policy's failure.
    Failed(String),
    /// The request cannot go on, whatever the policy says of failures.
    Refused(Status),
}

/// The object after a mutation.
fn changed(
    cluster: &dyn Cluster,
    asked: &Attributes<'_>,
    at: &Resource,
    (current, mutation): (&Value, &Mutation),
    outcome: &Outcome,
) -> Result<Value, Unchanged> {
    // A Scale or an Eviction is no object of the resource.
    let own = asked.kind == asked.resource.gvk();
    let after = match mutation {
        Mutation::Apply(_) => {
            let mut wanted = outcome.object().map_err(|why| Unchanged::Failed(why.to_string()))?;
            for field in ["apiVersion", "kind"] {
                wanted[field] = current[field].clone();
            }
            let applied = if own {
                overlay(current, &wanted, at.schema()).map_err(|why| why.to_string())
            } else {
                Err(untyped(asked))
            };
            applied.map_err(|why| Unchanged::Failed(format!("error applying patch: {why}")))?
        }
        Mutation::Patch(_) => {
            let operations = outcome.operations().map_err(|why| Unchanged::Failed(why.to_string()))?;
            let mut after = current.clone();
            match patch::json_patch(&mut after, &operations) {
                Ok(()) => {}
                // A test that fails is no failure: nothing is done.
                Err(PatchError::TestFailed { .. }) => return Ok(current.clone()),
                Err(why) => return Err(Unchanged::Failed(format!("JSON Patch: {why}"))),
            }
            after
        }
    };
    if !own {
        return Ok(after);
    }
    if at.custom.is_none() && at.version != asked.resource.version {
        // A real server cannot do it either.
        let (kind, from, to) = (&at.kind, &at.version, &asked.resource.version);
        let why = format!("converting ({from}.{kind}) to ({to}.{kind}): unknown conversion");
        return Err(Unchanged::Failed(why));
    }
    if matches!(mutation, Mutation::Patch(_)) && after["kind"].as_str().is_none_or(str::is_empty) {
        let why = format!("Object 'Kind' is missing in '{after}'");
        return Err(Unchanged::Refused(Status::internal(&why)));
    }
    // Fields that a custom resource does not have are dropped; for a built-in kind they are refused.
    let strict = matches!(mutation, Mutation::Patch(_)) && at.custom.is_none();
    cluster.completed(at, after, strict).map_err(Unchanged::Refused)
}

/// A real server does not know the types of what is no object of a resource.
fn untyped(asked: &Attributes<'_>) -> String {
    let kind = &asked.kind;
    format!(
        "failed to convert patch object to typed object: no corresponding type for {}, Kind={}",
        kind.api_version(),
        kind.kind
    )
}
