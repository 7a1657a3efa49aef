//! Fields whose changes reach nothing, though they look as if they should: another field of that name does,
//! or pods have such a field. Pure.

use opdev_object::facts::pod_fields;
use opdev_steps::parts::SWITCHES;
use serde_json::Value;
use std::collections::BTreeMap;

/// Fields of pods and workloads that are handed on whole, beside those of `pod_fields`.
const HANDED_ON: [&str; 3] = ["labels", "annotations", "podDisruptionBudget"];
/// Names that stand in many places and mean something else in each.
const GENERIC: [&str; 20] = [
    "name",
    "namespace",
    "type",
    "kind",
    "key",
    "value",
    "enabled",
    "enable",
    "create",
    "size",
    "port",
    "ports",
    "path",
    "url",
    "host",
    "version",
    "mode",
    "id",
    "description",
    "items",
];

/// Fields with the first place that a change of theirs reached.
#[derive(Debug, Default)]
pub(super) struct Reach(BTreeMap<Vec<String>, Option<(String, String)>>);

impl Reach {
    /// A change of a field was tried: the object and the field that it reached first.
    pub(super) fn saw(&mut self, path: &[String], reached: Option<(String, String)>) {
        let known = self.0.entry(path.to_vec()).or_default();
        *known = known.take().or(reached);
    }

    /// The fields that reach nothing and should, a sentence each. `pods` says if the operator makes any.
    pub(super) fn silent(&self, object: &Value, pods: bool) -> Vec<String> {
        let silent = self.0.iter().filter(|(path, reached)| {
            reached.is_none() && !self.is_in_silent_part(path) && !is_switched_off(object, path)
        });
        silent.filter_map(|(path, _)| self.words(path, pods)).collect()
    }

    /// Returns true if the part that a field is in reaches nothing as a whole.
    fn is_in_silent_part(&self, path: &[String]) -> bool {
        (1..path.len()).any(|end| matches!(self.0.get(&path[..end]), Some(None)))
    }

    fn words(&self, path: &[String], pods: bool) -> Option<String> {
        let name = name_of(path)?;
        let said = format!(".{} reaches nothing", path.join("."));
        let twin = self.0.iter().find_map(|(other, reached)| {
            let (object, field) = reached.as_ref()?;
            let is_twin =
                name_of(other) == Some(name) && !GENERIC.contains(&name) && other.first() == path.first();
            (is_twin && !object.is_empty()).then(|| format!(".{} reaches {object} {field}", other.join(".")))
        });
        if let Some(twin) = twin {
            return Some(format!("{said}, and {}", twin.trim_end()));
        }
        let handed_on = pods && (pod_fields::is_name(name) || HANDED_ON.contains(&name));
        // Labels and annotations of the object itself are its own.
        (handed_on && path[0] == "spec")
            .then(|| format!("{said}: the pods that the operator makes have such a field"))
    }
}

/// The last name of a path that is no number of an item.
fn name_of(path: &[String]) -> Option<&str> {
    path.iter().rev().map(String::as_str).find(|name| name.parse::<usize>().is_err())
}

/// Returns true if a part that a field is in is switched off.
fn is_switched_off(object: &Value, path: &[String]) -> bool {
    let mut at = object;
    for key in path {
        if SWITCHES.iter().any(|switch| at[*switch] == false) {
            return true;
        }
        at = match key.parse::<usize>() {
            Ok(index) => &at[index],
            Err(_) => &at[key.as_str()],
        };
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn reach(paths: &[(&str, bool)]) -> Reach {
        let mut all = Reach::default();
        for (path, reached) in paths {
            let path: Vec<String> = path.split('.').map(str::to_owned).collect();
            all.saw(
                &path,
                reached.then(|| ("StatefulSet default/db".to_owned(), ".spec.replicas".to_owned())),
            );
        }
        all
    }

    #[test]
    fn a_field_whose_twin_reaches_something_is_told_and_one_of_pods() {
        let all = reach(&[
            ("spec.server.storageClass", true),
            ("spec.worker.storageClass", false),
            ("spec.tolerations", false),
            ("spec.worker.name", false),
            ("spec.server.name", true),
            ("spec.note", false),
            ("metadata.labels.x", false),
        ]);
        assert_eq!(
            all.silent(&json!({}), true),
            [
                ".spec.tolerations reaches nothing: the pods that the operator makes have such a field",
                ".spec.worker.storageClass reaches nothing, and .spec.server.storageClass reaches StatefulSet \
                 default/db .spec.replicas",
            ]
        );
        assert_eq!(all.silent(&json!({}), false).len(), 1);
    }

    #[test]
    fn parts_that_reach_nothing_or_are_off_are_no_news() {
        let all =
            reach(&[("spec.mesh", false), ("spec.mesh.tolerations", false), ("spec.web.affinity", false)]);
        assert_eq!(all.silent(&json!({"spec": {"web": {"enabled": false}}}), true), [""; 0]);
        let mut all = reach(&[("spec.tolerations", false)]);
        all.saw(&["spec".to_owned(), "tolerations".to_owned()], Some(Default::default()));
        assert_eq!(all.silent(&json!({}), true), [""; 0], "another change of it reached something");
    }
}
