//! A watch that wakes the operator for nothing.

use crate::rule::{Ends, Guessed, InTorture, Rule, Told};
use opdev_event::FindingSeverity::Hint;
use opdev_event::evidence::Evidence;
use opdev_facts::Table;
use opdev_facts::wakes::{MANY_WAKES, WITHIN};

pub(crate) static RULE: Rule = Rule {
    id: "noisy-watch",
    severity: Hint,
    name: "noisy watch",
    what: "Most reconciles of a custom resource are led to by changes of one field of one kind, and \
           write nothing. They cost time, and hide those that matter.",
    when: "30 reconciles of one custom resource in a minute. Of these, 80 % came from changes of one \
           field and wrote nothing.",
    never: "a field whose change has made another reconcile write; the operator's own writes. \
           Reconciles that failed, were refused something or asked to run again do not count.",
    fix: "Give the watch a predicate that compares the fields which the reconciler reads: \
           Owns(&Kind{}, builder.WithPredicates(predicate.Funcs{UpdateFunc: ...})).",
    ends: Ends::Calm,
    explains: &[],
    guessed: Guessed::Never,
    torture: InTorture::Never,
    judge: Some(judge),
    absent: None,
};

fn judge(table: &Table, evidence: &Evidence, out: &mut Vec<Told>) {
    let Some(track) = table.tracks.get(&(evidence.controller.clone(), evidence.object.key())) else { return };
    let Some((wake, count)) = track.wakes.noisy(evidence.ended) else { return };
    let why = format!(
        "{count} of the last {MANY_WAKES} reconciles of {} within {} s came from changes of {} {} and wrote nothing",
        evidence.object,
        WITHIN.as_secs(),
        wake.kind,
        wake.path
    );
    let told = Told::of(&RULE, evidence).say(format!("{} {}", wake.kind, crate::rule::last(&wake.path)), why);
    out.push(Told { field: format!("{} {}", wake.kind, wake.path), ..told });
}

#[cfg(test)]
mod tests {
    use crate::tests::*;
    use opdev_event::FieldChange;

    fn heartbeat(path: &str) -> Cause {
        let change =
            FieldChange { path: path.to_owned(), old: Some("1".to_owned()), new: Some("2".to_owned()) };
        let CauseKind::Watch { object, event, by, relation, .. } =
            woken(child("Node", "n"), WatchEvent::Modified, Some("kubelet"), false).kind
        else {
            unreachable!("a watch")
        };
        let kind = CauseKind::Watch { object, event, fields: vec![change], by, own_write: false, relation };
        Cause { at: at(0), kind }
    }

    #[test]
    fn a_heartbeat_that_leads_to_reconciles_is_told() {
        let run = |apart: i64, change: fn(u64, &mut Evidence)| {
            let mut world = World::new();
            for round in 0..40 {
                world.reconcile(|one| {
                    one.causes = vec![heartbeat(".status.conditions[type=Ready].lastHeartbeatTime")];
                    change(round, one);
                });
                world.now += apart;
            }
            world
                .rules()
                .into_iter()
                .filter(|(rule, _)| rule == "noisy-watch")
                .map(|(_, severity)| severity)
                .next()
        };
        assert_eq!(run(1_000, |_, _| {}), Some(FindingSeverity::Hint));
        assert_eq!(
            run(1_000, |round, one| one.causes.extend((round % 9 == 0).then(by_user).into_iter().flatten())),
            Some(FindingSeverity::Hint)
        );
        assert_eq!(run(3_000, |_, _| {}), None, "20 a minute");
        let write = |round: u64, one: &mut Evidence| {
            if round == 3 {
                one.writes = vec![update(&cr("a"), "status", vec![field(".status.ready", 1, 2)])];
            }
        };
        assert_eq!(run(1_000, write), None, "it has made the operator write");
        assert_eq!(
            run(1_000, |_, one| one.error = "not reachable".to_owned()),
            None,
            "a reconcile that failed"
        );
        assert_eq!(run(1_000, |_, one| one.causes = own()), None, "its own writes");
        assert_eq!(
            run(1_000, |round, one| one.causes =
                vec![heartbeat([".spec.a", ".status.b"][round as usize % 2])]),
            None
        );
    }
}
