//! The plan for all objects: what reconciles with the project's files as they are would do. Writes nothing,
//! neither to the cluster nor into the project. Starts no operator: `operator::foresee` tries each object.

use anyhow::{Context as _, Result, bail};
use opdev_cluster::data_folder::running;
use opdev_cluster::owner::Owner;
use opdev_cluster::{Choice, Connection};
use opdev_controlplane::Controllers;
use opdev_event::words;
use opdev_event::{Diagnostic, Plan, Protection, Skipped};
use opdev_object::meta::{Gvk, ObjectRef};
use opdev_os::lock::Lock;
use opdev_os::private_folder::{PrivateFolder, STATE};
use opdev_os::state_path::state_path;
use opdev_project::Project;
use opdev_project::load::read_once;
use opdev_project::trust::Trust;
use opdev_reconcile::plan_all::foresee;
use opdev_release::settings::Settings;
use opdev_sources::Sources;
use std::path::Path;
use std::str::FromStr;

/// The input of a plan.
pub struct PlanInput {
    /// The project.
    pub project: Project,
    /// The permissions that the user gives the project.
    pub trust: Trust,
    /// The cluster.
    pub cluster: Choice,
    /// How the operator would run; namespace and read-only are filled in here.
    pub operator: Settings,
    /// True if objects of all namespaces are looked at; `None` leaves it to the cluster's kind.
    pub all_namespaces: Option<bool>,
    /// The objects; empty means all.
    pub objects: Vec<Selector>,
    /// True if the API server is asked for no dry run.
    pub offline: bool,
}

/// Objects as the command line names them: `KIND`, `KIND/NAME` or `KIND/NAMESPACE/NAME`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selector {
    kind: String,
    namespace: Option<String>,
    name: Option<String>,
}

/// A text that names no objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SelectorError(String);

impl std::fmt::Display for SelectorError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: expected KIND, KIND/NAME or KIND/NAMESPACE/NAME", self.0)
    }
}

impl std::error::Error for SelectorError {}

impl FromStr for Selector {
    type Err = SelectorError;

    fn from_str(text: &str) -> Result<Self, SelectorError> {
        let parts: Vec<&str> = text.split('/').collect();
        let wrong = || SelectorError(text.to_owned());
        if parts.iter().any(|part| part.is_empty()) {
            return Err(wrong());
        }
        let own = |text: &str| Some(text.to_owned());
        let (kind, namespace, name) = match parts.as_slice() {
            [kind] => (kind, None, None),
            [kind, name] => (kind, None, own(name)),
            [kind, namespace, name] => (kind, own(namespace), own(name)),
            _ => return Err(wrong()),
        };
        Ok(Selector { kind: (*kind).to_owned(), namespace, name })
    }
}

impl std::fmt::Display for Selector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.kind)?;
        let parts = self.namespace.iter().chain(&self.name);
        parts.into_iter().try_for_each(|part| write!(f, "/{part}"))
    }
}

impl Selector {
    fn takes(&self, object: &ObjectRef) -> bool {
        self.kind.eq_ignore_ascii_case(&object.gvk.kind)
            && self.name.as_ref().is_none_or(|name| *name == object.name)
            && self.namespace.as_ref().is_none_or(|own| Some(own) == object.namespace.as_ref())
    }
}

/// Plans. The objects of an embedded control plane are copied into the folder `copies`, which must be empty.
///
/// # Errors
/// Where the project cannot be read, no API server can be reached, or an object that is named is not there.
pub async fn plan(input: PlanInput, copies: &Path) -> Result<Plan> {
    let (sources, problems) = read_once(&input.project, &input.trust)?;
    kinds_known(&input.objects, &sources)?;
    let place = ClusterPlace::of(&input.cluster, &input.project.root, copies)?;
    let connection = Connection::open(&place.choice, &place.folder).await?;
    let all = input.all_namespaces.unwrap_or(place.embedded);
    let planned = look(&input, &connection, all, &sources, problems).await;
    connection.close().await;
    planned
}

fn kinds_known(objects: &[Selector], sources: &Sources) -> Result<()> {
    let watched = sources.watches.iter().map(|watch| watch.gvk.kind.as_str());
    let kinds: Vec<&str> = watched.chain(sources.shown.iter().map(|shown| shown.gvk.kind.as_str())).collect();
    for selector in objects {
        if kinds.iter().any(|kind| kind.eq_ignore_ascii_case(&selector.kind)) {
            continue;
        }
        bail!("{selector}: {}", words::no_such_kind(&selector.kind, &kinds));
    }
    Ok(())
}

