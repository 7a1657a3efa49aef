//! `opdev ci` as a user and a CI job run it: samples, other programs, reports and exit codes.

mod broken;
mod junit;
mod places;

use crate::inner_loop::demo_project;
use expect_test::expect;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

fn command(root: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_opdev"));
    command.arg("ci").args(args).current_dir(root).env("HOME", root).env_remove("KUBECONFIG");
    command.env_remove("GITHUB_ACTIONS").stdin(Stdio::null());
    command
}

fn ci(root: &Path, args: &[&str]) -> Output {
    command(root, args).output().unwrap()
}

fn told(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    format!("{}{}", text(&output.stdout), text(&output.stderr))
}

#[test]
fn a_good_sample_is_green_and_its_reports_say_so() {
    let (_folder, root) = demo_project();
    let output = ci(&root, &["samples/memcached.yaml", "--junit", "junit.xml", "--html", "report.html"]);
    let text = told(&output);
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(
        text.contains("ok    samples/memcached.yaml") && text.contains("1 of 1 scenarios passed"),
        "{text}"
    );
    let junit = fs::read_to_string(root.join("junit.xml")).unwrap();
    for step in [
        "00-apply",
        "01-settled",
        "02-second reconcile writes nothing",
        "03-a child of each kind is deleted",
        "04-a child of each kind is changed",
        "05-delete",
        "06-nothing is left",
    ] {
        assert!(junit.contains(&format!("name=\"{step}\" classname=\"samples/memcached.yaml\"")), "{junit}");
    }
    assert!(junit.contains("failures=\"0\" errors=\"0\""), "{junit}");
    assert!(fs::read_to_string(root.join("report.html")).unwrap().contains("1 of 1 scenarios passed"));
    assert!(!root.join(".opdev/kubeconfig").exists(), "the control planes are nowhere in the project");
}

#[test]
fn samples_that_need_others_name_them() {
    let (_folder, root) = demo_project();
    let output = ci(&root, &["samples/armada/simple-armada.yaml"]);
    assert_eq!(output.status.code(), Some(0), "{}", told(&output));
}

