//! Webhooks as their configurations describe them, read once for each change of a configuration.
//! Pure data; `matching` says what they concern.

use opdev_apimachinery::resource::ClientConfig;
use opdev_cel::{Conditions, ExpressionError};
use opdev_object::selector::{LabelSelector, SelectorError};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;

/// Everything that is configured, in the order in which it is asked.
#[derive(Debug, Default)]
pub(crate) struct Hooks {
    pub(super) mutating: Vec<Arc<Hook>>,
    pub(super) validating: Vec<Arc<Hook>>,
}

/// One webhook.
#[derive(Debug)]
pub(super) struct Hook {
    pub name: String,
    pub client: ClientConfig,
    pub(super) meant: Constraints,
    /// True for `failurePolicy: Ignore`: a webhook that cannot be asked agrees.
    pub(super) ignore: bool,
    /// The match conditions, or the reason why they cannot be evaluated.
    pub conditions: Result<Conditions, ExpressionError>,
    pub timeout: Duration,
    /// Asked again where others have changed the object after it.
    pub again: bool,
    /// May be asked about what is not kept.
    pub(super) dry: bool,
    pub versions: Vec<String>,
}

/// The requests that a webhook, a policy or a binding is about.
#[derive(Debug)]
pub(super) struct Constraints {
    pub rules: Vec<Rule>,
    /// Resources that are left out, whatever the rules say.
    pub(super) excluded: Vec<Rule>,
    /// Other versions of a resource do not count as the resource.
    pub(super) exact: bool,
    /// Without a rule all requests are meant.
    pub all: bool,
    pub(super) namespaces: Result<LabelSelector, SelectorError>,
    pub objects: Result<LabelSelector, SelectorError>,
}

/// The requests that are meant.
#[derive(Debug, Default)]
pub(super) struct Rule {
    pub(super) operations: Vec<String>,
    pub groups: Vec<String>,
    pub versions: Vec<String>,
    pub resources: Vec<String>,
    pub scope: String,
    /// Only objects of these names; all where there are none.
    pub(super) names: Vec<String>,
}

pub(super) fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

pub(super) fn texts(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().map(text).collect()
}

impl Rule {
    fn read(rule: &Value) -> Self {
        Rule {
            operations: texts(&rule["operations"]),
            groups: texts(&rule["apiGroups"]),
            versions: texts(&rule["apiVersions"]),
            resources: texts(&rule["resources"]),
            scope: text(&rule["scope"]),
            names: texts(&rule["resourceNames"]),
        }
    }

    fn all(rules: &Value) -> Vec<Rule> {
        rules.as_array().into_iter().flatten().map(Rule::read).collect()
    }

    /// Returns true if it names the resource, in whatever group or version.
    fn may_concern(&self, plural: &str) -> bool {
        self.resources.iter().any(|item| {
            let resource = item.split('/').next().unwrap_or_default();
            resource == "*" || resource == plural
        })
    }
}

impl Constraints {
    /// Reads what a webhook says of the requests it is asked about.
    fn of_hook(hook: &Value) -> Self {
        let selector = |field: &str| match &hook[field] {
            Value::Null => Ok(LabelSelector::default()),
            selector => LabelSelector::from_json(selector),
        };
        Constraints {
            rules: Rule::all(&hook["rules"]),
            excluded: Vec::new(),
            exact: hook["matchPolicy"] == "Exact",
            all: false,
            namespaces: selector("namespaceSelector"),
            objects: selector("objectSelector"),
        }
    }

    /// Reads the `matchConstraints` of a policy, or the `matchResources` of a binding.
    pub(super) fn of_policy(constraints: &Value) -> Self {
        let rules = Rule::all(&constraints["resourceRules"]);
        let all = rules.is_empty();
        let excluded = Rule::all(&constraints["excludeResourceRules"]);
        Constraints { rules, excluded, all, ..Constraints::of_hook(constraints) }
    }

    /// Returns true if any rule names the resource: the same in other groups and versions counts, for those
    /// may stand for it.
    pub(crate) fn may_concern(&self, plural: &str) -> bool {
        self.all || self.rules.iter().any(|rule| rule.may_concern(plural))
    }
}

impl Hook {
    fn read(hook: &Value, configuration: &Value) -> Self {
        let conditions = hook["matchConditions"].as_array().map_or(&[][..], Vec::as_slice);
        let conditions =
            conditions.iter().map(|condition| condition["expression"].as_str().unwrap_or_default());
        let seconds = hook["timeoutSeconds"].as_u64().unwrap_or(10);
        Hook {
            name: text(&hook["name"]),
            client: ClientConfig::read(&hook["clientConfig"], configuration),
            meant: Constraints::of_hook(hook),
            ignore: hook["failurePolicy"] == "Ignore",
            conditions: Conditions::compile(conditions),
            timeout: Duration::from_secs(seconds),
            again: hook["reinvocationPolicy"] == "IfNeeded",
            dry: matches!(hook["sideEffects"].as_str(), Some("None" | "NoneOnDryRun")),
            versions: texts(&hook["admissionReviewVersions"]),
        }
    }
}

impl Hooks {
    /// The hooks of these configurations, which come by name.
    pub(crate) fn read(mutating: &[Arc<Value>], validating: &[Arc<Value>]) -> Self {
        let read = |list: &[Arc<Value>]| {
            let hooks = list.iter().flat_map(|found| {
                let hooks = found["webhooks"].as_array().into_iter().flatten();
                hooks.map(|hook| Arc::new(Hook::read(hook, found)))
            });
            hooks.collect()
        };
        Hooks { mutating: read(mutating), validating: read(validating) }
    }

    /// Returns true if any of them might be asked about objects of the resource.
    pub(crate) fn may_concern(&self, plural: &str) -> bool {
        self.mutating.iter().chain(&self.validating).any(|hook| hook.meant.may_concern(plural))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.mutating.is_empty() && self.validating.is_empty()
    }
}
