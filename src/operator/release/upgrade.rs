//! The outcome for the release of a living custom resource: nothing yet → install; the chart renders
//! something new → a new revision, or the deployed revision rewritten in place (see `decide`); nothing new →
//! drift repair. A write that fails is taken back to the last working manifest.

use super::decide::{self, Case, Decision, News};
use super::engine::{Deployed, Engine};
use super::history::desired_release::DesiredRelease;
use super::history::{History, Stored};
use super::hooks::Hooks;
use super::objects::apply::{Force, Plan};
use super::objects::inject::ReleaseNames;
use super::objects::{self, Wanted};
use super::render::explain;
use super::render::{Identity, Lookups, Rendered};
use super::rollback::Failure;
use super::script::hook_calls::Doing;
use super::verdict::{Fault, Stage};
use anyhow::Context;
use opdev_event::{Action, Outcome, ReleaseStep, mask};
use opdev_helm::chart::Chart;
use opdev_helm::engine::ReleaseRead;
use opdev_helm::manifest::{self, HookEvent};
use opdev_helm::release::Status;
use opdev_object::meta::Gvk;
use serde_json::Value;
use std::sync::Arc;

/// After so many reconciles in a row that render something new from the same input, the chart is at fault.
pub(crate) const SURPLUS_LIMIT: u32 = 3;
/// The hint for a chart that is never done.
const STABLE: &str = "make it once and keep it: take the value from the custom resource, or from the Secret that is there \
                      already with `lookup` and `dryRunOption: server`";

/// The hint for a chart that reads which revision it is.
const NO_FACTS: &str = "an operator renders the release again in every reconcile, as an upgrade: let a value decide, make the \
                        object a hook (`helm.sh/hook: pre-install`), or keep it with `helm.sh/resource-policy: keep`";

/// The revision of a release that the next one follows.
pub(crate) struct Base {
    pub(crate) revision: Stored,
    /// Why there must be a next one, whatever the chart says; `None` where the chart decides.
    pub(crate) must_move: Option<String>,
}

impl Base {
    fn deployed(revision: Stored) -> Self {
        Base { revision, must_move: None }
    }
}

impl Engine {
    /// Brings the release to what is wished for. The caller has healed its history and sees to it that it
    /// will be uninstalled one day.
    pub async fn release(&mut self, history: History, desired: DesiredRelease) -> Result<Outcome, Fault> {
        let values = desired.values.clone();
        let outcome = match self.base(&history).map_err(Fault::state)? {
            None => self.install(history, desired).await?,
            Some(base) => self.follow(history, base, desired).await?,
        };
        if outcome != Outcome::Waiting {
            self.ask_after(&values).await?;
        }
        Ok(outcome)
    }

    /// The revision that the next one follows. The library upgrades also what failed.
    pub(crate) fn base(&self, history: &History) -> anyhow::Result<Option<Base>> {
        let deployed = history.deployed()?;
        if let Some(deployed) = &deployed
            && deployed.release.namespace != self.namespace
        {
            let why = format!("it moves from namespace {} to {}", deployed.release.namespace, self.namespace);
            return Ok(Some(Base { revision: deployed.clone(), must_move: Some(why) }));
        }
        if !self.options.hybrid {
            return Ok(deployed.map(Base::deployed));
        }
        let newest = history.newest()?;
        let failed =
            |stored: &&Stored| matches!(stored.release.info.status, Status::Failed | Status::Superseded);
        Ok(match (deployed, newest) {
            (deployed, Some(newest)) if failed(&&newest) => {
                let word = newest.release.info.status.word();
                let why = format!("revision {} is {word}", newest.release.version);
                Some(Base { revision: deployed.unwrap_or(newest), must_move: Some(why) })
            }
            (deployed, _) => deployed.map(Base::deployed),
        })
    }

