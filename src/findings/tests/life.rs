//! The life of findings: what is ignored, and what ends them.

use super::*;

#[test]
fn the_end_of_opdev_ends_no_finding() {
    let mut world = World::new();
    world.reconcile(|one| one.writes = vec![create(&child("Service", "a-web"), 1)]);
    assert_eq!(world.rules(), [("missing-owner".to_owned(), FindingSeverity::Warning)]);
    world.event(&Event::Stopping { reason: "asked to stop".to_owned() });
    world.gone(&child("Service", "a-web"));
    world.gone(&cr("a"));
    assert!(world.closed().is_empty());
}

#[test]
fn what_is_ignored_is_not_told() {
    let told = |name: &str| {
        let ignored =
            crate::Ignored { rule: "panic".to_owned(), name: name.to_owned(), ..crate::Ignored::default() };
        let mut world =
            World { findings: Findings::ignoring(vec![ignored]), now: 0, next: 0, told: Vec::new() };
        world.reconcile(|one| one.panic = "boom".to_owned());
        world.loud().len()
    };
    assert_eq!((told("a"), told(""), told("b")), (0, 0, 1));
}
