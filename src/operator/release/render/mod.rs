//! Renders a chart on the blocking pool, with the cluster behind `lookup` and `.Capabilities`. Random
//! functions start from the same seed for the same custom resource, so that the same input renders the same
//! text.

pub mod cache;
pub(crate) mod explain;
pub mod from_template;
pub(crate) mod post_render;
mod remote_schema;
pub(crate) mod twins;

use super::engine::Engine;
use super::history::desired_release::DesiredRelease;
use super::verdict::Blamed;
use anyhow::{Context, anyhow};
use opdev_client::recorder::Recorder;
use opdev_client::{Api, At};
use opdev_helm::chart::Chart;
use opdev_helm::engine::{
    self, Capabilities, Compat, Environment, FuncError, ReleaseInfo, ReleaseRead, RenderError, RenderInput,
};
use opdev_helm::manifest::Hook;
use opdev_object::meta::Gvk;
use opdev_sources::chart_problems;
use opdev_sources::deadline;
use opdev_sources::time_limit::TimeLimit;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::runtime::Handle;

/// As which revision a chart is rendered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Identity {
    pub(crate) revision: i64,
    /// As an install, else as an upgrade.
    pub(crate) install: bool,
}

/// The objects that `lookup` sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lookups {
    /// The cluster.
    Live,
    /// Nothing, as in a dry run.
    Empty,
}

/// A rendered chart.
#[derive(Clone, Debug)]
pub(crate) struct Rendered {
    pub(crate) manifest: String,
    pub(crate) hooks: Vec<Hook>,
    pub(crate) notes: String,
    /// The chart as the record keeps it.
    pub(crate) chart: Chart,
    /// True if a template called `lookup`.
    pub(crate) looked_up: bool,
    /// True if a template asked for the time, for randomness or for the cluster.
    pub(crate) impure: bool,
    /// The templates that read which revision this is.
    pub(crate) release_reads: Vec<ReleaseRead>,
}

impl Engine {
    /// Renders the chart with these values.
    pub(crate) async fn render(
        &mut self,
        desired: &DesiredRelease,
        identity: Identity,
        lookups: Lookups,
    ) -> anyhow::Result<Rendered> {
        let seed = self.seed()?;
        let key = format!("{}/{} of {}", self.namespace, self.name, self.reconciler.path);
        let memory = self.settings.fresh_randomness.is_none().then(|| self.renders.of(&key));
        self.render_with(desired, identity, lookups, Start { seed, later: false, memory }).await
    }

    /// Renders as another process would a minute later, with nothing remembered.
    pub(crate) async fn render_anew(
        &mut self,
        desired: &DesiredRelease,
        identity: Identity,
        lookups: Lookups,
    ) -> anyhow::Result<Rendered> {
        let mut seed = self.seed()?;
        seed[0] ^= 1;
        self.render_with(desired, identity, lookups, Start { seed, later: true, memory: None }).await
    }

    async fn render_with(
        &mut self,
        desired: &DesiredRelease,
        identity: Identity,
        lookups: Lookups,
        start: Start,
    ) -> anyhow::Result<Rendered> {
        let Start { seed, later, memory } = start;
        let served = self.api.discovery.served().await.context("could not get what the API server serves")?;
        let compat: Compat = self.settings.helm_compat.into();
        let mut capabilities =
            Capabilities::default_for(compat).with_kube_version(&served.version, compat)?;
        capabilities.api_versions = served.api_versions();
        let (limit, _waiting) = deadline::within(deadline::RENDER);
        let outside = RenderOutside {
            api: self.api.clone(),
            handle: Handle::current(),
            recorder: Recorder::current(),
            lookups,
            later,
            looked_up: AtomicBool::new(false),
            limit,
            random: Mutex::new(Random { seed, block: 0, left: Vec::new() }),
        };
        let release = ReleaseInfo {
            name: self.name.clone(),
            namespace: self.namespace.clone(),
            revision: identity.revision,
            is_install: identity.install,
            is_upgrade: !identity.install,
        };
        let (chart, values) = (Arc::clone(&desired.chart), desired.values.clone());
        let fetch_schema =
            Some(remote_schema::fetching(self.reconciler.allow.clone(), outside.recorder.clone()));
        let cache = Some(Arc::clone(&self.renders.templates));
        let work = move || {
            let input = RenderInput {
                compat,
                cache,
                memory: memory.as_deref(),
                fetch_schema,
                ..RenderInput::new(&values, release, &capabilities, &outside)
            };
            let rendered = engine::render(&chart, &input);
            (rendered, outside.looked_up.into_inner())
        };
        let (rendered, looked_up) = tokio::task::spawn_blocking(work).await.context("rendering broke off")?;
        self.renders.shrink();
        let mut rendered = rendered.map_err(|error| self.blame(&error))?;
        rendered.manifest = self.post_render(rendered.manifest).await?;
        self.done.manifests.push(rendered.manifest.clone());
        self.done.manifests.extend(rendered.hooks.iter().map(|hook| hook.manifest.clone()));
        Ok(Rendered {
            manifest: rendered.manifest,
            hooks: rendered.hooks,
            notes: rendered.notes,
            chart: rendered.chart,
            looked_up,
            impure: rendered.impure,
            release_reads: rendered.release_reads,
        })
    }

