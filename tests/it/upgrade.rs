//! `opdev upgrade` as a user and a CI job run it: small operators, each with a fault that users would meet,
//! and the same operators with the upgrade done well.

mod programs;

use expect_test::expect;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// A project in a repository of its own, and a home for opdev.
struct Repository {
    folder: tempfile::TempDir,
    root: PathBuf,
}

impl Repository {
    fn new(files: &[(&str, &str)]) -> Repository {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap().join("project");
        fs::create_dir(&root).unwrap();
        let repository = Repository { folder, root };
        repository.write(files);
        repository.git(&["init", "-q"]);
        repository.release("v1.0.0");
        repository
    }

    fn write(&self, files: &[(&str, &str)]) {
        for (path, text) in files {
            let path = self.root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
    }

    fn edit(&self, path: &str, old: &str, new: &str) {
        let text = fs::read_to_string(self.root.join(path)).unwrap();
        assert!(text.contains(old), "{old} is not in {path}:\n{text}");
        fs::write(self.root.join(path), text.replace(old, new)).unwrap();
    }

    fn git(&self, args: &[&str]) {
        let mut all =
            vec!["-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false"];
        all.extend(args);
        let done = Command::new("git").args(all).current_dir(&self.root).output().unwrap();
        assert!(done.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&done.stderr));
    }

    fn release(&self, tag: &str) {
        self.git(&["add", "."]);
        self.git(&["commit", "-qm", tag]);
        self.git(&["tag", tag]);
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_opdev"));
        command.args(args).current_dir(&self.root).env("HOME", self.folder.path());
        command.env_remove("KUBECONFIG").env_remove("XDG_CACHE_HOME").env_remove("GITHUB_ACTIONS");
        command.stdin(Stdio::null());
        command
    }

    fn run(&self, args: &[&str]) -> Output {
        self.command(&[&["upgrade"], args].concat()).output().unwrap()
    }

    /// The report, and the exit code.
    fn report(&self, args: &[&str]) -> (Value, i32) {
        let output = self.run(&[&["-o", "json"], args].concat());
        let report = serde_json::from_slice(&output.stdout);
        (report.unwrap_or_else(|_| panic!("{}", told(&output))), output.status.code().unwrap())
    }
}

fn told(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    format!("{}{}", text(&output.stdout), text(&output.stderr))
}

/// Level, class, object, fields and variants of each finding.
fn findings(report: &Value) -> Vec<String> {
    let words = |value: &Value| {
        let all = value.as_array().unwrap().iter().map(|one| one.as_str().unwrap());
        all.collect::<Vec<_>>().join(" ")
    };
    let one = |one: &Value| {
        let text = |field: &str| one[field].as_str().unwrap();
        let (fields, variants) = (words(&one["fields"]), words(&one["variants"]));
        format!("{} {} {} [{fields}] {variants}", text("level"), text("class"), text("object"))
    };
    report["findings"].as_array().unwrap().iter().map(one).collect()
}

const LABELS: &str = "labels: {app: {{ .Release.Name }}}";

/// Three kinds, each with a chart of its own.
fn charts() -> Repository {
    let watch = |kind: &str| {
        let chart = kind.to_lowercase();
        format!("- {{group: x.io, version: v1, kind: {kind}, chart: helm-charts/{chart}}}\n")
    };
    let chart = |name: &str| format!("apiVersion: v2\nname: {name}\nversion: 1.0.0\n");
    let sample = |kind: &str, name: &str| {
        format!("apiVersion: x.io/v1\nkind: {kind}\nmetadata: {{name: {name}}}\nspec: {{size: 1}}\n")
    };
    let deployment = |labels: &str| {
        format!(
            "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: {{{{ .Release.Name }}}}\n  {LABELS}\nspec:\n  replicas: 2\n  \
             selector:\n    matchLabels: {{app: {{{{ .Release.Name }}}}}}\n  template:\n    metadata:\n      labels:\n        \
             app: {{{{ .Release.Name }}}}\n{labels}    spec:\n      containers: [{{name: web, image: web:1}}]\n"
        )
    };
    let service = "apiVersion: v1\nkind: Service\nmetadata: {name: {{ .Release.Name }}-http}\nspec:\n  selector: {app: x}\n  \
                   ports: [{port: 80}]\n";
    let watches = ["Selector", "Label", "Name"].map(watch).concat();
    let version = "        chart: {{ .Chart.Name }}-{{ .Chart.Version }}\n";
    Repository::new(&[
        ("watches.yaml", &watches),
        ("helm-charts/selector/Chart.yaml", &chart("selector")),
        ("helm-charts/selector/templates/all.yaml", &deployment("")),
        ("helm-charts/label/Chart.yaml", &chart("label")),
        ("helm-charts/label/templates/all.yaml", &deployment(version)),
        ("helm-charts/name/Chart.yaml", &chart("name")),
        ("helm-charts/name/templates/all.yaml", service),
        ("config/samples/selector.yaml", &sample("Selector", "one")),
        ("config/samples/label.yaml", &sample("Label", "two")),
        ("config/samples/name.yaml", &sample("Name", "three")),
    ])
}

