//! A status that says Ready before the workload is.

use crate::rule::{Ends, Guessed, InTorture, Rule, Told};
use opdev_event::FindingSeverity::{self, Hint, Warning};
use opdev_event::evidence::{Evidence, ReadySign, WorkloadFact, WriteFact};
use opdev_facts::{Maker, Table};
use opdev_object::meta::ObjectKey;

pub(crate) static RULE: Rule = Rule {
    id: "ready-too-early",
    severity: Warning,
    name: "ready too early",
    what: "The status of the custom resource says Ready or Available of its newest generation while the pods of its \
           workload are not. Whoever waits for it, as `kubectl wait` and GitOps tools do, goes on too soon.",
    when: "a reconcile wrote a condition as true that ends in Ready, Healthy, Available or Running, or one \
           of these words as phase or state. A Deployment, StatefulSet or DaemonSet that it has made for \
           the object has no ready pod. A condition of a part is held against the workload that has its \
           name. It is a hint where the word is Running. It is a hint, too, where it is Ready and some \
           pods are not ready or not new, as the reconcile had read it.",
    never: "workloads with no replicas; conditions about an older generation, or about other parts; reconcilers that \
            look at the pods themselves. No hint where the spec has a minimum.",
    fix: "Look at status.observedGeneration and status.readyReplicas of the workload before the condition is set.",
    ends: Ends::Fixed,
    explains: &[],
    guessed: Guessed::Never,
    torture: InTorture::Never,
    judge: Some(judge),
    absent: None,
};

fn judge(table: &Table, evidence: &Evidence, out: &mut Vec<Told>) {
    let primary = evidence.object.key();
    // Pods may be ready a moment before their workload counts them.
    if evidence.pods {
        return;
    }
    for write in evidence.writes.iter().filter(|write| write.object.key() == primary) {
        for sign in &write.signs {
            let of_it = |(key, maker): &(&ObjectKey, &Maker)| {
                is_workload(key) && maker.primary.key() == primary && !maker.gone && maker.deleted.is_none()
            };
            let about =
                |(key, _): &(&ObjectKey, &Maker)| sign.part.is_empty() || is_of(&key.name, &sign.part);
            let made = table.makers.iter().filter(|one| of_it(one) && about(one));
            let mut untrue: Vec<_> = made
                .filter_map(|(key, maker)| judged(table, evidence, (write, sign), (key, maker)))
                .collect();
            // Without any ready pod it is worse than with some.
            untrue.sort_by_key(|(severity, why)| (*severity != Warning, why.clone()));
            if let Some((severity, why)) = untrue.into_iter().next() {
                let told = Told::of(&RULE, evidence).say(&sign.text, why);
                out.push(Told { severity, field: sign.text.clone(), ..told });
                return;
            }
        }
    }
}

fn is_workload(key: &ObjectKey) -> bool {
    key.group == "apps" && matches!(key.kind.as_str(), "Deployment" | "StatefulSet" | "DaemonSet")
}

/// True if a workload has the name of a part of the custom resource.
fn is_of(name: &str, part: &str) -> bool {
    let name: String = name.to_lowercase().chars().filter(char::is_ascii_alphanumeric).collect();
    name.ends_with(part)
}

/// The reason why a sign is not true of a workload.
fn judged(
    table: &Table,
    evidence: &Evidence,
    (write, sign): (&WriteFact, &ReadySign),
    (key, maker): (&ObjectKey, &Maker),
) -> Option<(FindingSeverity, String)> {
    let (object, said) = (&evidence.object, &sign.text);
    let none = if said.ends_with("Running") || said.ends_with("running") { Hint } else { Warning };
    // The reconcile itself had it in hand: that is certain.
    let known = evidence.workloads.iter().rev().find(|fact| fact.object == *key && fact.at <= write.at);
    if let Some(fact) = known {
        let WorkloadFact { wanted, ready, updated, observed, .. } = *fact;
        if wanted == 0 {
            return None;
        }
        if ready == 0 {
            let why = format!("{object} says {said}, and 0 of {wanted} pods of {} are ready", maker.object);
            return Some((none, why));
        }
        let part = if !observed {
            "its controller has not seen its newest generation".to_owned()
        } else if ready < wanted {
            format!("{ready} of {wanted} pods are ready")
        } else if updated < wanted {
            format!("{updated} of {wanted} pods are up to date")
        } else {
            return None;
        };
        let why =
            format!("{object} says {said}, and of {}, as the reconcile had read it, {part}", maker.object);
        return (sign.whole && !evidence.tolerates).then_some((Hint, why));
    }
    let (wanted, ready) = match table.workloads.get(key) {
        Some(workload) => (workload.wanted, workload.ready),
        // One that was made in this very reconcile has not been shown yet.
        None if maker.reconcile == evidence.reconcile && key.kind != "DaemonSet" => (1, 0),
        None => return None,
    };
    let why = format!("{object} says {said}, and 0 of {wanted} pods of {} are ready", maker.object);
    (ready == 0 && wanted > 0).then_some((none, why))
}

