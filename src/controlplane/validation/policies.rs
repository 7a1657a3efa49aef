//! Refusals of admission policies and their bindings.

use super::checks::{self, absent, items, named, selector};
use super::webhooks::{conditions, one_of, rule};
use opdev_apimachinery::error::Cause;
use opdev_cel::{self as cel, Compiler, Expression, Wanted};
use opdev_object::names::{dns1035_label, dns1123_subdomain, label_key};
use serde_json::{Value, json};

const MOST_ANNOTATIONS: usize = 20;
const LONGEST_ANNOTATION: usize = 5 * 1024;
const REASONS: [&str; 3] = ["Forbidden", "Invalid", "RequestEntityTooLarge"];

/// A policy that only looks.
pub fn validating(object: &Value, causes: &mut Vec<Cause>) {
    let spec = &object["spec"];
    let compiler = head(spec, false, causes);
    let (rules, notes) = (items(&spec["validations"]), items(&spec["auditAnnotations"]));
    if rules.is_empty() && notes.is_empty() {
        for field in ["spec.validations", "spec.auditAnnotations"] {
            let detail = "validations or auditAnnotations must contain at least one item";
            causes.push(Cause::required(field, detail));
        }
        return;
    }
    for (index, found) in rules.iter().enumerate() {
        validation(found, &format!("spec.validations[{index}]"), &compiler, causes);
    }
    if notes.len() > MOST_ANNOTATIONS {
        let detail = format!("must not have more than {MOST_ANNOTATIONS} auditAnnotations");
        causes.push(Cause::invalid("spec.auditAnnotations", &spec["auditAnnotations"], &detail));
    }
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    for (index, note) in notes.iter().enumerate() {
        let place = format!("spec.auditAnnotations[{index}]");
        annotation(name, note, &place, &compiler, causes);
        if notes[..index].iter().any(|other| other["key"] == note["key"]) {
            causes.push(Cause::duplicate(format!("{place}.key"), &note["key"]));
        }
    }
}

/// A policy that changes objects.
pub fn mutating(object: &Value, causes: &mut Vec<Cause>) {
    let spec = &object["spec"];
    let compiler = head(spec, true, causes);
    let mutations = items(&spec["mutations"]);
    if mutations.is_empty() {
        causes.push(Cause::required("spec.mutations", "mutations must contain at least one item"));
    }
    for (index, found) in mutations.iter().enumerate() {
        mutation(found, &format!("spec.mutations[{index}]"), &compiler, causes);
    }
    checks::one_of("spec.reinvocationPolicy", &spec["reinvocationPolicy"], &["IfNeeded", "Never"], causes);
}

fn mutation(found: &Value, place: &str, compiler: &Compiler, causes: &mut Vec<Cause>) {
    const SORTS: [(&str, &str, Wanted); 2] = [
        ("ApplyConfiguration", "applyConfiguration", Wanted::Object),
        ("JSONPatch", "jsonPatch", Wanted::Operations),
    ];
    let sort = found["patchType"].as_str().unwrap_or_default();
    checks::one_of(&format!("{place}.patchType"), &found["patchType"], &SORTS.map(|(sort, ..)| sort), causes);
    if !SORTS.iter().any(|(known, ..)| *known == sort) {
        return;
    }
    for (known, field, wanted) in SORTS {
        let at = format!("{place}.{field}");
        match (known == sort, found[field].is_object()) {
            (true, false) => {
                causes.push(Cause::required(at, &format!("must be specified when patchType is {sort}")));
            }
            (true, true) => {
                let at = format!("{at}.expression");
                match found[field]["expression"].as_str().unwrap_or_default().trim() {
                    "" => causes.push(Cause::required(at, "")),
                    text => fault(&compiler.expression(text, wanted, true), &at, text, causes),
                }
            }
            (false, true) => {
                let detail = format!("must not be specified when patchType is {sort}");
                causes.push(Cause::invalid(at, &json!(format!("{{{field}}}")), &detail));
            }
            (false, false) => {}
        }
    }
}

/// Only what is written can be changed.
fn operations(constraints: &Value, place: &str, causes: &mut Vec<Cause>) {
    const KNOWN: [&str; 4] = ["*", "CONNECT", "CREATE", "UPDATE"];
    for rule in items(&constraints["resourceRules"]) {
        for operation in items(&rule["operations"]) {
            if !operation.as_str().is_some_and(|operation| KNOWN.contains(&operation)) {
                let at = format!("{place}.resourceRules.operations");
                causes.push(Cause::not_supported(at, operation, &KNOWN));
            }
        }
    }
}