#[test]
fn incidents_of_charts_are_named_with_object_and_field() {
    let project = charts();
    // A selector, a label that tells of the version in the pods' template, the name of a Service.
    project.edit(
        "helm-charts/selector/templates/all.yaml",
        "app: {{ .Release.Name }}}\n  template",
        "app: {{ .Release.Name }}, part: web}\n  template",
    );
    project.edit("helm-charts/selector/templates/all.yaml", "    spec:", "        part: web\n    spec:");
    project.edit("helm-charts/label/Chart.yaml", "1.0.0", "1.0.1");
    project.edit("helm-charts/name/templates/all.yaml", "-http", "-web");
    let before = fs::read(project.root.join(".git/index")).unwrap();
    let (report, code) = project.report(&["--only", "plain,crd-left-old"]);
    assert_eq!(
        findings(&report),
        [
            "error write-refused Deployment default/one [.spec.selector] plain crd-left-old",
            "error renamed Service default/three-http [.metadata.name] plain crd-left-old",
            "warning pods-roll Deployment default/two [.spec.template.metadata.labels.chart] plain crd-left-old",
        ],
        "{report:#}"
    );
    assert_eq!(code, 1);
    assert_eq!(fs::read(project.root.join(".git/index")).unwrap(), before, "the repository is left alone");
    assert!(!project.root.join(".opdev").exists(), "nothing is written into the project");
}

#[test]
fn an_upgrade_of_charts_that_hurts_nobody_is_quiet() {
    let project = charts();
    // These wishes can be met well: labels of the object, a version of the chart, another Service beside the
    // old one.
    project.edit(
        "helm-charts/selector/templates/all.yaml",
        "metadata:\n  name",
        "metadata:\n  annotations: {part: web}\n  name",
    );
    project.edit("helm-charts/selector/Chart.yaml", "1.0.0", "1.0.1");
    project.edit(
        "helm-charts/name/templates/all.yaml",
        "ports: [{port: 80}]",
        "ports: [{port: 80}, {port: 81, name: b}]",
    );
    project.edit("helm-charts/name/templates/all.yaml", "[{port: 80}", "[{port: 80, name: a}");
    let (report, code) = project.report(&["--fail-on", "warning"]);
    assert_eq!((findings(&report), code), (Vec::new(), 0), "{report:#}");
}

#[test]
fn an_upgrade_to_itself_is_quiet_and_says_so() {
    let project = charts();
    let output = project.run(&["--fail-on", "warning", "--junit", "report.xml", "--html", "report.html"]);
    let text = told(&output);
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(
        text.contains("v1.0.0 → your working tree")
            && text.contains("same           the old version again: the baseline        changes nothing"),
        "{text}"
    );
    let junit = fs::read_to_string(project.root.join("report.xml")).unwrap();
    assert!(junit.contains("<testsuites name=\"opdev upgrade\" tests=\"5\" failures=\"0\""), "{junit}");
    let html = fs::read_to_string(project.root.join("report.html")).unwrap();
    assert!(html.contains("<h2>v1.0.0 → your working tree</h2>"), "{html}");
    assert!(html.contains("<span class=\"ok\">nothing is wrong</span>"), "{html}");
}

