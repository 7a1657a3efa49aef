//! Reads everything a project is made of, once for each load, and says which folders to watch for it.
//! The last disk access before `sources/load.rs`; judges nothing.

use super::Project;
use super::chart_sources;
pub use super::folders::{is_foreign, yaml_files_below, yaml_files_of};
use super::go::crd_patches::FilePatches;
use super::go::types::GoTypes;
use super::trust::{self, Trust};
use anyhow::Result;
use opdev_event::Permission;
use opdev_helm::chart;
use opdev_os::private_folder::PrivateFolder;
use opdev_os::read;
use opdev_os::state_path::state_path;
use opdev_os::watcher::WatchSet;
use opdev_sources::load::Outdated;
use opdev_sources::load::{Files, Loader, Options, OwnProgram};
use opdev_sources::{Allow, Sources};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

/// Larger files than this are no reconciler's.
const LARGEST: u64 = 4 << 20;
/// How many folders deep samples may lie.
const SAMPLE_FOLDERS: usize = 3;
/// How many folders deep links in charts are looked for.
const CHART_FOLDERS: usize = 10;
/// More files than this below the reconcilers are not read.
const MOST: usize = 5_000;

/// The settings of kinds.
pub fn options(project: &Project, only: &[String], programs: Vec<OwnProgram>) -> Arc<Options> {
    let settings = &project.settings;
    Arc::new(Options {
        reconcilers: settings.reconcilers.clone(),
        reconciler_folders: project.reconcilers.iter().map(|path| path.display().to_string()).collect(),
        // The user's permissions are known when files are read.
        allow: Allow::default(),
        granted: BTreeSet::new(),
        linked: Vec::new(),
        outdated: Vec::new(),
        unread: Vec::new(),
        scale: settings.scale.clone(),
        only: only.to_vec(),
        programs,
    })
}

/// The content that was read of a project, before the user was asked what of it is allowed.
pub struct Unasked {
    files: Files,
    /// Links that lead out of the project.
    linked: Vec<(String, String)>,
    /// Dependencies that are older in `charts/` than their folder.
    outdated: Vec<Outdated>,
    /// Files that could not be read, and why.
    unread: Vec<(String, String)>,
}

impl Memory {
    /// A memory after its loss, with these sources serving.
    pub fn after(serving: Arc<Sources>) -> Memory {
        Memory { loader: Loader::after(serving), ..Memory::default() }
    }
}

impl Unasked {
    /// Permissions that these files want from the user, whatever lies on disk by now.
    pub(crate) fn wanted(&self, project: &Project, programs: Vec<Permission>) -> Vec<Permission> {
        trust::wanted_of(project, &self.files.watches, programs)
    }

    /// The files with what the user has allowed by now.
    pub(crate) fn with_granted(mut self, project: &Project, trust: &Trust) -> Files {
        let mut options = with_granted(project, &self.files.options, trust);
        (options.linked, options.outdated, options.unread) = (self.linked, self.outdated, self.unread);
        self.files.options = Arc::new(options);
        self.files
    }
}

/// The options with what the user has allowed by now.
fn with_granted(project: &Project, options: &Arc<Options>, trust: &Trust) -> Options {
    let granted = trust.all_granted();
    let settings = &project.settings.allow;
    let (programs, no_programs): (Vec<String>, Vec<String>) = settings
        .programs
        .iter()
        .cloned()
        .partition(|program| granted.contains(&Permission::RunProgram { program: program.clone() }));
    let (hosts, no_hosts): (Vec<String>, Vec<String>) = settings
        .hosts
        .iter()
        .cloned()
        .partition(|host| granted.contains(&Permission::ReachHost { host: host.clone() }));
    let refused = no_programs.into_iter().chain(no_hosts).collect();
    let allow = Allow { hosts, programs, refused };
    Options { allow, granted, ..Options::clone(options) }
}

