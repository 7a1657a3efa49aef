//! Downloads what charts of `watches.yaml` depend on and `charts/` lacks, because the user has asked for it.
//! The saved archives lead to a reload, as any saved file.

use crate::Requests;
use crate::chart_dependencies;
use crate::chart_dependencies::wants;
use crate::outcome::Done;
use anyhow::{Context as _, Result, bail};
use jiff::Timestamp;
use opdev_event::{Event, Level, Notice};
use opdev_project::Project;
use opdev_project::files::watched_charts;
use opdev_pull::{Access, Dependencies, Homes};
use tokio::sync::mpsc;

impl Requests {
    /// Downloads them; each line of progress is a notice.
    pub(crate) async fn fetch_dependencies(&self) -> Result<Done> {
        let project = self.project.clone();
        let (say, mut said) = mpsc::channel(64);
        let work = tokio::task::spawn_blocking(move || fetch(&project, &say));
        while let Some(message) = said.recv().await {
            let notice =
                Notice { at: Timestamp::now(), level: Level::Info, message, hint: None, object: None };
            self.events.emit(Event::Noticed(notice)).await;
        }
        let charts = work.await.context("the download has stopped")??;
        Ok(Done::said(format!("the dependencies of {} are there", charts.join(", "))))
    }
}

/// The charts whose dependencies were downloaded.
fn fetch(project: &Project, say: &mpsc::Sender<String>) -> Result<Vec<String>> {
    let mut done = Vec::new();
    for path in watched_charts(project) {
        if !wants(project, &path) {
            continue;
        }
        let folder = project.root.join(&path);
        let real = folder.canonicalize().with_context(|| format!("{path} cannot be read"))?;
        if !real.starts_with(project.root.canonicalize()?) {
            bail!("{path} leads out of the project; run `opdev dependency build {}`", real.display());
        }
        let mut tell = |line: &str| {
            // Whoever has cancelled the request reads no more.
            let _ = say.blocking_send(format!("{path}: {line}"));
        };
        let mut wanted = Dependencies {
            chart: &folder,
            homes: &Homes::from_environment(),
            access: &Access::default(),
            refresh: true,
            say: &mut tell,
        };
        let plan = wanted.build().with_context(|| format!("the dependencies of {path}"))?;
        chart_dependencies::write(&folder, &plan)?;
        done.push(path);
    }
    if done.is_empty() {
        bail!("no chart of watches.yaml lacks a dependency, and none of them is older than its folder");
    }
    Ok(done)
}
