//! Brings the CRDs of the sources to the API server: weighed against those it has and against the existing
//! objects (`crds/weigh.rs`), tried with a dry run, applied, and waited for until they are established. Holds
//! a change that would hurt until the user has answered. Never deletes one: that would delete its objects.

mod openapi;
mod plan;
mod weigh;

pub use plan::foresee;

use anyhow::{Context as _, Result};
use http::Method;
use jiff::Timestamp;
use kube::Client;
use opdev_client::backoff::{AGAIN, may_pass};
use opdev_client::error_words::told;
use opdev_client::{ApiError, OWN_MANAGER, is_forbidden, is_not_found, send};
use opdev_event::{
    Diagnostic, Event, Held, HeldChange, Place, Released, Severity, TypeChanged, Verdict, Weight,
};
use opdev_object::meta::{self, Gvk};
use opdev_sources::definitions::Definition;
use opdev_types::impact;
use openapi::{Served, differences, served};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;
use std::time::{Duration, Instant};
use weigh::{Decision, Weighed};

/// The CRDs that were applied, and those that failed.
#[derive(Default)]
pub struct Crds {
    /// CRDs that failed the last time and are tried again.
    failing: BTreeSet<String>,
    /// True if every change that anybody could notice needs the user's answer.
    cautious: bool,
    applied: BTreeMap<String, Option<u64>>,
    held: BTreeMap<String, Waiting>,
    /// Definitions that the API server refused, or would refuse.
    refused: BTreeMap<String, (u64, Diagnostic)>,
    kinds: BTreeMap<String, Gvk>,
}

/// A CRD that needs the user's answer.
struct Waiting {
    id: String,
    hash: u64,
    definition: Arc<Definition>,
    files: Vec<String>,
    problem: Diagnostic,
}

/// Where a set of sources comes from.
#[derive(Clone, Copy)]
pub struct Origin<'a> {
    pub sources: u64,
    pub files: &'a [String],
    pub since: Instant,
}

/// The outcome of a set of CRDs.
#[derive(Default)]
pub struct Outcome {
    pub events: Vec<Event>,
    /// Warnings of the API server, and other things worth a line.
    pub warnings: Vec<String>,
    /// Why the newest definition of a kind does not serve.
    pub stale: Vec<Diagnostic>,
    /// New errors that the files are to blame for.
    pub errors: Vec<Diagnostic>,
    /// True if something failed that may go well in a moment: the server was busy, or did not answer.
    pub again: bool,
}

impl Outcome {
    /// The files that led to it.
    pub fn files(&self) -> Vec<String> {
        let of = |event: &Event| {
            if let Event::TypeChanged(changed) = event { Some(changed.files.clone()) } else { None }
        };
        self.events.iter().find_map(of).unwrap_or_default()
    }

    /// The kinds whose CRDs were changed.
    pub fn changed_types(&self) -> Vec<Gvk> {
        let kind = |event: &Event| {
            if let Event::TypeChanged(changed) = event { Some(changed.kind.clone()) } else { None }
        };
        self.events.iter().filter_map(kind).collect()
    }
}

const PATH: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
/// Objects in one page of a list, and pages of one kind.
const PAGE: usize = 500;
const PAGES: usize = 20;

impl Crds {
    /// Nothing is known yet. `cautious` lets nothing through that anybody could notice without the user's
    /// word.
    pub fn new(cautious: bool) -> Crds {
        Crds { cautious, ..Crds::default() }
    }

    /// Brings each CRD that is new or has changed to the API server, unless it has to wait. A scaffolded one
    /// gives way to a CRD that is already there.
    pub async fn apply(
        &mut self,
        client: &Client,
        definitions: &[Arc<Definition>],
        origin: Origin<'_>,
    ) -> Outcome {
        let mut outcome = Outcome::default();
        for definition in definitions {
            let hash = content_hash(&definition.crd);
            self.one(client, definition, hash, origin, &mut outcome).await;
        }
        self.tell_removed(definitions, &mut outcome);
        outcome
    }

