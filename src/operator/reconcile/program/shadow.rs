//! A trial run: what a new program would do to every known object of its kind. Nothing is written and nothing outside
//! is changed; the API refuses writes and so does the host.

use super::host::Outside;
use super::memory::Memory;
use super::observe::Source;
use super::pass::{Done, Pass, manager_of};
use super::plan::Plan;
use super::status::merged;
use crate::event::{Action, ObjectChange, ShadowObject, mask};
use crate::operator::api::{Api, At};
use crate::operator::read_only::ReadOnly;
use crate::operator::reconcile;
use crate::operator::reconcile::compare::changes;
use crate::operator::reconcile::engine::Clock;
use crate::operator::reconcile::foresee;
use crate::operator::reconcile::inject::Owner;
use crate::operator::reconcile::overlay::overlay;
use crate::operator::reconcile::parent::Parent;
use crate::operator::reconcile::verdict::status_changes;
use crate::operator::settings::Settings;
use crate::operator::shadowed::Shadowed;
use crate::operator::watch::hub::Hub;
use crate::sources::{TypeReconciler, Watch, broken};
use futures::stream::{self, StreamExt};
use opdev_object::meta::{self, Gvk, ObjectRef};
use opdev_types::contract::{Desired, Observed, Program, ReleaseState};
use opdev_types::diagnostic::Diagnostic;
use serde_json::Value;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// How many objects are tried at once.
const AT_ONCE: usize = 4;
/// How long a trial of all objects may take.
const LONGEST: Duration = Duration::from_secs(10);
/// How much longer than its limit a call is waited for.
const GRACE: Duration = Duration::from_secs(2);

/// What a trial needs.
pub(in crate::operator) struct Trial {
    pub(in crate::operator) watch: Arc<Watch>,
    pub(in crate::operator) objects: Vec<Arc<Value>>,
    pub(in crate::operator) api: Api,
    pub(in crate::operator) hub: Arc<Hub>,
    pub(in crate::operator) settings: Arc<Settings>,
    /// Kinds of children that the running program has.
    pub(in crate::operator) kinds: Vec<Gvk>,
}

/// Tries the program of `watch` on every object.
pub(in crate::operator) async fn run(mut trial: Trial) -> Shadowed {
    let mut shadowed = Shadowed::default();
    let Some(typed) = trial.watch.program().cloned() else { return shadowed };
    let Some(program) = typed.program.clone() else { return shadowed };
    trial.api.read_only = ReadOnly::new(true);
    for gvk in &program.facts().owns {
        if !trial.kinds.contains(gvk) {
            trial.kinds.push(gvk.clone());
        }
    }
    let deadline = Instant::now() + LONGEST;
    let picked = trial.objects.iter().filter(|object| {
        let leaving = meta::deletion_timestamp(object).is_some();
        trial.watch.picks(object) && (!leaving || program.facts().finalizes)
    });
    let mut objects: Vec<Arc<Value>> = picked.cloned().collect();
    objects.sort_by_key(|object| {
        (meta::namespace(object).map(str::to_owned), meta::name(object).map(str::to_owned))
    });
    let mut tries = Vec::with_capacity(objects.len());
    for object in &objects {
        tries.push(one(&trial, &typed, &program, object, deadline));
    }
    let mut answers = stream::iter(tries).buffered(AT_ONCE);
    while let Some(answer) = answers.next().await {
        match answer {
            Tried::Skipped(object, why) => shadowed.skipped.push((object, why)),
            Tried::Ran(found) => {
                shadowed.ran += 1;
                shadowed.objects.extend(found.map(|found| *found));
            }
        }
    }
    shadowed
}

enum Tried {
    Ran(Option<Box<ShadowObject>>),
    Skipped(ObjectRef, String),
}

