//! Runs the programs of a project against a control plane of their own without an inner loop around them: for
//! who swaps one version of an operator for another. A program is built, gets what its Deployment gives it
//! and is traced as under `opdev run`; no file of the project is written.

use super::audit::Audit;
use super::start::{self, Handles, Place};
use super::webhooks::Serving;
use anyhow::Result;
use kube::Client;
use opdev_cluster::owner::Owner;
use opdev_cluster::{Choice, Connection};
use opdev_controlplane::Controllers;
use opdev_event::sink::EventSink;
use opdev_event::sink::ReconcileNumbers;
use opdev_object::meta::ObjectRef;
use opdev_os::private_folder::PrivateFolder;
use opdev_project::Project;
use opdev_project::program::Programs;
use opdev_project::trust::Trust;
use opdev_sources::Sources;
use serde_json::Value;
use std::path::Path;
use std::sync::Arc;
use tokio::sync::watch;

/// A control plane in memory that programs reach over loopback.
pub struct Stage {
    connection: Connection,
    choice: Choice,
    audit: Audit,
}

/// A version of a project whose programs run.
pub struct Cast<'a> {
    /// The project.
    pub project: &'a Project,
    /// The folder for binaries and credentials, outside of the project.
    pub folder: &'a Path,
    /// The permissions that the user gives it.
    pub trust: &'a Trust,
    /// Its files.
    pub sources: &'a watch::Receiver<Arc<Sources>>,
    /// Where facts go.
    pub events: &'a EventSink,
}

/// Programs that run.
pub struct Started(Handles);

impl Stage {
    /// Starts a control plane; its kubeconfig is written into `folder`.
    ///
    /// # Errors
    /// Where it does not start.
    pub async fn open(folder: &Path, trust: &Trust, audit: Audit) -> Result<Stage> {
        let choice = Choice {
            embedded: true,
            in_memory: true,
            controllers_at_rest: true,
            controllers: Controllers::All,
            owner: Owner::at(&folder.join("owner")),
            reach: Some(trust.reach()),
            ..Choice::default()
        };
        let connection = Connection::open(&choice, &PrivateFolder::make(folder)?).await?;
        Ok(Stage { connection, choice, audit })
    }

    /// The administrator's client.
    pub fn client(&self) -> Client {
        self.connection.client.clone()
    }

    /// Starts the programs of a version.
    ///
    /// # Errors
    /// Where the folder cannot be made.
    pub async fn start(&self, cast: &Cast<'_>) -> Result<Started> {
        let state_folder = PrivateFolder::make(cast.folder)?;
        let numbers = ReconcileNumbers::default();
        let place = Place {
            project: cast.project,
            state_folder: &state_folder,
            connection: &self.connection,
            choice: &self.choice,
            events: cast.events,
            numbers: &numbers,
            sources: cast.sources,
            trust: cast.trust,
            poll: false,
            disturb: (&[], 0),
            acting: None,
            audit: Some(&self.audit),
        };
        let programs = Programs::of(cast.project).writing_nothing();
        Ok(Started(start::start(&programs, place).await))
    }

    /// Custom resources (`group/plural`) at another version, as the converter of their definition makes them.
    /// Nothing is stored.
    ///
    /// # Errors
    /// What the converter could not do, in words.
    pub async fn convert(
        &self,
        resource: &str,
        objects: Vec<Value>,
        api_version: &str,
    ) -> Result<Vec<Value>, String> {
        self.connection.convert(resource, objects, api_version).await
    }

    /// Ends the control plane.
    pub async fn close(self) {
        self.connection.close().await;
    }
}

impl Started {
    /// Returns true if a program serves webhooks, as the project's files say.
    pub fn serve_webhooks(&self) -> bool {
        self.0.serve_webhooks()
    }

    /// Asks the program of an object for a reconcile by one of its controllers. Programs that cannot be asked
    /// are left alone.
    pub fn ask(&self, controller: &str, object: &ObjectRef, sources: &Sources) {
        self.0.look_again(controller, object, sources);
    }

    /// Returns true if a program's webhooks are deployed with it, so that somebody calls them.
    pub fn deploys_webhooks(&self) -> bool {
        let deploys = |serving: &Serving| serving.said.borrow().webhooks.are_deployed();
        self.0.0.iter().any(|handle| handle.serving.as_ref().is_some_and(deploys))
    }

    /// Stops the programs and waits until they have ended.
    pub async fn end(self) {
        self.0.end().await;
    }
}

impl Handles {
    /// Returns true if one of them serves webhooks.
    pub(crate) fn serve_webhooks(&self) -> bool {
        let serves = |serving: &Serving| !serving.said.borrow().webhooks.is_empty();
        self.0.iter().any(|handle| handle.serving.as_ref().is_some_and(serves))
    }
}
