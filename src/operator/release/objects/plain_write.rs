//! Writes as Helm 3 makes them: a plain create, and a patch of three states. Server-side apply refuses some
//! objects that Helm 3 and the Operator SDK's operator write: with a list key twice, with a field that its
//! kind does not have, or where a default stays that does not go with the new values.

use super::Wanted;
use super::dry_run::is_untyped;
use super::overlay::overlay;
use crate::settings::HelmCompat;
use opdev_client::{Api, ApiError, AsManager, HELM_MANAGER, MERGE, STRATEGIC};
use opdev_event::words::one_line;
use opdev_object::diff::{Change, diff};
use opdev_object::facts::facts;
use opdev_object::patch::{create_merge_patch, merge_patch};
use opdev_object::strategic;
use serde_json::{Map, Value};

/// Writes an object that server-side apply has refused, where Helm 3 would write it; with the reason why it
/// is written so.
///
/// # Errors
/// The refusal, where Helm 3 would get it, too; what the write got otherwise.
pub(crate) async fn instead(
    api: &Api,
    refused: ApiError,
    (wanted, old, live): (&Wanted, Option<&Value>, Option<&Value>),
    compat: HelmCompat,
    dry_run: bool,
) -> Result<(Value, String), ApiError> {
    let Some(why) = reason(&refused, wanted, old, live).filter(|_| compat.is_three()) else {
        return Err(refused);
    };
    match write(api, wanted, old, live, dry_run).await {
        Ok(written) => Ok((written, why)),
        // Both say no to the same object.
        Err(error) if is_invalid(&refused) && is_invalid(&error) => Err(refused),
        Err(error) => Err(error),
    }
}

fn is_invalid(error: &ApiError) -> bool {
    matches!(error, ApiError::Refused { code: 422, .. })
}

/// Why an object is written so: the reason for which server-side apply has refused it. `None` for a refusal
/// that Helm 3 would get, too.
fn reason(error: &ApiError, wanted: &Wanted, old: Option<&Value>, live: Option<&Value>) -> Option<String> {
    let ApiError::Refused { message, code, .. } = error else { return None };
    if is_untyped(message) {
        return Some(untyped_part(message));
    }
    (*code == 422 && live.is_some_and(|live| takes_more_away(wanted, old, live))).then(|| one_line(message))
}

/// The fields that the refusal names.
fn untyped_part(message: &str) -> String {
    // "failed to create typed patch object (default/web; apps/v1, Kind=Deployment): .spec…: …"
    let about = message.split_once("): ").map_or(message, |(_, about)| about);
    let about = about.strip_prefix("errors:").unwrap_or(about);
    let lines: Vec<&str> = about.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    lines.join("; ")
}

/// Returns true if Helm 3's patch takes fields away that no manifest had. An apply keeps such defaults, for
/// nobody owns them: with `strategy: {type: Recreate}` those of `rollingUpdate` stay and are refused. The
/// patch says which fields of a union remain.
fn takes_more_away(wanted: &Wanted, old: Option<&Value>, live: &Value) -> bool {
    let (patch, content) = patch(wanted, old, live);
    let mut patched = live.clone();
    match facts().schema(&wanted.resource.gvk) {
        Some(schema) if content == STRATEGIC => {
            if strategic::apply(&mut patched, &patch, &schema).is_err() {
                return false;
            }
        }
        _ => merge_patch(&mut patched, &patch),
    }
    let had = |change: &Change| old.is_some_and(|old| change.path.get(old).is_some());
    let is_gone = |change: &Change| change.old.is_some() && change.new.is_none();
    diff(live, &patched).iter().any(|change| is_gone(change) && !had(change))
}

/// Creates an object, or patches the live one. `old` is what the manifest before said of it.
async fn write(
    api: &Api,
    wanted: &Wanted,
    old: Option<&Value>,
    live: Option<&Value>,
    dry_run: bool,
) -> Result<Value, ApiError> {
    let at = wanted.at();
    let by = AsManager { manager: HELM_MANAGER, dry_run };
    let Some(live) = live else {
        return api.create_as(at.resource, at.namespace, wanted.sent(), by).await;
    };
    let (patch, content) = patch(wanted, old, live);
    if patch.as_object().is_some_and(Map::is_empty) {
        return Ok(live.clone());
    }
    api.patch_as(&at, content, &patch, by).await
}

/// The patch that brings a live object to `wanted` and removes what `old` had: of a built-in kind a strategic
/// one.
fn patch(wanted: &Wanted, old: Option<&Value>, live: &Value) -> (Value, &'static str) {
    let new = wanted.sent();
    let old = old.unwrap_or(new);
    if let Some(schema) = facts().schema(&wanted.resource.gvk)
        && let Ok(patch) = strategic::three_way(old, new, live, &schema, true)
    {
        return (patch, STRATEGIC);
    }
    let mut target = live.clone();
    merge_patch(&mut target, &removals(old, new));
    overlay(&mut target, new);
    (create_merge_patch(live, &target), MERGE)
}

