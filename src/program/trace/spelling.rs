//! Two spellings of one value: a Go program that reads `1000m` into a quantity writes `1`, and `1h` becomes
//! `1h0m0s`.

use jiff::Timestamp;
use opdev_object::go::duration;
use serde_json::Value;

/// True if two values mean the same, however they are written.
pub(super) fn means_same(one: &Value, other: &Value) -> bool {
    if one == other {
        return true;
    }
    let (Some(one), Some(other)) = (text(one), text(other)) else { return false };
    same(quantity(&one), quantity(&other))
        || duration::parse(&one).is_ok_and(|one| duration::parse(&other).is_ok_and(|other| other == one))
        || one
            .parse::<Timestamp>()
            .is_ok_and(|time| other.parse::<Timestamp>().is_ok_and(|other| other == time))
}

fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

fn same(one: Option<f64>, other: Option<f64>) -> bool {
    let (Some(one), Some(other)) = (one, other) else { return false };
    (one - other).abs() <= one.abs().max(other.abs()) * 1e-12
}

/// A quantity of Kubernetes.
fn quantity(text: &str) -> Option<f64> {
    const UNITS: [(&str, f64); 16] = [
        ("Ki", 1024.0),
        ("Mi", 1_048_576.0),
        ("Gi", 1_073_741_824.0),
        ("Ti", 1_099_511_627_776.0),
        ("Pi", 1_125_899_906_842_624.0),
        ("Ei", 1_152_921_504_606_846_976.0),
        ("n", 1e-9),
        ("u", 1e-6),
        ("m", 1e-3),
        ("k", 1e3),
        ("M", 1e6),
        ("G", 1e9),
        ("T", 1e12),
        ("P", 1e15),
        ("E", 1e18),
        ("", 1.0),
    ];
    let (number, unit) = UNITS.iter().find_map(|(unit, times)| Some((text.strip_suffix(unit)?, times)))?;
    let digits =
        number.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'-' | b'+' | b'e' | b'E'));
    Some(number.parse::<f64>().ok().filter(|_| digits)? * unit)
}

#[cfg(test)]
mod tests {
    use super::means_same;
    use serde_json::json;

    #[test]
    fn a_value_that_go_writes_in_another_way_is_the_same() {
        for (one, other) in [
            (json!("1000m"), json!("1")),
            (json!("1000m"), json!(1)),
            (json!("1024Mi"), json!("1Gi")),
            (json!("0.5"), json!("500m")),
            (json!("1e3"), json!("1k")),
            (json!("1h"), json!("1h0m0s")),
            (json!("90s"), json!("1m30s")),
            (json!("2026-01-02T03:04:05.000Z"), json!("2026-01-02T03:04:05Z")),
            (json!({"a": 1}), json!({"a": 1})),
        ] {
            assert!(means_same(&one, &other), "{one} {other}");
        }
        for (one, other) in [
            (json!("500m"), json!("1")),
            (json!("1Gi"), json!("1G")),
            (json!("1h"), json!("1m")),
            (json!("a"), json!("b")),
            (json!("inf"), json!("infinity")),
            (json!(true), json!("true")),
            (json!(""), json!("0")),
            (json!("2026-01-02T03:04:05Z"), json!("2026-01-02T03:04:06Z")),
        ] {
            assert!(!means_same(&one, &other), "{one} {other}");
        }
    }
}
