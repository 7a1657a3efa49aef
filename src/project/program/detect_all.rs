//! All programs of a project: the one that is found, the one that `opdev.yaml` names, or several of them.

use super::detect::detect;
use super::settings::{Plan, Programs};
use anyhow::{Context as _, Result, bail};
use std::collections::BTreeSet;
use std::path::Path;

/// Looks for the programs of a project. `settings` is `operator:` of `opdev.yaml`, `watches` whether there is
/// a `watches.yaml`. No two of them have the same words.
///
/// # Errors
/// Where the settings contradict each other, or one of several programs could be meant.
pub fn detect_all(root: &Path, settings: Option<&Programs>, watches: bool) -> Result<Vec<Plan>> {
    let several = match settings {
        None => return Ok(detect(root, None, watches)?.into_iter().collect()),
        Some(Programs(programs)) => match programs.as_slice() {
            [] => bail!("operator in opdev.yaml is an empty list; name a program, or leave it out"),
            [one] => return Ok(detect(root, Some(one), watches)?.into_iter().collect()),
            several => several,
        },
    };
    let mut plans: Vec<Plan> = Vec::new();
    for (at, program) in several.iter().enumerate() {
        let place = || format!("program {} of the list `operator` in opdev.yaml", at + 1);
        let found = detect(root, Some(program), watches).with_context(place)?;
        plans.extend(found.map(|plan| Plan { said_by: place(), ..plan }));
    }
    tell_apart(root, &mut plans)?;
    let mut named = BTreeSet::new();
    if let Some(kind) = plans.iter().flat_map(|plan| &plan.kinds).find(|kind| !named.insert(kind.as_str())) {
        bail!("operator in opdev.yaml: two programs reconcile {kind}; name it under `kinds` of one of them");
    }
    Ok(plans)
}

/// Adds the folder to the words of programs that are called the same.
fn tell_apart(root: &Path, plans: &mut [Plan]) -> Result<()> {
    let words: Vec<String> = plans.iter().map(|plan| plan.words.clone()).collect();
    for (at, plan) in plans.iter_mut().enumerate() {
        let same = words.iter().enumerate().any(|(other, words)| other != at && *words == plan.words);
        let folder = plan.dir.strip_prefix(root).unwrap_or(&plan.dir);
        if same && !folder.as_os_str().is_empty() {
            plan.words = format!("{} in {}", plan.words, folder.display());
        }
    }
    let mut seen = BTreeSet::new();
    match plans.iter().find(|plan| !seen.insert(plan.words.as_str())) {
        Some(twice) => bail!("operator in opdev.yaml names {} twice", twice.words),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    fn detected(text: &str) -> Result<Vec<Plan>> {
        let folder = tempfile::tempdir().unwrap();
        for dir in ["a", "b"] {
            std::fs::create_dir(folder.path().join(dir)).unwrap();
        }
        let value = opdev_object::yaml::from_str(text).unwrap();
        let programs: Programs = serde_json::from_value(value)?;
        detect_all(folder.path(), Some(&programs), false)
    }

    #[test]
    fn a_project_has_one_program_or_several() {
        let words = |text: &str| -> Vec<String> {
            detected(text).unwrap().into_iter().map(|plan| plan.words).collect()
        };
        assert_eq!(words("command: [python, op.py]\n"), ["python op.py"]);
        assert_eq!(words("- command: [python, op.py]\n- command: [./op]\n"), ["python op.py", "./op"]);
        let twice = "- {command: [kopf, run, op.py], dir: a}\n- {command: [kopf, run, op.py], dir: b}\n";
        assert_eq!(words(twice), ["kopf run op.py in a", "kopf run op.py in b"]);
    }

    #[test]
    fn what_cannot_be_told_apart_is_refused() {
        let refused = |text: &str| format!("{:#}", detected(text).unwrap_err());
        expect!["operator in opdev.yaml is an empty list; name a program, or leave it out"]
            .assert_eq(&refused("[]\n"));
        expect!["operator in opdev.yaml names ./op twice"]
            .assert_eq(&refused("- command: [./op]\n- command: [./op]\n"));
        let kinds = "- {command: [./a], kinds: [Note]}\n- {command: [./b], kinds: [Note]}\n";
        expect!["operator in opdev.yaml: two programs reconcile Note; name it under `kinds` of one of them"]
            .assert_eq(&refused(kinds));
        let second = refused("- command: [./op]\n- {command: [./b], env: {KUBECONFIG: x}}\n");
        assert!(second.starts_with("program 2 of the list `operator` in opdev.yaml: "), "{second}");
        expect!["invalid type: integer `3`, expected a program, or a list of programs"]
            .assert_eq(&refused("3\n"));
    }
}