async fn one(
    trial: &Trial,
    typed: &Arc<TypeReconciler>,
    program: &Arc<dyn Program>,
    object: &Arc<Value>,
    deadline: Instant,
) -> Tried {
    let Some(mut reference) = ObjectRef::of(object) else {
        return Tried::Skipped(ObjectRef::default(), "it has no name".to_owned());
    };
    reference.gvk = trial.watch.gvk.clone();
    if Instant::now() > deadline {
        return Tried::Skipped(reference, format!("the trial had taken {} s", LONGEST.as_secs()));
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
    let owner = Owner {
        gvk: reference.gvk.clone(),
        namespace: reference.namespace.clone(),
        name: reference.name.clone(),
        uid: meta::uid(&object).unwrap_or_default().to_owned(),
        marks: true,
    };
    let mut pass = Pass {
        manager: manager_of(&reference.gvk.kind),
        watch: Arc::clone(&trial.watch),
        typed: Arc::clone(typed),
        api: trial.api.clone(),
        hub: Arc::clone(&trial.hub),
        settings: Arc::clone(&trial.settings),
        cancel: CancellationToken::new(),
        renders: Arc::default(),
        kinds: trial.kinds.clone(),
        owner,
        memory: reconcile::Memory::default(),
        own: Memory::default(),
        own_only: false,
        status_before: object.get("status").cloned().unwrap_or(Value::Null),
        clock: Clock::new(Instant::now()),
        done: Done::default(),
        parent: Parent { reference: reference.clone(), resource, object },
    };
    pass.trial(program).await.unwrap_or_else(|why| Tried::Skipped(reference, why))
}

impl Pass {
    /// The words for what the pass would do where nothing may be written.
    pub(super) async fn foresee(&mut self, program: &Arc<dyn Program>) -> Result<String, String> {
        match self.trial(program).await? {
            Tried::Skipped(_, why) => Err(why),
            Tried::Ran(None) => Ok(foresee::words(&[])),
            Tried::Ran(Some(found)) => match found.problem {
                Some(problem) => Err(problem.message),
                None => Ok(foresee::words(&found.children)),
            },
        }
    }

    async fn trial(&mut self, program: &Arc<dyn Program>) -> Result<Tried, String> {
        let releases = self.observe_releases().await.map_err(|error| format!("{error:#}"))?;
        let children = self.children(Source::Cache).await.map_err(|error| format!("{error:#}"))?;
        let leaving = meta::deletion_timestamp(&self.parent.object).is_some();
        let observed = self.observed(children, releases, leaving);
        let desired = match self.try_out(program, observed.clone()).await? {
            Ok(desired) => desired,
            Err(found) => return Ok(Tried::Ran(Some(Box::new(self.failed(&found))))),
        };
        desired.children.iter().for_each(|child| self.hide(child));
        let plan = match self.plan(&observed, &desired).await {
            Ok(plan) => plan,
            Err(fault) => {
                let text = format!("{:#}", fault.error);
                return Ok(Tried::Ran(Some(Box::new(self.failed(&Diagnostic::error(text, None))))));
            }
        };
        let mut found = ShadowObject {
            object: self.parent.reference.clone(),
            children: self.preview(&plan),
            status: Vec::new(),
            problem: None,
        };
        found.children.extend(release_changes(&observed.releases, &desired));
        let now = observed.now.clone();
        let generation = meta::generation(&self.parent.object);
        if let Some(status) = merged(&self.status_before, &desired, generation, &now) {
            found.status = mask::changes(
                &self.parent.reference.gvk.kind,
                status_changes(&self.status_before, Some(&status)),
            );
        }
        let secrets = self.secrets();
        mask::values_of(&mut found.status, &secrets);
        found.children.iter_mut().for_each(|child| mask::values_of(&mut child.changes, &secrets));
        let same = found.children.is_empty() && found.status.is_empty();
        Ok(Tried::Ran((!same).then(|| Box::new(found))))
    }

    /// Calls the program. The outer error says why nothing is known.
    async fn try_out(
        &mut self,
        program: &Arc<dyn Program>,
        observed: Observed,
    ) -> Result<Result<Desired, Box<Diagnostic>>, String> {
        let namespace = self.owner.namespace.clone();
        let outside = Arc::new(Outside::new(&self.api, &self.hub, &self.typed, namespace, true));
        let (program, host, limits) = (Arc::clone(program), Arc::clone(&outside), self.typed.limits);
        let work = tokio::task::spawn_blocking(move || program.reconcile(&observed, &*host, &limits));
        let answer = tokio::time::timeout(limits.time + GRACE, work).await;
        let heard = outside.end();
        heard.objects.iter().for_each(|object| self.hide(object));
        if let Some(why) = heard.refused {
            return Err(why);
        }
        let error = |text: &str| Ok(Err(Box::new(Diagnostic::error(text, None))));
        match answer {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(_)) => {
                error("the reconciler's engine panicked; this is an error in opdev, please report it")
            }
            Err(_) => error("it did not return in time"),
        }
    }

    fn failed(&self, found: &Diagnostic) -> ShadowObject {
        let secrets = self.secrets();
        let mut problem = broken::program(&self.typed.files, found);
        problem.kind = Some(self.parent.reference.gvk.clone());
        problem.message = mask::text(&problem.message, &secrets);
        problem.excerpt = problem.excerpt.map(|text| mask::text(&text, &secrets));
        ShadowObject {
            object: self.parent.reference.clone(),
            children: Vec::new(),
            status: Vec::new(),
            problem: Some(problem),
        }
    }

    /// The writes of a plan as what they would change.
    fn preview(&self, plan: &Plan) -> Vec<ObjectChange> {
        let writes = plan.write.iter().filter_map(|write| {
            let reference = write.wanted.reference();
            let Some(live) = &write.live else { return Some(change(reference, Action::Created)) };
            let mut after = (**live).clone();
            overlay(&mut after, &write.wanted.object);
            let changed = changes(live, &after);
            let kind = reference.gvk.kind.clone();
            let mut change = change(reference, Action::Updated);
            change.changes = mask::changes(&kind, changed);
            (!change.changes.is_empty()).then_some(change)
        });
        let removals = plan.remove.iter().map(|(wanted, _)| change(wanted.reference(), Action::Deleted));
        writes.chain(removals).collect()
    }
}

