//! Errors that a program prints again and again: the only word of one that tells of no reconciles.

use crate::logs::error_of;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

/// How often an error has to come.
const TIMES: u32 = 5;
/// Errors that are told apart.
const MOST: usize = 256;

/// Errors by their words without numbers, each with how often it came, and as it came first.
#[derive(Debug, Default)]
pub struct Complaints(Mutex<BTreeMap<String, (u32, String)>>);

impl Complaints {
    /// Takes a line that the program has printed.
    pub fn hear(&self, line: &str) {
        let Some(error) = error_of(line) else { return };
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let words = without_numbers(&error);
        if known.len() >= MOST && !known.contains_key(&words) {
            return;
        }
        known.entry(words).or_insert((0, error)).0 += 1;
    }

    /// The errors that came again and again, each as `masked` lets it be seen, and begins anew.
    pub fn take(&self, masked: impl Fn(&str) -> String) -> BTreeSet<String> {
        let all = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        let often = all.into_values().filter(|(times, _)| *times >= TIMES);
        // Numbers differ from run to run, and so would the finding. A secret may have some.
        let words = |(_, error): (u32, String)| without_numbers(&masked(&error));
        often.map(words).map(|words| format!("the program says again and again: {words}")).collect()
    }
}

/// A text in which each number, and each part of a name with one in it, is `#`.
fn without_numbers(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for part in text.split_inclusive(|c: char| !c.is_ascii_alphanumeric()) {
        let word = part.trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
        match word.contains(|c: char| c.is_ascii_digit()) {
            true => out.push('#'),
            false => out.push_str(word),
        }
        out.push_str(&part[word.len()..]);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_that_comes_again_and_again_is_told_whatever_its_numbers() {
        let complaints = Complaints::default();
        for number in 0..TIMES {
            complaints.hear(&format!(
                r#"{{"level":"error","msg":"no luck at 12:0{number}","error":"try {number}"}}"#
            ));
            complaints.hear(r#"{"level":"info","msg":"all is well"}"#);
        }
        complaints.hear("ERROR once");
        let told: Vec<String> = complaints.take(str::to_owned).into_iter().collect();
        assert_eq!(told, ["the program says again and again: no luck at #:#: try #"]);
        assert!(complaints.take(str::to_owned).is_empty());
        let line = r#"{"level":"error","msg":"bad password horse-7"}"#;
        (0..TIMES).for_each(|_| complaints.hear(line));
        let told = complaints.take(|text| text.replace("horse-7", "****"));
        assert_eq!(told, ["the program says again and again: bad password ****".to_owned()].into());
    }
}
