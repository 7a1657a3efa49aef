//! A trial run: what the reconciler of a kind would do to every known object of it. Nothing is written and
//! nothing outside is changed; the API refuses writes and lets only dry runs through. `chart/plan` tries a
//! chart, `program/dry_run` a program.

use crate::chart;
use crate::dry_run_report::Shadowed;
use crate::job::{Job, ReadObject};
use crate::program::dry_run;
use futures::stream::{self, StreamExt};
use opdev_cache::caches::Hub;
use opdev_client::read_only::ReadOnly;
use opdev_client::{Api, At};
use opdev_event::{ShadowObject, Skipped};
use opdev_object::meta::{self, Gvk, ObjectKey, ObjectRef};
use opdev_release::memory::Memory;
use opdev_release::objects::dry_run::Ask;
use opdev_release::render::cache::Renders;
use opdev_release::settings::Settings;
use opdev_sources::{Reconciler, Watch};
use serde_json::Value;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// How many objects are tried at once.
const AT_ONCE: usize = 4;
/// More objects than these are counted, not tried.
const MOST: usize = 500;

/// Everything that a trial needs.
pub struct Trial {
    pub watch: Arc<Watch>,
    pub objects: Vec<Arc<Value>>,
    pub api: Api,
    pub hub: Arc<Hub>,
    pub settings: Arc<Settings>,
    /// Kinds of children that the running program has.
    pub kinds: Vec<Gvk>,
    /// The memories that earlier reconciles of the objects left.
    pub memories: HashMap<ObjectKey, Memory>,
    /// The side that says what writes would do.
    pub ask: Ask,
    /// How long all of it may take.
    pub longest: Duration,
}

/// Tries the reconciler of `watch` on every object.
pub async fn run(mut trial: Trial) -> Shadowed {
    let mut shadowed = Shadowed::default();
    if !trial.watch.is_loaded() {
        return shadowed;
    }
    trial.api.read_only = ReadOnly::new(true);
    let mut finalizes = true;
    if let Some(program) = trial.watch.program().and_then(|typed| typed.program.clone()) {
        finalizes = program.facts().finalizes;
        for gvk in &program.facts().owns {
            if !trial.kinds.contains(gvk) {
                trial.kinds.push(gvk.clone());
            }
        }
    }
    let deadline = Instant::now() + trial.longest;
    let picked = trial.objects.iter().filter(|object| {
        let leaving = meta::deletion_timestamp(object).is_some();
        trial.watch.picks(object) && (!leaving || finalizes)
    });
    let mut objects: Vec<Arc<Value>> = picked.cloned().collect();
    objects.sort_by_key(|object| {
        (meta::namespace(object).map(str::to_owned), meta::name(object).map(str::to_owned))
    });
    let more = objects.len().saturating_sub(MOST);
    objects.truncate(MOST);
    let renders = Arc::default();
    let mut tries = Vec::with_capacity(objects.len());
    for object in &objects {
        tries.push(one(&trial, &renders, object, deadline));
    }
    let mut answers = stream::iter(tries).buffered(AT_ONCE);
    while let Some(answer) = answers.next().await {
        match answer {
            Tried::Skipped(object, why) => shadowed.skipped.push(Skipped { object, why }),
            Tried::Ran(found) => {
                shadowed.ran += 1;
                if found.is_nothing() {
                    shadowed.unchanged.push(found.object);
                } else {
                    shadowed.objects.push(*found);
                }
            }
        }
    }
    if more > 0 {
        let object = ObjectRef { gvk: trial.watch.gvk.clone(), ..ObjectRef::default() };
        shadowed.skipped.push(Skipped { object, why: format!("{more} more objects were not tried") });
    }
    shadowed
}

/// The outcome of one try.
pub(super) enum Tried {
    Ran(Box<ShadowObject>),
    Skipped(ObjectRef, String),
}

async fn one(trial: &Trial, renders: &Arc<Renders>, object: &Arc<Value>, deadline: Instant) -> Tried {
    let Some(mut reference) = ObjectRef::of(object) else {
        return Tried::Skipped(ObjectRef::default(), "it has no name".to_owned());
    };
    reference.gvk = trial.watch.gvk.clone();
    if Instant::now() > deadline {
        let why = format!("the trial had taken {} s", trial.longest.as_secs());
        return Tried::Skipped(reference, why);
    }
    let Ok(resource) = trial.api.resource(&reference.gvk).await else {
        return Tried::Skipped(reference, "its kind is not served".to_owned());
    };
    let at = At { resource: &resource, namespace: reference.namespace.as_deref(), name: &reference.name };
    // The status that was written last may not have been seen by the stream yet.
    let object = match trial.api.get(&at).await {
        Ok(Some(object)) => object,
        Ok(None) => return Tried::Skipped(reference, "it is gone".to_owned()),
        Err(error) => return Tried::Skipped(reference, error.to_string()),
    };
    let memory = trial.memories.get(&reference.key()).map(Memory::for_trial).unwrap_or_default();
    let job = Job {
        object: reference.clone(),
        watch: Arc::clone(&trial.watch),
        api: trial.api.clone(),
        settings: Arc::clone(&trial.settings),
        cancel: CancellationToken::new(),
        renders: Arc::clone(renders),
        memory,
        hub: Arc::clone(&trial.hub),
        kinds: trial.kinds.clone(),
        own_only: false,
    };
    let read = ReadObject { resource, object };
    match &trial.watch.reconciler {
        Reconciler::Chart(reconciler) => {
            let mut reconcile = chart::begin(job, Arc::clone(reconciler), read, Instant::now());
            Tried::Ran(Box::new(reconcile.shadow(trial.ask).await))
        }
        Reconciler::Type(typed) => {
            let tried = dry_run::one(job, Arc::clone(typed), read, trial.ask).await;
            tried.unwrap_or_else(|why| Tried::Skipped(reference, why.to_string()))
        }
    }
}
