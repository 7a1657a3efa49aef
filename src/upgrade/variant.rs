//! The order of events: the old version makes its objects, a variant of the swap, rest, and what is tried
//! then. Each variant begins on a control plane of its own, so that none sees what another has done; several
//! run at once.

use super::applied::{self, Applied, tried, tried_anew};
use super::calls::Writes;
use super::conversion::{self, Lossy, Way};
use super::definitions;
use super::end::End;
use super::end_files::EndFiles;
use super::finding::merged;
use super::judge::{self, Defined, Elections, Observed, RightsSeen, Tried};
use super::plane::{How, Plane};
use super::report::{Progress, Report, Told};
use super::running::{Mute, Rest, Running};
use super::samples::Sample;
use super::snapshot::Snapshot;
use super::swap::Variant;
use anyhow::{Context as _, Result, bail};
use futures::stream::{self, StreamExt as _};
use opdev_client::ApiError;
use opdev_event::words::one_line;
use opdev_generate::rbac::observed::Rights;
use opdev_object::meta::{self, Gvk, ObjectKey};
use opdev_project::program::election::Election;
use opdev_project::trust::Trust;
use opdev_release::settings::Settings;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// What to rehearse.
pub struct Input {
    /// The version that users have.
    pub from: End,
    /// The version that they get.
    pub to: End,
    /// What the user allows both of them.
    pub trust: Trust,
    /// How the operators run.
    pub operator: Settings,
    /// The variants; the baseline runs whenever another one does.
    pub only: Vec<Variant>,
    /// How long the operator may take to settle each time.
    pub limit: Duration,
    /// How many variants run at once.
    pub parallel: usize,
    /// Fires when all is to end.
    pub shutdown: CancellationToken,
}

/// Rehearses the upgrade.
///
/// # Errors
/// Where a version has nothing to reconcile or no sample that it accepts, or all is to end.
pub async fn rehearse(input: &Input, mut tell: impl FnMut(&Progress)) -> Result<Report> {
    let began = Instant::now();
    for end in [&input.from, &input.to] {
        reconciles(end)?;
    }
    let programs = input.from.has_program() || input.to.has_program();
    let folder = tempfile::tempdir().context("no folder for programs can be made")?;
    let (old, new) = tokio::join!(files_of(&input.from), files_of(&input.to));
    let (old, new) = (old?, new?);
    if !old.samples.all().any(|sample| sample.reconciled) {
        bail!(
            "{} has no sample of a kind that it reconciles, so that there are no objects to upgrade\n  to do: put samples into \
             config/samples, and commit them with the version",
            input.from.name
        );
    }
    let is_told = |variant: Variant| variant == Variant::Same || input.only.contains(&variant);
    // The calls of `plain` say what the old roles would refuse, so that nothing else runs for it.
    let judges_roles = is_told(Variant::RolesLeftOld);
    let runs = |variant: &Variant| match variant {
        Variant::RolesLeftOld => false,
        Variant::Plain => judges_roles || is_told(Variant::Plain),
        other => is_told(*other),
    };
    let variants: Vec<Variant> = Variant::ALL.into_iter().filter(runs).collect();
    let told = Variant::ALL.into_iter().filter(|variant| is_told(*variant)).collect();
    tell(&Progress::begun(&input.from, &input.to, told));
    let mute = Mute::default();
    let run = |variant: Variant| {
        let (from, to, operator) = (input.from.clone(), input.to.clone(), input.operator.clone());
        let (old, new, limit) = (old.clone(), new.clone(), input.limit);
        let (trust, folder, mute) = (input.trust.clone(), folder.path().to_owned(), mute.clone());
        async move {
            // On a task of its own: renders and scripts block.
            let work = tokio::spawn(async move {
                let folder = programs.then_some(folder.as_path());
                let (from, to, operator, trust) = (&from, &to, &operator, &trust);
                let (old, new, mute) = (&old, &new, &mute);
                Rehearsal { from, to, operator, trust, folder, old, new, limit, mute }.run(variant).await
            });
            (variant, work.await)
        }
    };
    // Programs share ports.
    let parallel = if programs { 1 } else { input.parallel.max(1) };
    let mut runs = std::pin::pin!(stream::iter(variants).map(run).buffered(parallel));
    let mut ended = Vec::new();
    loop {
        let next = tokio::select! {
            next = runs.next() => next,
            () = input.shutdown.cancelled() => bail!("broken off"),
        };
        let Some((variant, result)) = next else { break };
        let beside = (variant == Variant::Plain && judges_roles).then_some(Variant::RolesLeftOld);
        [Some(variant), beside].into_iter().flatten().for_each(|variant| tell(&Progress::Over { variant }));
        ended.push((variant, result));
    }
    let mut report = Report::new(&input.from, &input.to, notes_of(&old, &new));
    let mut found = Vec::new();
    let mut all = Vec::new();
    for (variant, ended) in ended {
        let bug = |error| anyhow::anyhow!("{} tripped over a bug in opdev: {error}", variant.name());
        all.push((variant, ended.map_err(bug)??));
    }
    let baseline = all.iter().find(|(variant, _)| *variant == Variant::Same);
    let of_old = baseline.map(|(_, seen)| seen.observed.after.clone()).unwrap_or_default();
    let lossy = baseline.map(|(_, seen)| seen.observed.lossy.clone()).unwrap_or_default();
    for (variant, mut seen) in all {
        seen.observed.forget_lossy(&lossy);
        if variant != Variant::Same {
            seen.observed.forget_new(&of_old);
        }
        report.building += seen.building;
        report.notes.extend(seen.notes.into_iter().filter(|_| variant == Variant::Same));
        if seen.objects > 0 {
            (report.samples, report.objects) = (seen.samples, seen.objects);
        }
        let mut judged = |observed: &Observed| {
            let variant = observed.variant;
            if is_told(variant) {
                let mut all = judge::findings(observed);
                if variant == Variant::Plain {
                    let unseen = definitions::unseen(&input.from, &input.to, &all);
                    all.extend(unseen);
                }
                found.push((variant, all));
                report.told.push(Told { variant, tally: judge::tally(observed), found: Vec::new() });
            }
        };
        judged(&seen.observed);
        if variant == Variant::Plain {
            seen.observed.variant = Variant::RolesLeftOld;
            judged(&seen.observed);
        }
    }
    report.told.sort_by_key(|told| told.variant);
    report.findings = merged(found);
    report.count();
    report.took = began.elapsed();
    Ok(report)
}

