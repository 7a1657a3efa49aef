//! The view of a controller: objects by resource, namespace and name, always the newest state. Never writes.
//! The registry implements [`View`]; tests implement it in memory.

use crate::attributes::{Attributes, Lookup};
use opdev_object::meta;
use serde_json::Value;
use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

/// One served resource, named as in `apps/deployments` (the core group has no prefix: `pods`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResourceInfo {
    /// `group/plural`, or just `plural` for the core group.
    pub resource: String,
    /// API group, empty for the core group.
    pub group: String,
    /// Preferred version.
    pub version: String,
    /// Kind of its objects.
    pub kind: String,
    /// True if objects live in namespaces.
    pub namespaced: bool,
    /// True if it can be listed and deleted (reviews and the like cannot).
    pub deletable: bool,
}

/// Reads of the newest state.
pub trait View {
    /// One object; `namespace` is `None` for cluster-scoped resources.
    fn get(&self, resource: &str, namespace: Option<&str>, name: &str) -> Option<Arc<Value>>;

    /// All objects of a resource, of one namespace or of all, sorted by namespace and name.
    fn list(&self, resource: &str, namespace: Option<&str>) -> Vec<Arc<Value>>;

    /// The objects of a resource that are wanted for their attributes; the others are not read. `among` says
    /// which are asked about; a view may ask about more.
    fn select(
        &self,
        resource: &str,
        namespace: Option<&str>,
        among: &Lookup<'_>,
        wanted: &dyn Fn(&Attributes) -> bool,
    ) -> Vec<Arc<Value>>;

    /// The keys of the same objects: none of them is read.
    fn select_keys(
        &self,
        resource: &str,
        namespace: Option<&str>,
        among: &Lookup<'_>,
        wanted: &dyn Fn(&Attributes) -> bool,
    ) -> Vec<Key> {
        let found = self.select(resource, namespace, among, wanted);
        found.iter().map(|object| Key::of_object(resource, object)).collect()
    }

    /// Looks at what is known of each object of a resource without reading it. `among` says which; a view may
    /// show more.
    fn each(
        &self,
        resource: &str,
        namespace: Option<&str>,
        among: &Lookup<'_>,
        look: &mut dyn FnMut(&Attributes),
    );

    /// The attributes of one object, without reading it.
    fn attributes(&self, resource: &str, namespace: Option<&str>, name: &str) -> Option<Attributes>;

    /// Every served resource, custom ones included.
    fn resources(&self) -> Vec<ResourceInfo>;

    /// The resource that serves a kind of a group.
    fn resource_of(&self, group: &str, kind: &str) -> Option<ResourceInfo> {
        self.resources().into_iter().find(|info| info.group == group && info.kind == kind)
    }

    /// `GET NAME/scale` of an object; `None` where its kind has none.
    fn scale(&self, resource: &str, object: &Value) -> Option<Value>;

    /// Objects with an owner reference to this uid, each with its resource. The runner answers from an index.
    fn dependents(&self, uid: &str) -> Vec<(String, Arc<Value>)> {
        let mut found = Vec::new();
        for info in self.resources() {
            for object in self.list(&info.resource, None) {
                if meta::owner_references(&object).iter().any(|owner| owner.uid == uid) {
                    found.push((info.resource.clone(), object));
                }
            }
        }
        found
    }

    /// Keys of the dependents; their objects are not read.
    fn dependent_keys(&self, uid: &str) -> Vec<Key> {
        self.dependents(uid).iter().map(|(resource, object)| Key::of_object(resource, object)).collect()
    }

    /// Returns true if an object of this uid was seen to go. The runner remembers the latest of them, so that
    /// owners are known to be gone even when their kind went with them.
    fn has_gone(&self, uid: &str) -> bool {
        let _ = uid;
        false
    }
}

/// The unit of work of a controller: one object of one resource.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    /// Resource as in [`ResourceInfo::resource`].
    pub resource: String,
    /// Namespace; `None` for cluster-scoped objects.
    pub namespace: Option<String>,
    /// Name.
    pub name: String,
}

impl Key {
    /// Key of an object of a resource.
    pub fn of_object(resource: &str, object: &Value) -> Self {
        Key {
            resource: resource.to_owned(),
            namespace: meta::namespace(object).map(str::to_owned),
            name: meta::name(object).unwrap_or_default().to_owned(),
        }
    }

    /// Key from its parts.
    pub fn new(resource: &str, namespace: Option<&str>, name: &str) -> Self {
        Key { resource: resource.to_owned(), namespace: namespace.map(str::to_owned), name: name.to_owned() }
    }

    /// The object itself, where it exists.
    pub fn read(&self, view: &dyn View) -> Option<Arc<Value>> {
        view.get(&self.resource, self.namespace.as_deref(), &self.name)
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(f, "{} {namespace}/{}", self.resource, self.name),
            None => write!(f, "{} {}", self.resource, self.name),
        }
    }
}

/// One state of an object, of which a few things are known without reading it.
pub trait Readable: fmt::Debug + Send + Sync {
    /// Its namespace, `""` for cluster-scoped objects, and its name.
    fn place(&self) -> (&str, &str);

    /// Its attributes, without reading it.
    fn attributes(&self) -> &Attributes;

    /// Reads it.
    fn tree(&self) -> Arc<Value>;
}

/// One state of an object in a change. It is read when a controller looks into it: most changes concern no
/// controller.
#[derive(Clone, Debug)]
pub struct Observed {
    object: Arc<dyn Readable>,
    tree: OnceLock<Arc<Value>>,
}

impl Observed {
    /// A state that is not read yet.
    pub fn new(object: Arc<dyn Readable>) -> Self {
        Observed { object, tree: OnceLock::new() }
    }

    /// `metadata.namespace`; `None` for cluster-scoped objects.
    pub fn namespace(&self) -> Option<&str> {
        Some(self.object.place().0).filter(|namespace| !namespace.is_empty())
    }

    /// `metadata.name`.
    pub fn name(&self) -> &str {
        self.object.place().1
    }

    /// Its attributes, without reading it.
    pub fn attributes(&self) -> &Attributes {
        self.object.attributes()
    }
}

impl Deref for Observed {
    type Target = Value;

    fn deref(&self) -> &Value {
        self.tree.get_or_init(|| self.object.tree())
    }
}

/// One change of the store.
#[derive(Clone, Debug)]
pub struct Change {
    /// Resource as in [`ResourceInfo::resource`].
    pub resource: String,
    /// The object before; `None` when it was created.
    pub before: Option<Observed>,
    /// The object after; `None` when it was deleted.
    pub after: Option<Observed>,
}

impl Change {
    /// The newest state known, also of a deleted object.
    pub fn object(&self) -> Option<&Observed> {
        self.after.as_ref().or(self.before.as_ref())
    }

    /// Key of the object that changed.
    pub fn key(&self) -> Option<Key> {
        self.object().map(|object| Key::new(&self.resource, object.namespace(), object.name()))
    }

    /// Returns true if the object is gone.
    pub fn gone(&self) -> bool {
        self.after.is_none()
    }
}
