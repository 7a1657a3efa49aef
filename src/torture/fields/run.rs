//! One field changed, and changed back, beside a new object that has the change from the start.

use super::excused::excuse;
use super::mutation::{Mutation, changed};
use crate::judge::{Difference, Ignored, Rule, snapshots};
use crate::operator::{Operator, objects, without_secrets};
use crate::run::{RunInput, Stage};
use anyhow::{Context as _, Result, bail};
use http::Method;
use opdev_normal::{Fields, Snapshot};
use opdev_object::meta;
use opdev_object::patch::create_merge_patch;
use opdev_steps::scenario::{Sample, Step, head, name};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
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
    /// The new object once its change is taken back; only where the operator could not serve it.
    pub(super) healed: Option<Snapshot>,
    /// The new object, where it stays though it was deleted with the change in it.
    pub(super) stays: Option<String>,
    /// True if a new object has the change of a Secret or a ConfigMap, and one that was there before has not.
    pub(super) late: bool,
    /// True if the change shows in the custom resource's status.
    pub(super) says_otherwise: bool,
    /// The error while the change was there, and not before.
    pub(super) troubles: BTreeSet<String>,
    /// Such errors that are the right answer to the change, and why they are.
    pub(super) excused: BTreeMap<String, &'static str>,
    /// Errors that the program has printed again and again before the change.
    complaints: BTreeSet<String>,
    /// True if the operator could not serve the sample as it is.
    pub(super) failed_before: bool,
    /// Why the API server refused the change.
    pub(super) refused: Option<String>,
    /// The longest time in which nothing happened before something changed.
    pub(super) gap: Duration,
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
    let mut stage = tokio::select! {
        stage = Stage::set(input) => stage?,
        () = input.shutdown.cancelled() => bail!("broken off"),
    };
    // Silence counts from the first step on.
    stage.record.begin(0);
    let ran = tokio::select! {
        ran = steps(&mut stage, &input.scenario.sample, schema, mutation) => ran,
        () = input.shutdown.cancelled() => Err(anyhow::anyhow!("broken off")),
    };
    let gap = stage.record.noted().gaps.into_iter().max().unwrap_or_default();
    stage.leave().await;
    ran.map(|ran| FieldRan { took: began.elapsed(), gap, ..ran })
}

async fn rest(stage: &mut Stage<'_>) -> Result<()> {
    stage.rest().await?;
    stage.record.at_rest();
    Ok(())
}

/// The object that changes, as it is before and after.
struct Change {
    /// Its place among the others of the sample; none for the custom resource itself.
    other: Option<usize>,
    before: Value,
    /// Nothing where the object goes.
    after: Option<Value>,
}

impl Change {
    fn of(sample: &Sample, schema: &Value, mutation: Option<&Mutation>) -> Result<Change> {
        let named = mutation.and_then(|mutation| mutation.of.as_ref());
        let other = match named {
            Some(wanted) => Some(
                sample
                    .others
                    .iter()
                    .position(|object| name(object) == *wanted)
                    .with_context(|| format!("the sample has no {wanted}"))?,
            ),
            None => None,
        };
        let before = other.map_or_else(|| sample.objects.first(), |at| sample.others.get(at));
        let before = before.context("the sample has no object")?.clone();
        let after = match mutation {
            Some(mutation) if mutation.path.is_empty() => None,
            Some(mutation) if other.is_some() => Some(changed(&Value::Null, &before, mutation)),
            Some(mutation) => Some(changed(schema, &before, mutation)),
            None => Some(before.clone()),
        };
        Ok(Change { other, before, after })
    }

    /// The sample with the change from the start.
    fn in_sample(&self, sample: &Sample) -> Sample {
        let mut new = sample.clone();
        let Some(after) = self.after.clone() else { return new };
        let place = self.other.map_or_else(|| new.objects.first_mut(), |at| new.others.get_mut(at));
        if let Some(object) = place {
            *object = after;
        }
        new
    }

    async fn make(&self, stage: &Stage<'_>) -> Result<()> {
        match &self.after {
            Some(after) => send(stage, &self.before, &create_merge_patch(&self.before, after)).await,
            None => stage.delete(&stage.path(&self.before)?).await,
        }
    }