    /// A revision is deployed: does the chart say something else now?
    async fn follow(
        &mut self,
        history: History,
        base: Base,
        desired: DesiredRelease,
    ) -> Result<Outcome, Fault> {
        self.done.manifests.push(base.revision.release.manifest.clone());
        let state = |error: anyhow::Error| Fault::state(error.context("failed to get candidate release"));
        let candidate = self.candidate(&history, &base, &desired).await.map_err(state)?;
        let deployed = base.revision;
        self.note("render");
        let doing = if candidate.is_some() { Doing::Upgrade } else { Doing::Reconcile };
        if !self.ask_before(doing, &desired.values, Some(&deployed)).await? {
            self.settle(&deployed, objects::kinds(&deployed.release.manifest));
            return Ok(Outcome::Waiting);
        }
        let Some((rendered, decision)) = candidate else {
            return self.keep(&deployed, desired).await;
        };
        if let Some(blamed) = &decision.surplus {
            // A save begins to count anew.
            let before = if self.memory.sources == self.changed_in { self.memory.surplus } else { 0 };
            self.memory.surplus = before.saturating_add(1);
            if self.memory.surplus > SURPLUS_LIMIT {
                self.say_surplus(&desired.chart, &deployed.release.manifest, &rendered.manifest, blamed);
                return self.keep(&deployed, desired).await;
            }
        } else {
            self.memory.surplus = 0;
        }
        let names = self.names(&deployed.release.namespace, desired.chart.name());
        let before = objects::build(&self.api, &deployed.release.manifest, &self.owner, names).await;
        let before = before.unwrap_or_default();
        let plan = async {
            let wanted = self.wanted(&rendered.manifest, desired.chart.name()).await?;
            self.refuse_twins(&wanted, &rendered.manifest)?;
            let namespace = self.namespace.clone();
            let names = self.names(&namespace, desired.chart.name());
            let plan = Plan::make(&self.api, wanted.clone(), &before, Some(("update", names))).await?;
            anyhow::Ok((wanted, plan))
        };
        let (wanted, plan) = plan.await.map_err(state)?;
        self.done.planned = true;
        self.note("plan");
        let change = Change { before, wanted, plan, rendered };
        let revision = match decision.step {
            ReleaseStep::Rewritten => self.rewrite(history, deployed, change, &desired).await?,
            ReleaseStep::Installed | ReleaseStep::Upgraded | ReleaseStep::RolledBack => {
                self.upgrade(history, deployed, change, &desired).await?
            }
        };
        if let Some(blamed) = &decision.surplus {
            self.say_next_reconcile(blamed);
            self.done.again =
                Some("the Operator SDK's operator would be woken by its own status write".to_owned());
        }
        self.tell(decision.step, revision, decision.why, decision.surplus.is_some());
        self.remember(desired);
        Ok(Outcome::Upgraded)
    }

    /// The chart as it renders now and what to do with it, where it is not what is deployed. It is rendered
    /// as the next revision, as the Operator SDK's operator does; where it reads which revision it is, as the
    /// deployed one, too.
    pub(crate) async fn candidate(
        &mut self,
        history: &History,
        Base { revision: deployed, must_move }: &Base,
        desired: &DesiredRelease,
    ) -> anyhow::Result<Option<(Rendered, Decision)>> {
        let news = self.news(deployed, desired);
        let identity = Identity { revision: self.next_revision(history), install: false };
        let next = self.effective(desired, identity, deployed).await?;
        if let Some(why) = must_move {
            return Ok(Some((next, decide::upgrade(why.clone()))));
        }
        let differs = next.manifest != deployed.release.manifest;
        let as_deployed = if next.release_reads.is_empty() || (news == News::Nothing && !differs) {
            None
        } else {
            let version = deployed.release.version;
            let identity = Identity { revision: version, install: version == 1 };
            Some(self.effective(desired, identity, deployed).await?)
        };
        let in_place = as_deployed.as_ref().unwrap_or(&next);
        if news == News::Values && !differs {
            self.say_unseen_hook(deployed, in_place);
        }
        let on_save = self.settings.on_save;
        let case = Case { deployed, next: &next, in_place, news, on_save };
        let Some(decision) = case.decide() else { return Ok(None) };
        let rendered = match decision.step {
            ReleaseStep::Rewritten => as_deployed.unwrap_or(next),
            ReleaseStep::Installed | ReleaseStep::Upgraded | ReleaseStep::RolledBack => next,
        };
        Ok(Some((rendered, decision)))
    }

