//! One message, told again and again.

use crate::facts::{EVENTS_KEPT, Table};
use crate::rule::Rule;
use crate::rule::Told;
use opdev_event::FindingSeverity::Warning;
use opdev_event::evidence::Evidence;

/// New Events in a minute. client-go puts more of one reason together and counts them.
const FLOOD: usize = 10;
const _: () = assert!(FLOOD <= EVENTS_KEPT, "a rule sees no more Events than are kept");

pub(crate) static RULE: Rule = Rule {
    id: "event-flood",
    severity: Warning,
    name: "flood of Events",
    what: "The operator records the same Event again and again. client-go drops what is too much, so \
           that Events that matter are lost.",
    when: "10 new Events a minute with the same object, reason and message; or 10 about one object, of \
           reconciles that write nothing else.",
    never: "counts that rise on one Event.",
    fix: "Record an Event when something changes, not in each reconcile.",
    storm: true,
    judge: Some(judge),
    absent: None,
};

fn judge(table: &Table, evidence: &Evidence, out: &mut Vec<Told>) {
    for write in evidence.writes.iter().chain(&evidence.beside) {
        let Some(event) = &write.event else { continue };
        let place = (event.about.clone(), event.reason.clone(), event.message);
        let times = table.events.get(&place);
        let lately =
            times.into_iter().flatten().filter(|at| write.at.duration_since(**at).as_secs() < 60).count();
        let within = |at: &&jiff::Timestamp| write.at.duration_since(**at).as_secs() < 60;
        let about = table.events_about.get(&event.about);
        let all = about.into_iter().flatten().filter(within).count();
        // An Event may come with the evidence of another reconcile, for a goroutine of its own sends it.
        let works = table.tracks.iter().any(|((_, object), track)| {
            *object == event.about && !(track.fields.is_empty() && track.made.is_empty())
        });
        let why = if lately >= FLOOD {
            format!("{lately} Events {} with the same message were recorded in a minute", event.reason)
        } else if all >= FLOOD && !works {
            format!(
                "{all} Events about {} were recorded in a minute, and nothing else was written",
                event.about.name
            )
        } else {
            continue;
        };
        let mut told = Told::of(&RULE, evidence).say(&event.reason, why);
        if let Some(live) = table.live.get(&event.about) {
            told.object = live.object.clone();
        } else if event.about != evidence.object.key() {
            let about = table.makers.get(&event.about).map(|maker| maker.object.clone());
            told.about = about.or_else(|| Some(reference(&event.about)));
        }
        out.push(Told { field: event.reason.clone(), ..told });
        return;
    }
}

fn reference(key: &opdev_object::meta::ObjectKey) -> opdev_object::meta::ObjectRef {
    opdev_object::meta::ObjectRef {
        gvk: opdev_object::meta::Gvk::new(&key.group, "", &key.kind),
        namespace: key.namespace.clone(),
        name: key.name.clone(),
        uid: None,
    }
}
