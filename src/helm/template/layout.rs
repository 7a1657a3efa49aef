//! Go's time layouts (`2006-01-02 15:04:05`): writing a time in one, and reading a time that was written in
//! one.

use super::go_error::GoError;
use jiff::Zoned;
use jiff::civil::DateTime;
use jiff::tz::{Offset, TimeZone};
use std::fmt;

use opdev_object::go::quote::quote_time as quote;

/// One part of a layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part<'a> {
    Text(&'a str),
    LongMonth,
    Month,
    MonthNumber(bool),
    LongWeekday,
    Weekday,
    Day,
    SpacedDay,
    ZeroDay,
    YearDay(bool),
    Hour,
    Hour12(bool),
    Minute(bool),
    Second(bool),
    LongYear,
    Year,
    Noon(bool),
    Zone,
    /// `Z07:00` writes `Z` for UTC; then colon, minutes, seconds
    Offset {
        zulu: bool,
        colon: bool,
        minutes: bool,
        seconds: bool,
    },
    /// digits, whether zeros at the end go, separator
    Fraction(usize, bool, char),
}

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const DAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

/// A month's name, from 1.
pub(super) fn month_name(month: i8) -> &'static str {
    MONTHS[usize::try_from(month - 1).unwrap_or(0) % 12]
}

/// A weekday's name, from 0 for Sunday.
pub(super) fn day_name(day: i8) -> &'static str {
    DAYS[usize::try_from(day).unwrap_or(0) % 7]
}

const FIXED: [(&str, Part<'static>); 34] = {
    const fn offset(zulu: bool, colon: bool, minutes: bool, seconds: bool) -> Part<'static> {
        Part::Offset { zulu, colon, minutes, seconds }
    }
    [
        ("January", Part::LongMonth),
        ("Jan", Part::Month),
        ("Monday", Part::LongWeekday),
        ("Mon", Part::Weekday),
        ("MST", Part::Zone),
        ("002", Part::YearDay(true)),
        ("01", Part::MonthNumber(true)),
        ("02", Part::ZeroDay),
        ("03", Part::Hour12(true)),
        ("04", Part::Minute(true)),
        ("05", Part::Second(true)),
        ("06", Part::Year),
        ("15", Part::Hour),
        ("1", Part::MonthNumber(false)),
        ("2006", Part::LongYear),
        ("2", Part::Day),
        ("__2", Part::YearDay(false)),
        ("_2006", Part::Text("_")),
        ("_2", Part::SpacedDay),
        ("3", Part::Hour12(false)),
        ("4", Part::Minute(false)),
        ("5", Part::Second(false)),
        ("PM", Part::Noon(true)),
        ("pm", Part::Noon(false)),
        ("-070000", offset(false, false, true, true)),
        ("-07:00:00", offset(false, true, true, true)),
        ("-0700", offset(false, false, true, false)),
        ("-07:00", offset(false, true, true, false)),
        ("-07", offset(false, false, false, false)),
        ("Z070000", offset(true, false, true, true)),
        ("Z07:00:00", offset(true, true, true, true)),
        ("Z0700", offset(true, false, true, false)),
        ("Z07:00", offset(true, true, true, false)),
        ("Z07", offset(true, false, false, false)),
    ]
};

/// The part a layout begins with, and its length.
fn part_here(layout: &str) -> Option<(Part<'_>, usize)> {
    let bytes = layout.as_bytes();
    if matches!(bytes[0], b'.' | b',') {
        let digit = *bytes.get(1)?;
        if !matches!(digit, b'0' | b'9') {
            return None;
        }
        let count = bytes[1..].iter().take_while(|b| **b == digit).count();
        if bytes.get(1 + count).is_some_and(u8::is_ascii_digit) {
            return None;
        }
        return Some((Part::Fraction(count, digit == b'9', char::from(bytes[0])), 1 + count));
    }
    for (text, part) in FIXED {
        if !layout.starts_with(text) {
            continue;
        }
        // "Jan" in "January" is caught above; "Month" is not "Mon".
        let lower_next = layout[text.len()..].starts_with(|c: char| c.is_ascii_lowercase());
        if matches!(part, Part::Month | Part::Weekday) && lower_next {
            return None;
        }
        return Some((part, if text == "_2006" { 1 } else { text.len() }));
    }
    None
}

