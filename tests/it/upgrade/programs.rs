//! Operators that are programs of their own: each version runs from its checkout against the same objects.

use super::{Repository, SIZE, crd, findings, told, version};
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// An operator without a library: for each `Field` a Deployment, made once and merged from then on, and a
/// status.
const OPERATOR: &str = r#"
import base64, json, os, re, ssl, sys, time, urllib.error, urllib.request

SELECTOR = {"app": "field"}
IMAGE = "web:1"
STATUS = {"ready": True}

text = open(os.environ["KUBECONFIG"]).read()
find = lambda name: re.search(name + r":\s*\"?([^\s\"]+)", text).group(1)
trust = ssl.create_default_context(cadata=base64.b64decode(find("certificate-authority-data")).decode())

def call(method, path, body=None, kind="application/json"):
    request = urllib.request.Request(find("server") + path, method=method, data=body and json.dumps(body).encode())
    request.add_header("Authorization", "Bearer " + find("token"))
    request.add_header("Content-Type", kind)
    try:
        return json.load(urllib.request.urlopen(request, context=trust))
    except urllib.error.HTTPError as error:
        print(error.code, error.read().decode(), flush=True)
        return None

if os.environ.get("PID_FILE"):
    open(os.environ["PID_FILE"], "a").write(str(os.getpid()) + "\n")
FAULT = None
if FAULT:
    sys.exit(FAULT)
merge = "application/merge-patch+json"
while True:
    for field in (call("GET", "/apis/x.io/v1/fields") or {}).get("items", []):
        if field["metadata"].get("deletionTimestamp"):
            continue
        space, name = field["metadata"]["namespace"], field["metadata"]["name"]
        path = f"/apis/apps/v1/namespaces/{space}/deployments"
        owner = {"apiVersion": "x.io/v1", "kind": "Field", "name": name, "uid": field["metadata"]["uid"], "controller": True}
        spec = {"replicas": 2, "selector": {"matchLabels": SELECTOR}, "template": {"metadata": {"labels": SELECTOR},
            "spec": {"containers": [{"name": "web", "image": IMAGE}]}}}
        there = call("GET", f"{path}/{name}")
        if there is None:
            call("POST", path, {"apiVersion": "apps/v1", "kind": "Deployment",
                "metadata": {"name": name, "ownerReferences": [owner]}, "spec": spec})
        elif there["spec"]["selector"] != spec["selector"] or there["spec"]["template"]["spec"]["containers"][0]["image"] != IMAGE:
            call("PATCH", f"{path}/{name}", {"spec": spec}, merge)
        if any(field.get("status", {}).get(key) != value for key, value in STATUS.items()):
            call("PATCH", f"/apis/x.io/v1/namespaces/{space}/fields/{name}/status", {"status": STATUS}, merge)
    time.sleep(0.1)
"#;

/// A project whose program is in Python.
fn program() -> Repository {
    let v1 = version("v1", true, SIZE, "ready: {type: boolean}");
    let sample = "apiVersion: x.io/v1\nkind: Field\nmetadata: {name: field}\nspec: {size: 5}\n";
    Repository::new(&[
        (
            "opdev.yaml",
            "operator: {command: [python3, operator.py], watch: [operator.py], trace: wire, stopAfter: 1s}\n",
        ),
        ("operator.py", OPERATOR),
        ("config/crd/fields.yaml", &crd("Field", &v1)),
        ("config/samples/field.yaml", sample),
    ])
}

#[test]
#[cfg_attr(not(python), ignore = "needs python3")]
fn incidents_of_programs_are_named_with_object_and_field() {
    let project = program();
    project.edit(
        "operator.py",
        "SELECTOR = {\"app\": \"field\"}",
        "SELECTOR = {\"app\": \"field\", \"part\": \"web\"}",
    );
    let (report, code) = project.report(&["--trust", "--only", "plain"]);
    assert_eq!(
        findings(&report),
        ["error write-refused Deployment default/field [.spec.selector] plain"],
        "{report:#}"
    );
    assert_eq!(code, 1);
    project.git(&["checkout", "-q", "."]);
    // Another image, and a status that only the new CRD has.
    project.edit("operator.py", "web:1", "web:2");
    project.edit("operator.py", "{\"ready\": True}", "{\"ready\": True, \"address\": \"x\"}");
    let v1 = version("v1", true, SIZE, "ready: {type: boolean}, address: {type: string}");
    project.write(&[("config/crd/fields.yaml", &crd("Field", &v1))]);
    let (report, code) = project.report(&["--trust", "--only", "plain,crd-left-old"]);
    assert_eq!(
        findings(&report),
        [
            "warning pods-roll Deployment default/field [.spec.template.spec.containers[name=web].image] plain crd-left-old",
            "hint field-pruned Field default/field [.status.address] crd-left-old",
        ],
        "{report:#}"
    );
    assert_eq!(code, 0);
    assert!(!project.root.join(".opdev").exists(), "nothing is written into the project");
}

