//! What Cargo builds of the packages: together, with their tests, and each alone.

use std::collections::BTreeSet;
use std::fs;

use super::{arrows, members, room, root};

#[test]
fn the_lockfile_stays_small() {
    // Raising this limit is a decision: read what the new crate brings along first.
    const LIMIT: usize = 447;
    let lock = fs::read_to_string(root().join("Cargo.lock")).unwrap();
    let packages = lock.matches("[[package]]").count() - members().len();
    assert!(packages <= LIMIT, "{packages} locked packages, the limit is {LIMIT}");
}

/// The packages of a build, each with its version and its features.
fn features(edges: &str) -> BTreeSet<String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = std::process::Command::new(cargo)
        .current_dir(root())
        .args(["tree", "--workspace", "--locked", "--offline", "--prefix", "none"])
        .args(["--edges", edges, "--format", "{p} {f}"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(|line| line.trim_end_matches(" (*)").to_owned()).collect()
}

/// Both commands of the README build the same dependencies: where only the tests want a feature of one, all
/// that stands on it is compiled twice. Name the feature among the dependencies of the program, too.
#[test]
fn the_tests_change_no_feature_of_what_the_program_is_built_of() {
    let program = features("normal,build");
    let with_tests = features("normal,build,dev");
    assert!(program.len() > 300, "{}", program.len());
    let other: Vec<&String> = program.difference(&with_tests).collect();
    assert!(other.is_empty(), "with other features in the tests: {other:#?}");
}

/// The profile that both commands of the README use: what runs in the compiler only is not optimised, and
/// each package that is named still is one.
#[test]
fn the_profile_of_the_tests_optimises_only_what_they_run() {
    let text = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let named: Vec<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("[profile.dev.package.")?.strip_suffix(']'))
        .filter(|name| *name != "\"*\"")
        .collect();
    assert!(named.len() > 50, "{named:?}");
    let lock = fs::read_to_string(root().join("Cargo.lock")).unwrap();
    let unknown: Vec<_> =
        named.iter().filter(|name| !lock.contains(&format!("\nname = \"{name}\"\n"))).collect();
    assert!(unknown.is_empty(), "no such packages: {unknown:?}");
    let only_in_the_compiler =
        ["syn", "quote", "proc-macro2", "serde_derive", "darling_core", "cc", "clap_derive"];
    assert!(only_in_the_compiler.iter().all(|name| !named.contains(name)));
}

/// kube does not compile before somebody has chosen a version of Kubernetes for its types. `client` does it for
/// all packages that stand on it, so that each builds and is tested alone, too. The control plane is a library
/// for programs of others: they choose.
#[test]
fn each_package_with_a_client_builds_alone() {
    let arrows = arrows();
    let below = |from: &'static str| {
        let mut below = BTreeSet::from([from]);
        let mut open = vec![from];
        while let Some(at) = open.pop() {
            open.extend(arrows[at].iter().filter(|next| below.insert(next)));
        }
        below
    };
    let mut with_a_client = 0;
    for folder in members().iter().filter(|folder| **folder != "src/controlplane") {
        let file = if *folder == "src/cli" { "Cargo.toml".into() } else { format!("{folder}/Cargo.toml") };
        let text = fs::read_to_string(root().join(&file)).unwrap();
        if text.contains("\nkube.workspace") || text.contains("features = [\"kube\"]") {
            with_a_client += 1;
            let stands_on_it = below(room(folder)).iter().any(|below| *below == "client");
            assert!(stands_on_it, "{file} wants kube, and not opdev-client");
        }
    }
    assert!(with_a_client > 10, "only {with_a_client} packages with kube were found");
    let client = fs::read_to_string(root().join("src/client/Cargo.toml")).unwrap();
    assert!(client.lines().any(|line| line == "k8s-openapi.workspace = true"));
}
