//! Asks the program, on a blocking thread, with a finite time, and makes a fault of whatever it does wrong.
//! A program that panics or never returns takes nothing with it.

use super::observe::Source;
use super::plan::Plan;
use super::state::ScriptReconcile;
use anyhow::anyhow;
use opdev_object::meta;
use opdev_release::script::blame::blamed;
use opdev_release::script::host::Outside;
use opdev_release::verdict::Fault;
use opdev_script::contract::{Desired, Observed, Program, ReleaseState};
use opdev_types::diagnostic::Diagnostic;
use std::sync::Arc;
use std::time::Duration;

/// How much longer than its limit a call is waited for.
const GRACE: Duration = Duration::from_secs(2);
/// How often a reconcile starts over because the cache was behind.
const ROUNDS: usize = 3;

impl ScriptReconcile {
    /// Observes, asks and plans, until the plan rests on what is really there.
    pub(super) async fn ask_and_plan(
        &mut self,
        program: &Arc<dyn Program>,
        finalizing: bool,
    ) -> Result<(Desired, Plan), Fault> {
        let releases = self.observe_releases().await.map_err(Fault::plain)?;
        let mut source = Source::Cache;
        for _ in 0..ROUNDS {
            let children = self.children(source).await.map_err(Fault::plain)?;
            self.clock.note("observe");
            let observed = self.observed(children, releases.clone(), finalizing);
            let desired = self.ask(program, observed.clone()).await?;
            self.clock.note("reconcile");
            let plan = self.plan(&observed, &desired).await?;
            self.clock.note("plan");
            if source == Source::Live || !plan.makes_names || self.is_current(&plan, &observed).await? {
                return Ok((desired, plan));
            }
            source = Source::Live;
        }
        Err(Fault::plain(anyhow!("the children keep changing while they are looked at")))
    }

    pub(super) fn observed(
        &self,
        children: Vec<Arc<serde_json::Value>>,
        releases: Vec<ReleaseState>,
        finalizing: bool,
    ) -> Observed {
        Observed {
            parent: Arc::new(self.parent.object.clone()),
            children,
            releases,
            finalizing,
            now: jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
            seed: super::guard::hash(&self.owner.uid),
        }
    }

    /// Returns true if the children of the kinds that get new names are the ones that the program was shown.
    async fn is_current(&mut self, plan: &Plan, observed: &Observed) -> Result<bool, Fault> {
        for resource in plan.named_kinds() {
            let live = self.children_of(&resource, Source::Live).await.map_err(Fault::plain)?;
            let shown = observed
                .children
                .iter()
                .filter(|child| meta::Gvk::of(child).is_some_and(|gvk| gvk == resource.gvk));
            let state = |child: &Arc<serde_json::Value>| {
                let uid = meta::uid(child).unwrap_or_default().to_owned();
                (uid, meta::deletion_timestamp(child).is_some())
            };
            let mut shown: Vec<(String, bool)> = shown.map(state).collect();
            let mut there: Vec<(String, bool)> = live.iter().map(state).collect();
            shown.sort();
            there.sort();
            if shown != there {
                return Ok(false);
            }
        }
        Ok(true)
    }

    async fn ask(&mut self, program: &Arc<dyn Program>, observed: Observed) -> Result<Desired, Fault> {
        let outside =
            Arc::new(Outside::new(&self.api, &self.hub, &self.typed, self.owner.namespace.clone(), false));
        let (program, host, limits) = (Arc::clone(program), Arc::clone(&outside), self.typed.limits);
        let work = tokio::task::spawn_blocking(move || program.reconcile(&observed, &*host, &limits));
        let answer = tokio::time::timeout(limits.time + GRACE, work).await;
        let heard = outside.end();
        self.done.reads.extend(heard.reads);
        self.done.logs.extend(heard.logs);
        self.done.effects.known.extend(heard.known.into_iter().map(|object| (object, false)));
        heard.objects.iter().for_each(|object| self.hide(object));
        match answer {
            Ok(Ok(Ok(desired))) => {
                desired.children.iter().for_each(|child| self.hide(child));
                Ok(desired)
            }
            Ok(Ok(Err(found))) => Err(self.blame(&found)),
            Ok(Err(error)) if error.is_panic() => Err(Fault::plain(
                anyhow!("{}", panic_text(error))
                    .context("the reconciler's engine panicked; this is an error in opdev, please report it"),
            )),
            Ok(Err(_)) => Err(Fault::plain(anyhow!("the reconcile was stopped"))),
            Err(_) => Err(Fault {
                retry: false,
                ..Fault::plain(anyhow!(
                    "{} did not return within {} s and cannot be interrupted; it is asked again when something changes",
                    self.typed.path,
                    limits.time.as_secs_f64()
                ))
            }),
        }
    }

    /// The error that the program threw, with its place in the project.
    fn blame(&self, found: &Diagnostic) -> Fault {
        blamed(&self.typed, &self.parent.reference.gvk, &self.secrets(), found)
    }
}

fn panic_text(error: tokio::task::JoinError) -> String {
    let payload = error.into_panic();
    let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".to_owned())
}
