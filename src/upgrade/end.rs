//! One end of an upgrade: a version of the project, read from its folder.

use super::checkout::{Git, cache_folder};
use anyhow::{Context as _, Result, bail};
use opdev_event::{Permission, TrustAnswer, words};
use opdev_project::Project;
use opdev_project::load;
use opdev_project::trust;
use opdev_project::trust::{Store, Trust};
use opdev_sources::Sources;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The version.
#[derive(Clone, Debug)]
pub enum EndInput {
    /// The newest tag that the working tree comes from.
    NewestTag,
    /// A commit, or a folder where git knows no such commit.
    Named(String),
    /// The folder of the project as it is.
    Folder(PathBuf),
}

/// The name of the files as they are.
pub const WORKING_TREE: &str = "your working tree";

/// A version of the project.
#[derive(Clone, Debug)]
pub struct End {
    /// How the user calls it.
    pub name: String,
    /// Its files.
    pub project: Project,
    /// What they are.
    pub sources: Arc<Sources>,
    /// What is broken in them.
    pub problems: Vec<String>,
}

/// How versions of one project are read.
#[derive(Debug)]
pub struct Reader {
    /// The project's folder as it is.
    root: PathBuf,
    /// What the user allows the project, in whichever version.
    trust: Trust,
    asks: Asks,
    /// A file or folder of each version, relative to its root, with what it deploys.
    manifests: Option<PathBuf>,
}

/// The decision whether the user has to allow what a version wants.
#[derive(Debug)]
enum Asks {
    /// It has to be allowed already; with this command, else.
    For(String),
    /// The user allows all of it for now.
    Nothing,
    /// Nothing of the project runs, so that nothing is wanted.
    Never,
}

impl End {
    /// Returns true if programs of its own reconcile its kinds.
    pub fn has_program(&self) -> bool {
        self.sources.shown.iter().any(|shown| shown.program.is_some())
    }
}

impl Reader {
    /// Reads versions that run. `command` is how `opdev trust` has to be called; `trusted` allows all for
    /// now.
    pub fn of_operators(root: &Path, trust: Trust, command: String, trusted: bool) -> Reader {
        let asks = if trusted { Asks::Nothing } else { Asks::For(command) };
        Reader { root: root.to_owned(), trust, asks, manifests: None }
    }

    /// Takes what the versions deploy from this file or folder of each.
    #[must_use]
    pub fn with_manifests(self, manifests: Option<PathBuf>) -> Reader {
        Reader { manifests, ..self }
    }

    /// Reads versions of which only the definitions are looked at.
    pub fn of_definitions(root: &Path) -> Reader {
        Reader {
            root: root.to_owned(),
            trust: Trust::of(root, Store::none()),
            asks: Asks::Never,
            manifests: None,
        }
    }

    /// What the user allows, with all that was found to be allowed.
    pub fn trust(&self) -> Trust {
        self.trust.clone()
    }

    /// Reads a version.
    ///
    /// # Errors
    /// Where it is not there, is no project, or wants what the user has not allowed.
    pub fn read(&self, end: &EndInput) -> Result<End> {
        let (name, root) = self.place(end)?;
        let project =
            Project::discover(Some(&root), &root).with_context(|| format!("{name} cannot be read"))?;
        let project = self.with_own_manifests(&name, project)?;
        self.allowed(&name, &project)?;
        let (sources, problems) = load::read_once(&project, &self.trust)?;
        let problems = problems.iter().map(words::diagnostic).collect();
        Ok(End { name, project, sources: Arc::new(sources), problems })
    }

    fn with_own_manifests(&self, name: &str, project: Project) -> Result<Project> {
        let Some(path) = &self.manifests else { return Ok(project) };
        if path.is_absolute() || !project.root.join(path).exists() {
            bail!(
                "{name} has no {}\n  to do: name a file or a folder with --manifests that both versions have, relative to the \
                 project's folder",
                path.display()
            );
        }
        Ok(project.with_manifests(path.clone()))
    }

    /// An older version that wants nothing else than the trusted one does needs no trust of its own.
    fn allowed(&self, name: &str, project: &Project) -> Result<()> {
        let wanted = match &self.asks {
            Asks::Never => return Ok(()),
            Asks::For(_) | Asks::Nothing => trust::wanted(project),
        };
        let Asks::For(command) = &self.asks else {
            self.trust.decide(TrustAnswer::Once, &wanted);
            return Ok(());
        };
        // Its program lies in another folder now, and is started as the trusted one is.
        let here: Vec<Permission> = wanted.iter().map(|one| self.as_of_project(one, project)).collect();
        let unanswered = self.trust.unanswered(&here)?;
        if unanswered.is_empty() {
            self.trust.decide(TrustAnswer::Once, &wanted);
        } else {
            bail!("{name}: {}, or add --trust", trust::refusal(project, &unanswered, command));
        }
        Ok(())
    }

    /// A permission as the project's own folder would ask for it.
    fn as_of_project(&self, permission: &Permission, project: &Project) -> Permission {
        match permission {
            Permission::StartOperator { program, build, folder } => {
                let inside = Path::new(folder).strip_prefix(&project.root);
                let folder = inside.map_or_else(
                    |_| folder.clone(),
                    |inside| {
                        // A path that ends with a slash is another one.
                        let own = if inside.as_os_str().is_empty() {
                            self.root.clone()
                        } else {
                            self.root.join(inside)
                        };
                        own.display().to_string()
                    },
                );
                Permission::StartOperator { program: program.clone(), build: build.clone(), folder }
            }
            other => other.clone(),
        }
    }

    fn place(&self, end: &EndInput) -> Result<(String, PathBuf)> {
        let named = match end {
            EndInput::Folder(folder) => return Ok((WORKING_TREE.to_owned(), folder.clone())),
            EndInput::NewestTag => None,
            EndInput::Named(name) => Some(name),
        };
        let repository = Git::of(&self.root);
        let folder = named.map(Path::new).filter(|path| path.is_dir());
        let revision = match (&repository, named) {
            (Ok(repository), Some(name)) => repository.revision(name),
            (Ok(repository), None) => repository.newest_tag(),
            (Err(error), _) => Err(anyhow::anyhow!("{error:#}")),
        };
        match (revision, folder, repository) {
            (Ok(revision), _, Ok(repository)) => {
                let folder = repository.check_out(&revision, &cache_folder()?)?;
                Ok((revision.name, folder))
            }
            (_, Some(folder), _) => Ok((folder.display().to_string(), folder.canonicalize()?)),
            (Err(error), None, _) | (_, None, Err(error)) => Err(error),
        }
    }
}
