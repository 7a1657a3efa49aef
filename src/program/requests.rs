//! The user's requests to the operator's own programs: reconciles through its trace, faults and events in
//! what it hears of the API server.

use super::start::{Handle, Handles};
use crate::Ask;
use crate::tracing::Tracing;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use jiff::Timestamp;
use opdev_event::sink::EventSink;
use opdev_event::{
    CANNOT_BE_ASKED, Call, Event, Fault, FaultRule, OperatorTask, Reconcile, RequestFinished, RequestId,
    RequestOutcome, RequestStarted, SourcesTask, Task,
};
use opdev_facts::record::{ReconcileNow, Why};
use opdev_object::meta::{Gvk, ObjectKey, ObjectRef};
use opdev_operator::manager::verdict;
use opdev_sources::Sources;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;

/// The action, in words, or the reason why there was none, with a hint.
type Answer = Result<String, (String, Option<String>)>;

/// How long a reconcile that was asked for may take before nobody waits for it any more.
const PATIENCE: Duration = Duration::from_secs(60);
/// The time within which the other controllers of a program end a reconcile that all of them were asked for.
const TOGETHER: Duration = Duration::from_millis(250);
/// How many conflicts in a row are tried again.
const CONFLICTS: u32 = 3;

impl Handles {
    /// Does what concerns the programs of a task, and says whether that is all there is to it.
    pub fn takes(&self, id: RequestId, task: &Task, sources: &Sources, events: &EventSink) -> bool {
        if let Task::Sources(SourcesTask::Reload) = task {
            for program in &self.0 {
                // A program whose queue is full builds anew anyway.
                let _ = program.ask.try_send(Ask::Restart);
            }
        }
        let Some(work) = self.work_of(task, sources) else { return false };
        tokio::spawn(answer(id, task.words(), work, events.clone()));
        true
    }

    /// Asks the program of an object for a reconcile by one of its controllers, to see whether a change was
    /// missed. Programs that cannot be asked are left alone.
    pub fn look_again(&self, controller: &str, object: &ObjectRef, sources: &Sources) {
        let tracing = self.of_kind(&object.gvk, sources).and_then(|program| program.tracing.as_deref());
        let wish = ReconcileNow {
            controller: controller.to_owned(),
            namespace: object.namespace.clone().unwrap_or_default(),
            name: object.name.clone(),
            why: Some(Why::Check),
        };
        if let Some(tracing) = tracing {
            tracing.reconcile(&wish);
        }
    }

