//! The steps around the life of a release: a finalizer before it is installed, and none once it is
//! uninstalled.

use super::{ChartReconcile, FINALIZER, LEGACY_FINALIZER};
use opdev_object::meta;
use opdev_release::verdict::Fault;
use opdev_release::wait;
use opdev_release::wait::Limits;
use tokio_util::sync::CancellationToken;

impl ChartReconcile {
    /// Adds the finalizer, so that the release is uninstalled before the custom resource goes.
    pub(super) async fn add_finalizer(&mut self) -> Result<(), Fault> {
        let mine = [FINALIZER, LEGACY_FINALIZER];
        self.parent.add_finalizer(&self.api, FINALIZER, &mine).await.map_err(Fault::plain)
    }

    /// Drops the finalizers, and waits for the end of the custom resource where that is asked for.
    pub(super) async fn let_go(&mut self) -> Result<(), Fault> {
        let mine = [LEGACY_FINALIZER, FINALIZER];
        self.parent
            .drop_finalizers(&self.api, &mine)
            .await
            .map_err(|error| Fault::release_failed("UninstallError", error))?;
        self.engine.note("finalizer");
        let Some(timeout) = self.engine.options.wait_for_deletion else { return Ok(()) };
        let others = meta::finalizers(&self.parent.object).iter().any(|name| !mine.contains(name));
        if others {
            // The news that the object is to go is no reason to stop.
            let limits = Limits { timeout, cancel: &CancellationToken::new() };
            let what = "the custom resource is still there";
            wait::until_gone(&self.api, &self.parent.at(), limits, what).await.map_err(Fault::plain)?;
        }
        Ok(())
    }
}
