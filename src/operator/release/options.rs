//! How one release is made: what the project's options and the annotations of its custom resource choose.
//! Pure.

use super::annotations;
use crate::settings::Settings;
use opdev_helm::release::chunked::Chunking;
use opdev_object::meta;
use opdev_sources::chart_options::{ActionOptions, Annotations, ChartOptions, Choice, OnHookError, Storage};
use serde_json::Value;
use std::time::Duration;

/// The time that the helm-operator-plugins library waits for the end of a custom resource.
const WAIT_FOR_DELETION: Duration = Duration::from_secs(30);

/// The options of one release.
#[derive(Clone, Debug)]
pub struct ReleaseOptions {
    /// As an operator of the helm-operator-plugins library does it.
    pub hybrid: bool,
    pub(crate) max_history: usize,
    /// True if a failed install is uninstalled and a failed upgrade rolled back.
    pub(crate) failure_rollbacks: bool,
    pub storage: Storage,
    /// How `Storage::Chunked` splits records.
    pub chunked: Chunking,
    pub storage_namespace: Option<String>,
    /// True if the custom resource owns the records.
    pub storage_owner: bool,
    pub(crate) force: Forces,
    pub(crate) on_hook_error: OnHookError,
    /// How long the end of the custom resource is waited for; `None` means not at all.
    pub wait_for_deletion: Option<Duration>,
    pub(crate) install: HelmAction,
    pub(crate) upgrade: HelmAction,
    pub(crate) uninstall: HelmAction,
    pub(crate) rollback: HelmAction,
}

/// Where objects are replaced instead of applied.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Forces {
    pub(crate) upgrade: bool,
    pub(crate) rollback: bool,
}

/// The options of one of Helm's actions.
#[derive(Clone, Debug)]
pub(crate) struct HelmAction {
    /// The wait for the objects, and for Jobs, too.
    pub(crate) wait: Option<Jobs>,
    /// The time limit of the action, and of one hook.
    pub(crate) timeout: Duration,
    /// True if hooks run.
    pub(crate) hooks: bool,
    /// True if `crds` of the chart are installed.
    pub(crate) crds: bool,
    /// The content of the record.
    pub(crate) description: Option<String>,
}

/// Returns true if Jobs are waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Jobs {
    /// They are done before the action is.
    Waited,
    /// They are not looked at.
    LeftOut,
}

impl ReleaseOptions {
    /// For a release of a custom resource.
    pub fn of(options: &ChartOptions, object: &Value, settings: &Settings) -> ReleaseOptions {
        let hybrid = options.is_hybrid();
        let named = options
            .annotations
            .clone()
            .unwrap_or_else(|| if hybrid { Annotations::of_library() } else { Annotations::default() });
        let chosen = |all: &[(Choice, String)], wanted: Choice| -> Option<String> {
            let found = all.iter().filter(|(choice, _)| *choice == wanted);
            found.filter_map(|(_, name)| meta::annotation(object, name)).next_back().map(str::to_owned)
        };
        let action = |own: &ActionOptions, all: &[(Choice, String)]| {
            let off = chosen(all, Choice::DisableHooks).map(|text| annotations::is_true(&text));
            let jobs = if own.wait_for_jobs == Some(true) { Jobs::Waited } else { Jobs::LeftOut };
            HelmAction {
                wait: (own.wait == Some(true)).then_some(jobs),
                timeout: own.timeout.filter(|time| !time.is_zero()).unwrap_or(settings.hook_timeout),
                hooks: !off.or(own.disable_hooks).unwrap_or(false),
                crds: own.skip_crds != Some(true),
                description: chosen(all, Choice::Description)
                    .or_else(|| own.description.clone())
                    .filter(|text| !text.is_empty()),
            }
        };
        let forced = chosen(&named.upgrade, Choice::Force).map(|text| annotations::is_true(&text));
        let force = Forces {
            upgrade: forced.unwrap_or(!hybrid && annotations::upgrade_force(object)),
            rollback: options.rollback_force.unwrap_or(hybrid || annotations::rollback_force(object)),
        };
        ReleaseOptions {
            hybrid,
            max_history: options.max_history.unwrap_or(settings.max_history),
            failure_rollbacks: options.failure_rollbacks != Some(false),
            storage: options.storage.unwrap_or_default(),
            chunked: options.chunked.clone().unwrap_or_default(),
            storage_namespace: options.storage_namespace.clone(),
            storage_owner: options.storage_owner != Some(false),
            force,
            on_hook_error: options.on_hook_error.unwrap_or_default(),
            wait_for_deletion: options.wait_for_deletion.or(hybrid.then_some(WAIT_FOR_DELETION)),
            install: action(&options.install, &named.install),
            upgrade: action(&options.upgrade, &named.upgrade),
            uninstall: action(&options.uninstall, &named.uninstall),
            rollback: action(&options.rollback, &[]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use opdev_sources::chart_options::ChartEngine;
    use serde_json::json;

    fn of(options: &ChartOptions, annotations: &Value) -> ReleaseOptions {
        let object = json!({"metadata": {"annotations": annotations}});
        ReleaseOptions::of(options, &object, &Settings::default())
    }

    #[test]
    fn the_engines_have_their_own_defaults() {
        let classic = of(&ChartOptions::default(), &json!({}));
        assert!(!classic.force.upgrade && classic.force.rollback && classic.wait_for_deletion.is_none());
        let hybrid = ChartOptions { engine: Some(ChartEngine::Hybrid), ..ChartOptions::default() };
        let plain = of(&hybrid, &json!({}));
        assert!(plain.force.rollback && plain.install.hooks && plain.install.wait.is_none());
        assert_eq!((plain.max_history, plain.wait_for_deletion), (10, Some(WAIT_FOR_DELETION)));
        let prefix = "helm.sdk.operatorframework.io/";
        let chosen = of(
            &hybrid,
            &json!({format!("{prefix}install-disable-hooks"): "true", format!("{prefix}upgrade-force"): "1",
                format!("{prefix}upgrade-description"): "why", format!("{prefix}rollback-force"): "false",
                format!("{prefix}uninstall-disable-hooks"): "maybe"}),
        );
        assert!(!chosen.install.hooks && chosen.upgrade.hooks && chosen.uninstall.hooks);
        assert!(
            chosen.force.upgrade && chosen.force.rollback,
            "only the classic engine reads rollback-force"
        );
        assert_eq!(chosen.upgrade.description.as_deref(), Some("why"));
    }

    #[test]
    fn annotations_with_names_of_their_own_take_the_place_of_the_others() {
        let annotations = Annotations {
            install: vec![(Choice::DisableHooks, "my.domain/quiet".to_owned())],
            ..Annotations::default()
        };
        let engine = Some(ChartEngine::Hybrid);
        let options = ChartOptions { annotations: Some(annotations), engine, ..ChartOptions::default() };
        assert!(!of(&options, &json!({"my.domain/quiet": "T"})).install.hooks);
        let other = json!({"helm.sdk.operatorframework.io/install-disable-hooks": "true"});
        assert!(of(&options, &other).install.hooks);
    }
}
