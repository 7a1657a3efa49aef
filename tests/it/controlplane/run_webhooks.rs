//! Webhooks of the control plane that `opdev run --embedded` starts: a service on a port of this machine,
//! served with the certificate that it writes.

use super::webhook_server::{Webhook, given};
use kube::api::{DynamicObject, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use opdev_cluster::{Choice, Connection};
use serde_json::{Value, json};

async fn create(
    connection: &Connection,
    api_version: &str,
    kind: &str,
    object: Value,
) -> kube::Result<Value> {
    let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
    let mut whole = json!({"apiVersion": api_version, "kind": kind});
    whole.as_object_mut().unwrap().extend(object.as_object().unwrap().clone());
    let object: DynamicObject = serde_json::from_value(whole).unwrap();
    let client = connection.client.clone();
    let api = match kind {
        "ConfigMap" | "Service" => kube::Api::default_namespaced_with(client, &resource),
        _ => kube::Api::all_with(client, &resource),
    };
    Ok(serde_json::to_value(api.create(&PostParams::default(), &object).await?).unwrap())
}

#[tokio::test]
async fn the_embedded_cluster_asks_a_webhook_on_a_port_of_this_machine() {
    let folder = tempfile::tempdir().unwrap();
    let certificates = folder.path().join("certs");
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut choice =
        Choice { embedded: true, webhook_certificates: Some(certificates.clone()), ..Choice::default() };
    choice.webhooks.ports.insert("default/hooks".to_owned(), listener.local_addr().unwrap().port());
    let state = opdev_os::private_folder::PrivateFolder::make(folder.path()).unwrap();
    let connection = Connection::open(&choice, &state).await.unwrap();
    assert_eq!(connection.certificates.as_ref().unwrap().folder, certificates);
    let read = |name: &str| std::fs::read_to_string(certificates.join(name)).unwrap();
    let server = Webhook::start_on(listener, given(&read("tls.crt"), &read("tls.key"), &read("ca.crt")));
    server.patch("/mutate", json!([{"op": "add", "path": "/data/added", "value": "yes"}]));

    let service =
        json!({"metadata": {"name": "hooks"}, "spec": {"ports": [{"port": 443, "targetPort": 9443}]}});
    create(&connection, "v1", "Service", service).await.unwrap();
    let configuration = json!({"metadata": {"name": "mine"}, "webhooks": [{"name": "mine.example.com",
        "clientConfig": {"service": {"namespace": "default", "name": "hooks", "path": "/mutate"}},
        "sideEffects": "None", "admissionReviewVersions": ["v1"],
        "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}]}]});
    create(&connection, "admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration", configuration)
        .await
        .unwrap();
    let map = json!({"metadata": {"name": "a"}, "data": {"own": "yes"}});
    let made = create(&connection, "v1", "ConfigMap", map).await.unwrap();
    assert_eq!(made["data"], json!({"added": "yes", "own": "yes"}));
    connection.close().await;
}