    /// The number of the next revision. What failed stays in the library's history.
    pub(crate) fn next_revision(&self, history: &History) -> i64 {
        if self.options.hybrid { history.revision_after_all() } else { history.next_revision() }
    }

    /// The values of the next revision. Helm's upgrade that is given no values takes those of the deployed
    /// revision, and the Operator SDK's operator gives none where the spec is empty (`reuseValues` in Helm's
    /// `pkg/action/upgrade.go`).
    pub fn values_for(&mut self, history: &History, values: Value) -> anyhow::Result<Value> {
        let is_empty = |values: &Value| values.as_object().is_none_or(serde_json::Map::is_empty);
        if !is_empty(&values) {
            return Ok(values);
        }
        let Some(deployed) = history.deployed()? else { return Ok(values) };
        let kept = deployed.release.config;
        if is_empty(&kept) {
            return Ok(values);
        }
        let names: Vec<&str> =
            kept.as_object().into_iter().flat_map(|map| map.keys().map(String::as_str)).collect();
        self.say(
            format!(
                "the spec is empty, so that Helm keeps the values of revision {}: {}",
                deployed.release.version,
                names.join(", ")
            ),
            Some("write a value into the spec instead of removing the last one: any value ends this"),
        );
        Ok(kept)
    }

    /// The input that is not as it was when the deployed revision was made.
    fn news(&self, deployed: &Stored, desired: &DesiredRelease) -> News {
        let same_spec = self.memory.spec.as_ref() == Some(&desired.spec);
        let foreign = self.memory.revision.is_some_and(|known| known != deployed.release.version);
        let same_values = deployed.has_values(&desired.values);
        match () {
            () if foreign && !same_values => News::Foreign,
            () if !same_spec && !same_values => News::Values,
            () if self.memory.spec.is_none() => News::Files { seen: false },
            () if self.memory.sources != self.changed_in => News::Files { seen: true },
            () if foreign => News::Foreign,
            () => News::Nothing,
        }
    }

    /// The chart as a revision. `lookup` sees the cluster where that, too, gives something else than what is
    /// deployed.
    async fn effective(
        &mut self,
        desired: &DesiredRelease,
        identity: Identity,
        deployed: &Stored,
    ) -> anyhow::Result<Rendered> {
        let server = self.reconciler.dry_run_option == "server";
        let lookups = if server { Lookups::Live } else { Lookups::Empty };
        let rendered = self.render(desired, identity, lookups).await?;
        self.compare_renders(desired, identity, lookups, &rendered).await?;
        if server || !rendered.looked_up || rendered.manifest == deployed.release.manifest {
            return Ok(rendered);
        }
        let real = self.render(desired, identity, Lookups::Live).await?;
        if real.manifest == deployed.release.manifest {
            self.say(
                format!(
                    "the chart {} calls `lookup`: the Operator SDK's operator would upgrade this release on every \
                     reconcile",
                    desired.chart.name()
                ),
                Some("set `dryRunOption: server` in watches.yaml, so that its comparison sees the cluster, too"),
            );
        }
        Ok(real)
    }

    /// The release stays as it is: only drift is put back.
    async fn keep(&mut self, deployed: &Stored, desired: DesiredRelease) -> Result<Outcome, Fault> {
        let (outcome, kinds) = self
            .repair(&deployed.release.manifest)
            .await
            .map_err(|error| Fault { stage: Stage::Repair, ..Fault::irreconcilable(error) })?;
        self.settle(deployed, kinds);
        if self.memory.surplus <= SURPLUS_LIMIT {
            self.memory.surplus = 0;
        }
        self.remember(desired);
        Ok(outcome)
    }

    /// Notes what is deployed, and the kinds of its objects.
    fn settle(&mut self, stored: &Stored, kinds: Vec<Gvk>) {
        let release = &stored.release;
        self.done.dependents = kinds;
        self.done.deployed = Some(Deployed {
            revision: release.version,
            notes: release.info.notes.clone(),
            manifest: release.manifest.clone(),
        });
    }

