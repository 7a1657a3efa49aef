//! Where a webhook listens, as configurations and definitions write it, and how the versions of a definition
//! are converted. Plain data; `admission` calls them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use std::sync::Arc;

/// Where a webhook listens, and whose certificates it shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientConfig {
    pub target: Target,
    /// PEM; `None` where nothing is said.
    pub authorities: Option<Arc<[u8]>>,
    /// Nobody but kubectl has written the object that says so.
    pub by_kubectl: bool,
}

/// The address as configured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    Url(String),
    Service { namespace: String, name: String, port: u16, path: String },
}

impl ClientConfig {
    /// Reads a `clientConfig` of an object.
    pub fn read(config: &Value, object: &Value) -> Self {
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
        ClientConfig { target, authorities: bundle.map(Into::into), by_kubectl: is_kubectls(object) }
    }
}

/// How the versions of a definition are converted, where a webhook does that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conversion {
    pub client: ClientConfig,
    /// Versions of ConversionReview that the webhook speaks.
    pub versions: Vec<String>,
}

impl Conversion {
    /// Reads a definition; `None` where its versions only differ in their name.
    pub fn from_definition(definition: &Value) -> Option<Self> {
        let conversion = &definition["spec"]["conversion"];
        if conversion["strategy"] != "Webhook" {
            return None;
        }
        let webhook = &conversion["webhook"];
        let versions = webhook["conversionReviewVersions"].as_array().into_iter().flatten();
        Some(Conversion {
            client: ClientConfig::read(&webhook["clientConfig"], definition),
            versions: versions.filter_map(Value::as_str).map(str::to_owned).collect(),
        })
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// Returns true if nobody but kubectl has written an object. What opdev applies for a chart always bears
/// opdev's own name as well.
pub fn is_kubectls(object: &Value) -> bool {
    let managers = object["metadata"]["managedFields"].as_array().map_or(&[][..], Vec::as_slice);
    let is_kubectl =
        |entry: &Value| entry["manager"].as_str().is_some_and(|manager| manager.starts_with("kubectl"));
    !managers.is_empty() && managers.iter().all(is_kubectl)
}