#[test]
#[cfg_attr(not(python), ignore = "needs python3")]
fn an_upgrade_of_a_program_that_hurts_nobody_is_quiet() {
    let project = program();
    project.edit("operator.py", "time.sleep(0.1)", "time.sleep(0.05)");
    let (report, code) = project.report(&["--trust", "--fail-on", "warning", "--only", "plain,back"]);
    assert_eq!((findings(&report), code), (Vec::new(), 0), "{report:#}");
    // The trust that the project has counts for its older versions, too.
    assert!(project.command(&["trust"]).output().unwrap().status.success());
    assert_eq!(project.report(&["--only", "same"]).1, 0);
}

#[test]
#[cfg_attr(not(python), ignore = "needs python3")]
fn a_program_that_does_not_run_is_told_with_its_last_words() {
    let project = program();
    project.edit("operator.py", "FAULT = None", "FAULT = \"error: unknown flag: --fast\"");
    let (report, code) = project.report(&["--trust", "--only", "plain"]);
    assert_eq!(findings(&report), ["error does-not-start python3 operator.py [] plain"], "{report:#}");
    assert!(
        report["findings"][0]["lines"][0].as_str().unwrap().contains("unknown flag: --fast"),
        "{report:#}"
    );
    assert_eq!(code, 1);
    // Without the version before there is nothing to upgrade.
    project.release("v1.1.0");
    let output = project.run(&["--trust", "--only", "plain"]);
    assert_eq!(output.status.code(), Some(3), "{}", told(&output));
    assert!(told(&output).contains("v1.1.0: python3 operator.py"), "{}", told(&output));
}

/// Rules of the operator; `more` are further resources of the core group that it may read.
fn role(more: &str) -> String {
    let rule = |groups: &str, resources: &str, verbs: &str| {
        format!("- {{apiGroups: [{groups}], resources: [{resources}], verbs: [{verbs}]}}\n")
    };
    format!(
        "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {{name: manager-role}}\nrules:\n{}{}{}",
        rule("x.io", "fields, fields/status", "list, patch"),
        rule("apps", "deployments", "\"*\""),
        rule("\"\"", more, "list")
    )
}

#[test]
#[cfg_attr(not(python), ignore = "needs python3")]
fn rights_that_the_new_program_uses_are_held_against_both_roles() {
    let project = program();
    project.write(&[("config/rbac/role.yaml", &role("nodes"))]);
    project.release("v1.1.0");
    let asks = "while True:\n    call(\"GET\", \"/api/v1/secrets\")";
    project.edit("operator.py", "while True:", asks);
    let (report, code) = project.report(&["--trust", "--only", "plain,roles-left-old"]);
    assert_eq!(findings(&report), ["error rights-missing secrets [list] plain"], "{report:#}");
    assert!(
        report["findings"][0]["fix"].as_str().unwrap().contains("groups=core,resources=secrets,verbs=list")
    );
    assert_eq!(code, 1);
    project.write(&[("config/rbac/role.yaml", &role("nodes, secrets"))]);
    let (report, code) = project.report(&["--trust", "--only", "roles-left-old"]);
    assert_eq!(findings(&report), ["hint rights-missing secrets [list] roles-left-old"], "{report:#}");
    assert_eq!(code, 0);
    // A right that the old version did without comes from elsewhere.
    project.release("v1.2.0");
    project.write(&[("config/rbac/role.yaml", &role("nodes"))]);
    project.release("v1.3.0");
    project.edit("operator.py", "time.sleep(0.1)", "time.sleep(0.05)");
    let (report, code) = project.report(&["--trust", "--only", "plain,roles-left-old"]);
    assert_eq!((findings(&report), code), (Vec::new(), 0), "{report:#}");
}

