//! Reconcilers that loop, grow, throw or talk nonsense, in a running opdev: each is named with its place, and
//! all others go on.

use crate::gadget::{RECONCILER, SAMPLE, gadgets, is_gadget};
use crate::inner_loop::Opdev;
use opdev_event::ObjectTask;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Command, Stdio};

const HOSTILE: &str = r#"export const owns = ["v1/ConfigMap"];

function loop() {
  while (true) {}
}
function grow() {
  const all: any[] = [];
  for (;;) all.push({ x: [1, 2, 3] });
}

export function reconcile(self: any) {
  const name = self.metadata.name;
  if (name === "loop") loop();
  if (name === "memory") grow();
  if (name === "throw") throw new Error("out of nails");
  if (name === "nonsense") return { childs: [] };
  const child = { apiVersion: "v1", kind: "ConfigMap", metadata: { name }, data: { n: String(self.spec.size) } };
  return { children: [child], status: { seen: self.spec.size } };
}
"#;

fn gadget(name: &str, size: u32) -> String {
    format!(
        "apiVersion: toys.example.com/v1alpha1\nkind: Gadget\nmetadata: {{name: {name}, namespace: default}}\n\
         spec: {{size: {size}, tier: gold}}\n"
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_reconcilers_are_named_and_the_others_keep_running() {
    let cases = [
        ("loop", 4, "did not end"),
        ("memory", 8, "of memory"),
        ("throw", 15, "out of nails"),
        ("nonsense", 16, "did you mean `children`?"),
    ];
    let mut opdev = Opdev::start_after(|root| {
        gadgets(root);
        fs::write(root.join(RECONCILER), HOSTILE).unwrap();
        for (name, ..) in cases {
            fs::write(root.join(format!("samples/{name}.yaml")), gadget(name, 1)).unwrap();
        }
    })
    .await;
    let start = opdev.mark();
    for (name, ..) in cases {
        opdev.ask(ObjectTask::Apply { path: format!("samples/{name}.yaml") }).await;
    }
    // While they fail, and are tried again, one beside them is served, again and again.
    for size in [3, 4, 5] {
        let mark = opdev.mark();
        fs::write(opdev.root.join(SAMPLE), gadget("top", size)).unwrap();
        opdev.ask(ObjectTask::Apply { path: SAMPLE.to_owned() }).await;
        let served = opdev.reconcile("a pass of the good one", mark, |reconcile| {
            is_gadget(reconcile)
                && reconcile.object.name == "top"
                && reconcile.failure.is_none()
                && reconcile.objects.len() == 1
        });
        served.await;
    }
    for (name, line, words) in cases {
        let reconcile = opdev
            .reconcile("the failure", start, |reconcile| {
                reconcile.object.name == name && reconcile.failure.is_some()
            })
            .await;
        let failure = reconcile.failure.clone().unwrap();
        let problem = failure.diagnostic.unwrap_or_else(|| panic!("{name}: {:?}", failure.chain));
        let place = problem.place.clone().unwrap();
        assert_eq!((place.file.as_str(), place.line), (RECONCILER, line), "{name}: {problem:?}");
        assert!(place.column > 0 && problem.message.contains(words), "{name}: {problem:?}");
    }
    opdev.stop().await;
}

/// A chart that keeps opdev busy while it is loaded does not keep it from ending.
#[test]
fn the_first_interrupt_ends_opdev_while_a_chart_is_loaded() {
    let (folder, home) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let root = folder.path();
    fs::create_dir_all(root.join("charts/slow/templates")).unwrap();
    let watches = "- {group: a.example.com, version: v1, kind: Slow, chart: charts/slow}\n";
    fs::write(root.join("watches.yaml"), watches).unwrap();
    fs::write(root.join("charts/slow/Chart.yaml"), "apiVersion: v2\nname: slow\nversion: 0.1.0\n").unwrap();
    let keys = "{{ range until 9 }}{{ $_ := genPrivateKey \"rsa\" }}{{ end }}\n";
    fs::write(root.join("charts/slow/templates/keys.yaml"), keys).unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_opdev"))
        .args(["run", "--embedded", "--plain"])
        .current_dir(root)
        .env("HOME", home.path())
        .env_remove("XDG_STATE_HOME")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    // It is written once the control plane answers; the charts are read beside that.
    while !root.join(".opdev/kubeconfig").exists() {
        assert!(child.try_wait().unwrap().is_none(), "it ended before it was asked to");
        std::thread::yield_now();
    }
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{:?}: {said}", output.status);
    assert!(!said.contains("live: Slow"), "{said}");
}

/// A repository may hold links to devices, pipes and links to all there is. (They hung opdev, or filled the
/// memory.)
#[test]
fn what_never_ends_is_told_and_left_out() {
    let (folder, home) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let root = folder.path();
    fs::create_dir_all(root.join("charts/small/templates")).unwrap();
    fs::create_dir_all(root.join("config/samples")).unwrap();
    let watches = "- {group: a.example.com, version: v1, kind: Small, chart: charts/small}\n\
                   - {group: a.example.com, version: v1, kind: Whole, chart: all}\n";
    fs::write(root.join("watches.yaml"), watches).unwrap();
    fs::write(root.join("opdev.yaml"), "types: [/, config/types]\nsamples: [config/samples, all]\n").unwrap();
    fs::write(root.join("charts/small/Chart.yaml"), "apiVersion: v2\nname: small\nversion: 0.1.0\n").unwrap();
    for (link, target) in [
        ("PROJECT", "/dev/zero"),
        ("config/samples/zero.yaml", "/dev/zero"),
        ("config/types", "/proc"),
        ("config/reconcilers", "/"),
        ("all", "/"),
    ] {
        std::os::unix::fs::symlink(target, root.join(link)).unwrap();
    }
    let pipe = root.join("config/samples/pipe.yaml");
    assert!(Command::new("mkfifo").arg(pipe).status().unwrap().success());
    let opdev = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_opdev"));
        command.args(arguments).current_dir(root).env("HOME", home.path()).env_remove("XDG_STATE_HOME");
        command.env_remove("KUBECONFIG").stdin(Stdio::null());
        command
    };
    let mut child = opdev(&["run", "--embedded", "--plain"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut missing = vec![
        "PROJECT: not read: it is a device, not a regular file",
        "config/samples/zero.yaml: not read: it is a device, not a regular file",
        "config/samples/pipe.yaml: not read: it is a pipe, not a regular file",
        "config/reconcilers: not read: leads to /, which holds the project itself",
        "config/types: not read: leads to /proc, which belongs to the kernel",
        "all: not read: leads to /, which holds the project itself",
        "all leads to /, which holds the project itself",
        "live: Small",
    ];
    let mut said = String::new();
    // It stays open: opdev still has something to say at its end.
    let mut output = BufReader::new(child.stdout.take().unwrap());
    for line in output.by_ref().lines().map_while(Result::ok) {
        missing.retain(|words| !line.contains(words));
        said.push_str(&line);
        said.push('\n');
        if missing.is_empty() {
            break;
        }
    }
    assert!(missing.is_empty(), "not told: {missing:?} in\n{said}");
    assert!(Command::new("kill").arg(child.id().to_string()).status().unwrap().success());
    assert!(child.wait().unwrap().success(), "it did not end in good order");
    // Other commands read the same files.
    let listed = opdev(&["trust", "--list"]).output().unwrap();
    assert!(listed.status.success(), "{}", String::from_utf8_lossy(&listed.stderr));
}
