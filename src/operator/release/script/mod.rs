//! The script beside a chart as one reconcile asks it: on a blocking thread, with a finite time, and with
//! everything that it read, logged, recorded and set remembered for the end of the reconcile. Writes nothing
//! itself; `hook_calls` carries out what `before` and `after` want.

pub mod blame;
pub mod hook_calls;
pub mod host;
pub mod outside;
pub(crate) mod outside_error;

use super::verdict::Fault;
use crate::script::blame::blamed;
use crate::script::host::Outside;
use anyhow::anyhow;
use opdev_cache::caches::Hub;
use opdev_client::Api;
use opdev_event::{Level, mask};
use opdev_object::meta::{self, ObjectRef};
use opdev_script::contract::{
    ChartAnswer, ChartCall, ChartFunction, ChartQuestion, Observed, Program, Read, RequestedEvent,
};
use opdev_sources::{ChartReconciler, TypeReconciler};
use opdev_types::diagnostic::Diagnostic;
use serde_json::{Value, json};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How much longer than its limit a call is waited for.
const GRACE: Duration = Duration::from_secs(2);

/// A script, for one reconcile of one custom resource.
pub struct ChartScript {
    typed: Arc<TypeReconciler>,
    program: Arc<dyn Program>,
    api: Api,
    hub: Arc<Hub>,
    reference: ObjectRef,
    parent: Arc<Value>,
    /// Nothing that can have an effect is done.
    pub(crate) shadow: bool,
    told: Mutex<Told>,
}

/// The results of a reconcile's calls.
#[derive(Default)]
pub struct Told {
    pub reads: Vec<Read>,
    pub logs: Vec<(Level, String)>,
    /// Objects that came from the API server.
    pub known: Vec<Arc<Value>>,
    pub secrets: Vec<String>,
    pub(crate) events: Vec<RequestedEvent>,
    pub(crate) conditions: Vec<Value>,
}

impl ChartScript {
    /// The script of a chart, where it has one that can serve.
    pub fn of(
        chart: &ChartReconciler,
        api: &Api,
        hub: &Arc<Hub>,
        reference: &ObjectRef,
        object: &Value,
    ) -> Option<Arc<ChartScript>> {
        let typed = Arc::clone(chart.script.as_ref()?);
        let program = Arc::clone(typed.program.as_ref()?);
        Some(Arc::new(ChartScript {
            program,
            api: api.clone(),
            hub: Arc::clone(hub),
            reference: reference.clone(),
            parent: Arc::new(object.clone()),
            shadow: api.read_only.holds(),
            told: Mutex::default(),
            typed,
        }))
    }

    /// Returns true if it exports a function.
    pub fn has(&self, function: ChartFunction) -> bool {
        self.program.facts().chart.contains(&function)
    }

    /// The file, relative to the project's root.
    pub fn path(&self) -> &str {
        &self.typed.path
    }

    /// The secret values that it has read, that its object holds, and that it gave as values.
    pub(crate) fn secrets_so_far(&self) -> Vec<String> {
        let mut secrets = self.lock().secrets.clone();
        secrets.extend(mask::secrets(&self.parent));
        secrets
    }

    /// Notes a read, so that it is watched.
    pub(crate) fn note_read(&self, read: Read) {
        self.lock().reads.push(read);
    }

    /// Writes a line to the log of the reconcile.
    pub(crate) fn log(&self, level: Level, line: String) {
        self.lock().logs.push((level, line));
    }

    /// Takes the results of the calls; later calls begin anew.
    pub fn take_told(&self) -> Told {
        std::mem::take(&mut *self.lock())
    }

    /// Events that were asked for and not recorded yet.
    pub(crate) fn take_events(&self) -> Vec<RequestedEvent> {
        std::mem::take(&mut self.lock().events)
    }

    /// Conditions that were asked for and not set yet.
    pub fn take_conditions(&self) -> Vec<Value> {
        std::mem::take(&mut self.lock().conditions)
    }

