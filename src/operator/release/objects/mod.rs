//! From the text of a manifest to the objects of a release: parsed, lists expanded, resources resolved,
//! injected. Also finds the live objects. Writes nothing; read `apply` next.

pub mod apply;
pub(crate) mod at_object;
pub mod compare;
pub mod dry_run;
pub(crate) mod hand_over;
pub mod inject;
pub(crate) mod overlay;
pub(crate) mod plain_write;
pub mod writes;

use crate::objects::at_object::AtObject;
use crate::objects::inject::{Owner, ReleaseNames, inject, mark};
use anyhow::{Context, anyhow};
use futures::stream::{self, StreamExt, TryStreamExt};
use opdev_client::{Api, ApiError, At, Resource};
use opdev_object::meta::{self, Gvk, ObjectKey, ObjectRef};
use opdev_object::yaml;
use serde_json::Value;
use std::sync::Arc;

/// How many calls one reconcile has under way at once.
pub const PARALLEL: usize = 16;

/// An object of a release as it should be.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// In the form in which the API server stores it, for comparing.
    pub object: Value,
    /// As its author wrote it, where that is another form: `object` is never sent then.
    written: Option<Box<Value>>,
    pub resource: Arc<Resource>,
}

impl Wanted {
    /// An object as its author wrote it.
    pub(crate) fn new(written: Value, resource: Arc<Resource>) -> Wanted {
        if compare::is_normal(&written) {
            return Wanted::exactly(written, resource);
        }
        let mut object = written.clone();
        compare::normalize(&mut object);
        Wanted { object, written: Some(Box::new(written)), resource }
    }

    /// An object that is compared as it is sent.
    pub fn exactly(object: Value, resource: Arc<Resource>) -> Wanted {
        Wanted { object, written: None, resource }
    }

    /// The object as it is sent to the API server: nothing is corrected on the way.
    pub(crate) fn sent(&self) -> &Value {
        self.written.as_deref().unwrap_or(&self.object)
    }

    /// Its place in the API.
    pub fn at(&self) -> At<'_> {
        At {
            resource: &self.resource,
            namespace: meta::namespace(&self.object),
            name: meta::name(&self.object).unwrap_or_default(),
        }
    }

    /// The object's key, whatever its version.
    pub fn key(&self) -> ObjectKey {
        self.reference().key()
    }

    /// A reference to it, without uid.
    pub fn reference(&self) -> ObjectRef {
        ObjectRef {
            gvk: self.resource.gvk.clone(),
            namespace: meta::namespace(&self.object).map(str::to_owned),
            name: meta::name(&self.object).unwrap_or_default().to_owned(),
            uid: None,
        }
    }
}

/// The objects of a manifest as rendered, in its order, `v1` lists expanded.
pub(crate) fn parse(manifest: &str) -> anyhow::Result<Vec<Value>> {
    let mut objects = Vec::new();
    for document in yaml::documents(manifest).context("error parsing manifest")? {
        let value = yaml::to_json(&document).context("error parsing manifest")?;
        expand(value, &mut objects);
    }
    Ok(objects)
}

fn expand(value: Value, into: &mut Vec<Value>) {
    let is_list = value.get("apiVersion").and_then(Value::as_str) == Some("v1")
        && value.get("kind").and_then(Value::as_str).is_some_and(|kind| kind.ends_with("List"))
        && value.get("items").is_some_and(Value::is_array);
    match value {
        Value::Null => {}
        Value::Object(mut fields) if is_list => {
            if let Some(Value::Array(items)) = fields.remove("items") {
                items.into_iter().for_each(|item| expand(item, into));
            }
        }
        other => into.push(other),
    }
}

/// The documents of a manifest, each with the path of the template that its `# Source:` names.
pub(crate) fn sources(manifest: &str) -> impl Iterator<Item = (&str, &str)> {
    opdev_helm::manifest::split(manifest).into_iter().map(|(_, document)| {
        let source = document.lines().find_map(|line| line.strip_prefix("# Source: "));
        (source.unwrap_or_default(), document)
    })
}

/// The kinds of a manifest's objects, each once.
pub fn kinds(manifest: &str) -> Vec<Gvk> {
    each_once(parse(manifest).unwrap_or_default().iter().filter_map(Gvk::of).collect())
}

/// The kinds of objects that were made of a manifest, each once.
pub(crate) fn kinds_of(wanted: &[Wanted]) -> Vec<Gvk> {
    each_once(wanted.iter().filter_map(|wanted| Gvk::of(&wanted.object)).collect())
}

fn each_once(mut kinds: Vec<Gvk>) -> Vec<Gvk> {
    kinds.sort();
    kinds.dedup();
    kinds
}

/// Helm's words for a manifest whose objects cannot be made.
const CANNOT_BUILD: &str = "unable to build kubernetes objects from release manifest";

/// Completes one rendered object.
pub(crate) async fn want(
    api: &Api,
    object: Value,
    owner: &Owner,
    release: ReleaseNames<'_>,
) -> anyhow::Result<Wanted> {
    completed(api, object, |object, namespaced| inject(object, owner, release, namespaced)).await
}

