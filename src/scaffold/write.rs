//! Writes what the rest of the room plans: all files or none. Reads charts from folders and archives, and has
//! them downloaded.

use super::unfinished;
use crate::{Action, ChartSource, Draft, PlannedFile, PresentFile, ProjectFiles};
use anyhow::{Context as _, Result, bail};
use opdev_helm::chart::{self, FileSet};
use opdev_object::lines;
use opdev_os::private_folder::write_in_project;
use opdev_os::read;
use opdev_os::small_file::small_file;
use opdev_project::files::links_out;
use opdev_pull::{ChartRequest, Homes};
use opdev_sources::deadline;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

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
        // A file behind a link is not the project's: parts of it would be written into new files.
        let relative = Path::new(path);
        let above = relative.ancestors().skip(1).filter(|above| !above.as_os_str().is_empty());
        let is_link = |part: &Path| {
            self.root.join(part).symlink_metadata().is_ok_and(|about| about.file_type().is_symlink())
        };
        if above.into_iter().any(is_link) {
            // Whoever writes there is told of the link.
            return PresentFile::Missing;
        }
        let full = self.root.join(relative);
        match full.symlink_metadata() {
            Ok(about) if about.is_file() => {
                small_file(&full).map_or(PresentFile::Unreadable, PresentFile::Content)
            }
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                PresentFile::Missing
            }
            Ok(_) | Err(_) => PresentFile::Unreadable,
        }
    }

    fn list(&self, folder: &str) -> Vec<String> {
        let entries = read::entries(self.root.join(folder)).into_iter().flatten();
        let plain =
            |entry: &std::fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_file() || kind.is_dir());
        let names = entries.filter(plain).filter_map(|entry| entry.file_name().into_string().ok());
        names.collect()
    }
}

/// The chart that a request names. A folder or an archive `.tgz` that is here wins over a repository of that
/// name. `say` is told what a download has to say.
///
/// # Errors
/// What is wrong with the chart, or why it cannot be downloaded.
pub fn chart(
    request: &ChartRequest,
    here: &Path,
    homes: &Homes,
    say: &mut dyn FnMut(&str),
) -> Result<ChartSource> {
    let reference = &request.reference;
    let is_here = request.repository.is_empty() && here.join(reference).exists();
    if is_here {
        return local_chart(reference, here);
    }
    if request.repository.is_empty() && !opdev_pull::is_far(reference) {
        bail!(
            "path {reference:?} not found: --helm-chart takes a chart's folder or .tgz, its address, oci://HOST/PATH or \
             REPOSITORY/CHART; with --helm-chart-repo URL its name"
        );
    }
    let found = opdev_pull::download(request, homes, say)?;
    let files = chart::unpack(&found.archive).with_context(|| format!("the chart {reference}"))?;
    if files.get("Chart.yaml").is_none() {
        bail!("{reference} is not a chart: it has no Chart.yaml");
    }
    Ok(limited(ChartSource::load(reference, files, Vec::new())?))
}

/// A chart of a stranger may never end to render.
fn limited(chart: ChartSource) -> ChartSource {
    ChartSource { limit: deadline::of(deadline::LOAD), ..chart }
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
    let mut links = links_out(&folder, &folder);
    links.retain(|(link, _)| {
        !is_of_tools(link) && files.iter().any(|(file, _)| Path::new(file).starts_with(link))
    });
    Ok(limited(ChartSource::load(reference, files, links)?))
}

/// Returns true if a path of a chart's folder belongs to git or to opdev.
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

/// Writes all planned files, or none: where one cannot be written, those that were new are removed again and
/// those that were changed get their old content back. Where opdev is killed,
/// [`take_back`](super::unfinished::take_back) does that later. No link below the root is followed.
///
/// # Errors
/// Files whose content would be lost, and the first file that cannot be written.
pub fn write(root: &Path, draft: &Draft<'_>) -> Result<()> {
    write_while(root, draft, &mut || true)
}

/// As `write`; `lives` is asked before each change of the disk, and where it says no, all ends there as if by
/// a kill.
fn write_while(root: &Path, draft: &Draft<'_>, lives: &mut dyn FnMut() -> bool) -> Result<()> {
    check(draft)?;
    let changes = |file: &PlannedFile| match file.action {
        Action::Keep | Action::Conflict => false,
        Action::Create | Action::Update | Action::Replace => true,
    };
    let files: Vec<(&str, &PlannedFile)> = draft
        .files()
        .iter()
        .filter(|(_, file)| changes(file))
        .map(|(path, file)| (path.as_str(), file))
        .collect();
    if files.is_empty() || !lives() {
        return Ok(());
    }
    let mut undo = Undo { root, steps: Vec::new() };
    undo.make_root()?;
    unfinished::note(root, &OnDisk::new(root), &files).context("nothing was changed")?;
    undo.steps.push(Step::Note);
    for (path, file) in files {
        if !lives() {
            std::mem::forget(undo);
            return Ok(());
        }
        undo.write(path, &file.content).context("nothing was changed")?;
    }
    if !lives() {
        std::mem::forget(undo);
        return Ok(());
    }
    unfinished::done(root)?;
    undo.steps.clear();
    Ok(())
}

