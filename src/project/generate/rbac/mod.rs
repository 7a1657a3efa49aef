//! Rights that the operator of the newest run was seen to use, beside the roles that the project's markers
//! make, and the markers that are missing as a change of the file where they belong. Reads the journal of
//! that run; never asks a cluster.

pub mod addition;
mod markers;
pub mod missing_rules;
pub mod observed;
pub mod role_files;

use super::manifests::{self, Asked, Made};
use crate::rbac::addition::Addition;
use crate::rbac::observed::{Difference, Rights};
use anyhow::{Context as _, Result, bail};
use markers::{reconcile_line, with_markers};
use opdev_event::{Event, ProcessState};
use opdev_object::yaml;
use opdev_os::read;
use opdev_os::small_file::small_text;
use opdev_os::state_path::state_path;
use opdev_project::journal;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// The comparison as text, and whether a right is missing.
///
/// # Errors
/// Where there was no run, no reconcile of a process was seen in it, or a marker cannot be read.
pub fn compared(root: &Path, made: &Made) -> Result<(String, bool)> {
    let rights = used(&state_path(root))?;
    let roles = roles(made)?;
    let (missing, unused) = (rights.missing(&roles), rights.unused(&roles));
    let mut text = format!("In {} of the newest run:\n", counted(rights.reconciles));
    if missing.is_empty() {
        text.push_str("\nEvery right that was used is allowed by the markers.\n");
    } else {
        text.push_str("\nUsed, but not allowed by the markers; add above the Reconcile function:\n");
        for difference in &missing {
            let by = difference.controllers.join(", ");
            let _ = writeln!(text, "  {}\n      used by the controller {by}", difference.marker());
        }
    }
    if !unused.is_empty() {
        text.push_str("\nAllowed, but not used in this run (a longer run may use them):\n");
        let lines = unused.iter().map(Difference::marker);
        lines.for_each(|line| _ = writeln!(text, "  {line}"));
    }
    Ok((text, !missing.is_empty()))
}

/// The roles of the markers. Where a marker cannot be read there is no role, and all rights would seem to be
/// missing.
fn roles(made: &Made) -> Result<Vec<Value>> {
    if let Some(wrong) = made.wrong() {
        bail!("the RBAC markers cannot be compared with what was used; correct this first:\n{wrong}");
    }
    let mut roles = Vec::new();
    for file in &made.files {
        let name = &file.artifact.name;
        let documents = yaml::documents(&file.artifact.text);
        for document in documents.with_context(|| format!("{name} cannot be read"))? {
            roles.push(yaml::to_json(&document).with_context(|| format!("{name} cannot be read"))?);
        }
    }
    Ok(roles)
}

fn counted(reconciles: u64) -> String {
    if reconciles == 1 { "1 reconcile".to_owned() } else { format!("{reconciles} reconciles") }
}

/// The markers that the newest run of a Go operator lacks, put above the Reconcile function of their
/// controller.
///
/// # Errors
/// Where nothing is missing, no reconcile was seen, or no file is found in which they belong; then they are
/// named.
pub fn addition(root: &Path) -> Result<Addition> {
    let asked = Asked { year: jiff::Zoned::now().year().to_string(), ..Asked::default() };
    let rights = used(&state_path(root))?;
    let missing = rights.missing(&roles(&manifests::roles_of_markers(root, &asked)?)?);
    if missing.is_empty() {
        bail!("every right that was used in {} is allowed by the markers", counted(rights.reconciles));
    }
    let files = go_files(root);
    let mut left_out = Vec::new();
    let mut change: Option<(&PathBuf, &String, Vec<String>)> = None;
    for difference in &missing {
        let found = difference.controllers.iter().find_map(|controller| file_of(&files, controller));
        match (found, &mut change) {
            (Some((path, text)), None) => change = Some((path, text, vec![difference.marker()])),
            (Some((path, _)), Some((first, _, markers))) if path == *first => {
                markers.push(difference.marker());
            }
            // One file at a time: the next time it is the turn of the others.
            (Some(_) | None, _) => left_out.push(difference.marker()),
        }
    }
    let changed = change.and_then(|(path, text, markers)| Some((path, text, with_markers(text, &markers)?)));
    let Some((path, before, after)) = changed else {
        bail!(
            "the Reconcile function of {} was not found; put above it:\n{}",
            missing[0].controllers.join(", "),
            left_out.join("\n")
        );
    };
    let file = path.strip_prefix(root).unwrap_or(path).display().to_string();
    let mut notes = vec![
        "`opdev rbac` writes the roles of the markers; a running operator has its rights anyway".to_owned(),
    ];
    if !left_out.is_empty() {
        notes.push(format!("not in this file:\n{}", left_out.join("\n")));
    }
    Ok(Addition { path: path.clone(), file, before: Some(before.clone()), after, notes })
}

