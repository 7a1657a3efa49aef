//! The copy methods of a Go project's types, brought up to date before each build: a field that a copy shares
//! with the cache is a bug that no compiler finds. Files whose methods are the same stay as they are,
//! whatever release of controller-gen has written them.

use super::notices::tell;
use crate::{BeforeBuild, Prepared};
use anyhow::Result;
use opdev_event::sink::EventSink;
use opdev_event::{Level, words};
use opdev_generate::deepcopy::DeepCopies;
use opdev_generate::manifests;
use opdev_generate::manifests::{Asked, Made};
use opdev_os::private_folder::PrivateFolder;
use opdev_os::small_file::small_text;
use opdev_project::program::settings::{Build, Generate, Plan};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// The folder below `.opdev` for files that take part in builds only.
const FOLDER: &str = "copies";

/// The copy methods of one project, and the last notice about them.
struct ProjectCopies {
    root: PathBuf,
    generate: Generate,
    folder: PrivateFolder,
    maker: DeepCopies,
    told: String,
}

/// The step before each build of a plan; `None` where it has no Go types, or does not want it.
pub(crate) fn before_build(
    plan: &Plan,
    state_folder: &PrivateFolder,
    events: &EventSink,
) -> Option<BeforeBuild> {
    match (&plan.build, plan.generate) {
        (Build::Go { .. }, Generate::Write | Generate::Overlay) => {}
        (Build::Go { .. } | Build::Command(_) | Build::None, _) => return None,
    }
    let copies = ProjectCopies {
        root: plan.dir.clone(),
        generate: plan.generate,
        folder: state_folder.clone(),
        maker: DeepCopies::new(&plan.dir),
        told: String::new(),
    };
    let (copies, events) = (Arc::new(Mutex::new(copies)), events.clone());
    Some(Arc::new(move || {
        let (copies, events) = (Arc::clone(&copies), events.clone());
        Box::pin(async move {
            let work = move || copies.lock().unwrap_or_else(PoisonError::into_inner).refresh();
            let (prepared, said) = tokio::task::spawn_blocking(work).await.unwrap_or_default();
            for (level, message, hint) in said {
                tell(&events, level, message, hint).await;
            }
            prepared
        })
    }))
}

/// Notices to tell.
type Notices = Vec<(Level, String, Option<String>)>;

impl ProjectCopies {
    fn refresh(&mut self) -> (Prepared, Notices) {
        match self.made() {
            Ok(made) => made,
            Err(error) => {
                let message = format!("copy methods of the types are not brought up to date: {error:#}");
                (Prepared::default(), vec![(Level::Warn, message, Some(OFF.to_owned()))])
            }
        }
    }

    fn made(&mut self) -> Result<(Prepared, Notices)> {
        let year = jiff::Zoned::now().year().to_string();
        let mut made = self.maker.make(&Asked { year, ..Asked::default() })?;
        let mut said = self.problems(&made);
        made.files.retain(|file| file.path.as_ref().is_some_and(|path| differs(path, &file.artifact.text)));
        let mut prepared = Prepared::default();
        match self.generate {
            Generate::Write => {
                let written = manifests::write(&self.root, &made)?;
                if !written.is_empty() {
                    said.push((Level::Info, format!("wrote {}", written.join(", ")), None));
                }
                prepared.written = written.iter().map(|path| self.root.join(path)).collect();
            }
            Generate::Overlay => prepared.replace = self.laid_over(&made)?,
            Generate::Off => {}
        }
        Ok((prepared, said))
    }

    /// Writes the files beside the project, for builds only.
    fn laid_over(&self, made: &Made) -> Result<BTreeMap<PathBuf, PathBuf>> {
        let folder = self.folder.folder(FOLDER)?;
        let mut replace = BTreeMap::new();
        for (number, file) in made.files.iter().enumerate() {
            let Some(path) = &file.path else { continue };
            let name = format!("{number}.go");
            folder.write(&name, file.artifact.text.as_bytes())?;
            replace.insert(path.clone(), folder.path().join(name));
        }
        Ok(replace)
    }

    /// Files that could not be made; told again only once they are other ones.
    fn problems(&mut self, made: &Made) -> Notices {
        if made.broken.is_empty() || !made.failed() {
            self.told.clear();
            return Vec::new();
        }
        let first = made.diagnostics.iter().find(|one| one.severity == opdev_event::Severity::Error);
        let why = first.map(|one| {
            let place = one.place.as_ref().map(|place| format!("{place}: ")).unwrap_or_default();
            format!("{place}{}", words::one_line(&one.message))
        });
        let message = format!("{} stays as it is: {}", made.broken.join(", "), why.unwrap_or_default());
        if self.told == message {
            return Vec::new();
        }
        self.told.clone_from(&message);
        vec![(Level::Warn, message, Some(OFF.to_owned()))]
    }
}

const OFF: &str = "correct the type, or set operator.generate: off in opdev.yaml";

/// Returns true if a file has other methods than a text; headers, build tags and the order of imports are
/// those of a release.
fn differs(path: &Path, text: &str) -> bool {
    small_text(path).is_none_or(|old| methods(&old) != methods(text))
}

/// A generated file from its first method on.
fn methods(text: &str) -> &str {
    text.find("\n// DeepCopy").map_or(text, |at| &text[at..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_other_methods_make_a_file_differ() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("zz_generated.deepcopy.go");
        let method = "\n// DeepCopyInto is an autogenerated deepcopy function.\nfunc (in *A) DeepCopyInto(out *A) {}\n";
        let new = format!("//go:build !ignore_autogenerated\n\npackage v1\n{method}");
        assert!(differs(&path, &new), "one that is missing is written");
        let old = format!("// +build !ignore_autogenerated\n\n// Copyright\n\npackage v1\n{method}");
        std::fs::write(&path, &old).unwrap();
        assert!(!differs(&path, &new));
        std::fs::write(&path, old.replace("*A", "*B")).unwrap();
        assert!(differs(&path, &new));
    }
}
