//! Finds the project and where its files are. Reads nothing but directory entries, `PROJECT`, `go.mod` and
//! `opdev.yaml`. First match wins: `--project`, `opdev.yaml`, an Operator SDK or kubebuilder project, a Go
//! module with API types that requires controller-runtime, the layout with `config/watches.yaml`,
//! `config/types` or `config/reconcilers`.

pub mod chart_sources;
pub mod files;
mod folders;
pub mod go;
pub mod journal;
pub mod load;
pub mod preferences;
pub mod program;
pub mod settings;
pub mod trust;
pub mod unfinished;

use crate::program::Programs;
use crate::settings::Settings;
use anyhow::{Context as _, Result, bail};
use opdev_event::Diagnostic;
use opdev_os::private_folder::PrivateFolder;
use opdev_os::read;
use opdev_os::state_path::state_path;
use opdev_sources::WatchesFile;
use std::path::{Path, PathBuf};

/// A project on disk.
#[derive(Clone, Debug)]
pub struct Project {
    /// Absolute root; all paths in events are relative to it.
    pub root: PathBuf,
    /// The project's name.
    pub name: String,
    /// `watches.yaml`, relative to the root; `None` where the project has none and names none.
    pub watches: Option<PathBuf>,
    /// Files or folders with CRD YAML, relative to the root.
    pub crds: Vec<PathBuf>,
    /// Folders with Go type files, relative to the root.
    pub types: Vec<PathBuf>,
    /// Folders whose scripts and folders of templates reconcile the kind that they are named after, relative
    /// to the root.
    pub reconcilers: Vec<PathBuf>,
    /// Files or folders with samples, relative to the root.
    pub samples: Vec<PathBuf>,
    /// A file or a folder with what is deployed, relative to the root, in place of `config/default`.
    pub manifests: Option<PathBuf>,
    /// The path of `opdev.yaml`, relative to the root, where there is one.
    pub settings_file: Option<PathBuf>,
    /// The settings of `opdev.yaml`.
    pub settings: Settings,
    /// Warnings about `opdev.yaml`.
    pub diagnostics: Vec<Diagnostic>,
    /// Folders in which nobody looks for files of a project, and why. They are in none of the lists above.
    pub refused: Vec<(String, String)>,
}

/// There is no project where one was looked for.
#[derive(Debug)]
pub struct NoProject(String);

impl std::fmt::Display for NoProject {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for NoProject {}

impl Project {
    /// The project without the files that it applies at its start.
    #[must_use]
    pub fn without_start_files(mut self) -> Project {
        self.settings.apply_on_start.clear();
        self
    }

    /// The project whose manifests lie in this file or folder.
    #[must_use]
    pub fn with_manifests(self, manifests: PathBuf) -> Project {
        Project { manifests: Some(manifests), ..self }
    }

    /// Returns true if it has programs of its own.
    pub fn has_program(&self) -> bool {
        !Programs::of(self).permissions().is_empty()
    }

    /// Finds the project at `folder` exactly, or, where that is `None`, at `from` or the nearest folder above
    /// it.
    ///
    /// # Errors
    /// [`NoProject`], which says what was looked for and where, or what is wrong with `opdev.yaml`.
    pub fn discover(folder: Option<&Path>, from: &Path) -> Result<Project> {
        if let Some(folder) = folder {
            let root = folder
                .canonicalize()
                .with_context(|| format!("the project folder {} cannot be opened", folder.display()))?;
            if !root.is_dir() {
                bail!("{} is not a folder; --project takes the folder of a project", folder.display());
            }
            return match Self::at(&root)? {
                Some(project) => Ok(project),
                None => bail!("{} is no operator project{}", root.display(), begin(&root)),
            };
        }
        let start = from.canonicalize().context("the working directory cannot be read")?;
        for root in start.ancestors() {
            if let Some(project) = Self::at(root)? {
                return Ok(project);
            }
            if root.join(".git").exists() {
                break;
            }
        }
        let message = format!("no operator project in {} or above it{}", start.display(), begin(&start));
        Err(NoProject(message).into())
    }

