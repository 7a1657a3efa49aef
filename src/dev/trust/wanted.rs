//! What a project's files want beyond rendering charts and applying them to a local cluster: one typed list, collected here
//! and nowhere else. Reads `watches.yaml` and looks for the operator's own program; the rest is in the project's settings already.

use crate::dev::program::Program;
use crate::dev::project::Project;
use crate::event::Permission;
use crate::sources::load::environment_variables;

/// Everything that the project wants and the user has to allow, each once, in the order of the kinds of permission.
/// Another part of opdev that does more than render and apply adds its permissions here.
pub fn wanted(project: &Project) -> Vec<Permission> {
    let mut wanted = reconcilers(project);
    wanted.extend(variables(project));
    wanted.extend(Program::of(project).permission());
    wanted.sort();
    wanted.dedup();
    wanted
}

/// What reconcilers may reach. A file that is applied at every start counts where they reach anything.
fn reconcilers(project: &Project) -> Vec<Permission> {
    let settings = &project.settings;
    let programs =
        settings.allow.programs.iter().map(|program| Permission::RunProgram { program: program.clone() });
    let hosts = settings.allow.hosts.iter().map(|host| Permission::ReachHost { host: host.clone() });
    let mut wanted: Vec<Permission> = programs.chain(hosts).collect();
    if !wanted.is_empty() {
        let files = settings.apply_on_start.iter();
        wanted.extend(files.map(|file| Permission::ApplyOnStart { file: file.clone() }));
    }
    wanted
}

/// Variables of the user's environment in `overrideValues`.
fn variables(project: &Project) -> Vec<Permission> {
    let Some(path) = &project.watches else { return Vec::new() };
    // A file that cannot be read names no variable; loading it says why.
    let text = std::fs::read_to_string(project.root.join(path)).unwrap_or_default();
    environment_variables(&path.display().to_string(), &text)
}
