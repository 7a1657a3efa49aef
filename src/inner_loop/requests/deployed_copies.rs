//! Copies of the operator that run on the cluster: two operators on the same objects undo each other's work.
//! Finds them by their marks, freezes one at the user's word (0 replicas, the number kept in an annotation),
//! and gives it its replicas back when opdev ends, or at the next start where opdev could not.

use super::guard::Guard;
use anyhow::{Context as _, Result, bail};
use http::Method;
use jiff::Timestamp;
use kube::Client;
use opdev_client::{OWN_MANAGER, send};
use opdev_event::sink::EventSink;
use opdev_event::{CopiesChanged, DeployedCopy, Event, Level, Notice};
use opdev_object::meta::{self, Gvk, ObjectRef};
use opdev_os::lock::is_alive;
use opdev_os::read;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::{Arc, OnceLock};
use tokio::sync::Mutex;

/// Where a frozen Deployment keeps what it had.
const FROZEN: &str = "opdev.dev/frozen";
/// How many Deployments are looked at.
const MOST: usize = 2_000;

/// The state of a frozen Deployment before, and the one who froze it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Frozen {
    replicas: i64,
    host: String,
    pid: u32,
}

/// The copies of one operator.
#[derive(Clone)]
pub struct Copies {
    pub client: Client,
    pub guard: Guard,
    pub events: EventSink,
    pub marks: Arc<Marks>,
    pub known: Arc<Mutex<Vec<DeployedCopy>>>,
}

/// Marks that give a copy of this operator away.
pub struct Marks {
    /// The project's name, as its scaffold put it into names and images.
    name: String,
    /// The domain, which ends the name of kubebuilder's lease.
    domain: Option<String>,
    /// The namespace that opdev works in.
    namespace: String,
}

impl Marks {
    /// The marks of the project in this folder.
    pub fn of(root: &Path, name: &str, namespace: &str) -> Marks {
        let text = read::text(root.join("PROJECT")).unwrap_or_default();
        let domain = text.lines().find_map(|line| line.strip_prefix("domain:"));
        let domain = domain.map(|domain| domain.trim().trim_matches(['"', '\'']).to_owned());
        Marks {
            name: name.to_owned(),
            domain: domain.filter(|domain| !domain.is_empty()),
            namespace: namespace.to_owned(),
        }
    }

    /// The marks that give a Deployment away; nothing where it is somebody else's.
    fn found(&self, deployment: &Value) -> Vec<String> {
        let (own_name, namespace) =
            (meta::name(deployment).unwrap_or(""), meta::namespace(deployment).unwrap_or(""));
        let name = self.name.as_str();
        let mut why = Vec::new();
        let labelled = meta::label(deployment, "control-plane") == Some("controller-manager");
        if labelled
            && (own_name == format!("{name}-controller-manager") || namespace == format!("{name}-system"))
        {
            why.push(format!("the label control-plane=controller-manager and a name of the project {name}"));
        } else if labelled && meta::label(deployment, "app.kubernetes.io/name") == Some(name) {
            why.push(format!("the labels of the project {name}"));
        }
        let containers = deployment.pointer("/spec/template/spec/containers").and_then(Value::as_array);
        for container in containers.into_iter().flatten() {
            let image = container.get("image").and_then(Value::as_str).unwrap_or_default();
            if repository(image) == name {
                why.push(format!("the image {image}"));
            }
            let arguments = container.get("args").and_then(Value::as_array).into_iter().flatten();
            let elects =
                arguments.filter_map(Value::as_str).find_map(|one| one.strip_prefix("--leader-election-id="));
            if let Some(id) = elects.filter(|id| *id == name || id.starts_with(&format!("{name}-"))) {
                why.push(format!("it elects its leader as {id}"));
            }
        }
        why
    }

    /// Returns true if a lease is one that this operator's leader holds.
    fn is_lease(&self, name: &str) -> bool {
        let own = name == self.name || name == format!("{}-lock", self.name);
        // kubebuilder: eight hexadecimal digits and the domain.
        let scaffolded = self.domain.as_ref().and_then(|domain| name.strip_suffix(&format!(".{domain}")));
        own || scaffolded
            .is_some_and(|digits| digits.len() == 8 && digits.chars().all(|c| c.is_ascii_hexdigit()))
    }
}

