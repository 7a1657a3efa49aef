//! Two writers that take a field from each other.

use crate::facts::Table;
use crate::facts::Turn;
use crate::rule::Rule;
use crate::rule::Told;
use opdev_event::FindingSeverity::Error;
use opdev_event::evidence::Evidence;
use std::collections::VecDeque;

pub(crate) static RULE: Rule = Rule {
    id: "fight",
    severity: Error,
    name: "fight",
    what: "Two writers change a field back and forth, each to its own value. Neither wins, and pods may \
           restart each time.",
    when: "two values of one field alternate between two writers, twice each: controllers of one \
           program, an autoscaler, a webhook, another client.",
    never: "Leases; what a person changes by hand twice.",
    fix: "Let one of them own the field: leave it out of what the other one writes.",
    storm: true,
    judge: Some(judge),
    absent: None,
};

fn judge(table: &Table, evidence: &Evidence, out: &mut Vec<Told>) {
    for write in &evidence.writes {
        for field in write.fields.iter().filter(|field| field.sent) {
            let Some(turns) = table.turns.get(&(write.object.key(), field.path.clone())) else { continue };
            let Some([a, b, c, d]) = newest(turns) else { continue };
            let alternate = a.writer == c.writer && b.writer == d.writer && a.writer != b.writer;
            if !alternate || a.value != c.value || b.value != d.value || a.value == b.value {
                continue;
            }
            let hand = |writer: &str| ["kubectl", "opdev", "k9s"].iter().any(|name| writer.starts_with(name));
            if (hand(&a.writer) || hand(&b.writer)) && turns.len() < 6 {
                continue;
            }
            let why = format!(
                "{} {} is written in turn: {} by {}, {} by {}",
                write.object, field.path, c.shown, c.writer, d.shown, d.writer
            );
            let told = Told::of(&RULE, evidence).say(crate::rule::place(&write.object, &field.path), why);
            out.push(Told { field: field.path.clone(), ..told.about(&write.object) });
            return;
        }
    }
}

fn newest(turns: &VecDeque<Turn>) -> Option<[&Turn; 4]> {
    let from = turns.len().checked_sub(4)?;
    Some([turns.get(from)?, turns.get(from + 1)?, turns.get(from + 2)?, turns.get(from + 3)?])
}
