//! The problem: a release has one record for each revision, several programs may write them, and a crash can
//! come between two. `helm` must be able to read every state in between.
//!
//! The revisions of a release in their Secrets: read, written and kept short the way Helm does, so that the
//! real `helm list`, `history` and `get` read them. Each Secret is owned by the custom resource.

pub mod desired_release;
pub mod records;

use super::objects::inject::{Owner, put_owner_note};
use super::render::Rendered;
use crate::history::desired_release::DesiredRelease;
use crate::history::records::Records;
use anyhow::{Context, anyhow};
use jiff::Timestamp;
use opdev_cache::mapping::OWNER_LABEL;
use opdev_client::Api;
use opdev_helm::release::{self, Release, Status, StoredChart, StoredHook, chunked};
use opdev_object::meta::{self, Gvk};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::OnceLock;

/// All revisions of one release, oldest first.
pub struct History {
    name: String,
    records: Records,
    /// True if the custom resource owns its records.
    owned: bool,
    entries: Vec<Entry>,
    /// Records whose Secrets are not all there: whoever stored them was ended in between, before anything was
    /// installed.
    torn: Vec<Value>,
}

struct Entry {
    revision: i64,
    status: String,
    secret: Value,
    /// The record's content, once somebody has asked: it is compressed, and a reconcile asks several times.
    read: OnceLock<Stored>,
}

/// One revision, read.
#[derive(Clone, Debug)]
pub struct Stored {
    pub release: Release,
}

impl History {
    /// Lists the revisions. Records without a revision are left out, as Helm does.
    pub async fn read(api: &Api, records: Records, name: &str, owned: bool) -> anyhow::Result<History> {
        let found = records.list(api, name).await?;
        let is_torn = |record: &Value| {
            let status = meta::label(record, "status").unwrap_or_default();
            chunked::is_torn(record) && status.starts_with("pending-")
        };
        let (torn, found): (Vec<Value>, Vec<Value>) = found.into_iter().partition(is_torn);
        let mut entries: Vec<Entry> = found.into_iter().filter_map(Entry::of).collect();
        entries.sort_by_key(|entry| entry.revision);
        Ok(History { name: name.to_owned(), records, owned, entries, torn })
    }

    /// The releases that some records hold, by namespace and name.
    pub fn all(records: &Records, found: Vec<Value>) -> Vec<History> {
        let mut releases: BTreeMap<(String, String), Vec<Entry>> = BTreeMap::new();
        for record in found {
            let Some(name) = meta::label(&record, "name").map(str::to_owned) else { continue };
            let namespace = meta::namespace(&record).unwrap_or_default().to_owned();
            releases.entry((namespace, name)).or_default().extend(Entry::of(record));
        }
        let history = |((namespace, name), mut entries): ((String, String), Vec<Entry>)| {
            entries.sort_by_key(|entry| entry.revision);
            let owned = entries.iter().any(|entry| meta::controller(&entry.secret).is_some());
            History { name, records: records.elsewhere(&namespace), owned, entries, torn: Vec::new() }
        };
        releases.into_iter().map(history).collect()
    }

    /// The release's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its namespace.
    pub fn namespace(&self) -> &str {
        self.records.namespace()
    }

    /// The newest revision.
    pub fn newest(&self) -> anyhow::Result<Option<Stored>> {
        self.entries.last().map(Entry::read).transpose()
    }

