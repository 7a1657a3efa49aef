//! Secrets go nowhere: canaries in a Secret, in a custom resource, in values, in an override, in a release
//! and in template errors, and a look at everything that opdev shows, prints and writes.

use super::processes::{Process, api, serve};
use crate::inner_loop::demo_project;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kube::api::{DeleteParams, Patch, PatchParams};
use opdev_event::Event;
use opdev_panes::keys::chord::Key;
use opdev_state::State;
use opdev_tui::{Input, ViewState, draw, update};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use serde_json::json;
use std::path::Path;

/// The beginning of every canary; each place has its own end.
const CANARY: &str = "kanari";

fn edit(root: &Path, path: &str, change: impl FnOnce(String) -> String) {
    let text = std::fs::read_to_string(root.join(path)).unwrap();
    let beside = root.join("beside");
    std::fs::write(&beside, change(text)).unwrap();
    std::fs::rename(beside, root.join(path)).unwrap();
}

fn prepare(root: &Path) {
    edit(root, "charts/memcached/values.yaml", |text| {
        format!("{text}\npassword: {CANARY}-values\nadmin:\n  token: unset\nplain: \"\"\n")
    });
    let secret = "apiVersion: v1\nkind: Secret\nmetadata:\n  name: {{ .Release.Name }}\nstringData:\n  \
                  word: {{ .Values.password }}\n  admin: {{ .Values.admin.token }}\n";
    std::fs::write(root.join("charts/memcached/templates/secret.yaml"), secret).unwrap();
    edit(root, "config/crd/cache.my.domain_memcacheds.yaml", |text| {
        let spec = "description: What is wanted. Each field is a value of the memcached chart.\n";
        assert!(text.contains(spec));
        text.replacen(spec, "x-kubernetes-preserve-unknown-fields: true\n", 1)
    });
    edit(root, "config/watches.yaml", |text| {
        text.replacen(
            "chart: charts/memcached\n",
            "chart: charts/memcached\n  overrideValues:\n    admin.token: $CANARY_OVERRIDE\n",
            1,
        )
    });
    edit(root, "charts/memcached/templates/deployment.yaml", |text| {
        text.replacen(
            "          ports:\n",
            "          env:\n            - name: MEMCACHED_PASSWORD\n              value: {{ .Values.password }}\n          ports:\n",
            1,
        )
    });
}

/// The whole flow with canaries everywhere; returns what was printed.
async fn flow(root: &Path, format: &str) -> Vec<String> {
    let server = serve().await;
    let kubeconfig = server.kubeconfig(|_| ());
    let arguments = ["run", format, "--kubeconfig", kubeconfig.to_str().unwrap()];
    let environment = [("CANARY_OVERRIDE", format!("{CANARY}-override"))];
    let home = |command: &mut std::process::Command| {
        command.current_dir(root).env("HOME", root).env_remove("XDG_STATE_HOME").status().unwrap()
    };
    let trusted = home(std::process::Command::new(env!("CARGO_BIN_EXE_opdev")).arg("trust"));
    assert!(trusted.success(), "the project reads the environment");
    let mut opdev = Process::start_in(root, &arguments, &environment);
    let installed: &[&str] =
        if format == "--json" { &["\"reconciled\"", "\"installed\""] } else { &["reconciled", "installed"] };
    let failed: &[&str] =
        if format == "--json" { &["\"reconciled\"", "\"failed\""] } else { &["reconciled", "failed"] };
    let upgraded: &[&str] =
        if format == "--json" { &["\"reconciled\"", "\"upgraded\""] } else { &["reconciled", "upgraded"] };
    let repaired: &[&str] =
        if format == "--json" { &["\"reconciled\"", "\"repaired\""] } else { &["reconciled", "repaired"] };
    let gone: &[&str] = if format == "--json" {
        &["\"reconciled\"", "\"uninstalled\""]
    } else {
        &["reconciled", "uninstalled"]
    };
    opdev.until(if format == "--json" { &["\"sourcesChanged\""] } else { &["sources", "live"] }).await;

    let client = &server.client;
    let secrets = api(client, "", "v1", "Secret");
    let own = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "own"},
        "stringData": {"word": format!("{CANARY}-secret")}});
    let apply = PatchParams::apply("test").force();
    secrets.patch("own", &apply, &Patch::Apply(own)).await.unwrap();
    let memcacheds = api(client, "cache.my.domain", "v1alpha1", "Memcached");
    let resource = |password: &str| {
        json!({"apiVersion": "cache.my.domain/v1alpha1", "kind": "Memcached", "metadata": {"name": "m"},
            "spec": {"replicaCount": 1, "password": format!("{CANARY}-{password}")}})
    };
    memcacheds.patch("m", &apply, &Patch::Apply(resource("spec"))).await.unwrap();
    opdev.until(installed).await;
    memcacheds.patch("m", &apply, &Patch::Apply(resource("changed"))).await.unwrap();
    opdev.until(upgraded).await;
    let drift = json!({"data": {"word": STANDARD.encode(format!("{CANARY}-drift"))}});
    secrets.patch("m", &PatchParams::default(), &Patch::Merge(drift)).await.unwrap();
    opdev.until(repaired).await;

    let template = "charts/memcached/templates/service.yaml";
    // A chart that never renders is refused as it is saved, one that does not render for this object in its
    // reconcile.
    let json = format == "--json";
    let refused: &[&str] = if json { &["\"reloadFailed\""] } else { &["reload", "failed"] };
    let live: &[&str] = if json { &["\"sourcesChanged\""] } else { &["sources", "live"] };
    let unchanged: &[&str] =
        if json { &["\"reconciled\"", "\"unchanged\""] } else { &["reconciled", "unchanged"] };
    for broken in [
        "{{ fail (printf \"bad %s\" .Values.password) }}",
        "{{ .Values.password.nope }}",
        "x: [ {{ .Values.password }}\n  y: {{ .Values.admin.token }}\n",
        "{{ required .Values.password .Values.plain }}",
    ] {
        edit(root, template, |text| format!("{broken}\n{text}"));
        opdev.until(refused).await;
        edit(root, template, |text| text[broken.len() + 1..].to_owned());
        opdev.until(live).await;
        let broken = format!("{{{{ if hasSuffix \"changed\" .Values.password }}}}{broken}{{{{ end }}}}");
        edit(root, template, |text| format!("{broken}\n{text}"));
        opdev.until(failed).await;
        edit(root, template, |text| text[broken.len() + 1..].to_owned());
        opdev.until(unchanged).await;
    }
    memcacheds.delete("m", &DeleteParams::default()).await.unwrap();
    opdev.until(gone).await;
    let said = opdev.stop().await;
    server.process.stop().await;
    said
}

