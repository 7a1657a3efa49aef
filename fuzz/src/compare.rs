//! Our answer to a case, beside Helm's.

use crate::entry::render_files;
use opdev_helm::chart::FileSet;
use opdev_helm::engine::Compat;
use opdev_object::yaml;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Compares the meaning of both, and gives ours as text where they differ.
pub fn differs(case: &Value, helm: &Value, compat: Compat) -> Option<Difference> {
    if helm.get("unstable").is_some() || helm.get("crash").is_some() {
        return None;
    }
    if let Some(text) = case.get("yaml").and_then(Value::as_str) {
        return yaml_differs(text, helm, compat);
    }
    let (got, want) = if let Some(text) = case.get("manifest").and_then(Value::as_str) {
        (manifest(text, compat), helm_text(helm, ""))
    } else {
        (program(case, compat), helm_text(helm, "probe/templates/NOTES.txt"))
    };
    (without_addresses(&got) != without_addresses(&want)).then_some(Difference { what: "output", got, want })
}

/// One difference.
pub struct Difference {
    pub what: &'static str,
    pub got: String,
    pub want: String,
}

fn helm_text(helm: &Value, file: &str) -> String {
    if let Some(error) = helm.get("error").and_then(Value::as_str) {
        return format!("error: {error}");
    }
    let hex = helm.pointer("/out").and_then(|out| out.get(file)).and_then(Value::as_str).unwrap_or_default();
    let bytes: Vec<u8> =
        (0..hex.len() / 2).filter_map(|i| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).ok()).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

fn files(extra: &[(&str, &str)]) -> FileSet {
    let chart = ("Chart.yaml", "apiVersion: v2\nname: probe\nversion: 0.1.0\n");
    std::iter::once(&chart).chain(extra).map(|(path, text)| (*path, text.as_bytes())).collect()
}

/// Go prints where a pointer points to.
fn without_addresses(text: &str) -> String {
    let mut parts = text.split("0x");
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let digits = part.bytes().take_while(u8::is_ascii_hexdigit).count();
        plain.push_str(if digits > 5 { "0xADDRESS" } else { "0x" });
        plain.push_str(if digits > 5 { &part[digits..] } else { part });
    }
    plain
}

/// The output of a program.
fn program(case: &Value, compat: Compat) -> String {
    let text = |key: &str| case.pointer(key).and_then(Value::as_str).unwrap_or_default();
    let templates = case.get("files").and_then(Value::as_object);
    let templates =
        templates.into_iter().flatten().filter_map(|(name, text)| Some((name.as_str(), text.as_str()?)));
    let all: Vec<_> = std::iter::once(("values.yaml", text("/values"))).chain(templates).collect();
    match render_files(&files(&all), compat) {
        Ok(rendered) => rendered.notes,
        Err(error) => format!("error: {error}"),
    }
}

fn manifest(text: &str, compat: Compat) -> String {
    let rendered = BTreeMap::from([("probe/templates/x.yaml".to_owned(), text.to_owned())]);
    match opdev_helm::manifest::sort(&rendered, compat) {
        Err(error) => format!("error: {}", error.message),
        Ok(sorted) => {
            let mut out = String::new();
            for document in sorted.documents {
                out.push_str(&format!("---\n# Source: {}\n{}\n", document.path, document.part.content));
            }
            for hook in sorted.hooks {
                let events: Vec<_> = hook
                    .events
                    .iter()
                    .filter_map(|event| Some(serde_json::to_value(event).ok()?.as_str()?.to_owned()))
                    .collect();
                out.push_str(&format!(
                    "---\n# Hook: {} {} [{}]\n{}\n",
                    hook.name,
                    hook.weight,
                    events.join(" "),
                    hook.manifest
                ));
            }
            out
        }
    }
}

fn yaml_differs(text: &str, helm: &Value, compat: Compat) -> Option<Difference> {
    let want = |key: &str| {
        helm.pointer(&format!("/yaml/{key}")).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let said = |error: yaml::Error| format!("error: {error}");
    let json = yaml::from_str(text).map_err(said);
    // Two numbers are one if they are written alike; keys of both are sorted.
    let plain = |text: &str| {
        serde_json::from_str::<Value>(text).map_or_else(|_| text.to_owned(), |value| float(value).to_string())
    };
    let got = json.as_ref().map_or_else(Clone::clone, ToString::to_string);
    if plain(&got) != plain(&want("json").replacen("error: ", "error: error converting YAML to JSON: ", 1)) {
        return Some(Difference { what: "json", got, want: want("json") });
    }
    let got = match yaml::values_from_str(text) {
        Ok(value) => {
            let mut writer = yaml::Writer::new();
            yaml::emit::write_json(&mut writer, &value);
            writer.finish_for_template()
        }
        Err(error) => format!("error: {error}"),
    };
    // Templates see nothing of why a value cannot be written.
    let wanted = match (json.is_ok(), want("yaml")) {
        (true, error) if error.starts_with("error: ") => String::new(),
        (_, text) => text.strip_suffix('\n').map_or(text.clone(), str::to_owned),
    };
    if got != wanted {
        return Some(Difference { what: "yaml", got, want: wanted });
    }
    let got = values(text, compat);
    let wanted = want("values");
    if plain(&got) != plain(&wanted) {
        return Some(Difference { what: "values", got, want: wanted });
    }
    None
}

/// The value with every number that has no exact integer form as a float.
fn float(value: Value) -> Value {
    match value {
        Value::Number(number) => {
            let value = number.as_f64().unwrap_or_default();
            // Our own reader of this file rounds its last digit.
            if value.fract() == 0.0 && value.abs() < 9e15 {
                json!(value as i64)
            } else {
                json!(format!("{value:.13e}"))
            }
        }
        Value::Array(items) => items.into_iter().map(float).collect(),
        Value::Object(map) => {
            map.into_iter().map(|(key, value)| (key, float(value))).collect::<serde_json::Map<_, _>>().into()
        }
        other => other,
    }
}

/// The values of a `values.yaml` with this text.
fn values(text: &str, compat: Compat) -> String {
    // A chart's files lose one byte order mark on the way in; these come to Helm without a way.
    let text = if text.starts_with('\u{feff}') { format!("\u{feff}{text}") } else { text.to_owned() };
    let chart = files(&[("values.yaml", &text)]);
    match opdev_helm::chart::Chart::load_for(&chart, compat) {
        Ok(chart) => chart.values.to_string(),
        Err(error) => format!("error: {}", error.message),
    }
}

/// A difference as a JSON line.
pub fn line(seed: u64, case: &Value, difference: &Difference) -> String {
    json!({"seed": seed, "what": difference.what, "got": difference.got, "want": difference.want, "case": case}).to_string()
}