    /// The work of a task that is the programs' alone.
    fn work_of(&self, task: &Task, sources: &Sources) -> Option<BoxFuture<'static, Answer>> {
        match task {
            Task::Operator(task) => self.work_of_programs(task, sources),
            Task::Each { tasks } => {
                let works: Option<Vec<_>> = tasks.iter().map(|task| self.work_of(task, sources)).collect();
                let works = works.filter(|works| !works.is_empty())?;
                Some(async move { all(futures::future::join_all(works).await) }.boxed())
            }
            Task::Object(_)
            | Task::Draft(_)
            | Task::Sources(_)
            | Task::Cluster(_)
            | Task::Project(_)
            | Task::Cancel { .. } => None,
        }
    }

    fn work_of_programs(&self, task: &OperatorTask, sources: &Sources) -> Option<BoxFuture<'static, Answer>> {
        let of =
            |object: &ObjectRef| self.of_kind(&object.gvk, sources).map(|program| program.tracing.clone());
        match task {
            OperatorTask::Reconcile { object } => {
                let (tracing, object) = (of(object)?, object.clone());
                Some(async move { ask(tracing.as_deref(), &object) }.boxed())
            }
            OperatorTask::Check { object } => {
                let (tracing, object) = (of(object)?, object.clone());
                Some(async move { check(tracing.as_deref(), &object).await }.boxed())
            }
            OperatorTask::Step { object } => {
                let tracing = of(object)?;
                Some(async move { step(tracing.as_deref()) }.boxed())
            }
            OperatorTask::Disturb { rules } if !self.0.is_empty() => {
                let of_each = self.0.iter().map(|program| (program.tracing.clone(), program.seed));
                let (programs, rules): (Vec<_>, _) = (of_each.collect(), rules.clone());
                Some(async move { disturb(&programs, &rules) }.boxed())
            }
            OperatorTask::StopPrograms if !self.0.is_empty() => Some(self.tell_all(|| Ask::Stop)),
            OperatorTask::StartPrograms if !self.0.is_empty() => Some(self.tell_all(|| Ask::Start)),
            // `inner_loop/requests` answers these.
            OperatorTask::CatchUp { .. }
            | OperatorTask::Disturb { .. }
            | OperatorTask::StopPrograms
            | OperatorTask::StartPrograms
            | OperatorTask::Pause { .. }
            | OperatorTask::Resume { .. } => None,
        }
    }

    /// Tells all supervisors the same. What becomes of it, the states of the programs say.
    fn tell_all(&self, what: fn() -> Ask) -> BoxFuture<'static, Answer> {
        let asks: Vec<_> = self.0.iter().map(|program| program.ask.clone()).collect();
        async move {
            for ask in asks {
                let gone = || ("opdev does not run this program any more".to_owned(), None);
                ask.send(what()).await.map_err(|_| gone())?;
            }
            Ok(String::new())
        }
        .boxed()
    }

    /// The program that reconciles a kind.
    fn of_kind(&self, gvk: &Gvk, sources: &Sources) -> Option<&Handle> {
        let of_kind = |shown: &&opdev_sources::Shown| shown.gvk.group_kind() == gvk.group_kind();
        let words = sources.shown.iter().find(of_kind)?.program.as_ref()?;
        self.0.iter().find(|program| program.words == *words)
    }
}

fn all(answers: Vec<Answer>) -> Answer {
    let count = answers.len();
    let refused: Vec<(String, Option<String>)> = answers.into_iter().filter_map(Result::err).collect();
    let hint = refused.iter().find_map(|(_, hint)| hint.clone());
    match refused.len() {
        0 => Ok(format!("{count} of {count}")),
        _ => Err((refused.into_iter().map(|(why, _)| why).collect::<Vec<_>>().join("\n"), hint)),
    }
}

/// Disturbs the calls of all programs.
fn disturb(programs: &[(Option<Arc<Tracing>>, u64)], rules: &[FaultRule]) -> Answer {
    let mut disturbed = 0;
    for (tracing, seed) in programs {
        if let Some(faults) = tracing.as_deref().and_then(Tracing::faults) {
            faults.set(rules.to_vec(), *seed);
            disturbed += 1;
        }
    }
    if disturbed == 0 {
        return Err((
            "faults are injected only into calls to the embedded control plane".to_owned(),
            Some("start opdev with --embedded".to_owned()),
        ));
    }
    Ok(match rules.len() {
        0 => "no fault is injected any more".to_owned(),
        1 if rules[0].fault == Fault::Hold(None) => "paused: the program's watches get no events".to_owned(),
        1 => format!("a fault is injected: {}", rules[0]),
        count => format!("{count} faults are injected"),
    })
}

fn step(tracing: Option<&Tracing>) -> Answer {
    match tracing.and_then(Tracing::faults).is_some_and(|faults| faults.step()) {
        true => Ok("one more event of each watch goes through".to_owned()),
        false => Err((
            "nothing is held back from the program".to_owned(),
            Some("the fault `hold` holds what its watches deliver".to_owned()),
        )),
    }
}

/// Asks for one reconcile, which the program itself carries out.
fn ask(tracing: Option<&Tracing>, object: &ObjectRef) -> Answer {
    let wish = ReconcileNow {
        why: None,
        controller: String::new(),
        namespace: object.namespace.clone().unwrap_or_default(),
        name: object.name.clone(),
    };
    match tracing.is_some_and(|tracing| tracing.reconcile(&wish)) {
        true => Ok("the program was asked".to_owned()),
        false => Err((
            CANNOT_BE_ASKED.to_owned(),
            Some("that takes a Go operator with a full trace that runs".to_owned()),
        )),
    }
}