#[test]
#[cfg_attr(not(python), ignore = "needs python3")]
fn examples_stand_in_for_samples_that_are_empty_and_manifests_may_lie_elsewhere() {
    let project = program();
    // The scaffold's sample is refused; the example of the documentation is not.
    let field =
        |spec: &str| format!("apiVersion: x.io/v1\nkind: Field\nmetadata: {{name: field}}\nspec: {spec}\n");
    let deployment = |image: &str| {
        format!(
            "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: manager, namespace: system}}\nspec:\n  selector: {{matchLabels: \
             {{app: a}}}}\n  template:\n    metadata: {{labels: {{app: a}}}}\n    spec:\n      containers:\n      - {{name: manager, \
             image: a, env: [{{name: WEB_IMAGE, value: {image}}}]}}\n"
        )
    };
    project.edit("operator.py", "IMAGE = \"web:1\"", "IMAGE = os.environ.get(\"WEB_IMAGE\", \"none\")");
    project.write(&[
        ("config/samples/field.yaml", &field("{size: a lot}")),
        ("docs/examples/small/field.yaml", &field("{size: 5}")),
        // Two of one name in one namespace.
        ("docs/examples/small/one.yaml", &field("{size: 1}").replace("{name:", "{namespace: a, name:")),
        ("docs/examples/small/two.yaml", &field("{size: 2}").replace("{name:", "{namespace: a, name:")),
        ("deploy/operator.yaml", &format!("{}---\n{}", deployment("web:1"), role("nodes"))),
    ]);
    let elsewhere = project.folder.path().join("elsewhere.yaml");
    fs::write(&elsewhere, field("{size: 3}")).unwrap();
    for link in ["docs/examples/small/out.yaml", "deploy/out.yaml"] {
        std::os::unix::fs::symlink(&elsewhere, project.root.join(link)).unwrap();
    }
    project.release("v1.1.0");
    project.write(&[("deploy/operator.yaml", &format!("{}---\n{}", deployment("web:2"), role("nodes")))]);
    let (report, code) = project.report(&["--trust", "--only", "plain", "--manifests", "deploy"]);
    assert_eq!(
        findings(&report),
        [
            "warning pods-roll Deployment sample-2/field [.spec.template.spec.containers[name=web].image] plain"
        ],
        "{report:#}"
    );
    assert_eq!(code, 0);
    let notes = report["notes"].to_string();
    for note in [
        "config/samples/field.yaml",
        "docs/examples/small/out.yaml is left out: it leads out of the project",
        "deploy/out.yaml leads out of the project",
    ] {
        assert!(notes.contains(note), "{report:#}");
    }
    let output = project.run(&["--trust", "--manifests", "elsewhere"]);
    assert_eq!(output.status.code(), Some(3), "{}", told(&output));
    assert!(told(&output).contains("v1.1.0 has no elsewhere"), "{}", told(&output));
}

fn lives(pid: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"));
    match stat {
        Ok(stat) => !stat.rsplit(") ").next().unwrap().starts_with('Z'),
        Err(_) if Path::new("/proc/self").exists() => false,
        Err(_) => Command::new("kill").args(["-0", pid]).status().unwrap().success(),
    }
}

