//! Where scenarios run, and what is kept of them: rights on their control planes, namespaces of their own on
//! a cluster, which is another `opdev serve` here, and recordings.

use super::{ci, command, demo_project, told, with_steps};
use crate::masked::masked;
use crate::served::Served;
use expect_test::expect;
use kube::Client;
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A control plane that stands for a cluster.
struct Cluster {
    /// Ends before its folder goes.
    _served: Served,
    folder: tempfile::TempDir,
}

async fn client(kubeconfig: Kubeconfig) -> Client {
    let config =
        kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
    Client::try_from(config).unwrap()
}

async fn get(client: &Client, path: &str) -> Result<Value, kube::Error> {
    client.request(http::Request::get(path).body(Vec::new()).unwrap()).await
}

async fn post(client: &Client, path: &str, object: &Value) -> Value {
    let request = http::Request::post(path).header("content-type", "application/json");
    client.request(request.body(object.to_string().into_bytes()).unwrap()).await.unwrap()
}

impl Cluster {
    /// Its context is named so; `opdev` is clearly local.
    fn start(context: &str) -> Cluster {
        let folder = tempfile::tempdir().unwrap();
        let served = Served::start(folder.path(), "made", &[]);
        let text = fs::read_to_string(folder.path().join("made")).unwrap();
        let named = text
            .replace("name: opdev\n", &format!("name: {context}\n"))
            .replace("cluster: opdev\n", &format!("cluster: {context}\n"))
            .replace("current-context: opdev\n", &format!("current-context: {context}\n"));
        fs::write(folder.path().join("kubeconfig"), named).unwrap();
        Cluster { _served: served, folder }
    }

    fn kubeconfig(&self) -> PathBuf {
        self.folder.path().join("kubeconfig")
    }

    async fn client(&self) -> Client {
        client(Kubeconfig::read_from(self.kubeconfig()).unwrap()).await
    }

    /// `opdev ci` with these arguments against it: the exit code and what it said.
    fn ci(&self, root: &Path, context: &str, args: &[&str]) -> (Option<i32>, String) {
        let kubeconfig = self.kubeconfig();
        let named = ["--context", context, "--kubeconfig", kubeconfig.to_str().unwrap()];
        let (own, program) = args.split_at(args.iter().position(|arg| *arg == "--").unwrap_or(args.len()));
        let output = ci(root, &[own, &named, program].concat());
        (output.status.code(), told(&output))
    }

    /// The names of what a list has.
    async fn names(&self, path: &str) -> Vec<String> {
        let list = get(&self.client().await, path).await.unwrap();
        let items = list["items"].as_array().unwrap().iter();
        items.map(|item| item["metadata"]["name"].as_str().unwrap().to_owned()).collect()
    }

