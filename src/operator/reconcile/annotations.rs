//! What a custom resource's annotations ask for. Booleans and durations read as Go reads them. Pure.

use crate::sources::chart_options::ChartOptions;
use opdev_object::meta;
use serde_json::Value;
use std::fmt;
use std::time::Duration;

const PREFIX: &str = "helm.sdk.operatorframework.io/";

/// Replace objects instead of applying them. Default false.
pub(super) fn upgrade_force(object: &Value) -> bool {
    flag(object, "upgrade-force", false)
}

/// Replace objects in the rollback after a failed upgrade. Default true.
pub(super) fn rollback_force(object: &Value) -> bool {
    flag(object, "rollback-force", true)
}

/// Keep the object until everything of its release is gone. Default false.
pub(super) fn uninstall_wait(object: &Value) -> bool {
    flag(object, "uninstall-wait", false)
}

/// An object's own reconcile period that cannot be read. Its text holds that of the duration's error.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct PeriodError {
    annotation: String,
    error: DurationError,
}

impl fmt::Display for PeriodError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "annotation {}: {}; write it like 30s or 1h2m", self.annotation, self.error)
    }
}

impl std::error::Error for PeriodError {}

/// The object's own reconcile period; zero means never.
pub(super) fn reconcile_period(object: &Value) -> Result<Option<Duration>, PeriodError> {
    let annotation = format!("{PREFIX}reconcile-period");
    match meta::annotation(object, &annotation) {
        None => Ok(None),
        Some(text) => go_duration(text).map(Some).map_err(|error| PeriodError { annotation, error }),
    }
}

/// What only the hybrid library (helm-operator-plugins) reads.
const HYBRID: [&str; 6] = [
    "install-disable-hooks",
    "upgrade-disable-hooks",
    "uninstall-disable-hooks",
    "install-description",
    "upgrade-description",
    "uninstall-description",
];

/// What to do about an annotation that has no effect.
pub(super) const IGNORED_HINT: &str = "only operators written with the helm-operator-plugins library read it; say \
                                       `engine: hybrid` in opdev.yaml, or name it in `annotations` there";

/// The annotations of an object that have no effect; `options` say which have one.
pub(super) fn ignored(object: &Value, options: &ChartOptions) -> Vec<String> {
    if options.is_hybrid() {
        return Vec::new();
    }
    let read = options.annotations.iter();
    let read: Vec<&String> = read
        .flat_map(|all| all.install.iter().chain(&all.upgrade).chain(&all.uninstall))
        .map(|(_, name)| name)
        .collect();
    let names = HYBRID.iter().map(|name| format!("{PREFIX}{name}"));
    names.filter(|name| !read.contains(&name) && meta::annotation(object, name).is_some()).collect()
}

/// That an annotation has no effect.
pub(super) fn ignored_words(name: &str) -> String {
    format!("the annotation {name} has no effect: neither opdev nor the Operator SDK's operator reads it")
}

fn flag(object: &Value, name: &str, default: bool) -> bool {
    match meta::annotation(object, &format!("{PREFIX}{name}")) {
        Some(text) if is_true(text) => true,
        Some("0" | "f" | "F" | "false" | "False" | "FALSE") => false,
        Some(_) | None => default,
    }
}

/// Whether a text is what Go takes for true.
pub(super) fn is_true(text: &str) -> bool {
    matches!(text, "1" | "t" | "T" | "true" | "True" | "TRUE")
}

/// Why a text is no duration, in Go's words.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum DurationError {
    Invalid { text: String },
    NoUnit { text: String },
    UnknownUnit { unit: String, text: String },
}

impl fmt::Display for DurationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DurationError::Invalid { text } => write!(f, "time: invalid duration {text:?}"),
            DurationError::NoUnit { text } => write!(f, "time: missing unit in duration {text:?}"),
            DurationError::UnknownUnit { unit, text } => {
                write!(f, "time: unknown unit {unit:?} in duration {text:?}")
            }
        }
    }
}

