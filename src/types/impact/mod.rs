//! The impact of a change of a CustomResourceDefinition: every difference classified (`compare`), what the
//! API server would refuse (`check`), and what it means for the objects there are (`live`). Pure: two
//! definitions and some objects in, sentences out. A difference nobody has thought of is a warning, never
//! silence. Read `around` for what stands around the schemas and `schema` for what is in them.

mod around;
mod finding;
mod live;
mod paths;
mod rename;
mod same;
mod schema;
mod words;

pub use finding::{Change, Finding, Severity};
pub use live::{Broken, Live, Lost, ObjectRef, live};
pub use same::same;

use finding::sort;
use opdev_cel::definition;
use serde_json::Value;

/// Every difference between two definitions, worst first. Definitions that mean the same have none.
pub fn compare(old: Option<&Value>, new: &Value) -> Vec<Finding> {
    let Some(old) = old else {
        let name = words::name(new);
        return vec![Finding::new(Severity::Info, Change::DefinitionAdded, "", format!("{name} is new"))];
    };
    let (old, new) = (same::normal(old), same::normal(new));
    let mut findings = around::compare(&old, &new);
    sort(&mut findings);
    findings
}

/// The finding for a definition that is removed.
pub fn removed(old: &Value) -> Finding {
    let name = words::name(old);
    let what = format!("{name} goes, and with it every {} there is", words::kind(old));
    Finding::new(Severity::Loss, Change::DefinitionRemoved, "", what)
}

/// The errors for which the API server would refuse a definition, with a suggestion where a rule names
/// something that does not exist; and rules that it finds too expensive.
pub fn check(crd: &Value) -> Vec<Finding> {
    let mut crd = crd.clone();
    definition::complete(&mut crd);
    let hints = definition::uncompiled(&crd);
    let mut findings = Vec::new();
    for error in definition::validate(&crd) {
        let hint = hints.iter().find(|fault| fault.error == error).and_then(|fault| fault.hint.as_deref());
        let hint = hint.map(|hint| format!(" ({hint})")).unwrap_or_default();
        let what = format!("{}{hint}", error.message);
        let mut finding = Finding::new(Severity::Block, Change::Refused, error.path, what);
        finding.version = version_at(&crd, &finding.path);
        findings.push(finding);
    }
    for fault in definition::expensive(&crd, None) {
        let mut finding =
            Finding::new(Severity::Block, Change::Expensive, fault.error.path, fault.error.message);
        finding.version = version_at(&crd, &finding.path);
        findings.push(finding);
    }
    sort(&mut findings);
    findings
}

/// The version an error is about; the only one where there is one.
fn version_at(crd: &Value, path: &str) -> String {
    let versions = crd.pointer("/spec/versions").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let index = path.strip_prefix("spec.versions[").and_then(|rest| rest.split(']').next());
    let found = match (index.and_then(|index| index.parse::<usize>().ok()), versions) {
        (Some(index), _) => versions.get(index),
        (None, [only]) if path.starts_with("spec.validation.") => Some(only),
        (None, _) => None,
    };
    found.and_then(|version| version["name"].as_str()).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod mutations;
#[cfg(test)]
mod tests;
