//! The charts that a program asks for, installed by the chart engine: as they are (`observe_releases`), and
//! as they should be (`put_releases`). A release that is not listed any more is uninstalled.

use super::state::{FINALIZER, ScriptReconcile};
use crate::LONGEST_NAME;
use anyhow::{Context, anyhow};
use opdev_cache::mapping::OWNER_LABEL;
use opdev_event::Outcome;
use opdev_helm::chart::Chart;
use opdev_helm::release::chunked::Chunking;
use opdev_object::meta::Gvk;
use opdev_object::yaml;
use opdev_release::engine::{Clock, Done, Engine};
use opdev_release::history::History;
use opdev_release::history::desired_release::DesiredRelease;
use opdev_release::history::records::{Kept, Records};
use opdev_release::objects;
use opdev_release::objects::inject::ReleaseNames;
use opdev_release::options::ReleaseOptions;
use opdev_release::script::hook_calls::Doing;
use opdev_release::status::DEPLOYED;
use opdev_release::verdict::Fault;
use opdev_script::contract::{Desired, Release, ReleaseState};
use opdev_script::readiness;
use opdev_sources::ChartReconciler;
use opdev_sources::chart_options::{ChartOptions, Storage};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

impl ScriptReconcile {
    /// The releases that belong to this custom resource, by namespace and name.
    pub(super) async fn histories(&mut self) -> anyhow::Result<Vec<History>> {
        if self.own.has_releases == Some(false) {
            return Ok(Vec::new());
        }
        if self.own.has_releases.is_none() && !self.parent.has_finalizer(&[FINALIZER]) {
            // Releases are only installed once the finalizer is there.
            self.own.has_releases = Some(false);
            return Ok(Vec::new());
        }
        let selector = format!("owner=helm,{OWNER_LABEL}={}", self.owner.uid);
        let watched = self.settings.watched();
        let mut histories = Vec::new();
        for (kind, storage) in [("Secret", Storage::Secret), ("ConfigMap", Storage::ConfigMap)] {
            if storage == Storage::ConfigMap && self.own.config_maps == Some(false) {
                continue;
            }
            let resource = self.api.resource(&Gvk::new("", "v1", kind)).await?;
            let found = self.api.list_in(&resource, &watched, &selector).await;
            let found = found.context("could not list the releases")?;
            if storage == Storage::ConfigMap {
                self.own.config_maps = Some(!found.is_empty());
            }
            let storage = (storage, &Chunking::default());
            let records = Records::of(&self.api, "", storage, &Kept::default()).await?;
            histories.extend(History::all(&records, found));
        }
        self.own.has_releases = Some(!histories.is_empty());
        Ok(histories)
    }

    /// The releases as a program sees them.
    pub(super) async fn observe_releases(&mut self) -> anyhow::Result<Vec<ReleaseState>> {
        let mut states = Vec::new();
        for history in self.histories().await? {
            states.push(self.state_of(&history).await?);
        }
        Ok(states)
    }

    async fn state_of(&mut self, history: &History) -> anyhow::Result<ReleaseState> {
        let (name, namespace) = (history.name().to_owned(), history.namespace().to_owned());
        let Some(newest) = history.newest()? else {
            return Ok(ReleaseState { name, namespace, ..ReleaseState::default() });
        };
        let release = newest.release;
        self.done.manifests.push(release.manifest.clone());
        self.done.dependents.extend(objects::kinds(&release.manifest));
        let chart = &release.chart.metadata;
        let names = ReleaseNames { name: &name, namespace: &namespace, chart: &chart.name };
        let wanted = objects::build_served(&self.api, &release.manifest, &self.owner, names).await?;
        let mut state = ReleaseState {
            name: name.clone(),
            namespace: namespace.clone(),
            chart: format!("{}-{}", chart.name, chart.version),
            values: release.config.clone(),
            status: release.info.status.word().to_owned(),
            revision: release.version,
            ..ReleaseState::default()
        };
        if state.status != "deployed" {
            state.message = release.info.description.clone();
        }
        for wanted in wanted {
            let follow = opdev_cache::stream::Follow {
                selector: opdev_release::objects::inject::CHART_LABEL.to_owned(),
                ..self.hub.follow_children(&wanted.resource.gvk)
            };
            let live = match self.hub.get(&follow, &wanted.key()) {
                Some(found) => found,
                None => self.api.get(&wanted.at()).await?.map(Arc::new),
            };
            match live {
                Some(live) => {
                    if state.message.is_empty() && !readiness::ready(&live) {
                        state.message = format!("{} is not ready", wanted.key());
                    }
                    state.objects.push(live);
                }
                None if state.message.is_empty() => state.message = format!("{} is missing", wanted.key()),
                None => {}
            }
        }
        state.ready = state.status == "deployed" && state.message.is_empty();
        Ok(state)
    }