    fn seed(&mut self) -> anyhow::Result<[u8; 32]> {
        let seed = match (self.memory.seed, self.settings.fresh_randomness) {
            (Some(seed), None) => seed,
            (Some(before), Some(_)) => Sha256::digest(before).into(),
            (None, Some(number)) => first_seed(number, &self.namespace, &self.name),
            (None, None) => {
                let mut seed = [0; 32];
                getrandom::fill(&mut seed).map_err(|error| anyhow!("no randomness: {error}"))?;
                seed
            }
        };
        self.memory.seed = Some(seed);
        Ok(seed)
    }

    /// A render error with its place in the project.
    fn blame(&self, error: &RenderError) -> anyhow::Error {
        let chart = self.reconciler.chart.as_deref().cloned().unwrap_or_default();
        let mut diagnostic = chart_problems::render(&self.reconciler.path, &chart, error);
        diagnostic.kind = Some(self.owner.gvk.clone());
        anyhow::Error::new(Blamed(diagnostic))
    }
}

/// The seed of a release's first render, where a number decides it: no two releases draw the same.
fn first_seed(number: u64, namespace: &str, name: &str) -> [u8; 32] {
    Sha256::digest(format!("{number}/{namespace}/{name}")).into()
}

/// The state that a render starts from.
struct Start {
    seed: [u8; 32],
    /// The clock is a minute ahead.
    later: bool,
    memory: Option<Arc<engine::Memory>>,
}

struct RenderOutside {
    api: Api,
    handle: Handle,
    recorder: Option<Arc<Recorder>>,
    lookups: Lookups,
    later: bool,
    looked_up: AtomicBool,
    limit: TimeLimit,
    random: Mutex<Random>,
}

/// A stream of bytes that only the seed decides: hashes of the seed and a counter.
struct Random {
    seed: [u8; 32],
    block: u64,
    left: Vec<u8>,
}

impl Random {
    fn fill(&mut self, buffer: &mut [u8]) {
        for byte in buffer {
            if self.left.is_empty() {
                let mut hash = Sha256::new();
                hash.update(self.seed);
                hash.update(self.block.to_le_bytes());
                self.block += 1;
                self.left = hash.finalize().to_vec();
            }
            *byte = self.left.pop().unwrap_or_default();
        }
    }
}

impl Environment for RenderOutside {
    fn now(&self) -> jiff::Timestamp {
        let now = jiff::Timestamp::now();
        let later = now.checked_add(jiff::SignedDuration::from_secs(61));
        if self.later { later.unwrap_or(now) } else { now }
    }

    fn random(&self, buffer: &mut [u8]) {
        self.random.lock().unwrap_or_else(PoisonError::into_inner).fill(buffer);
    }

    fn give_up(&self) -> Option<&'static str> {
        self.limit.reached()
    }

    fn lookup(&self, api_version: &str, kind: &str, namespace: &str, name: &str) -> Result<Value, FuncError> {
        self.looked_up.store(true, Ordering::Relaxed);
        if self.lookups == Lookups::Empty {
            return Ok(json!({}));
        }
        let gvk = Gvk::from_api_version(api_version, kind);
        let work = look_up(&self.api, &gvk, namespace, name);
        let found = match &self.recorder {
            Some(recorder) => self.handle.block_on(Arc::clone(recorder).scope(work)),
            None => self.handle.block_on(work),
        };
        found.map_err(|error| FuncError::new(error.to_string()))
    }
}

async fn look_up(api: &Api, gvk: &Gvk, namespace: &str, name: &str) -> anyhow::Result<Value> {
    let resource = api.resource(gvk).await?;
    let namespace = Some(namespace).filter(|namespace| !namespace.is_empty());
    if name.is_empty() {
        let items = api.list(&resource, namespace, "").await?;
        let kind = format!("{}List", gvk.kind);
        return Ok(json!({"apiVersion": gvk.api_version(), "kind": kind, "metadata": {}, "items": items}));
    }
    let found = api.get(&At { resource: &resource, namespace, name }).await?;
    Ok(found.unwrap_or_else(|| json!({})))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_decides_what_a_release_draws() {
        assert_eq!(first_seed(7, "default", "a"), first_seed(7, "default", "a"));
        assert_ne!(first_seed(7, "default", "a"), first_seed(8, "default", "a"));
        assert_ne!(first_seed(7, "default", "a"), first_seed(7, "default", "b"));
    }

    #[test]
    fn randomness_repeats_for_one_seed_only() {
        let draw = |seed: u8, sizes: &[usize]| {
            let mut random = Random { seed: [seed; 32], block: 0, left: Vec::new() };
            let mut drawn = Vec::new();
            for size in sizes {
                let mut buffer = vec![0; *size];
                random.fill(&mut buffer);
                drawn.extend(buffer);
            }
            drawn
        };
        assert_eq!(draw(1, &[40]), draw(1, &[7, 33]));
        assert_ne!(draw(1, &[40]), draw(2, &[40]));
        assert_ne!(draw(1, &[64])[..32], draw(1, &[64])[32..]);
    }
}
