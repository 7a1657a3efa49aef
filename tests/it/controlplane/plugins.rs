//! Admission that is on by default in the real server, with its texts; and other things that it does without
//! being asked.

use super::webhooks::{ask, ask_as, bare_plane};
use expect_test::expect;
use opdev_controlplane::ControlPlane;
use serde_json::{Value, json};
use std::time::Duration;

const PODS: &str = "/api/v1/namespaces/default/pods";
const FOREVER: Duration = Duration::from_secs(600);

async fn made(plane: &ControlPlane, path: &str, object: Value) -> Value {
    let (code, _, body) = ask(plane, "POST", path, object).await;
    assert_eq!(code, 201, "{path}: {body:#}");
    body
}

async fn merged(plane: &ControlPlane, path: &str, change: Value) -> (u16, Vec<String>, Value) {
    ask_as(plane, "PATCH", path, "application/merge-patch+json", change).await
}

fn message(body: &Value) -> &str {
    body["message"].as_str().unwrap_or_default()
}

fn pod(name: &str, spec: Value) -> Value {
    let mut pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
        "spec": {"containers": [{"name": "a", "image": "x"}]}});
    for (field, value) in spec.as_object().unwrap() {
        pod["spec"][field] = value.clone();
    }
    pod
}

/// Asks until it is so.
async fn until(plane: &ControlPlane, path: &str, is: impl Fn(u16, &Value) -> bool) -> Value {
    let asked = async {
        loop {
            let (code, _, body) = ask(plane, "GET", path, Value::Null).await;
            if is(code, &body) {
                return body;
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(FOREVER, asked).await.expect(path)
}

#[tokio::test]
async fn namespaces_hold_pods_to_a_standard() {
    let plane = bare_plane().await;
    let wrong =
        json!({"metadata": {"name": "wrong", "labels": {"pod-security.kubernetes.io/enforce": "strict"}}});
    let (code, _, body) = ask(&plane, "POST", "/api/v1/namespaces", wrong).await;
    assert_eq!(
        (code, message(&body)),
        (
            422,
            "Namespace \"wrong\" is invalid: metadata.labels[pod-security.kubernetes.io/enforce]: Invalid value: \
             \"strict\": must be one of privileged, baseline, restricted"
        )
    );
    made(&plane, PODS, pod("plain", json!({}))).await;
    made(&plane, PODS, pod("host", json!({"hostNetwork": true}))).await;
    let labels = json!({"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "baseline"}}});
    let (code, warnings, _) = merged(&plane, "/api/v1/namespaces/default", labels).await;
    assert_eq!(code, 200);
    assert_eq!(
        warnings,
        [
            "299 - \"existing pods in namespace \\\"default\\\" violate the new PodSecurity enforce level \
             \\\"baseline:latest\\\"\"",
            "299 - \"host: host namespaces\"",
        ]
    );
    let (code, _, body) = ask(&plane, "POST", PODS, pod("next", json!({"hostPID": true}))).await;
    assert_eq!(
        (code, message(&body)),
        (
            403,
            "pods \"next\" is forbidden: violates PodSecurity \"baseline:latest\": host namespaces (hostPID=true)"
        )
    );
    made(&plane, PODS, pod("fine", json!({}))).await;
    // The client that makes a workload is warned; pods that the workload makes are refused.
    let template =
        json!({"metadata": {"labels": {"app": "d"}}, "spec": pod("", json!({"hostPID": true}))["spec"]});
    let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"},
        "spec": {"selector": {"matchLabels": {"app": "d"}}, "template": template}});
    let (code, warnings, _) =
        ask(&plane, "POST", "/apis/apps/v1/namespaces/default/deployments", deployment).await;
    let said = "299 - \"would violate PodSecurity \\\"baseline:latest\\\": host namespaces (hostPID=true)\"";
    assert_eq!((code, warnings), (201, vec![said.to_owned()]));
    // A change that has nothing to do with it is allowed to what is there.
    let label = json!({"metadata": {"labels": {"a": "b"}}});
    assert_eq!(merged(&plane, &format!("{PODS}/host"), label).await.0, 200);
    let image = json!({"spec": {"containers": [{"name": "a", "image": "y"}]}});
    assert_eq!(merged(&plane, &format!("{PODS}/host"), image).await.0, 403);
}

#[tokio::test]
async fn classes_decide_priority_and_runtime() {
    let plane = bare_plane().await;
    let (code, _, body) = ask(&plane, "POST", PODS, pod("p", json!({"priorityClassName": "none"}))).await;
    let said = "pods \"p\" is forbidden: no PriorityClass with name none was found";
    assert_eq!((code, message(&body)), (403, said));
    let critical = made(&plane, PODS, pod("c", json!({"priorityClassName": "system-node-critical"}))).await;
    assert_eq!(critical["spec"]["priority"], 2_000_001_000);
    let (code, _, body) = ask(&plane, "POST", PODS, pod("p", json!({"priority": 5}))).await;
    assert_eq!(
        (code, message(&body)),
        (
            403,
            "pods \"p\" is forbidden: the integer value of priority (5) must not be provided in pod spec; priority admission \
             controller computed 0 from the given PriorityClass name"
        )
    );
    let classes = "/apis/scheduling.k8s.io/v1/priorityclasses";
    let class = |name: &str| {
        json!({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name},
            "value": 7, "globalDefault": true, "preemptionPolicy": "Never"})
    };
    made(&plane, classes, class("usual")).await;
    let (code, _, body) = ask(&plane, "POST", classes, class("other")).await;
    let said = "priorityclasses.scheduling.k8s.io \"other\" is forbidden: PriorityClass usual is already marked as default. \
                Only one default can exist";
    assert_eq!((code, message(&body)), (403, said));
    let spec = made(&plane, PODS, pod("u", json!({}))).await["spec"].take();
    assert_eq!(
        (&spec["priorityClassName"], &spec["priority"], &spec["preemptionPolicy"]),
        (&json!("usual"), &json!(7), &json!("Never"))
    );

    let runtime = json!({"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "vm"},
        "handler": "vm", "overhead": {"podFixed": {"cpu": "100m"}},
        "scheduling": {"nodeSelector": {"vm": "yes"}, "tolerations": [{"key": "vm", "operator": "Exists"}]}});
    made(&plane, "/apis/node.k8s.io/v1/runtimeclasses", runtime).await;
    let spec = made(&plane, PODS, pod("vm", json!({"runtimeClassName": "vm"}))).await["spec"].take();
    assert_eq!((&spec["overhead"], &spec["nodeSelector"]), (&json!({"cpu": "100m"}), &json!({"vm": "yes"})));
    assert_eq!(spec["tolerations"][0], json!({"key": "vm", "operator": "Exists"}));
    for (spec, said) in [
        (json!({"runtimeClassName": "none"}), "pod rejected: RuntimeClass \"none\" not found"),
        (
            json!({"overhead": {"cpu": "1"}}),
            "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead",
        ),
        (
            json!({"runtimeClassName": "vm", "overhead": {"cpu": "1"}}),
            "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead",
        ),
        (
            json!({"runtimeClassName": "vm", "nodeSelector": {"vm": "no"}}),
            "conflict: runtimeClass.scheduling.nodeSelector[vm] = yes; pod.spec.nodeSelector[vm] = no",
        ),
    ] {
        let (code, _, body) = ask(&plane, "POST", PODS, pod("r", spec)).await;
        assert_eq!((code, message(&body).to_owned()), (403, format!("pods \"r\" is forbidden: {said}")));
    }
}

#[tokio::test]
async fn default_classes_are_filled_in_and_claims_grow_where_they_may() {
    let plane = bare_plane().await;
    let ingresses = "/apis/networking.k8s.io/v1/namespaces/default/ingresses";
    let ingress = |name: &str| {
        json!({"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {"name": name},
            "spec": {"defaultBackend": {"service": {"name": "s", "port": {"number": 80}}}}})
    };
    assert_eq!(made(&plane, ingresses, ingress("before")).await["spec"].get("ingressClassName"), None);
    let class = json!({"apiVersion": "networking.k8s.io/v1", "kind": "IngressClass", "metadata": {"name": "web",
        "annotations": {"ingressclass.kubernetes.io/is-default-class": "true"}}, "spec": {"controller": "example.com/c"}});
    made(&plane, "/apis/networking.k8s.io/v1/ingressclasses", class).await;
    assert_eq!(made(&plane, ingresses, ingress("after")).await["spec"]["ingressClassName"], "web");

    let storage = |name: &str, grows: bool| {
        json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": name,
            "annotations": {"storageclass.kubernetes.io/is-default-class": grows.to_string()}},
            "provisioner": "example.com/p", "allowVolumeExpansion": grows})
    };
    for (name, grows) in [("grows", true), ("stays", false)] {
        made(&plane, "/apis/storage.k8s.io/v1/storageclasses", storage(name, grows)).await;
    }
    let claims = "/api/v1/namespaces/default/persistentvolumeclaims";
    let claim = |name: &str, class: Value| {
        json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name},
            "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": class,
                "resources": {"requests": {"storage": "1Gi"}}}})
    };
    assert_eq!(made(&plane, claims, claim("a", Value::Null)).await["spec"]["storageClassName"], "grows");
    made(&plane, claims, claim("b", json!("stays"))).await;
    let more = json!({"spec": {"resources": {"requests": {"storage": "2Gi"}}}});
    let (code, _, body) = merged(&plane, &format!("{claims}/a"), more.clone()).await;
    // The rules of the kind come before the plugin, as in the real server.
    assert_eq!(code, 422, "{body:#}");
    expect![[r#"PersistentVolumeClaim "a" is invalid: spec: Forbidden: spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"#]]
    .assert_eq(message(&body));
    for name in ["a", "b"] {
        let bound = json!({"status": {"phase": "Bound"}});
        assert_eq!(merged(&plane, &format!("{claims}/{name}/status"), bound).await.0, 200);
    }
    assert_eq!(merged(&plane, &format!("{claims}/a"), more.clone()).await.0, 200);
    let (code, _, body) = merged(&plane, &format!("{claims}/b"), more).await;
    let said = "persistentvolumeclaims \"b\" is forbidden: only dynamically provisioned pvc can be resized and the \
                storageclass that provisions the pvc must support resize";
    assert_eq!((code, message(&body)), (403, said));
}

#[tokio::test]
async fn fields_that_stand_twice_are_told_as_the_real_server_tells_them() {
    let plane = bare_plane().await;
    let send = async |method: &str, path: &str, kind: &str, body: &str| {
        use http_body_util::BodyExt as _;
        let request = http::Request::builder().method(method).uri(path).header("content-type", kind);
        let body = http_body_util::Full::<bytes::Bytes>::from(body.to_owned());
        let response =
            tower::ServiceExt::oneshot(plane.service(), request.body(body).unwrap()).await.unwrap();
        let (parts, body) = response.into_parts();
        let warnings =
            parts.headers.get_all("warning").iter().map(|value| value.to_str().unwrap().to_owned());
        let warnings: Vec<String> = warnings.collect();
        let bytes = body.collect().await.unwrap().to_bytes();
        (parts.status.as_u16(), warnings, serde_json::from_slice::<Value>(&bytes).unwrap())
    };
    let path = "/apis/apps/v1/namespaces/default/deployments";
    let body = r#"{"apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "x", "name": "d", "unknownMeta": "m"},
        "spec": {"unknown1": "v", "unknownDupe": "v", "unknownDupe": "w", "paused": true, "paused": false,
            "selector": {"matchLabels": {"app": "d"}}, "template": {"metadata": {"labels": {"app": "d"}},
                "spec": {"containers": [{"name": "d", "image": "d", "unknownNested": "n",
                    "imagePullPolicy": "Always", "imagePullPolicy": "Never"}]}}}}"#;
    let strict = format!("{path}?fieldValidation=Strict");
    let expected = [
        "duplicate field \"metadata.name\"",
        "unknown field \"metadata.unknownMeta\"",
        "unknown field \"spec.unknown1\"",
        "unknown field \"spec.unknownDupe\"",
        "duplicate field \"spec.paused\"",
        "unknown field \"spec.template.spec.containers[0].unknownNested\"",
        "duplicate field \"spec.template.spec.containers[0].imagePullPolicy\"",
    ];
    let (code, _, answer) = send("POST", &strict, "application/json", body).await;
    assert_eq!(code, 400);
    let said = format!("strict decoding error: {}", expected.join(", "));
    assert!(message(&answer).ends_with(&said), "{answer:#}");
    let (code, warnings, _) = send("POST", &format!("{path}?dryRun=All"), "application/json", body).await;
    let quoted = |text: &&str| format!("299 - \"{}\"", text.replace('"', "\\\""));
    assert_eq!((code, warnings), (201, expected.iter().map(quoted).collect()));

    let yaml =
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n  name: b\ndata:\n  k: v\n  k: w\nmore: 1\n";
    let maps = "/api/v1/namespaces/default/configmaps";
    let (code, _, answer) =
        send("POST", &format!("{maps}?fieldValidation=Strict"), "application/yaml", yaml).await;
    let said = "strict decoding error: yaml: unmarshal errors:\n  line 5: key \"name\" already set in map\n  line 8: key \"k\" \
                already set in map, unknown field \"more\"";
    assert!(code == 400 && message(&answer).ends_with(said), "{answer:#}");

    let made = r#"{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}, "data": {"a": "1"}}"#;
    assert_eq!(send("POST", maps, "application/json", made).await.0, 201);
    let one = format!("{maps}/m?fieldValidation=Strict");
    let (code, _, answer) =
        send("PATCH", &one, "application/merge-patch+json", r#"{"data": {"a": "1", "a": "2"}}"#).await;
    assert!(
        code == 422 && message(&answer).contains("strict decoding error: duplicate field \"data.a\""),
        "{answer:#}"
    );
    let operations = r#"[{"op": "add", "path": "/data/b", "path": "/data/c", "value": "1", "foo": "bar"}]"#;
    let (code, _, answer) = send("PATCH", &one, "application/json-patch+json", operations).await;
    let said = "strict decoding error: json patch duplicate field \"[0].path\", json patch unknown field \"[0].foo\"";
    assert!(code == 422 && message(&answer).contains(said), "{answer:#}");
    let applied = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: m\ndata:\n  a: 1\n  a: 2\n";
    let (code, _, answer) =
        send("PATCH", &format!("{one}&fieldManager=f"), "application/apply-patch+yaml", applied).await;
    let said = "error strict decoding patch: error converting YAML to JSON: yaml: unmarshal errors:\n  line 7: key \"a\" already \
                set in map";
    assert_eq!((code, message(&answer)), (400, said));
}

#[tokio::test]
async fn volumes_go_when_they_are_deleted_and_nobody_uses_them() {
    let plane = ControlPlane::start().await.unwrap();
    let volumes = "/api/v1/persistentvolumes";
    let volume = json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "v"},
        "spec": {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, "hostPath": {"path": "/x"}}});
    made(&plane, volumes, volume).await;
    ask(&plane, "DELETE", &format!("{volumes}/v"), Value::Null).await;
    until(&plane, &format!("{volumes}/v"), |code, _| code == 404).await;

    // A dynamic one goes with its claim, and waits for it where it is deleted first.
    let claims = "/api/v1/namespaces/default/persistentvolumeclaims";
    let claim = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "c"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}});
    made(&plane, claims, claim).await;
    let bound = until(&plane, &format!("{claims}/c"), |_, claim| claim["status"]["phase"] == "Bound").await;
    let volume = format!("{volumes}/{}", bound["spec"]["volumeName"].as_str().unwrap());
    until(&plane, &volume, |_, volume| volume["status"]["phase"] == "Bound").await;
    let (_, _, going) = ask(&plane, "DELETE", &volume, Value::Null).await;
    assert!(going["metadata"]["deletionTimestamp"].is_string(), "{going:#}");
    assert_eq!(ask(&plane, "GET", &volume, Value::Null).await.0, 200, "its claim is there");
    ask(&plane, "DELETE", &format!("{claims}/c"), Value::Null).await;
    until(&plane, &volume, |code, _| code == 404).await;
    plane.stop().await;
}

