//! Watches what the panes show: the custom resources and the kinds their objects are made of
//! (`observe/kinds.rs`). Only looks; reconciles have watches of their own in `operator`. Lists come in pages
//! of 500, and each object is told as it comes, so that the first rows do not wait for the last page;
//! `benches/lists.rs` has the times. Of what belongs to no custom resource of the project, which is most of a
//! large cluster, only the keys are told (`observe/project_objects.rs`).

mod follow;
pub(crate) mod forbidden;
pub mod kind_table;
mod kinds;
mod partial_object;
pub mod pod_logs;
mod project_objects;
pub(crate) mod served_kinds;

use crate::forbidden::{Place, Rights};
use follow::{Kind, Known, Refused};
use kinds::Reads;
use kube::Client;
use opdev_client::watch::{FORBIDDEN_PAUSE, Pauses};
use opdev_event::UnrelatedObject;
use opdev_event::sink::EventSink;
use opdev_object::meta::{Gvk, ObjectRef};
use partial_object::PartialObject;
use project_objects::ProjectObjects;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// The objects that somebody pays attention to.
#[derive(Clone)]
pub(crate) struct Attention {
    /// The object whose whole is shown.
    looked_at: watch::Receiver<Option<ObjectRef>>,
}

/// The kinds that are shown beside the custom resources.
pub fn shown() -> impl Iterator<Item = Gvk> {
    kinds::owned()
}

/// How often the watch of a further namespace looks whether a kind that lives in none still does.
const ELSEWHERE: Duration = Duration::from_secs(60);

/// The running watches.
pub struct Observer {
    client: Client,
    /// The only namespaces that are watched, each by itself; none means all.
    namespaces: Vec<String>,
    events: EventSink,
    /// Changes when the API server answers again.
    awake: watch::Receiver<u64>,
    /// True if everything is read whole: the embedded control plane sends nothing over a wire.
    whole: bool,
    looked_at: watch::Sender<Option<ObjectRef>>,
    project_objects: ProjectObjects,
    reconciled: watch::Sender<Vec<Gvk>>,
    /// Tells what may not be watched.
    rights: Rights,
    running: BTreeMap<Gvk, CancellationToken>,
    tasks: TaskTracker,
    shutdown: CancellationToken,
}

impl Observer {
    pub fn new(
        client: Client,
        namespaces: Vec<String>,
        events: EventSink,
        (awake, whole): (watch::Receiver<u64>, bool),
        shutdown: CancellationToken,
    ) -> Self {
        let (tasks, running) = (TaskTracker::new(), BTreeMap::new());
        let (looked_at, project_objects) = (watch::Sender::default(), ProjectObjects::new());
        let reconciled = watch::Sender::default();
        let rights = Rights::telling(&events, &tasks, &shutdown);
        Observer {
            client,
            namespaces,
            events,
            awake,
            whole,
            looked_at,
            project_objects,
            reconciled,
            rights,
            running,
            tasks,
            shutdown,
        }
    }

    /// Somebody looks at this object, and at no other one: it is read whole, and again with each change.
    pub fn look_at(&self, object: Option<ObjectRef>) {
        self.looked_at.send_replace(object);
    }

    /// Watches custom resources, those that opdev reconciles and those that it only shows, and everything
    /// they are commonly made of; ends the watches of others.
    pub fn watch(&mut self, reconciled: Vec<Gvk>, shown: Vec<Gvk>) {
        let kinds = [reconciled.clone(), shown].concat();
        self.reconciled.send_replace(reconciled);
        let wanted: BTreeSet<Gvk> = kinds.iter().cloned().chain(kinds::owned()).collect();
        self.project_objects.set_kinds(&kinds, &wanted, &self.namespaces);
        self.running.retain(|gvk, token| {
            let keep = wanted.contains(gvk);
            if !keep {
                token.cancel();
            }
            keep
        });
        for gvk in wanted {
            if !self.running.contains_key(&gvk) {
                let token = self.shutdown.child_token();
                for scope in self.scopes() {
                    self.tasks.spawn(self.watch_of(&gvk, scope).run(token.clone()));
                }
                self.running.insert(gvk, token);
            }
        }
    }

    fn scopes(&self) -> Vec<Scope> {
        match self.namespaces.as_slice() {
            [] => vec![Scope { namespace: None, first: true }],
            some => some
                .iter()
                .enumerate()
                .map(|(place, name)| Scope { namespace: Some(name.clone()), first: place == 0 })
                .collect(),
        }
    }

