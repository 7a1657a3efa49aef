//! Floating point numbers in Go's words: `strconv`'s shortest `%g` and `encoding/json`'s form.

/// Shortest decimal digits and the power of ten of the first one.
fn digits(value: f64) -> (String, i32) {
    let text = format!("{:e}", value.abs());
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    (mantissa.replace('.', ""), exponent.parse().unwrap_or(0))
}

fn exponential(value: f64, digits: &str, exponent: i32, width: usize) -> String {
    let sign = if value.is_sign_negative() { "-" } else { "" };
    let (head, tail) = digits.split_at(1);
    let dot = if tail.is_empty() { "" } else { "." };
    let mark = if exponent < 0 { '-' } else { '+' };
    format!("{sign}{head}{dot}{tail}e{mark}{:0width$}", exponent.abs())
}

/// Go's `strconv.FormatFloat(value, 'g', -1, 64)`: `1e+06`, `0.1`, `1e-07`.
pub fn format_g(value: f64) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    let (digits, exponent) = digits(value);
    if !(-4..6).contains(&exponent) {
        return exponential(value, &digits, exponent, 2);
    }
    format!("{value}")
}

/// The form `encoding/json` gives: plain digits from 1e-6 up to 1e21.
pub fn format_json(value: f64) -> String {
    let size = value.abs();
    if size != 0.0 && !(1e-6..1e21).contains(&size) {
        let (digits, exponent) = digits(value);
        return exponential(value, &digits, exponent, 1);
    }
    format!("{value}")
}
