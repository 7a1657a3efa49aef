//! Webhook configurations: what `+kubebuilder:webhook` markers say, as the MutatingWebhookConfiguration and
//! the ValidatingWebhookConfiguration that controller-gen writes to `manifests.yaml`. Never asks how a
//! program is reached; the markers name a Service.

use crate::diagnostic::{Diagnostic, Place};
use crate::emit::{Artifact, artifact};
use anyhow::Result;
use serde_json::{Map, Value, json};

/// One marker.
#[derive(Clone, Debug, PartialEq)]
pub struct Marker<'a> {
    /// Its arguments, lists as lists.
    pub args: &'a Map<String, Value>,
    /// Where it stands.
    pub place: &'a Place,
    /// The folder of its package.
    pub package: &'a str,
    /// It is `+kubebuilder:webhookconfiguration`, which names the configuration itself.
    pub of_configuration: bool,
}

impl Marker<'_> {
    fn text(&self, name: &str) -> &str {
        self.args.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    fn list(&self, name: &str) -> Vec<&str> {
        self.args
            .get(name)
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect()
    }

    fn int(&self, name: &str) -> Option<i64> {
        self.args.get(name).and_then(Value::as_i64)
    }

    fn mutates(&self) -> bool {
        self.args.get("mutating").and_then(Value::as_bool).unwrap_or_default()
    }

    fn error(&self, message: String) -> Diagnostic {
        Diagnostic::error(message, Some(self.place.clone()))
    }
}

