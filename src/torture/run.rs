//! One run of a scenario: a plane, the operator, the steps, at most one disturbance, and what is left at the
//! end.

use super::campaign::bad_pods;
use super::judge::Outcome;
use super::operator::{Operator, Subject, first_call, objects, without_secrets};
use super::plan::{Disturbance, Possible, Write};
use super::record::{LONGEST_REASON, Record, is_of};
use super::restless::RESTLESS;
use anyhow::{Context as _, Result, bail};
use http::{Method, Request};
use kube::Client;
use opdev_controlplane::{Config, ControlPlane, ExecAnswer, Listen, Listening, Passage};
use opdev_normal::Snapshot;
use opdev_object::meta::{self, ObjectRef};
use opdev_pace::windows::Windows;
use opdev_steps::scenario::{Scenario, reference};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// The namespace of the untouched instance.
pub(super) const BYSTANDER: &str = "bystander";
/// How often all is reconciled once more until nothing changes.
const ROUNDS: usize = 4;
/// The longest time for which a client waits before it watches again.
const WATCH_AGAIN: Duration = Duration::from_secs(15);
/// For so long a program that was started is at the beginning, and for so long it has to be quiet then.
const BEGINNING: (Duration, Duration) = (Duration::from_secs(3), Duration::from_secs(1));
/// The times of a program that tells of its reconciles: it is not quiet while one is under way.
const BEGINNING_TOLD: (Duration, Duration) = (Duration::from_millis(1000), Duration::from_millis(300));
/// The longest view of the past. An operator that believes it may make a child again and again, and the
/// garbage collector deletes it each time, as its owner is gone: that is no fault of the operator.
const LONGEST_PAST: Duration = Duration::from_secs(5);
/// The longest time for a watch to end that is told to.
const WATCH_END: Duration = Duration::from_secs(3);

/// What a run is made of.
pub(super) struct RunInput<'a> {
    pub(super) subject: &'a Subject,
    /// CRDs, and what else a plane has before the operator comes.
    pub(super) definitions: &'a [Arc<Value>],
    pub(super) scenario: &'a Scenario,
    pub(super) disturbance: Option<&'a Disturbance>,
    /// How long a program has to be quiet to be settled.
    pub(super) windows: Windows,
    /// How long each step may take.
    pub(super) limit: Duration,
    /// Answers of an `exec` in a simulated pod.
    pub(super) exec: &'a [ExecAnswer],
    pub(super) shutdown: CancellationToken,
}

/// The outcome.
#[derive(Clone, Debug, Default)]
pub(super) struct Ran {
    pub(super) outcome: Outcome,
    pub(super) writes: Vec<Write>,
    pub(super) possible: Possible,
    /// True if the disturbance took place.
    pub(super) met: bool,
    /// The place in the operator's code of the call at which it took place.
    pub(super) met_at: Option<String>,
    pub(super) took: Duration,
    /// By the number of the step: the longest time in which nothing happened, before something did.
    pub(super) gaps: Vec<Duration>,
    /// Objects that the operator made in the first step, as they were at its end.
    pub(super) made: Vec<Arc<Value>>,
}

impl Ran {
    /// The longest of its gaps.
    pub(super) fn gap(&self) -> Duration {
        self.gaps.iter().copied().max().unwrap_or_default()
    }
}

