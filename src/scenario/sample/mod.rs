//! One file of samples as a scenario: applied, settled, a second reconcile that writes nothing, disturbed,
//! deleted, nothing left behind.

mod disturb;

use crate::found::{self, Gate};
use crate::inventory::{before, inventory, may_stay, stays};
use crate::manifest::manifests;
use crate::report::{Case, Outcome, Suite};
use crate::settled::BEHIND;
use crate::shared_cluster::inside;
use crate::world::{Setup, World, all_waits, held, waits};
use anyhow::{Context as _, Result, anyhow};
use futures::future::join_all;
use kube::Client;
use kube::api::{Api, DynamicObject};
use kube::core::ApiResource;
use opdev_client::{ApiError, resource_of};
use opdev_event::{Action, CANNOT_BE_ASKED, KindHealth, ObjectTask, OperatorTask, Propagation, words};
use opdev_object::meta::{ObjectKey, ObjectRef};
use opdev_os::small_file::{small_text, unreadable};
use opdev_state::{State, tree};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

/// How often a reconcile may fail over the same object before the file that is to blame counts as broken.
const ATTEMPTS: u32 = 3;
/// How long findings may look for what has not come, each time.
const DECIDED: Duration = Duration::from_secs(30);

/// A file of samples.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SampleFile {
    /// Path relative to the project's root.
    pub path: String,
    /// Its objects that the operator reconciles, in the order of the file.
    pub objects: Vec<ObjectRef>,
    /// Its other objects; nobody deletes them.
    pub others: Vec<ObjectRef>,
    /// Samples to apply before it.
    pub first: Vec<String>,
}

impl SampleFile {
    /// Reads a file. `reconciled` says which of its objects the operator reconciles.
    ///
    /// # Errors
    /// Where it cannot be read, or is no YAML with objects.
    pub fn read(root: &Path, path: &str, reconciled: impl Fn(&ObjectRef) -> bool) -> Result<SampleFile> {
        let file = root.join(path);
        let text = small_text(&file).with_context(|| unreadable(path))?;
        let all = manifests(&text, path)?;
        let all = all.iter().filter_map(|manifest| ObjectRef::of(&manifest.object));
        let (objects, others) = all.partition(reconciled);
        Ok(SampleFile { path: path.to_owned(), objects, others, first: before(path, &text) })
    }
}

/// Runs the scenario of a file of samples. `limit` bounds each of its steps.
pub async fn run(setup: &Setup, sample: &SampleFile, limit: Duration) -> (Suite, Option<World>) {
    let began = Instant::now();
    let mut suite = Suite { name: sample.path.clone(), cases: Vec::new(), took: Duration::ZERO, error: None };
    let mut kept = None;
    match World::start(setup).await {
        Ok(world) => {
            let objects = sample.objects.clone();
            let judges = setup.findings != Gate::None;
            let disturbs = setup.disturbs;
            let mut run = SampleRun { world, sample, objects, limit, judges, disturbs, cases: Vec::new() };
            match run.inside(&setup.project.root).await {
                Ok(()) => tokio::select! {
                    () = run.steps() => {}
                    () = setup.broken_off() => suite.error = Some("broken off".to_owned()),
                },
                Err(error) => suite.error = Some(format!("{error:#}")),
            }
            run.decided().await;
            let SampleRun { world, cases, .. } = run;
            suite.cases = cases;
            suite.cases.extend(found::case(&world.findings(), setup.findings));
            match world.stop_unless_kept(setup, !suite.passed()).await {
                Ok(world) => kept = world,
                Err(error) => {
                    let before = suite.error.map_or_else(String::new, |why| format!("{why}; "));
                    suite.error = Some(format!("{before}{error:#}"));
                }
            }
        }
        Err(error) => suite.error = Some(format!("{error:#}")),
    }
    suite.took = began.elapsed();
    (suite, kept)
}

