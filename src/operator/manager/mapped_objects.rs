//! Objects that the script beside a chart maps to custom resources: each change of one asks the script, one
//! after the other, beside the manager, which then wakes what the script named.

use super::Manager;
use super::kinds::ToMap;
use crate::queue::Urgency;
use jiff::Timestamp;
use opdev_cache::caches::Hub;
use opdev_client::Api;
use opdev_event::{Cause, CauseKind, Level, Relation, WatchEvent, words};
use opdev_object::meta::{Gvk, ObjectKey, ObjectRef};
use opdev_release::script::mapped;
use opdev_types::diagnostic::Diagnostic;
use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::sync::Arc;
use tokio::sync::mpsc::{self, error::TrySendError};
use tokio::time::Instant;

/// How many changes may wait for their turn.
const MOST: usize = 1024;

/// The answer of a script.
pub(super) struct Mapped {
    path: String,
    primary: Gvk,
    object: ObjectRef,
    event: WatchEvent,
    names: Result<Vec<(Option<String>, String)>, MapError>,
}

/// Why a script named nothing.
#[derive(Debug)]
enum MapError {
    /// The error that it threw.
    Script(Box<Diagnostic>),
    /// Its engine panicked.
    Panicked,
}

impl fmt::Display for MapError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MapError::Script(found) => f.write_str(&words::one_line(&found.message)),
            MapError::Panicked => f.write_str("the script's engine panicked"),
        }
    }
}

impl std::error::Error for MapError {}

/// Changes that scripts beside charts map to custom resources, and what they said.
pub(super) struct Mapping {
    ask: mpsc::Sender<ToMap>,
    pub(super) said: mpsc::Receiver<Mapped>,
}

impl Mapping {
    /// Starts to ask. Ends with the sender.
    pub(super) fn start(api: Api, hub: Arc<Hub>) -> Mapping {
        let (ask, mut asked) = mpsc::channel::<ToMap>(MOST);
        let (say, said) = mpsc::channel(MOST);
        tokio::spawn(async move {
            while let Some(next) = asked.recv().await {
                let ToMap { script, at, primary, object, event } = next;
                let Some(reference) = ObjectRef::of(&object) else { continue };
                let path = script.path.clone();
                let (api, hub) = (api.clone(), Arc::clone(&hub));
                let work = tokio::task::spawn_blocking(move || mapped(&script, at, &object, (&api, &hub)));
                let names = match work.await {
                    Ok(names) => names.map_err(MapError::Script),
                    Err(_) => Err(MapError::Panicked),
                };
                if say.send(Mapped { path, primary, object: reference, event, names }).await.is_err() {
                    return;
                }
            }
        });
        Mapping { ask, said }
    }
}

impl Manager {
    /// Asks the scripts that want to know of a change.
    pub(super) async fn map(&mut self, changes: Vec<ToMap>) {
        // Kinds of which more changes came than can wait, each once.
        let mut full: BTreeMap<Gvk, String> = BTreeMap::new();
        for change in changes {
            if let Err(TrySendError::Full(change) | TrySendError::Closed(change)) =
                self.mapping.ask.try_send(change)
            {
                full.entry(change.primary).or_insert_with(|| change.script.path.clone());
            }
        }
        for (primary, path) in full {
            // Rather one reconcile too many than one that never comes.
            let message =
                format!("more than {MOST} changes wait for {path}: every {} is reconciled", primary.kind);
            self.notice(Level::Warn, message, None, None).await;
            for key in self.kinds.objects(&primary) {
                let cause = Cause { at: Timestamp::now(), kind: CauseKind::Period };
                self.queue.add(&key, cause, Urgency::Wait, None, Instant::now());
            }
        }
    }

    /// Wakes what a script named.
    pub(super) async fn take_mapped(&mut self, mapped: Mapped) {
        let Mapped { path, primary, object, event, names } = mapped;
        let names = match names {
            Ok(names) => names,
            Err(why) => {
                let message = format!("watches of {path} failed for {object}: {why}");
                self.notice(Level::Error, message, None, Some(object)).await;
                return;
            }
        };
        let known: HashSet<ObjectKey> = self.kinds.objects(&primary).into_iter().collect();
        for (namespace, name) in names {
            let (group, kind) = (primary.group.clone(), primary.kind.clone());
            let key = ObjectKey { group, kind, namespace, name };
            // An object that does not exist, or is not picked, needs no reconcile.
            if !known.contains(&key) {
                continue;
            }
            let kind = CauseKind::Watch {
                object: object.clone(),
                event,
                fields: Vec::new(),
                by: None,
                own_write: false,
                relation: Relation::Related,
            };
            let cause = Cause { at: Timestamp::now(), kind };
            self.queue.add(&key, cause, Urgency::Wait, None, Instant::now());
        }
    }
}