    /// The project whose root is exactly `root`, if there is one. Half a project is none.
    fn at(root: &Path) -> Result<Option<Project>> {
        if crate::unfinished::is_there(root) {
            bail!(
                "{} is half written: `opdev init` or `opdev create api` was ended in the middle\n  to do: run that command once \
                 more; it takes back what was written and begins anew",
                root.display()
            );
        }
        let settings_file =
            ["opdev.yaml", "config/opdev.yaml"].into_iter().find(|file| root.join(file).is_file());
        let watches =
            ["watches.yaml", "config/watches.yaml"].into_iter().find(|file| root.join(file).is_file());
        let existing = |candidates: &[&str]| -> Vec<PathBuf> {
            candidates.iter().filter(|path| root.join(path).exists()).map(PathBuf::from).collect()
        };
        let own_layout = !existing(&["config/types", "config/reconcilers"]).is_empty();
        let kubebuilder = root.join("PROJECT").is_file()
            && !existing(&["api", "apis", "pkg/apis", "config/crd"]).is_empty();
        let go_operator = || {
            let go_mod = opdev_os::small_file::small_text(&root.join("go.mod")).unwrap_or_default();
            go_mod.contains("sigs.k8s.io/controller-runtime ")
        };
        let kubebuilder = kubebuilder || go_operator();
        if settings_file.is_none() && watches.is_none() && !own_layout && !kubebuilder {
            return Ok(None);
        }
        let (settings, diagnostics) = match settings_file {
            Some(file) => Settings::read(root, file)?,
            None => (Settings::default(), Vec::new()),
        };
        let watches = match (&settings.watches, watches) {
            (Some(named), _) => Some(PathBuf::from(named)),
            (None, Some(found)) => Some(PathBuf::from(found)),
            // Without types and a program the project's kinds can only come from this file: its absence is
            // worth a word.
            (None, None) if !own_layout && !kubebuilder && settings.operator.is_none() => {
                Some(PathBuf::from("config/watches.yaml"))
            }
            (None, None) => None,
        };
        let (crds, types) = match &settings.types {
            Some(paths) => {
                let paths: Vec<PathBuf> = paths.iter().map(PathBuf::from).collect();
                (paths.clone(), paths)
            }
            None => (
                existing(&["config/crd", "config/crd/bases"]),
                existing(&["config/types", "api", "apis", "pkg/apis"]),
            ),
        };
        let reconcilers = vec![PathBuf::from("config/reconcilers")];
        let samples = match &settings.samples {
            Some(paths) => paths.iter().map(PathBuf::from).collect(),
            None => existing(&["samples", "config/samples"]),
        };
        let mut refused = Vec::new();
        let mut places = |paths: Vec<PathBuf>| -> Vec<PathBuf> {
            let is_place = |path: &PathBuf| match read::no_place_for_files(root, &root.join(path)) {
                Some(why) => {
                    refused.push((path.display().to_string(), why));
                    false
                }
                None => true,
            };
            paths.into_iter().filter(is_place).collect()
        };
        let (types, samples, reconcilers) = (places(types), places(samples), places(reconcilers));
        let crds = places(crds);
        // Types and CRDs may lie in one folder.
        refused.sort();
        refused.dedup();
        let name = operator_sdk_name(root)
            .or_else(|| root.file_name().map(|name| name.to_string_lossy().into_owned()))
            .unwrap_or_else(|| "project".to_owned());
        Ok(Some(Project {
            root: root.to_owned(),
            name,
            watches,
            crds,
            types,
            reconcilers,
            samples,
            manifests: None,
            settings_file: settings_file.map(PathBuf::from),
            settings,
            diagnostics,
            refused,
        }))
    }

    /// The folder for logs, events and the kubeconfig; created with its own `.gitignore`. Of a project that
    /// cannot be written it lies in the user's own folder.
    ///
    /// # Errors
    /// Where it cannot be created, is a link, is not this user's alone, or is tracked by git.
    pub fn state_folder(&self) -> Result<PrivateFolder> {
        PrivateFolder::state(&state_path(&self.root))
    }

    /// `watches.yaml` as it is now; an empty one where the project has none.
    pub fn watches_file(&self) -> WatchesFile {
        let Some(named) = &self.watches else { return WatchesFile::of(String::new(), Ok(String::new())) };
        WatchesFile::of(named.display().to_string(), read::text(self.root.join(named)))
    }

