//! The rights that a command needs: the API server is asked for them before anything is written, so that one
//! that is missing does not leave half a deployment.

use super::input::gvk;
use super::kinds::Kinds;
use anyhow::{Result, bail};
use futures::StreamExt as _;
use http::Method;
use kube::Client;
use opdev_client::send;
use opdev_event::words;
use opdev_object::meta;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Questions that are open at a time.
const AT_ONCE: usize = 8;
const REVIEWS: &str = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";

/// Something that a verb may be used on.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Thing {
    group: String,
    resource: String,
    /// `None` for what is in no namespace, and for all namespaces.
    namespace: Option<String>,
}

impl Thing {
    /// Things of a resource in all namespaces.
    pub(super) fn everywhere(group: &str, resource: &str) -> Thing {
        Thing { group: group.to_owned(), resource: resource.to_owned(), namespace: None }
    }
}

impl std::fmt::Display for Thing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let dot = if self.group.is_empty() { "" } else { "." };
        write!(f, "{}{dot}{}", self.resource, self.group)?;
        match &self.namespace {
            Some(namespace) => write!(f, " in namespace {namespace}"),
            None => Ok(()),
        }
    }
}

/// Rights on things, each with the names of the objects that are meant; no names mean all objects.
pub(super) type Wanted = BTreeMap<(Thing, &'static str), BTreeSet<String>>;

/// Adds these verbs for each object whose kind is served.
pub(super) async fn for_objects(
    client: &Client,
    kinds: &mut Kinds,
    namespace: &str,
    objects: &[&Value],
    verbs: &[&'static str],
) -> Result<Wanted> {
    let mut wanted = Wanted::new();
    for object in objects {
        let gvk = gvk(object);
        // A kind that is not served comes with this deployment, or is left out.
        let Some((resource, namespaced)) = kinds.find(client, &gvk).await? else { continue };
        let namespace = namespaced.then(|| meta::namespace(object).unwrap_or(namespace).to_owned());
        let thing = Thing { group: resource.group, resource: resource.plural, namespace };
        let name = meta::name(object).unwrap_or_default();
        for verb in verbs {
            wanted.entry((thing.clone(), *verb)).or_default().insert(name.to_owned());
        }
    }
    Ok(wanted)
}

/// Refuses where the user lacks rights. `done` is what was not done, `hint` what to do.
pub(super) async fn check(client: &Client, wanted: &Wanted, done: &str, hint: &str) -> Result<()> {
    let asked = futures::stream::iter(wanted).map(|((thing, verb), names)| async move {
        let is_allowed = allowed(client, thing, verb, names).await;
        (thing, *verb, is_allowed)
    });
    let answers: Vec<_> = asked.buffered(AT_ONCE).collect().await;
    let mut lacking: BTreeMap<&Thing, Vec<&str>> = BTreeMap::new();
    for (thing, verb, is_allowed) in answers {
        if !is_allowed {
            lacking.entry(thing).or_default().push(verb);
        }
    }
    if lacking.is_empty() {
        return Ok(());
    }
    let lines: Vec<String> = lacking
        .iter()
        .map(|(thing, verbs)| words::visible_line(&format!("  {thing}: {}", verbs.join(", "))))
        .collect();
    bail!("{done}, for you lack these rights:\n{}\n  to do: {hint}", lines.join("\n"))
}

/// Returns true if a verb is allowed: on all objects of a thing, else on each that is meant. Where nobody
/// answers that question, the API server says it when the object is written.
pub(super) async fn allowed(client: &Client, thing: &Thing, verb: &str, names: &BTreeSet<String>) -> bool {
    if may(client, thing, verb, None).await {
        return true;
    }
    if names.is_empty() {
        return false;
    }
    for name in names {
        if !may(client, thing, verb, Some(name)).await {
            return false;
        }
    }
    true
}

async fn may(client: &Client, thing: &Thing, verb: &str, name: Option<&str>) -> bool {
    let question = json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {"verb": verb, "group": thing.group, "resource": thing.resource,
            "namespace": thing.namespace, "name": name}}});
    match send(client, Method::POST, REVIEWS, "application/json", Some(&question)).await {
        Ok((answer, _)) => answer["status"]["allowed"] == true,
        Err(_) => true,
    }
}
