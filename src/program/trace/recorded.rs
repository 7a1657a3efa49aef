//! Finds the reconcile that an Event of the program belongs to. A recorder hands an Event to a broadcaster
//! that many reconciles share and whose goroutine sends it later: the goroutine tells nothing of the
//! reconcile. The call of the recorder does, and where that is not known, the object that the Event is about.

use jiff::SignedDuration;
use opdev_facts::observed::ObservedCall;
use opdev_facts::record::RecordedEvent;
use opdev_facts::record::fields::time;
use opdev_object::api_path::is_of_events;
use serde_json::Value;
use std::collections::VecDeque;

/// Events of which the call is still to come, and calls that came before what the program tells of them.
const KEPT: usize = 4096;
/// After this an Event that was recorded is not sent any more: broadcasters leave out what comes too often.
const LONGEST: SignedDuration = SignedDuration::from_secs(10);
/// An Event that comes so soon after a reconcile of its object is probably of that reconcile.
pub(super) const AFTER: SignedDuration = SignedDuration::from_secs(1);

/// The object that an Event is about, and its reason.
#[derive(Debug, PartialEq, Eq)]
struct Said {
    kind: String,
    namespace: String,
    name: String,
    reason: String,
}

/// Events that a program recorded in its reconciles.
#[derive(Debug, Default)]
pub(super) struct Recorders {
    recorded: VecDeque<(Said, RecordedEvent)>,
    early: VecDeque<Early>,
}

/// A call that sends an Event, and the reconcile that recorded the Event.
#[derive(Debug)]
pub(super) struct KnownCall {
    /// The reconcile, as the program says.
    pub(super) id: String,
    /// The reconcile that it was given to by a guess.
    pub(super) guessed: Option<String>,
    pub(super) call: ObservedCall,
}

/// A call that came before what the program tells of its Event.
#[derive(Debug)]
struct Early {
    said: Said,
    message: String,
    call: ObservedCall,
    /// The reconcile that it was given to by a guess.
    guessed: Option<String>,
}

impl Recorders {
    /// Another process knows nothing of those of the one before.
    pub(super) fn starting(&mut self) {
        *self = Recorders::default();
    }

    /// The program says that a reconcile has recorded an Event. The call that sends it, where it came before.
    pub(super) fn told(&mut self, event: RecordedEvent) -> Option<KnownCall> {
        let text = |text: &str| text.to_owned();
        let said = Said {
            kind: text(&event.object.kind),
            namespace: text(&event.object.namespace),
            name: text(&event.object.name),
            reason: text(&event.reason),
        };
        let at = time(event.t);
        self.early.retain(|early| at.duration_since(early.call.done()).abs() < LONGEST);
        // Its call was seen already, and had to be guessed.
        let is_its = |early: &Early| {
            early.said == said && early.call.done() >= at && fits(&event.message, &early.message)
        };
        if let Some(known) = self.early.iter().position(is_its) {
            let early = self.early.remove(known)?;
            return Some(KnownCall { id: event.id, guessed: early.guessed, call: early.call });
        }
        self.recorded.push_back((said, event));
        if self.recorded.len() > KEPT {
            self.recorded.pop_front();
        }
        None
    }

    /// The call that [`Recorders::reconcile_of`] did not know was given to this reconcile by a guess.
    pub(super) fn guessed(&mut self, call: &ObservedCall, id: &str) {
        if let Some(early) = self.early.back_mut().filter(|early| early.call.at == call.at) {
            early.guessed = Some(id.to_owned());
        }
    }

    /// The reconcile whose recorder made the Event that this call sends.
    pub(super) fn reconcile_of(&mut self, call: &ObservedCall) -> Option<String> {
        let (said, message) = said_by(call)?;
        self.recorded.retain(|(_, event)| call.at.duration_since(time(event.t)) < LONGEST);
        let is_it = |(known, event): &(Said, RecordedEvent)| *known == said && time(event.t) <= call.done();
        // A broadcaster keeps the order.
        let found = self.recorded.iter().position(|known| is_it(known) && fits(&known.1.message, &message));
        let Some(found) = found else {
            self.early.push_back(Early { said, message, call: call.clone(), guessed: None });
            if self.early.len() > KEPT {
                self.early.pop_front();
            }
            return None;
        };
        self.recorded.remove(found).map(|(_, event)| event.id)
    }
}

/// Returns true if the message of an Event that is sent begins as the recorded one. Two reconciles of one
/// object record Events of one reason, and the call of the second may be seen before its record.
fn fits(recorded: &str, sent: &str) -> bool {
    // client-go puts this before what it sends for several that are alike.
    let sent = sent.strip_prefix("(combined from similar events): ").unwrap_or(sent);
    sent.starts_with(recorded)
}

/// Asks if a call sends an Event.
pub(super) fn is_of_event(call: &ObservedCall) -> bool {
    call.writes() && is_of_events(&call.path)
}

/// The object, reason and message of an Event that is sent. A patch counts it up, and only the answer is the
/// whole of it.
fn said_by(call: &ObservedCall) -> Option<(Said, String)> {
    let about = |event: &Value| {
        let about = event.get("involvedObject").or_else(|| event.get("regarding"))?;
        let text = |field: &str| about[field].as_str().unwrap_or_default().to_owned();
        let said = Said {
            kind: text("kind"),
            namespace: text("namespace"),
            name: text("name"),
            reason: event["reason"].as_str().unwrap_or_default().to_owned(),
        };
        let message = event["message"].as_str().or_else(|| event["note"].as_str());
        Some((said, message.unwrap_or_default().to_owned()))
    };
    call.sent.as_ref().and_then(about).or_else(|| call.answered.as_ref().and_then(about))
}

#[cfg(test)]
mod tests;
