//! Writes what `scaffold` plans: all files or none. Finds the folder of a new project, and reads charts from folders and
//! archives.

use crate::scaffold::{Action, ChartSource, Draft, ProjectFiles};
use anyhow::{Context as _, Result, bail};
use opdev_helm::chart::{self, FileSet};
use opdev_object::lines;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// The present files below a root.
#[derive(Clone, Debug)]
pub struct OnDisk {
    root: PathBuf,
}

impl OnDisk {
    /// The files below a root, which need not exist yet.
    pub fn new(root: &Path) -> OnDisk {
        OnDisk { root: root.to_owned() }
    }
}

impl ProjectFiles for OnDisk {
    fn read(&self, path: &str) -> Option<Vec<u8>> {
        let path = self.root.join(path);
        match std::fs::read(&path) {
            Ok(content) => Some(content),
            // What cannot be read is there all the same: nothing may be written over it.
            Err(_) if path.symlink_metadata().is_ok() => Some(Vec::new()),
            Err(_) => None,
        }
    }
}

/// The chart that a reference names: a folder, or an archive `.tgz`.
///
/// # Errors
/// What is wrong with the chart, or that the reference is of a kind that cannot be read yet.
pub fn chart(reference: &str, here: &Path) -> Result<ChartSource> {
    let path = here.join(reference);
    if !path.exists() {
        let remote = reference.contains("://")
            || (reference.split('/').count() == 2 && !reference.starts_with(['.', '/', '~']));
        if remote {
            bail!(
                "{reference} is not a folder or an archive here, and opdev does not download charts yet: `helm pull` it and \
                 name the .tgz"
            );
        }
        bail!("path {reference:?} not found: --helm-chart takes the folder or the .tgz of a chart");
    }
    let files = chart::read_dir(&path).with_context(|| format!("the chart {reference} cannot be read"))?;
    if files.get("Chart.yaml").is_none() {
        bail!("{reference} is not a chart: it has no Chart.yaml");
    }
    // A chart's folder is often a repository, and may become the project's folder.
    let mut kept = FileSet::new();
    for (path, content) in files.iter() {
        if !path.starts_with(".git/") && !path.starts_with(".opdev/") {
            kept.insert(path, content.clone());
        }
    }
    let files = kept;
    Ok(ChartSource { reference: reference.to_owned(), files })
}

/// The difference between present and planned files, as `diff -u`; binary files are named only.
pub fn differences(root: &Path, draft: &Draft<'_>) -> String {
    let present = OnDisk::new(root);
    let mut out = String::new();
    for (path, file) in draft.files() {
        let (old_name, old) = match present.read(path) {
            Some(old) => (format!("a/{path}"), old),
            None => ("/dev/null".to_owned(), Vec::new()),
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

/// Writes all planned files, or none: where one cannot be written, those that were new are removed again and those that
/// were changed get their old content back.
///
/// # Errors
/// Files whose content would be lost, and the first file that cannot be written.
pub fn write(root: &Path, draft: &Draft<'_>) -> Result<()> {
    let conflicts = draft.conflicts();
    if !conflicts.is_empty() {
        bail!(
            "nothing was written, because {} with other content:\n  {}\nMove {} away, or give --force to replace {}",
            if conflicts.len() == 1 { "this file exists" } else { "these files exist" },
            conflicts.join("\n  "),
            if conflicts.len() == 1 { "it" } else { "them" },
            if conflicts.len() == 1 { "it" } else { "them" },
        );
    }
    let mut undo = Undo { root: root.to_owned(), steps: Vec::new() };
    for (path, file) in draft.files() {
        match file.action {
            Action::Keep | Action::Conflict => {}
            Action::Create | Action::Update | Action::Replace => undo.write(path, &file.content)?,
        }
    }
    undo.steps.clear();
    Ok(())
}

/// What was done so far; taken back when it is dropped with steps left.
struct Undo {
    root: PathBuf,
    steps: Vec<Step>,
}

enum Step {
    Folder(PathBuf),
    New(PathBuf),
    Changed(PathBuf, Vec<u8>),
}

impl Undo {
    fn write(&mut self, path: &str, content: &[u8]) -> Result<()> {
        let target = self.root.join(path);
        let folder = target.parent().unwrap_or(&self.root).to_owned();
        self.make_folder(&folder)?;
        let old = std::fs::read(&target).ok();
        let mut temporary = tempfile_in(&folder)?;
        let written = temporary.file.write_all(content).and_then(|()| temporary.file.sync_data());
        written
            .and_then(|()| std::fs::rename(&temporary.path, &target))
            .with_context(|| format!("{} cannot be written; nothing was changed", target.display()))?;
        temporary.kept = true;
        self.steps.push(match old {
            Some(old) => Step::Changed(target, old),
            None => Step::New(target),
        });
        Ok(())
    }

    fn make_folder(&mut self, folder: &Path) -> Result<()> {
        let missing: Vec<&Path> = folder.ancestors().take_while(|one| !one.exists()).collect();
        for one in missing.into_iter().rev() {
            std::fs::create_dir(one).with_context(|| {
                format!("the folder {} cannot be created; nothing was changed", one.display())
            })?;
            self.steps.push(Step::Folder(one.to_owned()));
        }
        Ok(())
    }
}

impl Drop for Undo {
    fn drop(&mut self) {
        while let Some(step) = self.steps.pop() {
            // The first error is the one that the user sees.
            let _ = match step {
                Step::Folder(path) => std::fs::remove_dir(path),
                Step::New(path) => std::fs::remove_file(path),
                Step::Changed(path, old) => std::fs::write(path, old),
            };
        }
    }
}

/// A new file beside its target, removed unless it is renamed.
struct Temporary {
    file: std::fs::File,
    path: PathBuf,
    kept: bool,
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if !self.kept {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

fn tempfile_in(folder: &Path) -> Result<Temporary> {
    let mut random = [0; 8];
    getrandom::fill(&mut random).map_err(|error| anyhow::anyhow!("no randomness: {error}"))?;
    let name = random.iter().fold(".opdev-new-".to_owned(), |name, byte| format!("{name}{byte:02x}"));
    let path = folder.join(name);
    let file = std::fs::File::options()
        .write(true)
        .create_new(true)
        .open(&path)
        .with_context(|| format!("{} cannot be written; nothing was changed", folder.display()))?;
    Ok(Temporary { file, path, kept: false })
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

    #[test]
    fn a_chart_that_is_far_away_is_told_apart_from_a_wrong_path() {
        let folder = tempfile::tempdir().unwrap();
        let far = chart("oci://example.com/a/b", folder.path()).unwrap_err().to_string();
        assert!(far.contains("helm pull"), "{far}");
        let wrong = chart("./nothing", folder.path()).unwrap_err().to_string();
        assert!(wrong.contains("not found"), "{wrong}");
        let none = chart(".", folder.path()).unwrap_err().to_string();
        assert!(none.contains("no Chart.yaml"), "{none}");
    }
}