    /// A path as it stands in events: relative to the root where it lies inside.
    pub fn relative(&self, path: &Path) -> String {
        path.strip_prefix(&self.root).unwrap_or(path).display().to_string()
    }
}

/// The file that would make a folder a project, and the command that writes it.
/// What was looked for, and what to do, a line each.
fn begin(folder: &Path) -> String {
    let begin = if folder.join("Chart.yaml").is_file() {
        "opdev init --helm-chart .         makes an operator of the chart in this folder"
    } else {
        "opdev init --helm-chart CHART     begins with a chart; --go with a Go operator, --types with a script"
    };
    format!(
        "\n  looked for: opdev.yaml, watches.yaml, PROJECT with api/, a go.mod with controller-runtime, config/types\n  \
         to do:\n    opdev run --project DIR           where DIR has one of them\n    {begin}"
    )
}

fn operator_sdk_name(root: &Path) -> Option<String> {
    let text = read::text(root.join("PROJECT")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("projectName:"))?;
    Some(line.trim().trim_matches('"').to_owned()).filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;
    use std::fs;

    fn folder(files: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for file in files {
            let path = folder.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        folder
    }

    #[test]
    fn an_operator_sdk_project_is_found_from_below() {
        let folder = folder(&["watches.yaml", "config/samples/a.yaml", "helm-charts/a/Chart.yaml"]);
        fs::write(folder.path().join("PROJECT"), "version: \"3\"\nprojectName: cache-operator\n").unwrap();
        let project = Project::discover(None, &folder.path().join("helm-charts/a")).unwrap();
        assert_eq!(project.name, "cache-operator");
        assert_eq!(project.watches.as_deref(), Some(Path::new("watches.yaml")));
        assert_eq!(project.samples, [PathBuf::from("config/samples")]);
    }

    #[test]
    fn broken_settings_are_no_missing_project() {
        let folder = folder(&["Chart.yaml"]);
        let error = |folder: &Path| Project::discover(None, folder).unwrap_err();
        fs::create_dir(folder.path().join(".git")).unwrap();
        assert!(error(folder.path()).is::<NoProject>());
        fs::write(folder.path().join("opdev.yaml"), "charts: [\n").unwrap();
        let broken = error(folder.path());
        assert!(!broken.is::<NoProject>(), "{broken:#}");
        expect!["opdev.yaml:2:1: this is no YAML: did not find expected node content"]
            .assert_eq(&broken.to_string());
    }

    #[test]
    fn a_kubebuilder_project_needs_no_watches_file() {
        let folder =
            folder(&["PROJECT", "api/v1/set_types.go", "config/crd/bases/a.yaml", "config/samples/a.yaml"]);
        let project = Project::discover(Some(folder.path()), folder.path()).unwrap();
        assert_eq!((project.watches, project.types), (None, vec![PathBuf::from("api")]));
        fs::write(folder.path().join("opdev.yaml"), "types: [pkg/v1]\n").unwrap();
        let project = Project::discover(Some(folder.path()), folder.path()).unwrap();
        assert_eq!(project.types, [PathBuf::from("pkg/v1")]);
    }

    #[test]
    fn a_go_module_with_types_and_controller_runtime_is_a_project() {
        let folder = folder(&["go.mod", "api/core/v1/a_types.go"]);
        assert!(Project::discover(Some(folder.path()), folder.path()).is_err());
        // Reading it would never end.
        std::os::unix::fs::symlink("/dev/zero", folder.path().join("endless")).unwrap();
        fs::rename(folder.path().join("endless"), folder.path().join("go.mod")).unwrap();
        assert!(Project::discover(Some(folder.path()), folder.path()).is_err());
        fs::remove_file(folder.path().join("go.mod")).unwrap();
        let text = "module example.com/a\n\nrequire (\n\tsigs.k8s.io/controller-runtime v0.24.1\n)\n";
        fs::write(folder.path().join("go.mod"), text).unwrap();
        let project = Project::discover(None, &folder.path().join("api/core")).unwrap();
        assert_eq!(project.root, folder.path().canonicalize().unwrap());
        assert_eq!((project.watches, project.types), (None, vec![PathBuf::from("api")]));
    }

    #[test]
    fn a_folder_that_is_no_project_is_named_with_what_was_expected() {
        let folder = tempfile::tempdir().unwrap();
        let error = Project::discover(Some(folder.path()), folder.path()).unwrap_err().to_string();
        assert!(error.contains("is no operator project") && error.lines().count() == 5, "{error}");
        let missing = Project::discover(Some(Path::new("/no/such/folder")), folder.path()).unwrap_err();
        expect!["the project folder /no/such/folder cannot be opened"].assert_eq(&missing.to_string());
    }

    #[test]
    fn the_state_folder_ignores_itself() {
        let folder = folder(&["config/watches.yaml"]);
        let project = Project::discover(Some(folder.path()), folder.path()).unwrap();
        let state = project.state_folder().unwrap();
        assert_eq!(fs::read_to_string(state.path().join(".gitignore")).unwrap(), "*\n");
    }
}