/// Validates the fields that policies of both sorts have. Returns the compiler for their expressions.
fn head(spec: &Value, mutates: bool, causes: &mut Vec<Cause>) -> Compiler {
    one_of(spec, "spec", "failurePolicy", &["Fail", "Ignore"], causes);
    let kind = &spec["paramKind"];
    if kind.is_object() {
        param_kind(kind, causes);
    }
    let constraints = &spec["matchConstraints"];
    if constraints.is_null() {
        causes.push(Cause::required("spec.matchConstraints", ""));
    } else {
        resources(constraints, "spec.matchConstraints", causes);
        if items(&constraints["resourceRules"]).is_empty() {
            causes.push(Cause::required("spec.matchConstraints.resourceRules", ""));
        }
        if mutates {
            operations(constraints, "spec.matchConstraints", causes);
        }
    }
    conditions(items(&spec["matchConditions"]), kind.is_object(), "spec.matchConditions", causes);
    let compiler = Compiler::new(kind.is_object());
    let mut compiler = if mutates { compiler.composed() } else { compiler };
    for (index, found) in items(&spec["variables"]).iter().enumerate() {
        variable(found, &format!("spec.variables[{index}]"), &mut compiler, causes);
    }
    compiler
}

fn param_kind(kind: &Value, causes: &mut Vec<Cause>) {
    const AT: &str = "spec.paramKind.apiVersion";
    let text = kind["apiVersion"].as_str().unwrap_or_default();
    match text.split('/').collect::<Vec<_>>().as_slice() {
        [""] => causes.push(Cause::required(AT, "")),
        [version] => group_version("", version, text, causes),
        [group, version] => group_version(group, version, text, causes),
        _ => {
            let detail = format!("unexpected GroupVersion string: {text}");
            causes.push(Cause::invalid(AT, &json!(text), &detail));
        }
    }
    let name = kind["kind"].as_str().unwrap_or_default();
    if name.is_empty() {
        causes.push(Cause::required("spec.paramKind.kind", ""));
        return;
    }
    let wrong = dns1035_label(&name.to_lowercase());
    if !wrong.is_empty() {
        let detail = format!("may have mixed case, but should otherwise match: {}", wrong.join(","));
        causes.push(Cause::invalid("spec.paramKind.kind", &json!(name), &detail));
    }
}

fn group_version(group: &str, version: &str, text: &str, causes: &mut Vec<Cause>) {
    const AT: &str = "spec.paramKind.apiVersion";
    let wrong = if group.is_empty() { Vec::new() } else { dns1123_subdomain(group) };
    if !wrong.is_empty() {
        causes.push(Cause::invalid(AT, &json!(group), &wrong.join(",")));
    }
    if version.is_empty() {
        causes.push(Cause::invalid(AT, &json!(text), "version must be specified"));
        return;
    }
    let wrong = dns1035_label(version);
    if !wrong.is_empty() {
        causes.push(Cause::invalid(AT, &json!(version), &wrong.join(",")));
    }
}

/// `matchConstraints` of a policy, or `matchResources` of a binding.
fn resources(found: &Value, place: &str, causes: &mut Vec<Cause>) {
    one_of(found, place, "matchPolicy", &["Equivalent", "Exact"], causes);
    for field in ["namespaceSelector", "objectSelector"] {
        selector(&format!("{place}.{field}"), &found[field], causes);
    }
    for field in ["resourceRules", "excludeResourceRules"] {
        for (index, found) in items(&found[field]).iter().enumerate() {
            let place = format!("{place}.{field}[{index}]");
            let names = items(&found["resourceNames"]);
            for (at, name) in names.iter().enumerate() {
                let place = format!("{place}.resourceNames[{at}]");
                named(&place, name, opdev_apimachinery::resource::names::path_segment, causes);
                if names[..at].contains(name) {
                    causes.push(Cause::duplicate(place, name));
                }
            }
            rule(found, &place, causes);
        }
    }
}

fn identifier(name: &str) -> bool {
    let starts = |c: char| c == '_' || c.is_ascii_alphabetic();
    name.starts_with(starts)
        && name.chars().all(|c| starts(c) || c.is_ascii_digit())
        && !cel::is_reserved(name)
}

fn variable(found: &Value, place: &str, compiler: &mut Compiler, causes: &mut Vec<Cause>) {
    let name = found["name"].as_str().unwrap_or_default();
    if name.trim().is_empty() {
        causes.push(Cause::required(format!("{place}.name"), "name is not specified"));
    } else if !identifier(name) {
        let detail = "must be a valid CEL identifier";
        causes.push(Cause::invalid(format!("{place}.name"), &found["name"], detail));
    }
    let text = found["expression"].as_str().unwrap_or_default();
    let at = format!("{place}.expression");
    if text.trim().is_empty() {
        causes.push(Cause::required(at, "expression is not specified"));
    } else {
        fault(&compiler.variable(name, text), &at, text, causes);
    }
}

/// Says what is wrong with an expression.
fn fault(expression: &Expression, place: &str, text: &str, causes: &mut Vec<Cause>) {
    if let Some(why) = expression.fault() {
        causes.push(Cause::expression(place, text, why));
    }
}

