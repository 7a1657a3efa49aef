//! What a real server refused or warned of, and in which words: `refusals.jsonl` holds objects and its answers. The
//! file is made by `reference cases` (tests/reference/kubernetes); a new line is a new case.

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
