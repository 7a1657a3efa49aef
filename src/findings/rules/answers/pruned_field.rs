//! A field that the API server drops.

use crate::rule::{Ends, Guessed, InTorture, Rule, Told};
use opdev_event::FindingSeverity::{Error, Warning};
use opdev_event::evidence::Evidence;
use opdev_facts::Table;

pub(crate) static RULE: Rule = Rule {
    id: "pruned-field",
    severity: Error,
    name: "field that the CRD does not know",
    what: "The operator sent a field that the schema of the kind does not have. The API server drops it \
           without an error.",
    when: "a value that was sent is not in the answer; a warning for the kind of another project.",
    never: "values that are zero or empty; creationTimestamp.",
    fix: "Write the CRD anew from the types and apply it, or remove the field.",
    ends: Ends::Fixed,
    explains: &[],
    guessed: Guessed::Told,
    torture: InTorture::InFullView,
    judge: Some(judge),
    absent: None,
};

fn judge(_: &Table, evidence: &Evidence, out: &mut Vec<Told>) {
    for write in evidence.writes.iter().filter(|write| !write.pruned.is_empty()) {
        let own = write.object.gvk.kind == evidence.object.gvk.kind;
        let why = format!(
            "{} {} was sent, and the API server does not know the field: it is dropped",
            write.object, write.pruned
        );
        let told = Told::of(&RULE, evidence)
            .say(crate::rule::place(&write.object, &write.pruned), why)
            .about(&write.object);
        out.push(Told { severity: if own { Error } else { Warning }, field: write.pruned.clone(), ..told });
    }
}

#[cfg(test)]
mod tests {
    use crate::tests::*;

    #[test]
    fn a_field_that_the_server_drops_is_told() {
        let mut world = World::new();
        world.reconcile(|one| {
            one.writes =
                vec![WriteFact { pruned: ".spec.colour".to_owned(), ..update(&cr("a"), "", Vec::new()) }];
        });
        world.wait(7);
        assert_eq!(world.loud(), ["pruned-field"]);
    }
}
