//! The meaning of a plain scalar in go-yaml v2: YAML 1.1 words, octals, underscores, timestamps, base-60
//! look-alikes. Never looks at quotes or tags; `compose` does.

use super::number;

/// The meaning of a plain scalar.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Scalar {
    /// `null`, `~`, nothing.
    Null,
    /// A boolean word.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// An integer beyond `i64`.
    Uint(u64),
    /// A float.
    Float(f64),
    /// Looks like a date: a string when read, quoted when written.
    Timestamp,
    /// Anything else.
    String,
}

/// Resolves a plain scalar.
pub fn resolve(text: &str) -> Scalar {
    let Some(&first) = text.as_bytes().first() else { return Scalar::Null };
    match first {
        b'y' | b'Y' | b'n' | b'N' | b't' | b'T' | b'f' | b'F' | b'o' | b'O' | b'~' => word(text),
        b'.' => match text {
            ".nan" | ".NaN" | ".NAN" => Scalar::Float(f64::NAN),
            ".inf" | ".Inf" | ".INF" => Scalar::Float(f64::INFINITY),
            _ if is_float(text) => float(text),
            _ => Scalar::String,
        },
        b'+' | b'-' => match text {
            "+.inf" | "+.Inf" | "+.INF" => Scalar::Float(f64::INFINITY),
            "-.inf" | "-.Inf" | "-.INF" => Scalar::Float(f64::NEG_INFINITY),
            _ => numeric(text),
        },
        b'0'..=b'9' => numeric(text),
        _ => Scalar::String,
    }
}

fn word(text: &str) -> Scalar {
    match text {
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => {
            Scalar::Bool(true)
        }
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
            Scalar::Bool(false)
        }
        "~" | "null" | "Null" | "NULL" => Scalar::Null,
        _ => Scalar::String,
    }
}

fn numeric(text: &str) -> Scalar {
    if is_timestamp(text) {
        return Scalar::Timestamp;
    }
    let without;
    let plain = if text.contains('_') {
        without = text.replace('_', "");
        without.as_str()
    } else {
        text
    };
    if let Some(value) = integer(plain) {
        return value;
    }
    if is_float(plain) { float(plain) } else { Scalar::String }
}

/// Go's `ParseInt(text, 0, 64)`, then `ParseUint(text, 0, 64)`.
fn integer(text: &str) -> Option<Scalar> {
    let (negative, digits) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let signed = digits.len() != text.len();
    let lower = digits.as_bytes();
    let (radix, digits) = match (lower.first()?, lower.get(1)) {
        (b'0', Some(b'x' | b'X')) => (16, &digits[2..]),
        (b'0', Some(b'o' | b'O')) => (8, &digits[2..]),
        (b'0', Some(b'b' | b'B')) => (2, &digits[2..]),
        (b'0', Some(_)) => (8, &digits[1..]),
        _ => (10, digits),
    };
    if digits.is_empty() || !digits.bytes().all(|b| (b as char).is_digit(radix)) {
        return None;
    }
    let value = u64::from_str_radix(digits, radix).ok()?;
    match (negative, i64::try_from(value)) {
        (false, Ok(value)) => Some(Scalar::Int(value)),
        (true, Ok(value)) => Some(Scalar::Int(-value)),
        (true, Err(_)) if value == 1 << 63 => Some(Scalar::Int(i64::MIN)),
        (false, Err(_)) if !signed => Some(Scalar::Uint(value)),
        _ => None,
    }
}

/// `^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$`
fn is_float(text: &str) -> bool {
    let mut rest = text.as_bytes();
    if let [b'+' | b'-', tail @ ..] = rest {
        rest = tail;
    }
    let whole = digits(&mut rest);
    if let [b'.', tail @ ..] = rest {
        rest = tail;
        if digits(&mut rest) == 0 && whole == 0 {
            return false;
        }
    } else if whole == 0 {
        return false;
    }
    if let [b'e' | b'E', tail @ ..] = rest {
        rest = tail;
        if let [b'+' | b'-', tail @ ..] = rest {
            rest = tail;
        }
        if digits(&mut rest) == 0 {
            return false;
        }
    }
    rest.is_empty()
}