#[tokio::test]
async fn a_replication_controller_keeps_its_pods() {
    let plane = ControlPlane::start().await.unwrap();
    let path = "/api/v1/namespaces/default/replicationcontrollers";
    let spec = pod("", json!({}))["spec"].take();
    let controller = json!({"apiVersion": "v1", "kind": "ReplicationController", "metadata": {"name": "rc"},
        "spec": {"replicas": 2, "template": {"metadata": {"labels": {"app": "rc"}}, "spec": spec}}});
    made(&plane, path, controller).await;
    let ready = |count: i64| move |_: u16, object: &Value| object["status"]["readyReplicas"] == count;
    let object = until(&plane, &format!("{path}/rc"), ready(2)).await;
    assert_eq!(object["status"]["observedGeneration"], 1);
    let pods = ask(&plane, "GET", &format!("{PODS}?labelSelector=app%3Drc"), Value::Null).await.2;
    let owner = &pods["items"][0]["metadata"]["ownerReferences"][0];
    assert_eq!((&owner["kind"], &owner["controller"]), (&json!("ReplicationController"), &json!(true)));

    let scaler = json!({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "h"},
        "spec": {"minReplicas": 3, "maxReplicas": 5,
            "scaleTargetRef": {"apiVersion": "v1", "kind": "ReplicationController", "name": "rc"}}});
    made(&plane, "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers", scaler).await;
    until(&plane, &format!("{path}/rc"), ready(3)).await;
    // By default its pods are left behind.
    let background = json!({"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background"});
    assert_eq!(ask(&plane, "DELETE", &format!("{path}/rc"), background).await.0, 200);
    until(&plane, PODS, |_, list| list["items"].as_array().is_some_and(Vec::is_empty)).await;
    plane.stop().await;
}

