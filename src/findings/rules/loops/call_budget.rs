//! Calls to the API server that a cache would answer.

use crate::facts::Table;
use crate::rule::Rule;
use crate::rule::Told;
use opdev_event::FindingSeverity::Hint;
use opdev_event::evidence::Evidence;

pub(crate) static RULE: Rule = Rule {
    id: "call-budget",
    severity: Hint,
    name: "many calls",
    what: "A reconcile asks the API server for the same object again and again, or makes very many calls \
           without writing anything. On a large cluster client-go's limit makes it wait.",
    when: "one object was read from the API server three times in one reconcile; or 50 calls in a reconcile that \
           wrote nothing.",
    never: "reads that the cache answered.",
    fix: "Read it once and hand it to who needs it, or read it from the manager's cache: manager.GetClient() instead of \
          GetAPIReader(), and no DisableFor for the kind.",
    storm: false,
    judge: Some(judge),
    absent: None,
};

/// Calls of one reconcile that wrote nothing.
const MANY: u32 = 50;

fn judge(_: &Table, evidence: &Evidence, out: &mut Vec<Told>) {
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
    }
}
