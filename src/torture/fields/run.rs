//! One field changed, and changed back, beside a new object that has the change from the start.

use super::mutation::{Mutation, changed};
use crate::judge::{Difference, Ignored, Rule, snapshots};
use crate::normal::{self, Fields, Snapshot};
use crate::operator::{Operator, objects};
use crate::run::{RunInput, Stage};
use crate::scenario::{Sample, head};
use anyhow::{Result, bail};
use http::Method;
use opdev_object::meta;
use opdev_object::patch::create_merge_patch;
use serde_json::Value;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// The namespaces of the changed object and of the new one.
const NAMESPACES: [&str; 2] = ["fields-changed", "fields-new"];
/// Stands for either of them.
const HERE: &str = "NAMESPACE";

/// Objects that the operator had written at each point.
#[derive(Clone, Debug, Default)]
pub(super) struct FieldRan {
    pub(super) base: Snapshot,
    pub(super) changed: Snapshot,
    pub(super) back: Snapshot,
    /// A new object with the change; nothing for kinds without namespaces.
    pub(super) new: Option<Snapshot>,
    /// The error while the change was there, and not before.
    pub(super) troubles: BTreeSet<String>,
    /// Why the API server refused the change.
    pub(super) refused: Option<String>,
    pub(super) took: Duration,
}

/// Changes one field of the sample's first object; without a mutation nothing is changed.
///
/// # Errors
/// Where the plane or the operator do not start, or the sample is refused.
pub(super) async fn run_field(
    input: &RunInput<'_>,
    schema: &Value,
    mutation: Option<&Mutation>,
) -> Result<FieldRan> {
    let began = Instant::now();
    let mut stage = Stage::set(input).await?;
    let ran = tokio::select! {
        ran = steps(&mut stage, &input.scenario.sample, schema, mutation) => ran,
        () = input.shutdown.cancelled() => Err(anyhow::anyhow!("broken off")),
    };
    stage.leave().await;
    ran.map(|ran| FieldRan { took: began.elapsed(), ..ran })
}

async fn steps(
    stage: &mut Stage<'_>,
    sample: &Sample,
    schema: &Value,
    mutation: Option<&Mutation>,
) -> Result<FieldRan> {
    let namespaced = sample.is_namespaced();
    let sample = if namespaced { sample.moved(NAMESPACES[0], None) } else { sample.clone() };
    let Some(base) = sample.objects.first() else { bail!("the sample has no object") };
    let place = namespaced.then_some(NAMESPACES[0]);
    stage.apply(&[sample.others.clone(), sample.objects.clone()].concat()).await?;
    stage.rest().await?;
    let mut ran = FieldRan { base: written(stage, base, place), ..FieldRan::default() };
    let before = troubles(stage);
    let with = mutation.map_or_else(|| base.clone(), |mutation| changed(schema, base, mutation));
    if let Err(error) = send(stage, base, &create_merge_patch(base, &with)).await {
        ran.refused = Some(format!("{error:#}"));
        return Ok(ran);
    }
    stage.rest().await?;
    ran.changed = written(stage, base, place);
    ran.troubles = troubles(stage).difference(&before).map(|trouble| here(trouble)).collect();
    if namespaced {
        let mut new = sample.clone();
        new.objects[0] = with.clone();
        let new = new.moved(NAMESPACES[1], None);
        stage.apply(&[new.others.clone(), new.objects.clone()].concat()).await?;
        stage.rest().await?;
        ran.new = new.objects.first().map(|object| written(stage, object, Some(NAMESPACES[1])));
    }
    send(stage, base, &create_merge_patch(&with, base)).await?;
    stage.rest().await?;
    ran.back = written(stage, base, place);
    Ok(ran)
}

async fn send(stage: &Stage<'_>, object: &Value, patch: &Value) -> Result<()> {
    let path = stage.path(&head(object))?;
    stage.send(Method::PATCH, &path, "application/merge-patch+json", Some(patch)).await.map(drop)
}

fn troubles(stage: &Stage<'_>) -> BTreeSet<String> {
    let mut found = stage.operator.as_ref().map(Operator::failing).unwrap_or_default();
    found.extend(stage.troubles.iter().cloned());
    found
}

fn here(text: &str) -> String {
    NAMESPACES.iter().fold(text.to_owned(), |text, namespace| text.replace(namespace, HERE))
}

/// Objects that the operator has written for an object, but for those that controllers of the cluster made.
/// The object itself has only its finalizers here.
fn written(stage: &Stage<'_>, own: &Value, namespace: Option<&str>) -> Snapshot {
    let all = objects(&stage.plane);
    let counts = |object: &&Value| {
        (namespace.is_none() || meta::namespace(object) == namespace) && !is_derived(object)
    };
    let of = normal::snapshot(all.iter().map(|object| &**object).filter(counts));
    let own = normal::id(own);
    let kept = |id: &str, path: &str| match id == own {
        true => path.starts_with(".metadata.finalizers"),
        false => !path.starts_with(".status"),
    };
    let whole = of.into_iter().map(|(id, fields)| {
        let fields: Fields = fields
            .into_iter()
            .filter(|(path, _)| kept(&id, path))
            .map(|(path, value)| (here(&path), here(&value)))
            .collect();
        (here(&id), fields)
    });
    whole.collect()
}

