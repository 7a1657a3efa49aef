//! The operators of the demo project in their smallest form: they show that the contract is enough for them.

use super::{Fake, load, observed, pod};
use crate::contract::{Desired, Limits, Observed};
use serde_json::{Value, json};

fn call(text: &str, parent: Value, children: Vec<Value>, objects: Vec<Value>) -> Desired {
    let host = Fake { objects, ..Fake::default() };
    load(text).unwrap().reconcile(&observed(parent, children), &host, &Limits::default()).unwrap()
}

#[test]
fn memcached_backup() {
    let text = r#"import type { MemcachedBackup } from "opdev:types";
        import { list } from "opdev";
        export const owns = ["apps/v1/Deployment"];
        export function reconcile(self: MemcachedBackup) {
          const labels = { app: "memcached-backup", backup: self.metadata.name };
          return {
            children: [{ apiVersion: "apps/v1", kind: "Deployment", metadata: { name: self.metadata.name, labels },
              spec: { replicas: self.spec.size, selector: { matchLabels: labels },
                      template: { metadata: { labels }, spec: { containers: [{ name: "backup", image: "busybox" }] } } } }],
            status: { nodes: list("v1/Pod", labels).map((p) => p.metadata.name).sort() },
          };
        }"#;
    let parent = json!({"apiVersion": "cache.my.domain/v1", "kind": "MemcachedBackup",
                        "metadata": {"name": "nightly", "namespace": "default"}, "spec": {"size": 2}});
    let mut pods = vec![pod("b", "", true), pod("a", "", true), pod("c", "", true)];
    for pod in &mut pods[..2] {
        pod["metadata"]["labels"] = json!({"app": "memcached-backup", "backup": "nightly"});
    }
    let desired = call(text, parent, Vec::new(), pods);
    assert_eq!(desired.children[0]["spec"]["replicas"], 2);
    assert_eq!(desired.status, Some(json!({"nodes": ["a", "b"]})));
}

const GROUP: &str = r#"import { get, patch, wait } from "opdev";
export function reconcile(self: ArmadaChartGroup) {
  const patches = [];
  for (const name of self.spec.charts) {
    const c = get("armada.airshipit.org/v1alpha1/ArmadaChart", name);
    if (!c) return wait(`ArmadaChart ${name} is missing`, { patches });
    patches.push(patch(c, { spec: { target_state: self.spec.target_state } }, { own: true }));
    if (c.status?.actual_state !== self.spec.target_state) return wait(`waiting for ${name}`, { patches });
  }
  return { patches, status: { actual_state: self.spec.target_state, satisfied: true } };
}"#;

fn armada(kind: &str, name: &str, spec: &Value, state: Option<&str>) -> Value {
    json!({"apiVersion": "armada.airshipit.org/v1alpha1", "kind": kind, "metadata": {"name": name, "namespace": "default"},
           "spec": spec, "status": {"actual_state": state}})
}

#[test]
fn armada_chart_group_goes_in_sequence() {
    let group =
        armada("ArmadaChartGroup", "g", &json!({"charts": ["a", "b"], "target_state": "deployed"}), None);
    let chart = |name: &str, state: &str| armada("ArmadaChart", name, &json!({}), Some(state));
    let waiting = |objects: Vec<Value>| {
        let desired = call(GROUP, group.clone(), Vec::new(), objects);
        (desired.waiting, desired.patches.len(), desired.status)
    };
    assert_eq!(waiting(vec![]), (Some("ArmadaChart a is missing".to_owned()), 0, None));
    assert_eq!(
        waiting(vec![chart("a", "uninitialized"), chart("b", "x")]),
        (Some("waiting for a".to_owned()), 1, None)
    );
    assert_eq!(
        waiting(vec![chart("a", "deployed"), chart("b", "x")]),
        (Some("waiting for b".to_owned()), 2, None)
    );
    let done = waiting(vec![chart("a", "deployed"), chart("b", "deployed")]);
    assert_eq!(done, (None, 2, Some(json!({"actual_state": "deployed", "satisfied": true}))));
}

#[test]
fn armada_chart_installs_what_it_names() {
    let text = r#"import { release, wait } from "opdev";
        export function reconcile(self, ctx) {
          if (self.spec.target_state !== "deployed") return { status: { actual_state: "uninitialized", satisfied: false } };
          const releases = [release({ name: self.spec.release, chart: self.spec.source, values: self.spec.values })];
          const state = ctx.releases[self.spec.release];
          if (!state?.ready) return wait(state?.message || `the release ${self.spec.release}`, { releases, status: { actual_state: "pending" } });
          return { releases, status: { actual_state: "deployed", satisfied: true } };
        }
        export function finalize(self, ctx) {
          return { finalized: Object.keys(ctx.releases).length === 0, releases: [] };
        }"#;
    let spec = |state: &str| json!({"target_state": state, "release": "db", "source": "charts/db", "values": {"a": 1}});
    let off = call(text, armada("ArmadaChart", "c", &spec("uninitialized"), None), vec![], vec![]);
    assert!(off.releases.is_empty() && off.waiting.is_none());
    let on = call(text, armada("ArmadaChart", "c", &spec("deployed"), None), vec![], vec![]);
    assert_eq!((on.releases.len(), on.waiting.as_deref()), (1, Some("the release db")));
    let leaving = Observed {
        finalizing: true,
        ..observed(armada("ArmadaChart", "c", &spec("deployed"), None), vec![])
    };
    let gone = load(text).unwrap().reconcile(&leaving, &Fake::default(), &Limits::default()).unwrap();
    assert!(gone.finalized);
}
