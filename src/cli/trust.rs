//! `opdev trust`: what a project wants beyond rendering and applying, and the word that it may.

use anyhow::{Context as _, Result, bail};
use opdev_event::words::visible_line;
use opdev_event::{Permission, shell};
use opdev_project::Project;
use opdev_project::program::Programs;
use opdev_project::trust;
use opdev_project::trust::{Store, Trust};
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// What `opdev trust` takes.
#[derive(Debug, clap::Args)]
pub(super) struct TrustArgs {
    /// The project's folder instead of the nearest one above the working directory
    #[arg(long, value_name = "DIR")]
    project: Option<PathBuf>,
    /// Only show what the project wants, and every project that is trusted
    #[arg(long, conflicts_with = "revoke")]
    list: bool,
    /// Take the trust back
    #[arg(long)]
    revoke: bool,
}

/// Trusts a project, lists what is trusted, or takes trust back.
pub(super) fn run(args: &TrustArgs) -> Result<()> {
    let store = Store::of_user();
    let text = if args.revoke {
        revoke(args, &store)?
    } else if args.list {
        list(args, &store)?
    } else {
        trust(args, &store)?
    };
    let mut out = super::visible::out();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error.into()),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// The command that trusts a project, to be named in messages.
pub(super) fn command(root: &Path) -> String {
    format!("opdev trust --project {}", shell::word(&root.display().to_string()))
}

fn find(args: &TrustArgs) -> Result<Project> {
    let from = std::env::current_dir().context("the working directory cannot be read")?;
    Project::discover(args.project.as_deref(), &from)
}

/// The permissions that the user has given a project. Nobody is asked here: all that is wanted has to be
/// trusted already.
pub(super) fn trusted(project: &Project, wanted: &[Permission]) -> Result<Trust> {
    let trust = Trust::of(&project.root, Store::of_user());
    let unanswered = trust.unanswered(wanted)?;
    if !unanswered.is_empty() {
        bail!("{}", trust::refusal(project, &unanswered, &command(&project.root)));
    }
    Ok(trust)
}

fn trust(args: &TrustArgs, store: &Store) -> Result<String> {
    let project = find(args)?;
    let (wanted, unknown) = wanted(&project);
    let root = visible_line(&project.root.display().to_string());
    if wanted.is_empty() {
        let nothing = if unknown.is_empty() { "nothing that needs trust" } else { "nothing yet" };
        return Ok(format!("{root} wants {nothing}\n{unknown}"));
    }
    store.trust(&project.root, &wanted)?;
    let list: String = wanted
        .iter()
        .map(|one| format!("  - {} ({})\n", visible_line(&one.to_string()), one.setting()))
        .collect();
    Ok(format!(
        "{root} is trusted from now on to\n{list}{unknown}A change of these settings asks again; `opdev trust --revoke` takes the \
         trust back.\n"
    ))
}

/// What a project wants, and a line where it cannot be said which program it has.
fn wanted(project: &Project) -> (Vec<Permission>, String) {
    let programs = Programs::of(project);
    let problem = programs.problem().map(visible_line);
    let unknown = problem.map_or_else(String::new, |why| format!("  its program is not known: {why}\n"));
    (trust::wanted_of(project, &project.watches_file(), programs.permissions()), unknown)
}

/// The project that is meant first, where there is one, then all that are trusted.
fn list(args: &TrustArgs, store: &Store) -> Result<String> {
    let mut text = String::new();
    let found = find(args);
    if args.project.is_some() && found.is_err() {
        found?;
    } else if let Ok(project) = found {
        let (wanted, unknown) = wanted(&project);
        let open = Trust::of(&project.root, store.clone()).unanswered(&wanted)?;
        text.push_str(&format!("{} wants\n", visible_line(&project.root.display().to_string())));
        for one in &wanted {
            let word = if open.contains(one) { "not trusted" } else { "trusted" };
            text.push_str(&format!("  - {} ({}): {word}\n", visible_line(&one.to_string()), one.setting()));
        }
        if wanted.is_empty() && unknown.is_empty() {
            text.push_str("  nothing that needs trust\n");
        }
        text.push_str(&unknown);
    }
    let all = store.all()?;
    text.push_str(if all.is_empty() { "no project is trusted\n" } else { "trusted projects\n" });
    for known in all {
        let since = known.since.strftime("%Y-%m-%d");
        text.push_str(&format!("  {} since {since}\n", visible_line(&known.project.display().to_string())));
        for one in known.trusted {
            text.push_str(&format!("    - {}\n", visible_line(&one.what)));
        }
    }
    Ok(text)
}

/// A folder that is gone, or that is no project any more, can be revoked, too.
fn revoke(args: &TrustArgs, store: &Store) -> Result<String> {
    let root = match (find(args), &args.project) {
        (Ok(project), _) => project.root,
        (Err(_), Some(folder)) => folder.canonicalize().unwrap_or(std::path::absolute(folder)?),
        (Err(error), None) => return Err(error),
    };
    let shown = visible_line(&root.display().to_string());
    if !store.revoke(&root)? {
        bail!("{shown} is not trusted; `opdev trust --list` shows what is");
    }
    Ok(format!("{shown} is not trusted any more; an opdev that runs there goes on until it ends\n"))
}
