//! The script engine as the operator uses it.

mod features;
mod hostile;
mod operators;

use crate::contract::{
    Desired, Exec, Executed, Fetch, Fetched, Host, HostError, HostErrorKind, Limits, Observed, Program, Read,
};
use crate::program;
use opdev_object::meta::Gvk;
use opdev_object::selector::LabelSelector;
use opdev_types::diagnostic::Diagnostic;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A host over a list of objects.
#[derive(Default)]
pub(crate) struct Fake {
    pub(crate) objects: Vec<Value>,
    pub(crate) lines: Mutex<Vec<String>>,
    pub(crate) fetches: Mutex<Vec<Fetch>>,
    pub(crate) execs: Mutex<Vec<Exec>>,
}

impl Host for Fake {
    fn get(&self, read: &Read) -> Result<Option<Arc<Value>>, HostError> {
        if read.gvk.kind == "Secret" {
            return Err(HostError::new(HostErrorKind::Failed, "secrets are not to be read"));
        }
        Ok(self
            .list(read)?
            .into_iter()
            .find(|object| object["metadata"]["name"].as_str() == read.name.as_deref()))
    }

    fn list(&self, read: &Read) -> Result<Vec<Arc<Value>>, HostError> {
        let selector = LabelSelector::parse(&read.selector);
        let selector = selector.map_err(|error| HostError::new(HostErrorKind::Invalid, error))?;
        let fits = |object: &&Value| {
            Gvk::of(object).as_ref() == Some(&read.gvk)
                && read.namespace.as_deref().is_none_or(|ns| object["metadata"]["namespace"] == ns)
                && selector.matches(&object["metadata"]["labels"])
        };
        Ok(self.objects.iter().filter(fits).cloned().map(Arc::new).collect())
    }

    fn kind(&self, text: &str) -> Result<Gvk, HostError> {
        if text == "ArmadaChart" {
            return Ok(Gvk::new("armada.airshipit.org", "v1alpha1", "ArmadaChart"));
        }
        Err(HostError::new(HostErrorKind::NotServed, format!("no kind {text} is served")))
    }

    fn fetch(&self, request: &Fetch) -> Result<Fetched, HostError> {
        self.fetches.lock().unwrap().push(request.clone());
        if request.url.contains("denied") {
            return Err(HostError::new(HostErrorKind::NotAllowed, "the host denied.example is not allowed"));
        }
        let headers = BTreeMap::from([("Content-Type".to_owned(), "application/json".to_owned())]);
        Ok(Fetched { status: 200, headers, body: r#"{"version":"1.2.3"}"#.to_owned() })
    }

    fn exec(&self, command: &Exec) -> Result<Executed, HostError> {
        self.execs.lock().unwrap().push(command.clone());
        Ok(Executed { code: 0, stdout: command.arguments.join("+"), stderr: String::new() })
    }

    fn log(&self, level: &str, message: &str) {
        self.lines.lock().unwrap().push(format!("{level}: {message}"));
    }
}

pub(crate) fn files(texts: &[(&str, &str)]) -> BTreeMap<String, Arc<str>> {
    texts.iter().map(|(path, text)| (format!("config/reconcilers/{path}"), Arc::from(*text))).collect()
}

fn load(text: &str) -> Result<Arc<dyn Program>, Box<Diagnostic>> {
    program::load("config/reconcilers/x.ts", &files(&[("x.ts", text)]))
}

pub(crate) fn observed(parent: Value, children: Vec<Value>) -> Observed {
    Observed {
        parent: Arc::new(parent),
        children: children.into_iter().map(Arc::new).collect(),
        releases: Vec::new(),
        finalizing: false,
        now: "2026-03-04T05:06:07Z".to_owned(),
        seed: 42,
    }
}

fn parent() -> Value {
    json!({"apiVersion": "app.example.com/v1alpha1", "kind": "PodSet",
           "metadata": {"name": "web", "namespace": "default", "uid": "u1", "generation": 1},
           "spec": {"replicas": 3}})
}

fn run(text: &str) -> Result<Desired, Box<Diagnostic>> {
    load(text)?.reconcile(&observed(parent(), Vec::new()), &Fake::default(), &Limits::default())
}

fn quick() -> Limits {
    Limits { time: Duration::from_millis(300), memory: 16 << 20, stack: 256 << 10 }
}

fn place(diagnostic: &Diagnostic) -> String {
    let place = diagnostic.place.clone().unwrap_or_default();
    format!("{}:{}:{}", place.file.trim_start_matches("config/reconcilers/"), place.line, place.column)
}

const PODSET: &str = r#"import type { PodSet } from "opdev:types";
import { owned, replicas } from "opdev";
export const owns = ["v1/Pod"];
export const kind = "app.example.com/v1alpha1/PodSet";
export function reconcile(self: PodSet) {
  const app: string = self.metadata.name;
  const pods = owned("v1/Pod").filter(p => !p.metadata.deletionTimestamp);
  return {
    children: replicas(pods, self.spec.replicas, {
      metadata: { generateName: `${app}-pod`, labels: { app } },
      spec: { containers: [{ name: "busybox", image: "busybox", command: ["sleep", "3600"] }] } }),
    status: { podNames: pods.map(p => p.metadata.name).sort(),
              availableReplicas: pods.filter(p => p.status?.phase === "Running").length } };
}
"#;

fn pod(name: &str, created: &str, ready: bool) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod",
           "metadata": {"name": name, "namespace": "default", "creationTimestamp": created},
           "status": {"phase": if ready { "Running" } else { "Pending" },
                      "conditions": [{"type": "Ready", "status": if ready { "True" } else { "False" }}]}})
}

