//! The string formats that apiextensions checks, by their names without dashes.
//! An unknown format is ignored, as upstream ignores it.

use super::model::Kind;
use super::pattern::Pattern;
use base64::Engine;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::OnceLock;

const CHECKED: [&str; 26] = [
    "bsonobjectid",
    "uri",
    "email",
    "hostname",
    "ipv4",
    "ipv6",
    "cidr",
    "mac",
    "uuid",
    "uuid3",
    "uuid4",
    "uuid5",
    "isbn",
    "isbn10",
    "isbn13",
    "creditcard",
    "ssn",
    "hexcolor",
    "rgbcolor",
    "byte",
    "password",
    "date",
    "duration",
    "datetime",
    "k8sshortname",
    "k8slongname",
];

fn normalized(format: &str) -> String {
    format.replace('-', "")
}

/// Returns true if the format is checked for values of this kind.
pub(super) fn is_checked(kind: Kind, format: &str) -> bool {
    match kind {
        Kind::Any | Kind::String | Kind::IntOrString => CHECKED.contains(&normalized(format).as_str()),
        Kind::Integer => matches!(format, "int32" | "int64"),
        Kind::Number => matches!(format, "float" | "double"),
        Kind::Object | Kind::Array | Kind::Boolean => false,
    }
}

/// Returns true if `text` is of the format.
pub(super) fn matches(format: &str, text: &str) -> bool {
    match normalized(format).as_str() {
        "bsonobjectid" => text.len() == 24 && text.bytes().all(|b| b.is_ascii_hexdigit()),
        "uri" => is_uri(text),
        "email" => is_email(text),
        "hostname" => is_hostname(text),
        "ipv4" => text.parse::<Ipv4Addr>().is_ok(),
        "ipv6" => text.parse::<Ipv6Addr>().is_ok(),
        "cidr" => is_cidr(text),
        "mac" => is_mac(text),
        "uuid" => is_uuid(text, None),
        "uuid3" => is_uuid(text, Some('3')),
        "uuid4" => is_uuid(text, Some('4')),
        "uuid5" => is_uuid(text, Some('5')),
        "isbn" => is_isbn10(text) || is_isbn13(text),
        "isbn10" => is_isbn10(text),
        "isbn13" => is_isbn13(text),
        "creditcard" => is_credit_card(text),
        "ssn" => regex(&SSN, r"^\d{3}[- ]?\d{2}[- ]?\d{4}$", text),
        "hexcolor" => regex(&HEX, "^#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$", text),
        "rgbcolor" => is_rgb(text),
        "byte" => is_base64(text),
        "date" => is_date(text),
        "duration" => is_duration(text),
        "datetime" => is_datetime(text),
        "k8sshortname" => text.len() <= 63 && is_label(text),
        "k8slongname" => text.len() <= 253 && text.split('.').all(is_label),
        _ => true,
    }
}

static SSN: OnceLock<Pattern> = OnceLock::new();
static HEX: OnceLock<Pattern> = OnceLock::new();
static CARD: OnceLock<Pattern> = OnceLock::new();

fn regex(cell: &'static OnceLock<Pattern>, pattern: &str, text: &str) -> bool {
    cell.get_or_init(|| Pattern::new(pattern)).is_match(text).unwrap_or(false)
}

fn is_label(text: &str) -> bool {
    let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let bytes = text.as_bytes();
    !bytes.is_empty()
        && bytes.iter().all(|b| inner(*b) || *b == b'-')
        && inner(bytes[0])
        && inner(bytes[bytes.len() - 1])
}

fn is_uri(text: &str) -> bool {
    if text.is_empty() || text.bytes().any(|b| b < 0x20 || b == 0x7f || b == b' ') {
        return false;
    }
    if text.starts_with('/') {
        return true;
    }
    let Some((scheme, rest)) = text.split_once(':') else { return false };
    let mut letters = scheme.chars();
    letters.next().is_some_and(|c| c.is_ascii_alphabetic())
        && letters.all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'))
        && (rest.starts_with('/') || !rest.is_empty())
}

