//! A status that says Ready before the workload is.

use crate::facts::Table;
use crate::rule::Rule;
use crate::rule::Told;
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
    storm: false,
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