    async fn take_back(&self, stage: &Stage<'_>) -> Result<()> {
        match &self.after {
            Some(after) => send(stage, &self.before, &create_merge_patch(after, &self.before)).await,
            None => stage.apply(std::slice::from_ref(&self.before)).await,
        }
    }
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
    let change = Change::of(&sample, schema, mutation)?;
    let place = namespaced.then_some(NAMESPACES[0]);
    stage.apply(&[sample.others.clone(), sample.objects.clone()].concat()).await?;
    rest(stage).await?;
    let mut ran = FieldRan { base: written(stage, base, place), ..FieldRan::default() };
    let (said, before) = (status(stage, base), troubles(stage));
    ran.complaints = complaints(stage);
    ran.failed_before = !before.is_empty() || !ran.complaints.is_empty();
    if let Err(error) = change.make(stage).await {
        ran.refused = Some(format!("{error:#}"));
        return Ok(ran);
    }
    rest(stage).await?;
    ran.changed = written(stage, base, place);
    ran.says_otherwise = status(stage, base) != said;
    // An operator may complain for as long as it has not what it needs, or cannot read it.
    let of_reference = mutation.is_some_and(|mutation| mutation.of.is_some());
    let mut now = if of_reference { stage.troubles.iter().cloned().collect() } else { troubles(stage) };
    let complaints = complaints(stage);
    if !of_reference {
        now.extend(complaints.difference(&ran.complaints).cloned());
    }
    let own = own(stage, base);
    let excuse = |trouble: &str| excuse(own.as_ref().map(|own| &own["status"]), mutation, trouble);
    for trouble in now.difference(&before).map(|trouble| here(trouble)) {
        match excuse(&trouble) {
            Some(why) => drop(ran.excused.insert(trouble, why)),
            None => drop(ran.troubles.insert(trouble)),
        }
    }
    if namespaced && !mutation.is_some_and(Mutation::takes_reference) {
        new_object(stage, &change.in_sample(&sample), base, &mut ran).await?;
        // Nobody knows the meaning of the new value: a new object that cannot use it proves nothing.
        // Nor does one that differs from an object that has not looked yet: it may look again later.
        let lacks = |new: &Snapshot| ran.base.keys().any(|id| !new.contains_key(id));
        let itself = here(&opdev_normal::id(&change.before));
        let is_other = |one: Difference| one.object != itself;
        let unread = !snapshots(&ran.base, &ran.changed, Rule::End).into_iter().any(is_other);
        if of_reference && ran.new.as_ref().is_some_and(|new| unread || lacks(new)) {
            let differs = |new: Snapshot| snapshots(&ran.base, &new, Rule::End).into_iter().any(is_other);
            ran.late = unread && ran.new.take().is_some_and(differs);
            ran.new = None;
        }
    }
    change.take_back(stage).await?;
    rest(stage).await?;
    ran.back = written(stage, base, place);
    Ok(ran)
}

/// A new object with the change. One that the operator cannot serve is changed back, gets the change again,
/// and goes with it.
async fn new_object(stage: &mut Stage<'_>, new: &Sample, base: &Value, ran: &mut FieldRan) -> Result<()> {
    let new = new.moved(NAMESPACES[1], None);
    let Some(object) = new.objects.first() else { return Ok(()) };
    stage.apply(&[new.others.clone(), new.objects.clone()].concat()).await?;
    rest(stage).await?;
    let made = written(stage, object, Some(NAMESPACES[1]));
    let lacks = ran.base.keys().any(|id| !made.contains_key(id));
    ran.new = Some(made);
    let good = Sample { objects: vec![base.clone()], ..Sample::default() }.moved(NAMESPACES[1], None);
    let Some(good) = good.objects.first() else { return Ok(()) };
    if good == object || !lacks && ran.troubles.is_empty() && ran.excused.is_empty() {
        return Ok(());
    }
    send(stage, object, &create_merge_patch(object, good)).await?;
    rest(stage).await?;
    ran.healed = Some(written(stage, object, Some(NAMESPACES[1])));
    if send(stage, object, &create_merge_patch(good, object)).await.is_err() {
        return Ok(());
    }
    rest(stage).await?;
    let gone = Step::Delete(vec![object.clone()]);
    stage.act(&gone).await?;
    rest(stage).await?;
    ran.stays = stage.left(&gone).map(|id| here(&id));
    Ok(())
}

/// The object as it is now.
fn own(stage: &Stage<'_>, wanted: &Value) -> Option<Arc<Value>> {
    let wanted = opdev_normal::id(wanted);
    objects(&stage.plane).into_iter().find(|object| opdev_normal::id(object) == wanted)
}

/// The object's status without what changes with each generation.
fn status(stage: &Stage<'_>, own: &Value) -> Fields {
    let own = self::own(stage, own);
    let fields = opdev_normal::snapshot(own.as_deref().into_iter()).into_values().flatten();
    fields.filter(|(path, _)| path.starts_with(".status")).collect()
}

