//! The chart engine of one release: what it is made of and for, and what has been done. Charts' custom
//! resources and the releases of programs share it; who installs a release sees to its end. Read `upgrade`
//! and `uninstall`.

use super::annotations;
use super::memory::Memory;
use super::objects;
use super::objects::apply::{Effects, Force, Mode, Plan};
use super::objects::inject::{Owner, ReleaseNames};
use super::options::ReleaseOptions;
use super::render::cache::Renders;
use super::script::ChartScript;
use super::script::hook_calls::Doing;
use crate::settings::Settings;
use opdev_client::Api;
use opdev_event::{Outcome, ReleaseChange, ReleaseStep, Step};
use opdev_object::meta::Gvk;
use opdev_sources::ChartReconciler;
use serde_json::Value;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// How many different things are said of one object.
pub const MOST_SAID: usize = 64;

/// One release.
pub struct Engine {
    pub name: String,
    pub namespace: String,
    /// Its chart.
    pub reconciler: Arc<ChartReconciler>,
    /// The set of sources that last changed the chart.
    pub changed_in: u64,
    pub api: Api,
    pub settings: Arc<Settings>,
    pub cancel: CancellationToken,
    pub renders: Arc<Renders>,
    pub owner: Owner,
    pub memory: Memory,
    pub options: ReleaseOptions,
    /// The script beside the chart.
    pub script: Option<Arc<ChartScript>>,
    /// The step that the release is in.
    pub doing: Doing,
    pub done: Done,
}

/// The part of a release's reconcile that is done, for the report and for the status.
#[derive(Debug)]
pub struct Done {
    /// The reason why a script waits, in its words.
    pub waiting: Option<String>,
    /// After what time a script wants the next reconcile at the latest.
    pub requeue: Option<Duration>,
    /// The writes.
    pub effects: Effects,
    pub clock: Clock,
    /// The kinds of its objects.
    pub dependents: Vec<Gvk>,
    /// Messages, each with a hint.
    pub notices: Vec<(String, Option<String>)>,
    /// The manifests and hooks that were read or rendered.
    pub manifests: Vec<String>,
    /// The deployed release.
    pub deployed: Option<Deployed>,
    /// True if the chart could be rendered and compared with the cluster.
    pub planned: bool,
    /// The outcome for its revisions.
    pub changes: Vec<ReleaseChange>,
    /// Why the next reconcile should come at once: the Operator SDK's operator is woken by its own status
    /// write, and its next reconcile does something else than this one.
    pub again: Option<String>,
}

impl Done {
    /// Nothing is done yet.
    pub fn nothing(clock: Clock) -> Done {
        Done {
            waiting: None,
            requeue: None,
            effects: Effects::default(),
            clock,
            dependents: Vec::new(),
            notices: Vec::new(),
            manifests: Vec::new(),
            deployed: None,
            planned: false,
            changes: Vec::new(),
            again: None,
        }
    }
}

/// A deployed revision, as far as it is told.
#[derive(Debug)]
pub struct Deployed {
    pub revision: i64,
    pub notes: String,
    pub manifest: String,
}

/// The steps of a reconcile.
#[derive(Debug)]
pub struct Clock {
    began: Instant,
    pub steps: Vec<Step>,
}

impl Clock {
    /// A reconcile that began then.
    pub fn new(began: Instant) -> Clock {
        Clock { began, steps: Vec::new() }
    }

    /// Notes that the part of the reconcile since the last note was this step.
    pub fn note(&mut self, name: &str) {
        let start = self.steps.last().map_or(Duration::ZERO, |step| step.start + step.took);
        let took = self.began.elapsed().saturating_sub(start);
        self.steps.push(Step { name: name.to_owned(), start, took });
    }
}

impl Engine {
    /// Puts live objects back to what the release says. Gives their kinds, too.
    pub(crate) async fn repair(&mut self, manifest: &str) -> anyhow::Result<(Outcome, Vec<Gvk>)> {
        let chart = self.chart_label();
        let namespace = self.namespace.clone();
        let names = ReleaseNames { name: &self.name, namespace: &namespace, chart: &chart };
        let wanted = objects::build(&self.api, manifest, &self.owner, names).await?;
        let plan = Plan::make(&self.api, wanted.clone(), &wanted, None).await?;
        self.note("plan");
        let written = !plan.is_empty();
        self.write(plan, Force::No).await?;
        if written {
            self.note("apply");
        }
        let repaired = !self.done.effects.changes.is_empty();
        let outcome = if repaired { Outcome::Repaired } else { Outcome::Unchanged };
        Ok((outcome, objects::kinds_of(&wanted)))
    }

    /// How objects are written.
    pub(crate) fn mode(&self, force: Force) -> Mode {
        Mode { force, compat: self.settings.helm_compat }
    }

    /// Carries a plan out, and says which objects server-side apply refuses.
    pub(crate) async fn write(&mut self, plan: Plan, force: Force) -> anyhow::Result<()> {
        let written = plan.carry_out(&self.api, self.mode(force), &mut self.done.effects).await;
        for (object, why) in std::mem::take(&mut self.done.effects.plain) {
            // The words of the API server may quote the Secret.
            let why =
                if object.gvk.kind == "Secret" { "for a reason that may quote it".to_owned() } else { why };
            let place =
                self.place_in_template(&object, &why).map(|place| format!("{place}: ")).unwrap_or_default();
            self.say(
                format!(
                    "{place}{object} is written as Helm 3 writes it, with a plain create or patch: server-side apply \
                     refuses it, {why}"
                ),
                Some(
                    "correct the template (a default that stays goes with `FIELD: null`): Helm 4, and opdev with \
                     `--helm-compat 4`, refuse this write",
                ),
            );
        }
        written
    }

    /// Tells what became of the release.
    pub(crate) fn tell(&mut self, step: ReleaseStep, revision: i64, why: String, surplus: bool) {
        let name = self.name.clone();
        self.done.changes.push(ReleaseChange { name, step, revision, why, surplus });
    }

    /// Says which annotations of the custom resource have no effect, as in the Operator SDK's operator.
    pub fn say_ignored_annotations(&mut self, object: &Value) {
        for name in annotations::ignored(object, &self.reconciler.options) {
            self.say(annotations::ignored_words(&name), Some(annotations::IGNORED_HINT));
        }
    }

    /// The name of the chart, empty where there is none.
    pub fn chart_label(&self) -> String {
        self.reconciler.chart.as_ref().map(|chart| chart.name().to_owned()).unwrap_or_default()
    }

    /// Notes that the part of the reconcile since the last note was this step.
    pub fn note(&mut self, name: &str) {
        self.done.clock.note(name);
    }

    /// Says something once per object.
    pub fn say(&mut self, message: String, hint: Option<&str>) {
        if self.memory.said.len() < MOST_SAID && self.memory.said.insert(message.clone()) {
            self.done.notices.push((message, hint.map(str::to_owned)));
        }
    }
}
