//! The test tables of Go's text/template and of Sprig, restated as data with what Helm answers
//! (`tests/reference/helm/tables` writes them): each row that a chart can ask gives Helm's answer, byte for
//! byte.

use super::*;
use crate::chart::FileSet;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// A world that stands still.
struct Still;

impl Environment for Still {
    fn now(&self) -> jiff::Timestamp {
        jiff::Timestamp::from_second(1_700_000_000).unwrap()
    }

    fn random(&self, buffer: &mut [u8]) {
        buffer.fill(7);
    }

    fn lookup(&self, _: &str, _: &str, _: &str, _: &str) -> Result<Value, FuncError> {
        Ok(json!({}))
    }
}

fn answer(row: &Value, dot: &Value, compat: Compat) -> Value {
    let text = row["text"].as_str().unwrap();
    let template = match row.get("raw") {
        Some(_) => text.to_owned(),
        None => format!(r#"{{{{define "case"}}}}{text}{{{{end}}}}{{{{template "case" .Values.dot}}}}"#),
    };
    let values = json!({ "dot": dot }).to_string();
    let files: FileSet = [
        ("Chart.yaml", "apiVersion: v2\nname: probe\nversion: 0.1.0\n"),
        ("values.yaml", &values),
        ("templates/NOTES.txt", &template),
    ]
    .into_iter()
    .map(|(path, text)| (path, text.as_bytes()))
    .collect();
    let chart = crate::chart::Chart::load_for(&files, compat).unwrap();
    let (none, capabilities) = (json!({}), Capabilities::default_for(compat));
    let release = ReleaseInfo::install("release-name", "default");
    let input = RenderInput { compat, ..RenderInput::new(&none, release, &capabilities, &Still) };
    match render(&chart, &input) {
        Ok(rendered) => json!({"out": rendered.notes}),
        Err(error) => json!({"error": error.message}),
    }
}

#[test]
fn the_tables_of_go_and_sprig_give_what_helm_gives() {
    let mut lines = include_str!("../../../tests/golden/tables/tables.jsonl").lines();
    let worlds: Value = serde_json::from_str(lines.next().unwrap()).unwrap();
    // By table: rows, rows that are asked, rows that are equal.
    let mut shares: BTreeMap<String, [usize; 3]> = BTreeMap::new();
    let mut left_out: BTreeMap<String, usize> = BTreeMap::new();
    let mut wrong = String::new();
    for line in lines {
        let row: Value = serde_json::from_str(line).unwrap();
        let share = shares.entry(row["table"].as_str().unwrap().to_owned()).or_default();
        share[0] += 1;
        if let Some(why) = row["not"].as_str() {
            *left_out.entry(why.to_owned()).or_default() += 1;
            continue;
        }
        share[1] += 1;
        let dot = row["world"].as_str().map_or(&row["dot"], |name| &worlds["worlds"][name]);
        let mut equal = true;
        for (key, compat) in [("helm3", Compat::V3_19), ("helm4", Compat::V4_1)] {
            let got = answer(&row, dot, compat);
            equal &= got == row[key];
            if got != row[key] {
                let _ = writeln!(wrong, "{} {key}\n  want {}\n  got  {got}", row["text"], row[key]);
            }
        }
        share[2] += usize::from(equal);
    }
    for (table, [all, asked, equal]) in &shares {
        eprintln!("{table}: {equal} of {asked} equal, {} of {all} not asked", all - asked);
    }
    for (why, count) in &left_out {
        eprintln!("not asked: {count}: {why}");
    }
    let asked: usize = shares.values().map(|share| share[1]).sum();
    assert!(asked > 900, "only {asked} rows");
    assert!(wrong.is_empty(), "{wrong}");
}