/// `web` of `registry:5000/team/web:v1@sha256:...`.
fn repository(image: &str) -> &str {
    let path = image.split('@').next().unwrap_or_default();
    let last = path.rsplit('/').next().unwrap_or_default();
    last.split(':').next().unwrap_or_default()
}

impl Copies {
    /// Looks for copies and says what was found; gives copies back that an opdev has left frozen.
    pub async fn look(&self) {
        let before = self.known.lock().await.clone();
        let mut copies = Vec::new();
        for deployment in deployments(&self.client, &self.marks).await {
            let mut why = self.marks.found(&deployment);
            let frozen = frozen(&deployment);
            let Some(object) = ObjectRef::of(&deployment).filter(|_| !why.is_empty() || frozen.is_some())
            else {
                continue;
            };
            if let Some(frozen) = &frozen
                && self.is_left_behind(frozen)
            {
                self.give_back_at_start(&object, frozen).await;
                continue;
            }
            if frozen.as_ref().is_some_and(|frozen| !is_mine(frozen) && why.is_empty()) {
                continue;
            }
            why.extend(self.lease(object.namespace.as_deref().unwrap_or_default()).await);
            copies.push(DeployedCopy {
                replicas: replicas(&deployment),
                frozen: frozen.map(|one| one.replicas),
                object,
                why,
            });
        }
        if copies == before {
            return;
        }
        let at = Timestamp::now();
        for copy in copies.iter().filter(|copy| copy.replicas > 0) {
            if before.iter().any(|known| known.object.key() == copy.object.key() && known.replicas > 0) {
                continue;
            }
            let message = format!(
                "a copy of this operator runs on the cluster: {} ({} replicas), known by {}; both reconcile the same objects",
                copy.object,
                copy.replicas,
                copy.why.join(", ")
            );
            let hint = Some("freeze it while opdev runs (key Z), or scale it to 0 yourself".to_owned());
            self.notice(Level::Warn, message, hint).await;
        }
        *self.known.lock().await = copies.clone();
        self.events.emit(Event::CopiesChanged(Arc::new(CopiesChanged { at, copies }))).await;
    }

    async fn notice(&self, level: Level, message: String, hint: Option<String>) {
        let notice = Notice { at: Timestamp::now(), level, message, hint, object: None };
        self.events.emit(Event::Noticed(notice)).await;
    }

    /// Words about a lease in this namespace that a leader of this operator holds now.
    async fn lease(&self, namespace: &str) -> Option<String> {
        let path = format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases");
        let (list, _) = send(&self.client, Method::GET, &path, "application/json", None).await.ok()?;
        list.get("items")?.as_array()?.iter().find_map(|lease| {
            let name = meta::name(lease).filter(|name| self.marks.is_lease(name))?;
            let holder =
                lease.pointer("/spec/holderIdentity")?.as_str().filter(|holder| !holder.is_empty())?;
            let renewed: Timestamp = lease.pointer("/spec/renewTime")?.as_str()?.parse().ok()?;
            let lasts = lease.pointer("/spec/leaseDurationSeconds").and_then(Value::as_i64).unwrap_or(15);
            let fresh = Timestamp::now().duration_since(renewed).as_secs() <= 2 * lasts;
            fresh.then(|| format!("its lease {name}, held by {holder}"))
        })
    }

    /// Scales a copy to 0 and keeps how many it had.
    ///
    /// # Errors
    /// Where it is no copy, or the API server refuses.
    pub(crate) async fn freeze(&self, object: &ObjectRef) -> Result<String> {
        let known = self.known.lock().await.iter().any(|copy| copy.object.key() == object.key());
        if !known {
            bail!("{object} is not known as a copy of this operator");
        }
        let live = self.get(object).await?;
        if let Some(frozen) = frozen(&live) {
            bail!("{object} is frozen already, by process {} on {}", frozen.pid, frozen.host);
        }
        let had = replicas(&live);
        let frozen = Frozen { replicas: had, host: host(), pid: std::process::id() };
        let kept = serde_json::to_string(&frozen)?;
        // The version makes sure that the number is the one that was seen.
        let patch = json!({"metadata": {"resourceVersion": meta::resource_version(&live), "annotations": {FROZEN: kept}},
            "spec": {"replicas": 0}});
        self.patch(object, &patch).await?;
        self.look().await;
        let by_olm = meta::owner_references(&live).iter().any(|owner| owner.kind == "ClusterServiceVersion");
        let note = if by_olm { "; OLM may scale it up again" } else { "" };
        Ok(format!("its {had} replicas come back when opdev ends{note}; {object} was frozen"))
    }

