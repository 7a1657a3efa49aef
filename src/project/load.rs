//! Reads the files of a project and loads sources from them. A bug in either costs neither the last working
//! charts nor the count of sources. Never asks the user and brings nothing to the cluster; `reload` does.

use super::Project;
use super::files::{self, Unasked};
use super::trust::Trust;
use crate::program::Programs;
use anyhow::{Context as _, Result, bail};
use opdev_event::{Diagnostic, Permission, Severity, words};
use opdev_sources::Sources;
use opdev_sources::deadline;
use opdev_sources::load::{Loaded, Options};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Instant;

/// Reads a project for the first time and loads it.
pub fn load_first(
    project: &Project,
    (options, trust): (&Arc<Options>, &Trust),
) -> (files::Memory, Option<Loaded>) {
    let mut memory = files::Memory::default();
    let read = read(project, &mut memory, options, &[]);
    let loaded = read.and_then(|read| load(project, trust, &mut memory, read, &[], None, false));
    (memory, loaded)
}

/// Reads every file of the project once; nothing where that goes wrong: a bug in it must cost neither the
/// last working charts nor the count of sources.
pub(crate) fn read(
    project: &Project,
    memory: &mut files::Memory,
    options: &Arc<Options>,
    changed: &[String],
) -> Option<Unasked> {
    let reading = || files::read(project, memory, options, changed);
    catch_unwind(AssertUnwindSafe(reading)).ok()
}

/// Reads every file once, with the permissions that these files want and the user has to allow; `programs` is
/// that of the operator's own programs.
pub fn read_with_wanted(
    project: &Project,
    memory: &mut files::Memory,
    options: &Arc<Options>,
    programs: Vec<Permission>,
    changed: &[String],
) -> Option<(Unasked, Vec<Permission>)> {
    let read = read(project, memory, options, changed)?;
    let wanted = catch_unwind(AssertUnwindSafe(|| read.wanted(project, programs))).ok()?;
    Some((read, wanted))
}

/// Loads a set of sources from the files that were read, with what the user has allowed by now. Charts get no
/// more time than after a save; a bug costs as little as in `read`.
pub fn load(
    project: &Project,
    trust: &Trust,
    memory: &mut files::Memory,
    read: Unasked,
    changed: &[String],
    saved_at: Option<Instant>,
    forced: bool,
) -> Option<Loaded> {
    let (limit, _waiting) = deadline::within(deadline::LOAD);
    memory.loader.limit_to(limit);
    let loading = || {
        let files = read.with_granted(project, trust);
        memory.loader.load(&files, changed, saved_at, forced)
    };
    catch_unwind(AssertUnwindSafe(loading)).unwrap_or_default()
}

/// Reads the project once. What is broken in it comes beside.
///
/// # Errors
/// Where reading it tripped over a bug in opdev.
pub fn read_once(project: &Project, trust: &Trust) -> Result<(Sources, Vec<Diagnostic>)> {
    let options = files::options(project, &[], Programs::of(project).reconcile());
    let allowed = (&options, trust);
    let (_, loaded) = load_first(project, allowed);
    let loaded = loaded.context("reading the project tripped over a bug in opdev")?;
    let of_settings = project.diagnostics.iter().filter(|one| one.severity == Severity::Error).cloned();
    let problems = of_settings.chain(loaded.errors).collect();
    Ok((Sources::clone(&loaded.sources), problems))
}

/// Reads the project of an operator that opdev runs in a cluster. What is broken in it comes beside.
///
/// # Errors
/// A project whose operator is a program of its own, with what to do `instead`; a project without anything to
/// reconcile.
pub fn read_operated(project: &Project, trust: &Trust, instead: &str) -> Result<(Sources, Vec<Diagnostic>)> {
    let (sources, problems) = read_once(project, trust)?;
    let program = sources.shown.iter().find_map(|shown| Some((shown, shown.program.clone()?)));
    if let Some((shown, program)) = program {
        bail!(
            "{program} reconciles {}: it is a program of its own, and runs in an image of its own\n  to do: {instead}",
            shown.gvk.kind
        );
    }
    if sources.watches.is_empty() {
        let told: Vec<String> = problems.iter().map(words::diagnostic).collect();
        let told = if told.is_empty() { String::new() } else { format!(": {}", told.join("; ")) };
        bail!("there is no kind to reconcile in {}{told}", project.root.display());
    }
    Ok((sources, problems))
}
