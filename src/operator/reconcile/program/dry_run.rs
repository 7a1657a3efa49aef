//! A trial run of a program: what it would do to one object of its kind. Nothing is written and nothing
//! outside is changed; the API refuses writes and so does the host. `reconcile/trial.rs` runs it on every
//! object.

use super::memory::Memory;
use super::observe::Source;
use super::plan::Plan;
use super::state::{Done, ScriptReconcile};
use super::status::{merged, same};
use crate::custom_resource::Parent;
use crate::dry_run::Tried;
use crate::job::{Job, ReadObject};
use opdev_event::{Action, ObjectChange, ShadowObject, mask};
use opdev_object::meta::{self, Gvk, ObjectRef};
use opdev_release::engine::Clock;
use opdev_release::objects::apply::{Force, Mode};
use opdev_release::objects::dry_run::{Answer, Ask, Foretold, Intent, foretell, foretell_status, removal};
use opdev_release::objects::inject::Owner;
use opdev_release::objects::writes::manager_of;
use opdev_release::plan;
use opdev_release::script::host::{NotInTrial, Outside};
use opdev_release::settings::HelmCompat;
use opdev_release::verdict::status_changes;
use opdev_script::contract::{Desired, Observed, Program, ReleaseState};
use opdev_sources::{TypeReconciler, chart_problems};
use opdev_types::diagnostic::Diagnostic;
use serde_json::Value;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Children and patches of a program are applied, and what an apply refuses stays refused.
const APPLIED: Mode = Mode { force: Force::No, compat: HelmCompat::V4 };

/// How much longer than its limit a call is waited for.
const GRACE: Duration = Duration::from_secs(2);

/// Why nothing is known of what a program would do.
#[derive(Debug)]
pub(crate) enum NotTried {
    NoProgram,
    /// The objects that the program looks at cannot be read.
    Unread(anyhow::Error),
    /// The program had to do something that is not done in a trial run.
    Effect(NotInTrial),
}

impl fmt::Display for NotTried {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotTried::NoProgram => f.write_str("it has no program"),
            NotTried::Unread(error) => write!(f, "{error:#}"),
            NotTried::Effect(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for NotTried {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            NotTried::NoProgram => None,
            NotTried::Unread(error) => error.source(),
            NotTried::Effect(error) => Some(error),
        }
    }
}

/// Tries the program on one object that was read. The error says why nothing is known.
pub(crate) async fn one(
    job: Job,
    typed: Arc<TypeReconciler>,
    ReadObject { resource, object }: ReadObject,
    ask: Ask,
) -> Result<Tried, NotTried> {
    let Some(program) = typed.program.clone() else { return Err(NotTried::NoProgram) };
    let Job { object: reference, watch, api, settings, cancel, renders, memory, hub, kinds, own_only } = job;
    let owner = Owner {
        gvk: reference.gvk.clone(),
        namespace: reference.namespace.clone(),
        name: reference.name.clone(),
        uid: meta::uid(&object).unwrap_or_default().to_owned(),
        marks: true,
    };
    let mut reconcile = ScriptReconcile {
        manager: manager_of(&reference.gvk.kind),
        watch,
        typed,
        api,
        hub,
        settings,
        cancel,
        renders,
        kinds,
        owner,
        memory,
        own: Memory::default(),
        own_only,
        status_before: object.get("status").cloned().unwrap_or(Value::Null),
        clock: Clock::new(Instant::now()),
        done: Done::default(),
        parent: Parent { reference, resource, object },
    };
    let found = reconcile.trial(&program, ask).await?;
    Ok(Tried::Ran(Box::new(found)))
}

impl ScriptReconcile {
    /// The words for what the reconcile would do where nothing may be written.
    pub(super) async fn foresee(&mut self, program: &Arc<dyn Program>) -> String {
        let why = match self.trial(program, Ask::Nobody).await {
            Ok(ShadowObject { problem: Some(problem), .. }) => problem.message,
            Ok(found) => return plan::words(&found.children),
            Err(why) => why.to_string(),
        };
        format!("read-only: {why}")
    }

