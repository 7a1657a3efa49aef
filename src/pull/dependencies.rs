//! The dependencies of a chart: which versions there are, which fit, and their archives. Everything is
//! downloaded and checked before a file would change, so the result is a [`Plan`] of all or nothing.

use super::chart::{address, choose, from_entry, from_registry, index};
use super::index::{Entry, Index};
use super::lock::{self, Lock};
use super::origins::{self, Origin};
use super::reference::Reference;
use super::registry::Registry;
use super::web::{Web, shown, shown_text};
use super::{Access, Downloaded, Homes, pack, repositories};
use anyhow::{Context as _, Result, anyhow, bail};
use opdev_helm::chart::{Chart, Dependency, FileSet, read_dir};
use opdev_os::read;
use opdev_os::sha256;
use opdev_template::semver::{Constraint, Version};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The changes to the files of a chart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Archives in `charts/` by file name.
    pub archives: BTreeMap<String, Vec<u8>>,
    /// The name and the text of the lock, where it changes.
    pub lock: Option<(String, String)>,
    /// Archives in `charts/` that are no dependency any more.
    pub outdated: Vec<String>,
}

/// Finds and downloads the dependencies of one chart.
pub struct Dependencies<'a> {
    /// The chart's folder.
    pub chart: &'a Path,
    /// Helm's files.
    pub homes: &'a Homes,
    /// How registries are reached, and repositories of which only the address is known. The login is for
    /// registries only.
    pub access: &'a Access,
    /// True if indexes are downloaded; else those of `helm repo update` count.
    pub refresh: bool,
    /// Takes a line of progress.
    pub say: &'a mut dyn FnMut(&str),
}

/// A chart as it was read, with its dependencies and its lock.
struct Wanted {
    chart: Chart,
    dependencies: Vec<Dependency>,
    origins: Vec<Origin>,
    lock: Option<Lock>,
}

/// The indexes of a run by the address of their repository, each with its way there.
#[derive(Default)]
struct Indexes(BTreeMap<String, (Index, Web)>);

