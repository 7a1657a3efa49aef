//! The words for an operator that does not come to rest: what changes again and again, who reconciles why,
//! and what is called without any change. Pure, but for the clock that the caller reads.

use opdev_controlplane::storage::{Change, ChangeKind};
use opdev_event::mask;
use opdev_object::diff::diff;
use opdev_program::heard::under_way::{Begun, LATELY, Lately};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Words of every trouble of an operator that goes on for ever; what follows may differ from run to run.
pub(super) const RESTLESS: &str = "does not come to rest";
/// Fields and causes that are named at most.
const NAMED: usize = 3;
/// Characters of a value that are shown.
const SHOWN: usize = 40;

/// A field of an object that changed, with its values.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Moved {
    /// The object, as differences name it.
    object: String,
    /// The field; empty where the object came or went.
    path: String,
    /// The change in words.
    words: String,
}

impl Moved {
    /// The fields that a change has touched; those that each write touches are left out.
    pub(super) fn of(change: &Change) -> Vec<Moved> {
        let after = change.object.glance();
        let object = opdev_normal::id(&after);
        let whole = |words: &str| {
            vec![Moved { object: object.clone(), path: String::new(), words: words.to_owned() }]
        };
        let Some(before) = &change.previous else { return whole("is made") };
        if change.kind == ChangeKind::Deleted {
            return whole("goes");
        }
        let fields = diff(&before.glance(), &after).into_iter().filter_map(|one| {
            let path = one.path.to_string();
            let each = path.starts_with(".metadata.managedFields")
                || matches!(path.as_str(), ".metadata.resourceVersion" | ".metadata.generation");
            let words = if after["kind"] == "Secret" || mask::is_secret_path(&path) {
                "another secret value".to_owned()
            } else {
                format!("{} → {}", shown(one.old.as_ref()), shown(one.new.as_ref()))
            };
            (!each).then(|| Moved { object: object.clone(), path, words })
        });
        fields.collect()
    }
}

fn shown(value: Option<&Value>) -> String {
    let Some(value) = value else { return "none".to_owned() };
    let text = value.to_string();
    match text.char_indices().nth(SHOWN) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text,
    }
}

/// A call of the operator and its answer, such as `create pods/web-0/exec` and 404.
pub(super) type Called = (String, u16);

/// All that is known about what goes on.
pub(super) struct Restless<'a> {
    pub(super) now: Instant,
    pub(super) changes: &'a Lately<Arc<Change>>,
    pub(super) called: &'a Lately<Called>,
    /// Places in the operator's code that wrote objects, by the object.
    pub(super) places: HashMap<String, String>,
    /// Nothing for a program that does not tell.
    pub(super) begun: Option<&'a Lately<Begun>>,
    /// Reconciles that are under way, with how long.
    pub(super) open: Vec<(String, Duration)>,
}

