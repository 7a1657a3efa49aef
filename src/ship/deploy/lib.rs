//! `opdev install`, `uninstall`, `deploy` and `undeploy`: the project's CRDs, or all of `config/default`, to
//! a cluster and away from it. What would hurt objects, or could not be applied as a whole, is said before
//! anything is written.

mod apply;
mod bindings;
pub mod developer_role;
mod finalizers;
mod image;
mod input;
mod kinds;
mod manifests;
pub mod plan;
mod pods;
mod remove;
mod rights;
mod rollout;
mod session;

use anyhow::{Result, bail};
use apply::{Applied, Change, How};
pub use input::{ApplyOptions, DeployInput, RemoveOptions, Say};
use input::{gvk, is_crd, shown};
use kinds::Kinds;
use manifests::{Goal, Manifests};
use opdev_event::words;
use opdev_event::{Protection, TypeAhead, Weight};
use opdev_object::meta;
use opdev_sources::definitions::Definition;
use rights::Thing;
use serde_json::Value;
use session::Session;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// Applies the project's CRDs.
///
/// # Errors
/// What is wrong with the files, what the CRDs would do to objects, or what the API server said.
pub async fn install(input: &DeployInput, options: &ApplyOptions, say: Say<'_>) -> Result<()> {
    let manifests = manifests::crds(input, Goal::Apply)?;
    bring(input, &manifests, options, Duration::ZERO, say).await
}

/// Applies all of `config/default` and waits until the operator is there.
///
/// # Errors
/// What is wrong with the files, a kind that the cluster lacks, what the CRDs would do to objects, what the
/// API server said, or why the pods do not start.
pub async fn deploy(input: &DeployInput, options: &ApplyOptions, say: Say<'_>) -> Result<()> {
    let manifests =
        manifests::all(input, Goal::Apply, options.image.as_deref(), options.namespace.as_deref())?;
    image::check(&manifests.objects)?;
    image::warn_of_replicas(&manifests.objects, say);
    image::warn_of_grace(&manifests.objects, say);
    bring(input, &manifests, options, input.wait, say).await?;
    if let (Some(reference), true) = (&options.image, options.save) {
        let file = manifests::save_image(&input.project, reference)?;
        say(&format!("{} names {reference} now", file.display()));
    }
    Ok(())
}

/// Deletes the project's CRDs, and with them all their objects.
///
/// # Errors
/// Where there are objects and nobody has said that they may go, or what the API server said.
pub async fn uninstall(input: &DeployInput, options: &RemoveOptions, say: Say<'_>) -> Result<()> {
    let manifests = manifests::crds(input, Goal::Remove)?;
    take_away(input, &manifests, options, say).await
}

/// Deletes what `deploy` has applied.
///
/// # Errors
/// As `uninstall`.
pub async fn undeploy(input: &DeployInput, options: &RemoveOptions, say: Say<'_>) -> Result<()> {
    let manifests = manifests::all(input, Goal::Remove, None, options.namespace.as_deref())?;
    take_away(input, &manifests, options, say).await
}

/// The objects that `install` would apply, as one text.
///
/// # Errors
/// What is wrong with the files.
pub fn rendered_crds(input: &DeployInput) -> Result<String> {
    Ok(opdev_kustomize::to_yaml(&manifests::crds(input, Goal::Apply)?.objects))
}

/// The objects that `deploy` would apply, as one text.
///
/// # Errors
/// What is wrong with the files.
pub fn rendered(input: &DeployInput, options: &ApplyOptions) -> Result<String> {
    let manifests =
        manifests::all(input, Goal::Apply, options.image.as_deref(), options.namespace.as_deref())?;
    image::check(&manifests.objects)?;
    Ok(opdev_kustomize::to_yaml(&manifests.objects))
}

async fn bring(
    input: &DeployInput,
    manifests: &Manifests,
    options: &ApplyOptions,
    wait: Duration,
    say: Say<'_>,
) -> Result<()> {
    manifests.warnings.iter().for_each(|warning| say(&format!("warning: {warning}")));
    let session = Session::open(input, !options.dry_run, say).await?;
    let done = session.bring(manifests, options, wait, say).await;
    session.close().await;
    done
}

async fn take_away(
    input: &DeployInput,
    manifests: &Manifests,
    options: &RemoveOptions,
    say: Say<'_>,
) -> Result<()> {
    let session = Session::open(input, true, say).await?;
    let done = remove::remove(&session, input, manifests, options, say).await;
    session.close().await;
    done
}

