//! Folders of the project that charts depend on with `file://`. Helm takes the copy in `charts/`, so a saved
//! file of the folder changes nothing until it is packed again.

use opdev_helm::chart::{self, Chart, FileSet, Metadata};
use opdev_object::yaml::{self, Node};
use opdev_os::read;
use opdev_sources::load::Outdated;
use std::path::{Path, PathBuf};

/// A dependency with `file://` whose folder lies in the project.
struct Near {
    name: String,
    folder: PathBuf,
}

/// The dependencies of a chart whose copy in `charts/` is not what their folder is now. `path` is the chart's
/// folder from the root on; a copy that is missing is told elsewhere.
pub fn outdated(root: &Path, path: &str, files: &FileSet) -> Vec<Outdated> {
    let differs = |near: Near| {
        let (packed, copy) = copy_of(files, &near.name)?;
        let source = chart::read_dir_in_work(&near.folder).ok()?;
        let file = first_difference(&source, &copy)?;
        let shown = near.folder.strip_prefix(root).unwrap_or(&near.folder).display().to_string();
        Some(Outdated { chart: path.to_owned(), name: near.name, packed, source: shown, file })
    };
    near(root, &root.join(path), files).into_iter().filter_map(differs).collect()
}

/// The folders that a chart depends on with `file://`.
pub(crate) fn folders(root: &Path, path: &str) -> Vec<PathBuf> {
    let folder = root.join(path);
    let mut files = FileSet::new();
    for name in ["Chart.yaml", "requirements.yaml"] {
        if let Ok(bytes) = read::bytes(folder.join(name)) {
            files.insert(name, bytes);
        }
    }
    near(root, &folder, &files).into_iter().map(|near| near.folder).collect()
}

fn near(root: &Path, folder: &Path, files: &FileSet) -> Vec<Near> {
    let lists = ["Chart.yaml", "requirements.yaml"].into_iter().filter_map(|name| files.get(name));
    let texts = lists.map(|data| String::from_utf8_lossy(data).into_owned());
    // Most charts have none, and are not parsed once more.
    let parsed = texts.filter(|text| text.contains("file://")).filter_map(|text| yaml::parse(&text).ok());
    let mut found = Vec::new();
    for list in parsed {
        for item in list.get("dependencies").map(Node::items).unwrap_or_default() {
            let text = |key: &str| item.get(key).and_then(Node::to_text);
            if let (Some(name), Some(repository)) = (text("name"), text("repository"))
                && let Some(relative) = repository.strip_prefix("file://")
                && let (Ok(real), Ok(root)) = (folder.join(relative).canonicalize(), root.canonicalize())
                && real.starts_with(&root)
                && real != root
                && real.is_dir()
            {
                found.push(Near { name, folder: real });
            }
        }
    }
    found
}

/// The copy of a dependency in `charts/`, its place there and its files.
fn copy_of(files: &FileSet, name: &str) -> Option<(String, FileSet)> {
    let folder = format!("charts/{name}");
    let unpacked = files.below(&folder);
    if unpacked.get("Chart.yaml").is_some() {
        return Some((folder, unpacked));
    }
    let is_archive = |path: &&str| path.starts_with("charts/") && path.ends_with(".tgz");
    let archives = files.iter().filter(|(path, _)| is_archive(path));
    archives.filter(|(path, _)| path["charts/".len()..].starts_with(name)).find_map(|(path, data)| {
        let copy = chart::unpack(data).ok()?;
        (metadata(&copy)?.name == name).then(|| (path.to_owned(), copy))
    })
}

/// The first file that is not the same in both. Packing writes Chart.yaml anew, so its content counts; what
/// lies in
/// `charts/` of the dependency is its own affair.
fn first_difference(source: &FileSet, copy: &FileSet) -> Option<String> {
    const WRITTEN: [&str; 3] = ["Chart.yaml", "Chart.lock", "requirements.lock"];
    let counts = |path: &str| !WRITTEN.contains(&path) && !path.starts_with("charts/");
    if metadata(source)? != metadata(copy)? {
        return Some("Chart.yaml".to_owned());
    }
    let is_other = |path: &str, data: &[u8]| copy.get(path).is_none_or(|there| there.bytes()[..] != *data);
    let changed = source.iter().find(|(path, data)| counts(path) && is_other(path, data));
    let gone = || copy.iter().find(|(path, _)| counts(path) && source.get(path).is_none());
    changed.or_else(gone).map(|(path, _)| path.to_owned())
}

fn metadata(files: &FileSet) -> Option<Metadata> {
    let mut only = FileSet::new();
    for name in ["Chart.yaml", "requirements.yaml"] {
        if let Some(data) = files.get(name) {
            only.insert(name, data.clone());
        }
    }
    Chart::load(&only).ok().map(|chart| chart.metadata)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn write(root: &Path, path: &str, text: &str) {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[test]
    fn a_copy_that_is_older_than_its_folder_is_found() {
        let project = tempfile::tempdir().unwrap();
        let root = &project.path().canonicalize().unwrap();
        let list = "apiVersion: v2\nname: web\nversion: 1.0.0\ndependencies:\n- {name: s, version: 0.1.0, repository: \"file://../s\"}\n- {name: far, version: 0.1.0, repository: \"https://example.com\"}\n";
        write(root, "charts/web/Chart.yaml", list);
        for folder in ["charts/s", "charts/web/charts/s"] {
            write(root, &format!("{folder}/Chart.yaml"), "apiVersion: v2\nname: s\nversion: 0.1.0\n");
            write(root, &format!("{folder}/templates/a.yaml"), "a: 1\n");
        }
        let found = || outdated(root, "charts/web", &chart::read_dir(&root.join("charts/web")).unwrap());
        assert_eq!(folders(root, "charts/web"), [root.join("charts/s")]);
        assert!(found().is_empty());
        write(root, "charts/s/Chart.yaml", "name: s\nversion: 0.1.0\n# the same\napiVersion: v2\n");
        assert!(found().is_empty(), "packing writes Chart.yaml anew");
        write(root, "charts/s/.helmignore", "README.md\n");
        write(root, "charts/web/charts/s/.helmignore", "README.md\n");
        write(root, "charts/s/README.md", "ignored\n");
        assert!(found().is_empty());
        write(root, "charts/s/templates/a.yaml", "a: 2\n");
        let told = Outdated {
            chart: "charts/web".to_owned(),
            name: "s".to_owned(),
            packed: "charts/s".to_owned(),
            source: "charts/s".to_owned(),
            file: "templates/a.yaml".to_owned(),
        };
        assert_eq!(found(), [told]);
        write(root, "charts/s/templates/a.yaml", "a: 1\n");
        fs::remove_file(root.join("charts/s/.helmignore")).unwrap();
        assert_eq!(found()[0].file, "README.md", "a file is there that the copy does not have");
        fs::remove_dir_all(root.join("charts/s")).unwrap();
        assert!(found().is_empty() && folders(root, "charts/web").is_empty(), "nothing to compare with");
    }
}