/// Cuts off the text before the next part.
fn next_part(layout: &str) -> (&str, Option<(Part<'_>, &str)>, &str) {
    for (i, _) in layout.char_indices() {
        if let Some((part, length)) = part_here(&layout[i..]) {
            if part == Part::Text("_") {
                continue;
            }
            return (&layout[..i], Some((part, &layout[i..i + length])), &layout[i + length..]);
        }
    }
    (layout, None, "")
}

/// Writes a time in a layout.
pub(super) fn format(time: &Zoned, layout: &str) -> String {
    let mut out = String::new();
    let mut rest = layout;
    while !rest.is_empty() {
        let (text, part, after) = next_part(rest);
        out.push_str(text);
        if let Some((part, _)) = part {
            write(&mut out, time, part);
        }
        rest = after;
    }
    out
}

fn write(out: &mut String, time: &Zoned, part: Part<'_>) {
    let padded = |n: i16, zero: bool| if zero { format!("{n:02}") } else { n.to_string() };
    let hour = i16::from(time.hour());
    let hour12 = if hour % 12 == 0 { 12 } else { hour % 12 };
    let text = match part {
        Part::Text(text) => text.to_owned(),
        Part::LongMonth => month_name(time.month()).to_owned(),
        Part::Month => month_name(time.month())[..3].to_owned(),
        Part::MonthNumber(zero) => padded(i16::from(time.month()), zero),
        Part::LongWeekday => day_name(time.weekday().to_sunday_zero_offset()).to_owned(),
        Part::Weekday => day_name(time.weekday().to_sunday_zero_offset())[..3].to_owned(),
        Part::Day => time.day().to_string(),
        Part::SpacedDay => format!("{:>2}", time.day()),
        Part::ZeroDay => format!("{:02}", time.day()),
        Part::YearDay(true) => format!("{:03}", time.day_of_year()),
        Part::YearDay(false) => format!("{:>3}", time.day_of_year()),
        Part::Hour => padded(hour, true),
        Part::Hour12(zero) => padded(hour12, zero),
        Part::Minute(zero) => padded(i16::from(time.minute()), zero),
        Part::Second(zero) => padded(i16::from(time.second()), zero),
        Part::LongYear => format!("{:04}", time.year()),
        Part::Year => format!("{:02}", time.year().rem_euclid(100)),
        Part::Noon(upper) => match (hour >= 12, upper) {
            (true, true) => "PM",
            (false, true) => "AM",
            (true, false) => "pm",
            (false, false) => "am",
        }
        .to_owned(),
        Part::Zone => zone_name(time),
        Part::Offset { zulu: true, .. } if time.offset().seconds() == 0 => "Z".to_owned(),
        Part::Offset { colon, minutes, seconds, .. } => offset_text(time.offset(), colon, minutes, seconds),
        Part::Fraction(digits, trim, mark) => fraction(time.subsec_nanosecond(), digits, trim, mark),
    };
    out.push_str(&text);
}

/// The zone's abbreviation, or its offset where it has none.
pub(super) fn zone_name(time: &Zoned) -> String {
    let info = time.time_zone().to_offset_info(time.timestamp());
    let name = info.abbreviation();
    if name.starts_with(['+', '-']) && time.time_zone().iana_name().is_none() {
        return offset_text(time.offset(), false, true, false);
    }
    name.to_owned()
}

fn offset_text(offset: Offset, colon: bool, minutes: bool, seconds: bool) -> String {
    let total = offset.seconds();
    let sign = if total < 0 { '-' } else { '+' };
    let total = total.abs();
    let mark = if colon { ":" } else { "" };
    let mut text = format!("{sign}{:02}", total / 3600);
    if minutes {
        text.push_str(&format!("{mark}{:02}", total / 60 % 60));
    }
    if seconds {
        text.push_str(&format!("{mark}{:02}", total % 60));
    }
    text
}

fn fraction(nanos: i32, digits: usize, trim: bool, mark: char) -> String {
    let text = format!("{nanos:09}");
    let mut text = &text[..digits.min(9)];
    if trim {
        text = text.trim_end_matches('0');
        if text.is_empty() {
            return String::new();
        }
    }
    format!("{mark}{text}")
}

/// The parts that reading has found so far.
struct Found {
    year: i16,
    month: Option<i8>,
    day: Option<i8>,
    year_day: Option<i16>,
    hour: i8,
    minute: i8,
    second: i8,
    nanos: i32,
    noon: Option<bool>,
    offset: Option<Offset>,
    zone: Option<String>,
}

/// Why a text is not a time of a layout, in Go's words: Go's `ParseError`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TimeError {
    /// A part of the value is not what the layout has there.
    Mismatch {
        /// The text.
        value: String,
        /// The layout.
        layout: String,
        /// The part of the layout.
        element: String,
        /// The rest of the text.
        rest: String,
    },
    /// A field is larger or smaller than its calendar allows.
    OutOfRange {
        /// The text.
        value: String,
        /// The field, such as `month`.
        field: &'static str,
    },
    /// The text goes on where the layout ends.
    ExtraText {
        /// The text.
        value: String,
        /// The rest.
        rest: String,
    },
}

