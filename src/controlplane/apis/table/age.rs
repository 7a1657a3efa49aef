//! Durations and times as kubectl prints them: `45s`, `3m20s`, `5h`, `2d3h`, `400d`. Never reads a clock.

use jiff::Timestamp;
use serde_json::Value;

/// How long ago a timestamp field was, or `<unknown>` where there is none.
pub(crate) fn since(time: &Value, now: Timestamp) -> String {
    match instant(time) {
        Some(then) => human(now.as_second() - then.as_second()),
        None => "<unknown>".to_owned(),
    }
}

/// The instant in a timestamp field.
pub(crate) fn instant(time: &Value) -> Option<Timestamp> {
    time.as_str()?.parse().ok()
}

/// A number of seconds in the two largest units that matter.
pub(crate) fn human(seconds: i64) -> String {
    if seconds < -1 {
        return "<invalid>".to_owned();
    }
    let seconds = seconds.max(0);
    let with = |big: i64, unit: &str, small: i64, small_unit: &str| {
        if small == 0 { format!("{big}{unit}") } else { format!("{big}{unit}{small}{small_unit}") }
    };
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86400);
    if seconds < 120 {
        format!("{seconds}s")
    } else if minutes < 10 {
        with(minutes, "m", seconds % 60, "s")
    } else if minutes < 180 {
        format!("{minutes}m")
    } else if hours < 8 {
        with(hours, "h", minutes % 60, "m")
    } else if hours < 48 {
        format!("{hours}h")
    } else if hours < 192 {
        with(days, "d", hours % 24, "h")
    } else if days < 365 * 2 {
        format!("{days}d")
    } else if days < 365 * 8 {
        with(days / 365, "y", days % 365, "d")
    } else {
        format!("{}y", days / 365)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn ages_are_kubectls() {
        let cases = [
            (-5, "<invalid>"),
            (-1, "0s"),
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (200, "3m20s"),
            (600, "10m"),
            (10_799, "179m"),
            (10_800, "3h"),
            (10_860, "3h1m"),
            (28_800, "8h"),
            (172_799, "47h"),
            (172_800, "2d"),
            (176_400, "2d1h"),
            (691_200, "8d"),
            (63_071_999, "729d"),
            (63_072_000, "2y"),
            (63_158_400, "2y1d"),
            (252_288_000, "8y"),
        ];
        for (seconds, text) in cases {
            assert_eq!(human(seconds), text, "{seconds}");
        }
    }

    #[test]
    fn no_time_is_unknown() {
        let now: Timestamp = "2026-01-01T00:01:00Z".parse().unwrap();
        assert_eq!(since(&Value::Null, now), "<unknown>");
        assert_eq!(since(&json!("2026-01-01T00:00:00Z"), now), "60s");
    }
}
