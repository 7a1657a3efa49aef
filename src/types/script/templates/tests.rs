//! Folders of templates as the operator uses them.

use crate::contract::{Desired, Limits, Observed, Program, Read, ReleaseState};
use crate::program;
use crate::tests::{Fake, files, observed};
use expect_test::expect;
use opdev_object::meta::Gvk;
use opdev_types::diagnostic::Diagnostic;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

const PODSET: &str = r#"{{- $app := .self.metadata.name }}{{ $pods := .owned.Pod }}
{{- range $i := until (int .self.spec.replicas) }}
---
apiVersion: v1
kind: Pod
metadata: {name: {{ $app }}-{{ $i }}, labels: {app: {{ $app }}}}
spec: {containers: [{name: busybox, image: busybox, command: [sleep, "3600"]}]}
{{- end }}
---
kind: Status
status:
  podNames: {{ keys $pods | sortAlpha | toJson }}
  availableReplicas: {{ countWhere $pods "status.phase" "Running" }}
"#;

fn load(texts: &[(&str, &str)]) -> Result<Arc<dyn Program>, Box<Diagnostic>> {
    program::load("config/reconcilers/podset", &files(texts))
}

fn parent() -> Value {
    json!({"apiVersion": "app.example.com/v1alpha1", "kind": "PodSet",
           "metadata": {"name": "web", "namespace": "default"}, "spec": {"replicas": 2}})
}

fn pod(name: &str, phase: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod",
           "metadata": {"name": name, "namespace": "default", "labels": {"app": "web"}},
           "status": {"phase": phase}})
}

fn run(text: &str) -> Result<Desired, Box<Diagnostic>> {
    run_with(text, &observed(parent(), vec![pod("web-0", "Running")]))
}

fn run_with(text: &str, observed: &Observed) -> Result<Desired, Box<Diagnostic>> {
    let host = Fake { objects: vec![pod("web-0", "Running"), pod("web-1", "Pending")], ..Fake::default() };
    let program =
        load(&[("podset/pods.yaml", text), ("podset/owns.yaml", "owns: [v1/Pod, apps/v1/Deployment]\n")])?;
    program.reconcile(observed, &host, &Limits::default())
}

fn place(error: &Diagnostic) -> String {
    let place = error.place.clone().unwrap_or_default();
    format!("{}:{}:{}", place.file.trim_start_matches("config/reconcilers/"), place.line, place.column)
}

