//! Two custom resources that write one object.

use crate::facts::Table;
use crate::rule::{Ends, Guessed, InTorture, Rule, Told};
use opdev_event::FindingSeverity::Error;
use opdev_event::evidence::Evidence;

pub(crate) static RULE: Rule = Rule {
    id: "name-collision",
    severity: Error,
    name: "name collision",
    what: "Reconciles of two custom resources write one field of one object with different values: the \
           name of the object does not tell the two apart.",
    when: "two custom resources wrote one field in turn, twice each, with different values.",
    never: "apply of different fields; objects that hold the union of both.",
    fix: "Put namespace and name of the custom resource into the name of the child.",
    ends: Ends::Calm,
    explains: &["hot-loop", "object-growth", "conflict", "fight"],
    guessed: Guessed::Warning,
    torture: InTorture::InFullView,
    judge: Some(judge),
    absent: None,
};

fn judge(table: &Table, evidence: &Evidence, out: &mut Vec<Told>) {
    for write in evidence.writes.iter().filter(|write| write.object.key() != evidence.object.key()) {
        for field in write.fields.iter().filter(|field| field.sent) {
            let Some(turns) = table.turns.get(&(write.object.key(), field.path.clone())) else { continue };
            let mut newest = turns.iter().rev().take(4);
            let (Some(d), Some(c), Some(b), Some(a)) =
                (newest.next(), newest.next(), newest.next(), newest.next())
            else {
                continue;
            };
            let by = [a, b, c, d].map(|turn| turn.primary.as_ref());
            let in_turn =
                by[0].is_some() && by[1].is_some() && by[0] == by[2] && by[1] == by[3] && by[0] != by[1];
            if !in_turn || a.value != c.value || b.value != d.value || a.value == b.value {
                continue;
            }
            let other = by[2].map(|key| key.name.clone()).unwrap_or_default();
            let why = format!(
                "{} {} is {} for {other} and {} for {}: both write the same object",
                write.object, field.path, c.shown, d.shown, evidence.object.name
            );
            let told = Told::of(&RULE, evidence).say(crate::rule::place(&write.object, &field.path), why);
            out.push(Told { field: field.path.clone(), ..told.about(&write.object) });
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::tests::*;

    #[test]
    fn two_custom_resources_do_not_write_one_object() {
        let mut world = World::new();
        for round in 0..4 {
            world.reconcile(|one| {
                one.object = cr(if round % 2 == 0 { "a" } else { "b" });
                one.causes = own();
                let (old, new) = if round % 2 == 0 { (2, 1) } else { (1, 2) };
                let write = update(&child("ConfigMap", "shared"), "", vec![field(".data.x", old, new)]);
                one.writes = vec![WriteFact { tied: true, ..write }];
            });
        }
        assert_eq!(world.loud(), ["name-collision"]);
    }
}
