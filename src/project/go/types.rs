//! The project's Go types as CRDs: which packages, with which flags and after which release of
//! controller-gen, is read from the project (`files`); the generator keeps what it parsed. Runs only where a
//! saved file may matter.

use super::crd_patches::Patches;
use super::files;
use super::files::{Disk, Wanted};
use crate::Project;
use opdev_event::Place;
use opdev_sources::definitions::{Made, Types};
use opdev_types::go::{Crd, Generator, Options, Profile};
use opdev_types::pin::{CrdFlags, Settings};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

/// Makes CRDs of the project's Go types again and again.
#[derive(Debug, Default)]
pub(crate) struct GoTypes {
    generator: Generator,
    settings: Option<(Settings, Vec<String>)>,
    packages: Vec<String>,
    types: Types,
    patches: Patches,
}

impl GoTypes {
    /// The newest CRDs. `changed` are the files that were saved; without any, all may have changed.
    pub(crate) fn read(&mut self, project: &Project, changed: &[String], year: &str) -> Types {
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
            let settings = files::settings(&project.root, year);
            self.settings = Some((settings, files::setting_files(&project.root)));
            self.packages = self.find(project);
        } else if changed.iter().any(|file| file.starts_with("config/crd/")) {
            // The patches there are a part of the CRDs.
        } else if !changed.iter().any(|file| file.ends_with(".go") || !file.contains('.')) {
            return self.types.clone();
        } else if !changed.iter().all(|file| self.packages.iter().any(|package| is_in(file, package))) {
            // A new package, or one that is gone.
            self.packages = self.find(project);
        }
        self.generate(project);
        self.types.clone()
    }

    /// The folders with kinds: those that the project's calls of controller-gen mean, as far as they lie in
    /// the folders of types; else these folders themselves.
    fn find(&self, project: &Project) -> Vec<String> {
        let root = &project.root;
        if let Some(paths) = &project.settings.types {
            let patterns: Vec<String> = paths
                .iter()
                .filter(|path| root.join(path).is_dir())
                .map(|path| format!("./{}/...", path.trim_start_matches("./").trim_end_matches('/')))
                .collect();
            return files::packages(root, "", &patterns, Wanted::Kinds);
        }
        let calls = self.settings.iter().flat_map(|(settings, _)| &settings.invocations);
        let mut found: BTreeSet<String> = calls
            .filter(|call| call.crd.is_some())
            .flat_map(|call| files::packages(root, &call.folder, &call.paths, Wanted::Kinds))
            .collect();
        if found.is_empty() {
            let patterns: Vec<String> =
                project.types.iter().map(|path| format!("./{}/...", path.display())).collect();
            found.extend(files::packages(root, "", &patterns, Wanted::Kinds));
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
            omit_tool_version: flags.omit_tool_version,
            exact: false,
        }
    }

    fn generate(&mut self, project: &Project) {
        let disk = Disk::new(&project.root);
        let options = self.options();
        let made = self.generator.generate(&disk, &self.packages, &options);
        let texts: BTreeMap<String, Arc<str>> =
            made.read.iter().filter_map(|file| Some((file.clone(), self.generator.text(file)?))).collect();
        let mut crds: Vec<Made> = made.crds.into_iter().map(of).collect();
        let mut found = made.diagnostics;
        found.extend(options.profile.warning());
        found.extend(self.patches.apply(&project.root, &mut crds));
        if let Some((settings, _)) = &self.settings {
            found.extend(settings.diagnostics.iter().cloned());
        }
        self.types = Types { made: crds, found, texts };
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
        crd.places.iter().map(|(path, at)| (path.clone(), place(at.clone()))).collect();
    let of_kind = |(path, _): &(&String, &Place)| path.ends_with(".spec") && path.matches('.').count() == 1;
    let file = places.iter().find(of_kind).map(|(_, place)| place.file.clone());
    let file = file.or_else(|| crd.files.first().cloned()).unwrap_or_default();
    Made { crd: crd.object, file, files: crd.files, places, broken: crd.broken }
}