#[test]
fn a_pod_set_is_rendered() {
    let observed = observed(parent(), vec![pod("web-0", "Running"), pod("web-1", "Pending")]);
    let desired = run_with(PODSET, &observed).unwrap();
    let names: Vec<&str> = desired.children.iter().map(|c| c["metadata"]["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["web-0", "web-1"]);
    assert_eq!(desired.status, Some(json!({"podNames": ["web-0", "web-1"], "availableReplicas": 1})));
    assert_eq!(desired, run_with(PODSET, &observed).unwrap());
}

#[test]
fn a_missing_key_is_named_with_its_place() {
    let text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\ndata:\n  n: {{ .self.spec.replica }}\n";
    let error = run(text).unwrap_err();
    assert_eq!(error.message, ".self.spec.replica: no key replica; it has replicas");
    assert_eq!(place(&error), "podset/pods.yaml:5:14");
    assert!(error.hint.is_some());
    assert!(run("{{ .owned.Pod }}").is_err(), "a map is not a document");
    assert!(run("{{ $x := .owned.Deployment }}").is_ok());
    expect![".owned.Service: no key Service; it has Deployment, Pod"]
        .assert_eq(&run("{{ $x := .owned.Service }}").unwrap_err().message);
    assert_eq!(run("{{ dig \"spec\" \"image\" \"none\" .self | fail }}").unwrap_err().message, "none");
}

#[test]
fn faults_of_documents_lie_in_the_template() {
    let cases = [
        (
            "# ä\n{{ range until 3 }}\n---\nkind: Pod\nmetadata: {name: x}\n{{ end }}",
            "apiVersion is missing",
            "podset/pods.yaml:4:1",
        ),
        ("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: [x\n", "is not YAML", "podset/pods.yaml:5:"),
        (
            "{{ include \"other\" . }}{{ define \"other\" }}a: [\nb{{ end }}",
            "is not YAML",
            "podset/pods.yaml:1:",
        ),
        (
            "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: 7\n",
            "metadata.name is not a text",
            "podset/pods.yaml:4:9",
        ),
        ("kind: Status\nstatus: [1]\n", "status is not an object", "podset/pods.yaml:2:9"),
        (
            "kind: Release\nname: x\nchart: charts/x\nvalue: {}\n",
            "did you mean values?",
            "podset/pods.yaml:4:8",
        ),
        ("kind: Conditions\nconditions:\n- {type: Ready}\n", "has no status", "podset/pods.yaml:3:3"),
        ("a{{ nope }}", "function \"nope\" not defined", "podset/pods.yaml:1:"),
        ("x\n{{ if }}", "missing value for if", "podset/pods.yaml:2:"),
        (
            "{{ lookup \"v1\" \"Secret\" \"default\" \"x\" }}",
            "secrets are not to be read",
            "podset/pods.yaml:1:4",
        ),
        ("{{ requeue \"soon\" }}", "not a time such as", "podset/pods.yaml:1:4"),
    ];
    for (text, words, at) in cases {
        let error = run(text).unwrap_err();
        assert!(error.message.contains(words), "{text}: {}", error.message);
        assert!(place(&error).starts_with(at), "{text}: {} {}", place(&error), error.message);
    }
}

#[test]
fn functions_say_the_rest() {
    let text = r#"
{{- $nodes := collect (select "v1/Pod" (dict "app" "web")) "metadata.name" }}
{{- $d := get .owned.Deployment "web" }}
{{- if not (ready $d) }}{{ wait "the Deployment web" }}{{ end }}
{{- requeue "1m30s" }}{{ requeue 30 }}
{{- event "Normal" "Synced" "all is well" }}
{{- condition "Ready" false "Waiting" "for web" }}
kind: Status
status:
  nodes: {{ $nodes | sortAlpha | toJson }}
  random: {{ randAlphaNum 8 }}
  now: {{ now | date "2006-01-02" }} {{ .now }}
  one: {{ (lookup "v1" "Pod" "default" "web-0").status.phase }}
  phases: {{ len (where (select "Pod") "status.phase" "Pending") }}
---
kind: Conditions
conditions: [{type: Synced, status: "True"}]
---
kind: Events
events: [{type: Warning, reason: Odd, message: m}]
---
kind: Release
name: {{ .self.metadata.name }}
chart: charts/memcached
values: {replicaCount: {{ .self.spec.replicas }}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: theirs, annotations: {opdev.dev/patch: own}}
data: {a: b}
"#;
    let desired = run(text).unwrap();
    assert_eq!(desired.waiting.as_deref(), Some("the Deployment web"));
    assert_eq!(desired.requeue_after, Some(Duration::from_secs(30)));
    let status = desired.status.clone().unwrap();
    assert_eq!(status["nodes"], json!(["web-0", "web-1"]));
    assert_eq!(status["now"], "2026-03-04 2026-03-04T05:06:07Z");
    assert_eq!((&status["one"], &status["phases"]), (&json!("Running"), &json!(1)));
    assert_eq!(desired.conditions.len(), 2);
    assert_eq!(desired.conditions[0]["status"], "False");
    assert_eq!(desired.events.len(), 2);
    assert_eq!(desired.releases[0].values, json!({"replicaCount": 2}));
    assert!(desired.patches[0].own);
    assert_eq!(desired.patches[0].object["metadata"], json!({"name": "theirs"}));
    let read = |name: Option<&str>, selector: &str| Read {
        gvk: Gvk::new("", "v1", "Pod"),
        namespace: Some("default".to_owned()),
        name: name.map(str::to_owned),
        selector: selector.to_owned(),
    };
    assert_eq!(desired.reads, [read(None, ""), read(None, "app=web"), read(Some("web-0"), "")]);
    assert_eq!(run(text).unwrap(), desired, "chance and clock are those of the reconcile");
}

#[test]
fn a_finalizer_is_a_template_of_its_own() {
    let program = load(&[
        ("podset/pods.yaml", PODSET),
        ("podset/_names.tpl", "{{ define \"x\" }}x{{ end }}"),
        ("podset/owns.yaml", "kind: app.example.com/v1alpha1/PodSet\nowns:\n- v1/Pod\n"),
        ("podset/finalize.tpl", "{{ if .owned.Pod }}{{ wait \"pods to go\" }}{{ end }}"),
    ])
    .unwrap();
    assert!(program.facts().finalizes);
    assert_eq!(program.facts().kind, Some(Gvk::new("app.example.com", "v1alpha1", "PodSet")));
    let finalize = |children: Vec<Value>| {
        let observed = Observed { finalizing: true, ..observed(parent(), children) };
        program.reconcile(&observed, &Fake::default(), &Limits::default()).unwrap()
    };
    let waiting = finalize(vec![pod("web-0", "Running")]);
    assert_eq!((waiting.finalized, waiting.waiting.as_deref()), (false, Some("pods to go")));
    assert!(finalize(Vec::new()).finalized);
    let first =
        program.reconcile(&observed(parent(), Vec::new()), &Fake::default(), &Limits::default()).unwrap();
    assert_eq!((first.children.len(), first.finalized), (2, false));
}

#[test]
fn releases_are_in_scope() {
    let release = ReleaseState { name: "db".to_owned(), ready: true, revision: 3, ..ReleaseState::default() };
    let observed = Observed { releases: vec![release], ..observed(parent(), Vec::new()) };
    let text =
        "kind: Status\nstatus: {ready: {{ .releases.db.ready }}, revision: {{ .releases.db.revision }}}";
    assert_eq!(run_with(text, &observed).unwrap().status, Some(json!({"ready": true, "revision": 3})));
}

#[test]
fn endless_templates_end() {
    let cases = [
        (
            "{{ range until 100000 }}{{ range until 100000 }}{{ end }}{{ end }}",
            "did not end within 200 ms",
            200,
        ),
        ("{{ define \"a\" }}{{ include \"a\" . }}{{ end }}{{ include \"a\" . }}", "nested reference", 60_000),
        ("{{ range until 1000000 }}{{ repeat 1000 \"xxxxxxxxxx\" }}{{ end }}", "writes too much", 60_000),
    ];
    for (text, words, millis) in cases {
        let limits = Limits { time: Duration::from_millis(millis), ..Limits::default() };
        let program = load(&[("podset/a.yaml", text)]).unwrap();
        let error =
            program.reconcile(&observed(parent(), Vec::new()), &Fake::default(), &limits).unwrap_err();
        assert!(error.message.contains(words), "{text}: {}", error.message);
        assert_eq!(error.place.unwrap().line, 1);
    }
}

#[test]
fn a_folder_must_make_sense() {
    let error = load(&[("podset/readme.txt", "")]).unwrap_err();
    expect!["config/reconcilers/podset/ holds no templates"].assert_eq(&error.message);
    let wrong = |owns: &str| load(&[("podset/a.yaml", ""), ("podset/owns.yaml", owns)]).unwrap_err();
    assert_eq!(place(&wrong("owns: [v1/Pod, Nonsense]")), "podset/owns.yaml:1:16");
    assert_eq!(place(&wrong("own: []")), "podset/owns.yaml:1:1");
    assert!(program::load("config/reconcilers/none", &files(&[("podset/a.yaml", "")])).is_err());
}