#[test]
fn every_object_of_a_file_is_reconciled_and_deleted() {
    let (_folder, root) = demo_project();
    let hello = fs::read_to_string(root.join("samples/hello.yaml")).unwrap();
    let namespace = "apiVersion: v1\nkind: Namespace\nmetadata: {name: own}\n";
    let second = hello.replacen("metadata:\n  name: ", "metadata:\n  namespace: own\n  name: second-", 1);
    assert!(second.contains("second-"), "{hello}");
    fs::write(root.join("samples/both.yaml"), format!("{namespace}---\n{hello}\n---\n{second}")).unwrap();
    let output = ci(&root, &["samples/both.yaml"]);
    assert_eq!(output.status.code(), Some(0), "{}", told(&output));
    // The second one is judged as the first one is.
    let kind = second.lines().find(|line| line.starts_with("kind: ")).unwrap();
    let wrong = second.replacen("spec:", "spec:\n  noSuchField: 1", 1).replacen(kind, &format!("{kind}x"), 1);
    fs::write(root.join("samples/both.yaml"), format!("{namespace}---\n{hello}\n---\n{wrong}")).unwrap();
    let output = ci(&root, &["samples/both.yaml"]);
    assert_eq!(output.status.code(), Some(1), "{}", told(&output));
    fs::write(root.join("samples/both.yaml"), format!("{hello}\n---\na: [")).unwrap();
    let output = ci(&root, &["samples/both.yaml"]);
    assert_eq!(output.status.code(), Some(3), "{}", told(&output));
    expect![[r#"
        error: samples/both.yaml:12:1: yaml: line 11: did not find expected node content
    "#]]
    .assert_eq(&told(&output));
    let other = ci(&root, &["samples/hello.yaml"]);
    assert_eq!(other.status.code(), Some(0), "a broken file that was not picked: {}", told(&other));
}

#[test]
fn a_program_ends_with_all_that_it_has_started() {
    let (_folder, root) = demo_project();
    let script = "sleep 1000 & echo $! > child; wait";
    let mut running = command(&root, &["--", "sh", "-c", script]).stdout(Stdio::null()).spawn().unwrap();
    let child = loop {
        let text = fs::read_to_string(root.join("child")).unwrap_or_default();
        if let Some(pid) = text.strip_suffix('\n') {
            break pid.to_owned();
        }
        std::thread::yield_now();
        assert!(running.try_wait().unwrap().is_none(), "opdev has ended");
    };
    let kill = |signal: &str, pid: &str| {
        Command::new("kill").args([signal, pid]).stderr(Stdio::null()).status().unwrap()
    };
    assert!(kill("-TERM", &running.id().to_string()).success());
    assert_eq!(running.wait().unwrap().code(), Some(130));
    // A process that was killed is there until its parent has asked for it.
    let deadline = Instant::now() + Duration::from_secs(60);
    while fs::read_to_string(format!("/proc/{child}/stat")).is_ok_and(|stat| !stat.contains(") Z ")) {
        assert!(Instant::now() < deadline, "{child} lives on");
        std::thread::yield_now();
    }
}

#[test]
fn a_project_that_does_not_load_is_no_red_test() {
    let (_folder, root) = demo_project();
    let none = ci(&root, &["--filter", "no such sample"]);
    assert_eq!(none.status.code(), Some(3), "{}", told(&none));
    let allowed = ci(&root, &["--filter", "no such sample", "--allow-empty"]);
    assert_eq!(allowed.status.code(), Some(0), "{}", told(&allowed));
    assert_eq!(ci(&root, &["--shard", "3/2"]).status.code(), Some(2));
    assert_eq!(ci(&root, &["--repeat", "0"]).status.code(), Some(2));
    fs::write(root.join("charts/memcached/Chart.yaml"), "name: [").unwrap();
    let broken = ci(&root, &["samples/hello.yaml"]);
    assert_eq!(broken.status.code(), Some(3), "{}", told(&broken));
    expect![[r#"
        error: charts/memcached/Chart.yaml:2:1: cannot load Chart.yaml: error converting YAML to JSON: yaml: line 1: did not find expected node content
    "#]]
    .assert_eq(&told(&broken));
}

#[test]
fn another_program_finds_the_operator_by_its_kubeconfig() {
    let (_folder, root) = demo_project();
    let script = "test -f \"$KUBECONFIG\" && grep -q 127.0.0.1 \"$KUBECONFIG\" && echo seen; exit 7";
    let output = ci(&root, &["--", "sh", "-c", script]);
    assert_eq!((output.status.code(), told(&output).contains("seen")), (Some(7), true), "{}", told(&output));
    let missing = ci(&root, &["--", "no-such-program"]);
    assert_eq!(missing.status.code(), Some(3), "{}", told(&missing));
    expect![[r#"
        error: no-such-program cannot be started: No such file or directory (os error 2)
    "#]]
    .assert_eq(&told(&missing));
}

#[test]
fn github_shows_the_file_of_what_failed() {
    let (_folder, root) = demo_project();
    let service = root.join("charts/memcached/templates/service.yaml");
    let text = fs::read_to_string(&service).unwrap();
    fs::write(&service, text.replace("targetPort: memcached", "targetPort: {a: b}")).unwrap();
    let mut command = command(&root, &["samples/memcached.yaml", "--timeout", "5s"]);
    let output = command.env("GITHUB_ACTIONS", "true").output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", told(&output));
    assert!(
        told(&output).contains("\n::error file=samples/memcached.yaml,line=1::settled: "),
        "{}",
        told(&output)
    );
}

#[test]
fn what_failed_can_be_kept_and_looked_at() {
    let (_folder, root) = demo_project();
    let service = root.join("charts/memcached/templates/service.yaml");
    let text = fs::read_to_string(&service).unwrap();
    fs::write(&service, text.replace("targetPort: memcached", "targetPort: {a: b}")).unwrap();
    let args = ["samples/memcached.yaml", "--timeout", "5s", "--keep", "--junit", "junit.xml"];
    let mut running = command(&root, &args).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(running.stderr.take().unwrap()).lines();
    let said = lines.find(|line| line.as_ref().unwrap().contains("KUBECONFIG=")).unwrap().unwrap();
    assert!(said.starts_with("samples/memcached.yaml runs on: export KUBECONFIG="), "{said}");
    assert_eq!(lines.next().unwrap().unwrap(), "ctrl-c ends opdev");
    assert!(fs::read_to_string(root.join("junit.xml")).unwrap().contains("failures=\"1\""));
    // The custom resource is there, and the plane answers.
    let path = said.split_once('=').unwrap().1.trim_matches('\'');
    let kubeconfig = fs::read_to_string(path).unwrap();
    let server = kubeconfig.lines().find_map(|line| line.trim().strip_prefix("server: ")).unwrap();
    let address = server.trim_matches('"').trim_start_matches("https://");
    std::net::TcpStream::connect(address).unwrap();
    let interrupt = Command::new("kill").args(["-INT", &running.id().to_string()]).status().unwrap();
    assert!(interrupt.success());
    assert_eq!(running.wait().unwrap().code(), Some(1));
    assert!(!Path::new(path).exists(), "{path} is left behind");
    // Nothing is kept of what is green.
    fs::write(&service, text).unwrap();
    assert_eq!(ci(&root, &["samples/memcached.yaml", "--keep"]).status.code(), Some(0));
}

#[test]
fn random_functions_of_charts_draw_the_same_for_one_seed() {
    let (_folder, root) = demo_project();
    let account = root.join("charts/memcached/templates/serviceaccount.yaml");
    let text = fs::read_to_string(&account).unwrap();
    let random = text.replacen("  labels:", "  labels:\n    drawn: {{ fail (randAlphaNum 12) }}", 1);
    assert_ne!(text, random);
    fs::write(&account, random).unwrap();
    let drawn = |seed: &str| {
        let output =
            ci(&root, &["samples/memcached.yaml", "--timeout", "5s", "--seed", seed, "--junit", "junit.xml"]);
        assert_eq!(output.status.code(), Some(1), "{}", told(&output));
        assert!(
            told(&output).contains(&format!("draw the same again with --seed {seed}\n")),
            "{}",
            told(&output)
        );
        let junit = fs::read_to_string(root.join("junit.xml")).unwrap();
        assert!(junit.contains(&format!("<property name=\"seed\" value=\"{seed}\"/>")), "{junit}");
        // Each of the last reconciles has drawn this, by its number.
        let said = told(&output);
        let lines = said.lines().filter_map(|line| line.trim().strip_prefix("reconcile #"));
        let drawn = lines.map(|line| {
            (line.split(' ').next().unwrap().to_owned(), line.rsplit(' ').next().unwrap().to_owned())
        });
        drawn.collect::<BTreeMap<_, _>>()
    };
    let (first, second, other) = (drawn("7"), drawn("7"), drawn("8"));
    let both: Vec<_> = first.iter().filter(|(reconcile, _)| second.contains_key(*reconcile)).collect();
    assert!(!both.is_empty(), "{first:?} {second:?}");
    assert!(both.iter().all(|(reconcile, text)| second[*reconcile] == **text), "{first:?} {second:?}");
    assert!(first.iter().all(|(reconcile, text)| other.get(reconcile) != Some(text)), "{first:?} {other:?}");
    // Each reconcile draws anew, as in production.
    assert_eq!(first.values().collect::<BTreeSet<_>>().len(), first.len(), "{first:?}");
}

/// A project with the tests of the repository's own kuttl folder.
fn with_steps() -> (tempfile::TempDir, PathBuf, PathBuf) {
    let (folder, root) = demo_project();
    let steps = root.join("tests/e2e/memcached");
    fs::create_dir_all(&steps).unwrap();
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kuttl/memcached");
    for entry in fs::read_dir(own).unwrap() {
        let path = entry.unwrap().path();
        fs::copy(&path, steps.join(path.file_name().unwrap())).unwrap();
    }
    (folder, root, steps)
}

#[test]
fn folders_of_kuttl_run_in_this_process() {
    let (_folder, root, _) = with_steps();
    let output = ci(&root, &["tests/e2e", "--junit", "junit.xml"]);
    assert_eq!(output.status.code(), Some(0), "{}", told(&output));
    assert!(told(&output).contains("ok    tests/e2e/memcached"), "{}", told(&output));
    let junit = fs::read_to_string(root.join("junit.xml")).unwrap();
    for case in ["00-install", "01-scale", "02-delete"] {
        assert!(junit.contains(&format!("name=\"{case}\" classname=\"tests/e2e/memcached\"")), "{junit}");
    }
}

/// kuttl patches what is there: a step may have only what it changes, which would be no whole object.
#[test]
fn a_step_changes_a_part_of_an_object() {
    let (_folder, root, steps) = with_steps();
    fs::remove_dir_all(&steps).unwrap();
    fs::create_dir_all(&steps).unwrap();
    let whole = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec:\n  replicas: 1\n  selector: {matchLabels: {a: b}}\n  \
                 template: {metadata: {labels: {a: b}}, spec: {containers: [{name: web, image: nginx}]}}\n";
    let part = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {replicas: 2}\n";
    for (name, text) in [("00-install.yaml", whole), ("01-scale.yaml", part), ("01-assert.yaml", part)] {
        fs::write(steps.join(name), text).unwrap();
    }
    let output = ci(&root, &["tests/e2e", "--timeout", "15s"]);
    assert_eq!(output.status.code(), Some(0), "{}", told(&output));
    // A step may be a folder of its own, with names without numbers.
    fs::create_dir(steps.join("02-again")).unwrap();
    fs::write(steps.join("02-again/web.yaml"), part.replace('2', "3")).unwrap();
    fs::write(steps.join("02-again/assert.yaml"), part.replace('2', "3")).unwrap();
    let output = ci(&root, &["tests/e2e", "--timeout", "15s", "--junit", "junit.xml"]);
    assert_eq!(output.status.code(), Some(0), "{}", told(&output));
    let junit = fs::read_to_string(root.join("junit.xml")).unwrap();
    assert!(junit.contains("name=\"02-again\""), "{junit}");
    fs::write(steps.join("02-again/errors.yaml"), part.replace('2', "3")).unwrap();
    let output = ci(&root, &["tests/e2e", "--timeout", "3s"]);
    assert!(
        output.status.code() == Some(1) && told(&output).contains("02-again/errors.yaml"),
        "{}",
        told(&output)
    );
}

#[test]
fn a_step_that_is_otherwise_is_red_and_says_where() {
    let wrong = |name: &str, from: &str, to: &str| {
        let (_folder, root, steps) = with_steps();
        let path = steps.join(name);
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains(from), "{text}");
        fs::write(&path, text.replace(from, to)).unwrap();
        let output = ci(&root, &["tests/e2e/memcached", "--timeout", "5s"]);
        assert_eq!(output.status.code(), Some(1), "{}", told(&output));
        told(&output)
    };
    let field = wrong("01-assert.yaml", "readyReplicas: 3", "readyReplicas: 4");
    let said =
        "tests/e2e/memcached/01-assert.yaml:1: Deployment a-memcached .status.readyReplicas: wanted 4, is 3";
    assert!(field.contains(said) && field.contains("reconcile #"), "{field}");
    let there = wrong(
        "02-errors.yaml",
        "apps/v1\nkind: Deployment\nmetadata:\n  name: a-memcached",
        "v1\nkind: Namespace",
    );
    assert!(there.contains("Namespace") && there.contains("is there, and must not be"), "{there}");
    let writes = wrong("01-scale.opdev.yaml", "max: 1", "max: 0");
    assert!(writes.contains("01-scale.opdev.yaml:1: writes: wanted at most 0, were 1"), "{writes}");
    let outcome = wrong("00-install.opdev.yaml", "noLoops: true", "outcome: failed");
    assert!(outcome.contains("outcome: wanted failed, is "), "{outcome}");
}

/// Expressions of a `TestAssert`, as kuttl has them since 0.21.
#[test]
fn expressions_are_judged_and_say_where_they_stand() {
    let (_folder, root, steps) = with_steps();
    let refs = "apiVersion: kuttl.dev/v1beta1\nkind: TestAssert\nresourceRefs:\n- apiVersion: apps/v1\n  kind: Deployment\n  \
                name: a-memcached\n  ref: web\n- {apiVersion: v1, kind: Service, name: a-memcached, ref: service}\n";
    let all = "assertAny:\n- celExpr: web.status.readyReplicas > 7\n- celExpr: web.status.readyReplicas == 3\n\
               assertAll:\n- celExpr: service.spec.selector.all(k, web.spec.template.metadata.labels[k] == service.spec.selector[k])\n";
    let said = |text: &str, code: i32| {
        fs::write(steps.join("01-assert-more.yaml"), text).unwrap();
        let output = ci(&root, &["tests/e2e/memcached", "--timeout", "5s"]);
        assert_eq!(output.status.code(), Some(code), "{}", told(&output));
        told(&output)
    };
    // They hold only after the scaling, which the plane does meanwhile.
    said(&format!("{refs}{all}"), 0);
    let place = "tests/e2e/memcached/01-assert-more.yaml";
    let any = said(&format!("{refs}{}", all.replace("== 3", "== 4")), 1);
    assert!(any.contains(&format!("{place}:9: no expression of assertAny holds")), "{any}");
    assert!(any.contains(&format!("{place}:11: web.status.readyReplicas == 4 is false")), "{any}");
    let missing = said(&format!("{refs}assertAll:\n- celExpr: web.spec.nothing > 1\n"), 1);
    let why = "web.spec.nothing > 1 cannot be evaluated: no such key: nothing";
    assert!(missing.contains(&format!("{place}:10: {why}")), "{missing}");
    let nobody = said(
        &format!(
            "{}assertAll:\n- celExpr: 'true'\n",
            refs.replace("kind: Service, name: a", "kind: Service, name: b")
        ),
        1,
    );
    assert!(nobody.contains(&format!("{place}:8: Service b-memcached is not there")), "{nobody}");
    let malformed = said(&format!("{refs}assertAll:\n- celExpr: web.status.\n"), 3);
    expect![[r#"
        error: tests/e2e/memcached/01-assert-more.yaml:10: celExpr is no expression: compilation failed: ERROR: <input>:1:12: Syntax error: no viable alternative at input '.'
         | web.status.
         | ...........^
          names that resourceRefs gives: web, service
    "#]]
    .assert_eq(&malformed);
    let unknown = said(&format!("{refs}assertAll:\n- celExpr: wep.status.readyReplicas > 1\n"), 3);
    expect![[r#"
        error: tests/e2e/memcached/01-assert-more.yaml:10: celExpr is no expression: compilation failed: ERROR: <input>:1:1: undeclared reference to 'wep' (in container '')
         | wep.status.readyReplicas > 1
         | ^
          names that resourceRefs gives: web, service
    "#]]
    .assert_eq(&unknown);
}

#[test]
fn rights_are_judged_only_where_the_operator_has_them() {
    let (_folder, root, steps) = with_steps();
    let path = steps.join("00-install.opdev.yaml");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("noLoops: true", "forbidden: none")).unwrap();
    let output = ci(&root, &["tests/e2e/memcached"]);
    assert_eq!(output.status.code(), Some(3), "{}", told(&output));
    assert!(told(&output).contains("run it with --as-serviceaccount"), "{}", told(&output));
}

#[test]
fn commands_of_steps_run_only_where_the_user_says_so() {
    let (_folder, root, steps) = with_steps();
    let step = "apiVersion: kuttl.dev/v1beta1\nkind: TestStep\ncommands:\n- script: 'echo in $NAMESPACE > ran && exit 0'\n";
    fs::write(steps.join("03-run.yaml"), step).unwrap();
    let refused = ci(&root, &["tests/e2e"]);
    assert_eq!(refused.status.code(), Some(3), "{}", told(&refused));
    assert!(told(&refused).contains("--run-commands") && !steps.join("ran").exists(), "{}", told(&refused));
    let allowed = ci(&root, &["tests/e2e", "--run-commands"]);
    assert_eq!(allowed.status.code(), Some(0), "{}", told(&allowed));
    assert_eq!(fs::read_to_string(steps.join("ran")).unwrap(), "in kuttl-test\n");
    fs::write(steps.join("03-run.yaml"), step.replace("exit 0", "exit 4")).unwrap();
    let failed = ci(&root, &["tests/e2e", "--run-commands"]);
    assert_eq!(failed.status.code(), Some(1), "{}", told(&failed));
    assert!(told(&failed).contains("ended with exit status: 4"), "{}", told(&failed));
}