    fn watch_of(&self, gvk: &Gvk, scope: Scope) -> Watch {
        Watch {
            client: self.client.clone(),
            gvk: gvk.clone(),
            scope,
            events: self.events.clone(),
            awake: self.awake.clone(),
            reconciled: self.reconciled.subscribe(),
            rights: self.rights.clone(),
            reads: if self.whole { Reads::Whole } else { kinds::reads(gvk) },
            attention: Attention { looked_at: self.looked_at.subscribe() },
            project_objects: self.project_objects.clone(),
        }
    }
}

/// The part of a kind's objects that a watch is about.
#[derive(Clone, Debug)]
struct Scope {
    /// The only namespace; `None` means all.
    namespace: Option<String>,
    /// True if it is the watch for objects that live in no namespace, too.
    first: bool,
}

/// The watch of one kind, of all namespaces or of one.
struct Watch {
    client: Client,
    gvk: Gvk,
    scope: Scope,
    events: EventSink,
    awake: watch::Receiver<u64>,
    reads: Reads,
    attention: Attention,
    project_objects: ProjectObjects,
    /// The kinds whose missing rights `operator` tells: without them nothing is reconciled.
    reconciled: watch::Receiver<Vec<Gvk>>,
    rights: Rights,
}

impl Watch {
    /// Watches until the token fires, through breaks and refusals; then tells that all of it is gone.
    async fn run(self, token: CancellationToken) {
        let mut known = Known::default();
        let (gvk, events) = (self.gvk.clone(), self.events.clone());
        tokio::select! {
            () = token.cancelled() => {}
            () = self.follow(&mut known) => {}
        }
        // The kind is shown no longer.
        for gone in known.objects() {
            follow::gone(&events, gone.reference(&gvk)).await;
        }
    }

    async fn follow(self, known: &mut Known) {
        let Watch {
            client,
            gvk,
            scope,
            events,
            mut awake,
            reads,
            attention,
            project_objects,
            reconciled,
            rights,
        } = self;
        let mut refused = Pauses::new(FORBIDDEN_PAUSE);
        loop {
            awake.borrow_and_update();
            let epoch = project_objects.epoch();
            let mut pause = Duration::from_secs(5);
            match opdev_client::resource_of(&client, &gvk).await {
                // Whoever watches the first namespace watches these, until the kind is made again with
                // another scope.
                Ok((_, false)) if !scope.first => pause = ELSEWHERE,
                Ok((resource, namespaced)) => {
                    let mut kind = Kind {
                        client: client.clone(),
                        resource,
                        namespaced,
                        namespace: scope.namespace.clone(),
                        gvk: Arc::new(gvk.clone()),
                        reads,
                        events: events.clone(),
                        attention: attention.clone(),
                        project_objects: project_objects.clone(),
                    };
                    let ended = tokio::select! {
                        ended = kind.follow(known) => ended,
                        // A task that waits out a long pause need not.
                        Ok(()) = awake.changed() => {
                            known.distrust();
                            refused.reset();
                            continue;
                        }
                    };
                    if let Err(Refused { why, stood }) = ended {
                        let is_told = reconciled.borrow().contains(&gvk);
                        if !is_told {
                            let place = match &scope.namespace {
                                None => Place::Everywhere,
                                Some(_) if !namespaced => Place::Cluster,
                                Some(name) => Place::Namespace(name.clone()),
                            };
                            rights.lacks(&gvk, place, why).await;
                        }
                        pause = refused.after(stood);
                    } else {
                        refused.reset();
                    }
                }
                Err(error) => tracing::debug!(kind = %gvk.kind, "not watched: {error:#}"),
            }
            // The watch ended for good, or the kind is not served: others need not wait for it. Look again in
            // a while.
            project_objects.listed(&gvk, scope.namespace.as_deref());
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = project_objects.left_epoch(epoch) => {}
                Ok(()) = awake.changed() => {}
            }
        }
    }
}

/// The key that tells one object of a kind from the others.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Watched {
    namespace: Option<String>,
    name: String,
    uid: Option<String>,
}

impl Watched {
    fn of(partial_object: &PartialObject) -> Watched {
        let metadata = &partial_object.metadata;
        Watched {
            namespace: metadata.namespace.clone(),
            name: metadata.name.clone(),
            uid: metadata.uid.clone(),
        }
    }

    fn unrelated(&self) -> UnrelatedObject {
        UnrelatedObject {
            namespace: self.namespace.clone(),
            name: self.name.clone(),
            uid: self.uid.clone(),
            changed_by: None,
        }
    }

    fn reference(&self, gvk: &Gvk) -> ObjectRef {
        ObjectRef {
            gvk: gvk.clone(),
            namespace: self.namespace.clone(),
            name: self.name.clone(),
            uid: self.uid.clone(),
        }
    }
}
