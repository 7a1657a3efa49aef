//! Go's number syntax: integers with bases and underscores, floats, and the readings a template literal has.

use super::node::Number;
use opdev_object::go::quote::unquote_char;
use std::fmt;

/// Go's strconv.ParseInt(text, 0, 64).
pub(super) fn parse_int(text: &str) -> Option<i64> {
    let (negative, digits) = sign(text);
    let magnitude = parse_magnitude(digits)?;
    if negative {
        return if magnitude == 1 << 63 { Some(i64::MIN) } else { i64::try_from(magnitude).ok().map(|n| -n) };
    }
    i64::try_from(magnitude).ok()
}

/// Go's strconv.ParseUint(text, 0, 64).
pub(super) fn parse_uint(text: &str) -> Option<u64> {
    if text.starts_with(['+', '-']) { None } else { parse_magnitude(text) }
}

fn sign(text: &str) -> (bool, &str) {
    match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    }
}

/// Digits with Go's base prefix and underscores.
fn parse_magnitude(text: &str) -> Option<u64> {
    let lower = text.to_ascii_lowercase();
    let (radix, digits, prefixed) = match lower.as_bytes() {
        [b'0', b'x', ..] => (16, &lower[2..], true),
        [b'0', b'o', ..] => (8, &lower[2..], true),
        [b'0', b'b', ..] => (2, &lower[2..], true),
        [b'0', _, ..] => (8, &lower[1..], true),
        _ => (10, &lower[..], false),
    };
    if digits.is_empty() || (digits.contains('_') && !underscores_ok(digits, prefixed)) {
        return None;
    }
    let clean: String = digits.chars().filter(|c| *c != '_').collect();
    if clean.starts_with(['+', '-']) {
        return None;
    }
    u64::from_str_radix(&clean, radix).ok()
}

/// Underscores stand only between digits, or after a base prefix.
fn underscores_ok(digits: &str, prefixed: bool) -> bool {
    let b = digits.as_bytes();
    (0..b.len()).all(|i| {
        b[i] != b'_'
            || ((if i == 0 { prefixed } else { b[i - 1].is_ascii_hexdigit() })
                && b.get(i + 1).is_some_and(u8::is_ascii_hexdigit))
    })
}

/// Go's strconv.ParseFloat(text, 64); a value out of range is nothing.
pub(super) fn parse_float(text: &str) -> Option<f64> {
    let (negative, body) = sign(text);
    let lower = body.to_ascii_lowercase();
    let value = match lower.as_str() {
        "inf" | "infinity" => f64::INFINITY,
        "nan" => f64::NAN,
        _ if lower.starts_with("0x") => parse_hex_float(&lower[2..])?,
        _ => {
            if !lower.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'e' | b'+' | b'-')) {
                return None;
            }
            let value: f64 = lower.parse().ok()?;
            if value.is_infinite() {
                return None;
            }
            value
        }
    };
    Some(if negative { -value } else { value })
}

fn parse_hex_float(text: &str) -> Option<f64> {
    let (mantissa, exponent) = text.split_once('p')?;
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let mut value = 0.0;
    for c in whole.chars().chain(fraction.chars()) {
        value = value * 16.0 + f64::from(c.to_digit(16)?);
    }
    let shift = exponent.parse::<i32>().ok()? - 4 * i32::try_from(fraction.len()).ok()?;
    Some(value * 2f64.powi(shift))
}

/// Why a number or character of a template cannot be read, in Go's words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum NumberError {
    /// A character constant with an escape that does not exist, or without an end.
    Unreadable,
    /// A character constant of more than one character.
    Character {
        /// The constant as it is written.
        text: String,
    },
    /// It does not have the form of a number.
    Form {
        /// The number as it is written.
        text: String,
    },
    /// An integer does not fit into 64 bits.
    Overflow {
        /// The number as it is written.
        text: String,
    },
}

impl fmt::Display for NumberError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NumberError::Unreadable => f.write_str("invalid syntax"),
            NumberError::Character { text } => write!(f, "malformed character constant: {text}"),
            NumberError::Form { text } => {
                write!(f, "illegal number syntax: {}", opdev_object::go::quote::quote_bytes(text.as_bytes()))
            }
            NumberError::Overflow { text } => {
                write!(f, "integer overflow: {}", opdev_object::go::quote::quote_bytes(text.as_bytes()))
            }
        }
    }
}