    /// The effects of the program, had it run. The error says why nothing is known.
    async fn trial(&mut self, program: &Arc<dyn Program>, ask: Ask) -> Result<ShadowObject, NotTried> {
        let releases = self.observe_releases().await.map_err(NotTried::Unread)?;
        let children = self.children(Source::Cache).await.map_err(NotTried::Unread)?;
        let leaving = meta::deletion_timestamp(&self.parent.object).is_some();
        let observed = self.observed(children, releases, leaving);
        let desired = match self.try_out(program, observed.clone()).await? {
            Ok(desired) => desired,
            Err(found) => return Ok(self.failed(&found)),
        };
        desired.children.iter().for_each(|child| self.hide(child));
        let plan = match self.plan(&observed, &desired).await {
            Ok(plan) => plan,
            Err(fault) => {
                let text = format!("{:#}", fault.error);
                return Ok(self.failed(&Diagnostic::error(text, None)));
            }
        };
        let mut foretold = self.foretell(&plan, &desired, ask).await;
        let status = self.status_ahead(&desired, &observed.now, ask, &mut foretold).await;
        let mut found = match foretold.refused.first() {
            // The program is to blame for what it wants.
            Some((object, why)) => self.failed(&refusal(object, why)),
            None => ShadowObject { object: self.parent.reference.clone(), ..ShadowObject::default() },
        };
        found.children = foretold.changes;
        found.unsure = foretold.unsure;
        found.children.extend(release_changes(&observed.releases, &desired));
        if let Some(status) = status {
            found.status = mask::changes(
                &self.parent.reference.gvk.kind,
                status_changes(&self.status_before, Some(&status)),
            );
        }
        let secrets = self.secrets();
        mask::values_of(&mut found.status, &secrets);
        found.children.iter_mut().for_each(|child| mask::values_of(&mut child.changes, &secrets));
        found.unsure.iter_mut().for_each(|why| *why = mask::text(why, &secrets));
        Ok(found)
    }

    /// The status after the reconcile; `None` where it stays as it is.
    async fn status_ahead(
        &self,
        desired: &Desired,
        now: &str,
        ask: Ask,
        foretold: &mut Foretold,
    ) -> Option<Value> {
        let status = merged(&self.status_before, desired, meta::generation(&self.parent.object), now)?;
        if same(&status, &self.status_before) {
            return None;
        }
        let (object, subresource) = self.status_write(&status);
        let parent = &self.parent;
        let answer =
            foretell_status(&self.api, &parent.at(), (&object, subresource), &self.manager, ask).await;
        match answer {
            Answer::After(after) => return after.get("status").cloned(),
            Answer::Refused(why) => foretold.refused.push((parent.reference.clone(), why)),
            Answer::Unknown(why) => {
                foretold.unsure.push(format!("the status of {}: {why}", parent.reference));
            }
        }
        Some(status)
    }

