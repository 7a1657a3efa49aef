//! Reads a version of the project from git into a folder outside of it. Writes neither into the project nor
//! into its repository: no worktree is registered, no index is touched, no hook runs. Never fetches.

use anyhow::{Context as _, Result, bail};
use opdev_event::shell;
use opdev_os::private_folder::{PrivateFolder, make_folders};
use opdev_os::read;
use rustix::fs::{AtFlags, Timespec, Timestamps, UTIME_NOW};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::SystemTime;

/// Checkouts that are kept for the next rehearsal, beside the newest one.
const KEPT: usize = 8;
/// The moment that the kernel puts in.
const NOW: Timespec = Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
/// How the name of a folder begins that is not complete.
const UNFINISHED: &str = "unfinished-";

/// The repository that a project is in.
#[derive(Clone, Debug)]
pub struct Git {
    /// The folder at its top.
    top: PathBuf,
    /// The project's folder below that.
    below: PathBuf,
}

/// A commit, and how the user calls it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Revision {
    /// A tag, a branch or what was typed.
    pub name: String,
    /// The commit.
    pub commit: String,
}

/// The folder for checkouts: outside of all projects.
///
/// # Errors
/// Where the user has no home.
pub fn cache_folder() -> Result<PathBuf> {
    let named = std::env::var_os("XDG_CACHE_HOME").filter(|value| !value.is_empty()).map(PathBuf::from);
    let home = || Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache"));
    let cache =
        named.or_else(home).context("no folder for checkouts: neither XDG_CACHE_HOME nor HOME is set")?;
    Ok(cache.join("opdev").join("upgrade"))
}

impl Git {
    /// The repository of the project at `root`.
    ///
    /// # Errors
    /// Where there is none, or git is missing.
    pub fn of(root: &Path) -> Result<Git> {
        let top = run(root, &["rev-parse", "--show-toplevel"]).with_context(|| {
            format!(
                "{} is in no git repository, so that no earlier version is known\n  to do: name the folder of an \
                 earlier version with --from DIR",
                root.display()
            )
        })?;
        let top = PathBuf::from(top);
        let below = root.strip_prefix(&top).map(Path::to_owned);
        let below = below.with_context(|| format!("{} is not below {}", root.display(), top.display()))?;
        Ok(Git { top, below })
    }

    /// The commit that a name stands for.
    ///
    /// # Errors
    /// Where the repository knows no such commit.
    pub fn revision(&self, name: &str) -> Result<Revision> {
        if name.starts_with('-') {
            bail!("{name} is no revision");
        }
        let commit = run(&self.top, &["rev-parse", "--verify", "--quiet", &format!("{name}^{{commit}}")]);
        let commit = commit.with_context(|| {
            let tags = self.tags().unwrap_or_default();
            let known = match tags.as_slice() {
                [] => "it has no tag".to_owned(),
                some => format!(
                    "its newest tags are {}",
                    some.iter().take(5).cloned().collect::<Vec<_>>().join(", ")
                ),
            };
            format!(
                "git knows no commit {name}: {known}\n  to do: name a tag, a commit or a folder with --from"
            )
        })?;
        Ok(Revision { name: name.to_owned(), commit })
    }

    /// The newest tag that the working tree comes from.
    ///
    /// # Errors
    /// Where there is none.
    pub fn newest_tag(&self) -> Result<Revision> {
        let tag = run(&self.top, &["describe", "--tags", "--abbrev=0", "HEAD"]);
        let tag = tag.map_err(|_| {
            anyhow::anyhow!(
                "no tag leads to HEAD, so that it is not known which version users have\n  to do: name it with --from REF, \
                 such as --from HEAD~1, or fetch the tags with `git fetch --tags`"
            )
        })?;
        self.revision(&tag)
    }

    /// All tags that lead to HEAD, the newest first.
    ///
    /// # Errors
    /// Where git cannot tell.
    pub fn tags(&self) -> Result<Vec<String>> {
        // Tags of one second are told apart by their versions.
        let by = ["--sort=-version:refname", "--sort=-creatordate"];
        let tags = run(&self.top, &["tag", "--merged", "HEAD", by[0], by[1]])?;
        Ok(tags.lines().map(str::to_owned).collect())
    }

