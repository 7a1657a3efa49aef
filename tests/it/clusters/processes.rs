//! Two processes: `opdev serve`, and `opdev run` against it with a client certificate, a token and an exec
//! plugin.

use crate::inner_loop::demo_project;
use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};

const PATIENCE: Duration = Duration::from_secs(60);

pub(super) struct Process {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    said: Vec<String>,
}

impl Process {
    fn start(folder: &Path, arguments: &[&str]) -> Process {
        Self::start_in(folder, arguments, &[])
    }

    pub(super) fn start_in(folder: &Path, arguments: &[&str], environment: &[(&str, String)]) -> Process {
        let mut child = Command::new(env!("CARGO_BIN_EXE_opdev"))
            .args(arguments)
            .current_dir(folder)
            .env("HOME", folder)
            .env_remove("KUBECONFIG")
            .env_remove("XDG_STATE_HOME")
            .envs(environment.iter().map(|(name, value)| (*name, value.as_str())))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Process { child, lines, said: Vec::new() }
    }

    /// Reads on until a line has all these words.
    pub(super) async fn until(&mut self, words: &[&str]) -> String {
        let read = async {
            loop {
                let line = self.lines.next_line().await.unwrap().unwrap_or_else(|| panic!("it ended"));
                self.said.push(line.clone());
                if words.iter().all(|word| line.contains(word)) {
                    return line;
                }
            }
        };
        match tokio::time::timeout(PATIENCE, read).await {
            Ok(line) => line,
            Err(_) => panic!("no line with {words:?}:\n{}", self.said.join("\n")),
        }
    }