#[tokio::test]
async fn what_clients_may_ask_and_what_they_are_told() {
    let plane = bare_plane().await;
    let (code, _, body) = ask(&plane, "GET", &format!("{PODS}?timeout=invalid"), Value::Null).await;
    let said = "invalid timeout specified in the request URL - time: invalid duration \"invalid\"";
    assert_eq!((code, message(&body), &body["reason"]), (400, said, &json!("BadRequest")));
    assert_eq!(ask(&plane, "GET", &format!("{PODS}?timeout=32s"), Value::Null).await.0, 200);

    let core = ask(&plane, "GET", "/api/v1", Value::Null).await.2;
    let hash = |document: &Value, name: &str| {
        let resources = document["resources"].as_array().unwrap();
        resources.iter().find(|resource| resource["name"] == name).unwrap()["storageVersionHash"].clone()
    };
    assert_eq!(hash(&core, "pods"), "xPOwRZ+Yhw8=");
    assert_eq!(hash(&core, "componentstatuses"), Value::Null);
    let events = ask(&plane, "GET", "/apis/events.k8s.io/v1", Value::Null).await.2;
    assert_eq!(hash(&events, "events"), hash(&core, "events"), "they are stored as one");

    for name in ["a", "b", "c"] {
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
        made(&plane, "/api/v1/namespaces/default/configmaps", map).await;
    }
    let review = json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}});
    let request = http::Request::post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews")
        .header("content-type", "application/json")
        .header("accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
        .body(http_body_util::Full::<bytes::Bytes>::from(review.to_string()))
        .unwrap();
    let response = tower::ServiceExt::oneshot(plane.service(), request).await.unwrap();
    assert_eq!(response.status(), 406);

    let request =
        http::Request::get("/metrics").body(http_body_util::Full::<bytes::Bytes>::default()).unwrap();
    let response = tower::ServiceExt::oneshot(plane.service(), request).await.unwrap();
    let text = http_body_util::BodyExt::collect(response.into_body()).await.unwrap().to_bytes();
    let text = String::from_utf8(text.to_vec()).unwrap();
    for line in [
        "apiserver_request_total{code=\"201\",component=\"apiserver\",dry_run=\"\",group=\"\",resource=\"configmaps\",\
         scope=\"resource\",subresource=\"\",verb=\"POST\",version=\"v1\"} 3\n",
        "apiserver_resource_objects{group=\"\",resource=\"configmaps\"} 3\n",
        "apiserver_storage_objects{resource=\"priorityclasses.scheduling.k8s.io\"} 2\n",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }

    let list = ask(&plane, "GET", "/healthz?verbose", Value::Null).await.0;
    assert_eq!(list, 200);
    assert_eq!(ask(&plane, "GET", "/readyz/informer-sync", Value::Null).await.0, 200);
}

