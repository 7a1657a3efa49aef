//! Refusals of the configurations of webhooks.

use super::checks::{absent, items};
use opdev_apimachinery::error::Cause;
use opdev_cel::check_condition;
use opdev_object::names::{dns1035_label, dns1123_subdomain, label_key};
use opdev_object::selector::LabelSelector;
use serde_json::{Value, json};

const REVIEWS: [&str; 2] = ["v1", "v1beta1"];
const URL_FORM: &str = "; desired format: https://host[/path]";
const MOST_CONDITIONS: usize = 64;

/// All webhooks of a configuration.
pub fn configuration(object: &Value, causes: &mut Vec<Cause>) {
    let mut names: Vec<&str> = Vec::new();
    for (index, hook) in items(&object["webhooks"]).iter().enumerate() {
        let place = format!("webhooks[{index}]");
        webhook(hook, &place, causes);
        reviews(hook, &format!("{place}.admissionReviewVersions"), causes);
        let name = hook["name"].as_str().unwrap_or_default();
        if names.contains(&name) {
            causes.push(Cause::duplicate(format!("{place}.name"), &json!(name)));
        } else if !name.is_empty() {
            names.push(name);
        }
    }
}

fn webhook(hook: &Value, place: &str, causes: &mut Vec<Cause>) {
    qualified(&hook["name"], &format!("{place}.name"), causes);
    for (index, rule) in items(&hook["rules"]).iter().enumerate() {
        self::rule(rule, &format!("{place}.rules[{index}]"), causes);
    }
    one_of(hook, place, "failurePolicy", &["Fail", "Ignore"], causes);
    one_of(hook, place, "matchPolicy", &["Equivalent", "Exact"], causes);
    if absent(&hook["sideEffects"]) {
        let detail = "must specify one of None, NoneOnDryRun";
        causes.push(Cause::required(format!("{place}.sideEffects"), detail));
    } else {
        one_of(hook, place, "sideEffects", &["None", "NoneOnDryRun"], causes);
    }
    if hook["timeoutSeconds"].as_i64().is_some_and(|seconds| !(1..=30).contains(&seconds)) {
        let detail = "the timeout value must be between 1 and 30 seconds";
        causes.push(Cause::invalid(format!("{place}.timeoutSeconds"), &hook["timeoutSeconds"], detail));
    }
    for field in ["namespaceSelector", "objectSelector"] {
        let selector = &hook[field];
        if let Err(why) = LabelSelector::from_json(selector) {
            causes.push(Cause::invalid(format!("{place}.{field}"), selector, &why.to_string()));
        }
    }
    one_of(hook, place, "reinvocationPolicy", &["IfNeeded", "Never"], causes);
    client(&hook["clientConfig"], &format!("{place}.clientConfig"), causes);
    conditions(items(&hook["matchConditions"]), false, &format!("{place}.matchConditions"), causes);
}

pub fn one_of(hook: &Value, place: &str, field: &str, known: &[&str], causes: &mut Vec<Cause>) {
    if let Some(found) = hook[field].as_str().filter(|found| !known.contains(found)) {
        causes.push(Cause::not_supported(format!("{place}.{field}"), &json!(found), known));
    }
}

/// A name of at least three parts.
fn qualified(name: &Value, place: &str, causes: &mut Vec<Cause>) {
    let text = name.as_str().unwrap_or_default();
    if text.is_empty() {
        causes.push(Cause::required(place, ""));
        return;
    }
    let wrong = dns1123_subdomain(text);
    if !wrong.is_empty() {
        causes.push(Cause::invalid(place, name, &wrong.join(", ")));
    } else if text.split('.').count() < 3 {
        let detail = "should be a domain with at least three segments separated by dots";
        causes.push(Cause::invalid(place, name, detail));
    }
}

