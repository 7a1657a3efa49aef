//! Admission policies as they and their bindings are configured, read once for each change of one. Pure data;
//! `validate` and `mutate` say what they make of a request, `params` what they are given beside it.

mod mutate;
mod params;
mod validate;

pub(super) use mutate::Reinvocations;

use super::hook::{Constraints, text, texts};
use opdev_apimachinery::contract::View;
use opdev_cel::{Compiler, Conditions, Expression, Wanted};
use opdev_object::meta::Gvk;
use opdev_object::selector::{LabelSelector, SelectorError};
use serde_json::Value;
use std::sync::Arc;

/// The resources whose objects are policies, and the bindings that put them into force.
pub(crate) const RESOURCES: [&str; 4] = [
    "admissionregistration.k8s.io/validatingadmissionpolicies",
    "admissionregistration.k8s.io/validatingadmissionpolicybindings",
    "admissionregistration.k8s.io/mutatingadmissionpolicies",
    "admissionregistration.k8s.io/mutatingadmissionpolicybindings",
];

/// All policies that are bound, by name.
#[derive(Debug, Default)]
pub(super) struct Policies {
    validating: Vec<Policy<Validating>>,
    mutating: Vec<Policy<Mutating>>,
}

/// A policy of a sort.
#[derive(Debug)]
struct Policy<S> {
    name: String,
    meant: Constraints,
    /// True for `failurePolicy: Ignore`: a policy that cannot be evaluated agrees.
    ignore: bool,
    params: Option<Gvk>,
    conditions: Conditions,
    variables: Vec<(String, Expression)>,
    sort: S,
    bindings: Vec<Binding>,
}

/// The part of a validating policy that a mutating one does not have.
#[derive(Debug)]
struct Validating {
    validations: Vec<Validation>,
    /// Annotations for an audit log: evaluated, for a failure counts, and not kept.
    annotations: Vec<Expression>,
}

/// The part of a mutating policy that a validating one does not have.
#[derive(Debug)]
struct Mutating {
    mutations: Vec<Mutation>,
    /// Asked again where others have changed the object after it.
    again: bool,
}

/// One change.
#[derive(Debug)]
enum Mutation {
    /// An object that is merged into what is there.
    Apply(Expression),
    /// Operations that are carried out one after another.
    Patch(Expression),
}

/// One thing that has to be true.
#[derive(Debug)]
struct Validation {
    text: String,
    expression: Expression,
    message: String,
    words: Option<Expression>,
    reason: String,
}

/// A binding that puts a policy into force.
#[derive(Debug)]
struct Binding {
    name: String,
    meant: Option<Constraints>,
    params: Option<ParamRef>,
    actions: Vec<String>,
}

/// The objects that are parameters.
#[derive(Debug)]
struct ParamRef {
    namespace: String,
    name: String,
    selector: Option<Result<LabelSelector, SelectorError>>,
    /// Without any the request is denied.
    needed: bool,
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

impl ParamRef {
    fn read(of: &Value) -> Option<Self> {
        if !of.is_object() {
            return None;
        }
        let selector = &of["selector"];
        Some(ParamRef {
            namespace: text(&of["namespace"]),
            name: text(&of["name"]),
            selector: selector.is_object().then(|| LabelSelector::from_json(selector)),
            needed: of["parameterNotFoundAction"] == "Deny",
        })
    }
}

impl Binding {
    fn read(binding: &Value) -> Self {
        let spec = &binding["spec"];
        let meant = &spec["matchResources"];
        Binding {
            name: text(&binding["metadata"]["name"]),
            meant: meant.is_object().then(|| Constraints::of_policy(meant)),
            params: ParamRef::read(&spec["paramRef"]),
            actions: texts(&spec["validationActions"]),
        }
    }
}

impl Validating {
    fn read(spec: &Value, compiler: &Compiler) -> Self {
        let validation = |found: &Value| {
            let (expression, words) = (text(&found["expression"]), text(&found["messageExpression"]));
            Validation {
                expression: compiler.expression(&expression, Wanted::Truth, true),
                text: expression,
                message: text(&found["message"]),
                words: (!words.is_empty()).then(|| compiler.expression(&words, Wanted::Text, false)),
                reason: text(&found["reason"]),
            }
        };
        let annotation = |found: &Value| {
            let expression = text(&found["valueExpression"]);
            compiler.expression(&expression, Wanted::TextOrNull, true)
        };
        Validating {
            validations: list(&spec["validations"]).iter().map(validation).collect(),
            annotations: list(&spec["auditAnnotations"]).iter().map(annotation).collect(),
        }
    }
}

impl Mutating {
    fn read(spec: &Value, compiler: &Compiler) -> Self {
        let expression = |of: &Value, wanted: Wanted| {
            compiler.expression(of["expression"].as_str().unwrap_or_default(), wanted, true)
        };
        let mutation = |found: &Value| match found["patchType"].as_str() {
            Some("JSONPatch") => Mutation::Patch(expression(&found["jsonPatch"], Wanted::Operations)),
            _ => Mutation::Apply(expression(&found["applyConfiguration"], Wanted::Object)),
        };
        Mutating {
            mutations: list(&spec["mutations"]).iter().map(mutation).collect(),
            again: spec["reinvocationPolicy"] == "IfNeeded",
        }
    }
}

impl<S> Policy<S> {
    fn read(policy: &Value, bindings: Vec<Binding>, sort: impl FnOnce(&Value, &Compiler) -> S) -> Self {
        let spec = &policy["spec"];
        let kind = &spec["paramKind"];
        let params = kind.is_object().then(|| {
            let version = kind["apiVersion"].as_str().unwrap_or_default();
            Gvk::from_api_version(version, kind["kind"].as_str().unwrap_or_default())
        });
        let mut compiler = Compiler::new(params.is_some()).composed();
        let variables = list(&spec["variables"]).iter().map(|variable| {
            let name = text(&variable["name"]);
            let expression = compiler.variable(&name, variable["expression"].as_str().unwrap_or_default());
            (name, expression)
        });
        let variables = variables.collect();
        let conditions = list(&spec["matchConditions"]).iter();
        let conditions = conditions.map(|condition| condition["expression"].as_str().unwrap_or_default());
        Policy {
            name: text(&policy["metadata"]["name"]),
            meant: Constraints::of_policy(&spec["matchConstraints"]),
            ignore: spec["failurePolicy"] == "Ignore",
            params,
            conditions: Conditions::of(&compiler, conditions),
            variables,
            sort: sort(spec, &compiler),
            bindings,
        }
    }
}

/// The policies that are bound, each with what binds it.
fn bound<S>(
    policies: &[Arc<Value>],
    bindings: &[Arc<Value>],
    sort: impl Fn(&Value, &Compiler) -> S + Copy,
) -> Vec<Policy<S>> {
    let read = |policy: &Arc<Value>| {
        let name = &policy["metadata"]["name"];
        let own = bindings.iter().filter(|binding| binding["spec"]["policyName"] == *name);
        let own: Vec<Binding> = own.map(|binding| Binding::read(binding)).collect();
        (!own.is_empty()).then(|| Policy::read(policy, own, sort))
    };
    policies.iter().filter_map(read).collect()
}

impl Policies {
    /// Reads what is configured.
    pub(crate) fn read(view: &dyn View) -> Self {
        let [validating, validating_bindings, mutating, mutating_bindings] =
            RESOURCES.map(|resource| view.list(resource, None));
        Policies {
            validating: bound(&validating, &validating_bindings, Validating::read),
            mutating: bound(&mutating, &mutating_bindings, Mutating::read),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.validating.is_empty() && self.mutating.is_empty()
    }
}