/// The files of a version, read on a thread that may wait for a disk.
async fn files_of(end: &End) -> Result<EndFiles> {
    let end = end.clone();
    tokio::task::spawn_blocking(move || EndFiles::read(&end)).await?
}

/// Notes about the files of both versions; what both have alike is told once.
fn notes_of(old: &EndFiles, new: &EndFiles) -> Vec<String> {
    let of_new = new.notes.iter().filter(|note| !new.samples.notes.contains(note));
    old.notes.iter().chain(of_new).cloned().collect()
}

fn reconciles(end: &End) -> Result<()> {
    if end.sources.watches.is_empty() && !end.has_program() {
        let why =
            if end.problems.is_empty() { String::new() } else { format!(": {}", end.problems.join("; ")) };
        bail!("{} has no kind to reconcile{why}", end.name);
    }
    Ok(())
}

/// What all variants begin with.
struct Rehearsal<'a> {
    from: &'a End,
    to: &'a End,
    operator: &'a Settings,
    trust: &'a Trust,
    /// The folder for programs; none where there are only charts and scripts.
    folder: Option<&'a Path>,
    old: &'a EndFiles,
    new: &'a EndFiles,
    limit: Duration,
    mute: &'a Mute,
}

/// What was seen of a variant.
struct Seen {
    observed: Observed,
    notes: Vec<String>,
    samples: usize,
    objects: usize,
    /// How long builds took.
    building: Duration,
}

/// What the old version has made.
struct Before<'a> {
    snapshot: Snapshot,
    rest: Rest,
    applied: Vec<Applied<'a>>,
    notes: Vec<String>,
    /// What a new control plane has.
    empty: BTreeSet<ObjectKey>,
    /// The rights that it used.
    rights: Rights,
    /// How long its build took.
    building: Duration,
}

impl<'a> Rehearsal<'a> {
    async fn run(&self, variant: Variant) -> Result<Seen> {
        let plane = match self.folder {
            Some(folder) => Plane::for_programs(&folder.join(variant.name()), self.trust).await?,
            None => Plane::start(self.trust).await?,
        };
        let seen = self.on(&plane, variant).await;
        plane.stop().await;
        seen
    }