    /// Calls the program. The outer error says why nothing is known.
    async fn try_out(
        &mut self,
        program: &Arc<dyn Program>,
        observed: Observed,
    ) -> Result<Result<Desired, Box<Diagnostic>>, NotTried> {
        let namespace = self.owner.namespace.clone();
        let outside = Arc::new(Outside::new(&self.api, &self.hub, &self.typed, namespace, true));
        let (program, host, limits) = (Arc::clone(program), Arc::clone(&outside), self.typed.limits);
        let work = tokio::task::spawn_blocking(move || program.reconcile(&observed, &*host, &limits));
        let answer = tokio::time::timeout(limits.time + GRACE, work).await;
        let heard = outside.end();
        heard.objects.iter().for_each(|object| self.hide(object));
        if let Some(why) = heard.refused {
            return Err(NotTried::Effect(why));
        }
        let error = |text: &str| Ok(Err(Box::new(Diagnostic::error(text, None))));
        match answer {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(_)) => {
                error("the reconciler's engine panicked; this is an error in opdev, please report it")
            }
            Err(_) => error("it did not return in time"),
        }
    }

    fn failed(&self, found: &Diagnostic) -> ShadowObject {
        let secrets = self.secrets();
        let mut problem = chart_problems::program(&self.typed.files, found);
        problem.kind = Some(self.parent.reference.gvk.clone());
        problem.message = mask::text(&problem.message, &secrets);
        problem.excerpt = problem.excerpt.map(|text| mask::text(&text, &secrets));
        ShadowObject {
            object: self.parent.reference.clone(),
            problem: Some(problem),
            ..ShadowObject::default()
        }
    }

    /// The effects of the writes of a plan and of its patches.
    async fn foretell(&mut self, plan: &Plan, desired: &Desired, ask: Ask) -> Foretold {
        let patches = self.patches_ahead(desired).await;
        let (manager, patch_manager) = (self.manager.clone(), self.patch_manager());
        let children = plan.write.iter().map(|write| Intent {
            wanted: &write.wanted,
            live: write.live.as_deref(),
            old: None,
            manager: &manager,
            mode: APPLIED,
        });
        let patched = patches.iter().map(|(wanted, live)| Intent {
            wanted,
            live: live.as_deref(),
            old: None,
            manager: &patch_manager,
            mode: APPLIED,
        });
        let intents: Vec<Intent<'_>> = children.chain(patched).collect();
        let mut found = foretell(&self.api, &intents, ask).await;
        found.changes.extend(plan.remove.iter().map(|(wanted, _)| removal(wanted.reference())));
        found
    }
}

/// The refusals that the API server would give, and what helps.
fn refusal(object: &ObjectRef, why: &str) -> Diagnostic {
    let mut found = Diagnostic::error(format!("the API server would refuse {object}: {why}"), None);
    if why.contains(".status.") && why.contains("field not declared in schema") {
        let hint = "declare the field in the status of the type, or leave it out of the script";
        found.hint = Some(hint.to_owned());
    }
    found
}

fn change(object: ObjectRef, action: Action) -> ObjectChange {
    ObjectChange { object, action, changes: Vec::new(), taken_from: Vec::new() }
}

/// Releases that would come, and those that would be uninstalled.
fn release_changes(there: &[ReleaseState], desired: &Desired) -> Vec<ObjectChange> {
    let reference = |name: &str, namespace: Option<&str>| ObjectRef {
        gvk: Gvk::new("helm.sh", "v3", "Release"),
        namespace: namespace.map(str::to_owned),
        name: name.to_owned(),
        uid: None,
    };
    let listed = |state: &ReleaseState| {
        desired.releases.iter().any(|release| {
            release.name == state.name
                && release.namespace.as_ref().is_none_or(|namespace| *namespace == state.namespace)
        })
    };
    let mut found = Vec::new();
    for release in &desired.releases {
        match there.iter().find(|state| state.name == release.name) {
            None => {
                let object = reference(&release.name, release.namespace.as_deref());
                found.push(change(object, Action::Created));
            }
            Some(state) => {
                let old = serde_json::json!({"values": state.values});
                let changes = opdev_object::diff::diff(&old, &serde_json::json!({"values": release.values}));
                if !changes.is_empty() {
                    let mut one = change(reference(&state.name, Some(&state.namespace)), Action::Updated);
                    one.changes = mask::changes("Release", changes);
                    found.push(one);
                }
            }
        }
    }
    if desired.waiting.is_none() {
        let gone = there.iter().filter(|state| !listed(state));
        found.extend(
            gone.map(|state| change(reference(&state.name, Some(&state.namespace)), Action::Deleted)),
        );
    }
    found
}