fn is_email(text: &str) -> bool {
    let address = match (text.rfind('<'), text.ends_with('>')) {
        (Some(start), true) => &text[start + 1..text.len() - 1],
        _ => text,
    };
    let Some((local, domain)) = address.rsplit_once('@') else { return false };
    let part = |p: &str| {
        !p.is_empty()
            && p.split('.').all(|label| {
                !label.is_empty()
                    && label.chars().all(|c| c.is_alphanumeric() || "!#$%&'*+/=?^_`{|}~-".contains(c))
            })
    };
    part(local) && part(domain)
}

fn is_hostname(text: &str) -> bool {
    let letter = |c: char| c.is_alphanumeric() || !c.is_ascii();
    let label = |l: &str| {
        !l.is_empty()
            && l.len() <= 63
            && l.chars().all(|c| letter(c) || c == '-')
            && !l.starts_with('-')
            && !l.ends_with('-')
    };
    let labels: Vec<&str> = text.split('.').collect();
    text.len() <= 255
        && labels.iter().all(|l| label(l))
        && (labels.len() == 1
            || labels
                .last()
                .is_some_and(|top| top.chars().count() >= 2 && top.chars().all(char::is_alphabetic)))
}

fn is_cidr(text: &str) -> bool {
    let Some((address, bits)) = text.split_once('/') else { return false };
    let most = match address.parse::<IpAddr>() {
        Ok(IpAddr::V4(_)) => 32,
        Ok(IpAddr::V6(_)) => 128,
        Err(_) => return false,
    };
    !bits.is_empty()
        && bits.bytes().all(|b| b.is_ascii_digit())
        && bits.parse::<u32>().is_ok_and(|b| b <= most)
}

fn is_mac(text: &str) -> bool {
    let hex = |part: &str, digits: usize| part.len() == digits && part.bytes().all(|b| b.is_ascii_hexdigit());
    let parts = |separator: char, digits: usize, counts: [usize; 3]| {
        let all: Vec<&str> = text.split(separator).collect();
        counts.contains(&all.len()) && all.iter().all(|part| hex(part, digits))
    };
    parts(':', 2, [6, 8, 20]) || parts('-', 2, [6, 8, 20]) || parts('.', 4, [3, 4, 10])
}

fn is_uuid(text: &str, version: Option<char>) -> bool {
    let mut digits = String::with_capacity(32);
    let mut rest = text;
    for (i, length) in [8, 4, 4, 4, 12].into_iter().enumerate() {
        if i > 0 {
            rest = rest.strip_prefix('-').unwrap_or(rest);
        }
        if !rest.is_char_boundary(length.min(rest.len())) || rest.len() < length {
            return false;
        }
        digits.push_str(&rest[..length]);
        rest = &rest[length..];
    }
    let variant = |c: char| matches!(c.to_ascii_lowercase(), '8' | '9' | 'a' | 'b');
    rest.is_empty()
        && digits.bytes().all(|b| b.is_ascii_hexdigit())
        && version.is_none_or(|v| digits[12..13].starts_with(v))
        && (matches!(version, None | Some('3')) || digits[16..17].starts_with(variant))
}

fn isbn_digits(text: &str) -> String {
    text.chars().filter(|c| !matches!(c, '-' | ' ')).collect()
}

fn is_isbn10(text: &str) -> bool {
    let digits = isbn_digits(text);
    let bytes = digits.as_bytes();
    if bytes.len() != 10 || !bytes[..9].iter().all(u8::is_ascii_digit) {
        return false;
    }
    let sum: u32 = bytes[..9].iter().zip(1..).map(|(b, i)| u32::from(b - b'0') * i).sum();
    match bytes[9] {
        b'X' => (sum + 100).is_multiple_of(11),
        last if last.is_ascii_digit() => (sum + 10 * u32::from(last - b'0')).is_multiple_of(11),
        _ => false,
    }
}