#[test]
fn a_pod_set_keeps_makes_and_drops() {
    let program = load(PODSET).unwrap();
    assert_eq!(program.facts().owns, [Gvk::new("", "v1", "Pod")]);
    assert_eq!(program.facts().kind, Some(Gvk::new("app.example.com", "v1alpha1", "PodSet")));
    assert!(!program.facts().finalizes);
    let reconcile = |children: Vec<Value>| {
        program.reconcile(&observed(parent(), children), &Fake::default(), &Limits::default()).unwrap()
    };
    let first = reconcile(Vec::new());
    assert_eq!(first.children.len(), 3);
    for child in &first.children {
        assert_eq!(child["apiVersion"], "v1");
        assert_eq!(child["kind"], "Pod");
        assert_eq!(child["metadata"], json!({"generateName": "web-pod", "labels": {"app": "web"}}));
    }
    assert_eq!(first.status, Some(json!({"podNames": [], "availableReplicas": 0})));

    let mut leaving = pod("web-pod-0", "2026-01-01T00:00:00Z", true);
    leaving["metadata"]["deletionTimestamp"] = json!("2026-01-02T00:00:00Z");
    let live = vec![
        leaving,
        pod("web-pod-e", "2026-01-05T00:00:00Z", true),
        pod("web-pod-d", "2026-01-04T00:00:00Z", true),
        pod("web-pod-a", "2026-01-01T00:00:00Z", false),
        pod("web-pod-b", "2026-01-02T00:00:00Z", true),
        pod("web-pod-c", "2026-01-02T00:00:00Z", true),
    ];
    let names = |desired: &Desired| -> Vec<String> {
        desired.children.iter().map(|c| c["metadata"]["name"].as_str().unwrap_or("-").to_owned()).collect()
    };
    let many = reconcile(live.clone());
    assert_eq!(names(&many), ["web-pod-b", "web-pod-c", "web-pod-d"], "ready and oldest stay");
    assert_eq!(many.status.as_ref().unwrap()["availableReplicas"], 4);
    assert_eq!(names(&reconcile(live[3..5].to_vec())), ["web-pod-b", "web-pod-a", "-"]);
    assert_eq!(many, reconcile(live), "the same input gives the same answer");
}

#[test]
fn what_is_thrown_has_its_place() {
    let thrown = run("import { get } from \"opdev\";\nfunction inner(x: any): number {\n  return x.spec.deep;\n}\nexport function reconcile(self: unknown) {\n  return { status: { n: inner({}) } };\n}\n").unwrap_err();
    assert!(thrown.message.starts_with("TypeError: "), "{}", thrown.message);
    assert_eq!(place(&thrown), "x.ts:3:10", "{thrown:?}");
    assert_eq!(thrown.stack.len(), 2, "{:?}", thrown.stack);
    assert!(thrown.stack[1].starts_with("reconcile (config/reconcilers/x.ts:6:"), "{:?}", thrown.stack);
}