/// Every place where a canary sits, in plain and in base64.
fn forms() -> Vec<String> {
    let places = ["values", "override", "secret", "spec", "changed", "drift"];
    let words: Vec<String> = places.iter().map(|place| format!("{CANARY}-{place}")).collect();
    words.iter().map(|word| STANDARD.encode(word)).chain([CANARY.to_owned()]).collect()
}

fn clean(what: &str, text: &str) {
    for form in forms() {
        if let Some(line) = text.lines().find(|line| line.contains(&form)) {
            let at = line.find(&form).unwrap();
            let from = (0..=at.saturating_sub(300)).rev().find(|at| line.is_char_boundary(*at)).unwrap_or(0);
            panic!("{what} holds {form}: ...{}", line[from..].chars().take(700).collect::<String>());
        }
    }
}

fn files_of(folder: &Path) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files_of(&path));
        } else {
            found.push(path);
        }
    }
    found
}

/// Walks through all panes and tabs of a state.
fn screens(state: &State) -> String {
    let mut view = ViewState::default();
    let mut out = String::new();
    let mut terminal = Terminal::new(TestBackend::new(200, 60)).unwrap();
    let now = jiff::Timestamp::now();
    let keys = "1 j y ] ] ] ] ] ] ] ] ] 2 j j j y 3 v j j j j j j j j j j j j v ] ] ] ] o L ? esc";
    for name in keys.split_whitespace().chain("3 enter".split_whitespace()) {
        update(&mut view, Input::Key(Key::parse(name).unwrap()), state);
        for _ in 0..2 {
            terminal.draw(|frame| draw(state, &mut view, frame, now)).unwrap();
        }
        for row in terminal.backend().buffer().content().chunks(200) {
            out.extend(row.iter().map(ratatui::buffer::Cell::symbol));
            out.push('\n');
        }
    }
    out
}

#[tokio::test(flavor = "multi_thread")]
async fn no_canary_is_shown_printed_or_written() {
    let (_folder, root) = demo_project();
    prepare(&root);
    let said = flow(&root, "--json").await;
    let lines = said.join("\n");
    assert!(
        lines.contains("MEMCACHED_PASSWORD") && lines.contains("\"Secret\""),
        "the flow did not show what it should"
    );
    clean("--json", &lines);
    let mut state = State::default();
    let mut plain = String::new();
    let mut frames = String::new();
    for (number, line) in said.iter().enumerate() {
        let event: Event = serde_json::from_str(line).unwrap();
        plain.extend(opdev::print::plain(&event).map(|line| line + "\n"));
        let shows = matches!(event, Event::Reconciled(_) | Event::ReloadFailed(_));
        state.reduce(event);
        if shows || number + 1 == said.len() {
            frames.push_str(&screens(&state));
        }
    }
    assert!(
        frames.contains("Secret") && frames.contains("failed"),
        "the screens did not show what they should"
    );
    clean("--plain", &plain);
    clean("a pane", &frames);
    for path in files_of(&root.join(".opdev")) {
        let text = String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned();
        clean(&path.display().to_string(), &text);
    }
    assert!(root.join(".opdev/events.jsonl").exists());
}
