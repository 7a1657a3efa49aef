//! Goroutines that each reconcile leaves behind.

use crate::rule::{Ends, Guessed, InTorture, Rule, Told};
use opdev_event::FindingSeverity::Warning;
use opdev_event::evidence::Evidence;
use opdev_facts::Table;

const ROW: u32 = 20;
/// Longer than an idle connection lives.
const SECONDS: i64 = 100;

pub(crate) static RULE: Rule = Rule {
    id: "process-growth",
    severity: Warning,
    name: "process grows",
    what: "Each reconcile leaves goroutines behind, though it changes nothing: a client, a watch or a broadcaster that \
           is made anew and never stopped. Memory and connections grow until the program is killed.",
    when: "20 reconciles of a controller in a row, and 100 s. Each changed nothing, went well and left more goroutines than \
           there were before it; their number rose all the time. Where two controllers do so at once, it is one finding that names both.",
    never: "the first minute of a process; goroutines that end with their reconcile or within 100 s.",
    fix: "Make clients, watches and broadcasters once, in SetupWithManager, and not in Reconcile; give each goroutine a \
          context that ends.",
    ends: Ends::Fixed,
    explains: &[],
    guessed: Guessed::Told,
    torture: InTorture::Never,
    judge: Some(judge),
    absent: None,
};

fn judge(table: &Table, evidence: &Evidence, out: &mut Vec<Told>) {
    let Some(controller) = table.controllers.get(&evidence.controller) else { return };
    let growth = &controller.growth;
    let seconds = evidence.ended.duration_since(growth.since).as_secs();
    if growth.row < ROW || seconds < SECONDS || !growth.rises {
        return;
    }
    // Goroutines are counted for the process: of several controllers each may be the one.
    // One that reconciles no more leaves nothing behind.
    let is_idle = |last| evidence.ended.duration_since(last).as_secs() > SECONDS;
    let suspects = table
        .controllers
        .iter()
        .filter(|(_, other)| other.growth.row >= ROW / 2 && !is_idle(other.growth.last));
    let suspects: Vec<&str> = suspects.map(|(name, _)| name.as_str()).collect();
    if suspects.first() != Some(&evidence.controller.as_str()) {
        return;
    }
    let suspects = suspects.join(" or ");
    let why = format!(
        "{} reconciles of {suspects} in a row changed nothing and left goroutines behind: {} at first, {} after {seconds} s",
        growth.row, growth.first, evidence.goroutines
    );
    let told = Told { object: growth.object.clone(), ..Told::of(&RULE, evidence) };
    out.push(told.say(suspects, why));
}

#[cfg(test)]
mod tests {
    use crate::tests::*;

    /// Reconciles each so many seconds, with the number of goroutines after each and how many are new.
    fn goroutines(every: i64, count: i64, numbers: impl Fn(i64) -> (u32, i32), wrote: bool) -> Vec<String> {
        let mut world = World::new();
        world.now = 61_000;
        for turn in 0..count {
            world.reconcile(|one| {
                (one.goroutines, one.more_goroutines) = numbers(turn);
                if wrote {
                    let status =
                        update(&cr("a"), "status", vec![field(".status.n", 1, turn.unsigned_abs() + 2)]);
                    one.writes = vec![WriteFact { at: one.at, ..status }];
                }
            });
            world.now += every * 1000;
        }
        world.loud().into_iter().filter(|rule| rule == "process-growth").collect()
    }

    #[test]
    fn goroutines_that_each_reconcile_leaves_behind_are_told() {
        let count = |turn: i64| 80 + u32::try_from(turn).unwrap();
        assert_eq!(goroutines(6, 30, |turn| (count(turn), 1), false), ["process-growth"]);
        let noisy = |turn: i64| (count(2 * turn) + u32::from(turn % 3 == 0) * 3, 2);
        assert_eq!(goroutines(6, 30, noisy, false), ["process-growth"], "others come and go");
    }

    #[test]
    fn two_controllers_whose_goroutines_grow_are_one_finding() {
        let mut world = World::new();
        world.now = 61_000;
        for turn in 0..40 {
            world.reconcile(|one| {
                one.controller = ["pool", "shelf"][usize::from(turn % 2 == 1)].to_owned();
                (one.goroutines, one.more_goroutines) = (80 + turn, 1);
            });
            world.now += 3000;
        }
        world.wait(3);
        let opened = world.opened();
        let titles: Vec<&str> = opened.iter().map(|finding| finding.title.as_str()).collect();
        assert_eq!(titles, ["process grows: pool or shelf"]);
    }

    #[test]
    fn goroutines_that_end_are_not_told() {
        let count = |turn: i64| 80 + u32::try_from(turn).unwrap();
        assert!(goroutines(6, 60, |_| (80, 0), false).is_empty());
        assert!(goroutines(6, 60, |turn| (count(turn.min(15)), 1), false).is_empty(), "each lives for 90 s");
        assert!(goroutines(6, 60, |turn| (count(turn), 0), false).is_empty(), "something else makes them");
        assert!(goroutines(6, 60, |turn| (count(turn), 1), true).is_empty(), "it did something");
        assert!(goroutines(1, 60, |turn| (count(turn), 1), false).is_empty(), "within a minute they may end");
        assert!(goroutines(6, 60, |_| (0, 0), false).is_empty(), "nobody counts them");
        let pool = |turn: i64| (80 + u32::try_from(turn % 8).unwrap(), 1);
        assert!(goroutines(6, 60, pool, false).is_empty(), "a pool that fills and empties");
    }
}
