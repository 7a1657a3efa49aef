//! Parts that the tabs share: times of day, and a tab with nothing to show.

use super::super::text::{Row, wrap};
use super::super::theme::Role;
use jiff::Timestamp;
use jiff::tz::TimeZone;

/// `17:02:11`
pub fn clock(at: Timestamp, zone: &TimeZone) -> String {
    at.to_zoned(zone.clone()).strftime("%H:%M:%S").to_string()
}

/// `17:02:11.123`
pub(crate) fn clock_millis(at: Timestamp, zone: &TimeZone) -> String {
    let zoned = at.to_zoned(zone.clone());
    format!("{}.{:03}", zoned.strftime("%H:%M:%S"), zoned.subsec_nanosecond() / 1_000_000)
}

pub(super) fn nothing(text: &str, width: usize) -> Vec<Row> {
    wrap(text, width.saturating_sub(2))
        .into_iter()
        .map(|line| Row::new(Role::Dim, format!(" {line}")))
        .collect()
}
