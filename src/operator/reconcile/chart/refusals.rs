//! The steps that refuse a custom resource at once: its chart, its options or its script cannot be read, or
//! its name is none for a release.

use super::ChartReconcile;
use crate::LONGEST_NAME;
use anyhow::anyhow;
use opdev_helm::chart::Chart;
use opdev_release::status::INITIALIZED;
use opdev_release::verdict::Fault;
use std::sync::Arc;

impl ChartReconcile {
    /// Options and script decide where a release lives and what is done before it goes: while one of them was
    /// never read, nothing is done, and nothing is taken away.
    pub(super) fn refuse_unread(&self) -> Result<(), Fault> {
        let reconciler = &self.engine.reconciler;
        let script = reconciler.script.as_ref().filter(|script| script.program.is_none());
        let why = match (reconciler.options.unread, script) {
            (true, _) => "the options of its chart could not be read yet".to_owned(),
            (false, Some(script)) => {
                format!("the script {} beside its chart has not loaded yet", script.path)
            }
            (false, None) => return Ok(()),
        };
        Err(Fault {
            diagnostic: self.watch.broken.clone().map(Box::new),
            retry: false,
            ..Fault::plain(anyhow!(why))
        })
    }

    pub(super) fn chart(&self) -> Result<Arc<Chart>, Fault> {
        self.engine.reconciler.chart.clone().ok_or_else(|| Fault {
            diagnostic: self.watch.broken.clone().map(Box::new),
            retry: false,
            ..Fault::plain(anyhow!("the chart {} cannot be loaded", self.engine.reconciler.path))
        })
    }

    pub(super) fn check_name(&mut self) -> Result<(), Fault> {
        let length = self.parent.reference.name.len();
        if length <= LONGEST_NAME {
            return Ok(());
        }
        self.status.set(INITIALIZED, true, "", "");
        let error = anyhow!(
            "release name {:?}: the name of a custom resource names its Helm release, which may have \
             {LONGEST_NAME} characters; this one has {length}. Create it again with a shorter name",
            self.parent.reference.name
        );
        Err(Fault {
            retry: false,
            ..Fault::release_failed("InstallError", error.context("failed to install release"))
        })
    }
}