/// Why a character constant is none: its first character cannot be read, or more follow.
fn not_a_character(text: &str) -> NumberError {
    let ends = text.char_indices().map(|(at, _)| at).skip(2);
    let readable = ends.into_iter().any(|end| unquote_char(&format!("{}'", &text[..end])).is_some());
    if readable { NumberError::Character { text: text.to_owned() } } else { NumberError::Unreadable }
}

/// All readings of a literal of a template.
pub(super) fn parse_literal(text: &str) -> Result<Number, NumberError> {
    let mut number = Number { text: text.into(), int: None, uint: None, float: None, complex: false };
    if text.starts_with('\'') {
        let code = unquote_char(text).ok_or_else(|| not_a_character(text))?;
        number.int = Some(i64::from(code));
        number.uint = Some(u64::from(code));
        number.float = Some(f64::from(code));
        return Ok(number);
    }
    if let Some(body) = text.strip_suffix('i') {
        let split = body.rfind(['+', '-']).filter(|i| *i > 0).unwrap_or(0);
        if parse_float(&body[split..]).is_some() && (split == 0 || parse_float(&body[..split]).is_some()) {
            number.complex = true;
            return Ok(number);
        }
        return Err(NumberError::Form { text: text.to_owned() });
    }
    number.uint = parse_uint(text);
    number.int = parse_int(text);
    if let Some(n) = number.int {
        if n == 0 {
            number.uint = Some(0); // -0
        }
        number.float = Some(n as f64);
    } else if let Some(n) = number.uint {
        number.float = Some(n as f64);
    } else if let Some(float) = parse_float(&without_underscores(text)?) {
        if !text.contains(['.', 'e', 'E', 'p', 'P']) {
            return Err(NumberError::Overflow { text: text.to_owned() });
        }
        number.float = Some(float);
        if float.trunc() == float && float.abs() < 9.3e18 {
            number.int = Some(float as i64);
            number.uint = (float >= 0.0).then_some(float as u64);
        }
    }
    if number.int.is_none() && number.uint.is_none() && number.float.is_none() {
        return Err(NumberError::Form { text: text.to_owned() });
    }
    Ok(number)
}

fn without_underscores(text: &str) -> Result<String, NumberError> {
    let prefixed = text.trim_start_matches(['+', '-']).to_ascii_lowercase().starts_with("0x");
    if text.contains('_') && !prefixed && !underscores_ok(text.trim_start_matches(['+', '-']), false) {
        return Err(NumberError::Form { text: text.to_owned() });
    }
    Ok(text.replace('_', ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_take_bases_and_underscores() {
        for (text, want) in [
            ("0", Some(0)),
            ("017", Some(15)),
            ("0x1F", Some(31)),
            ("0b11", Some(3)),
            ("0o17", Some(15)),
            ("1_000", Some(1000)),
            ("0_7", Some(7)),
            ("1__0", None),
            ("_1", None),
            ("1_", None),
            ("08", None),
            ("-9223372036854775808", Some(i64::MIN)),
            ("9223372036854775808", None),
            ("", None),
            ("0x", None),
        ] {
            assert_eq!(parse_int(text), want, "{text}");
        }
    }

    #[test]
    fn literals_have_every_reading_go_gives_them() {
        let one = parse_literal("1e3").unwrap();
        assert_eq!((one.int, one.float), (Some(1000), Some(1000.0)));
        let half = parse_literal("0.5").unwrap();
        assert_eq!((half.int, half.float), (None, Some(0.5)));
        assert_eq!(parse_literal("'a'").unwrap().int, Some(97));
        assert!(parse_literal("1+2i").unwrap().complex);
        assert!(parse_literal("089").is_err());
        assert!(matches!(parse_literal("99999999999999999999").unwrap_err(), NumberError::Overflow { .. }));
        assert_eq!(parse_literal("0x1p-2").unwrap().float, Some(0.25));
    }
}
