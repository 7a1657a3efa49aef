//! Schedules of cron jobs: five fields, a name such as `@daily`, or `@every 1h`. Says what is wrong with one
//! and when it comes next, as robfig/cron does; nothing runs here.

use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, ToSpan};
use std::fmt;

const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const DAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];
/// Names for fields.
const NAMED: [(&str, &str); 7] = [
    ("@yearly", "0 0 1 1 *"),
    ("@annually", "0 0 1 1 *"),
    ("@monthly", "0 0 1 * *"),
    ("@weekly", "0 0 * * 0"),
    ("@daily", "0 0 * * *"),
    ("@midnight", "0 0 * * *"),
    ("@hourly", "0 * * * *"),
];

/// The least and the greatest value of a field, and the names of values.
type Bounds = (u64, u64, &'static [&'static str]);
const FIELDS: [Bounds; 5] = [(0, 59, &[]), (0, 23, &[]), (1, 31, &[]), (1, 12, &MONTHS), (0, 6, &DAYS)];

/// When something is to happen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    rule: Rule,
    /// The zone that the text itself names.
    zone: Option<TimeZone>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Rule {
    /// The values of each field, a bit for each.
    Fields([Field; 5]),
    /// Seconds between two times, at least one.
    Every(i64),
}

/// The values of a field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Field {
    bits: u64,
    /// It is `*` or `?`: of the days of month and week the other one counts.
    any: bool,
}

impl Field {
    fn has(self, value: i8) -> bool {
        u32::try_from(value).is_ok_and(|value| self.bits >> value & 1 == 1)
    }
}

/// The errors of a schedule, with the texts of robfig/cron.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScheduleError {
    /// There is nothing behind the time zone.
    NoFields,
    /// There is no such time zone.
    TimeZone(String),
    /// There are not five fields.
    FieldCount { found: usize, fields: String },
    /// The duration of `@every` cannot be parsed.
    Duration { text: String, duration: String },
    /// There is no such `@name`.
    Descriptor(String),
    /// A number is negative.
    Negative { number: i64, text: String },
    /// A number cannot be parsed.
    Number(String),
    /// A part of a field is wrong as a range.
    Range { part: String, problem: RangeProblem },
}

/// The error of a range such as `1-5/2`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RangeProblem {
    Hyphens,
    Slashes,
    BelowMinimum { start: u64, least: u64 },
    AboveMaximum { end: u64, most: u64 },
    Reversed { start: u64, end: u64 },
    ZeroStep,
}

impl std::error::Error for ScheduleError {}

impl fmt::Display for ScheduleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ScheduleError::NoFields => f.write_str("failed to parse schedule"),
            ScheduleError::TimeZone(name) => {
                write!(f, "provided bad location {name}: unknown time zone {name}")
            }
            ScheduleError::FieldCount { found, fields } => {
                write!(f, "expected exactly 5 fields, found {found}: [{fields}]")
            }
            ScheduleError::Duration { text, duration } => {
                write!(f, "failed to parse duration {text}: time: invalid duration {duration:?}")
            }
            ScheduleError::Descriptor(text) => write!(f, "unrecognized descriptor: {text}"),
            ScheduleError::Negative { number, text } => {
                write!(f, "negative number ({number}) not allowed: {text}")
            }
            ScheduleError::Number(text) => {
                write!(f, "failed to parse int from {text}: strconv.Atoi: parsing {text:?}: invalid syntax")
            }
            ScheduleError::Range { part, problem } => write!(f, "{problem}: {part}"),
        }
    }
}

impl fmt::Display for RangeProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RangeProblem::Hyphens => f.write_str("too many hyphens"),
            RangeProblem::Slashes => f.write_str("too many slashes"),
            RangeProblem::BelowMinimum { start, least } => {
                write!(f, "beginning of range ({start}) below minimum ({least})")
            }
            RangeProblem::AboveMaximum { end, most } => {
                write!(f, "end of range ({end}) above maximum ({most})")
            }
            RangeProblem::Reversed { start, end } => {
                write!(f, "beginning of range ({start}) beyond end of range ({end})")
            }
            RangeProblem::ZeroStep => f.write_str("step of range should be a positive number"),
        }
    }
}

/// The error of a schedule.
pub fn check(text: &str) -> Result<(), ScheduleError> {
    Schedule::parse(text).map(|_| ())
}

