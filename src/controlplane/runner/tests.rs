//! The controllers on the real registry, with its defaults, validation and no-op rules.

use super::{Rest, run, signing};
use opdev_apimachinery::identity::User;
use opdev_controllers::contract::{Actor, Change, Controller, Key, Propagation, Sync, View, Write};
use opdev_controllers::fields::{count, list, name, put, text};
use opdev_controllers::{Settings, all, pods};
use opdev_handlers::tokens::Tokens;
use opdev_object::meta;
use opdev_registry::Registry;
use opdev_storage::Store;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// An object with pods.
fn workload(api_version: &str, kind: &str, name: &str, spec: Value) -> Value {
    let labels = json!({"app": name});
    let pod = json!({"containers": [{"name": "main", "image": "nginx:1"}], "restartPolicy": "Always"});
    let mut object = json!({
        "apiVersion": api_version, "kind": kind,
        "metadata": {"name": name, "namespace": "default", "labels": labels},
        "spec": {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": pod}},
    });
    let Value::Object(spec) = spec else { panic!("a spec has fields") };
    for (field, value) in spec {
        object["spec"][field] = value;
    }
    object
}

/// Returns true if a condition is `True`.
fn is_true(object: &Value, kind: &str) -> bool {
    let of_kind = |condition: &&Value| text(condition, "/type") == kind;
    list(object, "/status/conditions")
        .iter()
        .find(of_kind)
        .is_some_and(|found| text(found, "/status") == "True")
}

struct Cluster {
    registry: Arc<Registry>,
    stop: CancellationToken,
    task: tokio::task::JoinHandle<()>,
}

impl Cluster {
    fn start() -> Self {
        Cluster::with(Vec::new())
    }

    /// With further controllers before the usual ones.
    fn with(mut controllers: Vec<Box<dyn Controller>>) -> Self {
        let registry = Arc::new(Registry::boot(Arc::new(jiff::Timestamp::now)).unwrap());
        let stop = CancellationToken::new();
        controllers.extend(all(&Settings {
            root_ca: "PEM".into(),
            consumers: opdev_registry::consumers().collect(),
            ..Settings::default()
        }));
        let task = tokio::spawn(run(
            registry.clone(),
            controllers,
            tokio::sync::watch::Sender::new(Rest::default()),
            stop.clone(),
        ));
        Cluster { registry, stop, task }
    }

    fn write(&self, write: &Write) -> Arc<Value> {
        match self.registry.write(&User::admin(), "test", write) {
            Ok(object) => object,
            Err(status) => panic!("{}: {:?}", status.message, status.causes),
        }
    }

    fn create(&self, resource: &str, object: Value) -> Arc<Value> {
        self.write(&Write::Create { resource: resource.to_owned(), object })
    }

    fn patch(&self, resource: &str, name: &str, patch: Value) {
        self.write(&Write::Patch {
            resource: resource.to_owned(),
            namespace: Some("default".to_owned()),
            name: name.to_owned(),
            patch,
        });
    }

    fn delete(&self, resource: &str, namespace: Option<&str>, name: &str, propagation: Propagation) {
        self.write(&Write::Delete {
            resource: resource.to_owned(),
            namespace: namespace.map(str::to_owned),
            name: name.to_owned(),
            uid: None,
            propagation: Some(propagation),
            grace: None,
        });
    }

    fn list(&self, resource: &str) -> Vec<Arc<Value>> {
        self.registry.list(resource, Some("default"))
    }

    fn get(&self, resource: &str, name: &str) -> Option<Arc<Value>> {
        self.registry.get(resource, Some("default"), name)
    }

    /// Kinds, names and statuses of all workloads.
    fn summary(&self) -> String {
        [
            "apps/deployments",
            "apps/statefulsets",
            "apps/daemonsets",
            "batch/jobs",
            "pods",
            "persistentvolumeclaims",
        ]
        .iter()
        .flat_map(|resource| self.list(resource))
        .map(|object| format!("{} {} {}\n", text(&object, "/kind"), name(&object), object["status"]))
        .collect()
    }

    /// Waits until something holds, looking again after each change of the store.
    async fn until(&self, what: &str, holds: impl Fn(&Self) -> bool) {
        let mut watch = self.registry.store.watch_all(self.registry.store.revision()).unwrap();
        let waiting = async {
            while !holds(self) {
                watch.next().await.unwrap();
            }
        };
        if tokio::time::timeout(Duration::from_secs(20), waiting).await.is_err() {
            let pods = self.list("pods");
            let events = self.list("events");
            let told: Vec<_> = events.iter().map(|e| (text(e, "/reason"), text(e, "/message"))).collect();
            panic!("never: {what}; {} pods; {told:#?}\n{}", pods.len(), self.summary());
        }
    }

    /// Waits until the controllers have been idle for a while, then says how many changes a longer while
    /// brings.
    async fn changes_at_rest(&self) -> Vec<String> {
        let mut watch = self.registry.store.watch_all(self.registry.store.revision()).unwrap();
        while tokio::time::timeout(Duration::from_millis(300), watch.next()).await.is_ok() {}
        let mut changed = Vec::new();
        while let Ok(Ok(changes)) = tokio::time::timeout(Duration::from_millis(700), watch.next()).await {
            changed.extend(changes.iter().map(|change| format!("{} {}", change.table, change.key.name)));
        }
        // The node renews its lease every ten seconds.
        changed.retain(|change| !change.starts_with("coordination.k8s.io/leases"));
        changed
    }

    async fn end(self) {
        self.stop.cancel();
        tokio::time::timeout(Duration::from_secs(5), self.task).await.expect("stops at once").unwrap();
    }
}

fn ready_pods(cluster: &Cluster, number: usize) -> bool {
    let pods = cluster.list("pods");
    pods.len() == number && pods.iter().all(|pod| pods::ready(pod))
}

#[tokio::test]
async fn a_deployment_lives_on_the_real_registry() {
    let cluster = Cluster::start();
    cluster.create("apps/deployments", workload("apps/v1", "Deployment", "web", json!({"replicas": 3})));
    let service = json!({"apiVersion": "v1", "kind": "Service",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]}});
    cluster.create("services", service);
    cluster.until("three ready pods", |cluster| ready_pods(cluster, 3)).await;
    cluster
        .until("a complete status", |cluster| {
            let web = cluster.get("apps/deployments", "web").unwrap();
            count(&web, "/status/availableReplicas") == 3
        })
        .await;
    assert_eq!(cluster.changes_at_rest().await, Vec::<String>::new());
    let web = cluster.get("apps/deployments", "web").unwrap();
    assert_eq!(meta::annotation(&web, "deployment.kubernetes.io/revision"), Some("1"));
    assert_eq!(meta::generation(&web), 1, "status and revision are no change of the wanted state");
    cluster.patch(
        "apps/deployments",
        "web",
        json!({"spec": {"template": {"metadata": {"annotations": {"a": "b"}}}}}),
    );
    cluster
        .until("the second revision", |cluster| {
            let web = cluster.get("apps/deployments", "web").unwrap();
            meta::annotation(&web, "deployment.kubernetes.io/revision") == Some("2")
                && count(&web, "/status/updatedReplicas") == 3
                && count(&web, "/status/replicas") == 3
                && ready_pods(cluster, 3)
        })
        .await;
    assert_eq!(cluster.list("apps/replicasets").len(), 2);
    cluster.delete("apps/deployments", Some("default"), "web", Propagation::Foreground);
    cluster.delete("services", Some("default"), "web", Propagation::Background);
    cluster
        .until("nothing is left", |cluster| {
            ["apps/deployments", "apps/replicasets", "pods", "endpoints"]
                .iter()
                .all(|resource| cluster.list(resource).iter().all(|object| name(object) == "kubernetes"))
        })
        .await;
    assert_eq!(cluster.changes_at_rest().await, Vec::<String>::new());
    cluster.end().await;
}