impl Session {
    /// Applies the objects: namespaces first, then CRDs, then the rest. What can be known before is said
    /// before.
    async fn bring(
        &self,
        manifests: &Manifests,
        options: &ApplyOptions,
        wait: Duration,
        say: Say<'_>,
    ) -> Result<()> {
        let client = &self.connection.client;
        let mut kinds = Kinds::default();
        let left_out = kinds.check(client, &manifests.objects, options, say).await?;
        let is_left_out = |object: &&Value| left_out.contains(&gvk(object));
        let objects: Vec<&Value> = manifests.objects.iter().filter(|object| !is_left_out(object)).collect();
        let is_first = |object: &&Value| object["kind"] == "Namespace";
        let (namespaces, rest): (Vec<&Value>, Vec<&Value>) = objects.iter().copied().partition(is_first);
        let (crds, rest): (Vec<&Value>, Vec<&Value>) = rest.into_iter().partition(|object| is_crd(object));
        if !options.dry_run {
            let verbs = ["get", "create", "patch"];
            let wanted = rights::for_objects(client, &mut kinds, self.namespace(), &objects, &verbs).await?;
            rights::check(
                client,
                &wanted,
                NOTHING,
                "have somebody grant them, or give what -o yaml prints to somebody who has them",
            )
            .await?;
        }
        bindings::keep(client, &mut kinds, self.namespace(), &objects, say).await?;
        self.weigh(manifests, &crds, options, say).await?;
        let crds = self.without_scaffolded(manifests, &crds, &mut kinds, say).await?;
        let tried: Vec<&Value> = namespaces.iter().chain(&crds).chain(&rest).copied().collect();
        self.try_out(&tried, &mut kinds, options, say).await?;
        if options.dry_run {
            return Ok(());
        }
        let own = kinds::defined(&manifests.objects);
        self.apply_all(&namespaces, &mut kinds, &own, options, say).await?;
        self.apply_all(&crds, &mut kinds, &own, options, say).await?;
        for crd in &crds {
            opdev_crds::wait_established(client, meta::name(crd).unwrap_or_default()).await?;
        }
        self.apply_all(&rest, &mut kinds, &own, options, say).await?;
        if wait.is_zero() {
            return Ok(());
        }
        rollout::wait(client, self.namespace(), &rest, wait, say).await
    }

    /// Says what the CRDs would do to the objects there are, and refuses where that hurts.
    async fn weigh(
        &self,
        manifests: &Manifests,
        crds: &[&Value],
        options: &ApplyOptions,
        say: Say<'_>,
    ) -> Result<()> {
        let client = &self.connection.client;
        let definitions: Vec<Arc<Definition>> = crds.iter().map(|crd| manifests.definition(crd)).collect();
        let offline = self.connection.cluster.protection == Protection::ReadOnly;
        let found = opdev_crds::foresee(client, &definitions, false, offline).await?;
        for one in &found {
            if !one.findings.is_empty() || !one.objects.is_empty() {
                impact(one).iter().for_each(|line| say(line));
            }
            let objects = Thing::everywhere(&one.kind.group, plural(&one.name));
            if !one.created && !rights::allowed(client, &objects, "list", &BTreeSet::new()).await {
                let unknown = format!(
                    "you may not list {objects}, so what the new definition does to them is not known"
                );
                let may_hurt = one
                    .findings
                    .iter()
                    .any(|finding| matches!(finding.weight, Weight::Break | Weight::Loss | Weight::Block));
                if may_hurt && !options.accept_impact {
                    bail!(
                        "{NOTHING}: {unknown}\n  to do: have somebody who may list them do it, or add --accept-impact if the objects may \
                         be hurt"
                    );
                }
                say(&format!("warning: {unknown}"));
            }
        }
        let refused: Vec<&TypeAhead> = found.iter().filter(|one| one.problem.is_some()).collect();
        let Some(first) = refused.first() else { return Ok(()) };
        let only_held = refused.iter().all(|one| one.problem.as_deref().is_some_and(is_held));
        if only_held && options.accept_impact {
            return Ok(());
        }
        let why = first.problem.as_deref().unwrap_or_default();
        let why = why.strip_prefix(HELD).unwrap_or(why);
        let hint = if only_held {
            "correct the type, or add --accept-impact if the objects may break or lose data"
        } else {
            "correct the type"
        };
        bail!("{NOTHING}: {}: {why}\n  to do: {hint}", first.name)
    }