/// Runs a scenario once.
///
/// # Errors
/// Where the plane or the operator do not start, or a step cannot be done at all.
pub(super) async fn run(input: &RunInput<'_>) -> Result<Ran> {
    let began = Instant::now();
    let (mut stage, before) = tokio::select! {
        set = set_with_bystander(input) => set?,
        () = input.shutdown.cancelled() => bail!("broken off"),
    };
    let bystander = bystander_of(input);
    let mut revisions = Vec::new();
    let (mut stuck, mut ends, mut first) = (Vec::new(), Vec::new(), Vec::new());
    for at in 0..input.scenario.steps.len() {
        let ended = tokio::select! {
            ended = stage.whole_step(at, &revisions) => ended?,
            () = input.shutdown.cancelled() => bail!("broken off"),
        };
        ends.push(stage.snapshot(|object| !is_of(object, bystander)));
        if at == 0 {
            first = objects(&stage.plane);
        }
        revisions.push(stage.plane.api().registry().store.revision());
        if let Some(why) = ended {
            stuck.push(why);
            break;
        }
    }
    let after = stage.snapshot(|object| bystander.is_some() && is_of(object, bystander));
    let mut troubles = stage.troubles.clone();
    if let Some(operator) = &mut stage.operator {
        let said = operator.failing().into_iter().chain(operator.ended().await).collect();
        troubles.extend(without_secrets(&stage.plane, said));
    }
    let (noted, opened) = (stage.record.noted(), stage.record.ruled.opened());
    let mut refused = if input.scenario.is_check() { stage.warnings() } else { BTreeMap::new() };
    refused.extend(noted.refused);
    stage.leave().await;
    if noted.lost {
        bail!("more happened at once than the control plane remembers, so that it cannot be judged");
    }
    Ok(Ran {
        outcome: Outcome {
            ends,
            history: noted.history,
            deleted: deleted(&noted.writes),
            stuck,
            troubles: troubles.into_iter().collect(),
            bystander: (before, after),
            opened,
            refused,
        },
        made: made(first, &noted.writes, input),
        writes: noted.writes,
        possible: noted.possible,
        met: noted.met,
        met_at: noted.met_at,
        took: began.elapsed(),
        gaps: noted.gaps,
    })
}

/// A stage with the instance that nobody touches, and how that is.
async fn set_with_bystander<'a>(input: &'a RunInput<'a>) -> Result<(Stage<'a>, Snapshot)> {
    let mut stage = Stage::set(input).await?;
    let bystander = bystander_of(input);
    stage.record.concerns(bystander, &stage.own_resource());
    let Some(namespace) = bystander else { return Ok((stage, Snapshot::new())) };
    let sample = input.scenario.sample.moved(namespace, None);
    stage.namespace(namespace).await?;
    stage.apply(&[sample.others, sample.objects].concat()).await?;
    stage.rest().await?;
    let before = stage.snapshot(|object| is_of(object, bystander));
    Ok((stage, before))
}

/// How often the operator itself deleted each object.
fn deleted(writes: &[Write]) -> BTreeMap<String, u32> {
    let mut found = BTreeMap::new();
    for write in writes.iter().filter(|write| write.verb == "delete" && write.changes) {
        *found.entry(write.object.clone()).or_default() += 1;
    }
    found
}

/// The objects that the operator made in the first step, of all that there were at its end.
fn made(all: Vec<Arc<Value>>, writes: &[Write], input: &RunInput<'_>) -> Vec<Arc<Value>> {
    let given: Vec<Option<ObjectRef>> = input.scenario.sample.all().iter().map(reference).collect();
    let is_made = |object: &Arc<Value>| {
        let (id, of) = (opdev_normal::id(object), reference(object));
        let wrote = |write: &&Write| write.step == 0 && write.changes && write.object == id;
        let first = writes.iter().find(wrote);
        first.is_some_and(|write| matches!(write.verb.as_str(), "create" | "patch"))
            && opdev_normal::counts(object)
            && !given.iter().any(|one| one.as_ref().map(ObjectRef::key) == of.as_ref().map(ObjectRef::key))
    };
    all.into_iter().filter(is_made).collect()
}

fn bystander_of(input: &RunInput<'_>) -> Option<&'static str> {
    input.scenario.sample.is_namespaced().then_some(BYSTANDER)
}

/// A plane with the operator on it.
pub(super) struct Stage<'a> {
    input: &'a RunInput<'a>,
    pub(super) plane: ControlPlane,
    listening: Option<Listening>,
    client: Client,
    pub(super) record: Arc<Record>,
    pub(super) operator: Option<Operator>,
    killed: watch::Receiver<u32>,
    pub(super) troubles: Vec<String>,
    /// The last start of the operator.
    started: Instant,
    /// How often it was killed where the plan says so: a write may come while a step is still being done.
    kills: u32,
    /// The step that is done; none before the first one.
    at: Option<usize>,
}