struct SampleRun<'a> {
    world: World,
    sample: &'a SampleFile,
    /// Its reconciled objects, with their namespaces.
    objects: Vec<ObjectRef>,
    limit: Duration,
    /// True if findings can fail it.
    judges: bool,
    /// True if it is disturbed once it has settled.
    disturbs: bool,
    cases: Vec<Case>,
}

/// Why a step failed.
struct Wrong {
    pub message: String,
    details: String,
}

impl From<anyhow::Error> for Wrong {
    fn from(error: anyhow::Error) -> Self {
        Wrong { message: words::one_line(&format!("{error:#}")), details: String::new() }
    }
}

impl SampleRun<'_> {
    /// Refuses what would not be in the namespace that the scenario has on a cluster, before anything is
    /// written.
    async fn inside(&self, root: &Path) -> Result<()> {
        let Some(own) = self.world.own_namespace() else { return Ok(()) };
        let mut objects: Vec<(&str, ObjectRef)> = Vec::new();
        let path = self.sample.path.as_str();
        objects.extend(self.sample.objects.iter().chain(&self.sample.others).map(|one| (path, one.clone())));
        for path in &self.sample.first {
            let file = SampleFile::read(root, path, |_| true)?;
            objects.extend(file.objects.into_iter().map(|object| (path.as_str(), object)));
        }
        for (path, object) in objects {
            // An object whose kind is not served cannot be applied either.
            let Ok((_, namespaced)) = resource_of(&self.world.client, &object.gvk).await else { continue };
            inside(own, &object, namespaced).with_context(|| path.to_owned())?;
        }
        Ok(())
    }

    async fn steps(&mut self) {
        let limit = self.limit;
        if !self.sample.first.is_empty() {
            let began = Instant::now();
            let ready = self.samples_before().await;
            if !self.note("apply the samples before it", began, ready) {
                return;
            }
        }
        let began = Instant::now();
        let before = inventory(&self.world.client, self.world.own_namespace()).await;
        let path = self.sample.path.clone();
        let applied = self.world.ask(ObjectTask::Apply { path }, limit).await.and(before);
        let applied = match applied {
            Ok(before) => self.name_namespaces().await.map(|()| before),
            Err(error) => Err(error),
        };
        let (applied, before) = match applied {
            Ok(before) => (Ok(()), before),
            Err(error) => (Err(Wrong::from(error)), BTreeMap::new()),
        };
        if !self.note("apply", began, applied) {
            return;
        }
        let keys: Vec<ObjectKey> = self.objects.iter().map(ObjectRef::key).collect();
        let began = Instant::now();
        let settled = self.rest(|state| waits(state, &keys)).await;
        if !self.note("settled", began, settled) {
            return;
        }
        // The objects it has made are known now; those it makes later belong to no settled state.
        let mut made: BTreeMap<String, ObjectRef> = keys.iter().flat_map(|key| self.made(key)).collect();
        if !self.second_reconcile().await {
            return;
        }
        self.decided().await;
        if !self.disturbed().await {
            return;
        }
        made.extend(keys.iter().flat_map(|key| self.made(key)));
        let began = Instant::now();
        let deleted = self.deleted().await;
        if !self.note("delete", began, deleted) {
            return;
        }
        let began = Instant::now();
        let left = self.nothing_left(made, &before).await;
        self.note("nothing is left", began, left);
    }

    /// Lets findings come to their end: what has not come is told only after some seconds.
    async fn decided(&self) {
        if self.judges {
            self.world.decided(DECIDED).await;
        }
    }

    /// Objects that name no namespace are in the one that the operator works in.
    async fn name_namespaces(&mut self) -> Result<()> {
        for object in self.objects.iter_mut().filter(|object| object.namespace.is_none()) {
            object.namespace = self.world.namespace_of(&object.gvk).await?;
        }
        Ok(())
    }

    /// Reconciles each object once more; whether to go on.
    async fn second_reconcile(&mut self) -> bool {
        const NAME: &str = "second reconcile writes nothing";
        let began = Instant::now();
        let mut unasked = None;
        for object in self.objects.clone() {
            let is_programs = self.is_programs(&object);
            match self.world.ask(OperatorTask::Check { object }, self.limit).await {
                // An operator in another language, or one that was built without a trace.
                Err(why) if is_programs && format!("{why:#}").contains(CANNOT_BE_ASKED) => {
                    unasked = Some(format!("{CANNOT_BE_ASKED}: that takes a Go operator with a full trace"));
                }
                Err(error) => return self.note(NAME, began, Err(error.into())),
                Ok(_) => {}
            }
        }
        if let Some(why) = unasked {
            let outcome = Outcome::Skipped(why);
            self.cases.push(Case { name: NAME.to_owned(), took: Duration::ZERO, outcome });
            return true;
        }
        self.note(NAME, began, Ok(()))
    }

    /// Notes how a step ended; whether to go on.
    fn note(&mut self, name: &str, began: Instant, ended: Result<(), Wrong>) -> bool {
        let loops = self.world.loops();
        let ended = match (ended, loops.first()) {
            (Ok(()), Some(found)) => Err(Wrong {
                message: format!("the reconciles of {} go round in a loop", found.object),
                details: found.blame.clone().unwrap_or_default(),
            }),
            (ended, _) => ended,
        };
        let well = ended.is_ok();
        let outcome = match ended {
            Ok(()) => Outcome::Passed,
            Err(Wrong { message, details }) => {
                let details = format!("{details}\n{}", self.world.last_reconciles()).trim().to_owned();
                Outcome::Failed { message, details }
            }
        };
        self.cases.push(Case { name: name.to_owned(), took: began.elapsed(), outcome });
        well
    }

    fn is_programs(&self, object: &ObjectRef) -> bool {
        let gvk = &object.gvk;
        let state = self.world.state();
        let kind = state.kinds().iter().find(|kind| kind.gvk.group_kind() == gvk.group_kind());
        kind.is_some_and(|kind| matches!(kind.health, KindHealth::Process { .. }))
    }

    async fn samples_before(&mut self) -> Result<(), Wrong> {
        for path in &self.sample.first {
            self.world.ask(ObjectTask::Apply { path: path.clone() }, self.limit).await?;
        }
        self.rest(all_waits).await
    }

    /// Waits until nothing waits any more, or a chart has failed for good.
    async fn rest(&self, waits: impl Fn(&State) -> Vec<String>) -> Result<(), Wrong> {
        let settled = |state: &State| {
            if let Some(failure) = fails_for_good(state) {
                return Some(Err(Wrong { message: words::one_line(&failure), details: String::new() }));
            }
            waits(state).is_empty().then_some(Ok(()))
        };
        match self.world.at_rest(self.limit, settled).await {
            Ok(ended) => ended,
            Err(state) => {
                let waits = waits(&state);
                let first = waits.first().map_or(BEHIND, String::as_str);
                let message = format!("not settled after {} s: {first}", self.limit.as_secs());
                Err(Wrong { message, details: waits.join("\n") })
            }
        }
    }

    /// All that was made for the object, with uids.
    fn made(&self, key: &ObjectKey) -> BTreeMap<String, ObjectRef> {
        let state = self.world.state();
        let nodes = tree::owned(&state, key).into_iter().map(|node| node.seen.object_ref.clone());
        let reconciles = self.world.reconciles();
        let written = reconciles.iter().flat_map(|reconcile| &reconcile.objects);
        let is_to_go = |object: &ObjectRef| !stays(&object.gvk.group, &object.gvk.kind);
        let written = written.filter(|change| change.action == Action::Created && is_to_go(&change.object));
        let all = nodes.chain(written.map(|change| change.object.clone()));
        all.filter_map(|object| Some((object.uid.clone()?, object))).collect()
    }

    /// Deletes each object and waits until it has gone, the last one of the file first.
    async fn deleted(&mut self) -> Result<(), Wrong> {
        for object in self.objects.clone().into_iter().rev() {
            let key = object.key();
            let request = ObjectTask::Delete { object, propagation: Propagation::Background, grace: None };
            self.world.ask(request, self.limit).await?;
            let gone = |state: &State| state.objects.get(&key).is_none().then_some(());
            let Err(state) = self.world.until(self.limit, gone).await else { continue };
            let Some(seen) = state.objects.get(&key) else { continue };
            let detail = seen.health.detail.clone().unwrap_or_default();
            let message = format!("{key} is still there after {} s: {detail}", self.limit.as_secs());
            return Err(Wrong { message, details: String::new() });
        }
        Ok(())
    }

    /// Waits until all that was made has gone, but for what is to stay.
    async fn nothing_left(
        &self,
        mut made: BTreeMap<String, ObjectRef>,
        before: &BTreeMap<String, ObjectRef>,
    ) -> Result<(), Wrong> {
        let client = &self.world.client;
        let brought = |object: &ObjectRef| {
            self.sample.others.iter().any(|other| {
                (&other.gvk.group, &other.gvk.kind, &other.name)
                    == (&object.gvk.group, &object.gvk.kind, &object.name)
            })
        };
        let there = inventory(client, self.world.own_namespace()).await?;
        let new = there.into_iter().filter(|(uid, object)| !before.contains_key(uid) && !brought(object));
        made.extend(new);
        // All at once: one that stays takes no time from the others.
        let waiting = made.into_iter().map(|(uid, object)| async move {
            match tokio::time::timeout(self.limit, gone(client, &uid, &object)).await {
                Ok(Ok(())) => None,
                Ok(Err(error)) => Some(format!("{object}: {error:#}")),
                Err(_) => Some(object.to_string()),
            }
        });
        let left: Vec<String> = join_all(waiting).await.into_iter().flatten().collect();
        match left.as_slice() {
            [] => Ok(()),
            [one] => {
                Err(Wrong { message: format!("1 object is left behind: {one}"), details: String::new() })
            }
            [first, ..] => {
                let message = format!("{} objects are left behind, {first} among them", left.len());
                Err(Wrong { message, details: left.join("\n") })
            }
        }
    }
}

