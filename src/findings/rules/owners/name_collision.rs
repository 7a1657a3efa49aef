//! Two custom resources that write one object.

use crate::rule::{Ends, Guessed, InTorture, Rule, Told};
use opdev_event::FindingSeverity::{Error, Warning};
use opdev_event::evidence::{Evidence, FieldFact, WriteFact};
use opdev_facts::{Live, Table};

pub(crate) static RULE: Rule = Rule {
    id: "name-collision",
    severity: Error,
    name: "name collision",
    what: "Reconciles of two custom resources write one field of one object with different values: the \
           name of the object does not tell the two apart.",
    when: "two custom resources wrote one field in turn, twice each, with different values. It is a \
           warning at the first overwrite where the value had the name or namespace of another one. That \
           one is there and unchanged, and the new value differs by nothing but the name or namespace of \
           this one.",
    never: "apply of different fields; objects that hold the union of both; objects that the operator has not made. \
            A status says what was observed, and never counts.",
    fix: "Put namespace and name of the custom resource into the name of the child.",
    ends: Ends::Calm,
    explains: &["hot-loop", "object-growth", "conflict", "fight"],
    guessed: Guessed::Warning,
    torture: InTorture::InFullView,
    judge: Some(judge),
    absent: None,
};

fn judge(table: &Table, evidence: &Evidence, out: &mut Vec<Told>) {
    let mine = evidence.object.key();
    let others = |write: &&WriteFact| write.object.key() != mine && write.subresource != "status";
    for write in evidence.writes.iter().filter(others) {
        for field in write.fields.iter().filter(|field| field.sent) {
            if let Some(told) = overwritten(table, evidence, write, field) {
                out.push(told);
                return;
            }
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

/// The value named another custom resource and names this one now: what it named before is lost.
fn overwritten(table: &Table, evidence: &Evidence, write: &WriteFact, field: &FieldFact) -> Option<Told> {
    let (mine, key) = (evidence.object.key(), write.object.key());
    let maker = table.makers.get(&key).filter(|maker| maker.controller == evidence.controller)?;
    let turns = table.turns.get(&(key, field.path.clone()))?;
    let other = match turns.iter().rev().nth(1) {
        Some(turn) if turn.value == field.old => turn.primary.clone()?,
        Some(_) => return None,
        None => maker.primary.key(),
    };
    let unchanged = |live: &Live| live.gone.is_none() && live.deleting.is_none() && live.changed.is_none();
    let there = table.live.get(&other).is_some_and(unchanged);
    if other == mine
        || other.kind != mine.kind
        || !there
        || field.path.starts_with(".metadata.ownerReferences")
    {
        return None;
    }
    let (old, new) = (&field.shown.0, &field.shown.1);
    let names = [
        (Some(other.name.as_str()), Some(mine.name.as_str())),
        (other.namespace.as_deref(), mine.namespace.as_deref()),
    ];
    let takes_place = |(theirs, ours): (Option<&str>, Option<&str>)| {
        let (Some(theirs), Some(ours)) = (theirs, ours) else { return false };
        theirs != ours && old != new && renamed(old, theirs, ours) == *new
    };
    if !names.into_iter().any(takes_place) {
        return None;
    }
    let why = format!(
        "{} {} was {old}, as the reconcile of {} wrote it, which is still there; the reconcile of {} made it {new}: \
         both write the same object",
        write.object, field.path, other.name, evidence.object.name
    );
    let told = Told::of(&RULE, evidence).say(crate::rule::place(&write.object, &field.path), why);
    Some(Told { severity: Warning, field: field.path.clone(), ..told.about(&write.object) })
}

/// A text with one name in the place of another, where that stands as a word.
fn renamed(text: &str, from: &str, to: &str) -> String {
    let is_end = |letter: Option<char>| letter.is_none_or(|letter| !letter.is_alphanumeric());
    let (mut out, mut rest) = (String::new(), text);
    while let Some(at) = rest.find(from).filter(|_| !from.is_empty()) {
        let (before, after) = (&rest[..at], &rest[at + from.len()..]);
        let last = before.chars().next_back().or_else(|| out.chars().next_back());
        let is_word = is_end(last) && is_end(after.chars().next());
        out.push_str(before);
        out.push_str(if is_word { to } else { from });
        rest = after;
    }
    out + rest
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

    #[test]
    fn one_that_tells_the_status_of_all_collides_with_nobody() {
        let mut world = World::new();
        for round in 0..8 {
            world.reconcile(|one| {
                one.object = cr(if round % 2 == 0 { "a" } else { "b" });
                one.causes = own();
                let (old, new) = if round % 2 == 0 { (2, 1) } else { (1, 2) };
                one.writes = vec![update(&cr("c"), "status", vec![field(".status.ready", old, new)])];
            });
        }
        assert!(!world.rules().iter().any(|(rule, _)| rule == "name-collision"), "{:?}", world.rules());
    }

    #[test]
    fn a_value_that_named_another_custom_resource_is_told_at_once() {
        let run = |shown: (&str, &str), there: bool, made: bool| {
            let mut world = World::new();
            let shared = child("ConfigMap", "shared");
            world.reconcile(|one| {
                if made {
                    one.writes = vec![WriteFact { tied: true, ..create(&shared, 1) }];
                }
            });
            world.seen(&cr("a"), shelf(1, json!({})));
            if !there {
                world.gone(&cr("a"));
            }
            world.reconcile(|one| {
                one.object = cr("b");
                let shown = (shown.0.to_owned(), shown.1.to_owned());
                let of = FieldFact { shown, ..field(".data.of", 1, 2) };
                one.writes = vec![WriteFact { tied: true, ..update(&shared, "", vec![of]) }];
            });
            world.rules().into_iter().filter(|(rule, _)| rule == "name-collision").collect::<Vec<_>>()
        };
        let told = [("name-collision".to_owned(), FindingSeverity::Warning)];
        assert_eq!(run(("shelf-a.default", "shelf-b.default"), true, true), told);
        assert!(run(("1", "2"), true, true).is_empty(), "a sum over both");
        assert!(run(("x", "x,b"), true, true).is_empty(), "the union of both");
        assert!(run(("a", "b"), false, true).is_empty(), "the other one is gone");
        assert!(run(("a", "b"), true, false).is_empty(), "a pool that somebody else has made");
    }
}
