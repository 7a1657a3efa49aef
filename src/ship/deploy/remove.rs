//! Away from a cluster: custom resources first, while somebody may still answer their finalizers, then the
//! rest in reverse order. What nobody has named is listed, and stays until the user says that it may go.

use super::finalizers::StandIn;
use super::input::{DeployInput, RemoveOptions, Say, gvk, is_crd, shown};
use super::kinds::Kinds;
use super::manifests::Manifests;
use super::rights::{self, Thing};
use super::session::Session;
use anyhow::{Context as _, Result, bail};
use http::Method;
use kube::Client;
use kube::core::{ApiResource, GroupVersionKind};
use kube::discovery::{ApiGroup, Scope, verbs};
use opdev_client::{ApiError, OWN_MANAGER, all_kinds, is_not_found, object_path, plural_path, send};
use opdev_event::words;
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
/// The annotation of a Secret that cert-manager keeps a certificate in: the name of its Certificate.
const CERTIFICATE: &str = "cert-manager.io/certificate-name";

/// Objects of a kind that would go with its CRD.
struct Dependents {
    kind: String,
    resource: ApiResource,
    /// The objects that are among those to delete.
    named: Vec<Value>,
    /// The objects that nobody has named.
    others: Vec<Value>,
}

impl Dependents {
    fn all(&self) -> impl Iterator<Item = &Value> {
        self.named.iter().chain(&self.others)
    }
}

/// How often a namespace is listed at most until each object is there with its owner.
const LISTS: usize = 3;

/// The objects of the files: kind, namespace and name of each.
struct Own(BTreeSet<(String, String, String)>);

impl Own {
    /// `namespace` is that of objects that name none.
    fn of(objects: &[Value], namespace: &str) -> Own {
        let key = |object: &Value| {
            let namespace = meta::namespace(object).unwrap_or(namespace).to_owned();
            (gvk(object).kind, namespace, meta::name(object).unwrap_or_default().to_owned())
        };
        Own(objects.iter().map(key).collect())
    }

    /// Returns true if the files name an object of the cluster.
    fn has(&self, kind: &str, namespace: Option<&str>, name: &str) -> bool {
        match namespace {
            Some(namespace) => self.0.contains(&(kind.to_owned(), namespace.to_owned(), name.to_owned())),
            // Kustomize gives kinds that it does not know a namespace.
            None => self.0.iter().any(|(of, _, one)| of == kind && one == name),
        }
    }

    /// Returns true if cert-manager keeps a certificate that the files name in a Secret.
    fn keeps_certificate_in(&self, secret: &Value) -> bool {
        let certificate = meta::annotation(secret, CERTIFICATE);
        certificate.is_some_and(|name| self.has("Certificate", meta::namespace(secret), name))
    }
}

