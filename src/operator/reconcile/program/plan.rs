//! The plan that a program's answer makes for its children: which to write, which to delete. Compares with
//! what is there, so that an object that already is as wanted is not written. Reads where the children do not
//! tell; writes nothing.

use super::guard::{Fingerprint, hash};
use super::state::ScriptReconcile;
use anyhow::{Context, anyhow};
use opdev_cache::mapping::OWNER_LABEL;
use opdev_client::{ApiError, Resource};
use opdev_object::meta::{self, Gvk, ObjectKey};
use opdev_release::objects::Wanted;
use opdev_release::objects::compare::{covers, normalize};
use opdev_release::objects::inject::put_owner_note;
use opdev_release::objects::writes::bare;
use opdev_release::verdict::Fault;
use opdev_script::contract::{Desired, Observed};
use serde_json::{Value, json};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Letters and digits of generated names, as the API server takes them.
const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";

/// A child to write.
#[derive(Debug)]
pub(super) struct Write {
    pub(super) wanted: Wanted,
    pub(super) live: Option<Arc<Value>>,
    /// The hash of the wanted objects, to know them again.
    pub(super) hash: u64,
}

/// The writes that lead from the children that are to the ones there should be.
#[derive(Debug, Default)]
pub(super) struct Plan {
    pub(super) write: Vec<Write>,
    pub(super) remove: Vec<(Wanted, Arc<Value>)>,
    /// Every child that is wanted, named, with what is known of it.
    wanted: Vec<(String, Value)>,
    /// Objects that get a new name.
    pub(super) makes_names: bool,
    new_names: Vec<Arc<Resource>>,
    /// Children that an owner reference cannot lead to.
    pub(super) has_strays: bool,
}

impl Plan {
    /// The kinds of the objects that get a new name, each once.
    pub(super) fn named_kinds(&self) -> Vec<Arc<Resource>> {
        let mut kinds: Vec<Arc<Resource>> = Vec::new();
        for resource in &self.new_names {
            if !kinds.iter().any(|known| known.gvk == resource.gvk) {
                kinds.push(Arc::clone(resource));
            }
        }
        kinds
    }

    /// For the guard.
    pub(super) fn fingerprint(&self) -> Fingerprint {
        Fingerprint {
            hash: hash(&self.wanted),
            writes: !self.write.is_empty() || !self.remove.is_empty(),
            creates: self.remove.is_empty() && self.write.iter().all(|write| write.live.is_none()),
            wanted: self.wanted.clone(),
        }
    }
}

impl ScriptReconcile {
    /// Compares the answer with the children.
    pub(super) async fn plan(&mut self, observed: &Observed, desired: &Desired) -> Result<Plan, Fault> {
        let shown: HashMap<ObjectKey, &Arc<Value>> = observed
            .children
            .iter()
            .filter_map(|child| Some((meta::ObjectRef::of(child)?.key(), child)))
            .collect();
        let mut plan = Plan::default();
        let mut kept: HashSet<ObjectKey> = HashSet::new();
        for child in &desired.children {
            let (wanted, generated) = self.wanted_child(child, &shown, &kept, &mut plan).await?;
            let key = wanted.key();
            if !kept.insert(key.clone()) {
                return Err(Fault::plain(anyhow!("the children list {key} twice")));
            }
            let short =
                if generated { format!("{} {}…", key.kind, generate_name(child)) } else { key.to_string() };
            plan.wanted.push((short, child.clone()));
            let live = match shown.get(&key) {
                _ if generated => None,
                Some(live) => Some(Arc::clone(live)),
                None => self.foreign(&wanted).await?,
            };
            // An object on its way out cannot be kept: it is made anew once it is gone.
            if live.as_deref().is_some_and(|live| meta::deletion_timestamp(live).is_some()) {
                continue;
            }
            let hash = hash(&wanted.object);
            let manager = self.manager.clone();
            if live.as_deref().is_none_or(|live| self.differs(&key, live, &wanted.object, hash, &manager)) {
                plan.write.push(Write { wanted, live, hash });
            }
        }
        if desired.waiting.is_none() {
            for child in &observed.children {
                let Some(reference) = meta::ObjectRef::of(child) else { continue };
                if kept.contains(&reference.key()) || meta::deletion_timestamp(child).is_some() {
                    continue;
                }
                let resource =
                    self.api.resource(&reference.gvk).await.map_err(|error| Fault::plain(error.into()))?;
                plan.remove.push((Wanted::exactly((**child).clone(), resource), Arc::clone(child)));
            }
        }
        Ok(plan)
    }

