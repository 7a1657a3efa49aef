//! Sprig's dates, and Go's `time.Time` with the methods charts call.

use std::any::Any;
use std::borrow::Cow;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Span, Timestamp, Zoned};

use super::super::error::FuncError;
use super::super::float;
use super::super::host::{Host, Signature, Ty};
use super::super::layout;
use super::super::text::Str;
use super::super::value::{Kind, Value};
use super::{Call, Function, Outcome, fixed, int, string};
use opdev_object::go::duration;

pub(super) const FUNCTIONS: &[Function] = &[
    fixed("now", &[], |call, _| Ok(time(now(call)))),
    fixed("ago", &[Ty::Any], |call, args| {
        let now = now(call);
        let then = moment(call, &args[0]);
        let seconds = (now.timestamp().as_nanosecond() - then.timestamp().as_nanosecond() + 500_000_000)
            .div_euclid(1_000_000_000);
        Ok(duration::format(i64::try_from(seconds).unwrap_or(0).saturating_mul(1_000_000_000)).into())
    }),
    fixed("date", &[Ty::Str, Ty::Any], |call, args| in_zone(call, &string(args, 0), &args[1], "Local")),
    fixed("htmlDate", &[Ty::Any], |call, args| in_zone(call, "2006-01-02", &args[0], "Local")),
    fixed("htmlDateInZone", &[Ty::Any, Ty::Str], |call, args| {
        in_zone(call, "2006-01-02", &args[0], &string(args, 1))
    }),
    fixed("dateInZone", &[Ty::Str, Ty::Any, Ty::Str], |call, args| {
        in_zone(call, &string(args, 0), &args[1], &string(args, 2))
    }),
    fixed("date_in_zone", &[Ty::Str, Ty::Any, Ty::Str], |call, args| {
        in_zone(call, &string(args, 0), &args[1], &string(args, 2))
    }),
    fixed("dateModify", &[Ty::Str, Ty::Time], |_, args| Ok(modify(args).unwrap_or_else(|_| args[1].clone()))),
    fixed(
        "date_modify",
        &[Ty::Str, Ty::Time],
        |_, args| Ok(modify(args).unwrap_or_else(|_| args[1].clone())),
    ),
    fixed("mustDateModify", &[Ty::Str, Ty::Time], |_, args| modify(args)),
    fixed("must_date_modify", &[Ty::Str, Ty::Time], |_, args| modify(args)),
    fixed("toDate", &[Ty::Str, Ty::Str], |call, args| {
        let parsed = layout::parse(&string(args, 0), &string(args, 1), &call.context.env.zone());
        Ok(time(parsed.unwrap_or_else(|_| zero())))
    }),
    fixed("mustToDate", &[Ty::Str, Ty::Str], |call, args| {
        Ok(time(layout::parse(&string(args, 0), &string(args, 1), &call.context.env.zone())?))
    }),
    fixed("unixEpoch", &[Ty::Time], |_, args| {
        Ok(as_time(&args[0]).map_or(0, |t| t.timestamp().as_second()).to_string().into())
    }),
    fixed("duration", &[Ty::Any], |_, args| {
        let seconds = match &args[0] {
            Value::Str(_) => string(args, 0).parse().unwrap_or(0),
            Value::Int64(n) => *n,
            _ => 0,
        };
        Ok(duration::format(seconds.wrapping_mul(1_000_000_000)).into())
    }),
    fixed("durationRound", &[Ty::Any], |call, args| {
        let nanos = match &args[0] {
            Value::Str(_) => duration::parse(&string(args, 0)).unwrap_or(0),
            Value::Int64(n) => *n,
            other => as_time(other).map_or(0, |t| {
                let since = now(call).timestamp().as_nanosecond() - t.timestamp().as_nanosecond();
                i64::try_from(since).unwrap_or(if since < 0 { i64::MIN } else { i64::MAX })
            }),
        };
        Ok(rounded(nanos).into())
    }),
    fixed("mustToDuration", ONE, |_, args| Ok(of(nanoseconds(&args[0])?))),
    fixed("durationSeconds", ONE, |_, args| Ok(Value::Float(units(&args[0], SECOND)))),
    fixed("durationMinutes", ONE, |_, args| Ok(Value::Float(units(&args[0], MINUTE)))),
    fixed("durationHours", ONE, |_, args| Ok(Value::Float(units(&args[0], HOUR)))),
    fixed("durationDays", ONE, |_, args| Ok(Value::Float(units(&args[0], HOUR) / 24.0))),
    fixed("durationWeeks", ONE, |_, args| Ok(Value::Float(units(&args[0], HOUR) / 24.0 / 7.0))),
    fixed("durationMilliseconds", ONE, |_, args| Ok(Value::Int64(or_zero(&args[0]) / 1_000_000))),
    fixed("durationMicroseconds", ONE, |_, args| Ok(Value::Int64(or_zero(&args[0]) / 1_000))),
    fixed("durationNanoseconds", ONE, |_, args| Ok(Value::Int64(or_zero(&args[0])))),
    fixed("durationRoundTo", TWO, |_, args| Ok(of(stepped(args, nearest)))),
    fixed("durationTruncateTo", TWO, |_, args| Ok(of(stepped(args, |nanos, step| nanos - nanos % step)))),
];

