//! A status that does not say which spec it is about.

use crate::rule::{Ends, Guessed, InTorture, Rule, Told};
use opdev_event::FindingSeverity::{Hint, Warning};
use opdev_facts::Table;
use opdev_facts::Wait;

pub(crate) static RULE: Rule = Rule {
    id: "no-observed-generation",
    severity: Warning,
    name: "observedGeneration is behind",
    what: "The status says an older observedGeneration than the object has, though the last reconcile \
           went well. Whoever waits for it, as `kubectl wait` and GitOps tools do, waits for ever.",
    when: "10 s after a reconcile that went well and wrote the status, where nothing has come since: \
           behind is a warning, absent a hint.",
    never: "reconciles that failed; conditions that say it themselves.",
    fix: "Set status.observedGeneration to metadata.generation with each write of the status, or observedGeneration of each \
          condition.",
    ends: Ends::Fixed,
    explains: &[],
    guessed: Guessed::Told,
    torture: InTorture::Never,
    judge: None,
    absent: Some(absent),
};

fn absent(table: &Table, out: &mut Vec<Told>) {
    for one in
        table.pending.iter().filter(|one| one.what == Wait::Generation && one.age(table).as_secs() >= 10)
    {
        let Some(live) = table.live.get(&one.primary.key()) else { continue };
        let track = table.tracks.get(&(one.controller.clone(), one.primary.key()));
        let rests = track.is_some_and(|track| track.ended == one.at && track.requeue.is_none());
        if !rests
            || live.deleting.is_some()
            || live.gone.is_some()
            || live.changed.is_some()
            || live.uid.is_empty()
        {
            continue;
        }
        let (severity, why) = match live.observed {
            Some(observed) if observed != live.generation => (
                Warning,
                format!(
                    "{} is at generation {}, and its status says {observed}",
                    one.primary, live.generation
                ),
            ),
            None if live.has_status => {
                (Hint, format!("the status of {} says no observedGeneration", one.primary))
            }
            _ => continue,
        };
        let told = Told::new(&RULE, &one.primary, table.now, one.reconcile).say("", why);
        out.push(Told { severity, controller: one.controller.clone(), ..told });
    }
}

#[cfg(test)]
mod tests {
    use crate::tests::*;

    #[test]
    fn a_status_that_is_behind_is_told_at_rest() {
        let run = |status: Value, requeue: Option<Duration>| {
            let mut world = World::new();
            world.seen(&cr("a"), shelf(3, json!({})));
            world.reconcile(|one| {
                one.requeue = requeue;
                one.writes = vec![update(&cr("a"), "status", vec![field(".status.x", 1, 2)])];
            });
            world.seen(&cr("a"), shelf(3, json!({"status": status})));
            world.wait(13);
            world.rules()
        };
        let told = |severity| vec![("no-observed-generation".to_owned(), severity)];
        assert_eq!(run(json!({"observedGeneration": 2}), None), told(FindingSeverity::Warning));
        assert_eq!(run(json!({"phase": "Ready"}), None), told(FindingSeverity::Hint));
        assert!(run(json!({"observedGeneration": 3}), None).is_empty());
        let conditions = |observed: &[i64]| {
            let one =
                |observed: &i64| json!({"type": "Ready", "status": "True", "observedGeneration": observed});
            json!({"conditions": observed.iter().map(one).collect::<Vec<Value>>()})
        };
        assert!(run(conditions(&[2, 3]), None).is_empty(), "a condition says it");
        assert_eq!(run(conditions(&[1, 2]), None), told(FindingSeverity::Warning));
        assert!(run(json!({"observedGeneration": 2}), Some(Duration::from_secs(5))).is_empty(), "it waits");
    }
}