#[tokio::test]
async fn sets_jobs_and_claims_live_on_the_real_registry() {
    let cluster = Cluster::start();
    cluster.create(
        "apps/statefulsets",
        workload(
            "apps/v1",
            "StatefulSet",
            "db",
            json!({"replicas": 2, "serviceName": "db", "volumeClaimTemplates": [{
                "metadata": {"name": "data"},
                "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}]}),
        ),
    );
    cluster.create("apps/daemonsets", workload("apps/v1", "DaemonSet", "agent", json!({})));
    let mut job = workload("batch/v1", "Job", "work", json!({"completions": 2, "parallelism": 2}));
    put(&mut job, "/spec/template/spec/restartPolicy", "Never".into());
    job["spec"].as_object_mut().unwrap().remove("selector");
    cluster.create("batch/jobs", job);
    cluster
        .until("the job is complete and all others are ready", |cluster| {
            let job = cluster.get("batch/jobs", "work").unwrap();
            let set = cluster.get("apps/statefulsets", "db").unwrap();
            let daemon = cluster.get("apps/daemonsets", "agent").unwrap();
            count(&job, "/status/succeeded") == 2
                && count(&set, "/status/readyReplicas") == 2
                && count(&daemon, "/status/numberReady") == 1
        })
        .await;
    assert_eq!(cluster.changes_at_rest().await, Vec::<String>::new());
    let claim = cluster.get("persistentvolumeclaims", "data-db-1").unwrap();
    assert_eq!(text(&claim, "/status/phase"), "Bound");
    for (resource, name) in
        [("apps/statefulsets", "db"), ("apps/daemonsets", "agent"), ("batch/jobs", "work")]
    {
        cluster.delete(resource, Some("default"), name, Propagation::Background);
    }
    cluster.until("no pod is left", |cluster| cluster.list("pods").is_empty()).await;
    assert_eq!(cluster.changes_at_rest().await, Vec::<String>::new());
    cluster.end().await;
}

#[tokio::test]
async fn a_namespace_goes_with_all_it_holds() {
    let cluster = Cluster::start();
    cluster.create("namespaces", json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}}));
    let mut web = workload("apps/v1", "Deployment", "web", json!({"replicas": 2}));
    put(&mut web, "/metadata/namespace", "n".into());
    cluster.create("apps/deployments", web);
    cluster
        .until("what a namespace has, and its pods", |cluster| {
            let pods = cluster.registry.list("pods", Some("n"));
            pods.len() == 2
                && pods.iter().all(|pod| pods::ready(pod))
                && cluster.registry.get("serviceaccounts", Some("n"), "default").is_some()
                && cluster.registry.get("configmaps", Some("n"), "kube-root-ca.crt").is_some()
        })
        .await;
    cluster.delete("namespaces", None, "n", Propagation::Background);
    cluster.until("it is gone", |cluster| cluster.registry.get("namespaces", None, "n").is_none()).await;
    for info in cluster.registry.resources().iter().filter(|info| info.namespaced) {
        assert!(cluster.registry.list(&info.resource, Some("n")).is_empty(), "{}", info.resource);
    }
    assert_eq!(cluster.changes_at_rest().await, Vec::<String>::new());
    cluster.end().await;
}

#[tokio::test]
async fn custom_resources_own_and_are_collected() {
    let cluster = Cluster::start();
    cluster.create(
        "apiextensions.k8s.io/customresourcedefinitions",
        json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "memcacheds.cache.my.domain"},
            "spec": {"group": "cache.my.domain", "scope": "Namespaced",
                "names": {"plural": "memcacheds", "singular": "memcached", "kind": "Memcached", "listKind": "MemcachedList"},
                "versions": [{"name": "v1alpha1", "served": true, "storage": true, "schema": {"openAPIV3Schema":
                    {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]}}),
    );
    let owner = cluster.create(
        "cache.my.domain/memcacheds",
        json!({"apiVersion": "cache.my.domain/v1alpha1", "kind": "Memcached",
            "metadata": {"name": "m", "namespace": "default"}}),
    );
    let mut web = workload("apps/v1", "Deployment", "web", json!({"replicas": 1}));
    put(
        &mut web,
        "/metadata/ownerReferences",
        json!([{"apiVersion": "cache.my.domain/v1alpha1", "kind": "Memcached", "name": "m",
            "uid": text(&owner, "/metadata/uid"), "controller": true, "blockOwnerDeletion": true}]),
    );
    cluster.create("apps/deployments", web);
    cluster.until("a ready pod", |cluster| ready_pods(cluster, 1)).await;
    cluster.delete("cache.my.domain/memcacheds", Some("default"), "m", Propagation::Foreground);
    cluster
        .until("all is gone", |cluster| {
            ["cache.my.domain/memcacheds", "apps/deployments", "apps/replicasets", "pods"]
                .iter()
                .all(|resource| cluster.list(resource).is_empty())
        })
        .await;
    let owner = cluster.create(
        "cache.my.domain/memcacheds",
        json!({"apiVersion": "cache.my.domain/v1alpha1", "kind": "Memcached",
            "metadata": {"name": "last", "namespace": "default"}}),
    );
    cluster.create(
        "configmaps",
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "owned", "namespace": "default",
            "ownerReferences": [{"apiVersion": "cache.my.domain/v1alpha1", "kind": "Memcached", "name": "last",
                "uid": text(&owner, "/metadata/uid")}]}}),
    );
    let definitions = "apiextensions.k8s.io/customresourcedefinitions";
    cluster.delete(definitions, None, "memcacheds.cache.my.domain", Propagation::Background);
    cluster
        .until("what a resource owned goes although its kind went first", |cluster| {
            cluster.get("configmaps", "owned").is_none()
                && cluster.registry.list(definitions, None).is_empty()
        })
        .await;
    cluster.end().await;
}

