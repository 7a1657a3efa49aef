//! An object that was made twice because a list was behind.

use crate::rule::{Ends, Guessed, InTorture, Rule, Told};
use opdev_event::FindingSeverity::Warning;
use opdev_event::evidence::{Evidence, WriteVerb};
use opdev_facts::Table;
use opdev_object::meta::ObjectKey;

pub(crate) static RULE: Rule = Rule {
    id: "duplicate",
    severity: Warning,
    name: "made twice",
    what: "A reconcile listed children from a cache that did not have the newest one yet. It made another \
           one with a random name. There are more of them now than were asked for, until something deletes \
           one.",
    when: "a list lacked an object that the program had made, and the reconcile made another one with the \
           same content and a generated name. Both are for one custom resource, and there are more of them \
           than any number in its spec. Or the program deleted one of them within a minute.",
    never: "names that are not generated: the API server refuses the second one; objects that differ; as many as the \
            spec asks for.",
    fix: "Give the child a name that follows from the custom resource: then a second create is refused. Or \
           wait until the cache has the own create, as expectations do.",
    ends: Ends::Fixed,
    explains: &["stale-read"],
    guessed: Guessed::Never,
    torture: InTorture::InFullView,
    judge: Some(judge),
    absent: None,
};

fn judge(table: &Table, evidence: &Evidence, out: &mut Vec<Told>) {
    let primary = evidence.object.key();
    for write in &evidence.writes {
        let (object, key) = (&write.object, write.object.key());
        let maker = table.makers.get(&key).filter(|maker| maker.primary.key() == primary);
        let Some(maker) = maker else { continue };
        if write.created && maker.double {
            let same = |(other, one): &(&ObjectKey, &opdev_facts::Maker)| {
                other.kind == key.kind && one.primary.key() == primary && one.content == maker.content
            };
            let there =
                table.makers.iter().filter(same).filter(|(_, one)| !one.gone && one.deleted.is_none());
            let count = there.count() as u64;
            if count > evidence.wanted.max(1) {
                let why = format!(
                    "{} has {count} {}s with the same content, and {object} is the newest: the list before did not have \
                     the one before it yet",
                    evidence.object, object.gvk.kind
                );
                out.push(Told::of(&RULE, evidence).say(&object.gvk.kind, why).about(object));
                return;
            }
        }
        let soon = write.at.duration_since(maker.at).as_secs() < 60;
        if write.verb == WriteVerb::Delete && maker.double && soon && !evidence.deleting {
            let why = format!(
                "{object} was made while a list did not have the one before yet, and is deleted again {} s later",
                write.at.duration_since(maker.at).as_secs()
            );
            out.push(Told::of(&RULE, evidence).say(&object.gvk.kind, why).about(object));
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::tests::*;

    fn stale(name: &str) -> StaleFact {
        let message = "the cache listed 0 ConfigMaps".to_owned();
        StaleFact { object: child("ConfigMap", name).key(), missing: true, message }
    }

    fn made(name: &str, content: u64, now: i64) -> WriteFact {
        WriteFact { content, generated: true, owners: owned(true), ..create(&child("ConfigMap", name), now) }
    }

    fn run(second: WriteFact, change: fn(&mut Evidence)) -> Vec<String> {
        let mut world = World::new();
        world.reconcile(|one| one.writes = vec![made("web-x7k2p", 1, 1)]);
        world.reconcile(|one| {
            (one.stale, one.writes) = (vec![stale("web-x7k2p")], vec![second]);
            change(one);
        });
        world.reconcile(|one| {
            let gone = WriteFact { verb: WriteVerb::Delete, created: false, ..made("web-q9z4m", 1, 5_000) };
            one.writes = if one.wanted == 0 { Vec::new() } else { vec![gone] };
        });
        world.rules().into_iter().map(|(rule, _)| rule).filter(|rule| rule == "duplicate").collect()
    }

    #[test]
    fn a_child_that_is_made_again_because_the_list_was_behind_is_told() {
        assert_eq!(run(made("web-q9z4m", 1, 11), |_| {}), ["duplicate"]);
        assert!(run(made("web-q9z4m", 2, 11), |_| {}).is_empty(), "another content");
        assert!(run(made("web-q9z4m", 1, 11), |one| one.wanted = 2).is_empty(), "two are wanted");
        assert!(run(made("web-q9z4m", 1, 11), |one| one.stale.clear()).is_empty(), "it saw the first one");
        let fixed = WriteFact { generated: false, ..made("web-1", 1, 11) };
        assert!(run(fixed, |_| {}).is_empty(), "its name is fixed");
    }

    #[test]
    fn one_that_is_deleted_again_proves_it_too() {
        let mut world = World::new();
        world.reconcile(|one| (one.wanted, one.writes) = (3, vec![made("web-x7k2p", 1, 1)]));
        world.reconcile(|one| {
            (one.wanted, one.stale) = (3, vec![stale("web-x7k2p")]);
            one.writes = vec![made("web-q9z4m", 1, 11)];
        });
        assert!(world.rules().iter().all(|(rule, _)| rule != "duplicate"));
        world.reconcile(|one| {
            one.wanted = 3;
            one.writes =
                vec![WriteFact { verb: WriteVerb::Delete, created: false, ..made("web-q9z4m", 1, 4_000) }];
        });
        assert!(world.rules().iter().any(|(rule, _)| rule == "duplicate"));
    }
}
