//! The objects of a cluster that belong to custom resources of the project, directly or through others; all
//! others are unrelated objects, of which nothing but the key is kept. Shared by the watches of all kinds: a
//! Pod belongs to what its ReplicaSet belongs to. Pure but for its lock, which is never held while anything
//! waits.

use super::Watched;
use super::partial_object::PartialObject;
use opdev_object::meta::Gvk;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;

/// How many objects that are gone are remembered as ours.
const MOST_GONE: usize = 4_096;

/// How long a kind waits for the first list of those that own its objects. Without them each object that
/// belongs to the project would be asked for one by one.
const PATIENCE: Duration = Duration::from_secs(3);

/// The objects of all kinds together. Clones share them.
#[derive(Clone)]
pub(super) struct ProjectObjects(Arc<Shared>);

struct Shared {
    inner: Mutex<Inner>,
    /// Changes with what concerns other kinds' watches.
    changed: watch::Sender<u64>,
}

/// The lists of a kind that are missing.
#[derive(Clone, Debug)]
struct Unlisted {
    rank: u8,
    /// The namespaces whose list is not complete; `None` stands for all of them.
    namespaces: BTreeSet<Option<String>>,
}

#[derive(Default)]
struct Inner {
    /// The kinds of the project's custom resources.
    customs: Vec<Gvk>,
    /// Counts how often they changed: each time all objects are sorted anew.
    epoch: u64,
    /// Uids of objects that belong to the project.
    ours: HashSet<Box<str>>,
    /// The uids among `ours` that are gone, the newest last.
    gone: VecDeque<Box<str>>,
    /// Unrelated objects by the uid of an owner that belongs to nobody yet.
    waiting: HashMap<Box<str>, BTreeSet<(Arc<Gvk>, Watched)>>,
    /// Former unrelated objects, for the watch of their kind to read.
    adopted: BTreeMap<Arc<Gvk>, BTreeSet<Watched>>,
    /// Kinds whose list is not complete yet, by their rank; with the namespaces that are missing.
    unlisted: BTreeMap<Gvk, Unlisted>,
    /// True if there has been a custom resource.
    has_custom_resources: bool,
}

impl ProjectObjects {
    pub(super) fn new() -> ProjectObjects {
        ProjectObjects(Arc::new(Shared { inner: Mutex::default(), changed: watch::Sender::default() }))
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self) {
        self.0.changed.send_modify(|count| *count += 1);
    }

    /// Changes when something here may concern the watch of another kind.
    pub(super) fn changes(&self) -> watch::Receiver<u64> {
        self.0.changed.subscribe()
    }

    /// The kinds of the project's custom resources, and all that are watched, in these namespaces; none means
    /// all.
    pub(super) fn set_kinds(&self, customs: &[Gvk], watched: &BTreeSet<Gvk>, namespaces: &[String]) {
        let mut inner = self.lock();
        let known: BTreeSet<&Gvk> = inner.customs.iter().collect();
        if known != customs.iter().collect() {
            inner.epoch += 1;
            inner.customs = customs.to_vec();
            inner.ours.clear();
            inner.gone.clear();
            inner.waiting.clear();
            inner.adopted.clear();
            let namespaces: BTreeSet<Option<String>> = match namespaces {
                [] => [None].into(),
                some => some.iter().cloned().map(Some).collect(),
            };
            let unlisted = |gvk: &Gvk| Unlisted { rank: rank(gvk, customs), namespaces: namespaces.clone() };
            inner.unlisted = watched.iter().map(|gvk| (gvk.clone(), unlisted(gvk))).collect();
        }
        drop(inner);
        self.tell();
    }

    /// Counts how often the kinds of the project have changed.
    pub(super) fn epoch(&self) -> u64 {
        self.lock().epoch
    }

