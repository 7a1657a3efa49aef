//! How the release of a kind with a chart is made: the options of `charts` in `opdev.yaml`, of an entry of
//! `watches.yaml`, and of a script's `release()`. Read with the place of each value that makes no sense.
//! Pure.

use opdev_helm::release::chunked::Chunking;
use opdev_object::go::duration::non_negative;
use opdev_object::spelling::nearest;
use opdev_object::yaml::{Kind, Node};
use std::time::Duration;

/// Every option; `None` where nothing is said.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ChartOptions {
    /// True if what `opdev.yaml` says could never be read: then nothing is done for objects of the kind.
    pub unread: bool,
    /// The engine whose behaviour counts: finalizers, conditions, history and values.
    pub engine: Option<ChartEngine>,
    /// How long the end of a custom resource is waited for once its release is gone.
    pub wait_for_deletion: Option<Duration>,
    /// How many revisions are kept; 0 keeps all.
    pub max_history: Option<usize>,
    /// Annotations of custom resources that choose something.
    pub annotations: Option<Annotations>,
    /// The annotation that leaves a custom resource alone where it is `true`.
    pub pause_annotation: Option<String>,
    /// The effect of an error of `before` or `after`.
    pub on_hook_error: Option<OnHookError>,
    /// Options of Helm's actions.
    pub install: ActionOptions,
    /// Options of upgrades.
    pub upgrade: ActionOptions,
    /// Options of uninstalls.
    pub uninstall: ActionOptions,
    /// Options of rollbacks.
    pub rollback: ActionOptions,
    /// True if a failed install is uninstalled and a failed upgrade rolled back.
    pub failure_rollbacks: Option<bool>,
    /// True if a rollback replaces what cannot be changed.
    pub rollback_force: Option<bool>,
    /// The namespace of the release.
    pub release_namespace: Option<String>,
    /// The namespace of its records.
    pub storage_namespace: Option<String>,
    /// The kind of object that has its records.
    pub storage: Option<Storage>,
    /// How records are split where several Secrets hold each.
    pub chunked: Option<Chunking>,
    /// True if the custom resource owns the records.
    pub storage_owner: Option<bool>,
    /// The ServiceAccount that objects are written as: a name, or namespace/name.
    pub service_account: Option<String>,
    /// True if `release()` writes `Deployed` and `deployedRelease` into the status; only scripts say so.
    pub status: Option<bool>,
}

/// The engine whose behaviour a chart's kind has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ChartEngine {
    /// The Operator SDK's helm-operator.
    #[default]
    Classic,
    /// An operator of the helm-operator-plugins library.
    Hybrid,
}

/// The effect of an error of `before` or `after`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OnHookError {
    /// It is told, and the reconcile goes on.
    #[default]
    Log,
    /// The reconcile fails.
    Fail,
}

/// The kind of object that has the records of a release.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Storage {
    /// Secrets, as Helm does.
    #[default]
    Secret,
    /// ConfigMaps.
    ConfigMap,
    /// This process.
    Memory,
    /// Several Secrets for each, as the chunked driver of the helm-operator-plugins library does.
    Chunked,
}

/// Options of one of Helm's actions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ActionOptions {
    /// True to wait until the objects are ready, or gone.
    pub wait: Option<bool>,
    /// True if that includes Jobs.
    pub wait_for_jobs: Option<bool>,
    /// The time limit, also of hooks.
    pub timeout: Option<Duration>,
    /// True if the chart's hooks are left out.
    pub disable_hooks: Option<bool>,
    /// True if the chart's `crds` are left out.
    pub skip_crds: Option<bool>,
    /// Taken for the sake of other tools: the API server validates what opdev sends.
    pub disable_validation: Option<bool>,
    /// The content of the record.
    pub description: Option<String>,
}

/// The choices of a custom resource's annotation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Choice {
    /// Leave the chart's hooks out.
    DisableHooks,
    /// Replace objects instead of changing them.
    Force,
    /// The content of the record.
    Description,
}

/// The annotations that choose something, by action: what, and the annotation's name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Annotations {
    /// Options of installs.
    pub install: Vec<(Choice, String)>,
    /// Options of upgrades.
    pub upgrade: Vec<(Choice, String)>,
    /// Options of uninstalls.
    pub uninstall: Vec<(Choice, String)>,
}

/// The Operator SDK's domain for annotations.
const DOMAIN: &str = "helm.sdk.operatorframework.io";