/// The scale subresource says where the number of a custom resource stands.
#[tokio::test]
async fn an_autoscaler_writes_through_the_scale_of_a_custom_resource() {
    let cluster = Cluster::start();
    let definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "kits.ex.io"}, "spec": {"group": "ex.io", "scope": "Namespaced",
            "names": {"plural": "kits", "kind": "Kit"}, "versions": [{"name": "v1", "served": true, "storage": true,
                "subresources": {"scale": {"specReplicasPath": ".spec.count", "statusReplicasPath": ".status.count"}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "spec": {"type": "object", "properties": {"count": {"type": "integer"}}},
                    "status": {"type": "object", "properties": {"count": {"type": "integer"}}}}}}}]}});
    cluster.create("apiextensions.k8s.io/customresourcedefinitions", definition);
    let kit = json!({"apiVersion": "ex.io/v1", "kind": "Kit", "metadata": {"name": "h", "namespace": "default"},
        "spec": {"count": 1}});
    cluster.create("ex.io/kits", kit);
    let metric = json!({"type": "Resource", "resource": {"name": "cpu",
        "target": {"type": "Utilization", "averageUtilization": 50}}});
    let scaler = json!({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "h", "namespace": "default"}, "spec": {"minReplicas": 3, "maxReplicas": 4,
            "metrics": [metric], "scaleTargetRef": {"apiVersion": "ex.io/v1", "kind": "Kit", "name": "h"}}});
    cluster.create("autoscaling/horizontalpodautoscalers", scaler);
    let counted =
        |cluster: &Cluster| cluster.get("ex.io/kits", "h").is_some_and(|kit| count(&kit, "/spec/count") == 3);
    cluster.until("three replicas", counted).await;
    let unselected = |cluster: &Cluster| {
        let scaler = cluster.get("autoscaling/horizontalpodautoscalers", "h").unwrap();
        let all = list(&scaler, "/status/conditions").to_vec();
        all.iter()
            .any(|says| text(says, "/type") == "ScalingActive" && text(says, "/reason") == "InvalidSelector")
    };
    cluster.until("a scale without a selector is told", unselected).await;
    cluster.end().await;
}

