//! A scaffolded project is shipped by its own files: what its Dockerfile copies is all that the operator
//! reads, its Makefile calls commands and flags that opdev has, and warnings name what a base cannot run.

use super::{PROJECTS, done, files, make, opdev, refused, scratch};
use expect_test::expect;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Charts first, then a folder of templates.
pub(super) const TEMPLATES_BESIDE_A_CHART: &[&[&str]] = &[
    &["init", "--project-name", "cache-operator", "--group", "cache", "--version", "v1", "--kind", "Cache"],
    &[
        "create",
        "api",
        "--group",
        "cache",
        "--version",
        "v1",
        "--kind",
        "Backup",
        "--reconciler",
        "templates",
    ],
];
/// Types first, then a chart: its group is the project's, for the project may have no other.
pub(super) const CHART_BESIDE_TYPES: &[&[&str]] = &[
    &["init", "--types", "--project-name", "pods", "--group", "app", "--version", "v1", "--kind", "Greeting"],
    &["create", "api", "--helm-chart", "CHART"],
];

const TYPES_WITH_A_CHART: &[&[&str]] =
    &[&["init", "--types", "--project-name", "pods", "--helm-chart", "CHART"]];

/// Copies what a Dockerfile copies into its HOME.
fn copied(project: &Path, image: &Path) {
    let text = fs::read_to_string(project.join("Dockerfile")).unwrap();
    for line in text.lines().filter(|line| line.starts_with("COPY ")) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [_, from, to] = words[..] else { panic!("{line}") };
        let to = image.join(to.strip_prefix("${HOME}/").unwrap_or_else(|| panic!("{line}")));
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        let status = Command::new("cp").args(["-r", "--"]).arg(project.join(from)).arg(&to).status().unwrap();
        assert!(status.success(), "{line}: {text}");
    }
}

/// The files of the project that `opdev image` packs.
fn packed(project: &Path) -> BTreeSet<String> {
    let listed = done(project, &["image", "--dry-run"]);
    let inside = listed.lines().filter_map(|line| line.split_once(" /opt/helm/"));
    inside.map(|(_, path)| path.to_owned()).collect()
}

#[test]
fn the_dockerfile_copies_what_the_operator_reads() {
    for (name, commands) in [
        PROJECTS[0],
        PROJECTS[1],
        PROJECTS[2],
        PROJECTS[3],
        PROJECTS[4],
        ("templates beside a chart", TEMPLATES_BESIDE_A_CHART),
        ("a chart beside types", CHART_BESIDE_TYPES),
        ("types that begin with a chart", TYPES_WITH_A_CHART),
    ] {
        let (folder, image) = (scratch(), scratch());
        make(folder.path(), commands);
        copied(folder.path(), image.path());
        let has = |path: &str| image.path().join(path).is_file();
        // A chart alone is served with any CRD of its kind, which helm-operator does not read either.
        let charts_alone = !folder.path().join("config/reconcilers").exists();
        let spare = |path: &str| {
            matches!(path, "Makefile" | "PROJECT") || (charts_alone && path.starts_with("config/crd/"))
        };
        let missing: Vec<String> =
            packed(folder.path()).into_iter().filter(|path| !spare(path) && !has(path)).collect();
        assert!(missing.is_empty(), "{name}: the Dockerfile does not copy {missing:?}");
        // And the copy is a project that is ready, or opdev would make no image of it.
        assert!(packed(image.path()).len() > 3, "{name}");
        if !charts_alone {
            // The operator in the image reconciles the project's samples, and a second reconcile changes
            // nothing.
            let samples = folder.path().join("config/samples");
            let status =
                Command::new("cp").arg("-r").args([&samples, &image.path().join("config/samples")]).status();
            assert!(status.unwrap().success());
            done(image.path(), &["ci"]);
        }
    }
}

#[test]
fn each_new_kind_is_copied_once() {
    let folder = scratch();
    make(folder.path(), TEMPLATES_BESIDE_A_CHART);
    let page =
        ["create", "api", "--group", "cache", "--version", "v1", "--kind", "Page", "--reconciler", "ts"];
    done(folder.path(), &page);
    let text = fs::read_to_string(folder.path().join("Dockerfile")).unwrap();
    let copies: Vec<&str> = text.lines().filter(|line| line.starts_with("COPY ")).collect();
    assert_eq!(
        copies,
        [
            "COPY watches.yaml ${HOME}/watches.yaml",
            "COPY helm-charts  ${HOME}/helm-charts",
            "COPY api ${HOME}/api",
            "COPY config/crd ${HOME}/config/crd",
            "COPY config/reconcilers ${HOME}/config/reconcilers",
        ]
    );
    assert!(text.ends_with("\nWORKDIR ${HOME}\n"), "{text}");
}

