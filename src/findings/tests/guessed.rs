//! Programs whose reconciles are guessed from their calls: what a guess does not prove is not told.

use super::*;

fn run(level: TraceLevel, change: fn(&mut Evidence)) -> Vec<(String, FindingSeverity)> {
    let mut world = World::new();
    world.reconcile(|one| one.level = Some(level));
    world.reconcile(|one| {
        one.level = Some(level);
        change(one);
    });
    world.rules()
}

#[test]
fn what_is_counted_within_a_reconcile_is_told_only_where_its_borders_are_known() {
    // The calls of four reconciles, which came one soon after the other.
    let reads = |one: &mut Evidence| one.read_live = vec![("secrets/tls".to_owned(), 4)];
    assert_eq!(run(TraceLevel::Full, reads)[0].0, "call-budget");
    assert!(run(TraceLevel::Wire, reads).is_empty());
    assert!(run(TraceLevel::Log, reads).is_empty());
    let long = |one: &mut Evidence| one.ended = at(40_000);
    assert_eq!(run(TraceLevel::Full, long)[0].0, "blocked-worker");
    assert!(run(TraceLevel::Wire, long).is_empty());
}

#[test]
fn a_guess_never_leads_to_an_error() {
    let taken = |one: &mut Evidence| {
        let before = vec!["kubectl-create".to_owned()];
        let config = update(&child("ConfigMap", "settings"), "", vec![field(".data.a", 1, 2)]);
        one.writes = vec![WriteFact { before, ..config }];
    };
    let foreign = |severity| ("foreign-object".to_owned(), severity);
    assert_eq!(run(TraceLevel::Full, taken), [foreign(FindingSeverity::Error)]);
    assert_eq!(run(TraceLevel::Wire, taken), [foreign(FindingSeverity::Warning)]);
    // The server's own word is no guess.
    let refused = |one: &mut Evidence| {
        let refusal = RefusalFact {
            at: at(10),
            verb: "update".to_owned(),
            target: "services/web".to_owned(),
            status: 422,
            reason: "Invalid".to_owned(),
            ..RefusalFact::default()
        };
        one.refusals = vec![refusal.clone(), refusal];
        one.error = "invalid".to_owned();
    };
    let full = run(TraceLevel::Full, refused);
    assert_eq!(run(TraceLevel::Wire, refused), full);
}