#[tokio::test]
async fn a_secret_of_an_account_gets_its_token_and_goes_with_it() {
    let tokens = Arc::new(Tokens::kept_by(&Store::new(opdev_registry::indexing)).unwrap());
    let cluster = Cluster::with(vec![opdev_controllers::token_secrets("PEM".into(), signing(&tokens))]);
    let named = |name: &str| json!({"name": name, "namespace": "default"});
    cluster.create(
        "serviceaccounts",
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": named("bot")}),
    );
    let mut secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": named("bot-token"),
        "type": "kubernetes.io/service-account-token"});
    secret["metadata"]["annotations"] = json!({"kubernetes.io/service-account.name": "bot"});
    cluster.create("secrets", secret);
    let whole = |cluster: &Cluster| {
        let secret = cluster.get("secrets", "bot-token").unwrap();
        ["token", "ca.crt", "namespace"].iter().all(|key| secret["data"][*key].is_string())
    };
    cluster.until("the Secret is whole", whole).await;
    let (secret, account) =
        (cluster.get("secrets", "bot-token").unwrap(), cluster.get("serviceaccounts", "bot").unwrap());
    assert_eq!(meta::annotation(&secret, "kubernetes.io/service-account.uid"), meta::uid(&account));
    let token = base64::Engine::decode(
        &base64::engine::general_purpose::STANDARD,
        secret["data"]["token"].as_str().unwrap(),
    );
    let token = String::from_utf8(token.unwrap()).unwrap();
    let user = |cluster: &Cluster| tokens.user(&*cluster.registry, cluster.registry.now(), &token, &[]);
    assert_eq!(user(&cluster).unwrap().0.name, "system:serviceaccount:default:bot");
    cluster.delete("serviceaccounts", Some("default"), "bot", Propagation::Background);
    cluster.until("the Secret goes", |cluster| cluster.get("secrets", "bot-token").is_none()).await;
    assert!(user(&cluster).is_err());
    cluster.end().await;
}

