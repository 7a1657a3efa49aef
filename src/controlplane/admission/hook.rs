//! Webhooks as their configurations describe them, read once for each change of a configuration.
//! Pure data; `matching` says what they concern.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use opdev_object::cel::Conditions;
use opdev_object::selector::LabelSelector;
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
    pub(super) name: String,
    pub(super) client: ClientConfig,
    pub(super) rules: Vec<Rule>,
    /// Other versions of a resource do not count as the resource.
    pub(super) exact: bool,
    /// One that cannot be asked agrees.
    pub(super) ignore: bool,
    pub(super) namespaces: Result<LabelSelector, String>,
    pub(super) objects: Result<LabelSelector, String>,
    /// What has to be true of a request, or why that cannot be found out.
    pub(super) conditions: Result<Conditions, String>,
    pub(super) timeout: Duration,
    /// Asked again where others have changed the object after it.
    pub(super) again: bool,
    /// May be asked about what is not kept.
    pub(super) dry: bool,
    pub(super) versions: Vec<String>,
}

/// Which requests are meant.
#[derive(Debug, Default)]
pub(super) struct Rule {
    pub(super) operations: Vec<String>,
    pub(super) groups: Vec<String>,
    pub(super) versions: Vec<String>,
    pub(super) resources: Vec<String>,
    pub(super) scope: String,
}

/// Where a webhook listens, and whose certificates it shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ClientConfig {
    pub(super) target: Target,
    /// PEM; `None` where nothing is said.
    pub(super) authorities: Option<Arc<[u8]>>,
}

/// The address as configured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Target {
    Url(String),
    Service { namespace: String, name: String, port: u16, path: String },
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn texts(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().map(text).collect()
}

impl ClientConfig {
    /// Reads a `clientConfig`.
    pub(crate) fn read(config: &Value) -> Self {
        let service = &config["service"];
        let target = if service.is_object() {
            Target::Service {
                namespace: text(&service["namespace"]),
                name: text(&service["name"]),
                port: service["port"].as_u64().and_then(|port| u16::try_from(port).ok()).unwrap_or(443),
                path: text(&service["path"]),
            }
        } else {
            Target::Url(text(&config["url"]))
        };
        let bundle = config["caBundle"].as_str().and_then(|text| STANDARD.decode(text).ok());
        let bundle = bundle.filter(|bytes| !bytes.trim_ascii().is_empty());
        ClientConfig { target, authorities: bundle.map(Into::into) }
    }
}

impl Rule {
    fn read(rule: &Value) -> Self {
        Rule {
            operations: texts(&rule["operations"]),
            groups: texts(&rule["apiGroups"]),
            versions: texts(&rule["apiVersions"]),
            resources: texts(&rule["resources"]),
            scope: text(&rule["scope"]),
        }
    }
}

impl Hook {
    fn read(hook: &Value) -> Self {
        let selector = |field: &str| match &hook[field] {
            Value::Null => Ok(LabelSelector::default()),
            selector => LabelSelector::from_json(selector).map_err(|error| error.to_string()),
        };
        let conditions = hook["matchConditions"].as_array().map_or(&[][..], Vec::as_slice);
        let conditions =
            conditions.iter().map(|condition| condition["expression"].as_str().unwrap_or_default());
        let seconds = hook["timeoutSeconds"].as_u64().unwrap_or(10);
        Hook {
            name: text(&hook["name"]),
            client: ClientConfig::read(&hook["clientConfig"]),
            rules: hook["rules"].as_array().into_iter().flatten().map(Rule::read).collect(),
            exact: hook["matchPolicy"] == "Exact",
            ignore: hook["failurePolicy"] == "Ignore",
            namespaces: selector("namespaceSelector"),
            objects: selector("objectSelector"),
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
    pub(super) fn of(mutating: &[Arc<Value>], validating: &[Arc<Value>]) -> Self {
        let read = |list: &[Arc<Value>]| {
            let hooks = list.iter().flat_map(|found| found["webhooks"].as_array().into_iter().flatten());
            hooks.map(|hook| Arc::new(Hook::read(hook))).collect()
        };
        Hooks { mutating: read(mutating), validating: read(validating) }
    }

    /// Whether any rule names the resource: the same in other groups and versions counts, for those may stand for it.
    pub(super) fn may_concern(&self, plural: &str) -> bool {
        let named = |item: &String| {
            let resource = item.split('/').next().unwrap_or_default();
            resource == "*" || resource == plural
        };
        let hooks = self.mutating.iter().chain(&self.validating);
        hooks.flat_map(|hook| &hook.rules).any(|rule| rule.resources.iter().any(named))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.mutating.is_empty() && self.validating.is_empty()
    }
}