/// How deep packages with controllers lie.
const DEEPEST: usize = 6;

/// The Go files of the project that have a Reconcile function, by path.
fn go_files(root: &Path) -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    let mut folders = vec![(root.to_owned(), 0)];
    let mut walk = read::Walk::from(root);
    while let Some((folder, depth)) = folders.pop() {
        for entry in walk.entries(&folder) {
            let (path, name) = (entry.path(), entry.file_name());
            let name = name.to_string_lossy();
            // Links are not followed.
            let Ok(kind) = entry.file_type() else { continue };
            let other =
                name.starts_with('.') || matches!(&*name, "vendor" | "testdata" | "node_modules" | "bin");
            if kind.is_dir() && !other && depth < DEEPEST {
                folders.push((path, depth + 1));
            } else if kind.is_file()
                && name.ends_with(".go")
                && !name.ends_with("_test.go")
                && let Some(text) = small_text(&path)
                && reconcile_line(&text).is_some()
            {
                found.insert(path, text);
            }
        }
    }
    found
}

/// The file of a controller: that names it, or whose kind it is named after, or the only one.
fn file_of<'a>(files: &'a BTreeMap<PathBuf, String>, controller: &str) -> Option<(&'a PathBuf, &'a String)> {
    let named = |text: &str| text.contains(&format!("Named(\"{controller}\")"));
    let of_kind = |text: &str| {
        text.split("For(&").skip(1).any(|rest| {
            let kind = rest.split(['{', ')']).next().unwrap_or_default();
            kind.rsplit('.').next().is_some_and(|kind| kind.eq_ignore_ascii_case(controller))
        })
    };
    let first = files.iter().find(|(_, text)| named(text));
    first
        .or_else(|| files.iter().find(|(_, text)| of_kind(text)))
        .or_else(|| files.iter().next().filter(|_| files.len() == 1))
}

