//! Go's durations: nanoseconds, read and written as `1h2m3.5s`.

use super::go_error::GoError;
use super::quote::quote_time as quote;
use std::fmt;

const UNITS: [(&str, i64); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("μs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

/// Why a text is not a duration, in the words of Go's time.ParseDuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum DurationError {
    /// It has another form, or does not fit into 64 bits.
    Invalid {
        /// The text.
        text: String,
    },
    /// A number has no unit.
    NoUnit {
        /// The text.
        text: String,
    },
    /// A number has a unit that Go does not know.
    UnknownUnit {
        /// The text.
        text: String,
        /// The unit.
        unit: String,
    },
}

impl fmt::Display for DurationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DurationError::Invalid { text } => write!(f, "time: invalid duration {}", quote(text.as_bytes())),
            DurationError::NoUnit { text } => {
                write!(f, "time: missing unit in duration {}", quote(text.as_bytes()))
            }
            DurationError::UnknownUnit { text, unit } => {
                let (unit, text) = (quote(unit.as_bytes()), quote(text.as_bytes()));
                write!(f, "time: unknown unit {unit} in duration {text}")
            }
        }
    }
}

impl GoError for DurationError {}

/// Go's time.ParseDuration.
pub(super) fn parse(text: &str) -> Result<i64, DurationError> {
    let invalid = || DurationError::Invalid { text: text.to_owned() };
    let (negative, mut rest) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    if rest == "0" {
        return Ok(0);
    }
    if rest.is_empty() {
        return Err(invalid());
    }
    let mut total = 0f64;
    let mut exact = 0i64;
    while !rest.is_empty() {
        let digits = |text: &str| text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let mut end = digits(rest);
        if rest[end..].starts_with('.') {
            end += 1 + digits(&rest[end + 1..]);
        }
        let (number, after) = rest.split_at(end);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if whole.is_empty() && fraction.is_empty() {
            return Err(invalid());
        }
        let unit_end = after.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(after.len());
        let (name, next) = after.split_at(unit_end);
        if name.is_empty() {
            return Err(DurationError::NoUnit { text: text.to_owned() });
        }
        let Some((_, unit)) = UNITS.iter().find(|(n, _)| *n == name) else {
            return Err(DurationError::UnknownUnit { text: text.to_owned(), unit: name.to_owned() });
        };
        let whole: i64 = if whole.is_empty() { 0 } else { whole.parse().map_err(|_| invalid())? };
        exact = whole.checked_mul(*unit).and_then(|n| exact.checked_add(n)).ok_or_else(invalid)?;
        if !fraction.is_empty() {
            total += format!("0.{fraction}").parse::<f64>().unwrap_or(0.0) * (*unit as f64);
        }
        rest = next;
    }
    let sum = exact.checked_add(total as i64).ok_or_else(invalid)?;
    Ok(if negative { -sum } else { sum })
}

/// Go's Duration.String.
pub(super) fn format(nanos: i64) -> String {
    let sign = if nanos < 0 { "-" } else { "" };
    let n = nanos.unsigned_abs();
    let decimal = |n: u64, unit: u64| -> String {
        let digits = unit.ilog10() as usize;
        let fraction = format!("{:0digits$}", n % unit);
        let fraction = fraction.trim_end_matches('0');
        let point = if fraction.is_empty() { "" } else { "." };
        format!("{}{point}{fraction}", n / unit)
    };
    match n {
        0 => "0s".to_owned(),
        1..1_000 => format!("{sign}{n}ns"),
        1_000..1_000_000 => format!("{sign}{}µs", decimal(n, 1_000)),
        1_000_000..1_000_000_000 => format!("{sign}{}ms", decimal(n, 1_000_000)),
        _ => {
            let seconds = decimal(n % 60_000_000_000, 1_000_000_000);
            let minutes = n / 60_000_000_000;
            match (minutes / 60, minutes % 60) {
                (0, 0) => format!("{sign}{seconds}s"),
                (0, m) => format!("{sign}{m}m{seconds}s"),
                (h, m) => format!("{sign}{h}h{m}m{seconds}s"),
            }
        }
    }
}

/// Sprig's `durationRound`: the largest unit only.
pub(super) fn rounded(nanos: i64) -> String {
    const SECOND: u64 = 1_000_000_000;
    const UNITS: [(u64, &str); 6] = [
        (SECOND * 86_400 * 365, "y"),
        (SECOND * 86_400 * 30, "mo"),
        (SECOND * 86_400, "d"),
        (SECOND * 3_600, "h"),
        (SECOND * 60, "m"),
        (SECOND, "s"),
    ];
    let n = nanos.unsigned_abs();
    let unit = UNITS.iter().find(|(size, _)| n > *size);
    unit.map_or_else(|| "0s".to_owned(), |(size, name)| format!("{}{name}", n / size))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_written_and_read() {
        for (text, nanos) in [
            ("1h2m3.5s", 3_723_500_000_000),
            ("-1.5h", -5_400_000_000_000),
            ("1.5µs", 1_500),
            ("250ms", 250_000_000),
            ("0", 0),
        ] {
            assert_eq!(parse(text).unwrap(), nanos);
        }
        assert_eq!(format(3_723_500_000_000), "1h2m3.5s");
        assert_eq!(format(-5_400_000_000_000), "-1h30m0s");
        assert_eq!(format(1_500), "1.5µs");
        assert_eq!(parse("1").unwrap_err().to_string(), "time: missing unit in duration \"1\"");
        assert_eq!(parse("1x").unwrap_err().to_string(), "time: unknown unit \"x\" in duration \"1x\"");
    }
}