    async fn one(
        &mut self,
        client: &Client,
        definition: &Arc<Definition>,
        hash: u64,
        origin: Origin<'_>,
        outcome: &mut Outcome,
    ) {
        let name = definition.name().to_owned();
        if let Some(gvk) = definition.gvk() {
            self.kinds.insert(name.clone(), gvk);
        }
        if let Some(waiting) = self.held.get(&name).filter(|waiting| waiting.hash == hash) {
            outcome.stale.push(waiting.problem.clone());
            return;
        }
        if let Some((_, problem)) = self.refused.get(&name).filter(|(refused, _)| *refused == hash) {
            outcome.stale.push(problem.clone());
            return;
        }
        // Whatever waited is replaced or undone by this one.
        self.refused.remove(&name);
        if let Some(waiting) = self.held.remove(&name) {
            outcome.events.push(released(waiting.id, Verdict::Undone));
        }
        if self.applied.get(&name) == Some(&Some(hash)) {
            return;
        }
        let result = self.consider(client, definition, hash, origin, outcome).await;
        if let Err(error) = result {
            let problem = refusal(definition, &error);
            outcome.stale.push(problem.clone());
            if is_final(&error) {
                outcome.errors.push(problem.clone());
                self.refused.insert(name, (hash, problem));
            } else {
                outcome.again = true;
                // Said once: each try would say much the same.
                if self.failing.insert(name) {
                    outcome.errors.push(problem);
                }
            }
        } else {
            self.failing.remove(&name);
        }
    }

    async fn consider(
        &mut self,
        client: &Client,
        definition: &Arc<Definition>,
        hash: u64,
        origin: Origin<'_>,
        outcome: &mut Outcome,
    ) -> Result<()> {
        let name = definition.name().to_owned();
        let live = match get(client, &name).await {
            Err(error) if is_forbidden(&error) => {
                return self.without_rights(client, definition, (hash, error), outcome).await;
            }
            live => live?,
        };
        let nothing_to_do =
            live.as_ref().is_some_and(|live| definition.scaffolded || impact::same(live, &definition.crd));
        if nothing_to_do {
            self.applied.insert(name, Some(hash));
            return Ok(());
        }
        let objects = match &live {
            Some(live) => list(client, live).await?,
            None => Vec::new(),
        };
        let weighed = weigh::weigh(definition, live.as_ref(), &objects, self.cautious);
        match weighed.decision {
            Decision::Apply => {
                let created = live.is_none();
                self.send(client, definition, hash, origin, (created, weighed), outcome).await
            }
            Decision::Refuse(problem) => {
                outcome.errors.push((*problem).clone());
                outcome.stale.push((*problem).clone());
                self.refused.insert(name, (hash, *problem));
                Ok(())
            }
            Decision::Hold(ref why) => {
                let why = why.clone();
                self.hold(definition, hash, origin, why, weighed, outcome);
                Ok(())
            }
        }
    }

    /// CRDs may not be read, so they cannot be changed either. A kind that the cluster serves needs no more
    /// than that; what differs from the files is told.
    async fn without_rights(
        &mut self,
        client: &Client,
        definition: &Arc<Definition>,
        (hash, error): (u64, anyhow::Error),
        outcome: &mut Outcome,
    ) -> Result<()> {
        let name = definition.name();
        let Some(gvk) = definition.gvk() else { return Err(error) };
        match served(client, &gvk).await? {
            Served::No => Err(error.context(format!(
                "the cluster does not serve {}, and you may not create its CustomResourceDefinition",
                gvk.kind
            ))),
            Served::As(schema) => {
                self.applied.insert(name.to_owned(), Some(hash));
                let differs = differences(&definition.crd, &gvk, schema.as_ref());
                if !definition.scaffolded && !differs.is_empty() {
                    outcome.warnings.push(format!(
                        "the cluster serves {} with another type than your files have ({}), and you may not change it: give \
                         the CustomResourceDefinition to an administrator (`opdev crd` writes it)",
                        gvk.kind,
                        differs.join(", ")
                    ));
                }
                Ok(())
            }
        }
    }

    async fn send(
        &mut self,
        client: &Client,
        definition: &Definition,
        hash: u64,
        origin: Origin<'_>,
        (created, weighed): (bool, Weighed),
        outcome: &mut Outcome,
    ) -> Result<()> {
        let name = definition.name();
        let warnings = apply(client, name, &definition.crd).await?;
        self.applied.insert(name.to_owned(), Some(hash));
        outcome
            .warnings
            .extend(warnings.into_iter().map(|text| format!("CustomResourceDefinition {name}: {text}")));
        tracing::info!("CustomResourceDefinition {name} applied");
        let Some(kind) = definition.gvk() else { return Ok(()) };
        outcome.events.push(Event::TypeChanged(Arc::new(TypeChanged {
            at: Timestamp::now(),
            sources: origin.sources,
            name: name.to_owned(),
            kind,
            created,
            files: origin.files.to_vec(),
            findings: if created { Vec::new() } else { weighed.findings },
            objects: weighed.objects,
            took: origin.since.elapsed(),
        })));
        Ok(())
    }

