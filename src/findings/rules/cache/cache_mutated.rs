//! An object of a cache that the program changes in place.

use crate::rule::{Ends, Guessed, InTorture, Rule, Told};
use jiff::{SignedDuration, Timestamp};
use opdev_event::FindingSeverity::Error;
use opdev_event::{ProcessChanged, ProcessState};
use opdev_object::meta::{Gvk, ObjectRef};

pub(crate) static RULE: Rule = Rule {
    id: "cache-mutated",
    severity: Error,
    name: "object of a cache is changed",
    what: "The program changes an object that belongs to an informer's cache. All other readers of this cache see a state \
           that the API server never had, and two goroutines may write at once. Nothing is wrong until it is.",
    when: "client-go's own detector ends the program. opdev ci turns the detector on; elsewhere it is \
           KUBE_CACHE_MUTATION_DETECTOR: \"true\" under operator.env in opdev.yaml.",
    never: "copies: what controller-runtime's client returns is one, unless a copy was turned off.",
    fix: "DeepCopy what comes from a lister, an event handler, a predicate or a map function, or from a client with \
          UnsafeDisableDeepCopy. Change the copy.",
    ends: Ends::Fixed,
    explains: &[],
    guessed: Guessed::Told,
    torture: InTorture::Always,
    judge: None,
    absent: None,
};

/// The detector looks each second: whatever a reconcile has changed is found in this time.
pub(crate) const LOOKED_AT: SignedDuration = SignedDuration::from_millis(1_200);
/// A program that was saved and ran for so long does not change its cache any more.
pub(crate) const FIXED: SignedDuration = SignedDuration::from_secs(30);

/// The program has ended: told if its last words are the detector's.
pub(crate) fn told(run: &ProcessChanged) -> Option<Told> {
    let (ProcessState::Restarting { exit, .. }
    | ProcessState::Failed { exit }
    | ProcessState::Ended { exit }) = &run.state
    else {
        return None;
    };
    let go_type = modified(exit.message.as_deref()?)?;
    Some(of_type(go_type, run.at))
}

/// The Go type, such as `*v1.ConfigMap`, in `panic: cache *v1.ConfigMap modified`.
fn modified(message: &str) -> Option<&str> {
    let rest = message.strip_prefix("panic: ")?.strip_prefix("cache ")?;
    let go_type = rest.lines().next()?.trim_end().strip_suffix(" modified")?;
    (!go_type.contains(' ')).then_some(go_type)
}

fn of_type(go_type: &str, at: Timestamp) -> Told {
    let kind = go_type.rsplit(['.', '*']).next().unwrap_or(go_type);
    // Nothing says which object of the kind it was.
    let object = ObjectRef {
        gvk: Gvk::new("", "", kind),
        namespace: None,
        name: "in the cache".to_owned(),
        uid: None,
    };
    let why = format!(
        "the program has changed an object of its cache of {go_type}. client-go's detector has ended it; what \
         differs stands in the program's output, after CACHE {go_type}"
    );
    Told::new(&RULE, &object, at, 0).say(kind, why)
}

#[cfg(test)]
mod tests {
    use super::modified;
    use crate::tests::*;

    #[test]
    fn a_change_in_place_is_told_until_a_saved_program_runs_without_it() {
        let mut world = World::new();
        world.ends(Some("panic: cache *v1.ConfigMap modified"));
        assert_eq!(world.rules(), [("cache-mutated".to_owned(), FindingSeverity::Error)]);
        assert_eq!(world.opened()[0].object.to_string(), "ConfigMap in the cache");
        // Without a save nothing has changed, however long it runs.
        world.restart(&[]);
        world.wait(60);
        assert!(world.closed().is_empty());
        world.restart(&["controller.go"]);
        world.wait(20);
        assert!(world.closed().is_empty());
        world.wait(20);
        let closed = world.closed();
        assert!(closed[0].1.starts_with("fixed by your save of controller.go"), "{closed:?}");
    }

    #[test]
    fn a_save_that_does_not_help_closes_nothing() {
        let mut world = World::new();
        world.ends(Some("panic: cache *v1.ConfigMap modified"));
        world.restart(&["controller.go"]);
        world.wait(5);
        world.ends(Some("panic: cache *v1.ConfigMap modified"));
        world.wait(60);
        assert!(world.closed().is_empty());
        assert_eq!(world.opened().len(), 1);
    }

    #[test]
    fn other_panics_are_not_this() {
        assert_eq!(
            modified("panic: cache *unstructured.Unstructured modified"),
            Some("*unstructured.Unstructured")
        );
        assert_eq!(modified("panic: cache of the user modified"), None);
        assert_eq!(modified("panic: runtime error: index out of range"), None);
        let mut world = World::new();
        world.ends(Some("panic: boom"));
        assert!(world.rules().is_empty());
    }
}