    fn remember(&mut self, desired: DesiredRelease) {
        self.memory.spec = Some(desired.spec);
        self.memory.sources = self.changed_in;
        self.memory.revision = self.done.deployed.as_ref().map(|deployed| deployed.revision);
    }

    fn say_surplus(&mut self, chart: &Chart, deployed: &str, candidate: &str, blamed: &[ReleaseRead]) {
        let lines: Vec<String> =
            explain::lines(chart, deployed, candidate).iter().map(ToString::to_string).collect();
        let reads: Vec<String> = blamed.iter().map(ToString::to_string).collect();
        let reads = if reads.is_empty() { String::new() } else { format!(" ({})", reads.join(", ")) };
        self.say(
            format!(
                "the chart {} renders differently each time from the same input{reads}: {}; the deployed manifest is \
                 kept, where the Operator SDK's operator would upgrade in every reconcile",
                self.reconciler.path,
                lines.join("; ")
            ),
            Some(if blamed.is_empty() { STABLE } else { NO_FACTS }),
        );
    }

    /// Says what the upgrade that nobody asked for has done, and who is to blame for it.
    fn say_next_reconcile(&mut self, blamed: &[ReleaseRead]) {
        if blamed.is_empty() {
            return;
        }
        let reads: Vec<String> = blamed.iter().map(ToString::to_string).collect();
        let deleted = self.done.effects.changes.iter().filter(|change| change.action == Action::Deleted);
        let mut deleted: Vec<String> = deleted.map(|change| change.object.to_string()).collect();
        deleted.dedup();
        let deleted =
            if deleted.is_empty() { String::new() } else { format!("; it deleted {}", deleted.join(", ")) };
        self.say(
            format!(
                "the chart {} renders something else in the next revision, with nothing changed: {}. The Operator \
                 SDK's operator upgrades the release in its next reconcile, so opdev did{deleted}",
                self.reconciler.path,
                reads.join(", ")
            ),
            Some(NO_FACTS),
        );
    }

    /// A changed value that reaches nothing but hooks does nothing in production.
    fn say_unseen_hook(&mut self, deployed: &Stored, rendered: &Rendered) {
        let Some(hook) = decide::changed_hook(&deployed.release.hooks, &rendered.hooks) else { return };
        self.say(
            format!(
                "{hook}, and nothing else: the Operator SDK's operator compares manifests and no hooks, so that the \
                 changed value does not reach the cluster"
            ),
            Some("make it an object of the release instead of a hook, or change a value that an object shows, too"),
        );
    }

    /// Renders once more as another process would, a minute later and with other randomness: opdev starts
    /// random functions from the same point for the same object, an operator in a cluster does not.
    async fn compare_renders(
        &mut self,
        desired: &DesiredRelease,
        identity: Identity,
        lookups: Lookups,
        rendered: &Rendered,
    ) -> anyhow::Result<()> {
        if !rendered.impure || self.memory.compared == Some(self.changed_in) {
            return Ok(());
        }
        self.memory.compared = Some(self.changed_in);
        let again = self.render_anew(desired, identity, lookups).await?;
        let lines = explain::lines(&desired.chart, &rendered.manifest, &again.manifest);
        if lines.is_empty() {
            return Ok(());
        }
        let lines: Vec<String> = lines.iter().map(ToString::to_string).collect();
        self.say(
            format!(
                "the chart {} is never done: the Operator SDK's operator would upgrade this release on every reconcile, \
                 for {}",
                self.reconciler.path,
                lines.join("; ")
            ),
            Some(STABLE),
        );
        Ok(())
    }

    /// Puts the next rendering into the deployed revision: no new revision, no hooks.
    async fn rewrite(
        &mut self,
        history: History,
        mut deployed: Stored,
        change: Change,
        desired: &DesiredRelease,
    ) -> Result<i64, Fault> {
        let Change { before, wanted, plan, rendered } = change;
        let force = self.upgrade_force();
        if let Err(error) = self.write(plan, force).await {
            if !self.options.failure_rollbacks {
                return Err(Fault::release_failed("UpgradeError", error));
            }
            let error = self.put_back(error, before, &wanted).await;
            return Err(Fault::release_failed("UpgradeError", error));
        }
        self.note("apply");
        deployed.rewrite(desired, rendered);
        history
            .replace(&self.api, &self.owner, &mut deployed)
            .await
            .map_err(|error| Fault::release_failed("UpgradeError", error))?;
        self.note("release");
        self.settle(&deployed, objects::kinds_of(&wanted));
        Ok(deployed.release.version)
    }

