//! Changes of objects that somebody else created: one server-side apply each, with a field manager of this
//! custom resource alone, never pruned. What is not asked for any more is given back.

use super::guard::hash;
use super::state::ScriptReconcile;
use anyhow::{Context, anyhow};
use opdev_client::Resource;
use opdev_object::meta::{self, Gvk, ObjectKey};
use opdev_release::objects::Wanted;
use opdev_release::objects::compare::{covers, normalize};
use opdev_release::objects::writes::bare;
use opdev_release::verdict::Fault;
use opdev_script::contract::{Desired, Patch, Read};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The API server's limit for a field manager's name.
const LONGEST_MANAGER: usize = 128;

/// A patch as it is applied.
struct Ready {
    wanted: Wanted,
    live: Option<Arc<Value>>,
    gvk: Gvk,
}

impl ScriptReconcile {
    /// Carries the patches out.
    pub(super) async fn put_patches(&mut self, desired: &Desired) -> Result<(), Fault> {
        let mut patched: BTreeMap<ObjectKey, Gvk> = BTreeMap::new();
        for patch in &desired.patches {
            let (key, gvk) = self.put_patch(patch).await?;
            if patched.contains_key(&key) {
                return Err(Fault::plain(anyhow!("the patches name {key} twice; put the fields into one")));
            }
            // An object that was made once is left as it is when it is no longer listed.
            if patch.create {
                continue;
            }
            patched.insert(key.clone(), gvk);
            // At once: after an error further down it is still known.
            self.own
                .patched
                .insert(key, patched.last_key_value().map(|(_, gvk)| gvk.clone()).unwrap_or_default());
        }
        if desired.waiting.is_none() {
            let old = std::mem::take(&mut self.own.patched);
            for (key, gvk) in old.into_iter().filter(|(key, _)| !patched.contains_key(key)) {
                self.give_back(&key, &gvk).await?;
            }
            self.own.patched = patched;
        } else {
            self.own.patched.extend(patched);
        }
        if !desired.patches.is_empty() {
            self.clock.note("patch");
        }
        Ok(())
    }

    async fn put_patch(&mut self, patch: &Patch) -> Result<(ObjectKey, Gvk), Fault> {
        let Ready { wanted, live, gvk } = self.ready_patch(patch).await?;
        let key = wanted.key();
        if live.is_none() && !patch.create {
            self.say(
                format!("{key} does not exist: a patch creates nothing"),
                Some("make it a child, or wait for it"),
            );
            return Ok((key, gvk));
        }
        let live = live.as_deref();
        let manager = self.patch_manager();
        let hash = hash(&wanted.object);
        if live.is_none_or(|live| self.differs(&key, live, &wanted.object, hash, &manager)) {
            let after = self.api.apply(&wanted.at(), "", &wanted.object, live, &manager).await;
            let after = after.with_context(|| format!("could not patch {key}")).map_err(Fault::plain)?;
            self.note_write(&wanted, live, after, hash, &manager);
        }
        if let Some(status) = patch.object.get("status") {
            let resource = Arc::clone(&wanted.resource);
            self.patch_status(&wanted, live.unwrap_or(&Value::Null), status, &resource).await?;
        }
        Ok((key, gvk))
    }

    /// A patch as it is applied, and the object as it is.
    async fn ready_patch(&mut self, patch: &Patch) -> Result<Ready, Fault> {
        let mut object = bare(&patch.object);
        let gvk =
            Gvk::of(&object).ok_or_else(|| Fault::plain(anyhow!("a patch has no apiVersion or no kind")))?;
        let resource = self.resource_of(&gvk, "the patches").await?;
        normalize(&mut object);
        self.place(&mut object, &resource)?;
        let Some(name) = meta::name(&object).map(str::to_owned) else {
            return Err(Fault::plain(anyhow!("a patch of a {} has no metadata.name", gvk.kind)));
        };
        let namespace = meta::namespace(&object).map(str::to_owned);
        // A change of what was patched leads to a reconcile that puts it back.
        self.done.reads.push(Read { gvk: gvk.clone(), namespace, name: Some(name), selector: String::new() });
        let wanted = Wanted::exactly(object, resource);
        let live = self.live(&wanted).await?;
        let wanted = self.with_owner(wanted, live.as_deref().unwrap_or(&Value::Null), patch.own);
        Ok(Ready { wanted, live, gvk })
    }

