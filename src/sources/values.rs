//! The values a chart gets: the custom resource's spec with the operator's overrides on top; and where each
//! effective value comes from. Pure.

use super::ChartReconciler;
use super::chart_problems::chart_secrets;
use anyhow::{Context, anyhow};
use opdev_event::{EffectiveValue, ValueFrom, mask};
use opdev_helm::engine::Compat;
use opdev_helm::explain::{self, Explained, Layer, Origin};
use opdev_helm::values;
use opdev_object::meta;
use serde_json::{Map, Value, json};

/// The names of the layers of a release's values.
const CUSTOM_RESOURCE: &str = "custom resource";
const OVERRIDE: &str = "override in watches.yaml";
/// The longest value that is told, in characters.
const LONGEST: usize = 400;

/// The spec of a custom resource.
pub fn spec(object: &Value) -> anyhow::Result<Value> {
    match object.get("spec") {
        Some(spec @ Value::Object(_)) => Ok(spec.clone()),
        _ => Err(anyhow!(
            "failed to get spec: expected map[string]interface{{}}; {} has no spec that is an object",
            meta::name(object).unwrap_or_default()
        )),
    }
}

/// The spec with each override set: as a string, or, with the hybrid engine, as `--set` reads it.
pub fn with_overrides(spec: &Value, reconciler: &ChartReconciler) -> anyhow::Result<Value> {
    if reconciler.options.is_hybrid() {
        // Into what is there: `list[1]` of the library changes the second item.
        let mut values = spec.clone();
        set(&mut values, reconciler)?;
        return Ok(values);
    }
    Ok(merge(spec, &forced(reconciler)?))
}

/// The values that the overrides are.
fn forced(reconciler: &ChartReconciler) -> anyhow::Result<Value> {
    let mut forced = Value::Object(Map::new());
    set(&mut forced, reconciler)?;
    Ok(forced)
}

fn set(into: &mut Value, reconciler: &ChartReconciler) -> anyhow::Result<()> {
    let hybrid = reconciler.options.is_hybrid();
    for (key, value) in &reconciler.overrides {
        let text = format!("{key}={value}");
        let done =
            if hybrid { values::parse_set(into, &text) } else { values::parse_set_string(into, &text) };
        done.with_context(|| format!("failed to parse override {key:?}"))?;
    }
    Ok(())
}

/// Every effective value that a custom resource's release has, and where it comes from, masked.
///
/// # Errors
/// What Helm says about values that do not go together, or that there is no chart or no spec.
pub fn effective(reconciler: &ChartReconciler, object: &Value) -> anyhow::Result<Vec<EffectiveValue>> {
    let chart = reconciler.chart.as_ref().ok_or_else(|| anyhow!("{} has not loaded yet", reconciler.path))?;
    let spec = spec(object)?;
    let user = with_overrides(&spec, reconciler)?;
    let layers = [
        Layer { name: CUSTOM_RESOURCE.to_owned(), values: spec, text: None },
        Layer { name: OVERRIDE.to_owned(), values: forced(reconciler)?, text: None },
    ];
    let (explained, _) = explain::effective(chart, &user, &layers, Compat::V3)?;
    let mut secrets = mask::secrets(&user);
    chart_secrets(chart, &mut secrets);
    let secrets = mask::known(secrets);
    Ok(explained.iter().map(|one| masked(one, &reconciler.path, &secrets)).collect())
}

/// One value as it may be shown: masked by its path, as it would be in its custom resource, and by what is
/// known to be secret elsewhere.
fn masked(one: &Explained, folder: &str, secrets: &[String]) -> EffectiveValue {
    let whole = one.path.iter().rev().fold(one.value.clone(), |inner, key| json!({key: inner}));
    let whole = mask::object(&json!({"spec": whole}));
    let own = one.path.iter().try_fold(&whole["spec"], |value, key| value.get(key));
    let mut value = own.cloned().unwrap_or_else(|| Value::from(mask::MASK));
    mask::value(&mut value, secrets);
    let (from, origin) = told(&one.origin, folder);
    EffectiveValue { path: one.dotted(), value: explain::shown(&value, LONGEST), from, origin }
}

/// Where a value comes from, files named from the project's root on.
fn told(origin: &Origin, folder: &str) -> (ValueFrom, String) {
    match origin {
        Origin::File(name, _) => {
            let from = if name.contains('/') { ValueFrom::Subchart } else { ValueFrom::Default };
            (from, format!("{folder}/{origin}"))
        }
        Origin::Given(name, _) if name == OVERRIDE => (ValueFrom::Override, name.clone()),
        Origin::Given(name, _) => (ValueFrom::CustomResource, name.clone()),
        Origin::Global(inner) => (ValueFrom::Global, format!("{} (global)", told(inner, folder).1)),
        Origin::Imported(_) => (ValueFrom::Subchart, origin.to_string()),
        Origin::Unknown => (ValueFrom::Unknown, origin.to_string()),
    }
}