impl Choice {
    fn word(self) -> &'static str {
        match self {
            Choice::DisableHooks => "disable-hooks",
            Choice::Force => "force",
            Choice::Description => "description",
        }
    }

    fn named(self, action: &str) -> (Choice, String) {
        (self, format!("{DOMAIN}/{action}-{}", self.word()))
    }
}

impl Annotations {
    /// The annotations of operators that the Operator SDK has scaffolded for the helm-operator-plugins
    /// library.
    pub fn of_library() -> Annotations {
        let own = |action: &str, all: &[Choice]| all.iter().map(|choice| choice.named(action)).collect();
        let plain = [Choice::Description, Choice::DisableHooks];
        Annotations {
            install: own("install", &plain),
            upgrade: own("upgrade", &[Choice::Description, Choice::DisableHooks, Choice::Force]),
            uninstall: own("uninstall", &plain),
        }
    }
}

/// The keys of all options.
pub(crate) const KEYS: [&str; 16] = [
    "engine",
    "waitForDeletionTimeout",
    "maxReleaseHistory",
    "annotations",
    "pauseAnnotation",
    "onHookError",
    "helm",
    "failureRollbacks",
    "rollbackForce",
    "releaseNamespace",
    "storageNamespace",
    "storage",
    "chunkedSecrets",
    "storageOwnerReference",
    "serviceAccountName",
    "status",
];

/// A value that makes no sense.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrong {
    pub(crate) line: u32,
    pub(crate) column: u32,
    pub message: String,
    pub(crate) hint: Option<String>,
}

type OptionValue<T> = Result<Option<T>, Wrong>;

impl ChartOptions {
    /// The options of a map; its other keys are somebody else's.
    pub fn read(map: &Node) -> Result<ChartOptions, Wrong> {
        let words = |key, known: &[&str]| word(map, key, known);
        let helm = map.get("helm").filter(|helm| helm.kind != Kind::Null);
        if let Some(helm) = helm {
            only(helm, "helm", &["install", "upgrade", "uninstall", "rollback"])?;
        }
        let action = |name: &str| match helm.and_then(|helm| helm.get(name)) {
            Some(node) => action(node, name),
            None => Ok(ActionOptions::default()),
        };
        Ok(ChartOptions {
            unread: false,
            engine: words("engine", &["classic", "hybrid"])?
                .map(|at| [ChartEngine::Classic, ChartEngine::Hybrid][at]),
            wait_for_deletion: match duration(map, "waitForDeletionTimeout")? {
                Some(Duration::ZERO) => {
                    return Err(wrong(map, "waitForDeletionTimeout", "must be more than 0"));
                }
                timeout => timeout,
            },
            max_history: match map.get("maxReleaseHistory").map(|node| &node.kind) {
                None | Some(Kind::Null) => None,
                Some(Kind::Int(count)) if *count >= 0 => usize::try_from(*count).ok(),
                Some(_) => {
                    return Err(wrong(
                        map,
                        "maxReleaseHistory",
                        "must be a whole number from 0 on; 0 keeps all",
                    ));
                }
            },
            annotations: annotations(map)?,
            pause_annotation: text(map, "pauseAnnotation")?,
            on_hook_error: words("onHookError", &["log", "fail"])?
                .map(|at| [OnHookError::Log, OnHookError::Fail][at]),
            install: action("install")?,
            upgrade: action("upgrade")?,
            uninstall: action("uninstall")?,
            rollback: action("rollback")?,
            failure_rollbacks: flag(map, "failureRollbacks")?,
            rollback_force: flag(map, "rollbackForce")?,
            release_namespace: text(map, "releaseNamespace")?,
            storage_namespace: text(map, "storageNamespace")?,
            storage: words("storage", &["secret", "configmap", "memory", "chunked"])?
                .map(|at| [Storage::Secret, Storage::ConfigMap, Storage::Memory, Storage::Chunked][at]),
            chunked: chunked(map)?,
            storage_owner: flag(map, "storageOwnerReference")?,
            service_account: text(map, "serviceAccountName")?,
            status: flag(map, "status")?,
        })
    }

