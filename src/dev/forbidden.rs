//! Rights that the kubeconfig's user lacks: each is told once, all that come together in one notice, with what does not work
//! without them. Trying again is the business of whoever was refused.

use crate::event::{Event, Level, Notice};
use crate::operator::watching::FORBIDDEN_HINT;
use crate::tap::EventSink;
use jiff::Timestamp;
use opdev_object::meta::Gvk;
use std::collections::BTreeSet;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// How long others may add to a notice.
const TOGETHER: Duration = Duration::from_millis(500);

/// Takes refusals. Clones tell the same.
#[derive(Clone)]
pub(super) struct Rights(mpsc::Sender<(Gvk, String)>);

impl Rights {
    /// Tells of refusals until `shutdown`. `namespaces` are the only ones that are watched; none means all.
    pub(super) fn telling(
        events: &EventSink,
        namespaces: Vec<String>,
        tasks: &TaskTracker,
        shutdown: &CancellationToken,
    ) -> Rights {
        let (sender, refused) = mpsc::channel(64);
        let tell = tell(events.clone(), namespaces, refused);
        tasks.spawn(shutdown.clone().run_until_cancelled_owned(tell));
        Rights(sender)
    }

    /// The user may not watch a kind; in the API server's words.
    pub(super) async fn lacks(&self, gvk: &Gvk, why: String) {
        // Nobody listens any more where opdev stops.
        let _ = self.0.send((gvk.clone(), why)).await;
    }
}

async fn tell(events: EventSink, namespaces: Vec<String>, mut refused: mpsc::Receiver<(Gvk, String)>) {
    let mut known: BTreeSet<(Gvk, String)> = BTreeSet::new();
    while let Some(first) = refused.recv().await {
        let mut new = vec![first];
        while let Ok(Some(more)) = tokio::time::timeout(TOGETHER, refused.recv()).await {
            new.push(more);
        }
        new.retain(|refusal| known.insert(refusal.clone()));
        if let Some(notice) = notice(&new, &namespaces) {
            events.emit(Event::Noticed(notice)).await;
        }
    }
}

fn notice(new: &[(Gvk, String)], namespaces: &[String]) -> Option<Notice> {
    if new.is_empty() {
        return None;
    }
    let mut kinds: Vec<String> = new.iter().map(|(gvk, _)| gvk.kind_group()).collect();
    kinds.sort();
    kinds.dedup();
    let place = match namespaces {
        [] => "in all namespaces".to_owned(),
        [name] => format!("in namespace {name}"),
        names => format!("in the namespaces {}", names.join(", ")),
    };
    let narrower = if namespaces.is_empty() {
        "; with -n NAMESPACE opdev asks for no more than one namespace"
    } else {
        ""
    };
    Some(Notice {
        at: Timestamp::now(),
        level: Level::Warn,
        message: format!(
            "missing rights: you may not list and watch {} {place}, so their objects are not shown; all else works",
            kinds.join(", ")
        ),
        hint: Some(format!("{FORBIDDEN_HINT}, at once with key R{narrower}")),
        object: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn each_right_is_told_once_and_those_that_come_together_in_one_notice() {
        let (events, mut seen) = EventSink::channel(16);
        let (tasks, shutdown) = (TaskTracker::new(), CancellationToken::new());
        let rights = Rights::telling(&events, vec!["dev".to_owned()], &tasks, &shutdown);
        let role = Gvk::new("rbac.authorization.k8s.io", "v1", "Role");
        for gvk in [&role, &Gvk::new("", "v1", "Pod"), &role] {
            rights.lacks(gvk, "forbidden".to_owned()).await;
        }
        let Some(Event::Noticed(notice)) = seen.recv().await else { panic!() };
        assert!(
            notice.message.contains("watch Pod, Role.rbac.authorization.k8s.io in namespace dev,"),
            "{notice:?}"
        );
        rights.lacks(&role, "forbidden".to_owned()).await;
        rights.lacks(&Gvk::new("batch", "v1", "Job"), "forbidden".to_owned()).await;
        let Some(Event::Noticed(notice)) = seen.recv().await else { panic!() };
        assert!(notice.message.contains("watch Job.batch in"), "{notice:?}");
        assert!(seen.try_recv().is_err());
    }
}