fn is_isbn13(text: &str) -> bool {
    let digits = isbn_digits(text);
    let bytes = digits.as_bytes();
    if bytes.len() != 13 || !bytes.iter().all(u8::is_ascii_digit) {
        return false;
    }
    let sum: u32 = bytes[..12]
        .iter()
        .enumerate()
        .map(|(i, b)| u32::from(b - b'0') * if i % 2 == 0 { 1 } else { 3 })
        .sum();
    (10 - sum % 10) % 10 == u32::from(bytes[12] - b'0')
}

fn is_credit_card(text: &str) -> bool {
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    let shape = r"^(?:4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|6(?:011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}|3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:2131|1800|35\d{3})\d{11})$";
    if !regex(&CARD, shape, &digits) {
        return false;
    }
    let sum: u32 = digits
        .bytes()
        .rev()
        .enumerate()
        .map(|(i, b)| {
            let digit = u32::from(b - b'0') * if i % 2 == 1 { 2 } else { 1 };
            if digit > 9 { digit - 9 } else { digit }
        })
        .sum();
    sum.is_multiple_of(10)
}

fn is_rgb(text: &str) -> bool {
    let Some(inner) = text.strip_prefix("rgb(").and_then(|rest| rest.strip_suffix(')')) else { return false };
    let parts: Vec<&str> = inner.split(',').map(str::trim).collect();
    parts.len() == 3 && parts.iter().all(|part| part.parse::<u8>().is_ok())
}

fn is_base64(text: &str) -> bool {
    let standard = base64::engine::general_purpose::STANDARD.decode(text).is_ok();
    !text.is_empty() && standard
}

fn numbers<const N: usize>(text: &str, separator: char, widths: [usize; N]) -> Option<[u32; N]> {
    let parts: Vec<&str> = text.split(separator).collect();
    let mut out = [0; N];
    if parts.len() != N {
        return None;
    }
    for ((part, width), slot) in parts.iter().zip(widths).zip(&mut out) {
        if part.len() != width || !part.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        *slot = part.parse().ok()?;
    }
    Some(out)
}

fn is_date(text: &str) -> bool {
    let Some([year, month, day]) = numbers(text, '-', [4, 2, 2]) else { return false };
    let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let days = match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 if leap => 29,
        2 => 28,
        _ => return false,
    };
    (1..=days).contains(&day)
}

fn is_datetime(text: &str) -> bool {
    if !text.is_char_boundary(10.min(text.len())) || text.len() < 11 {
        return false;
    }
    let (date, rest) = text.split_at(10);
    let Some(time) = rest.strip_prefix(['T', 't', ' ']) else { return false };
    let zone_at = time.find(['Z', 'z', '+', '-']).unwrap_or(time.len());
    let (clock, zone) = time.split_at(zone_at);
    let (clock, fraction) = clock.split_once('.').map_or((clock, None), |(c, f)| (c, Some(f)));
    let clock_ok = numbers(clock, ':', [2, 2, 2]).is_some_and(|[h, m, s]| h < 24 && m < 60 && s < 61);
    let fraction_ok = fraction.is_none_or(|f| !f.is_empty() && f.bytes().all(|b| b.is_ascii_digit()));
    let zone_ok = match zone {
        "Z" | "z" => true,
        "" => false,
        offset => numbers(&offset[1..], ':', [2, 2]).is_some_and(|[h, m]| h < 24 && m < 60),
    };
    is_date(date) && clock_ok && fraction_ok && zone_ok
}

fn is_duration(text: &str) -> bool {
    duration_nanos(text).is_some()
}