fn change(object: ObjectRef, action: Action) -> ObjectChange {
    ObjectChange { object, action, changes: Vec::new(), taken_from: Vec::new() }
}

/// Releases that would come, and those that would be uninstalled.
fn release_changes(there: &[ReleaseState], desired: &Desired) -> Vec<ObjectChange> {
    let reference = |name: &str, namespace: Option<&str>| ObjectRef {
        gvk: Gvk::new("helm.sh", "v3", "Release"),
        namespace: namespace.map(str::to_owned),
        name: name.to_owned(),
        uid: None,
    };
    let listed = |state: &ReleaseState| {
        desired.releases.iter().any(|release| {
            release.name == state.name
                && release.namespace.as_ref().is_none_or(|namespace| *namespace == state.namespace)
        })
    };
    let mut found = Vec::new();
    for release in &desired.releases {
        match there.iter().find(|state| state.name == release.name) {
            None => {
                let object = reference(&release.name, release.namespace.as_deref());
                found.push(change(object, Action::Created));
            }
            Some(state) => {
                let old = serde_json::json!({"values": state.values});
                let changes = opdev_object::diff::diff(&old, &serde_json::json!({"values": release.values}));
                if !changes.is_empty() {
                    let mut one = change(reference(&state.name, Some(&state.namespace)), Action::Updated);
                    one.changes = mask::changes("Release", changes);
                    found.push(one);
                }
            }
        }
    }
    if desired.waiting.is_none() {
        let gone = there.iter().filter(|state| !listed(state));
        found.extend(
            gone.map(|state| change(reference(&state.name, Some(&state.namespace)), Action::Deleted)),
        );
    }
    found
}
