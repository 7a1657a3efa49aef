//! Changes that a real server lets an update make, and the fields that it names where it does not:
//! `changes.jsonl` holds objects, merge patches and its answers. The file is made by
//! tests/reference/kubernetes/changes.py; a new line is a new case.

use super::*;

/// The field, and what is wrong with it without the value, of which the real server prints whole Go structs.
fn causes(answer: &Value) -> Vec<[String; 2]> {
    let mut causes: Vec<[String; 2]> = answer["details"]["causes"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|cause| {
            let message = cause["message"].as_str().unwrap().lines().next().unwrap_or_default();
            let words = message.rsplit(": ").next().unwrap_or_default();
            [cause["field"].as_str().unwrap().to_owned(), words.to_owned()]
        })
        .collect();
    causes.sort();
    causes
}

#[tokio::test]
async fn updates_change_what_they_change_on_a_real_server() {
    let (api, mut wrong) = (api(), Vec::new());
    for line in include_str!("changes.jsonl").lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let (path, object) = (case["path"].as_str().unwrap(), &case["object"]);
        let made = post(&api, path, object.clone()).await;
        assert!([201, 409].contains(&made.code), "{object}: {}", made.json);
        let one = format!("{path}/{}?dryRun=All", object["metadata"]["name"].as_str().unwrap());
        let answer =
            ask_as(&api, "PATCH", &one, "application/merge-patch+json", case["change"].clone()).await;
        let got = if answer.code < 300 { Vec::new() } else { causes(&answer.json) };
        if case["code"] != answer.code || case["causes"] != json!(got) {
            let (kind, change) = (&object["kind"], &case["change"]);
            wrong.push(format!(
                "{kind} {change}: {} {}, not {} {got:?}",
                case["code"], case["causes"], answer.code
            ));
        }
    }
    assert!(wrong.is_empty(), "{}:\n{}", wrong.len(), wrong.join("\n"));
}
