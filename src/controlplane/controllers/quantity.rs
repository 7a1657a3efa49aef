//! Quantities such as `500m`, `2Gi`, `1e3` as whole numbers or thousandths, for comparing.
//! Never prints them.

use serde_json::Value;

/// In thousandths, rounded up.
pub(crate) fn milli(value: Option<&Value>) -> Option<i64> {
    let value = value?;
    if let Some(number) = value.as_f64() {
        return Some((number * 1000.0).ceil() as i64);
    }
    let text = value.as_str()?.trim();
    let split = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (digits, suffix) = text.split_at(split);
    let (digits, suffix) = match suffix {
        "e" | "E" => (digits, suffix),
        _ if suffix.starts_with(['e', 'E']) && suffix[1..].parse::<i32>().is_ok() => (text, ""),
        _ => (digits, suffix),
    };
    let factor = match suffix {
        "" => 1e3,
        "n" => 1e-6,
        "u" => 1e-3,
        "m" => 1.0,
        "k" => 1e6,
        "M" => 1e9,
        "G" => 1e12,
        "T" => 1e15,
        "P" => 1e18,
        "E" => 1e21,
        "Ki" => 1e3 * 1024.0,
        "Mi" => 1e3 * 1024f64.powi(2),
        "Gi" => 1e3 * 1024f64.powi(3),
        "Ti" => 1e3 * 1024f64.powi(4),
        "Pi" => 1e3 * 1024f64.powi(5),
        "Ei" => 1e3 * 1024f64.powi(6),
        _ => return None,
    };
    Some((digits.parse::<f64>().ok()? * factor).ceil() as i64)
}

/// As a whole number, rounded up.
pub(crate) fn value(quantity: Option<&Value>) -> Option<i64> {
    milli(quantity).map(|milli| milli.saturating_add(999).div_euclid(1000))
}

#[cfg(test)]
mod tests {
    use super::{milli, value};
    use serde_json::json;

    #[test]
    fn suffixes() {
        assert_eq!(milli(Some(&json!("500m"))), Some(500));
        assert_eq!(milli(Some(&json!("2"))), Some(2000));
        assert_eq!(milli(Some(&json!(1.5))), Some(1500));
        assert_eq!(value(Some(&json!("1Ki"))), Some(1024));
        assert_eq!(value(Some(&json!("1e3"))), Some(1000));
        assert_eq!(value(Some(&json!("0.1"))), Some(1));
        assert_eq!(milli(Some(&json!("lots"))), None);
    }
}
