//! Go's durations: nanoseconds, read and written as `1h2m3.5s`.

use super::quote::quote_time as quote;
use std::fmt;
use std::time::Duration;

/// The magnitude of the smallest number of nanoseconds.
const LARGEST: u64 = 1 << 63;

const UNITS: [(&str, u64); 8] = [
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
pub enum DurationError {
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

impl std::error::Error for DurationError {}

/// Go's time.ParseDuration, in nanoseconds.
///
/// # Errors
/// Where the text is none, in Go's words.
pub fn parse(text: &str) -> Result<i64, DurationError> {
    let invalid = || DurationError::Invalid { text: text.to_owned() };
    let (negative, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Ok(0);
    }
    if rest.is_empty() {
        return Err(invalid());
    }
    let mut total: u64 = 0;
    while !rest.is_empty() {
        let digits = |text: &str| text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let (whole, after) = rest.split_at(digits(rest));
        let (fraction, after) = match after.strip_prefix('.') {
            Some(after) => after.split_at(digits(after)),
            None => ("", after),
        };
        if whole.is_empty() && fraction.is_empty() {
            return Err(invalid());
        }
        let unit_end = after.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(after.len());
        let (name, next) = after.split_at(unit_end);
        if name.is_empty() {
            return Err(DurationError::NoUnit { text: text.to_owned() });
        }
        let Some((_, unit)) = UNITS.iter().find(|(known, _)| *known == name) else {
            return Err(DurationError::UnknownUnit { text: text.to_owned(), unit: name.to_owned() });
        };
        let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().map_err(|_| invalid())? };
        let part = whole.checked_mul(*unit).and_then(|part| part.checked_add(part_of(fraction, *unit)));
        total = part
            .and_then(|part| total.checked_add(part))
            .filter(|sum| *sum <= LARGEST)
            .ok_or_else(invalid)?;
        rest = next;
    }
    // The smallest number has no positive counterpart.
    let nanos = if negative { 0i64.checked_sub_unsigned(total) } else { i64::try_from(total).ok() };
    nanos.ok_or_else(invalid)
}

/// The value of the digits behind a point, in parts of a unit. It is cut off as Go cuts it: by floating
/// point, without the digits that 63 bits cannot hold.
fn part_of(fraction: &str, unit: u64) -> u64 {
    let (mut value, mut scale): (u64, f64) = (0, 1.0);
    for digit in fraction.bytes() {
        let more = value.checked_mul(10).and_then(|value| value.checked_add(u64::from(digit - b'0')));
        let Some(more) = more.filter(|more| *more <= LARGEST) else { break };
        value = more;
        scale *= 10.0;
    }
    (value as f64 * (unit as f64 / scale)) as u64
}

/// A duration that is waited for: what is negative is no wait at all.
///
/// # Errors
/// As [`parse`].
pub fn non_negative(text: &str) -> Result<Duration, DurationError> {
    parse(text).map(|nanos| Duration::from_nanos(u64::try_from(nanos).unwrap_or(0)))
}

/// Go's Duration.String.
pub fn format(nanos: i64) -> String {
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
            ("-0", 0),
            ("+.5s", 500_000_000),
            ("1.s", 1_000_000_000),
            ("1h1h", 7_200_000_000_000),
            ("0.3333333333333333333h", 1_200_000_000_000),
            ("9223372036854775807ns", i64::MAX),
            ("-9223372036854775808ns", i64::MIN),
        ] {
            assert_eq!(parse(text).unwrap(), nanos, "{text}");
        }
        assert_eq!(format(3_723_500_000_000), "1h2m3.5s");
        assert_eq!(format(-5_400_000_000_000), "-1h30m0s");
        assert_eq!(format(1_500), "1.5µs");
        assert_eq!(parse("1").unwrap_err().to_string(), "time: missing unit in duration \"1\"");
        for wrong in ["", "-", ".s", "+.s", "-1", "9223372036854775808ns", "2562048h", " 1s", "1 s"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
        assert_eq!(non_negative("-5m"), Ok(Duration::ZERO));
        assert_eq!(non_negative("1.5m"), Ok(Duration::from_secs(90)));
        assert_eq!(parse("").unwrap_err().to_string(), "time: invalid duration \"\"");
        assert_eq!(parse("1x").unwrap_err().to_string(), "time: unknown unit \"x\" in duration \"1x\"");
    }
}
