//! Away from a cluster: custom resources first, while somebody may still answer their finalizers, then the rest in reverse
//! order. What nobody has named is listed, and stays until the user says that it may go.

use super::input::{RemoveOptions, Say, gvk, is_crd, shown};
use super::kinds::Kinds;
use super::manifests::Manifests;
use super::rights::{self, Thing};
use super::session::Session;
use crate::dev::api::{MANAGER, is_not_found, object_path, plural_path, send};
use crate::event::words;
use anyhow::{Context as _, Result, bail};
use kube::Client;
use kube::core::{ApiResource, GroupVersionKind};
use kube::discovery::{ApiGroup, Scope, verbs};
use opdev_object::meta;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

const NOTHING: &str = "nothing was deleted";
const JSON: &str = "application/json";
const PAUSE: Duration = Duration::from_millis(200);
/// Objects in one page of a list.
const PAGE: usize = 500;
/// More are counted, not named.
const NAMED: usize = 10;
const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// Objects of a kind that would go with its CRD.
struct Dependents {
    kind: String,
    resource: ApiResource,
    objects: Vec<Value>,
}

/// Deletes the objects and waits until they are gone.
pub(super) async fn remove(
    session: &Session,
    manifests: &Manifests,
    options: &RemoveOptions,
    longest: Duration,
    say: Say<'_>,
) -> Result<()> {
    let client = &session.connection.client;
    let mut kinds = Kinds::default();
    let named = without_foreign(client, manifests, say).await?;
    let objects: Vec<&Value> = named.iter().collect();
    may_remove(session, &mut kinds, &objects).await?;
    if !options.ignore_not_found {
        namespaces_there(session, &mut kinds, &objects).await?;
    }
    let dependents = dependents(client, &named).await?;
    let unrelated = unrelated(session, &named, &dependents).await?;
    if !options.with_objects {
        agreed(&session.connection.cluster.name, &dependents, &unrelated, options.ask).await?;
    }
    let until = Instant::now() + longest;
    for kind in &dependents {
        delete_objects(client, kind, until, say).await?;
    }
    let mut missing = Vec::new();
    let mut gone = Vec::new();
    for object in objects.into_iter().rev() {
        // What is not served was left out when it was deployed, or its CRD is gone, and it with it.
        let Some((resource, namespaced)) = kinds.find(client, &gvk(object)).await? else { continue };
        let namespace = namespaced.then(|| meta::namespace(object).unwrap_or(session.namespace()));
        let path = object_path(&resource, namespace, meta::name(object).unwrap_or_default());
        match delete(client, &path).await.with_context(|| shown(object))? {
            Some(uid) => {
                say(&format!("{} deleted", shown(object)));
                gone.push((shown(object), path, uid));
            }
            None => missing.push(shown(object)),
        }
    }
    for (shown, path, uid) in &gone {
        wait_gone(client, shown, path, uid, until).await?;
    }
    if missing.is_empty() || options.ignore_not_found {
        return Ok(());
    }
    bail!(
        "not there: {}\n  to do: nothing, if it was deleted before; --ignore-not-found makes it no error",
        missing.join(", ")
    )
}

/// The objects without the CRDs that opdev makes up for charts, where opdev has not applied the one that is there.
async fn without_foreign(client: &Client, manifests: &Manifests, say: Say<'_>) -> Result<Vec<Value>> {
    let mut kept = Vec::new();
    for object in &manifests.objects {
        if is_crd(object) && manifests.definition(object).scaffolded {
            let path = format!("{CRDS}/{}", meta::name(object).unwrap_or_default());
            match send(client, "GET", &path, JSON, None).await {
                Ok((live, _)) if !is_of_opdev(&live) => {
                    let shown = shown(object);
                    say(&format!(
                        "{shown} is left as it is: the project has no CRD for it, and opdev has not applied it"
                    ));
                    continue;
                }
                Ok(_) => {}
                Err(error) if is_not_found(&error) => {}
                Err(error) => return Err(error),
            }
        }
        kept.push(object.clone());
    }
    Ok(kept)
}

/// Whether opdev has written fields of an object.
fn is_of_opdev(live: &Value) -> bool {
    let managers = live.pointer("/metadata/managedFields").and_then(Value::as_array);
    managers.into_iter().flatten().any(|entry| entry["manager"] == MANAGER)
}