#[test]
fn a_base_that_runs_no_scripts_is_told() {
    let folder = scratch();
    make(folder.path(), &TEMPLATES_BESIDE_A_CHART[..1]);
    let said = done(folder.path(), TEMPLATES_BESIDE_A_CHART[1]);
    assert!(
        said.contains(
            "warning: quay.io/operator-framework/helm-operator:v1.42.3, the base of the Dockerfile, runs no scripts and no \
             templates: in a cluster nothing would reconcile Backup. `opdev image --push REF`"
        ),
        "{said}"
    );
    assert!(said.contains("`docker build --build-arg BASE=REF .` takes it"), "{said}");
    // The Operator SDK's own Dockerfile has no argument; one of another shape stays as it is.
    let dockerfile = folder.path().join("Dockerfile");
    fs::write(&dockerfile, "FROM quay.io/operator-framework/helm-operator:v1.42.3\nADD . /opt/helm\n")
        .unwrap();
    let page = |kind: &str| {
        done(
            folder.path(),
            &["create", "api", "--group", "cache", "--version", "v1", "--kind", kind, "--reconciler", "ts"],
        )
    };
    let said = page("Page");
    assert!(
        said.contains("name it after FROM") && said.contains("so it was left alone: add watches.yaml, "),
        "{said}"
    );
    // Another base says nothing, and all of the project is in it.
    fs::write(&dockerfile, "FROM registry.example.com/opdev:1\nCOPY . ${HOME}/\n").unwrap();
    let said = page("Site");
    assert!(!said.contains("Dockerfile"), "{said}");
}

/// The words of each call of opdev in a text that holds shell lines.
fn calls(text: &str) -> Vec<Vec<String>> {
    let after = text.lines().flat_map(|line| line.split("$(OPDEV) ").skip(1));
    let end = |word: &&str| !matches!(*word, ">" | "|" | "&&") && !word.starts_with('#');
    let word = |word: &str| word.trim_end_matches([')', ',']).trim_end_matches(",@true").to_owned();
    after.map(|call| call.split_whitespace().take_while(end).map(word).collect()).collect()
}

#[test]
fn makefiles_call_what_opdev_has() {
    let mut seen = BTreeSet::new();
    for (name, commands) in [PROJECTS[0], PROJECTS[2], PROJECTS[5]] {
        let folder = scratch();
        make(folder.path(), commands);
        let makefile = fs::read_to_string(folder.path().join("Makefile")).unwrap();
        for call in calls(&makefile) {
            let output = opdev(folder.path(), &[&call[0], "--help"]);
            assert!(output.status.success(), "{name}: opdev {call:?}");
            let help = String::from_utf8_lossy(&output.stdout).into_owned();
            let has = |flag: &str| help.split([' ', ',', '=', '[', '\n']).any(|word| word == flag);
            for flag in call.iter().filter(|word| word.starts_with('-')) {
                assert!(has(flag), "{name}: opdev {call:?}: there is no {flag}");
            }
            seen.insert(call[0].clone());
        }
    }
    let wanted = ["ci", "crd", "deploy", "image", "install", "rbac", "run", "serve", "undeploy", "uninstall"];
    assert_eq!(seen, wanted.map(str::to_owned).into());
}

fn has_make() -> bool {
    Command::new("make").arg("--version").output().is_ok_and(|output| output.status.success())
}

fn make_target(words: &[&str], folder: &Path) -> std::process::Output {
    Command::new("make")
        .arg(format!("OPDEV={}", env!("CARGO_BIN_EXE_opdev")))
        .arg("IMG=example.com/operator:v1")
        .args(words)
        .current_dir(folder)
        .env("HOME", folder)
        .env_remove("KUBECONFIG")
        .env_remove("MAKEFLAGS")
        .output()
        .unwrap()
}

