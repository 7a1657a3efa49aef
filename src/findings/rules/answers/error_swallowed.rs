//! A call that failed, and nobody was told.

use crate::rule::{Ends, Guessed, InTorture, Rule, Told};
use opdev_event::FindingSeverity::{Error, Warning};
use opdev_event::evidence::{Evidence, RefusalFact, WriteFact};
use opdev_facts::Table;
use opdev_facts::is_never;

pub(crate) static RULE: Rule = Rule {
    id: "error-swallowed",
    severity: Error,
    name: "error is swallowed",
    what: "A call was refused, and the reconcile ended without an error and without asking to run again: nobody \
           tries it once more.",
    when: "a write, or a read that the API server could not answer, failed and was not repeated with success, and the \
           reconcile ended well and asked for nothing. A warning; an error where the status says Ready afterwards.",
    never: "objects that are not there any more, or are there already; conflicts; refusals with 403 (a \
            missing right, a quota, a policy); Events; reconciles that write what went wrong into the status.",
    fix: "Return the error: controller-runtime tries again with growing pauses. Where trying again cannot help, \
          return reconcile.TerminalError and say it in a condition.",
    ends: Ends::Fixed,
    explains: &[],
    guessed: Guessed::Never,
    torture: InTorture::Never,
    judge: Some(judge),
    absent: None,
};

fn judge(_: &Table, evidence: &Evidence, out: &mut Vec<Told>) {
    let traced = evidence.level == Some(opdev_event::TraceLevel::Full);
    if !traced || !evidence.error.is_empty() || !evidence.panic.is_empty() || evidence.requeue.is_some() {
        return;
    }
    let Some(refused) = evidence.refusals.iter().find(|refused| is_swallowed(refused, evidence)) else {
        return;
    };
    let own = |write: &&WriteFact| write.object.key() == evidence.object.key() && write.at > refused.at;
    let ready = evidence.writes.iter().filter(own).any(|write| write.became_ready);
    // A reconcile that goes on to write its status may say there what went wrong.
    let told = evidence.writes.iter().filter(own).any(|write| write.subresource == "status");
    if told && !ready {
        return;
    }
    let why = format!(
        "{} {} failed ({} {}: {}), and the reconcile of {} ended well{}",
        refused.verb,
        refused.target,
        refused.status,
        refused.reason,
        short(&refused.message),
        evidence.object,
        if ready { " and wrote Ready" } else { "" }
    );
    let severity = if ready { Error } else { Warning };
    let told = Told::of(&RULE, evidence).say(format!("{} {}", refused.verb, refused.target), why);
    out.push(Told { severity, field: format!("{} {}", refused.verb, refused.target), ..told });
}

fn is_swallowed(refused: &RefusalFact, evidence: &Evidence) -> bool {
    let write = matches!(refused.verb.as_str(), "create" | "update" | "patch" | "delete");
    let read = matches!(refused.verb.as_str(), "get" | "list") && refused.status >= 500;
    let harmless = matches!(refused.status, 403 | 404 | 409 | 410);
    let resource = refused.target.split('/').next().unwrap_or_default();
    let beside = matches!(resource, "events" | "leases" | "tokenreviews" | "subjectaccessreviews")
        || refused
            .target
            .split('/')
            .nth(2)
            .is_some_and(|part| matches!(part, "exec" | "proxy" | "portforward"));
    // A call that opdev itself does not serve is no fault of the operator.
    let unserved = matches!(refused.status, 405 | 501);
    let later = evidence.writes.iter().any(|write| {
        write.at > refused.at
            && refused.object.as_ref() == Some(&write.object.key())
            && !is_never(&write.object)
    });
    (write || read)
        && !harmless
        && !beside
        && !unserved
        && !refused.repeated
        && !refused.dry_run
        && !refused.disturbed
        && !later
}

/// The first words of a message.
fn short(message: &str) -> String {
    let mut words: String = message.chars().take(120).collect();
    if words.len() < message.len() {
        words.push('…');
    }
    words
}

#[cfg(test)]
mod tests {
    use crate::tests::*;

    #[test]
    fn an_error_that_nobody_returns_is_told_and_one_that_the_status_says_is_not() {
        let refused = || RefusalFact {
            at: at(1),
            verb: "create".to_owned(),
            target: "configmaps/web".to_owned(),
            object: Some(child("ConfigMap", "web").key()),
            status: 422,
            reason: "Invalid".to_owned(),
            message: "metadata.name: Invalid value".to_owned(),
            ..RefusalFact::default()
        };
        let run = |change: &dyn Fn(&mut Evidence)| {
            let mut world = World::new();
            world.reconcile(|one| {
                one.causes = by_user();
                one.refusals = vec![refused()];
                change(one);
            });
            world.rules()
        };
        let status =
            |ready: bool| WriteFact { at: at(3), became_ready: ready, ..update(&cr("a"), "status", vec![]) };
        let told = |severity| vec![("error-swallowed".to_owned(), severity)];
        assert_eq!(run(&|_| {}), told(FindingSeverity::Warning));
        assert_eq!(run(&|one| one.writes = vec![status(true)]), told(FindingSeverity::Error));
        assert!(run(&|one| one.writes = vec![status(false)]).is_empty(), "a condition says it");
        assert!(run(&|one| one.error = "metadata.name".to_owned()).is_empty(), "it is returned");
        assert!(run(&|one| one.requeue = Some(Duration::from_secs(5))).is_empty(), "it is tried again");
        assert!(run(&|one| one.refusals[0].repeated = true).is_empty(), "a second try went well");
        assert!(run(&|one| one.refusals[0].status = 409).is_empty(), "it is there already");
        assert!(run(&|one| one.refusals[0].target = "events/web".to_owned()).is_empty(), "an Event");
        assert!(run(&|one| one.refusals[0].disturbed = true).is_empty(), "a fault of opdev's own");
        let other =
            run(&|one| one.writes = vec![WriteFact { tied: true, ..create(&child("ConfigMap", "web"), 4) }]);
        assert!(other.is_empty(), "made in another way: {other:?}");
    }
}