/// Links that lead out of the project and are read with a chart, relative to its root: in the chart, on the
/// way to it, and in folders of the project that links of the chart lead to.
pub fn links_out(root: &Path, chart: &Path) -> Vec<(String, String)> {
    let (real, walk) = (root.canonicalize().ok(), read::Walk::from(chart));
    let mut links = LinksOut { root, real, walk, seen: BTreeSet::new(), found: Vec::new() };
    links.follow(chart, 0);
    links.found
}

struct LinksOut<'a> {
    root: &'a Path,
    real: Option<PathBuf>,
    walk: read::Walk,
    /// Folders that were looked at, for links may lead in a circle.
    seen: BTreeSet<PathBuf>,
    found: Vec<(String, String)>,
}

impl LinksOut<'_> {
    fn follow(&mut self, at: &Path, depth: usize) {
        // A file that is not there cannot be read either.
        let Ok(target) = at.canonicalize() else { return };
        if self.walk.is_cut() {
            return;
        }
        if !self.real.as_ref().is_some_and(|real| target.starts_with(real)) {
            let shown = at.strip_prefix(self.root).unwrap_or(at).display().to_string();
            return self.found.push((shown, target.display().to_string()));
        }
        if !target.is_dir() || depth > CHART_FOLDERS || !self.seen.insert(target) {
            return;
        }
        for path in self.walk.paths(at) {
            self.follow(&path, depth + 1);
        }
    }
}

/// The parts that change from load to load.
#[derive(Debug, Default)]
pub struct Memory {
    /// Makes sources of files.
    pub loader: Loader,
    types: GoTypes,
    patches: FilePatches,
    /// Links that lead out of the project, as of the last load that looked at all files.
    linked: Vec<(String, String)>,
}

/// The charts that `watches.yaml` names, relative to the project's root.
pub fn watched_charts(project: &Project) -> Vec<String> {
    project.watches_file().charts()
}

/// Reads the project. `changed` are the files that were saved; without any, all may have changed.
pub(crate) fn read(
    project: &Project,
    memory: &mut Memory,
    options: &Arc<Options>,
    changed: &[String],
) -> Unasked {
    let root = &project.root;
    let watches = project.watches_file();
    let paths = memory.loader.chart_paths(&watches);
    if changed.is_empty() {
        memory.linked = all_links_out(project, &paths);
    }
    let charts: BTreeMap<String, io::Result<chart::FileSet>> = paths
        .into_iter()
        .map(|path| {
            let folder = root.join(&path);
            let files = match read::no_place_for_files(root, &folder) {
                Some(why) => Err(io::Error::other(format!("{path} {why}"))),
                None => chart::read_dir_in_work(&folder),
            };
            (path, files)
        })
        .collect();
    let outdated = charts
        .iter()
        .filter_map(|(path, files)| Some((path, files.as_ref().ok()?)))
        .flat_map(|(path, files)| chart_sources::outdated(root, path, files))
        .collect();
    let mut unread = project.refused.clone();
    if let Err(why) = read::text(root.join("PROJECT"))
        && why.kind() != io::ErrorKind::NotFound
    {
        unread.push(("PROJECT".to_owned(), why.to_string()));
    }
    let mut texts = |paths: &[PathBuf], folders: usize| -> Vec<(String, String)> {
        let mut found = Vec::new();
        for file in paths.iter().flat_map(|path| yaml_files_below(&root.join(path), folders)) {
            let path = project.relative(&file);
            match read::text(&file) {
                Ok(text) => found.push((path, text)),
                Err(why) => unread.push((path, why.to_string())),
            }
        }
        found
    };
    let (crds, samples) = (texts(&project.crds, 0), texts(&project.samples, SAMPLE_FOLDERS));
    let patched = memory.patches.read(project, &crds, changed, &mut unread);
    let reconcilers = reconcilers(project);
    let year = jiff::Zoned::now().year().to_string();
    let files = Files {
        watches,
        settings: settings(project),
        charts,
        // Only programs name charts.
        named_charts: if reconcilers.is_empty() { BTreeMap::new() } else { named_charts(project) },
        types: memory.types.read(project, changed, &year),
        crds,
        patched,
        reconcilers,
        samples,
        // Variables that are no UTF-8 cannot stand in a YAML file anyway.
        env: std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect(),
        options: Arc::clone(options),
    };
    Unasked { files, linked: memory.linked.clone(), outdated, unread }
}

