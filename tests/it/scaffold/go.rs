//! Scaffolded operators in Go: that they build, reconcile, are as Go and the generators want them, and how
//! they are told apart from what stands beside them. Those that need Go are skipped without it.

use super::{PROJECTS, done, files, make, opdev, refused, scratch};
use crate::inner_loop::Opdev;
use expect_test::expect;
use opdev_cluster::Choice;
use opdev_event::{Action, Event, ObjectTask, Outcome, TraceLevel};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

fn go(folder: &Path, args: &[&str]) {
    let output = Command::new("go").args(args).current_dir(folder).output().unwrap();
    assert!(output.status.success(), "go {args:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Go may have to compile all of client-go.
const BUILD: Duration = Duration::from_secs(900);

/// A chart beside the program from the first command on, and a controller.
const GO_BESIDE_A_CHART: &[&[&str]] = &[
    &[
        "init",
        "--go",
        "--project-name",
        "greeter",
        "--repo",
        "example.com/greeter",
        "--group",
        "app",
        "--helm-chart",
        "CHART",
    ],
    &["create", "api", "--group", "app", "--version", "v1alpha1", "--kind", "Greeting"],
];

#[tokio::test(flavor = "multi_thread")]
#[cfg_attr(not(go), ignore = "needs Go")]
async fn a_scaffolded_go_operator_builds_and_reconciles_its_sample() {
    let embedded = Choice { embedded: true, ..Choice::default() };
    let mut running = Opdev::start_against(embedded, |root| {
        for part in ["charts", "config", "samples"] {
            fs::remove_dir_all(root.join(part)).unwrap();
        }
        make(root, GO_BESIDE_A_CHART);
    })
    .await;
    let full = |event: &Event| match event {
        Event::ProcessChanged(changed) if changed.traced == Some(TraceLevel::Full) => Some(()),
        _ => None,
    };
    running.wait_within(BUILD, "a start", 0, full).await;
    let mark = running.mark();
    running.ask(ObjectTask::Apply { path: "config/samples/app_v1alpha1_greeting.yaml".to_owned() }).await;
    let made = |event: &Event| match event {
        Event::Reconciled(reconcile) if reconcile.objects.iter().any(|one| one.action == Action::Created) => {
            Some(std::sync::Arc::clone(reconcile))
        }
        _ => None,
    };
    let reconcile = running.wait_within(BUILD, "the sample's pass", mark, made).await;
    assert_eq!((reconcile.object.gvk.kind.as_str(), &reconcile.failure), ("Greeting", &None));
    // A version of controller-runtime that the added files do not fit is traced without causes, and only a
    // notice tells.
    assert!(!reconcile.causes.is_empty(), "the newest versions are traced in full: {reconcile:?}");
    assert!(
        reconcile.objects.iter().any(|one| one.object.name == "greeting-sample-message"),
        "{:?}",
        reconcile.objects
    );
    assert!(
        reconcile.status.iter().any(|one| one.path.to_string().starts_with(".status")),
        "{:?}",
        reconcile.status
    );
    let mark = running.mark();
    running.ask(ObjectTask::Apply { path: "config/samples/app_v1alpha1_memcached.yaml".to_owned() }).await;
    running
        .reconcile("the chart's first pass", mark, |reconcile| reconcile.outcome == Outcome::Installed)
        .await;
    running.stop().await;
}

/// Both layouts, with their tests, and as gofmt wants them.
#[test]
#[cfg_attr(not(go), ignore = "needs Go")]
fn scaffolded_go_is_what_go_takes() {
    let names: &[&[&str]] = &[
        &["init", "--go", "--multigroup", "--repo", "example.com/names"],
        &["create", "api", "--group", "core", "--version", "v1", "--kind", "Thing"],
        &["create", "api", "--group", "meta", "--version", "v1", "--kind", "Other"],
        &["create", "api", "--group", "go", "--version", "v1", "--kind", "Word"],
    ];
    for (name, commands) in [PROJECTS[5], PROJECTS[6], ("names", names)] {
        let folder = scratch();
        make(folder.path(), commands);
        go(folder.path(), &["vet", "./..."]);
        go(folder.path(), &["vet", "-tags", "e2e", "./..."]);
        let output = Command::new("gofmt").args(["-l", "."]).current_dir(folder.path()).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), "", "{name}");
    }
}

#[test]
fn the_generators_agree_with_a_scaffolded_go_project() {
    for (name, commands) in [PROJECTS[5], PROJECTS[6]] {
        let folder = scratch();
        make(folder.path(), commands);
        for generator in ["crd", "rbac"] {
            let output = opdev(folder.path(), &[generator, "--check"]);
            assert!(
                output.status.success(),
                "{name} {generator}: {}",
                String::from_utf8_lossy(&output.stdout)
            );
        }
        // Copy methods of a type that names one of Kubernetes need its source; the scaffold has its own
        // facts.
        let copies = files(&folder.path().join("api"));
        assert!(copies.iter().any(|path| path.ends_with("zz_generated.deepcopy.go")), "{copies:?}");
    }
}

