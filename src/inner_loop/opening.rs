//! The problem: another cluster may not answer, may be the wrong one, or may need a login. The one that is
//! worked on must go on until the new one has answered.
//!
//! The way to a cluster: it is opened first, and nobody is told of it before it is worked on. While opdev
//! runs, another one is opened beside the one that is worked on, which is left only once the other one
//! answers.

use super::Input;
use crate::service_account::RoleSync;
use anyhow::Result;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use opdev_cluster::identity::Identity;
use opdev_cluster::{Choice, Connection};
use opdev_event::sink::EventSink;
use opdev_event::{Destination, OnExit, RequestId};
use opdev_os::private_folder::PrivateFolder;
use opdev_project::trust::Trust;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// A cluster that answers, and what is needed to work on it. Nothing runs there yet.
pub(super) struct Opened {
    pub(super) connection: Connection,
    /// The operator's own client and roles, where it runs as its ServiceAccount.
    pub(super) acting: Option<(Identity, RoleSync)>,
    /// Events of this cluster; held back until it is worked on.
    pub(super) events: EventSink,
    /// The choice of the cluster, by a flag, a setting or the user.
    pub(super) choice: Choice,
    /// How long that took.
    pub(super) took: Duration,
}

/// Opens clusters for one project.
#[derive(Clone)]
pub(super) struct Opener {
    root: PathBuf,
    state_folder: PrivateFolder,
    events: EventSink,
    trust: Trust,
}

impl Opener {
    pub(super) fn of(input: &Input) -> Opener {
        Opener {
            root: input.project.root.clone(),
            state_folder: input.state_folder.clone(),
            events: input.events.clone(),
            trust: input.trust.clone(),
        }
    }

    /// Opens what is chosen.
    ///
    /// # Errors
    /// A message that says what was tried and what to do.
    pub(super) async fn open(self, mut choice: Choice, since: Instant) -> Result<Opened> {
        choice.reach = Some(self.trust.reach());
        let connection = Connection::open(&choice, &self.state_folder).await?;
        let events = self.events.gated();
        let acting = match &choice.service_account {
            Some(named) => match RoleSync::open(&connection, &self.root, named, events.clone()).await {
                Ok(acting) => Some(acting),
                Err(error) => {
                    connection.close().await;
                    return Err(error);
                }
            },
            None => None,
        };
        Ok(Opened { connection, acting, events, choice, took: since.elapsed() })
    }
}

/// A wish to go elsewhere, until that cluster is open or does not answer.
pub(super) struct Opening {
    pub(super) id: RequestId,
    pub(super) what: String,
    pub(super) to: Destination,
    pub(super) how: OnExit,
    pub(super) since: Instant,
    /// The user wants to stay after all.
    pub(super) cancelled: bool,
    work: BoxFuture<'static, Result<Opened>>,
}

impl Opening {
    /// Begins to open another cluster than the one that was chosen by `here`.
    pub(super) fn begin(
        id: RequestId,
        (to, how): (Destination, OnExit),
        here: &Choice,
        opener: Opener,
    ) -> Opening {
        let choice = Choice {
            embedded: to == Destination::Embedded,
            context: match &to {
                Destination::Embedded => None,
                Destination::Context { name } => Some(name.clone()),
            },
            // Objects made since the start are not thrown away on the way back.
            fresh: false,
            ..here.clone()
        };
        let since = Instant::now();
        let work = opener.open(choice, since).boxed();
        Opening { id, what: format!("switch to {to}"), to, how, since, cancelled: false, work }
    }

    /// Returns true if it can be dropped at any time. An embedded control plane holds files until it is
    /// closed.
    pub(super) fn can_be_dropped(&self) -> bool {
        self.to != Destination::Embedded
    }

    /// Gives up; nothing of it stays behind.
    pub(super) async fn close(self) {
        if !self.can_be_dropped()
            && let Ok(opened) = self.work.await
        {
            opened.connection.close().await;
        }
    }

    /// The end of the one that is under way; waits for ever where none is.
    pub(super) async fn end(under_way: &mut Option<Opening>) -> Result<Opened> {
        match under_way {
            Some(opening) => (&mut opening.work).await,
            None => std::future::pending().await,
        }
    }
}