#[tokio::test]
async fn pages_end_after_a_while() {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicI64, Ordering};
    let now = Arc::new(AtomicI64::new(1_800_000_000));
    let clock = now.clone();
    let mut config = opdev_controlplane::Config::default();
    config.controllers = opdev_controlplane::Controllers::None;
    config.clock =
        Some(Arc::new(move || jiff::Timestamp::from_second(clock.load(Ordering::SeqCst)).unwrap()));
    let plane = ControlPlane::start_with(config).await.unwrap();
    let maps = "/api/v1/namespaces/default/configmaps";
    for name in ["a", "b", "c"] {
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
        made(&plane, maps, map).await;
    }
    let names = |list: &Value| {
        let items = list["items"].as_array().unwrap();
        items.iter().map(|item| item["metadata"]["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let token = |list: &Value| list["metadata"]["continue"].as_str().unwrap().to_owned();
    let first = ask(&plane, "GET", &format!("{maps}?limit=1"), Value::Null).await.2;
    assert_eq!(names(&first), ["a"]);
    ask(&plane, "DELETE", &format!("{maps}/b"), Value::Null).await;
    let next = format!("{maps}?limit=1&continue={}", token(&first));
    assert_eq!(names(&ask(&plane, "GET", &next, Value::Null).await.2), ["b"], "as it was");
    now.fetch_add(301, Ordering::SeqCst);
    let (code, _, expired) = ask(&plane, "GET", &next, Value::Null).await;
    assert_eq!((code, &expired["reason"]), (410, &json!("Expired")));
    assert!(message(&expired).starts_with("The provided continue parameter is too old"), "{expired:#}");
    let rest = format!("{maps}?limit=1&continue={}", token(&expired));
    assert_eq!(names(&ask(&plane, "GET", &rest, Value::Null).await.2), ["c"], "as it is");
}

#[tokio::test]
async fn strict_pods_wait_for_what_they_name() {
    let mut config = opdev_controlplane::Config::default();
    config.strict_pods = true;
    let plane = ControlPlane::start_with(config).await.unwrap();
    let env = json!([{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "m", "key": "a"}}}]);
    made(&plane, PODS, pod("env", json!({"containers": [{"name": "a", "image": "x", "env": env}]}))).await;
    made(&plane, PODS, pod("volume", json!({"volumes": [{"name": "v", "secret": {"secretName": "s"}}]})))
        .await;
    let waits = |reason: &'static str, message: &'static str| {
        move |_: u16, pod: &Value| {
            let waiting = &pod["status"]["containerStatuses"][0]["state"]["waiting"];
            waiting["reason"] == reason && waiting["message"].as_str().unwrap_or_default() == message
        }
    };
    let init = json!([{"name": "i", "image": "x", "envFrom": [{"secretRef": {"name": "none"}}]}]);
    made(&plane, PODS, pod("init", json!({"initContainers": init}))).await;
    let (env, volume) = (format!("{PODS}/env"), format!("{PODS}/volume"));
    until(&plane, &env, waits("CreateContainerConfigError", "configmap \"m\" not found")).await;
    until(&plane, &volume, waits("ContainerCreating", "")).await;
    let told = |message: &'static str| {
        move |_: u16, list: &Value| {
            list["items"].as_array().unwrap().iter().any(|event| event["message"] == message)
        }
    };
    let events = "/api/v1/namespaces/default/events";
    let list = until(&plane, events, told("Error: secret \"none\" not found")).await;
    let event = list["items"]
        .as_array()
        .unwrap()
        .iter()
        .find(|event| event["message"] == "Error: secret \"none\" not found");
    assert_eq!(event.unwrap()["involvedObject"]["fieldPath"], "spec.initContainers{i}");
    until(&plane, events, told("Error: configmap \"m\" not found")).await;
    until(&plane, events, told("MountVolume.SetUp failed for volume \"v\" : secret \"s\" not found")).await;

    let maps = "/api/v1/namespaces/default/configmaps";
    made(&plane, maps, json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}})).await;
    until(&plane, &env, waits("CreateContainerConfigError", "couldn't find key a in ConfigMap default/m"))
        .await;
    assert_eq!(merged(&plane, &format!("{maps}/m"), json!({"data": {"a": "1"}})).await.0, 200);
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}});
    made(&plane, "/api/v1/namespaces/default/secrets", secret).await;
    for path in [&env, &volume] {
        until(&plane, path, |_, pod| pod["status"]["phase"] == "Running").await;
    }
    let (code, _, refused) =
        ask(&plane, "POST", PODS, pod("account", json!({"serviceAccountName": "robot"}))).await;
    assert_eq!(
        (code, message(&refused)),
        (
            403,
            "pods \"account\" is forbidden: error looking up service account default/robot: serviceaccount \"robot\" not \
             found"
        )
    );
    let robot = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot"}});
    let accounts = "/api/v1/namespaces/default/serviceaccounts";
    made(&plane, accounts, robot.clone()).await;
    let late =
        json!({"volumes": [{"name": "v", "secret": {"secretName": "late"}}], "serviceAccountName": "robot"});
    made(&plane, PODS, pod("account", late)).await;
    until(&plane, events, told("MountVolume.SetUp failed for volume \"v\" : secret \"late\" not found"))
        .await;
    // The kubelet looks for it again.
    ask(&plane, "DELETE", &format!("{accounts}/robot"), Value::Null).await;
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "late"}});
    made(&plane, "/api/v1/namespaces/default/secrets", secret).await;
    let message = "MountVolume.SetUp failed for volume \"kube-api-access\" : failed to fetch token: \
                   serviceaccounts \"robot\" not found";
    until(&plane, events, told(message)).await;
    made(&plane, accounts, robot).await;
    until(&plane, &format!("{PODS}/account"), |_, pod| pod["status"]["phase"] == "Running").await;
    plane.stop().await;
}

