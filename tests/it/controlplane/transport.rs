//! The embedded control plane over a socket: TLS, who is who, stopping.

use expect_test::expect;
use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{Api, ListParams, PostParams, WatchParams};
use kube::config::{AuthInfo, KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use opdev_controlplane::{ControlPlane, Listen};
use std::time::{Duration, Instant};

async fn client(kubeconfig: &str, change: impl FnOnce(&mut AuthInfo)) -> Client {
    let mut kubeconfig = Kubeconfig::from_yaml(kubeconfig).unwrap();
    change(kubeconfig.auth_infos[0].auth_info.as_mut().unwrap());
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
    Client::try_from(config).unwrap()
}

fn code(error: &kube::Error) -> u16 {
    match error {
        kube::Error::Api(status) => status.code,
        other => panic!("{other}"),
    }
}

#[tokio::test]
async fn certificate_token_and_nobody() {
    let plane = ControlPlane::start().await.unwrap();
    let text = plane.listen(Listen::default()).await.unwrap().kubeconfig;
    let list = async |client: Client| {
        Api::<Namespace>::all(client).list(&ListParams::default()).await.map(|list| list.items.len())
    };
    let no_certificate = |auth: &mut AuthInfo| {
        auth.client_certificate_data = None;
        auth.client_key_data = None;
    };
    assert_eq!(list(client(&text, |auth| auth.token = None).await).await.unwrap(), 4);
    assert_eq!(list(client(&text, no_certificate).await).await.unwrap(), 4);
    let nobody = client(&text, |auth| *auth = AuthInfo::default()).await;
    assert_eq!(code(&list(nobody.clone()).await.unwrap_err()), 403);
    assert_eq!(nobody.apiserver_version().await.unwrap().minor, "37");
    let stranger = client(&text, |auth| {
        no_certificate(auth);
        auth.token = Some("guess".to_owned().into());
    })
    .await;
    assert_eq!(code(&list(stranger).await.unwrap_err()), 401);
    plane.stop().await;
}

#[tokio::test]
async fn only_loopback() {
    let plane = ControlPlane::start().await.unwrap();
    let error =
        plane.listen(Listen { address: ([0, 0, 0, 0], 0).into(), ..Listen::default() }).await.unwrap_err();
    expect!["0.0.0.0:0 is not a loopback address; whoever reaches the control plane is its admin, so it listens on 127.0.0.1 or [::1] only"]
    .assert_eq(&error.to_string());
    plane.stop().await;
}

#[tokio::test]
async fn an_address_in_use_is_said() {
    let plane = ControlPlane::start().await.unwrap();
    let first = plane.listen(Listen::default()).await.unwrap();
    let error = plane.listen(Listen { address: first.address, ..Listen::default() }).await.unwrap_err();
    assert!(error.to_string().starts_with(&format!("cannot listen on {}", first.address)), "{error}");
    plane.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stopping_ends_open_watches_and_is_prompt() {
    let plane = ControlPlane::start().await.unwrap();
    let text = plane.listen(Listen::default()).await.unwrap().kubeconfig;
    let api: Api<ConfigMap> = Api::default_namespaced(client(&text, |_| ()).await);
    let version = api.list(&ListParams::default()).await.unwrap().metadata.resource_version.unwrap();
    let mut watches = Vec::new();
    for _ in 0..20 {
        watches.push(api.watch(&WatchParams::default(), &version).await.unwrap().boxed());
    }
    let mut map = ConfigMap::default();
    map.metadata.name = Some("a".to_owned());
    api.create(&PostParams::default(), &map).await.unwrap();
    for watch in &mut watches {
        watch.try_next().await.unwrap().unwrap();
    }
    let began = Instant::now();
    plane.stop().await;
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    for watch in watches {
        tokio::time::timeout(Duration::from_secs(2), watch.count()).await.expect("the watch ends");
    }
    assert!(api.list(&ListParams::default()).await.is_err(), "nobody is there any more");
}

/// More connections than there is room for unknown clients: half of them finish the TLS handshake, half do
/// not even begin it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn silent_connections_keep_nobody_out() {
    let plane = ControlPlane::start().await.unwrap();
    let listening = plane.listen(Listen::default()).await.unwrap();
    // A client that is known stays, however long it is silent.
    let api: Api<ConfigMap> = Api::default_namespaced(client(&listening.kubeconfig, |_| ()).await);
    let version = api.list(&ListParams::default()).await.unwrap().metadata.resource_version.unwrap();
    let mut watch = api.watch(&WatchParams::default(), &version).await.unwrap().boxed();

    let mut silent = Vec::new();
    for number in 0..300 {
        if number % 2 == 0 {
            silent.push(Ok(super::stuck::connect(&plane, &listening).await));
        } else {
            silent.push(Err(tokio::net::TcpStream::connect(listening.address).await.unwrap()));
        }
    }
    let real: Api<ConfigMap> = Api::default_namespaced(client(&listening.kubeconfig, |_| ()).await);
    let mut map = ConfigMap::default();
    map.metadata.name = Some("a".to_owned());
    real.create(&PostParams::default(), &map).await.unwrap();
    watch.try_next().await.unwrap().unwrap();
    drop(silent);
    plane.stop().await;
}

#[tokio::test]
async fn plain_http_gets_a_word() {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let plane = ControlPlane::start().await.unwrap();
    let address = plane.listen(Listen::default()).await.unwrap().address;
    let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
    let mut said = String::new();
    stream.read_to_string(&mut said).await.unwrap();
    assert!(said.ends_with("Client sent an HTTP request to an HTTPS server.\n"), "{said}");
    drop(stream);
    plane.stop().await;
}
