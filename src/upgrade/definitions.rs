//! The definitions of two versions of a project, compared: no program runs and no control plane starts. What
//! is told of each difference is `types::impact`'s; beside it stands what versions of one definition lose to
//! each other.

use super::end::End;
use super::finding::{Class, Finding, Level};
use opdev_event::shell;
use opdev_event::words::visible_line;
use opdev_sources::definitions::Definition;
use opdev_types::impact::{self, Change, Severity};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::Arc;

/// A difference of a definition.
#[derive(Clone, Debug)]
pub struct Difference {
    /// The definition.
    pub name: String,
    /// What differs, and how bad that is.
    pub finding: impact::Finding,
    /// `file:line` of the newer version.
    pub place: Option<(String, u32)>,
}

/// All differences, definition by definition, worst first.
pub fn compared(from: &End, to: &End) -> Vec<Difference> {
    let by_name = |end: &End| -> BTreeMap<String, Arc<Definition>> {
        let all = end.sources.definitions.iter().filter(|definition| !definition.scaffolded);
        all.map(|definition| (definition.name().to_owned(), Arc::clone(definition))).collect()
    };
    let (old, new) = (by_name(from), by_name(to));
    let mut found = Vec::new();
    for (name, definition) in &new {
        let before = old.get(name).map(|definition| &*definition.crd);
        found.extend(of_definition(before, &definition.crd).into_iter().map(|finding| Difference {
            name: name.clone(),
            place: place(definition, &finding),
            finding,
        }));
    }
    let gone = old.iter().filter(|(name, _)| !new.contains_key(*name));
    found.extend(gone.map(|(name, definition)| Difference {
        name: name.clone(),
        finding: impact::removed(&definition.crd),
        place: None,
    }));
    found
}

fn place(definition: &Definition, finding: &impact::Finding) -> Option<(String, u32)> {
    let place = definition.place(&finding.version, &finding.path)?;
    Some((place.file, place.line))
}

fn of_definition(before: Option<&Value>, after: &Value) -> Vec<impact::Finding> {
    let mut found = impact::compare(before, after);
    found.extend(impact::check(after));
    // What was lost between versions before is no news.
    let known = before.map(between_versions).unwrap_or_default();
    found.extend(between_versions(after).into_iter().filter(|one| !known.contains(one)));
    found.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    found
}

/// Fields that an object loses when somebody reads it at another served version and writes it back. Where a
/// webhook converts, it decides.
fn between_versions(crd: &Value) -> Vec<impact::Finding> {
    let strategy = crd.pointer("/spec/conversion/strategy").and_then(Value::as_str);
    if strategy.is_some_and(|strategy| strategy != "None") {
        return Vec::new();
    }
    let versions = crd.pointer("/spec/versions").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let Some(storage) = versions.iter().find(|version| version["storage"] == true) else { return Vec::new() };
    let name = |version: &Value| version["name"].as_str().unwrap_or_default().to_owned();
    let schema = |version: &Value| version["schema"]["openAPIV3Schema"].clone();
    let mut found = Vec::new();
    for other in versions.iter().filter(|version| version["served"] == true && version["storage"] != true) {
        let (stored, served) = (name(storage), name(other));
        let mut lose = |from: &Value, to: &Value, version: &str, words: &dyn Fn(&str) -> String| {
            for path in missing(&schema(from), &schema(to), "") {
                found.push(impact::Finding {
                    severity: Severity::Warn,
                    version: version.to_owned(),
                    what: words(&path),
                    path,
                    renamed_to: None,
                    kind: Change::Conversion,
                    objects: None,
                });
            }
        };
        lose(storage, other, &served, &|path| {
            format!(
                "{served} has no .{path}: who reads an object at {served} and writes it back takes it out of the store"
            )
        });
        lose(other, storage, &served, &|path| {
            format!(
                "{stored}, at which objects are stored, has no .{path}: what is written there at {served} is left out"
            )
        });
    }
    found
}

