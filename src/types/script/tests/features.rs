//! The features of scripts, function by function.

use super::{Fake, files, load, observed, parent, place, pod, run};
use crate::contract::{Desired, Limits, Observed, Program, Read, ReleaseState};
use crate::program;
use expect_test::expect;
use opdev_object::meta::Gvk;
use opdev_types::diagnostic::Diagnostic;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

fn with(host: &Fake, text: &str) -> Result<Desired, Box<Diagnostic>> {
    load(text)?.reconcile(&observed(parent(), Vec::new()), host, &Limits::default())
}

fn status(text: &str) -> Value {
    run(&format!("export function reconcile(self, ctx) {{ return {{ status: {{ {text} }} }}; }}"))
        .unwrap()
        .status
        .unwrap()
}

#[test]
fn reads_are_answered_and_noted() {
    let mut other = pod("x", "2026-01-01T00:00:00Z", true);
    other["metadata"]["namespace"] = json!("other");
    other["metadata"]["labels"] = json!({"app": "db"});
    let host = Fake {
        objects: vec![
            pod("a", "2026-01-01T00:00:00Z", true),
            other,
            json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}),
        ],
        ..Fake::default()
    };
    let text = r#"import { get, list } from "opdev";
        export function reconcile() {
          let refused = "";
          try { get("v1/Secret", "s"); } catch (e) { refused = e.message; }
          let unknown = "";
          try { get("Nope", "s"); } catch (e) { unknown = e.message; }
          return { status: {
            a: get("v1/Pod", "a").metadata.name, none: get("Pod", "zz") === undefined,
            there: get("v1/Pod", "x", "other")?.metadata.name, node: get("Node", "n").kind,
            all: list("v1/Pod", null, "*").length, db: list("v1/Pod", { app: "db" }, "other").length,
            expr: list("v1/Pod", { matchExpressions: [{ key: "app", operator: "In", values: ["b", "db"] }] }, "*").map(p => p.metadata.name),
            text: list("v1/Pod", "app!=db").length, chart: get("ArmadaChart", "c") ?? null, refused, unknown } };
        }"#;
    let desired = with(&host, text).unwrap();
    assert_eq!(
        desired.status,
        Some(
            json!({"a": "a", "none": true, "there": "x", "node": "Node", "all": 2, "db": 1, "expr": ["x"], "text": 1,
                    "chart": null, "refused": "secrets are not to be read", "unknown": "no kind Nope is served"})
        )
    );
    let read = |kind: &str, namespace: Option<&str>, name: Option<&str>, selector: &str| Read {
        gvk: Gvk::new("", "v1", kind),
        namespace: namespace.map(str::to_owned),
        name: name.map(str::to_owned),
        selector: selector.to_owned(),
    };
    for expected in [
        read("Pod", Some("default"), Some("a"), ""),
        read("Pod", Some("other"), Some("x"), ""),
        read("Node", None, Some("n"), ""),
        read("Pod", None, None, ""),
        read("Pod", Some("other"), None, "app=db"),
        read("Pod", None, None, "app in (b,db)"),
        read("Pod", Some("default"), None, "app!=db"),
        read("Secret", Some("default"), Some("s"), ""),
    ] {
        assert!(desired.reads.contains(&expected), "{expected:?} is not in {:?}", desired.reads);
    }
    assert_eq!(desired.reads.len(), 10);
}