    /// Refuses a release that another custom resource, or nobody that opdev knows, has installed.
    pub fn check_uid(&self, owner: &Owner, label: &str) -> anyhow::Result<()> {
        let ours = |entry: &Entry| meta::label(&entry.secret, label) == Some(owner.uid.as_str());
        if self.entries.iter().all(ours) {
            return Ok(());
        }
        let whose = self.entries.iter().find_map(|entry| meta::controller(&entry.secret));
        let whose = whose.map_or_else(
            || "somebody else".to_owned(),
            |controller| format!("{} {}", controller.kind, controller.name),
        );
        Err(anyhow!(
            "release {:?} in namespace {:?} was installed by {whose}; give one of the two another name",
            self.name,
            self.records.namespace()
        ))
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(crate) fn last_revision(&self) -> i64 {
        self.entries.last().map_or(0, |entry| entry.revision)
    }

    /// The number of the next revision, once `drop_failed` has run.
    pub(crate) fn next_revision(&self) -> i64 {
        let kept = self.entries.iter().rev().find(|entry| entry.status != Status::Failed.word());
        kept.map_or(0, |entry| entry.revision) + 1
    }

    /// The number of the next revision where failed ones stay.
    pub(crate) fn revision_after_all(&self) -> i64 {
        self.last_revision() + 1
    }

    /// Refuses a release that belongs to another chart or to a custom resource of another kind.
    pub fn check(&self, chart: &str, owner: &Owner) -> anyhow::Result<()> {
        let Some(first) = self.entries.first() else { return Ok(()) };
        let name = &self.name;
        let found = match first.stored() {
            Ok(stored) => &stored.release.chart.metadata.name,
            // A record that cannot be read says nothing about its chart.
            Err(_) => return Ok(()),
        };
        if found.is_empty() {
            return Err(anyhow!("could not find chart metadata in release with name {name:?}"));
        }
        if *found != chart {
            return Err(anyhow!(
                "duplicate release name: found existing release with name {name:?} for chart {found:?}"
            ));
        }
        match self.other_kind(owner) {
            Some(kind) => Err(anyhow!(
                "duplicate release name: found existing release with name {name:?} of a custom resource of kind \
                 {kind}; give one of the two another name"
            )),
            None => Ok(()),
        }
    }

    /// Returns true if the release is this owner's, or at least nobody else's.
    pub fn belongs_to(&self, owner: &Owner) -> bool {
        self.other_kind(owner).is_none()
    }

    fn other_kind(&self, owner: &Owner) -> Option<String> {
        self.entries.iter().find_map(|entry| {
            let controller = meta::controller(&entry.secret)?;
            let gvk = Gvk::from_api_version(&controller.api_version, &controller.kind);
            (gvk.group != owner.gvk.group || gvk.kind != owner.gvk.kind).then(|| gvk.kind_group())
        })
    }

    /// The newest deployed revision.
    pub(crate) fn deployed(&self) -> anyhow::Result<Option<Stored>> {
        let newest = self.entries.iter().rev().find(|entry| entry.status == Status::Deployed.word());
        newest.map(Entry::read).transpose().context("failed to get deployed release")
    }

    /// An operation that was broken off leaves a pending revision, which is marked as failed. The Operator
    /// SDK's operator deletes it, whoever began it. Gives a notice where that was somebody else.
    pub async fn heal(&mut self, api: &Api, owner: &Owner) -> anyhow::Result<Option<String>> {
        if let Some(torn) = self.torn.first() {
            let why = release::from_secret(torn).err().map(|error| error.to_string()).unwrap_or_default();
            let notice = format!("{why}. The revision was broken off while it was stored, and is dropped");
            self.drop_torn(api).await?;
            return Ok(Some(notice));
        }
        let Some(newest) = self.entries.last() else { return Ok(None) };
        if !newest.status.starts_with("pending-") {
            return Ok(None);
        }
        let ours = meta::owner_references(&newest.secret).iter().any(|reference| reference.uid == owner.uid);
        let notice = (!ours).then(|| {
            format!(
                "revision {} of release {} is {}, and opdev did not begin it: it is taken as broken off, as the \
                 Operator SDK's operator does",
                newest.revision, self.name, newest.status
            )
        });
        let mut stored = newest.read()?;
        stored.fail(&format!("{} was interrupted", newest.status));
        self.replace(api, owner, &mut stored).await?;
        if let Some(newest) = self.entries.last_mut() {
            newest.status = Status::Failed.word().to_owned();
        }
        Ok(notice)
    }

    /// The manifests whose objects may be on the cluster: of the deployed revision and of the newest one.
    pub(crate) fn live_manifests(&self) -> anyhow::Result<Vec<String>> {
        let mut manifests = Vec::new();
        let newest = self.entries.last().map(Entry::read).transpose()?;
        for stored in self.deployed()?.into_iter().chain(newest) {
            if !manifests.contains(&stored.release.manifest) {
                manifests.push(stored.release.manifest);
            }
        }
        Ok(manifests)
    }

    /// The hooks of the revision that an uninstall takes away, and the name of its chart.
    pub(crate) fn newest_hooks(&self) -> anyhow::Result<(Vec<StoredHook>, String)> {
        let stored = match self.deployed()? {
            Some(stored) => Some(stored),
            None => self.entries.last().map(Entry::read).transpose()?,
        };
        Ok(stored.map_or_else(Default::default, |stored| {
            (stored.release.hooks, stored.release.chart.metadata.name)
        }))
    }

    /// The record of the next revision, not yet stored.
    pub(crate) fn next(
        &self,
        name: &str,
        namespace: &str,
        desired: &DesiredRelease,
        rendered: Rendered,
    ) -> Release {
        let now = Timestamp::now();
        let revision = self.last_revision() + 1;
        let before = self.deployed().ok().flatten();
        let (status, description) = match before {
            Some(_) => (Status::PendingUpgrade, "Preparing upgrade"),
            None => (Status::PendingInstall, "Initial install underway"),
        };
        Release {
            name: name.to_owned(),
            info: release::Info {
                first_deployed: before.and_then(|stored| stored.release.info.first_deployed).or(Some(now)),
                last_deployed: Some(now),
                description: description.to_owned(),
                status,
                notes: rendered.notes,
                ..release::Info::default()
            },
            chart: StoredChart::from(&rendered.chart),
            config: desired.values.clone(),
            manifest: rendered.manifest,
            hooks: rendered.hooks.iter().map(StoredHook::from).collect(),
            version: revision,
            namespace: namespace.to_owned(),
            apply_method: Some("ssa".to_owned()),
        }
    }

    /// The record of a revision that says again what an older one said, not yet stored.
    pub(crate) fn again(&self, older: &Stored) -> Release {
        let mut release = older.release.clone();
        let now = Some(Timestamp::now());
        release.version = self.last_revision() + 1;
        release.info.last_deployed = now;
        release.info.status = Status::PendingRollback;
        release.info.description = format!("Rollback to {}", older.release.version);
        for hook in &mut release.hooks {
            hook.last_run = release::HookRun::default();
        }
        release
    }

    /// After another attempt that failed and was rolled back: deletes what the attempts before it left, which
    /// says nothing new: older failed revisions, and the rollback to which this one went back.
    pub(crate) async fn forget_attempts(
        &mut self,
        api: &Api,
        failed: i64,
        rolled_back_to: &Stored,
    ) -> anyhow::Result<()> {
        let is_rollback = rolled_back_to.release.info.description.starts_with("Rollback to ");
        let word = Status::Failed.word();
        let old = |entry: &Entry| {
            (entry.status == word && entry.revision < failed)
                || (is_rollback && entry.revision == rolled_back_to.release.version)
        };
        while let Some(at) = self.entries.iter().position(old) {
            self.drop_at(api, at).await?;
        }
        Ok(())
    }

    /// Stores a new revision.
    pub(crate) async fn store(
        &mut self,
        api: &Api,
        owner: &Owner,
        release: Release,
    ) -> anyhow::Result<Stored> {
        let record = self.owned(self.records.record(&release, "createdAt"), owner);
        let secret = self.records.create(api, record).await?;
        let status = release.info.status.word().to_owned();
        let read = OnceLock::new();
        self.entries.push(Entry { revision: release.version, status, secret, read });
        Ok(Stored { release })
    }

    /// Writes a revision anew.
    pub(crate) async fn replace(&self, api: &Api, owner: &Owner, stored: &mut Stored) -> anyhow::Result<()> {
        let record = self.owned(self.records.record(&stored.release, "modifiedAt"), owner);
        let before = self.entries.iter().find(|entry| entry.revision == stored.release.version);
        self.records.update(api, record, before.map(|entry| &entry.secret)).await
    }

    /// Marks the newest revision as being uninstalled.
    pub(crate) async fn mark_uninstalling(&self, api: &Api, owner: &Owner) -> anyhow::Result<()> {
        let Some(newest) = self.entries.last() else { return Ok(()) };
        let mut stored = newest.read()?;
        if stored.release.info.status != Status::Uninstalling {
            stored.release.info.status = Status::Uninstalling;
            stored.release.info.deleted = Some(Timestamp::now());
            stored.release.info.description = "Deletion in progress (or silently failed)".to_owned();
            self.replace(api, owner, &mut stored).await?;
        }
        Ok(())
    }

    /// Deletes failed revisions that are newer than the deployed one: the next attempt takes their place.
    pub(crate) async fn drop_failed(&mut self, api: &Api) -> anyhow::Result<()> {
        while self.entries.last().is_some_and(|entry| entry.status == Status::Failed.word()) {
            self.drop_at(api, self.entries.len() - 1).await?;
        }
        Ok(())
    }

    /// Deletes the oldest revisions beyond `keep`.
    pub(crate) async fn trim(&mut self, api: &Api, keep: usize) -> anyhow::Result<()> {
        while keep > 0 && self.entries.len() > keep {
            self.drop_at(api, 0).await?;
        }
        Ok(())
    }

    /// Makes room for one more revision, as Helm does before it stores one: the oldest go, never the deployed
    /// one.
    pub(crate) async fn make_room(&mut self, api: &Api, keep: usize) -> anyhow::Result<()> {
        let deployed = self.entries.iter().rposition(|entry| entry.status == Status::Deployed.word());
        let deployed = deployed.map(|at| self.entries[at].revision);
        while keep > 0 && self.entries.len() >= keep {
            let oldest = self.entries.iter().position(|entry| Some(entry.revision) != deployed);
            let Some(oldest) = oldest else { return Ok(()) };
            self.drop_at(api, oldest).await?;
        }
        Ok(())
    }

    /// Deletes every revision.
    pub(crate) async fn purge(&mut self, api: &Api) -> anyhow::Result<()> {
        self.drop_torn(api).await?;
        while !self.entries.is_empty() {
            self.drop_at(api, self.entries.len() - 1).await?;
        }
        Ok(())
    }

    async fn drop_torn(&mut self, api: &Api) -> anyhow::Result<()> {
        while let Some(torn) = self.torn.last() {
            self.records.delete(api, torn).await?;
            self.torn.pop();
        }
        Ok(())
    }

    async fn drop_at(&mut self, api: &Api, at: usize) -> anyhow::Result<()> {
        self.records.delete(api, &self.entries[at].secret).await?;
        self.entries.remove(at);
        Ok(())
    }
}

impl History {
    /// Leads a record to its owner: by a reference where that can be, of a program's release also by a label.
    fn owned(&self, mut record: Value, owner: &Owner) -> Value {
        let near = owner.namespace.is_none() || owner.namespace.as_deref() == meta::namespace(&record);
        if self.owned && near {
            meta::put(&mut record, &["metadata", "ownerReferences"], json!([owner.reference()]));
        }
        if owner.marks {
            put_owner_note(&mut record, owner, OWNER_LABEL);
        }
        record
    }
}

impl Entry {
    fn of(secret: Value) -> Option<Entry> {
        let revision = meta::label(&secret, "version")?.parse().ok()?;
        let status = meta::label(&secret, "status").unwrap_or_default().to_owned();
        Some(Entry { revision, status, secret, read: OnceLock::new() })
    }