/// Asks for two reconciles; the second one should write nothing. One verdict: no further writes, still
/// writes, or could not be judged.
async fn check(tracing: Option<&Tracing>, object: &ObjectRef) -> Answer {
    let Some(following) = tracing else { return ask(tracing, object) };
    let mut reconciles = following.reconciles();
    let key = object.key();
    let unjudged = |why: String| (format!("{object} could not be judged: {why}"), None);
    let (mut last, mut well, mut conflicts) = (Vec::new(), 0, 0);
    // The first round brings the object to rest, the second one is judged.
    while well < 2 {
        ask(tracing, object)?;
        let round = round(&mut reconciles, &key).await;
        if round.is_empty() {
            let why = format!("the program did not reconcile it within {} s", PATIENCE.as_secs());
            let hint = "look at its log: it may be stuck, or may have ended";
            return Err((unjudged(why).0, Some(hint.to_owned())));
        }
        let failed = round.iter().find_map(|reconcile| Some((reconcile, reconcile.failure.as_ref()?)));
        if let Some((reconcile, failure)) = failed {
            let is_conflict = |call: &Call| call.status == 409 && call.reason.as_deref() == Some("Conflict");
            // A conflict is no verdict: the reconcile is tried again, as the program's own queue would do.
            if reconcile.calls.iter().any(is_conflict) && conflicts < CONFLICTS {
                conflicts += 1;
                continue;
            }
            let why = failure.chain.first().cloned().unwrap_or_default();
            return Err(unjudged(format!("the reconcile failed: {why}")));
        }
        (last, well) = (round, well + 1);
    }
    let mut said = Ok(String::new());
    for reconcile in &last {
        said = verdict(&key, reconcile).map_err(|why| (format!("{why}{}", places(reconcile)), None));
        if said.is_err() {
            break;
        }
    }
    said
}

/// The reconciles of one object that were asked for: several controllers of a program may be for one kind.
/// None where none came in time.
async fn round(reconciles: &mut Receiver<Arc<Reconcile>>, key: &ObjectKey) -> Vec<Arc<Reconcile>> {
    let mut round = Vec::new();
    let mut until = tokio::time::Instant::now() + PATIENCE;
    loop {
        match tokio::time::timeout_at(until, reconciles.recv()).await {
            Ok(Ok(reconcile)) if reconcile.object.key() == *key && is_asked(&reconcile) => {
                round.push(reconcile);
                until = tokio::time::Instant::now() + TOGETHER;
            }
            Ok(Ok(_) | Err(RecvError::Lagged(_))) => {}
            Ok(Err(RecvError::Closed)) | Err(_) => return round,
        }
    }
}

/// The places in the code that wrote.
fn places(reconcile: &Reconcile) -> String {
    let wrote = |call: &&Call| call.verb != "get" && (200..300).contains(&call.status);
    let mut places: Vec<String> = reconcile
        .calls
        .iter()
        .filter(wrote)
        .filter_map(|call| Some(call.place.as_ref()?.to_string()))
        .collect();
    places.sort();
    places.dedup();
    places.truncate(3);
    if places.is_empty() { String::new() } else { format!(" ({})", places.join(", ")) }
}

/// Returns true if a reconcile was asked for; one that is told again was seen before.
fn is_asked(reconcile: &Reconcile) -> bool {
    let asked = reconcile.causes.iter().any(|cause| matches!(cause.kind, opdev_event::CauseKind::User));
    asked && reconcile.process.as_ref().is_none_or(|process| !process.told_again)
}

/// Tells that the request has begun and how it has ended.
async fn answer(id: RequestId, what: String, work: BoxFuture<'static, Answer>, events: EventSink) {
    let (at, begun) = (Timestamp::now(), Instant::now());
    events.emit(Event::RequestStarted(RequestStarted { id, at, what: what.clone(), lasting: false })).await;
    let outcome = match work.await {
        Ok(summary) => RequestOutcome::Done { summary, warnings: Vec::new() },
        Err((message, hint)) => RequestOutcome::Failed { message, hint },
    };
    let took = begun.elapsed();
    events
        .emit(Event::RequestFinished(RequestFinished { id, at: Timestamp::now(), what, outcome, took }))
        .await;
}