fn until(what: &str, mut is: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !is() {
        assert!(Instant::now() < deadline, "not within a minute: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
#[cfg_attr(not(python), ignore = "needs python3")]
fn whatever_ends_a_rehearsal_leaves_no_process_worktree_or_lock() {
    let project = program();
    let before = fs::read_dir(project.root.join(".git")).unwrap().count();
    for signal in ["INT", "TERM", "KILL"] {
        let pids = project.folder.path().join(signal);
        let mut command = project.command(&["upgrade", "--trust"]);
        command.env("PID_FILE", &pids).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut opdev = command.spawn().unwrap();
        until("the program runs", || fs::read_to_string(&pids).is_ok_and(|text| text.ends_with('\n')));
        assert!(
            Command::new("kill")
                .args([&format!("-{signal}"), &opdev.id().to_string()])
                .status()
                .unwrap()
                .success()
        );
        let ended = opdev.wait().unwrap();
        let told = BufReader::new(opdev.stdout.take().unwrap()).lines().count();
        assert_eq!(told, 0, "a report of half a rehearsal");
        if signal != "KILL" {
            assert_eq!(ended.code(), Some(130), "{signal}");
        }
        for pid in fs::read_to_string(&pids).unwrap().lines() {
            until("the program is gone", || !lives(pid));
        }
        assert_eq!(fs::read_dir(project.root.join(".git")).unwrap().count(), before);
        assert!(!project.root.join(".git/worktrees").exists() && !project.root.join(".opdev").exists());
        let cache = project.folder.path().join(".cache/opdev/upgrade");
        let left = fs::read_dir(cache)
            .unwrap()
            .filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().starts_with("unfinished-"));
        assert_eq!(left.count(), 0, "{signal}");
    }
    // The next one works.
    let (report, code) = project.report(&["--trust", "--only", "same"]);
    assert_eq!((findings(&report), code), (Vec::new(), 0), "{report:#}");
}

/// A converter: `v1beta1` calls `size` another name, and knows nothing of `port`.
const CONVERTER: &str = r#"
import http.server, json, os, ssl, threading, time

KEEPS = True
SERVES = True
DELAY = 0

def turned(object, wanted):
    spec, version = dict(object.get("spec", {})), wanted.split("/")[1]
    notes = object["metadata"].setdefault("annotations", {})
    if object["apiVersion"] == wanted:
        return object
    if version == "v1beta1":
        if "port" in spec:
            port = spec.pop("port")
            if KEEPS:
                notes["x.io/port"] = str(port)
        if "size" in spec:
            spec["count"] = spec.pop("size")
    else:
        if "count" in spec:
            spec["size"] = spec.pop("count")
        if "x.io/port" in notes:
            spec["port"] = int(notes.pop("x.io/port"))
    return {**object, "apiVersion": wanted, "spec": spec}

class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        request = review["request"]
        objects = [turned(one, request["desiredAPIVersion"]) for one in request["objects"]]
        response = {"uid": request["uid"], "convertedObjects": objects, "result": {"status": "Success"}}
        text = json.dumps({**review, "request": None, "response": response}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *words):
        pass

def serve():
    time.sleep(DELAY)
    http.server.ThreadingHTTPServer.allow_reuse_address = True
    server = http.server.ThreadingHTTPServer(("127.0.0.1", PORT), Handler)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    folder = os.environ["TMPDIR"] + "/k8s-webhook-server/serving-certs/"
    tls.load_cert_chain(folder + "tls.crt", folder + "tls.key")
    server.socket = tls.wrap_socket(server.socket, server_side=True)
    server.serve_forever()

if SERVES:
    threading.Thread(target=serve, daemon=True).start()
"#;

/// A project whose program converts.
fn converter() -> Repository {
    let project = program();
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = free.local_addr().unwrap().port();
    let text = format!("{}{OPERATOR}", CONVERTER.replace("PORT", &port.to_string()));
    let v1 = version("v1", true, SIZE, "ready: {type: boolean}");
    let beta = version("v1beta1", false, "count: {type: integer}", "ready: {type: boolean}");
    let conversion = "  conversion:\n    strategy: Webhook\n    webhook:\n      conversionReviewVersions: [v1]\n      clientConfig: {service: \
                      {name: webhook, namespace: system, path: /convert}}\n";
    let definition = crd("Field", &(beta + &v1)).replace("  scope:", &format!("{conversion}  scope:"));
    let manager = format!(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: manager, namespace: system}}\nspec:\n  selector: {{matchLabels: \
         {{control-plane: manager}}}}\n  template:\n    metadata: {{labels: {{control-plane: manager}}}}\n    spec:\n      \
         containers:\n      - {{name: manager, image: a, ports: [{{name: webhook-server, containerPort: {port}}}]}}\n"
    );
    fs::remove_file(project.root.join("config/crd/fields.yaml")).unwrap();
    project.write(&[
        ("operator.py", &text),
        ("config/crd/bases/fields.yaml", &definition),
        ("config/manager/manager.yaml", &manager),
        ("config/manager/kustomization.yaml", "resources: [manager.yaml]\n"),
        ("config/default/kustomization.yaml", "resources: [../manager]\n"),
    ]);
    project.release("v1.1.0");
    project
}