/// A duration in nanoseconds: Go's form, and the longer words that schemas take too.
pub fn duration_nanos(text: &str) -> Option<i128> {
    const UNITS: [&str; 36] = [
        "ns",
        "us",
        "µs",
        "μs",
        "ms",
        "s",
        "m",
        "h",
        "d",
        "w",
        "nano",
        "nanos",
        "nanosecond",
        "nanoseconds",
        "micro",
        "micros",
        "microsecond",
        "microseconds",
        "milli",
        "millis",
        "millisecond",
        "milliseconds",
        "sec",
        "secs",
        "second",
        "seconds",
        "min",
        "mins",
        "minute",
        "minutes",
        "hr",
        "hour",
        "hours",
        "day",
        "days",
        "week",
    ];
    let mut rest = text.trim();
    let sign = if rest.starts_with('-') { -1 } else { 1 };
    rest = rest.strip_prefix(['+', '-']).unwrap_or(rest);
    if rest == "0" {
        return Some(0);
    }
    if rest.is_empty() {
        return None;
    }
    let mut total = 0i128;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let count: f64 = rest[..digits].parse().ok()?;
        rest = rest[digits..].trim_start();
        let unit = rest.find(|c: char| c.is_ascii_digit() || c == '.' || c == ' ').unwrap_or(rest.len());
        let name = &rest[..unit];
        if !UNITS.contains(&name) && name != "weeks" {
            return None;
        }
        total = total.checked_add((count * nanos_of(name)) as i128)?;
        rest = rest[unit..].trim_start();
    }
    i64::try_from(total).ok().map(|nanos| i128::from(nanos) * sign)
}

fn nanos_of(unit: &str) -> f64 {
    match unit {
        "ns" => 1.0,
        "us" | "µs" | "μs" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        "m" => 60e9,
        "h" => 3600e9,
        "d" => 86_400e9,
        "w" => 604_800e9,
        _ if unit.starts_with("nano") => 1.0,
        _ if unit.starts_with("micro") => 1e3,
        _ if unit.starts_with("milli") => 1e6,
        _ if unit.starts_with("sec") => 1e9,
        _ if unit.starts_with("min") => 60e9,
        _ if unit.starts_with('h') => 3600e9,
        _ if unit.starts_with("day") => 86_400e9,
        _ => 604_800e9,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_formats() {
        let cases: [(&str, &[&str], &[&str]); 12] = [
            (
                "date-time",
                &["2026-11-20T18:00:00Z", "2026-11-20T18:00:00.5+01:00"],
                &["2026-11-20", "x", "2026-13-01T00:00:00Z"],
            ),
            ("date", &["2024-02-29"], &["2023-02-29", "24-02-01"]),
            ("duration", &["1h30m", "22 ns", "5 minutes", "-1.5h", "0"], &["", "5", "1x"]),
            ("ipv4", &["10.0.0.1"], &["10.0.0.256", "::1"]),
            ("cidr", &["10.0.0.0/8", "fd00::/64"], &["10.0.0.0/33", "10.0.0.0"]),
            ("uuid", &["123e4567-e89b-12d3-a456-426614174000"], &["123e4567"]),
            ("uuid4", &["123e4567-e89b-42d3-a456-426614174000"], &["123e4567-e89b-12d3-a456-426614174000"]),
            ("byte", &["aGk="], &["a", "*"]),
            ("mac", &["00:00:5e:00:53:01", "0000.5e00.5301"], &["00:00:5e:00:53"]),
            ("hostname", &["example.com", "a-b"], &["-a", "a..b", "a_b"]),
            ("email", &["a@b.c", "A <a@b.c>"], &["a", "@b"]),
            ("k8s-short-name", &["web-0"], &["Web", "-a", ""]),
        ];
        for (format, good, bad) in cases {
            for text in good {
                assert!(matches(format, text), "{format}: {text}");
            }
            for text in bad {
                assert!(!matches(format, text), "{format}: {text}");
            }
        }
        assert!(is_checked(Kind::String, "date-time") && !is_checked(Kind::String, "int-or-string"));
        assert!(is_checked(Kind::Integer, "int32") && !is_checked(Kind::Integer, "date"));
    }
}