impl fmt::Display for TimeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let quote = |text: &str| quote(text.as_bytes());
        match self {
            TimeError::Mismatch { value, layout, element, rest } => write!(
                f,
                "parsing time {} as {}: cannot parse {} as {}",
                quote(value),
                quote(layout),
                quote(rest),
                quote(element)
            ),
            TimeError::OutOfRange { value, field } => {
                write!(f, "parsing time {}: {field} out of range", quote(value))
            }
            TimeError::ExtraText { value, rest } => {
                write!(f, "parsing time {}: extra text: {}", quote(value), quote(rest))
            }
        }
    }
}

impl GoError for TimeError {}

/// Reads a time written in a layout; where it names no zone it is in `local`.
///
/// # Errors
/// Go's words about what does not fit.
pub(super) fn parse(layout: &str, value: &str, local: &TimeZone) -> Result<Zoned, TimeError> {
    let fail = |element: &str, at: &str| TimeError::Mismatch {
        value: value.to_owned(),
        layout: layout.to_owned(),
        element: element.to_owned(),
        rest: at.to_owned(),
    };
    let range = |field: &'static str| TimeError::OutOfRange { value: value.to_owned(), field };
    let mut found = Found {
        year: 0,
        month: None,
        day: None,
        year_day: None,
        hour: 0,
        minute: 0,
        second: 0,
        nanos: 0,
        noon: None,
        offset: None,
        zone: None,
    };
    let (mut layout_rest, mut rest) = (layout, value);
    loop {
        let (text, part, after) = next_part(layout_rest);
        rest = skip(rest, text).map_err(|at| fail(text, at))?;
        let Some((part, element)) = part else {
            if !rest.is_empty() {
                return Err(TimeError::ExtraText { value: value.to_owned(), rest: rest.to_owned() });
            }
            break;
        };
        let (next, out_of_range) = read(part, rest, after, &mut found).ok_or_else(|| fail(element, rest))?;
        if let Some(what) = out_of_range {
            return Err(range(what));
        }
        rest = next;
        layout_rest = after;
    }
    if let Some(afternoon) = found.noon {
        if afternoon && found.hour < 12 {
            found.hour += 12;
        } else if !afternoon && found.hour == 12 {
            found.hour = 0;
        }
    }
    build(&found, local).ok_or_else(|| range("day"))
}

fn build(found: &Found, local: &TimeZone) -> Option<Zoned> {
    let mut date =
        jiff::civil::Date::new(found.year, found.month.unwrap_or(1), found.day.unwrap_or(1)).ok()?;
    if let Some(day) = found.year_day {
        date = date.with().day_of_year(day).build().ok()?;
    }
    let time = jiff::civil::Time::new(found.hour, found.minute, found.second, found.nanos).ok()?;
    let moment = DateTime::from_parts(date, time);
    let zone = match (found.offset, &found.zone) {
        (Some(offset), _) => {
            let in_local = moment.to_zoned(local.clone()).ok()?;
            if in_local.offset() == offset {
                return Some(in_local);
            }
            if offset.is_zero() { TimeZone::UTC } else { TimeZone::fixed(offset) }
        }
        (None, Some(name)) if name == "UTC" => TimeZone::UTC,
        _ => local.clone(),
    };
    moment.to_zoned(zone).ok()
}

/// Text of a layout in a value; spaces match runs of spaces.
fn skip<'a>(mut value: &'a str, mut text: &str) -> Result<&'a str, &'a str> {
    while let Some(c) = text.chars().next() {
        if c == ' ' {
            if !value.is_empty() && !value.starts_with(' ') {
                return Err(value);
            }
            text = text.trim_start_matches(' ');
            value = value.trim_start_matches(' ');
            continue;
        }
        value = value.strip_prefix(c).ok_or(value)?;
        text = &text[c.len_utf8()..];
    }
    Ok(value)
}

/// One or two digits; two where they are fixed.
fn digits(value: &str, fixed: bool) -> Option<(i8, &str)> {
    let count = value.bytes().take(2).take_while(u8::is_ascii_digit).count();
    if count == 0 || (fixed && count < 2) {
        return None;
    }
    Some((value[..count].parse().ok()?, &value[count..]))
}

fn name<'a>(value: &'a str, names: &[&str], length: Option<usize>) -> Option<(i8, &'a str)> {
    for (i, name) in names.iter().enumerate() {
        let name = length.map_or(*name, |n| &name[..n]);
        if value.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name)) {
            return Some((i8::try_from(i).ok()?, &value[name.len()..]));
        }
    }
    None
}

type Read<'a> = (&'a str, Option<&'static str>);