    /// These options, and `below` where they say nothing.
    pub(crate) fn over(self, below: &ChartOptions) -> ChartOptions {
        let below = below.clone();
        ChartOptions {
            unread: self.unread || below.unread,
            engine: self.engine.or(below.engine),
            wait_for_deletion: self.wait_for_deletion.or(below.wait_for_deletion),
            max_history: self.max_history.or(below.max_history),
            annotations: self.annotations.or(below.annotations),
            pause_annotation: self.pause_annotation.or(below.pause_annotation),
            on_hook_error: self.on_hook_error.or(below.on_hook_error),
            install: self.install.over(below.install),
            upgrade: self.upgrade.over(below.upgrade),
            uninstall: self.uninstall.over(below.uninstall),
            rollback: self.rollback.over(below.rollback),
            failure_rollbacks: self.failure_rollbacks.or(below.failure_rollbacks),
            rollback_force: self.rollback_force.or(below.rollback_force),
            release_namespace: self.release_namespace.or(below.release_namespace),
            storage_namespace: self.storage_namespace.or(below.storage_namespace),
            storage: self.storage.or(below.storage),
            chunked: self.chunked.or(below.chunked),
            storage_owner: self.storage_owner.or(below.storage_owner),
            service_account: self.service_account.or(below.service_account),
            status: self.status.or(below.status),
        }
    }

    /// Returns true if the kind behaves as with the helm-operator-plugins library.
    pub fn is_hybrid(&self) -> bool {
        self.engine == Some(ChartEngine::Hybrid)
    }
}

impl ActionOptions {
    fn over(self, below: ActionOptions) -> ActionOptions {
        ActionOptions {
            wait: self.wait.or(below.wait),
            wait_for_jobs: self.wait_for_jobs.or(below.wait_for_jobs),
            timeout: self.timeout.or(below.timeout),
            disable_hooks: self.disable_hooks.or(below.disable_hooks),
            skip_crds: self.skip_crds.or(below.skip_crds),
            disable_validation: self.disable_validation.or(below.disable_validation),
            description: self.description.or(below.description),
        }
    }
}

fn at(node: &Node, message: String, hint: Option<String>) -> Wrong {
    Wrong { line: node.line, column: node.column, message, hint }
}

fn wrong(map: &Node, key: &str, what: &str) -> Wrong {
    at(map.get(key).unwrap_or(map), format!("{key} {what}"), None)
}

fn only(map: &Node, name: &str, known: &[&str]) -> Result<(), Wrong> {
    let Kind::Mapping(pairs) = &map.kind else { return Err(at(map, format!("{name} must be a map"), None)) };
    for (key, _) in pairs {
        let found = key.to_text().unwrap_or_default();
        if !known.contains(&found.as_str()) {
            let near = nearest(&found, known.iter().copied());
            let hint = near.map_or_else(
                || format!("known are {}", known.join(", ")),
                |near| format!("did you mean `{near}`?"),
            );
            return Err(at(key, format!("{name} has no option `{found}`"), Some(hint)));
        }
    }
    Ok(())
}

fn flag(map: &Node, key: &str) -> OptionValue<bool> {
    match map.get(key).map(|node| &node.kind) {
        None | Some(Kind::Null) => Ok(None),
        Some(Kind::Bool(value)) => Ok(Some(*value)),
        Some(_) => Err(wrong(map, key, "must be true or false")),
    }
}

fn text(map: &Node, key: &str) -> OptionValue<String> {
    match map.get(key) {
        None => Ok(None),
        Some(node) => match node.as_str() {
            Some(text) if !text.is_empty() => Ok(Some(text.to_owned())),
            _ if node.kind == Kind::Null => Ok(None),
            _ => Err(wrong(map, key, "must be a text that is not empty")),
        },
    }
}

fn duration(map: &Node, key: &str) -> OptionValue<Duration> {
    let Some(text) = map.get(key).and_then(Node::to_text) else { return Ok(None) };
    let hint = Some("write a Go duration such as 30s, 1m or 1h2m4s".to_owned());
    let none = || at(map.get(key).unwrap_or(map), format!("{key} {text:?} is no duration"), hint);
    non_negative(&text).map(Some).map_err(|_| none())
}

/// Where a word stands among those that are known.
fn word(map: &Node, key: &str, known: &[&str]) -> OptionValue<usize> {
    let Some(node) = map.get(key).filter(|node| node.kind != Kind::Null) else { return Ok(None) };
    let found = node.to_text().unwrap_or_default();
    known.iter().position(|word| *word == found).map(Some).ok_or_else(|| {
        let near = nearest(&found, known.iter().copied());
        let hint = near.map(|near| format!("did you mean `{near}`?"));
        at(node, format!("{key} {found:?} is not known; use {}", known.join(", ")), hint)
    })
}

