//! Stored custom resources and the definitions: fields that are lost, objects that the new schema refuses,
//! versions that are served no more, manifests that fit no longer.

use super::observed::{Defined, Observed, Tried};
use super::words::{causes, some_of};
use crate::finding::{Class, Finding, Level};
use crate::swap::Variant;
use opdev_event::words::one_line;
use opdev_object::meta;
use opdev_types::impact;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Definitions that the API server does not take.
pub(super) fn definitions(observed: &Observed) -> Vec<Finding> {
    let refused = observed.defined.iter().filter_map(|defined| Some((defined, defined.refusal.as_ref()?)));
    refused
        .map(|(defined, why)| {
            let dropped = dropped_stored_version(defined);
            let title = match &dropped {
                Some(version) => format!("{} drops {version}, at which objects are stored", defined.name),
                None => format!("the API server refuses {}", defined.name),
            };
            let fix = match &dropped {
                Some(version) => format!(
                    "keep {version} in the CRD with served: false, rewrite all objects, take it out of status.storedVersions, and \
                     remove it one release later"
                ),
                None => "correct the type".to_owned(),
            };
            Finding::new(Level::Error, Class::DefinitionRefused, defined.name.clone(), title)
                .line(one_line(why))
                .line("the old definition stays, and the operator runs with it")
                .fix(fix)
        })
        .collect()
}

fn versions(crd: &Value) -> Vec<&Value> {
    crd.pointer("/spec/versions").and_then(Value::as_array).into_iter().flatten().collect()
}

fn dropped_stored_version(defined: &Defined) -> Option<String> {
    let stored = defined.old.as_ref()?.pointer("/status/storedVersions")?.as_array()?;
    let known: Vec<&str> =
        versions(&defined.new).iter().filter_map(|version| version["name"].as_str()).collect();
    let dropped = stored.iter().filter_map(Value::as_str).find(|version| !known.contains(version));
    dropped.map(str::to_owned)
}

pub(super) fn findings(observed: &Observed) -> Vec<Finding> {
    let mut found = Vec::new();
    for defined in observed.defined.iter().filter(|defined| defined.refusal.is_none()) {
        let Some(old) = &defined.old else { continue };
        if observed.variant == Variant::Plain {
            found.extend(of_objects(observed, defined, old));
            found.extend(stored_at_other_version(defined, old));
        }
    }
    let again = observed.old_again.iter().map(|tried| old_manifest(observed, tried));
    found.extend(again);
    let anew = observed.old_anew.iter().map(|tried| {
        let object = object(tried);
        let title = format!("{} of {} can be made no more: {object}", tried.place, observed.from);
        Finding::new(Level::Error, Class::OldManifestNotNew, object, title)
            .fields(tried.fields.clone())
            .line(tried.refusal.clone())
            .line("objects that exist may stay as they are; a new one like them is refused")
            .fix("allow the value, or make the change one release after its deprecation")
    });
    found.extend(anew);
    found.extend(observed.new.iter().map(|tried| new_manifest(observed, tried)));
    found
}

fn object(tried: &Tried) -> String {
    let kind = tried.object["kind"].as_str().unwrap_or_default();
    let name = meta::name(&tried.object).unwrap_or_default();
    match meta::namespace(&tried.object) {
        Some(namespace) => format!("{kind} {namespace}/{name}"),
        None => format!("{kind} {name}"),
    }
}

/// GitOps applies the manifests of users again and again.
fn old_manifest(observed: &Observed, tried: &Tried) -> Finding {
    let object = object(tried);
    let version = tried.object["apiVersion"].as_str().unwrap_or_default();
    let unserved = tried.refusal.contains("is not served") || tried.refusal.contains("does not serve");
    let title = match (unserved, tried.fields.is_empty()) {
        (true, _) => format!("{object}: {version} is not served any more"),
        (false, false) => {
            format!("{object}: {} is refused when it is applied again", some_of(&tried.fields, 3))
        }
        (false, true) => format!("{object} is refused when it is applied again"),
    };
    let fields = if unserved { vec![".apiVersion".to_owned()] } else { tried.fields.clone() };
    Finding::new(Level::Error, Class::OldManifestRefused, object, title)
        .fields(fields)
        .line(format!("{} of {}: {}", tried.place, observed.from, tried.refusal))
        .line("users who keep their manifests in git apply them again, and so does GitOps")
        .fix(match unserved {
            true => "serve the old version for some releases more, deprecated",
            false => "keep the field, or accept and ignore it for some releases",
        })
}