#[cfg(test)]
mod tests {
    use crate::tests::*;

    fn told(world: &World) -> Vec<FindingSeverity> {
        let told = world.rules().into_iter().filter(|(rule, _)| rule == "ready-too-early");
        told.map(|(_, severity)| severity).collect()
    }

    fn sign(text: &str, part: &str, whole: bool) -> ReadySign {
        ReadySign { text: text.to_owned(), part: part.to_owned(), whole }
    }

    fn says(sign: ReadySign) -> WriteFact {
        let status = update(&cr("a"), "status", vec![field(".status.conditions", 0, 1)]);
        WriteFact { at: at(100), signs: vec![sign], ..status }
    }

    #[test]
    fn ready_without_a_ready_pod_is_told_and_ready_with_one_is_not() {
        let run = |replicas: u64, ready: u64, said: ReadySign| {
            let mut world = World::new();
            let deployment = child("Deployment", "web");
            world.reconcile(|one| {
                one.causes = by_user();
                one.writes = vec![WriteFact { owners: owned(true), ..create(&deployment, 0) }];
            });
            world.seen(
                &deployment,
                json!({"spec": {"replicas": replicas}, "status": {"readyReplicas": ready}}),
            );
            world.reconcile(|one| {
                one.causes = own();
                one.writes = vec![says(said)];
            });
            told(&world)
        };
        let ready = || sign("condition Ready", "", true);
        assert_eq!(run(2, 0, ready()), [FindingSeverity::Warning]);
        assert_eq!(run(2, 0, sign("status.phase Available", "", false)), [FindingSeverity::Warning]);
        assert_eq!(run(2, 0, sign("status.phase Running", "", false)), [FindingSeverity::Hint]);
        assert_eq!(run(2, 0, sign("condition WebReady", "web", true)), [FindingSeverity::Warning]);
        assert!(run(2, 0, sign("condition SecretsReady", "secrets", true)).is_empty(), "another part");
        assert!(run(2, 1, ready()).is_empty());
        assert!(run(0, 0, ready()).is_empty(), "scaled to nothing");
    }

    #[test]
    fn a_reconcile_that_has_read_that_not_all_pods_are_ready_is_told_as_a_hint() {
        let run = |fact: WorkloadFact, change: fn(&mut Evidence)| {
            let mut world = World::new();
            let deployment = child("Deployment", "web");
            world.reconcile(|one| {
                one.writes = vec![WriteFact { owners: owned(true), ..create(&deployment, 0) }];
            });
            world.seen(&deployment, json!({"spec": {"replicas": 3}, "status": {"readyReplicas": 3}}));
            world.reconcile(|one| {
                one.workloads = vec![WorkloadFact { at: at(50), object: deployment.key(), ..fact }];
                one.writes = vec![says(sign("condition Ready", "", true))];
                change(one);
            });
            told(&world)
        };
        let fact = |ready: i64, updated: i64, observed: bool| WorkloadFact {
            wanted: 3,
            ready,
            updated,
            observed,
            ..WorkloadFact::default()
        };
        let hint = [FindingSeverity::Hint];
        assert_eq!(run(fact(2, 3, true), |_| {}), hint);
        assert_eq!(run(fact(3, 1, true), |_| {}), hint);
        assert_eq!(run(fact(3, 3, false), |_| {}), hint);
        assert_eq!(run(fact(0, 3, true), |_| {}), [FindingSeverity::Warning]);
        assert!(run(fact(3, 3, true), |_| {}).is_empty());
        assert!(run(fact(2, 3, true), |one| one.tolerates = true).is_empty(), "a minimum is enough");
        assert!(run(fact(0, 3, true), |one| one.pods = true).is_empty(), "it looks at the pods");
        let serves = |one: &mut Evidence| one.writes = vec![says(sign("condition Available", "", false))];
        assert!(run(fact(2, 3, true), serves).is_empty(), "some pods are enough to serve");
    }
}
