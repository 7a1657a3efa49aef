//! The children that a program is shown: from the caches of the streams where they know, else from the API
//! server. Writes nothing.

use super::state::{FINALIZER, ScriptReconcile};
use anyhow::Context;
use opdev_cache::mapping::OWNER_LABEL;
use opdev_client::{ApiError, Resource};
use opdev_object::meta::{self, Gvk};
use opdev_release::history::records::is_record;
use opdev_release::objects::inject::CHART_LABEL;
use opdev_release::script::host::note_cached;
use serde_json::Value;
use std::sync::Arc;

/// Where children are read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// The objects that the streams have shown, own writes included.
    Cache,
    /// The API server.
    Live,
}

impl ScriptReconcile {
    /// The children of the kinds that are watched for it, by kind, namespace and name.
    pub(super) async fn children(&mut self, source: Source) -> anyhow::Result<Vec<Arc<Value>>> {
        let mut children = Vec::new();
        for gvk in self.kinds.clone() {
            let resource = match self.api.resource(&gvk).await {
                Ok(resource) => resource,
                Err(ApiError::NoMatch(_)) => {
                    let kind = format!("{}/{}", gvk.api_version(), gvk.kind);
                    self.say(
                        format!("{} owns {kind}, which the API server does not serve", self.typed.path),
                        Some("apply its CRD, or take it out of `owns`"),
                    );
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            let mut found = self.children_of(&resource, source).await?;
            let place = |object: &Arc<Value>| {
                (meta::namespace(object).map(str::to_owned), meta::name(object).map(str::to_owned))
            };
            found.sort_by_key(place);
            children.extend(found);
        }
        children.iter().for_each(|child| self.hide(child));
        Ok(children)
    }

    /// The children of one kind.
    pub(super) async fn children_of(
        &mut self,
        resource: &Resource,
        source: Source,
    ) -> anyhow::Result<Vec<Arc<Value>>> {
        let follow = self.hub.follow_children(&resource.gvk);
        if source == Source::Cache
            && let Some(found) = self.hub.list_leading(&follow)
        {
            let one = match follow.namespaces.as_slice() {
                [one] => Some(one.as_str()),
                _ => None,
            };
            let namespace = self.owner.namespace.as_deref().or(one);
            note_cached("list", &resource.collection(namespace), &resource.plural);
            return Ok(found.into_iter().filter(|object| self.is_child(object)).collect());
        }
        let namespace = self.owner.namespace.as_deref().or(self.settings.namespace.as_deref());
        let kind = &resource.gvk.kind;
        let list = self.api.list(resource, namespace, "").await;
        let mut found = list.with_context(|| format!("could not list the {kind} children"))?;
        if namespace.is_some() && self.parent.has_finalizer(&[FINALIZER]) {
            // What no owner reference can lead to may be anywhere.
            let selector = format!("{OWNER_LABEL}={}", self.owner.uid);
            let strays = self.api.list(resource, None, &selector).await;
            let strays = strays.with_context(|| format!("could not list the {kind} children"))?;
            found.extend(strays.into_iter().filter(|object| meta::namespace(object) != namespace));
        }
        let children: Vec<Arc<Value>> =
            found.into_iter().filter(|object| self.is_child(object)).map(Arc::new).collect();
        self.done.effects.known.extend(children.iter().map(|child| (Arc::clone(child), false)));
        Ok(children)
    }

    /// Returns true if an object is a child of the custom resource; what a release made is the release's.
    fn is_child(&self, object: &Value) -> bool {
        let controlled = meta::controller(object).is_some_and(|owner| owner.uid == self.owner.uid);
        let marked = || meta::label(object, OWNER_LABEL) == Some(self.owner.uid.as_str());
        let released = || meta::label(object, CHART_LABEL).is_some() || is_record(object);
        (controlled || marked()) && !released()
    }

    /// A kind of children that the program did not name is watched from now on.
    pub(super) fn watch_children(&mut self, gvk: &Gvk) {
        if self.kinds.contains(gvk) {
            return;
        }
        let kind = format!("{}/{}", gvk.api_version(), gvk.kind);
        let group = if gvk.group.is_empty() { "v1".to_owned() } else { gvk.api_version() };
        let hint = format!(
            "add \"{group}/{}\" to `owns`, so that it is shown to the program and also pruned after a restart",
            gvk.kind
        );
        self.say(format!("{} makes {kind}, which it does not own", self.typed.path), Some(&hint));
        self.kinds.push(gvk.clone());
    }
}
