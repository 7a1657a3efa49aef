//! Files of a project that go into its image: those that the operator reads, and nothing else. Never a link
//! out of the project, never a file that holds a key.

use crate::{Entries, HOME, IgnoreFile, secret_in};
use anyhow::{Context as _, Result, bail};
use opdev_event::{Severity, TrustAnswer, words};
use opdev_helm::chart;
use opdev_os::read;
use opdev_os::small_file::{small_text, unreadable};
use opdev_project::Project;
use opdev_project::files;
use opdev_project::go::files as go_files;
use opdev_project::trust;
use opdev_project::trust::{Store, Trust};
use opdev_sources::Sources;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

/// Files that go into an image although they look like keys or credentials, relative to the project's root.
pub type Allowed = Vec<String>;

/// The largest file that is packed.
const LARGEST: u64 = 16 << 20;
/// The largest size that all archives may unpack to together.
const LARGEST_UNPACKED: u64 = 1 << 30;
/// How many archives may lie in one another.
const DEEPEST: usize = 8;

/// The files of a project as they lie in its image.
///
/// # Errors
/// A project that is broken, has nothing to reconcile or is a program of its own; files that must not be
/// packed; files that `.dockerignore` leaves out although the operator needs them.
pub fn project_files(project: &Project, allowed: &Allowed) -> Result<Entries> {
    let sources = sources(project)?;
    let ignored = ignore_file(&project.root.join(".dockerignore"))?;
    let mut contents = Contents { project, files: BTreeMap::new() };
    contents.add_charts(&sources)?;
    contents.add_reconcilers()?;
    contents.add_types(&sources)?;
    let needed: Vec<&PathBuf> = project.watches.iter().chain(&project.settings_file).collect();
    for path in needed {
        contents.add(path)?;
    }
    // The project's name stands in it.
    contents.add_where_there("PROJECT")?;
    let (out, kept): (BTreeMap<_, _>, BTreeMap<_, _>) =
        contents.files.into_iter().partition(|(path, _)| ignored.ignores(path));
    refuse_ignored(&sources, &out)?;
    refuse_secrets(&kept, allowed)?;
    let mut entries = Entries::default();
    for (path, bytes) in kept {
        entries.file(&format!("{HOME}/{path}"), 0o644, bytes);
    }
    Ok(entries)
}

/// The rules of a `.dockerignore`; none where there is none.
fn ignore_file(path: &Path) -> Result<IgnoreFile> {
    if path.symlink_metadata().is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound) {
        return Ok(IgnoreFile::default());
    }
    let text = small_text(path).with_context(|| unreadable(".dockerignore"))?;
    Ok(IgnoreFile::parse(&text)?)
}

/// Loads the project as `opdev operate` will.
fn sources(project: &Project) -> Result<Sources> {
    // It is only read: nothing runs, and no host is reached.
    let trust = Trust::of(&project.root, Store::none());
    trust.decide(TrustAnswer::Once, &trust::wanted(project));
    let instead = "build that image with its Dockerfile (`make docker-build`); opdev image packs charts, scripts and templates";
    let (sources, problems) = opdev_project::load::read_operated(project, &trust, instead)?;
    let broken: Vec<String> =
        problems.iter().filter(|one| one.severity == Severity::Error).map(words::diagnostic).collect();
    if !broken.is_empty() {
        bail!("the operator would not be ready with these files:\n  {}", broken.join("\n  "));
    }
    Ok(sources)
}

