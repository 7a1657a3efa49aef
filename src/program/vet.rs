//! `go vet` on the packages of saved files, beside the program that runs. What it finds is told once.

use super::build::Builder;
use jiff::Timestamp;
use opdev_event::{Diagnostic, Level, Notice, words};
use opdev_os::read;
use opdev_project::program::settings::Build;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use tokio_util::task::AbortOnDropHandle;

const HINT: &str = "the program keeps running; operator.vet: false in opdev.yaml ends these checks";

/// A finding: a file and its message. Not the line, which changes with each save above it.
type Finding = (String, String);

/// The look at the files that were saved last.
#[derive(Default)]
pub(super) struct Vet {
    /// Dropping it ends it.
    work: Option<AbortOnDropHandle<Option<Vec<Diagnostic>>>>,
    /// Folders of packages, relative to the project's root, whose files were saved since they were looked at
    /// last.
    folders: BTreeSet<PathBuf>,
    /// Findings that were shown, and how often each is there.
    told: BTreeMap<Finding, usize>,
}

impl Vet {
    /// Looks at the packages of these files, relative to the project's root, and at those whose look was
    /// ended, where the program is built by `go build` and the settings do not forbid it.
    pub(super) fn begin(&mut self, builder: &Builder, files: &[String]) {
        self.end();
        let packages = self.packages(builder, files);
        if packages.is_empty() {
            return;
        }
        let builder = builder.clone();
        let work = tokio::spawn(async move { builder.vet(&packages).await });
        self.work = Some(AbortOnDropHandle::new(work));
    }

    /// The packages to look at, as the go command takes them.
    fn packages(&mut self, builder: &Builder, files: &[String]) -> Vec<String> {
        let Build::Go { .. } = builder.plan.build else { return Vec::new() };
        if !builder.plan.vet {
            return Vec::new();
        }
        let saved = files.iter().filter(|file| file.ends_with(".go"));
        self.folders.extend(saved.filter_map(|file| Some(Path::new(file).parent()?.to_owned())));
        // A folder that is gone would have vet look at none of the others.
        self.folders.retain(|folder| has_go_files(&builder.root.join(folder)));
        let package = |folder: &PathBuf| {
            let inside = builder.root.join(folder);
            Some(format!("./{}", inside.strip_prefix(&builder.plan.dir).ok()?.display()))
        };
        self.folders.iter().filter_map(package).collect()
    }

    /// Ends what runs. Its packages are looked at the next time.
    pub(super) fn end(&mut self) {
        self.work = None;
    }

    /// Waits for what is found; for ever where nothing looks.
    pub(super) async fn found(&mut self) -> Vec<Notice> {
        let found = match &mut self.work {
            Some(work) => work.await.unwrap_or_default(),
            None => std::future::pending().await,
        };
        self.work = None;
        let looked = std::mem::take(&mut self.folders);
        found.map_or_else(Vec::new, |found| self.news(&looked, &found))
    }

    /// The findings that were not shown yet. Findings of packages that were not looked at are kept.
    fn news(&mut self, looked: &BTreeSet<PathBuf>, found: &[Diagnostic]) -> Vec<Notice> {
        let before = std::mem::take(&mut self.told);
        let is_old = |file: &str| Path::new(file).parent().is_some_and(|folder| !looked.contains(folder));
        self.told =
            before.iter().filter(|((file, _), _)| is_old(file)).map(|(of, n)| (of.clone(), *n)).collect();
        let mut seen: BTreeMap<Finding, usize> = BTreeMap::new();
        let mut new = Vec::new();
        for one in found {
            let file = one.place.as_ref().map_or_else(String::new, |place| place.file.clone());
            let finding = (file, one.message.clone());
            let count = seen.entry(finding.clone()).or_default();
            *count += 1;
            if *count > before.get(&finding).copied().unwrap_or_default() {
                new.push(words::diagnostic(one));
            }
        }
        self.told.extend(seen);
        let notice = |word: String| Notice {
            at: Timestamp::now(),
            level: Level::Warn,
            message: format!("go vet: {word}"),
            hint: Some(HINT.to_owned()),
            object: None,
        };
        new.into_iter().map(notice).collect()
    }
}

fn has_go_files(folder: &Path) -> bool {
    read::paths(folder).iter().any(|path| path.extension().is_some_and(|end| end == "go"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use opdev_event::{Place, Severity};
    use opdev_project::program::detect::detect;

    fn found(file: &str, line: u32, message: &str) -> Diagnostic {
        Diagnostic {
            severity: Severity::Error,
            message: message.to_owned(),
            place: Some(Place { file: file.to_owned(), line, column: 1 }),
            excerpt: None,
            hint: None,
            kind: None,
        }
    }

    #[test]
    fn what_is_found_is_told_once_until_it_is_gone() {
        let mut vet = Vet::default();
        let mut news = |folder: &str, found: &[Diagnostic]| {
            let notices = vet.news(&[PathBuf::from(folder)].into(), found);
            notices.into_iter().map(|notice| notice.message).collect::<Vec<_>>()
        };
        assert_eq!(news("a", &[found("a/a.go", 3, "wrong")]), ["go vet: a/a.go:3:1: wrong"]);
        // Another package is saved; then this one, with a line above; then the same is wrong once more.
        assert!(news("b", &[]).is_empty());
        assert!(news("a", &[found("a/a.go", 4, "wrong")]).is_empty());
        let twice = [found("a/a.go", 4, "wrong"), found("a/a.go", 9, "wrong")];
        assert_eq!(news("a", &twice), ["go vet: a/a.go:9:1: wrong"]);
        assert!(news("a", &[]).is_empty());
        assert_eq!(news("a", &[found("a/a.go", 3, "wrong")]).len(), 1, "it was gone");
    }

    #[test]
    fn packages_of_a_look_that_was_ended_are_looked_at_the_next_time() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let files = [
            ("go.mod", "module a.b/c\n\nrequire sigs.k8s.io/controller-runtime v0.24.1\n"),
            ("main.go", "package main\n\nfunc main() { ctrl.NewManager(nil) }\n"),
            ("api/a.go", "package api\n"),
            ("gone/a.go", "package gone\n"),
        ];
        for (path, text) in files {
            std::fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
            std::fs::write(root.join(path), text).unwrap();
        }
        let builder = Builder {
            plan: detect(root, None, false).unwrap().unwrap(),
            root: root.to_owned(),
            folder: root.join(".opdev"),
            cache: root.join(".opdev"),
            rung: None,
            replace: BTreeMap::new(),
        };
        let mut vet = Vet::default();
        let saved = ["api/a.go", "gone/a.go", "api/a.txt"].map(str::to_owned);
        assert_eq!(vet.packages(&builder, &saved), ["./api", "./gone"]);
        vet.end();
        std::fs::remove_dir_all(root.join("gone")).unwrap();
        assert_eq!(vet.packages(&builder, &["main.go".to_owned()]), ["./", "./api"]);
    }
}