    /// Installs, upgrades and repairs what is listed, uninstalls what is not.
    pub(super) async fn put_releases(&mut self, desired: &Desired) -> Result<(), Fault> {
        let mut there: BTreeMap<(String, String), History> = BTreeMap::new();
        for history in self.histories().await.map_err(Fault::plain)? {
            there.insert((history.namespace().to_owned(), history.name().to_owned()), history);
        }
        for release in &desired.releases {
            let namespace = self.namespace_of(release)?;
            there.remove(&(namespace.clone(), release.name.clone()));
            self.put_release(release, namespace).await?;
        }
        if desired.waiting.is_none() {
            for (_, history) in there {
                self.uninstall(history).await?;
            }
        }
        Ok(())
    }

    fn namespace_of(&self, release: &Release) -> Result<String, Fault> {
        let own = || self.owner.namespace.clone().or_else(|| self.settings.namespace.clone());
        release.namespace.clone().or_else(own).ok_or_else(|| {
            Fault::plain(anyhow!("release {:?} needs a namespace: its owner lives in none", release.name))
        })
    }

    async fn put_release(&mut self, release: &Release, namespace: String) -> Result<(), Fault> {
        let name = &release.name;
        if name.is_empty() || name.len() > LONGEST_NAME {
            return Err(Fault::plain(anyhow!(
                "release name {name:?}: a release's name has 1 to {LONGEST_NAME} characters, this one has {}",
                name.len()
            )));
        }
        let chart = self.chart_of(release)?;
        // Another custom resource's release of that name is not ours to touch.
        let options = self.options_of(release)?;
        let release_options = ReleaseOptions::of(&options, &self.parent.object, &self.settings);
        let storage = release_options.storage;
        if storage == Storage::ConfigMap {
            self.own.config_maps = Some(true);
        }
        let storage = (storage, &release_options.chunked);
        let records = Records::of(&self.api, &namespace, storage, &Kept::default()).await;
        let read =
            History::read(&self.api, records.map_err(Fault::plain)?, name, release_options.storage_owner);
        let mut history = read.await.map_err(Fault::plain)?;
        history.check(chart.name(), &self.owner).map_err(Fault::plain)?;
        history.check_uid(&self.owner, OWNER_LABEL).map_err(Fault::plain)?;
        let healed = history.heal(&self.api, &self.owner).await.map_err(Fault::plain)?;
        let mut engine =
            self.engine(name.clone(), namespace.clone(), &release.chart, Some(Arc::clone(&chart)));
        engine.options = release_options;
        if let Some(notice) = healed {
            engine.say(notice, None);
        }
        engine.say_ignored_annotations(&self.parent.object);
        let values = if release.values.is_null() {
            Value::Object(serde_json::Map::new())
        } else {
            release.values.clone()
        };
        let desired = DesiredRelease { chart, spec: values.clone(), values };
        let outcome = engine.release(history, desired).await;
        if options.status == Some(true)
            && outcome.is_ok()
            && let Some(deployed) = &engine.done.deployed
        {
            let reason = if deployed.revision == 1 { "InstallSuccessful" } else { "UpgradeSuccessful" };
            let condition =
                json!({"type": DEPLOYED, "status": "True", "reason": reason, "message": deployed.notes});
            self.done.told_releases.push((condition, json!({"name": name, "manifest": deployed.manifest})));
        }
        self.take_over((namespace, name.clone()), engine);
        self.done.releases |= !matches!(outcome, Ok(Outcome::Unchanged) | Err(_));
        self.own.has_releases = Some(true);
        outcome.map(drop).map_err(|fault| {
            let error = fault.error.context(format!("release {name}"));
            Fault { error, condition: None, ..fault }
        })
    }

