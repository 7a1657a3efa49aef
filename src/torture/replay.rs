//! The file of a finding: all that one run needs, to be run again.

use super::fields::mutation::Mutation;
use super::judge::Difference;
use super::plan::Disturbance;
use anyhow::{Context as _, Result};
use opdev_controlplane::ExecAnswer;
use opdev_object::yaml;
use opdev_os::small_file::{small_text, unreadable};
use opdev_steps::scenario::Scenario;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// One plan with what it found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Replay {
    /// Random functions of charts draw by it.
    pub(super) seed: u64,
    pub(super) scenario: Scenario,
    /// Nothing where the undisturbed runs are wrong by themselves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) disturbance: Option<Disturbance>,
    /// The field that is changed, and changed back, in place of all steps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) field: Option<Mutation>,
    /// Answers of an `exec` in a simulated pod, as `--exec` takes them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) exec: Vec<String>,
    /// As it was found.
    pub(super) differences: Vec<Difference>,
}

/// The outcome of running the file of a finding again.
#[derive(Clone, Debug)]
pub struct Replayed {
    /// The disturbance in words.
    pub how: String,
    /// The differences of this time.
    pub differences: Vec<Difference>,
    /// True if some of it was different then, too.
    pub again: bool,
    /// True if the disturbance took place.
    pub met: bool,
}

impl Replay {
    /// The answers of an `exec`: those of the file, unless the user gives others.
    ///
    /// # Errors
    /// Where the file has one that is none.
    pub(super) fn answers(&self, given: &[ExecAnswer]) -> Result<Vec<ExecAnswer>> {
        if !given.is_empty() {
            return Ok(given.to_vec());
        }
        let read = |text: &String| text.parse().with_context(|| format!("exec: {text}"));
        self.exec.iter().map(read).collect()
    }

    /// The text of the file.
    ///
    /// # Errors
    /// Where it cannot be written as YAML.
    pub(super) fn text(&self, path: &str) -> Result<String> {
        let value = serde_json::to_value(self)?;
        Ok(format!("# opdev torture --replay {path}\n{}", yaml::to_string(&value)))
    }

    /// Reads a file.
    ///
    /// # Errors
    /// Where it is none of opdev's.
    pub(super) fn read(path: &Path) -> Result<Replay> {
        let text = small_text(path).with_context(|| unreadable(&path.display().to_string()))?;
        let value =
            yaml::from_str(&text).map_err(|error| anyhow::anyhow!("{}", error.in_file(path.display())))?;
        serde_json::from_value(value).with_context(|| {
            format!("{} is no file of a finding that `opdev torture` has written", path.display())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::judge::Rule;
    use super::super::point::Point;
    use super::*;
    use opdev_steps::scenario::{Sample, Step};
    use serde_json::json;

    #[test]
    fn a_file_says_all_that_a_run_needs() {
        let object = json!({"apiVersion": "g/v1", "kind": "Db", "metadata": {"name": "db", "namespace": "default"}, "spec": {"size": "5Gi"}});
        let sample =
            Sample { path: "samples/db.yaml".to_owned(), others: Vec::new(), objects: vec![object.clone()] };
        let steps = vec![
            Step::Apply(vec![object.clone()]),
            Step::Patch { object: object.clone(), patch: json!({"spec": {"size": null}}) },
            Step::DeleteNamespace("x".to_owned()),
        ];
        let point =
            Point { write: "delete statefulsets default/db (.spec.replicas 1 → 3)".to_owned(), nth: 2 };
        let difference = Difference {
            rule: Rule::End,
            object: "Db default/db".to_owned(),
            path: ".spec.size".to_owned(),
            undisturbed: "7Gi".to_owned(),
            disturbed: String::new(),
            after: String::new(),
        };
        let replay = Replay {
            seed: 7,
            scenario: Scenario { name: "grow".to_owned(), sample, steps },
            disturbance: Some(Disturbance::Crash(point)),
            field: Some(Mutation::new(vec!["spec".to_owned()], None)),
            exec: vec!["redis-cli ping=PONG".to_owned()],
            differences: vec![difference],
        };
        assert_eq!(replay.answers(&[]).unwrap()[0].to_string(), "redis-cli ping=PONG");
        assert_eq!(replay.answers(&["ok".parse().unwrap()]).unwrap()[0].to_string(), "ok");
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("1.yaml");
        std::fs::write(&path, replay.text(".opdev/torture/1.yaml").unwrap()).unwrap();
        assert_eq!(Replay::read(&path).unwrap(), replay);
        std::fs::write(&path, "a: b\n").unwrap();
        assert!(Replay::read(&path).unwrap_err().to_string().contains("no file of a finding"));
    }
}
