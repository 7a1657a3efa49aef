//! Calls that change nothing.

use crate::rule::{Ends, Guessed, InTorture, Rule, Told};
use opdev_event::FindingSeverity::Hint;
use opdev_event::evidence::Evidence;
use opdev_event::evidence::WriteVerb;
use opdev_facts::Table;

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
    ends: Ends::Fixed,
    explains: &[],
    guessed: Guessed::Told,
    torture: InTorture::Never,
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

#[cfg(test)]
mod tests {
    use crate::tests::*;

    #[test]
    fn writes_that_change_nothing_are_a_hint() {
        let run = |change: fn(&mut WriteFact)| {
            let mut world = World::new();
            for _ in 0..6 {
                world.reconcile(|one| {
                    let mut write = WriteFact {
                        unchanged: true,
                        ..update(&child("ConfigMap", "a-data"), "", Vec::new())
                    };
                    change(&mut write);
                    one.writes = vec![write];
                });
            }
            world.rules()
        };
        assert_eq!(run(|_| {}), [("write-without-change".to_owned(), FindingSeverity::Hint)]);
        assert!(run(|write| write.verb = WriteVerb::Apply).is_empty());
        assert!(run(|write| (write.deleting, write.held) = (true, false)).is_empty(), "the last finalizer");
    }
}