/// The configurations of a project, and what is wrong with its markers. With an error there is none of them:
/// one that lacks a webhook would let through what the program refuses.
pub fn configurations(markers: &[Marker<'_>]) -> (Vec<Value>, Vec<Diagnostic>) {
    let mut wrong = Vec::new();
    let mut names = [None, None];
    let mut seen: Vec<(&str, bool)> = Vec::new();
    for marker in markers.iter().filter(|marker| marker.of_configuration) {
        let (which, name) = (marker.mutates(), marker.text("name"));
        if seen.contains(&(marker.package, which)) {
            let kind = if which { "mutating" } else { "validating" };
            wrong.push(marker.error(format!(
                "a second {kind} +kubebuilder:webhookconfiguration in one package; keep one of them"
            )));
        }
        seen.push((marker.package, which));
        names[usize::from(which)] = Some(name.to_owned()).filter(|name| !name.is_empty());
    }
    let mut webhooks: Vec<&Marker<'_>> = markers.iter().filter(|marker| !marker.of_configuration).collect();
    webhooks.sort_by(|a, b| a.text("name").cmp(b.text("name")));
    let mut made = Vec::new();
    for mutating in [true, false] {
        let of_kind = webhooks.iter().filter(|marker| marker.mutates() == mutating);
        let list: Vec<Value> = of_kind.filter_map(|marker| webhook(marker, &mut wrong)).collect();
        if list.is_empty() {
            continue;
        }
        let (kind, usual) = if mutating {
            ("MutatingWebhookConfiguration", "mutating-webhook-configuration")
        } else {
            ("ValidatingWebhookConfiguration", "validating-webhook-configuration")
        };
        let name = names[usize::from(mutating)].clone().unwrap_or_else(|| usual.to_owned());
        made.push(json!({
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": kind,
            "metadata": {"name": name},
            "webhooks": list,
        }));
    }
    if wrong.is_empty() { (made, wrong) } else { (Vec::new(), wrong) }
}

/// The file with the configurations; `None` where there is none.
///
/// # Errors
/// Where a text holds characters that YAML cannot hold.
pub fn file(configurations: &[Value], header: &str) -> Result<Option<Artifact>> {
    if configurations.is_empty() {
        return Ok(None);
    }
    artifact("manifests.yaml".to_owned(), configurations, header).map(Some)
}

/// One webhook. What a server would refuse, and controller-gen therefore, is wrong.
fn webhook(marker: &Marker<'_>, wrong: &mut Vec<Diagnostic>) -> Option<Value> {
    let before = wrong.len();
    let mut refuse = |message: String| wrong.push(marker.error(message));
    let mut made = json!({
        "name": marker.text("name"),
        "admissionReviewVersions": marker.list("admissionReviewVersions"),
        "failurePolicy": one_of(&["Ignore", "Fail"], marker.text("failurePolicy")),
        "rules": [{
            "apiGroups": groups(marker),
            "apiVersions": marker.list("versions"),
            "operations": operations(marker),
            "resources": marker.list("resources"),
        }],
    });
    match (marker.text("path"), marker.text("url")) {
        ("", "") => refuse("path, or url, is missing: where the API server reaches the webhook".to_owned()),
        ("", url) => made["clientConfig"] = json!({"url": url}),
        (path, "") => made["clientConfig"] = json!({"service": service(marker, path)}),
        _ => refuse("path and url exclude each other; keep one of them".to_owned()),
    }
    match one_of(&["None", "NoneOnDryRun", "Some"], marker.text("sideEffects")).as_str() {
        known @ ("None" | "NoneOnDryRun") => made["sideEffects"] = known.into(),
        other => refuse(format!(
            "sideEffects has to be None or NoneOnDryRun, not {other:?}: API servers take no other webhook"
        )),
    }
    match one_of(&["Exact", "Equivalent"], marker.text("matchPolicy")).as_str() {
        "" => {}
        known @ ("Exact" | "Equivalent") => made["matchPolicy"] = known.into(),
        other => refuse(format!("matchPolicy has to be Exact or Equivalent, not {other:?}")),
    }
    match marker.int("timeoutSeconds") {
        None | Some(0) => {}
        Some(seconds @ 1..=30) => made["timeoutSeconds"] = seconds.into(),
        Some(seconds) => refuse(format!("timeoutSeconds has to be between 1 and 30, not {seconds}")),
    }
    if marker.mutates() {
        let policy = one_of(&["Never", "IfNeeded"], marker.text("reinvocationPolicy"));
        if ["Never", "IfNeeded"].contains(&policy.as_str()) {
            made["reinvocationPolicy"] = policy.into();
        }
    }
    if marker.list("admissionReviewVersions").is_empty() {
        refuse("admissionReviewVersions has to name a version, such as v1".to_owned());
    }
    if let Some(version) = marker.list("webhookVersions").into_iter().find(|version| *version != "v1") {
        refuse(format!("webhookVersions={version}: v1 is all that API servers take"));
    }
    (wrong.len() == before).then_some(made)
}

fn service(marker: &Marker<'_>, path: &str) -> Value {
    let or = |name: &str, usual: &str| match marker.text(name) {
        "" => usual.to_owned(),
        said => said.to_owned(),
    };
    let mut service = json!({
        "name": or("serviceName", "webhook-service"),
        "namespace": or("serviceNamespace", "system"),
        "path": path,
    });
    if let Some(port) = marker.int("servicePort") {
        service["port"] = port.into();
    }
    service
}

fn groups<'a>(marker: &'a Marker<'_>) -> Vec<&'a str> {
    let groups = marker.list("groups").into_iter();
    groups.map(|group| if group == "core" { "" } else { group }).collect()
}

fn operations(marker: &Marker<'_>) -> Vec<String> {
    let known = ["CREATE", "UPDATE", "DELETE", "CONNECT", "*"];
    marker.list("verbs").into_iter().map(|verb| one_of(&known, verb)).collect()
}

/// A word as the API spells it, however a marker does; a word that is none of them as it is.
fn one_of(known: &[&str], word: &str) -> String {
    let found = known.iter().find(|known| known.eq_ignore_ascii_case(word));
    found.map_or_else(|| word.to_owned(), |known| (*known).to_owned())
}

#[cfg(test)]
mod tests;