    /// A child as it is applied. The second value says whether it gets a new name.
    async fn wanted_child(
        &mut self,
        child: &Value,
        shown: &HashMap<ObjectKey, &Arc<Value>>,
        kept: &HashSet<ObjectKey>,
        plan: &mut Plan,
    ) -> Result<(Wanted, bool), Fault> {
        let mut object = bare(child);
        let gvk =
            Gvk::of(&object).ok_or_else(|| Fault::plain(anyhow!("a child has no apiVersion or no kind")))?;
        let resource = self.resource_of(&gvk, "the children").await?;
        self.watch_children(&gvk);
        normalize(&mut object);
        self.place(&mut object, &resource)?;
        let generated = meta::name(&object).is_none();
        if generated {
            let prefix = generate_name(child);
            let taken = |name: &str| {
                let key = ObjectKey {
                    group: gvk.group.clone(),
                    kind: gvk.kind.clone(),
                    namespace: meta::namespace(&object).map(str::to_owned),
                    name: name.to_owned(),
                };
                shown.contains_key(&key) || kept.contains(&key)
            };
            let name = loop {
                let name = format!("{prefix}{}", suffix().map_err(Fault::plain)?);
                if !taken(&name) {
                    break name;
                }
            };
            meta::put(&mut object, &["metadata", "name"], name);
            plan.makes_names = true;
            plan.new_names.push(Arc::clone(&resource));
        }
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("generateName");
        }
        plan.has_strays |= !self.own_child(&mut object, resource.namespaced);
        Ok((Wanted::exactly(object, resource), generated))
    }

    /// The resource of a kind that a program names.
    pub(super) async fn resource_of(&self, gvk: &Gvk, whose: &str) -> Result<Arc<Resource>, Fault> {
        self.api.resource(gvk).await.map_err(|error| match error {
            ApiError::NoMatch(gvk) => Fault::plain(anyhow!(
                "{whose} name {} {}, which the API server does not serve; apply its CRD first",
                gvk.kind,
                gvk.api_version()
            )),
            other => Fault::plain(other.into()),
        })
    }

    /// Gives an object its namespace.
    pub(super) fn place(&self, object: &mut Value, resource: &Resource) -> Result<(), Fault> {
        let kind = &resource.gvk.kind;
        let name = meta::name(object).unwrap_or_default().to_owned();
        let given = meta::namespace(object).map(str::to_owned);
        let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else {
            return Err(Fault::plain(anyhow!("{kind} {name:?} has no metadata")));
        };
        if !resource.namespaced {
            metadata.remove("namespace");
            return Ok(());
        }
        match given.or_else(|| self.owner.namespace.clone()) {
            Some(namespace) => {
                metadata.insert("namespace".to_owned(), Value::from(namespace));
                Ok(())
            }
            None => Err(Fault::plain(anyhow!(
                "{kind} {name:?} needs metadata.namespace: {} lives in no namespace that it could take over",
                self.owner.gvk.kind
            ))),
        }
    }

    /// Leads the object to the custom resource; `false` where only a label and annotations can.
    fn own_child(&mut self, object: &mut Value, namespaced: bool) -> bool {
        let same = self.owner.namespace.as_deref() == meta::namespace(object);
        if self.owner.namespace.is_none() || (namespaced && same) {
            let mut owners = vec![self.owner.reference()];
            let others = object.pointer("/metadata/ownerReferences").and_then(Value::as_array);
            let foreign = |one: &&Value| {
                one["uid"].as_str() != Some(self.owner.uid.as_str()) && one["controller"] != json!(true)
            };
            owners.extend(others.into_iter().flatten().filter(foreign).cloned());
            meta::put(object, &["metadata", "ownerReferences"], Value::Array(owners));
            return true;
        }
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("ownerReferences");
        }
        put_owner_note(object, &self.owner, OWNER_LABEL);
        let what = format!(
            "{} {}",
            object["kind"].as_str().unwrap_or_default(),
            meta::name(object).unwrap_or_default()
        );
        let kind = self.owner.gvk.kind.clone();
        self.say(
            format!(
                "{what} cannot be owned by a {kind} in a namespace: opdev deletes it through a finalizer"
            ),
            Some("the API server itself would leave it behind"),
        );
        false
    }

    /// An object of that name that is not among the children: nobody's may be taken over, somebody's may not.
    async fn foreign(&mut self, wanted: &Wanted) -> Result<Option<Arc<Value>>, Fault> {
        let found = self.api.get(&wanted.at()).await;
        let found = found.with_context(|| format!("could not get {}", wanted.key())).map_err(Fault::plain)?;
        let Some(live) = found else { return Ok(None) };
        match meta::controller(&live) {
            Some(owner) if owner.uid != self.owner.uid => Err(Fault::plain(anyhow!(
                "{} is controlled by {} {}: two controllers cannot share an object; give the child another name, or \
                 change the object with a patch",
                wanted.key(),
                owner.kind,
                owner.name
            ))),
            _ => Ok(Some(Arc::new(live))),
        }
    }

    /// Decides whether an object has to be written to be as wanted.
    pub(super) fn differs(
        &self,
        key: &ObjectKey,
        live: &Value,
        wanted: &Value,
        hash: u64,
        manager: &str,
    ) -> bool {
        if let Some((known, version)) = self.own.settled.get(key)
            && *known == hash
            && meta::resource_version(live) == Some(version)
        {
            return false;
        }
        !is_as_wanted(live, wanted) || has_leftover(live, wanted, manager)
    }
}

