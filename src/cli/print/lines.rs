//! Lines of events that depend on earlier ones: a save whose change is held is not live, though its reload
//! has reached the cluster.

use super::plain::{plain, reload_settled, shown};
use opdev_event::Event;
use std::collections::BTreeMap;

/// Events as lines, in their order.
#[derive(Debug, Default)]
pub struct Lines {
    /// The files of each held change, by its id.
    held: BTreeMap<String, Vec<String>>,
}

impl Lines {
    /// The event as one line; `None` where it is no fact worth a line.
    pub fn line(&mut self, event: &Event) -> Option<String> {
        match event {
            Event::Held(held) => _ = self.held.insert(held.id.clone(), held.files.clone()),
            Event::Released(released) => _ = self.held.remove(&released.id),
            Event::ReloadSettled(settled) => {
                let waits = |files: &Vec<String>| files.iter().any(|file| settled.files.contains(file));
                if self.held.values().any(waits) {
                    return Some(shown(
                        Some(settled.at),
                        &reload_settled(settled, "held for your answer, checked"),
                    ));
                }
            }
            _ => {}
        }
        plain(event)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;
    use jiff::Timestamp;
    use opdev_event::{Held, HeldChange, Released, ReloadSettled, Verdict};
    use opdev_object::meta::Gvk;
    use std::sync::Arc;
    use std::time::Duration;

    #[test]
    fn a_held_save_is_not_live() {
        let at = Timestamp::UNIX_EPOCH;
        let settled = |file: &str| {
            let files = vec![file.to_owned()];
            let took = Duration::from_millis(9);
            Event::ReloadSettled(ReloadSettled { at, sources: 4, files, objects: 1, failed: 0, took })
        };
        let held = Event::Held(Arc::new(Held {
            at,
            id: "things.x.io@4".to_owned(),
            change: HeldChange::Type,
            kind: Gvk::new("x.io", "v1", "Thing"),
            files: vec!["types/thing.go".to_owned()],
            why: "stored values are lost".to_owned(),
            findings: Vec::new(),
            objects: Vec::new(),
            more: 0,
        }));
        let id = "things.x.io@4".to_owned();
        let released = Event::Released(Released { at, id, verdict: Verdict::Undone });
        let mut lines = Lines::default();
        expect!["1970-01-01T00:00:00.000Z held       things.x.io@4: stored values are lost; the CRD stays as it is: undo the edit, or let the change through on the screen"]
        .assert_eq(&lines.line(&held).unwrap());
        let told = lines.line(&settled("types/thing.go")).unwrap();
        assert!(
            told.ends_with("thing.go saved → held for your answer, checked in 9 ms (1 object)"),
            "{told}"
        );
        expect!["1970-01-01T00:00:00.000Z reload     values.yaml saved → live in 9 ms (1 object)"]
            .assert_eq(&lines.line(&settled("charts/a/values.yaml")).unwrap());
        lines.line(&released).unwrap();
        expect!["1970-01-01T00:00:00.000Z reload     thing.go saved → live in 9 ms (1 object)"]
            .assert_eq(&lines.line(&settled("types/thing.go")).unwrap());
    }
}
