//! A status that says Ready before the workload is.

use crate::facts::Table;
use crate::rule::{Ends, Guessed, InTorture, Rule, Told};
use opdev_event::FindingSeverity::Warning;
use opdev_event::evidence::Evidence;

pub(crate) static RULE: Rule = Rule {
    id: "ready-too-early",
    severity: Warning,
    name: "ready too early",
    what: "The status of the custom resource says Ready or Available of its newest generation while none of the pods of \
           its workload is ready. Whoever waits for it, as `kubectl wait` and GitOps tools do, goes on too soon.",
    when: "a reconcile wrote the condition Ready or Available as true, and a Deployment or StatefulSet that it has made \
           for the object wants pods of which none is ready.",
    never: "workloads with no replicas; conditions about an older generation.",
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
    if !evidence.writes.iter().any(|write| write.became_ready && write.object.key() == primary) {
        return;
    }
    let made = table.makers.iter().filter(|(key, maker)| {
        key.group == "apps"
            && matches!(key.kind.as_str(), "Deployment" | "StatefulSet")
            && maker.primary.key() == primary
            && !maker.gone
            && maker.deleted.is_none()
    });
    for (key, maker) in made {
        let (wanted, ready) = match table.workloads.get(key) {
            Some(workload) => (workload.wanted, workload.ready),
            // One that was made in this very reconcile has not been shown yet.
            None if maker.reconcile == evidence.reconcile => (1, 0),
            None => continue,
        };
        if ready > 0 || wanted == 0 {
            continue;
        }
        let why =
            format!("{} says Ready, and 0 of {wanted} pods of {} are ready", evidence.object, maker.object);
        out.push(Told::of(&RULE, evidence).say(&key.kind, why).about(&maker.object));
        return;
    }
}

#[cfg(test)]
mod tests {
    use crate::tests::*;

    #[test]
    fn ready_without_a_ready_pod_is_told_and_ready_with_one_is_not() {
        let run = |replicas: u64, ready: u64| {
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
                let status = update(&cr("a"), "status", vec![field(".status.conditions", 0, 1)]);
                one.writes = vec![WriteFact { at: one.at, became_ready: true, ..status }];
            });
            world.loud()
        };
        assert_eq!(run(2, 0), ["ready-too-early"]);
        assert!(run(2, 1).is_empty());
        assert!(run(0, 0).is_empty(), "scaled to nothing");
    }
}
