//! Parts of a definition around the schemas: names, scope, versions, subresources, columns, conversion. The
//! schemas of the versions that are in both are compared by `schema`.

use super::finding::{Change, Finding, Severity};
use super::schema;
use serde_json::Value;

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn name(version: &Value) -> &str {
    version["name"].as_str().unwrap_or_default()
}

fn shown(value: &Value) -> String {
    value.as_str().map_or_else(|| super::words::shown(value), str::to_owned)
}

struct Walk {
    findings: Vec<Finding>,
    version: String,
}

impl Walk {
    fn add(&mut self, severity: Severity, kind: Change, path: &str, what: impl Into<String>) {
        let finding = Finding::new(severity, kind, path, what);
        self.findings.push(Finding { version: self.version.clone(), ..finding });
    }
}

/// Every difference between two normal definitions.
pub(super) fn compare(old: &Value, new: &Value) -> Vec<Finding> {
    let mut walk = Walk { findings: Vec::new(), version: String::new() };
    identity(&mut walk, old, new);
    names(&mut walk, &old["spec"]["names"], &new["spec"]["names"]);
    conversion(&mut walk, &old["spec"]["conversion"], &new["spec"]["conversion"]);
    unknown_fields(&mut walk, &old["spec"], &new["spec"]);
    versions(&mut walk, old, new);
    metadata(&mut walk, &old["metadata"], &new["metadata"]);
    rest(&mut walk, "spec", &old["spec"], &new["spec"], &SPEC);
    walk.findings
}

const SPEC: [&str; 6] = ["group", "scope", "names", "versions", "conversion", "preserveUnknownFields"];
const VERSION: [&str; 9] = [
    "name",
    "served",
    "storage",
    "deprecated",
    "deprecationWarning",
    "schema",
    "subresources",
    "additionalPrinterColumns",
    "selectableFields",
];

/// Fields that nobody here knows.
fn rest(walk: &mut Walk, path: &str, old: &Value, new: &Value, known: &[&str]) {
    let mut keys: Vec<&String> =
        [old, new].iter().filter_map(|v| v.as_object()).flat_map(|map| map.keys()).collect();
    keys.sort();
    keys.dedup();
    for key in keys.into_iter().filter(|key| !known.contains(&key.as_str()) && old.get(*key) != new.get(*key))
    {
        let what = format!("{key} changed; opdev does not know what that means");
        walk.add(Severity::Warn, Change::Unknown, &format!("{path}.{key}"), what);
    }
}

fn identity(walk: &mut Walk, old: &Value, new: &Value) {
    for (path, pointer) in [
        ("metadata.name", "/metadata/name"),
        ("spec.group", "/spec/group"),
        ("spec.names.plural", "/spec/names/plural"),
        ("spec.names.kind", "/spec/names/kind"),
        ("spec.scope", "/spec/scope"),
    ] {
        let (before, after) = (old.pointer(pointer), new.pointer(pointer));
        if before != after {
            let (before, after) =
                (before.map(shown).unwrap_or_default(), after.map(shown).unwrap_or_default());
            let what = format!(
                "was {before} and is {after} now, which the API server refuses: only deleting and creating the \
                 definition changes it, and that deletes every object"
            );
            walk.add(Severity::Block, Change::Identity, path, what);
        }
    }
}

fn names(walk: &mut Walk, old: &Value, new: &Value) {
    for field in ["singular", "listKind", "shortNames", "categories"] {
        if old.get(field) != new.get(field) {
            let words = |value: Option<&Value>| match value {
                None => "none".to_owned(),
                Some(Value::Array(list)) => list.iter().map(shown).collect::<Vec<_>>().join(", "),
                Some(other) => shown(other),
            };
            let what = format!(
                "{} now, was {}; a name that is taken shows only in the conditions of the definition",
                words(new.get(field)),
                words(old.get(field))
            );
            walk.add(Severity::Warn, Change::Names, &format!("spec.names.{field}"), what);
        }
    }
    rest(
        walk,
        "spec.names",
        old,
        new,
        &["singular", "listKind", "shortNames", "categories", "plural", "kind"],
    );
}

fn conversion(walk: &mut Walk, old: &Value, new: &Value) {
    if old == new {
        return;
    }
    let (was, now) = (&old["strategy"], &new["strategy"]);
    let what = if was == now {
        "the conversion webhook changed".to_owned()
    } else {
        format!("the conversion strategy is {} now, was {}", shown(now), shown(was))
    };
    walk.add(Severity::Warn, Change::Conversion, "spec.conversion", what);
}

