//! The decision about a CRD that differs from the one on the API server: applied, held for the user's answer,
//! or never sent. Pure: two definitions and the existing objects, in; a decision with its reasons, out.

use opdev_event::{Diagnostic, Finding, Hurt, Severity, Weight, mask};
use opdev_object::meta::{Gvk, ObjectRef};
use opdev_sources::definitions::Definition;
use opdev_types::impact;
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::Arc;

/// More objects than these are counted, not named.
const NAMED: usize = 10;

/// A decision with its reasons.
pub(super) struct Weighed {
    pub(super) findings: Vec<Finding>,
    pub(super) objects: Vec<Hurt>,
    pub(super) more: u32,
    pub(super) decision: Decision,
}

/// The outcome for a CRD.
pub(super) enum Decision {
    Apply,
    /// It waits, and why.
    Hold(String),
    /// The API server would refuse it.
    Refuse(Box<Diagnostic>),
}

/// Weighs a definition against what the API server has. `cautious` lets nothing through that anybody could
/// notice, unless the user says so.
pub(super) fn weigh(
    definition: &Definition,
    live: Option<&Value>,
    objects: &[Arc<Value>],
    cautious: bool,
) -> Weighed {
    let new = &*definition.crd;
    let mut found = impact::compare(live, new);
    found.extend(impact::check(new));
    let hurt = match live {
        Some(_) => impact::live(live, new, objects, &mut found),
        None => impact::Live::default(),
    };
    found.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    let findings: Vec<Finding> = found.iter().map(|finding| self::finding(definition, finding)).collect();
    let all = hurts(&hurt, objects);
    let more = u32::try_from(all.len().saturating_sub(NAMED)).unwrap_or(u32::MAX);
    let decision = decide(definition, &found, &findings, &hurt, live.is_some(), cautious);
    Weighed { findings, objects: all.into_iter().take(NAMED).collect(), more, decision }
}

fn decide(
    definition: &Definition,
    found: &[impact::Finding],
    findings: &[Finding],
    hurt: &impact::Live,
    exists: bool,
    cautious: bool,
) -> Decision {
    if let Some(first) = findings.iter().find(|finding| finding.weight == Weight::Block) {
        return Decision::Refuse(Box::new(refusal(definition, first, findings)));
    }
    let count = |objects: BTreeSet<&impact::ObjectRef>| objects.len();
    let losing = count(hurt.lost.iter().map(|lost| &lost.object).collect());
    let breaking = count(hurt.broken.iter().map(|broken| &broken.object).collect());
    let loses = found.iter().any(|finding| {
        finding.severity == impact::Severity::Loss && finding.objects.is_none_or(|objects| objects > 0)
    });
    let breaks = breaking > 0 && found.iter().any(|finding| finding.severity == impact::Severity::Break);
    let renamed = found.iter().find_map(|finding| {
        let to = finding.renamed_to.as_ref().filter(|_| finding.severity == impact::Severity::Loss)?;
        Some(format!(".{} is renamed to .{to}: stored values are lost", finding.path))
    });
    let mut why = Vec::new();
    if exists && loses {
        why.push(match (renamed, losing) {
            (Some(renamed), _) => renamed,
            (None, 0) => "stored data would be lost".to_owned(),
            (None, 1) => "1 object would lose data".to_owned(),
            (None, n) => format!("{n} objects would lose data"),
        });
    }
    if exists && breaks {
        why.push(match breaking {
            1 => "1 object would not be valid any more".to_owned(),
            n => format!("{n} objects would not be valid any more"),
        });
    }
    let heaviest = findings.first().map(|finding| finding.weight);
    if why.is_empty() && exists && cautious && heaviest > Some(Weight::Info) {
        why.push(
            "this cluster is not clearly local, and clients or objects would notice the change".to_owned(),
        );
    }
    if why.is_empty() { Decision::Apply } else { Decision::Hold(why.join("; ")) }
}

/// Why a definition is never sent, where its source says what is wrong.
fn refusal(definition: &Definition, first: &Finding, all: &[Finding]) -> Diagnostic {
    let blocked = all.iter().filter(|finding| finding.weight == Weight::Block).count();
    let more = if blocked > 1 { format!(" (and {} more)", blocked - 1) } else { String::new() };
    let field = if first.field.is_empty() { String::new() } else { format!("{}: ", first.field) };
    Diagnostic {
        severity: Severity::Error,
        message: format!("the API server would refuse {}: {field}{}{more}", definition.name(), first.message),
        excerpt: first.place.as_ref().and_then(|place| definition.excerpt(place)),
        place: first.place.clone(),
        hint: Some("it is not sent; the API server keeps the type as it was".to_owned()),
        kind: definition.gvk(),
    }
}