/// Objects merge field by field, everything else is replaced.
fn merge(base: &Value, over: &Value) -> Value {
    match (base, over) {
        (Value::Object(base), Value::Object(over)) => {
            let mut merged = base.clone();
            for (key, value) in over {
                let value = base.get(key).map_or_else(|| value.clone(), |base| merge(base, value));
                merged.insert(key.clone(), value);
            }
            Value::Object(merged)
        }
        (_, over) => over.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Allow;
    use crate::chart_options::{ChartEngine, ChartOptions};
    use opdev_helm::chart::{Chart, FileSet};
    use std::collections::BTreeMap;

    #[test]
    fn overrides_win_as_strings_and_lists_are_replaced() {
        let spec = json!({"image": {"tag": "1", "name": "web"}, "list": [1, 2], "replicas": 3});
        let overrides = BTreeMap::from([
            ("image.tag".to_owned(), "2".to_owned()),
            ("replicas".to_owned(), "5".to_owned()),
            ("list".to_owned(), "{a}".to_owned()),
        ]);
        let mut reconciler = ChartReconciler {
            path: String::new(),
            chart: None,
            watch_dependents: true,
            overrides,
            dry_run_option: String::new(),
            options: ChartOptions::default(),
            allow: Allow::default(),
            script: None,
        };
        assert_eq!(
            with_overrides(&spec, &reconciler).unwrap(),
            json!({"image": {"tag": "2", "name": "web"}, "list": ["a"], "replicas": "5"})
        );
        // The helm-operator-plugins library reads them as `--set` does.
        reconciler.options.engine = Some(ChartEngine::Hybrid);
        assert_eq!(
            with_overrides(&spec, &reconciler).unwrap(),
            json!({"image": {"tag": 2, "name": "web"}, "list": ["a"], "replicas": 5})
        );
    }

    #[test]
    fn every_effective_value_has_an_origin_and_secrets_are_masked() {
        let files: FileSet = [
            ("Chart.yaml", "apiVersion: v2\nname: web\nversion: 1.0.0\n"),
            (
                "values.yaml",
                "replicas: 1\nimage:\n  tag: one\nadmin:\n  password: hunter22\nglobal: {zone: z}\nurl: http://x:hunter22@y\n",
            ),
            ("charts/db/Chart.yaml", "apiVersion: v2\nname: db\nversion: 0.1.0\n"),
            ("charts/db/values.yaml", "size: 5Gi\nenv:\n- {name: API_TOKEN, value: swordfish}\n"),
        ]
        .into_iter()
        .map(|(path, text)| (path, text.as_bytes()))
        .collect();
        let reconciler = ChartReconciler {
            path: "charts/web".to_owned(),
            chart: Some(Chart::load(&files).unwrap().into()),
            watch_dependents: true,
            overrides: BTreeMap::from([("image.tag".to_owned(), "two".to_owned())]),
            dry_run_option: String::new(),
            options: ChartOptions::default(),
            allow: Allow::default(),
            script: None,
        };
        let object = json!({"metadata": {"name": "a"}, "spec": {"replicas": 3, "image": {"tag": "three"},
            "apiToken": "tell-nobody"}});
        let said: Vec<String> = effective(&reconciler, &object)
            .unwrap()
            .iter()
            .map(|one| format!("{} {} {:?} {}", one.path, one.value, one.from, one.origin))
            .collect();
        let wanted = [
            "admin.password \"••••••\" Default charts/web/values.yaml:5",
            "apiToken \"••••••\" CustomResource custom resource",
            "db.env [{\"name\":\"API_TOKEN\",\"value\":\"••••••\"}] Subchart charts/web/charts/db/values.yaml:2",
            "db.global.zone \"z\" Global charts/web/values.yaml:6 (global)",
            "db.size \"5Gi\" Subchart charts/web/charts/db/values.yaml:1",
            "global.zone \"z\" Default charts/web/values.yaml:6",
            "image.tag \"two\" Override override in watches.yaml",
            "replicas 3 CustomResource custom resource",
            "url \"http://x:••••••@y\" Default charts/web/values.yaml:7",
        ];
        assert_eq!(said, wanted);
        assert!(effective(&reconciler, &json!({})).is_err(), "no spec");
    }

    #[test]
    fn a_missing_spec_is_an_error_in_the_engines_words() {
        assert!(
            spec(&json!({"metadata": {"name": "a"}}))
                .unwrap_err()
                .to_string()
                .starts_with("failed to get spec: expected map[string]interface{}")
        );
        assert!(spec(&json!({"spec": []})).is_err());
        assert_eq!(spec(&json!({"spec": {}})).unwrap(), json!({}));
    }
}