fn unknown_fields(walk: &mut Walk, old: &Value, new: &Value) {
    const KEY: &str = "preserveUnknownFields";
    let path = "spec.preserveUnknownFields";
    match (old[KEY] == true, new[KEY] == true) {
        (true, false) => {
            let what = "unknown fields were kept and are pruned at the next write from now on";
            walk.add(Severity::Loss, Change::UnknownFieldsPruned, path, what);
        }
        (false, true) => walk.add(Severity::Block, Change::Refused, path, "cannot be set to true any more"),
        _ => {}
    }
}

fn versions(walk: &mut Walk, old: &Value, new: &Value) {
    let (before, after) = (list(&old["spec"], "versions"), list(&new["spec"], "versions"));
    let stored = list(&old["status"], "storedVersions");
    if !after.iter().any(|version| version["served"] == true) {
        walk.add(Severity::Block, Change::Refused, "spec.versions", "no version is served");
    }
    let storing: Vec<&Value> = after.iter().filter(|version| version["storage"] == true).collect();
    if storing.len() != 1 {
        let what = format!("{} versions are marked as storage version, there has to be one", storing.len());
        walk.add(Severity::Block, Change::Refused, "spec.versions", what);
    }
    for version in before.iter().filter(|version| !after.iter().any(|other| name(other) == name(version))) {
        name(version).clone_into(&mut walk.version);
        if stored.contains(&version["name"]) || version["storage"] == true {
            let what = "the version is gone, but objects may be stored at it: it stays until they are migrated and \
                        it is no longer in status.storedVersions";
            walk.add(Severity::Block, Change::StoredVersionRemoved, "spec.versions", what);
        }
        if version["served"] == true {
            let what = "the version is gone: its clients get 404 at once";
            walk.add(Severity::Break, Change::VersionRemoved, "spec.versions", what);
        } else {
            let what = "the version is gone; it was not served";
            walk.add(Severity::Info, Change::VersionRemoved, "spec.versions", what);
        }
    }
    for version in after {
        name(version).clone_into(&mut walk.version);
        match before.iter().find(|other| name(other) == name(version)) {
            Some(old) => one_version(walk, old, version),
            None => walk.add(Severity::Info, Change::VersionAdded, "spec.versions", "new version"),
        }
    }
    walk.version.clear();
    storage(walk, old, new);
    let order = |list: &[Value]| list.iter().map(|v| name(v).to_owned()).collect::<Vec<_>>();
    let (mut was, mut now) = (order(before), order(after));
    if was != now {
        was.sort();
        now.sort();
        if was == now {
            let what = "the versions stand in another order";
            walk.add(Severity::Info, Change::Documentation, "spec.versions", what);
        }
    }
}

/// Another storage version: what its schema does not know is pruned when objects are written again.
fn storage(walk: &mut Walk, old: &Value, new: &Value) {
    let of = |crd: &'_ Value| list(&crd["spec"], "versions").iter().find(|v| v["storage"] == true).cloned();
    let (Some(was), Some(now)) = (of(old), of(new)) else { return };
    if name(&was) == name(&now) {
        return;
    }
    name(&now).clone_into(&mut walk.version);
    let differ = was["schema"] != now["schema"];
    if differ && new["spec"]["conversion"]["strategy"] != "Webhook" {
        let what = format!(
            "objects are stored at {} now, was {}, with another schema and no conversion webhook: what it does not \
             know is pruned",
            name(&now),
            name(&was)
        );
        walk.add(Severity::Loss, Change::StorageVersion, "spec.versions", what);
    } else {
        let what = format!("objects are stored at {} now, was {}", name(&now), name(&was));
        walk.add(Severity::Info, Change::StorageVersion, "spec.versions", what);
    }
    walk.version.clear();
}

fn one_version(walk: &mut Walk, old: &Value, new: &Value) {
    let (was, now) = (old["served"] == true, new["served"] == true);
    if was && !now {
        let what = "is not served any more: its clients get 404 at once";
        walk.add(Severity::Break, Change::Unserved, "served", what);
    } else if !was && now {
        walk.add(Severity::Info, Change::VersionAdded, "served", "is served now");
    }
    if old.get("deprecated") != new.get("deprecated")
        || old.get("deprecationWarning") != new.get("deprecationWarning")
    {
        let what = if new["deprecated"] == true {
            "is deprecated: clients get a warning"
        } else {
            "is not deprecated any more"
        };
        walk.add(Severity::Warn, Change::Deprecated, "deprecated", what);
    }
    subresources(walk, &old["subresources"], &new["subresources"]);
    columns(walk, old, new);
    selectable(walk, old, new);
    let unused = !now && !was && old["storage"] != true && new["storage"] != true;
    let path = |value: &Value| value.pointer("/schema/openAPIV3Schema").cloned().unwrap_or(Value::Null);
    for mut finding in schema::compare(&path(old), &path(new)) {
        if unused && finding.severity > Severity::Info {
            finding.severity = Severity::Info;
            finding.what.push_str(" (the version is neither served nor stored)");
        }
        finding.version = name(new).to_owned();
        walk.findings.push(finding);
    }
    rest(walk, "spec.versions", old, new, &VERSION);
}