fn now(call: &mut Call<'_, '_>) -> Zoned {
    let env = call.context.outside();
    env.now().to_zoned(env.zone())
}

fn zero() -> Zoned {
    Timestamp::from_second(-62_135_596_800).unwrap_or_default().to_zoned(TimeZone::UTC)
}

fn time(time: Zoned) -> Value {
    Value::host(Time(time))
}

fn as_time(value: &Value) -> Option<Zoned> {
    let Value::Host(host) = value else { return None };
    host.as_any().downcast_ref::<Time>().map(|t| t.0.clone())
}

/// A date or time of a TOML document.
pub(super) fn from_toml(text: &str) -> Option<Value> {
    const LAYOUTS: [&str; 6] = [
        "2006-01-02T15:04:05Z07:00",
        "2006-01-02 15:04:05Z07:00",
        "2006-01-02T15:04:05",
        "2006-01-02 15:04:05",
        "2006-01-02",
        "15:04:05",
    ];
    LAYOUTS.iter().find_map(|l| layout::parse(l, text, &TimeZone::UTC).ok()).map(time)
}

/// A time, or seconds since 1970; anything else is now.
fn moment(call: &mut Call<'_, '_>, value: &Value) -> Zoned {
    match value {
        Value::Int(n) | Value::Int64(n) => {
            Timestamp::from_second(*n).unwrap_or_default().to_zoned(call.context.env.zone())
        }
        other => as_time(other).unwrap_or_else(|| now(call)),
    }
}

fn in_zone(call: &mut Call<'_, '_>, format: &str, value: &Value, zone: &str) -> Outcome {
    let moment = moment(call, value);
    let zone = match zone {
        "" | "UTC" => TimeZone::UTC,
        "Local" => call.context.env.zone(),
        name => call.context.env.named_zone(name).unwrap_or(TimeZone::UTC),
    };
    Ok(layout::format(&moment.with_time_zone(zone), format).into())
}

fn modify(args: &[Value]) -> Outcome {
    let nanos = duration::parse(&string(args, 0))?;
    let moment = as_time(&args[1]).unwrap_or_else(zero);
    moment.checked_add(SignedDuration::from_nanos(nanos)).map(time).map_err(|e| FuncError::new(e.to_string()))
}

/// Go's `time.Time`.
struct Time(Zoned);