/// Links that lead out of the project and are read with its charts, types, CRDs, samples or scripts. Where
/// the settings say that something lies elsewhere, it is no news.
fn all_links_out(project: &Project, charts: &[String]) -> Vec<(String, String)> {
    let given = project.crds.iter().chain(&project.types).chain(&project.samples).chain(&project.reconcilers);
    let inside = |path: &&Path| path.is_relative() && !path.iter().any(|part| part == "..");
    let given = given.map(PathBuf::as_path).filter(inside);
    let mut found: Vec<(String, String)> = Vec::new();
    for path in charts.iter().map(Path::new).chain(given) {
        let links = links_out(&project.root, &project.root.join(path));
        found.extend(links.into_iter().filter(|link| !found.contains(link)).collect::<Vec<_>>());
    }
    found
}

/// The path and the text of `opdev.yaml`; a file that is no text says so when opdev starts.
fn settings(project: &Project) -> Option<(String, String)> {
    let path = project.settings_file.as_ref()?;
    let text = opdev_os::small_file::small_text(&project.root.join(path))?;
    Some((path.display().to_string(), text))
}

/// The files of the project's samples, as far as they lie in the project.
pub fn samples(project: &Project) -> Vec<PathBuf> {
    let inside = |path: &&PathBuf| {
        path.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir))
    };
    let paths = project.samples.iter().filter(inside).map(|path| project.root.join(path));
    paths.flat_map(|path| yaml_files_below(&path, SAMPLE_FOLDERS)).collect()
}

/// Deepest folder in which charts are looked for, and how many are taken.
const DEEPEST: usize = 4;
const MOST_CHARTS: usize = 200;

/// Every chart of the project, folder or archive: a release of a program may name any of them.
fn named_charts(project: &Project) -> BTreeMap<String, io::Result<chart::FileSet>> {
    let mut found = BTreeMap::new();
    let mut open = vec![(project.root.clone(), 0)];
    let mut walk = read::Walk::from(&project.root);
    while let Some((folder, depth)) = open.pop() {
        for path in walk.paths(&folder).into_iter().rev() {
            if found.len() >= MOST_CHARTS {
                tracing::warn!("only {MOST_CHARTS} charts of the project are read");
                return found;
            }
            if path.is_dir() && !path.is_symlink() && !is_foreign(&path) {
                if path.join("Chart.yaml").is_file() {
                    found.insert(project.relative(&path), chart::read_dir_in_work(&path));
                } else if depth < DEEPEST {
                    open.push((path, depth + 1));
                }
            } else if path.extension().is_some_and(|end| end == "tgz") {
                found.insert(project.relative(&path), archive(&path));
            }
        }
    }
    found
}

/// An archive stands for itself: one file of its own name.
fn archive(path: &Path) -> io::Result<chart::FileSet> {
    let bytes = read::bytes_up_to(path, read::ARCHIVE)?;
    let mut files = chart::FileSet::new();
    files.insert("chart.tgz", bytes);
    Ok(files)
}

/// The folders in which reconcilers and what they import lie.
fn reconciler_folders(project: &Project) -> Vec<PathBuf> {
    let mut folders = project.reconcilers.clone();
    for path in project.settings.reconcilers.values() {
        let path = Path::new(path.trim_start_matches("./"));
        let folder = if project.root.join(path).is_dir() { Some(path) } else { path.parent() };
        // A script right below the root would make the whole project its folder.
        if let Some(folder) = folder.filter(|folder| !folder.as_os_str().is_empty())
            && !folders.iter().any(|known| folder.starts_with(known))
        {
            folders.push(folder.to_owned());
        }
    }
    folders
}