fn reviews(hook: &Value, place: &str, causes: &mut Vec<Cause>) {
    let versions = items(&hook["admissionReviewVersions"]);
    if versions.is_empty() {
        causes.push(Cause::required(place, "must specify one of v1, v1beta1"));
        return;
    }
    for (index, version) in versions.iter().enumerate() {
        let at = format!("{place}[{index}]");
        if versions[..index].contains(version) {
            causes.push(Cause::invalid(at, version, "duplicate version"));
            continue;
        }
        for wrong in dns1035_label(version.as_str().unwrap_or_default()) {
            causes.push(Cause::invalid(at.as_str(), version, &wrong));
        }
    }
    if !versions.iter().any(|version| version.as_str().is_some_and(|known| REVIEWS.contains(&known))) {
        let detail = "must include at least one of v1, v1beta1";
        causes.push(Cause::invalid(place, &hook["admissionReviewVersions"], detail));
    }
}

pub fn rule(rule: &Value, place: &str, causes: &mut Vec<Cause>) {
    const OPERATIONS: [&str; 5] = ["*", "CONNECT", "CREATE", "DELETE", "UPDATE"];
    let crowded = |field: &str| {
        let list = items(&rule[field]);
        list.len() > 1 && list.iter().any(|item| item == "*")
    };
    for (field, others) in
        [("operations", "operations"), ("apiGroups", "API groups"), ("apiVersions", "API versions")]
    {
        let at = format!("{place}.{field}");
        if items(&rule[field]).is_empty() {
            causes.push(Cause::required(at.as_str(), ""));
        }
        if crowded(field) {
            let detail = format!("if '*' is present, must not specify other {others}");
            causes.push(Cause::invalid(at.as_str(), &rule[field], &detail));
        }
        for (index, item) in items(&rule[field]).iter().enumerate() {
            let text = item.as_str().unwrap_or_default();
            if field == "operations" && !OPERATIONS.contains(&text) {
                causes.push(Cause::not_supported(format!("{at}[{index}]"), item, &OPERATIONS));
            }
            if field == "apiVersions" && text.is_empty() {
                causes.push(Cause::required(format!("{at}[{index}]"), ""));
            }
        }
    }
    resources(&rule["resources"], &format!("{place}.resources"), causes);
    one_of(rule, place, "scope", &["*", "Cluster", "Namespaced"], causes);
}

fn resources(value: &Value, place: &str, causes: &mut Vec<Cause>) {
    let list = items(value);
    if list.is_empty() {
        causes.push(Cause::required(place, ""));
    }
    // `x/*` and `*/x` that came before.
    let (mut all_of, mut of_all): (Vec<&str>, Vec<&str>) = (Vec::new(), Vec::new());
    let mut bare = false;
    for (index, item) in list.iter().enumerate() {
        let at = format!("{place}[{index}]");
        let text = item.as_str().unwrap_or_default();
        if text.is_empty() {
            causes.push(Cause::required(at, ""));
            continue;
        }
        let Some((resource, below)) = text.split_once('/') else {
            bare = text != "*";
            continue;
        };
        if all_of.contains(&resource) {
            let detail = format!("if '{resource}/*' is present, must not specify {text}");
            causes.push(Cause::invalid(at.as_str(), item, &detail));
        }
        if of_all.contains(&below) {
            let detail = format!("if '*/{below}' is present, must not specify {text}");
            causes.push(Cause::invalid(at.as_str(), item, &detail));
        }
        if below == "*" {
            all_of.push(resource);
        }
        if resource == "*" {
            of_all.push(below);
        }
    }
    if list.len() > 1 && list.iter().any(|item| item == "*/*") {
        let detail = "if '*/*' is present, must not specify other resources";
        causes.push(Cause::invalid(place, value, detail));
    }
    if bare && list.iter().any(|item| item == "*") {
        let detail = "if '*' is present, must not specify other resources without subresources";
        causes.push(Cause::invalid(place, value, detail));
    }
}

