//! The end of a custom resource: what the API server does not collect by itself is taken away, then the
//! finalizer.

use super::observe::Source;
use super::state::{FINALIZER, ScriptReconcile};
use opdev_event::Outcome;
use opdev_object::meta;
use opdev_release::objects::Wanted;
use opdev_release::verdict::Fault;
use opdev_release::verdict::Verdict;

impl ScriptReconcile {
    /// The custom resource goes and there is no finalize function: releases and strays are taken away.
    pub(super) async fn dismantle(&mut self) -> Result<Verdict, Fault> {
        let mut releases = self.histories().await.map_err(Fault::plain)?;
        while let Some(history) = releases.pop() {
            self.uninstall(history).await?;
        }
        self.let_go().await
    }

    /// Nothing keeps the custom resource any more.
    pub(super) async fn let_go(&mut self) -> Result<Verdict, Fault> {
        let children = self.children(Source::Live).await.map_err(Fault::plain)?;
        let mut strays = Vec::new();
        for child in children {
            if meta::controller(&child).is_some() || meta::deletion_timestamp(&child).is_some() {
                continue;
            }
            let Some(gvk) = meta::Gvk::of(&child) else { continue };
            let resource = self.api.resource(&gvk).await.map_err(|error| Fault::plain(error.into()))?;
            strays.push((Wanted::exactly((*child).clone(), resource), child));
        }
        self.prune(&strays).await.map_err(Fault::plain)?;
        self.parent.drop_finalizers(&self.api, &[FINALIZER]).await.map_err(Fault::plain)?;
        self.clock.note("finalizer");
        Ok(Verdict::new(Outcome::Uninstalled))
    }
}
