//! Calls to the API server that a cache would answer.

use crate::rule::{Ends, Guessed, InTorture, Rule, Told};
use opdev_event::FindingSeverity::Hint;
use opdev_event::evidence::{Evidence, RefusalFact};
use opdev_facts::{Table, call_of};

pub(crate) static RULE: Rule = Rule {
    id: "call-budget",
    severity: Hint,
    name: "many calls",
    what: "A reconcile asks the API server for the same object again and again, or makes very many calls \
           without writing anything. On a large cluster client-go's limit makes it wait.",
    when: "one object was read from the API server three times in one reconcile; or 50 calls in a reconcile that \
           wrote nothing; or 10 reconciles, nearly all of them, that create what is there or delete what is not.",
    never: "reads that the cache answered; a delete or a create that is in vain once.",
    fix: "Look into the cache before you create or delete. Read it once and hand it to who needs it, or read it from the manager's cache: manager.GetClient() instead of \
          GetAPIReader(), and no DisableFor for the kind.",
    ends: Ends::Fixed,
    explains: &[],
    guessed: Guessed::Never,
    torture: InTorture::Never,
    judge: Some(judge),
    absent: None,
};

/// Calls of one reconcile that wrote nothing.
const MANY: u32 = 50;

/// Reconciles that made one call in vain.
const VAIN: u32 = 10;

fn judge(table: &Table, evidence: &Evidence, out: &mut Vec<Told>) {
    if let Some((target, times)) = evidence.read_live.first() {
        let why = format!(
            "{} read {target} {times} times from the API server in one reconcile",
            evidence.controller
        );
        let told = Told::of(&RULE, evidence).say(target.split('/').next().unwrap_or_default(), why);
        out.push(Told { field: target.split('/').next().unwrap_or_default().to_owned(), ..told });
    } else if evidence.live >= MANY && evidence.writes.is_empty() {
        let why = format!(
            "{} made {} calls in one reconcile, and wrote nothing",
            evidence.controller, evidence.live
        );
        out.push(Told::of(&RULE, evidence).say("", why));
    } else if let Some((refusal, times)) = in_vain(table, evidence) {
        let done = if refusal.verb == "create" { "it is there already" } else { "it is not there" };
        let call = match &refusal.object {
            Some(object) => format!("{} {} {}", refusal.verb, object.kind, object.name),
            None => format!("{} {}", refusal.verb, refusal.target),
        };
        let why = format!(
            "{} asked the API server to {call} in {times} reconciles, and {done}",
            evidence.controller
        );
        let told = Told::of(&RULE, evidence).say(&call, why);
        out.push(Told { field: call, place: refusal.place.clone(), ..told });
    }
}

/// A create of what is there, or a delete of what is not, that nearly each reconcile of the object makes.
fn in_vain<'a>(table: &Table, evidence: &'a Evidence) -> Option<(&'a RefusalFact, u32)> {
    let track = table.tracks.get(&(evidence.controller.clone(), evidence.object.key()))?;
    evidence.refusals.iter().filter(|refusal| !refusal.disturbed && !refusal.dry_run).find_map(|refusal| {
        let vain = match refusal.verb.as_str() {
            "create" => refusal.status == 409 && refusal.reason == "AlreadyExists",
            "delete" => refusal.status == 404,
            _ => false,
        };
        let resource = refusal.target.split('/').next().unwrap_or_default();
        let times = *table.refused.get(&(evidence.object.key(), call_of(refusal)))?;
        let each = u64::from(times) * 5 >= track.count * 4;
        (vain && each && times >= VAIN && !matches!(resource, "events" | "leases"))
            .then_some((refusal, times))
    })
}

#[cfg(test)]
mod tests {
    use crate::tests::*;

    #[test]
    fn the_same_object_read_from_the_api_server_three_times_is_a_hint() {
        let mut world = World::new();
        world.reconcile(|one| one.read_live = vec![("secrets/token".to_owned(), 4)]);
        assert_eq!(world.rules(), [("call-budget".to_owned(), FindingSeverity::Hint)]);
        let mut world = World::new();
        world.reconcile(|one| one.live = 60);
        assert_eq!(world.rules().len(), 1);
        world.told.clear();
        let mut world = World::new();
        world.reconcile(|one| {
            one.live = 60;
            one.writes = vec![create(&child("ConfigMap", "web"), 1)];
        });
        assert!(!world.rules().iter().any(|(rule, _)| rule == "call-budget"), "it made much");
    }

    #[test]
    fn a_call_that_is_in_vain_in_each_reconcile_is_a_hint() {
        let run = |verb: &str, status: u16, reason: &str, each: usize| {
            let mut world = World::new();
            for round in 0..20 {
                world.reconcile(|one| {
                    let refusal = RefusalFact {
                        verb: verb.to_owned(),
                        target: "services/web".to_owned(),
                        status,
                        reason: reason.to_owned(),
                        ..RefusalFact::default()
                    };
                    one.refusals.extend((round % each == 0).then_some(refusal));
                });
            }
            world.rules()
        };
        let hint = vec![("call-budget".to_owned(), FindingSeverity::Hint)];
        assert_eq!(run("delete", 404, "NotFound", 1), hint);
        assert_eq!(run("create", 409, "AlreadyExists", 1), hint);
        assert!(run("delete", 404, "NotFound", 2).is_empty(), "now and then");
        assert!(
            run("create", 422, "Invalid", 1).iter().all(|(rule, _)| rule != "call-budget"),
            "refused, not in vain"
        );
        assert!(run("get", 404, "NotFound", 1).is_empty(), "it looks");
    }
}
