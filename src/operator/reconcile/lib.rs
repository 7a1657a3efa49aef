//! One reconcile for one custom resource against one set of sources. `chart` has the steps of a chart's
//! reconcile, `program` those of a script's; `run` chooses. Never looks at another object's reconcile and
//! never retries: the queue does.

mod chart;
mod custom_resource;
pub mod dry_run;
pub mod dry_run_report;
pub mod job;
pub mod plan_all;
mod program;

pub use chart::FINALIZER;
pub use chart::report::override_secrets;

use crate::job::Job;
use opdev_release::verdict::Report;
use opdev_sources::Reconciler;
use std::sync::Arc;
use std::time::Duration;

/// Helm's limit.
const LONGEST_NAME: usize = 53;
/// A shorter time between reconciles would be a loop.
const SHORTEST_REQUEUE: Duration = Duration::from_millis(100);

/// Runs one reconcile.
pub async fn run(job: Job) -> Report {
    match &job.watch.reconciler {
        Reconciler::Chart(chart) => {
            let reconciler = Arc::clone(chart);
            chart::run(job, reconciler).await
        }
        Reconciler::Type(typed) => {
            let typed = Arc::clone(typed);
            program::run(job, typed).await
        }
    }
}
