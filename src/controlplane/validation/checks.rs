//! The checks that many kinds share: ranges, enumerations, ports, percentages, labels, selectors. Each takes
//! the field's path and adds what is wrong.

use opdev_apimachinery::error::Cause;
use opdev_apimachinery::resource::names;
use opdev_apimachinery::resource::quantity;
use serde_json::Value;

/// Returns true if a field is missing, null, or an empty text.
pub fn absent(value: &Value) -> bool {
    value.is_null() || value.as_str().is_some_and(str::is_empty)
}

/// The items of a list; none where there is no list.
pub fn items(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// The entries of a map; none where there is no map.
pub(super) fn entries(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten()
}

pub(super) fn at_least_zero(field: &str, value: &Value, causes: &mut Vec<Cause>) {
    if value.as_i64().is_some_and(|n| n < 0) {
        causes.push(Cause::invalid(field, value, "must be greater than or equal to 0"));
    }
}

/// Refuses a changed field.
pub fn immutable(field: &str, new: &Value, old: &Value, causes: &mut Vec<Cause>) {
    if new != old {
        causes.push(Cause::invalid(field, new, "field is immutable"));
    }
}

/// Checks that a value is one of a few; required where it is missing.
pub(super) fn one_of(field: &str, value: &Value, known: &[&str], causes: &mut Vec<Cause>) {
    match value.as_str().unwrap_or_default() {
        "" => causes.push(Cause::required(field, "")),
        text if known.contains(&text) => {}
        _ => causes.push(Cause::not_supported(field, value, known)),
    }
}

/// Checks that a value is one of a few, or absent.
pub(super) fn optional(field: &str, value: &Value, known: &[&str], causes: &mut Vec<Cause>) {
    if !value.is_null() && !value.as_str().is_some_and(|text| known.contains(&text)) {
        causes.push(Cause::not_supported(field, value, known));
    }
}

/// A text that has to satisfy a rule for names.
pub(super) fn named(field: &str, value: &Value, rule: fn(&str) -> Vec<String>, causes: &mut Vec<Cause>) {
    for wrong in rule(value.as_str().unwrap_or_default()) {
        causes.push(Cause::invalid(field, value, &wrong));
    }
}

/// A port's number.
pub(super) fn port_number(field: &str, value: &Value, causes: &mut Vec<Cause>) {
    let number = value.as_i64().unwrap_or(0);
    if !(1..=65535).contains(&number) {
        let detail = "must be between 1 and 65535, inclusive";
        causes.push(Cause::invalid(field, &Value::from(number), detail));
    }
}

/// A port's number or name.
pub(super) fn port(field: &str, value: &Value, causes: &mut Vec<Cause>) {
    match value.as_str() {
        Some(_) => named(field, value, names::port, causes),
        None => port_number(field, value, causes),
    }
}

/// A user's or group's number.
pub(super) fn identity(field: &str, value: &Value, causes: &mut Vec<Cause>) {
    if value.as_i64().is_some_and(|id| !(0..=i64::from(i32::MAX)).contains(&id)) {
        let detail = "must be between 0 and 2147483647, inclusive";
        causes.push(Cause::invalid(field, value, detail));
    }
}

fn percent(value: &Value) -> Option<i64> {
    let digits = value.as_str()?.strip_suffix('%')?;
    let whole = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    whole.then(|| digits.parse().unwrap_or(i64::MAX))
}

/// A number that is not negative, or a percentage.
pub(super) fn share(field: &str, value: &Value, causes: &mut Vec<Cause>) {
    match value {
        Value::String(_) if percent(value).is_none() => {
            let detail = "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')";
            causes.push(Cause::invalid(field, value, detail));
        }
        Value::String(_) => {}
        _ => at_least_zero(field, value, causes),
    }
}

/// A percentage of at most the whole.
pub(super) fn at_most_all(field: &str, value: &Value, causes: &mut Vec<Cause>) {
    if percent(value).is_some_and(|percent| percent > 100) {
        causes.push(Cause::invalid(field, value, "must not be greater than 100%"));
    }
}

/// The number in a number or percentage; 0 in anything else.
pub(super) fn share_value(value: &Value) -> i64 {
    percent(value).or_else(|| value.as_i64()).unwrap_or_default()
}

/// Labels: their keys and values.
pub(super) fn labels(field: &str, labels: &Value, causes: &mut Vec<Cause>) {
    for (key, value) in entries(labels) {
        named(field, &Value::from(key.as_str()), names::qualified_name, causes);
        named(field, value, names::label_value, causes);
    }
}

/// Annotations: their keys.
pub(super) fn annotations(field: &str, annotations: &Value, causes: &mut Vec<Cause>) {
    for (key, _) in entries(annotations) {
        for wrong in names::qualified_name(&key.to_lowercase()) {
            causes.push(Cause::invalid(field, &Value::from(key.as_str()), &wrong));
        }
    }
}

/// A label selector, which may be missing.
pub(super) fn selector(field: &str, selector: &Value, causes: &mut Vec<Cause>) {
    labels(&format!("{field}.matchLabels"), &selector["matchLabels"], causes);
    for (i, rule) in items(&selector["matchExpressions"]).iter().enumerate() {
        let place = format!("{field}.matchExpressions[{i}]");
        let values = items(&rule["values"]);
        match rule["operator"].as_str().unwrap_or_default() {
            "In" | "NotIn" => {
                if values.is_empty() {
                    let detail = "must be specified when `operator` is 'In' or 'NotIn'";
                    causes.push(Cause::required(format!("{place}.values"), detail));
                }
            }
            "Exists" | "DoesNotExist" => {
                if !values.is_empty() {
                    let detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
                    causes.push(Cause::forbidden(format!("{place}.values"), detail));
                }
            }
            _ => {
                let detail = "not a valid selector operator";
                causes.push(Cause::invalid(format!("{place}.operator"), &rule["operator"], detail));
            }
        }
        named(&format!("{place}.key"), &rule["key"], names::qualified_name, causes);
        for (j, value) in values.iter().enumerate() {
            named(&format!("{place}.values[{j}]"), value, names::label_value, causes);
        }
    }
}

/// Returns true if a selector has nothing in it.
pub(super) fn selects_all(selector: &Value) -> bool {
    let empty = |field: &str| match &selector[field] {
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty(),
        _ => true,
    };
    empty("matchLabels") && empty("matchExpressions")
}

/// A quantity in billionths; `None` where the value is none.
pub(super) fn amount(value: &Value) -> Option<i128> {
    quantity::nano(value.as_str()?)
}

/// A quantity that is not negative.
pub(super) fn quantity_at_least_zero(field: &str, value: &Value, causes: &mut Vec<Cause>) {
    if amount(value).is_some_and(|amount| amount < 0) {
        causes.push(Cause::invalid(field, value, "must be greater than or equal to 0"));
    }
}

/// A wrong Go struct as errors print it: fields by their Go names, in this order, missing ones as null.
pub(super) fn wrong_struct(field: &str, fields: &[(&str, &Value)], detail: &str) -> Cause {
    let shown: Vec<String> = fields.iter().map(|(name, value)| format!("{name:?}:{value}")).collect();
    let text = format!("Invalid value: {{{}}}: {detail}", shown.join(","));
    Cause::text("FieldValueInvalid", field, text)
}
