//! `opdev install`, `deploy`, `undeploy` and `uninstall` on `opdev serve`, as the tutorials have `make
//! install`, `make deploy` and `make undeploy`.

use crate::masked::masked;
use crate::oracle::oracle;
use crate::served::Served;
use expect_test::expect;
use kube::api::{Api, DynamicObject, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Client, Config};
use serde_json::{Value, json};
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

/// A server of its own and a project of the demo's chart.
struct Stage {
    /// Ends before its folder goes.
    _served: Served,
    folder: tempfile::TempDir,
    root: PathBuf,
}

fn opdev(root: &Path, home: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_opdev"))
        .args(args)
        .current_dir(root)
        .env("HOME", home)
        .env_remove("KUBECONFIG")
        .output()
        .unwrap()
}

fn text(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    text(&output.stdout) + &text(&output.stderr)
}

impl Stage {
    /// A project of the demo's chart.
    fn new() -> Stage {
        let chart = Path::new(env!("CARGO_MANIFEST_DIR")).join("charts/memcached");
        Stage::of(&["--group", "cache", "--helm-chart", chart.to_str().unwrap()], &[])
    }

    /// A project that `opdev init` makes with these arguments, and a server with those.
    fn of(init: &[&str], serve: &[&str]) -> Stage {
        let folder = tempfile::Builder::new().prefix("deploy-").tempdir().unwrap();
        let served = Served::start(folder.path(), "kubeconfig", serve);
        let root = folder.path().join("project");
        fs::create_dir(&root).unwrap();
        let init = [&["init", "--project-name", "cache-operator"], init].concat();
        let made = opdev(&root, folder.path(), &init);
        assert!(made.status.success(), "{}", text(&made));
        Stage { _served: served, folder, root }
    }

    fn kubeconfig(&self) -> PathBuf {
        self.folder.path().join("kubeconfig")
    }

    fn run(&self, args: &[&str]) -> (Option<i32>, String) {
        let kubeconfig = self.kubeconfig();
        let args = [args, &["--kubeconfig", kubeconfig.to_str().unwrap()]].concat();
        let output = opdev(&self.root, self.folder.path(), &args);
        (output.status.code(), text(&output))
    }

    fn done(&self, args: &[&str]) -> String {
        let (code, said) = self.run(args);
        assert_eq!(code, Some(0), "{args:?}: {said}");
        said
    }

    fn refused(&self, args: &[&str]) -> String {
        let (code, said) = self.run(args);
        assert_eq!(code, Some(1), "{args:?}: {said}");
        said
    }

    async fn client(&self) -> Client {
        let read = Kubeconfig::read_from(self.kubeconfig()).unwrap();
        let config = Config::from_custom_kubeconfig(read, &KubeConfigOptions::default()).await.unwrap();
        Client::try_from(config).unwrap()
    }

    /// The object at a path, or nothing.
    async fn get(&self, path: &str) -> Option<Value> {
        let request = http::Request::get(path).body(Vec::new()).unwrap();
        self.client().await.request(request).await.ok()
    }

    /// Sends an object to a path; the answer.
    async fn post(&self, path: &str, object: &Value) -> Value {
        let request = http::Request::post(path).header("content-type", "application/json");
        self.client().await.request(request.body(object.to_string().into_bytes()).unwrap()).await.unwrap()
    }

    /// The real kubectl at this server.
    fn kubectl(&self, args: &[&str], input: &str) -> String {
        let mut child = Command::new(oracle("kubectl"))
            .args(args)
            .current_dir(&self.root)
            .env("KUBECONFIG", self.kubeconfig())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "kubectl {args:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    async fn create_memcached(&self, spec: Value) {
        let resource = ApiResource::from_gvk(&self.kind());
        let api: Api<DynamicObject> = Api::namespaced_with(self.client().await, "default", &resource);
        let mut object = DynamicObject::new("mine", &resource);
        object.metadata.finalizers = Some(vec!["example.com/kept".to_owned()]);
        object.data = json!({ "spec": spec });
        api.create(&PostParams::default(), &object).await.unwrap();
    }

    /// The kind as the project names it.
    fn kind(&self) -> GroupVersionKind {
        let watches = fs::read_to_string(self.root.join("watches.yaml")).unwrap();
        let of = |key: &str| {
            let line =
                watches.lines().find_map(|line| line.trim().trim_start_matches("- ").strip_prefix(key));
            line.unwrap().trim_start_matches(':').trim().to_owned()
        };
        GroupVersionKind::gvk(&of("group"), &of("version"), &of("kind"))
    }

    /// Lets the project watch one more kind with its chart; the chart's folder.
    fn edit_watches_for(&self, group: &str, version: &str, kind: &str) -> String {
        let watches = fs::read_to_string(self.root.join("watches.yaml")).unwrap();
        let chart =
            watches.lines().find_map(|line| line.trim().strip_prefix("chart:")).unwrap().trim().to_owned();
        self.edit("watches.yaml", |text| {
            format!("{text}\n- group: {group}\n  version: {version}\n  kind: {kind}\n  chart: {chart}\n")
        });
        chart
    }

    fn edit(&self, path: &str, edit: impl FnOnce(&str) -> String) {
        let path = self.root.join(path);
        let before = fs::read_to_string(&path).unwrap();
        let after = edit(&before);
        assert_ne!(before, after, "{}: nothing is changed", path.display());
        fs::write(path, after).unwrap();
    }
}

const DEPLOYMENT: &str =
    "/apis/apps/v1/namespaces/cache-operator-system/deployments/cache-operator-controller-manager";
