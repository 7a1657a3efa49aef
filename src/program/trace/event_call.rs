//! Calls of a program that send Events: which they are, and what such an Event is about.

use opdev_facts::observed::ObservedCall;
use serde_json::Value;

/// Kind, namespace and name of the object that an Event is about; none where the call sends no Event.
pub(crate) fn event_is_about(call: &ObservedCall) -> Option<(String, String, String)> {
    let about = |event: &Value| {
        let about = event.get("involvedObject").or_else(|| event.get("regarding"))?;
        let text = |field: &str| about[field].as_str().unwrap_or_default().to_owned();
        Some((text("kind"), text("namespace"), text("name")))
    };
    // A patch says only what has changed.
    call.sent.as_ref().and_then(about).or_else(|| call.answered.as_ref().and_then(about))
}

/// The namespace in a path of the API.
pub(crate) fn namespace_of(path: &str) -> Option<String> {
    let mut parts = path.split('/');
    parts.by_ref().find(|part| *part == "namespaces")?;
    parts.next().map(str::to_owned)
}