fn validation(found: &Value, place: &str, compiler: &Compiler, causes: &mut Vec<Cause>) {
    let said = |field: &str| found[field].as_str().unwrap_or_default();
    let at = |field: &str| format!("{place}.{field}");
    let text = said("expression");
    if text.trim().is_empty() {
        causes.push(Cause::required(at("expression"), "expression is not specified"));
    } else {
        fault(&compiler.expression(text, Wanted::Truth, true), &at("expression"), text, causes);
    }
    let blank = "must be non-empty if specified";
    let words = said("messageExpression");
    if !words.is_empty() {
        if words.trim().is_empty() {
            causes.push(Cause::invalid(at("messageExpression"), &json!(words), blank));
        } else {
            let expression = compiler.expression(words, Wanted::Text, false);
            fault(&expression, &at("messageExpression"), words, causes);
        }
    }
    let message = said("message");
    if !message.is_empty() && message.trim().is_empty() {
        causes.push(Cause::invalid(at("message"), &json!(message), blank));
    } else if message.trim().contains(['\n', '\r']) {
        causes.push(Cause::invalid(at("message"), &json!(message), "must not contain line breaks"));
    }
    if found["reason"].as_str().is_some_and(|reason| !REASONS.contains(&reason)) {
        causes.push(Cause::not_supported(at("reason"), &found["reason"], &REASONS));
    }
}

fn annotation(name: &str, note: &Value, place: &str, compiler: &Compiler, causes: &mut Vec<Cause>) {
    let key = note["key"].as_str().unwrap_or_default();
    let at = format!("{place}.key");
    if name.is_empty() {
        causes.push(Cause::invalid(at, &json!(key), "requires metadata.name be non-empty"));
    } else {
        let whole = format!("{name}/{key}");
        for wrong in label_key(&whole) {
            causes.push(Cause::invalid(at.as_str(), &json!(whole), &wrong));
        }
    }
    let text = note["valueExpression"].as_str().unwrap_or_default();
    let at = format!("{place}.valueExpression");
    match text.trim() {
        "" => causes.push(Cause::required(at, "valueExpression is not specified")),
        long if long.len() > LONGEST_ANNOTATION => {
            let detail = format!("must not exceed {LONGEST_ANNOTATION} bytes in length");
            causes.push(Cause::required(at, &detail));
        }
        trimmed => fault(&compiler.expression(trimmed, Wanted::TextOrNull, true), &at, text, causes),
    }
}

/// A binding of a policy that only looks.
pub fn validating_binding(object: &Value, causes: &mut Vec<Cause>) {
    binding(&object["spec"], causes);
    const AT: &str = "spec.validationActions";
    const KNOWN: [&str; 3] = ["Audit", "Deny", "Warn"];
    let actions = items(&object["spec"]["validationActions"]);
    for (index, action) in actions.iter().enumerate() {
        let place = format!("{AT}[{index}]");
        if !action.as_str().is_some_and(|action| KNOWN.contains(&action)) {
            causes.push(Cause::not_supported(place.as_str(), action, &KNOWN));
        }
        if actions[..index].contains(action) {
            causes.push(Cause::duplicate(place, action));
        }
    }
    if ["Deny", "Warn"].iter().all(|wanted| actions.iter().any(|action| action == wanted)) {
        let detail = "must not contain both Deny and Warn (repeating the same validation failure information in the \
                      API response and headers serves no purpose)";
        causes.push(Cause::invalid(AT, &object["spec"]["validationActions"], detail));
    }
    if actions.is_empty() {
        causes.push(Cause::required(AT, "at least one validation action is required"));
    }
}

/// A binding of a policy that changes objects.
pub fn mutating_binding(object: &Value, causes: &mut Vec<Cause>) {
    binding(&object["spec"], causes);
    operations(&object["spec"]["matchResources"], "spec.matchResources", causes);
}

/// Validates the fields that bindings of both sorts have.
fn binding(spec: &Value, causes: &mut Vec<Cause>) {
    if absent(&spec["policyName"]) {
        causes.push(Cause::required("spec.policyName", ""));
    } else {
        named("spec.policyName", &spec["policyName"], dns1123_subdomain, causes);
    }
    if spec["paramRef"].is_object() {
        param_ref(&spec["paramRef"], "spec.paramRef", causes);
    }
    if spec["matchResources"].is_object() {
        resources(&spec["matchResources"], "spec.matchResources", causes);
    }
}

fn param_ref(found: &Value, place: &str, causes: &mut Vec<Cause>) {
    const EXCLUSIVE: &str = "name and selector are mutually exclusive";
    let (name, selected) = (!absent(&found["name"]), found["selector"].is_object());
    if name {
        named(
            &format!("{place}.name"),
            &found["name"],
            opdev_apimachinery::resource::names::path_segment,
            causes,
        );
        if selected {
            causes.push(Cause::forbidden(format!("{place}.name"), EXCLUSIVE));
        }
    }
    if selected {
        selector(&format!("{place}.selector"), &found["selector"], causes);
        if name {
            causes.push(Cause::forbidden(format!("{place}.selector"), EXCLUSIVE));
        }
    }
    if !name && !selected {
        causes.push(Cause::required(place, "one of name or selector must be specified"));
    }
    let at = format!("{place}.parameterNotFoundAction");
    match found["parameterNotFoundAction"].as_str().unwrap_or_default() {
        "" => causes.push(Cause::required(at, "")),
        "Deny" | "Allow" => {}
        _ => causes.push(Cause::not_supported(at, &found["parameterNotFoundAction"], &["Deny", "Allow"])),
    }
}
