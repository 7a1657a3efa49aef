//! Since when each condition of an object has been what it is, and what it was before: transitions as they
//! were seen, kept small because every object has some. Bounded for each condition.

use super::shards::Shards;
use jiff::Timestamp;
use opdev_object::meta::ObjectKey;
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Transitions of one condition that are kept.
const MOST: usize = 40;
/// Texts that are kept once for all; beyond it those that nobody uses any more go.
const TEXTS: usize = 4_096;

/// The status of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Truth {
    /// `True`
    True,
    /// `False`
    False,
    /// `Unknown`, or a word that is none of the three.
    Unknown,
    /// The condition was taken away.
    Absent,
}

impl Truth {
    /// As Kubernetes writes it.
    pub fn word(self) -> &'static str {
        match self {
            Truth::True => "True",
            Truth::False => "False",
            Truth::Unknown => "Unknown",
            Truth::Absent => "absent",
        }
    }
}

/// A time for which a condition did not change; it ends where the next one begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// Since when.
    pub from: Timestamp,
    /// The value before.
    pub truth: Truth,
    /// Its reason; empty where it has none.
    pub reason: Arc<str>,
}

/// One condition over time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Its type.
    pub name: Arc<str>,
    /// Its spans, the oldest first.
    pub spans: Vec<Span>,
}

/// The conditions of all objects.
#[derive(Clone, Debug, Default)]
pub struct Conditions {
    by_object: Shards<Arc<ObjectKey>, Arc<Vec<Line>>>,
    texts: Arc<BTreeSet<Arc<str>>>,
}

impl Conditions {
    /// The conditions of an object in the order in which they came up.
    pub fn of(&self, key: &ObjectKey) -> &[Line] {
        self.by_object.get(key).map_or(&[], |lines| lines.as_slice())
    }

    /// Takes in what an object says now, seen at this time.
    pub(super) fn seen(&mut self, key: &Arc<ObjectKey>, object: &Value, at: Timestamp) {
        let now = object.pointer("/status/conditions").and_then(Value::as_array);
        let now = now.map_or(&[][..], Vec::as_slice);
        let known = self.by_object.get(key);
        if now.is_empty() && known.is_none() || known.is_some_and(|known| same(known, now)) {
            return;
        }
        let mut lines = known.map(|known| known.as_ref().clone()).unwrap_or_default();
        for condition in now {
            let name = text(condition, "type");
            let (truth, reason) = (truth(condition), text(condition, "reason"));
            let last = text(condition, "lastTransitionTime").parse::<Timestamp>().ok();
            let reason = self.text(reason);
            match lines.iter_mut().find(|line| *line.name == *name) {
                None => {
                    // The first time it is seen, the object itself knows since when.
                    let from = last.filter(|last| *last <= at).unwrap_or(at);
                    let name = self.text(name);
                    lines.push(Line { name, spans: vec![Span { from, truth, reason }] });
                }
                Some(line) => step(line, Span { from: at, truth, reason }),
            }
        }
        for line in &mut lines {
            if !now.iter().any(|condition| text(condition, "type") == &*line.name) {
                step(line, Span { from: at, truth: Truth::Absent, reason: Arc::default() });
            }
        }
        self.by_object.piece_mut(key.as_ref()).insert(Arc::clone(key), Arc::new(lines));
    }

    pub(super) fn forget(&mut self, key: &ObjectKey) -> Option<Arc<Vec<Line>>> {
        self.by_object.piece_mut(key).remove(key)
    }

    /// The one copy of a text.
    fn text(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.texts.get(text) {
            return Arc::clone(known);
        }
        let texts = Arc::make_mut(&mut self.texts);
        if texts.len() >= TEXTS {
            texts.retain(|text| Arc::strong_count(text) > 1);
        }
        let text: Arc<str> = text.into();
        // Where all of them are in use, the newest go without a shared copy.
        if texts.len() < TEXTS {
            texts.insert(Arc::clone(&text));
        }
        text
    }
}

fn step(line: &mut Line, span: Span) {
    if line.spans.last().is_some_and(|last| last.truth == span.truth && last.reason == span.reason) {
        return;
    }
    line.spans.push(span);
    if line.spans.len() > MOST {
        line.spans.remove(0);
    }
}

/// Returns true if the last spans say what the object says.
fn same(lines: &[Line], now: &[Value]) -> bool {
    let present = lines.iter().filter(|line| line.spans.last().is_some_and(|s| s.truth != Truth::Absent));
    present.count() == now.len()
        && now.iter().all(|condition| {
            let line = lines.iter().find(|line| *line.name == *text(condition, "type"));
            line.and_then(|line| line.spans.last()).is_some_and(|last| {
                last.truth == truth(condition) && *last.reason == *text(condition, "reason")
            })
        })
}

fn text<'a>(condition: &'a Value, field: &str) -> &'a str {
    condition.get(field).and_then(Value::as_str).unwrap_or("")
}

fn truth(condition: &Value) -> Truth {
    match text(condition, "status") {
        "True" => Truth::True,
        "False" => Truth::False,
        _ => Truth::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn second(n: i64) -> Timestamp {
        Timestamp::from_second(n).unwrap()
    }

    fn text_of(conditions: &Conditions) -> Vec<String> {
        let span = |s: &Span| format!("{} {}{}", s.from.as_second(), s.truth.word(), s.reason);
        let lines = conditions.of(&ObjectKey::default()).iter();
        lines
            .map(|l| format!("{}: {}", l.name, l.spans.iter().map(span).collect::<Vec<_>>().join(", ")))
            .collect()
    }

    #[test]
    fn transitions_are_kept_and_repetitions_are_not() {
        let mut all = Conditions::default();
        let mut see = |at: i64, conditions: Value| {
            all.seen(&Arc::default(), &json!({"status": {"conditions": conditions}}), second(at));
        };
        see(
            100,
            json!([{"type": "Ready", "status": "False", "reason": "Wait", "lastTransitionTime": "1970-01-01T00:01:30Z"}]),
        );
        see(101, json!([{"type": "Ready", "status": "False", "reason": "Wait", "message": "other words"}]));
        see(102, json!([{"type": "Ready", "status": "True"}, {"type": "Odd", "status": "Perhaps"}]));
        see(103, json!([{"type": "Ready", "status": "True"}]));
        see(104, json!([{"type": "Ready", "status": "True"}, {"type": "Odd", "status": "True"}]));
        assert_eq!(
            text_of(&all),
            ["Ready: 90 FalseWait, 102 True", "Odd: 102 Unknown, 103 absent, 104 True"]
        );
        for i in 0..200 {
            let status = if i % 2 == 0 { "True" } else { "False" };
            let object = json!({"status": {"conditions": [{"type": "Ready", "status": status}]}});
            all.seen(&Arc::default(), &object, second(200 + i));
        }
        assert_eq!(all.of(&ObjectKey::default())[0].spans.len(), MOST);
    }
}