    fn read(&self) -> anyhow::Result<Stored> {
        self.stored().cloned()
    }

    fn stored(&self) -> anyhow::Result<&Stored> {
        if let Some(known) = self.read.get() {
            return Ok(known);
        }
        let release = release::from_secret(&self.secret)?;
        Ok(self.read.get_or_init(|| Stored { release }))
    }
}

impl Stored {
    /// Returns true if it was made of these values.
    pub(crate) fn has_values(&self, values: &Value) -> bool {
        same(&self.release.config, values)
    }

    /// Returns true if its notes and hooks are those of a rendering.
    pub(crate) fn has_notes_and_hooks(&self, rendered: &Rendered) -> bool {
        let hooks = &self.release.hooks;
        self.release.info.notes == rendered.notes
            && hooks.len() == rendered.hooks.len()
            && hooks.iter().zip(&rendered.hooks).all(|(old, new)| old.manifest == new.manifest)
    }

    /// Takes the next rendering in, as the same revision.
    pub(crate) fn rewrite(&mut self, desired: &DesiredRelease, rendered: Rendered) {
        let release = &mut self.release;
        let mut hooks: Vec<StoredHook> = rendered.hooks.iter().map(StoredHook::from).collect();
        for hook in &mut hooks {
            if let Some(known) =
                release.hooks.iter().find(|known| known.path == hook.path && known.name == hook.name)
            {
                hook.last_run = known.last_run.clone();
            }
        }
        release.chart = StoredChart::from(&rendered.chart);
        release.config = desired.values.clone();
        release.manifest = rendered.manifest;
        release.hooks = hooks;
        release.info.notes = rendered.notes;
        release.info.last_deployed = Some(Timestamp::now());
        release.info.description = "Rewritten from changed files".to_owned();
        release.apply_method = Some("ssa".to_owned());
    }

