//! Definitions and what a real API server says of them.

use super::*;

/// One case a line, with what a real server says.
const REFUSED: &str = include_str!("../../../tests/golden/definition/refused.jsonl");
const DIFFERENCES: &str = include_str!("../../../tests/golden/definition/differences.txt");

/// What a real server refuses, and what is refused here: the same, but for what `differences.txt` lists.
#[test]
fn definitions_are_refused_as_by_a_real_server() {
    let known: Vec<&str> =
        DIFFERENCES.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).collect();
    let mut wrong = Vec::new();
    let mut count = 0;
    for line in REFUSED.lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let name = case["name"].as_str().unwrap();
        let mut crd = case["crd"].clone();
        complete(&mut crd);
        let mut got: Vec<String> = validate(&crd).iter().map(ToString::to_string).collect();
        got.sort();
        let wanted: Vec<String> = case["refused"]
            .as_array()
            .unwrap()
            .iter()
            .map(|text| text.as_str().unwrap().to_owned())
            .collect();
        count += 1;
        if (got == wanted) == known.contains(&name) {
            wrong.push(format!("{name}\n   wanted {wanted:?}\n   got    {got:?}"));
        }
    }
    assert!(count > 90, "{count}");
    assert!(wrong.is_empty(), "{} of {count} differ:\n{}", wrong.len(), wrong.join("\n"));
}