/// The fields that the first schema has and the second one has not, the outermost of each.
pub(super) fn missing(from: &Value, to: &Value, path: &str) -> Vec<String> {
    if to["x-kubernetes-preserve-unknown-fields"] == true {
        return Vec::new();
    }
    let below = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
    let mut found = Vec::new();
    let known = to["properties"].as_object();
    let any = to.get("additionalProperties").filter(|value| !value.is_null());
    for (name, schema) in from["properties"].as_object().into_iter().flatten() {
        // Every object has these.
        if path.is_empty() && matches!(name.as_str(), "apiVersion" | "kind" | "metadata") {
            continue;
        }
        match known.and_then(|known| known.get(name)).or(any) {
            Some(other) => found.extend(missing(schema, other, &below(name))),
            None => found.push(below(name)),
        }
    }
    for (part, sign) in [("items", "[*]"), ("additionalProperties", "{*}")] {
        if from[part].is_object() && to[part].is_object() {
            found.extend(missing(&from[part], &to[part], &format!("{path}{sign}")));
        }
    }
    found
}

/// Differences that hurt those whose objects have the field, and that `plain` has not shown: no sample has
/// it. Of Go types the fields count that the project declares itself: types of others come from Go's module
/// cache, which need not have both versions yet.
pub(super) fn unseen(from: &End, to: &End, plain: &[Finding]) -> Vec<Finding> {
    let seen = |path: &str| plain.iter().any(|one| one.fields.iter().any(|field| shows(field, path)));
    let is_own = |one: &Difference| {
        let definition = from.sources.definitions.iter().find(|known| known.name() == one.name);
        let declared = format!("{}.{}", one.finding.version, one.finding.path.replace("[*]", "[]"));
        let is_declared = |known: &Arc<Definition>| {
            let place = known.places.get(&declared);
            place.is_some_and(|place| known.files.contains(&place.file))
        };
        definition.is_some_and(|known| known.places.is_empty() || is_declared(known))
    };
    let mut by_name: BTreeMap<String, Vec<Difference>> = BTreeMap::new();
    for one in compared(from, to) {
        let hurts = matches!(one.finding.severity, Severity::Break | Severity::Loss);
        if hurts && one.finding.path.starts_with("spec.") && !seen(&one.finding.path) && is_own(&one) {
            by_name.entry(one.name.clone()).or_default().push(one);
        }
    }
    let hint = |(name, all): (String, Vec<Difference>)| {
        let fields: BTreeSet<String> = all.iter().map(|one| format!(".{}", one.finding.path)).collect();
        let title =
            format!("{name}: a field of users may be lost or refused, and no sample of {} has it", from.name);
        Finding::new(Level::Hint, Class::DefinitionChanged, name, title)
            .fields(fields.into_iter().collect())
            .lines(all.iter().map(|one| one.finding.to_string()))
            .fix(format!(
                "add a sample with it; `opdev crd --compare {}` tells each difference",
                shell::word(&from.name)
            ))
    };
    by_name.into_iter().map(hint).collect()
}

