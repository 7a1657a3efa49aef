//! What opdev says of itself: its version and man pages.

use anyhow::{Context as _, Result};
use clap::Command;
use opdev_object::facts::minors;
use serde_json::json;
use std::io::Write as _;
use std::path::PathBuf;

/// Which opdev this is, and which Kubernetes and Helm it follows
#[derive(Debug, clap::Args)]
pub(super) struct VersionArgs {
    /// How to print it
    #[arg(short, long, value_name = "FORMAT", value_parser = ["text", "json"], default_value = "text")]
    output: String,
}

/// Write a man page for each command
#[derive(Debug, clap::Args)]
pub(super) struct ManArgs {
    /// The folder to write to; it has to be there
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

/// The Helm 3 and the Helm 4 that rendering is held to; `docs/helm.md` says how.
const HELM: [&str; 2] = ["3.22.0", "4.3.1"];

/// Prints the version.
pub(super) fn version(args: &VersionArgs) -> Result<()> {
    let version = env!("CARGO_PKG_VERSION");
    // The build of a release sets the commit.
    let commit = option_env!("OPDEV_COMMIT").filter(|commit| !commit.is_empty());
    let kubernetes = opdev_controlplane::git_version();
    let kubernetes = kubernetes.split('+').next().unwrap_or_default();
    let older = minors::known().into_iter().filter(|known| *known != minors::minor()).collect::<Vec<_>>();
    let system = format!("{}/{}", std::env::consts::OS, std::env::consts::ARCH);
    let [helm3, helm4] = HELM;
    let text = match args.output.as_str() {
        "json" => json!({"opdev": version, "commit": commit, "kubernetes": kubernetes,
            "kubernetesOlder": older, "helm": {"3": helm3, "4": helm4}, "platform": system})
        .to_string(),
        _ => format!(
            "opdev {version}{}\nkubernetes {kubernetes}, or {} with --kubernetes\nhelm {helm3}, or {helm4} with --helm-compat 4\n{system}",
            commit.map_or_else(String::new, |commit| format!(" ({commit})")),
            older.join(", "),
        ),
    };
    print(format!("{text}\n").as_bytes())
}

/// Writes man pages.
pub(super) fn man(args: &ManArgs, command: Command) -> Result<()> {
    clap_mangen::generate_to(command, &args.folder)
        .with_context(|| format!("man pages cannot be written to {}", args.folder.display()))
}

pub(super) fn print(text: &[u8]) -> Result<()> {
    match super::visible::machine().write_all(text) {
        // Whoever reads it has seen enough.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        other => Ok(other?),
    }
}