impl<'a> Stage<'a> {
    /// Starts the plane, installs what the operator needs, and starts the operator.
    pub(super) async fn set(input: &'a RunInput<'a>) -> Result<Stage<'a>> {
        let mut config = Config::default();
        config.exec = input.exec.to_vec();
        if let Some(Disturbance::BadPods(bad)) = input.disturbance {
            config.stages = Some(bad_pods::stages(bad));
        }
        let plane = ControlPlane::start_with(config).await.context("the control plane did not start")?;
        let listening = match input.subject.is_program() {
            true => Some(plane.listen(Listen::default()).await.context("the control plane does not listen")?),
            false => None,
        };
        plane.settled().await;
        let client = plane.client();
        let record = Record::new(Arc::clone(plane.api().registry()), input.disturbance.cloned())?;
        let killed = record.killed();
        let mut stage = Stage {
            input,
            plane,
            listening,
            client,
            record,
            operator: None,
            killed,
            troubles: Vec::new(),
            started: Instant::now(),
            kills: 0,
            at: None,
        };
        stage.grows().await?;
        let definitions: Vec<Value> = input.definitions.iter().map(|one| (**one).clone()).collect();
        stage.apply(&definitions).await?;
        stage.plane.settled().await;
        stage.start().await?;
        stage.rest().await?;
        Ok(stage)
    }

    /// Claims may grow, as on most clusters.
    async fn grows(&self) -> Result<()> {
        let classes = self.send(Method::GET, "/apis/storage.k8s.io/v1/storageclasses", "", None).await?;
        for class in classes["items"].as_array().into_iter().flatten() {
            let name = meta::name(class).unwrap_or_default();
            let path = format!("/apis/storage.k8s.io/v1/storageclasses/{name}");
            let patch = json!({"allowVolumeExpansion": true});
            self.send(Method::PATCH, &path, "application/merge-patch+json", Some(&patch)).await?;
        }
        Ok(())
    }

    pub(super) async fn start(&mut self) -> Result<()> {
        let mut operator = self.input.subject.start(&self.plane, self.listening.as_ref(), &self.record)?;
        first_call(&mut operator, &self.record).await?;
        self.operator = Some(operator);
        self.started = Instant::now();
        Ok(())
    }

    pub(super) async fn kill(&mut self) {
        self.record.ended();
        if let Some(operator) = self.operator.take() {
            operator.kill().await;
        }
        self.free_leads().await;
    }

    /// Ends all of it.
    pub(super) async fn leave(mut self) {
        if let Some(operator) = self.operator.take() {
            self.record.ended();
            operator.kill().await;
        }
        self.plane.stop().await;
    }

    /// A step. After the last one the operator gets the time that the run lingers.
    async fn whole_step(&mut self, at: usize, revisions: &[u64]) -> Result<Option<String>> {
        let ended = self.step(at, revisions).await?;
        let linger = self.input.windows.linger();
        let is_last = at + 1 == self.input.scenario.steps.len();
        if ended.is_none() && is_last && !linger.is_zero() {
            tokio::time::sleep(linger).await;
            self.rest().await?;
        }
        Ok(ended)
    }

    /// Does a step, and what the plan says about it; why it did not come to its end, where it did not.
    async fn step(&mut self, at: usize, revisions: &[u64]) -> Result<Option<String>> {
        let step = &self.input.scenario.steps[at];
        self.at = Some(at);
        self.record.begin(at);
        let blind = match self.input.disturbance {
            Some(Disturbance::Blind { resource, first }) if *first == at || *first + 1 == at => {
                Some((resource, *first))
            }
            _ => None,
        };
        if let Some((resource, first)) = blind
            && first == at
        {
            self.record.gate(resource, Passage::Held(0));
            self.record.meet();
        }
        let down = self.input.disturbance == Some(&Disturbance::Down(at));
        if down {
            self.kill().await;
            self.record.meet();
        }
        self.act(step).await.with_context(|| step.words())?;
        if down {
            self.plane.settled().await;
            self.start().await?;
        }
        self.rest().await?;
        if let Some((resource, first)) = blind
            && (first + 1 == at || self.input.scenario.steps.len() == at + 1)
        {
            self.see_again(resource).await;
            self.rest().await?;
        }
        match self.input.disturbance {
            Some(Disturbance::Restart(after)) if *after == at => {
                self.record.meet();
                self.kill().await;
                self.start().await?;
                self.rest().await?;
            }
            Some(Disturbance::Past(past)) if past.after == at => {
                let seen = revisions.get(past.seen).copied();
                let seen = if past.going { self.record.going(&past.resource, past.seen) } else { seen };
                if let Some(revision) = seen {
                    self.kill().await;
                    self.record.show_past(&past.resource, revision);
                    self.start().await?;
                    self.rest().await?;
                    self.record.show_now();
                    self.see_again(&past.resource).await;
                    self.rest().await?;
                }
            }
            _ => {}
        }
        if matches!(self.input.disturbance, Some(Disturbance::BadPods(_)))
            && objects(&self.plane).iter().any(|object| bad_pods::is_bad(object))
        {
            self.record.meet();
        }
        self.record.at_rest();
        Ok(self.left(step).map(|left| format!("{}: {left} stays", step.words())))
    }

    /// Ends held watches, so that the operator lists anew.
    async fn see_again(&self, resource: &str) {
        let mut news = self.record.news();
        let open = self.record.watches(resource);
        self.record.gate(resource, Passage::Expired);
        let ended = async {
            while self.record.watches(resource) > 0 {
                if news.changed().await.is_err() {
                    return;
                }
            }
        };
        let _ = tokio::time::timeout(WATCH_END, ended).await;
        self.record.gate(resource, Passage::Open);
        // Clients wait before they list again; until then nobody would see anything.
        let begun = async {
            while self.record.watches(resource) < open {
                if news.changed().await.is_err() {
                    return;
                }
            }
        };
        let _ = tokio::time::timeout(WATCH_AGAIN, begun).await;
        if let Some(operator) = &self.operator {
            operator.forget_failures();
        }
    }

    /// Waits until all is settled. Where the operator is to be killed on the way, it is, and starts anew.
    pub(super) async fn rest(&mut self) -> Result<()> {
        let past = self.record.shows_past();
        let limit = if past { self.input.limit.min(LONGEST_PAST) } else { self.input.limit };
        let deadline = tokio::time::Instant::now() + limit;
        loop {
            let kills = *self.killed.borrow();
            if kills != self.kills {
                self.kills = kills;
                self.kill().await;
                self.start().await?;
                continue;
            }
            if self.record.takes_delete() {
                self.delete_early(&self.input.scenario.steps).await?;
                self.record.let_go();
            }
            let Some(operator) = &mut self.operator else {
                self.plane.settled().await;
                return Ok(());
            };
            if let Some(why) = operator.ended().await {
                let why: String = without_secrets(&self.plane, [why].into()).into_iter().collect();
                // As the kubelet does; a program that ends again and again is told of once.
                if self.troubles.contains(&why) || self.troubles.len() > 3 {
                    return Ok(());
                }
                self.troubles.push(why);
                self.kill().await;
                self.start().await?;
                continue;
            }
            let (plane, record) = (&self.plane, &self.record);
            let beginning = if self.input.subject.tells() { BEGINNING_TOLD } else { BEGINNING };
            let met = record.has_met();
            let window = self.input.windows.at(self.at, met);
            let window = if self.started.elapsed() < beginning.0 { window.max(beginning.1) } else { window };
            let held = record.holds();
            let blind = record.is_blind();
            let resting = async {
                if held || blind {
                    operator.at_rest_but_for_one(plane, record, window).await;
                } else {
                    operator.at_rest(plane, record, window).await;
                }
            };
            let (mut news, mut again) = (record.news(), self.killed.clone());
            let other = async {
                // An answer may begin to be held at any time, or the disturbance take place: then the rest is
                // another one.
                while record.holds() == held && record.has_met() == met {
                    if news.changed().await.is_err() {
                        std::future::pending::<()>().await;
                    }
                }
            };
            tokio::select! {
                biased;
                _ = again.wait_for(|now| *now != kills) => {}
                () = other => {}
                () = resting => {
                    if *self.killed.borrow() != kills {
                        continue;
                    }
                    if record.let_go() || self.settles().await? {
                        continue;
                    }
                    return Ok(());
                }
                () = tokio::time::sleep_until(deadline) => {
                    self.record.let_go();
                    if past {
                        return Ok(());
                    }
                    let why = self.operator.as_ref().map(|operator| operator.restless(&self.record));
                    let limit = self.input.limit.as_secs();
                    self.troubles.push(format!(
                        "the operator {RESTLESS} within {limit} s: {}",
                        why.unwrap_or_default()
                    ));
                    return Ok(());
                }
            }
        }
    }

    /// Lets the operator reconcile all once more until that changes nothing; whether the rest has to be
    /// waited for again.
    async fn settles(&mut self) -> Result<bool> {
        if self.input.subject.is_program() || self.record.is_blind() {
            return Ok(false);
        }
        for _ in 0..ROUNDS {
            let revision = self.plane.api().registry().store.revision();
            let killed = self.kills;
            let Some(operator) = &mut self.operator else { return Ok(false) };
            operator.reconcile_all(reconciled(&self.plane, self.input)).await;
            let resting = operator.at_rest(&self.plane, &self.record, self.input.windows.longest());
            let mut again = self.killed.clone();
            tokio::select! {
                () = resting => {}
                _ = again.wait_for(|now| *now != killed) => return Ok(true),
                () = tokio::time::sleep(self.input.limit) => return Ok(false),
            }
            if self.record.holds() {
                return Ok(true);
            }
            if self.plane.api().registry().store.revision() == revision {
                return Ok(false);
            }
        }
        Ok(false)
    }

    /// Makes a namespace that is not there.
    pub(super) async fn namespace(&self, name: &str) -> Result<()> {
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        let path = format!("/api/v1/namespaces/{name}?fieldManager=opdev&force=true");
        self.send(Method::PATCH, &path, "application/apply-patch+yaml", Some(&namespace)).await?;
        self.plane.settled().await;
        Ok(())
    }

    /// Applies objects, each in its namespace, which is made where it is missing.
    pub(super) async fn apply(&self, objects: &[Value]) -> Result<()> {
        for object in objects {
            if let Some(namespace) = meta::namespace(object) {
                let table = self.plane.api().registry().store.list("namespaces", None);
                if !table.items.iter().any(|one| &*one.key().name == namespace) {
                    self.namespace(namespace).await?;
                }
            }
            let path = format!("{}?fieldManager=opdev&force=true", self.path(object)?);
            self.send(Method::PATCH, &path, "application/apply-patch+yaml", Some(object))
                .await
                .with_context(|| format!("{} is not applied", opdev_normal::id(object)))?;
        }
        Ok(())
    }

    /// The plural of the sample's first object.
    fn own_resource(&self) -> String {
        let first = self.input.scenario.sample.objects.first().and_then(reference);
        let served = self.plane.api().registry().catalog.served();
        let found = first.and_then(|first| {
            let gvk = first.gvk;
            served.by_kind(&gvk.group, Some(&gvk.version), &gvk.kind).map(|resource| resource.plural.clone())
        });
        found.unwrap_or_default()
    }

    pub(super) fn snapshot(&self, takes: impl Fn(&Value) -> bool) -> Snapshot {
        let all = objects(&self.plane);
        opdev_normal::snapshot(all.iter().map(|object| &**object).filter(|object| takes(object)))
    }

    /// By namespace: why a controller of the cluster could not make an object.
    fn warnings(&self) -> BTreeMap<String, String> {
        let events = self.plane.api().registry().store.list("events", None).items;
        let all =
            events.iter().map(|stored| stored.glance()).filter(|event| event["reason"] == "FailedCreate");
        let told = |event: Arc<Value>| {
            let namespace = meta::namespace(&event)?.to_owned();
            Some((namespace, event["message"].as_str()?.chars().take(LONGEST_REASON).collect()))
        };
        all.filter_map(told).collect()
    }

    pub(super) async fn send(
        &self,
        method: Method,
        path: &str,
        kind: &str,
        body: Option<&Value>,
    ) -> Result<Value> {
        let body = body.map(Value::to_string).unwrap_or_default();
        let kind = if kind.is_empty() { "application/json" } else { kind };
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", kind)
            .body(body.into_bytes())?;
        Ok(self.client.request::<Value>(request).await?)
    }
}

/// The custom resources of the operator.
fn reconciled(plane: &ControlPlane, input: &RunInput<'_>) -> Vec<ObjectRef> {
    let Subject::Own { sources, .. } = input.subject else { return Vec::new() };
    let of = |object: &Arc<Value>| {
        let found = ObjectRef::of(object)?;
        sources.watch(&found.gvk.group, &found.gvk.kind).map(|_| found)
    };
    objects(plane).iter().filter_map(of).collect()
}