fn digits(rest: &mut &[u8]) -> usize {
    let count = rest.iter().take_while(|b| b.is_ascii_digit()).count();
    *rest = &rest[count..];
    count
}

fn float(text: &str) -> Scalar {
    match text.parse::<f64>() {
        Ok(value) if value.is_finite() => Scalar::Float(value),
        _ => Scalar::String,
    }
}

/// Returns true if a text is a number with colons (`1:30`), which YAML 1.1 readers take for base 60.
pub(super) fn is_base60(text: &str) -> bool {
    let mut rest = text.as_bytes();
    if let [b'+' | b'-', tail @ ..] = rest {
        rest = tail;
    }
    let [b'0'..=b'9', tail @ ..] = rest else { return false };
    rest = tail;
    let count = rest.iter().take_while(|b| b.is_ascii_digit() || **b == b'_').count();
    rest = &rest[count..];
    let mut groups = 0;
    while let [b':', tail @ ..] = rest {
        rest = match tail {
            [b'0'..=b'5', b'0'..=b'9', after @ ..] | [b'0'..=b'9', after @ ..] => after,
            _ => return false,
        };
        groups += 1;
    }
    if let [b'.', tail @ ..] = rest {
        let count = tail.iter().take_while(|b| b.is_ascii_digit() || **b == b'_').count();
        rest = &tail[count..];
    }
    groups > 0 && rest.is_empty()
}

/// Returns true if go-yaml takes a text for a date or a time.
fn is_timestamp(text: &str) -> bool {
    let bytes = text.as_bytes();
    if bytes.len() < 8 || !bytes[..4].iter().all(u8::is_ascii_digit) || bytes[4] != b'-' {
        return false;
    }
    let year = bytes[..4].iter().fold(0u32, |n, b| n * 10 + u32::from(b - b'0'));
    let mut rest = &bytes[5..];
    let Some(month) = short_number(&mut rest) else { return false };
    let [b'-', tail @ ..] = rest else { return false };
    rest = tail;
    let Some(day) = short_number(&mut rest) else { return false };
    if !(1..=12).contains(&month) || day < 1 || day > days_in(year, month) {
        return false;
    }
    match rest {
        [] => true,
        [b'T' | b't', tail @ ..] => clock(tail, true),
        [b' ', tail @ ..] => clock(tail, false),
        _ => false,
    }
}

fn clock(mut rest: &[u8], zone: bool) -> bool {
    for (limit, separator) in [(24, Some(b':')), (60, Some(b':')), (60, None)] {
        let Some(value) = short_number(&mut rest) else { return false };
        if value >= limit {
            return false;
        }
        if let Some(separator) = separator {
            if rest.first() != Some(&separator) {
                return false;
            }
            rest = &rest[1..];
        }
    }
    if let [b'.' | b',', tail @ ..] = rest {
        let count = tail.iter().take_while(|b| b.is_ascii_digit()).count();
        if count > 0 {
            rest = &tail[count..];
        }
    }
    if !zone {
        return rest.is_empty();
    }
    match rest {
        [b'Z'] => true,
        [b'+' | b'-', a, b, b':', c, d] => {
            [a, b, c, d].iter().all(|x| x.is_ascii_digit())
                && (a - b'0') * 10 + (b - b'0') <= 24
                && (c - b'0') * 10 + (d - b'0') < 60
        }
        _ => false,
    }
}

fn short_number(rest: &mut &[u8]) -> Option<u32> {
    let count = rest.iter().take(2).take_while(|b| b.is_ascii_digit()).count();
    if count == 0 {
        return None;
    }
    let value = rest[..count].iter().fold(0, |n, b| n * 10 + u32::from(b - b'0'));
    *rest = &rest[count..];
    Some(value)
}

fn days_in(year: u32, month: u32) -> u32 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400)) => 29,
        2 => 28,
        _ => 31,
    }
}

/// A number of JSON as YAML writes it: integers as they are, floats in Go's `%g`.
pub(super) fn json_number(value: f64) -> String {
    let text = number::format_json(value);
    match integer(&text) {
        Some(Scalar::Int(value)) => value.to_string(),
        Some(Scalar::Uint(value)) => value.to_string(),
        _ => number::format_g(value),
    }
}