    async fn on(&self, plane: &Plane, variant: Variant) -> Result<Seen> {
        let mut before = self.before(plane).await?;
        let (mut defined, mut writes) = (Vec::new(), Writes::default());
        let next = match variant {
            Variant::Same | Variant::CrdLeftOld => {
                self.known(if variant == Variant::Same { self.from } else { self.to })
            }
            Variant::Plain | Variant::RolesLeftOld | Variant::Back => self.define(plane, self.to).await?,
        };
        defined.extend(next);
        let end = if variant == Variant::Same { self.from } else { self.to };
        let mut running = self.start(plane, end, &writes).await?;
        let mut rest = running.rest(plane, self.limit).await;
        let mut building = before.building;
        if variant == Variant::Back {
            building += running.stop().await;
            writes = Writes::default();
            defined = self.define(plane, self.from).await?;
            running = self.start(plane, self.from, &writes).await?;
            rest = running.rest(plane, self.limit).await;
        }
        let after = plane.snapshot().await?;
        let mut done = writes.take();
        done.extend(plane.stage().map(|(_, writes)| writes.take()).unwrap_or_default());
        for write in done.iter_mut().filter(|write| write.is_refused() && write.stored.is_none()) {
            // A refusal stores nothing: the object is settled as it was then.
            write.stored = plane.get(&write.path).await.ok().flatten();
        }
        let tries = self.tries(plane, variant, &before.applied).await;
        let rights = if variant == Variant::Plain {
            let used = (std::mem::take(&mut before.rights), rights(plane, &writes));
            RightsSeen::new(used, (self.old.roles.clone(), self.new.roles.clone()))
        } else {
            RightsSeen::default()
        };
        let lossy = self.lossy(plane, variant, &defined).await;
        let left = self.left(plane, &running, &before).await?;
        let (old_again, old_anew, new) = tries;
        let new = self.taken_by_new(plane, new).await?;
        building += running.stop().await;
        let objects = before.snapshot.made(&before.empty);
        let observed = Observed {
            variant,
            from: self.from.name.clone(),
            to: self.to.name.clone(),
            after: after.made(&before.empty),
            writes: done,
            rest_before: std::mem::take(&mut before.rest),
            rest,
            defined,
            old_again,
            old_anew,
            new,
            lossy,
            left,
            rights,
            elections: self.elections(variant),
            before: objects,
        };
        let (samples, objects) = (before.applied.len(), observed.before.0.len());
        Ok(Seen { observed, notes: before.notes, samples, objects, building })
    }

    fn elections(&self, variant: Variant) -> Elections {
        if variant != Variant::Plain {
            return Elections::default();
        }
        let of = |end: &End| Election::of(&end.project);
        Elections { before: of(self.from), after: of(self.to) }
    }

    /// Starts a version; what programs have written before is forgotten.
    async fn start(&self, plane: &Plane, end: &End, writes: &Writes) -> Result<Running> {
        if let Some((_, writes)) = plane.stage() {
            writes.take();
            writes.take_rights();
        }
        let name = if std::ptr::eq(end, self.from) { "from" } else { "to" };
        let folder = self.folder.map(|folder| folder.join(name)).unwrap_or_default();
        let how = super::running::How {
            settings: self.operator,
            trust: self.trust,
            folder: &folder,
            limit: self.limit,
            mute: self.mute,
        };
        Running::start(plane, end, how, writes).await
    }

    /// Without the old version there are no objects to upgrade.
    fn runs(&self, rest: &Rest) -> Result<()> {
        match rest.ended.first() {
            Some((program, why)) => bail!("{}: {program} {why}", self.from.name),
            None => Ok(()),
        }
    }

