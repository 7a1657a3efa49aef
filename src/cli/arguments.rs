//! Arguments that several commands take, read from their text.

use anyhow::anyhow;
use opdev_event::words::Expected;
use opdev_object::go::duration;
use opdev_release::settings::HelmCompat;
use std::collections::HashSet;
use std::time::Duration;

/// How events are printed as JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum JsonForm {
    /// All of them.
    Whole,
    /// Without whole objects.
    Compact,
}

/// Flags that do not go together, in words.
#[derive(Debug)]
pub(super) struct WrongUsage(pub(super) String);

impl std::fmt::Display for WrongUsage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for WrongUsage {}

/// The number that random functions of charts draw by: the user's, or any.
pub(super) fn seed(given: Option<u64>) -> anyhow::Result<u64> {
    match given {
        Some(seed) => Ok(seed),
        None => Ok(getrandom::u32().map_err(|error| anyhow!("no randomness: {error}"))?.into()),
    }
}

/// A duration as Go writes it.
pub(super) fn duration(text: &str) -> Result<Duration, Expected> {
    duration::non_negative(text).map_err(|_| Expected("a duration such as 30s, 1m or 1h2m"))
}

/// Whose rendering the charts get.
pub(super) fn compat(text: &str) -> Result<HelmCompat, Expected> {
    let found = HelmCompat::NAMED.into_iter().find(|(name, _)| *name == text);
    found.map(|(_, compat)| compat).ok_or(Expected("3, 4, 3.19 or 4.1"))
}

/// The namespaces of `WATCH_NAMESPACE`, each once; none means all.
pub(super) fn namespaces(listed: Option<&str>) -> Vec<String> {
    let mut seen = HashSet::new();
    let names = listed.unwrap_or_default().split(',').map(|name| name.trim().to_owned());
    names.filter(|name| !name.is_empty() && seen.insert(name.clone())).collect()
}
