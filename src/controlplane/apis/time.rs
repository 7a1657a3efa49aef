//! Times as built-in kinds hold them, read as Go's `time.Parse` reads them and with its texts where it
//! cannot.

use jiff::Timestamp;
use serde_json::Value;

const SECONDS: &str = "2006-01-02T15:04:05Z07:00";
const MICROS: &str = "2006-01-02T15:04:05.000000Z07:00";
const PRINTED: usize = "2006-01-02T15:04:05Z".len();
/// The parts of the layout before the fraction: how many digits, or a sign.
const PARTS: [&str; 11] = ["2006", "-", "01", "-", "02", "T", "15", ":", "04", ":", "05"];

/// A time that Go cannot parse, with Go's text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimeError {
    text: String,
    problem: TimeProblem,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum TimeProblem {
    /// The rest of the text does not fit into this part of the layout.
    Layout { layout: &'static str, rest: String, part: &'static str },
    /// There is more text behind the time.
    ExtraText(String),
    /// It has the form of a time and is none.
    DayOutOfRange,
}

impl std::error::Error for TimeError {}

impl std::fmt::Display for TimeError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let text = &self.text;
        match &self.problem {
            TimeProblem::Layout { layout, rest, part } => {
                write!(f, "parsing time {text:?} as {layout:?}: cannot parse {rest:?} as {part:?}")
            }
            TimeProblem::ExtraText(extra) => write!(f, "parsing time {text:?}: extra text: {extra:?}"),
            TimeProblem::DayOutOfRange => write!(f, "parsing time {text:?}: day out of range"),
        }
    }
}

/// Whole seconds, in UTC.
pub(super) fn seconds(value: &mut Value) -> Result<(), TimeError> {
    read(value, SECONDS, "%Y-%m-%dT%H:%M:%SZ")
}

/// Microseconds, all six digits of them, in UTC.
pub(super) fn micros(value: &mut Value) -> Result<(), TimeError> {
    read(value, MICROS, "%Y-%m-%dT%H:%M:%S.%6fZ")
}

fn read(value: &mut Value, layout: &'static str, printed: &str) -> Result<(), TimeError> {
    // The caller has checked that it is a text.
    let Some(text) = value.as_str() else { return Ok(()) };
    check(text, layout)?;
    match text.parse::<Timestamp>() {
        // Most are printed already: whole seconds in UTC. (A leap second is another one.)
        Ok(_) if layout == SECONDS && text.len() == PRINTED && !text.ends_with("60Z") => Ok(()),
        Ok(time) => {
            *value = Value::from(time.strftime(printed).to_string());
            Ok(())
        }
        Err(_) => Err(TimeError { text: text.to_owned(), problem: TimeProblem::DayOutOfRange }),
    }
}

/// Follows the layout until it does not fit.
fn check(text: &str, layout: &'static str) -> Result<(), TimeError> {
    let error = |problem| Err(TimeError { text: text.to_owned(), problem });
    let wrong = |rest: &str, part| error(TimeProblem::Layout { layout, rest: rest.to_owned(), part });
    let mut rest = text;
    for part in PARTS {
        let Some((head, tail)) = rest.split_at_checked(part.len()) else { return wrong(rest, part) };
        let digits = part.bytes().all(|byte| byte.is_ascii_digit());
        let fits = if digits { head.bytes().all(|byte| byte.is_ascii_digit()) } else { head == part };
        if !fits {
            return wrong(rest, part);
        }
        rest = tail;
    }
    let fraction = rest.strip_prefix('.').map(|tail| tail.bytes().take_while(u8::is_ascii_digit).count());
    if layout == MICROS && fraction.is_none_or(|count| count < 6) {
        return wrong(rest, ".000000");
    }
    // A fraction is accepted where the layout has none.
    let zone = &rest[fraction.filter(|count| *count > 0).map_or(0, |count| count + 1)..];
    let offset = |zone: &str| {
        let bytes = zone.as_bytes();
        bytes.len() >= 6 && matches!(bytes[0], b'+' | b'-') && bytes[3] == b':'
    };
    let after = match zone.strip_prefix('Z') {
        Some(after) => after,
        None if offset(zone) => &zone[6..],
        None => return wrong(zone, "Z07:00"),
    };
    if after.is_empty() { Ok(()) } else { error(TimeProblem::ExtraText(after.to_owned())) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_and_printed_like_go() {
        for (text, want) in [
            ("2024-01-01T00:00:00Z", "2024-01-01T00:00:00Z"),
            ("2024-01-01T02:00:00+02:00", "2024-01-01T00:00:00Z"),
            ("2024-01-01T00:00:00.75Z", "2024-01-01T00:00:00Z"),
            ("2024-12-31T23:59:60Z", "2024-12-31T23:59:59Z"),
        ] {
            let mut value = Value::from(text);
            assert_eq!(seconds(&mut value), Ok(()), "{text}");
            assert_eq!(value, want);
        }
        let mut value = Value::from("2024-01-01T00:00:00.123456Z");
        assert_eq!(micros(&mut value), Ok(()));
        assert_eq!(value, "2024-01-01T00:00:00.123456Z");
    }

    #[test]
    fn what_does_not_fit_is_named() {
        let wrong = |text: &str| micros(&mut Value::from(text)).unwrap_err().to_string();
        let layout = "2006-01-02T15:04:05.000000Z07:00";
        assert_eq!(
            wrong("yesterday"),
            format!("parsing time \"yesterday\" as {layout:?}: cannot parse \"yesterday\" as \"2006\"")
        );
        assert_eq!(
            wrong("2024-01-01T00:00:00Z"),
            format!("parsing time \"2024-01-01T00:00:00Z\" as {layout:?}: cannot parse \"Z\" as \".000000\"")
        );
    }
}