impl Schedule {
    /// Reads one; the error is the real server's.
    pub fn parse(text: &str) -> Result<Schedule, ScheduleError> {
        let mut text = text;
        let mut zone = None;
        if text.starts_with("TZ=") || text.starts_with("CRON_TZ=") {
            let Some((named, rest)) = text.split_once(' ') else {
                return Err(ScheduleError::NoFields);
            };
            let name = named.split_once('=').map_or("", |(_, name)| name);
            zone = Some(match jiff::tz::db().get(name) {
                _ if name.eq_ignore_ascii_case("UTC") || name.is_empty() => TimeZone::UTC,
                Ok(found) => found,
                Err(_) => return Err(ScheduleError::TimeZone(name.to_owned())),
            });
            text = rest.trim();
        }
        if text.starts_with('@') {
            return Ok(Schedule { rule: descriptor(text)?, zone });
        }
        let words: Vec<&str> = text.split_whitespace().collect();
        if words.len() != FIELDS.len() {
            return Err(ScheduleError::FieldCount { found: words.len(), fields: words.join(" ") });
        }
        let mut fields = [Field::default(); 5];
        for ((field, word), bounds) in fields.iter_mut().zip(words).zip(FIELDS) {
            for part in word.split(',').filter(|part| !part.is_empty()) {
                let found = range(part, bounds)?;
                field.bits |= found.bits;
                field.any |= found.any;
            }
        }
        Ok(Schedule { rule: Rule::Fields(fields), zone })
    }

    /// The first time after another one, in the zone of the text, else in `zone`. `None` where there is none
    /// within five years.
    pub fn next(&self, after: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        let zone = self.zone.as_ref().unwrap_or(zone);
        match &self.rule {
            Rule::Every(seconds) => {
                let whole = Timestamp::from_second(after.as_second()).ok()?;
                whole.checked_add(SignedDuration::from_secs(*seconds)).ok()
            }
            Rule::Fields(fields) => {
                let local = after.to_zoned(zone.clone()).datetime();
                let mut from = local.with().second(0).subsec_nanosecond(0).build().ok()?;
                // Where clocks go back, a local time may come before `after` again.
                for _ in 0..4 {
                    from = following(fields, from)?;
                    let time = zone.to_zoned(from).ok()?.timestamp();
                    if time > after {
                        return Some(time);
                    }
                }
                None
            }
        }
    }
}

/// The first minute after `at` that all fields allow.
fn following(fields: &[Field; 5], at: DateTime) -> Option<DateTime> {
    let [minutes, hours, days, months, weekdays] = fields;
    let last = at.year().checked_add(5)?;
    let mut at = at.checked_add(1.minute()).ok()?;
    while at.year() <= last {
        let date = at.date();
        if !months.has(date.month()) {
            at = date.first_of_month().checked_add(1.month()).ok()?.at(0, 0, 0, 0);
        } else if !allows(days, weekdays, date) {
            at = date.tomorrow().ok()?.at(0, 0, 0, 0);
        } else if !hours.has(at.hour()) {
            at = date.at(at.hour(), 0, 0, 0).checked_add(1.hour()).ok()?;
        } else if !minutes.has(at.minute()) {
            at = at.checked_add(1.minute()).ok()?;
        } else {
            return Some(at);
        }
    }
    None
}

/// Returns true if a date is one of the days: both fields where one of them is any day, else either.
fn allows(days: &Field, weekdays: &Field, date: Date) -> bool {
    let (day, weekday) = (days.has(date.day()), weekdays.has(date.weekday().to_sunday_zero_offset()));
    if days.any || weekdays.any { day && weekday } else { day || weekday }
}

fn descriptor(text: &str) -> Result<Rule, ScheduleError> {
    if let Some((_, fields)) = NAMED.iter().find(|(name, _)| *name == text) {
        return Schedule::parse(fields).map(|schedule| schedule.rule);
    }
    match text.strip_prefix("@every ") {
        Some(duration) => match go_seconds(duration) {
            Some(seconds) => Ok(Rule::Every(seconds.max(1))),
            None => Err(ScheduleError::Duration { text: text.to_owned(), duration: duration.to_owned() }),
        },
        None => Err(ScheduleError::Descriptor(text.to_owned())),
    }
}

/// A duration such as `1h30m` in whole seconds.
fn go_seconds(text: &str) -> Option<i64> {
    const UNITS: [(&str, f64); 7] =
        [("ns", 1e-9), ("us", 1e-6), ("µs", 1e-6), ("ms", 1e-3), ("s", 1.0), ("m", 60.0), ("h", 3600.0)];
    let mut rest = text.strip_prefix(['+', '-']).unwrap_or(text);
    if rest == "0" {
        return Some(0);
    }
    let mut seconds = 0.0;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, tail) = rest.split_at(end);
        let (unit, factor) = UNITS.into_iter().find(|(unit, _)| {
            let after = tail.strip_prefix(unit);
            after.is_some_and(|after| {
                after.is_empty() || after.starts_with(|c: char| c.is_ascii_digit() || c == '.')
            })
        })?;
        seconds += number.parse::<f64>().ok()? * factor;
        rest = &tail[unit.len()..];
    }
    let negative = text.starts_with('-');
    (!text.is_empty()).then_some(if negative { -(seconds as i64) } else { seconds as i64 })
}

