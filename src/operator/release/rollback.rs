//! After a write that failed: a failed install is uninstalled, a failed upgrade is followed by a revision
//! that says again what the one before said, with Helm's rollback hooks; a failed rewrite only puts the
//! objects back.

use super::engine::Engine;
use super::history::{History, Stored};
use super::hooks::Hooks;
use super::objects::Wanted;
use super::objects::apply::{Force, Plan};
use anyhow::{Context, anyhow};
use opdev_event::ReleaseStep;
use opdev_helm::manifest::HookEvent;

/// An upgrade that failed.
pub(crate) struct Failure {
    /// The revision before.
    pub(crate) deployed: Stored,
    /// The revision that failed.
    pub(crate) failed: Stored,
    /// The objects of the revision before.
    pub(crate) before: Vec<Wanted>,
    /// The objects of the revision that failed.
    pub(crate) wanted: Vec<Wanted>,
    pub(crate) error: anyhow::Error,
}

impl Engine {
    /// Deploys the revision before a failed upgrade again, as a new revision. Gives the error that says how
    /// that went, and what went wrong with the records.
    pub(crate) async fn roll_back_release(
        &mut self,
        mut history: History,
        failure: Failure,
        chart: &str,
    ) -> (anyhow::Error, Option<anyhow::Error>) {
        let Failure { mut deployed, mut failed, before, wanted, error } = failure;
        self.note("apply");
        failed.fail(&format!("Upgrade {:?} failed: {error:#}", self.name));
        let also = history.replace(&self.api, &self.owner, &mut failed).await.err();
        if !self.options.failure_rollbacks {
            return (error, also);
        }
        if self.options.hybrid
            && let Err(second) = history.make_room(&self.api, self.options.max_history).await
        {
            return (both_failed(error, &second), also);
        }
        let release = history.again(&deployed);
        let mut target = match self.store(&mut history, release).await {
            Ok(target) => target,
            Err(second) => return (both_failed(error, &second), also),
        };
        let done = self.deploy_again(&mut target, before, &wanted, chart).await;
        self.note("rollback");
        let (error, kept) = match done {
            Ok(()) => {
                target.deploy(&format!("Rollback to {}", deployed.release.version));
                deployed.supersede();
                self.memory.revision = Some(target.release.version);
                let why = format!("the upgrade to revision {} failed", failed.release.version);
                self.tell(ReleaseStep::RolledBack, target.release.version, why, false);
                let kept = async {
                    history.replace(&self.api, &self.owner, &mut deployed).await?;
                    history.replace(&self.api, &self.owner, &mut target).await?;
                    // The library keeps what failed, as Helm does.
                    if self.options.hybrid {
                        return Ok(());
                    }
                    history.forget_attempts(&self.api, failed.release.version, &deployed).await?;
                    history.trim(&self.api, self.options.max_history).await
                };
                let kept = kept.await;
                (error.context("upgrade failed; rolled back to the last good manifest"), kept)
            }
            Err(second) => {
                target.fail(&format!("Rollback {:?} failed: {second:#}", self.name));
                let kept = history.replace(&self.api, &self.owner, &mut target).await;
                (both_failed(error, &second), kept)
            }
        };
        (error, also.or(kept.err()))
    }

    async fn deploy_again(
        &mut self,
        target: &mut Stored,
        before: Vec<Wanted>,
        failed: &[Wanted],
        chart: &str,
    ) -> anyhow::Result<()> {
        let action = self.options.rollback.clone();
        let hooks = Hooks::of(self, chart, &action);
        let run = &mut target.release.hooks;
        let pre = hooks.run(HookEvent::PreRollback, run, &mut self.done.effects).await;
        pre.context("pre-rollback hooks failed")?;
        self.apply_before(before.clone(), failed).await?;
        self.until_ready(&before, &action).await?;
        let post = hooks.run(HookEvent::PostRollback, run, &mut self.done.effects).await;
        post.context("post-rollback hooks failed")
    }

    /// Puts everything back to the manifest before. The error says how that went.
    pub(crate) async fn put_back(
        &mut self,
        error: anyhow::Error,
        before: Vec<Wanted>,
        failed: &[Wanted],
    ) -> anyhow::Error {
        self.note("apply");
        let done = self.apply_before(before, failed).await;
        self.note("rollback");
        match done {
            Ok(()) => error.context("upgrade failed; rolled back to the last good manifest"),
            Err(second) => both_failed(error, &second),
        }
    }

    /// Uninstalls what a failed install left, with its delete hooks.
    pub(crate) async fn take_back(
        &mut self,
        error: anyhow::Error,
        mut history: History,
        mut first: Stored,
        chart: &str,
    ) -> anyhow::Error {
        let action = self.options.uninstall.clone();
        let hooks = Hooks::of(self, chart, &action);
        let removed = async {
            let run = &mut first.release.hooks;
            hooks
                .run(HookEvent::PreDelete, run, &mut self.done.effects)
                .await
                .context("pre-delete hooks failed")?;
            self.remove_objects(&[first.release.manifest.clone()], chart).await?;
            hooks
                .run(HookEvent::PostDelete, run, &mut self.done.effects)
                .await
                .context("post-delete hooks failed")
        };
        let purged = match removed.await {
            Ok(()) => history.purge(&self.api).await,
            Err(error) => Err(error),
        };
        self.note("rollback");
        match purged {
            Ok(()) => error.context("failed to install release"),
            Err(second) => anyhow!("failed installation ({error:#}) and failed rollback: {second:#}"),
        }
    }

    /// Makes of the objects of a failed revision those of the revision before.
    async fn apply_before(&mut self, before: Vec<Wanted>, failed: &[Wanted]) -> anyhow::Result<()> {
        let force = if self.options.force.rollback { Force::Fallback } else { Force::No };
        let plan = Plan::make(&self.api, before, failed, None).await?;
        self.write(plan, force).await
    }
}

fn both_failed(error: anyhow::Error, second: &anyhow::Error) -> anyhow::Error {
    error.context(format!("upgrade failed, and so did the rollback ({second:#})"))
}