/// Returns true if a field of an object is one of the schema, or lies in it.
fn shows(field: &str, path: &str) -> bool {
    let plain: String = field.trim_start_matches('.').split(['[', ']', '{', '}']).step_by(2).collect();
    let path: String = path.split(['[', ']', '{', '}']).step_by(2).collect();
    plain.strip_prefix(&path).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// Returns true if a difference stops those who use the definition.
pub fn hurts(difference: &Difference) -> bool {
    difference.finding.severity >= Severity::Break
}

/// The lines for people. Without `all`, what changes nothing for anybody is counted only.
pub fn told(from: &str, to: &str, found: &[Difference], all: bool) -> String {
    let shown: Vec<&Difference> =
        found.iter().filter(|one| all || one.finding.severity > Severity::Info).collect();
    let mut out = String::new();
    let mut last = "";
    for one in &shown {
        if one.name != last {
            let _ = writeln!(out, "{}", visible_line(&one.name));
            last = &one.name;
        }
        let place = one.place.as_ref().map(|(file, line)| format!("  ({file}:{line})")).unwrap_or_default();
        let _ = writeln!(out, "  {}{}", visible_line(&one.finding.to_string()), visible_line(&place));
    }
    let hidden = found.len() - shown.len();
    let hurting = found.iter().filter(|one| hurts(one)).count();
    let end = match (found.len(), hurting) {
        (0, _) => "no difference".to_owned(),
        (_, 0) => "nothing that works today stops working".to_owned(),
        (_, 1) => "1 difference hurts those who use it".to_owned(),
        (_, many) => format!("{many} differences hurt those who use it"),
    };
    let hidden =
        if hidden == 0 { String::new() } else { format!("; {hidden} of no consequence (--verbose)") };
    let _ = writeln!(out, "{} → {}: {end}{hidden}", visible_line(from), visible_line(to));
    out
}

/// What GitHub shows beside the files of a pull request.
pub fn compared_annotations(found: &[Difference]) -> String {
    let escaped = |text: &str| text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A");
    let property = |text: &str| escaped(text).replace(':', "%3A").replace(',', "%2C");
    let mut out = String::new();
    for one in found.iter().filter(|one| one.finding.severity > Severity::Info) {
        let word = if hurts(one) { "error" } else { "warning" };
        let place = match &one.place {
            Some((file, line)) => format!(" file={},line={}", property(file), line.max(&1)),
            None => String::new(),
        };
        let _ = writeln!(out, "::{word}{place}::{}", escaped(&format!("{}: {}", one.name, one.finding)));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn crd(v1: &Value, v2: &Value, strategy: &str) -> Value {
        let version = |name: &str, spec: &Value| {
            json!({ "name": name, "served": true, "storage": name == "v2", "schema": { "openAPIV3Schema": { "type": "object",
                "properties": { "metadata": { "type": "object" }, "spec": { "type": "object", "properties": spec } } } } })
        };
        json!({ "metadata": { "name": "webs.x.io" }, "spec": { "group": "x.io", "names": { "kind": "Web", "plural": "webs" },
            "conversion": { "strategy": strategy }, "versions": [version("v1", v1), version("v2", v2)] } })
    }

    #[test]
    fn a_field_of_an_object_shows_that_of_the_schema() {
        assert!(shows(".spec.ports[name=web].port", "spec.ports[*].port"));
        assert!(shows(".spec.labels.a", "spec.labels{*}"));
        assert!(!shows(".spec.portal", "spec.port") && !shows(".spec", "spec.port"));
    }

    #[test]
    fn versions_without_a_converter_lose_what_the_other_one_has_not() {
        let text = json!({ "type": "string" });
        let list =
            |fields: Value| json!({ "type": "array", "items": { "type": "object", "properties": fields } });
        let v1 = json!({ "a": text, "old": text, "ports": list(json!({ "port": text })) });
        let v2 = json!({ "a": text, "ports": list(json!({ "port": text, "name": text })) });
        let paths = |crd: &Value| between_versions(crd).into_iter().map(|one| one.path).collect::<Vec<_>>();
        assert_eq!(paths(&crd(&v1, &v2, "None")), ["spec.ports[*].name", "spec.old"]);
        assert!(paths(&crd(&v1, &v2, "Webhook")).is_empty(), "the webhook decides");
        let open = json!({ "a": text, "ports": { "type": "array", "items": { "type": "object", "x-kubernetes-preserve-unknown-fields": true } } });
        assert_eq!(paths(&crd(&open, &v2, "None")), Vec::<String>::new());
        // The version before lost the same.
        let before = crd(&v1, &v2, "None");
        let mut after = before.clone();
        after["spec"]["versions"][1]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["tls"] =
            text;
        let told: Vec<String> = of_definition(Some(&before), &after)
            .into_iter()
            .filter(|one| one.kind == Change::Conversion)
            .map(|one| one.path)
            .collect();
        assert_eq!(told, ["spec.tls"]);
    }
}