/// The targets that need neither a container tool nor a cluster of the user's, on the embedded control plane.
#[test]
fn the_targets_of_the_makefile_run() {
    if !has_make() {
        return;
    }
    for (name, commands, crd) in [
        ("chart", PROJECTS[1].1, "sites.web.example.com"),
        ("types", PROJECTS[2].1, "greetings.app.my.domain"),
        ("hybrid", TEMPLATES_BESIDE_A_CHART, "backups.cache.my.domain"),
        ("types that begin with a chart", TYPES_WITH_A_CHART, "memcacheds.charts.my.domain"),
    ] {
        let folder = scratch();
        make(folder.path(), commands);
        let target = |words: &[&str]| {
            let output = make_target(words, folder.path());
            let said = String::from_utf8_lossy(&output.stdout).into_owned()
                + &String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{name}: make {words:?}: {said}");
            said
        };
        // A project of types makes its role with this target.
        target(&["manifests"]);
        let before = super::tree(folder.path());
        let help = target(&["help"]);
        for word in
            ["run", "test", "image", "docker-build", "install", "deploy", "undeploy", "build-installer"]
        {
            assert!(help.contains(&format!("  {word} ")), "{name}: {help}");
        }
        target(&["test"]);
        let flags = "OPDEV_FLAGS=--embedded";
        assert!(target(&["install", flags]).contains(crd), "{name}");
        assert!(target(&["uninstall", flags]).contains(crd), "{name}");
        target(&["deploy", "OPDEV_FLAGS=--embedded --wait 0s"]);
        target(&["undeploy", flags]);
        fs::remove_dir_all(folder.path().join(".opdev")).unwrap();
        let _ = fs::remove_dir_all(folder.path().join(".local"));
        // The image that no registry has is refused, and no half of a file is left.
        let refused = make_target(&["build-installer", "IMG=controller:latest"], folder.path());
        assert!(!refused.status.success() && !folder.path().join("dist/install.yaml").exists(), "{name}");
        target(&["manifests", "generate"]);
        target(&["build-installer"]);
        let installer = fs::read_to_string(folder.path().join("dist/install.yaml")).unwrap();
        assert!(
            installer.contains(crd) && installer.contains("image: example.com/operator:v1\n"),
            "{name}: {installer}"
        );
        fs::remove_dir_all(folder.path().join("dist")).unwrap();
        assert!(super::tree(folder.path()) == before, "{name}: a target has changed a file of the project");
    }
}

#[test]
fn a_go_project_and_its_chart_are_one_command() {
    let (one, two) = (scratch(), scratch());
    let init = ["init", "--go", "--project-name", "greeter", "--repo", "example.com/greeter"];
    let chart = super::chart();
    let with_chart = ["--helm-chart", &chart, "--crd-schema", "values"];
    done(one.path(), &[&init[..], &with_chart].concat());
    done(two.path(), &init);
    done(two.path(), &[&["create", "api"], &with_chart[..]].concat());
    assert_eq!(super::tree(one.path()), super::tree(two.path()));
    // The names are the chart's, and what is in the way stops all of it.
    let there = |path: &str| one.path().join(path).is_file();
    assert!(
        there("watches.yaml")
            && there("cmd/main.go")
            && there("config/samples/charts_v1alpha1_memcached.yaml")
    );
    let third = scratch();
    fs::create_dir_all(third.path().join("config/samples")).unwrap();
    fs::write(third.path().join("config/samples/charts_v1alpha1_memcached.yaml"), "mine: true\n").unwrap();
    let error = refused(third.path(), &[&init[..], &with_chart].concat());
    assert_eq!(files(third.path()).len(), 1, "{error}");
    expect![[r#"
        warning: config/rbac/role.yaml has no line `# +kubebuilder:scaffold:rules`; the entry stands at the end of the list
        warning: the program of cmd/main.go does not reconcile Memcached: `opdev run` does it with the chart, but the image that the Dockerfile builds has the program only
        warning: `make manifests` writes config/rbac/role.yaml from the +kubebuilder:rbac markers: add markers for the chart's rules, or they are gone then
        error: nothing was written, because this file is there with other content, or cannot be read as text:
          config/samples/charts_v1alpha1_memcached.yaml
        Move it away; --force replaces the ones that can be read
    "#]]
    .assert_eq(&error);
    // --go has types anyway.
    let fourth = scratch();
    done(fourth.path(), &[&["init", "--types"], &init[1..]].concat());
    assert!(fourth.path().join("cmd/main.go").is_file());
}

/// The group is the project's where it may have no other one.
#[test]
fn a_chart_without_names_joins_the_only_group() {
    for init in [&["init", "--go"][..], &["init", "--types"], &["init"]] {
        let folder = scratch();
        let kind = ["--group", "app", "--version", "v1", "--kind", "Site"];
        done(folder.path(), &[init, &["--project-name", "a"], &kind].concat());
        done(folder.path(), &["create", "api", "--helm-chart", &super::chart()]);
        let sample = folder.path().join("config/samples/app_v1alpha1_memcached.yaml");
        assert!(
            fs::read_to_string(sample).unwrap().starts_with("apiVersion: app.my.domain/v1alpha1\n"),
            "{init:?}"
        );
    }
    let folder = scratch();
    done(folder.path(), &["init", "--multigroup", "--group", "app", "--version", "v1", "--kind", "Site"]);
    done(folder.path(), &["create", "api", "--helm-chart", &super::chart()]);
    assert!(folder.path().join("config/samples/charts_v1alpha1_memcached.yaml").is_file());
}