    fn lock(&self) -> MutexGuard<'_, Told> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls an exported function. `None` among the arguments stands for the custom resource.
    pub async fn ask(
        &self,
        function: ChartFunction,
        arguments: Vec<Option<Value>>,
    ) -> Result<ChartAnswer, Fault> {
        let question = ChartQuestion { call: ChartCall::Function(function), arguments };
        let outside = Arc::new(Outside::new(
            &self.api,
            &self.hub,
            &self.typed,
            self.reference.namespace.clone(),
            self.shadow,
        ));
        let observed = Observed {
            parent: Arc::clone(&self.parent),
            now: jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
            seed: seed_of(meta::uid(&self.parent).unwrap_or_default()),
            ..Observed::default()
        };
        let (program, host, limits) = (Arc::clone(&self.program), Arc::clone(&outside), self.typed.limits);
        let work = tokio::task::spawn_blocking(move || program.ask(&question, &observed, &*host, &limits));
        let answer = tokio::time::timeout(limits.time + GRACE, work).await;
        let heard = outside.end();
        let mut told = self.lock();
        told.reads.extend(heard.reads);
        told.logs.extend(heard.logs);
        told.known.extend(heard.known);
        for object in &heard.objects {
            told.secrets.extend(mask::secrets(object));
            if object.get("kind").and_then(Value::as_str) == Some("Secret") {
                told.secrets.extend(mask::manifest_secrets(&object.to_string()));
            }
        }
        match answer {
            Ok(Ok(Ok(mut answer))) => {
                told.events.append(&mut answer.desired.events);
                told.conditions.append(&mut answer.desired.conditions);
                told.secrets.extend(mask::secrets(&json!({"spec": answer.value})));
                Ok(answer)
            }
            Ok(Ok(Err(found))) => {
                let secrets = mask::known(told.secrets.iter().cloned().chain(mask::secrets(&self.parent)));
                Err(blamed(&self.typed, &self.reference.gvk, &secrets, &found))
            }
            Ok(Err(error)) if error.is_panic() => Err(Fault::plain(anyhow!(
                "the engine of {} panicked; this is an error in opdev, please report it",
                self.typed.path
            ))),
            Ok(Err(_)) => Err(Fault::plain(anyhow!("the reconcile was stopped"))),
            Err(_) => Err(Fault {
                // Each attempt would take a thread that does not come back.
                retry: false,
                ..Fault::plain(anyhow!(
                    "{} did not return within {} s and cannot be interrupted; it is asked again when something changes",
                    self.typed.path,
                    limits.time.as_secs_f64()
                ))
            }),
        }
    }
}

/// Where random numbers of an object start: the same for the same object.
fn seed_of(uid: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    uid.hash(&mut hasher);
    hasher.finish()
}

/// The custom resources that a changed object is mapped to, by one of the `watches` of a script. Blocks its
/// thread.
///
/// # Errors
/// What the script threw.
pub fn mapped(
    typed: &TypeReconciler,
    at: usize,
    object: &Arc<Value>,
    (api, hub): (&Api, &Arc<Hub>),
) -> Result<Vec<(Option<String>, String)>, Box<Diagnostic>> {
    let Some(program) = &typed.program else { return Ok(Vec::new()) };
    let question = ChartQuestion { call: ChartCall::Map(at), arguments: vec![Some(Value::clone(object))] };
    let outside = Outside::new(api, hub, typed, meta::namespace(object).map(str::to_owned), true);
    let observed = Observed { parent: Arc::clone(object), ..Observed::default() };
    let answer = program.ask(&question, &observed, &outside, &typed.limits);
    outside.end();
    let answer = answer?;
    let text = |item: &Value, key: &str| item.get(key).and_then(Value::as_str).map(str::to_owned);
    let own = meta::namespace(object).map(str::to_owned);
    let items = answer.value.as_array().cloned().unwrap_or_default();
    Ok(items
        .iter()
        .filter_map(|item| {
            let name = item.as_str().map(str::to_owned).or_else(|| text(item, "name"))?;
            Some((text(item, "namespace").or_else(|| own.clone()), name))
        })
        .collect())
}