    fn hold(
        &mut self,
        definition: &Arc<Definition>,
        hash: u64,
        origin: Origin<'_>,
        why: String,
        weighed: Weighed,
        outcome: &mut Outcome,
    ) {
        let Some(kind) = definition.gvk() else { return };
        let name = definition.name();
        let id = format!("{name}@{}", origin.sources);
        let place = weighed.findings.first().and_then(|finding| finding.place.clone());
        let problem = Diagnostic {
            severity: Severity::Warning,
            message: format!("{name} is held: {why}"),
            excerpt: place.as_ref().and_then(|place: &Place| definition.excerpt(place)),
            place,
            hint: Some("H answers; undoing the edit clears it".to_owned()),
            kind: Some(kind.clone()),
        };
        outcome.stale.push(problem.clone());
        let heavy = weighed.findings.into_iter().filter(|finding| finding.weight > Weight::Info);
        outcome.events.push(Event::Held(Arc::new(Held {
            at: Timestamp::now(),
            id: id.clone(),
            change: HeldChange::Type,
            kind,
            files: origin.files.to_vec(),
            why,
            findings: heavy.collect(),
            objects: weighed.objects,
            more: weighed.more,
        })));
        let waiting =
            Waiting { id, hash, definition: Arc::clone(definition), files: origin.files.to_vec(), problem };
        self.held.insert(name.to_owned(), waiting);
    }

    /// Carries out the user's answer about a held CRD. Returns its kind and the result; `None` where none is
    /// held under this name.
    ///
    /// # Errors
    /// What the API server said.
    pub async fn answer(
        &mut self,
        client: &Client,
        id: &str,
        let_through: bool,
        sources: u64,
    ) -> Option<Result<(Gvk, Outcome)>> {
        let name = self.held.iter().find(|(_, waiting)| waiting.id == id).map(|(name, _)| name.clone())?;
        let waiting = self.held.remove(&name)?;
        let kind = waiting.definition.gvk()?;
        let mut outcome = Outcome::default();
        if !let_through {
            let mut problem = waiting.problem;
            problem.message =
                format!("{name}: the change was discarded, so the API server keeps the type as it was");
            problem.hint = Some("undo the edit, or press R to be asked again".to_owned());
            self.refused.insert(name, (waiting.hash, problem));
            outcome.events.push(released(waiting.id, Verdict::Discarded));
            return Some(Ok((kind, outcome)));
        }
        let origin = Origin { sources, files: &waiting.files, since: Instant::now() };
        let sent = async {
            let live = get(client, &name).await?;
            let objects = match &live {
                Some(live) => list(client, live).await?,
                None => Vec::new(),
            };
            let weighed = weigh::weigh(&waiting.definition, live.as_ref(), &objects, false);
            let created = live.is_none();
            self.send(client, &waiting.definition, waiting.hash, origin, (created, weighed), &mut outcome)
                .await
        };
        if let Err(error) = sent.await {
            // It still waits: nothing was changed.
            self.held.insert(name, waiting);
            return Some(Err(error));
        }
        outcome.events.push(released(waiting.id, Verdict::Applied));
        Some(Ok((kind, outcome)))
    }

    /// CRDs that were refused or discarded are tried once more, and applied ones are compared with the
    /// server's once more: it may have lost it.
    pub fn ask_again(&mut self) {
        self.refused.clear();
        self.applied.values_mut().for_each(|hash| *hash = None);
    }

    /// Kinds that the files do not define any more: said once, never deleted.
    fn tell_removed(&mut self, definitions: &[Arc<Definition>], outcome: &mut Outcome) {
        let now: BTreeSet<&str> = definitions.iter().map(|definition| definition.name()).collect();
        let gone: Vec<String> =
            self.kinds.keys().filter(|name| !now.contains(name.as_str())).cloned().collect();
        for name in gone {
            self.kinds.remove(&name);
            self.refused.remove(&name);
            if let Some(waiting) = self.held.remove(&name) {
                outcome.events.push(released(waiting.id, Verdict::Undone));
            }
            if self.applied.remove(&name).is_some() {
                outcome.warnings.push(format!(
                    "the files define {name} no more; its CRD and its objects stay on the API server (kubectl delete \
                     crd {name} would delete both)"
                ));
            }
        }
    }
}

fn released(id: String, verdict: Verdict) -> Event {
    Event::Released(Released { at: Timestamp::now(), id, verdict })
}

