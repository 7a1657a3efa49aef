//! `batch generate KIND FROM TO` prints cases as JSON lines; `batch compare 3|4 CASES ANSWERS` prints what
//! differs.

use opdev_fuzz::{compare, generate};
use opdev_helm::engine::Compat;
use serde_json::Value;
use std::io::{BufRead, BufReader, BufWriter, Write};

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["generate", kind, from, to] => {
            let mut out = BufWriter::new(std::io::stdout().lock());
            for seed in from.parse::<u64>()?..to.parse()? {
                writeln!(out, "{}", generate::case(kind, seed))?;
            }
            Ok(())
        }
        ["compare", helm, cases, answers] => differences(helm, cases, answers),
        _ => {
            Err("usage: batch generate template|yaml|manifest FROM TO | batch compare 3|4 CASES ANSWERS"
                .into())
        }
    }
}

fn differences(helm: &str, cases: &str, answers: &str) -> Result<(), Failure> {
    let compat = if helm == "4" { Compat::V4 } else { Compat::V3 };
    let open = |path: &str| std::fs::File::open(path).map(|file| BufReader::new(file).lines());
    let (mut all, mut unstable, mut errors, mut different) = (0, 0, 0, 0);
    let mut out = BufWriter::new(std::io::stdout().lock());
    for (seed, (case, answer)) in open(cases)?.zip(open(answers)?).enumerate() {
        let (case, answer): (Value, Value) = (serde_json::from_str(&case?)?, serde_json::from_str(&answer?)?);
        all += 1;
        unstable += usize::from(answer.get("unstable").is_some());
        errors += usize::from(
            answer.get("error").is_some()
                || answer
                    .pointer("/yaml/json")
                    .and_then(Value::as_str)
                    .is_some_and(|text| text.starts_with("error: ")),
        );
        if let Some(difference) = compare::differs(&case, &answer, compat) {
            different += 1;
            writeln!(out, "{}", compare::line(seed as u64, &case, &difference))?;
        }
    }
    out.flush()?;
    eprintln!(
        "{all} cases, {errors} refused by Helm, {unstable} of which Helm is not sure, {different} different"
    );
    Ok(())
}