/// Reads one part: what is left, and what was out of range.
fn read<'a>(part: Part<'_>, value: &'a str, layout: &str, found: &mut Found) -> Option<Read<'a>> {
    let within = |ok: bool, what: &'static str| if ok { None } else { Some(what) };
    Some(match part {
        Part::Text(_) => (value, None),
        Part::LongYear => {
            let year = value.get(..4).filter(|y| y.bytes().all(|b| b.is_ascii_digit()))?;
            found.year = year.parse().ok()?;
            (&value[4..], None)
        }
        Part::Year => {
            let (year, rest) = digits(value, true)?;
            found.year = i16::from(year) + if year >= 69 { 1900 } else { 2000 };
            (rest, None)
        }
        Part::LongMonth | Part::Month => {
            let (month, rest) = name(value, &MONTHS, (part == Part::Month).then_some(3))?;
            found.month = Some(month + 1);
            (rest, None)
        }
        Part::MonthNumber(zero) => {
            let (month, rest) = digits(value, zero)?;
            found.month = Some(month);
            (rest, within((1..=12).contains(&month), "month"))
        }
        Part::LongWeekday => (name(value, &DAYS, None)?.1, None),
        Part::Weekday => (name(value, &DAYS, Some(3))?.1, None),
        Part::Day | Part::SpacedDay | Part::ZeroDay => {
            let value =
                if part == Part::SpacedDay { value.strip_prefix(' ').unwrap_or(value) } else { value };
            let (day, rest) = digits(value, part == Part::ZeroDay)?;
            found.day = Some(day);
            (rest, within((1..=31).contains(&day), "day"))
        }
        Part::YearDay(_) => {
            let text = value.get(..3)?.trim_start();
            found.year_day = Some(text.parse().ok()?);
            (&value[3..], within(found.year_day.is_some_and(|d| (1..=366).contains(&d)), "day-of-year"))
        }
        Part::Hour => {
            let (hour, rest) = digits(value, false)?;
            found.hour = hour;
            (rest, within(hour < 24, "hour"))
        }
        Part::Hour12(zero) => {
            let (hour, rest) = digits(value, zero)?;
            found.hour = hour;
            (rest, within(hour <= 12, "hour"))
        }
        Part::Minute(zero) => {
            let (minute, rest) = digits(value, zero)?;
            found.minute = minute;
            (rest, within(minute < 60, "minute"))
        }
        Part::Second(zero) => {
            let (second, mut rest) = digits(value, zero)?;
            found.second = second;
            // A fraction may follow even where the layout has none.
            let layout_has = layout.starts_with(['.', ',']) && part_here(layout).is_some();
            if !layout_has
                && rest.starts_with(['.', ','])
                && rest[1..].starts_with(|c: char| c.is_ascii_digit())
            {
                (found.nanos, rest) = nanos(rest)?;
            }
            (rest, within(second < 60, "second"))
        }
        Part::Noon(upper) => {
            let text = value.get(..2)?;
            found.noon = Some(match (text, upper) {
                ("PM", true) | ("pm", false) => true,
                ("AM", true) | ("am", false) => false,
                _ => return None,
            });
            (&value[2..], None)
        }
        Part::Zone => {
            let length = value.bytes().take_while(u8::is_ascii_uppercase).count();
            if !(3..=5).contains(&length) {
                return None;
            }
            found.zone = Some(value[..length].to_owned());
            (&value[length..], None)
        }
        Part::Offset { zulu: true, .. } if value.starts_with('Z') => {
            found.offset = Some(Offset::UTC);
            (&value[1..], None)
        }
        Part::Offset { colon, minutes, seconds, .. } => {
            let (offset, rest) = read_offset(value, colon, minutes, seconds)?;
            found.offset = Some(offset);
            (rest, None)
        }
        Part::Fraction(_, true, _) if !value.starts_with(['.', ',']) => (value, None),
        Part::Fraction(..) => {
            let (n, rest) = nanos(value)?;
            found.nanos = n;
            (rest, None)
        }
    })
}

fn nanos(value: &str) -> Option<(i32, &str)> {
    let body = value.strip_prefix(['.', ','])?;
    let count = body.bytes().take_while(u8::is_ascii_digit).count();
    if count == 0 {
        return None;
    }
    let kept = &body[..count.min(9)];
    Some((format!("{kept:0<9}").parse().ok()?, &body[count..]))
}

fn read_offset(value: &str, colon: bool, minutes: bool, seconds: bool) -> Option<(Offset, &str)> {
    let sign = match value.as_bytes().first()? {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let (hours, mut rest) = digits(&value[1..], true)?;
    let mut total = i32::from(hours) * 3600;
    for (wanted, unit) in [(minutes, 60), (seconds, 1)] {
        if wanted {
            if colon {
                rest = rest.strip_prefix(':')?;
            }
            let (n, after) = digits(rest, true)?;
            total += i32::from(n) * unit;
            rest = after;
        }
    }
    Some((Offset::from_seconds(sign * total).ok()?, rest))
}