fn finding(definition: &Definition, found: &impact::Finding) -> Finding {
    let path = if found.severity == impact::Severity::Block { object_path(&found.path) } else { None };
    let shown = path.as_deref().unwrap_or(&found.path);
    let is_field = path.is_some() || is_in_object(&found.path);
    Finding {
        weight: match found.severity {
            impact::Severity::Info => Weight::Info,
            impact::Severity::Warn => Weight::Warn,
            impact::Severity::Break => Weight::Break,
            impact::Severity::Loss => Weight::Loss,
            impact::Severity::Block => Weight::Block,
        },
        field: match shown {
            "" => String::new(),
            path if is_field => format!(".{path}"),
            path => path.to_owned(),
        },
        message: found.what.clone(),
        place: if is_field { definition.place(&found.version, shown) } else { definition.place("", "") },
    }
}

/// Returns true if a path is one of an object, and not one of the definition, such as `spec.names.plural`.
fn is_in_object(path: &str) -> bool {
    let of_definition =
        ["spec.names", "spec.versions", "spec.scope", "spec.group", "spec.conversion", "metadata"];
    !of_definition.iter().any(|start| {
        path.strip_prefix(start).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
    })
}

/// `spec.versions[0].schema.openAPIV3Schema.properties[spec].properties[size].default` is about `spec.size`.
fn object_path(path: &str) -> Option<String> {
    let (_, schema) = path.split_once("openAPIV3Schema")?;
    let mut out = String::new();
    let mut rest = schema.trim_start_matches('.');
    while let Some((name, after)) = part(rest) {
        match name {
            "properties" => {
                let (field, next) = match after.strip_prefix('[') {
                    Some(inside) => inside.split_once(']')?,
                    None => part(after.trim_start_matches('.'))?,
                };
                if !out.is_empty() {
                    out.push('.');
                }
                out.push_str(field);
                rest = next.trim_start_matches('.');
            }
            "items" => {
                out.push_str("[*]");
                rest = after.trim_start_matches('.');
            }
            "additionalProperties" => {
                out.push_str("{}");
                rest = after.trim_start_matches('.');
            }
            _ => break,
        }
    }
    Some(out)
}

/// The first name of a path, and what follows it.
fn part(path: &str) -> Option<(&str, &str)> {
    let end = path.find(['.', '[']).unwrap_or(path.len());
    (end > 0).then(|| path.split_at(end))
}

/// Every object that is hurt; no value of a secret in it.
fn hurts(hurt: &impact::Live, objects: &[Arc<Value>]) -> Vec<Hurt> {
    let secrets = |reference: &impact::ObjectRef| {
        let is = |object: &&Arc<Value>| {
            object["metadata"]["name"].as_str() == Some(reference.name.as_str())
                && object["metadata"]["namespace"].as_str().unwrap_or_default() == reference.namespace
        };
        objects.iter().find(is).map(|object| mask::secrets(object)).unwrap_or_default()
    };
    let lost = hurt.lost.iter().map(|lost| Hurt {
        object: reference(&lost.object),
        field: format!(".{}", lost.path),
        message: match lost.value.as_str() {
            "" => "its value is lost".to_owned(),
            value => format!("its value is lost ({value})"),
        },
    });
    let broken = hurt.broken.iter().map(|broken| Hurt {
        object: reference(&broken.object),
        field: format!(".{}", broken.path),
        message: mask::text(&broken.message, &secrets(&broken.object)),
    });
    let mut all: Vec<Hurt> = lost.chain(broken).collect();
    all.dedup();
    all
}

fn reference(of: &impact::ObjectRef) -> ObjectRef {
    let (group, version) = of.api_version.split_once('/').unwrap_or(("", &of.api_version));
    ObjectRef {
        gvk: Gvk::new(group, version, &of.kind),
        namespace: Some(of.namespace.clone()).filter(|namespace| !namespace.is_empty()),
        name: of.name.clone(),
        uid: None,
    }
}

#[cfg(test)]
mod tests;
