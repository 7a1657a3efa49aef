//! A cluster that others use, too: each scenario has a namespace of its own there, which goes with it.
//! Nothing is written outside of these namespaces but CRDs, which the operator applies as `opdev run` does,
//! and what the operator itself makes.

use anyhow::{Context as _, Result, anyhow, bail};
use kube::Client;
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, GroupVersionKind, ListParams, PostParams};
use kube::runtime::conditions::is_deleted;
use kube::runtime::wait::await_condition;
use opdev_client::{ApiError, resource_of};
use opdev_cluster::{Choice, Connection};
use opdev_event::Protection;
use opdev_object::meta::{Gvk, ObjectRef};
use opdev_project::Project;
use opdev_project::trust::Trust;
use opdev_requests::deployed_copies::running_copies;
use opdev_sources::Sources;
use std::collections::BTreeSet;
use std::sync::{Arc, PoisonError};
use std::time::Duration;
use tokio::sync::{Mutex, MutexGuard};
use tokio_util::sync::CancellationToken;

/// How long a namespace may take to go: pods have 30 s to end.
const GOES_WITHIN: Duration = Duration::from_secs(120);
/// The label of all namespaces of scenarios. Its annotation of the same name has the scenario's name.
const MARK: &str = "opdev.dev/ci";

/// The namespaces that scenarios have on a cluster now. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Namespaces(Arc<std::sync::Mutex<BTreeSet<String>>>);

