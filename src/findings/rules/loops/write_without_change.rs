//! Calls that change nothing.

use crate::facts::Table;
use crate::rule::Rule;
use crate::rule::Told;
use opdev_event::FindingSeverity::Hint;
use opdev_event::evidence::Evidence;
use opdev_event::evidence::WriteVerb;

pub(crate) static RULE: Rule = Rule {
    id: "write-without-change",
    severity: Hint,
    name: "write without change",
    what: "The operator writes an object although nothing differs. Each such call costs the API server \
           as much as a real one.",
    when: "five updates or merge patches in a row that changed nothing.",
    never: "server-side apply; the update that takes off the last finalizer.",
    fix: "Compare with what the cache has before you write, with the defaults that the API server \
           sets: equality.Semantic.DeepDerivative, or controllerutil.CreateOrUpdate.",
    storm: false,
    judge: Some(judge),
    absent: None,
};

fn judge(table: &Table, evidence: &Evidence, out: &mut Vec<Told>) {
    let Some(track) = table.tracks.get(&(evidence.controller.clone(), evidence.object.key())) else { return };
    for write in evidence.writes.iter().filter(|write| write.unchanged) {
        let last = write.deleting && !write.held;
        let counts = track.unchanged.get(&write.object.key()).copied().unwrap_or_default();
        if last || counts < 5 || !matches!(write.verb, WriteVerb::Update | WriteVerb::Patch) {
            continue;
        }
        let (object, part) = (&write.object, if write.subresource.is_empty() { "" } else { "/status" });
        let how = if write.empty { "an empty patch {}" } else { "a write that changed nothing" };
        let why = format!("{object}{part} got {how} in {counts} reconciles in a row");
        out.push(Told::of(&RULE, evidence).say(&object.gvk.kind, why).about(object));
    }
}