/// Texts of everything below the reconcilers' folders, and of scripts that lie right below the root.
pub fn reconcilers(project: &Project) -> BTreeMap<String, Arc<str>> {
    let mut texts = BTreeMap::new();
    let mut open: Vec<PathBuf> =
        reconciler_folders(project).iter().map(|path| project.root.join(path)).collect();
    open.extend(
        project
            .settings
            .reconcilers
            .values()
            .map(|path| project.root.join(path))
            .filter(|path| path.is_file()),
    );
    let mut walk = read::Walk::from(&project.root);
    while let Some(path) = open.pop() {
        if texts.len() >= MOST {
            tracing::warn!("only {MOST} files below the reconcilers' folders are read");
            break;
        }
        if path.is_dir() {
            open.extend(walk.paths(&path).into_iter().filter(|path| !is_foreign(path)));
        } else if let Ok(text) = read::text_up_to(&path, LARGEST) {
            texts.insert(project.relative(&path).trim_start_matches("./").to_owned(), Arc::from(text));
        }
    }
    texts
}

/// Writes `opdev.d.ts`, whole or not at all, where it differs.
///
/// # Errors
/// Where it cannot be written.
pub fn write_declarations(project: &Project, crds: &[Arc<Value>]) -> Result<()> {
    let text = opdev_types::declarations::declarations(crds.iter().map(AsRef::as_ref));
    // The files that git tracks were looked at when opdev started.
    let folder = PrivateFolder::make(&state_path(&project.root))?.folder("types")?;
    if folder.read("opdev.d.ts").is_ok_and(|there| there.is_some_and(|there| there == text.as_bytes())) {
        return Ok(());
    }
    folder.write("opdev.d.ts", text.as_bytes())
}

/// The folders and files to listen to for the newest sources.
pub fn watch_set(project: &Project, sources: &Sources) -> WatchSet {
    let root = &project.root;
    let mut set = WatchSet::default();
    let mut flat = |path: &Path| {
        if let Some(parent) = path.parent() {
            set.flat.insert(parent.to_owned());
        }
    };
    let mut flat_with_target = |path: &Path| {
        flat(path);
        if let Some(real) = path.is_symlink().then(|| path.canonicalize().ok()).flatten() {
            flat(&real);
        }
    };
    for path in project.watches.iter().chain(&project.settings_file) {
        flat_with_target(&root.join(path));
    }
    // Packages that the types import lie anywhere in the project.
    let made_of = sources.definitions.iter().flat_map(|definition| &definition.files);
    made_of.for_each(|file| flat_with_target(&root.join(file)));
    for path in paths(project, sources).into_iter().map(|path| root.join(path)) {
        // The parent tells when the folder itself is replaced, or a link points elsewhere.
        flat(&path);
        if let Ok(real) = path.canonicalize() {
            // Nobody listens to files of the kernel, nor to a folder around the project: to look at all of it
            // has no end.
            if !real.is_dir() {
                flat(&real);
            } else if read::no_place_for_files(root, &real).is_none() {
                set.deep.insert(real);
            }
        }
    }
    let links = Links::below(root, &set.deep);
    set.flat.extend(links.found.iter().filter_map(|link| Some(link.target.parent()?.to_owned())));
    set.flat.extend(links.too_large.iter().cloned());
    set.deep.extend(links.found.into_iter().filter(|link| link.target.is_dir()).map(|link| link.target));
    set.deep.retain(|folder| !links.too_large.contains(folder));
    set
}

/// A link, and what it leads to once all links are followed.
#[derive(Debug, PartialEq, Eq)]
pub struct Link {
    pub path: PathBuf,
    pub target: PathBuf,
}