#[test]
#[cfg_attr(not(python), ignore = "needs python3")]
fn a_converter_that_loses_fields_is_found_without_a_line_written_for_it() {
    let project = converter();
    let (report, code) = project.report(&["--trust", "--only", "plain"]);
    assert_eq!((findings(&report), code), (Vec::new(), 0), "one with annotations is not accused: {report:#}");
    project.edit("operator.py", "KEEPS = True", "KEEPS = False");
    let (report, code) = project.report(&["--trust", "--only", "plain"]);
    assert_eq!(
        findings(&report),
        ["error conversion fields.x.io v1 to v1beta1 [.spec.port] plain"],
        "{report:#}"
    );
    assert_eq!(code, 1);
    // Its files say that it converts, and it does not.
    let unserved = "error webhook-not-served webhooks [] plain".to_owned();
    project.edit("operator.py", "SERVES = True", "SERVES = False");
    let only_plain = ["--trust", "--only", "plain", "--timeout", "12s"];
    let (report, _) = project.report(&only_plain);
    assert!(findings(&report).contains(&unserved), "{report:#}");
    // A patch of the kustomization says so.
    let path = "config/crd/bases/fields.yaml";
    let text = fs::read_to_string(project.root.join(path)).unwrap();
    let (before, rest) = text.split_once("  conversion:\n").unwrap();
    let after = &rest[rest.find("  scope:").unwrap()..];
    let patch = "patches:\n- target: {kind: CustomResourceDefinition}\n  patch: |-\n    - {op: add, path: /spec/conversion, value: \
                 {strategy: Webhook, webhook: {conversionReviewVersions: [v1]}}}\n";
    project.write(&[
        (path, &format!("{before}{after}")),
        ("config/crd/kustomization.yaml", &format!("resources: [bases/fields.yaml]\n{patch}")),
    ]);
    let (report, _) = project.report(&only_plain);
    assert!(findings(&report).contains(&unserved), "{report:#}");
}

#[test]
#[cfg_attr(not(python), ignore = "needs python3")]
fn a_program_that_serves_its_webhooks_late_is_waited_for() {
    let project = converter();
    project.edit("operator.py", "DELAY = 0", "DELAY = 6");
    let (report, code) = project.report(&["--trust", "--only", "plain"]);
    assert_eq!((findings(&report), code), (Vec::new(), 0), "{report:#}");
}

#[test]
#[cfg_attr(not(python), ignore = "needs python3")]
fn roles_of_a_kustomization_and_of_a_chart_count() {
    let project = program();
    let missing = ["error rights-missing secrets [list] plain"];
    let rest = "kind: ClusterRoleBinding\nmetadata: {name: a}\nroleRef: {kind: ClusterRole, name: manager-role}\n---\n\
                apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: manager}\n";
    project.write(&[
        ("deploy/kustomization.yaml", "resources: [../access]\n"),
        ("access/kustomization.yaml", "resources: [role.yaml]\nnamePrefix: my-\n"),
        ("access/role.yaml", &role("nodes")),
        ("operator-chart/Chart.yaml", "apiVersion: v2\nname: operator\nversion: 1.0.0\n"),
        ("operator-chart/values.yaml", "readable: nodes\n"),
        ("operator-chart/templates/role.yaml", &role("{{ .Values.readable }}")),
        ("operator-chart/templates/rest.yaml", rest),
    ]);
    project.release("v1.1.0");
    let asks = "while True:\n    call(\"GET\", \"/api/v1/secrets\")";
    project.edit("operator.py", "while True:", asks);
    for manifests in [&["--manifests", "deploy"][..], &["--manifests", "operator-chart"], &[]] {
        let (report, _) = project.report(&[&["--trust", "--only", "plain"], manifests].concat());
        assert_eq!(findings(&report), missing, "{manifests:?}: {report:#}");
    }
    project.edit("operator-chart/values.yaml", "nodes", "secrets");
    let (report, _) = project.report(&["--trust", "--only", "plain"]);
    assert_eq!(findings(&report), Vec::<String>::new(), "{report:#}");
}
