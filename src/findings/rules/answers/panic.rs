//! A reconciler that panics.

use crate::rule::{Ends, Guessed, InTorture, Rule, Told};
use opdev_event::FindingSeverity::Error;
use opdev_event::evidence::Evidence;
use opdev_facts::Table;

pub(crate) static RULE: Rule = Rule {
    id: "panic",
    severity: Error,
    name: "panic",
    what: "The reconciler panics. controller-runtime catches it and tries again, with longer and longer \
           pauses.",
    when: "at the first panic.",
    never: "http.ErrAbortHandler; the end of the program.",
    fix: "Look at the place: mostly a nil pointer or map of an optional part of the spec.",
    ends: Ends::Fixed,
    explains: &["same-error"],
    guessed: Guessed::Told,
    torture: InTorture::Always,
    judge: Some(judge),
    absent: None,
};

fn judge(_: &Table, evidence: &Evidence, out: &mut Vec<Told>) {
    if evidence.panic.is_empty() || evidence.panic.contains("abort Handler") {
        return;
    }
    let why = format!("the reconcile of {} panics: {}", evidence.object, evidence.panic);
    let told = Told::of(&RULE, evidence).say("", why);
    out.push(Told { place: evidence.place.clone(), ..told });
}

#[cfg(test)]
mod tests {
    use crate::tests::*;

    #[test]
    fn a_panic_says_its_own_words() {
        let mut world = World::new();
        world.reconcile(|one| one.panic = "assignment to entry in nil map".to_owned());
        let opened = world.opened();
        assert_eq!(opened[0].rule, "panic");
        assert!(opened[0].why.ends_with("panics: assignment to entry in nil map"), "{}", opened[0].why);
        // Once it is saved and has gone well three times it is fixed.
        world.restart(&["controller.go"]);
        for _ in 0..3 {
            world.reconcile(|_| {});
        }
        assert!(
            world.closed()[0].1.starts_with("fixed by your save of controller.go"),
            "{:?}",
            world.closed()
        );
    }
}