    /// The tags between two commits, the oldest first; neither of the two is among them. Without a second one
    /// it is the working tree, before which a tag of HEAD lies.
    ///
    /// # Errors
    /// Where git cannot tell.
    pub fn tags_between(&self, from: &Revision, to: Option<&str>) -> Result<Vec<Revision>> {
        let merged = to.unwrap_or("HEAD");
        let by = ["--sort=version:refname", "--sort=creatordate"];
        let mut words = vec!["tag", "--contains", &from.commit, "--merged", merged, by[0], by[1]];
        let no = format!("--no-contains={merged}");
        if to.is_some() {
            words.push(&no);
        }
        let tags = run(&self.top, &words)?;
        let all = tags.lines().map(|tag| self.revision(tag)).collect::<Result<Vec<_>>>()?;
        Ok(all.into_iter().filter(|one| one.commit != from.commit).collect())
    }

    /// How many files of the project differ from the commit that is checked out.
    pub fn changed_files(&self) -> usize {
        let folder = if self.below.as_os_str().is_empty() { Path::new(".") } else { &self.below };
        let folder = folder.display().to_string();
        let mut status = command_on_files(&self.top, &["status", "--porcelain", "--", &folder]);
        finish(&mut status, "status").map_or(0, |text| text.lines().count())
    }

    /// Reads a commit into a folder of its own below `cache`, where it is not there yet; the answer is the
    /// project's folder in it.
    ///
    /// # Errors
    /// Where git cannot read it, or the project was somewhere else then.
    pub fn check_out(&self, revision: &Revision, cache: &Path) -> Result<PathBuf> {
        let parent = cache.parent().with_context(|| format!("{} is no folder", cache.display()))?;
        make_folders(parent)?;
        PrivateFolder::make(cache)?;
        sweep(cache);
        let folder = cache.join(&revision.commit);
        if !folder.is_dir() {
            self.read_into(revision, cache, &folder)?;
        }
        // The one that was used last is kept longest.
        let now = Timestamps { last_access: NOW, last_modification: NOW };
        let _ = rustix::fs::utimensat(rustix::fs::CWD, &folder, &now, AtFlags::empty());
        forget_oldest(cache, &folder);
        let project = folder.join(&self.below);
        if !project.is_dir() {
            bail!(
                "{} has no folder {}\n  to do: where the project has moved, name its folder of that time with --from DIR",
                revision.name,
                self.below.display()
            );
        }
        Ok(project)
    }

    fn read_into(&self, revision: &Revision, cache: &Path, folder: &Path) -> Result<()> {
        let prefix = format!("{UNFINISHED}{}-", std::process::id());
        let making = tempfile::Builder::new().prefix(&prefix).tempdir_in(cache)?;
        let index = making.path().join("index");
        let files = making.path().join("files");
        PrivateFolder::make(&files)?;
        let to = format!("--prefix={}/", files.display());
        let mut read = command(&self.top, &["read-tree", &revision.commit]);
        finish(read.env("GIT_INDEX_FILE", &index), "read-tree")?;
        let mut write = command_on_files(&self.top, &["checkout-index", "--all", "--quiet", &to]);
        finish(write.env("GIT_INDEX_FILE", &index), "checkout-index")
            .with_context(|| format!("{} cannot be read from git", revision.name))?;
        match fs::rename(&files, folder) {
            // Another opdev was faster.
            Err(_) if folder.is_dir() => Ok(()),
            done => done.with_context(|| format!("{} cannot be written", folder.display())),
        }
    }
}

/// Removes what an opdev has left that was killed in the middle.
fn sweep(cache: &Path) {
    for (name, path) in entries(cache) {
        let Some(rest) = name.strip_prefix(UNFINISHED) else { continue };
        let pid = rest.split('-').next().and_then(|pid| pid.parse::<i32>().ok());
        let lives = pid
            .and_then(rustix::process::Pid::from_raw)
            .is_some_and(|pid| rustix::process::test_kill_process(pid) != Err(rustix::io::Errno::SRCH));
        if !lives {
            let _ = fs::remove_dir_all(path);
        }
    }
}

/// Removes the checkouts that were used longest ago.
fn forget_oldest(cache: &Path, newest: &Path) {
    let checkout = |(name, path): (String, PathBuf)| {
        let used = fs::metadata(&path).and_then(|about| about.modified()).ok()?;
        (!name.starts_with(UNFINISHED) && path != newest).then_some((used, path))
    };
    let mut all: Vec<(SystemTime, PathBuf)> = entries(cache).into_iter().filter_map(checkout).collect();
    all.sort();
    let surplus = all.len().saturating_sub(KEPT);
    for (_, path) in all.into_iter().take(surplus) {
        let _ = fs::remove_dir_all(path);
    }
}

fn entries(folder: &Path) -> Vec<(String, PathBuf)> {
    let all = read::entries(folder).unwrap_or_default();
    all.into_iter().map(|entry| (entry.file_name().to_string_lossy().into_owned(), entry.path())).collect()
}

