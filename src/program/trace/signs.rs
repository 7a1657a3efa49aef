//! Signs of readiness in a status: conditions and fields that say that an object, or a part of it, is ready;
//! and signs that two objects are one and the same but for their names. Pure.

use opdev_event::evidence::ReadySign;
use opdev_object::meta;
use serde_json::Value;

/// Words that a condition ends with; the first two say that all of it is as it should be.
const WORDS: [&str; 4] = ["Ready", "Healthy", "Available", "Running"];
/// Fields of a status that say it in one word.
const FIELDS: [&str; 7] = ["phase", "state", "currentState", "status", "health", "ready", "available"];
/// A name of a part that is shorter may stand in any other name.
const NAME: usize = 4;

/// The signs that a write has brought.
pub(super) fn brought(old: Option<&Value>, new: &Value) -> Vec<ReadySign> {
    let before = old.map(of).unwrap_or_default();
    of(new).into_iter().filter(|sign| !before.contains(sign)).collect()
}

/// The signs of an object, for its newest generation.
fn of(object: &Value) -> Vec<ReadySign> {
    let (status, kind) = (&object["status"], object["kind"].as_str().unwrap_or_default());
    let generation = meta::generation(object);
    let is_newest =
        |value: &Value| value["observedGeneration"].as_i64().is_none_or(|observed| observed == generation);
    let conditions = status["conditions"].as_array().map_or(&[][..], Vec::as_slice);
    let is_true = |condition: &&Value| condition["status"] == "True" && is_newest(condition);
    let mut signs: Vec<ReadySign> = conditions
        .iter()
        .filter(is_true)
        .filter_map(|condition| of_condition(condition["type"].as_str()?, kind))
        .collect();
    if is_newest(status) {
        signs.extend(FIELDS.iter().filter_map(|name| of_field(name, &status[*name])));
    }
    signs
}

fn of_condition(name: &str, kind: &str) -> Option<ReadySign> {
    let word = WORDS.iter().find(|word| name.ends_with(**word))?;
    let rest = name[..name.len() - word.len()].to_lowercase();
    let rest: String = rest.chars().filter(char::is_ascii_alphanumeric).collect();
    // A condition that says the contrary, or that something is under way, proves nothing.
    if ["not", "un", "never", "non"].iter().any(|no| rest.ends_with(no)) || rest.contains("progress") {
        return None;
    }
    let all = rest.is_empty() || rest == kind.to_lowercase() || rest.starts_with("all");
    if !all && rest.len() < NAME {
        return None;
    }
    Some(ReadySign {
        text: format!("condition {name}"),
        part: if all { String::new() } else { rest },
        whole: matches!(*word, "Ready" | "Healthy"),
    })
}

fn of_field(name: &str, value: &Value) -> Option<ReadySign> {
    let (said, whole) = match value {
        Value::Bool(true) if matches!(name, "ready" | "available") => ("true".to_owned(), name == "ready"),
        Value::String(text) => {
            let yes = text.eq_ignore_ascii_case("true") && matches!(name, "ready" | "available");
            let word = WORDS.iter().find(|word| text.eq_ignore_ascii_case(word));
            let whole =
                yes && name == "ready" || word.is_some_and(|word| matches!(*word, "Ready" | "Healthy"));
            (yes || word.is_some()).then(|| (text.clone(), whole))?
        }
        _ => return None,
    };
    Some(ReadySign { text: format!("status.{name} {said}"), part: String::new(), whole })
}

/// A hash of what a create sent, but for its name and owners.
pub(super) fn content(sent: &Value) -> u64 {
    let Some(fields) = sent.as_object() else { return 0 };
    let mut content: serde_json::Map<String, Value> = fields.clone();
    content.retain(|name, _| !matches!(name.as_str(), "metadata" | "status"));
    content.insert("labels".to_owned(), sent["metadata"]["labels"].clone());
    super::evidence::hash(Some(&Value::Object(content)))
}

/// True if the API server or the program itself has made up the end of a name.
pub(super) fn is_generated(sent: &Value, name: &str) -> bool {
    const RANDOM: &str = "bcdfghjklmnpqrstvwxz2456789";
    let end = name.rsplit('-').next().unwrap_or_default();
    let random = end.len() == 5
        && end.chars().all(|letter| RANDOM.contains(letter))
        && end.chars().any(|letter| letter.is_ascii_digit());
    sent["metadata"]["generateName"].is_string() || random
}

#[cfg(test)]
mod tests {
    use super::{brought, content, is_generated};
    use serde_json::{Value, json};

    fn signs(status: &Value) -> Vec<(String, String, bool)> {
        let object = json!({"kind": "Shelf", "metadata": {"generation": 2}, "status": status});
        brought(None, &object).into_iter().map(|sign| (sign.text, sign.part, sign.whole)).collect()
    }

    #[test]
    fn conditions_and_fields_that_say_ready_are_signs() {
        let condition = |name: &str| json!({"conditions": [{"type": name, "status": "True"}]});
        let one = |text: &str, part: &str, whole| vec![(text.to_owned(), part.to_owned(), whole)];
        assert_eq!(signs(&condition("Ready")), one("condition Ready", "", true));
        assert_eq!(signs(&condition("Available")), one("condition Available", "", false));
        assert_eq!(signs(&condition("ShelfReady")), one("condition ShelfReady", "", true));
        assert_eq!(signs(&condition("AllReplicasReady")), one("condition AllReplicasReady", "", true));
        assert_eq!(signs(&condition("Worker-Ready")), one("condition Worker-Ready", "worker", true));
        for name in ["NotReady", "Unavailable", "ReconcileSucceeded", "Progressing", "DBReady"] {
            assert_eq!(signs(&condition(name)), [], "{name}");
        }
        assert_eq!(signs(&json!({"phase": "Available"})), one("status.phase Available", "", false));
        assert_eq!(signs(&json!({"currentState": "ready"})), one("status.currentState ready", "", true));
        assert_eq!(signs(&json!({"ready": true})), one("status.ready true", "", true));
        assert_eq!(signs(&json!({"ready": "True"})), one("status.ready True", "", true));
        for other in [json!({"phase": "Pending"}), json!({"ready": 3}), json!({"ready": "0/1"}), json!({})] {
            assert_eq!(signs(&other), [], "{other}");
        }
    }

    #[test]
    fn what_is_said_of_an_older_generation_or_was_said_before_is_no_sign() {
        assert_eq!(signs(&json!({"phase": "Ready", "observedGeneration": 1})), []);
        let old = json!([{"type": "Ready", "status": "True", "observedGeneration": 1}]);
        assert_eq!(signs(&json!({ "conditions": old })), []);
        let ready = json!({"kind": "Shelf", "metadata": {"generation": 2}, "status": {"phase": "Ready"}});
        assert_eq!(brought(Some(&ready), &ready), []);
    }

    #[test]
    fn two_objects_are_the_same_but_for_their_names() {
        let object = |name: &str, label: &str| json!({"kind": "Pod", "spec": {"a": 1}, "metadata": {"name": name, "labels": {"app": label}}});
        assert_eq!(content(&object("a", "x")), content(&object("b", "x")));
        assert_ne!(content(&object("a", "x")), content(&object("a", "y")));
        assert!(is_generated(&json!({"metadata": {"generateName": "web-"}}), "web-abcde"));
        assert!(is_generated(&object("web-x7k2p", "x"), "web-x7k2p"));
        for fixed in ["web-0", "web", "web-style", "web-cache", "web-12345"] {
            assert!(!is_generated(&object(fixed, "x"), fixed), "{fixed}");
        }
    }
}