impl Dependencies<'_> {
    /// The changes of `helm dependency update`.
    ///
    /// # Errors
    /// Why a dependency cannot be had. Then nothing is to change.
    pub fn update(&mut self) -> Result<Plan> {
        let Some(wanted) = self.read()? else { return Ok(Plan::default()) };
        self.refuse_linked_lock(&wanted.chart)?;
        self.refuse_many_registries(&wanted.dependencies, &wanted.origins)?;
        let mut indexes = self.indexes(&wanted.dependencies, &wanted.origins)?;
        let mut locked = self.resolve(&wanted, &mut indexes)?;
        let mut plan = self.download(&mut locked, &wanted.origins, &indexes)?;
        let digest = lock::digest(&wanted.dependencies, &locked)?;
        if wanted.lock.is_none_or(|old| old.digest != digest) {
            let now = jiff::Zoned::now().strftime("%Y-%m-%dT%H:%M:%S.%9f%:z").to_string();
            let now = now.replace("+00:00", "Z");
            let name = lock_name(&wanted.chart).to_owned();
            plan.lock = Some((name, Lock { dependencies: locked, digest }.text(&now)));
        }
        Ok(plan)
    }

    /// The changes of `helm dependency build`: the versions of the lock, or an update where there is none.
    ///
    /// # Errors
    /// A lock that is out of date, or why a dependency cannot be had.
    pub fn build(&mut self) -> Result<Plan> {
        let Some(Wanted { chart, dependencies, lock, .. }) = self.read()? else { return Ok(Plan::default()) };
        let Some(lock) = lock else { return self.update() };
        let original = chart.metadata.dependencies.as_slice();
        let is_current = lock::digest(&dependencies, &lock.dependencies)? == lock.digest
            || (chart.metadata.api_version == "v1" && lock::digest_of_helm_2(original)? == lock.digest);
        if !is_current {
            let list = if chart.metadata.api_version == "v1" { "requirements.yaml" } else { "Chart.yaml" };
            bail!(
                "the lock file ({}) is out of sync with the dependencies file ({list}). Please update the dependencies with \
                 'opdev dependency update'",
                lock_name(&chart)
            );
        }
        let mut locked = lock.dependencies;
        let known = repositories::read(&self.homes.repositories)?;
        let origins = origins::find(&mut locked, self.chart, &known)?;
        self.refuse_many_registries(&locked, &origins)?;
        let indexes = self.indexes(&locked, &origins)?;
        self.download(&mut locked, &origins, &indexes)
    }

    fn read(&self) -> Result<Option<Wanted>> {
        let path = self.chart.display();
        if !self.chart.exists() {
            bail!("could not find {path}: no such file or directory");
        }
        if !self.chart.is_dir() {
            bail!("only unpacked charts can be updated");
        }
        let files = read_dir(self.chart).with_context(|| format!("the chart {path} cannot be read"))?;
        // Files in charts/ are left out: they are to be replaced.
        let own = |path: &str| !path.starts_with("charts/");
        let own: FileSet =
            files.iter().filter(|(path, _)| own(path)).map(|(path, data)| (path, data.clone())).collect();
        let chart = Chart::load(&own).with_context(|| format!("the chart {path}"))?;
        if !chart.metadata.lists_dependencies {
            return Ok(None);
        }
        let mut dependencies = chart.metadata.dependencies.clone();
        let known = repositories::read(&self.homes.repositories)?;
        let origins = origins::find(&mut dependencies, self.chart, &known)?;
        let lock = chart.lock.as_ref().map(Lock::read).transpose()?;
        Ok(Some(Wanted { chart, dependencies, origins, lock }))
    }

    fn refuse_linked_lock(&self, chart: &Chart) -> Result<()> {
        let name = lock_name(chart);
        match std::fs::read_link(self.chart.join(name)) {
            Ok(target) => bail!("the {name} file is a symlink to {:?}", target.display().to_string()),
            Err(_) => Ok(()),
        }
    }

    /// The command line has one login. Which registries there are, the author of the chart says.
    fn refuse_many_registries(&self, wanted: &[Dependency], origins: &[Origin]) -> Result<()> {
        if !self.access.has_login() || self.access.pass_to_all_hosts {
            return Ok(());
        }
        let mut hosts = BTreeSet::new();
        for (dependency, origin) in wanted.iter().zip(origins) {
            if matches!(origin, Origin::Registry) {
                hosts.insert(registry_reference(dependency)?.host);
            }
        }
        if hosts.len() > 1 {
            let hosts: Vec<String> = hosts.into_iter().collect();
            bail!(
                "--username is the login of one registry, and the chart takes dependencies from {}. `helm registry login` \
                 writes down a login for each; --pass-credentials sends this one to all of them",
                hosts.join(", ")
            );
        }
        Ok(())
    }

    /// The indexes of the repositories that are needed. Helm refreshes all that the user has named.
    fn indexes(&mut self, wanted: &[Dependency], origins: &[Origin]) -> Result<Indexes> {
        let mut indexes = Indexes::default();
        for is_known in [false, true] {
            let of_kind = |origin: &Origin| match origin {
                Origin::Known(_) => is_known,
                Origin::Unknown => !is_known,
                Origin::Charts | Origin::Folder(_) | Origin::Registry => false,
            };
            let here: Vec<_> = wanted.iter().zip(origins).filter(|(_, origin)| of_kind(origin)).collect();
            if here.is_empty() {
                continue;
            }
            if self.refresh {
                (self.say)(match is_known {
                    false => "Getting updates for unmanaged Helm repositories...",
                    true => "Hang tight while we grab the latest from your chart repositories...",
                });
            }
            for (dependency, origin) in here {
                let key = dependency.repository.trim_end_matches('/').to_owned();
                if let std::collections::btree_map::Entry::Vacant(place) = indexes.0.entry(key) {
                    place.insert(self.index(&dependency.repository, origin)?);
                }
            }
            if self.refresh && is_known {
                (self.say)("Update Complete. ⎈Happy Helming!⎈");
            }
        }
        Ok(indexes)
    }

    fn index(&mut self, repository: &str, origin: &Origin) -> Result<(Index, Web)> {
        let base = address(repository)?;
        let (web, cached, name) = match origin {
            Origin::Known(known) => {
                (Web::new(&known.access)?, self.homes.cached_index(&known.name), known.name.clone())
            }
            Origin::Unknown | Origin::Charts | Origin::Folder(_) | Origin::Registry => {
                let name = format!("helm-manager-{}", sha256::digits(repository));
                (Web::new(&self.access.without_login())?, self.homes.cached_index(&name), shown(&base))
            }
        };
        let read = |cached: &PathBuf| -> Result<Index> {
            let bytes = read::bytes_up_to(cached, read::LARGE).with_context(|| {
                format!(
                    "no cached repository for {name} found. (try 'helm repo update'): {}",
                    cached.display()
                )
            })?;
            Index::parse(&bytes).with_context(|| format!("error loading {}", cached.display()))
        };
        let found = if self.refresh {
            match index(&web, &base) {
                Ok(found) => {
                    (self.say)(&format!("...Successfully got an update from the {name:?} chart repository"));
                    found
                }
                Err(error) => {
                    (self.say)(&format!("...Unable to get an update from the {name:?} chart repository"));
                    // An index that was downloaded before may do, as in Helm.
                    read(&cached).map_err(|_| error)?
                }
            }
        } else {
            read(&cached)?
        };
        found.warn(self.say);
        Ok((found, web))
    }

    /// The version of each dependency.
    fn resolve(&self, wanted: &Wanted, indexes: &mut Indexes) -> Result<Vec<Dependency>> {
        let mut locked = Vec::new();
        let mut missing = Vec::new();
        for (dependency, origin) in wanted.dependencies.iter().zip(&wanted.origins) {
            let Dependency { name, version, repository, .. } = dependency;
            let constraint = Constraint::parse(version).map_err(|why| {
                anyhow!("dependency {name:?} has an invalid version/constraint format: {why}")
            })?;
            let found =
                match origin {
                    Origin::Charts => {
                        origins::local(&format!("charts/{name}"), self.chart)?;
                        Some(version.clone())
                    }
                    Origin::Folder(folder) => {
                        let found = chart_at(folder)?.metadata.version;
                        let fits = Version::parse(&found).is_ok_and(|found| constraint.check(&found));
                        fits.then_some(found)
                    }
                    Origin::Registry if Version::parse(version).is_ok() => Some(version.clone()),
                    Origin::Registry => {
                        let reference = registry_reference(dependency)?;
                        let web = Web::for_registry(self.access, &reference.host)?;
                        let chosen = Registry::new(&web, &self.homes.logins, reference).choose(version);
                        Some(chosen.with_context(|| {
                            format!("could not resolve the version of {repository}/{name}")
                        })?)
                    }
                    Origin::Known(_) | Origin::Unknown => {
                        let (index, _) = indexes.get(repository)?;
                        let all = index.all(name).with_context(|| {
                            format!("{name} chart not found in repo {}", shown_text(repository))
                        })?;
                        all.iter().find(|entry| entry.fits(&constraint)).map(|entry| entry.version.clone())
                    }
                };
            match found {
                Some(version) => locked.push(Dependency {
                    name: name.clone(),
                    version,
                    repository: repository.clone(),
                    ..Dependency::default()
                }),
                None => missing
                    .push(format!("{name:?} (repository {:?}, version {version:?})", shown_text(repository))),
            }
        }
        if !missing.is_empty() {
            bail!(
                "can't get a valid version for {} subchart(s): {}. Make sure a matching chart version exists in the repo, or \
                 change the version constraint in Chart.yaml",
                missing.len(),
                missing.join(", ")
            );
        }
        Ok(locked)
    }

    /// Downloads what is locked. A chart's folder may have another version by now.
    fn download(&mut self, locked: &mut [Dependency], origins: &[Origin], indexes: &Indexes) -> Result<Plan> {
        (self.say)(&format!("Saving {} charts", locked.len()));
        let mut plan = Plan::default();
        let mut seen = Vec::new();
        for (dependency, origin) in locked.iter_mut().zip(origins) {
            let named = (dependency.name.clone(), dependency.version.clone(), dependency.repository.clone());
            let found = match origin {
                Origin::Charts => {
                    self.check_present(dependency)?;
                    continue;
                }
                Origin::Folder(folder) => {
                    let chart = chart_at(folder)?;
                    if !opdev_template::semver::is_compatible(&dependency.version, &chart.metadata.version) {
                        bail!("can't get a valid version for dependency {}", dependency.name);
                    }
                    dependency.version.clone_from(&chart.metadata.version);
                    let file_name = format!("{}-{}.tgz", chart.name(), chart.metadata.version);
                    Downloaded { archive: pack::pack(&chart)?, file_name, notes: Vec::new() }
                }
                Origin::Registry | Origin::Known(_) | Origin::Unknown => {
                    let (name, repository) = (&dependency.name, shown_text(&dependency.repository));
                    if seen.contains(&named) {
                        (self.say)(&format!("Already downloaded {name} from repo {repository}"));
                        continue;
                    }
                    (self.say)(&format!("Downloading {name} from repo {repository}"));
                    let found = self.fetch(dependency, origin, indexes);
                    let found =
                        found.with_context(|| format!("could not download {name} from {repository}"))?;
                    found.notes.iter().for_each(|note| (self.say)(note));
                    found
                }
            };
            seen.push(named);
            let loaded = Chart::load_archive(&found.archive)
                .map_err(|why| anyhow!("{} is no chart: {why}", found.file_name))?;
            if loaded.name() != dependency.name {
                bail!("{} holds the chart {:?}, not {:?}", found.file_name, loaded.name(), dependency.name);
            }
            plan.archives.insert(found.file_name, found.archive);
        }
        (self.say)("Deleting outdated charts");
        plan.outdated = self.outdated(&plan, locked);
        Ok(plan)
    }

    fn fetch(&self, dependency: &Dependency, origin: &Origin, indexes: &Indexes) -> Result<Downloaded> {
        let Dependency { name, version, repository, .. } = dependency;
        if matches!(origin, Origin::Registry) {
            let address = format!("{}/{name}", repository.trim_end_matches('/'));
            return from_registry(&address, version, self.access, self.homes);
        }
        let (index, web) = indexes.get(repository)?;
        let base = address(repository)?;
        let all = index.all(name).unwrap_or_default();
        let of_version = |entry: &&Entry| !entry.urls.is_empty() && entry.is_version(version);
        let exact = all.iter().find(|entry| !entry.urls.is_empty() && entry.version == *version);
        let entry = match exact.or_else(|| all.iter().find(of_version)) {
            Some(entry) => entry,
            None => choose(index, name, version, &shown(&base))?,
        };
        from_entry(entry, name, &base, web, self.homes)
    }

    /// A dependency without a repository must lie in `charts/`.
    fn check_present(&mut self, dependency: &Dependency) -> Result<()> {
        let Dependency { name, version, .. } = dependency;
        (self.say)(&format!(
            "Dependency {name} did not declare a repository. Assuming it exists in the charts directory"
        ));
        let folder = self.chart.join("charts").join(name);
        let chart =
            chart_at(&folder).with_context(|| format!("unable to load chart '{}'", folder.display()))?;
        if !opdev_template::semver::is_compatible(version, &chart.metadata.version) {
            bail!(
                "dependency {name} at version {} does not satisfy the constraint {version}",
                chart.metadata.version
            );
        }
        Ok(())
    }

    /// The archives in `charts/` that are no dependency any more. What is no chart stays.
    fn outdated(&mut self, plan: &Plan, locked: &[Dependency]) -> Vec<String> {
        let folder = self.chart.join("charts");
        let mut found = Vec::new();
        for entry in read::entries(&folder).into_iter().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if plan.archives.contains_key(&name) || !entry.path().is_file() {
                continue;
            }
            match archive(&entry.path()) {
                Ok(chart) => {
                    let stays = |one: &Dependency| one.repository.is_empty() && one.name == chart.name();
                    if !locked.iter().any(stays) {
                        found.push(name);
                    }
                }
                Err(why) => (self.say)(&format!(
                    "Could not verify {} for deletion: {why} (Skipping)",
                    entry.path().display()
                )),
            }
        }
        found.sort();
        found
    }
}

impl Indexes {
    fn get(&self, repository: &str) -> Result<&(Index, Web)> {
        let found = self.0.get(repository.trim_end_matches('/'));
        found.with_context(|| format!("no index of {} was read", shown_text(repository)))
    }
}

fn lock_name(chart: &Chart) -> &'static str {
    if chart.metadata.api_version == "v1" { "requirements.lock" } else { "Chart.lock" }
}

fn chart_at(folder: &Path) -> Result<Chart> {
    let files = read_dir(folder).with_context(|| format!("{} cannot be read", folder.display()))?;
    Chart::load(&files).with_context(|| format!("the chart {}", folder.display()))
}

fn archive(path: &Path) -> Result<Chart> {
    Ok(Chart::load_archive(&read::bytes_up_to(path, read::ARCHIVE)?)?)
}

fn registry_reference(dependency: &Dependency) -> Result<Reference> {
    Reference::parse(&format!("{}/{}", dependency.repository.trim_end_matches('/'), dependency.name))
}