/// Returns true if every wanted field is there. Owners of others are theirs.
pub(super) fn is_as_wanted(live: &Value, wanted: &Value) -> bool {
    let owners = |object: &Value| object.pointer("/metadata/ownerReferences").cloned().unwrap_or(json!([]));
    let there = owners(live);
    let has = |owner: &Value| there.as_array().is_some_and(|all| all.iter().any(|one| covers(one, owner)));
    if !owners(wanted).as_array().is_none_or(|all| all.iter().all(has)) {
        return false;
    }
    let mut plain = wanted.clone();
    if let Some(metadata) = plain.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("ownerReferences");
    }
    covers(live, &plain)
}

/// Returns true if our manager still owns a field that is not wanted any more.
pub(super) fn has_leftover(live: &Value, wanted: &Value, manager: &str) -> bool {
    let entries = live.pointer("/metadata/managedFields").and_then(Value::as_array);
    let ours = |entry: &&Value| {
        entry["manager"] == manager && entry["operation"] == "Apply" && entry.get("subresource").is_none()
    };
    entries.into_iter().flatten().filter(ours).any(|entry| leftover(&entry["fieldsV1"], wanted))
}

fn leftover(fields: &Value, wanted: &Value) -> bool {
    let Value::Object(members) = fields else { return false };
    members.iter().any(|(key, below)| {
        let item = if let Some(name) = key.strip_prefix("f:") {
            wanted.get(name)
        } else if let Some(keys) = key.strip_prefix("k:") {
            let Ok(Value::Object(keys)) = serde_json::from_str(keys) else { return false };
            let same =
                |item: &&Value| keys.iter().all(|(name, key)| item.get(name).is_none_or(|own| own == key));
            wanted.as_array().and_then(|items| items.iter().find(same))
        } else if let Some(value) = key.strip_prefix("v:") {
            let Ok(value) = serde_json::from_str::<Value>(value) else { return false };
            wanted.as_array().and_then(|items| items.iter().find(|item| **item == value))
        } else {
            // The item itself, and places in lists, which move.
            return false;
        };
        match item {
            None => true,
            Some(item) => leftover(below, item),
        }
    })
}

fn generate_name(child: &Value) -> &str {
    child.pointer("/metadata/generateName").and_then(Value::as_str).unwrap_or("child-")
}

/// Five letters that nobody can guess.
fn suffix() -> anyhow::Result<String> {
    let mut bytes = [0; 5];
    getrandom::fill(&mut bytes).map_err(|error| anyhow!("no randomness: {error}"))?;
    Ok(bytes.iter().map(|byte| char::from(ALPHABET[usize::from(*byte) % ALPHABET.len()])).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_that_was_dropped_is_left_over_and_defaults_are_not() {
        let fields = json!({
            "f:metadata": {"f:labels": {"f:app": {}}, "f:ownerReferences": {"k:{\"uid\":\"u\"}": {}}},
            "f:spec": {"f:containers": {"k:{\"name\":\"a\"}": {".": {}, "f:name": {}, "f:ports": {
                "k:{\"containerPort\":80,\"protocol\":\"TCP\"}": {".": {}, "f:containerPort": {}}}}}}});
        let live = |operation: &str| {
            json!({"metadata": {"managedFields": [
                {"manager": "opdev/x", "operation": operation, "fieldsV1": fields}]}})
        };
        let mut wanted = json!({
            "metadata": {"labels": {"app": "x"}, "ownerReferences": [{"uid": "u"}]},
            "spec": {"containers": [{"name": "a", "ports": [{"containerPort": 80}]}]}});
        assert!(!has_leftover(&live("Apply"), &wanted, "opdev/x"));
        wanted["spec"]["containers"][0]["ports"][0]["containerPort"] = json!(81);
        assert!(has_leftover(&live("Apply"), &wanted, "opdev/x"));
        assert!(!has_leftover(&live("Update"), &wanted, "opdev/x"));
        assert!(!has_leftover(&live("Apply"), &wanted, "opdev/other"));
    }

    #[test]
    fn owners_of_others_do_not_matter() {
        let wanted = json!({"metadata": {"ownerReferences": [{"uid": "u", "controller": true}]}, "spec": 1});
        let mut live = json!({"metadata": {"ownerReferences": [
            {"uid": "other"}, {"uid": "u", "controller": true, "name": "n"}]}, "spec": 1});
        assert!(is_as_wanted(&live, &wanted));
        live["metadata"]["ownerReferences"][1]["controller"] = json!(false);
        assert!(!is_as_wanted(&live, &wanted));
    }

    #[test]
    fn what_the_server_writes_is_not_applied() {
        let live =
            json!({"kind": "Pod", "metadata": {"name": "a", "uid": "u", "managedFields": []}, "status": {}});
        assert_eq!(bare(&live), json!({"kind": "Pod", "metadata": {"name": "a"}}));
    }
}
