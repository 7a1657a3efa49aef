//! One build of a Go program with the trace in it, for whoever starts the program by itself. Writes nothing
//! into the project.

use super::{Builder, Outcome};
use crate::start::cache_folder;
use anyhow::{Result, bail};
use opdev_event::words;
use opdev_project::program::settings::Plan;
use opdev_trace::instrument::Rung;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A binary, and how much was added to it.
#[derive(Clone, Debug)]
pub struct TracedBinary {
    /// The binary.
    pub path: PathBuf,
    /// Nothing where the project has no controller-runtime that opdev knows, or does not want it.
    pub rung: Option<Rung>,
}

/// Builds the program of a plan into `folder`; nothing where the plan has no Go package.
///
/// # Errors
/// Where it does not compile; the message has the compiler's words.
pub async fn traced_binary(plan: &Plan, root: &Path, folder: &Path) -> Result<Option<TracedBinary>> {
    let mut builder = Builder {
        plan: plan.clone(),
        root: root.to_owned(),
        folder: folder.to_owned(),
        cache: cache_folder(folder),
        rung: plan.trace.injects().then_some(Rung::Full),
        replace: BTreeMap::new(),
    };
    match builder.build().await {
        Outcome::Built(built) => Ok(built.next.map(|path| TracedBinary { path, rung: built.rung })),
        Outcome::Broken(problems) => {
            bail!("{}", problems.iter().map(words::diagnostic).collect::<Vec<_>>().join("\n"))
        }
    }
}