fn action(node: &Node, name: &str) -> Result<ActionOptions, Wrong> {
    let known = match name {
        "install" => &[
            "wait",
            "waitForJobs",
            "timeout",
            "disableHooks",
            "description",
            "disableOpenAPIValidation",
            "skipCRDs",
        ][..],
        "upgrade" => {
            &["wait", "waitForJobs", "timeout", "disableHooks", "description", "disableOpenAPIValidation"][..]
        }
        "uninstall" => &["wait", "timeout", "disableHooks", "description"][..],
        _ => &["wait", "waitForJobs", "timeout", "disableHooks"][..],
    };
    only(node, &format!("helm.{name}"), known)?;
    Ok(ActionOptions {
        wait: flag(node, "wait")?,
        wait_for_jobs: flag(node, "waitForJobs")?,
        timeout: duration(node, "timeout")?,
        disable_hooks: flag(node, "disableHooks")?,
        skip_crds: flag(node, "skipCRDs")?,
        disable_validation: flag(node, "disableOpenAPIValidation")?,
        description: text(node, "description")?,
    })
}

/// How records are split; the words are those of the library's `ChunkedSecretsConfig`.
fn chunked(map: &Node) -> OptionValue<Chunking> {
    let Some(node) = map.get("chunkedSecrets").filter(|node| node.kind != Kind::Null) else {
        return Ok(None);
    };
    only(node, "chunkedSecrets", &["owner", "chunkSize", "maxReadChunks", "maxWriteChunks"])?;
    let number = |key: &str, least: i64, most: i64| match node.get(key).map(|node| &node.kind) {
        None | Some(Kind::Null) => Ok(None),
        Some(Kind::Int(number)) if (least..=most).contains(number) => Ok(usize::try_from(*number).ok()),
        Some(_) => Err(wrong(node, key, &format!("must be a whole number from {least} to {most}"))),
    };
    let plain = Chunking::default();
    let owner = text(node, "owner")?;
    let is_label = |text: &String| {
        let word = |c: u8| c.is_ascii_alphanumeric();
        let ends = text.bytes().next().is_some_and(word) && text.bytes().last().is_some_and(word);
        ends && text.len() <= 63 && text.bytes().all(|c| word(c) || b"-_.".contains(&c))
    };
    if owner.as_ref().is_some_and(|owner| !is_label(owner)) {
        return Err(wrong(node, "owner", "must be what a label may hold"));
    }
    Ok(Some(Chunking {
        owner: owner.unwrap_or(plain.owner),
        // A Secret holds 1 MiB, and an index the names of the other parts, too.
        size: number("chunkSize", 1024, 1_048_000)?.unwrap_or(plain.size),
        most_read: number("maxReadChunks", 0, 1000)?.unwrap_or(plain.most_read),
        most_written: number("maxWriteChunks", 0, 1000)?.unwrap_or(plain.most_written),
    }))
}

