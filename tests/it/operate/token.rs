//! The token of the ServiceAccount in its file. The kubelet writes it anew now and then, and the one before
//! ends some time later.

use super::{Cluster, apply};
use k8s_openapi::api::core::v1::{Secret, ServiceAccount};
use kube::api::{Api, DeleteParams, ListParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::json;
use std::fs;

/// The API server's words to a token: a status, 200 where it is taken.
async fn status(cluster: &Cluster, token: &str) -> u16 {
    let mut kubeconfig = Kubeconfig::from_yaml(&cluster._listening.kubeconfig).unwrap();
    let user = json!({"name": "other", "user": {"token": token}});
    kubeconfig.auth_infos = vec![serde_json::from_value(user).unwrap()];
    let context = kubeconfig.contexts[0].context.as_mut().unwrap();
    context.user = Some("other".to_owned());
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
    let secrets: Api<Secret> = Api::namespaced(Client::try_from(config).unwrap(), "default");
    match secrets.list(&ListParams::default()).await {
        Ok(_) => 200,
        Err(kube::Error::Api(refusal)) => refusal.code,
        Err(error) => panic!("{error}"),
    }
}

/// Ends every token of the ServiceAccount: they belong to an account that is there no more, whatever its
/// name.
async fn end_tokens(cluster: &Cluster) {
    let accounts: Api<ServiceAccount> = Api::namespaced(cluster.client.clone(), "operators");
    accounts.delete("manager", &DeleteParams::default()).await.unwrap();
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "manager", "namespace": "operators"}});
    apply(&cluster.client, &account).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_is_written_anew_is_read_anew() {
    let cluster = Cluster::start().await;
    let file = cluster.root.join("token");
    let mut operating = cluster.operate(&[]);
    operating.line("Starting workers");
    cluster.memcached(1).await;
    cluster.replicas("a-memcached", 1).await;
    let first = fs::read_to_string(&file).unwrap();
    assert_eq!(status(&cluster, &first).await, 200);
    end_tokens(&cluster).await;
    assert_eq!(status(&cluster, &first).await, 401);
    let second = cluster.token("manager").await;
    assert_eq!(status(&cluster, &second).await, 200);
    // As the kubelet does it: another file gets the name.
    fs::write(cluster.root.join("new"), &second).unwrap();
    fs::rename(cluster.root.join("new"), &file).unwrap();
    cluster.memcached(3).await;
    cluster.replicas("a-memcached", 3).await;
    let (code, log) = operating.stop();
    assert_eq!(code, Some(0), "{log}");
    assert!(!log.contains(&first) && !log.contains(&second), "a token is in the log");
    cluster.plane.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_without_a_valid_token_goes_on_once_there_is_one() {
    let cluster = Cluster::start().await;
    let mut operating = cluster.operate(&[]);
    operating.line("Starting workers");
    cluster.memcached(1).await;
    cluster.replicas("a-memcached", 1).await;
    end_tokens(&cluster).await;
    cluster.memcached(2).await;
    // It fails with the old token, says which file that is from, and does not end.
    let refused = operating.line("is not accepted");
    assert!(refused.contains("/token"), "{refused}");
    fs::write(cluster.root.join("token"), cluster.token("manager").await).unwrap();
    cluster.replicas("a-memcached", 2).await;
    assert_eq!(operating.stop().0, Some(0));
    cluster.plane.stop().await;
}
