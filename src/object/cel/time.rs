//! Timestamps and durations: reading, writing, parts of the calendar. Counts nanoseconds; reads no clock.

use opdev_object::go::duration;

pub(super) const SECOND: i128 = 1_000_000_000;
/// The first and last timestamp there is: the years 1 and 9999.
const FIRST: i128 = -62_135_596_800 * SECOND;
const LAST: i128 = 253_402_300_799 * SECOND + 999_999_999;

/// Returns true if a timestamp can be written.
pub(super) fn in_range(nanos: i128) -> bool {
    (FIRST..=LAST).contains(&nanos)
}

/// Days since 1970 of a date.
pub(super) fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year - era * 400;
    let of_year = (153 * (month + if month > 2 { -3 } else { 9 }) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// A moment taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Parts {
    pub(super) year: i64,
    /// From 1.
    pub(super) month: i64,
    /// From 1.
    pub(super) day: i64,
    /// From 0.
    pub(super) day_of_year: i64,
    /// Sunday is 0.
    pub(super) weekday: i64,
    pub(super) hour: i64,
    pub(super) minute: i64,
    pub(super) second: i64,
    pub(super) nanos: i64,
}

/// The parts of a timestamp, seen `offset` seconds east of UTC.
pub(super) fn parts(nanos: i128, offset: i64) -> Parts {
    let nanos = nanos + i128::from(offset) * SECOND;
    let seconds = nanos.div_euclid(SECOND) as i64;
    let (count, rest) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let shifted = count + 719_468;
    let era = shifted.div_euclid(146_097);
    let of_era = shifted - era * 146_097;
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    Parts {
        year,
        month,
        day,
        day_of_year: count - days(year, 1, 1),
        weekday: (count + 4).rem_euclid(7),
        hour: rest / 3600,
        minute: rest / 60 % 60,
        second: rest % 60,
        nanos: nanos.rem_euclid(SECOND) as i64,
    }
}

fn digits(text: &str) -> Option<i64> {
    if text.is_empty() || !text.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    text.parse().ok()
}

fn length_of(year: i64, month: i64) -> i64 {
    match month {
        2 if (year % 4 == 0 && year % 100 != 0) || year % 400 == 0 => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// `2006-01-02` as days since 1970.
pub(super) fn date(text: &str) -> Option<i64> {
    let mut pieces = text.splitn(3, '-');
    let (year, month, day) = (pieces.next()?, pieces.next()?, pieces.next()?);
    if year.len() != 4 || month.len() != 2 || day.len() != 2 {
        return None;
    }
    let (year, month, day) = (digits(year)?, digits(month)?, digits(day)?);
    let fits = (1..=12).contains(&month) && (1..=length_of(year, month)).contains(&day);
    fits.then(|| days(year, month, day))
}

/// RFC 3339 as a timestamp.
pub(super) fn timestamp(text: &str) -> Option<i128> {
    if !text.is_ascii() || text.len() < 20 {
        return None;
    }
    let count = date(&text[..10])?;
    if !matches!(text.as_bytes()[10], b'T' | b't' | b' ') {
        return None;
    }
    let clock = &text[11..];
    let zone_at = clock.find(['Z', 'z', '+', '-'])?;
    let (clock, zone) = clock.split_at(zone_at);
    let (whole, fraction) = clock.split_once('.').map_or((clock, None), |(whole, rest)| (whole, Some(rest)));
    let pieces: Vec<&str> = whole.split(':').collect();
    let [hour, minute, second] = pieces.as_slice() else { return None };
    if hour.len() != 2 || minute.len() != 2 || second.len() != 2 {
        return None;
    }
    let (hour, minute, second) = (digits(hour)?, digits(minute)?, digits(second)?);
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let nanos = match fraction {
        None => 0,
        Some(text) => {
            digits(text)?;
            digits(&format!("{text:0<9}")[..9])?
        }
    };
    let offset = if matches!(zone, "Z" | "z") { 0 } else { offset(zone)? };
    let seconds = count * 86_400 + hour * 3600 + minute * 60 + second - offset;
    Some(i128::from(seconds) * SECOND + i128::from(nanos))
}

/// `+02:00` or `02:00` in seconds.
pub(super) fn offset(text: &str) -> Option<i64> {
    let (sign, rest) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let (hours, minutes) = rest.split_once(':')?;
    let (hours, minutes) = (digits(hours)?, digits(minutes)?);
    (hours <= 23 && minutes <= 59).then_some(sign * (hours * 3600 + minutes * 60))
}

/// RFC 3339 in UTC.
pub(super) fn show_timestamp(nanos: i128) -> String {
    let p = parts(nanos, 0);
    let mut text =
        format!("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}", p.year, p.month, p.day, p.hour, p.minute, p.second);
    if p.nanos != 0 {
        text.push('.');
        text.push_str(format!("{:09}", p.nanos).trim_end_matches('0'));
    }
    text.push('Z');
    text
}

/// Go's text of a duration, such as `1h30m`; `None` where it is none or too long.
pub(super) fn duration(text: &str) -> Option<i128> {
    duration::parse(text).ok().map(i128::from)
}

/// A duration as CEL's `string()` writes it, such as `5400s`.
pub(super) fn show_duration(nanos: i128) -> String {
    let (sign, nanos) = if nanos < 0 { ("-", -nanos) } else { ("", nanos) };
    let fraction = format!("{:09}", nanos % SECOND);
    let fraction = fraction.trim_end_matches('0');
    let dot = if fraction.is_empty() { "" } else { "." };
    format!("{sign}{}{dot}{fraction}s", nanos / SECOND)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_read_and_written() {
        let text = "2024-02-29T12:30:15.5Z";
        let nanos = timestamp(text).unwrap();
        assert_eq!(show_timestamp(nanos), text);
        assert_eq!(timestamp("2024-02-29T14:30:15.5+02:00"), Some(nanos));
        let p = parts(nanos, 0);
        assert_eq!((p.weekday, p.day_of_year, p.hour), (4, 59, 12));
        assert_eq!(timestamp("2023-02-29T12:30:15Z"), None);
        assert_eq!(timestamp("1970-01-01T00:00:00Z"), Some(0));
        assert_eq!(parts(-1, 0).year, 1969);
    }

    #[test]
    fn durations_are_read_and_written() {
        assert_eq!(duration("1h30m"), Some(5400 * SECOND));
        assert_eq!(duration("-1.5s"), Some(-1_500_000_000));
        assert_eq!(duration("1d"), None);
        assert_eq!(duration("100ms").map(show_duration).as_deref(), Some("0.1s"));
        assert_eq!(duration(""), None);
        assert_eq!(duration("300000000h"), None);
    }
}