    /// Stops it; all that it has said.
    pub(super) async fn stop(mut self) -> Vec<String> {
        let id = self.child.id().unwrap().to_string();
        assert!(std::process::Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
        tokio::time::timeout(PATIENCE, self.child.wait()).await.expect("it ends").unwrap();
        while let Some(line) = self.lines.next_line().await.unwrap() {
            self.said.push(line);
        }
        self.said
    }
}

pub(super) fn api(client: &kube::Client, group: &str, version: &str, kind: &str) -> Api<DynamicObject> {
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
    Api::namespaced_with(client.clone(), "default", &resource)
}

/// The first issue's flow over a socket, as the user of this kubeconfig.
async fn flow(kubeconfig: &Path, client: &kube::Client) {
    let (_folder, root) = demo_project();
    let mut opdev = Process::start(&root, &["run", "--plain", "--kubeconfig", kubeconfig.to_str().unwrap()]);
    opdev.until(&["started", "on opdev"]).await;
    opdev.until(&["sources", "live", "Memcached"]).await;
    let memcacheds = api(client, "cache.my.domain", "v1alpha1", "Memcached");
    let sample: Value = serde_json::to_value(
        opdev_object::yaml::from_str(&std::fs::read_to_string(root.join("samples/memcached.yaml")).unwrap())
            .unwrap(),
    )
    .unwrap();
    let params = PatchParams::apply("test").force();
    memcacheds.patch("memcached-sample", &params, &Patch::Apply(sample)).await.unwrap();
    opdev.until(&["reconciled", "memcached-sample", "installed"]).await;

    let chart = root.join("charts/memcached/templates/deployment.yaml");
    let text = std::fs::read_to_string(&chart).unwrap();
    std::fs::write(&chart, text.replacen("spec:", "spec:\n  minReadySeconds: 1", 1)).unwrap();
    opdev.until(&["reconciled", "memcached-sample", "rewritten"]).await;

    let deployments = api(client, "apps", "v1", "Deployment");
    let drift = Patch::Merge(json!({"spec": {"replicas": 5}}));
    deployments.patch("memcached-sample", &PatchParams::default(), &drift).await.unwrap();
    opdev.until(&["reconciled", "memcached-sample", "repaired"]).await;
    let live = deployments.get("memcached-sample").await.unwrap();
    assert_eq!(
        (&live.data["spec"]["replicas"], &live.data["spec"]["minReadySeconds"]),
        (&json!(3), &json!(1))
    );

    memcacheds.delete("memcached-sample", &DeleteParams::default()).await.unwrap();
    opdev.until(&["reconciled", "memcached-sample", "uninstalled"]).await;
    assert!(deployments.get_opt("memcached-sample").await.unwrap().is_none());
    opdev.stop().await;
}

pub(super) struct Server {
    pub(super) process: Process,
    folder: tempfile::TempDir,
    pub(super) client: kube::Client,
    kubeconfig: Kubeconfig,
}

pub(super) async fn serve() -> Server {
    let folder = tempfile::tempdir().unwrap();
    let mut process = Process::start(folder.path(), &["serve"]);
    process.until(&["Ctrl-C"]).await;
    let kubeconfig = Kubeconfig::read_from(folder.path().join(".opdev/kubeconfig")).unwrap();
    let options = KubeConfigOptions::default();
    let config = kube::Config::from_custom_kubeconfig(kubeconfig.clone(), &options).await.unwrap();
    Server { process, folder, client: kube::Client::try_from(config).unwrap(), kubeconfig }
}

impl Server {
    /// The kubeconfig of the server with another user.
    pub(super) fn kubeconfig(&self, user: impl FnOnce(&mut Value)) -> PathBuf {
        let mut config = serde_json::to_value(&self.kubeconfig).unwrap();
        user(&mut config["users"][0]["user"]);
        let path = self.folder.path().join("kubeconfig");
        std::fs::write(&path, config.to_string()).unwrap();
        path
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn with_a_client_certificate() {
    let server = serve().await;
    let kubeconfig = server.kubeconfig(|user| {
        user.as_object_mut().unwrap().remove("token").unwrap();
    });
    flow(&kubeconfig, &server.client).await;
    server.process.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn with_a_token() {
    let server = serve().await;
    let kubeconfig = server.kubeconfig(|user| *user = json!({"token": user["token"]}));
    flow(&kubeconfig, &server.client).await;
    server.process.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn with_an_exec_plugin() {
    let server = serve().await;
    let script = server.folder.path().join("plugin.sh");
    let ran = server.folder.path().join("ran");
    let kubeconfig = server.kubeconfig(|user| {
        let token = user["token"].as_str().unwrap();
        // The first credential has ended when it is given, however quick the flow is; the next ones last.
        let text = format!(
            "#!/bin/sh\nends=2000-01-01T00:00:00Z\n[ -e {ran} ] && ends=2100-01-01T00:00:00Z\necho ran >> {ran}\n\
             cat <<EOF\n\
             {{\"apiVersion\": \"client.authentication.k8s.io/v1\", \"kind\": \"ExecCredential\",\n\
              \"status\": {{\"token\": \"{token}\", \"expirationTimestamp\": \"$ends\"}}}}\nEOF\n",
            ran = ran.display()
        );
        std::fs::write(&script, text).unwrap();
        // A relative command is one beside the kubeconfig.
        *user = json!({"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "./plugin.sh",
            "interactiveMode": "IfAvailable"}});
    });
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o700)).unwrap();
    flow(&kubeconfig, &server.client).await;
    assert!(std::fs::read_to_string(&ran).unwrap().lines().count() > 1, "an expired token was not renewed");
    server.process.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_opdev_in_the_same_project_is_named() {
    let (_folder, root) = demo_project();
    let mut first = Process::start(&root, &["run", "--plain", "--embedded"]);
    first.until(&["sources", "live"]).await;
    let journal = root.join(".opdev/events.jsonl");
    let kubeconfig = std::fs::read_to_string(root.join(".opdev/kubeconfig")).unwrap();
    for (arguments, said) in [
        (
            &["run", "--plain", "--embedded"][..],
            "another opdev runs in this project: opdev run --plain --embedded",
        ),
        (&["serve"], "is the kubeconfig of opdev run"),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_opdev"))
            .args(arguments)
            .current_dir(&root)
            .output()
            .await
            .unwrap();
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        let process = format!("process {}", first.child.id().unwrap());
        assert!(text.contains(said) && text.contains(&process) && text.contains("to do: "), "{text}");
    }
    assert_eq!(std::fs::read_to_string(root.join(".opdev/kubeconfig")).unwrap(), kubeconfig);
    assert!(
        std::fs::read_to_string(&journal).unwrap().contains("\"started\""),
        "the journal was started over"
    );
    // A process that was killed leaves nothing in the way.
    first.child.kill().await.unwrap();
    let mut next = Process::start(&root, &["run", "--plain", "--embedded"]);
    next.until(&["sources", "live"]).await;
    next.stop().await;
}

/// Each has a control plane, a socket and a program of its own.
#[tokio::test(flavor = "multi_thread")]
async fn two_projects_run_at_once() {
    let start = async || {
        let (folder, root) = demo_project();
        let settings = "operator: {command: [sh, op.sh], watch: [op.sh], stopAfter: 1s}\n";
        std::fs::write(root.join("opdev.yaml"), settings).unwrap();
        let script = "grep server: $KUBECONFIG\nexec sleep 1000\n";
        std::fs::write(root.join("op.sh"), script).unwrap();
        let trusted = Command::new(env!("CARGO_BIN_EXE_opdev"))
            .arg("trust")
            .current_dir(&root)
            .env("HOME", &root)
            .env_remove("XDG_STATE_HOME")
            .output()
            .await
            .unwrap();
        assert!(trusted.status.success(), "{trusted:?}");
        let mut opdev = Process::start(&root, &["run", "--plain", "--embedded"]);
        let server = opdev.until(&["server:", "https://127.0.0.1:"]).await;
        let server = server.split_once("https://").unwrap().1.trim_matches('"').to_owned();
        (folder, root, opdev, server)
    };
    let (_one, _, first, at) = start().await;
    let (_two, root, mut second, beside) = start().await;
    assert_ne!(at, beside);
    // The end of one is nothing to the other.
    first.stop().await;
    std::fs::write(root.join("op.sh"), "echo another version\nexec sleep 1000\n").unwrap();
    second.until(&["another version"]).await;
    second.stop().await;
}