    /// A new revision.
    async fn upgrade(
        &mut self,
        mut history: History,
        mut deployed: Stored,
        change: Change,
        desired: &DesiredRelease,
    ) -> Result<i64, Fault> {
        self.warn_overrides().await;
        let Change { before, wanted, plan, rendered } = change;
        let failed = |error: anyhow::Error| {
            Fault::release_failed("UpgradeError", error.context("failed to upgrade release"))
        };
        if self.options.hybrid {
            history.make_room(&self.api, self.options.max_history).await.map_err(failed)?;
        } else {
            history.drop_failed(&self.api).await.map_err(failed)?;
        }
        let release = history.next(&self.name, &self.namespace, desired, rendered);
        let mut next = self.store(&mut history, release).await.map_err(failed)?;
        self.note("release");
        let force = self.upgrade_force();
        let action = self.options.upgrade.clone();
        let hooks = Hooks::of(self, desired.chart.name(), &action);
        let work = async {
            let run = &mut next.release.hooks;
            hooks
                .run(HookEvent::PreUpgrade, run, &mut self.done.effects)
                .await
                .context("pre-upgrade hooks failed")?;
            self.write(plan, force).await?;
            self.until_ready(&wanted, &action).await?;
            hooks
                .run(HookEvent::PostUpgrade, run, &mut self.done.effects)
                .await
                .context("post-upgrade hooks failed")
        };
        if let Err(error) = work.await {
            let failure = Failure { deployed, failed: next, before, wanted, error };
            let (error, also) = self.roll_back_release(history, failure, desired.chart.name()).await;
            return Err(Fault { also, ..failed(error) });
        }
        self.note("apply");
        deployed.supersede();
        history.replace(&self.api, &self.owner, &mut deployed).await.map_err(failed)?;
        next.deploy(action.description.as_deref().unwrap_or("Upgrade complete"));
        history.replace(&self.api, &self.owner, &mut next).await.map_err(failed)?;
        if !self.options.hybrid {
            history.trim(&self.api, self.options.max_history).await.map_err(failed)?;
        }
        self.tell_overrides().await;
        self.note("release");
        self.settle(&next, objects::kinds_of(&wanted));
        Ok(next.release.version)
    }

