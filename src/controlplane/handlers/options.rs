//! The options of writes, from the query and, for deletes, the body.

use super::path::Query;
use http::HeaderMap;
use http::header::USER_AGENT;
use opdev_apimachinery::contract::Propagation;
use opdev_apimachinery::error::{Cause, Status};
use opdev_apimachinery::identity::User;
use opdev_registry::{Context, DeleteOptions, FieldValidation};
use serde_json::{Value, json};

const LONGEST_MANAGER: usize = 128;

fn invalid(kind: &str, causes: Vec<Cause>) -> Status {
    Status::invalid("meta.k8s.io", kind, "", causes)
}

fn dry_run(query: &Query, causes: &mut Vec<Cause>) -> bool {
    let values: Vec<&str> = query.all("dryRun").collect();
    for value in values.iter().filter(|value| **value != "All") {
        causes.push(Cause::not_supported("dryRun", &json!([value]), &["All"]));
    }
    !values.is_empty()
}

/// The circumstances of a create, update or patch; `kind` is the name of the options in errors.
pub(crate) fn context(
    user: &User,
    headers: &HeaderMap,
    query: &Query,
    kind: &str,
    apply: bool,
) -> Result<Context, Status> {
    let mut causes = Vec::new();
    let agent = headers.get(USER_AGENT).and_then(|agent| agent.to_str().ok()).unwrap_or_default();
    let own = agent.split('/').next().unwrap_or_default();
    let asked = query.get("fieldManager");
    if apply && asked.is_none() {
        causes.push(Cause::required("fieldManager", "is required for apply patch"));
    }
    if !apply && query.flag("force").is_some() && kind == "PatchOptions" {
        causes.push(Cause::forbidden("force", "may not be specified for non-apply patch"));
    }
    if let Some(manager) = asked.filter(|manager| manager.len() > LONGEST_MANAGER) {
        let _ = manager;
        causes.push(Cause::too_long("fieldManager", LONGEST_MANAGER));
    }
    let mut ctx = Context::new(user, asked.unwrap_or(if own.is_empty() { "unknown" } else { own }));
    ctx.manager.truncate(LONGEST_MANAGER);
    ctx.dry_run = dry_run(query, &mut causes);
    ctx.validation = match query.get("fieldValidation") {
        None | Some("Warn") => FieldValidation::Warn,
        Some("Ignore") => FieldValidation::Ignore,
        Some("Strict") => FieldValidation::Strict,
        Some(other) => {
            let known = ["Ignore", "Strict", "Warn"];
            causes.push(Cause::not_supported("fieldValidation", &json!(other), &known));
            FieldValidation::Warn
        }
    };
    for name in ["fieldManager", "fieldValidation"] {
        if let Some(value) = query.get(name) {
            ctx.options.insert(name.to_owned(), Value::from(value));
        }
    }
    if causes.is_empty() { Ok(ctx) } else { Err(invalid(kind, causes)) }
}

fn propagation(text: &str) -> Option<Propagation> {
    Some(match text {
        "Background" => Propagation::Background,
        "Foreground" => Propagation::Foreground,
        "Orphan" => Propagation::Orphan,
        _ => return None,
    })
}

/// The options of a delete, and whether it is a dry run: all of them from the body where there is one, as the
/// real server does, else from the query.
pub(crate) fn delete(query: &Query, body: Option<&Value>) -> Result<(DeleteOptions, bool), Status> {
    let mut causes = Vec::new();
    let mut options = DeleteOptions::default();
    let dry;
    let policy;
    match body {
        Some(body) => {
            let text = |value: &Value| value.as_str().map(str::to_owned);
            options.uid = text(&body["preconditions"]["uid"]);
            options.resource_version = text(&body["preconditions"]["resourceVersion"]);
            options.grace = body["gracePeriodSeconds"].as_i64();
            options.orphan_dependents = body["orphanDependents"].as_bool();
            policy = text(&body["propagationPolicy"]);
            let asked = body["dryRun"].as_array().map_or(&[][..], Vec::as_slice);
            dry = !asked.is_empty();
            if asked.iter().any(|value| value != "All") {
                causes.push(Cause::not_supported("dryRun", &body["dryRun"], &["All"]));
            }
        }
        None => {
            dry = dry_run(query, &mut causes);
            options.grace = query.number("gracePeriodSeconds");
            options.orphan_dependents = query.flag("orphanDependents");
            policy = query.get("propagationPolicy").map(str::to_owned);
        }
    }
    if let Some(text) = policy {
        let value = json!(text);
        if options.orphan_dependents.is_some() {
            let detail = "orphanDependents and deletionPropagation cannot be both set";
            causes.push(Cause::invalid("propagationPolicy", &value, detail));
        }
        options.propagation = propagation(&text);
        if options.propagation.is_none() {
            let known = ["Foreground", "Background", "Orphan", "nil"];
            causes.push(Cause::not_supported("propagationPolicy", &value, &known));
        }
    }
    if causes.is_empty() { Ok((options, dry)) } else { Err(invalid("DeleteOptions", causes)) }
}
