//! `go vet` on the packages of saved files, beside the program that runs. What it finds is told once.

use super::build::Builder;
use super::plan::Build;
use crate::event::{Diagnostic, Level, Notice, words};
use jiff::Timestamp;
use std::collections::BTreeSet;
use tokio_util::task::AbortOnDropHandle;

const HINT: &str = "the program runs all the same; operator.vet: false in opdev.yaml ends these checks";

/// The look at the files that were saved last.
#[derive(Default)]
pub(super) struct Vet {
    /// Dropping it ends it.
    work: Option<AbortOnDropHandle<Vec<Diagnostic>>>,
    /// What was found and told.
    told: BTreeSet<String>,
}

impl Vet {
    /// Looks at the packages of these files, relative to the project's root, where the program is built by `go build` and the
    /// settings do not forbid it.
    pub(super) fn begin(&mut self, builder: &Builder, files: &[String]) {
        self.end();
        let Build::Go { .. } = builder.plan.build else { return };
        let package = |file: &String| {
            let path = builder.root.join(file);
            let folder = path.parent()?.strip_prefix(&builder.plan.dir).ok()?.to_owned();
            Some(format!("./{}", folder.display()))
        };
        let packages: BTreeSet<String> =
            files.iter().filter(|file| file.ends_with(".go")).filter_map(package).collect();
        if packages.is_empty() || !builder.plan.vet {
            return;
        }
        let (builder, packages) = (builder.clone(), Vec::from_iter(packages));
        let work = tokio::spawn(async move { builder.vet(&packages).await });
        self.work = Some(AbortOnDropHandle::new(work));
    }

    /// Ends what runs.
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
        let words: Vec<String> = found.iter().map(words::diagnostic).collect();
        self.told.retain(|known| words.contains(known));
        let new = words.into_iter().filter(|word| self.told.insert(word.clone()));
        new.map(|word| Notice {
            at: Timestamp::now(),
            level: Level::Warn,
            message: format!("go vet: {word}"),
            hint: Some(HINT.to_owned()),
            object: None,
        })
        .collect()
    }
}