/// Files that `.dockerignore` names and without which the operator would do something else.
fn refuse_ignored(sources: &Sources, out: &BTreeMap<String, Vec<u8>>) -> Result<()> {
    let charts: Vec<&str> =
        sources.watches.iter().filter_map(|watch| watch.chart()).map(|chart| plain(&chart.path)).collect();
    // A release of a script may name any chart of the project; which ones it needs, the user knows.
    let named = sources.watches.iter().filter_map(|watch| watch.program());
    let named: BTreeSet<&str> =
        named.flat_map(|program| program.charts.keys()).map(|path| plain(path)).collect();
    let is_in = |path: &str, folder: &str| path == folder || path.starts_with(&format!("{folder}/"));
    let is_needed = |path: &str, bytes: &[u8]| match charts.iter().find(|chart| is_in(path, chart)) {
        Some(chart) => {
            let inner = path.strip_prefix(chart).unwrap_or(path).trim_start_matches('/');
            let is_core =
                matches!(inner, "" | "Chart.yaml" | "values.yaml") || inner.starts_with("templates/");
            is_core || (!is_for_people(inner) && secret_in(path, bytes).is_none())
        }
        None => {
            path != "PROJECT"
                && !named.iter().any(|chart| is_in(path, chart))
                && secret_in(path, bytes).is_none()
        }
    };
    let needed = out.iter().filter(|(path, bytes)| is_needed(path, bytes));
    let needed: Vec<&str> = needed.map(|(path, _)| path.as_str()).collect();
    if needed.is_empty() {
        return Ok(());
    }
    bail!(
        ".dockerignore leaves out what the operator needs: {}\n  to do: take them back there, with lines such as !{}",
        needed.join(", "),
        needed[0]
    )
}

/// Files of a chart that no render reads.
fn is_for_people(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.ends_with(".md")
        || matches!(name, "LICENSE" | "NOTICE" | "OWNERS" | ".helmignore")
        || path.starts_with("ci/")
}

fn refuse_secrets(files: &BTreeMap<String, Vec<u8>>, allowed: &Allowed) -> Result<()> {
    let mut found = Vec::new();
    let mut left = LARGEST_UNPACKED;
    for (path, bytes) in
        files.iter().filter(|(path, _)| !allowed.iter().any(|one| plain(one) == path.as_str()))
    {
        secrets(path, bytes, &mut left, &mut found);
    }
    if found.is_empty() {
        return Ok(());
    }
    bail!(
        "whoever pulls the image could read what should stay here:\n  {}\n  to do: name such a file in .dockerignore or in the \
         chart's .helmignore; if it may be read by anybody, say --allow-file PATH",
        found.join("\n  ")
    )
}

/// Adds what looks like a secret in a file, or in the files of an archive, which a chart may have beside it.
/// `left` are the bytes that archives may still unpack to.
fn secrets(path: &str, bytes: &[u8], left: &mut u64, found: &mut Vec<String>) {
    if let Some(what) = secret_in(path, bytes) {
        found.push(format!("{path} looks like {what}"));
    }
    if ![".tgz", ".tar.gz"].iter().any(|end| path.ends_with(end)) {
        return;
    }
    // An archive may hold itself, and unpack to nothing.
    *left = left.saturating_sub(1 << 20);
    let files = match chart::unpack(bytes) {
        Ok(files) if *left > 0 && path.matches(".tgz/").count() < DEEPEST => files,
        Ok(_) => {
            return found.push(format!("{path} is too large, or packed too often, to be searched for keys"));
        }
        Err(why) => return found.push(format!("{path} cannot be searched for keys: {why}")),
    };
    for (name, content) in files.iter() {
        *left = left.saturating_sub(content.bytes().len() as u64);
        secrets(&format!("{path}/{name}"), content.bytes(), left, found);
    }
}

/// A path as it stands in the image.
fn plain(path: &str) -> &str {
    path.trim_start_matches("./").trim_end_matches('/')
}

struct Contents<'a> {
    project: &'a Project,
    files: BTreeMap<String, Vec<u8>>,
}

