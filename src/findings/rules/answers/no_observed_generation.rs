//! A status that does not say which spec it is about.

use crate::facts::Table;
use crate::facts::Wait;
use crate::rule::Rule;
use crate::rule::Told;
use opdev_event::FindingSeverity::{Hint, Warning};

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
    storm: false,
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