impl Namespaces {
    /// Their names.
    pub fn names(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    fn change(&self, change: impl FnOnce(&mut BTreeSet<String>)) {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

/// The cluster.
pub struct Shared {
    connection: Connection,
    /// The kinds that the operator reconciles in a namespace; those of the cluster are everybody's.
    kinds: Vec<Gvk>,
    namespaces: Namespaces,
    /// Held by a scenario while its operator starts.
    starting: Mutex<()>,
}

impl Shared {
    /// Opens the cluster that was named, where one was.
    ///
    /// # Errors
    /// Where it does not answer, may not be written to, or scenarios could not be kept apart from what is
    /// there.
    pub async fn open(
        (project, trust): (&Project, &Trust),
        choice: &Choice,
        namespaces: &Namespaces,
        shutdown: &CancellationToken,
    ) -> Result<Option<Arc<Shared>>> {
        if choice.embedded {
            return Ok(None);
        }
        let (sources, _) = opdev_project::load::read_once(project, trust)?;
        let connection = tokio::select! {
            opened = Connection::to_cluster(choice) => opened?,
            () = shutdown.cancelled() => bail!("broken off"),
        };
        match kinds_apart(&connection, project, &sources).await {
            Ok(kinds) => {
                let (namespaces, starting) = (namespaces.clone(), Mutex::default());
                Ok(Some(Arc::new(Shared { connection, kinds, namespaces, starting })))
            }
            Err(error) => {
                connection.close().await;
                Err(error)
            }
        }
    }

    /// Its calls pass the guard.
    pub(crate) fn client(&self) -> Client {
        self.connection.client.clone()
    }

    /// Lets one operator at a time start: each applies the CRDs, and two that are new to all of them would be
    /// in each other's way.
    pub(crate) async fn start_alone(&self) -> MutexGuard<'_, ()> {
        self.starting.lock().await
    }

    /// The only kinds to reconcile.
    pub(crate) fn kinds(&self) -> Vec<String> {
        self.kinds.iter().map(|gvk| gvk.kind.clone()).collect()
    }

    /// Makes the namespace of a scenario.
    ///
    /// # Errors
    /// Where the API server refuses it.
    pub(crate) async fn make_namespace(&self, scenario: &str) -> Result<String> {
        let number = getrandom::u32().map_err(|error| anyhow!("no randomness: {error}"))?;
        let name = format!("opdev-ci-{number:08x}");
        let api = self.all_namespaces();
        let mut object = DynamicObject::new(&name, &namespaces());
        object.metadata.labels = Some([(MARK.to_owned(), "true".to_owned())].into());
        object.metadata.annotations = Some([(MARK.to_owned(), scenario.to_owned())].into());
        let context = &self.connection.cluster.name;
        api.create(&PostParams::default(), &object)
            .await
            .with_context(|| format!("no namespace for the scenario can be made on {context}"))?;
        self.namespaces.change(|all| _ = all.insert(name.clone()));
        Ok(name)
    }

    /// Deletes the custom resources of a scenario, while the operator still answers their finalizers, then
    /// its namespace; waits until all has gone.
    ///
    /// # Errors
    /// What is still there.
    pub(crate) async fn remove_namespace(&self, name: &str) -> Result<()> {
        let left = match tokio::time::timeout(GOES_WITHIN, self.removed(name)).await {
            Ok(Ok(())) => {
                self.namespaces.change(|all| _ = all.remove(name));
                return Ok(());
            }
            Ok(Err(error)) => format!("{error:#}"),
            Err(_) => {
                format!("it is still there after {} s{}", GOES_WITHIN.as_secs(), self.holds(name).await)
            }
        };
        let context = &self.connection.cluster.name;
        bail!(
            "the scenario's namespace {name} was not removed from {context}: {left}\n  to do: look at it with `kubectl \
             --context {context} describe namespace {name}`, and delete it"
        )
    }

    async fn removed(&self, name: &str) -> Result<()> {
        for gvk in &self.kinds {
            let resource = match resource_of(&self.client(), gvk).await {
                Ok((resource, _)) => resource,
                Err(ApiError::NotServed(_)) => continue,
                Err(error) => return Err(error.into()),
            };
            let api: Api<DynamicObject> = Api::namespaced_with(self.client(), name, &resource);
            for object in api.list_metadata(&ListParams::default()).await?.items {
                let (name, uid) = (object.metadata.name.unwrap_or_default(), object.metadata.uid);
                match api.delete(&name, &DeleteParams::background()).await {
                    Err(kube::Error::Api(status)) if status.code == 404 => continue,
                    deleted => drop(deleted?),
                }
                await_condition(api.clone(), &name, is_deleted(&uid.unwrap_or_default())).await?;
            }
        }
        let api = self.all_namespaces();
        let Some(there) = api.get_opt(name).await? else { return Ok(()) };
        match api.delete(name, &DeleteParams::background()).await {
            Err(kube::Error::Api(status)) if status.code == 404 => return Ok(()),
            deleted => drop(deleted?),
        }
        await_condition(api, name, is_deleted(&there.metadata.uid.unwrap_or_default())).await?;
        Ok(())
    }

    /// Why a namespace does not go, in the API server's words.
    async fn holds(&self, name: &str) -> String {
        let api = self.all_namespaces();
        let found = api.get_opt(name).await.ok().flatten();
        let conditions =
            found.as_ref().and_then(|there| there.data.pointer("/status/conditions")?.as_array());
        let told = conditions.into_iter().flatten().filter(|one| one["status"] == "True");
        told.filter_map(|one| Some(format!("; {}", one["message"].as_str()?))).collect()
    }

    fn all_namespaces(&self) -> Api<DynamicObject> {
        Api::all_with(self.client(), &namespaces())
    }

    /// Ends the connection once nobody else has it.
    pub async fn close(shared: Option<Arc<Shared>>) {
        if let Some(shared) = shared.and_then(Arc::into_inner) {
            shared.connection.close().await;
        }
    }
}

fn namespaces() -> ApiResource {
    ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk("", "v1", "Namespace"), "namespaces")
}

/// The kinds to reconcile, once it is sure that scenarios and what else is on the cluster do not meet.
async fn kinds_apart(connection: &Connection, project: &Project, sources: &Sources) -> Result<Vec<Gvk>> {
    let (client, cluster) = (&connection.client, &connection.cluster);
    let context = &cluster.name;
    if cluster.protection == Protection::ReadOnly {
        bail!(
            "the context {context} is not clearly local, so opdev writes nothing to it\n  why: {}\n  to do: name a cluster \
             that is there for tests, or add --allow-context {context}",
            cluster.marks
        );
    }
    if let Some(copy) =
        running_copies(client, (&project.root, &project.name), &connection.namespace).await.first()
    {
        let namespace = copy.object.namespace.as_deref().unwrap_or_default();
        bail!(
            "this operator runs on {context} already: {} ({} replicas), known by {}; both would reconcile the objects of the \
             scenarios\n  to do: `kubectl --context {context} -n {namespace} scale deployment {} --replicas 0`, or name \
             another cluster",
            copy.object,
            copy.replicas,
            copy.why.join(", "),
            copy.object.name
        );
    }
    let programs = sources.shown.iter().filter_map(|shown| Some((&shown.gvk, shown.program.as_ref()?)));
    for (gvk, program) in programs.clone() {
        if let Some(object) = first_object(client, gvk).await? {
            bail!(
                "{program} is a program of its own, which opdev cannot keep in one namespace: it would reconcile {object} \
                 on {context}, too\n  to do: name a cluster without objects of {}, or leave --context out",
                gvk.kind
            );
        }
    }
    let mut kinds = Vec::new();
    for gvk in sources.watches.iter().map(|watch| &watch.gvk).chain(programs.map(|(gvk, _)| gvk)) {
        match resource_of(client, gvk).await {
            Ok((_, true)) => kinds.push(gvk.clone()),
            Ok((_, false)) => {}
            // Its CRD comes with the operator.
            Err(ApiError::NotServed(_)) => kinds.push(gvk.clone()),
            Err(error) => return Err(error.into()),
        }
    }
    if kinds.is_empty() {
        bail!(
            "no kind of the project has objects in a namespace, and --context gives a scenario only a namespace\n  to do: \
             leave --context out"
        );
    }
    Ok(kinds)
}

/// An object of a kind, where there is any.
async fn first_object(client: &Client, gvk: &Gvk) -> Result<Option<ObjectRef>> {
    let resource = match resource_of(client, gvk).await {
        Ok((resource, _)) => resource,
        Err(ApiError::NotServed(_)) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
    let list = api.list_metadata(&ListParams::default().limit(1)).await?;
    Ok(list.items.into_iter().next().map(|object| ObjectRef {
        gvk: gvk.clone(),
        namespace: object.metadata.namespace,
        name: object.metadata.name.unwrap_or_default(),
        uid: None,
    }))
}

/// Refuses an object that would not be in the scenario's own namespace.
///
/// # Errors
/// Which one, and what to do.
pub(crate) fn inside(own: &str, object: &ObjectRef, namespaced: bool) -> Result<()> {
    let ObjectRef { gvk, name, .. } = object;
    match object.namespace.as_deref().filter(|named| !named.is_empty()) {
        _ if !namespaced => bail!(
            "{} {name} is in no namespace, and with --context a scenario writes into a namespace of its own only\n  to do: \
             take it out of the file, or leave --context out",
            gvk.kind
        ),
        Some(named) if named != own => bail!(
            "{} {name} is for the namespace {named}, and with --context a scenario writes into a namespace of its own \
             only\n  to do: leave metadata.namespace out of the file, or leave --context out",
            gvk.kind
        ),
        Some(_) | None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scenario_stays_in_its_namespace() {
        let object = |namespace: Option<&str>| ObjectRef {
            gvk: Gvk::new("", "v1", "ConfigMap"),
            namespace: namespace.map(str::to_owned),
            name: "map".to_owned(),
            uid: None,
        };
        assert!(
            inside("own", &object(None), true).is_ok() && inside("own", &object(Some("own")), true).is_ok()
        );
        let other = inside("own", &object(Some("prod")), true).unwrap_err().to_string();
        assert!(other.starts_with("ConfigMap map is for the namespace prod, and with --context"), "{other}");
        let cluster = inside("own", &object(None), false).unwrap_err().to_string();
        assert!(cluster.starts_with("ConfigMap map is in no namespace"), "{cluster}");
    }
}