/// The links below some folders, and below folders that they lead to.
#[derive(Debug, Default)]
pub struct Links {
    pub found: Vec<Link>,
    /// Folders with more in them than anybody listens to.
    pub(crate) too_large: BTreeSet<PathBuf>,
}

impl Links {
    pub fn below(root: &Path, folders: &BTreeSet<PathBuf>) -> Links {
        let mut links = Links::default();
        let mut open: Vec<PathBuf> = folders.iter().cloned().collect();
        let mut seen = folders.clone();
        while let Some(folder) = open.pop() {
            let mut walk = read::Walk::from(&folder);
            let mut inside = vec![folder.clone()];
            while let Some(at) = inside.pop() {
                for entry in walk.entries(&at) {
                    let (path, kind) = (entry.path(), entry.file_type());
                    if kind.as_ref().is_ok_and(std::fs::FileType::is_dir) {
                        inside.push(path);
                    } else if kind.is_ok_and(|kind| kind.is_symlink())
                        && let Ok(target) = path.canonicalize()
                        && read::no_place_for_files(root, &target).is_none()
                    {
                        if target.is_dir() && seen.insert(target.clone()) {
                            open.push(target.clone());
                        }
                        links.found.push(Link { path, target });
                    }
                }
            }
            if walk.is_cut() {
                tracing::warn!("{} is too large to listen to all of it", folder.display());
                links.too_large.insert(folder);
            }
        }
        links
    }
}

