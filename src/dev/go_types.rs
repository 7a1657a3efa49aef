//! The project's Go types as CRDs: which packages, with which flags and after which release of controller-gen, is read
//! from the project (`type_files`); the generator keeps what it parsed. Runs only where a saved file may matter.

use super::project::Project;
use super::type_files::{self, Wanted};
use crate::event::Place;
use crate::sources::definitions::{Made, Types};
use opdev_types::go::{Crd, Files, Generator, Options, Profile};
use opdev_types::pin::{CrdFlags, Settings};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

/// Makes CRDs of the project's Go types again and again.
#[derive(Debug, Default)]
pub(super) struct GoTypes {
    generator: Generator,
    settings: Option<(Settings, Vec<String>)>,
    packages: Vec<String>,
    types: Types,
}

impl GoTypes {
    /// The newest CRDs. `changed` are the files that were saved; without any, all may have changed.
    pub(super) fn read(&mut self, project: &Project, changed: &[String], year: &str) -> Types {
        if project.types.is_empty() {
            return Types::default();
        }
        let known = self.settings.as_ref().map(|(_, files)| files.as_slice()).unwrap_or_default();
        let about_settings = |file: &String| {
            known.contains(file)
                || file.ends_with(".mk")
                || file == "Makefile"
                || file == "go.mod"
                || file == "go.work"
        };
        let all = changed.is_empty();
        if all || self.settings.is_none() || changed.iter().any(about_settings) {
            let settings = type_files::settings(&project.root, year);
            self.settings = Some((settings, type_files::setting_files(&project.root)));
            self.packages = self.find(project);
        } else if !changed.iter().any(|file| file.ends_with(".go") || !file.contains('.')) {
            return self.types.clone();
        } else if !changed.iter().all(|file| self.packages.iter().any(|package| is_in(file, package))) {
            // A new package, or one that is gone.
            self.packages = self.find(project);
        }
        self.generate(project);
        self.types.clone()
    }

    /// The folders with kinds: those that the project's calls of controller-gen mean, as far as they lie in the folders
    /// of types; else these folders themselves.
    fn find(&self, project: &Project) -> Vec<String> {
        let root = &project.root;
        if let Some(paths) = &project.settings.types {
            let patterns: Vec<String> = paths
                .iter()
                .filter(|path| root.join(path).is_dir())
                .map(|path| format!("./{}/...", path.trim_start_matches("./").trim_end_matches('/')))
                .collect();
            return type_files::packages(root, "", &patterns, Wanted::Kinds);
        }
        let calls = self.settings.iter().flat_map(|(settings, _)| &settings.invocations);
        let mut found: BTreeSet<String> = calls
            .filter(|call| call.crd.is_some())
            .flat_map(|call| type_files::packages(root, &call.folder, &call.paths, Wanted::Kinds))
            .collect();
        if found.is_empty() {
            let patterns: Vec<String> =
                project.types.iter().map(|path| format!("./{}/...", path.display())).collect();
            found.extend(type_files::packages(root, "", &patterns, Wanted::Kinds));
        }
        found.into_iter().collect()
    }

    fn options(&self) -> Options {
        let settings = self.settings.as_ref().map(|(settings, _)| settings);
        let version = settings.and_then(|settings| settings.version.as_ref());
        let flags =
            settings.and_then(|settings| settings.invocations.iter().find_map(|call| call.crd.clone()));
        let flags: CrdFlags = flags.unwrap_or_default();
        Options {
            profile: version.map(|version| Profile::parse(&version.text)).unwrap_or_default(),
            max_desc_len: flags.max_description,
            allow_dangerous_types: flags.allow_dangerous_types,
            ignore_unexported_fields: flags.ignore_unexported_fields,
            generate_embedded_object_meta: flags.generate_embedded_object_meta,
        }
    }

    fn generate(&mut self, project: &Project) {
        let disk = Disk { root: &project.root };
        let options = self.options();
        let packages = self.packages.clone();
        let made = self.generator.generate(&disk, &packages, &options);
        let texts: BTreeMap<String, Arc<str>> =
            made.read.iter().filter_map(|file| Some((file.clone(), disk.read(file)?))).collect();
        let mut found = made.diagnostics;
        if let Some((settings, _)) = &self.settings {
            found.extend(settings.diagnostics.iter().cloned());
        }
        self.types = Types { made: made.crds.into_iter().map(of).collect(), found, texts };
    }
}

/// The files of a project on disk, for the generator.
struct Disk<'p> {
    root: &'p Path,
}

/// Larger files than this are no source.
const LARGEST: u64 = 8 << 20;

impl Files for Disk<'_> {
    fn read(&self, path: &str) -> Option<Arc<str>> {
        let path = self.root.join(path);
        let small = path.metadata().is_ok_and(|data| data.is_file() && data.len() <= LARGEST);
        if small { std::fs::read_to_string(path).ok().map(Arc::from) } else { None }
    }

    fn list(&self, dir: &str) -> Vec<String> {
        let entries = std::fs::read_dir(self.root.join(dir)).into_iter().flatten().flatten();
        let mut names: Vec<String> =
            entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort();
        names
    }

    fn module_cache(&self) -> Option<String> {
        type_files::module_cache().map(|folder| folder.display().to_string())
    }
}

fn is_in(file: &str, package: &str) -> bool {
    Path::new(file).parent().is_some_and(|folder| folder == Path::new(package.trim_start_matches("./")))
}

fn of(crd: Crd) -> Made {
    let place = |place: opdev_types::diagnostic::Place| Place {
        file: place.file,
        line: place.line,
        column: place.column,
    };
    let places: BTreeMap<String, Place> =
        crd.places.into_iter().map(|(path, at)| (path, place(at))).collect();
    let of_kind = |(path, _): &(&String, &Place)| path.ends_with(".spec") && path.matches('.').count() == 1;
    let file = places.iter().find(of_kind).map(|(_, place)| place.file.clone());
    let file = file.or_else(|| crd.files.first().cloned()).unwrap_or_default();
    Made { crd: Arc::new(crd.object), file, files: crd.files, places, broken: crd.broken }
}
