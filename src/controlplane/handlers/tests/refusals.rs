//! Refusals and warnings of a real server, in its words: `refusals.jsonl` holds objects and its answers.
//! `reference cases` and `refusals.py` make the file (tests/reference/kubernetes). A new line is a new case.

use super::*;

const CASES: &str = include_str!("refusals.jsonl");

fn text<'a>(cause: &'a Value, field: &str) -> &'a str {
    cause[field].as_str().unwrap_or_default()
}

/// Causes about one field come in any order, as Go's maps do.
fn settled(causes: &Value) -> Vec<Value> {
    let mut causes = causes.as_array().cloned().unwrap_or_default();
    fn group(cause: &Value) -> String {
        let field = cause["field"].as_str().unwrap_or_default();
        field.split_once(".resources.").map_or(field, |(before, _)| before).to_owned()
    }
    for run in causes.chunk_by_mut(|a, b| group(a) == group(b)) {
        run.sort_by(|a, b| text(a, "message").cmp(text(b, "message")));
    }
    causes
}

/// Without what is never the same: uids and times.
fn comparable(value: &Value) -> String {
    value.to_string().replace("\\u003c", "<")
}

#[tokio::test]
async fn objects_are_refused_in_the_words_of_a_real_server() {
    let api = api();
    let mut wrong = Vec::new();
    for (at, line) in CASES.lines().enumerate() {
        let case: Value = serde_json::from_str(line).unwrap();
        let answer = ask(&api, "POST", case["path"].as_str().unwrap(), case["object"].clone()).await;
        let wanted: Vec<String> = settled(&case["causes"]).iter().map(comparable).collect();
        let got: Vec<String> = settled(&answer.json["details"]["causes"]).iter().map(comparable).collect();
        let warnings: Vec<&str> =
            case["warnings"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        if case["code"] != answer.code || wanted != got || warnings != answer.warnings {
            wrong.push(format!(
                "line {}: {}\n  wanted {} {wanted:#?} {warnings:?}\n  got {} {got:#?} {:?}",
                at + 1,
                case["object"],
                case["code"],
                answer.code,
                answer.warnings
            ));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), CASES.lines().count(), wrong.join("\n"));
}

/// Rules that only creation has, with the reason.
const ONLY_NEW: [(&str, &str, &str); 1] = [(
    "StatefulSet",
    "spec.volumeClaimTemplates",
    "no update changes them, so a real server looks at them once",
)];

/// Each rule of creation applies to an update: a valid object is changed to each refused one.
#[tokio::test]
async fn what_a_new_object_may_not_say_a_changed_one_may_not_say_either() {
    let api = api();
    let valid: Vec<Value> =
        include_str!("kinds.jsonl").lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let mut wrong = Vec::new();
    let mut checked = 0;
    for line in CASES.lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let kind = &case["object"]["kind"];
        let version = &case["object"]["apiVersion"];
        let fitting =
            |valid: &&Value| valid["object"]["kind"] == *kind && valid["object"]["apiVersion"] == *version;
        let Some(valid) = valid.iter().find(fitting).filter(|_| case["code"] == 422) else { continue };
        let path = valid["path"].as_str().unwrap();
        let one = format!("{path}/{}", valid["object"]["metadata"]["name"].as_str().unwrap());
        if get(&api, &one).await.code == 404 {
            post(&api, path, valid["object"].clone()).await.expect(StatusCode::CREATED);
        }
        let there = get(&api, &one).await.expect(StatusCode::OK);
        let mut object = case["object"].clone();
        for field in ["name", "namespace", "uid", "resourceVersion"] {
            object["metadata"][field] = there["metadata"][field].clone();
        }
        object["metadata"].as_object_mut().unwrap().remove("generateName");
        let answer = ask(&api, "PUT", &format!("{one}?dryRun=All"), object).await;
        let told: Vec<&str> = answer.json["details"]["causes"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|cause| text(cause, "field"))
            .collect();
        for cause in case["causes"].as_array().into_iter().flatten() {
            let field = text(cause, "field");
            let new = ONLY_NEW.iter().any(|(of, start, _)| kind == of && field.starts_with(start));
            if new || field.starts_with("metadata.name") || field.starts_with("metadata.generateName") {
                continue;
            }
            checked += 1;
            if !told.contains(&field) {
                wrong.push(format!("{kind} {field}: {} ({told:?})", text(cause, "message")));
            }
        }
    }
    assert!(checked > 150, "{checked}");
    assert!(wrong.is_empty(), "{} of {checked}:\n{}", wrong.len(), wrong.join("\n"));
}