/// Everything that sources are made of, relative to the root.
pub(crate) fn paths(project: &Project, sources: &Sources) -> Vec<PathBuf> {
    let charts = sources.watches.iter().filter_map(|watch| Some(PathBuf::from(&watch.chart()?.path)));
    let near = sources.watches.iter().filter_map(|watch| watch.chart());
    let near = near.flat_map(|chart| chart_sources::folders(&project.root, &chart.path));
    let named = sources.watches.iter().filter_map(|watch| watch.program());
    let named = named.flat_map(|program| program.charts.keys().map(PathBuf::from));
    let given = project.crds.iter().chain(&project.types).chain(&project.samples).cloned();
    let folders = reconciler_folders(project);
    let files = project.settings.reconcilers.values().map(PathBuf::from);
    charts.chain(near).chain(named).chain(given).chain(folders).chain(files).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;
    use opdev_helm::chart::{FileSet, read_dir, read_dir_in_work, read_dir_late};
    use std::fs;
    use std::os::unix::fs::symlink;

    fn chart() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("templates")).unwrap();
        fs::write(folder.path().join("Chart.yaml"), "apiVersion: v2\nname: c\nversion: 0.1.0\n").unwrap();
        folder
    }

    fn why(folder: &Path) -> String {
        let (now, late) = (read_dir(folder).unwrap_err(), read_dir_late(folder).map(|_| ()).unwrap_err());
        assert_eq!(now.to_string(), late.to_string());
        now.to_string()
    }

    #[test]
    fn what_editors_keep_beside_a_template_is_no_content_of_a_chart_in_work() {
        let names = |read: io::Result<FileSet>| match read {
            Ok(files) => files.iter().map(|(name, _)| name.to_owned()).collect::<Vec<_>>().join(" "),
            Err(error) => error.to_string(),
        };
        let folder = chart();
        let at = |name: &str| folder.path().join(name);
        for name in ["templates/a.yaml", "templates/#a.yaml#", "templates/a.yaml~", "4913"] {
            fs::write(at(name), "x: 1\n").unwrap();
        }
        assert_eq!(names(read_dir_in_work(folder.path())), "Chart.yaml templates/a.yaml");
        // Helm renders them.
        expect!["4913 Chart.yaml templates/#a.yaml# templates/a.yaml templates/a.yaml~"]
            .assert_eq(&names(read_dir(folder.path())));
        // Emacs' lock leads nowhere. Helm fails, and the link is named; a rule for it counts before anybody
        // looks.
        symlink("me@host.1:2", at(".#values.yaml")).unwrap();
        assert_eq!(names(read_dir_in_work(folder.path())), "Chart.yaml templates/a.yaml");
        let why = names(read_dir(folder.path()));
        assert!(why.contains(".#values.yaml: the link leads to me@host.1:2"), "{why}");
        fs::write(at(".helmignore"), ".#*\n").unwrap();
        expect![".helmignore 4913 Chart.yaml templates/#a.yaml# templates/a.yaml templates/a.yaml~"]
            .assert_eq(&names(read_dir(folder.path())));
    }

    #[test]
    fn what_links_in_a_chart_lead_to_is_watched_but_not_all_there_is() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().canonicalize().unwrap().join(name);
        for path in ["project/chart/templates", "shared/parts/deep", "elsewhere"] {
            fs::create_dir_all(at(path)).unwrap();
        }
        fs::write(at("elsewhere/values.yaml"), "").unwrap();
        fs::write(at("shared/one.yaml"), "").unwrap();
        symlink("../../elsewhere/values.yaml", at("project/chart/values.yaml")).unwrap();
        symlink(at("shared/parts"), at("project/chart/templates/parts")).unwrap();
        symlink("../one.yaml", at("shared/parts/one.yaml")).unwrap();
        symlink("/", at("project/chart/all")).unwrap();
        symlink("/proc", at("project/chart/templates/proc")).unwrap();
        symlink("nowhere", at("project/chart/dangling")).unwrap();
        symlink("..", at("shared/parts/deep/up")).unwrap();
        let mut found: Vec<_> = Links::below(&at("project"), &BTreeSet::from([at("project/chart")])).found;
        found.sort_by(|one, other| one.path.cmp(&other.path));
        let link = |path: &str, target: &str| Link { path: at(path), target: at(target) };
        assert_eq!(
            found,
            [
                link("project/chart/templates/parts", "shared/parts"),
                link("project/chart/values.yaml", "elsewhere/values.yaml"),
                link("shared/parts/deep/up", "shared/parts"),
                link("shared/parts/one.yaml", "shared/one.yaml"),
            ]
        );
    }

    #[test]
    fn what_never_ends_is_not_read() {
        let folder = chart();
        symlink("/dev/zero", folder.path().join(".helmignore")).unwrap();
        let said = why(folder.path());
        assert!(said.ends_with("/.helmignore: it is not a regular file"), "{said}");
        fs::remove_file(folder.path().join(".helmignore")).unwrap();
        fs::File::create(folder.path().join(".helmignore")).unwrap().set_len(6 << 20).unwrap();
        assert!(why(folder.path()).contains("/.helmignore: it is larger than"), "{}", why(folder.path()));
        let archive = folder.path().join("c.tgz");
        fs::File::create(&archive).unwrap().set_len(101 << 20).unwrap();
        expect!["it is larger than 104857600 bytes"].assert_eq(&why(&archive));
    }

    #[test]
    fn a_link_that_leads_nowhere_is_named() {
        for link in ["templates/x.yaml", ".helmignore"] {
            let folder = chart();
            symlink("nowhere", folder.path().join(link)).unwrap();
            let said = why(folder.path());
            assert!(said.contains(&format!("/{link}: the link leads to nowhere: No such file")), "{said}");
        }
    }

    #[test]
    fn a_whole_disk_is_no_chart() {
        let folder = chart();
        // Each folder leads twice to the next one.
        for number in 0..=9 {
            let at = folder.path().join(format!("{number}"));
            fs::create_dir(&at).unwrap();
            for name in ["a", "b"].iter().filter(|_| number < 9) {
                symlink(format!("../{}", number + 1), at.join(name)).unwrap();
            }
        }
        for number in 0..300 {
            fs::write(folder.path().join(format!("9/{number}")), "").unwrap();
        }
        let said = why(folder.path());
        assert!(said.contains("more than 50000 files and folders"), "{said}");
    }
}