/// The steps so far; taken back when it is dropped with steps left.
struct Undo<'a> {
    root: &'a Path,
    steps: Vec<Step>,
}

enum Step {
    /// The note of what is written: it goes after all that it names is taken back.
    Note,
    Folder(PathBuf),
    New(PathBuf),
    Changed(PathBuf, Vec<u8>),
}

impl Undo<'_> {
    fn make_root(&mut self) -> Result<()> {
        let missing = self.root.ancestors().take_while(|one| one.symlink_metadata().is_err());
        let missing: Vec<PathBuf> = missing.map(Path::to_owned).collect();
        if missing.is_empty() {
            return Ok(());
        }
        self.steps.extend(missing.into_iter().rev().map(Step::Folder));
        opdev_os::private_folder::make_folders(self.root)
    }

    fn write(&mut self, path: &str, content: &[u8]) -> Result<()> {
        let relative = Path::new(path);
        let target = self.root.join(relative);
        let missing = target.ancestors().skip(1).take_while(|one| one.symlink_metadata().is_err());
        let missing: Vec<PathBuf> = missing.map(Path::to_owned).collect();
        self.steps.extend(missing.into_iter().rev().map(Step::Folder));
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
                Step::Note => unfinished::done(self.root),
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
    use crate::{InitOptions, Layout, init};
    use expect_test::expect;
    use std::fs;

    fn options() -> InitOptions {
        InitOptions {
            domain: "my.domain".to_owned(),
            project_name: "cache-operator".to_owned(),
            layout: Layout::Chart,
            multigroup: false,
            repo: String::new(),
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

    fn contents(root: &Path) -> std::collections::BTreeMap<String, Vec<u8>> {
        let all = names(root).into_iter().filter(|name| root.join(name).is_file());
        all.map(|name| (name.clone(), fs::read(root.join(&name)).unwrap())).collect()
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
        expect![[r#"
            nothing was written, because this file is there with other content, or cannot be read as text:
              config/rbac/role.yaml
            Move it away; --force replaces the ones that can be read"#]]
        .assert_eq(&error);
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

    /// The change of an API: new files, new folders, and files that grow.
    fn grow<'a>(disk: &'a OnDisk) -> Draft<'a> {
        let mut draft = Draft::new(disk, false);
        init(&options(), &mut draft).unwrap();
        draft
    }

    #[test]
    fn killed_between_any_two_writes_it_is_as_before_or_done() {
        let whole = tempfile::tempdir().unwrap();
        write(whole.path(), &grow(&OnDisk::new(whole.path()))).unwrap();
        let after = contents(whole.path());
        let writes = after.len();
        assert!(writes > 20);
        for killed in 0..=writes + 1 {
            let folder = tempfile::tempdir().unwrap();
            let root = folder.path();
            fs::create_dir(root.join("config")).unwrap();
            fs::write(root.join("config/mine.yaml"), "mine\n").unwrap();
            let before = (names(root), contents(root));
            let disk = OnDisk::new(root);
            let mut left = killed;
            write_while(root, &grow(&disk), &mut || {
                left = left.wrapping_sub(1);
                left != usize::MAX
            })
            .unwrap();
            // The part that a write leaves if it is killed before its rename; also that of the note.
            if killed == 0 {
                fs::write(root.join("..opdev-unfinished.json.0123456789abcdef"), "half").unwrap();
                write(root, &grow(&disk)).unwrap();
                assert!(!root.join("..opdev-unfinished.json.0123456789abcdef").exists());
                continue;
            }
            if killed > 1 && killed <= writes {
                fs::write(root.join(".PROJECT.0123456789abcdef"), "half").unwrap();
            }
            let taken = unfinished::take_back(root, &disk).unwrap();
            assert_eq!(taken.is_some(), killed > 0, "{killed}");
            if let Some(taken) = taken {
                assert_eq!((taken.files, taken.kept.len()), (killed - 1, 0), "{killed}");
            }
            assert_eq!((names(root), contents(root)), before, "{killed}");
            // And then it goes through.
            write(root, &grow(&disk)).unwrap();
            let mut now = contents(root);
            now.remove("config/mine.yaml");
            assert_eq!(now, after, "{killed}");
        }
    }

    #[test]
    fn what_was_changed_after_a_kill_stays() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        fs::write(root.join("a.txt"), "old\n").unwrap();
        fs::write(root.join("b.txt"), "old\n").unwrap();
        let disk = OnDisk::new(root);
        let planned = |text: &str| PlannedFile { content: text.into(), action: Action::Update };
        let (a, b, c) = (planned("new\n"), planned("new\n"), planned("new\n"));
        unfinished::note(root, &disk, &[("a.txt", &a), ("b.txt", &b), ("c/c.txt", &c)]).unwrap();
        fs::write(root.join("a.txt"), "new\n").unwrap();
        fs::write(root.join("b.txt"), "mine\n").unwrap();
        fs::create_dir(root.join("c")).unwrap();
        fs::write(root.join("c/c.txt"), "mine too\n").unwrap();
        let taken = unfinished::take_back(root, &disk).unwrap().unwrap();
        assert_eq!((taken.files, taken.kept), (1, vec!["c/c.txt".to_owned(), "b.txt".to_owned()]));
        let read = |path: &str| fs::read_to_string(root.join(path)).unwrap();
        assert_eq!(
            (read("a.txt"), read("b.txt"), read("c/c.txt")),
            ("old\n".into(), "mine\n".into(), "mine too\n".into())
        );
        assert!(unfinished::take_back(root, &disk).unwrap().is_none());
    }

    #[test]
    fn a_note_of_a_stranger_reaches_nothing_outside() {
        let (folder, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let root = folder.path();
        let victim = outside.path().join("victim");
        fs::write(&victim, "").unwrap();
        std::os::unix::fs::symlink(outside.path(), root.join("link")).unwrap();
        // The digest of an empty file.
        let sha = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        fs::create_dir(root.join(".git")).unwrap();
        fs::write(root.join(".git/config"), "").unwrap();
        fs::write(root.join("mine"), "").unwrap();
        for path in [
            "../victim",
            "link/victim",
            &victim.display().to_string(),
            ".git/config",
            "sub/.GIT/config",
            ".opdev/trust",
        ] {
            let note = format!(
                r#"{{"about":"","folders":[],"files":[{{"path":"{path}","sha256":"{sha}"}},{{"path":"mine","sha256":"{sha}"}}]}}"#
            );
            fs::write(root.join(".opdev-unfinished.json"), note).unwrap();
            let error = unfinished::take_back(root, &OnDisk::new(root)).unwrap_err().to_string();
            assert!(error.contains("which no command of opdev's writes"), "{error}");
            assert!(victim.is_file() && root.join(".git/config").is_file(), "{path}");
            assert!(root.join("mine").is_file(), "all of the note is looked at first");
        }
    }

    /// A file behind a link must not be copied into files that are committed, and no read may hang.
    #[test]
    fn only_plain_files_of_the_project_are_read() {
        let (folder, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::write(outside.path().join("key"), "secret").unwrap();
        let link = |from: &Path, to: &str| std::os::unix::fs::symlink(from, folder.path().join(to)).unwrap();
        link(&outside.path().join("key"), "head.txt");
        link(outside.path(), "hack");
        link(Path::new("/dev/zero"), "PROJECT");
        fs::write(folder.path().join("plain"), "text").unwrap();
        let pipe = std::process::Command::new("mkfifo").arg(folder.path().join("pipe.go")).status().unwrap();
        assert!(pipe.success());
        let disk = OnDisk::new(folder.path());
        for path in ["head.txt", "PROJECT", "pipe.go"] {
            assert!(matches!(disk.read(path), PresentFile::Unreadable), "{path}");
        }
        assert!(matches!(disk.read("plain"), PresentFile::Content(_)));
        for path in ["none/at/all", "hack/key"] {
            assert!(matches!(disk.read(path), PresentFile::Missing), "{path}");
        }
        assert_eq!(disk.list(""), ["plain"]);
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
        expect![[r#"
            nothing was changed: config/samples is a link or a file, and opdev writes through no link
              to do: put a folder in its place, or name another folder"#]]
        .assert_eq(&error);
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
        // Links in a circle end.
        std::os::unix::fs::symlink(".", folder.path().join("again")).unwrap();
        assert_eq!(links_out(folder.path(), folder.path()).len(), 1);
    }

    #[test]
    fn a_chart_that_is_far_away_is_told_apart_from_a_wrong_path() {
        let folder = tempfile::tempdir().unwrap();
        let none = folder.path().join("none");
        let homes =
            Homes { repositories: none.clone(), cached_indexes: none.clone(), logins: vec![none.clone()] };
        let refused = |reference: &str| {
            let request = ChartRequest { reference: reference.to_owned(), ..ChartRequest::default() };
            chart(&request, folder.path(), &homes, &mut |_| {}).unwrap_err().to_string()
        };
        let far = refused("stable/web");
        assert!(far.contains("repo stable not found") && far.contains("helm repo add"), "{far}");
        let wrong = refused("./nothing");
        expect![[r#"path "./nothing" not found: --helm-chart takes a chart's folder or .tgz, its address, oci://HOST/PATH or REPOSITORY/CHART; with --helm-chart-repo URL its name"#]]
        .assert_eq(&wrong);
        let none = refused(".");
        expect![". is not a chart: it has no Chart.yaml"].assert_eq(&none);
    }
}
