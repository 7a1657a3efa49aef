//! A task whose bug ends that task with a word, not opdev without one.

use anyhow::{Context as _, Result, bail};
use futures::FutureExt as _;
use std::panic::AssertUnwindSafe;

/// Turns the panic of a part that should run to the end into an error that names it.
pub(super) async fn survive(what: &'static str, work: impl Future<Output = Result<()>>) -> Result<()> {
    match AssertUnwindSafe(work).catch_unwind().await {
        Ok(result) => result.with_context(|| format!("{what} has stopped")),
        Err(_) => bail!("{what} has stopped: it tripped over a bug in opdev, and the log has the details"),
    }
}