fn annotations(map: &Node) -> OptionValue<Annotations> {
    let Some(node) = map.get("annotations").filter(|node| node.kind != Kind::Null) else { return Ok(None) };
    only(node, "annotations", &["install", "upgrade", "uninstall"])?;
    let mut names = Vec::new();
    let mut of = |action: &str| -> Result<Vec<(Choice, String)>, Wrong> {
        let mut found = Vec::new();
        for item in node.get(action).map(Node::items).unwrap_or_default() {
            let (word, name) = match &item.kind {
                Kind::Mapping(pairs) if pairs.len() == 1 => {
                    (pairs[0].0.to_text().unwrap_or_default(), pairs[0].1.to_text())
                }
                _ => (item.to_text().unwrap_or_default(), None),
            };
            let known = match action {
                "upgrade" => &[Choice::DisableHooks, Choice::Force, Choice::Description][..],
                _ => &[Choice::DisableHooks, Choice::Description][..],
            };
            let Some(choice) = known.iter().find(|choice| choice.word() == word) else {
                let known: Vec<&str> = known.iter().map(|choice| choice.word()).collect();
                let hint =
                    nearest(&word, known.iter().copied()).map(|near| format!("did you mean `{near}`?"));
                let message =
                    format!("annotations.{action} has no option `{word}`; known are {}", known.join(", "));
                return Err(at(item, message, hint));
            };
            let named = match name {
                Some(name) => (*choice, name),
                None => choice.named(action),
            };
            if names.contains(&named.1) {
                let hint = Some("give each its own name: `{disable-hooks: my.domain/no-hooks}`".to_owned());
                return Err(at(item, format!("annotation {:?} already exists", named.1), hint));
            }
            names.push(named.1.clone());
            found.push(named);
        }
        Ok(found)
    };
    Ok(Some(Annotations { install: of("install")?, upgrade: of("upgrade")?, uninstall: of("uninstall")? }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;
    use opdev_object::yaml;

    fn read(text: &str) -> Result<ChartOptions, String> {
        let at = |wrong: Wrong| {
            let hint = wrong.hint.map(|hint| format!(" ({hint})")).unwrap_or_default();
            format!("{}:{} {}{hint}", wrong.line, wrong.column, wrong.message)
        };
        ChartOptions::read(&yaml::parse(text).unwrap()).map_err(at)
    }

    #[test]
    fn every_option_is_read() {
        let text = "engine: hybrid\nwaitForDeletionTimeout: 5s\nmaxReleaseHistory: 0\npauseAnnotation: my.domain/pause\n\
                    onHookError: fail\nfailureRollbacks: false\nrollbackForce: false\nreleaseNamespace: a\n\
                    storageNamespace: b\nstorage: chunked\nchunkedSecrets: {owner: c, chunkSize: 2000, maxReadChunks: 3, \
                    maxWriteChunks: 2}\nstorageOwnerReference: false\nserviceAccountName: c\n\
                    status: true\nannotations: {upgrade: [force, {disable-hooks: my.domain/no-hooks}]}\nhelm:\n  install: \
                    {wait: true, waitForJobs: true, timeout: 1m, disableHooks: true, skipCRDs: true, \
                    disableOpenAPIValidation: true, description: d}\n";
        let found = read(text).unwrap();
        let keys = yaml::parse(text).unwrap();
        assert!(KEYS.iter().all(|key| keys.get(key).is_some()));
        let told = format!("{found:?}");
        assert_eq!(told.matches("None").count(), 7 * 3, "all but the actions that are not named: {told}");
        assert_eq!(found.max_history, Some(0));
        let chunked = Chunking { owner: "c".to_owned(), size: 2000, most_read: 3, most_written: 2 };
        assert_eq!((found.storage, found.chunked.clone()), (Some(Storage::Chunked), Some(chunked)));
        let annotations = found.annotations.clone().unwrap();
        assert_eq!(
            annotations.upgrade,
            [
                (Choice::Force, "helm.sdk.operatorframework.io/upgrade-force".to_owned()),
                (Choice::DisableHooks, "my.domain/no-hooks".to_owned())
            ]
        );
        let over = read("storage: memory\n").unwrap().over(&found);
        assert_eq!((over.storage, over.engine), (Some(Storage::Memory), Some(ChartEngine::Hybrid)));
        assert_eq!(over.install, found.install);
    }

    #[test]
    fn what_makes_no_sense_has_its_place() {
        let error = |text: &str| read(text).unwrap_err();
        assert_eq!(
            error("engine: hibrid\n"),
            "1:9 engine \"hibrid\" is not known; use classic, hybrid (did you mean `hybrid`?)"
        );
        assert_eq!(
            error("maxReleaseHistory: -1\n"),
            "1:20 maxReleaseHistory must be a whole number from 0 on; 0 keeps all"
        );
        assert_eq!(error("waitForDeletionTimeout: 0\n"), "1:25 waitForDeletionTimeout must be more than 0");
        assert_eq!(
            error("helm: {upgrade: {skipCRDs: true}}\n"),
            "1:18 helm.upgrade has no option `skipCRDs` (known are wait, waitForJobs, timeout, disableHooks, description, \
             disableOpenAPIValidation)"
        );
        assert_eq!(
            error("annotations:\n  install: [{description: a/b}]\n  upgrade: [{description: a/b}]\n"),
            "3:13 annotation \"a/b\" already exists (give each its own name: `{disable-hooks: my.domain/no-hooks}`)"
        );
        expect!["1:25 annotations.install has no option `force`; known are disable-hooks, description"]
            .assert_eq(&error("annotations: {install: [force]}\n"));
        assert_eq!(
            error("chunkedSecrets: {chunkSize: 9999999}\n"),
            "1:29 chunkSize must be a whole number from 1024 to 1048000"
        );
        assert_eq!(
            error("chunkedSecrets: {size: 2000}\n"),
            "1:18 chunkedSecrets has no option `size` (known are owner, chunkSize, maxReadChunks, maxWriteChunks)"
        );
        assert_eq!(error("chunkedSecrets: {owner: a/b}\n"), "1:25 owner must be what a label may hold");
        assert_eq!(error("failureRollbacks: maybe\n"), "1:19 failureRollbacks must be true or false");
    }
}