/// What each release does alone, and what happens to those who skip them: here a name that goes and comes back.
#[test]
fn each_release_in_between_is_rehearsed_and_then_the_whole_way() {
    let project = charts();
    project.edit("helm-charts/name/templates/all.yaml", "-http", "-web");
    project.release("v1.1.0");
    project.edit("helm-charts/name/templates/all.yaml", "-web", "-http");
    let output = project.run(&[
        "--from",
        "v1.0.0",
        "--through",
        "--only",
        "plain",
        "-o",
        "json",
        "--junit",
        "report.xml",
    ]);
    assert_eq!(output.status.code(), Some(1), "{}", told(&output));
    let reports: Vec<Value> =
        serde_json::Deserializer::from_slice(&output.stdout).into_iter().map(Result::unwrap).collect();
    let steps: Vec<String> = reports
        .iter()
        .map(|report| format!("{} {} {:?}", report["from"], report["to"], findings(report)).replace('"', ""))
        .collect();
    assert_eq!(
        steps,
        [
            "v1.0.0 v1.1.0 [error renamed Service default/three-http [.metadata.name] plain]",
            "v1.1.0 your working tree [error renamed Service default/three-web [.metadata.name] plain]",
            "v1.0.0 your working tree []",
        ]
    );
    let junit = fs::read_to_string(project.root.join("report.xml")).unwrap();
    assert!(
        junit.contains("<testsuite name=\"v1.0.0 → v1.1.0: plain\" tests=\"1\" failures=\"1\""),
        "{junit}"
    );
    // The releases may be named.
    let named = project.run(&["--from", "v1.0.0", "--through=v1.1.0", "--only", "plain"]);
    let text = told(&named);
    assert!(text.contains("again: opdev upgrade --from v1.0.0 --to v1.1.0 --only plain"), "{text}");
    let none = project.run(&["--from", "v1.1.0", "--through", "--only", "plain"]);
    assert!(told(&none).contains("note: no tag lies between the two versions"), "{}", told(&none));
}