    /// Gives a frozen copy its replicas back.
    ///
    /// # Errors
    /// Where it is not frozen, or the API server refuses.
    pub(crate) async fn unfreeze(&self, object: &ObjectRef) -> Result<String> {
        let live = self.get(object).await?;
        let Some(frozen) = frozen(&live) else { bail!("{object} is not frozen") };
        self.give_back(object, &live, &frozen).await?;
        self.look().await;
        Ok(format!("{object} has its {} replicas back", frozen.replicas))
    }

    /// Gives everything back that this process has frozen; for the way out.
    pub async fn give_all_back(&self) {
        let known = self.known.lock().await.clone();
        for copy in known.iter().filter(|copy| copy.frozen.is_some()) {
            let Ok(live) = self.get(&copy.object).await else { continue };
            let Some(frozen) = frozen(&live).filter(is_mine) else { continue };
            match self.give_back(&copy.object, &live, &frozen).await {
                Ok(()) => tracing::info!("{} has its {} replicas back", copy.object, frozen.replicas),
                Err(error) => {
                    tracing::warn!("{} stays frozen: {error:#}; the next opdev gives it back", copy.object);
                }
            }
        }
    }

    async fn give_back_at_start(&self, object: &ObjectRef, frozen: &Frozen) {
        let left = format!("{object} was left frozen by an opdev that did not end well");
        if self.guard.refusal().is_some() {
            let namespace = object.namespace.as_deref().unwrap_or_default();
            let hint = format!(
                "unlock the context, or run `kubectl -n {namespace} scale deployment {} --replicas={}`",
                object.name, frozen.replicas
            );
            self.notice(Level::Warn, left, Some(hint)).await;
            return;
        }
        let given = match self.get(object).await {
            Ok(live) => self.give_back(object, &live, frozen).await,
            Err(error) => Err(error),
        };
        match given {
            Ok(()) => {
                self.notice(
                    Level::Info,
                    format!("{left}; it has its {} replicas back", frozen.replicas),
                    None,
                )
                .await;
            }
            Err(error) => {
                self.notice(Level::Warn, format!("{left}, and cannot be given back: {error:#}"), None).await;
            }
        }
    }

    async fn give_back(&self, object: &ObjectRef, live: &Value, frozen: &Frozen) -> Result<()> {
        let mut patch = json!({"metadata": {"annotations": {FROZEN: null}}});
        // Somebody may have scaled it since; that is theirs.
        if replicas(live) == 0 {
            meta::put(&mut patch, &["spec"], json!({"replicas": frozen.replicas}));
        }
        self.patch(object, &patch).await
    }

    /// Returns true if nobody will give it back who still runs.
    fn is_left_behind(&self, frozen: &Frozen) -> bool {
        frozen.host == host() && !is_alive(frozen.pid)
    }

    async fn get(&self, object: &ObjectRef) -> Result<Value> {
        let (live, _) = send(&self.client, Method::GET, &path(object)?, "application/json", None).await?;
        Ok(live)
    }

    async fn patch(&self, object: &ObjectRef, patch: &Value) -> Result<()> {
        let uri = format!("{}?fieldManager={OWN_MANAGER}", path(object)?);
        send(&self.client, Method::PATCH, &uri, "application/merge-patch+json", Some(patch)).await?;
        Ok(())
    }
}

/// The copies of a project's operator that run on a cluster now, where Deployments may be read. `namespace`
/// is the one that opdev works in.
pub async fn running_copies(
    client: &Client,
    (root, project): (&Path, &str),
    namespace: &str,
) -> Vec<DeployedCopy> {
    let marks = Marks::of(root, project, namespace);
    let all = deployments(client, &marks).await;
    let found = all.iter().filter_map(|deployment| {
        let why = marks.found(deployment);
        let object = ObjectRef::of(deployment).filter(|_| !why.is_empty())?;
        Some(DeployedCopy { object, replicas: replicas(deployment), frozen: None, why })
    });
    found.filter(|copy| copy.replicas > 0).collect()
}