#[test]
fn wishes_find_their_places() {
    let text = r#"import { patch, release, wait, event, condition } from "opdev";
        export function reconcile(self) {
          const theirs = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "theirs", namespace: "other" } };
          const seen = event("Normal", "Seen", "once");
          condition("Ready", false, "Waiting", "for it");
          return wait("the database", {
            status: { conditions: [{ type: "Old", status: "True" }], n: 1 },
            children: [release({ chart: "charts/db", values: { a: 1 } }), false, undefined, null],
            patches: [patch(theirs, { data: { a: "b" }, metadata: { labels: { x: "y" } } }, { own: true })],
            conditions: [{ type: "Synced", status: true, reason: "Ok", message: "m" }],
            events: [seen, { type: "Warning", reason: "Odd", message: "twice" }],
            requeueAfter: "1m30s" });
        }"#;
    let desired = run(text).unwrap();
    assert_eq!(desired.waiting.as_deref(), Some("the database"));
    assert_eq!(desired.status, Some(json!({"n": 1})));
    assert_eq!(desired.requeue_after, Some(Duration::from_secs(90)));
    assert!(desired.children.is_empty());
    let release = &desired.releases[0];
    assert_eq!(
        (release.name.as_str(), release.chart.as_str(), &release.namespace),
        ("web", "charts/db", &None)
    );
    assert_eq!(release.values, json!({"a": 1}));
    assert!(desired.patches[0].own);
    assert_eq!(
        desired.patches[0].object,
        json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "b"},
               "metadata": {"name": "theirs", "namespace": "other", "labels": {"x": "y"}}})
    );
    let kinds: Vec<&str> = desired.conditions.iter().map(|c| c["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["Old", "Ready", "Synced"]);
    assert_eq!(
        (&desired.conditions[1]["status"], &desired.conditions[2]["status"]),
        (&json!("False"), &json!("True"))
    );
    let reasons: Vec<&str> = desired.events.iter().map(|event| event.reason.as_str()).collect();
    assert_eq!(reasons, ["Seen", "Odd"], "an event that is also listed is recorded once");
}

#[test]
fn clock_and_chance_are_those_of_the_pass() {
    assert_eq!(
        status(
            "now: Date.now(), iso: new Date().toISOString(), year: new Date().getFullYear(), text: ctx.now, \
                same: +new Date() === Date.now(), is: new Date() instanceof Date, local: new Date(\"2026-01-02T03:04:05\").toISOString(), \
                made: new Date(2026, 0, 2, 3).getHours(), offset: new Date().getTimezoneOffset(), called: typeof Date()"
        ),
        json!({"now": 1_772_600_767_000_i64, "iso": "2026-03-04T05:06:07.000Z", "year": 2026, "text": "2026-03-04T05:06:07Z",
               "same": true, "is": true, "local": "2026-01-02T03:04:05.000Z", "made": 3, "offset": 0, "called": "string"})
    );
    let roll = "export function reconcile() { return { status: { a: Math.random(), b: Math.random() } }; }";
    let first = run(roll).unwrap().status.unwrap();
    assert_eq!(Some(first.clone()), run(roll).unwrap().status);
    assert_ne!(first["a"], first["b"]);
    let other = Observed { seed: 43, ..observed(parent(), Vec::new()) };
    let second = load(roll).unwrap().reconcile(&other, &Fake::default(), &Limits::default()).unwrap();
    assert_ne!(Some(first), second.status);
}

#[test]
fn nothing_survives_a_call() {
    let program = load("let n = 0; export function reconcile() { globalThis.m = (globalThis.m ?? 0) + 1; n++; return { status: { n, m: globalThis.m } }; }").unwrap();
    for _ in 0..3 {
        let desired =
            program.reconcile(&observed(parent(), Vec::new()), &Fake::default(), &Limits::default()).unwrap();
        assert_eq!(desired.status, Some(json!({"n": 1, "m": 1})));
    }
}

#[test]
fn what_is_observed_is_frozen() {
    let error =
        run("export function reconcile(self) {\n  self.spec.replicas = 7;\n  return {};\n}").unwrap_err();
    expect!["TypeError: 'replicas' is read-only"].assert_eq(&error.message);
    assert_eq!(place(&error).split(':').nth(1), Some("2"));
    expect!["what is observed cannot be changed: make a copy first, such as `{ ...object }` or structuredClone-like spreads"]
    .assert_eq(&error.hint.unwrap());
}

#[test]
fn large_integers_keep_their_digits() {
    let mut parent = parent();
    parent["spec"]["big"] = json!(9_007_199_254_740_993_i64);
    parent["spec"]["huge"] = json!(u64::MAX);
    let text = "export function reconcile(self) { return { status: { type: typeof self.spec.big, back: self.spec.big, more: self.spec.big + 1n, huge: self.spec.huge, small: self.spec.replicas, float: 1.5, none: undefined, nil: null } }; }";
    let desired = load(text)
        .unwrap()
        .reconcile(&observed(parent, Vec::new()), &Fake::default(), &Limits::default())
        .unwrap();
    assert_eq!(
        desired.status,
        Some(json!({"type": "bigint", "back": 9_007_199_254_740_993_i64, "more": 9_007_199_254_740_994_i64,
                    "huge": u64::MAX, "small": 3, "float": 1.5, "nil": null}))
    );
}

#[test]
fn the_outside_is_reached_through_the_host() {
    let host = Fake::default();
    let text = r#"import { exec, log } from "opdev";
        export const allow = ["api.example.com", "date"];
        export async function reconcile() {
          const answer = await fetch("https://api.example.com/v", { method: "post", headers: { "X-A": 1 }, body: "{}" });
          const { version } = await answer.json();
          const said = await exec("date", ["-u", 7], { input: "in" });
          console.warn("odd", { a: 1 }, 2n); log("plain");
          let denied = "";
          try { await fetch("https://denied.example"); } catch (e) { denied = e.message; }
          return { status: { version, ok: answer.ok, type: answer.headers.get("CONTENT-TYPE"), text: await answer.text(), ...said, denied } };
        }"#;
    let program = load(text).unwrap();
    assert_eq!(program.facts().asks, ["api.example.com", "date"]);
    let desired = program.reconcile(&observed(parent(), Vec::new()), &host, &Limits::default()).unwrap();
    assert_eq!(
        desired.status,
        Some(
            json!({"version": "1.2.3", "ok": true, "type": "application/json", "text": "{\"version\":\"1.2.3\"}",
                    "code": 0, "stdout": "-u+7", "stderr": "", "denied": "the host denied.example is not allowed"})
        )
    );
    assert_eq!(*host.lines.lock().unwrap(), ["warn: odd {\"a\":1} \"2n\"", "info: plain"]);
    let fetches = host.fetches.lock().unwrap();
    assert_eq!((fetches[0].method.as_str(), fetches[0].headers["X-A"].as_str()), ("POST", "1"));
    assert_eq!(host.execs.lock().unwrap()[0].input.as_deref(), Some("in"));
}

#[test]
fn logs_are_bounded() {
    let host = Fake::default();
    with(&host, "export function reconcile() { for (let i = 0; i < 5000; i++) console.log(i, \"x\".repeat(10000)); return {}; }").unwrap();
    let lines = host.lines.lock().unwrap();
    assert_eq!(lines.len(), 1001);
    expect!["info: more than 1000 lines in one call: the rest is dropped"].assert_eq(&lines[1000]);
    assert!(lines.iter().all(|line| line.chars().count() < 4200));
}

#[test]
fn modules_come_from_beside_the_script() {
    let all = [
        (
            "x.ts",
            "import { name } from \"./lib/names.ts\";\nimport type { T } from \"./types.d.ts\";\nexport function reconcile() { return { status: { name: name(\"a\") } }; }",
        ),
        (
            "lib/names.ts",
            "import { up } from \"../up.js\";\nexport const name = (a: string): string => up(a);",
        ),
        ("up.js", "export const up = (a) => a.toUpperCase();"),
        ("circle.ts", "import \"./b.ts\"; export function reconcile() {}"),
        ("b.ts", "import \"./circle.ts\";"),
        ("deep.ts", "import { boom } from \"./boom.ts\";\nexport function reconcile() { return boom(); }"),
        ("boom.ts", "// one\nexport function boom(): never {\n  throw new RangeError(\"bang\");\n}"),
    ];
    let load = |entry: &str| program::load(&format!("config/reconcilers/{entry}"), &files(&all));
    let run = |program: Arc<dyn Program>| {
        program.reconcile(&observed(parent(), Vec::new()), &Fake::default(), &Limits::default())
    };
    assert_eq!(run(load("x.ts").unwrap()).unwrap().status, Some(json!({"name": "A"})));
    expect!["these modules import each other: config/reconcilers/circle.ts → config/reconcilers/b.ts → config/reconcilers/circle.ts"]
    .assert_eq(&load("circle.ts").unwrap_err().message);
    let error = run(load("deep.ts").unwrap()).unwrap_err();
    assert_eq!((error.message.as_str(), place(&error).as_str()), ("RangeError: bang", "boom.ts:3:13"));
    assert_eq!(error.stack.len(), 2);

    let import = |line: &str| {
        let text = format!("\n{line}\nexport function reconcile() {{ return {{}}; }}");
        program::load("config/reconcilers/y.ts", &files(&[("y.ts", &text), all[1], all[2]])).unwrap_err()
    };
    let cases = [
        ("import x from \"lodash\";", "there is no module \"lodash\"", "y.ts:2:15"),
        ("import \"./none.ts\";", "config/reconcilers/none.ts is not there", "y.ts:2:8"),
        ("import \"../../secret.ts\";", "secret.ts is not there", "y.ts:2:8"),
        ("import { none } from \"opdev\";", "ould not find export", "y.ts:2:"),
        ("import { up } from \"./up\";", "is not there", "y.ts:2:20"),
    ];
    for (line, words, at) in cases {
        let error = import(line);
        assert!(error.message.contains(words), "{line}: {}", error.message);
        assert!(place(&error).starts_with(at), "{line}: {} {}", place(&error), error.message);
        assert!(error.hint.is_some(), "{line}");
    }
    assert_eq!(import("import { up } from \"./up\";").hint.as_deref(), Some("write \"./up.js\""));
}

#[test]
fn errors_say_what_to_do() {
    let cases = [
        ("setTimeout(() => {}, 1)", "requeueAfter"),
        ("require(\"fs\")", "not Node"),
        ("owned(\"v1/Pod\")", "import it"),
        ("self.metadata.labels.x", ""),
    ];
    for (body, hint) in cases {
        let error = run(&format!("export function reconcile(self) {{\n  {body};\n}}")).unwrap_err();
        assert!(error.hint.clone().unwrap_or_default().contains(hint), "{body}: {}", error.message);
        assert_eq!(place(&error).split(':').nth(1), Some("2"), "{body}");
    }
    let error = run(
        "import { owned } from \"opdev\";\nexport function reconcile() {\n  return owned(\"v1/Pod\");\n}",
    )
    .unwrap_err();
    assert_eq!(error.message, "owned: Pod v1 is not in `owns` of this file; add \"v1/Pod\"");
    assert_eq!(place(&error), "x.ts:3:10");
    assert_eq!(error.stack.len(), 1, "frames of the host are dropped: {:?}", error.stack);
    let error = run("export function reconcile() {\n  throw \"just text\";\n}").unwrap_err();
    assert_eq!((error.message.as_str(), place(&error).as_str()), ("just text", "x.ts:1:17"));
    let error = load("export function reconcile() {\n  const a = ;\n}").unwrap_err();
    assert!(error.message.starts_with("SyntaxError"), "{}", error.message);
    assert_eq!(place(&error), "x.ts:2:13");
}

#[test]
fn metacontroller_hooks_run_as_they_are() {
    let text = r#"export const owns = ["v1/Pod", "apps/v1/Deployment"];
        export function sync(request) {
          const pods = request.children["Pod.v1"];
          return { status: { kind: request.parent.kind, pods: Object.keys(pods), deployments: Object.keys(request.children["Deployment.apps/v1"]).length, finalizing: request.finalizing, related: request.related },
                   children: [{ apiVersion: "v1", kind: "Pod", metadata: { name: "x" } }], resyncAfterSeconds: 1.5 };
        }
        export function finalize(request) {
          return { finalized: Object.keys(request.children["Pod.v1"]).length === 0, children: [] };
        }"#;
    let program = load(text).unwrap();
    assert!(program.facts().finalizes);
    let pods = vec![pod("b", "2026-01-01T00:00:00Z", true), pod("a", "2026-01-01T00:00:00Z", true)];
    let desired =
        program.reconcile(&observed(parent(), pods.clone()), &Fake::default(), &Limits::default()).unwrap();
    assert_eq!(
        desired.status,
        Some(
            json!({"kind": "PodSet", "pods": ["b", "a"], "deployments": 0, "finalizing": false, "related": {}})
        )
    );
    assert_eq!((desired.children.len(), desired.requeue_after), (1, Some(Duration::from_millis(1500))));
    let finalize = |children: Vec<Value>| {
        let observed = Observed { finalizing: true, ..observed(parent(), children) };
        program.reconcile(&observed, &Fake::default(), &Limits::default()).unwrap().finalized
    };
    assert_eq!((finalize(pods), finalize(Vec::new())), (false, true));
}

#[test]
fn children_of_cluster_scoped_parents_are_told_apart() {
    let mut parent = parent();
    parent["metadata"] = json!({"name": "web"});
    let text = "export const owns = [\"v1/Pod\"]; export function reconcile(self, ctx) { return { status: { keys: Object.keys(ctx.children[\"Pod.v1\"]) } }; }";
    let desired = load(text)
        .unwrap()
        .reconcile(
            &observed(parent, vec![pod("a", "2026-01-01T00:00:00Z", true)]),
            &Fake::default(),
            &Limits::default(),
        )
        .unwrap();
    assert_eq!(desired.status, Some(json!({"keys": ["default/a"]})));
}

#[test]
fn releases_are_shown() {
    let release = ReleaseState {
        name: "db".to_owned(),
        status: "deployed".to_owned(),
        ready: true,
        ..ReleaseState::default()
    };
    let observed = Observed { releases: vec![release], ..observed(parent(), Vec::new()) };
    let text = "export function reconcile(self, ctx) { return { status: { db: ctx.releases.db.status, ready: ctx.releases.db.ready, none: ctx.releases.x === undefined } }; }";
    let desired = load(text).unwrap().reconcile(&observed, &Fake::default(), &Limits::default()).unwrap();
    assert_eq!(desired.status, Some(json!({"db": "deployed", "ready": true, "none": true})));
}

#[test]
fn a_script_must_export_what_is_called() {
    let cases = [
        ("", "exports no function reconcile"),
        ("export function reconcile() {}\nexport function sync() {}", "both reconcile and sync"),
        ("export function reconcile() {}\nexport function customize() {}", "customize is not called"),
        ("export const kind = \"PodSet\"; export function reconcile() {}", "\"PodSet\" is not a kind"),
        ("export const owns = [7]; export function reconcile() {}", "`owns` must be a list of texts"),
    ];
    for (text, words) in cases {
        let error = load(text).unwrap_err();
        assert!(error.message.contains(words), "{text}: {}", error.message);
        assert!(error.place.unwrap().line > 0);
    }
}