/// Deletes the objects and waits until they are gone.
pub(super) async fn remove(
    session: &Session,
    input: &DeployInput,
    manifests: &Manifests,
    options: &RemoveOptions,
    say: Say<'_>,
) -> Result<()> {
    let longest = input.wait;
    let client = &session.connection.client;
    let mut kinds = Kinds::default();
    let named = without_foreign(client, manifests, say).await?;
    let objects: Vec<&Value> = named.iter().collect();
    may_remove(session, &mut kinds, &objects).await?;
    if !options.ignore_not_found {
        namespaces_there(session, &mut kinds, &objects).await?;
    }
    let own = Own::of(&named, session.namespace());
    let dependents = dependents(client, &named, &own).await?;
    let unrelated = unrelated(client, &named, &own, &dependents).await?;
    agreed(&session.connection.cluster.name, &dependents, &unrelated, options).await?;
    let until = Instant::now() + longest;
    // Also those that the files name: their finalizers need the operator.
    for kind in &dependents {
        let mut stand_in = StandIn::new(session, input, options, &kind.resource);
        let deleted = delete_objects(client, kind, &mut stand_in, until, say).await;
        stand_in.stop().await;
        deleted?;
    }
    let went = |object: &&Value| {
        let is_it = |other: &Value| {
            meta::name(other) == meta::name(object)
                && meta::namespace(other).is_none_or(|namespace| {
                    namespace == meta::namespace(object).unwrap_or(session.namespace())
                })
        };
        let mut of_kind = dependents.iter().filter(|kind| kind.kind == gvk(object).kind);
        of_kind.any(|kind| kind.named.iter().any(is_it))
    };
    let mut missing = Vec::new();
    let mut gone = Vec::new();
    for object in objects.into_iter().rev().filter(|object| !went(object)) {
        // An object whose kind is not served was left out when it was deployed, or its CRD is gone, and it
        // with it.
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
    // A command that waits for nothing does not wait for what is still going.
    for (shown, path, uid) in gone.iter().filter(|_| !longest.is_zero()) {
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

/// The objects without the CRDs that opdev makes up for charts, where opdev has not applied the one that is
/// there.
async fn without_foreign(client: &Client, manifests: &Manifests, say: Say<'_>) -> Result<Vec<Value>> {
    let mut kept = Vec::new();
    for object in &manifests.objects {
        if is_crd(object) && manifests.definition(object).scaffolded {
            let path = format!("{CRDS}/{}", meta::name(object).unwrap_or_default());
            match send(client, Method::GET, &path, JSON, None).await {
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

/// Returns true if opdev has written fields of an object.
fn is_of_opdev(live: &Value) -> bool {
    let managers = live.pointer("/metadata/managedFields").and_then(Value::as_array);
    managers.into_iter().flatten().any(|entry| entry["manager"] == OWN_MANAGER)
}

/// Refuses where the namespace is not there and something outside of it is: the deployment is in another
/// namespace, and would lose its roles and CRDs.
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
        match send(client, Method::GET, &path, JSON, None).await {
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
async fn dependents(client: &Client, objects: &[Value], own: &Own) -> Result<Vec<Dependents>> {
    let mut found = Vec::new();
    for crd in objects.iter().filter(|object| is_crd(object)) {
        let name = meta::name(crd).unwrap_or_default();
        let live = match send(client, Method::GET, &format!("{CRDS}/{name}"), JSON, None).await {
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
        let is_named = |object: &Value| {
            own.has(&gvk.kind, meta::namespace(object), meta::name(object).unwrap_or_default())
        };
        let (named, others): (Vec<Value>, Vec<Value>) = objects.into_iter().partition(is_named);
        if !named.is_empty() || !others.is_empty() {
            found.push(Dependents { kind: gvk.kind, resource, named, others });
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
        let (mut page, _) =
            match send(client, Method::GET, &format!("{path}?limit={PAGE}{more}"), JSON, None).await {
                Ok(page) => page,
                Err(error) if is_not_found(&error) => return Ok(found),
                Err(error) => return Err(error),
            };
        if let Some(Value::Array(items)) = page.get_mut("items").map(Value::take) {
            found.extend(items);
        }
        page["metadata"]["continue"].as_str().unwrap_or_default().clone_into(&mut next);
        if next.is_empty() {
            return Ok(found);
        }
    }
}

/// Other objects in the namespaces that would be removed, which belong neither to the deployment nor to the
/// cluster.
async fn unrelated(
    client: &Client,
    objects: &[Value],
    own: &Own,
    dependents: &[Dependents],
) -> Result<Vec<String>> {
    let mut namespaces = Vec::new();
    for name in objects.iter().filter(|object| object["kind"] == "Namespace").filter_map(meta::name) {
        match send(client, Method::GET, &format!("/api/v1/namespaces/{name}"), JSON, None).await {
            Ok(_) => namespaces.push(name),
            Err(error) if is_not_found(&error) => {}
            Err(error) => return Err(error),
        }
    }
    if namespaces.is_empty() {
        return Ok(Vec::new());
    }
    let (resources, silent) = listed(client).await?;
    let unknown = |what: &str| words::visible_line(&format!("{what}, so it is not known what is there"));
    let mut found: Vec<String> =
        silent.iter().map(|group| unknown(&format!("{group} is not answered"))).collect();
    // An object with another owner, such as a custom resource of another operator, belongs to that owner.
    let custom: BTreeSet<&str> = dependents.iter().flat_map(Dependents::all).filter_map(meta::uid).collect();
    for namespace in namespaces {
        for lists in 1.. {
            let (there, refused) = objects_in(client, &resources, namespace).await?;
            let here = there.iter().filter_map(|(_, object)| meta::uid(object));
            let owners: BTreeSet<&str> = here.chain(custom.iter().copied()).collect();
            let is_own = |kind: &str, object: &Value| {
                // Custom resources are listed as such, and cert-manager keeps a certificate of the deployment
                // in a Secret.
                own.has(kind, Some(namespace), meta::name(object).unwrap_or_default())
                    || meta::uid(object).is_some_and(|uid| custom.contains(uid))
                    || own.keeps_certificate_in(object)
            };
            let others = there
                .iter()
                .filter(|(kind, object)| !is_own(kind, object) && !is_of_the_cluster(kind, object, &owners));
            // Kinds are listed one after the other: an object may have come with its owner, which was listed
            // before that.
            if lists < LISTS && others.clone().any(|(_, object)| !meta::owner_references(object).is_empty()) {
                continue;
            }
            found.extend(refused.iter().map(|why| unknown(why)));
            found.extend(others.map(|(kind, object)| {
                words::visible_line(&format!("{kind} {namespace}/{}", meta::name(object).unwrap_or_default()))
            }));
            break;
        }
    }
    found.sort();
    found.dedup();
    Ok(found)
}

/// Everything that is listed in a namespace, with its kind; and why some of it is not known.
async fn objects_in<'a>(
    client: &Client,
    resources: &'a [ApiResource],
    namespace: &str,
) -> Result<(Vec<(&'a str, Value)>, Vec<String>)> {
    let (mut there, mut refused) = (Vec::new(), Vec::new());
    for resource in resources {
        match list(client, &plural_path(resource, Some(namespace))).await {
            Ok(objects) => there.extend(objects.into_iter().map(|object| (resource.kind.as_str(), object))),
            Err(error) if is_refusal(&error) => {
                refused.push(format!("{} cannot be listed in {namespace}", resource.plural));
            }
            Err(error) => return Err(error),
        }
    }
    Ok((there, refused))
}

/// The namespaced resources whose objects are listed and deleted, and the groups whose API server does not
/// answer: that of an aggregated API may be gone.
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
        for (resource, capabilities) in all_kinds(&group) {
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

/// Returns true if the API server has answered, and not with objects.
fn is_refusal(error: &anyhow::Error) -> bool {
    matches!(ApiError::of(error), Some(ApiError::Refused { .. }))
}

/// Returns true if the cluster, or the operator as it works, has made an object. `owners` are the uids of all
/// that goes.
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

/// Asks the user to let objects go that the command does not name; an error where the answer is no. Custom
/// resources of the operator, and what somebody else has put into the namespace, are two different things to
/// agree to.
async fn agreed(
    cluster: &str,
    dependents: &[Dependents],
    unrelated: &[String],
    options: &RemoveOptions,
) -> Result<()> {
    let (mut lines, mut flags) = (Vec::new(), Vec::new());
    for kind in dependents.iter().filter(|kind| !kind.others.is_empty() && !options.with_objects) {
        flags = vec!["--yes"];
        lines.push(format!("  {}: {}", words::visible_line(&kind.kind), counted(kind.others.len())));
        lines.extend(named(&kind.others, |object| format!("    {}{}", place(object), finalizers(object))));
    }
    if !unrelated.is_empty() && !options.with_unrelated {
        flags.push("--with-unrelated");
        lines.push(format!("  in the namespace, not of this deployment: {}", counted(unrelated.len())));
        lines.extend(named(unrelated, |object| format!("    {object}")));
    }
    if lines.is_empty() {
        return Ok(());
    }
    let list = lines.join("\n");
    if let Some(ask) = options.ask {
        let cluster = words::visible_line(cluster);
        let question = format!("These objects of {cluster} would go, too:\n{list}\n");
        if tokio::task::spawn_blocking(move || ask(&question)).await?? {
            return Ok(());
        }
        bail!("{NOTHING}: the objects stay");
    }
    bail!(
        "{NOTHING}, for objects would go that nobody has named:\n{list}\n  to do: delete them first, or let them go with {}",
        flags.join(" and ")
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
async fn delete_objects(
    client: &Client,
    kind: &Dependents,
    stand_in: &mut StandIn<'_>,
    until: Instant,
    say: Say<'_>,
) -> Result<()> {
    for object in kind.all() {
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
            let why = stand_in.failure().map(|why| format!("\n  why: {}", words::visible_line(&why)));
            bail!(
                "these objects are still there, so their definition and the operator stay:\n{}{}\n  to do: start the operator \
                 (`opdev run`), which answers the finalizers, and try again; or take them off",
                named.join("\n"),
                why.unwrap_or_default()
            );
        }
        stand_in.see(&left, say).await?;
        tokio::time::sleep(PAUSE).await;
    }
}

/// Deletes an object; its uid, or `None` where it is not there.
async fn delete(client: &Client, path: &str) -> Result<Option<String>> {
    let live = match send(client, Method::GET, path, JSON, None).await {
        Ok((live, _)) => live,
        Err(error) if is_not_found(&error) => return Ok(None),
        Err(error) => return Err(error),
    };
    let uid = meta::uid(&live).unwrap_or_default().to_owned();
    let body = json!({ "propagationPolicy": "Background", "preconditions": { "uid": uid } });
    match send(client, Method::DELETE, path, JSON, Some(&body)).await {
        Ok(_) => Ok(Some(uid)),
        Err(error) if is_not_found(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

async fn wait_gone(client: &Client, shown: &str, path: &str, uid: &str, until: Instant) -> Result<()> {
    loop {
        let live = match send(client, Method::GET, path, JSON, None).await {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_of_a_certificate_of_the_files_is_theirs() {
        let certificate = json!({"apiVersion": "cert-manager.io/v1", "kind": "Certificate",
            "metadata": {"name": "serving-cert", "namespace": "system"}});
        let own = Own::of(&[certificate], "default");
        let secret = |namespace: &str, of: &str| json!({"kind": "Secret", "metadata": {"name": "s", "namespace": namespace, "annotations": {CERTIFICATE: of}}});
        assert!(own.keeps_certificate_in(&secret("system", "serving-cert")));
        assert!(!own.keeps_certificate_in(&secret("system", "another")));
        assert!(!own.keeps_certificate_in(&secret("default", "serving-cert")));
    }

    /// A server whose ReplicaSets come `late` by so many lists, and whose pods have been there all the time.
    fn server(late: usize) -> Client {
        let lists = std::sync::atomic::AtomicUsize::new(0);
        let owned = |kind: &str, name: &str, owner: &str| {
            json!({"metadata": {"name": name, "uid": name, "namespace": "system",
                "ownerReferences": [{"apiVersion": "apps/v1", "kind": kind, "name": owner, "uid": owner}]}})
        };
        let resource = |kind: &str, plural: &str| json!({"name": plural, "singularName": "", "namespaced": true, "kind": kind, "verbs": ["list", "delete"]});
        let service = tower::service_fn(move |request: http::Request<kube::client::Body>| {
            let version = json!({"groupVersion": "apps/v1", "version": "v1"});
            let body = match request.uri().path() {
                "/apis" => {
                    json!({"groups": [{"name": "apps", "versions": [version], "preferredVersion": version}]})
                }
                "/api" => json!({"versions": ["v1"], "serverAddressByClientCIDRs": []}),
                "/apis/apps/v1" => json!({"groupVersion": "apps/v1", "resources": [
                    resource("Deployment", "deployments"), resource("ReplicaSet", "replicasets")]}),
                "/api/v1" => json!({"groupVersion": "v1", "resources": [resource("Pod", "pods")]}),
                "/apis/apps/v1/namespaces/system/deployments" => {
                    json!({"items": [{"metadata": {"name": "d", "uid": "d", "namespace": "system"}}], "metadata": {}})
                }
                "/apis/apps/v1/namespaces/system/replicasets" => {
                    let is_there = lists.fetch_add(1, std::sync::atomic::Ordering::SeqCst) >= late;
                    let items: Vec<Value> =
                        is_there.then(|| owned("Deployment", "r", "d")).into_iter().collect();
                    json!({"items": items, "metadata": {}})
                }
                "/api/v1/namespaces/system/pods" => {
                    json!({"items": [owned("ReplicaSet", "p", "r")], "metadata": {}})
                }
                _ => json!({"metadata": {"name": "system"}}),
            };
            let response = http::Response::new(kube::client::Body::from(body.to_string().into_bytes()));
            std::future::ready(Ok::<_, std::convert::Infallible>(response))
        });
        Client::new(service, "default")
    }

    #[tokio::test]
    async fn what_is_made_while_kinds_are_listed_is_not_unrelated() {
        let meta = |name: &str| json!({"name": name, "namespace": "system"});
        let objects = [
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "system"}}),
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta("d")}),
        ];
        let own = Own::of(&objects, "default");
        let none: [String; 0] = [];
        assert_eq!(unrelated(&server(0), &objects, &own, &[]).await.unwrap(), none);
        assert_eq!(unrelated(&server(1), &objects, &own, &[]).await.unwrap(), none);
        // An object whose owner does not come is reported.
        assert_eq!(unrelated(&server(usize::MAX), &objects, &own, &[]).await.unwrap(), ["Pod system/p"]);
    }
}
