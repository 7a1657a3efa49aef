//! The plan that brings a release to its chart and values, made without writing: the same render, decision
//! and plan. Read `upgrade` for what then happens.

use super::crds::enabled;
use super::decide::Decision;
use super::engine::Engine;
use super::history::desired_release::DesiredRelease;
use super::history::{History, Stored};
use super::hooks;
use super::objects::apply::{Force, Plan};
use super::objects::dry_run::{Ask, Foretold, removal};
use super::objects::inject::is_kept;
use super::objects::{self, Wanted};
use super::render::from_template::below;
use super::render::{Identity, Lookups, Rendered};
use super::script::hook_calls::Doing;
use super::upgrade::{Base, SURPLUS_LIMIT};
use super::verdict::Fault;
use opdev_client::ApiError;
use opdev_event::{Action, HookAhead, ObjectChange, ReleaseAhead, ReleaseStep, StepAhead};
use opdev_helm::manifest::{Hook, HookEvent};
use opdev_helm::release::StoredHook;
use opdev_object::meta::{self, Gvk, ObjectRef};
use serde_json::Value;
use std::collections::BTreeMap;

/// How many objects are named.
const NAMED: usize = 5;

/// Changes that would be made, in words.
pub fn words(changes: &[ObjectChange]) -> String {
    if changes.is_empty() {
        return "read-only: all is as it should be".to_owned();
    }
    let named = changes.iter().take(NAMED).map(|change| match change.action {
        Action::Created => format!("create {}", change.object),
        Action::Deleted => format!("delete {}", change.object),
        Action::Updated => {
            let fields: Vec<String> = change.changes.iter().take(3).map(|one| one.path.to_string()).collect();
            let more = change.changes.len().saturating_sub(fields.len());
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            format!("change {} ({}{more})", change.object, fields.join(", "))
        }
    });
    let named = named.collect::<Vec<_>>().join(", ");
    let more = changes.len().saturating_sub(NAMED);
    let more = if more > 0 { format!(", and {more} more") } else { String::new() };
    format!("read-only: it would {named}{more}")
}

/// The effects of a reconcile, had it run.
#[derive(Default)]
pub struct Ahead {
    pub foretold: Foretold,
    pub hooks: Vec<HookAhead>,
    pub release: Option<ReleaseAhead>,
    /// The manifest whose objects would be written.
    pub manifest: String,
}

impl Engine {
    /// The effects of bringing the release to what is wished for.
    pub async fn ahead(
        &mut self,
        history: &History,
        desired: &DesiredRelease,
        ask: Ask,
    ) -> anyhow::Result<Ahead> {
        // Real reconciles tell of differences from render to render.
        self.memory.compared = Some(self.changed_in);
        match self.base(history)? {
            None => self.install_ahead(desired, ask).await,
            Some(base) => self.follow_ahead(history, base, desired, ask).await,
        }
    }

    /// The words of the script's hooks: one that throws is seen before it serves.
    pub async fn try_hooks(&mut self, history: &History, desired: &DesiredRelease) -> Result<(), Fault> {
        let deployed = history.deployed().map_err(Fault::plain)?;
        let doing = if deployed.is_some() { Doing::Reconcile } else { Doing::Install };
        if self.ask_before(doing, &desired.values, deployed.as_ref()).await? {
            self.ask_after(&desired.values).await?;
        }
        Ok(())
    }

    async fn install_ahead(&mut self, desired: &DesiredRelease, ask: Ask) -> anyhow::Result<Ahead> {
        let (mut created, coming) = self.crds_ahead(desired).await?;
        let identity = Identity { revision: 1, install: true };
        let rendered = self.render(desired, identity, Lookups::Live).await?;
        self.note("render");
        let (wanted, later) = self.wanted_with(&rendered.manifest, desired.chart.name(), &coming).await?;
        self.refuse_twins(&wanted, &rendered.manifest)?;
        let namespace = self.namespace.clone();
        let names = self.names(&namespace, desired.chart.name());
        let plan = Plan::make(&self.api, wanted, &[], Some(("install", names))).await?;
        self.note("plan");
        let mut foretold = plan.foretell(&self.api, self.mode(Force::No), ask).await;
        created.append(&mut foretold.changes);
        created.extend(later.into_iter().map(creation));
        foretold.changes = created;
        let hooks = self.hooks_ahead(&rendered.hooks, [HookEvent::PreInstall, HookEvent::PostInstall]).await;
        let release = ReleaseAhead {
            step: StepAhead::Install,
            from: None,
            to: Some(1),
            why: "no revision is deployed".to_owned(),
            files: Vec::new(),
        };
        Ok(self.found(foretold, hooks, Some(release), rendered.manifest))
    }

