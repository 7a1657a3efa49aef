//! Kubeconfigs of every kind against servers that check them, and the words for their errors. Each failure
//! ends opdev before a screen opens.

use super::door::{Door, write_kubeconfig};
use crate::inner_loop::demo_project;
use opdev_cluster::{Choice, Connection};
use opdev_controlplane::{ControlPlane, Listen};
use opdev_os::private_folder::PrivateFolder;
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;

async fn connect(kubeconfig: &Path) -> Result<Connection, String> {
    let choice = Choice { kubeconfig: Some(kubeconfig.to_owned()), ..Choice::default() };
    let unused = tempfile::tempdir().unwrap();
    let unused = PrivateFolder::make(unused.path()).unwrap();
    Connection::open(&choice, &unused).await.map_err(|error| format!("{error:#}"))
}

/// Checks the words of a failure: they need the fault, the entry, the file and the way out.
async fn explained(kubeconfig: &Path, said: &[&str]) {
    let words = connect(kubeconfig).await.err().expect("it cannot connect");
    for text in said.iter().chain(&[kubeconfig.to_str().unwrap(), "--embedded"]) {
        assert!(words.contains(text), "{text:?} is missing in: {words}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_and_who_one_poses_as() {
    let door = Door::open().await;
    door.require("good");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    std::fs::write(&file, "good\n").unwrap();
    let as_jane = json!({"token": "good", "as": "jane", "as-groups": ["a", "b"], "as-uid": "7",
        "as-user-extra": {"reason": ["test"]}});
    for user in [json!({"token": "good"}), json!({"tokenFile": file}), as_jane] {
        let connection = connect(&door.kubeconfig(folder.path(), "prod", &user)).await.unwrap();
        assert_eq!(connection.namespace, "default");
        connection.close().await;
    }
    assert!(door.header("impersonate-user").contains(&"jane".to_owned()));
    assert!(door.header("impersonate-group").contains(&"b".to_owned()));
    assert!(door.header("impersonate-uid").contains(&"7".to_owned()));
    assert!(door.header("impersonate-extra-reason").contains(&"test".to_owned()));
    let refused = door.kubeconfig(folder.path(), "prod", &json!({"token": "bad-secret"}));
    explained(&refused, &["401", "prod", "user jane", "the token is not accepted"]).await;
    let words = connect(&refused).await.err().unwrap();
    assert!(!words.contains("bad-secret"), "{words}");
    let missing = door.kubeconfig(folder.path(), "prod", &json!({"tokenFile": "nowhere"}));
    explained(&missing, &["token file", "nowhere", "user jane"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn plugins_run_again_when_their_credential_ends() {
    let door = Door::open().await;
    door.require("from-plugin");
    let folder = tempfile::tempdir().unwrap();
    let ran = folder.path().join("ran");
    let print = |token: &str, expires: &str| {
        format!(
            r#"echo x >> {}; echo '{{"apiVersion":"client.authentication.k8s.io/v1beta1","kind":"ExecCredential","status":{{"token":"{token}"{expires}}}}}'"#,
            ran.display()
        )
    };
    let exec = |script: String, more: Value| {
        let mut exec = json!({"apiVersion": "client.authentication.k8s.io/v1beta1", "command": "sh", "args": ["-c", script]});
        exec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({"exec": exec})
    };
    let old = print("from-plugin", r#","expirationTimestamp":"2001-01-01T00:00:00Z""#);
    let user = exec(old, json!({"env": [{"name": "X", "value": "y"}], "provideClusterInfo": true}));
    let connection = connect(&door.kubeconfig(folder.path(), "prod", &user)).await.unwrap();
    let times = |path: &Path| std::fs::read_to_string(path).unwrap().lines().count();
    let before = times(&ran);
    connection.client.apiserver_version().await.unwrap();
    assert!(times(&ran) > before, "a credential that has ended was used");
    connection.close().await;

    let good = print("from-plugin", "");
    for (user, said) in [
        (exec(good.clone(), json!({"interactiveMode": "Always"})), "interactiveMode: Always"),
        (exec("echo no session >&2; exit 3".to_owned(), json!({})), "exit code 3: no session"),
        (exec(good, json!({"command": "/nowhere/plugin", "installHint": "get it"})), "get it"),
        (exec(print("other", ""), json!({})), "401"),
    ] {
        let kubeconfig = door.kubeconfig(folder.path(), "prod", &user);
        explained(&kubeconfig, &[said, "user jane"]).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn certificates_and_authorities() {
    let (plane, stranger) = (ControlPlane::start().await.unwrap(), ControlPlane::start().await.unwrap());
    let listening = plane.listen(Listen::default()).await.unwrap();
    let other = stranger.listen(Listen::default()).await.unwrap();
    let parts = |text: &str| {
        let value = |key: &str| {
            let found = text.lines().find_map(|line| line.trim().strip_prefix(&format!("{key}: ")));
            found.unwrap().to_owned()
        };
        (
            value("certificate-authority-data"),
            json!({"client-certificate-data": value("client-certificate-data"),
            "client-key-data": value("client-key-data")}),
        )
    };
    let ((authority, user), (wrong, wrong_user)) = (parts(&listening.kubeconfig), parts(&other.kubeconfig));
    let folder = tempfile::tempdir().unwrap();
    let server = format!("https://{}", listening.address);
    let kubeconfig = |cluster: Value, user: &Value| write_kubeconfig(folder.path(), "prod", &cluster, user);
    let good = json!({"server": server, "certificate-authority-data": authority});

    let connection = connect(&kubeconfig(good.clone(), &user)).await.unwrap();
    assert!(!connection.cluster.insecure);
    connection.close().await;
    let named =
        json!({"server": server, "certificate-authority-data": authority, "tls-server-name": "kubernetes"});
    connect(&kubeconfig(named, &user)).await.unwrap().close().await;
    let unchecked = json!({"server": server, "insecure-skip-tls-verify": true});
    let connection = connect(&kubeconfig(unchecked, &user)).await.unwrap();
    assert!(connection.cluster.insecure, "it is shown");
    connection.close().await;

    let unknown = json!({"server": server, "certificate-authority-data": wrong});
    explained(&kubeconfig(unknown, &user), &["authority that the kubeconfig does not name", "cluster prod"])
        .await;
    let misnamed =
        json!({"server": server, "certificate-authority-data": authority, "tls-server-name": "elsewhere"});
    explained(&kubeconfig(misnamed, &user), &["not for this name", "tls-server-name"]).await;
    explained(&kubeconfig(good, &wrong_user), &["401", "the client certificate, valid until", "user jane"])
        .await;
    explained(
        &kubeconfig(json!({"server": "https://127.0.0.1:1"}), &json!({})),
        &["does not answer", "nothing listens there", "cluster prod", "kubectl --context prod version"],
    )
    .await;
    plane.stop().await;
    stranger.stop().await;
}

/// An HTTP proxy that lets CONNECT through and counts.
async fn proxy() -> (String, std::sync::Arc<std::sync::atomic::AtomicUsize>) {
    use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let count = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let counted = std::sync::Arc::clone(&count);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let counted = std::sync::Arc::clone(&counted);
            tokio::spawn(async move {
                let mut stream = BufReader::new(stream);
                let mut first = String::new();
                stream.read_line(&mut first).await.unwrap();
                loop {
                    let mut line = String::new();
                    stream.read_line(&mut line).await.unwrap();
                    if line.trim().is_empty() {
                        break;
                    }
                }
                let target = first.split(' ').nth(1).unwrap().to_owned();
                assert!(first.starts_with("CONNECT "), "{first}");
                counted.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
                let mut out = tokio::net::TcpStream::connect(target).await.unwrap();
                stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
                let _ = tokio::io::copy_bidirectional(&mut stream, &mut out).await;
            });
        }
    });
    (format!("http://{address}"), count)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_proxy_of_the_kubeconfig_is_used() {
    let plane = ControlPlane::start().await.unwrap();
    let listening = plane.listen(Listen::default()).await.unwrap();
    let (url, count) = proxy().await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config");
    let text = listening.kubeconfig.replace("    server:", &format!("    proxy-url: {url}\n    server:"));
    std::fs::write(&path, text).unwrap();
    connect(&path).await.unwrap().close().await;
    assert!(count.load(std::sync::atomic::Ordering::SeqCst) > 0);
    plane.stop().await;
}

#[test]
fn a_kubeconfig_that_cannot_be_used_ends_opdev_before_the_screen() {
    let (_folder, root) = demo_project();
    std::fs::write(root.join("broken"), "clusters: [{name: c, cluster: {server: 'x', token: hidden\n")
        .unwrap();
    let run = |arguments: &[&str], kubeconfig: Option<&str>| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_opdev"));
        command
            .args(["run", "--plain"])
            .args(arguments)
            .current_dir(&root)
            .env("HOME", &root)
            .env_remove("KUBECONFIG");
        if let Some(kubeconfig) = kubeconfig {
            command.env("KUBECONFIG", kubeconfig);
        }
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    for (said, text) in [
        ("there is no kubeconfig nowhere", run(&["--kubeconfig", "nowhere"], None)),
        ("no kubeconfig file exists: /nowhere/a, /nowhere/b", run(&[], Some("/nowhere/a:/nowhere/b"))),
        ("the kubeconfig broken cannot be used", run(&["--kubeconfig", "broken"], None)),
        ("so there is no context prod", run(&["--context", "prod"], None)),
    ] {
        assert!(text.contains(said) && text.contains("--embedded") && !text.contains("hidden"), "{text}");
    }
}
