//! Rows of autoscalers and disruption budgets.

use super::row::{Row, either};
use serde_json::Value;

pub const AUTOSCALER: &[&str] =
    &["Name", "Reference", "Targets", "MinPods", "MaxPods:integer", "Replicas:integer", "Age"];

pub fn autoscaler(row: Row<'_>) -> Vec<Value> {
    let reference =
        format!("{}/{}", row.text("/spec/scaleTargetRef/kind"), row.text("/spec/scaleTargetRef/name"));
    vec![
        row.name(),
        reference.into(),
        targets(row).into(),
        either(row.at("/spec/minReplicas"), "<unset>").into(),
        row.number("/spec/maxReplicas").into(),
        row.number("/status/currentReplicas").into(),
        row.age(),
    ]
}

fn targets(row: Row<'_>) -> String {
    // autoscaling/v1 knows one target: CPU.
    if let Some(wanted) = row.at("/spec/targetCPUUtilizationPercentage").as_i64() {
        let current = row.at("/status/currentCPUUtilizationPercentage").as_i64();
        let current = current.map_or("<unknown>".to_owned(), |current| format!("{current}%"));
        return format!("cpu: {current}/{wanted}%");
    }
    let metrics = row.list("/spec/metrics");
    let shown: Vec<String> = metrics
        .iter()
        .enumerate()
        .take(2)
        .map(|(index, metric)| target(metric, row.list("/status/currentMetrics").get(index)))
        .collect();
    match metrics.len() {
        0 => "<none>".to_owned(),
        more if more > 2 => format!("{} + {} more...", shown.join(", "), more - 2),
        _ => shown.join(", "),
    }
}

/// One metric: its name, what it is and what it should be.
fn target(metric: &Value, current: Option<&Value>) -> String {
    let kind = metric["type"].as_str().unwrap_or_default();
    let field = match kind {
        "Resource" => "resource",
        "ContainerResource" => "containerResource",
        "Pods" => "pods",
        "Object" => "object",
        "External" => "external",
        _ => return "<unknown type>".to_owned(),
    };
    let wanted = &metric[field]["target"];
    let now = current.map_or(&Value::Null, |current| &current[field]["current"]);
    let text = |value: &Value, unit: &str, missing: &str| match value {
        Value::Null => missing.to_owned(),
        value => format!("{}{unit}", either(value, missing)),
    };
    let (key, unit, average) = if wanted["averageUtilization"].is_number() {
        ("averageUtilization", "%", "")
    } else if wanted["averageValue"].is_null() {
        ("value", "", "")
    } else {
        ("averageValue", "", if matches!(field, "object" | "external") { " (avg)" } else { "" })
    };
    let pair =
        format!("{}/{}{average}", text(&now[key], unit, "<unknown>"), text(&wanted[key], unit, "<auto>"));
    match metric[field]["name"].as_str() {
        Some(name) if matches!(field, "resource" | "containerResource") => format!("{name}: {pair}"),
        _ => pair,
    }
}

pub const BUDGET: &[&str] =
    &["Name", "Min Available", "Max Unavailable", "Allowed Disruptions:integer", "Age"];

pub fn budget(row: Row<'_>) -> Vec<Value> {
    vec![
        row.name(),
        either(row.at("/spec/minAvailable"), "N/A").into(),
        either(row.at("/spec/maxUnavailable"), "N/A").into(),
        row.number("/status/disruptionsAllowed").into(),
        row.age(),
    ]
}