    /// Checks that nothing was left behind.
    async fn assert_clean(&self) {
        let namespaces = self.names("/api/v1/namespaces").await;
        assert!(namespaces.iter().all(|name| !name.starts_with("opdev-ci-")), "{namespaces:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_scenario_has_a_namespace_of_its_own_on_a_cluster_and_leaves_nothing() {
    let cluster = Cluster::start("opdev");
    let (_folder, root, _) = with_steps();
    let all = ["samples/memcached.yaml", "samples/hello.yaml", "tests/e2e", "--parallel", "3"];
    let reports = ["--junit", "junit.xml", "--html", "report.html"];
    let (code, said) = cluster.ci(&root, "opdev", &[&all[..], &reports].concat());
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("ok    tests/e2e/memcached") && said.contains("3 of 3 scenarios passed"), "{said}");
    let junit = fs::read_to_string(root.join("junit.xml")).unwrap();
    assert!(junit.contains("<property name=\"plane\" value=\"opdev\"/>"), "{junit}");
    assert!(fs::read_to_string(root.join("report.html")).unwrap().contains("in a namespace of its own"));
    cluster.assert_clean().await;
    let kinds = cluster.names("/apis/apiextensions.k8s.io/v1/customresourcedefinitions").await;
    assert!(kinds.contains(&"memcacheds.cache.my.domain".to_owned()), "CRDs stay: {kinds:?}");
    for path in ["/apis/cache.my.domain/v1alpha1/memcacheds", "/apis/apps/v1/deployments"] {
        assert!(cluster.names(path).await.is_empty(), "{path}");
    }
    // Again, with the CRDs there, and a program that is told where it may work.
    let script = "case \"$NAMESPACE\" in opdev-ci-*) test -n \"$KUBECONFIG\" && exit 7;; esac";
    let (code, said) = cluster.ci(&root, "opdev", &["--", "sh", "-c", script]);
    assert_eq!(code, Some(7), "{said}");
    cluster.assert_clean().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_that_is_not_clearly_local_is_written_to_only_at_the_users_word() {
    let cluster = Cluster::start("prod");
    let (_folder, root) = demo_project();
    let (code, said) = cluster.ci(&root, "prod", &["samples/hello.yaml"]);
    let expected = "error: the context prod is not clearly local, so opdev writes nothing to it\n  why: neither its context nor \
                    its cluster entry is named as a tool for local clusters does\n  to do: name a cluster that is there for \
                    tests, or add --allow-context prod\n";
    assert_eq!((code, said.as_str()), (Some(3), expected));
    assert!(cluster.names("/apis/apiextensions.k8s.io/v1/customresourcedefinitions").await.is_empty());
    let (code, said) = cluster.ci(&root, "prod", &["samples/hello.yaml", "--allow-context", "prod"]);
    assert_eq!(code, Some(0), "{said}");
    cluster.assert_clean().await;
    let (code, said) = cluster.ci(&root, "dev", &["samples/hello.yaml"]);
    assert_eq!(code, Some(3), "{said}");
    expect![[r#"
        error: the kubeconfig has no context dev; it has prod
          where: TMP/kubeconfig
          to do: name one with --context
    "#]]
    .assert_eq(&masked(&said));
    // An option that counts on a control plane of its own only is wrong usage.
    for option in ["--rbac", "--controllers=none", "--strict-webhooks"] {
        assert_eq!(cluster.ci(&root, "prod", &[option]).0, Some(2), "{option}");
    }
    assert_eq!(ci(&root, &["--allow-context", "prod"]).status.code(), Some(2));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_fails_on_a_cluster_is_removed_too() {
    let cluster = Cluster::start("opdev");
    let (_folder, root) = demo_project();
    let service = root.join("charts/memcached/templates/service.yaml");
    let text = fs::read_to_string(&service).unwrap();
    fs::write(&service, text.replace("targetPort: memcached", "targetPort: {a: b}")).unwrap();
    let (code, said) = cluster.ci(&root, "opdev", &["samples/memcached.yaml", "--timeout", "5s"]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("FAIL  samples/memcached.yaml") && said.contains("settled: "), "{said}");
    cluster.assert_clean().await;
    fs::write(&service, text).unwrap();
    // A signal ends it as well, once the operator has answered the finalizers.
    let kubeconfig = cluster.kubeconfig();
    let script = "touch began; sleep 1000";
    let args = ["--context", "opdev", "--kubeconfig", kubeconfig.to_str().unwrap(), "--", "sh", "-c", script];
    let mut running = command(&root, &args).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    while !root.join("began").exists() {
        assert!(running.try_wait().unwrap().is_none(), "opdev has ended");
        std::thread::yield_now();
    }
    assert!(cluster.names("/api/v1/namespaces").await.iter().any(|name| name.starts_with("opdev-ci-")));
    assert!(Command::new("kill").args(["-TERM", &running.id().to_string()]).status().unwrap().success());
    let output = running.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", told(&output));
    expect![[r#"
        The namespaces of the scenarios are removed; once more leaves them as they are.
    "#]]
    .assert_eq(&told(&output));
    cluster.assert_clean().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_written_outside_of_the_namespace() {
    let cluster = Cluster::start("opdev");
    let (_folder, root, steps) = with_steps();
    let hello = fs::read_to_string(root.join("samples/hello.yaml")).unwrap();
    let namespace = "apiVersion: v1\nkind: Namespace\nmetadata: {name: theirs}\n";
    let elsewhere = hello.replacen("metadata:\n", "metadata:\n  namespace: default\n", 1);
    let refused = |args: &[&str]| {
        let (code, said) = cluster.ci(&root, "opdev", args);
        assert_eq!(code, Some(3), "{said}");
        said
    };
    fs::write(root.join("samples/own.yaml"), format!("{namespace}---\n{hello}")).unwrap();
    let said = refused(&["samples/own.yaml"]);
    assert!(
        said.contains("samples/own.yaml: Namespace theirs is in no namespace") && said.contains("to do:"),
        "{said}"
    );
    fs::write(root.join("samples/own.yaml"), elsewhere).unwrap();
    let said = refused(&["samples/own.yaml"]);
    assert!(said.contains("is for the namespace default") && said.contains("metadata.namespace"), "{said}");
    fs::write(steps.join("00-install-more.yaml"), namespace).unwrap();
    let (code, said) = cluster.ci(&root, "opdev", &["tests/e2e"]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("00-install-more.yaml:1: Namespace theirs is in no namespace"), "{said}");
    for (says, why) in [
        ("namespace: theirs", "the test is for the namespace theirs"),
        ("startControlPlane: true", "startControlPlane: the test expects pods that stay as they are"),
    ] {
        let suite = format!("kind: TestSuite\n{says}\ntestDirs: [tests/e2e]\n");
        fs::write(root.join("kuttl-test.yaml"), suite).unwrap();
        let said = refused(&["kuttl-test.yaml"]);
        assert!(said.contains(why) && said.contains("to do:"), "{said}");
    }
    assert!(!cluster.names("/api/v1/namespaces").await.contains(&"theirs".to_owned()));
    cluster.assert_clean().await;

    // Another operator of the same project would answer for this one.
    let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "demo-controller-manager", "labels": {"control-plane": "controller-manager"}},
        "spec": {"replicas": 2, "selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}},
            "spec": {"containers": [{"name": "manager", "image": "controller"}]}}}});
    post(&cluster.client().await, "/apis/apps/v1/namespaces/default/deployments", &deployment).await;
    let said = refused(&["samples/hello.yaml"]);
    assert!(
        said.contains(
            "this operator runs on opdev already: Deployment default/demo-controller-manager (2 replicas)"
        ),
        "{said}"
    );
    assert!(said.contains("scale deployment demo-controller-manager --replicas 0"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_have_the_rights_of_their_account_only_with_rbac() {
    let (_folder, root) = demo_project();
    let script = "cp \"$KUBECONFIG\" part && mv part reached && while [ -e reached ]; do sleep 0.02; done";
    for (option, allowed) in [(Some("--rbac"), false), (None, true)] {
        let args = [option.into_iter().collect::<Vec<_>>(), vec!["--", "sh", "-c", script]].concat();
        let running = command(&root, &args).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        while !root.join("reached").exists() {
            std::thread::yield_now();
        }
        let kubeconfig = Kubeconfig::read_from(root.join("reached")).unwrap();
        let admin = client(kubeconfig.clone()).await;
        let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "dev"}});
        post(&admin, "/api/v1/namespaces/default/serviceaccounts", &account).await;
        let request = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}});
        let token = post(&admin, "/api/v1/namespaces/default/serviceaccounts/dev/token", &request).await;
        let mut theirs = kubeconfig;
        let auth = theirs.auth_infos[0].auth_info.as_mut().unwrap();
        (auth.client_certificate_data, auth.client_key_data) = (None, None);
        auth.token = Some(token["status"]["token"].as_str().unwrap().to_owned().into());
        let listed = get(&client(theirs).await, "/api/v1/secrets").await;
        let refused = matches!(&listed, Err(kube::Error::Api(status)) if status.code == 403);
        assert_eq!((listed.is_ok(), refused), (allowed, !allowed), "{option:?}: {listed:?}");
        assert!(get(&admin, "/api/v1/secrets").await.is_ok(), "the kubeconfig is an administrator's");
        fs::remove_file(root.join("reached")).unwrap();
        let output = running.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", told(&output));
    }
}

#[test]
fn a_recording_has_every_event_of_its_scenario_and_no_secret() {
    let (_folder, root) = demo_project();
    let planted = ["pl4nted-in-a-value", "cGw0bnRlZC1pbi1hLXZhbHVl", "pl4nted-in-a-password"];
    let secret = format!(
        "apiVersion: v1\nkind: Secret\nmetadata: {{name: {{{{ .Release.Name }}}}-keys}}\nstringData: {{key: {}}}\n",
        planted[0]
    );
    fs::write(root.join("charts/hello/templates/secret.yaml"), secret).unwrap();
    let sample = fs::read_to_string(root.join("samples/hello.yaml")).unwrap();
    let sample = sample.replacen("spec:\n", &format!("spec:\n  password: {}\n", planted[2]), 1);
    fs::write(root.join("samples/hello.yaml"), sample).unwrap();
    let args = ["samples/hello.yaml", "samples/memcached.yaml", "--record", "kept/of ci", "--repeat", "2"];
    let output = ci(&root, &args);
    assert_eq!(output.status.code(), Some(0), "{}", told(&output));
    let folder = root.join("kept/of ci/samples");
    for name in ["hello.yaml", "hello.yaml-2", "memcached.yaml", "memcached.yaml-2"] {
        let files: Vec<_> =
            fs::read_dir(folder.join(name)).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert_eq!(files, [folder.join(name).join("events.jsonl")], "no kubeconfig and no objects are kept");
        assert_eq!(fs::metadata(&files[0]).unwrap().permissions().mode() & 0o777, 0o600);
        let text = fs::read_to_string(&files[0]).unwrap();
        for secret in planted {
            assert!(!text.contains(secret), "{name} has {secret}");
        }
        let events: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let of = |kind: &str| events.iter().filter(|event| event["event"] == kind).count();
        assert!(of("started") == 1 && of("reconciled") >= 3 && of("stopping") == 1, "{name}");
    }
    let hello = fs::read_to_string(folder.join("hello.yaml/events.jsonl")).unwrap();
    assert!(hello.contains("example-keys") || hello.contains("-keys"), "the Secret itself is told");
    assert!(!hello.contains("\"Memcached\",\"namespace\""), "another scenario's");
    let mut tail = Command::new(env!("CARGO_BIN_EXE_opdev"));
    let tail =
        tail.args(["tail", "--file", "kept/of ci/samples/hello.yaml"]).current_dir(&root).output().unwrap();
    assert_eq!(tail.status.code(), Some(0), "{}", told(&tail));
    assert!(told(&tail).contains("reconciled Hello default/example installed"), "{}", told(&tail));
    // A program's recording has a name of its own.
    let output = ci(&root, &["--record", "kept", "--", "true"]);
    assert_eq!(output.status.code(), Some(0), "{}", told(&output));
    assert!(root.join("kept/program/events.jsonl").exists());
    fs::write(root.join("file"), "").unwrap();
    let output = ci(&root, &["--record", "file/below"]);
    assert_eq!(output.status.code(), Some(3), "{}", told(&output));
    expect![[r#"
        error: the folder file/below cannot be created: Not a directory (os error 20)
    "#]]
    .assert_eq(&told(&output));
}
