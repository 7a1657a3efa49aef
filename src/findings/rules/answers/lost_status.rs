//! A status that is sent where it is not stored.

use crate::rule::{Ends, Guessed, InTorture, Rule, Told};
use opdev_event::FindingSeverity::Error;
use opdev_event::evidence::Evidence;
use opdev_facts::Table;
use opdev_facts::Wait;

pub(crate) static RULE: Rule = Rule {
    id: "lost-status",
    severity: Error,
    name: "status that is lost",
    what: "The operator sent a status with the whole object, where the API server ignores it; or a \
           change of the spec or of metadata to `/status`, where the API server ignores that.",
    when: "a value that differs from what this reconcile read is not on the server, and no write of the \
           status followed in this reconcile or within 5 s.",
    never: "defaults that the program sets in memory; zero values; lists that differ in what is left \
           out.",
    fix: "Write the status with Status().Update or Status().Patch, and all else with Update or Patch.",
    ends: Ends::Fixed,
    explains: &[],
    guessed: Guessed::Told,
    torture: InTorture::InFullView,
    judge: Some(judge),
    absent: Some(absent),
};

fn judge(_: &Table, evidence: &Evidence, out: &mut Vec<Told>) {
    for write in evidence.writes.iter().filter(|write| !write.beside_status.is_empty()) {
        let why = format!(
            "{} was sent to /status with a change of {}, which is not stored there",
            write.object, write.beside_status
        );
        let told =
            Told::of(&RULE, evidence).say(crate::rule::place(&write.object, &write.beside_status), why);
        out.push(Told { field: write.beside_status.clone(), ..told.about(&write.object) });
    }
}

fn absent(table: &Table, out: &mut Vec<Told>) {
    for one in &table.pending {
        let Wait::Status { path } = &one.what else { continue };
        if one.age(table).as_secs() < 5 {
            continue;
        }
        let why = format!(
            "{} {path} was sent with the whole object, and a status is not stored that way",
            one.about
        );
        let told = Told::new(&RULE, &one.primary, table.now, one.reconcile)
            .say(crate::rule::place(&one.about, path), why);
        out.push(Told { field: path.clone(), controller: one.controller.clone(), ..told });
    }
}

#[cfg(test)]
mod tests {
    use crate::tests::*;

    #[test]
    fn a_status_that_is_sent_in_vain_is_told() {
        let run = |change: fn(&mut WriteFact), later: bool| {
            let mut world = World::new();
            world.reconcile(|one| {
                let mut write = update(&cr("a"), "", Vec::new());
                change(&mut write);
                one.writes = vec![write];
            });
            if later {
                world.reconcile(|one| {
                    one.writes = vec![update(&cr("a"), "status", vec![field(".status.x", 1, 2)])];
                });
            }
            world.wait(7);
            world.loud()
        };
        assert_eq!(run(|write| write.lost = ".status.phase".to_owned(), false), ["lost-status"]);
        assert!(run(|write| write.lost = ".status.phase".to_owned(), true).is_empty());
        assert_eq!(
            run(|write| write.beside_status = ".metadata.finalizers".to_owned(), false),
            ["lost-status"]
        );
    }
}
