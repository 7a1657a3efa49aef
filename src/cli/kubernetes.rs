//! `--kubernetes` and `--legacy`: which minor the embedded control planes are, and what they serve beside it.

use anyhow::{Context as _, Result};
use opdev_object::facts::minors::{self, UnknownMinor};
use opdev_object::facts::removed;

/// Which Kubernetes the embedded control plane is.
#[derive(Debug, Default, clap::Args)]
pub(super) struct KubernetesArgs {
    /// Which Kubernetes the embedded control plane is: its version, its groups and the fields of its kinds; default: the
    /// newest. `opdev version` names the others
    #[arg(long, value_name = "1.MINOR", value_parser = minor)]
    kubernetes: Option<&'static str>,
    /// Serve `v1beta1` of budgets, CronJobs, Leases, roles and others, too, which Kubernetes has taken away
    /// (docs/controlplane.md)
    #[arg(long)]
    legacy: bool,
}

fn minor(text: &str) -> Result<&'static str, UnknownMinor> {
    minors::find(text)
}

impl KubernetesArgs {
    /// Makes this process speak of the minor that the flag names, or else the project's settings.
    pub(super) fn choose(&self, setting: Option<&str>) -> Result<()> {
        if self.legacy {
            removed::serve();
        }
        match self.kubernetes {
            Some(minor) => Ok(minors::choose(minor)?),
            None => setting.map_or(Ok(()), |named| minors::choose(named).context("kubernetes in opdev.yaml")),
        }
    }
}
