//! Children that are made again and again.

use crate::rule::{Ends, Guessed, InTorture, Rule, Told};
use jiff::Timestamp;
use opdev_event::FindingSeverity::{Error, Warning};
use opdev_event::evidence::{Evidence, WriteFact};
use opdev_facts::{Table, Track, is_never};

pub(crate) static RULE: Rule = Rule {
    id: "object-growth",
    severity: Error,
    name: "objects without end",
    what: "The operator makes new objects again and again for one custom resource that nobody has \
           changed. They fill the cluster.",
    when: "10 objects of a kind were made in 60 s for one unchanged custom resource. They are more than \
           any number in its spec, and than the items of its lists. Or one name was made four times, three \
           of them in 60 s. It is a warning where it is slower. Then the program has deleted and made one \
           name again three times within half an hour. Or there are 10 objects, made one after the other, \
           of which it has deleted none.",
    never: "as many as the spec asks for; Events; objects of other projects. Slow Jobs, pods and Secrets \
           are made by schedule, or when they expire.",
    fix: "Give children fixed names, and look before you create.",
    ends: Ends::Calm,
    explains: &[],
    guessed: Guessed::Told,
    torture: InTorture::NotInThePast,
    judge: Some(judge),
    absent: None,
};

/// Kinds of which no operator makes another one from time to time.
const STEADY: [&str; 9] = [
    "ConfigMap",
    "CronJob",
    "Deployment",
    "Role",
    "RoleBinding",
    "Service",
    "ServiceAccount",
    "StatefulSet",
    "DaemonSet",
];
/// The time in which slow growth is looked for.
const SLOW: i64 = 30 * 60;

fn judge(table: &Table, evidence: &Evidence, out: &mut Vec<Told>) {
    let Some(track) = table.tracks.get(&(evidence.controller.clone(), evidence.object.key())) else { return };
    for write in evidence.writes.iter().filter(|write| write.created && !is_never(&write.object)) {
        let object = &write.object;
        let made = track.made.get(&object.gvk.kind);
        let lately =
            made.into_iter().flatten().filter(|at| write.at.duration_since(**at).as_secs() < 60).count();
        let maker = table.makers.get(&object.key());
        let again = maker.map_or(0, |maker| maker.times);
        let (severity, why) = if lately >= 10 && lately as u64 > evidence.wanted {
            let why = format!(
                "{lately} {}s were made in a minute for {}, which nobody has changed",
                object.gvk.kind, evidence.object
            );
            (Error, why)
        } else if again >= 4 && lately >= 3 {
            let why = format!(
                "{object} was made {again} times and deleted in between, for {}, which nobody has changed",
                evidence.object
            );
            (Error, why)
        } else if let Some(why) = slow(table, track, evidence, write) {
            (Warning, why)
        } else {
            continue;
        };
        let kind = &object.gvk.kind;
        let told = Told::of(&RULE, evidence).say(kind, why);
        out.push(Told { severity, field: kind.clone(), ..told });
        return;
    }
}

/// Growth that is seen only over many minutes.
fn slow(table: &Table, track: &Track, evidence: &Evidence, write: &WriteFact) -> Option<String> {
    let (object, primary) = (&write.object, evidence.object.key());
    if !STEADY.contains(&object.gvk.kind.as_str()) {
        return None;
    }
    let is_lately = |at: &Timestamp| write.at.duration_since(*at).as_secs() < SLOW;
    let again = table.makers.get(&object.key()).map(|maker| maker.again);
    if let Some((times, _)) = again.filter(|(times, since)| *times >= 3 && is_lately(since)) {
        return Some(format!(
            "{object} was deleted by the program itself and made again {times} times, for {}, which nobody has changed",
            evidence.object
        ));
    }
    let times: Vec<&Timestamp> =
        track.made.get(&object.gvk.kind)?.iter().filter(|at| is_lately(at)).collect();
    // A custom resource that asks for many gets them at once, or in a few steps.
    let steps = times.windows(2).filter(|two| two[1].duration_since(*two[0]).as_secs() >= 5).count();
    let of_it = table
        .makers
        .values()
        .filter(|maker| maker.object.gvk.kind == object.gvk.kind && maker.primary.key() == primary);
    let (there, gone): (Vec<_>, Vec<_>) = of_it.partition(|maker| !maker.gone && maker.deleted.is_none());
    let many = there.len() >= 10 && there.len() as u64 > evidence.wanted;
    (steps >= 9 && many && gone.is_empty()).then(|| {
        format!(
            "{} {}s were made one after the other for {}, which nobody has changed, and none of them is gone",
            there.len(),
            object.gvk.kind,
            evidence.object
        )
    })
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

    /// Severities for objects that come one a minute; `deletes` says whether the one before is deleted.
    fn slowly(kind: &str, name: fn(i64) -> String, deletes: bool, causes: fn() -> Vec<Cause>) -> Vec<String> {
        let mut world = World::new();
        for round in 0..12 {
            world.reconcile(|one| {
                one.causes = causes();
                let now = round * 60_000;
                let made = |name: String, now| WriteFact { tied: true, ..create(&child(kind, &name), now) };
                if deletes && round > 0 {
                    let before = made(name(round - 1), now);
                    one.writes.push(WriteFact { verb: WriteVerb::Delete, created: false, ..before });
                }
                one.writes.push(made(name(round), now + 1));
            });
            world.now += 60_000;
        }
        let told = world.rules().into_iter().filter(|(rule, _)| rule == "object-growth");
        told.map(|(_, severity)| severity.name().to_owned()).collect()
    }

    #[test]
    fn slow_growth_is_a_warning() {
        let fixed: fn(i64) -> String = |_| "web".to_owned();
        let fresh: fn(i64) -> String = |round| format!("web-{round}");
        assert_eq!(slowly("ServiceAccount", fixed, true, timer), ["warning"]);
        assert_eq!(slowly("CronJob", fresh, false, timer), ["warning"]);
        assert!(slowly("ConfigMap", fresh, true, timer).is_empty(), "the one before goes");
        assert!(slowly("Job", fresh, false, timer).is_empty(), "by schedule");
        assert!(slowly("ServiceAccount", fixed, true, by_user).is_empty(), "somebody wants it each time");
    }
}
