//! One end of an upgrade: a version of the project, read from its folder.

use super::checkout::{Git, cache_folder};
use crate::dev::plan;
use crate::dev::project::Project;
use crate::dev::trust::{self, Trust};
use crate::event::{TrustAnswer, words};
use crate::sources::Sources;
use anyhow::{Context as _, Result, bail};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Which version.
#[derive(Clone, Debug)]
pub enum EndInput {
    /// The newest tag that the working tree comes from.
    NewestTag,
    /// A commit, or a folder where git knows no such commit.
    Named(String),
    /// The folder of the project as it is.
    Folder(PathBuf),
}

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
pub struct Reader<'a> {
    /// The project's folder as it is.
    pub root: &'a Path,
    /// What the user allows the project, in whichever version.
    pub trust: &'a Trust,
    /// Whether the user allows all of it for now.
    pub trusted: bool,
    /// What `opdev trust` has to be called with.
    pub command: &'a str,
}

impl Reader<'_> {
    /// Reads a version.
    ///
    /// # Errors
    /// Where it is not there, is no project, or wants what the user has not allowed.
    pub fn read(&self, end: &EndInput) -> Result<End> {
        let (name, root) = self.place(end)?;
        let project = Project::discover(Some(&root), &root).with_context(|| format!("{name} cannot be read"))?;
        let wanted = trust::wanted(&project);
        if self.trusted {
            self.trust.decide(TrustAnswer::Once, &wanted);
        }
        // An older version that wants nothing else than the trusted one does needs no trust of its own.
        let unanswered = self.trust.unanswered(&wanted)?;
        if !unanswered.is_empty() {
            bail!("{name}: {}, or add --trust", trust::refusal(&project, &unanswered, self.command));
        }
        let (sources, problems) = plan::read(&project, self.trust)?;
        let problems = problems.iter().map(words::diagnostic).collect();
        Ok(End { name, project, sources: Arc::new(sources), problems })
    }

    fn place(&self, end: &EndInput) -> Result<(String, PathBuf)> {
        let named = match end {
            EndInput::Folder(folder) => return Ok(("your working tree".to_owned(), folder.clone())),
            EndInput::NewestTag => None,
            EndInput::Named(name) => Some(name),
        };
        let repository = Git::of(self.root);
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