async fn look(
    input: &PlanInput,
    connection: &Connection,
    all: bool,
    sources: &Sources,
    problems: Vec<Diagnostic>,
) -> Result<Plan> {
    let mut plan = Plan {
        project: input.project.name.clone(),
        cluster: connection.cluster.name.clone(),
        problems,
        ..Plan::default()
    };
    let settings =
        Settings { namespace: (!all).then(|| connection.namespace.clone()), ..input.operator.clone() };
    let asked = |object: &ObjectRef| {
        input.objects.is_empty() || input.objects.iter().any(|selector| selector.takes(object))
    };
    let kind_asked = |gvk: &Gvk| {
        let of = |selector: &Selector| selector.kind.eq_ignore_ascii_case(&gvk.kind);
        input.objects.is_empty() || input.objects.iter().any(of)
    };
    let cautious = connection.cluster.protection != Protection::Local;
    plan.types =
        opdev_crds::foresee(&connection.client, &sources.definitions, cautious, input.offline).await?;
    plan.types.retain(|one| kind_asked(&one.kind));
    for watch in sources.watches.iter().filter(|watch| kind_asked(&watch.gvk)) {
        let found = foresee(&connection.client, &settings, watch, asked, input.offline)
            .await
            .with_context(|| format!("the objects of {} cannot be listed", watch.gvk.kind))?;
        plan.objects.extend(found.objects);
        plan.unchanged.extend(found.unchanged);
        plan.skipped.extend(found.skipped);
    }
    for shown in sources.shown.iter().filter(|shown| kind_asked(&shown.gvk)) {
        let Some(program) = &shown.program else { continue };
        let object = ObjectRef { gvk: shown.gvk.clone(), ..ObjectRef::default() };
        let why = format!("{program} reconciles it, and opdev cannot tell what a program would do");
        plan.skipped.push(Skipped { object, why });
    }
    if let Some(selector) = missing(&input.objects, &plan) {
        let namespace = settings.namespace.as_deref().unwrap_or("any namespace");
        bail!("{selector} is not there (looked in {namespace} on {})", plan.cluster);
    }
    Ok(plan)
}

/// The first object that is named and is not there.
fn missing<'s>(selectors: &'s [Selector], plan: &Plan) -> Option<&'s Selector> {
    let is_there = |selector: &Selector| {
        let known = plan.objects.iter().map(|one| &one.object).chain(&plan.unchanged);
        known.chain(plan.skipped.iter().map(|one| &one.object)).any(|object| selector.takes(object))
    };
    selectors.iter().find(|&selector| selector.name.is_some() && !is_there(selector))
}

/// Where to look.
struct ClusterPlace {
    pub choice: Choice,
    /// True if it is an embedded control plane: that of an opdev that runs is reached as any other cluster.
    embedded: bool,
    folder: PrivateFolder,
}

impl ClusterPlace {
    /// The cluster that is chosen. Of the embedded one that is the one of an opdev that runs in this project,
    /// else a copy of what it keeps, on which nothing acts: a plan changes nothing.
    fn of(choice: &Choice, root: &Path, copies: &Path) -> Result<ClusterPlace> {
        let folder = PrivateFolder::make(&copies.join(STATE))?;
        let embedded = Connection::is_embedded(choice)?;
        let choice = match embedded {
            false => choice.clone(),
            true => match running(root)? {
                Some(kubeconfig) => {
                    Choice { embedded: false, context: None, kubeconfig: Some(kubeconfig), ..choice.clone() }
                }
                None => {
                    let kept = state_path(root).join(opdev_cluster::data_folder::NAME);
                    copy_objects(&kept, &folder.folder(opdev_cluster::data_folder::NAME)?)?;
                    let owner = Owner::at(&copies.join("owner"));
                    let controllers = Controllers::None;
                    Choice { embedded: true, fresh: false, controllers, owner, ..choice.clone() }
                }
            },
        };
        Ok(ClusterPlace { choice, embedded, folder })
    }
}

