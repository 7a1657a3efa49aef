//! `opdev ci` as a user and a CI job run it: samples, other programs, reports and exit codes.

use crate::inner_loop::demo_project;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Mutex;
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
    for step in ["00-apply", "01-settled", "02-second pass writes nothing", "03-delete", "04-nothing is left"]
    {
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
    assert!(told(&output).contains("samples/both.yaml:"), "{}", told(&output));
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
    assert!(told(&broken).contains("charts/memcached/Chart.yaml"), "{}", told(&broken));
}

#[test]
fn another_program_finds_the_operator_by_its_kubeconfig() {
    let (_folder, root) = demo_project();
    let script = "test -f \"$KUBECONFIG\" && grep -q 127.0.0.1 \"$KUBECONFIG\" && echo seen; exit 7";
    let output = ci(&root, &["--", "sh", "-c", script]);
    assert_eq!((output.status.code(), told(&output).contains("seen")), (Some(7), true), "{}", told(&output));
    let missing = ci(&root, &["--", "no-such-program"]);
    assert_eq!(missing.status.code(), Some(3), "{}", told(&missing));
    assert!(told(&missing).contains("no-such-program cannot be started"), "{}", told(&missing));
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

/// One way to break a template; `None` where the template has nothing to break that way.
type Break = fn(&str) -> Option<String>;

fn instead(text: &str, what: &str, by: &str) -> Option<String> {
    text.contains(what).then(|| text.replacen(what, by, 1))
}

/// Every way to break a template, by name.
const BREAKS: [(&str, Break); 16] = [
    ("an action that is not closed", |text| instead(text, " }}", " ")),
    ("an unknown function", |text| instead(text, "include ", "inclde ")),
    ("an unknown template", |text| instead(text, ".labels\"", ".lables\"")),
    ("an end too many", |text| Some(format!("{text}{{{{ end }}}}\n"))),
    ("an unknown kind", |text| instead(text, "\nkind: ", "\nkind: No")),
    ("an unknown group", |text| instead(text, "apiVersion: ", "apiVersion: no.such.group/")),
    ("a name with a capital letter", |text| instead(text, "  name: ", "  name: Upper_")),
    ("no name", |text| instead(text, "  name: ", "  nome: ")),
    ("wrong indentation", |text| instead(text, "\nmetadata:", "\n metadata:")),
    ("a random label", |text| instead(text, "  labels:", "  labels:\n    a: {{ randAlphaNum 8 | quote }}")),
    ("a namespace that is not there", |text| {
        instead(text, "\nmetadata:", "\nmetadata:\n  namespace: nowhere")
    }),
    ("a label that is none", |text| instead(text, "  labels:", "  labels:\n    a: \"b c!\"")),
    ("a list for a text", |text| instead(text, "  labels:", "  labels:\n    a: [1]")),
    ("the number of the revision", |text| {
        instead(text, "  labels:", "  labels:\n    a: r{{ .Release.Revision }}")
    }),
    ("a chart that refuses", |text| Some(format!("{{{{ fail \"refused\" }}}}\n{text}"))),
    ("the same object twice", |text| Some(format!("{text}---\n{text}"))),
];

#[test]
fn every_broken_chart_is_red() {
    let of = |sample: &'static str, templates: &[&'static str]| -> Vec<(&'static str, &'static str)> {
        templates.iter().map(|template| (sample, *template)).collect()
    };
    let mut templates = of(
        "samples/memcached.yaml",
        &["charts/memcached/templates/deployment.yaml", "charts/memcached/templates/serviceaccount.yaml"],
    );
    templates.extend(of("samples/hello.yaml", &["charts/hello/templates/hello.yaml"]));
    let all = templates.iter().flat_map(|at| BREAKS.iter().map(move |one| (*at, *one)));
    let queue: Mutex<Vec<_>> = Mutex::new(all.collect());
    let green: Mutex<Vec<String>> = Mutex::new(Vec::new());
    let work = || {
        let (_folder, root) = demo_project();
        loop {
            let Some(((sample, template), (name, make))) = queue.lock().unwrap().pop() else { break };
            let path: PathBuf = root.join(template);
            let good = fs::read_to_string(&path).unwrap();
            let Some(broken) = make(&good) else { continue };
            fs::write(&path, broken).unwrap();
            let output = ci(&root, &[sample, "--timeout", "3s"]);
            fs::write(&path, good).unwrap();
            // One that does not even load is told so, and that is no green either.
            if !matches!(output.status.code(), Some(1 | 3)) {
                green.lock().unwrap().push(format!("{template}: {name}:\n{}", told(&output)));
            }
        }
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..4).map(|_| scope.spawn(work)).collect();
        workers.into_iter().for_each(|worker| worker.join().unwrap());
    });
    let green = green.into_inner().unwrap();
    assert!(green.is_empty(), "{} broken charts are not red:\n{}", green.len(), green.join("\n"));
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