fn new_manifest(observed: &Observed, tried: &Tried) -> Finding {
    let object = object(tried);
    let title = match tried.fields.is_empty() {
        true => format!("{object} of {} cannot be applied to the old CRD", observed.to),
        false => {
            format!("{object}: {} is not in the old CRD and would be left out", some_of(&tried.fields, 3))
        }
    };
    Finding::new(Level::Hint, Class::NewManifestRefused, object, title)
        .fields(tried.fields.clone())
        .line(format!("{}: {}", tried.place, tried.refusal))
        .fix("apply the CRDs before the operator: `helm upgrade` leaves them as they are")
}

/// Objects that lose fields or are refused at their next change.
fn of_objects(observed: &Observed, defined: &Defined, old: &Value) -> Vec<Finding> {
    let kind = defined.new.pointer("/spec/names/kind").and_then(Value::as_str).unwrap_or_default();
    let group = defined.new.pointer("/spec/group").and_then(Value::as_str).unwrap_or_default();
    let mine = observed.before.0.iter().filter(|(key, _)| key.kind == kind && key.group == group);
    let objects: Vec<Arc<Value>> = mine.map(|(_, object)| Arc::clone(object)).collect();
    let mut changes = impact::compare(Some(old), &defined.new);
    let live = impact::live(Some(old), &defined.new, &objects, &mut changes);
    let mut found = Vec::new();
    let mut lost: BTreeMap<String, Vec<&impact::Lost>> = BTreeMap::new();
    for one in live.lost.iter().filter(|one| !one.path.starts_with("status")) {
        lost.entry(one.object.to_string()).or_default().push(one);
    }
    for (object, all) in lost {
        let fields: Vec<String> = all.iter().map(|one| format!(".{}", one.path)).collect();
        let title = format!("{object}: {} is lost", some_of(&fields, 3));
        let what = all.iter().map(|one| format!("- .{}: {}", one.path, one.value));
        found.push(
            Finding::new(Level::Error, Class::FieldLost, object, title)
                .fields(fields.clone())
                .lines(what.take(6))
                .line("the new schema does not have it: the API server leaves it out at every read")
                .fix("keep the field, deprecated, until no stored object has it"),
        );
    }
    let mut broken: BTreeMap<String, Vec<&impact::Broken>> = BTreeMap::new();
    for one in live.broken.iter().filter(|one| !one.untouched_update_passes) {
        broken.entry(one.object.to_string()).or_default().push(one);
    }
    for (object, all) in broken {
        let fields: Vec<String> = all.iter().map(|one| format!(".{}", one.path)).collect();
        let title = format!("{object}: {} is refused at its next change", some_of(&fields, 3));
        found.push(
            Finding::new(Level::Error, Class::ObjectRefused, object, title)
                .fields(fields.clone())
                .lines(all.iter().map(|one| one_line(&format!(".{}: {}", one.path, one.message))).take(4))
                .fix("accept what is stored"),
        );
    }
    found
}

/// Objects stay stored at the version that they were written at.
fn stored_at_other_version(defined: &Defined, old: &Value) -> Option<Finding> {
    let storage = |crd: &Value| {
        let found = versions(crd).into_iter().find(|version| version["storage"] == true);
        found.and_then(|version| version["name"].as_str()).map(str::to_owned)
    };
    let (before, after) = (storage(old)?, storage(&defined.new)?);
    if before == after {
        return None;
    }
    let served = versions(&defined.new)
        .iter()
        .any(|version| version["name"] == before.as_str() && version["served"] == true);
    let name = &defined.name;
    let title = format!("{name} is stored at {after} from now on, and objects that exist stay at {before}");
    let also = if served { "" } else { ", which is not served any more" };
    Some(
        Finding::new(Level::Hint, Class::StoredVersion, name.clone(), title)
            .fields(vec![".status.storedVersions".to_owned()])
            .line(format!("status.storedVersions keeps {before}{also}: a later release cannot drop it"))
            .fix(format!(
                "rewrite them once, `kubectl get {name} -A -o json | kubectl replace -f -`, then set status.storedVersions to \
                 [{after}]"
            )),
    )
}

impl Tried {
    /// A manifest that was refused with this answer.
    pub(crate) fn refused(place: &str, object: &Value, refusal: &str, status: &Value) -> Tried {
        let mut fields = causes(status);
        if fields.is_empty() {
            fields = causes(&serde_json::json!({ "message": refusal }));
        }
        Tried { place: place.to_owned(), object: object.clone(), refusal: one_line(refusal), fields }
    }
}