/// Completes an object of a chart's `crds/`: the release does not own it.
pub(crate) async fn want_crd(
    api: &Api,
    object: Value,
    owner: &Owner,
    release: ReleaseNames<'_>,
) -> anyhow::Result<Wanted> {
    completed(api, object, |object, namespaced| mark(object, owner, release, namespaced)).await
}

/// An object with the fields that the operator adds, for which the scope of its kind has to be known.
async fn completed(
    api: &Api,
    mut object: Value,
    add: impl FnOnce(&mut Value, bool),
) -> anyhow::Result<Wanted> {
    let resource = resource_of(api, &object).await?;
    add(&mut object, resource.namespaced);
    Ok(Wanted::new(object, resource))
}

/// The resource of an object that has a name.
async fn resource_of(api: &Api, object: &Value) -> anyhow::Result<Arc<Resource>> {
    let gvk = Gvk::of(object).ok_or_else(|| {
        let text: String = object.to_string().chars().take(120).collect();
        let words = format!("{CANNOT_BUILD}: Object 'Kind' is missing in {text}");
        anyhow::Error::new(AtObject::rendered(words, object))
    })?;
    let name = meta::name(object).unwrap_or_default().to_owned();
    let resource = api.resource(&gvk).await.map_err(|error| match error {
        ApiError::NoMatch(_) => {
            let namespace = meta::namespace(object).unwrap_or_default();
            let words = format!(
                "{CANNOT_BUILD}: resource mapping not found for name: {name:?} namespace: {namespace:?} from \"\": {error}"
            );
            anyhow::Error::new(AtObject::rendered(words, object))
        }
        other => anyhow::Error::new(other).context(AtObject::rendered(CANNOT_BUILD, object)),
    })?;
    if name.is_empty() {
        let words = format!("error when creating: {gvk}: resource name may not be empty");
        return Err(anyhow::Error::new(AtObject::rendered(words, object)));
    }
    Ok(resource)
}

/// One rendered object in its namespace, with nothing that leads to its owner.
pub(crate) async fn want_plain(api: &Api, mut object: Value, namespace: &str) -> anyhow::Result<Wanted> {
    let gvk = Gvk::of(&object).ok_or_else(|| anyhow!("Object 'Kind' is missing"))?;
    let resource = api.resource(&gvk).await?;
    if resource.namespaced && meta::namespace(&object).is_none() {
        meta::put(&mut object, &["metadata", "namespace"], namespace);
    }
    Ok(Wanted::new(object, resource))
}

/// Completes all objects of a manifest.
pub(crate) async fn build(
    api: &Api,
    manifest: &str,
    owner: &Owner,
    release: ReleaseNames<'_>,
) -> anyhow::Result<Vec<Wanted>> {
    let mut wanted = Vec::new();
    for object in parse(manifest)? {
        wanted.push(want(api, object, owner, release).await?);
    }
    Ok(wanted)
}

/// Completes the objects of a stored manifest; kinds that are not served any more are left out.
pub async fn build_served(
    api: &Api,
    manifest: &str,
    owner: &Owner,
    release: ReleaseNames<'_>,
) -> anyhow::Result<Vec<Wanted>> {
    let mut wanted = Vec::new();
    for object in parse(manifest)? {
        let Some(gvk) = Gvk::of(&object) else { continue };
        match api.resource(&gvk).await {
            Ok(_) => wanted.push(want(api, object, owner, release).await?),
            Err(ApiError::NoMatch(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(wanted)
}

/// The live objects, in the same order.
pub async fn live(api: &Api, wanted: &[Wanted]) -> anyhow::Result<Vec<Option<Value>>> {
    let mut calls = Vec::with_capacity(wanted.len());
    for wanted in wanted {
        calls.push(live_one(api, wanted));
    }
    stream::iter(calls).buffered(PARALLEL).try_collect().await
}

async fn live_one(api: &Api, wanted: &Wanted) -> anyhow::Result<Option<Value>> {
    let found = api.get(&wanted.at()).await;
    found.with_context(|| format!("could not get object: {}", wanted.key()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn documents_have_their_templates() {
        let manifest = "---\n# Source: web/templates/a.yaml\na: 1\n---\n# Source: web/charts/db/templates/b.yaml\nb: 2\n";
        let found: Vec<_> = sources(manifest).map(|(source, text)| (source, parse(text).unwrap())).collect();
        assert_eq!(
            found,
            [
                ("web/templates/a.yaml", vec![json!({"a": 1})]),
                ("web/charts/db/templates/b.yaml", vec![json!({"b": 2})])
            ]
        );
        assert_eq!(sources("").count(), 0);
    }

    #[test]
    fn lists_are_expanded_and_kinds_named_once() {
        let manifest = "---\n# Source: a\napiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Service\n  \
                        metadata: {name: a}\n---\n---\napiVersion: v1\nkind: Service\nmetadata: {name: b}\n";
        let names: Vec<_> =
            parse(manifest).unwrap().iter().map(|o| meta::name(o).unwrap().to_owned()).collect();
        assert_eq!(names, ["a", "b"]);
        assert_eq!(kinds(manifest), [Gvk::new("", "v1", "Service")]);
        assert!(kinds("").is_empty());
    }
}
