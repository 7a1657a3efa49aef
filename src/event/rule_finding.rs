//! Findings: things that are wrong with the operator, with a beginning, a count and an end.

use super::Place;
use jiff::Timestamp;
use opdev_object::meta::ObjectRef;
use serde::{Deserialize, Serialize};

/// Severities, the worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum FindingSeverity {
    /// The operator does something wrong.
    Error,
    /// It will, under load, after a restart, or on another cluster.
    Warning,
    /// It could do better.
    Hint,
}

impl FindingSeverity {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            FindingSeverity::Error => "error",
            FindingSeverity::Warning => "warning",
            FindingSeverity::Hint => "hint",
        }
    }

    /// The sign before it.
    pub fn sign(self) -> &'static str {
        match self {
            FindingSeverity::Error => "✗",
            FindingSeverity::Warning => "⚠",
            FindingSeverity::Hint => "i",
        }
    }
}

/// One thing that is wrong with the operator.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RuleFinding {
    /// Counted from 1 in this process.
    pub id: u64,
    /// The rule, such as `hot-loop`: `opdev explain RULE` tells of it.
    pub rule: String,
    /// Its severity.
    pub severity: FindingSeverity,
    /// In a few words, such as `hot loop: Deployment env`.
    pub title: String,
    /// Why it is wrong, in one sentence, with names and numbers.
    pub why: String,
    /// The cure, in one sentence.
    pub fix: String,
    /// The object whose reconciles show it.
    pub object: ObjectRef,
    /// The object that is written, read or missing, where it is another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub about: Option<ObjectRef>,
    /// The field; empty where it is about the whole.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub field: String,
    /// The controller; empty where it is not known.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub controller: String,
    /// When it was seen first.
    pub first: Timestamp,
    /// When it was seen last.
    pub last: Timestamp,
    /// Number of times.
    pub times: u64,
    /// Number of times a second, while that is more than one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_second: Option<u32>,
    /// The newest reconciles that show it, at most eight.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reconciles: Vec<u64>,
    /// The first reconcile that showed it; 0 where none did.
    #[serde(default)]
    pub since: u64,
    /// The rules that it explains: these are not told by themselves.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub explains: Vec<String>,
    /// True if it goes on and on: each reconcile since the first one shows it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub storm: bool,
    /// The place in the code, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<Place>,
    /// Its end; none while it is open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<FindingEnd>,
}

/// The end of a finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FindingEnd {
    /// When.
    pub at: Timestamp,
    /// In words, such as `fixed by your save of controller.go at 14:02`.
    pub how: String,
}

impl RuleFinding {
    /// True if it is open.
    pub fn is_open(&self) -> bool {
        self.ended.is_none()
    }

    /// The title, with the number of times a second: `hot loop 17/s: Deployment env`.
    pub fn short(&self) -> String {
        let Some(rate) = self.per_second.filter(|_| self.is_open()) else { return self.title.clone() };
        match self.title.split_once(": ") {
            Some((name, rest)) => format!("{name} {rate}/s: {rest}"),
            None => format!("{} {rate}/s", self.title),
        }
    }

    /// The title in at most so many characters: `hot loop 17/s: Deployment env`, else without where, else
    /// without how often, too; the last of these is not cut.
    pub fn within(&self, most: usize) -> String {
        let before = |text: &str| text.split_once(": ").map_or(text, |(name, _)| name).to_owned();
        let short = self.short();
        let ways = [short.clone(), before(&short)];
        ways.into_iter().find(|way| way.chars().count() <= most).unwrap_or_else(|| before(&self.title))
    }

    /// The rank in a list: errors first, open ones before those that are fixed.
    pub fn rank(&self) -> (bool, FindingSeverity) {
        (!self.is_open(), self.severity)
    }
}