const IMAGE: [&str; 3] = ["deploy", "--image", "example.com/op:v1"];

#[tokio::test(flavor = "multi_thread")]
async fn the_steps_of_the_tutorials() {
    let stage = Stage::new();
    // make install
    let said = stage.done(&["install"]);
    expect![[r#"
        cluster: opdev (https://127.0.0.1:PORT)
        customresourcedefinition.apiextensions.k8s.io/memcacheds.cache.my.domain created
    "#]]
    .assert_eq(&masked(&said));
    expect![[r#"
        cluster: opdev (https://127.0.0.1:PORT)
        customresourcedefinition.apiextensions.k8s.io/memcacheds.cache.my.domain unchanged
    "#]]
    .assert_eq(&masked(&stage.done(&["install"])));

    // make deploy
    let said = stage.refused(&["deploy"]);
    expect![[r#"
        error: deployment.apps/cache-operator-controller-manager still has the image controller:latest, which no registry has
          to do: name the operator's image: `opdev deploy --image REGISTRY/NAME:TAG`; --save keeps it in the files
    "#]]
    .assert_eq(&said);
    assert_eq!(stage.get(DEPLOYMENT).await, None);
    let tried = stage.done(&[&IMAGE[..], &["--dry-run", "server"]].concat());
    assert!(tried.contains("namespace/cache-operator-system would be created"), "{tried}");
    assert_eq!(stage.get(DEPLOYMENT).await, None, "a dry run writes nothing");
    let said = stage.done(&IMAGE);
    let at = |part: &str| said.find(part).unwrap_or_else(|| panic!("no {part:?} in\n{said}"));
    assert!(
        at("namespace/") < at("customresourcedefinition")
            && at("customresourcedefinition") < at("serviceaccount/")
    );
    assert!(said.contains("deployment.apps/cache-operator-controller-manager is ready"), "{said}");
    let live = stage.get(DEPLOYMENT).await.unwrap();
    assert_eq!(live["spec"]["template"]["spec"]["containers"][0]["image"], "example.com/op:v1");
    let again = stage.done(&IMAGE);
    assert!(!again.contains(" created") && !again.contains(" configured"), "{again}");
    let files = fs::read_to_string(stage.root.join("config/manager/kustomization.yaml")).unwrap();
    assert!(!files.contains("example.com/op"), "the files are left as they are");
    stage.done(&[&IMAGE[..], &["--save"]].concat());
    let files = fs::read_to_string(stage.root.join("config/manager/kustomization.yaml")).unwrap();
    expect![[r#"
        resources:
        - manager.yaml
        apiVersion: kustomize.config.k8s.io/v1beta1
        kind: Kustomization
        images:
        - name: controller
          newName: example.com/op
          newTag: v1
    "#]]
    .assert_eq(&files);

    // make undeploy
    stage.create_memcached(json!({})).await;
    let said = stage.refused(&["undeploy"]);
    expect![[r#"
        cluster: opdev (https://127.0.0.1:PORT)
        error: nothing was deleted, for objects would go that nobody has named:
          Memcached: 1 object
            default/mine (the operator has to answer its finalizer example.com/kept)
          to do: delete them first, or let them go with --yes
    "#]]
    .assert_eq(&masked(&said));
    assert!(stage.get(DEPLOYMENT).await.is_some(), "nothing was deleted");
    let said = stage.refused(&["undeploy", "--yes", "--wait", "1s"]);
    assert!(stage.get(DEPLOYMENT).await.is_some(), "the operator stays: {said}");
    expect![[r#"
        cluster: opdev (https://127.0.0.1:PORT)
        Memcached default/mine deleted
        error: these objects are still there, so their definition and the operator stay:
          Memcached default/mine (the operator has to answer its finalizer example.com/kept)
          to do: start the operator (`opdev run`), which answers the finalizers, and try again; or take them off
    "#]]
    .assert_eq(&masked(&said));
    let gvk = stage.kind();
    let path = format!("/apis/{}/{}/namespaces/default/memcacheds/mine", gvk.group, gvk.version);
    let patch = json!({ "metadata": { "finalizers": null } }).to_string().into_bytes();
    let request = http::Request::patch(path)
        .header("content-type", "application/merge-patch+json")
        .body(patch)
        .unwrap();
    stage.client().await.request::<Value>(request).await.unwrap();
    let said = stage.done(&["undeploy", "--yes"]);
    assert!(said.contains("namespace/cache-operator-system deleted"), "{said}");
    assert_eq!(stage.get("/api/v1/namespaces/cache-operator-system").await, None);
    assert!(stage.refused(&["undeploy"]).contains("--ignore-not-found"));
    stage.done(&["undeploy", "--ignore-not-found"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn releases_are_uninstalled_where_no_operator_is_left_to_do_it() {
    let stage = Stage::new();
    stage.done(&["install"]);
    let mut operator = Command::new(env!("CARGO_BIN_EXE_opdev"))
        .args(["operate", "--metrics-bind-address=0", "--health-probe-bind-address=0", "--kubeconfig"])
        .arg(stage.kubeconfig())
        .current_dir(&stage.root)
        .env("HOME", stage.folder.path())
        .env_remove("KUBERNETES_SERVICE_HOST")
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let client = stage.client().await;
    let resource = ApiResource::from_gvk(&stage.kind());
    let memcacheds: Api<DynamicObject> = Api::namespaced_with(client.clone(), "default", &resource);
    let mut object = DynamicObject::new("mine", &resource);
    object.data = json!({ "spec": {} });
    memcacheds.create(&PostParams::default(), &object).await.unwrap();
    let deployed = |there: Option<&DynamicObject>| {
        there.is_some_and(|there| there.data.pointer("/status/deployedRelease/name").is_some())
    };
    let waiting = kube::runtime::wait::await_condition(memcacheds, "mine", deployed);
    tokio::time::timeout(Duration::from_secs(60), waiting).await.expect("the release").unwrap();
    operator.kill().unwrap();
    operator.wait().unwrap();
    let made = "/apis/apps/v1/namespaces/default/deployments";
    assert_ne!(stage.get(made).await.unwrap()["items"], json!([]));
    // A user who does not wait that long is told what to do, as before.
    let said = stage.refused(&["uninstall", "--yes", "--wait", "1s"]);
    expect![[r#"
        cluster: opdev (https://127.0.0.1:PORT)
        Memcached default/mine deleted
        error: these objects are still there, so their definition and the operator stay:
          Memcached default/mine (the operator has to answer its finalizer helm.sdk.operatorframework.io/uninstall-release)
          to do: start the operator (`opdev run`), which answers the finalizers, and try again; or take them off
    "#]]
    .assert_eq(&masked(&said));
    let said = stage.done(&["uninstall", "--yes"]);
    expect![[r#"
        cluster: opdev (https://127.0.0.1:PORT)
        Memcached default/mine deleted
        no operator answers the finalizers of Memcached objects, so opdev uninstalls their releases itself
        customresourcedefinition.apiextensions.k8s.io/memcacheds.cache.my.domain deleted
    "#]]
    .assert_eq(&masked(&said));
    assert_eq!(stage.get(made).await.unwrap()["items"], json!([]));
    let secrets = stage.get("/api/v1/namespaces/default/secrets?labelSelector=owner%3Dhelm").await.unwrap();
    assert_eq!(secrets["items"], json!([]), "the release's records are gone");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_changed_crd_does_to_objects_is_said_first() {
    let stage = Stage::new();
    let bases = stage.root.join("config/crd/bases");
    let file = fs::read_dir(&bases).unwrap().next().unwrap().unwrap().path();
    let name = file.strip_prefix(&stage.root).unwrap().to_str().unwrap().to_owned();
    // The scaffolded spec takes everything; here it has one field.
    let mut crd: Value = opdev_object::yaml::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    let spec = "/spec/versions/0/schema/openAPIV3Schema/properties/spec";
    *crd.pointer_mut(spec).unwrap() =
        json!({ "type": "object", "properties": { "size": { "type": "integer" } } });
    fs::write(&file, opdev_object::yaml::to_string(&crd)).unwrap();
    stage.done(&["install"]);
    stage.create_memcached(json!({ "size": 3 })).await;
    *crd.pointer_mut(spec).unwrap() =
        json!({ "type": "object", "properties": { "other": { "type": "integer" } } });
    fs::write(stage.root.join(name), opdev_object::yaml::to_string(&crd)).unwrap();
    for command in [&["install"][..], &IMAGE[..]] {
        let said = stage.refused(command);
        expect![[r#"
            cluster: opdev (https://127.0.0.1:PORT)
            memcacheds.cache.my.domain:
              LOSS .spec.size: renamed size → other: stored values of size are lost, they are pruned at the next write; 1 object loses it (config/crd/bases/cache.my.domain_memcacheds.yaml)
              Memcached default/mine .spec.size: its value is lost (integer)
            error: nothing was applied: memcacheds.cache.my.domain: .spec.size is renamed to .spec.other: stored values are lost
              to do: correct the type, or add --accept-impact if the objects may break or lose data
        "#]]
        .assert_eq(&masked(&said));
    }
    assert_eq!(stage.get("/api/v1/namespaces/cache-operator-system").await, None);
    expect![[r#"
        cluster: opdev (https://127.0.0.1:PORT)
        memcacheds.cache.my.domain:
          LOSS .spec.size: renamed size → other: stored values of size are lost, they are pruned at the next write; 1 object loses it (config/crd/bases/cache.my.domain_memcacheds.yaml)
          Memcached default/mine .spec.size: its value is lost (integer)
        customresourcedefinition.apiextensions.k8s.io/memcacheds.cache.my.domain configured
    "#]]
    .assert_eq(&masked(&stage.done(&["install", "--accept-impact"])));
    let said = stage.refused(&["uninstall"]);
    expect![[r#"
        cluster: opdev (https://127.0.0.1:PORT)
        error: nothing was deleted, for objects would go that nobody has named:
          Memcached: 1 object
            default/mine (the operator has to answer its finalizer example.com/kept)
          to do: delete them first, or let them go with --yes
    "#]]
    .assert_eq(&masked(&said));
}

#[tokio::test(flavor = "multi_thread")]
async fn kinds_that_the_cluster_lacks_are_named_before_anything_is_applied() {
    let stage = Stage::new();
    stage.edit("config/default/kustomization.yaml", |text| {
        text.replace("#- ../prometheus", "- ../prometheus")
    });
    let certificate =
        "apiVersion: cert-manager.io/v1\nkind: Certificate\nmetadata: {name: serving, namespace: system}\n";
    fs::write(stage.root.join("config/rbac/certificate.yaml"), certificate).unwrap();
    stage.edit("config/rbac/kustomization.yaml", |text| {
        text.replace("resources:\n", "resources:\n- certificate.yaml\n")
    });
    let said = stage.refused(&IMAGE);
    expect![[r#"
        cluster: opdev (https://127.0.0.1:PORT)
        error: nothing was applied, for the cluster lacks kinds that the operator needs:
          Certificate (cert-manager.io/v1), which cert-manager provides
          to do: install what provides them first, or leave the objects out with --skip-missing
    "#]]
    .assert_eq(&masked(&said));
    assert_eq!(stage.get("/api/v1/namespaces/cache-operator-system").await, None);
    let said = stage.done(&[&IMAGE[..], &["--skip-missing"]].concat());
    assert!(
        said.contains("left out: 1 object of Certificate")
            && said.contains("left out: 1 object of ServiceMonitor"),
        "{said}"
    );
    stage.edit("config/rbac/kustomization.yaml", |text| text.replace("- certificate.yaml\n", ""));
    let said = stage.done(&IMAGE);
    assert!(said.contains("left out: 1 object of ServiceMonitor"), "{said}");
    assert!(stage.refused(&[&IMAGE[..], &["--strict"]].concat()).contains("ServiceMonitor"));
}

#[test]
fn a_context_that_is_not_clearly_local_is_left_alone() {
    let stage = Stage::new();
    let foreign = stage.folder.path().join("foreign");
    let own = fs::read_to_string(stage.kubeconfig()).unwrap();
    let renamed: String = own
        .lines()
        .map(|line| {
            let is_name = ["name:", "cluster:", "user:", "current-context:"]
                .iter()
                .any(|key| line.trim_start_matches(['-', ' ']).starts_with(key));
            if is_name { line.replace("opdev", "prod") + "\n" } else { format!("{line}\n") }
        })
        .collect();
    fs::write(&foreign, renamed).unwrap();
    let at = ["--kubeconfig", foreign.to_str().unwrap()];
    let said = opdev(&stage.root, stage.folder.path(), &[&["install"][..], &at].concat());
    assert_eq!(said.status.code(), Some(1), "{}", text(&said));
    expect![[r#"
        cluster: prod (https://127.0.0.1:PORT)
        error: the context prod is not clearly local, so opdev writes nothing to it
          why: neither its context nor its cluster entry is named as a tool for local clusters does
          to do: add --allow-context prod, or name the context under allowContexts in ~/.config/opdev/config.yaml
    "#]]
    .assert_eq(&masked(&text(&said)));
    let allowed = [&["install", "--allow-context", "prod"][..], &at].concat();
    let said = opdev(&stage.root, stage.folder.path(), &allowed);
    assert!(said.status.success(), "{}", text(&said));
}

#[test]
fn what_is_deployed_can_be_printed_without_a_cluster() {
    let stage = Stage::new();
    let output = opdev(
        &stage.root,
        stage.folder.path(),
        &[&IMAGE[..], &["-o", "yaml", "--namespace", "elsewhere"]].concat(),
    );
    assert!(output.status.success(), "{}", text(&output));
    let printed = String::from_utf8(output.stdout).unwrap();
    assert!(
        printed.contains("image: example.com/op:v1\n") && printed.contains("  namespace: elsewhere\n"),
        "{printed}"
    );
    assert!(!printed.contains("cache-operator-system"), "{printed}");
}

#[tokio::test(flavor = "multi_thread")]
#[cfg_attr(not(oracles), ignore = "needs OPDEV_ORACLES")]
async fn fields_are_handed_over_from_make_deploy() {
    let stage = Stage::new();
    // make deploy
    let built = stage.kubectl(&["kustomize", "config/default"], "");
    stage.kubectl(&["apply", "-f", "-"], &built);
    let before = stage.get(DEPLOYMENT).await.unwrap();
    assert_eq!(before["spec"]["template"]["spec"]["terminationGracePeriodSeconds"], 10);
    stage.edit("config/manager/manager.yaml", |text| text.replace("terminationGracePeriodSeconds: 10", ""));
    let tried = stage.done(&[&IMAGE[..], &["--dry-run", "server"]].concat());
    assert!(
        tried.contains("would be configured (fields handed over from kubectl-client-side-apply)"),
        "{tried}"
    );
    let said = stage.done(&IMAGE);
    assert!(said.contains("(fields handed over from kubectl-client-side-apply)"), "{said}");
    let after = stage.get(DEPLOYMENT).await.unwrap();
    assert_eq!(
        after["spec"]["template"]["spec"]["terminationGracePeriodSeconds"], 30,
        "what the files do not have goes"
    );
    assert_eq!(
        after["metadata"]["annotations"].get("kubectl.kubernetes.io/last-applied-configuration"),
        None
    );
    stage.kubectl(
        &[
            "scale",
            "-n",
            "cache-operator-system",
            "deployment/cache-operator-controller-manager",
            "--replicas=2",
        ],
        "",
    );
    let said = stage.refused(&IMAGE);
    expect![[r#"
        cluster: opdev (https://127.0.0.1:PORT)
        error: nothing was applied, for the API server would refuse:
          deployment.apps/cache-operator-controller-manager: .spec.replicas has a conflict with "kubectl" with subresource "scale" using apps/v1
            to do: put the value into the files, or take the fields with --force-conflicts
    "#]]
    .assert_eq(&masked(&said));
    stage.done(&[&IMAGE[..], &["--force-conflicts"]].concat());
    assert_eq!(stage.get(DEPLOYMENT).await.unwrap()["spec"]["replicas"], 1);
}

/// Objects as kubectl knows them, without what differs from server to server and who owns what.
fn settled(stage: &Stage, objects: &str) -> Vec<Value> {
    let list: Value =
        serde_json::from_str(&stage.kubectl(&["get", "-f", "-", "-o", "json"], objects)).unwrap();
    let mut items = list["items"].as_array().unwrap().clone();
    for item in &mut items {
        let map = item.as_object_mut().unwrap();
        map.remove("status");
        let metadata = map["metadata"].as_object_mut().unwrap();
        for key in ["uid", "resourceVersion", "creationTimestamp", "managedFields"] {
            metadata.remove(key);
        }
        if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
            annotations.remove("kubectl.kubernetes.io/last-applied-configuration");
            if annotations.is_empty() {
                metadata.remove("annotations");
            }
        }
        for address in ["clusterIP", "clusterIPs"] {
            map.get_mut("spec").and_then(Value::as_object_mut).map(|spec| spec.remove(address));
        }
    }
    items
}

/// The objects of `make deploy IMG=example.com/op:v1` with the real kubectl.
fn make_deploy(stage: &Stage) -> String {
    stage.edit("config/manager/kustomization.yaml", |text| {
        text.replace("newName: controller", "newName: example.com/op").replace("newTag: latest", "newTag: v1")
    });
    let built = stage.kubectl(&["kustomize", "config/default"], "");
    stage.kubectl(&["apply", "-f", "-"], &built);
    built
}

fn assert_same(ours: &[Value], theirs: &[Value], least: usize) {
    assert!(theirs.len() >= least, "only {} objects", theirs.len());
    assert_eq!(ours.len(), theirs.len());
    for (ours, theirs) in ours.iter().zip(theirs) {
        assert_eq!(ours, theirs, "{} {}", theirs["kind"], theirs["metadata"]["name"]);
    }
}

#[test]
#[cfg_attr(not(oracles), ignore = "needs OPDEV_ORACLES")]
fn what_is_deployed_is_what_kubectl_applies() {
    let (ours, theirs) = (Stage::new(), Stage::new());
    let built = make_deploy(&theirs);
    ours.done(&IMAGE);
    assert_same(&settled(&ours, &built), &settled(&theirs, &built), 15);
    ours.done(&["undeploy"]);
    let left = ours.kubectl(&["get", "-f", "-", "-o", "name", "--ignore-not-found"], &built);
    assert_eq!(left, "", "something of the deployment is left");
}

const CONTROLLER: &str = "package controller\n\n// +kubebuilder:rbac:groups=app.my.domain,resources=podsets,verbs=get;list;watch\n\
                          // +kubebuilder:rbac:groups=\"\",resources=pods,verbs=create\n";

/// A Go project whose CRDs and roles are behind its sources, as before `make manifests`.
fn go_project() -> Stage {
    let stage = Stage::of(&["--types", "--group", "app", "--version", "v1", "--kind", "PodSet"], &[]);
    fs::remove_dir_all(stage.root.join("config/reconcilers")).unwrap();
    fs::write(
        stage.root.join("go.mod"),
        "module example.com/cache\n\ngo 1.24\n\nrequire sigs.k8s.io/controller-runtime v0.21.0\n",
    )
    .unwrap();
    fs::create_dir(stage.root.join("controllers")).unwrap();
    fs::write(stage.root.join("controllers/podset_controller.go"), CONTROLLER).unwrap();
    stage.edit("api/v1/podset_types.go", |text| {
        text.replacen("type PodSetSpec struct {", "type PodSetSpec struct {\n\t// +kubebuilder:validation:Minimum=1\n\tSlots int32 `json:\"slots,omitempty\"`\n", 1)
    });
    stage.edit("Makefile", |text| {
        format!("{text}\nmanifests:\n\tcontroller-gen rbac:roleName=manager-role crd paths=\"./...\" output:crd:artifacts:config=config/crd/bases\n\ndeploy:\n\tcd config/manager && $(KUSTOMIZE) edit set image controller=${{IMG}}\n")
    });
    stage
}

#[test]
#[cfg_attr(not(oracles), ignore = "needs OPDEV_ORACLES")]
fn crds_and_roles_of_go_sources_are_as_after_make_manifests() {
    let (ours, theirs) = (go_project(), go_project());
    for made in ["crd", "rbac"] {
        let done = opdev(&theirs.root, theirs.folder.path(), &[made]);
        assert!(done.status.success(), "{}", text(&done));
    }
    let crds = theirs.kubectl(&["kustomize", "config/crd"], "");
    assert!(crds.contains("slots:"), "{crds}");
    theirs.kubectl(&["apply", "-f", "-"], &crds);
    let before = fs::read_to_string(ours.root.join("config/crd/bases/app.my.domain_podsets.yaml")).unwrap();
    assert!(!before.contains("slots:"));
    ours.done(&["install"]);
    let live = |stage: &Stage| {
        let crd = stage.kubectl(&["get", "crd", "podsets.app.my.domain", "-o", "json"], "");
        serde_json::from_str::<Value>(&crd).unwrap()["spec"].clone()
    };
    assert_eq!(live(&ours), live(&theirs));
    let built = make_deploy(&theirs);
    ours.done(&IMAGE);
    assert!(built.contains("- podsets\n"), "{built}");
    assert_same(&settled(&ours, &built), &settled(&theirs, &built), 10);
    let after = fs::read_to_string(ours.root.join("config/crd/bases/app.my.domain_podsets.yaml")).unwrap();
    assert_eq!(before, after, "the files are left as they are");
    // Objects that were applied are removed also while the types are being edited.
    ours.edit("api/v1/podset_types.go", |text| text.replacen("struct {", "struct {{{", 1));
    expect![[r#"
        error: api/v1/podset_types.go:21: `type` begins here, and the `{` of line 8 is not closed
          to do: What was generated before stays until the file can be read.
    "#]]
    .assert_eq(&ours.refused(&["install"]));
    ours.done(&["undeploy"]);
}

/// Makes pods fail as the annotation of `opdev serve` asks for; empty takes it away.
fn failing(stage: &Stage, how: &str) {
    stage.edit("config/manager/manager.yaml", |text| {
        let kept = text.lines().filter(|line| !line.contains("opdev.dev/fail"));
        let line = |line: &str| {
            let is_place = !how.is_empty() && line.contains("kubectl.kubernetes.io/default-container");
            let more = if is_place { format!("        opdev.dev/fail: {how}\n") } else { String::new() };
            format!("{line}\n{more}")
        };
        kept.map(line).collect()
    });
}

#[test]
fn a_deployment_waits_and_says_what_its_pods_wait_for() {
    let stage = Stage::new();
    failing(&stage, "image");
    // Long enough to show that this failure ends it.
    let said = stage.refused(&[&IMAGE[..], &["--wait", "1h"]].concat());
    assert!(
        said.contains("ImagePullBackOff: Back-off pulling image \"example.com/op:v1\"")
            && said.contains("push the image"),
        "{said}"
    );
    for (how, reason) in [
        ("crash", "CrashLoopBackOff"),
        ("unready", "ContainersNotReady: containers with unready status: [manager]"),
    ] {
        failing(&stage, how);
        let said = stage.refused(&[&IMAGE[..], &["--wait", "2s"]].concat());
        assert!(said.contains(reason) && said.contains("--wait gives it more time"), "{how}: {said}");
        assert!(!said.contains("ImagePullBackOff"), "the pod of before does not matter any more: {said}");
    }
    failing(&stage, "");
    assert!(stage.done(&IMAGE).contains(" is ready"));
    stage.edit("config/manager/manager.yaml", |text| {
        let lines = text.lines().filter(|line| !line.contains("--leader-elect"));
        let text: String = lines.map(|line| format!("{line}\n")).collect();
        text.replace("replicas: 1", "replicas: 2").replace("image: controller:latest", "image: mine:v1")
    });
    let said = stage.refused(&IMAGE);
    expect![[r#"
        error: no container has the image controller, so --image changes nothing
          where: the Deployments of config/default have mine:v1
          to do: name the image that is meant: --image NAME=example.com/op:v1
    "#]]
    .assert_eq(&said);
    let said = stage.done(&["deploy", "--image", "mine=example.com/op:v2"]);
    assert!(said.contains("has 2 replicas and no --leader-elect"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn rights_that_are_missing_are_named_before_anything_is_applied() {
    let stage = Stage::of(&["--types", "--group", "app", "--version", "v1", "--kind", "PodSet"], &["--rbac"]);
    let named = |kind: &str| json!({ "apiVersion": "v1", "kind": kind, "metadata": { "name": "dev" } });
    stage.post("/api/v1/namespaces/default/serviceaccounts", &named("ServiceAccount")).await;
    let rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/default";
    let role = json!({ "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": { "name": "dev" },
        "rules": [{ "apiGroups": ["*"], "resources": ["*"], "verbs": ["*"] }] });
    stage.post(&format!("{rbac}/roles"), &role).await;
    let binding = json!({ "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": { "name": "dev" },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "dev" },
        "subjects": [{ "kind": "ServiceAccount", "name": "dev", "namespace": "default" }] });
    stage.post(&format!("{rbac}/rolebindings"), &binding).await;
    let request = json!({ "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {} });
    let token = stage.post("/api/v1/namespaces/default/serviceaccounts/dev/token", &request).await;
    let mut config: Value =
        opdev_object::yaml::from_str(&fs::read_to_string(stage.kubeconfig()).unwrap()).unwrap();
    config["users"][0]["user"] = json!({ "token": token["status"]["token"] });
    let limited = stage.folder.path().join("limited");
    fs::write(&limited, opdev_object::yaml::to_string(&config)).unwrap();
    let context = config["current-context"].as_str().unwrap();
    let at = ["--kubeconfig", limited.to_str().unwrap(), "--allow-context", context];
    for (command, refusal) in [
        (&["install"][..], "nothing was applied"),
        (&IMAGE, "nothing was applied"),
        (&["undeploy"], "nothing was deleted"),
    ] {
        let output = opdev(&stage.root, stage.folder.path(), &[command, &at].concat());
        let said = text(&output);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains(refusal) && said.contains("you lack these rights:"), "{said}");
        assert!(said.contains("  customresourcedefinitions.apiextensions.k8s.io: "), "{said}");
        let is_all = command[0] != "install";
        assert_eq!(said.contains("deployments.apps in namespace cache-operator-system: "), is_all, "{said}");
    }
    assert_eq!(stage.get("/api/v1/namespaces/cache-operator-system").await, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_belongs_to_others_is_not_deleted() {
    let stage = Stage::new();
    // A kind of another team that watches.yaml names: its definition is theirs.
    let crd = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.others.example.com"},
        "spec": {"group": "others.example.com", "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema":
                {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]}});
    const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    stage.post(CRDS, &crd).await;
    stage.edit_watches_for("others.example.com", "v1", "Widget");
    // Without it opdev makes CRDs up for kinds that have none.
    let list = stage.root.join("config/crd/kustomization.yaml");
    let listed = fs::read_to_string(&list).unwrap();
    fs::remove_file(&list).unwrap();
    let said = stage.done(&["install"]);
    expect![[r#"
        cluster: opdev (https://127.0.0.1:PORT)
        customresourcedefinition.apiextensions.k8s.io/widgets.others.example.com is left as it is: the project has no CRD for it
        customresourcedefinition.apiextensions.k8s.io/memcacheds.cache.my.domain created
    "#]]
    .assert_eq(&masked(&said));
    let said = stage.done(&["uninstall", "--yes"]);
    expect![[r#"
        cluster: opdev (https://127.0.0.1:PORT)
        customresourcedefinition.apiextensions.k8s.io/widgets.others.example.com is left as it is: the project has no CRD for it, and opdev has not applied it
        customresourcedefinition.apiextensions.k8s.io/memcacheds.cache.my.domain deleted
    "#]]
    .assert_eq(&masked(&said));
    assert!(stage.get(&format!("{CRDS}/widgets.others.example.com")).await.is_some(), "{said}");

    fs::write(&list, listed).unwrap();

    // In the namespace of the deployment stands what an object elsewhere owns.
    stage.done(&IMAGE);
    let owner = stage.get("/api/v1/namespaces/default").await.unwrap();
    let reference =
        json!({"apiVersion": "v1", "kind": "Namespace", "name": "default", "uid": owner["metadata"]["uid"]});
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "theirs", "ownerReferences": [reference]}});
    stage.post("/api/v1/namespaces/cache-operator-system/secrets", &secret).await;
    // A custom resource there is listed as one, and what cert-manager keeps is the deployment's.
    let certificate = json!({"cert-manager.io/certificate-name": "serving-cert"});
    let kept = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "kept", "annotations": certificate}});
    stage.post("/api/v1/namespaces/cache-operator-system/secrets", &kept).await;
    let gvk = stage.kind();
    let object = json!({"apiVersion": gvk.api_version(), "kind": gvk.kind, "metadata": {"name": "here"}});
    let path = format!("/apis/{}/{}/namespaces/cache-operator-system/memcacheds", gvk.group, gvk.version);
    stage.post(&path, &object).await;
    let said = stage.refused(&["undeploy"]);
    expect![[r#"
        cluster: opdev (https://127.0.0.1:PORT)
        error: nothing was deleted, for objects would go that nobody has named:
          Memcached: 1 object
            cache-operator-system/here
          in the namespace, not of this deployment: 2 objects
            Secret cache-operator-system/kept
            Secret cache-operator-system/theirs
          to do: delete them first, or let them go with --yes and --with-unrelated
    "#]]
    .assert_eq(&masked(&said));
    // A user who lets custom resources go has said nothing of what is somebody else's.
    let said = stage.refused(&["undeploy", "--yes"]);
    expect![[r#"
        cluster: opdev (https://127.0.0.1:PORT)
        error: nothing was deleted, for objects would go that nobody has named:
          in the namespace, not of this deployment: 2 objects
            Secret cache-operator-system/kept
            Secret cache-operator-system/theirs
          to do: delete them first, or let them go with --with-unrelated
    "#]]
    .assert_eq(&masked(&said));
    assert!(stage.get(&format!("{path}/here")).await.is_some(), "nothing was deleted");
    // Another namespace than the one it was deployed to: the roles of the cluster stay.
    let said = stage.refused(&["undeploy", "--namespace", "elsewhere", "--yes"]);
    expect![[r#"
        cluster: opdev (https://127.0.0.1:PORT)
        error: nothing was deleted: namespace/elsewhere is not there, but customresourcedefinition.apiextensions.k8s.io/memcacheds.cache.my.domain is, so the deployment may be in another namespace
          to do: say --namespace as for `opdev deploy`, or --ignore-not-found to delete what is left
    "#]]
    .assert_eq(&masked(&said));
    const ROLE: &str = "/apis/rbac.authorization.k8s.io/v1/clusterroles/cache-operator-manager-role";
    assert!(stage.get(ROLE).await.is_some(), "{said}");
    let output = opdev(&stage.root, stage.folder.path(), &["undeploy"]);
    expect![[r#"
        error: there is no cluster: no kubeconfig has a current context, and no `opdev run` is at work in TMP/project
          to do: name one with --kubeconfig or --context, or say --embedded for the one that opdev keeps
    "#]]
    .assert_eq(&masked(&text(&output)));
    let (code, said) = stage.run(&[&IMAGE[..], &["--save", "--dry-run", "server"]].concat());
    assert_eq!(code, Some(2), "{said}");
}

/// A sample in `config/default` is named by the files: nobody is asked for it, and it goes while the operator
/// is there.
#[tokio::test(flavor = "multi_thread")]
async fn custom_resources_of_the_deployment_itself_go_first() {
    let stage = Stage::new();
    let gvk = stage.kind();
    let sample = format!(
        "apiVersion: {}\nkind: {}\nmetadata:\n  name: sample\n  finalizers: [example.com/kept]\nspec: {{}}\n",
        gvk.api_version(),
        gvk.kind
    );
    fs::write(stage.root.join("config/default/sample.yaml"), sample).unwrap();
    stage.edit("config/default/kustomization.yaml", |text| {
        text.replacen("resources:\n", "resources:\n- sample.yaml\n", 1)
    });
    stage.done(&IMAGE);
    let path = format!(
        "/apis/{}/{}/namespaces/cache-operator-system/memcacheds/cache-operator-sample",
        gvk.group, gvk.version
    );
    assert!(stage.get(&path).await.is_some());
    // Its finalizer is answered by nobody here: the operator has to stay.
    let said = stage.refused(&["undeploy", "--wait", "0s"]);
    expect![[r#"
        cluster: opdev (https://127.0.0.1:PORT)
        Memcached cache-operator-system/cache-operator-sample deleted
        error: these objects are still there, so their definition and the operator stay:
          Memcached cache-operator-system/cache-operator-sample (the operator has to answer its finalizer example.com/kept)
          to do: start the operator (`opdev run`), which answers the finalizers, and try again; or take them off
    "#]]
    .assert_eq(&masked(&said));
    assert!(stage.get(DEPLOYMENT).await.is_some(), "{said}");
    let patch = json!({ "metadata": { "finalizers": null } }).to_string().into_bytes();
    let request = http::Request::patch(&path).header("content-type", "application/merge-patch+json");
    stage.client().await.request::<Value>(request.body(patch).unwrap()).await.unwrap();
    stage.edit("config/default/sample.yaml", |text| text.replace("  finalizers: [example.com/kept]\n", ""));
    stage.done(&IMAGE);
    // With `--wait 0s` nobody waits for objects that are still being deleted.
    let said = stage.done(&["undeploy", "--wait", "0s"]);
    assert!(
        said.contains("sample deleted") && said.contains("namespace/cache-operator-system deleted"),
        "{said}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_deployment_takes_no_roles_from_the_first() {
    let stage = Stage::new();
    stage.done(&IMAGE);
    let other = [&IMAGE[..], &["--namespace", "second", "--wait", "0s"]].concat();
    let said = stage.refused(&other);
    expect![[r#"
        cluster: opdev (https://127.0.0.1:PORT)
        error: nothing was applied, for another deployment would lose its roles:
          clusterrolebinding.rbac.authorization.k8s.io/cache-operator-manager-rolebinding is for serviceaccount cache-operator-system/cache-operator-controller-manager
          clusterrolebinding.rbac.authorization.k8s.io/cache-operator-metrics-auth-rolebinding is for serviceaccount cache-operator-system/cache-operator-controller-manager
          to do: give this one other names with namePrefix in config/default; if it shall take the place of the other, delete that ServiceAccount, or its namespace, first
    "#]]
    .assert_eq(&masked(&said));
    assert_eq!(stage.get("/api/v1/namespaces/second").await, None);
    // Once that one is gone nothing is lost.
    let account =
        "/api/v1/namespaces/cache-operator-system/serviceaccounts/cache-operator-controller-manager";
    let request = http::Request::delete(account).body(Vec::new()).unwrap();
    stage.client().await.request::<Value>(request).await.unwrap();
    stage.done(&other);
}

/// A program that builds instead of opdev is given the folder, and its words are those of the user.
#[test]
fn a_program_may_build_the_kustomization() {
    use std::os::unix::fs::PermissionsExt as _;
    let stage = Stage::new();
    let tool = stage.folder.path().join("tool");
    let script = "#!/bin/sh\n[ \"$1\" = build ] || { echo \"no $1\" >&2; exit 3; }\n[ -f \"$2/kustomization.yaml\" ] || exit 4\n\
                  printf 'apiVersion: v1\\nkind: ConfigMap\\nmetadata: {name: built}\\n'\n";
    fs::write(&tool, script).unwrap();
    fs::set_permissions(&tool, fs::Permissions::from_mode(0o755)).unwrap();
    let with = |words: &str, more: &[&str]| {
        let program = format!("{} {words}", tool.display());
        let args = [&["deploy", "--kustomize", &program, "-o", "yaml"], more].concat();
        let output = opdev(&stage.root, stage.folder.path(), &args);
        (output.status.code(), text(&output))
    };
    let (code, said) = with("build", &[]);
    assert_eq!(code, Some(0), "{said}");
    expect![[r#"
        apiVersion: v1
        kind: ConfigMap
        metadata:
          name: built
    "#]]
    .assert_eq(&said);
    let (code, said) = with("burn", &[]);
    assert_eq!(code, Some(1), "{said}");
    expect![[r#"
        error: TMP/tool burn config/default failed: no burn
    "#]]
    .assert_eq(&masked(&said));
    let (code, said) = with("build", &["--namespace", "elsewhere"]);
    assert_eq!(code, Some(1), "{said}");
    expect![[r#"
        error: --image and --namespace change what opdev builds; with --kustomize the program reads the files as they are
    "#]]
    .assert_eq(&said);
}

#[tokio::test(flavor = "multi_thread")]
async fn on_a_terminal_it_asks_whether_objects_go() {
    let stage = Stage::new();
    stage.done(&["install"]);
    stage.create_memcached(json!({})).await;
    let ask = || {
        let mut command = portable_pty::CommandBuilder::new(env!("CARGO_BIN_EXE_opdev"));
        command.args(["uninstall", "--wait", "1s", "--kubeconfig", stage.kubeconfig().to_str().unwrap()]);
        command.cwd(&stage.root);
        command.env("HOME", stage.folder.path());
        let pty = crate::pty::Pty::start(command, (100, 30));
        pty.wait_for("Type yes to delete them:");
        assert!(pty.screen().contains("default/mine"), "{}", pty.screen());
        pty
    };
    let mut pty = ask();
    pty.keys("y\r");
    pty.wait_for("the objects stay");
    let gvk = stage.kind();
    let path = format!("/apis/{}/{}/namespaces/default/memcacheds/mine", gvk.group, gvk.version);
    assert!(stage.get(&path).await.unwrap()["metadata"]["deletionTimestamp"].is_null());
    let mut pty = ask();
    pty.keys("yes\r");
    pty.wait_for("are still there");
    assert!(stage.get(&path).await.unwrap()["metadata"]["deletionTimestamp"].is_string());
}
