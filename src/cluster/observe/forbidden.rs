//! Rights that the kubeconfig's user lacks: each is told once, all that come together in one notice, with
//! what does not work without them. Trying again is the business of whoever was refused.

use jiff::Timestamp;
use opdev_client::watch::FORBIDDEN_HINT;
use opdev_event::sink::EventSink;
use opdev_event::{Event, Level, Notice};
use opdev_object::meta::Gvk;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// How long others may add to a notice.
const TOGETHER: Duration = Duration::from_millis(500);

/// Where a kind may not be watched.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Place {
    /// In all namespaces: no single one was asked for.
    Everywhere,
    /// The kind lives in no namespace.
    Cluster,
    /// In this namespace.
    Namespace(String),
}

/// A kind that may not be watched.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Refusal {
    gvk: Gvk,
    place: Place,
    /// The API server's words.
    why: String,
}

/// Takes refusals. Clones tell the same.
#[derive(Clone)]
pub(crate) struct Rights(mpsc::Sender<Refusal>);

impl Rights {
    /// Tells of refusals until `shutdown`.
    pub(crate) fn telling(events: &EventSink, tasks: &TaskTracker, shutdown: &CancellationToken) -> Rights {
        let (sender, refused) = mpsc::channel(64);
        tasks.spawn(shutdown.clone().run_until_cancelled_owned(tell(events.clone(), refused)));
        Rights(sender)
    }

    /// The user may not watch a kind; in the API server's words.
    pub(crate) async fn lacks(&self, gvk: &Gvk, place: Place, why: String) {
        // Nobody listens any more where opdev stops.
        let _ = self.0.send(Refusal { gvk: gvk.clone(), place, why }).await;
    }
}

async fn tell(events: EventSink, mut refused: mpsc::Receiver<Refusal>) {
    let mut known: BTreeSet<Refusal> = BTreeSet::new();
    while let Some(first) = refused.recv().await {
        let mut new = vec![first];
        while let Ok(Some(more)) = tokio::time::timeout(TOGETHER, refused.recv()).await {
            new.push(more);
        }
        new.retain(|refusal| known.insert(refusal.clone()));
        if let Some(notice) = notice(&new) {
            events.emit(Event::Noticed(notice)).await;
        }
    }
}

fn notice(new: &[Refusal]) -> Option<Notice> {
    if new.is_empty() {
        return None;
    }
    let mut places: BTreeMap<String, BTreeSet<&Place>> = BTreeMap::new();
    for refusal in new {
        places.entry(refusal.gvk.kind_group()).or_default().insert(&refusal.place);
    }
    // Kinds that are refused in the same places stand together.
    let mut kinds: BTreeMap<BTreeSet<&Place>, Vec<String>> = BTreeMap::new();
    for (kind, places) in places {
        kinds.entry(places).or_default().push(kind);
    }
    let refused: Vec<String> =
        kinds.iter().map(|(places, kinds)| format!("{} {}", kinds.join(", "), words(places))).collect();
    let everywhere = new.iter().any(|refusal| refusal.place == Place::Everywhere);
    let narrower =
        if everywhere { "; with -n NAMESPACE opdev asks for no more than one namespace" } else { "" };
    Some(Notice {
        at: Timestamp::now(),
        level: Level::Warn,
        message: format!(
            "missing rights: you may not list and watch {}, so their objects are not shown; all else works",
            refused.join(", and ")
        ),
        hint: Some(format!("{FORBIDDEN_HINT}, at once with key R{narrower}")),
        object: None,
    })
}

fn words(places: &BTreeSet<&Place>) -> String {
    let mut names = Vec::new();
    for place in places {
        match place {
            Place::Everywhere => return "in all namespaces".to_owned(),
            Place::Cluster => return "in the cluster".to_owned(),
            Place::Namespace(name) => names.push(name.as_str()),
        }
    }
    match names.as_slice() {
        [name] => format!("in namespace {name}"),
        names => format!("in the namespaces {}", names.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    #[tokio::test]
    async fn each_right_is_told_once_and_those_that_come_together_in_one_notice() {
        let (events, mut seen) = EventSink::channel(16);
        let (tasks, shutdown) = (TaskTracker::new(), CancellationToken::new());
        let rights = Rights::telling(&events, &tasks, &shutdown);
        let role = Gvk::new("rbac.authorization.k8s.io", "v1", "Role");
        let dev = || Place::Namespace("dev".to_owned());
        for gvk in [&role, &Gvk::new("", "v1", "Pod"), &role] {
            rights.lacks(gvk, dev(), "forbidden".to_owned()).await;
        }
        let Some(Event::Noticed(notice)) = seen.recv().await else { panic!() };
        expect!["missing rights: you may not list and watch Pod, Role.rbac.authorization.k8s.io in namespace dev, so their objects are not shown; all else works"]
        .assert_eq(&notice.message);
        rights.lacks(&role, dev(), "forbidden".to_owned()).await;
        rights.lacks(&Gvk::new("batch", "v1", "Job"), dev(), "forbidden".to_owned()).await;
        let Some(Event::Noticed(notice)) = seen.recv().await else { panic!() };
        expect!["missing rights: you may not list and watch Job.batch in namespace dev, so their objects are not shown; all else works"]
        .assert_eq(&notice.message);
        assert!(seen.try_recv().is_err());
    }

    #[test]
    fn a_notice_names_the_namespaces_that_are_refused_and_no_other() {
        let refusal = |kind: &str, place: Place| {
            let (gvk, why) = (Gvk::new("", "v1", kind), "forbidden".to_owned());
            Refusal { gvk, place, why }
        };
        let within = |name: &str| Place::Namespace(name.to_owned());
        let told = |new: &[Refusal]| notice(new).unwrap();
        let one = told(&[refusal("Pod", within("b"))]);
        expect!["missing rights: you may not list and watch Pod in namespace b, so their objects are not shown; all else works"]
        .assert_eq(&one.message);
        assert!(!one.hint.unwrap().contains("with -n NAMESPACE"));
        let mixed = [
            refusal("Pod", within("b")),
            refusal("Secret", within("a")),
            refusal("Secret", within("b")),
            refusal("Node", Place::Cluster),
        ];
        let mixed = told(&mixed);
        let expected =
            "watch Node in the cluster, and Secret in the namespaces a, b, and Pod in namespace b, so";
        assert!(mixed.message.contains(expected), "{mixed:?}");
        let all = told(&[refusal("Pod", Place::Everywhere)]);
        expect!["missing rights: you may not list and watch Pod in all namespaces, so their objects are not shown; all else works"]
        .assert_eq(&all.message);
        expect!["`opdev rbac --for USER -n NAMESPACE` writes what an administrator can give you; opdev asks again by itself, after 5 minutes at the latest, at once with key R; with -n NAMESPACE opdev asks for no more than one namespace"]
        .assert_eq(&all.hint.unwrap());
        assert!(notice(&[]).is_none());
    }
}