    /// Comes back once the kinds of the project are others than in this epoch.
    pub(super) async fn left_epoch(&self, epoch: u64) {
        let mut changes = self.changes();
        while self.epoch() == epoch {
            if changes.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    /// Returns true if a custom resource was seen: before that no object needs to be read whole.
    pub(super) fn has_custom_resources(&self) -> bool {
        self.lock().has_custom_resources
    }

    /// The list of a kind in a namespace, or in all of them, is complete, or will not come.
    pub(super) fn listed(&self, gvk: &Gvk, namespace: Option<&str>) {
        let mut inner = self.lock();
        let Some(unlisted) = inner.unlisted.get_mut(gvk) else { return };
        unlisted.namespaces.remove(&namespace.map(str::to_owned));
        if unlisted.namespaces.is_empty() {
            inner.unlisted.remove(gvk);
            drop(inner);
            self.tell();
        }
    }

    /// Waits until the kinds whose objects may own those of this one are listed, though not for long.
    pub(super) async fn owners_listed(&self, gvk: &Gvk) {
        let mut changes = self.changes();
        let waits = || {
            let inner = self.lock();
            let own = rank(gvk, &inner.customs);
            inner.unlisted.values().any(|unlisted| unlisted.rank < own)
        };
        let listed = async { while waits() && changes.changed().await.is_ok() {} };
        let _ = tokio::time::timeout(PATIENCE, listed).await;
    }

    /// Returns true if an object belongs to the project. Unrelated objects are remembered by their owners.
    pub(super) fn is_ours(&self, gvk: &Arc<Gvk>, watched: &Watched, partial_object: &PartialObject) -> bool {
        let mut inner = self.lock();
        let is_custom = |group: &str, kind: &str| {
            inner.customs.iter().any(|known| known.group == group && known.kind == kind)
        };
        let custom = is_custom(&gvk.group, &gvk.kind);
        let ours = custom
            || partial_object.belongs_to().any(|(group, kind)| is_custom(group, kind))
            || partial_object.owners().any(|uid| inner.ours.contains(uid));
        if !ours {
            if let Some(uid) = watched.uid.as_deref() {
                inner.ours.remove(uid);
            }
            for uid in partial_object.owners() {
                // Most owners have some.
                let waiting = match inner.waiting.get_mut(uid) {
                    Some(waiting) => waiting,
                    None => inner.waiting.entry(uid.into()).or_default(),
                };
                let entry = (Arc::clone(gvk), watched.clone());
                waiting.insert(entry);
            }
            return false;
        }
        let first = custom && !inner.has_custom_resources;
        inner.has_custom_resources |= custom;
        let adopted = watched.uid.as_deref().is_some_and(|uid| inner.adopt(uid));
        drop(inner);
        if first || adopted {
            self.tell();
        }
        true
    }

    /// An object is gone; `owners` are those it was remembered by.
    pub(super) fn gone(&self, gvk: &Arc<Gvk>, watched: &Watched, owners: &[Box<str>]) {
        let mut inner = self.lock();
        if let Some(uid) = watched.uid.as_deref() {
            inner.waiting.remove(uid);
            // Its children may take a while to go, and are ours until then.
            if inner.ours.contains(uid) {
                inner.gone.push_back(uid.into());
            }
            if inner.gone.len() > MOST_GONE
                && let Some(oldest) = inner.gone.pop_front()
            {
                inner.ours.remove(&oldest);
            }
        }
        let entry = (Arc::clone(gvk), watched.clone());
        for owner in owners {
            if let Some(waiting) = inner.waiting.get_mut(owner) {
                waiting.remove(&entry);
                if waiting.is_empty() {
                    inner.waiting.remove(owner);
                }
            }
        }
    }

    /// Former unrelated objects of a kind, of one namespace or of all.
    pub(super) fn take_adopted(&self, gvk: &Arc<Gvk>, namespace: Option<&str>) -> BTreeSet<Watched> {
        let mut inner = self.lock();
        let Some(adopted) = inner.adopted.get_mut(gvk) else { return BTreeSet::new() };
        let inside = |watched: &Watched| {
            namespace.is_none() || watched.namespace.is_none() || watched.namespace.as_deref() == namespace
        };
        let (taken, left) = std::mem::take(adopted).into_iter().partition(inside);
        match left {
            left if BTreeSet::is_empty(&left) => drop(inner.adopted.remove(gvk)),
            left => *adopted = left,
        }
        taken
    }
}

impl Inner {
    /// An object is ours from now on; whether unrelated objects become ours with it.
    fn adopt(&mut self, uid: &str) -> bool {
        if !self.ours.insert(uid.into()) {
            return false;
        }
        let Some(children) = self.waiting.remove(uid) else { return false };
        for (gvk, watched) in children {
            self.adopted.entry(gvk).or_default().insert(watched);
        }
        true
    }
}

/// The order in which kinds are listed: owners come before what they own.
fn rank(gvk: &Gvk, customs: &[Gvk]) -> u8 {
    let custom = customs.iter().any(|known| known.group_kind() == gvk.group_kind());
    match (gvk.group.as_str(), gvk.kind.as_str()) {
        _ if custom => 0,
        ("apps", "ReplicaSet") | ("batch", "Job") => 2,
        ("", "Pod" | "PersistentVolumeClaim") => 3,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn gvk(group: &str, kind: &str) -> Arc<Gvk> {
        Arc::new(Gvk::new(group, "v1", kind))
    }

    fn watched(name: &str) -> Watched {
        Watched { namespace: Some("n".to_owned()), name: name.to_owned(), uid: Some(format!("uid-{name}")) }
    }

    fn owned(owner: &str, api: &str, kind: &str) -> PartialObject {
        let reference =
            json!({"apiVersion": api, "kind": kind, "name": owner, "uid": format!("uid-{owner}")});
        serde_json::from_value(json!({"metadata": {"ownerReferences": [reference]}})).unwrap()
    }

    fn project_objects() -> ProjectObjects {
        let project_objects = ProjectObjects::new();
        let custom = Gvk::new("my.domain", "v1", "Web");
        let all = [&custom, &gvk("apps", "Deployment"), &gvk("apps", "ReplicaSet"), &gvk("", "Pod")];
        project_objects.set_kinds(std::slice::from_ref(&custom), &all.into_iter().cloned().collect(), &[]);
        project_objects
    }

    #[test]
    fn what_a_custom_resource_owns_is_ours_through_all_levels_in_any_order() {
        let project_objects = project_objects();
        let (pods, sets, deployments) =
            (gvk("", "Pod"), gvk("apps", "ReplicaSet"), gvk("apps", "Deployment"));
        // The newest object is told first.
        assert!(!project_objects.is_ours(&pods, &watched("pod"), &owned("set", "apps/v1", "ReplicaSet")));
        assert!(!project_objects.is_ours(
            &sets,
            &watched("set"),
            &owned("deployment", "apps/v1", "Deployment")
        ));
        assert!(!project_objects.is_ours(
            &pods,
            &watched("other"),
            &owned("nobody", "apps/v1", "ReplicaSet")
        ));
        assert!(!project_objects.has_custom_resources());
        assert!(project_objects.is_ours(
            &deployments,
            &watched("deployment"),
            &owned("web", "my.domain/v2", "Web")
        ));
        assert_eq!(
            project_objects.take_adopted(&sets, None).into_iter().collect::<Vec<_>>(),
            [watched("set")]
        );
        // Read whole, it is judged again.
        assert!(project_objects.is_ours(
            &sets,
            &watched("set"),
            &owned("deployment", "apps/v1", "Deployment")
        ));
        assert_eq!(
            project_objects.take_adopted(&pods, None).into_iter().collect::<Vec<_>>(),
            [watched("pod")]
        );
        assert!(project_objects.take_adopted(&pods, None).is_empty(), "told once");
        assert!(project_objects.is_ours(
            &gvk("my.domain", "Web"),
            &watched("web"),
            &PartialObject::default()
        ));
        assert!(project_objects.has_custom_resources());
    }

    #[test]
    fn what_is_gone_is_not_waited_for() {
        let project_objects = project_objects();
        let (pods, sets) = (gvk("", "Pod"), gvk("apps", "ReplicaSet"));
        assert!(!project_objects.is_ours(&pods, &watched("pod"), &owned("set", "apps/v1", "ReplicaSet")));
        project_objects.gone(&pods, &watched("pod"), &["uid-set".into()]);
        assert!(project_objects.lock().waiting.is_empty());
        assert!(project_objects.is_ours(&sets, &watched("set"), &owned("web", "my.domain/v1", "Web")));
        assert!(project_objects.take_adopted(&pods, None).is_empty());
        project_objects.gone(&sets, &watched("set"), &[]);
        assert!(
            project_objects.is_ours(&pods, &watched("pod"), &owned("set", "apps/v1", "ReplicaSet")),
            "a pod in its grace is ours, although its owner is gone"
        );
        for at in 0..MOST_GONE {
            let later = watched(&format!("later-{at}"));
            assert!(project_objects.is_ours(&sets, &later, &owned("web", "my.domain/v1", "Web")));
            project_objects.gone(&sets, &later, &[]);
        }
        assert_eq!(project_objects.lock().gone.len(), MOST_GONE, "the oldest ones are forgotten");
        assert!(!project_objects.lock().ours.contains("uid-set"));
        let before = project_objects.epoch();
        project_objects.set_kinds(&[], &BTreeSet::new(), &[]);
        assert_eq!(project_objects.epoch(), before + 1);
    }
}