#[tokio::test]
async fn the_node_and_its_lease_are_there() {
    let cluster = Cluster::start();
    cluster
        .until("a ready node with a lease", |cluster| {
            let node = cluster.registry.get("nodes", None, "opdev");
            node.is_some_and(|node| is_true(&node, "Ready"))
                && cluster
                    .registry
                    .get("coordination.k8s.io/leases", Some("kube-node-lease"), "opdev")
                    .is_some()
        })
        .await;
    cluster
        .until("a storage class", |cluster| {
            cluster.registry.get("storage.k8s.io/storageclasses", None, "standard").is_some()
        })
        .await;
    assert_eq!(cluster.changes_at_rest().await, Vec::<String>::new());
    cluster.end().await;
}

/// A webhook for pods of the namespace `stuck`, and where it would have to answer.
fn silent_webhook(cluster: &Cluster) -> std::net::TcpListener {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://{}/", listener.local_addr().unwrap());
    cluster.create(
        "admissionregistration.k8s.io/validatingwebhookconfigurations",
        json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": "silent"},
            "webhooks": [{"name": "silent.example.com", "clientConfig": {"url": url}, "timeoutSeconds": 30,
                "sideEffects": "None", "admissionReviewVersions": ["v1"],
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "stuck"}},
                "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"],
                    "resources": ["pods"]}]}]}),
    );
    listener
}

