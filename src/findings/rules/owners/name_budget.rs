//! A name that leaves little room for the name of the custom resource.

use crate::rule::{Ends, Guessed, InTorture, Rule, Told};
use opdev_event::FindingSeverity::Hint;
use opdev_event::evidence::Evidence;
use opdev_facts::{NAME, Table};

pub(crate) static RULE: Rule = Rule {
    id: "name-budget",
    severity: Hint,
    name: "short names only",
    what: "The name of a child is the name of the custom resource and a constant part. A long name of a \
           custom resource makes a name that the API server refuses, or a label that is too long.",
    when: "two custom resources have such children, and the longest name that works has fewer than 30 \
           characters.",
    never: "names that are shortened or hashed.",
    fix: "Shorten the name, or hash what is too long, or limit the name of the custom resource with a \
           CEL rule in the CRD.",
    ends: Ends::Fixed,
    explains: &[],
    guessed: Guessed::Told,
    torture: InTorture::Never,
    judge: Some(judge),
    absent: None,
};

fn judge(table: &Table, evidence: &Evidence, out: &mut Vec<Told>) {
    let Some(controller) = table.controllers.get(&evidence.controller) else { return };
    for write in evidence.writes.iter().filter(|write| write.created) {
        let kind = write.object.gvk.kind.as_str();
        let limit = match kind {
            "StatefulSet" | "CronJob" => 52,
            "Service" => 63,
            _ => continue,
        };
        let Some((rest, names)) = controller.rests.get(kind).filter(|(_, names)| names.len() >= 2) else {
            continue;
        };
        let longest = limit - (rest.len() - NAME.len()).min(limit);
        if longest >= 30 || names.is_empty() {
            continue;
        }
        let why = format!(
            "each {kind} is called {rest}, with the name of its {}: one of more than {longest} characters does not work",
            evidence.object.gvk.kind
        );
        let told = Told::of(&RULE, evidence).say(kind, why);
        out.push(Told { field: kind.to_owned(), ..told });
    }
}

#[cfg(test)]
mod tests {
    use crate::tests::*;
    use expect_test::expect;

    #[test]
    fn a_name_that_leaves_little_room_is_a_hint_once_two_show_it() {
        let mut world = World::new();
        for name in ["a", "b"] {
            world.reconcile(|one| {
                one.object = cr(name);
                let child = child("StatefulSet", &format!("{name}-application-controller"));
                one.writes = vec![WriteFact { tied: true, ..create(&child, 1) }];
            });
        }
        assert_eq!(world.rules(), [("name-budget".to_owned(), FindingSeverity::Hint)]);
        expect!["each StatefulSet is called NAME-application-controller, with the name of its Shelf: one of more than 29 characters does not work"]
        .assert_eq(&world.opened()[0].why);
    }

    #[test]
    fn a_part_before_the_name_counts_as_well() {
        let run = |names: fn(&str) -> String| {
            let mut world = World::new();
            for name in ["alpha", "beta"] {
                world.reconcile(|one| {
                    one.object = cr(name);
                    let child = child("StatefulSet", &names(name));
                    one.writes = vec![WriteFact { tied: true, ..create(&child, 1) }];
                });
            }
            world.opened().iter().map(|finding| finding.why.clone()).collect::<Vec<_>>()
        };
        let told = run(|name| format!("application-controller-of-{name}"));
        assert_eq!(told.len(), 1, "{told:?}");
        expect!["each StatefulSet is called application-controller-of-NAME, with the name of its Shelf: one of more than 26 characters does not work"]
        .assert_eq(&told[0]);
        assert!(run(|name| format!("moco-{name}")).is_empty(), "there is room enough");
        let hashed = run(|name| format!("application-controller-of-{:x}", name.len()));
        assert!(hashed.is_empty(), "nothing of the name is in it: {hashed:?}");
    }
}