#[tokio::test]
async fn a_workload_makes_its_pods_once_their_account_is_there() {
    let mut config = opdev_controlplane::Config::default();
    config.strict_pods = true;
    let plane = ControlPlane::start_with(config).await.unwrap();
    let labels = json!({"app": "a"});
    let set = json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "a"}, "spec": {
        "replicas": 1, "selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": {
            "serviceAccountName": "robot", "containers": [{"name": "a", "image": "x"}]}}}});
    made(&plane, "/apis/apps/v1/namespaces/default/replicasets", set).await;
    let is_told = |_: u16, list: &Value| {
        let events = list["items"].as_array().unwrap();
        events.iter().any(|event| {
            event["reason"] == "FailedCreate" && message(event).contains("serviceaccount \"robot\" not found")
        })
    };
    until(&plane, "/api/v1/namespaces/default/events", is_told).await;
    let robot = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot"}});
    made(&plane, "/api/v1/namespaces/default/serviceaccounts", robot).await;
    let path = "/apis/apps/v1/namespaces/default/replicasets/a";
    until(&plane, path, |_, set| set["status"]["readyReplicas"] == 1).await;
    plane.stop().await;
}

#[tokio::test]
async fn a_new_image_restarts_its_container_and_a_simulated_success_is_said() {
    let plane = ControlPlane::start_with(opdev_controlplane::Config::default()).await.unwrap();
    let containers =
        json!([{"name": "a", "image": "x", "command": ["sh", "-c", "exit 1"]}, {"name": "b", "image": "x"}]);
    made(&plane, PODS, pod("alone", json!({"containers": containers.clone()}))).await;
    let path = format!("{PODS}/alone");
    let is_ready = |pod: &Value| {
        let conditions = pod["status"]["conditions"].as_array().cloned().unwrap_or_default();
        conditions.iter().any(|one| one["type"] == "Ready" && one["status"] == "True")
    };
    let mut alone = until(&plane, &path, |_, pod| is_ready(pod)).await;
    alone["spec"]["containers"][0]["image"] = json!("y");
    let (code, _, answer) = ask(&plane, "PUT", &path, alone).await;
    assert_eq!(code, 200, "{answer:#}");
    let restarted = |_: u16, pod: &Value| {
        let a = &pod["status"]["containerStatuses"][0];
        is_ready(pod) && a["image"] == "y" && a["restartCount"] == 1 && a["state"]["running"].is_object()
    };
    let pod_after = until(&plane, &path, restarted).await;
    let statuses = &pod_after["status"]["containerStatuses"];
    assert_eq!(statuses[0]["lastState"]["terminated"]["exitCode"], 143, "{statuses:#}");
    assert_eq!((&statuses[1]["restartCount"], &statuses[1]["lastState"]), (&json!(0), &json!({})));
    let said = |reason: &'static str, words: &'static str| {
        move |_: u16, list: &Value| {
            list["items"].as_array().unwrap().iter().any(|event| {
                event["reason"] == reason && event["message"].as_str().unwrap_or_default().contains(words)
            })
        }
    };
    let events = "/api/v1/namespaces/default/events";
    until(&plane, events, said("Killing", "Container a definition changed, will be restarted")).await;

    let once = json!({"restartPolicy": "Never", "containers": containers});
    made(&plane, PODS, pod("once", once)).await;
    until(
        &plane,
        events,
        said("Simulated", "nothing of it ran: a (`sh -c exit 1`), b (its image's own command)"),
    )
    .await;
    until(&plane, &format!("{PODS}/once"), |_, pod| pod["status"]["phase"] == "Succeeded").await;
    plane.stop().await;
}

#[tokio::test]
async fn a_timeout_that_is_none_is_told_whatever_is_asked_for() {
    let plane = bare_plane().await;
    for path in ["/version", "/healthz", "/api", "/apis/apps/v1", "/openapi/v2", PODS, "/nowhere"] {
        let (code, _, body) = ask(&plane, "GET", &format!("{path}?timeout=invalid"), Value::Null).await;
        let text = "invalid timeout specified in the request URL - time: invalid duration \"invalid\"";
        assert_eq!((code, message(&body)), (400, text), "{path}");
        let (code, _, _) = ask(&plane, "GET", &format!("{path}?timeout=0s"), Value::Null).await;
        assert_eq!(code, if path == "/nowhere" { 404 } else { 200 }, "{path}");
    }
    plane.stop().await;
}
