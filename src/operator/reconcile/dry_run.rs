//! A trial run: what the reconciler of a kind would do to every known object of it. Nothing is written and nothing
//! outside is changed; the API refuses writes and lets only dry runs through. `foresee` tries a chart, `program/shadow` a
//! program.

use super::program::dry_run;
use crate::client::read_only::ReadOnly;
use crate::client::{Api, At};
use crate::event::{ShadowObject, Skipped};
use crate::operator::cache::caches::Hub;
use crate::operator::reconcile::dry_run_report::Shadowed;
use crate::operator::reconcile::job::{Job, ReadObject};
use crate::operator::release::memory::Memory;
use crate::operator::release::objects::dry_run::Ask;
use crate::operator::release::render::cache::Renders;
use crate::operator::release::settings::Settings;
use crate::sources::{Reconciler, Watch};
use futures::stream::{self, StreamExt};
use opdev_object::meta::{self, Gvk, ObjectKey, ObjectRef};
use serde_json::Value;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// How many objects are tried at once.
const AT_ONCE: usize = 4;
/// More objects than these are counted, not tried.
const MOST: usize = 500;

/// What a trial needs.
pub(in crate::operator) struct Trial {
    pub(in crate::operator) watch: Arc<Watch>,
    pub(in crate::operator) objects: Vec<Arc<Value>>,
    pub(in crate::operator) api: Api,
    pub(in crate::operator) hub: Arc<Hub>,
    pub(in crate::operator) settings: Arc<Settings>,
    /// Kinds of children that the running program has.
    pub(in crate::operator) kinds: Vec<Gvk>,
    /// What earlier passes of the objects left.
    pub(in crate::operator) memories: HashMap<ObjectKey, Memory>,
    /// Who says what writes would do.
    pub(in crate::operator) ask: Ask,
    /// How long all of it may take.
    pub(in crate::operator) longest: Duration,
}

/// Tries the reconciler of `watch` on every object.
pub(in crate::operator) async fn run(mut trial: Trial) -> Shadowed {
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

/// What came of one try.
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
        Reconciler::Chart(chart) => {
            let mut pass = super::chart_pass(job, Arc::clone(chart), read, Instant::now());
            Tried::Ran(Box::new(pass.shadow(trial.ask).await))
        }
        Reconciler::Type(typed) => {
            let tried = dry_run::one(job, Arc::clone(typed), read, trial.ask).await;
            tried.unwrap_or_else(|why| Tried::Skipped(reference, why.to_string()))
        }
    }
}