/// The API server's words against a definition.
fn refusal(definition: &Definition, error: &anyhow::Error) -> Diagnostic {
    let place = definition.place("", "");
    Diagnostic {
        severity: Severity::Error,
        message: format!("CustomResourceDefinition {}: {}", definition.name(), told(error)),
        excerpt: None,
        place,
        hint: Some(
            match () {
                () if is_forbidden(error) => "`opdev rbac --for USER -n NAMESPACE` writes what an administrator can apply, this CustomResourceDefinition with it; then press R",
                () if !is_final(error) => AGAIN,
                () => "correct the type and save it; the API server keeps it as it was until then",
            }
            .to_owned(),
        ),
        kind: definition.gvk(),
    }
}

/// Returns true if trying again cannot help: the API server has refused it.
fn is_final(error: &anyhow::Error) -> bool {
    matches!(ApiError::of(error), Some(ApiError::Refused { .. })) && !may_pass(error)
}

async fn get(client: &Client, name: &str) -> Result<Option<Value>> {
    match send(client, Method::GET, &format!("{PATH}/{name}"), "application/json", None).await {
        Ok((live, _)) => Ok(Some(live)),
        Err(error) if is_not_found(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The objects of a CRD's kind, at the version that is stored.
async fn list(client: &Client, crd: &Value) -> Result<Vec<Arc<Value>>> {
    let text = |pointer: &str| crd.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let versions = crd.pointer("/spec/versions").and_then(Value::as_array);
    let served = |version: &&Value| version["served"] == true;
    let Some(version) =
        versions.into_iter().flatten().filter(served).max_by_key(|version| version["storage"] == true)
    else {
        return Ok(Vec::new());
    };
    let (group, kind) = (text("/spec/group"), text("/spec/names/kind"));
    let version = version["name"].as_str().unwrap_or_default();
    let path = format!("/apis/{group}/{version}/{}?limit={PAGE}", text("/spec/names/plural"));
    let mut objects = Vec::new();
    let mut next = String::new();
    for _ in 0..PAGES {
        let uri = if next.is_empty() { path.clone() } else { format!("{path}&continue={next}") };
        let (mut page, _) = match send(client, Method::GET, &uri, "application/json", None).await {
            Ok(page) => page,
            // It has never been established, or its objects may not be read.
            Err(error) if is_not_found(&error) || is_forbidden(&error) => return Ok(objects),
            Err(error) => return Err(error),
        };
        if let Some(Value::Array(items)) = page.get_mut("items").map(Value::take) {
            objects.extend(items.into_iter().map(|mut item| {
                meta::put(&mut item, &["apiVersion"], format!("{group}/{version}"));
                meta::put(&mut item, &["kind"], kind);
                Arc::new(item)
            }));
        }
        page["metadata"]["continue"].as_str().unwrap_or_default().clone_into(&mut next);
        if next.is_empty() {
            break;
        }
    }
    Ok(objects)
}

/// Server-side apply, first as a dry run: the API server has the last word. Returns its warnings.
async fn apply(client: &Client, name: &str, object: &Value) -> Result<Vec<String>> {
    let uri = format!("{PATH}/{name}?fieldManager={OWN_MANAGER}&force=true");
    let kind = "application/apply-patch+yaml";
    send(client, Method::PATCH, &format!("{uri}&dryRun=All"), kind, Some(object)).await.context("refused")?;
    let (live, warnings) = send(client, Method::PATCH, &uri, kind, Some(object)).await.context("refused")?;
    established(client, name, live).await?;
    Ok(warnings)
}

/// Waits until the API server serves what a CRD defines, at most 30 s.
///
/// # Errors
/// Where it does not, with the reason.
pub async fn wait_established(client: &Client, name: &str) -> Result<()> {
    let live =
        get(client, name).await?.with_context(|| format!("CustomResourceDefinition {name} is gone"))?;
    established(client, name, live).await
}

async fn established(client: &Client, name: &str, mut live: Value) -> Result<()> {
    let wait = async {
        let mut pause = Duration::from_millis(1);
        loop {
            let conditions = live.pointer("/status/conditions").and_then(Value::as_array);
            let holds = |kind: &str, status: &str| {
                conditions.into_iter().flatten().find(|one| one["type"] == kind && one["status"] == status)
            };
            if holds("Established", "True").is_some() {
                return Ok(());
            }
            if let Some(refused) = holds("NamesAccepted", "False") {
                anyhow::bail!(
                    "its names are not accepted: {}",
                    refused["message"].as_str().unwrap_or_default()
                );
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(Duration::from_millis(20));
            (live, _) =
                send(client, Method::GET, &format!("{PATH}/{name}"), "application/json", None).await?;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), wait)
        .await
        .with_context(|| format!("CustomResourceDefinition {name} is not established after 30 s"))?
}

fn content_hash(object: &Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    object.hash(&mut hasher);
    hasher.finish()
}