/// Refuses where the namespace is not there and something outside of it is: the deployment is in another namespace, and
/// would lose its roles and CRDs.
async fn namespaces_there(session: &Session, kinds: &mut Kinds, objects: &[&Value]) -> Result<()> {
    let client = &session.connection.client;
    let (mut missing, mut there) = (None, None);
    for object in objects {
        let Some((resource, namespaced)) = kinds.find(client, &gvk(object)).await? else { continue };
        if namespaced {
            continue;
        }
        let path = object_path(&resource, None, meta::name(object).unwrap_or_default());
        let is_namespace = resource.group.is_empty() && resource.kind == "Namespace";
        match send(client, "GET", &path, JSON, None).await {
            Err(error) if is_not_found(&error) => missing = missing.or(is_namespace.then(|| shown(object))),
            Err(error) => return Err(error),
            Ok(_) => there = there.or((!is_namespace).then(|| shown(object))),
        }
    }
    match (missing, there) {
        (Some(namespace), Some(other)) => bail!(
            "{NOTHING}: {namespace} is not there, but {other} is, so the deployment may be in another namespace\n  to do: say \
             --namespace as for `opdev deploy`, or --ignore-not-found to delete what is left"
        ),
        _ => Ok(()),
    }
}

/// Refuses where the user may not delete the objects, or not see what would go with them.
async fn may_remove(session: &Session, kinds: &mut Kinds, objects: &[&Value]) -> Result<()> {
    let client = &session.connection.client;
    let mut wanted =
        rights::for_objects(client, kinds, session.namespace(), objects, &["get", "delete"]).await?;
    for crd in objects.iter().filter(|object| is_crd(object)) {
        let text = |pointer: &str| crd.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let all = Thing::everywhere(text("/spec/group"), text("/spec/names/plural"));
        wanted.insert((all, "list"), BTreeSet::new());
    }
    rights::check(client, &wanted, NOTHING, "have somebody grant them, or have somebody who has them do it")
        .await
}

/// Custom resources by kind, of the CRDs among the objects.
async fn dependents(client: &Client, objects: &[Value]) -> Result<Vec<Dependents>> {
    let mut found = Vec::new();
    for crd in objects.iter().filter(|object| is_crd(object)) {
        let name = meta::name(crd).unwrap_or_default();
        let live = match send(client, "GET", &format!("{CRDS}/{name}"), JSON, None).await {
            Ok((live, _)) => live,
            Err(error) if is_not_found(&error) => continue,
            Err(error) => return Err(error),
        };
        let versions = live.pointer("/spec/versions").and_then(Value::as_array);
        let served: Vec<&Value> =
            versions.into_iter().flatten().filter(|version| version["served"] == true).collect();
        // The stored version needs no conversion webhook, which may be gone with the operator.
        let stored = served.iter().find(|version| version["storage"] == true).or(served.first());
        let Some(version) = stored.and_then(|version| version["name"].as_str()) else {
            bail!(
                "{NOTHING}: {name} serves no version, so it is not known whether it has objects\n  to do: serve one, or delete \
                 the definition with kubectl if its objects may go"
            );
        };
        let text = |pointer: &str| live.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let gvk = GroupVersionKind::gvk(text("/spec/group"), version, text("/spec/names/kind"));
        let resource = ApiResource::from_gvk_with_plural(&gvk, text("/spec/names/plural"));
        let objects = list(client, &plural_path(&resource, None)).await?;
        if !objects.is_empty() {
            found.push(Dependents { kind: gvk.kind, resource, objects });
        }
    }
    Ok(found)
}

/// All objects at a path; nothing where it is not served.
async fn list(client: &Client, path: &str) -> Result<Vec<Value>> {
    let mut found = Vec::new();
    let mut next = String::new();
    loop {
        let more = if next.is_empty() { String::new() } else { format!("&continue={next}") };
        let (mut page, _) = match send(client, "GET", &format!("{path}?limit={PAGE}{more}"), JSON, None).await
        {
            Ok(page) => page,
            Err(error) if is_not_found(&error) => return Ok(found),
            Err(error) => return Err(error),
        };
        if let Value::Array(items) = page["items"].take() {
            found.extend(items);
        }
        page["metadata"]["continue"].as_str().unwrap_or_default().clone_into(&mut next);
        if next.is_empty() {
            return Ok(found);
        }
    }
}

