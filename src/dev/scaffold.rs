//! Writes what `scaffold` plans: all files or none. Reads charts from folders and archives, and has them downloaded.

use super::files::links_out;
use super::private_folder::write_in_project;
use crate::operator::deadline;
use crate::pull::{self, ChartRequest, Homes};
use crate::scaffold::{Action, ChartSource, Draft, PresentFile, ProjectFiles};
use crate::sources::time_limit::{TOO_LONG, TimeLimit};
use anyhow::{Context as _, Result, bail};
use opdev_helm::chart::{self, FileSet};
use opdev_object::lines;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// The present files below a root, which need not exist yet.
#[derive(Clone, Debug)]
pub struct OnDisk {
    root: PathBuf,
}

impl OnDisk {
    /// The files below a root.
    pub fn new(root: &Path) -> OnDisk {
        OnDisk { root: root.to_owned() }
    }
}

impl ProjectFiles for OnDisk {
    fn read(&self, path: &str) -> PresentFile {
        match std::fs::read(self.root.join(path)) {
            Ok(content) => PresentFile::Content(content),
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                // A link that leads nowhere is in the way, too.
                let there = self.root.join(path).symlink_metadata().is_ok();
                if there { PresentFile::Unreadable } else { PresentFile::Missing }
            }
            Err(_) => PresentFile::Unreadable,
        }
    }
}

/// The chart that a request names. A folder or an archive `.tgz` that is here wins over a repository of that name.
///
/// # Errors
/// What is wrong with the chart, or why it cannot be downloaded.
pub fn chart(request: &ChartRequest, here: &Path, homes: &Homes) -> Result<ChartSource> {
    let reference = &request.reference;
    let is_here = request.repository.is_empty() && here.join(reference).exists();
    if is_here {
        return local_chart(reference, here);
    }
    if request.repository.is_empty() && !pull::is_far(reference) {
        bail!(
            "path {reference:?} not found: --helm-chart takes a chart's folder or .tgz, its address, oci://HOST/PATH or \
             REPOSITORY/CHART; with --helm-chart-repo URL its name"
        );
    }
    let found = pull::download(request, homes)?;
    let files = chart::unpack(&found.archive).with_context(|| format!("the chart {reference}"))?;
    if files.get("Chart.yaml").is_none() {
        bail!("{reference} is not a chart: it has no Chart.yaml");
    }
    Ok(limited(ChartSource::load(reference, files, Vec::new())?))
}

/// A chart of a stranger may never end to render.
fn limited(chart: ChartSource) -> ChartSource {
    let ends = Instant::now() + deadline::LOAD;
    let limit = TimeLimit::new(move || (Instant::now() >= ends).then_some(TOO_LONG));
    ChartSource { limit, ..chart }
}

fn local_chart(reference: &str, here: &Path) -> Result<ChartSource> {
    let path = here.join(reference);
    let read = chart::read_dir(&path).with_context(|| format!("the chart {reference} cannot be read"))?;
    if read.get("Chart.yaml").is_none() {
        bail!("{reference} is not a chart: it has no Chart.yaml");
    }
    // A chart's folder is often a repository, and may become the project's folder.
    let mut files = FileSet::new();
    for (path, content) in read.iter().filter(|(path, _)| !is_of_tools(path)) {
        files.insert(path, content.clone());
    }
    let folder = path.canonicalize().with_context(|| format!("the chart {reference} cannot be opened"))?;
    let mut links = links_out(&folder, &folder, 0);
    links.retain(|(link, _)| {
        !is_of_tools(link) && files.iter().any(|(file, _)| Path::new(file).starts_with(link))
    });
    Ok(limited(ChartSource::load(reference, files, links)?))
}

/// Whether a path of a chart's folder belongs to git or to opdev.
fn is_of_tools(path: &str) -> bool {
    path.starts_with(".git/") || path.starts_with(".opdev/")
}

