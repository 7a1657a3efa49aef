//! The problem: a script that writes something else each time would fill a cluster in a minute. It must be
//! stopped early, but not a script that makes one child after the other.
//!
//! Stops reconciles that feed themselves: own writes that lead to own writes without an end, from the same
//! input. What others do, a saved file and the user's key start anew. Pure but for the clock that bounds a
//! window.

use opdev_object::diff::diff;
use opdev_object::meta;
use serde_json::Value;
use std::collections::{VecDeque, hash_map::DefaultHasher};
use std::hash::{Hash, Hasher};
use std::time::{Duration, Instant};

/// After so many reconciles in a row that wrote and were only asked for by own writes, enough is known.
const STREAK: u32 = 8;
/// A longer limit for reconciles that only create: a chain of children, each made once the one before is
/// there, comes to an end.
const CHAIN: u32 = 200;
/// How often a program may come back to an earlier answer, in how much time.
const RETURNS: usize = 8;
const WINDOW: Duration = Duration::from_secs(10);
/// How many answers are remembered.
const KEPT: usize = 8;

/// The writes of a reconcile: a hash of everything, and the objects themselves to be shown.
#[derive(Clone, Debug, Default)]
pub(super) struct Fingerprint {
    pub(super) hash: u64,
    /// True if it writes anything.
    pub(super) writes: bool,
    /// True if all that it writes is new.
    pub(super) creates: bool,
    /// The wanted objects, by the name that people read.
    pub(super) wanted: Vec<(String, Value)>,
}

/// The known facts about the reconciles of one object.
#[derive(Debug, Default)]
pub(super) struct Guard {
    input: u64,
    streak: u32,
    chain: u32,
    answers: VecDeque<Fingerprint>,
    returns: VecDeque<Instant>,
    paused: bool,
}

impl Guard {
    pub(super) fn is_paused(&self) -> bool {
        self.paused
    }

    /// A reconcile begins.
    pub(super) fn begin(&mut self, own_only: bool, parent: &Value) {
        let input = hash(&(&parent["spec"], meta::uid(parent), meta::deletion_timestamp(parent)));
        if !own_only {
            self.streak = 0;
            self.chain = 0;
            self.paused = false;
        }
        if input != self.input {
            *self = Guard { input, ..Guard::default() };
        }
    }

    /// The program has answered. Words where it goes round in a circle.
    pub(super) fn judge(&mut self, answer: &Fingerprint) -> Option<String> {
        if !answer.writes {
            self.streak = 0;
            self.chain = 0;
            self.remember(answer);
            return None;
        }
        if answer.creates {
            self.chain += 1;
        } else {
            self.streak += 1;
        }
        let last = self.answers.back().cloned();
        let again = last.as_ref().is_some_and(|last| last.hash != answer.hash)
            && self.answers.iter().any(|known| known.hash == answer.hash);
        if again {
            self.returns.push_back(Instant::now());
        }
        while self.returns.front().is_some_and(|at| at.elapsed() > WINDOW) {
            self.returns.pop_front();
        }
        self.remember(answer);
        if self.streak < STREAK && self.chain < CHAIN && self.returns.len() < RETURNS {
            return None;
        }
        self.paused = true;
        self.streak = 0;
        self.chain = 0;
        self.returns.clear();
        Some(words(last.as_ref(), answer))
    }

    fn remember(&mut self, answer: &Fingerprint) {
        self.answers.push_back(answer.clone());
        if self.answers.len() > KEPT {
            self.answers.pop_front();
        }
    }
}

fn words(last: Option<&Fingerprint>, now: &Fingerprint) -> String {
    let mut text =
        "the reconciler goes round in a circle: each of its reconciles writes, and nobody else asked for \
                    one; it is paused until the object, the file or somebody else changes something"
            .to_owned();
    let Some(last) = last else { return text };
    let names = |of: &Fingerprint| of.wanted.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
    let (before, after) = (names(last), names(now));
    if let Some(name) = before.iter().find(|name| !after.contains(name)) {
        text.push_str(&format!("; its answers differ in {name}, which is listed every other time"));
    } else if let Some(name) = after.iter().find(|name| !before.contains(name)) {
        text.push_str(&format!("; its answers differ in {name}, which is listed every other time"));
    } else {
        let change = last.wanted.iter().find_map(|(name, old)| {
            let (_, new) = now.wanted.iter().find(|(known, _)| known == name)?;
            diff(old, new).into_iter().next().map(|change| (name, change))
        });
        match change {
            Some((name, change)) => {
                let short = |side: &Option<Value>| match side {
                    Some(value) => value.to_string().chars().take(60).collect(),
                    None => "nothing".to_owned(),
                };
                let (old, new) = (short(&change.old), short(&change.new));
                text.push_str(&format!("; {name} {} is {old}, then {new}", change.path));
            }
            None => text.push_str("; somebody undoes what it writes, though its answers are the same"),
        }
    }
    text
}

/// A hash of anything that prints the same where it is the same.
pub(super) fn hash(value: &(impl std::fmt::Debug + ?Sized)) -> u64 {
    let mut hasher = DefaultHasher::new();
    format!("{value:?}").hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn answer(value: &str) -> Fingerprint {
        let object = json!({"data": {"a": value}});
        Fingerprint {
            hash: hash(&object),
            writes: true,
            creates: false,
            wanted: vec![("ConfigMap x".to_owned(), object)],
        }
    }

    #[test]
    fn a_circle_of_own_writes_is_stopped_with_both_answers() {
        let mut guard = Guard::default();
        let parent = json!({"spec": {"a": 1}});
        let mut found = None;
        for i in 0..STREAK {
            guard.begin(i > 0, &parent);
            found = guard.judge(&answer(if i % 2 == 0 { "one" } else { "two" }));
        }
        let words = found.unwrap();
        assert!(words.ends_with("ConfigMap x .data.a is \"one\", then \"two\""), "{words}");
        assert!(guard.is_paused());
        guard.begin(true, &parent);
        assert!(guard.is_paused(), "own writes do not start it again");
        guard.begin(false, &parent);
        assert!(!guard.is_paused());
    }

    #[test]
    fn a_reconcile_that_writes_nothing_or_a_new_spec_starts_anew() {
        let mut guard = Guard::default();
        for i in 0..3 * STREAK {
            guard.begin(true, &json!({"spec": {"a": i}}));
            assert!(guard.judge(&answer(&i.to_string())).is_none());
        }
        for i in 0..3 * STREAK {
            guard.begin(true, &json!({"spec": {"a": 1}}));
            let quiet = i % 4 == 0;
            let answer = Fingerprint { writes: !quiet, ..answer(&i.to_string()) };
            assert!(guard.judge(&answer).is_none(), "{i}");
        }
    }
}