    /// The old version makes its objects.
    async fn before(&self, plane: &Plane) -> Result<Before<'a>> {
        let empty: BTreeSet<ObjectKey> = plane.snapshot().await?.0.into_keys().collect();
        for defined in self.define(plane, self.from).await? {
            if let Some(why) = defined.refusal {
                bail!("{}: the API server refuses {}: {why}", self.from.name, defined.name);
            }
        }
        let mut notes = Vec::new();
        let writes = Writes::default();
        let running = self.start(plane, self.from, &writes).await?;
        self.runs(&running.rest(plane, self.limit).await)?;
        let applied = applied::living(plane, &self.from.name, &self.old.samples, &mut notes).await?;
        if !applied.iter().any(|applied| applied.sample.reconciled) {
            bail!("{} refuses all of its samples:\n  {}", self.from.name, notes.join("\n  "));
        }
        let rest = running.rest(plane, self.limit).await;
        self.runs(&rest)?;
        let building = running.stop().await;
        if let Some(why) = &rest.restless {
            notes.push(format!("{} did not settle within {} s: {why}", self.from.name, self.limit.as_secs()));
        }
        for (key, reconcile) in &rest.failing {
            let why =
                reconcile.failure.as_ref().and_then(|failure| failure.chain.last()).map(|why| one_line(why));
            notes.push(format!(
                "{}: the reconcile of {} fails: {}",
                self.from.name,
                judge::named(key),
                why.unwrap_or_default()
            ));
        }
        let snapshot = plane.snapshot().await?;
        if all_fail(&rest, &applied) && makes_nothing(&snapshot.made(&empty), &applied) {
            bail!(
                "{} makes no object of its samples, so that there is nothing to upgrade:\n  {}\n  to do: put what it needs into \
                 config/samples, and commit them with the version",
                self.from.name,
                notes.join("\n  ")
            );
        }
        let rights = rights(plane, &writes);
        Ok(Before { snapshot, rest, applied, notes, empty, rights, building })
    }

    /// The definitions of a version, as they would be without being brought to the plane.
    fn known(&self, end: &End) -> Vec<Defined> {
        let of = |definition: &Arc<opdev_sources::definitions::Definition>| Defined {
            name: definition.name().to_owned(),
            old: None,
            new: Arc::clone(&definition.crd),
            refusal: None,
        };
        end.sources.definitions.iter().map(of).collect()
    }

    /// Brings the definitions of a version to the plane.
    async fn define(&self, plane: &Plane, end: &End) -> Result<Vec<Defined>> {
        let mut all = self.known(end);
        for (defined, definition) in all.iter_mut().zip(&end.sources.definitions) {
            let path = plane.path(&defined.new, "").await?;
            let there = plane.get(&path).await?;
            // One that opdev makes up gives way to one that is there.
            if definition.scaffolded && there.is_some() {
                continue;
            }
            defined.old = there;
            match plane.define(&defined.new).await {
                Ok(_) => {}
                Err(error @ ApiError::Refused { .. }) => defined.refusal = Some(error.to_string()),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(all)
    }

    /// What the converter of the version that runs loses.
    async fn lossy(&self, plane: &Plane, variant: Variant, defined: &[Defined]) -> BTreeMap<Way, Lossy> {
        let mut found = BTreeMap::new();
        let Some((stage, _)) = plane.stage().filter(|_| matches!(variant, Variant::Plain | Variant::Same))
        else {
            return found;
        };
        for one in defined {
            // The converter is reached as the definition that is stored says.
            let path = plane.path(&one.new, "").await;
            let Ok(path) = path else { continue };
            if let Ok(Some(crd)) = plane.get(&path).await {
                found.extend(conversion::lossy(stage, &crd).await);
            }
        }
        found
    }

    /// Manifests that are tried after the swap: those of the old version again, and those of the new one.
    async fn tries(
        &self,
        plane: &Plane,
        variant: Variant,
        applied: &[Applied<'_>],
    ) -> (Vec<Tried>, Vec<Tried>, Vec<Tried>) {
        let (mut again, mut anew, mut new) = (Vec::new(), Vec::new(), Vec::new());
        let strict = How { dry_run: true, ..How::default() };
        match variant {
            Variant::Plain => {
                for one in applied {
                    let how = How { lenient: !one.strict, ..strict };
                    if let Some(tried) = tried(plane, one.sample, how).await {
                        again.push(tried);
                    } else if let Some(tried) = tried_anew(plane, one.sample, how).await {
                        anew.push(tried);
                    }
                }
            }
            Variant::CrdLeftOld => {
                for sample in self.new.samples.own.iter().filter(|sample| sample.reconciled) {
                    new.extend(tried_anew(plane, sample, strict).await);
                }
            }
            Variant::RolesLeftOld | Variant::Back | Variant::Same => {}
        }
        (again, anew, new)
    }

    /// Those that the new definitions take: some samples are wrong by themselves.
    async fn taken_by_new(&self, plane: &Plane, refused: Vec<Tried>) -> Result<Vec<Tried>> {
        if refused.is_empty() {
            return Ok(refused);
        }
        self.define(plane, self.to).await?;
        let strict = How { dry_run: true, ..How::default() };
        let mut taken = Vec::new();
        for one in refused {
            let mut samples = self.new.samples.own.iter();
            let Some(sample) = samples.find(|sample| sample.place == one.place) else { continue };
            if tried_anew(plane, sample, strict).await.is_none() {
                taken.push(one);
            }
        }
        Ok(taken)
    }

    /// Deletes all custom resources; what is left then, that was not there before the first one was made.
    async fn left(
        &self,
        plane: &Plane,
        running: &Running,
        before: &Before<'_>,
    ) -> Result<BTreeSet<ObjectKey>> {
        for applied in before.applied.iter().rev().filter(|applied| applied.sample.reconciled) {
            let path = match plane.path(&applied.sample.object, &applied.sample.namespace).await {
                Ok(path) => path,
                // Its version is served no more; another one is.
                Err(_) => match served(plane, &applied.sample.object).await {
                    Some(other) => plane.path(&other, &applied.sample.namespace).await?,
                    None => continue,
                },
            };
            // What may not be deleted is left, and told as such.
            let _ = plane.delete(&path).await;
        }
        running.rest(plane, self.limit).await;
        let others: BTreeSet<ObjectKey> = before
            .applied
            .iter()
            .filter(|applied| !applied.sample.reconciled)
            .filter_map(|applied| key_of(applied.sample))
            .collect();
        let left = plane.snapshot().await?.made(&before.empty);
        Ok(left
            .0
            .iter()
            .filter(|(key, object)| {
                !others.contains(key) && !stays(key, object) && !left.has_owner_of(object)
            })
            .map(|(key, _)| key.clone())
            .collect())
    }
}

/// Returns true if the reconcile of each sample fails.
fn all_fail(rest: &Rest, applied: &[Applied<'_>]) -> bool {
    let mut reconciled = applied.iter().filter(|applied| applied.sample.reconciled);
    reconciled.all(|applied| key_of(applied.sample).is_some_and(|key| rest.failing.contains_key(&key)))
}

/// Returns true if nothing is there but samples.
fn makes_nothing(made: &Snapshot, applied: &[Applied<'_>]) -> bool {
    let samples: BTreeSet<ObjectKey> = applied.iter().filter_map(|applied| key_of(applied.sample)).collect();
    // The key of a sample has a namespace, whatever the scope of its kind.
    let is_sample =
        |key: &ObjectKey| samples.iter().any(|sample| (&sample.kind, &sample.name) == (&key.kind, &key.name));
    made.0.keys().all(is_sample)
}

/// The rights that an operator has used: its programs, and the charts and scripts whose writes these are.
fn rights(plane: &Plane, writes: &Writes) -> Rights {
    let mut all = writes.take_rights();
    if let Some((_, of_programs)) = plane.stage() {
        all.extend(of_programs.take_rights());
    }
    all
}

/// What stays by Kubernetes' own rules or by Helm's.
fn stays(key: &ObjectKey, object: &Value) -> bool {
    let keeps = meta::annotation(object, "helm.sh/resource-policy");
    key.kind == "PersistentVolumeClaim"
        || keeps.is_some_and(|policy| policy.trim().eq_ignore_ascii_case("keep"))
}

fn key_of(sample: &Sample) -> Option<ObjectKey> {
    let mut key = meta::ObjectRef::of(&sample.object)?.key();
    // A kind without namespaces has no key with a namespace either.
    key.namespace = key.namespace.or_else(|| Some(sample.namespace.clone()));
    Some(key)
}

/// The object at a version that is served.
async fn served(plane: &Plane, object: &Value) -> Option<Value> {
    let gvk = Gvk::of(object)?;
    let crds = plane.get("/apis/apiextensions.k8s.io/v1/customresourcedefinitions").await.ok()??;
    let is = |crd: &&Value| {
        crd.pointer("/spec/group").and_then(Value::as_str) == Some(gvk.group.as_str())
            && crd.pointer("/spec/names/kind").and_then(Value::as_str) == Some(gvk.kind.as_str())
    };
    let crd = crds["items"].as_array()?.iter().find(is)?;
    let version = crd["spec"]["versions"].as_array()?.iter().find(|version| version["served"] == true)?;
    let mut object = object.clone();
    meta::put(&mut object, &["apiVersion"], format!("{}/{}", gvk.group, version["name"].as_str()?));
    Some(object)
}