/// The difference between present and planned files, as `diff -u`; binary files are named only.
pub fn differences(root: &Path, draft: &Draft<'_>) -> String {
    let present = OnDisk::new(root);
    let mut out = String::new();
    for (path, file) in draft.files() {
        let (old_name, old) = match present.read(path) {
            PresentFile::Content(old) => (format!("a/{path}"), old),
            PresentFile::Missing | PresentFile::Unreadable => ("/dev/null".to_owned(), Vec::new()),
        };
        match (String::from_utf8(old), std::str::from_utf8(&file.content)) {
            (Ok(old), Ok(new)) => {
                out.extend(lines::unified(&old_name, &format!("b/{path}"), &old, new));
            }
            (Err(_), _) | (_, Err(_)) => out.push_str(&format!("Binary file {path}\n")),
        }
    }
    out
}

/// Refuses a draft that would take something from the user.
///
/// # Errors
/// Names the files whose content would be lost.
pub fn check(draft: &Draft<'_>) -> Result<()> {
    let conflicts = draft.conflicts();
    if conflicts.is_empty() {
        return Ok(());
    }
    let (these, them) =
        if conflicts.len() == 1 { ("this file is", "it") } else { ("these files are", "them") };
    bail!(
        "nothing was written, because {these} there with other content, or cannot be read as text:\n  {}\nMove {them} \
         away; --force replaces the ones that can be read",
        conflicts.join("\n  ")
    );
}

/// Writes all planned files, or none: where one cannot be written, those that were new are removed again and those that
/// were changed get their old content back. No link below the root is followed.
///
/// # Errors
/// Files whose content would be lost, and the first file that cannot be written.
pub fn write(root: &Path, draft: &Draft<'_>) -> Result<()> {
    check(draft)?;
    let mut undo = Undo { root, steps: Vec::new() };
    for (path, file) in draft.files() {
        match file.action {
            Action::Keep | Action::Conflict => {}
            Action::Create | Action::Update | Action::Replace => {
                undo.write(path, &file.content).context("nothing was changed")?;
            }
        }
    }
    undo.steps.clear();
    Ok(())
}

/// What was done so far; taken back when it is dropped with steps left.
struct Undo<'a> {
    root: &'a Path,
    steps: Vec<Step>,
}

enum Step {
    Folder(PathBuf),
    New(PathBuf),
    Changed(PathBuf, Vec<u8>),
}

impl Undo<'_> {
    fn write(&mut self, path: &str, content: &[u8]) -> Result<()> {
        let relative = Path::new(path);
        let target = self.root.join(relative);
        let missing = target.ancestors().skip(1).take_while(|one| one.symlink_metadata().is_err());
        let missing: Vec<PathBuf> = missing.map(Path::to_owned).collect();
        self.steps.extend(missing.into_iter().rev().map(Step::Folder));
        if self.root.symlink_metadata().is_err() {
            super::private_folder::make_folders(self.root)?;
        }
        let old = match OnDisk::new(self.root).read(path) {
            PresentFile::Content(old) => Some(old),
            PresentFile::Missing | PresentFile::Unreadable => None,
        };
        write_in_project(self.root, relative, content)?;
        self.steps.push(match old {
            Some(old) => Step::Changed(relative.to_owned(), old),
            None => Step::New(target),
        });
        Ok(())
    }
}

