//! Decides whether a rendering that is not what is deployed becomes a new revision or takes the place of the
//! deployed one, and why. Production knows only the new revision; a saved file may take the place of one, so
//! that an afternoon of edits does not bury the history. Pure; read `upgrade` for what then happens.

use super::history::Stored;
use super::render::Rendered;
use super::render::explain;
use opdev_event::ReleaseStep;
use opdev_helm::engine::ReleaseRead;
use opdev_helm::manifest::Hook;
use opdev_helm::release::StoredHook;
use opdev_sources::on_save::OnSave;

/// The input that is not as it was when the deployed revision was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum News {
    /// The custom resource's values.
    Values,
    /// Somebody beside opdev made the revision that is deployed now.
    Foreign,
    /// The files were saved, or may have changed while opdev did not run.
    Files {
        /// opdev saw the save.
        seen: bool,
    },
    /// Nothing that opdev knows of.
    Nothing,
}

/// Renderings beside what is deployed.
pub(crate) struct Case<'a> {
    pub(crate) deployed: &'a Stored,
    /// The chart as the next revision: what the Operator SDK's operator compares with.
    pub(crate) next: &'a Rendered,
    /// The chart as the deployed revision.
    pub(crate) in_place: &'a Rendered,
    pub(crate) news: News,
    pub(crate) on_save: OnSave,
}

/// A decision between a new revision and a rewrite, with its reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Decision {
    pub(crate) step: ReleaseStep,
    pub(crate) why: String,
    /// Where nobody asked for it, for the same chart and values give something else: what reads which
    /// revision it is.
    pub(crate) surplus: Option<Vec<ReleaseRead>>,
}

impl Case<'_> {
    /// The step to take, or nothing where the deployed revision stays.
    pub(crate) fn decide(&self) -> Option<Decision> {
        let deployed = &self.deployed.release;
        let differs = self.next.manifest != deployed.manifest;
        match &self.news {
            News::Values => differs.then(|| upgrade("its values changed")),
            News::Foreign => {
                let made = &deployed.info.description;
                differs
                    .then(|| upgrade(format!("revision {} was made beside opdev ({made})", deployed.version)))
            }
            News::Files { seen: false } | News::Nothing if !differs => None,
            News::Files { seen: true } if !differs && self.is_same_beside() => None,
            News::Files { .. } if differs && self.in_place.manifest == deployed.manifest => {
                Some(self.surplus())
            }
            News::Files { .. } => Some(self.saved(differs)),
            News::Nothing => Some(self.surplus()),
        }
    }

    /// The parts of `.Release` that differ in the next revision and were read by templates whose output
    /// differs.
    fn blamed(&self) -> Vec<ReleaseRead> {
        explain::blamed(&self.next.release_reads, &self.in_place.manifest, &self.next.manifest)
    }

    /// Returns true if notes and hooks are what they were. A rendering whose `lookup` saw nothing cannot
    /// tell.
    fn is_same_beside(&self) -> bool {
        self.in_place.looked_up || self.deployed.has_notes_and_hooks(self.in_place)
    }

    fn saved(&self, differs: bool) -> Decision {
        let hook = changed_hook(&self.deployed.release.hooks, &self.in_place.hooks);
        match (self.on_save, hook) {
            (OnSave::Rewrite, _) => rewrite("opdev.yaml says `reload: rewrite`"),
            (OnSave::Upgrade, _) => upgrade("opdev.yaml says `reload: upgrade`"),
            (OnSave::ByHooks, Some(hook)) if differs => upgrade(hook),
            (OnSave::ByHooks, Some(hook)) => upgrade(format!(
                "{hook}; the Operator SDK's operator compares no hooks and would not have upgraded"
            )),
            (OnSave::ByHooks, None) => match self.blamed().first() {
                Some(read) => upgrade(format!("{read} is not the same in the next revision")),
                None if differs => rewrite("no hook changed"),
                None => rewrite("only the notes changed"),
            },
        }
    }

    fn surplus(&self) -> Decision {
        let blamed = self.blamed();
        let why = match blamed.first() {
            Some(read) => format!("{read} is not the same in the next revision"),
            None => "the same chart and values render something else".to_owned(),
        };
        Decision { surplus: Some(blamed), ..upgrade(why) }
    }
}

/// A new revision, for a reason.
pub(crate) fn upgrade(why: impl Into<String>) -> Decision {
    Decision { step: ReleaseStep::Upgraded, why: why.into(), surplus: None }
}

fn rewrite(why: impl Into<String>) -> Decision {
    Decision { step: ReleaseStep::Rewritten, why: why.into(), surplus: None }
}

/// The first hook that is not what it was, in words.
pub(crate) fn changed_hook(old: &[StoredHook], new: &[Hook]) -> Option<String> {
    let named = |kind: &str, name: &str, path: &str, what: &str| {
        let path = path.split_once('/').map_or(path, |(_, file)| file);
        format!("hook {kind} {name} ({path}) {what}")
    };
    for hook in new {
        let same =
            |old: &&StoredHook| (&old.path, &old.kind, &old.name) == (&hook.path, &hook.kind, &hook.name);
        match old.iter().find(same) {
            None => return Some(named(&hook.kind, &hook.name, &hook.path, "is new")),
            Some(old) if old.manifest != hook.manifest => {
                return Some(named(&hook.kind, &hook.name, &hook.path, "changed"));
            }
            Some(_) => {}
        }
    }
    let gone = old.iter().find(|old| {
        !new.iter().any(|hook| (&old.path, &old.kind, &old.name) == (&hook.path, &hook.kind, &hook.name))
    });
    gone.map(|hook| named(&hook.kind, &hook.name, &hook.path, "is gone"))
}
