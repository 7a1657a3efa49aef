//! A real Go operator with planted faults, and with their twins: `tests/reference/torture/operator`. Each is
//! told with its place in the code, and no twin is alarmed about.

use super::told;
use crate::inner_loop::copy;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// A fault, how it is looked for, and what is told of it.
struct Fault {
    name: &'static str,
    args: &'static [&'static str],
    says: &'static [&'static str],
}

/// The others take too long for a test, and the one of lost answers makes two tokens also by itself where its cache is
/// late: README.md has what was measured.
const FAULTS: [Fault; 2] = [
    Fault {
        name: "crash",
        args: &["--scenario", "child", "--only", "crash", "--level", "quick"],
        says: &[
            "ConfigMap default/shop-data",
            "killed after create configmaps default/shop-marker, at controllers/",
        ],
    },
    Fault {
        name: "past",
        args: &["--scenario", "recreate", "--only", "past", "--level", "quick"],
        says: &["ConfigMap default/shop-data is made", "with stores as they were in the middle of: delete"],
    },
];

/// All of them run at once: each waits most of its time for a program to be quiet.
#[test]
#[cfg_attr(not(go), ignore = "needs Go")]
fn faults_of_a_go_operator_are_found_and_their_twins_are_quiet() {
    let folder = tempfile::tempdir().unwrap();
    let ran: Vec<_> = std::thread::scope(|scope| {
        let folder = folder.path();
        let of = |fault: &'static Fault| {
            let right = format!("{}-right", fault.name);
            [(fault, fault.name.to_owned()), (fault, right)]
        };
        let started: Vec<_> = FAULTS
            .iter()
            .flat_map(of)
            .map(|(fault, shows)| {
                let ran = scope.spawn({
                    let shows = shows.clone();
                    move || ran(fault, &shows, folder)
                });
                (fault, shows, ran)
            })
            .collect();
        started.into_iter().map(|(fault, shows, ran)| (fault, shows, ran.join().unwrap())).collect()
    });
    let mut wrong = Vec::new();
    for (fault, shows, (code, text)) in ran {
        let good = match shows.ends_with("-right") {
            true => code == Some(0),
            false => code == Some(1) && fault.says.iter().all(|one| text.contains(one)),
        };
        if !good {
            wrong.push(format!("{shows} ended with {code:?}:\n{text}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Looks for a fault in an operator that shows it, or its twin; the exit code, and what was told.
fn ran(fault: &Fault, shows: &str, folder: &Path) -> (Option<i32>, String) {
    let root = folder.join(shows).join("operator");
    copy(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reference/torture/operator"), &root);
    // Streamed lists are consistent: such a client never sees the past.
    let settings = format!("operator:\n  env: {{SHOWS: {shows}, KUBE_FEATURE_WatchListClient: \"false\"}}\n");
    fs::write(root.join("opdev.yaml"), settings).unwrap();
    // A backup would be one more field that the search for the smallest plan takes away.
    let sample = "apiVersion: torture.example.com/v1\nkind: Store\nmetadata: {name: shop}\nspec: {size: 2}\n";
    fs::write(root.join("config/samples/store.yaml"), sample).unwrap();
    let opdev = |args: &[&str]| {
        let mut opdev = Command::new(env!("CARGO_BIN_EXE_opdev"));
        // The user's own home stays: Go's caches are there.
        opdev.args(args).current_dir(&root).env("XDG_STATE_HOME", folder.join(shows).join("state"));
        opdev.env_remove("KUBECONFIG").stdin(Stdio::null()).output().unwrap()
    };
    let trusted = opdev(&["trust"]);
    assert!(trusted.status.success(), "{}", told(&trusted));
    let output = opdev(&[&["torture"], fault.args].concat());
    (output.status.code(), told(&output))
}
