//! Children that are made again and again.

use crate::facts::Table;
use crate::facts::is_never;
use crate::rule::{Ends, Guessed, InTorture, Rule, Told};
use opdev_event::FindingSeverity::Error;
use opdev_event::evidence::Evidence;

pub(crate) static RULE: Rule = Rule {
    id: "object-growth",
    severity: Error,
    name: "objects without end",
    what: "The operator makes new objects again and again for one custom resource that nobody has \
           changed. They fill the cluster.",
    when: "10 objects of a kind were made in 60 s for one unchanged custom resource, more than any \
           number in its spec; or one name was made and deleted three times.",
    never: "as many as the spec asks for; Events.",
    fix: "Give children fixed names, and look before you create.",
    ends: Ends::Calm,
    explains: &[],
    guessed: Guessed::Told,
    torture: InTorture::NotInThePast,
    judge: Some(judge),
    absent: None,
};

fn judge(table: &Table, evidence: &Evidence, out: &mut Vec<Told>) {
    let Some(track) = table.tracks.get(&(evidence.controller.clone(), evidence.object.key())) else { return };
    for write in evidence.writes.iter().filter(|write| write.created && !is_never(&write.object)) {
        let object = &write.object;
        let made = track.made.get(&object.gvk.kind);
        let lately =
            made.into_iter().flatten().filter(|at| write.at.duration_since(**at).as_secs() < 60).count();
        let again = table.makers.get(&object.key()).map_or(0, |maker| maker.times);
        let why = if lately >= 10 && lately as u64 > evidence.wanted {
            format!(
                "{lately} {}s were made in a minute for {}, which nobody has changed",
                object.gvk.kind, evidence.object
            )
        } else if again >= 4 && lately >= 3 {
            format!(
                "{object} was made {again} times and deleted in between, for {}, which nobody has changed",
                evidence.object
            )
        } else {
            continue;
        };
        let kind = &object.gvk.kind;
        let told = Told::of(&RULE, evidence).say(kind, why);
        out.push(Told { field: kind.clone(), ..told });
        return;
    }
}

#[cfg(test)]
mod tests {
    use crate::tests::*;

    #[test]
    fn objects_without_end_are_told() {
        let grow = |wanted: u64| {
            let mut world = World::new();
            for round in 0..14 {
                world.reconcile(|one| {
                    one.causes = own();
                    one.wanted = wanted;
                    let write = create(&child("ConfigMap", &format!("x-{round}")), round * 10);
                    one.writes = vec![WriteFact { tied: true, ..write }];
                });
            }
            world.loud()
        };
        assert_eq!(grow(3), ["object-growth"]);
        assert!(grow(20).is_empty());
    }
}