/// The merge patch that removes what only `old` has.
fn removals(old: &Value, new: &Value) -> Value {
    let (Value::Object(old), Value::Object(new)) = (old, new) else { return Value::Object(Map::new()) };
    let gone = old.iter().filter_map(|(name, old)| match new.get(name) {
        None => Some((name.clone(), Value::Null)),
        Some(new) if old.is_object() && new.is_object() => Some((name.clone(), removals(old, new))),
        Some(_) => None,
    });
    Value::Object(gone.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;
    use opdev_client::Resource;
    use opdev_object::meta::Gvk;
    use serde_json::json;
    use std::sync::Arc;

    fn wanted(gvk: Gvk, object: Value) -> Wanted {
        let resource = Resource {
            gvk,
            plural: "things".to_owned(),
            namespaced: true,
            verbs: Vec::new(),
            has_status: false,
        };
        Wanted::new(object, Arc::new(resource))
    }

    #[test]
    fn a_patch_has_changes_and_what_the_manifest_has_dropped() {
        let container =
            |env: Value| json!({"spec": {"template": {"spec": {"containers": [{"name": "c", "env": env}]}}}});
        let old = container(json!([{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]));
        let new = container(json!([{"name": "B", "value": "3"}]));
        let live = container(
            json!([{"name": "A", "value": "1"}, {"name": "B", "value": "2"}, {"name": "C", "value": "x"}]),
        );
        let deployment = wanted(Gvk::new("apps", "v1", "Deployment"), new);
        let (patch, content) = patch(&deployment, Some(&old), &live);
        let env = &patch["spec"]["template"]["spec"]["containers"][0]["env"];
        assert_eq!(content, STRATEGIC);
        assert!(env.as_array().unwrap().contains(&json!({"$patch": "delete", "name": "A"})), "{env}");
        assert!(env.as_array().unwrap().contains(&json!({"name": "B", "value": "3"})), "{env}");
        assert!(!env.to_string().contains('C'), "{env}");
    }

    #[test]
    fn a_custom_resource_is_merged() {
        let thing =
            wanted(Gvk::new("my.domain", "v1", "Thing"), json!({"spec": {"a": {"x": 1}, "list": [1]}}));
        let old = json!({"spec": {"a": {"x": 1, "y": 2}, "list": [1], "gone": 1}});
        let live = json!({"spec": {"a": {"x": 5, "y": 2}, "list": [1], "gone": 1, "other": 1}});
        let (patch, content) = patch(&thing, Some(&old), &live);
        assert_eq!(content, MERGE);
        assert_eq!(patch, json!({"spec": {"a": {"x": 1, "y": null}, "gone": null}}));
    }

    #[test]
    fn a_refusal_has_a_reason_where_helm_3_takes_more_away() {
        let invalid = ApiError::Refused {
            code: 422,
            reason: "Invalid".to_owned(),
            message: "Deployment.apps \"web\" is invalid: spec.strategy.rollingUpdate: Forbidden: no"
                .to_owned(),
            details: None,
        };
        let rolling = json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%"}});
        let live = json!({"spec": {"replicas": 1, "strategy": rolling}});
        let of = |spec: Value| wanted(Gvk::new("apps", "v1", "Deployment"), json!({"spec": spec}));
        let before = json!({"spec": {"replicas": 1}});
        let told =
            reason(&invalid, &of(json!({"strategy": {"type": "Recreate"}})), Some(&before), Some(&live));
        expect![[r#"Deployment.apps "web" is invalid: spec.strategy.rollingUpdate: Forbidden: no"#]]
            .assert_eq(&told.unwrap());
        // A value that may not change is refused in both ways.
        let fixed = of(json!({"replicas": 1, "selector": {"matchLabels": {"a": "b"}}}));
        assert_eq!(reason(&invalid, &fixed, Some(&before), Some(&live)), None);
        assert_eq!(reason(&invalid, &fixed, None, None), None, "a create");
        // Nor does it help that lists differ, or that a field of the manifest before goes.
        let env = |count: usize| {
            let env: Vec<Value> =
                (0..count).map(|at| json!({"name": at.to_string(), "value": "x"})).collect();
            json!({"template": {"spec": {"containers": [{"name": "c", "env": env}]}},
                "selector": {"matchLabels": {"a": count}}})
        };
        for (before, after) in [(1, 2), (2, 1)] {
            let (old, live) = (json!({"spec": env(before)}), json!({"spec": env(before)}));
            assert_eq!(reason(&invalid, &of(env(after)), Some(&old), Some(&live)), None, "{before} {after}");
        }
    }

    #[test]
    fn only_a_refusal_of_apply_itself_has_a_reason() {
        let object = wanted(Gvk::new("", "v1", "ConfigMap"), json!({}));
        let reason = |error: &ApiError| super::reason(error, &object, None, None);
        let refused = |message: &str| ApiError::Refused {
            code: 500,
            reason: String::new(),
            message: message.to_owned(),
            details: None,
        };
        let undeclared = "failed to create typed patch object (default/w; apps/v1, Kind=Deployment): .spec.replica: field not \
                          declared in schema";
        assert_eq!(reason(&refused(undeclared)).unwrap(), ".spec.replica: field not declared in schema");
        let several =
            "failed to create typed patch object (default/w; v1, Kind=Service): errors:\n  .a: x\n  .b: y";
        assert_eq!(reason(&refused(several)).unwrap(), ".a: x; .b: y");
        assert_eq!(reason(&refused("spec.selector: field is immutable")), None);
    }
}