async fn send(stage: &Stage<'_>, object: &Value, patch: &Value) -> Result<()> {
    let path = stage.path(&head(object))?;
    stage.send(Method::PATCH, &path, "application/merge-patch+json", Some(patch)).await.map(drop)
}

fn troubles(stage: &Stage<'_>) -> BTreeSet<String> {
    let failing = stage.operator.as_ref().map(Operator::failing).unwrap_or_default();
    let mut found = without_secrets(&stage.plane, failing);
    found.extend(stage.troubles.iter().cloned());
    found
}

fn complaints(stage: &Stage<'_>) -> BTreeSet<String> {
    stage.operator.as_ref().map(|operator| operator.complaints(&stage.plane)).unwrap_or_default()
}

pub(super) fn here(text: &str) -> String {
    NAMESPACES.iter().fold(text.to_owned(), |text, namespace| text.replace(namespace, HERE))
}

/// Objects that the operator has written for an object, but for those that controllers of the cluster made.
/// The object itself has only its finalizers here.
fn written(stage: &Stage<'_>, own: &Value, namespace: Option<&str>) -> Snapshot {
    let all = objects(&stage.plane);
    let counts = |object: &&Value| {
        (namespace.is_none() || meta::namespace(object) == namespace) && !is_derived(object)
    };
    let of = opdev_normal::snapshot(all.iter().map(|object| &**object).filter(counts));
    let own = opdev_normal::id(own);
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
    let own = runs.iter().flat_map(|run| run.troubles.iter().chain(&run.complaints));
    found.extend(own.map(|trouble| (here(trouble), String::new())));
    found
}

/// Differences that a change of one field makes and should not.
pub(super) fn judge(
    ran: &FieldRan,
    varying: &BTreeSet<(String, String)>,
    ignored: &[Ignored],
) -> Vec<Difference> {
    let mut found = snapshots(&ran.base, &ran.back, Rule::BackAgain);
    // The operator makes nothing for a new object that it refuses.
    if let Some(new) = ran.new.as_ref().filter(|_| ran.excused.is_empty() || !ran.troubles.is_empty()) {
        found.extend(snapshots(new, &ran.changed, Rule::Fresh));
    }
    if let Some(healed) = &ran.healed {
        found.extend(snapshots(&ran.base, healed, Rule::Healed));
    }
    found.extend(ran.stays.iter().map(|object| Difference {
        rule: Rule::Stuck,
        object: format!("the deletion of {object} with the change in it"),
        path: String::new(),
        undisturbed: String::new(),
        disturbed: String::new(),
        after: String::new(),
    }));
    found.extend(ran.troubles.iter().map(|trouble| Difference {
        rule: Rule::Trouble,
        object: trouble.clone(),
        path: String::new(),
        undisturbed: String::new(),
        disturbed: String::new(),
        after: String::new(),
    }));
    found.retain(|one| !varying.contains(&(one.object.clone(), one.path.clone())));
    found.retain(|one| !ignored.iter().any(|ignored| ignored.takes(one)));
    found.sort();
    found.dedup();
    found
}

/// The first object and field that a change reached; an empty object where it only shows in the status.
pub(super) fn effect(ran: &FieldRan, varying: &BTreeSet<(String, String)>) -> Option<(String, String)> {
    let different =
        snapshots(&ran.base, &ran.changed, Rule::End).into_iter().map(|one| (one.object, one.path));
    let mut reached = different.filter(|one| !varying.contains(one));
    reached.next().or_else(|| ran.says_otherwise.then(Default::default))
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
        assert!(effect(&ran, &varying).is_some());
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
    fn an_object_that_was_never_served_gets_over_it_and_may_go() {
        let base = with(Some("1"), "a");
        let ran = FieldRan {
            base: base.clone(),
            changed: base.clone(),
            back: base.clone(),
            new: Some(base.clone()),
            healed: Some(Snapshot::new()),
            stays: Some("Db NAMESPACE/a".to_owned()),
            ..FieldRan::default()
        };
        let words: Vec<String> = judge(&ran, &BTreeSet::new(), &[]).iter().map(Difference::words).collect();
        assert_eq!(
            words,
            [
                "the deletion of Db NAMESPACE/a with the change in it does not come to its end",
                "ConfigMap NAMESPACE/a does not come for an object that began with the change, once that is taken back"
            ]
        );
        assert!(
            judge(&FieldRan { healed: Some(base), stays: None, ..ran }, &BTreeSet::new(), &[]).is_empty()
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