/// Why a custom resource will never be reconciled: a file is to blame, and it has said so often enough.
fn fails_for_good(state: &State) -> Option<String> {
    if let Some(why) = held(state) {
        return Some(why);
    }
    state.objects.custom().find_map(|seen| {
        let failure = state.history.last(&seen.key)?.failure.as_ref()?;
        let place = failure.diagnostic.as_ref().filter(|_| failure.attempt >= ATTEMPTS)?;
        Some(format!("{} cannot be reconciled: {}", seen.key, words::diagnostic(place)))
    })
}

/// Ends once an object has gone, or where it may stay.
async fn gone(client: &Client, uid: &str, object: &ObjectRef) -> Result<()> {
    let resource = match resource_of(client, &object.gvk).await {
        Ok((resource, _)) => resource,
        // A kind that is not served any more has no objects.
        Err(ApiError::NotServed(_)) => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    let api = api(client, &resource, object.namespace.as_deref());
    let Some(there) = api.get_opt(&object.name).await? else { return Ok(()) };
    if there.metadata.uid.as_deref() != Some(uid) || may_stay(&there) {
        return Ok(());
    }
    let deleted = kube::runtime::conditions::is_deleted(uid);
    let ended = kube::runtime::wait::await_condition(api, &object.name, deleted).await;
    ended.map(drop).map_err(|error| anyhow!("{error}"))
}

fn api(client: &Client, resource: &ApiResource, namespace: Option<&str>) -> Api<DynamicObject> {
    match namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, resource),
        None => Api::all_with(client.clone(), resource),
    }
}
