//! The entry points for envtest: written, started with the flags and certificates that envtest makes, and
//! used as a suite uses them.

use crate::masked::masked;
use expect_test::expect;
use futures::StreamExt;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{Api, DeleteParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Client, Config};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

type Authority = CertifiedIssuer<'static, KeyPair>;

const LIMIT: Duration = Duration::from_secs(30);

fn authority() -> Authority {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.distinguished_name.push(DnType::CommonName, "envtest-environment");
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// Writes `NAME.crt` and `NAME.key`, for a server or, with a group, for a client.
fn certify(authority: &Authority, folder: &Path, name: &str, group: Option<&str>) {
    let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
    let mut params = CertificateParams::new(names).unwrap();
    params.distinguished_name.push(DnType::CommonName, name);
    if let Some(group) = group {
        params.distinguished_name.push(DnType::OrganizationName, group);
    }
    params.extended_key_usages =
        vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
    let key = KeyPair::generate().unwrap();
    let certificate = params.signed_by(&key, authority).unwrap();
    fs::write(folder.join(format!("{name}.crt")), certificate.pem()).unwrap();
    fs::write(folder.join(format!("{name}.key")), key.serialize_pem()).unwrap();
}

async fn assets(folder: &Path) -> PathBuf {
    let assets = folder.join("assets");
    let output =
        run(Path::new(env!("CARGO_BIN_EXE_opdev")), &["serve", "--envtest-assets", "assets"], folder);
    let output = output.await;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    expect![[r#"
        TMP/assets has etcd, kube-apiserver and kubectl, all of them opdev

          export KUBEBUILDER_ASSETS=TMP/assets
          go test ./...

        No controllers run there, as under envtest; OPDEV_ENVTEST_CONTROLLERS=cluster has garbage collection and namespaces,
        OPDEV_ENVTEST_CONTROLLERS=all has all controllers and simulated pods. kubectl is the one on your PATH,
        or else the one that is there now.
    "#]]
    .assert_eq(&masked(&said));
    assets
}

async fn run(program: &Path, arguments: &[&str], folder: &Path) -> Output {
    Command::new(program).args(arguments).current_dir(folder).output().await.unwrap()
}

/// A started entry point and where it says it is.
struct Started {
    process: Child,
    at: String,
    said: String,
}

impl Started {
    async fn start(program: &Path, arguments: &[String], controllers: Option<&str>) -> Started {
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        command.env_remove("OPDEV_ENVTEST_CONTROLLERS").kill_on_drop(true);
        if let Some(which) = controllers {
            command.env("OPDEV_ENVTEST_CONTROLLERS", which);
        }
        let mut process = command.spawn().unwrap();
        let mut lines = BufReader::new(process.stderr.take().unwrap()).lines();
        let mut said = String::new();
        let at = loop {
            let line = tokio::time::timeout(LIMIT, lines.next_line()).await.expect("it says something");
            let line = line.unwrap().unwrap_or_else(|| panic!("it ended: {said}"));
            said.push_str(&format!("{line}\n"));
            if let Some((_, rest)) = line.split_once(" at ") {
                break rest.split([',', ' ']).next().unwrap().to_owned();
            }
        };
        Started { process, at, said }
    }

    async fn stop(mut self) {
        let id = self.process.id().unwrap().to_string();
        assert!(std::process::Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
        let status = tokio::time::timeout(LIMIT, self.process.wait()).await.expect("it ends").unwrap();
        assert_eq!(status.code(), Some(0));
    }
}

/// The flags that envtest gives kube-apiserver, and one that no version knows.
fn flags(folder: &Path) -> Vec<String> {
    let at = folder.display();
    [
        "--allow-privileged=true",
        "--authorization-mode=RBAC",
        "--bind-address=127.0.0.1",
        &format!("--cert-dir={at}"),
        &format!("--client-ca-file={at}/client-cert-auth-ca.crt"),
        "--disable-admission-plugins=ServiceAccount",
        "--etcd-servers=http://127.0.0.1:1",
        "--secure-port=0",
        "--service-account-issuer=https://127.0.0.1:1/",
        &format!("--service-account-key-file={at}/sa-signer.crt"),
        "--service-cluster-ip-range=10.0.0.0/24",
        "--of-another-time",
        "--v=2",
    ]
    .map(str::to_owned)
    .into()
}

async fn client(folder: &Path, server: &str, user: &str) -> Client {
    let at = folder.display();
    let text = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: e\ncontexts: [{{name: e, context: {{cluster: e, user: e}}}}]\n\
         clusters: [{{name: e, cluster: {{server: '{server}', certificate-authority: '{at}/ca.crt'}}}}]\n\
         users: [{{name: e, user: {{client-certificate: '{at}/{user}.crt', client-key: '{at}/{user}.key'}}}}]\n"
    );
    let kubeconfig = Kubeconfig::from_yaml(&text).unwrap();
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
    Client::try_from(config).unwrap()
}

/// Certificates as envtest makes them: one authority for the server, another one for the users.
fn certificates(folder: &Path) {
    let (servers, users) = (authority(), authority());
    fs::write(folder.join("ca.crt"), servers.pem()).unwrap();
    fs::write(folder.join("client-cert-auth-ca.crt"), users.pem()).unwrap();
    certify(&servers, folder, "apiserver", None);
    certify(&users, folder, "admin", Some("system:masters"));
    certify(&users, folder, "jane", Some("dev"));
    certify(&servers, folder, "stranger", Some("system:masters"));
}

fn config_map(name: &str) -> ConfigMap {
    serde_json::from_value(serde_json::json!({"metadata": {"name": name}})).unwrap()
}

#[tokio::test]
async fn envtest_finds_the_flags_it_looks_for() {
    let folder = tempfile::tempdir().unwrap();
    let assets = assets(folder.path()).await;
    let help = |name: &'static str| {
        let program = assets.join(name);
        async move {
            let output = run(&program, &["--help"], Path::new("/")).await;
            assert!(output.status.success());
            String::from_utf8(output.stdout).unwrap()
        }
    };
    let has = |text: &str, flag: &str| text.lines().any(|line| line.trim_start().starts_with(flag));
    assert!(has(&help("etcd").await, "--unsafe-no-fsync"));
    assert!(!has(&help("kube-apiserver").await, "--insecure-port"));
    let again =
        run(Path::new(env!("CARGO_BIN_EXE_opdev")), &["serve", "--envtest-assets", "assets"], folder.path());
    assert!(again.await.status.success(), "links of its own are made anew");
    fs::remove_file(assets.join("etcd")).unwrap();
    fs::write(assets.join("etcd"), "a real one").unwrap();
    let output =
        run(Path::new(env!("CARGO_BIN_EXE_opdev")), &["serve", "--envtest-assets", "assets"], folder.path());
    let said = String::from_utf8(output.await.stderr).unwrap();
    expect![[r#"
        error: TMP/assets/etcd is there already and is not a link to opdev
          to do: name a folder of its own, or take the file away
    "#]]
    .assert_eq(&masked(&said));
}

#[tokio::test]
async fn etcd_is_well() {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let folder = tempfile::tempdir().unwrap();
    let program = assets(folder.path()).await.join("etcd");
    let flags = ["--listen-client-urls=http://127.0.0.1:0", "--data-dir=/nowhere", "--unsafe-no-fsync=true"];
    let etcd = Started::start(&program, &flags.map(str::to_owned), None).await;
    let address = etcd.at.strip_prefix("http://").unwrap();
    let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
    stream.write_all(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
    let mut said = String::new();
    stream.read_to_string(&mut said).await.unwrap();
    assert!(said.starts_with("HTTP/1.1 200 OK\r\n") && said.contains("\"health\":\"true\""), "{said}");
    etcd.stop().await;
}

#[tokio::test]
async fn the_api_server_serves_as_envtest_asks() {
    let folder = tempfile::tempdir().unwrap();
    let program = assets(folder.path()).await.join("kube-apiserver");
    certificates(folder.path());
    let server = Started::start(&program, &flags(folder.path()), None).await;
    expect![[r#"
        opdev as kube-apiserver: without effect: --allow-privileged, --disable-admission-plugins, --etcd-servers, --of-another-time, --service-account-issuer, --service-account-key-file, --service-cluster-ip-range, --v
        opdev as kube-apiserver: at https://127.0.0.1:PORT, controllers: none
    "#]]
    .assert_eq(&masked(&server.said));

    let admin = client(folder.path(), &server.at, "admin").await;
    let maps: Api<ConfigMap> = Api::namespaced(admin.clone(), "default");
    maps.create(&PostParams::default(), &config_map("a")).await.unwrap();
    let mut watch = watcher(maps.clone(), watcher::Config::default()).applied_objects().boxed();
    let seen = tokio::time::timeout(LIMIT, watch.next()).await.unwrap().unwrap().unwrap();
    assert_eq!(seen.metadata.name.as_deref(), Some("a"));
    for path in ["/healthz", "/readyz"] {
        let request = http::Request::get(path).body(Vec::new()).unwrap();
        assert_eq!(admin.request_text(request).await.unwrap(), "ok");
    }
    let jane = client(folder.path(), &server.at, "jane").await;
    let refused = Api::<ConfigMap>::namespaced(jane, "default").get("a").await.unwrap_err();
    let kube::Error::Api(status) = refused else { panic!("{refused}") };
    assert_eq!(status.code, 403);
    expect![[r#"configmaps "a" is forbidden: User "jane" cannot get resource "configmaps" in API group "" in the namespace "default""#]]
    .assert_eq(&status.message);
    let stranger = client(folder.path(), &server.at, "stranger").await;
    let refused = Api::<ConfigMap>::namespaced(stranger, "default").get("a").await;
    assert!(refused.is_err(), "a certificate of another authority leads nowhere");
    server.stop().await;
}

#[tokio::test]
async fn controllers_can_be_switched_on() {
    let folder = tempfile::tempdir().unwrap();
    let program = assets(folder.path()).await.join("kube-apiserver");
    certificates(folder.path());
    let server = Started::start(&program, &flags(folder.path()), Some("cluster")).await;
    let admin = client(folder.path(), &server.at, "admin").await;
    let namespaces: Api<Namespace> = Api::all(admin.clone());
    let mut namespace = Namespace::default();
    namespace.metadata.name = Some("gone".to_owned());
    namespaces.create(&PostParams::default(), &namespace).await.unwrap();
    let maps: Api<ConfigMap> = Api::namespaced(admin, "gone");
    maps.create(&PostParams::default(), &config_map("a")).await.unwrap();
    namespaces.delete("gone", &DeleteParams::default()).await.unwrap();
    let gone = kube::runtime::wait::await_condition(namespaces, "gone", |namespace: Option<&Namespace>| {
        namespace.is_none()
    });
    tokio::time::timeout(LIMIT, gone).await.expect("the namespace goes").unwrap();
    assert_eq!(maps.get_opt("a").await.unwrap(), None);
    server.stop().await;

    let wrong = Command::new(&program).env("OPDEV_ENVTEST_CONTROLLERS", "some").output().await.unwrap();
    assert_eq!(wrong.status.code(), Some(1));
    expect![[r#"
        error: OPDEV_ENVTEST_CONTROLLERS=some: it may be none, cluster or all
    "#]]
    .assert_eq(&String::from_utf8_lossy(&wrong.stderr));
}
