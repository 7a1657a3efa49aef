//! Changes of a child that never reach its controller.

use crate::facts::Table;
use crate::facts::Wait;
use crate::rule::Rule;
use crate::rule::Told;
use opdev_event::FindingSeverity::{Error, Hint, Warning};
use opdev_event::evidence::{Evidence, WriteFact};
use opdev_event::{CauseKind, TraceLevel};

pub(crate) static RULE: Rule = Rule {
    id: "missing-watch",
    severity: Error,
    name: "no watch",
    what: "A controller makes objects of a kind, and no event of them ever comes back to it. When \
           somebody changes or deletes such an object, the operator does not see it.",
    when: "an object that the controller has made, and looks at, was not among the causes \
           of its reconciles for 10 s. An error once it was deleted and came back only with a reconcile for another \
           reason, for which opdev asks itself on the embedded control plane. A hint where the controller asks for a period: the object is put \
           back only after that.",
    never: "objects that later reconciles leave alone; programs of which not all causes are known. A \
           predicate may drop creations on purpose: where other events of children come, nothing is \
           told.",
    fix: "Watch the kind: Owns(&Kind{}) in SetupWithManager.",
    storm: false,
    judge: Some(judge),
    absent: Some(absent),
};

/// A reconcile for another reason puts back what somebody had taken away: now it is certain.
fn judge(table: &Table, evidence: &Evidence, out: &mut Vec<Told>) {
    let Some(controller) = table.controllers.get(&evidence.controller) else { return };
    let period = evidence.requeue.is_some_and(|after| after.as_secs() >= 1);
    if controller.unclear || evidence.level != Some(TraceLevel::Full) || period {
        return;
    }
    let caused = |write: &WriteFact| {
        let of_it = |kind: &CauseKind| matches!(kind, CauseKind::Watch { object, .. } if object.key() == write.object.key());
        evidence.causes.iter().any(|cause| of_it(&cause.kind))
    };
    let own = evidence.object.key();
    let made_again = |write: &&WriteFact| {
        let (key, kind) = (write.object.key(), &write.object.gvk);
        write.created
            && key != own
            && !controller.echoed.contains(&(kind.group.clone(), kind.kind.clone()))
            && table
                .makers
                .get(&key)
                .is_some_and(|maker| maker.remade && maker.controller == evidence.controller)
            && !caused(write)
    };
    let Some(write) = evidence.writes.iter().find(made_again) else { return };
    let kind = &write.object.gvk.kind;
    let why = format!(
        "{} was deleted by somebody else, and {} made it again only when it ran for another reason",
        write.object, evidence.controller
    );
    let referenced = write.owners.iter().any(|owner| owner.kind == own.kind && owner.controller);
    let fix = fix(kind, (!write.owners.is_empty()).then_some(referenced));
    out.push(Told { fix, field: kind.clone(), ..Told::of(&RULE, evidence).say(kind, why) });
}

fn fix(kind: &str, referenced: Option<bool>) -> String {
    match referenced {
        Some(false) => {
            "Owns() needs a controller reference: controllerutil.SetControllerReference, or Owns(…, builder.MatchEveryOwner).".to_owned()
        }
        Some(true) => format!("Watch the kind: Owns(&{kind}{{}}) in SetupWithManager."),
        None => format!(
            "No owner reference leads back: set one with controllerutil.SetControllerReference and watch with \
             Owns(&{kind}{{}}), or watch with Watches(&{kind}{{}}, …) and a map function."
        ),
    }
}

fn absent(table: &Table, out: &mut Vec<Told>) {
    for one in &table.pending {
        let Wait::Echo { referenced, looks, made } = &one.what else { continue };
        let kind = &one.about.gvk;
        let Some(controller) = table.controllers.get(&one.controller) else { continue };
        let maker = table.makers.get(&one.about.key());
        // With an owner that is no controller `Owns` hears of others of the kind, and not of this one.
        let echoed = match referenced {
            Some(false) => maker.is_some_and(|maker| maker.echoed),
            _ => controller.echoed.contains(&(kind.group.clone(), kind.kind.clone())),
        };
        let busy = controller.busy.is_some_and(|(_, ended)| ended > one.at);
        // That no creation comes says nothing of what comes later.
        let busy = busy || controller.drops_creations();
        if echoed || busy || controller.unclear || controller.reads == 0 || one.age(table).as_secs() < 10 {
            continue;
        }
        let gone = maker.is_none_or(|maker| maker.gone || maker.deleted.is_some());
        let track = table.tracks.get(&(one.controller.clone(), one.primary.key()));
        // An object that is made once and left alone needs no watch.
        let looked = track.and_then(|track| Some((track, *track.touched.get(&one.about.key())?)));
        let again = looked.is_some_and(|(track, last)| match track.ended > one.at {
            true => last > *made,
            // No reconcile since: its maker looks at it before it makes it.
            false => *looks,
        });
        if gone || !again {
            continue;
        }
        // The period of this object: others of the same controller may ask for another one.
        let period = track.and_then(|track| track.requeue).filter(|after| after.as_secs() >= 1);
        let (severity, period) = match period {
            Some(period) => (Hint, format!("; it is put back only after {} s", period.as_secs())),
            // An operator that leaves the owner out on purpose, and says whose the object is, mostly means it
            // to stay as it is.
            None if referenced.is_none() && maker.is_some_and(|maker| maker.tied) => (Hint, String::new()),
            None if controller.good == 0 => (Hint, String::new()),
            None => (Warning, String::new()),
        };
        let of_it = if *referenced == Some(false) { "of it" } else { "of its kind" };
        let why = format!(
            "{} made {} 10 s ago, and no event {of_it} has ever led to one of its reconciles: a change by others is not seen{period}",
            one.controller, one.about
        );
        let fix = fix(&kind.kind, *referenced);
        let told = Told::new(&RULE, &one.primary, table.now, one.reconcile).say(&kind.kind, why);
        out.push(Told {
            severity,
            fix,
            place: maker.and_then(|maker| maker.place.clone()),
            field: kind.kind.clone(),
            controller: one.controller.clone(),
            ..told
        });
    }
}