    /// The options that a program gives a release.
    fn options_of(&self, release: &Release) -> Result<ChartOptions, Fault> {
        let wrong = |why: String| Fault::plain(anyhow!("release {:?}: {why}", release.name));
        let node = yaml::parse(&release.options.to_string()).map_err(|error| wrong(error.message))?;
        let options = ChartOptions::read(&node).map_err(|found| wrong(found.message))?;
        let unknown = match options.storage {
            Some(Storage::Memory) => "memory",
            Some(Storage::Chunked) => "chunked",
            None | Some(Storage::Secret | Storage::ConfigMap) => return Ok(options),
        };
        Err(wrong(format!("storage {unknown} is not known here; use secret or configmap")))
    }

    /// Takes a release off the cluster.
    pub(super) async fn uninstall(&mut self, history: History) -> Result<(), Fault> {
        let (namespace, name) = (history.namespace().to_owned(), history.name().to_owned());
        let mut engine = self.engine(name.clone(), namespace.clone(), "", None);
        let done = engine.uninstall_release(history).await;
        engine.note("uninstall");
        self.take_over((namespace.clone(), name.clone()), engine);
        self.done.releases = true;
        done.with_context(|| format!("release {name}")).map_err(Fault::plain)?;
        self.own.releases.remove(&(namespace, name));
        Ok(())
    }

    fn chart_of(&self, release: &Release) -> Result<Arc<Chart>, Fault> {
        let plain = |path: &str| path.trim_start_matches("./").trim_end_matches('/').to_owned();
        let charts = &self.typed.charts;
        let found = charts.get(&release.chart).or_else(|| {
            charts.iter().find(|(path, _)| plain(path) == plain(&release.chart)).map(|(_, chart)| chart)
        });
        found.cloned().ok_or_else(|| {
            let known: Vec<&str> = charts.keys().map(String::as_str).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            Fault::plain(anyhow!(
                "release {:?} names the chart {:?}, which is not loaded; the project's charts are: {known}",
                release.name,
                release.chart
            ))
        })
    }

    fn engine(&mut self, name: String, namespace: String, path: &str, chart: Option<Arc<Chart>>) -> Engine {
        let memory = self.own.releases.remove(&(namespace.clone(), name.clone())).unwrap_or_default();
        let reconciler = ChartReconciler {
            path: path.to_owned(),
            chart,
            watch_dependents: true,
            overrides: BTreeMap::new(),
            dry_run_option: String::new(),
            options: ChartOptions::default(),
            allow: self.typed.allow.clone(),
            script: None,
        };
        let options = ReleaseOptions::of(&reconciler.options, &self.parent.object, &self.settings);
        Engine {
            name,
            namespace,
            reconciler: Arc::new(reconciler),
            changed_in: self.watch.changed_in,
            api: self.api.clone(),
            settings: Arc::clone(&self.settings),
            cancel: self.cancel.clone(),
            renders: Arc::clone(&self.renders),
            owner: self.owner.clone(),
            memory,
            options,
            script: None,
            doing: Doing::default(),
            done: Done::nothing(std::mem::replace(&mut self.clock, Clock::new(Instant::now()))),
        }
    }

    /// Adds the work of a release's engine to this reconcile.
    fn take_over(&mut self, key: (String, String), engine: Engine) {
        self.clock = engine.done.clock;
        self.done.effects.changes.extend(engine.done.effects.changes);
        self.done.effects.known.extend(engine.done.effects.known);
        self.done.dependents.extend(engine.done.dependents);
        self.done.notices.extend(engine.done.notices);
        self.done.changes.extend(engine.done.changes);
        self.done.manifests.extend(engine.done.manifests);
        self.own.releases.insert(key, engine.memory);
    }
}
