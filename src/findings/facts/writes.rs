//! Writes in turn, refusals and Events, by object.

use super::{EVENTS_KEPT, KEPT, Table, Turn, call_of, is_never};
use opdev_event::evidence::{Evidence, WriteFact, WriteVerb};

impl Table {
    pub(crate) fn take_turns(&mut self, evidence: &Evidence) {
        let primary = evidence.object.key();
        for write in evidence.writes.iter().filter(|write| !is_never(&write.object)) {
            for field in write.fields.iter().filter(|field| field.sent && field.new != 0) {
                let turns = self.turns.entry((write.object.key(), field.path.clone())).or_default();
                let mine = turns.back().map(|turn| turn.value);
                if !field.other.is_empty() && field.old != 0 && mine != Some(field.old) {
                    turns.push_back(Turn {
                        writer: field.other.clone(),
                        primary: None,
                        value: field.old,
                        shown: field.shown.0.clone(),
                    });
                }
                turns.push_back(Turn {
                    writer: evidence.controller.clone(),
                    primary: Some(primary.clone()),
                    value: field.new,
                    shown: field.shown.1.clone(),
                });
                while turns.len() > 6 {
                    turns.pop_front();
                }
            }
        }
    }

    pub(crate) fn take_refusals(&mut self, evidence: &Evidence) {
        for write in &evidence.writes {
            // An accepted update without a change had the newest version, too; patches need none.
            let of_spec = write.subresource.is_empty() && write.verb == WriteVerb::Update;
            if !write.unchanged || of_spec {
                self.conflicts.remove(&write.object.key());
            }
        }
        for refusal in evidence.refusals.iter().filter(|refusal| !refusal.disturbed && !refusal.dry_run) {
            if refusal.status == 409 && refusal.reason == "Conflict" {
                let Some(key) = &refusal.object else { continue };
                let wrote = |write: &WriteFact| {
                    write.object.key() == *key && !write.unchanged && write.at > refusal.at
                };
                if evidence.writes.iter().any(wrote) {
                    continue;
                }
                let known = self.conflicts.entry(key.clone()).or_default();
                known.row += 1;
                known.same =
                    if known.sent == refusal.sent && !refusal.sent.is_empty() { known.same + 1 } else { 1 };
                known.sent.clone_from(&refusal.sent);
            } else {
                *self.refused.entry((evidence.object.key(), call_of(refusal))).or_default() += 1;
            }
        }
    }

    pub(crate) fn take_events(&mut self, evidence: &Evidence) {
        for write in evidence.writes.iter().chain(&evidence.beside) {
            let Some(event) = &write.event else { continue };
            let about = self.events_about.entry(event.about.clone()).or_default();
            about.push_back(write.at);
            while about.len() > EVENTS_KEPT {
                about.pop_front();
            }
            let place = (event.about.clone(), event.reason.clone(), event.message);
            let times = self.events.entry(place).or_default();
            times.push_back(write.at);
            while times.len() > KEPT {
                times.pop_front();
            }
        }
    }
}