fn subresources(walk: &mut Walk, old: &Value, new: &Value) {
    match (old["status"].is_object(), new["status"].is_object()) {
        (true, false) => {
            let what = "the status subresource is gone: writes of status through it get 404, and writes of the object \
                        change status";
            walk.add(Severity::Break, Change::StatusSubresource, "subresources.status", what);
        }
        (false, true) => {
            let what = "status is a subresource now: writes of the object no longer change status";
            walk.add(Severity::Break, Change::StatusSubresource, "subresources.status", what);
        }
        _ => {}
    }
    match (old.get("scale").filter(|v| v.is_object()), new.get("scale").filter(|v| v.is_object())) {
        (Some(_), None) => {
            let what = "the scale subresource is gone: kubectl scale and autoscalers fail";
            walk.add(Severity::Break, Change::Scale, "subresources.scale", what);
        }
        (None, Some(_)) => {
            walk.add(
                Severity::Info,
                Change::Scale,
                "subresources.scale",
                "kubectl scale and autoscalers work now",
            );
        }
        (Some(old), Some(new)) if old != new => {
            for field in ["specReplicasPath", "statusReplicasPath", "labelSelectorPath"] {
                let (was, now) = (&old[field], &new[field]);
                let path = format!("subresources.scale.{field}");
                if was.is_null() && !now.is_null() {
                    walk.add(Severity::Info, Change::Scale, &path, format!("is {} now", shown(now)));
                } else if now.is_null() && !was.is_null() {
                    let what = format!("is gone, was {}: autoscalers that need it fail", shown(was));
                    walk.add(Severity::Break, Change::Scale, &path, what);
                } else if was != now {
                    let what =
                        format!("is {} now, was {}: autoscalers read another field", shown(now), shown(was));
                    walk.add(Severity::Break, Change::Scale, &path, what);
                }
            }
        }
        _ => {}
    }
    rest(walk, "subresources", old, new, &["status", "scale"]);
}

fn columns(walk: &mut Walk, old: &Value, new: &Value) {
    const KEY: &str = "additionalPrinterColumns";
    if old.get(KEY) == new.get(KEY) {
        return;
    }
    let of = |version: &Value| -> Vec<String> {
        list(version, KEY).iter().map(|column| shown(&column["name"])).collect()
    };
    let (before, after) = (of(old), of(new));
    let gone: Vec<&str> = before.iter().filter(|name| !after.contains(name)).map(String::as_str).collect();
    let come: Vec<&str> = after.iter().filter(|name| !before.contains(name)).map(String::as_str).collect();
    let what = match (gone.is_empty(), come.is_empty()) {
        (true, true) => "the columns of tables changed".to_owned(),
        (false, true) => format!("tables lose the columns {}", gone.join(", ")),
        (true, false) => format!("tables get the columns {}", come.join(", ")),
        (false, false) => format!("tables get the columns {} and lose {}", come.join(", "), gone.join(", ")),
    };
    walk.add(Severity::Info, Change::Column, KEY, what);
}

fn selectable(walk: &mut Walk, old: &Value, new: &Value) {
    const KEY: &str = "selectableFields";
    let (before, after) = (list(old, KEY), list(new, KEY));
    for field in before.iter().filter(|field| !after.contains(field)) {
        let what = format!(
            "{} is no field of selectors any more: who selects by it fails",
            shown(&field["jsonPath"])
        );
        walk.add(Severity::Break, Change::SelectableField, KEY, what);
    }
    for field in after.iter().filter(|field| !before.contains(field)) {
        let what = format!("{} is a field of selectors now", shown(&field["jsonPath"]));
        walk.add(Severity::Info, Change::SelectableField, KEY, what);
    }
}

fn metadata(walk: &mut Walk, old: &Value, new: &Value) {
    for field in ["labels", "annotations"] {
        let empty = |value: &Value| value.as_object().is_none_or(serde_json::Map::is_empty);
        // Values that others have put there stay; only the wanted ones count.
        let wanted = new[field].as_object().into_iter().flatten();
        let changed: Vec<&str> = wanted
            .filter(|(key, value)| old[field].get(key.as_str()) != Some(value))
            .map(|(key, _)| key.as_str())
            .collect();
        if !changed.is_empty() && !empty(&new[field]) {
            let what = format!("{} changed", changed.join(", "));
            walk.add(Severity::Info, Change::Metadata, &format!("metadata.{field}"), what);
        }
    }
}