impl Contents<'_> {
    /// Folders and archives of charts that watches or scripts name, as Helm reads them: without what
    /// `.helmignore` names.
    fn add_charts(&mut self, sources: &Sources) -> Result<()> {
        let watched = sources.watches.iter().filter_map(|watch| Some(watch.chart()?.path.clone()));
        let named = sources.watches.iter().filter_map(|watch| watch.program());
        let named = named.flat_map(|program| program.charts.keys().cloned());
        for path in watched.chain(named) {
            let root = &self.project.root;
            let path = PathBuf::from(plain(&path));
            inside(&path)?;
            let out = files::links_out(root, &root.join(&path));
            if let Some((link, target)) = out.first() {
                bail!("{link} leads out of the project, to {target}; put the file itself into the chart");
            }
            if root.join(&path).is_file() {
                self.add(&path)?;
                continue;
            }
            let files = chart::read_dir_in_work(&root.join(&path))
                .with_context(|| format!("the chart {} cannot be read", path.display()))?;
            for (name, content) in files.iter() {
                self.files.insert(format!("{}/{name}", path.display()), content.bytes().to_vec());
            }
        }
        Ok(())
    }

    fn add_reconcilers(&mut self) -> Result<()> {
        for (path, text) in files::reconcilers(self.project) {
            let path = plain(&path).to_owned();
            inside(Path::new(&path))?;
            self.real(Path::new(&path))?;
            self.files.insert(path, text.as_bytes().to_vec());
        }
        Ok(())
    }

    /// CRDs, and the Go types with what says how CRDs are made of them.
    fn add_types(&mut self, sources: &Sources) -> Result<()> {
        let root = &self.project.root;
        let crds: Vec<PathBuf> = self
            .project
            .crds
            .iter()
            .flat_map(|path| files::yaml_files_below(&root.join(path), 0))
            .map(|path| PathBuf::from(self.project.relative(&path)))
            .collect();
        for path in crds {
            self.add(&path)?;
        }
        let mut packages = BTreeSet::new();
        for path in sources.definitions.iter().flat_map(|one| &one.files) {
            if !self.files.contains_key(path) {
                self.add(Path::new(path))?;
            }
            if path.ends_with(".go") {
                packages.extend(Path::new(path).parent().map(Path::to_owned));
            }
        }
        let has_go = !packages.is_empty();
        // Beside the types lie files that name their group, and types that others are made of.
        for package in packages {
            let entries = read::entries(root.join(&package)).into_iter().flatten();
            for name in entries.filter_map(|entry| entry.file_name().into_string().ok()) {
                let path = package.join(&name);
                if name.ends_with(".go") && !name.ends_with("_test.go") && root.join(&path).is_file() {
                    self.add(&path)?;
                }
            }
        }
        if has_go {
            for file in go_files::setting_files(root) {
                self.add_where_there(&file)?;
            }
        }
        Ok(())
    }

    fn add_where_there(&mut self, path: &str) -> Result<()> {
        if self.project.root.join(path).is_file() { self.add(Path::new(path)) } else { Ok(()) }
    }

    fn add(&mut self, path: &Path) -> Result<()> {
        inside(path)?;
        let real = self.real(path)?;
        let bytes = read::bytes_up_to(&real, LARGEST)
            .with_context(|| format!("{} cannot be read", path.display()))?;
        self.files.insert(plain(&path.display().to_string()).to_owned(), bytes);
        Ok(())
    }

    /// Where a file lies once all links are followed: in the project, or it is refused.
    fn real(&self, path: &Path) -> Result<PathBuf> {
        let whole = self.project.root.join(path);
        let real = whole.canonicalize().with_context(|| format!("{} cannot be read", path.display()))?;
        if !real.starts_with(self.project.root.canonicalize()?) {
            bail!(
                "{} leads out of the project, to {}; put the file itself there",
                path.display(),
                real.display()
            );
        }
        Ok(real)
    }
}

/// A path that would lie elsewhere in the image.
fn inside(path: &Path) -> Result<()> {
    if path.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir)) {
        return Ok(());
    }
    bail!(
        "{} lies outside of the project, so the image would not have it at that place; move it into the project",
        path.display()
    )
}