    /// The CRDs without those that opdev makes up for charts, where the cluster has another one already.
    async fn without_scaffolded<'a>(
        &self,
        manifests: &Manifests,
        crds: &[&'a Value],
        kinds: &mut Kinds,
        say: Say<'_>,
    ) -> Result<Vec<&'a Value>> {
        let mut kept = Vec::new();
        for crd in crds {
            let definition = manifests.definition(crd);
            let served = match definition.gvk().filter(|_| definition.scaffolded) {
                Some(gvk) => kinds.find(&self.connection.client, &gvk).await?.is_some(),
                None => false,
            };
            if served {
                say(&format!("{} is left as it is: the project has no CRD for it", shown(crd)));
            } else {
                kept.push(*crd);
            }
        }
        Ok(kept)
    }

    /// Asks the API server what it would do with each object, and refuses where it would refuse one.
    async fn try_out(
        &self,
        objects: &[&Value],
        kinds: &mut Kinds,
        options: &ApplyOptions,
        say: Say<'_>,
    ) -> Result<()> {
        let client = &self.connection.client;
        let how = How { force: options.force_conflicts, dry_run: true };
        let mut coming = BTreeSet::new();
        let mut refused = Vec::new();
        for object in objects {
            let shown = shown(object);
            let Some(place) = kinds.find(client, &gvk(object)).await? else {
                if options.dry_run {
                    say(&format!("{shown} would be created (its kind comes with this deployment)"));
                }
                continue;
            };
            let namespace = meta::namespace(object).unwrap_or(self.namespace());
            if place.1 && coming.contains(namespace) {
                if options.dry_run {
                    say(&format!("{shown} would be created (its namespace comes with this deployment)"));
                }
                continue;
            }
            match apply::apply(client, &place, self.namespace(), object, how).await {
                Ok(applied) => {
                    if applied.change == Change::Created && object["kind"] == "Namespace" {
                        coming.insert(meta::name(object).unwrap_or_default());
                    }
                    if options.dry_run {
                        said(&shown, &applied, true, say);
                    }
                }
                Err(error) => refused.push(format!("  {error:#}")),
            }
        }
        if refused.is_empty() {
            return Ok(());
        }
        bail!("{NOTHING}, for the API server would refuse:\n{}", refused.join("\n"))
    }

    async fn apply_all(
        &self,
        objects: &[&Value],
        kinds: &mut Kinds,
        own: &BTreeSet<(String, String)>,
        options: &ApplyOptions,
        say: Say<'_>,
    ) -> Result<()> {
        let client = &self.connection.client;
        let how = How { force: options.force_conflicts, dry_run: false };
        for object in objects {
            let shown = shown(object);
            let gvk = gvk(object);
            let place = if own.contains(&(gvk.group.clone(), gvk.kind.clone())) {
                kinds.find_soon(client, &gvk).await?
            } else {
                kinds.find(client, &gvk).await?
            };
            let Some(place) = place else { bail!("{shown}: the API server does not serve its kind") };
            let applied = apply::apply(client, &place, self.namespace(), object, how).await?;
            said(&shown, &applied, false, say);
        }
        Ok(())
    }
}

const NOTHING: &str = "nothing was applied";

/// The beginning of the plan's line for a CRD change that needs an answer.
const HELD: &str = "it would need your answer: ";

fn is_held(problem: &str) -> bool {
    problem.starts_with(HELD)
}

/// Says what became of an object, or what would.
fn said(shown: &str, applied: &Applied, dry_run: bool, say: Say<'_>) {
    let word = match (applied.change, dry_run) {
        (Change::Created, false) => "created",
        (Change::Configured, false) => "configured",
        (Change::Unchanged, _) => "unchanged",
        (Change::Created, true) => "would be created",
        (Change::Configured, true) => "would be configured",
        (Change::Unknown, _) => "would be applied (a webhook answers no dry runs)",
    };
    let handed = match applied.handed_over.as_slice() {
        [] => String::new(),
        managers => format!(" (fields handed over from {})", managers.join(", ")),
    };
    say(&format!("{shown} {word}{handed}"));
    applied.warnings.iter().for_each(|warning| say(&format!("warning: {shown}: {warning}")));
}

/// The effect of a changed CRD, one line each.
fn impact(one: &TypeAhead) -> Vec<String> {
    let mut lines = vec![format!("{}:", one.name)];
    lines.extend(one.findings.iter().map(|finding| format!("  {}", words::finding(finding))));
    lines.extend(one.objects.iter().map(|hurt| format!("  {}", words::hurt(hurt))));
    lines
}

/// The plural of a CRD named `PLURAL.GROUP`.
fn plural(name: &str) -> &str {
    name.split('.').next().unwrap_or(name)
}
