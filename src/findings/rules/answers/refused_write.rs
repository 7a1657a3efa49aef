//! A write that the API server refuses each time.

use crate::rule::{Ends, Guessed, InTorture, Rule, Told};
use opdev_event::FindingSeverity::Error;
use opdev_event::evidence::{Evidence, RefusalFact};
use opdev_facts::Table;
use opdev_facts::{call_of, failed_by};

pub(crate) static RULE: Rule = Rule {
    id: "refused-write",
    severity: Error,
    name: "write refused",
    what: "The API server refuses the same call for the same reason each time. The reconciler tries it \
           again and again and comes no further.",
    when: "the same call was refused twice with the same status and field, and the reconcile failed. Not found counts \
           for a namespace, and for the status of an object that is there: its CRD has no status subresource.",
    never: "conflicts; dry runs; missing rights; a namespace that is going; reconciles that end well, or fail \
            by something else.",
    fix: "Send what the API server accepts; a field that cannot be changed needs the object deleted \
           and made anew.",
    ends: Ends::Fixed,
    explains: &["same-error"],
    guessed: Guessed::Told,
    torture: InTorture::InFullView,
    judge: Some(judge),
    absent: None,
};

fn judge(table: &Table, evidence: &Evidence, out: &mut Vec<Told>) {
    if evidence.error.is_empty() {
        return;
    }
    for refusal in &evidence.refusals {
        let conflict = refusal.status == 409 && refusal.reason == "Conflict";
        let right = refusal.status == 403 && refusal.message.contains("cannot ");
        let judged = matches!(refusal.verb.as_str(), "create" | "update" | "patch" | "delete")
            && (matches!(refusal.status, 400 | 403 | 409 | 413 | 422)
                || lacks_namespace(refusal)
                || lacks_status(table, evidence, refusal))
            && refusal.reason != "NamespaceTerminating";
        if !judged || conflict || right || refusal.repeated || refusal.dry_run || refusal.disturbed {
            continue;
        }
        if !failed_by(evidence, refusal) {
            continue;
        }
        let times =
            table.refused.get(&(evidence.object.key(), call_of(refusal))).copied().unwrap_or_default();
        if times < 2 {
            continue;
        }
        let field =
            if refusal.field.is_empty() { String::new() } else { format!(" because of {}", refusal.field) };
        let why = format!(
            "{} {} was refused {times} times{field}: {}",
            refusal.verb, refusal.target, refusal.message
        );
        let told = Told::of(&RULE, evidence).say(format!("{} {}", refusal.verb, refusal.target), why);
        let place = refusal.place.clone();
        let told = Told { field: format!("{} {}", refusal.target, refusal.field), place, ..told };
        out.push(match lacks_status(table, evidence, refusal) {
            true => Told { fix: NO_STATUS.to_owned(), ..told },
            false => told,
        });
    }
}

/// The cure where a CRD has no status subresource.
const NO_STATUS: &str = "The CRD has no status subresource: add +kubebuilder:subresource:status above the type, and \
    make and apply the CRD anew.";

/// True if the status of the reconciled object is not found, though the object is there: its kind has no such
/// subresource. The API server names an object that is gone.
fn lacks_status(table: &Table, evidence: &Evidence, refusal: &RefusalFact) -> bool {
    let own = &evidence.object;
    let mut parts = refusal.target.split('/');
    let (resource, name, part) = (parts.next(), parts.next(), parts.next());
    // The plural begins as the kind does: `policies` of a Policy.
    let kind = own.gvk.kind.to_lowercase();
    let stem = &kind[..kind.len().saturating_sub(1)];
    let there = table.live.get(&own.key()).is_some_and(|live| live.gone.is_none() && live.deleting.is_none());
    refusal.status == 404
        && part == Some("status")
        && name == Some(own.name.as_str())
        && resource.is_some_and(|resource| resource.starts_with(stem))
        && there
        && !evidence.deleting
        && !refusal.message.contains(&format!("\"{}\" not found", own.name))
}

/// True if the namespace of a create is not there: it is answered as an object that is not found.
fn lacks_namespace(refusal: &RefusalFact) -> bool {
    refusal.verb == "create" && refusal.status == 404 && refusal.message.starts_with("namespaces \"")
}

#[cfg(test)]
mod tests {
    use crate::tests::*;
    use expect_test::expect;

