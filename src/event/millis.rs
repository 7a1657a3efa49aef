//! Durations in JSON: milliseconds as a number, exact to the microsecond. Fields that use it end in `Ms`.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::time::Duration;

/// Writes milliseconds.
pub(super) fn serialize<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    let micros = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
    if micros.is_multiple_of(1000) {
        (micros / 1000).serialize(serializer)
    } else {
        (micros as f64 / 1000.0).serialize(serializer)
    }
}

/// Reads milliseconds; negative numbers and NaN are refused.
pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    let millis = f64::deserialize(deserializer)?;
    if !millis.is_finite() || millis < 0.0 {
        return Err(serde::de::Error::custom("a duration in milliseconds is a number from 0"));
    }
    Ok(Duration::from_micros((millis * 1000.0).round() as u64))
}

/// Milliseconds of a duration that may be missing.
pub(super) mod maybe {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use std::time::Duration;

    #[derive(Serialize, Deserialize)]
    #[serde(transparent)]
    struct Millis(#[serde(with = "super")] Duration);

    pub(crate) fn serialize<S: Serializer>(
        duration: &Option<Duration>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        duration.map(Millis).serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Duration>, D::Error> {
        Ok(Option::<Millis>::deserialize(deserializer)?.map(|millis| millis.0))
    }
}