/// A call of git that runs no hook and writes nothing that it need not.
fn command(folder: &Path, args: &[&str]) -> Command {
    let mut command = Command::new("git");
    command.args(["--no-optional-locks", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null"]);
    command.args(args).current_dir(folder).stdin(Stdio::null());
    for name in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX"] {
        command.env_remove(name);
    }
    // A partial clone would fetch what is missing, by a program that its configuration names.
    command.env("GIT_ALLOW_PROTOCOL", "none").env("GIT_NO_LAZY_FETCH", "1");
    command
}

/// A call of git that reads or writes files of a working tree. Filters that the repository's own
/// configuration names are programs, and a repository may come from anybody: they are not started. Those of
/// the user's own configuration are.
fn command_on_files(folder: &Path, args: &[&str]) -> Command {
    let mut command = command(folder, args);
    let listed = run(folder, &["config", "--list", "--includes", "--show-scope", "--name-only", "-z"]);
    let listed = listed.unwrap_or_default();
    let mut words = listed.split('\0');
    let mut count = 0;
    while let (Some(scope), Some(key)) = (words.next(), words.next()) {
        let is_theirs = matches!(scope, "local" | "worktree");
        if !is_theirs || !key.starts_with("filter.") {
            continue;
        }
        let value = if key.ends_with(".required") { "false" } else { "" };
        command.env(format!("GIT_CONFIG_KEY_{count}"), key).env(format!("GIT_CONFIG_VALUE_{count}"), value);
        count += 1;
    }
    command.env("GIT_CONFIG_COUNT", count.to_string());
    command
}

fn run(folder: &Path, args: &[&str]) -> Result<String> {
    finish(&mut command(folder, args), args.first().copied().unwrap_or_default())
}

fn finish(command: &mut Command, name: &str) -> Result<String> {
    let output = command.output().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => anyhow::anyhow!("git is not installed; --from DIR needs none"),
        _ => anyhow::anyhow!("git cannot be started: {error}"),
    })?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        bail!("git {}: {}", shell::word(name), if said.is_empty() { "it failed" } else { &said });
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    fn git(root: &Path, args: &[&str]) {
        let mut all =
            vec!["-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false"];
        all.extend(args);
        let done = Command::new("git").args(all).current_dir(root).output().unwrap();
        assert!(done.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&done.stderr));
    }

    fn listed(root: &Path) -> Vec<String> {
        let mut names: Vec<String> = entries(root).into_iter().map(|(name, _)| name).collect();
        names.sort();
        names
    }

    #[test]
    fn a_version_is_read_without_touching_the_project() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap().join("repository");
        fs::create_dir_all(root.join("operator")).unwrap();
        git(&root, &["init", "-q"]);
        fs::write(root.join("operator/a.yaml"), "old").unwrap();
        git(&root, &["add", "."]);
        git(&root, &["commit", "-qm", "one"]);
        expect![[r#"
            no tag leads to HEAD, so that it is not known which version users have
              to do: name it with --from REF, such as --from HEAD~1, or fetch the tags with `git fetch --tags`"#]]
        .assert_eq(&Git::of(&root).unwrap().newest_tag().unwrap_err().to_string());
        git(&root, &["tag", "v1"]);
        fs::write(root.join("operator/a.yaml"), "new").unwrap();
        git(&root, &["commit", "-qam", "two"]);
        git(&root, &["tag", "v1.1"]);
        git(&root, &["commit", "-qm", "three", "--allow-empty"]);
        fs::write(root.join("operator/a.yaml"), "dirty").unwrap();
        let before = (listed(&root.join(".git")), fs::read(root.join(".git/index")).unwrap());
        let repository = Git::of(&root.join("operator")).unwrap();
        assert_eq!(repository.newest_tag().unwrap().name, "v1.1");
        let old = repository.revision("v1").unwrap();
        let between = repository.tags_between(&old, Some("HEAD")).unwrap();
        assert_eq!(between.iter().map(|one| one.name.as_str()).collect::<Vec<_>>(), ["v1.1"]);
        assert_eq!(repository.changed_files(), 1);
        let cache = folder.path().join("cache");
        let project = repository.check_out(&old, &cache).unwrap();
        assert_eq!(fs::read_to_string(project.join("a.yaml")).unwrap(), "old");
        assert_eq!(repository.check_out(&old, &cache).unwrap(), project, "the second time it is there");
        let after = (listed(&root.join(".git")), fs::read(root.join(".git/index")).unwrap());
        assert_eq!(before, after, "the repository is as it was");
        assert_eq!(fs::read_to_string(root.join("operator/a.yaml")).unwrap(), "dirty");
        let missing = repository.revision("v9").unwrap_err();
        assert!(format!("{missing:#}").contains("its newest tags are v1"), "{missing:#}");
        assert!(repository.revision("--all").is_err());
    }

    /// A repository that came as an archive brings its configuration along, and a filter in it is a program.
    #[test]
    fn filters_of_the_repositorys_own_configuration_do_not_run() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap().join("repository");
        fs::create_dir_all(&root).unwrap();
        git(&root, &["init", "-q"]);
        fs::write(root.join("a.yaml"), "old").unwrap();
        fs::write(root.join(".gitattributes"), "*.yaml filter=theirs\n").unwrap();
        git(&root, &["add", "."]);
        git(&root, &["commit", "-qm", "one"]);
        let ran = root.join("ran");
        for key in ["smudge", "clean", "process"] {
            let (name, program) = (format!("filter.theirs.{key}"), format!("touch {}; cat", ran.display()));
            git(&root, &["config", &name, &program]);
        }
        git(&root, &["config", "filter.theirs.required", "true"]);
        // Its times differ from those of the index: git has to read it.
        fs::write(root.join("a.yaml"), "new").unwrap();
        let repository = Git::of(&root).unwrap();
        assert_eq!(repository.changed_files(), 1);
        let revision = repository.revision("HEAD").unwrap();
        let cache = folder.path().join("cache").join("upgrade");
        let project = repository.check_out(&revision, &cache).unwrap();
        assert_eq!(fs::read_to_string(project.join("a.yaml")).unwrap(), "old");
        assert!(!ran.exists(), "a filter of the repository has run");
    }

    #[test]
    fn a_partial_clone_fetches_nothing_by_a_program_of_its_own_configuration() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        git(&root, &["init", "-q"]);
        git(&root, &["commit", "-q", "--allow-empty", "-m", "one"]);
        git(&root, &["tag", "v1"]);
        let said = |args: &[&str]| {
            let done = Command::new("git").args(args).current_dir(&root).output().unwrap();
            String::from_utf8(done.stdout).unwrap().trim().to_owned()
        };
        // A tag whose commit is not there.
        let missing = said(&["rev-parse", "v1"]);
        git(&root, &["commit", "-q", "--allow-empty", "--amend", "-m", "two"]);
        fs::remove_file(root.join(".git/objects").join(&missing[..2]).join(&missing[2..])).unwrap();
        let ran = root.join("ran");
        for (name, value) in [
            ("core.repositoryformatversion", "1"),
            ("extensions.partialClone", "origin"),
            ("remote.origin.promisor", "true"),
            ("remote.origin.url", "."),
            ("remote.origin.uploadpack", &format!("touch {}; false", ran.display())),
        ] {
            git(&root, &["config", name, value]);
        }
        said(&["tag", "--merged", "HEAD"]);
        assert!(ran.exists(), "git alone runs it, else this test says nothing");
        fs::remove_file(&ran).unwrap();
        let repository = Git::of(&root).unwrap();
        let _ = (repository.tags(), repository.newest_tag(), repository.revision("v1"));
        assert!(!ran.exists(), "a program of the repository has run");
    }

    #[test]
    fn what_a_killed_opdev_has_left_goes_and_the_newest_checkouts_stay() {
        let cache = tempfile::tempdir().unwrap();
        let root = cache.path();
        // No process has the largest number there is.
        fs::create_dir(root.join(format!("{UNFINISHED}{}-x", i32::MAX))).unwrap();
        let mine = format!("{UNFINISHED}{}-x", std::process::id());
        fs::create_dir(root.join(&mine)).unwrap();
        sweep(root);
        assert_eq!(listed(root), std::slice::from_ref(&mine));
        for number in 0..KEPT + 3 {
            let path = root.join(format!("{number:02}"));
            fs::create_dir(&path).unwrap();
            let at = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(number as u64);
            fs::File::open(&path).unwrap().set_modified(at).unwrap();
        }
        forget_oldest(root, &root.join("00"));
        let left = listed(root);
        assert!(left.contains(&"00".to_owned()) && !left.contains(&"02".to_owned()), "{left:?}");
        assert_eq!(left.len(), KEPT + 2);
    }

    #[test]
    fn a_folder_in_no_repository_says_what_to_do() {
        let folder = tempfile::tempdir().unwrap();
        let error = Git::of(folder.path()).unwrap_err();
        assert!(format!("{error:#}").contains("--from DIR"), "{error:#}");
    }
}