impl std::error::Error for DurationError {}

/// A duration as Go writes it, such as `1h2m4.5s`; a negative one is zero.
pub(super) fn go_duration(text: &str) -> Result<Duration, DurationError> {
    let own = || text.to_owned();
    let invalid = || DurationError::Invalid { text: own() };
    let (negative, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Ok(Duration::ZERO);
    }
    if rest.is_empty() {
        return Err(invalid());
    }
    let mut seconds = 0.0_f64;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let number: f64 = rest[..digits].parse().map_err(|_| invalid())?;
        rest = &rest[digits..];
        if rest.is_empty() {
            return Err(DurationError::NoUnit { text: own() });
        }
        let unit = rest.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(rest.len());
        let scale = match &rest[..unit] {
            "ns" => 1e-9,
            "us" | "µs" | "μs" => 1e-6,
            "ms" => 1e-3,
            "s" => 1.0,
            "m" => 60.0,
            "h" => 3600.0,
            other => return Err(DurationError::UnknownUnit { unit: other.to_owned(), text: own() }),
        };
        seconds += number * scale;
        rest = &rest[unit..];
    }
    if negative { Ok(Duration::ZERO) } else { Duration::try_from_secs_f64(seconds).map_err(|_| invalid()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sources::chart_options::Annotations;
    use serde_json::json;

    fn with(name: &str, value: &str) -> Value {
        json!({"metadata": {"annotations": {format!("{PREFIX}{name}"): value}}})
    }

    #[test]
    fn durations_read_as_in_go() {
        assert_eq!(go_duration("1h2m4s"), Ok(Duration::from_secs(3724)));
        assert_eq!(go_duration("1.5s"), Ok(Duration::from_millis(1500)));
        assert_eq!(go_duration("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(go_duration("-1m"), Ok(Duration::ZERO));
        assert_eq!(go_duration("0"), Ok(Duration::ZERO));
        assert_eq!(go_duration("10").unwrap_err().to_string(), "time: missing unit in duration \"10\"");
        assert_eq!(go_duration("1x").unwrap_err().to_string(), "time: unknown unit \"x\" in duration \"1x\"");
        assert_eq!(go_duration("").unwrap_err().to_string(), "time: invalid duration \"\"");
        assert!(go_duration(".s").is_err());
    }

    #[test]
    fn flags_fall_back_to_their_own_default() {
        assert!(rollback_force(&json!({})));
        assert!(rollback_force(&with("rollback-force", "nonsense")));
        assert!(!rollback_force(&with("rollback-force", "F")));
        assert!(!upgrade_force(&with("upgrade-force", "yes")));
        assert!(upgrade_force(&with("upgrade-force", "True")));
        assert!(uninstall_wait(&with("uninstall-wait", "1")));
    }

    #[test]
    fn annotations_of_the_hybrid_library_are_known_to_do_nothing() {
        let classic = ChartOptions::default();
        assert!(ignored(&with("uninstall-wait", "true"), &classic).is_empty());
        let found = ignored(&with("upgrade-disable-hooks", "false"), &classic);
        assert_eq!(found, ["helm.sdk.operatorframework.io/upgrade-disable-hooks"]);
        assert!(ignored_words(&found[0]).contains("upgrade-disable-hooks has no effect"));
        let named = Annotations::of_library();
        let named = ChartOptions { annotations: Some(named), ..ChartOptions::default() };
        assert!(ignored(&with("upgrade-disable-hooks", "false"), &named).is_empty());
    }

    #[test]
    fn a_bad_period_is_an_error_with_a_hint() {
        assert_eq!(reconcile_period(&json!({})), Ok(None));
        assert_eq!(reconcile_period(&with("reconcile-period", "2s")), Ok(Some(Duration::from_secs(2))));
        let error = reconcile_period(&with("reconcile-period", "soon")).unwrap_err().to_string();
        assert!(error.contains("invalid duration \"soon\"") && error.contains("30s"), "{error}");
    }
}
