//! Fields that a chart has dropped and that somebody wrote without server-side apply: Helm 3, the Operator
//! SDK's operator, or a person. An apply takes away only what its own manager has applied, so these fields
//! would stay for ever; they pass to Helm's manager before the apply that drops them.

use super::Wanted;
use crate::settings::HelmCompat;
use opdev_client::{Api, ApiError, HELM_MANAGER};
use opdev_object::apply::{HandOver, dropped};
use opdev_object::fieldset::FieldSet;
use serde_json::Value;

/// Number of tries, where the object changes meanwhile.
const TRIES: usize = 5;
/// Field managers of Helm and of the Operator SDK's operator: each is the name of its program's file.
const HELMS: [&str; 4] = ["helm", "helm3", "helm4", "helm-operator"];
const RELEASE_NAME: [&str; 3] = ["metadata", "annotations", "meta.helm.sh/release-name"];

/// The fields to hand over to Helm's manager before `wanted` takes the place of `old` in a live object;
/// `None` where there are none.
pub(crate) fn plan(old: &Value, wanted: &Wanted, live: &Value, compat: HelmCompat) -> Option<HandOver> {
    // A drift that is put back, which most writes are, drops nothing.
    if old == wanted.sent() {
        return None;
    }
    HandOver::plan(live, HELM_MANAGER, |entry, fields| {
        if entry["operation"] != "Update" {
            return FieldSet::new();
        }
        let theirs = match compat {
            // A three-way patch removes what the manifest has dropped, whoever wrote it last.
            HelmCompat::V3_19 | HelmCompat::V3 => true,
            // Helm 4 takes over what its own client-side writes own.
            HelmCompat::V4_1 | HelmCompat::V4 => is_helms(entry, fields),
        };
        if theirs { dropped(fields, old, wanted.sent()) } else { FieldSet::new() }
    })
}

/// True if an entry is of Helm under any name: its program's file may have another one.
fn is_helms(entry: &Value, fields: &FieldSet) -> bool {
    let named = entry["manager"].as_str().is_some_and(|manager| HELMS.contains(&manager));
    named || !fields.intersection(&FieldSet::of_fields(&[&RELEASE_NAME])).is_empty()
}

/// Makes the dropped fields Helm's. Gives the object as it is then; `None` where nothing had to be done.
pub(crate) async fn carry_out(
    api: &Api,
    old: &Value,
    wanted: &Wanted,
    live: &Value,
    compat: HelmCompat,
) -> Result<Option<Value>, ApiError> {
    let mut newest = None;
    for tried in 1.. {
        let known = newest.as_ref().unwrap_or(live);
        let Some(given) = plan(old, wanted, known, compat) else { break };
        let patch = Value::Array(given.json_patch(known));
        match api.json_patch(&wanted.at(), &patch).await {
            Ok(now) => return Ok(Some(now)),
            Err(error) if error.is_conflict() && tried < TRIES => {
                newest = Some(api.get(&wanted.at()).await?.ok_or(error)?);
            }
            Err(error) => return Err(error),
        }
    }
    Ok(newest)
}