#[test]
fn restarts_count_where_they_are_forbidden() {
    let project = charts();
    project.edit("helm-charts/label/Chart.yaml", "1.0.0", "1.0.1");
    let roll = ["--only", "plain"];
    assert_eq!(project.report(&roll).1, 0, "a warning alone");
    assert_eq!(project.report(&[&roll[..], &["--fail-on", "warning"]].concat()).1, 1);
    let output = project.run(&[&roll[..], &["--no-restarts"]].concat());
    let text = told(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(
        text.contains(
            "error   Deployment default/two: its 2 pods are made anew for the label of the version alone"
        ),
        "{text}"
    );
    assert!(text.contains("note: 1 file that is not committed counts"), "{text}");
}

fn crd(kind: &str, versions: &str) -> String {
    let (plural, lower) = (format!("{}s", kind.to_lowercase()), kind.to_lowercase());
    format!(
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {{name: {plural}.x.io}}\nspec:\n  group: \
         x.io\n  scope: Namespaced\n  names: {{kind: {kind}, listKind: {kind}List, plural: {plural}, singular: {lower}}}\n  \
         versions:\n{versions}"
    )
}

fn version(name: &str, storage: bool, spec: &str, status: &str) -> String {
    format!(
        "  - name: {name}\n    served: true\n    storage: {storage}\n    subresources: {{status: {{}}}}\n    schema:\n      \
         openAPIV3Schema:\n        type: object\n        properties:\n          spec: {{type: object, properties: {{{spec}}}}}\n          \
         status: {{type: object, properties: {{{status}}}}}\n"
    )
}

const SIZE: &str = "size: {type: integer, maximum: 10}, port: {type: integer}";

/// Three kinds, each with a script.
fn scripts() -> Repository {
    let sample = |version: &str, kind: &str| {
        let name = kind.to_lowercase();
        format!(
            "apiVersion: x.io/{version}\nkind: {kind}\nmetadata: {{name: {name}}}\nspec: {{size: 5, port: 80}}\n"
        )
    };
    let map = |kind: &str| {
        format!(
            "export const kind = \"x.io/v1/{kind}\";\nexport function reconcile(self) {{\n  return {{\n    children: [{{ \
             apiVersion: \"v1\", kind: \"ConfigMap\", metadata: {{ name: self.metadata.name }}, data: {{ size: \
             String(self.spec.size) }} }}],\n    status: {{ ready: true }},\n  }};\n}}\n"
        )
    };
    let claims = "export const kind = \"x.io/v1/Claim\";\nexport function reconcile(self) {\n  const app = self.metadata.name;\n  \
                  return {\n    children: [{\n      apiVersion: \"apps/v1\", kind: \"StatefulSet\", metadata: { name: app },\n      \
                  spec: {\n        replicas: 1, serviceName: app, selector: { matchLabels: { app } },\n        template: { metadata: { labels: { app } }, spec: { containers: [{ name: \"db\", image: \"db:1\" }] } },\n        \
                  volumeClaimTemplates: [{ metadata: { name: \"data\" }, spec: { accessModes: [\"ReadWriteOnce\"], resources: { requests: { storage: \"1Gi\" } } } }],\n      \
                  },\n    }],\n    status: { ready: true },\n  };\n}\n";
    let status = "ready: {type: boolean}";
    let v1 = version("v1", true, SIZE, status);
    let both = version("v1beta1", false, SIZE, status) + &v1;
    Repository::new(&[
        ("config/crd/claims.yaml", &crd("Claim", &v1)),
        ("config/crd/fields.yaml", &crd("Field", &v1)),
        ("config/crd/olds.yaml", &crd("Old", &both)),
        ("config/reconcilers/claim.js", claims),
        ("config/reconcilers/field.js", &map("Field")),
        ("config/reconcilers/old.js", &map("Old")),
        ("config/samples/claim.yaml", &sample("v1", "Claim")),
        ("config/samples/field.yaml", &sample("v1", "Field")),
        ("config/samples/old.yaml", &sample("v1beta1", "Old")),
    ])
}

#[test]
fn incidents_of_scripts_and_types_are_named_with_object_and_field() {
    let project = scripts();
    // Claims that may not change, a stored field that the schema has no more, a version that is not served
    // any more.
    project.edit("config/reconcilers/claim.js", "1Gi", "2Gi");
    let v1 = version("v1", true, "size: {type: integer, maximum: 4}", "ready: {type: boolean}");
    project.write(&[("config/crd/fields.yaml", &crd("Field", &v1))]);
    let unserved =
        version("v1beta1", false, SIZE, "ready: {type: boolean}").replace("served: true", "served: false");
    let v1 = version("v1", true, SIZE, "ready: {type: boolean}");
    project.write(&[("config/crd/olds.yaml", &crd("Old", &(unserved + &v1)))]);
    let (report, code) = project.report(&["--only", "plain"]);
    assert_eq!(
        findings(&report),
        [
            "error write-refused StatefulSet default/claim [.spec.volumeClaimTemplates] plain",
            "error field-lost Field default/field [.spec.port] plain",
            "error old-manifest-refused Field default/field [.spec.port] plain",
            "error old-manifest-refused Old default/old [.apiVersion] plain",
            "hint definition-changed fields.x.io [.spec.size] plain",
        ],
        "{report:#}"
    );
    assert_eq!(code, 1);
}

#[test]
fn a_version_at_which_objects_are_stored_may_not_go() {
    let project = scripts();
    let v2 = version("v2", true, SIZE, "ready: {type: boolean}");
    project.write(&[("config/crd/fields.yaml", &crd("Field", &v2))]);
    project.edit("config/reconcilers/field.js", "x.io/v1/", "x.io/v2/");
    let (report, _) = project.report(&["--only", "plain"]);
    let found = findings(&report);
    assert!(found.contains(&"error definition-refused fields.x.io [] plain".to_owned()), "{report:#}");
    assert!(found.contains(&"error kind-not-served Field x.io/v2 [] plain".to_owned()), "{report:#}");
}

#[test]
fn fields_that_helm_would_leave_out_are_told_where_crds_stay_old() {
    let project = scripts();
    let fields = format!("{SIZE}, tls: {{type: boolean}}");
    let v1 = version("v1", true, &fields, "ready: {type: boolean}, address: {type: string}");
    project.write(&[("config/crd/fields.yaml", &crd("Field", &v1))]);
    project.edit("config/samples/field.yaml", "port: 80", "port: 80, tls: true");
    project.edit("config/reconcilers/field.js", "ready: true", "ready: true, address: \"x\"");
    let (report, code) = project.report(&["--fail-on", "warning"]);
    assert_eq!(
        findings(&report),
        [
            "error write-refused Field default/field [.status.address] crd-left-old",
            "hint new-manifest-refused Field default/field [.spec.tls] crd-left-old",
        ],
        "{report:#}"
    );
    assert_eq!(code, 1);
    let (report, code) = project.report(&["--only", "plain", "--fail-on", "warning"]);
    assert_eq!(
        (findings(&report), code),
        (Vec::new(), 0),
        "where the CRDs come first, nothing is wrong: {report:#}"
    );
}

#[test]
fn what_stays_after_a_downgrade_is_told() {
    let project = charts();
    let service = "---\napiVersion: v1\nkind: Service\nmetadata: {name: kept, annotations: {helm.sh/resource-policy: keep}}\n\
                   spec: {ports: [{port: 80}]}\n";
    let path = "helm-charts/name/templates/all.yaml";
    let text = fs::read_to_string(project.root.join(path)).unwrap();
    project.write(&[(path, &format!("{text}{service}"))]);
    let (report, _) = project.report(&["--only", "back"]);
    assert_eq!(findings(&report), ["error stays-after-back Service default/kept [] back"], "{report:#}");
}

#[test]
fn bad_input_is_answered_with_what_to_do() {
    let project = charts();
    let fails = |args: &[&str], said: &str| {
        let output = project.run(args);
        let text = told(&output);
        assert!(text.contains(said), "{args:?}: {text}");
        output.status.code().unwrap()
    };
    assert_eq!(fails(&["--from", "v9"], "git knows no commit v9: its newest tags are v1.0.0"), 3);
    assert_eq!(fails(&["--only", "everything"], "the variants are plain, crd-left-old"), 2);
    project.git(&["tag", "-d", "v1.0.0"]);
    assert_eq!(fails(&[], "no tag leads to HEAD"), 3);
    // A folder needs no git.
    let old = project.folder.path().join("old");
    crate::inner_loop::copy(&project.root, &old);
    fs::remove_dir_all(project.root.join(".git")).unwrap();
    assert_eq!(fails(&[], "is in no git repository"), 3);
    let (report, code) = project.report(&["--from", old.to_str().unwrap(), "--only", "plain"]);
    assert_eq!((findings(&report), code), (Vec::new(), 0), "{report:#}");
    for chart in ["selector", "label", "name"] {
        let template = old.join("helm-charts").join(chart).join("templates/all.yaml");
        fs::write(template, "{{ fail \"a password is needed\" }}\n").unwrap();
    }
    let from_old = ["--from", old.to_str().unwrap()];
    assert_eq!(fails(&from_old, "makes no object of its samples"), 3);
    assert_eq!(
        fails(&from_old, "fails: execution error at (name/templates/all.yaml:1:3): a password is needed"),
        3
    );
    fs::remove_dir_all(old.join("config/samples")).unwrap();
    assert_eq!(fails(&["--from", old.to_str().unwrap()], "has no sample of a kind that it reconciles"), 3);
}

#[test]
fn trust_is_asked_for_both_versions() {
    let project = scripts();
    project.write(&[("opdev.yaml", "allow:\n  programs: [echo]\n")]);
    project.release("v1.1.0");
    let output = project.run(&["--only", "plain"]);
    assert_eq!(output.status.code(), Some(3), "{}", told(&output));
    assert!(
        told(&output).contains("v1.1.0: ") && told(&output).contains("or add --trust"),
        "{}",
        told(&output)
    );
    assert_eq!(project.report(&["--only", "plain", "--trust"]).1, 0);
    // An older version that wants what this one wants, and no more, needs no trust of its own.
    let trusted = project.command(&["trust"]).output().unwrap();
    assert!(trusted.status.success(), "{}", told(&trusted));
    assert_eq!(project.report(&["--only", "plain"]).1, 0);
}

/// The demo operators of this repository, against those of the commit that changed them last.
#[test]
fn the_demo_operators_may_be_upgraded() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let parts = ["charts", "config", "samples"];
    let git = |args: &[&str]| Command::new("git").args(args).current_dir(root).output().unwrap();
    let changed = git(&[&["log", "-1", "--format=%H~1", "--"][..], &parts[..]].concat());
    let before = String::from_utf8_lossy(&changed.stdout).trim().to_owned();
    if before.is_empty() || !git(&["rev-parse", "--verify", "--quiet", &before]).status.success() {
        eprintln!("skipped: this is no clone with a history");
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_opdev"));
    command.args(["upgrade", "--from", &before]).current_dir(root).env("HOME", home.path());
    let output = command.env_remove("XDG_CACHE_HOME").stdin(Stdio::null()).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", told(&output));
}

#[test]
fn definitions_are_compared_without_a_control_plane() {
    let project = scripts();
    let compare =
        |args: &[&str]| project.command(&[&["crd", "--compare", "v1.0.0"], args].concat()).output().unwrap();
    let output = compare(&[]);
    assert_eq!(output.status.code(), Some(0), "{}", told(&output));
    expect![[r#"
        v1.0.0 → your working tree: no difference
    "#]]
    .assert_eq(&told(&output));
    let more = version("v1", true, &format!("{SIZE}, tls: {{type: boolean}}"), "ready: {type: boolean}");
    project.write(&[("config/crd/claims.yaml", &crd("Claim", &more))]);
    let output = compare(&["--verbose"]);
    assert_eq!(output.status.code(), Some(0), "{}", told(&output));
    expect![[r#"
        claims.x.io
          INFO v1 spec.tls: new optional field (boolean)  (config/crd/claims.yaml:0)
        v1.0.0 → your working tree: nothing that works today stops working
    "#]]
    .assert_eq(&told(&output));
    let less = version("v1", true, "size: {type: integer, maximum: 4}", "ready: {type: boolean}");
    project.write(&[("config/crd/fields.yaml", &crd("Field", &less))]);
    let output =
        project.command(&["crd", "--compare", "v1.0.0"]).env("GITHUB_ACTIONS", "true").output().unwrap();
    let text = told(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    expect![[r#"
        fields.x.io
          LOSS v1 spec.port: the field (integer) is gone: stored values are pruned at the next write  (config/crd/fields.yaml:0)
          BREAK v1 spec.size: maximum is 4 now, was 10  (config/crd/fields.yaml:0)
        v1.0.0 → your working tree: 2 differences hurt those who use it; 1 of no consequence (--verbose)
        ::error file=config/crd/fields.yaml,line=1::fields.x.io: LOSS v1 spec.port: the field (integer) is gone: stored values are pruned at the next write
        ::error file=config/crd/fields.yaml,line=1::fields.x.io: BREAK v1 spec.size: maximum is 4 now, was 10
    "#]]
    .assert_eq(&text);
    // Where there is no webhook, versions lose what the other one has not.
    let beta = version("v1beta1", false, SIZE, "ready: {type: boolean}");
    let v1 = version("v1", true, &format!("{SIZE}, tls: {{type: boolean}}"), "ready: {type: boolean}");
    project.write(&[("config/crd/olds.yaml", &crd("Old", &(beta + &v1)))]);
    let text = told(&compare(&[]));
    expect![[r#"
        fields.x.io
          LOSS v1 spec.port: the field (integer) is gone: stored values are pruned at the next write  (config/crd/fields.yaml:0)
          BREAK v1 spec.size: maximum is 4 now, was 10  (config/crd/fields.yaml:0)
        olds.x.io
          WARN v1beta1 spec.tls: v1beta1 has no .spec.tls: who reads an object at v1beta1 and writes it back takes it out of the store  (config/crd/olds.yaml:0)
        v1.0.0 → your working tree: 2 differences hurt those who use it; 2 of no consequence (--verbose)
    "#]]
    .assert_eq(&text);
}
