//! Permissions that a project's files want beyond rendering charts and applying them to a local cluster: one
//! typed list, collected here and nowhere else. Reads `watches.yaml` and looks for the operator's own
//! program; the rest is in the project's settings already.

use crate::Project;
use crate::program::Programs;
use opdev_event::Permission;
use opdev_sources::WatchesFile;

/// Everything that the project wants and the user has to allow, each once, in the order of the kinds of
/// permission. Another part of opdev that does more than render and apply adds its permissions here.
pub fn wanted(project: &Project) -> Vec<Permission> {
    wanted_of(project, &project.watches_file(), Programs::of(project).permissions())
}

/// Everything that the project wants, where `watches.yaml` has been read and the operator's own programs are
/// known: to look for them reads every Go file of the project.
pub fn wanted_of(project: &Project, watches: &WatchesFile, programs: Vec<Permission>) -> Vec<Permission> {
    let mut wanted = reconcilers(project);
    // A file that cannot be read names no variable; loading it says why.
    wanted.extend(watches.variables());
    wanted.extend(programs);
    wanted.sort();
    wanted.dedup();
    wanted
}

/// The permissions that reconcilers want, and those of the files that are applied at every start.
fn reconcilers(project: &Project) -> Vec<Permission> {
    let settings = &project.settings;
    let programs =
        settings.allow.programs.iter().map(|program| Permission::RunProgram { program: program.clone() });
    let hosts = settings.allow.hosts.iter().map(|host| Permission::ReachHost { host: host.clone() });
    let files = applied_on_start(project).into_iter().filter_map(|(_, permission)| permission);
    programs.chain(hosts).chain(files).collect()
}

/// The files that are applied at every start, each with what the user has to allow first: nothing where
/// reconcilers reach nothing.
pub fn applied_on_start(project: &Project) -> Vec<(String, Option<Permission>)> {
    let settings = &project.settings;
    let reach = !settings.allow.programs.is_empty() || !settings.allow.hosts.is_empty();
    let file = |file: &String| (file.clone(), reach.then(|| Permission::ApplyOnStart { file: file.clone() }));
    settings.apply_on_start.iter().map(file).collect()
}
