//! The cluster that a command works on.

use super::input::{DeployInput, Say};
use anyhow::{Result, bail};
use opdev_cluster::data_folder::running;
use opdev_cluster::{Choice, Connection};
use opdev_event::words;
use opdev_os::lock::Lock;

/// A connection for one command.
pub(super) struct Session {
    pub(super) connection: Connection,
    _lock: Option<Lock>,
}

impl Session {
    /// Connects. Of the embedded control plane that is the one of an opdev that runs in this project, else
    /// one that keeps its objects there.
    pub(super) async fn open(input: &DeployInput, writes: bool, say: Say<'_>) -> Result<Session> {
        let state = input.project.state_folder()?;
        let mut choice = input.cluster.clone();
        let mut lock = None;
        let unnamed = !choice.embedded;
        if Connection::is_embedded(&choice)? {
            match running(&input.project.root)? {
                Some(kubeconfig) => {
                    choice =
                        Choice { embedded: false, context: None, kubeconfig: Some(kubeconfig), ..choice };
                }
                // With simulated pods all would seem to be well, on a cluster that nobody has asked for.
                None if unnamed => bail!(
                    "there is no cluster: no kubeconfig has a current context, and no `opdev run` is at work in {}\n  to do: name \
                     one with --kubeconfig or --context, or say --embedded for the one that opdev keeps",
                    input.project.root.display()
                ),
                None => match Lock::take(&state, "lock", "opdev deploy")? {
                    Ok(taken) => lock = Some(taken),
                    Err(holder) => bail!(
                        "another opdev is at work in this project: {holder}\n  where: {}\n  to do: wait until it has ended, \
                         or name another cluster with --context or --kubeconfig",
                        input.project.root.display()
                    ),
                },
            }
        }
        let connection = Connection::open(&choice, &state).await?;
        let session = Session { connection, _lock: lock };
        let cluster = &session.connection.cluster;
        let at = if cluster.server.is_empty() { String::new() } else { format!(" ({})", cluster.server) };
        say(&words::visible_line(&format!("cluster: {}{at}", cluster.name)));
        if let Some(warning) = &session.connection.warning {
            say(&words::visible_line(&format!("warning: {warning}")));
        }
        if writes && session.connection.read_only.holds() {
            let cluster = &session.connection.cluster;
            let refusal = format!(
                "the context {} is not clearly local, so opdev writes nothing to it\n  why: {}\n  to do: add \
                 --allow-context {}, or name the context under allowContexts in ~/.config/opdev/config.yaml",
                cluster.name, cluster.marks, cluster.name
            );
            session.close().await;
            bail!(refusal);
        }
        Ok(session)
    }

    pub(super) async fn close(self) {
        self.connection.close().await;
    }

    /// The namespace of an object that names none.
    pub(super) fn namespace(&self) -> &str {
        &self.connection.namespace
    }
}
