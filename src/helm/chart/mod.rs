//! A chart: metadata, default values, templates, files and subcharts, loaded from a set of files as Helm
//! loads it. Never touches the disk, except `read` (a folder into a `FileSet`). Read `metadata` for
//! Chart.yaml, `content` for what is read late, `ignore` for .helmignore, `archive` for .tgz subcharts,
//! `dependencies` for what a release takes of it.

mod archive;
mod content;
mod decode;
mod error;
mod file_set;
mod ignore;
mod load;
mod metadata;
pub(crate) mod read;

pub use content::{Content, Unread};
pub use error::{ChartError, Place};
pub use file_set::FileSet;
pub use metadata::{Dependency, Maintainer, Metadata};
pub use read::{read_dir, read_dir_in_work, read_dir_late};

pub(crate) use load::{values as parse_values, values_of as parse_values_bytes};

/// Go's `filepath.Match`, false for a malformed pattern: `*` and `?` stop at `/`.
pub fn path_matches(pattern: &str, path: &str) -> bool {
    ignore::matches(pattern, path).unwrap_or(false)
}

/// The files of a chart's archive, by path from the chart's folder.
///
/// # Errors
/// Bytes that are no archive, paths that leave the chart's folder, or more than 100 MiB of content.
pub fn unpack(archive: &[u8]) -> Result<FileSet, ChartError> {
    archive::unpack(archive, &archive::Budget::new())
}

use opdev_template::Compat;
use serde_json::{Map, Value};
use std::sync::Arc;

/// One file of a chart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// The path relative to the chart it belongs to, such as `templates/deployment.yaml`.
    pub name: String,
    /// Its content, without a byte order mark.
    pub data: Content,
}

/// A loaded chart.
#[derive(Debug, Clone)]
pub struct Chart {
    /// Chart.yaml, with requirements.yaml of a v1 chart merged in.
    pub metadata: Metadata,
    /// The name in its own Chart.yaml, where an alias has taken its place.
    pub own_name: Option<String>,
    /// Chart.lock or requirements.lock.
    pub lock: Option<Value>,
    /// values.yaml, an object; every number is a float64.
    pub values: Arc<Value>,
    /// values.yaml as it is written, for the places of values.
    pub values_text: Option<Arc<[u8]>>,
    /// Files below `templates/`.
    pub templates: Vec<File>,
    /// The files of `.Files` and of `crds/`.
    pub files: Vec<File>,
    /// values.schema.json.
    pub schema: Option<Arc<[u8]>>,
    /// Charts below `charts/`.
    pub subcharts: Vec<Arc<Chart>>,
    /// Warnings that Helm would give while loading.
    pub warnings: Vec<String>,
}

impl Default for Chart {
    fn default() -> Self {
        Self {
            metadata: Metadata::default(),
            own_name: None,
            lock: None,
            values: Arc::new(Value::Object(Map::new())),
            values_text: None,
            templates: Vec::new(),
            files: Vec::new(),
            schema: None,
            subcharts: Vec::new(),
            warnings: Vec::new(),
        }
    }
}

impl Chart {
    /// Loads a chart; files that `.helmignore` names are left out.
    pub fn load(files: &FileSet) -> Result<Chart, ChartError> {
        load::load(files, Compat::V3)
    }

    /// Loads a chart's folder as that Helm does: they read `values.yaml` in different ways.
    pub fn load_for(files: &FileSet, compat: Compat) -> Result<Chart, ChartError> {
        load::load(files, compat)
    }

    /// Loads a chart from a `.tgz`.
    pub fn load_archive(data: &[u8]) -> Result<Chart, ChartError> {
        let budget = archive::Budget::new();
        load::load_files(&archive::unpack(data, &budget)?, "", Compat::V3, &budget)
    }

    /// The chart's name.
    pub fn name(&self) -> &str {
        &self.metadata.name
    }

    /// The files of `crds/`, own ones first, then those of subcharts.
    pub fn crds(&self) -> Vec<Crd> {
        let mut found = Vec::new();
        self.collect_crds(&Paths::of_root(self), &mut found);
        found
    }

    fn collect_crds(&self, paths: &Paths, found: &mut Vec<Crd>) {
        let path = &paths.path;
        for file in &self.files {
            let manifest = [".yaml", ".yml", ".json"].iter().any(|end| file.name.ends_with(end));
            if file.name.starts_with("crds/") && manifest {
                found.push(Crd {
                    path: format!("{path}/{}", file.name),
                    name: file.name.clone(),
                    content: String::from_utf8_lossy(&file.data).into_owned(),
                });
            }
        }
        for subchart in &self.subcharts {
            subchart.collect_crds(&paths.below(self, subchart, Compat::V3), found);
        }
    }
}

/// The path of a chart's files, from the root chart's name on, and what it was before the chart was copied
/// for a release.
///
/// A dependency is a copy of the chart that was loaded, and knows the chart above it. A chart below it that
/// is no dependency of it still knows the one that was loaded: Helm tells its files by that path, so that
/// those of two aliases are the same files. Helm 4 copies the charts right below a dependency, too.
pub(crate) struct Paths {
    /// The path that files have.
    pub(crate) path: String,
    loaded: String,
    /// True if it is a dependency of the chart above.
    dependency: bool,
    /// True if its own dependencies were looked at: Helm stops at a chart that lists none.
    processed: bool,
}

impl Paths {
    pub(crate) fn of_root(chart: &Chart) -> Paths {
        let name = chart.name().to_owned();
        Paths { path: name.clone(), loaded: name, dependency: false, processed: true }
    }

    /// The paths of a subchart.
    pub(crate) fn below(&self, chart: &Chart, subchart: &Chart, compat: Compat) -> Paths {
        let name = subchart.name();
        let lists = self.processed && chart.metadata.lists_dependencies;
        let dependency =
            lists && chart.metadata.dependencies.iter().any(|dependency| dependency.name == name);
        let copied = dependency || (compat.is_four() && self.dependency);
        let own_name = subchart.own_name.as_deref().filter(|_| dependency).unwrap_or(name);
        let above = if lists || copied { &self.path } else { &self.loaded };
        let path = format!("{above}/charts/{name}");
        let loaded = if copied { format!("{}/charts/{own_name}", self.loaded) } else { path.clone() };
        Paths { path, loaded, dependency, processed: lists }
    }
}

/// A file of `crds/`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Crd {
    /// The path from the root chart's name on, such as `web/charts/db/crds/one.yaml`.
    pub path: String,
    /// The path in its own chart.
    pub name: String,
    /// The text.
    pub content: String,
}
