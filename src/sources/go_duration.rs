//! Times as Go writes them. Pure.

use std::time::Duration;

/// A Go duration such as `1h2m4s`, `300ms` or `1.5m`; `0` needs no unit. Negative ones count as zero.
pub fn duration(text: &str) -> Option<Duration> {
    let (negative, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Some(Duration::ZERO);
    }
    if rest.is_empty() {
        return None;
    }
    let mut seconds = 0.0;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let number: f64 = rest[..end].parse().ok()?;
        let after = &rest[end..];
        let unit_end = after.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(after.len());
        seconds += number
            * match &after[..unit_end] {
                "h" => 3600.0,
                "m" => 60.0,
                "s" => 1.0,
                "ms" => 1e-3,
                "us" | "µs" => 1e-6,
                "ns" => 1e-9,
                _ => return None,
            };
        rest = &after[unit_end..];
    }
    if negative { Some(Duration::ZERO) } else { Duration::try_from_secs_f64(seconds).ok() }
}
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn go_durations() {
        assert_eq!(duration("1h2m4s"), Some(Duration::from_secs(3724)));
        assert_eq!(duration("1.5m"), Some(Duration::from_secs(90)));
        assert_eq!(duration("250ms"), Some(Duration::from_millis(250)));
        assert_eq!(duration("0"), Some(Duration::ZERO));
        assert_eq!(duration("-5m"), Some(Duration::ZERO));
        for wrong in ["", "5", "m", "5 m", "1x"] {
            assert_eq!(duration(wrong), None, "{wrong}");
        }
    }
}
