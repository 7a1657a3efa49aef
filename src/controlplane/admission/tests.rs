//! Where services lead and what rules meet, without a socket.

use super::hook::Hooks;
use super::lists::{Lists, view_of_lists};
use super::reach::Reach;
use super::resolver::{CallFailure, Resolved, Webhooks, find};
use opdev_apimachinery::resource::ClientConfig;
use serde_json::{Value, json};
use std::sync::Arc;

/// A cluster of these objects, each with its resource.
struct Objects(Vec<(&'static str, Arc<Value>)>);

impl Lists for Objects {
    fn objects(&self, resource: &str, namespace: Option<&str>) -> Vec<Arc<Value>> {
        let fits = |object: &Value| namespace.is_none_or(|own| object["metadata"]["namespace"] == own);
        let found = self.0.iter().filter(|(table, object)| *table == resource && fits(object));
        found.map(|(_, object)| object.clone()).collect()
    }
}

view_of_lists!(Objects);

fn service(spec: Value, annotations: Value) -> (&'static str, Arc<Value>) {
    let metadata = json!({"namespace": "system", "name": "hooks", "annotations": annotations});
    ("services", Arc::new(json!({"metadata": metadata, "spec": spec})))
}

fn slice(endpoint: Value) -> (&'static str, Arc<Value>) {
    let metadata = json!({"namespace": "system", "name": "hooks-1",
        "labels": {"kubernetes.io/service-name": "hooks"}});
    let slice = json!({"metadata": metadata, "ports": [{"port": 9999}], "endpoints": [endpoint]});
    ("discovery.k8s.io/endpointslices", Arc::new(slice))
}

fn usual() -> Value {
    json!({"clusterIP": "10.96.0.7", "selector": {"app": "operator"},
        "ports": [{"port": 443, "targetPort": 9443}]})
}

fn config() -> ClientConfig {
    ClientConfig::read(
        &json!({"service": {"namespace": "system", "name": "hooks", "path": "/validate"}}),
        &Value::Null,
    )
}

fn dial(found: Resolved) -> String {
    found.unwrap().dial
}

#[test]
fn a_service_leads_to_a_port_of_this_machine() {
    let none = Webhooks::default();
    let told = Objects(vec![service(usual(), json!({"opdev.dev/local-port": "7443"}))]);
    let place = find(&told, &none, &config()).unwrap();
    assert_eq!((place.dial.as_str(), place.server_name.as_str()), ("127.0.0.1:7443", "hooks.system.svc"));
    assert_eq!(place.url, "https://hooks.system.svc:443/validate");
    assert_eq!(place.otherwise, None);
    let mut settings = Webhooks::default();
    settings.ports.insert("system/hooks".to_owned(), 6443);
    assert_eq!(dial(find(&told, &settings, &config())), "127.0.0.1:6443");

    let loopback = Objects(vec![service(usual(), Value::Null), slice(json!({"addresses": ["127.0.0.1"]}))]);
    assert_eq!(dial(find(&loopback, &none, &config())), "127.0.0.1:9999");
    let machine = Objects(vec![service(usual(), Value::Null), slice(json!({"addresses": ["192.0.2.1"]}))]);
    assert_eq!(dial(find(&machine, &none, &config())), "192.0.2.1:9999");
    let external = json!({"type": "ExternalName", "externalName": "hooks.example.com"});
    let external = Objects(vec![service(external, Value::Null)]);
    assert_eq!(dial(find(&external, &none, &config())), "hooks.example.com:443");
}

#[test]
fn what_is_simulated_is_skipped_unless_something_listens_where_the_pod_would() {
    let pod = json!({"addresses": ["10.244.0.3"], "targetRef": {"kind": "Pod", "name": "operator"}});
    let simulated = Objects(vec![service(usual(), Value::Null), slice(pod)]);
    let place = find(&simulated, &Webhooks::default(), &config()).unwrap();
    assert_eq!(place.dial, "127.0.0.1:9443");
    assert_eq!(place.otherwise, Some(CallFailure::Simulated("system/hooks".to_owned())));
    let strict = Webhooks { strict: true, ..Webhooks::default() };
    let refused = CallFailure::Failed("dial tcp 10.96.0.7:443: connect: connection refused".to_owned());
    assert_eq!(find(&simulated, &strict, &config()).unwrap().otherwise, Some(refused.clone()));
    // Nobody behind it at all is a failure, as on a real cluster.
    let empty = Objects(vec![service(usual(), Value::Null)]);
    assert_eq!(find(&empty, &Webhooks::default(), &config()).unwrap().otherwise, Some(refused));

    // The port has a name, which the pod explains.
    let mut named = usual();
    named["ports"][0]["targetPort"] = json!("webhook-server");
    let pod = json!({"metadata": {"namespace": "system", "name": "operator", "labels": {"app": "operator"}},
        "spec": {"containers": [{"ports": [{"name": "webhook-server", "containerPort": 8443}]}]}});
    let explained = Objects(vec![service(named.clone(), Value::Null), ("pods", Arc::new(pod))]);
    assert_eq!(dial(find(&explained, &Webhooks::default(), &config())), "127.0.0.1:8443");
    let unexplained = Objects(vec![service(named, Value::Null)]);
    assert_eq!(dial(find(&unexplained, &Webhooks::default(), &config())), "127.0.0.1:9443");
}

#[test]
fn a_service_that_leads_nowhere_says_so_as_the_real_server_does() {
    let why = |objects: Vec<(&'static str, Arc<Value>)>| {
        find(&Objects(objects), &Webhooks::default(), &config()).unwrap_err().1
    };
    let failed = |why: &str| CallFailure::Failed(why.to_owned());
    assert_eq!(why(Vec::new()), failed("service \"hooks\" not found"));
    let other = json!({"clusterIP": "10.96.0.7", "ports": [{"port": 80}]});
    let missing = failed("no service port 443 found for service \"hooks\"");
    assert_eq!(why(vec![service(other, Value::Null)]), missing);
    let headless = json!({"clusterIP": "None", "ports": [{"port": 443}]});
    let unrouted = failed("cannot route to service with ClusterIP \"None\"");
    assert_eq!(why(vec![service(headless, Value::Null)]), unrouted);
}

#[test]
fn a_resource_that_no_rule_names_waits_for_nobody() {
    let hooks = |resources: &[&str]| {
        let hook = json!({"rules": [{"apiGroups": ["apps"], "resources": resources}]});
        Hooks::read(&[], &[Arc::new(json!({"webhooks": [hook]}))])
    };
    assert!(hooks(&["pods/*"]).may_concern("pods") && hooks(&["*/scale"]).may_concern("pods"));
    assert!(hooks(&["*"]).may_concern("pods") && !hooks(&["deployments", "pods2"]).may_concern("pods"));
}

#[test]
fn urls_are_taken_apart() {
    let none = (Objects(Vec::new()), Webhooks::default());
    for (url, dial, name, path) in [
        ("https://localhost:9443/a", "localhost:9443", "localhost", "/a"),
        ("https://example.com", "example.com:443", "example.com", "/"),
        ("https://127.0.0.1:1//a/./b/", "127.0.0.1:1", "127.0.0.1", "/a/b"),
        ("https://[::1]:8443/a/b?c=d", "[::1]:8443", "::1", "/a/b"),
    ] {
        let place = find(&none.0, &none.1, &ClientConfig::read(&json!({"url": url}), &Value::Null)).unwrap();
        assert_eq!(
            (place.dial.as_str(), place.server_name.as_str(), place.path.as_str()),
            (dial, name, path)
        );
    }
}

fn managed(mut object: Value, managers: &[&str]) -> Value {
    let entries: Vec<Value> = managers.iter().map(|manager| json!({"manager": manager})).collect();
    object["metadata"]["managedFields"] = json!(entries);
    object
}

#[test]
fn another_machine_is_called_only_where_that_is_permitted() {
    let asked = Arc::new(std::sync::Mutex::new(Vec::new()));
    let seen = Arc::clone(&asked);
    let reach = Reach::new(move |call| {
        seen.lock().unwrap().push((call.host.to_owned(), call.by_kubectl));
        if call.by_kubectl { Ok(()) } else { Err(format!("{} is not allowed", call.host)) }
    });
    let settings = Webhooks { reach: Some(reach), ..Webhooks::default() };
    let by = |managers: &[&str]| managed(json!({}), managers);
    let url = |url: &str, managers: &[&str]| ClientConfig::read(&json!({"url": url}), &by(managers));
    let nothing = Objects(Vec::new());
    for local in ["https://localhost:9443/a", "https://127.0.0.1/a", "https://[::1]:8443/a"] {
        assert!(find(&nothing, &settings, &url(local, &["opdev"])).is_ok(), "{local}");
    }
    assert!(asked.lock().unwrap().is_empty());

    let refused = find(&nothing, &settings, &url("https://evil.example.com/a?token=b", &["opdev"]));
    let why = CallFailure::Failed("evil.example.com is not allowed".to_owned());
    assert_eq!(refused.unwrap_err(), ("https://evil.example.com/a".to_owned(), why));
    // Whoever has written a part of it counts, and who wrote an object without a name is not known.
    assert!(find(&nothing, &settings, &url("https://evil.example.com", &["kubectl", "opdev"])).is_err());
    assert!(find(&nothing, &settings, &url("https://evil.example.com", &[])).is_err());
    assert!(find(&nothing, &settings, &url("https://evil.example.com", &["kubectl-create"])).is_ok());

    // The services behind a configuration of the user's may be a chart's.
    let target = json!({"service": {"namespace": "system", "name": "hooks"}});
    let config = ClientConfig::read(&target, &by(&["kubectl"]));
    let external = json!({"type": "ExternalName", "externalName": "evil.example.com"});
    let (name, object) = service(external, Value::Null);
    let service_of = |object: &Value, manager: &str| (name, Arc::new(managed(object.clone(), &[manager])));
    assert!(find(&Objects(vec![service_of(&object, "opdev")]), &settings, &config).is_err());
    assert!(find(&Objects(vec![service_of(&object, "kubectl")]), &settings, &config).is_ok());
    let (_, plain) = service(usual(), Value::Null);
    let (slices, found) = slice(json!({"addresses": ["192.0.2.1"]}));
    let with_slice = |manager: &str| {
        let found = (slices, Arc::new(managed(Value::clone(&found), &[manager])));
        Objects(vec![service_of(&plain, "kubectl"), found])
    };
    assert!(find(&with_slice("opdev"), &settings, &config).is_err());
    assert!(find(&with_slice("kubectl-edit"), &settings, &config).is_ok());
    assert!(asked.lock().unwrap().iter().any(|(host, by_kubectl)| host == "192.0.2.1" && !by_kubectl));
}