    async fn follow_ahead(
        &mut self,
        history: &History,
        base: Base,
        desired: &DesiredRelease,
        ask: Ask,
    ) -> anyhow::Result<Ahead> {
        self.done.manifests.push(base.revision.release.manifest.clone());
        let candidate = self.candidate(history, &base, desired).await?;
        let deployed = base.revision;
        self.note("render");
        let again = self.memory.sources == self.changed_in && self.memory.surplus >= SURPLUS_LIMIT;
        let stays = |decision: &Decision| decision.surplus.is_some() && again;
        let Some((rendered, decision)) = candidate.filter(|(_, decision)| !stays(decision)) else {
            return self.repair_ahead(deployed, ask).await;
        };
        // A release that moves is taken away where it was.
        let names = self.names(&deployed.release.namespace, desired.chart.name());
        let before = objects::build(&self.api, &deployed.release.manifest, &self.owner, names).await;
        let before = before.unwrap_or_default();
        let wanted = self.wanted(&rendered.manifest, desired.chart.name()).await?;
        self.refuse_twins(&wanted, &rendered.manifest)?;
        let namespace = self.namespace.clone();
        let names = self.names(&namespace, desired.chart.name());
        let plan = Plan::make(&self.api, wanted, &before, Some(("update", names))).await?;
        self.note("plan");
        let foretold = plan.foretell(&self.api, self.mode(self.upgrade_force()), ask).await;
        let version = deployed.release.version;
        let (step, to, hooks) = match decision.step {
            ReleaseStep::Rewritten => (StepAhead::Rewrite, version, Vec::new()),
            ReleaseStep::Installed | ReleaseStep::Upgraded | ReleaseStep::RolledBack => {
                let events = [HookEvent::PreUpgrade, HookEvent::PostUpgrade];
                let hooks = self.hooks_ahead(&rendered.hooks, events).await;
                (StepAhead::Upgrade, self.next_revision(history), hooks)
            }
        };
        let files = self.differing(&deployed.release.manifest, &rendered);
        let release = ReleaseAhead { step, from: Some(version), to: Some(to), why: decision.why, files };
        Ok(self.found(foretold, hooks, Some(release), rendered.manifest))
    }

    async fn repair_ahead(&mut self, deployed: Stored, ask: Ask) -> anyhow::Result<Ahead> {
        let manifest = deployed.release.manifest;
        let wanted = self.wanted(&manifest, &self.chart_label()).await?;
        let plan = Plan::make(&self.api, wanted.clone(), &wanted, None).await?;
        self.note("plan");
        let foretold = plan.foretell(&self.api, self.mode(Force::No), ask).await;
        Ok(self.found(foretold, Vec::new(), None, manifest))
    }

    pub async fn uninstall_ahead(&mut self, history: &History) -> anyhow::Result<Ahead> {
        let manifests = history.live_manifests()?;
        let (hooks, chart) = history.newest_hooks()?;
        let wanted = self.stored_objects(&manifests, &chart).await?;
        let live = objects::live(&self.api, &wanted).await?;
        let goes = |live: &Option<Value>| {
            live.as_ref().is_some_and(|live| !is_kept(live) && meta::deletion_timestamp(live).is_none())
        };
        let gone = wanted.iter().zip(&live).filter(|(_, live)| goes(live));
        let changes = gone.map(|(wanted, _)| removal(wanted.reference())).collect();
        let runs = self.stored_hooks_ahead(&hooks, [HookEvent::PreDelete, HookEvent::PostDelete]).await;
        let from = history.deployed()?.map(|deployed| deployed.release.version);
        let release = ReleaseAhead {
            step: StepAhead::Uninstall,
            from,
            to: None,
            why: "the custom resource is being deleted".to_owned(),
            files: Vec::new(),
        };
        let foretold = Foretold { changes, ..Foretold::default() };
        Ok(self.found(foretold, runs, Some(release), String::new()))
    }

    fn found(
        &mut self,
        foretold: Foretold,
        hooks: Vec<HookAhead>,
        release: Option<ReleaseAhead>,
        manifest: String,
    ) -> Ahead {
        self.done.manifests.push(manifest.clone());
        self.done.dependents = objects::kinds(&manifest);
        Ahead { foretold, hooks, release, manifest }
    }