/// Returns true if a controller of the cluster made an object of another one.
fn is_derived(object: &Value) -> bool {
    let by = |kind: &str| {
        matches!(kind, "StatefulSet" | "ReplicaSet" | "DaemonSet" | "Job" | "CronJob" | "Deployment")
    };
    // A claim of a template has no owner; who made it stands in its managed fields.
    let by_plane = || {
        let mut entries = object["metadata"]["managedFields"].as_array().into_iter().flatten();
        entries.all(|entry| entry["manager"].as_str().is_some_and(|name| name.starts_with("kube-")))
    };
    let claim = object["kind"] == "PersistentVolumeClaim" && by_plane();
    claim || meta::owner_references(object).iter().any(|owner| by(&owner.kind))
}

/// Fields that differ between two objects of one sample: nobody can be blamed for them.
pub(super) fn varying(runs: &[FieldRan]) -> BTreeSet<(String, String)> {
    let Some((first, others)) = runs.split_first() else { return BTreeSet::new() };
    let all = runs.iter().flat_map(|run| [Some(&run.base), Some(&run.back), run.new.as_ref()]);
    let mut found = BTreeSet::new();
    for other in all.flatten().chain(others.iter().map(|run| &run.changed)) {
        let different = snapshots(&first.base, other, Rule::Fresh);
        found.extend(different.into_iter().map(|one| (one.object, one.path)));
    }
    found
}

/// Differences that a change of one field makes and should not.
pub(super) fn judge(
    ran: &FieldRan,
    varying: &BTreeSet<(String, String)>,
    ignored: &[Ignored],
) -> Vec<Difference> {
    let mut found = snapshots(&ran.base, &ran.back, Rule::BackAgain);
    if let Some(new) = &ran.new {
        found.extend(snapshots(new, &ran.changed, Rule::Fresh));
    }
    found.retain(|one| !varying.contains(&(one.object.clone(), one.path.clone())));
    found.extend(ran.troubles.iter().map(|trouble| Difference {
        rule: Rule::Trouble,
        object: trouble.clone(),
        path: String::new(),
        undisturbed: String::new(),
        disturbed: String::new(),
        after: String::new(),
    }));
    found.retain(|one| !ignored.iter().any(|ignored| ignored.takes(one)));
    found.sort();
    found.dedup();
    found
}

/// Returns true if a change reached anything.
pub(super) fn has_effect(ran: &FieldRan, varying: &BTreeSet<(String, String)>) -> bool {
    let different = snapshots(&ran.base, &ran.changed, Rule::End);
    different.into_iter().any(|one| !varying.contains(&(one.object, one.path)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(size: Option<&str>, seed: &str) -> Snapshot {
        let mut fields = Fields::from([(".data.seed".to_owned(), seed.to_owned())]);
        fields.extend(size.map(|size| (".data.size".to_owned(), size.to_owned())));
        [("ConfigMap NAMESPACE/a".to_owned(), fields)].into()
    }

    fn words(back: Option<&str>, new: Option<&str>) -> Vec<String> {
        let still = FieldRan {
            base: with(Some("1"), "a"),
            changed: with(Some("1"), "a"),
            back: with(Some("1"), "a"),
            new: Some(with(Some("1"), "b")),
            ..FieldRan::default()
        };
        let ran = FieldRan {
            changed: with(Some("2"), "a"),
            back: with(back, "a"),
            new: Some(with(new, "c")),
            ..still.clone()
        };
        let varying = varying(&[still]);
        assert!(has_effect(&ran, &varying));
        judge(&ran, &varying, &[]).iter().map(Difference::words).collect()
    }

    #[test]
    fn what_was_changed_back_is_as_before_and_a_changed_object_as_a_new_one() {
        assert!(words(Some("1"), Some("2")).is_empty());
        assert_eq!(
            words(Some("2"), Some("2")),
            ["ConfigMap NAMESPACE/a keeps .data.size 2, before the change it was 1"]
        );
        assert_eq!(
            words(Some("1"), None),
            ["ConfigMap NAMESPACE/a has .data.size 2 for a changed object, and none for a new one"]
        );
    }

    #[test]
    fn what_controllers_derive_is_nobodys_work() {
        let pod = serde_json::json!({"kind": "Pod", "metadata": {"name": "a",
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "a", "uid": "1"}]}});
        assert!(is_derived(&pod));
        let claim = |manager: &str| {
            let fields = [serde_json::json!({"manager": manager, "operation": "Update"})];
            serde_json::json!({"kind": "PersistentVolumeClaim", "metadata": {"name": "a", "managedFields": fields}})
        };
        assert!(is_derived(&claim("kube-controller-manager")));
        assert!(!is_derived(&claim("manager")), "the operator made it");
        assert!(!is_derived(&serde_json::json!({"kind": "ConfigMap", "metadata": {"name": "a"}})));
    }
}
