//! The end of custom resources whose conversion webhook is gone: they stay, and so do their namespace and
//! their definition, with the reason in the conditions of a real cluster, until the webhook answers again.

use super::conversion::{converting_definition, converts};
use super::webhook_server::Webhook;
use super::webhooks::{ask, ask_as};
use opdev_controlplane::{Config, ControlPlane, Controllers};
use serde_json::{Value, json};
use std::time::Duration;

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const DEFINITION: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.wh.io";
const MERGE: &str = "application/merge-patch+json";

fn condition<'a>(object: &'a Value, kind: &str) -> &'a Value {
    let list = object["status"]["conditions"].as_array();
    list.into_iter().flatten().find(|condition| condition["type"] == kind).unwrap_or(&Value::Null)
}

/// Reads until the object is as wanted.
async fn until(plane: &ControlPlane, path: &str, fits: impl Fn(u16, &Value) -> bool) -> Value {
    let wait = async {
        loop {
            let (code, _, body) = ask(plane, "GET", path, Value::Null).await;
            if fits(code, &body) {
                return body;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), wait).await.expect(path)
}

/// A widget in a namespace of its own, kept at `v1`, and a webhook that no longer converts.
async fn stuck(controllers: Controllers, storage: &str) -> (ControlPlane, Webhook) {
    let mut config = Config::default();
    config.controllers = controllers;
    let (plane, server) = (ControlPlane::start_with(config).await.unwrap(), Webhook::start().await);
    converts(&server, |_| {});
    let definition = converting_definition(&server.url("/convert"), "v1");
    assert_eq!(ask(&plane, "POST", DEFINITIONS, definition).await.0, 201);
    let space = json!({"metadata": {"name": "wide"}});
    assert_eq!(ask(&plane, "POST", "/api/v1/namespaces", space).await.0, 201);
    let widget =
        json!({"apiVersion": "wh.io/v1", "kind": "Widget", "metadata": {"name": "a"}, "spec": {"host": "x"}});
    let widgets = "/apis/wh.io/v1/namespaces/wide/widgets";
    assert_eq!(ask(&plane, "POST", widgets, widget).await.0, 201);
    // It was converted once: that it still can be has to be asked again.
    let (code, _, _) = ask(&plane, "GET", "/apis/wh.io/v2/namespaces/wide/widgets/a", Value::Null).await;
    assert_eq!(code, 200);
    let next = converting_definition(&server.url("/convert"), storage);
    let change = json!({"spec": {"versions": next["spec"]["versions"]}});
    assert_eq!(ask_as(&plane, "PATCH", DEFINITION, MERGE, change).await.0, 200);
    converts(&server, |response| response["result"] = json!({"status": "Failure", "message": "gone"}));
    (plane, server)
}

const WHY: &str = "conversion webhook for wh.io/v1, Kind=Widget failed: gone";

#[tokio::test]
async fn a_definition_waits_for_the_webhook_of_its_resources() {
    let (plane, server) = stuck(Controllers::None, "v2").await;
    let (code, _, refused) =
        ask(&plane, "DELETE", "/apis/wh.io/v2/namespaces/wide/widgets/a", Value::Null).await;
    assert_eq!((code, refused["message"].as_str()), (500, Some(WHY)));
    assert_eq!(ask(&plane, "DELETE", DEFINITION, Value::Null).await.0, 200);
    let definition = until(&plane, DEFINITION, |_, body| {
        condition(body, "Terminating")["reason"] == "InstanceDeletionFailed"
    })
    .await;
    let said = condition(&definition, "Terminating");
    assert_eq!(said["message"], format!("could not list instances: {WHY}"));
    assert_eq!(
        (&said["status"], &definition["metadata"]["deletionTimestamp"].is_string()),
        (&json!("True"), &true)
    );
    assert_eq!(ask(&plane, "GET", "/apis/wh.io/v1/namespaces/wide/widgets/a", Value::Null).await.0, 200);
    // Nobody writes the definition again: it goes once the webhook answers.
    converts(&server, |_| {});
    until(&plane, DEFINITION, |code, _| code == 404).await;
    plane.stop().await;
}

#[tokio::test]
async fn a_namespace_waits_for_the_webhook_of_what_is_in_it() {
    // Kept at v1, which needs nobody: the real controller deletes at the version that clients prefer.
    let (plane, server) = stuck(Controllers::ClusterOnly, "v1").await;
    let space = "/api/v1/namespaces/wide";
    assert_eq!(ask(&plane, "DELETE", space, Value::Null).await.0, 200);
    let failure = "NamespaceDeletionContentFailure";
    let waiting = until(&plane, space, |_, body| condition(body, failure)["status"] == "True").await;
    let said = condition(&waiting, failure);
    assert_eq!(said["reason"], "ContentDeletionFailed");
    assert_eq!(said["message"], format!("Failed to delete all resource types, 1 remaining: {WHY}"));
    let others: Vec<&Value> = ["NamespaceContentRemaining", "NamespaceFinalizersRemaining"]
        .iter()
        .map(|kind| &condition(&waiting, kind)["status"])
        .collect();
    assert_eq!(others, ["False", "False"]);
    converts(&server, |_| {});
    until(&plane, space, |code, _| code == 404).await;
    plane.stop().await;
}