fn client(config: &Value, place: &str, causes: &mut Vec<Cause>) {
    match (config["url"].as_str(), config["service"].is_object()) {
        (Some(url), false) => self::url(url, &format!("{place}.url"), causes),
        (None, true) => service(&config["service"], &format!("{place}.service"), causes),
        _ => causes.push(Cause::required(place, "exactly one of url or service is required")),
    }
}

fn url(url: &str, place: &str, causes: &mut Vec<Cause>) {
    let (scheme, rest) = url.split_once("://").unwrap_or(("", ""));
    if scheme != "https" {
        let detail = format!("'https' is the only allowed URL scheme{URL_FORM}");
        causes.push(Cause::invalid(place, &json!(scheme), &detail));
    }
    let (rest, fragment) = rest.split_once('#').unwrap_or((rest, ""));
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let authority = rest.split('/').next().unwrap_or_default();
    let (user, host) = authority.rsplit_once('@').unwrap_or(("", authority));
    if host.is_empty() {
        causes.push(Cause::invalid(place, &json!(""), &format!("host must be specified{URL_FORM}")));
    }
    for (part, detail) in [
        (user, "user information is not permitted in the URL"),
        (fragment, "fragments are not permitted in the URL"),
        (query, "query parameters are not permitted in the URL"),
    ] {
        if !part.is_empty() {
            causes.push(Cause::invalid(place, &json!(part), detail));
        }
    }
}

fn service(service: &Value, place: &str, causes: &mut Vec<Cause>) {
    for field in ["name", "namespace"] {
        if absent(&service[field]) {
            causes.push(Cause::required(format!("{place}.{field}"), ""));
        }
    }
    if service["port"].as_i64().is_some_and(|port| !(1..=65535).contains(&port)) {
        let detail = "port is not valid: must be between 1 and 65535, inclusive";
        causes.push(Cause::invalid(format!("{place}.port"), &service["port"], detail));
    }
    let (at, path) = (format!("{place}.path"), service["path"].as_str().unwrap_or_default());
    let mut wrong = |detail: &str| causes.push(Cause::invalid(at.as_str(), &service["path"], detail));
    match path {
        "" | "/" => return,
        "//" => return wrong("segment[0] may not be empty"),
        _ if !path.starts_with('/') => wrong("must start with a '/'"),
        _ => {}
    }
    let mut chars = path.chars();
    chars.next();
    let inside = chars.as_str();
    for (index, step) in inside.strip_suffix('/').unwrap_or(inside).split('/').enumerate() {
        if step.is_empty() {
            wrong(&format!("segment[{index}] may not be empty"));
            continue;
        }
        for why in dns1123_subdomain(step) {
            wrong(&format!("segment[{index}]: {why}"));
        }
    }
}

pub fn conditions(list: &[Value], params: bool, place: &str, causes: &mut Vec<Cause>) {
    if list.len() > MOST_CONDITIONS {
        let text = format!("Too many: {}: must have at most {MOST_CONDITIONS} items", list.len());
        causes.push(Cause::text("FieldValueTooMany", place, text));
    }
    let mut names: Vec<&str> = Vec::new();
    for (index, condition) in list.iter().enumerate() {
        let at = |field: &str| format!("{place}[{index}].{field}");
        let text = condition["expression"].as_str().unwrap_or_default().trim();
        if text.is_empty() {
            causes.push(Cause::required(at("expression"), ""));
        } else if let Err(why) = check_condition(text, params) {
            causes.push(Cause::expression(at("expression"), text, &why));
        }
        let name = condition["name"].as_str().unwrap_or_default();
        if name.is_empty() {
            causes.push(Cause::required(at("name"), ""));
            continue;
        }
        for why in label_key(name) {
            causes.push(Cause::invalid(at("name"), &json!(name), &why));
        }
        if names.contains(&name) {
            causes.push(Cause::duplicate(at("name"), &json!(name)));
        }
        names.push(name);
    }
}
