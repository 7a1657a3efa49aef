//! Takes a release off the cluster: hooks, objects in uninstall order, then every revision. It reads the
//! stored revisions, so that a chart that does not load cannot keep a custom resource alive.

use crate::engine::Engine;
use crate::history::History;
use crate::hooks::Hooks;
use crate::objects;
use crate::objects::Wanted;
use crate::objects::apply::remove;
use crate::objects::inject::{ReleaseNames, is_kept};
use anyhow::Context;
use opdev_client::Deletion;
use opdev_helm::engine::Compat;
use opdev_helm::manifest;
use opdev_helm::manifest::HookEvent;
use opdev_object::meta;
use serde_json::Value;

impl Engine {
    /// Hooks, objects and revisions.
    pub async fn uninstall_release(&mut self, mut history: History) -> anyhow::Result<()> {
        let name = self.name.clone();
        if let Some(newest) = history.newest()? {
            // Where it was installed, whatever the options say by now.
            self.namespace = newest.release.namespace;
        }
        let manifests = history.live_manifests()?;
        let (mut hooks, chart) = history.newest_hooks()?;
        history.mark_uninstalling(&self.api, &self.owner).await?;
        let action = self.options.uninstall.clone();
        let runner = Hooks::of(self, &chart, &action);
        runner.run(HookEvent::PreDelete, &mut hooks, &mut self.done.effects).await?;
        self.remove_objects(&manifests, &chart)
            .await
            .with_context(|| format!("failed to delete release: {name}"))?;
        if action.wait.is_some() {
            let gone = self.stored_objects(&manifests, &chart).await?;
            self.until_all_gone(&gone, &action).await?;
        }
        runner.run(HookEvent::PostDelete, &mut hooks, &mut self.done.effects).await?;
        history.purge(&self.api).await
    }

    /// Deletes the objects of some manifests in uninstall order. Goes on after an error and returns the first
    /// one.
    pub async fn remove_objects(&mut self, manifests: &[String], chart: &str) -> anyhow::Result<()> {
        let wanted = self.stored_objects(manifests, chart).await?;
        let live = objects::live(&self.api, &wanted).await?;
        let mut first_error = None;
        for (wanted, live) in wanted.iter().zip(live) {
            let Some(live) = live.filter(|live| !is_kept(live)) else { continue };
            if meta::deletion_timestamp(&live).is_some() {
                continue;
            }
            match remove(&self.api, wanted, &live, &mut self.done.effects).await {
                Ok(Deletion::Gone) => {}
                Ok(Deletion::Pending) => self.say_held(wanted, &live),
                Err(error) => _ = first_error.get_or_insert(error),
            }
        }
        first_error.map_or(Ok(()), Err)
    }

    /// Names an object that outlives its release because of a finalizer.
    fn say_held(&mut self, wanted: &Wanted, live: &Value) {
        let finalizers = meta::finalizers(live);
        if !finalizers.is_empty() {
            self.say(
                format!(
                    "{} stays until its finalizer {} is taken off",
                    wanted.reference(),
                    finalizers.join(" and ")
                ),
                Some("the program that put the finalizer takes it off; where that is gone, remove it with e"),
            );
        }
    }

    /// The objects of some manifests in uninstall order, each once, without those that stay.
    pub async fn stored_objects(&self, manifests: &[String], chart: &str) -> anyhow::Result<Vec<Wanted>> {
        let namespace = self.namespace.clone();
        let names = ReleaseNames { name: &self.name, namespace: &namespace, chart };
        let mut wanted: Vec<Wanted> = Vec::new();
        for text in manifests {
            for object in objects::build_served(&self.api, text, &self.owner, names).await? {
                if !is_kept(&object.object) && !wanted.iter().any(|known| known.key() == object.key()) {
                    wanted.push(object);
                }
            }
        }
        let kind = |wanted: &Wanted| wanted.resource.gvk.kind.clone();
        wanted.sort_by(|a, b| manifest::uninstall_order(&kind(a), &kind(b), Compat::V3));
        Ok(wanted)
    }
}