    #[test]
    fn what_the_server_refuses_twice_is_told_but_not_what_ends_well() {
        let refusal = |status: u16, reason: &str, message: &str| RefusalFact {
            at: at(1),
            verb: "update".to_owned(),
            target: "services/web".to_owned(),
            status,
            reason: reason.to_owned(),
            field: "spec.clusterIP".to_owned(),
            message: message.to_owned(),
            ..RefusalFact::default()
        };
        let run = |one_refusal: RefusalFact, error: &str, times: usize| {
            let mut world = World::new();
            for _ in 0..times {
                world.reconcile(|one| {
                    one.refusals = vec![one_refusal.clone()];
                    one.error = error.to_owned();
                });
            }
            world.loud()
        };
        let invalid = refusal(422, "Invalid", "field is immutable");
        assert_eq!(run(invalid.clone(), "invalid", 2), ["refused-write"]);
        assert!(run(invalid.clone(), "invalid", 1).is_empty());
        assert_eq!(run(invalid.clone(), "", 4), ["error-swallowed"], "it ends well: another fault");
        assert!(run(RefusalFact { dry_run: true, ..invalid }, "invalid", 4).is_empty());
        let quota = "pods \"x\" is forbidden: exceeded quota";
        assert_eq!(run(refusal(403, "Forbidden", quota), "quota", 2), ["refused-write"]);
    }

    #[test]
    fn a_status_that_is_not_found_though_the_object_is_there_is_told_with_its_cure() {
        let run = |target: &str, message: &str, there: bool| {
            let mut world = World::new();
            if there {
                world.reconcile(|one| one.causes = by_user());
                world.seen(&cr("a"), shelf(1, json!({})));
            }
            for _ in 0..3 {
                world.reconcile(|one| {
                    one.refusals = vec![RefusalFact {
                        at: at(1),
                        verb: "update".to_owned(),
                        target: target.to_owned(),
                        status: 404,
                        reason: "NotFound".to_owned(),
                        message: message.to_owned(),
                        ..RefusalFact::default()
                    }];
                    one.error = format!("cannot write: {message}");
                });
            }
            let told = world.opened().into_iter().filter(|finding| finding.rule == "refused-write");
            told.map(|finding| finding.fix.clone()).collect::<Vec<_>>()
        };
        let unknown = "the server could not find the requested resource";
        let told = run("shelves/a/status", unknown, true);
        assert_eq!(told.len(), 1, "{told:?}");
        expect!["The CRD has no status subresource: add +kubebuilder:subresource:status above the type, and make and apply the CRD anew."]
        .assert_eq(&told[0]);
        let gone = "shelves.lib.example.com \"a\" not found";
        assert!(run("shelves/a/status", gone, true).is_empty(), "it has gone meanwhile");
        assert!(run("shelves/a/status", unknown, false).is_empty(), "nobody has seen it");
        assert!(run("shelves/a", unknown, true).is_empty(), "the object itself");
        assert!(run("pods/a/status", unknown, true).is_empty(), "another kind");
    }

    #[test]
    fn a_refusal_that_the_code_ignores_is_no_fault_because_something_else_fails() {
        let refusal = |verb: &str, status: u16, reason: &str, message: &str| RefusalFact {
            at: at(1),
            verb: verb.to_owned(),
            target: "services/web".to_owned(),
            object: Some(cr("web").key()),
            status,
            reason: reason.to_owned(),
            message: message.to_owned(),
            ..RefusalFact::default()
        };
        let run = |refusals: &[&RefusalFact], error: &str| {
            let mut world = World::new();
            for _ in 0..3 {
                world.reconcile(|one| {
                    one.refusals = refusals.iter().copied().cloned().collect();
                    one.error = error.to_owned();
                });
            }
            world.loud()
        };
        let there = refusal("create", 409, "AlreadyExists", "services \"web\" already exists");
        let text = "making it: services \"web\" already exists";
        assert_eq!(run(&[&there], text), ["refused-write"]);
        assert!(run(&[&there], "Service \"web\" not found").is_empty(), "the cache failed it");
        assert!(run(&[&there], "dial tcp: connection refused").is_empty(), "another fault");
        let invalid = refusal("update", 422, "Invalid", "the value of clusterIP is immutable");
        assert_eq!(run(&[&invalid], "could not update"), ["refused-write"], "in words of its own");
        assert_eq!(run(&[&invalid, &there], text), ["refused-write"]);
        let create = refusal("create", 422, "Invalid", "the value of clusterIP is wrong");
        assert_eq!(run(&[&create], "Service \"web\" not found"), ["refused-write"], "it could not be made");
    }
}
