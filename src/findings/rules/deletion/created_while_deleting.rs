//! A reconcile of a deleted object that makes children again.

use crate::facts::Table;
use crate::rule::Rule;
use crate::rule::Told;
use opdev_event::FindingSeverity::Error;
use opdev_event::evidence::Evidence;

pub(crate) static RULE: Rule = Rule {
    id: "created-while-deleting",
    severity: Error,
    name: "made again while it is deleted",
    what: "The custom resource is being deleted, and the reconcile makes a child again that it had made \
           before. The child stays, or is made and deleted again and again.",
    when: "at the create of a name that was made before the deletion.",
    never: "a new name, such as that of a cleanup Job.",
    fix: "Return after the cleanup where the object has a deletionTimestamp.",
    storm: false,
    judge: Some(judge),
    absent: None,
};

fn judge(table: &Table, evidence: &Evidence, out: &mut Vec<Told>) {
    let live = table.live.get(&evidence.object.key());
    let Some(since) = live.and_then(|live| live.deleting).filter(|_| evidence.deleting) else { return };
    for write in evidence.writes.iter().filter(|write| write.created && write.at > since) {
        let object = &write.object;
        if table.makers.get(&object.key()).is_some_and(|maker| maker.at < since && maker.times > 1) {
            let why = format!("{} is being deleted, and its reconcile made {object} again", evidence.object);
            out.push(Told::of(&RULE, evidence).say(&object.gvk.kind, why).about(object));
        }
    }
}
