//! Changes of a child that never reach its controller.

use crate::facts::Table;
use crate::facts::Wait;
use crate::rule::Rule;
use crate::rule::Told;
use opdev_event::FindingSeverity::{Hint, Warning};

pub(crate) static RULE: Rule = Rule {
    id: "missing-watch",
    severity: Warning,
    name: "no watch",
    what: "A controller makes objects of a kind, and no event of them ever comes back to it. When \
           somebody changes or deletes such an object, the operator does not see it.",
    when: "an object that the controller has made, and looked at again later, was not among the causes \
           of its reconciles for 10 s. A hint where the controller asks for a period: the object is put \
           back only after that.",
    never: "objects that later reconciles leave alone; programs of which not all causes are known.",
    fix: "Watch the kind: Owns(&Kind{}) in SetupWithManager.",
    storm: false,
    judge: None,
    absent: Some(absent),
};

fn absent(table: &Table, out: &mut Vec<Told>) {
    for one in &table.pending {
        let Wait::Echo { referenced } = &one.what else { continue };
        let kind = &one.about.gvk;
        let Some(controller) = table.controllers.get(&one.controller) else { continue };
        let echoed = controller.echoed.contains(&(kind.group.clone(), kind.kind.clone()));
        let busy = controller.busy.is_some_and(|(_, ended)| ended > one.at);
        if echoed || busy || controller.unclear || controller.reads == 0 || one.age(table).as_secs() < 10 {
            continue;
        }
        let gone =
            table.makers.get(&one.about.key()).is_none_or(|maker| maker.gone || maker.deleted.is_some());
        let track = table.tracks.get(&(one.controller.clone(), one.primary.key()));
        // An object that is made once and left alone needs no watch.
        let looked = track.and_then(|track| Some((track, *track.touched.get(&one.about.key())?)));
        let again = looked.is_some_and(|(track, last)| last > 1 && track.count > 1 && track.ended > one.at);
        if gone || !again {
            continue;
        }
        let (severity, period) = match controller.period {
            Some(period) => (Hint, format!("; it is put back only after {} s", period.as_secs())),
            None if controller.good == 0 => (Hint, String::new()),
            None => (Warning, String::new()),
        };
        let why = format!(
            "{} made {} 10 s ago, and no event of a {} has ever led to one of its reconciles: a change by others is not seen{period}",
            one.controller, one.about, kind.kind
        );
        let fix = match referenced {
            Some(false) => {
                "Owns() needs a controller reference: controllerutil.SetControllerReference, or Owns(…, builder.MatchEveryOwner).".to_owned()
            }
            Some(true) => format!("Watch the kind: Owns(&{}{{}}) in SetupWithManager.", kind.kind),
            None => format!(
                "No owner reference leads back: set one with controllerutil.SetControllerReference and watch with \
                 Owns(&{0}{{}}), or watch with Watches(&{0}{{}}, …) and a map function.",
                kind.kind
            ),
        };
        let told = Told::new(&RULE, &one.primary, table.now, one.reconcile).say(&kind.kind, why);
        out.push(Told {
            severity,
            fix,
            field: kind.kind.clone(),
            controller: one.controller.clone(),
            ..told
        });
    }
}
