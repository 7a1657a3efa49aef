//! A kind that the program asks for and the cluster does not have.

use crate::rule::{Ends, Guessed, InTorture, Rule, Told};
use jiff::Timestamp;
use opdev_event::FindingSeverity::{Error, Hint};
use opdev_facts::missing_kinds::MissingKind;
use opdev_object::meta::{Gvk, ObjectRef};

pub(crate) static RULE: Rule = Rule {
    id: "kind-missing",
    severity: Error,
    name: "kind is missing",
    what: "The program watches or reads a kind that no CRD of the cluster serves. A controller that watches it does not \
           start, and after two minutes controller-runtime ends the program. A reconcile that reads it fails.",
    when: "controller-runtime says for the second time that a watched kind is missing, or that a reconcile failed by it: a \
           hint. An error once the program has ended because of it.",
    never: "kinds that a program only looks for; kinds that opdev installs from the project's modules.",
    fix: "Apply the CRD. Or watch the kind only where the cluster has it: ask the manager's RESTMapper before the controller \
          is set up.",
    ends: Ends::Fixed,
    explains: &[],
    guessed: Guessed::Told,
    torture: InTorture::Never,
    judge: None,
    absent: None,
};

/// The program says it once more; with the seconds that it has waited where it has ended by it.
pub(crate) fn told(kind: &MissingKind, ended: Option<i64>, at: Timestamp) -> Told {
    let name = format!("{}.{}", kind.kind, kind.group);
    let object = ObjectRef {
        gvk: Gvk::new("apiextensions.k8s.io", "v1", "CustomResourceDefinition"),
        namespace: None,
        name: name.clone(),
        uid: None,
    };
    let why = match ended {
        Some(seconds) => {
            format!("the program has waited {seconds} s for {name}, which no CRD serves, and has ended")
        }
        None => format!("the program asks for {name} again and again, and no CRD serves it"),
    };
    let severity = if ended.is_some() { Error } else { Hint };
    Told { severity, ..Told::new(&RULE, &object, at, 0).say(name, why) }
}

#[cfg(test)]
mod tests {
    use crate::tests::*;
    use opdev_event::{Level, LogLine};

    impl World {
        fn says(&mut self, message: &str) {
            let (target, message) = ("controller-runtime".to_owned(), message.to_owned());
            let line = LogLine { at: at(self.now), level: Level::Error, target, message, reconcile: None };
            self.event(&Event::Log(line));
        }

        fn misses(&mut self, times: i64) {
            for _ in 0..times {
                self.says(
                "if kind is a CRD, it should be installed before calling Start: no matches for kind \"Certificate\" \
                 in version \"cert-manager.io/v1\" kind=Certificate.cert-manager.io",
            );
                self.wait(10);
            }
        }
    }

    const TIMED_OUT: &str = "Could not wait for Cache to sync: failed to wait for web caches to sync: timed out waiting for \
                         cache to be synced for Kind *v1.Certificate";

    #[test]
    fn a_kind_that_the_cluster_does_not_have_is_told() {
        let mut world = World::new();
        world.misses(12);
        assert_eq!(world.rules(), [("kind-missing".to_owned(), FindingSeverity::Hint)]);
        let opened = world.opened();
        assert_eq!(opened[0].object.name, "Certificate.cert-manager.io");
        world.says(TIMED_OUT);
        world.ends(None);
        assert_eq!(world.rules(), [("kind-missing".to_owned(), FindingSeverity::Error)]);
        // It does not end while no program runs, nor while the next one says the same.
        world.wait(60);
        world.restart(&[]);
        world.misses(4);
        assert!(world.closed().is_empty(), "{:?}", world.closed());
        assert_eq!(world.opened().len(), 1);
        world.wait(20);
        assert_eq!(world.closed(), [("kind-missing".to_owned(), "it was not seen any more".to_owned())]);
    }

    #[test]
    fn a_kind_that_comes_is_not_told() {
        let mut installed = World::new();
        installed.misses(1);
        installed.wait(60);
        assert!(installed.rules().is_empty(), "opdev has installed it");
        let mut other = World::new();
        other.misses(3);
        other.ends(None);
        assert_eq!(
            other.rules(),
            [("kind-missing".to_owned(), FindingSeverity::Hint)],
            "it ended by something else"
        );
        let mut asks = World::new();
        for _ in 0..3 {
            asks.says("no matches for kind \"Certificate\" in version \"cert-manager.io/v1\"");
            asks.wait(10);
        }
        assert!(asks.rules().is_empty(), "it only looks for it");
    }
}