/// What else is in the namespaces that would go, and belongs neither to the deployment nor to the cluster.
async fn unrelated(session: &Session, objects: &[Value], dependents: &[Dependents]) -> Result<Vec<String>> {
    let client = &session.connection.client;
    let mut namespaces = Vec::new();
    for name in objects.iter().filter(|object| object["kind"] == "Namespace").filter_map(meta::name) {
        match send(client, "GET", &format!("/api/v1/namespaces/{name}"), JSON, None).await {
            Ok(_) => namespaces.push(name),
            Err(error) if is_not_found(&error) => {}
            Err(error) => return Err(error),
        }
    }
    if namespaces.is_empty() {
        return Ok(Vec::new());
    }
    let own: BTreeSet<(String, String, String)> = objects
        .iter()
        .map(|object| {
            let namespace = meta::namespace(object).unwrap_or(session.namespace()).to_owned();
            (gvk(object).kind, namespace, meta::name(object).unwrap_or_default().to_owned())
        })
        .collect();
    let (resources, silent) = listed(client).await?;
    let unknown = |what: &str| words::visible_line(&format!("{what}, so it is not known what is there"));
    let mut found: Vec<String> =
        silent.iter().map(|group| unknown(&format!("{group} is not answered"))).collect();
    for namespace in namespaces {
        let mut there: Vec<(&str, Value)> = Vec::new();
        for resource in &resources {
            let objects = match list(client, &plural_path(resource, Some(namespace))).await {
                Ok(objects) => objects,
                Err(error) if is_refusal(&error) => {
                    found.push(unknown(&format!("{} cannot be listed in {namespace}", resource.plural)));
                    continue;
                }
                Err(error) => return Err(error),
            };
            there.extend(objects.into_iter().map(|object| (resource.kind.as_str(), object)));
        }
        // What something else owns, such as a custom resource of another operator, is that one's.
        let custom = dependents.iter().flat_map(|kind| &kind.objects);
        let owners: BTreeSet<&str> =
            there.iter().map(|(_, object)| object).chain(custom).filter_map(meta::uid).collect();
        for (kind, object) in &there {
            let name = meta::name(object).unwrap_or_default().to_owned();
            let is_own = own.contains(&((*kind).to_owned(), namespace.to_owned(), name.clone()));
            if !is_own && !is_of_the_cluster(kind, object, &owners) {
                found.push(words::visible_line(&format!("{kind} {namespace}/{name}")));
            }
        }
    }
    found.sort();
    found.dedup();
    Ok(found)
}

/// The namespaced resources whose objects are listed and deleted, and the groups whose API server does not answer: that of
/// an aggregated API may be gone.
async fn listed(client: &Client) -> Result<(Vec<ApiResource>, Vec<String>)> {
    let groups = client.list_api_groups().await?.groups;
    let names = groups.iter().map(|group| group.name.as_str()).chain([ApiGroup::CORE_GROUP]);
    let mut found = Vec::new();
    let mut silent = Vec::new();
    for name in names {
        let Ok(group) = kube::discovery::group(client, name).await else {
            silent.push(name.to_owned());
            continue;
        };
        for (resource, capabilities) in group.recommended_resources() {
            let is_listed = capabilities.supports_operation(verbs::LIST)
                && capabilities.supports_operation(verbs::DELETE)
                && capabilities.scope == Scope::Namespaced;
            if is_listed {
                found.push(resource);
            }
        }
    }
    Ok((found, silent))
}

/// Whether the API server has answered, and not with objects.
fn is_refusal(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref::<kube::Error>(), Some(kube::Error::Api(_)))
}

/// Whether the cluster, or the operator as it works, has made an object. `owners` are the uids of all that goes.
fn is_of_the_cluster(kind: &str, object: &Value, owners: &BTreeSet<&str>) -> bool {
    let name = meta::name(object).unwrap_or_default();
    let references = meta::owner_references(object);
    let is_owned = references.iter().any(|owner| owners.contains(owner.uid.as_str()));
    match kind {
        "Event" | "Lease" | "Endpoints" | "EndpointSlice" | "PodMetrics" | "ControllerRevision" => true,
        "ConfigMap" => is_owned || name == "kube-root-ca.crt" || name == "openshift-service-ca.crt",
        "ServiceAccount" => is_owned || name == "default",
        "Secret" => is_owned || object["type"] == "kubernetes.io/service-account-token",
        _ => is_owned,
    }
}