    /// The patches that would write something, each with the object as it is. What cannot be told is left
    /// out.
    pub(super) async fn patches_ahead(&mut self, desired: &Desired) -> Vec<(Wanted, Option<Arc<Value>>)> {
        let manager = self.patch_manager();
        let mut found = Vec::new();
        for patch in &desired.patches {
            let Ok(Ready { wanted, live, .. }) = self.ready_patch(patch).await else { continue };
            let (key, hash) = (wanted.key(), hash(&wanted.object));
            let writes = match live.as_deref() {
                Some(live) => self.differs(&key, live, &wanted.object, hash, &manager),
                None => patch.create,
            };
            if writes {
                found.push((wanted, live));
            }
        }
        found
    }

    async fn patch_status(
        &mut self,
        wanted: &Wanted,
        live: &Value,
        status: &Value,
        resource: &Resource,
    ) -> Result<(), Fault> {
        if live.get("status").is_some_and(|there| covers(there, status)) {
            return Ok(());
        }
        let manager = self.patch_manager();
        let object = json!({
            "apiVersion": wanted.object["apiVersion"], "kind": wanted.object["kind"],
            "metadata": {"name": wanted.object["metadata"]["name"]}, "status": status});
        let subresource = if resource.has_status { "status" } else { "" };
        let after = self.api.apply(&wanted.at(), subresource, &object, None, &manager).await;
        let after = after
            .with_context(|| format!("could not patch the status of {}", wanted.key()))
            .map_err(Fault::plain)?;
        self.done.effects.known.push((Arc::new(after), true));
        Ok(())
    }

    /// The object as it is, from the children's caches or the API server.
    async fn live(&self, wanted: &Wanted) -> Result<Option<Arc<Value>>, Fault> {
        let follow = self.hub.follow_of(&wanted.resource.gvk, meta::namespace(&wanted.object));
        if let Some(found) = self.hub.get(&follow, &wanted.key()) {
            return Ok(found);
        }
        let found = self.api.get(&wanted.at()).await;
        let found = found.with_context(|| format!("could not get {}", wanted.key()));
        found.map(|found| found.map(Arc::new)).map_err(Fault::plain)
    }

    /// The parent becomes an owner: the controller, where nobody is it yet.
    fn with_owner(&mut self, mut wanted: Wanted, live: &Value, own: bool) -> Wanted {
        if !own {
            return wanted;
        }
        let same = self.owner.namespace.as_deref() == meta::namespace(&wanted.object);
        if self.owner.namespace.is_some() && !same {
            let message = format!("{} cannot be owned from another namespace", wanted.key());
            self.say(message, None);
            return wanted;
        }
        let mut reference = self.owner.reference();
        if meta::controller(live).is_some_and(|owner| owner.uid != self.owner.uid)
            && let Some(fields) = reference.as_object_mut()
        {
            fields.remove("controller");
        }
        meta::put(&mut wanted.object, &["metadata", "ownerReferences"], json!([reference]));
        wanted
    }

    /// Fields that are not asked for any more are given back: they go, unless somebody else wants them, too.
    async fn give_back(&mut self, key: &ObjectKey, gvk: &Gvk) -> Result<(), Fault> {
        let Ok(resource) = self.api.resource(gvk).await else { return Ok(()) };
        let mut metadata = json!({"name": key.name});
        if let Some(namespace) = &key.namespace {
            meta::put(&mut metadata, &["namespace"], namespace.as_str());
        }
        let object = json!({"apiVersion": gvk.api_version(), "kind": gvk.kind, "metadata": metadata});
        let wanted = Wanted::exactly(object, resource);
        let Some(live) = self.live(&wanted).await? else { return Ok(()) };
        let manager = self.patch_manager();
        let after = self.api.apply(&wanted.at(), "", &wanted.object, Some(&live), &manager).await;
        let after =
            after.with_context(|| format!("could not give back fields of {key}")).map_err(Fault::plain)?;
        let hash = hash(&wanted.object);
        self.note_write(&wanted, Some(&live), after, hash, &manager);
        Ok(())
    }

    /// Two custom resources of a kind that patch one object must not take each other's fields away.
    pub(super) fn patch_manager(&self) -> String {
        let owner = &self.owner;
        let place = owner.namespace.as_deref().map_or(String::new(), |namespace| format!("{namespace}/"));
        let full = format!("{}/{place}{}", self.manager, owner.name);
        if full.len() <= LONGEST_MANAGER { full } else { format!("{}/{}", self.manager, owner.uid) }
    }
}