impl Restless<'_> {
    /// The reasons, the most telling first.
    pub(super) fn words(&self) -> String {
        let mut parts: Vec<String> = Vec::new();
        parts.extend(self.fields());
        parts.extend(self.reconciles());
        parts.extend(self.longest());
        if parts.is_empty() {
            parts.extend(self.calls());
        }
        if parts.is_empty() {
            parts.push("controllers of the cluster are still at work".to_owned());
        }
        parts.join("; ")
    }

    /// Fields that changed more than once, or objects that came and went.
    fn fields(&self) -> Option<String> {
        let mut counts: BTreeMap<(String, String), (usize, String)> = BTreeMap::new();
        for moved in self.changes.newest(self.now).flat_map(|change| Moved::of(change)) {
            counts.entry((moved.object, moved.path)).or_insert((0, moved.words)).0 += 1;
        }
        let most = counts.values().map(|(count, _)| *count).max().filter(|count| *count > 1)?;
        let object = counts.iter().find(|(_, (count, _))| *count == most).map(|((object, _), _)| object)?;
        let of = counts.iter().filter(|((one, _), (count, _))| one == object && *count > 1);
        let fields: Vec<String> = of
            .take(NAMED)
            .map(|((_, path), (_, words))| format!("{path} {words}").trim().to_owned())
            .collect();
        let place = self.places.get(object).map(|place| format!(", written at {place}")).unwrap_or_default();
        Some(format!(
            "{object} changes {} in {} s{place}: {}",
            often(most),
            LATELY.as_secs(),
            fields.join(", ")
        ))
    }

    /// The object that is reconciled most.
    fn reconciles(&self) -> Option<String> {
        let mut counts: BTreeMap<&str, (usize, BTreeSet<&str>)> = BTreeMap::new();
        for begun in self.begun?.newest(self.now) {
            let (count, causes) = counts.entry(&begun.of).or_default();
            *count += 1;
            if causes.len() < NAMED {
                causes.extend(begun.causes.iter().map(String::as_str));
            }
        }
        let (of, (count, causes)) = counts.into_iter().max_by_key(|(_, (count, _))| *count)?;
        let causes: Vec<&str> = causes.into_iter().take(NAMED).collect();
        let why =
            if causes.is_empty() { String::new() } else { format!(", because of: {}", causes.join(", ")) };
        (count > 1).then(|| format!("{of} reconciles {}{why}", often(count)))
    }

    /// The reconcile that has been under way for longest.
    fn longest(&self) -> Option<String> {
        let (of, took) = self.open.iter().max_by_key(|(_, took)| *took)?;
        (*took >= Duration::from_secs(1))
            .then(|| format!("the reconcile of {of} has been under way for {} s", took.as_secs()))
    }

    /// The call that is made most, failed ones first.
    fn calls(&self) -> Option<String> {
        let mut counts: BTreeMap<&Called, usize> = BTreeMap::new();
        for called in self.called.newest(self.now) {
            *counts.entry(called).or_default() += 1;
        }
        let failed = |called: &Called| called.1 >= 400;
        let ((call, status), count) =
            counts.into_iter().max_by_key(|(called, count)| (failed(called), *count))?;
        let answer = if *status >= 400 { format!(", answered with {status}") } else { String::new() };
        Some(format!("{call} is called {} without any change{answer}", often(count)))
    }
}

fn often(count: usize) -> String {
    match count {
        1 => "once".to_owned(),
        2 => "twice".to_owned(),
        more => format!("{more} times"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use opdev_facts::record::{Begin, TraceCause, TraceObject, Why};

    fn begin(why: Why, error: &str) -> Begin {
        let object = TraceObject {
            kind: "ConfigMap".into(),
            namespace: "x".into(),
            name: "a".into(),
            ..TraceObject::default()
        };
        let cause = TraceCause {
            why,
            event: "update".to_owned(),
            object: (why == Why::Event).then_some(object),
            error: error.to_owned(),
            ..TraceCause::default()
        };
        Begin { causes: vec![cause], ..Begin::default() }
    }

    fn restless<'a>(
        (changes, called): (&'a Lately<Arc<Change>>, &'a Lately<Called>),
        begun: Option<&'a Lately<Begun>>,
        open: Vec<(String, Duration)>,
    ) -> String {
        Restless { now: Instant::now(), changes, called, places: HashMap::new(), begun, open }.words()
    }

    #[test]
    fn who_reconciles_again_and_again_is_named_with_the_last_causes() {
        let (changes, called, mut begun) = (Lately::default(), Lately::default(), Lately::default());
        for _ in 0..3 {
            begun.note(Instant::now(), Begun::new("x/web by web", &begin(Why::Event, "")));
        }
        begun.note(Instant::now(), Begun::new("x/web by web", &begin(Why::Retry, "no luck\nat all")));
        begun.note(Instant::now(), Begun::new("x/other by web", &begin(Why::Event, "")));
        let told = restless(
            (&changes, &called),
            Some(&begun),
            vec![("x/slow by web".into(), Duration::from_secs(9))],
        );
        assert_eq!(
            told,
            "x/web by web reconciles 4 times, because of: another try after no luck, update of ConfigMap x/a; the reconcile \
             of x/slow by web has been under way for 9 s"
        );
    }

    #[test]
    fn a_call_that_fails_for_ever_is_named_where_nothing_changes() {
        let (changes, mut called) = (Lately::default(), Lately::default());
        for _ in 0..5 {
            called.note(Instant::now(), ("get pods/x/web-0".to_owned(), 200));
        }
        called.note(Instant::now(), ("create pods/x/web-0/exec".to_owned(), 501));
        called.note(Instant::now(), ("create pods/x/web-0/exec".to_owned(), 501));
        assert_eq!(
            restless((&changes, &called), None, Vec::new()),
            "create pods/x/web-0/exec is called twice without any change, answered with 501"
        );
    }
}