impl Drop for Undo<'_> {
    fn drop(&mut self) {
        while let Some(step) = self.steps.pop() {
            // The first error is the one that the user sees.
            let _ = match step {
                Step::Folder(path) => std::fs::remove_dir(path).map_err(Into::into),
                Step::New(path) => std::fs::remove_file(path).map_err(Into::into),
                Step::Changed(relative, old) => write_in_project(self.root, &relative, &old),
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scaffold::{InitOptions, Layout, init};
    use std::fs;

    fn options() -> InitOptions {
        InitOptions {
            domain: "my.domain".to_owned(),
            project_name: "cache-operator".to_owned(),
            layout: Layout::Chart,
            multigroup: false,
        }
    }

    fn names(root: &Path) -> Vec<String> {
        let mut found = Vec::new();
        let mut open = vec![root.to_owned()];
        while let Some(folder) = open.pop() {
            for entry in fs::read_dir(folder).unwrap().flatten() {
                if entry.path().is_dir() {
                    open.push(entry.path());
                }
                found.push(entry.path().strip_prefix(root).unwrap().display().to_string());
            }
        }
        found.sort();
        found
    }

    #[test]
    fn a_file_of_the_user_stops_all_of_it() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("config")).unwrap();
        fs::create_dir(folder.path().join("config/rbac")).unwrap();
        fs::write(folder.path().join("config/rbac/role.yaml"), "mine: true\n").unwrap();
        let before = names(folder.path());
        let disk = OnDisk::new(folder.path());
        let mut draft = Draft::new(&disk, false);
        init(&options(), &mut draft).unwrap();
        let error = write(folder.path(), &draft).unwrap_err().to_string();
        assert!(error.contains("\n  config/rbac/role.yaml\n") && error.contains("--force"), "{error}");
        assert_eq!(names(folder.path()), before);
    }

    #[test]
    fn a_write_that_fails_in_the_middle_leaves_what_was_there() {
        let folder = tempfile::tempdir().unwrap();
        // A file where a folder has to be: everything before it is written first.
        fs::create_dir(folder.path().join("config")).unwrap();
        fs::write(folder.path().join("config/rbac"), "a file").unwrap();
        fs::write(folder.path().join(".gitignore"), "mine\n").unwrap();
        let before = names(folder.path());
        let disk = OnDisk::new(folder.path());
        let mut draft = Draft::new(&disk, false);
        init(&options(), &mut draft).unwrap();
        assert!(write(folder.path(), &draft).is_err());
        assert_eq!(names(folder.path()), before);
        assert_eq!(fs::read_to_string(folder.path().join(".gitignore")).unwrap(), "mine\n");
    }

    /// A cloned project may bring a folder that is a link, such as `config/samples`.
    #[test]
    fn nothing_is_written_through_a_link_of_the_project() {
        let (folder, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::create_dir(folder.path().join("config")).unwrap();
        std::os::unix::fs::symlink(outside.path(), folder.path().join("config/samples")).unwrap();
        let before = names(folder.path());
        let disk = OnDisk::new(folder.path());
        let mut draft = Draft::new(&disk, true);
        init(&options(), &mut draft).unwrap();
        let error = format!("{:#}", write(folder.path(), &draft).unwrap_err());
        assert!(
            error.contains("config/samples is a link") && error.contains("nothing was changed"),
            "{error}"
        );
        assert_eq!(names(folder.path()), before);
        assert!(names(outside.path()).is_empty());
    }

    #[test]
    fn links_out_of_a_chart_are_told() {
        let (folder, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let target = outside.path().join("secret.yaml");
        fs::write(&target, "a: 1\n").unwrap();
        fs::write(folder.path().join("Chart.yaml"), "apiVersion: v2\nname: web\nversion: 0.1.0\n").unwrap();
        std::os::unix::fs::symlink(&target, folder.path().join("values.yaml")).unwrap();
        std::os::unix::fs::symlink("Chart.yaml", folder.path().join("inside.yaml")).unwrap();
        let links = local_chart(".", folder.path()).unwrap().links_out;
        let target = target.canonicalize().unwrap().display().to_string();
        assert_eq!(links, [("values.yaml".to_owned(), target)]);
    }

    #[test]
    fn a_chart_that_is_far_away_is_told_apart_from_a_wrong_path() {
        let folder = tempfile::tempdir().unwrap();
        let none = folder.path().join("none");
        let homes =
            Homes { repositories: none.clone(), cached_indexes: none.clone(), logins: vec![none.clone()] };
        let refused = |reference: &str| {
            let request = ChartRequest { reference: reference.to_owned(), ..ChartRequest::default() };
            chart(&request, folder.path(), &homes).unwrap_err().to_string()
        };
        let far = refused("stable/web");
        assert!(far.contains("repo stable not found") && far.contains("helm repo add"), "{far}");
        let wrong = refused("./nothing");
        assert!(wrong.contains("not found: --helm-chart"), "{wrong}");
        let none = refused(".");
        assert!(none.contains("no Chart.yaml"), "{none}");
    }
}
