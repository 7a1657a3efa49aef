//! Options in a custom resource's annotations. Booleans and durations read as Go reads them. Pure.

use opdev_object::go::duration::{self, DurationError};
use opdev_object::meta;
use opdev_sources::chart_options::ChartOptions;
use serde_json::Value;
use std::fmt;
use std::time::Duration;

const PREFIX: &str = "helm.sdk.operatorframework.io/";

/// Replace objects instead of applying them. Default false.
pub(crate) fn upgrade_force(object: &Value) -> bool {
    flag(object, "upgrade-force", false)
}

/// Replace objects in the rollback after a failed upgrade. Default true.
pub(crate) fn rollback_force(object: &Value) -> bool {
    flag(object, "rollback-force", true)
}

/// Keep the object until everything of its release is gone. Default false.
pub fn uninstall_wait(object: &Value) -> bool {
    flag(object, "uninstall-wait", false)
}

/// An object's own reconcile period that cannot be read. Its text holds that of the duration's error.
#[derive(Debug, PartialEq, Eq)]
pub struct PeriodError {
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
pub fn reconcile_period(object: &Value) -> Result<Option<Duration>, PeriodError> {
    let annotation = format!("{PREFIX}reconcile-period");
    match meta::annotation(object, &annotation) {
        None => Ok(None),
        Some(text) => {
            duration::non_negative(text).map(Some).map_err(|error| PeriodError { annotation, error })
        }
    }
}

/// Annotations that only the hybrid library (helm-operator-plugins) reads.
const HYBRID: [&str; 6] = [
    "install-disable-hooks",
    "upgrade-disable-hooks",
    "uninstall-disable-hooks",
    "install-description",
    "upgrade-description",
    "uninstall-description",
];

/// The hint for an annotation that has no effect.
pub(crate) const IGNORED_HINT: &str = "only operators written with the helm-operator-plugins library read it; say \
                                       `engine: hybrid` in opdev.yaml, or name it in `annotations` there";

/// The annotations of an object that have no effect; `options` say which have one.
pub(crate) fn ignored(object: &Value, options: &ChartOptions) -> Vec<String> {
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
pub(crate) fn ignored_words(name: &str) -> String {
    format!("the annotation {name} has no effect: neither opdev nor the Operator SDK's operator reads it")
}

fn flag(object: &Value, name: &str, default: bool) -> bool {
    match meta::annotation(object, &format!("{PREFIX}{name}")) {
        Some(text) if is_true(text) => true,
        Some("0" | "f" | "F" | "false" | "False" | "FALSE") => false,
        Some(_) | None => default,
    }
}

/// Returns true if a text is what Go takes for true.
pub(crate) fn is_true(text: &str) -> bool {
    matches!(text, "1" | "t" | "T" | "true" | "True" | "TRUE")
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;
    use opdev_sources::chart_options::Annotations;
    use serde_json::json;

    fn with(name: &str, value: &str) -> Value {
        json!({"metadata": {"annotations": {format!("{PREFIX}{name}"): value}}})
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
        expect!["the annotation helm.sdk.operatorframework.io/upgrade-disable-hooks has no effect: neither opdev nor the Operator SDK's operator reads it"]
        .assert_eq(&ignored_words(&found[0]));
        let named = Annotations::of_library();
        let named = ChartOptions { annotations: Some(named), ..ChartOptions::default() };
        assert!(ignored(&with("upgrade-disable-hooks", "false"), &named).is_empty());
    }

    #[test]
    fn a_bad_period_is_an_error_with_a_hint() {
        assert_eq!(reconcile_period(&json!({})), Ok(None));
        assert_eq!(reconcile_period(&with("reconcile-period", "2s")), Ok(Some(Duration::from_secs(2))));
        let error = reconcile_period(&with("reconcile-period", "soon")).unwrap_err().to_string();
        expect![[r#"annotation helm.sdk.operatorframework.io/reconcile-period: time: invalid duration "soon"; write it like 30s or 1h2m"#]]
        .assert_eq(&error);
    }
}