    /// It went well.
    pub(crate) fn deploy(&mut self, description: &str) {
        self.release.info.status = Status::Deployed;
        self.release.info.description = description.to_owned();
    }

    /// A newer revision took its place.
    pub(crate) fn supersede(&mut self) {
        self.release.info.status = Status::Superseded;
    }

    /// It went wrong.
    pub(crate) fn fail(&mut self, description: &str) {
        self.release.info.status = Status::Failed;
        self.release.info.description = description.to_owned();
    }
}

/// Equal values: a number is the same as integer and as float, nothing is the same as an empty object.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| same(a, b)))
        }
        (Value::Null, Value::Object(fields)) | (Value::Object(fields), Value::Null) => fields.is_empty(),
        (a, b) => a == b,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_read_once_and_one_that_cannot_be_read_says_so_each_time() {
        let release = Release { name: "web".to_owned(), version: 3, ..Release::default() };
        let mut secret = release::secret(&release, ("createdAt", Timestamp::now()));
        let entry = Entry::of(secret.clone()).unwrap();
        assert_eq!((entry.revision, &entry.stored().unwrap().release.name), (3, &release.name));
        assert!(std::ptr::eq(entry.stored().unwrap(), entry.stored().unwrap()));
        secret["data"]["release"] = json!("?");
        let broken = Entry::of(secret).unwrap();
        assert!(broken.stored().is_err() && broken.read().is_err());
    }

    #[test]
    fn values_are_the_same_after_a_round_through_the_record() {
        assert!(same(&json!({"a": 3, "b": [1.0]}), &json!({"a": 3.0, "b": [1]})));
        assert!(same(&Value::Null, &json!({})));
        assert!(!same(&json!({"a": 1}), &json!({"a": "1"})));
        assert!(!same(&json!({"a": 1}), &json!({"a": 1, "b": null})));
    }
}
