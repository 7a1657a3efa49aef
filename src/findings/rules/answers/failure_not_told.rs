//! Reconciles that fail while the status says that all is well.

use crate::rule::{Ends, Guessed, InTorture, Rule, Told};
use opdev_event::FindingSeverity::{Hint, Warning};
use opdev_event::evidence::Evidence;
use opdev_facts::Table;

pub(crate) static RULE: Rule = Rule {
    id: "failure-not-told",
    severity: Warning,
    name: "failure is not in the status",
    what: "Reconciles of the custom resource fail one after the other, and its status does not say so. Whoever \
           looks at it sees the state of before; only the log of the operator has the error.",
    when: "three reconciles in a row failed, for 5 s, and none of them wrote the status. It is a warning \
           where the status says Ready or Available for the newest generation. Else it is a hint, where \
           nothing in the status tells of trouble. It is a hint, too, where nobody has ever written a status \
           and the CRD has a printed column for a part of it.",
    never: "conflicts; faults on request; what may come of simulated pods. Controllers that write no status at all, \
            where another one does or the CRD prints none.",
    fix: "Write a condition Ready=False with the error before it is returned. A deferred function that \
           patches the status does so however the reconcile ends.",
    ends: Ends::Fixed,
    explains: &[],
    guessed: Guessed::Never,
    torture: InTorture::Never,
    judge: Some(judge),
    absent: None,
};

fn judge(table: &Table, evidence: &Evidence, out: &mut Vec<Told>) {
    let place = (evidence.controller.clone(), evidence.object.key());
    let (Some(track), Some(controller)) = (table.tracks.get(&place), table.controllers.get(&place.0)) else {
        return;
    };
    let failures = &track.failures;
    let lasts = evidence.ended.duration_since(failures.since).as_secs() >= 5;
    let silent = track.status_at.is_none_or(|at| at < failures.since);
    // A write of the status that is refused tried to say it.
    let tried = evidence.refusals.iter().any(|refused| refused.target.ends_with("/status"));
    if failures.row < 3 || !lasts || !silent || tried || track.by_pods {
        return;
    }
    let Some(live) = table.live.get(&place.1).filter(|live| live.gone.is_none() && live.deleting.is_none())
    else {
        return;
    };
    let kind = (place.1.group.clone(), place.1.kind.clone());
    let never = !controller.writes_status;
    // Another program may write it.
    if never && (live.has_status || !table.with_status.contains(&kind)) {
        return;
    }
    // Another condition may tell it while Ready is about what runs.
    if live.said.trouble {
        return;
    }
    let said = match (never, live.said.ready) {
        (true, _) => "has never been written",
        (_, true) => "still says Ready",
        _ => "says nothing of it",
    };
    let why = format!(
        "{} reconciles in a row failed, and the status of {} {said}: {}",
        failures.row, evidence.object, evidence.error
    );
    let severity = if live.said.ready { Warning } else { Hint };
    out.push(Told { severity, ..Told::of(&RULE, evidence).say("", why) });
}

#[cfg(test)]
mod tests {
    use crate::tests::*;

    fn run(status: &Value, change: fn(&mut Evidence, usize)) -> Vec<(String, FindingSeverity)> {
        let mut world = World::new();
        world.reconcile(|one| {
            one.causes = by_user();
            one.writes = vec![update(&cr("a"), "status", vec![field(".status.phase", 0, 1)])];
        });
        world.seen(&cr("a"), shelf(1, json!({ "status": status })));
        world.now += 1_000;
        for number in 0..4 {
            world.reconcile(|one| {
                one.error = "the license is not valid".to_owned();
                change(one, number);
            });
            world.now += 2_000;
        }
        world.rules().into_iter().filter(|(rule, _)| rule == "failure-not-told").collect()
    }

    fn ready() -> Value {
        json!({"conditions": [{"type": "Ready", "status": "True"}]})
    }

    #[test]
    fn failures_that_the_status_does_not_say_are_told() {
        let told = |severity| vec![("failure-not-told".to_owned(), severity)];
        assert_eq!(run(&ready(), |_, _| {}), told(FindingSeverity::Warning));
        assert_eq!(run(&json!({"phase": "Running"}), |_, _| {}), told(FindingSeverity::Hint));
    }

    #[test]
    fn failures_of_a_controller_that_never_writes_a_status_are_a_hint_where_the_crd_prints_one() {
        let run = |column: &str, status: &Value| {
            let mut world = World::new();
            world.event(&prints(column));
            world.reconcile(|one| one.causes = by_user());
            world.seen(&cr("a"), shelf(1, json!({ "status": status })));
            for _ in 0..4 {
                world.reconcile(|one| one.error = "the license is not valid".to_owned());
                world.now += 2_000;
            }
            world.rules().into_iter().filter(|(rule, _)| rule == "failure-not-told").collect::<Vec<_>>()
        };
        let hint = vec![("failure-not-told".to_owned(), FindingSeverity::Hint)];
        assert_eq!(run(".status.phase", &json!({})), hint);
        assert!(run(".spec.size", &json!({})).is_empty(), "it may have none");
        assert!(run(".status.phase", &json!({"phase": "Running"})).is_empty(), "somebody else writes it");
    }

    /// The kind of the tests, of which a column is printed.
    fn prints(path: &str) -> Event {
        let column = PrinterColumn { name: "Phase".to_owned(), path: path.to_owned(), date: false };
        let kind = KindStatus {
            gvk: cr("a").gvk,
            plural: "shelves".to_owned(),
            source: String::new(),
            scale: String::new(),
            columns: vec![column],
            health: KindHealth::Process { program: "go ./cmd".to_owned() },
        };
        Event::SourcesChanged(Arc::new(SourcesChanged {
            at: at(0),
            sources: 1,
            files: Vec::new(),
            removed: false,
            kinds: vec![kind],
            diagnostics: Vec::new(),
            samples: Vec::new(),
            affected: Vec::new(),
        }))
    }

    #[test]
    fn failures_that_the_status_says_or_that_pass_are_not_told() {
        assert!(run(&json!({"phase": "Failed"}), |_, _| {}).is_empty(), "a phase says it");
        let unready = json!({"conditions": [{"type": "Ready", "status": "False"}]});
        assert!(run(&unready, |_, _| {}).is_empty(), "a condition says it");
        let both = json!({"conditions": [{"type": "Ready", "status": "True"}, {"type": "Synced", "status": "False"}]});
        assert!(run(&both, |_, _| {}).is_empty(), "another condition says it beside Ready");
        let writes = |one: &mut Evidence, number: usize| {
            if number == 1 {
                let status = update(&cr("a"), "status", vec![field(".status.phase", 1, 2)]);
                one.writes = vec![WriteFact { at: one.at, ..status }];
            }
        };
        assert!(run(&ready(), writes).is_empty(), "it wrote the status");
        let passes = |one: &mut Evidence, number: usize| {
            if number == 2 {
                one.error.clear();
            }
        };
        assert!(run(&ready(), passes).is_empty(), "it went well in between");
        let disturbed = |one: &mut Evidence, _: usize| {
            one.refusals = vec![RefusalFact { disturbed: true, ..RefusalFact::default() }];
        };
        assert!(run(&ready(), disturbed).is_empty(), "a fault on request");
    }
}
