//! Files and folders for a path that is being typed. Not a request that is announced: it changes nothing.

use super::Requests;
use super::objects::apply::expanded;
use opdev_event::{Event, Paths};
use opdev_os::read;
use opdev_project::files::is_foreign;
use std::collections::VecDeque;
use std::path::{Path, PathBuf};

/// More are not told.
const MOST: usize = 200;
/// More files of a project are not listed; those in its upper folders come first.
const MOST_FILES: usize = 5_000;
/// More folders are not read: a chart of a cloned repository may be a link to the whole disk.
const MOST_FOLDERS: usize = 5_000;
/// How many folders deep they may lie.
const DEEPEST: usize = 12;

impl Requests {
    /// Tells which files with objects, and which folders, the typed text may lead to.
    pub async fn list_paths(&self, typed: String) {
        let root = self.project.root.clone();
        let listed = tokio::task::spawn_blocking(move || {
            let (folder, start) = typed.rsplit_once('/').map_or(("", typed.as_str()), |(f, s)| (f, s));
            let shown = if typed.contains('/') { format!("{folder}/") } else { String::new() };
            let place = root.join(expanded(if shown.is_empty() { "." } else { &shown }));
            let mut found: Vec<String> = Vec::new();
            for entry in read::entries(place).into_iter().flatten() {
                let Ok(name) = entry.file_name().into_string() else { continue };
                let hidden = name.starts_with('.') && !start.starts_with('.');
                if hidden || !name.starts_with(start) {
                    continue;
                }
                let file = [".yaml", ".yml", ".json"].iter().any(|end| name.ends_with(end));
                if entry.path().is_dir() {
                    found.push(format!("{shown}{name}/"));
                } else if file {
                    found.push(format!("{shown}{name}"));
                }
            }
            found.sort();
            found.truncate(MOST);
            Paths { typed, found }
        });
        if let Ok(paths) = listed.await {
            self.events.emit(Event::PathsListed(paths)).await;
        }
    }

    /// Tells which files the project has.
    pub async fn list_files(&self) {
        let root = self.project.root.clone();
        // A chart may be a link to a folder elsewhere; other links to folders are not followed.
        let charts = |sources: &opdev_sources::Sources| -> Vec<PathBuf> {
            sources.watches.iter().filter_map(|watch| Some(root.join(&watch.chart()?.path))).collect()
        };
        let linked = charts(&self.operator.sources.borrow());
        let root = self.project.root.clone();
        if let Ok(files) = tokio::task::spawn_blocking(move || project_files(&root, linked)).await {
            self.events.emit(Event::FilesListed { files: files.into() }).await;
        }
    }
}

/// The files below a project's root, by name, without hidden ones and what is not the user's own.
fn project_files(root: &Path, linked: Vec<PathBuf>) -> Vec<String> {
    let mut open: VecDeque<(PathBuf, usize)> = VecDeque::from([(root.to_owned(), 0)]);
    open.extend(linked.into_iter().filter(|path| path.is_symlink()).map(|path| (path, 1)));
    let (mut found, mut read) = (Vec::new(), 0);
    let mut walk = read::Walk::from(root);
    while found.len() < MOST_FILES
        && read < MOST_FOLDERS
        && let Some((folder, depth)) = open.pop_front()
    {
        read += 1;
        for path in walk.paths(&folder).into_iter().filter(|path| !is_foreign(path)) {
            if path.is_dir() {
                if depth < DEEPEST && !path.is_symlink() {
                    open.push_back((path, depth + 1));
                }
            } else if found.len() < MOST_FILES
                && let Some(name) = path.strip_prefix(root).ok().and_then(Path::to_str)
            {
                found.push(name.to_owned());
            }
        }
    }
    found.sort();
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn files_of_a_project_are_its_own_and_links_to_charts_are_followed() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("project");
        let elsewhere = folder.path().join("shared");
        for file in [
            "charts/web/templates/a.yaml",
            "config/types/t.go",
            "main.go",
            ".opdev/x",
            "node_modules/y",
            "target/z",
        ] {
            let path = root.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        fs::create_dir_all(elsewhere.join("templates")).unwrap();
        fs::write(elsewhere.join("Chart.yaml"), "").unwrap();
        std::os::unix::fs::symlink(&elsewhere, root.join("charts/linked")).unwrap();
        let own = ["charts/web/templates/a.yaml", "config/types/t.go", "main.go"];
        assert_eq!(project_files(&root, Vec::new()), own);
        let all = project_files(&root, vec![root.join("charts/linked"), root.join("charts/web")]);
        assert_eq!(all.len(), 4, "each once: {all:?}");
        assert!(all.contains(&"charts/linked/Chart.yaml".to_owned()));
    }

    #[test]
    fn a_link_to_more_folders_than_a_project_has_does_not_keep_it_busy() {
        let folder = tempfile::tempdir().unwrap();
        let (root, disk) = (folder.path().join("project"), folder.path().join("disk"));
        fs::create_dir(&root).unwrap();
        for n in 0..MOST_FOLDERS {
            fs::create_dir_all(disk.join(n.to_string())).unwrap();
        }
        fs::write(disk.join("Chart.yaml"), "").unwrap();
        // The last by name: root, link and the others are as many as are read.
        fs::write(disk.join("999/late"), "").unwrap();
        std::os::unix::fs::symlink(&disk, root.join("chart")).unwrap();
        assert_eq!(project_files(&root, vec![root.join("chart")]), ["chart/Chart.yaml"]);
    }
}
