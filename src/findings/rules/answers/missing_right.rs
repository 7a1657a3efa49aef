//! A call that the roles of the operator do not allow.

use crate::rule::{Ends, Guessed, InTorture, Rule, Told};
use opdev_event::FindingSeverity::{Error, Hint};
use opdev_event::evidence::Evidence;
use opdev_facts::{Table, failed_by};

pub(crate) static RULE: Rule = Rule {
    id: "missing-right",
    severity: Error,
    name: "missing right",
    what: "The authorizer refused a call: the roles of the operator lack a rule.",
    when: "at the first refusal of the authorizer in a reconcile that failed by it. \
           A hint where the reconcile ended well or failed by something else.",
    never: "refusals of a namespace that is going, of a quota, of Pod Security or of a webhook.",
    fix: "Add the rule to the markers and write the roles anew: `opdev rbac --observed` shows the \
           line.",
    ends: Ends::Fixed,
    explains: &[],
    guessed: Guessed::Told,
    torture: InTorture::Never,
    judge: Some(judge),
    absent: None,
};

fn judge(_: &Table, evidence: &Evidence, out: &mut Vec<Told>) {
    for refusal in evidence.refusals.iter().filter(|refusal| refusal.status == 403 && !refusal.disturbed) {
        // Only the authorizer says who cannot do it.
        let Some((_, what)) = refusal.message.split_once(" cannot ") else { continue };
        if !refusal.message.contains("is forbidden: User") {
            continue;
        }
        let right = what.split(" in the namespace").next().unwrap_or(what).replace('\"', "");
        let why = format!("the operator may not {right}: its roles lack the rule");
        let told = Told::of(&RULE, evidence).say(&right, why);
        let severity = if failed_by(evidence, refusal) { Error } else { Hint };
        out.push(Told { severity, field: right, ..told });
    }
}

#[cfg(test)]
mod tests {
    use crate::tests::*;

    #[test]
    fn a_call_that_rbac_refuses_is_told_where_the_reconcile_fails_by_it() {
        let run = |verb: &str, forbidden: &str, error: &str, times: usize| {
            let mut world = World::new();
            for _ in 0..times {
                world.reconcile(|one| {
                    one.refusals = vec![RefusalFact {
                        at: at(1),
                        verb: verb.to_owned(),
                        target: "services/web".to_owned(),
                        object: Some(cr("web").key()),
                        status: 403,
                        reason: "Forbidden".to_owned(),
                        message: forbidden.to_owned(),
                        ..RefusalFact::default()
                    }];
                    one.error = error.to_owned();
                });
            }
            world.loud()
        };
        let forbidden = "services \"web\" is forbidden: User \"system:serviceaccount:a:b\" cannot update resource \"services\" in API group \"\"";
        assert_eq!(run("update", forbidden, "forbidden", 1), ["missing-right"]);
        let forbidden = "nodes \"web\" is forbidden: User \"a\" cannot get resource \"nodes\"";
        assert_eq!(run("get", forbidden, forbidden, 3), ["missing-right"]);
        assert!(
            run("get", forbidden, "Service \"web\" not found", 3).is_empty(),
            "asked once, and done without it"
        );
    }
}
