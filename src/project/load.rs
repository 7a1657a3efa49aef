//! Reads the files of a project and loads sources from them. A bug in either costs neither the last good charts nor the
//! count of sources. Never asks the user and brings nothing to the cluster; `reload` does.

use super::Project;
use super::files::{self, Unasked};
use super::trust::Trust;
use crate::event::Permission;
use crate::sources::deadline;
use crate::sources::load::{Loaded, Options};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Instant;

/// Reads a project for the first time and loads it.
pub(crate) fn load_first(
    project: &Project,
    (options, trust): (&Arc<Options>, &Trust),
) -> (files::Memory, Option<Loaded>) {
    let mut memory = files::Memory::default();
    let read = read(project, &mut memory, options, &[]);
    let loaded = read.and_then(|read| load(project, trust, &mut memory, read, &[], None, false));
    (memory, loaded)
}

/// Reads every file of the project once; nothing where that goes wrong: a bug in it must cost neither the last good charts
/// nor the count of sources.
pub(crate) fn read(
    project: &Project,
    memory: &mut files::Memory,
    options: &Arc<Options>,
    changed: &[String],
) -> Option<Unasked> {
    let reading = || files::read(project, memory, options, changed);
    catch_unwind(AssertUnwindSafe(reading)).ok()
}

/// The same, with what these files want and the user has to allow; `programs` is that of the operator's own programs.
pub(crate) fn read_with_wanted(
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

/// Loads a set of sources from the files that were read, with what the user has allowed by now. Charts get no more time than
/// after a save; a bug costs as little as in [`read`].
pub(crate) fn load(
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