    /// The first revision. What a failed one left behind is taken off the cluster again.
    async fn install(&mut self, mut history: History, desired: DesiredRelease) -> Result<Outcome, Fault> {
        if !self.ask_before(Doing::Install, &desired.values, None).await? {
            return Ok(Outcome::Waiting);
        }
        self.warn_overrides().await;
        let action = self.options.install.clone();
        let failed = |error: anyhow::Error| Fault::release_failed("InstallError", error);
        history.purge(&self.api).await.map_err(failed)?;
        let installed = async {
            if action.crds {
                self.install_crds(&desired).await?;
            }
            let identity = Identity { revision: 1, install: true };
            let candidate = self.render(&desired, identity, Lookups::Live).await?;
            // An object that the chart looks up is there after the install: the next reconcile compares it.
            if !candidate.looked_up || self.reconciler.dry_run_option != "server" {
                self.compare_renders(&desired, identity, Lookups::Live, &candidate).await?;
            }
            self.note("render");
            let wanted = self.wanted(&candidate.manifest, desired.chart.name()).await?;
            self.refuse_twins(&wanted, &candidate.manifest)?;
            let namespace = self.namespace.clone();
            let names = self.names(&namespace, desired.chart.name());
            let plan = Plan::make(&self.api, wanted.clone(), &[], Some(("install", names))).await?;
            self.note("plan");
            anyhow::Ok((candidate, wanted, plan))
        };
        let (candidate, wanted, plan) =
            installed.await.map_err(|error| failed(error.context("failed to install release")))?;
        // Notes alone do not make another revision, but they can fail in it.
        let facts = candidate.release_reads.iter().find(|read| !manifest::is_notes(&read.template));
        let only_notes = facts.is_none() && !candidate.release_reads.is_empty();
        let facts = facts.map(|read| format!("{read} may not be the same in the next revision"));
        let release = history.next(&self.name, &self.namespace, &desired, candidate);
        let mut first = self
            .store(&mut history, release)
            .await
            .map_err(|error| failed(error.context("failed to install release")))?;
        self.note("release");
        let hooks = Hooks::of(self, desired.chart.name(), &action);
        let work = async {
            let run = &mut first.release.hooks;
            hooks
                .run(HookEvent::PreInstall, run, &mut self.done.effects)
                .await
                .context("failed pre-install")?;
            self.write(plan, Force::No).await?;
            self.until_ready(&wanted, &action).await?;
            hooks
                .run(HookEvent::PostInstall, run, &mut self.done.effects)
                .await
                .context("failed post-install")
        };
        if let Err(error) = work.await {
            self.note("apply");
            if !self.options.failure_rollbacks {
                first.fail(&format!("Release {:?} failed: {error:#}", self.name));
                let also = history.replace(&self.api, &self.owner, &mut first).await.err();
                return Err(Fault { also, ..failed(error.context("failed to install release")) });
            }
            return Err(failed(self.take_back(error, history, first, desired.chart.name()).await));
        }
        self.note("apply");
        first.deploy(action.description.as_deref().unwrap_or("Install complete"));
        history.replace(&self.api, &self.owner, &mut first).await.map_err(failed)?;
        self.tell_overrides().await;
        self.note("release");
        self.settle(&first, objects::kinds_of(&wanted));
        self.done.again = match facts {
            None if only_notes => self.failing_notes(&desired).await,
            facts => facts,
        };
        self.remember(desired);
        self.tell(ReleaseStep::Installed, 1, "no revision was deployed".to_owned(), false);
        Ok(Outcome::Installed)
    }

    /// Why the next reconcile should come at once, where notes read which revision they are: they may fail in
    /// it.
    async fn failing_notes(&mut self, desired: &DesiredRelease) -> Option<String> {
        let identity = Identity { revision: 2, install: false };
        let failed = self.render(desired, identity, Lookups::Live).await.is_err();
        failed.then(|| "the chart fails in the next revision".to_owned())
    }

    /// Before the Operator SDK's operator writes, it says which values its operator forces.
    async fn warn_overrides(&mut self) {
        if !self.options.hybrid {
            self.record_overrides("OverrideValuesInUse", "operator's watches.yaml").await;
        }
    }

    /// The library says it once it has written.
    async fn tell_overrides(&mut self) {
        if self.options.hybrid {
            self.record_overrides("ValueOverridden", "operator").await;
        }
    }

    async fn record_overrides(&mut self, reason: &str, by: &str) {
        let reconciler = Arc::clone(&self.reconciler);
        for (key, value) in &reconciler.overrides {
            let hide = self.settings.suppress_override_values || mask::is_secret_path(key);
            let value = if hide { "****" } else { value.as_str() };
            let message = format!("Chart value {key:?} overridden to {value:?} by {by}");
            self.record("Warning", reason, &message).await;
        }
    }

    pub(crate) fn upgrade_force(&self) -> Force {
        if self.options.force.upgrade { Force::Replace } else { Force::No }
    }

    pub(crate) fn names<'a>(&'a self, namespace: &'a str, chart: &'a str) -> ReleaseNames<'a> {
        ReleaseNames { name: &self.name, namespace, chart }
    }

    pub(crate) async fn wanted(&self, manifest: &str, chart: &str) -> anyhow::Result<Vec<Wanted>> {
        let namespace = self.namespace.clone();
        objects::build(&self.api, manifest, &self.owner, self.names(&namespace, chart)).await
    }
}

/// A release on its way to the cluster.
struct Change {
    before: Vec<Wanted>,
    wanted: Vec<Wanted>,
    plan: Plan,
    rendered: Rendered,
}
