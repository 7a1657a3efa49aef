//! A child that the spec no longer asks for.

use crate::rule::{Ends, Guessed, InTorture, Rule, Told};
use opdev_event::FindingSeverity::Warning;
use opdev_facts::Table;
use opdev_facts::Wait;

pub(crate) static RULE: Rule = Rule {
    id: "left-behind",
    severity: Warning,
    name: "left behind",
    what: "The spec of the custom resource was changed, and a child that earlier reconciles looked \
           after is touched no more, but still there.",
    when: "two reconciles after a new generation touched other children, not this one. It is still there \
           10 s later, untouched, and the newest reconcile wrote nothing.",
    never: "Jobs, claims, Secrets and pods; reconciles that failed. An operator that goes on step by \
           step, or stops early and asks to run again, may come to it later.",
    fix: "Delete what the spec no longer asks for.",
    ends: Ends::WithChild,
    explains: &[],
    guessed: Guessed::Told,
    torture: InTorture::InFullView,
    judge: None,
    absent: Some(absent),
};

const SPARED: [&str; 7] =
    ["Job", "PersistentVolumeClaim", "Pod", "Secret", "ReplicaSet", "CustomResourceDefinition", "Namespace"];

fn absent(table: &Table, out: &mut Vec<Told>) {
    for one in &table.pending {
        let Wait::Untouched { since } = one.what else { continue };
        let about = &one.about;
        if one.age(table).as_secs() < 10 || SPARED.contains(&about.gvk.kind.as_str()) {
            continue;
        }
        let there = table
            .makers
            .get(&about.key())
            .is_some_and(|maker| maker.seen && !maker.gone && maker.deleted.is_none());
        let track = table.tracks.get(&(one.controller.clone(), one.primary.key()));
        // A newer generation is judged by its own reconciles.
        let untouched = track.is_some_and(|track| {
            let last = track.touched.get(&about.key());
            track.renewed == since && last.is_some_and(|last| *last < since) && track.has_come_to_its_end()
        });
        if !there || !untouched {
            continue;
        }
        let why = format!(
            "{about} was made for {}, is touched no more since its spec has changed, and is still there",
            one.primary
        );
        let told =
            Told::new(&RULE, &one.primary, table.now, one.reconcile).say(&about.gvk.kind, why).about(about);
        out.push(Told { controller: one.controller.clone(), ..told });
    }
}

#[cfg(test)]
mod tests {
    use crate::tests::*;

    /// Reconciles of an operator, the first one before the spec is changed: the children that each of them
    /// reads, after how many seconds it wants to run again, and whether it writes.
    fn left_behind(level: TraceLevel, reconciles: &[(&[&str], u64, bool)]) -> Vec<String> {
        let mut world = World::new();
        let names = ["a-1", "a-2", "a-3"];
        world.reconcile(|one| {
            one.writes = names
                .map(|name| WriteFact { owners: owned(true), ..create(&child("ConfigMap", name), 1) })
                .to_vec();
        });
        for name in names {
            world.unrelated(&child("ConfigMap", name));
        }
        for (at, (children, requeue, writes)) in reconciles.iter().enumerate() {
            world.reconcile(|one| {
                one.level = Some(level);
                one.generation = Some(1 + i64::from(at > 0));
                one.requeue = Some(Duration::from_secs(*requeue)).filter(|after| !after.is_zero());
                let read = |name: &&str| ReadFact {
                    objects: vec![child("ConfigMap", name).key()],
                    missing: false,
                    version: "1".to_owned(),
                };
                one.reads.extend(children.iter().map(read));
                if *writes {
                    one.writes = vec![update(&child("ConfigMap", "a-1"), "", vec![field(".data.a", 1, 2)])];
                }
            });
            world.wait(1);
        }
        world.wait(14);
        let told = world.opened().into_iter().filter(|finding| finding.rule == "left-behind");
        told.filter_map(|finding| finding.about.as_ref().map(|about| about.name.clone())).collect()
    }

    #[test]
    fn a_child_that_the_spec_no_longer_asks_for_is_told() {
        let (full, all): (_, &[&str]) = (TraceLevel::Full, &["a-1", "a-2", "a-3"]);
        let fewer: (&[&str], u64, bool) = (&["a-1", "a-3"], 0, false);
        assert_eq!(left_behind(full, &[(all, 0, false), fewer, fewer, fewer]), ["a-2"]);
        // Reconciles that are guessed from calls do not say what they read.
        assert!(left_behind(TraceLevel::Wire, &[(all, 0, false), fewer, fewer, fewer]).is_empty());
        let polls: (&[&str], u64, bool) = (&["a-1", "a-3"], 5, false);
        assert_eq!(
            left_behind(full, &[(all, 5, false), polls, polls, polls]),
            ["a-2"],
            "it polls, and goes to its end"
        );
        // It waits for the first child, and comes to the others later.
        let early: (&[&str], u64, bool) = (&["a-1"], 5, false);
        assert!(left_behind(full, &[(all, 0, false), early, early, early]).is_empty());
        // One step in each reconcile.
        let step: (&[&str], u64, bool) = (&["a-1"], 1, true);
        assert!(left_behind(full, &[(all, 0, false), step, step, step, step]).is_empty());
        // All is touched in the end.
        assert!(left_behind(full, &[(all, 0, false), step, step, (all, 0, false)]).is_empty());
    }

    #[test]
    fn a_generation_is_judged_by_its_own_reconciles() {
        let names = ["a-1", "a-2", "a-3"];
        let mut world = World::new();
        world.reconcile(|one| {
            one.writes = names
                .map(|name| WriteFact { owners: owned(true), ..create(&child("ConfigMap", name), 1) })
                .to_vec();
        });
        for name in names {
            world.unrelated(&child("ConfigMap", name));
        }
        let mut reconcile = |generation: i64, children: &[&str], pause: i64| {
            world.reconcile(|one| {
                one.generation = Some(generation);
                one.reads.extend(children.iter().map(|name| ReadFact {
                    objects: vec![child("ConfigMap", name).key()],
                    missing: false,
                    version: "1".to_owned(),
                }));
            });
            world.wait(pause);
        };
        reconcile(1, &names, 1);
        reconcile(2, &["a-1"], 1);
        reconcile(2, &["a-1", "a-2"], 1);
        reconcile(2, &names, 8);
        // The spec is changed once more after ten seconds, and the first reconcile has come to one child.
        reconcile(3, &["a-1"], 3);
        assert!(!world.opened().iter().any(|finding| finding.rule == "left-behind"));
    }
}