/// Whether the user lets objects go that the command does not name; an error where not.
async fn agreed(
    cluster: &str,
    dependents: &[Dependents],
    unrelated: &[String],
    ask: Option<fn(&str) -> Result<bool>>,
) -> Result<()> {
    if dependents.is_empty() && unrelated.is_empty() {
        return Ok(());
    }
    let mut lines = Vec::new();
    for kind in dependents {
        lines.push(format!("  {}: {}", words::visible_line(&kind.kind), counted(kind.objects.len())));
        lines.extend(named(&kind.objects, |object| format!("    {}{}", place(object), finalizers(object))));
    }
    if !unrelated.is_empty() {
        lines.push(format!("  in the namespace, not of this deployment: {}", counted(unrelated.len())));
        lines.extend(named(unrelated, |object| format!("    {object}")));
    }
    let list = lines.join("\n");
    if let Some(ask) = ask {
        let cluster = words::visible_line(cluster);
        let question = format!("These objects of {cluster} would go, too:\n{list}\n");
        if tokio::task::spawn_blocking(move || ask(&question)).await?? {
            return Ok(());
        }
        bail!("{NOTHING}: the objects stay");
    }
    bail!(
        "{NOTHING}, for objects would go that nobody has named:\n{list}\n  to do: delete them first, or let them go with --yes"
    )
}

/// Some of many, one line each, and how many more there are.
fn named<T>(all: &[T], line: impl Fn(&T) -> String) -> Vec<String> {
    let mut lines: Vec<String> = all.iter().take(NAMED).map(line).collect();
    if all.len() > NAMED {
        lines.push(format!("    and {} more", all.len() - NAMED));
    }
    lines
}

fn counted(count: usize) -> String {
    if count == 1 { "1 object".to_owned() } else { format!("{count} objects") }
}

fn place(object: &Value) -> String {
    let name = meta::name(object).unwrap_or_default();
    let shown = match meta::namespace(object) {
        Some(namespace) => format!("{namespace}/{name}"),
        None => name.to_owned(),
    };
    words::visible(&shown)
}

fn finalizers(object: &Value) -> String {
    let finalizers = meta::finalizers(object);
    if finalizers.is_empty() {
        return String::new();
    }
    words::visible(&format!(" (the operator has to answer its finalizer {})", finalizers.join(", ")))
}

/// Deletes custom resources and waits while their operator answers the finalizers.
async fn delete_objects(client: &Client, kind: &Dependents, until: Instant, say: Say<'_>) -> Result<()> {
    for object in &kind.objects {
        let path =
            object_path(&kind.resource, meta::namespace(object), meta::name(object).unwrap_or_default());
        if delete(client, &path).await?.is_some() {
            say(&format!("{} {} deleted", kind.kind, place(object)));
        }
    }
    loop {
        let left = list(client, &plural_path(&kind.resource, None)).await?;
        if left.is_empty() {
            return Ok(());
        }
        if Instant::now() >= until {
            let named =
                named(&left, |object| format!("  {} {}{}", kind.kind, place(object), finalizers(object)));
            bail!(
                "these objects are still there, so their definition and the operator stay:\n{}\n  to do: start the operator \
                 (`opdev run`), which answers the finalizers, and try again; or take them off",
                named.join("\n")
            );
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Deletes an object; its uid, or `None` where it is not there.
async fn delete(client: &Client, path: &str) -> Result<Option<String>> {
    let live = match send(client, "GET", path, JSON, None).await {
        Ok((live, _)) => live,
        Err(error) if is_not_found(&error) => return Ok(None),
        Err(error) => return Err(error),
    };
    let uid = meta::uid(&live).unwrap_or_default().to_owned();
    let body = json!({ "propagationPolicy": "Background", "preconditions": { "uid": uid } });
    match send(client, "DELETE", path, JSON, Some(&body)).await {
        Ok(_) => Ok(Some(uid)),
        Err(error) if is_not_found(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

async fn wait_gone(client: &Client, shown: &str, path: &str, uid: &str, until: Instant) -> Result<()> {
    loop {
        let live = match send(client, "GET", path, JSON, None).await {
            Ok((live, _)) => live,
            Err(error) if is_not_found(&error) => return Ok(()),
            Err(error) => return Err(error),
        };
        if meta::uid(&live) != Some(uid) {
            return Ok(());
        }
        if Instant::now() >= until {
            let why = live.pointer("/status/conditions").and_then(Value::as_array).into_iter().flatten();
            let why: Vec<&str> =
                why.filter(|one| one["status"] == "True").filter_map(|one| one["message"].as_str()).collect();
            let finalizers = meta::finalizers(&live).join(", ");
            bail!("{shown} is still there: {} {finalizers}", words::visible(&why.join("; ")));
        }
        tokio::time::sleep(PAUSE).await;
    }
}
