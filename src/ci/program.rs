//! Somebody else's tests: a control plane and the operator, and a program that finds them by `KUBECONFIG`.

use super::run::CiInput;
use anyhow::{Context as _, Result};
use opdev_event::words;
use opdev_os::child::{GroupEnd, ProcessGroup};
use opdev_scenario::shared_cluster::Shared;
use opdev_scenario::world::World;
use std::io::IsTerminal as _;
use std::path::Path;
use std::process::ExitStatus;
use std::time::Duration;
use tokio::process::{Child, Command};

/// The name of its recording, and the purpose of its namespace.
const NAME: &str = "program";
/// How long it may take to stop once it was asked to.
const PATIENCE: Duration = Duration::from_secs(2);

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

/// Runs a program against a fresh control plane with the operator. It runs in the caller's folder, with the
/// caller's streams.
///
/// # Errors
/// Where the operator does not serve, or the program cannot be started.
pub async fn program(input: &CiInput, folder: &Path, words: &[String]) -> Result<Ended> {
    let shared = input.shared().await?;
    let world = World::start(&input.setup(NAME, Path::new(NAME), shared.clone())).await?;
    let ended = started(input, &world, folder, words).await;
    let problems = world.state().problems();
    let operator = problems.first().map(words::diagnostic);
    let stopped = world.stop().await;
    Shared::close(shared).await;
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
    let mut command = Command::new(name);
    command.args(args).current_dir(folder).env("KUBECONFIG", &world.kubeconfig).kill_on_drop(true);
    if let Some(namespace) = world.own_namespace() {
        command.env("NAMESPACE", namespace);
    }
    // At a terminal it stays in opdev's group, so that it may read the keyboard; ctrl-c reaches all of it
    // there.
    let group = if std::io::stdin().is_terminal() {
        None
    } else {
        Some(ProcessGroup::start(GroupEnd::AtOnce).await?)
    };
    if let Some(group) = &group {
        group.take_in(&mut command);
    }
    let mut child = command.spawn().with_context(|| format!("{name} cannot be started"))?;
    let (status, interrupted) = tokio::select! {
        status = child.wait() => (status, false),
        () = input.shutdown.cancelled() => {
            match &group {
                Some(group) => group.ask_to_stop(),
                None => ask_to_stop(&child),
            }
            let patient = tokio::time::timeout(PATIENCE, child.wait()).await;
            if patient.is_err() {
                let _ = child.start_kill();
            }
            (child.wait().await, true)
        }
    };
    if let Some(group) = group {
        group.end().await;
    }
    Ok((status?, interrupted))
}

fn ask_to_stop(child: &Child) {
    let pid = child.id().and_then(|id| i32::try_from(id).ok()).and_then(rustix::process::Pid::from_raw);
    if let Some(pid) = pid {
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
    }
}