/// Copies what a control plane keeps; nothing where it keeps nothing. One that writes meanwhile would tear
/// the copy.
fn copy_objects(from: &Path, to: &PrivateFolder) -> Result<()> {
    let Some(from) = PrivateFolder::open(from)? else { return Ok(()) };
    if let Some(holder) = Lock::holder(&from, "lock")? {
        bail!(
            "the control plane of {holder} keeps its objects in {}, and its kubeconfig is not there\n  to do: plan again \
             in a moment, name its kubeconfig with --kubeconfig, or stop it first",
            from.path().display()
        );
    }
    for name in from.names()? {
        let Some(name) = name.to_str().filter(|name| *name != "lock") else { continue };
        // A folder beside the store is nothing of the store.
        if from.path().join(name).is_file()
            && let Some(bytes) = from.read(name)?
        {
            to.write(name, &bytes)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_named_by_kind_namespace_and_name() {
        let object = |namespace: &str, name: &str| ObjectRef {
            gvk: Gvk::new("cache.my.domain", "v1", "Memcached"),
            namespace: Some(namespace.to_owned()),
            name: name.to_owned(),
            uid: None,
        };
        let takes =
            |text: &str, namespace, name| text.parse::<Selector>().unwrap().takes(&object(namespace, name));
        assert!(takes("memcached", "a", "x") && takes("Memcached/x", "a", "x"));
        assert!(takes("memcached/a/x", "a", "x") && !takes("memcached/b/x", "a", "x"));
        assert!(!takes("memcached/y", "a", "x") && !takes("other", "a", "x"));
        for wrong in ["", "a/", "a//b", "a/b/c/d"] {
            assert!(wrong.parse::<Selector>().is_err(), "{wrong}");
        }
        assert_eq!("a/b/c".parse::<Selector>().unwrap().to_string(), "a/b/c");
    }

    #[test]
    fn the_embedded_control_plane_is_that_of_the_opdev_that_runs_here() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let state = PrivateFolder::make(&root.join(STATE)).unwrap();
        state.write("kubeconfig", b"").unwrap();
        assert_eq!(running(root).unwrap(), None, "an earlier opdev has left it");
        let _run = Lock::take(&state, "lock", "opdev run").unwrap().unwrap();
        assert_eq!(running(root).unwrap(), None, "the one that runs works on another cluster");
        let _written = Lock::of(&state, "kubeconfig", "opdev run").unwrap().unwrap();
        let kubeconfig = Some(root.join(STATE).join("kubeconfig"));
        assert_eq!(running(root).unwrap(), kubeconfig);
        let copies = tempfile::tempdir().unwrap();
        let place =
            ClusterPlace::of(&Choice { embedded: true, ..Choice::default() }, root, copies.path()).unwrap();
        assert!(place.embedded && !place.choice.embedded, "all its namespaces are looked at");
        assert_eq!(place.choice.kubeconfig, kubeconfig);
    }

    #[test]
    fn objects_that_a_control_plane_writes_are_not_copied() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| PrivateFolder::make(&folder.path().join(name)).unwrap();
        let (from, to) = (at("from"), at("to"));
        from.write("store.redb", b"objects").unwrap();
        let lock = Lock::take(&from, "lock", "opdev serve").unwrap().unwrap();
        let refused = copy_objects(from.path(), &to).unwrap_err().to_string();
        assert!(refused.contains("opdev serve (process ") && refused.contains("--kubeconfig"), "{refused}");
        assert_eq!(to.read("store.redb").unwrap(), None);
        drop(lock);
        copy_objects(from.path(), &to).unwrap();
        assert_eq!(to.read("store.redb").unwrap().unwrap(), b"objects");
    }

    #[test]
    fn objects_may_be_named_in_any_order_and_twice() {
        let object = |name: &str| ObjectRef {
            gvk: Gvk::new("cache.my.domain", "v1", "Memcached"),
            name: name.to_owned(),
            ..ObjectRef::default()
        };
        let plan = Plan {
            unchanged: vec![object("a"), object("b")],
            skipped: vec![Skipped { object: object("c"), why: "gone".to_owned() }],
            ..Plan::default()
        };
        let named = |names: &[&str]| -> Vec<Selector> {
            names.iter().map(|name| format!("memcached/{name}").parse().unwrap()).collect()
        };
        assert_eq!(missing(&named(&["c", "b", "a", "b", "c"]), &plan), None);
        let wrong = named(&["b", "x", "a"]);
        assert_eq!(missing(&wrong, &plan), Some(&wrong[1]));
    }
}
