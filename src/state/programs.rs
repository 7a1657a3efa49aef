//! The programs of the operator's own, each with its newest build.

use opdev_event::{
    BuildChanged, BuildState, Diagnostic, ProcessChanged, ProcessState, ReloadFailed, Severity, words,
};
use std::sync::Arc;

/// All programs, in the order in which they were first told of.
#[derive(Clone, Debug, Default)]
pub struct Programs(Arc<Vec<Program>>);

/// A program.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// Its name: what is started, in words.
    pub words: String,
    /// Its newest build.
    pub build: Option<Arc<BuildChanged>>,
    /// Its newest build, where that one failed.
    pub build_failed: Option<Arc<ReloadFailed>>,
    /// The newest change of its state.
    pub run: Option<Arc<ProcessChanged>>,
}

impl Programs {
    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Program> {
        self.0.iter()
    }

    /// The states of those of which one is known.
    pub fn runs(&self) -> impl Iterator<Item = &ProcessChanged> {
        self.iter().filter_map(|program| program.run.as_deref())
    }

    /// The one with this name.
    pub fn get(&self, words: &str) -> Option<&Program> {
        self.iter().find(|program| program.words == words)
    }

    /// The state of the one with this name.
    pub fn run_of(&self, words: &str) -> Option<&ProcessChanged> {
        self.get(words)?.run.as_deref()
    }

    pub(super) fn run_changed(&mut self, run: Arc<ProcessChanged>) {
        let program = self.named(&run.program);
        program.run = Some(run);
    }

    /// A build that succeeds mends the one that failed before.
    pub(super) fn build_changed(&mut self, build: Arc<BuildChanged>) {
        let program = self.named(&build.program);
        if let BuildState::Built { .. } = build.state {
            program.build_failed = None;
        }
        program.build = Some(build);
    }

    pub(super) fn build_failed(&mut self, failed: Arc<ReloadFailed>) {
        let program = self.named(&failed.program);
        program.build_failed = Some(failed);
    }

    fn named(&mut self, words: &str) -> &mut Program {
        let programs = Arc::make_mut(&mut self.0);
        let known = programs.iter().position(|program| program.words == words);
        let at = known.unwrap_or(programs.len());
        if known.is_none() {
            programs.push(Program { words: words.to_owned(), ..Program::default() });
        }
        &mut programs[at]
    }
}

impl Program {
    /// Why it does not run and will not by itself, as a diagnostic.
    pub(super) fn problem(&self) -> Option<Diagnostic> {
        let run = self.run.as_ref()?;
        let ProcessState::Failed { exit } = &run.state else { return None };
        Some(Diagnostic {
            severity: Severity::Error,
            message: format!("{} does not run: {}", run.program, words::exit(exit)),
            place: exit.place.clone(),
            excerpt: None,
            hint: Some(exit.hint.clone().unwrap_or_else(|| "correct it and save, or press R".to_owned())),
            kind: None,
        })
    }
}