#[tokio::test(flavor = "multi_thread")]
async fn a_webhook_that_never_answers_holds_up_only_those_that_ask_it() {
    let cluster = Cluster::start();
    let listener = silent_webhook(&cluster);
    let namespace = |name: &str| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    cluster.create("namespaces", namespace("stuck"));
    for name in ["one", "two"] {
        let mut stuck = workload("apps/v1", "Deployment", name, json!({"replicas": 1}));
        put(&mut stuck, "/metadata/namespace", "stuck".into());
        cluster.create("apps/deployments", stuck);
    }
    let call = tokio::task::spawn_blocking(move || (listener.accept().unwrap().0, listener));
    let (mut call, listener) = call.await.unwrap();

    cluster.create("apps/deployments", workload("apps/v1", "Deployment", "web", json!({"replicas": 2})));
    cluster.until("a Deployment elsewhere has its pods", |cluster| ready_pods(cluster, 2)).await;
    let map = |name: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}});
    let owner = cluster.create("configmaps", map("owner"));
    let mut owned = map("owned");
    owned["metadata"]["ownerReferences"] = json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "owner",
        "uid": text(&owner, "/metadata/uid")}]);
    cluster.create("configmaps", owned);
    cluster.delete("configmaps", Some("default"), "owner", Propagation::Background);
    cluster
        .until("what nobody owns any more is collected", |cluster| {
            cluster.get("configmaps", "owned").is_none()
        })
        .await;
    cluster.create("namespaces", namespace("brief"));
    cluster.delete("namespaces", None, "brief", Propagation::Background);
    cluster
        .until("a namespace goes", |cluster| cluster.registry.get("namespaces", None, "brief").is_none())
        .await;

    // All that happened while the first call was waiting, and is waiting still.
    use std::io::Read as _;
    call.set_nonblocking(true).unwrap();
    let mut asked = [0; 4096];
    let left = loop {
        match call.read(&mut asked) {
            Ok(0) => panic!("the call was given up"),
            Ok(_) => {}
            Err(error) => break error.kind(),
        }
    };
    assert_eq!(left, std::io::ErrorKind::WouldBlock);
    assert!(cluster.registry.list("pods", Some("stuck")).is_empty());
    // Whoever waits is let go, so that the end need not wait for him.
    drop((call, listener));
    cluster.end().await;
}

/// Marks every config map, and panics over some: over the change of one, over the sync of another.
struct Fragile {
    panics: Arc<AtomicUsize>,
}

impl Fragile {
    fn panic(&self, what: &str) -> ! {
        self.panics.fetch_add(1, Ordering::SeqCst);
        panic!("{what}, as the test wants")
    }
}

impl Controller for Fragile {
    fn name(&self) -> &'static str {
        "fragile"
    }

    fn actor(&self) -> Actor {
        Actor::kube_controller_manager("system:serviceaccount:kube-system:fragile")
    }

    fn keys(&self, _: &dyn View, change: &Change) -> Vec<Key> {
        let key = change.key().filter(|key| key.resource == "configmaps" && !change.gone());
        if key.as_ref().is_some_and(|key| key.name == "bad-change") {
            self.panic("a bad change")
        }
        key.into_iter().collect()
    }

    fn sync(&self, view: &dyn View, key: &Key, _: jiff::Timestamp) -> Sync {
        let Some(object) = key.read(view) else { return Sync::done() };
        // It recovers after three panics over an object.
        if key.name == "bad-sync" && self.panics.load(Ordering::SeqCst) < 4 {
            self.panic("a bad sync")
        }
        if text(&object, "/data/marked") == "yes" {
            return Sync::done();
        }
        let write = Write::Patch {
            resource: key.resource.clone(),
            namespace: key.namespace.clone(),
            name: key.name.clone(),
            patch: json!({"data": {"marked": "yes"}}),
        };
        Sync { writes: vec![write], ..Sync::default() }
    }
}

#[tokio::test]
async fn a_panic_over_one_object_stops_no_controller_and_is_tried_again() {
    let panics = Arc::new(AtomicUsize::new(0));
    let cluster = Cluster::with(vec![Box::new(Fragile { panics: panics.clone() })]);
    for name in ["bad-change", "bad-sync", "good"] {
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": name, "namespace": "default"}});
        cluster.create("configmaps", object);
    }
    cluster.create("apps/deployments", workload("apps/v1", "Deployment", "web", json!({"replicas": 2})));
    cluster.until("other controllers at work", |cluster| ready_pods(cluster, 2)).await;
    let marked = |cluster: &Cluster, name: &str| {
        cluster.get("configmaps", name).is_some_and(|object| text(&object, "/data/marked") == "yes")
    };
    cluster.until("the same controller at work", |cluster| marked(cluster, "good")).await;
    cluster.until("another try of the bad object", |cluster| marked(cluster, "bad-sync")).await;
    assert_eq!(panics.load(Ordering::SeqCst), 4, "one over a change, three over syncs");
    cluster.end().await;
}
