//! How the operator runs: what the command line and the project's files choose.

use super::unfit::UnfitWrite;
use opdev_client::read_only::ReadOnly;
use opdev_sources::on_save::OnSave;
use std::time::Duration;
use tokio::sync::mpsc;

/// The settings of the manager.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The only namespace to watch; `None` means all.
    pub namespace: Option<String>,
    /// The only namespaces to watch, where there are several: each is listed and watched by itself, so that
    /// no right to list all namespaces is needed.
    pub only: Vec<String>,
    /// How often an object is reconciled without a cause, unless its watch says otherwise. Zero means never.
    pub reconcile_period: Duration,
    /// How many objects of one kind are reconciled at once, unless its watch says otherwise.
    pub max_concurrent: usize,
    /// The Helm whose rendering the charts get.
    pub helm_compat: HelmCompat,
    /// The effect of a saved chart on the revision that is deployed.
    pub on_save: OnSave,
    /// How long one hook may take.
    pub hook_timeout: Duration,
    /// How many revisions of a release are kept.
    pub max_history: usize,
    /// Hides override values in Kubernetes events.
    pub suppress_override_values: bool,
    /// Nothing is written while it is set.
    pub read_only: ReadOnly,
    /// Objects whose reconciles go round in a loop are paused.
    pub pause_loops: bool,
    /// How long reconciles that run may go on undisturbed once opdev is told to stop.
    pub finish: Duration,
    /// How long they may take to end after that, when they wait for nothing more.
    pub leave: Duration,
    /// Where given, random functions of charts give something else in each reconcile, as in production, and
    /// the same again for the same number; else a release keeps what it drew.
    pub fresh_randomness: Option<u64>,
    /// Calls are made as a ServiceAccount whose roles somebody keeps, who tells what they lack.
    pub roles_kept: bool,
    /// Where refused writes of programs that have just taken over are reported.
    pub unfit: Option<mpsc::Sender<UnfitWrite>>,
}

/// The Helm whose rendering the charts get.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HelmCompat {
    /// Helm 3.19, which helm-operator 1.42 links.
    V3_19,
    /// Helm 3, in its newest release that was compared.
    #[default]
    V3,
    /// Helm 4.1.
    V4_1,
    /// Helm 4, in its newest release that was compared.
    V4,
}

impl HelmCompat {
    /// All with their names on the command line.
    pub const NAMED: [(&str, HelmCompat); 4] = [
        ("3", HelmCompat::V3),
        ("4", HelmCompat::V4),
        ("3.19", HelmCompat::V3_19),
        ("4.1", HelmCompat::V4_1),
    ];

    /// Returns true if it is a Helm 3.
    pub fn is_three(self) -> bool {
        matches!(self, HelmCompat::V3_19 | HelmCompat::V3)
    }
}

impl From<HelmCompat> for opdev_helm::engine::Compat {
    fn from(compat: HelmCompat) -> Self {
        match compat {
            HelmCompat::V3_19 => Self::V3_19,
            HelmCompat::V3 => Self::V3,
            HelmCompat::V4_1 => Self::V4_1,
            HelmCompat::V4 => Self::V4,
        }
    }
}

impl Settings {
    /// The namespaces that are watched, and whose custom resources are reconciled; none means all.
    pub fn watched(&self) -> Vec<String> {
        if self.only.is_empty() { self.namespace.iter().cloned().collect() } else { self.only.clone() }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            namespace: None,
            only: Vec::new(),
            reconcile_period: Duration::from_secs(60),
            max_concurrent: std::thread::available_parallelism().map_or(4, usize::from),
            helm_compat: HelmCompat::V3,
            on_save: OnSave::ByHooks,
            hook_timeout: Duration::from_secs(300),
            max_history: 10,
            suppress_override_values: false,
            read_only: ReadOnly::default(),
            pause_loops: true,
            finish: Duration::ZERO,
            leave: Duration::from_secs(5),
            fresh_randomness: None,
            roles_kept: false,
            unfit: None,
        }
    }
}
