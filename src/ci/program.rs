//! Somebody else's tests: a control plane and the operator, and a program that finds them by `KUBECONFIG`.

use super::run::CiInput;
use super::world::World;
use crate::event::words;
use anyhow::{Context as _, Result};
use std::path::Path;
use std::process::ExitStatus;
use tokio::process::Command;

/// How the program ended, and what became of the operator meanwhile.
#[derive(Debug)]
pub struct Ended {
    /// The program's own end.
    pub status: ExitStatus,
    /// Why the operator did not serve at the end.
    pub operator: Option<String>,
    /// Somebody has broken it off.
    pub interrupted: bool,
}

/// Runs a program against a fresh control plane with the operator. It runs in the caller's folder, with the caller's
/// streams.
///
/// # Errors
/// Where the operator does not serve, or the program cannot be started.
pub async fn program(input: &CiInput, folder: &Path, words: &[String]) -> Result<Ended> {
    let world = World::start(&input.setup()).await?;
    let ended = started(input, &world, folder, words).await;
    let problems = world.state().problems();
    let operator = problems.first().map(words::diagnostic);
    let stopped = world.stop().await;
    let (status, interrupted) = ended?;
    let operator = operator.or_else(|| stopped.err().map(|error| format!("{error:#}")));
    Ok(Ended { status, operator, interrupted })
}

async fn started(
    input: &CiInput,
    world: &World,
    folder: &Path,
    words: &[String],
) -> Result<(ExitStatus, bool)> {
    let (name, args) = words.split_first().context("no program was named")?;
    let mut child = Command::new(name)
        .args(args)
        .current_dir(folder)
        .env("KUBECONFIG", &world.kubeconfig)
        .kill_on_drop(true)
        .spawn()
        .with_context(|| format!("{name} cannot be started"))?;
    tokio::select! {
        status = child.wait() => Ok((status?, false)),
        () = input.shutdown.cancelled() => {
            // It has the terminal's signal as well; who asked with `kill` asked only opdev.
            let _ = child.start_kill();
            Ok((child.wait().await?, true))
        }
    }
}