/// All Deployments, or those of the project's namespaces where only they may be read.
async fn deployments(client: &Client, marks: &Marks) -> Vec<Value> {
    if let Ok(all) = list(client, "/apis/apps/v1/deployments").await {
        return all;
    }
    let mut found = Vec::new();
    for namespace in [&format!("{}-system", marks.name), &marks.namespace] {
        let path = format!("/apis/apps/v1/namespaces/{namespace}/deployments");
        found.extend(list(client, &path).await.unwrap_or_default());
    }
    found
}

async fn list(client: &Client, path: &str) -> Result<Vec<Value>> {
    let (mut found, mut next) = (Vec::new(), String::new());
    loop {
        let uri = format!("{path}?limit=500{next}");
        let (mut list, _) = send(client, Method::GET, &uri, "application/json", None).await?;
        if let Some(Value::Array(items)) = list.get_mut("items").map(Value::take) {
            found.extend(items.into_iter().map(|mut item| {
                meta::put(&mut item, &["apiVersion"], "apps/v1");
                meta::put(&mut item, &["kind"], "Deployment");
                item
            }));
        }
        let token = list.pointer("/metadata/continue").and_then(Value::as_str).unwrap_or_default();
        if token.is_empty() || found.len() >= MOST {
            return Ok(found);
        }
        next = format!("&continue={token}");
    }
}

fn path(object: &ObjectRef) -> Result<String> {
    if object.gvk != Gvk::new("apps", "v1", "Deployment") {
        bail!("{object} is no Deployment");
    }
    let namespace = object.namespace.as_deref().context("a Deployment has a namespace")?;
    Ok(format!("/apis/apps/v1/namespaces/{namespace}/deployments/{}", object.name))
}

fn frozen(deployment: &Value) -> Option<Frozen> {
    let text = deployment.pointer("/metadata/annotations")?.get(FROZEN)?.as_str()?;
    serde_json::from_str(text).ok()
}

fn is_mine(frozen: &Frozen) -> bool {
    frozen.host == host() && frozen.pid == std::process::id()
}

fn replicas(deployment: &Value) -> i64 {
    deployment.pointer("/spec/replicas").and_then(Value::as_i64).unwrap_or(1)
}

/// This machine's name.
fn host() -> String {
    static HOST: OnceLock<String> = OnceLock::new();
    let ask = || {
        let said = read::text("/proc/sys/kernel/hostname").ok().or_else(|| {
            let output = std::process::Command::new("uname").arg("-n").output().ok()?;
            String::from_utf8(output.stdout).ok()
        });
        said.unwrap_or_default().trim().to_owned()
    };
    HOST.get_or_init(ask).clone()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_are_known_by_their_marks() {
        let marks = Marks {
            name: "web-operator".into(),
            domain: Some("my.domain".into()),
            namespace: "default".into(),
        };
        let deployment = |name: &str, namespace: &str, labels: Value, image: &str, args: Value| {
            json!({"metadata": {"name": name, "namespace": namespace, "labels": labels},
                "spec": {"template": {"spec": {"containers": [{"image": image, "args": args}]}}}})
        };
        let label = json!({"control-plane": "controller-manager"});
        for (deployment, copy) in [
            (deployment("web-operator-controller-manager", "x", label.clone(), "a", json!([])), true),
            (deployment("manager", "web-operator-system", label.clone(), "a", json!([])), true),
            (deployment("x", "x", json!({}), "reg:5000/t/web-operator:v1@sha256:0", json!([])), true),
            (deployment("x", "x", json!({}), "a", json!(["--leader-election-id=web-operator"])), true),
            (deployment("other-controller-manager", "other-system", label, "other:v1", json!([])), false),
            (deployment("web", "x", json!({}), "web-operator-docs:v1", json!([])), false),
        ] {
            assert_eq!(!marks.found(&deployment).is_empty(), copy, "{deployment}");
        }
        assert!(marks.is_lease("f1c5ece8.my.domain") && marks.is_lease("web-operator"));
        assert!(!marks.is_lease("other.my.domain") && !marks.is_lease("kube-scheduler"));
    }
}