/// `kubebuilder create api --ssa` has apply configurations written for the kinds of a package, and marks
/// those that it does not know of. A project that pins an older controller-gen gets what that one makes.
#[test]
fn a_kind_joins_a_project_as_its_package_and_its_makefile_want_it() {
    let folder = scratch();
    let add = |kind| {
        done(folder.path(), &["create", "api", "--group", "a", "--version", "v1", "--kind", kind]);
        let types = format!("api/v1/{}_types.go", kind.to_lowercase());
        let crd = format!("config/crd/bases/a.example.com_{}s.yaml", kind.to_lowercase());
        [types, crd].map(|path| fs::read_to_string(folder.path().join(path)).unwrap())
    };
    done(folder.path(), &["init", "--go", "--repo", "example.com/a", "--domain", "example.com"]);
    let [types, crd] = add("Ant");
    assert!(!types.contains("ac:generate"), "{types}");
    assert!(crd.contains("kubebuilder.io/version: v0.22.0\n"), "{crd}");
    let edit = |path: &str, from: &str, to: &str| {
        let path = folder.path().join(path);
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains(from), "{text}");
        fs::write(path, text.replace(from, to)).unwrap();
    };
    let package = "// +kubebuilder:object:generate=true\n";
    edit("api/v1/groupversion_info.go", package, &format!("{package}// +kubebuilder:ac:generate=true\n"));
    edit("Makefile", "v0.22.0", "v0.18.0");
    let [types, crd] = add("Bee");
    let marked = "// +kubebuilder:object:root=true\n// +kubebuilder:ac:generate=false\n// +kubebuilder:subresource:status\n";
    assert_eq!((types.matches(marked).count(), types.matches("ac:generate").count()), (1, 1), "{types}");
    assert!(crd.contains("kubebuilder.io/version: v0.18.0\n"), "{crd}");
    assert!(opdev(folder.path(), &["rbac", "--check"]).status.success());
}

#[test]
fn go_and_its_neighbours_are_told_apart() {
    let folder = scratch();
    for (args, part) in [
        (&["init", "--repo", "example.com/a"][..], "it goes with --go"),
        (&["init", "--go", "--repo", "a b"], "the Go module \"a b\" is invalid"),
        (&["init", "--plugins", "quarkus"], "opdev lays out `helm`, `go/v4` and `hybrid`"),
    ] {
        let error = refused(folder.path(), args);
        assert!(error.contains(part), "{args:?}: {error}");
    }
    // A module that has nothing yet is taken; one with more is the user's.
    let module = |text: &str| fs::write(folder.path().join("go.mod"), text).unwrap();
    module("module example.com/mine\n\ngo 1.25\n\nrequire example.com/x v1.0.0\n");
    let error = refused(folder.path(), &["init", "--go"]);
    expect![[r#"
        error: nothing was written, because this file is there with other content, or cannot be read as text:
          go.mod
        Move it away; --force replaces the ones that can be read
    "#]]
    .assert_eq(&error);
    module("module example.com/mine\n\ngo 1.25\n\ntoolchain go1.25.3\n");
    expect![[r#"
        error: nothing was written, because this file is there with other content, or cannot be read as text:
          go.mod
        Move it away; --force replaces the ones that can be read
    "#]]
    .assert_eq(&refused(folder.path(), &["init", "--go"]));
    module("module example.com/mine\n\ngo 1.25\n");
    done(folder.path(), &["init", "--go"]);
    let project = fs::read_to_string(folder.path().join("PROJECT")).unwrap();
    assert!(project.contains("\nrepo: example.com/mine\n"), "{project}");
    // A second version has the controller of the first.
    fn other<'a>(version: &'a str, more: &[&'a str]) -> Vec<&'a str> {
        [&["create", "api", "--group", "a", "--version", version, "--kind", "Bee"], more].concat()
    }
    done(folder.path(), &other("v1", &[]));
    let error = refused(folder.path(), &other("v2", &[]));
    expect![[r#"
        error: Bee has a controller for another version already, which goes on reconciling it: --reconciler none adds the types of this version alone
    "#]]
    .assert_eq(&error);
    let said = done(folder.path(), &other("v2", &["--reconciler", "none"]));
    assert!(!said.contains("nothing reconciles"), "{said}");
    // A version that the program does not reconcile is reported.
    let said = done(
        folder.path(),
        &["create", "api", "--group", "a", "--version", "v1", "--kind", "C", "--reconciler", "ts"],
    );
    assert!(said.contains("cmd/main.go does not reconcile C: `opdev run` does it with the script"), "{said}");
    // A role that somebody wrote stays.
    let role = folder.path().join("config/rbac/role.yaml");
    fs::write(&role, "mine: true\n").unwrap();
    let said = done(folder.path(), &["create", "api", "--group", "a", "--version", "v1", "--kind", "A"]);
    assert!(said.contains("warning: config/rbac/role.yaml is not what"), "{said}");
    assert_eq!(fs::read_to_string(&role).unwrap(), "mine: true\n");
    // A program without the marker lines.
    let main = folder.path().join("cmd/main.go");
    fs::write(&main, "package main\n\nfunc main() {}\n").unwrap();
    let said = done(folder.path(), &["create", "api", "--group", "a", "--version", "v1", "--kind", "B"]);
    assert!(said.contains("cmd/main.go has no line `// +kubebuilder:scaffold:builder`"), "{said}");
    // Another layout has no Go program.
    let other = scratch();
    done(other.path(), &["init", "--types"]);
    let args = ["create", "api", "--group", "a", "--version", "v1", "--kind", "B", "--reconciler", "go"];
    let error = refused(other.path(), &args);
    expect![[r#"
        error: PROJECT has the layout opdev.dev/v1: only in a project of the layout go.kubebuilder.io/v4 can a Go program reconcile a kind; `opdev init --go` makes one
    "#]]
    .assert_eq(&error);
}