    /// The chart's CRDs that do not exist yet, and the kinds that they will serve.
    async fn crds_ahead(&self, desired: &DesiredRelease) -> anyhow::Result<(Vec<ObjectChange>, Vec<Coming>)> {
        let namespace = self.namespace.clone();
        let (mut created, mut coming) = (Vec::new(), Vec::new());
        let chart = enabled(desired, self.settings.helm_compat)?;
        for file in chart.crds() {
            for object in objects::parse(&file.content)? {
                let text = |pointer: &str| {
                    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
                };
                let kind = Coming {
                    group: text("/spec/group"),
                    kind: text("/spec/names/kind"),
                    namespaced: text("/spec/scope") != "Cluster",
                };
                let names = self.names(&namespace, chart.name());
                let wanted = objects::want(&self.api, object, &self.owner, names).await?;
                if self.api.get(&wanted.at()).await?.is_none() {
                    created.push(creation(wanted.reference()));
                    coming.push(kind);
                }
            }
        }
        Ok((created, coming))
    }

    /// The objects of a manifest, and references to those whose kinds will be served once the chart's CRDs
    /// are there.
    async fn wanted_with(
        &self,
        manifest: &str,
        chart: &str,
        coming: &[Coming],
    ) -> anyhow::Result<(Vec<Wanted>, Vec<ObjectRef>)> {
        let namespace = self.namespace.clone();
        let (mut wanted, mut later) = (Vec::new(), Vec::new());
        for object in objects::parse(manifest)? {
            if let Some(gvk) = Gvk::of(&object)
                && let Some(coming) =
                    coming.iter().find(|coming| coming.group == gvk.group && coming.kind == gvk.kind)
                && matches!(self.api.resource(&gvk).await, Err(ApiError::NoMatch(_)))
            {
                let name = meta::name(&object).unwrap_or_default().to_owned();
                let namespace = meta::namespace(&object).unwrap_or(&namespace).to_owned();
                let namespace = coming.namespaced.then_some(namespace);
                later.push(ObjectRef { gvk, namespace, name, uid: None });
                continue;
            }
            let names = self.names(&namespace, chart);
            wanted.push(objects::want(&self.api, object, &self.owner, names).await?);
        }
        Ok((wanted, later))
    }

    async fn hooks_ahead(&self, all: &[Hook], events: [HookEvent; 2]) -> Vec<HookAhead> {
        let stored: Vec<StoredHook> = all.iter().map(StoredHook::from).collect();
        self.stored_hooks_ahead(&stored, events).await
    }

    async fn stored_hooks_ahead(&self, all: &[StoredHook], events: [HookEvent; 2]) -> Vec<HookAhead> {
        let mut found = Vec::new();
        for event in events {
            for at in hooks::order(event, all) {
                for object in objects::parse(&all[at].manifest).unwrap_or_default() {
                    let Some(mut reference) = ObjectRef::of(&object) else { continue };
                    // A kind that is not served yet has no known scope.
                    let served = self.api.resource(&reference.gvk).await;
                    if served.is_ok_and(|resource| !resource.namespaced) {
                        reference.namespace = None;
                    } else {
                        reference.namespace.get_or_insert_with(|| self.namespace.clone());
                    }
                    found.push(HookAhead { event: hooks::word(event).to_owned(), object: reference });
                }
            }
        }
        found
    }

    /// The templates whose output is not what it was, relative to the project's root.
    fn differing(&self, before: &str, rendered: &Rendered) -> Vec<String> {
        let mut outputs: BTreeMap<&str, [Vec<&str>; 2]> = BTreeMap::new();
        for (side, manifest) in [before, &rendered.manifest].into_iter().enumerate() {
            for (source, document) in objects::sources(manifest) {
                outputs.entry(source).or_default()[side].push(document.trim());
            }
        }
        let differing = outputs.into_iter().filter(|(_, [before, after])| before != after);
        differing.map(|(source, _)| format!("{}/{}", self.reconciler.path, below(source))).collect()
    }
}

/// A kind that the chart's own CRDs will serve.
struct Coming {
    group: String,
    kind: String,
    namespaced: bool,
}

fn creation(object: ObjectRef) -> ObjectChange {
    ObjectChange { object, action: Action::Created, changes: Vec::new(), taken_from: Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_be_done_is_named_and_bounded() {
        let change = |name: &str, action| ObjectChange {
            object: ObjectRef {
                gvk: Gvk::new("apps", "v1", "Deployment"),
                namespace: Some("default".into()),
                name: name.into(),
                uid: None,
            },
            action,
            changes: Vec::new(),
            taken_from: Vec::new(),
        };
        assert_eq!(words(&[]), "read-only: all is as it should be");
        let one = words(&[change("web", Action::Created)]);
        assert!(one.starts_with("read-only: it would create Deployment") && one.ends_with("web"), "{one}");
        let many: Vec<_> = (0..9).map(|n| change(&n.to_string(), Action::Deleted)).collect();
        assert!(words(&many).ends_with(", and 4 more"));
    }
}