/// One part of a field: `*`, `a`, `a-b`, each with a step.
fn range(part: &str, (least, most, names): Bounds) -> Result<Field, ScheduleError> {
    let wrong = |problem| Err(ScheduleError::Range { part: part.to_owned(), problem });
    let pieces: Vec<&str> = part.split('/').collect();
    let ends: Vec<&str> = pieces[0].split('-').collect();
    let single = ends.len() == 1;
    let (mut start, mut end) = (least, most);
    let whole = matches!(ends[0], "*" | "?");
    if !whole {
        start = value(ends[0], names)?;
        match ends.as_slice() {
            [_] => end = start,
            [_, last] => end = value(last, names)?,
            _ => return wrong(RangeProblem::Hyphens),
        }
    }
    let step = match pieces.as_slice() {
        [_] => 1,
        [_, step] => {
            if single {
                end = most;
            }
            number(step)?
        }
        _ => return wrong(RangeProblem::Slashes),
    };
    if start < least {
        return wrong(RangeProblem::BelowMinimum { start, least });
    }
    if end > most {
        return wrong(RangeProblem::AboveMaximum { end, most });
    }
    if start > end {
        return wrong(RangeProblem::Reversed { start, end });
    }
    if step == 0 {
        return wrong(RangeProblem::ZeroStep);
    }
    let every = usize::try_from(step).unwrap_or(usize::MAX);
    let bits = (start..=end).step_by(every).fold(0, |bits, value| bits | 1 << value);
    Ok(Field { bits, any: whole && step == 1 })
}

fn value(text: &str, names: &[&str]) -> Result<u64, ScheduleError> {
    let lower = text.to_lowercase();
    match names.iter().position(|name| *name == lower) {
        // Months begin with one, days of the week with zero.
        Some(at) => Ok(at as u64 + u64::from(names.len() == 12)),
        None => number(text),
    }
}

fn number(text: &str) -> Result<u64, ScheduleError> {
    match text.parse::<i64>() {
        Ok(number) => {
            u64::try_from(number).map_err(|_| ScheduleError::Negative { number, text: text.to_owned() })
        }
        Err(_) => Err(ScheduleError::Number(text.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::{Schedule, check};
    use jiff::Timestamp;
    use jiff::tz::TimeZone;

    #[test]
    fn what_comes_next() {
        let next = |text: &str, after: &str| {
            let after: Timestamp = after.parse().unwrap();
            let next = Schedule::parse(text).unwrap().next(after, &TimeZone::UTC);
            next.map_or_else(|| "never".to_owned(), |time| time.to_string())
        };
        assert_eq!(next("*/5 * * * *", "2026-01-01T00:03:07Z"), "2026-01-01T00:05:00Z");
        assert_eq!(next("*/5 * * * *", "2026-01-01T00:05:00Z"), "2026-01-01T00:10:00Z");
        assert_eq!(next("0 9-17/2 * JAN,FEB MON-FRI", "2026-01-02T17:30:00Z"), "2026-01-05T09:00:00Z");
        assert_eq!(next("0 0 29 2 *", "2026-03-01T00:00:00Z"), "2028-02-29T00:00:00Z");
        assert_eq!(next("0 0 30 2 *", "2026-03-01T00:00:00Z"), "never");
        // The thirteenth or a Friday, but every day of the month that is a Monday.
        assert_eq!(next("0 0 13 * 5", "2026-01-03T00:00:00Z"), "2026-01-09T00:00:00Z");
        assert_eq!(next("0 0 * * 1", "2026-01-06T00:00:00Z"), "2026-01-12T00:00:00Z");
        assert_eq!(next("@every 90s", "2026-01-01T00:00:00.5Z"), "2026-01-01T00:01:30Z");
        assert_eq!(next("@monthly", "2026-01-01T00:00:00Z"), "2026-02-01T00:00:00Z");
        // At 2:30 the clocks are put back on that day: the hour comes twice, the time once.
        assert_eq!(next("TZ=Europe/Berlin 30 2 * * *", "2026-10-25T00:00:00Z"), "2026-10-25T00:30:00Z");
        assert_eq!(next("TZ=Europe/Berlin 30 2 * * *", "2026-10-25T00:30:00Z"), "2026-10-26T01:30:00Z");
    }

    #[test]
    fn schedules() {
        for good in [
            "* * * * *",
            "*/5 0 1 * *",
            "@daily",
            "@every 1h30m",
            "0 9-17/2 * JAN,FEB MON-FRI",
            "TZ=UTC 0 0 * * *",
        ] {
            assert_eq!(check(good), Ok(()), "{good}");
        }
        for (bad, text) in [
            ("bad", "expected exactly 5 fields, found 1: [bad]"),
            ("61 * * * *", "end of range (61) above maximum (59): 61"),
            ("5-1 * * * *", "beginning of range (5) beyond end of range (1): 5-1"),
            ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
            ("*/0 * * * *", "step of range should be a positive number: */0"),
            ("x * * * *", "failed to parse int from x: strconv.Atoi: parsing \"x\": invalid syntax"),
            ("@never", "unrecognized descriptor: @never"),
        ] {
            assert_eq!(check(bad).unwrap_err().to_string(), text, "{bad}");
        }
    }
}
