//! Two writers that take a field from each other.

use crate::rule::{Ends, Guessed, InTorture, Rule, Told};
use opdev_event::FindingSeverity::Error;
use opdev_event::evidence::Evidence;
use opdev_facts::Table;
use opdev_facts::Turn;
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
    ends: Ends::Calm,
    explains: &["hot-loop", "object-growth", "conflict", "unstable-output"],
    guessed: Guessed::Told,
    torture: InTorture::NotInThePast,
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

#[cfg(test)]
mod tests {
    use crate::tests::*;

    #[test]
    fn a_field_that_others_write_again_and_again_is_no_unstable_output_and_twice_is_nothing() {
        let mut drift = World::new();
        for _ in 0..20 {
            drift.reconcile(|one| {
                one.causes = by_user();
                let replicas =
                    FieldFact { other: "kubectl-edit".to_owned(), ..field(".spec.replicas", 5, 3) };
                one.writes =
                    vec![WriteFact { at: one.at, ..update(&child("Deployment", "web"), "", vec![replicas]) }];
            });
        }
        assert!(drift.loud().iter().all(|rule| rule == "fight"), "{:?}", drift.loud());
        let mut twice = World::new();
        for _ in 0..2 {
            twice.reconcile(|one| {
                one.causes = by_user();
                let replicas =
                    FieldFact { other: "kubectl-edit".to_owned(), ..field(".spec.replicas", 5, 3) };
                one.writes =
                    vec![WriteFact { at: one.at, ..update(&child("Deployment", "web"), "", vec![replicas]) }];
            });
        }
        assert!(twice.loud().is_empty(), "{:?}", twice.loud());
    }
}