impl Host for Time {
    fn type_name(&self) -> Cow<'static, str> {
        "time.Time".into()
    }

    fn method(&self, name: &str) -> Option<Signature> {
        Some(match name {
            "Year" | "Month" | "Day" | "Hour" | "Minute" | "Second" | "Nanosecond" | "Weekday"
            | "YearDay" | "Unix" | "UnixNano" | "UnixMilli" | "UnixMicro" | "UTC" | "Local" | "String"
            | "IsZero" => Signature::with_parameters(&[]),
            "Format" => Signature::with_parameters(&[Ty::Str]),
            "AddDate" => Signature::with_parameters(&[Ty::Int, Ty::Int, Ty::Int]),
            "Before" | "After" | "Equal" | "Sub" | "Compare" => Signature::with_parameters(&[Ty::Time]),
            "Add" => Signature::with_parameters(&[Ty::Host("time.Duration")]),
            _ => return None,
        })
    }

    fn call(&self, name: &str, args: &[Value]) -> Outcome {
        let t = &self.0;
        let stamp = t.timestamp();
        let small = |n: i8| Value::Int(i64::from(n));
        let other = || args.first().and_then(as_time).unwrap_or_else(zero).timestamp();
        let narrow = |n: i128| Value::Int64(i64::try_from(n).unwrap_or(i64::MAX));
        Ok(match name {
            "Year" => Value::Int(i64::from(t.year())),
            "Month" => named("time.Month", i64::from(t.month()), layout::month_name(t.month())),
            "Day" => small(t.day()),
            "Hour" => small(t.hour()),
            "Minute" => small(t.minute()),
            "Second" => small(t.second()),
            "Nanosecond" => Value::Int(i64::from(t.subsec_nanosecond())),
            "Weekday" => {
                let day = t.weekday().to_sunday_zero_offset();
                named("time.Weekday", i64::from(day), layout::day_name(day))
            }
            "YearDay" => Value::Int(i64::from(t.day_of_year())),
            "Unix" => Value::Int64(stamp.as_second()),
            "UnixMilli" => Value::Int64(stamp.as_millisecond()),
            "UnixMicro" => Value::Int64(stamp.as_microsecond()),
            "UnixNano" => narrow(stamp.as_nanosecond()),
            "UTC" | "Local" => time(t.with_time_zone(TimeZone::UTC)),
            "String" => layout::format(t, TEXT).into(),
            "IsZero" => Value::Bool(stamp == zero().timestamp()),
            "Format" => layout::format(t, &string(args, 0)).into(),
            "AddDate" => time(add_date(t, args).ok_or("time out of range")?),
            "Before" => Value::Bool(stamp < other()),
            "After" => Value::Bool(stamp > other()),
            "Equal" => Value::Bool(stamp == other()),
            "Compare" => Value::Int(stamp.cmp(&other()) as i64),
            "Sub" => {
                let nanos =
                    i64::try_from(stamp.as_nanosecond() - other().as_nanosecond()).unwrap_or(i64::MAX);
                Value::host(Duration(nanos))
            }
            _ => {
                let nanos = match args.first() {
                    Some(Value::Host(host)) => host.as_any().downcast_ref::<Duration>().map_or(0, |d| d.0),
                    _ => 0,
                };
                let later = t.checked_add(SignedDuration::from_nanos(nanos));
                time(later.map_err(|e| e.to_string())?)
            }
        })
    }

    fn text(&self) -> Option<Str> {
        Some(layout::format(&self.0, TEXT).into())
    }

    fn to_json(&self) -> serde_json::Value {
        layout::format(&self.0, "2006-01-02T15:04:05.999999999Z07:00").into()
    }

    fn equals(&self, other: &dyn Host) -> bool {
        other.as_any().downcast_ref::<Time>().is_some_and(|o| o.0.timestamp() == self.0.timestamp())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// Go's AddDate: days that the month does not have run over into the next one.
fn add_date(t: &Zoned, args: &[Value]) -> Option<Zoned> {
    let months = (i64::from(t.year()) + int(args, 0)) * 12 + i64::from(t.month()) - 1 + int(args, 1);
    let year = i16::try_from(months.div_euclid(12)).ok()?;
    let month = i8::try_from(months.rem_euclid(12) + 1).ok()?;
    let first = jiff::civil::Date::new(year, month, 1).ok()?;
    let days = i64::from(t.day()) - 1 + int(args, 2);
    let date = first.checked_add(Span::new().try_days(days).ok()?).ok()?;
    date.to_datetime(t.time()).to_zoned(t.time_zone().clone()).ok()
}

const TEXT: &str = "2006-01-02 15:04:05.999999999 -0700 MST";

/// Go's `time.Duration`.
struct Duration(i64);

impl Host for Duration {
    fn type_name(&self) -> Cow<'static, str> {
        "time.Duration".into()
    }

    fn kind(&self) -> Kind {
        Kind::Int64
    }

    fn method(&self, name: &str) -> Option<Signature> {
        matches!(name, "Hours" | "Minutes" | "Seconds" | "Milliseconds" | "Nanoseconds" | "String")
            .then(|| Signature::with_parameters(&[]))
    }

    fn call(&self, name: &str, _: &[Value]) -> Outcome {
        let n = self.0;
        Ok(match name {
            "Hours" => Value::Float(n as f64 / 3.6e12),
            "Minutes" => Value::Float(n as f64 / 6e10),
            "Seconds" => Value::Float(n as f64 / 1e9),
            "Milliseconds" => Value::Int64(n / 1_000_000),
            "Nanoseconds" => Value::Int64(n),
            _ => duration::format(n).into(),
        })
    }

    fn underlying(&self) -> Option<Value> {
        Some(Value::Int64(self.0))
    }

    fn text(&self) -> Option<Str> {
        Some(duration::format(self.0).into())
    }

    fn to_json(&self) -> serde_json::Value {
        self.0.into()
    }

    fn equals(&self, other: &dyn Host) -> bool {
        other.as_any().downcast_ref::<Duration>().is_some_and(|o| o.0 == self.0)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// A number with a name: a month, a weekday.
struct Named {
    type_name: &'static str,
    number: i64,
    name: &'static str,
}

fn named(type_name: &'static str, number: i64, name: &'static str) -> Value {
    Value::host(Named { type_name, number, name })
}

impl Host for Named {
    fn type_name(&self) -> Cow<'static, str> {
        self.type_name.into()
    }

    fn kind(&self) -> Kind {
        Kind::Int
    }

    fn method(&self, name: &str) -> Option<Signature> {
        (name == "String").then(|| Signature::with_parameters(&[]))
    }

    fn call(&self, _: &str, _: &[Value]) -> Outcome {
        Ok(self.name.into())
    }

    fn underlying(&self) -> Option<Value> {
        Some(Value::Int(self.number))
    }

    fn text(&self) -> Option<Str> {
        Some(self.name.into())
    }

    fn to_json(&self) -> serde_json::Value {
        self.number.into()
    }

    fn equals(&self, other: &dyn Host) -> bool {
        other.as_any().downcast_ref::<Named>().is_some_and(|o| o.number == self.number)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
/// Sprig's `durationRound`: the largest unit only.
fn rounded(nanos: i64) -> String {
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

// Durations as Helm 4.2 and newer know them: a text such as `1h30m`, or a number of seconds.

const ONE: &[Ty] = &[Ty::Any];
const TWO: &[Ty] = &[Ty::Any, Ty::Any];
const SECOND: i64 = 1_000_000_000;
const MINUTE: i64 = 60 * SECOND;
const HOUR: i64 = 60 * MINUTE;

fn of(nanos: i64) -> Value {
    Value::host(Duration(nanos))
}

fn or_zero(value: &Value) -> i64 {
    nanoseconds(value).unwrap_or(0)
}

/// As Go counts units: the whole ones, and what is left as a fraction.
fn units(value: &Value, unit: i64) -> f64 {
    let nanos = or_zero(value);
    (nanos / unit) as f64 + (nanos % unit) as f64 / unit as f64
}

/// A duration brought to a multiple of another one; it stays as it is where that is no duration, or none
/// above zero.
fn stepped(args: &[Value], step: fn(i64, i64) -> i64) -> i64 {
    let nanos = or_zero(&args[0]);
    match nanoseconds(&args[1]) {
        Ok(multiple) if multiple > 0 => step(nanos, multiple),
        Ok(_) | Err(_) => nanos,
    }
}

/// The nearest multiple, away from zero where two are as near; the longest duration where that is too long.
fn nearest(nanos: i64, step: i64) -> i64 {
    let rest = nanos % step;
    let down = nanos - rest;
    if i128::from(rest).abs() * 2 < i128::from(step) {
        return down;
    }
    let longest = if nanos < 0 { i64::MIN } else { i64::MAX };
    down.checked_add(step * nanos.signum()).unwrap_or(longest)
}

fn nanoseconds(value: &Value) -> Result<i64, FuncError> {
    match value {
        Value::Nil => Err("invalid duration".into()),
        Value::Int(seconds) | Value::Int64(seconds) => of_seconds(*seconds),
        Value::Uint(_, seconds) => match i64::try_from(*seconds) {
            Ok(seconds) => of_seconds(seconds),
            Err(_) => Err(FuncError::new(format!("duration seconds overflow: {seconds}"))),
        },
        Value::Float(seconds) => of_float(*seconds),
        Value::Str(_) => of_text(&string(std::slice::from_ref(value), 0)),
        Value::Host(host) => match (host.as_any().downcast_ref::<Duration>(), host.underlying()) {
            (Some(duration), _) => Ok(duration.0),
            (None, Some(Value::Int64(seconds) | Value::Int(seconds))) => of_seconds(seconds),
            (None, _) => Err(FuncError::new(format!("unsupported duration type {}", host.type_name()))),
        },
        other => Err(FuncError::new(format!("unsupported duration type {}", other.type_name()))),
    }
}

fn of_text(text: &str) -> Result<i64, FuncError> {
    let inner = text.trim();
    if inner.is_empty() {
        return Err("empty duration".into());
    }
    if let Ok(nanos) = duration::parse(inner) {
        return Ok(nanos);
    }
    match inner.parse::<f64>() {
        Ok(seconds) => of_float(seconds),
        Err(_) => Err(FuncError::new(format!("could not parse duration {text:?}"))),
    }
}

fn of_seconds(seconds: i64) -> Result<i64, FuncError> {
    let overflow = || FuncError::new(format!("duration seconds overflow: {seconds}"));
    seconds.checked_mul(SECOND).ok_or_else(overflow)
}

fn of_float(seconds: f64) -> Result<i64, FuncError> {
    let shown = || float::format(seconds, b'g', None);
    if !seconds.is_finite() {
        return Err(FuncError::new(format!("invalid duration seconds: {}", shown())));
    }
    let nanos = seconds * SECOND as f64;
    if nanos.abs() > i64::MAX as f64 {
        return Err(FuncError::new(format!("duration seconds overflow: {}", shown())));
    }
    Ok(nanos as i64)
}