/// The rights that reconciles in the journal used, as far as they are of the build that ran last: code that
/// was removed needs no right.
fn used(folder: &Path) -> Result<Rights> {
    let path = folder.join(journal::FILE);
    let text = read::text_up_to(&path, read::LARGE).with_context(|| {
        format!("{} cannot be read; run the operator with `opdev run` first", path.display())
    })?;
    let is_wanted = |line: &&str| {
        ["reconciled", "processChanged"].iter().any(|event| line.contains(&format!("\"event\":\"{event}\"")))
    };
    let (mut reconciles, mut programs) = (BTreeMap::new(), BTreeSet::new());
    for line in text.lines().filter(is_wanted) {
        // A line that is cut by a crash says nothing.
        match serde_json::from_str(line) {
            // A reconcile that is recorded again counts once.
            Ok(Event::Reconciled(reconcile)) => {
                reconciles.insert(reconcile.id, reconcile);
            }
            Ok(Event::ProcessChanged(run)) => {
                programs.insert(run.program.clone());
                let is_new = matches!(&run.state, ProcessState::Running { files, .. } if !files.is_empty());
                // With several programs nobody knows whose reconcile was whose.
                if is_new && programs.len() == 1 {
                    reconciles.clear();
                }
            }
            _ => {}
        }
    }
    let mut rights = Rights::default();
    reconciles.values().for_each(|reconcile| rights.add(reconcile));
    if rights.reconciles == 0 {
        bail!(
            "{} has no reconcile of a Go operator; --observed is about operators that are programs of their own: run one with \
             `opdev run` first",
            path.display()
        );
    }
    Ok(rights)
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    #[test]
    fn what_a_run_used_becomes_markers_in_the_source() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        for path in ["controllers", ".opdev"] {
            std::fs::create_dir(root.join(path)).unwrap();
        }
        let source = "package controllers\n\n// +kubebuilder:rbac:groups=core,resources=pods,verbs=get;list;watch\n\n\
                      func (r *PodSetReconciler) Reconcile(ctx context.Context) {\n}\n\n\
                      func (r *PodSetReconciler) SetUp() {\n\tb.For(&v1.PodSet{})\n}\n";
        std::fs::write(root.join("go.mod"), "module example.com/demo\n\ngo 1.24\n").unwrap();
        std::fs::write(root.join("controllers/podset.go"), source).unwrap();
        let reconcile = crate::rbac::observed::tests::reconcile();
        let line = serde_json::to_string(&Event::Reconciled(reconcile.into())).unwrap();
        std::fs::write(root.join(".opdev").join(journal::FILE), format!("{line}\n")).unwrap();
        let made = addition(root).unwrap();
        assert_eq!(made.file, "controllers/podset.go");
        let added = "verbs=get;list;watch\n// +kubebuilder:rbac:groups=core,resources=pods,verbs=create\n";
        assert!(made.after.contains(added), "{}", made.after);
        assert!(made.after.contains("resources=podsets/status,verbs=update\n"), "{}", made.after);
        // Also where there is no marker yet.
        std::fs::write(root.join("controllers/podset.go"), source.replace("+kubebuilder", "kubebuilder"))
            .unwrap();
        let begun = addition(root).unwrap();
        assert!(begun.after.contains("resources=pods,verbs=get;list;watch;create\n"), "{}", begun.after);
        std::fs::write(root.join("controllers/podset.go"), &made.after).unwrap();
        let error = addition(root).err().unwrap().to_string();
        expect!["every right that was used in 1 reconcile is allowed by the markers"].assert_eq(&error);
        // Where a marker cannot be read nobody knows what is missing.
        let broken = made.after.replacen("groups=core,resources=pods", "groups=core,resource=pods", 1);
        std::fs::write(root.join("controllers/podset.go"), broken).unwrap();
        let error = addition(root).err().unwrap().to_string();
        expect![[r#"
            the RBAC markers cannot be compared with what was used; correct this first:
            controllers/podset.go:3:34: unknown argument "resource""#]]
        .assert_eq(&error);
        let made = manifests::roles_of_markers(root, &Asked::default()).unwrap();
        assert_eq!(compared(root, &made).unwrap_err().to_string(), error);
    }

    /// A right that only removed code used is not a right that the program needs.
    #[test]
    fn the_rights_of_a_build_that_was_replaced_do_not_count() {
        let folder = tempfile::tempdir().unwrap();
        let mut reconcile = crate::rbac::observed::tests::reconcile();
        let mut late = reconcile.clone();
        late.process.as_mut().unwrap().told_again = true;
        let run = |files: &[&str]| {
            let files = files.iter().map(|file| (*file).to_owned()).collect();
            let state = ProcessState::Running { pid: 1, files, since_save: std::time::Duration::ZERO };
            let at = jiff::Timestamp::UNIX_EPOCH;
            Event::ProcessChanged(
                opdev_event::ProcessChanged {
                    at,
                    program: "go ./cmd".to_owned(),
                    starts: 1,
                    state,
                    traced: None,
                    breakpoint: None,
                }
                .into(),
            )
        };
        let mut events =
            vec![run(&[]), Event::Reconciled(reconcile.clone().into()), Event::Reconciled(late.into())];
        let write = |events: &[Event]| {
            let lines = events.iter().map(|event| serde_json::to_string(event).unwrap() + "\n");
            std::fs::write(folder.path().join(journal::FILE), lines.collect::<String>()).unwrap();
            used(folder.path())
        };
        let creates = |rights: &Rights| rights.used.values().any(|used| used.verbs.contains("create"));
        let rights = write(&events).unwrap();
        assert_eq!((rights.reconciles, creates(&rights)), (1, true), "one that is told again counts once");
        // A crash starts the build of before again.
        events.push(run(&[]));
        assert!(creates(&write(&events).unwrap()));
        reconcile.id = 2;
        reconcile.calls.clear();
        events.extend([run(&["internal/controller/a.go"]), Event::Reconciled(reconcile.into())]);
        let rights = write(&events).unwrap();
        assert_eq!((rights.reconciles, creates(&rights)), (1, false));
    }

    #[test]
    fn the_file_of_a_controller_names_its_kind() {
        let file =
            |kind: &str| format!("func (r *R) Reconcile(\n\tNewControllerManagedBy(m).For(&v1.{kind}{{}})\n");
        let files: BTreeMap<PathBuf, String> =
            [("a.go", file("Site")), ("b.go", file("PodSet"))].map(|(path, text)| (path.into(), text)).into();
        let found =
            |controller: &str| file_of(&files, controller).map(|(path, _)| path.display().to_string());
        assert_eq!(found("podset").as_deref(), Some("b.go"));
        assert_eq!(found("site").as_deref(), Some("a.go"));
        assert_eq!(found("other"), None);
    }
}
