//! The rights that an operator was seen to use: the rules that its calls and cached reads ask for, and how
//! they differ from the roles that its markers give. Pure.

use opdev_event::Reconcile;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Verbs in the order in which roles list them.
const VERBS: [&str; 8] = ["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"];

/// A resource of the API, with its subresource as `pods/log`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Resource {
    /// Its group; empty for the core group.
    pub group: String,
    /// Its plural.
    pub name: String,
}

/// The used verbs of one resource.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Used {
    /// The verbs.
    pub verbs: BTreeSet<String>,
    /// The controllers that did.
    pub controllers: BTreeSet<String>,
}

/// The used verbs, by resource.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rights {
    /// By resource.
    pub used: BTreeMap<Resource, Used>,
    /// How many reconciles were seen.
    pub reconciles: u64,
}

/// A resource with verbs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The resource.
    pub resource: Resource,
    /// The verbs, in the order of roles.
    pub verbs: Vec<String>,
    /// The controllers that used them; nobody where nobody did.
    pub controllers: Vec<String>,
}

impl Difference {
    /// The marker that allows it, to be put above the Reconcile function.
    pub fn marker(&self) -> String {
        let group = if self.resource.group.is_empty() { "core" } else { &self.resource.group };
        let (resource, verbs) = (&self.resource.name, self.verbs.join(";"));
        format!("// +kubebuilder:rbac:groups={group},resources={resource},verbs={verbs}")
    }
}

impl Rights {
    /// Adds what a reconcile of a process used. Reconciles of charts and programs count for nothing: opdev
    /// makes them.
    pub fn add(&mut self, reconcile: &Reconcile) {
        let Some(process) = &reconcile.process else { return };
        self.reconciles += 1;
        for call in reconcile.calls.iter().filter(|call| call.status != 0) {
            let Some(resource) = resource_of(&call.path) else { continue };
            let mut verbs = vec![call.verb.as_str()];
            // An apply that creates needs both.
            if call.verb == "patch" && call.status == 201 {
                verbs.push("create");
            }
            self.note(resource, &verbs, &process.controller);
        }
        for read in &process.reads {
            let gvk = &read.object.gvk;
            let name = opdev_object::api_path::plural(&gvk.kind);
            let resource = Resource { group: gvk.group.clone(), name };
            // A cache lists and watches whatever it is asked for.
            self.note(resource, &["get", "list", "watch"], &process.controller);
        }
        // Owner references that block a deletion need the right to set the owner's finalizers; the API server
        // of a real cluster may check that.
        let creates = reconcile.objects.iter().any(|object| object.action == opdev_event::Action::Created);
        if creates && !reconcile.object.gvk.kind.is_empty() {
            let name = format!("{}/finalizers", opdev_object::api_path::plural(&reconcile.object.gvk.kind));
            let resource = Resource { group: reconcile.object.gvk.group.clone(), name };
            self.note(resource, &["update"], &process.controller);
        }
    }

    /// Adds a call that belongs to no controller; `created` if the API server made the object.
    pub fn add_call(&mut self, verb: &str, path: &str, created: bool) {
        let Some(resource) = resource_of(path) else { return };
        let verbs: &[&str] = if verb == "patch" && created { &["patch", "create"] } else { &[verb] };
        self.used.entry(resource).or_default().verbs.extend(verbs.iter().map(|verb| (*verb).to_owned()));
    }

    /// Adds what another one has.
    pub fn extend(&mut self, other: Rights) {
        for (resource, used) in other.used {
            let known = self.used.entry(resource).or_default();
            known.verbs.extend(used.verbs);
            known.controllers.extend(used.controllers);
        }
        self.reconciles += other.reconciles;
    }

    fn note(&mut self, resource: Resource, verbs: &[&str], controller: &str) {
        let used = self.used.entry(resource).or_default();
        used.verbs.extend(verbs.iter().map(|verb| (*verb).to_owned()));
        used.controllers.insert(controller.to_owned());
    }

    /// The used verbs that the roles do not allow.
    pub fn missing(&self, roles: &[Value]) -> Vec<Difference> {
        let differences = self.used.iter().filter_map(|(resource, used)| {
            let verbs = ordered(used.verbs.iter().filter(|verb| !allows(roles, resource, verb)));
            let controllers = used.controllers.iter().cloned().collect();
            (!verbs.is_empty()).then(|| Difference { resource: resource.clone(), verbs, controllers })
        });
        differences.collect()
    }

    /// Rights that roles give by name and nobody used. Leader election and events are used outside of
    /// reconciles.
    pub fn unused(&self, roles: &[Value]) -> Vec<Difference> {
        let mut unused = BTreeMap::new();
        for rule in rules(roles) {
            for (group, name) in texts(rule, "apiGroups").flat_map(|group| {
                texts(rule, "resources").map(move |name| (group.to_owned(), name.to_owned()))
            }) {
                if group == "*"
                    || name == "*"
                    || matches!(name.as_str(), "leases" | "events" | "configmaps/status")
                {
                    continue;
                }
                let resource = Resource { group, name };
                let verbs = texts(rule, "verbs").filter(|verb| {
                    *verb != "*" && !self.used.get(&resource).is_some_and(|used| used.verbs.contains(*verb))
                });
                let verbs: BTreeSet<String> = verbs.map(str::to_owned).collect();
                unused.entry(resource).or_insert_with(BTreeSet::new).extend(verbs);
            }
        }
        let unused = unused.into_iter().filter(|(_, verbs)| !verbs.is_empty()).map(|(resource, verbs)| {
            Difference { resource, verbs: ordered(verbs.iter()), controllers: Vec::new() }
        });
        unused.collect()
    }
}

fn ordered<'a>(verbs: impl Iterator<Item = &'a String>) -> Vec<String> {
    let mut verbs: Vec<String> = verbs.cloned().collect();
    verbs.sort_by_key(|verb| VERBS.iter().position(|known| known == verb).unwrap_or(VERBS.len()));
    verbs
}

fn rules(roles: &[Value]) -> impl Iterator<Item = &Value> {
    roles.iter().filter_map(|role| role["rules"].as_array()).flatten()
}

fn texts<'a>(rule: &'a Value, field: &str) -> impl Iterator<Item = &'a str> + use<'a> {
    rule[field].as_array().into_iter().flatten().filter_map(Value::as_str)
}

fn allows(roles: &[Value], wanted: &Resource, verb: &str) -> bool {
    let any = |rule: &Value, field: &str, text: &str| texts(rule, field).any(|one| one == "*" || one == text);
    rules(roles).any(|rule| {
        // A rule for names only is not counted: it says nothing of the others.
        rule["resourceNames"].as_array().is_none_or(Vec::is_empty)
            && any(rule, "apiGroups", &wanted.group)
            && any(rule, "resources", &wanted.name)
            && any(rule, "verbs", verb)
    })
}

/// The resource that a path leads to; `None` for what is none, such as discovery.
fn resource_of(path: &str) -> Option<Resource> {
    let path = path.split('?').next().unwrap_or_default();
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    let (group, rest) = match parts.as_slice() {
        ["api", _, rest @ ..] => ("", rest),
        ["apis", group, _, rest @ ..] => (*group, rest),
        _ => return None,
    };
    let rest = match rest {
        ["namespaces", _, resource, tail @ ..] if !matches!(*resource, "status" | "finalize") => {
            let mut rest = vec![*resource];
            rest.extend(tail);
            rest
        }
        rest => rest.to_vec(),
    };
    let name = match rest.as_slice() {
        [resource, _, sub, ..] => format!("{resource}/{sub}"),
        [resource, ..] => (*resource).to_owned(),
        [] => return None,
    };
    Some(Resource { group: group.to_owned(), name })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use jiff::Timestamp;
    use opdev_event::{CachedRead, Call, Outcome, ProgramTrace, TraceLevel};
    use opdev_object::meta::{Gvk, ObjectRef};
    use serde_json::json;
    use std::time::Duration;

    fn call(verb: &str, path: &str, status: u16) -> Call {
        let zero = Duration::ZERO;
        Call {
            verb: verb.to_owned(),
            path: path.to_owned(),
            target: String::new(),
            start: zero,
            took: zero,
            status,
            reason: None,
            place: None,
        }
    }

    /// A reconcile of a controller of PodSets that uses some rights.
    pub(crate) fn reconcile() -> Reconcile {
        let object = ObjectRef {
            gvk: Gvk::new("app.example.com", "v1", "PodSet"),
            name: "demo".into(),
            ..ObjectRef::default()
        };
        let read = CachedRead {
            verb: "list".into(),
            object: ObjectRef { gvk: Gvk::new("", "v1", "Pod"), ..ObjectRef::default() },
            resource_version: String::new(),
            count: Some(1),
            selector: String::new(),
            start: Duration::ZERO,
            took: Duration::ZERO,
            waited: Duration::ZERO,
            problem: String::new(),
        };
        Reconcile {
            id: 1,
            object,
            causes: Vec::new(),
            sources: 0,
            at: Timestamp::UNIX_EPOCH,
            queued: Duration::ZERO,
            took: Duration::ZERO,
            steps: Vec::new(),
            calls: vec![
                call("create", "/api/v1/namespaces/default/pods", 201),
                call("update", "/apis/app.example.com/v1/namespaces/default/podsets/demo/status", 200),
                call("patch", "/apis/apps/v1/namespaces/default/deployments/web?fieldManager=x", 201),
                call("get", "/apis/apps/v1", 200),
            ],
            outcome: Outcome::Applied,
            status: Vec::new(),
            objects: Vec::new(),
            requeue: None,
            waiting: None,
            failure: None,
            releases: Vec::new(),
            process: Some(Box::new(ProgramTrace {
                controller: "podset".into(),
                reconcile_id: "a".into(),
                traced: TraceLevel::Full,
                reads: vec![read],
                own_writes: Vec::new(),
                guessed_calls: Vec::new(),
                disturbed_calls: Vec::new(),
                late_calls: 0,
                told_again: false,
                findings: Vec::new(),
                evidence: Default::default(),
            })),
        }
    }

    #[test]
    fn what_was_used_is_compared_with_what_is_allowed() {
        let mut rights = Rights::default();
        rights.add(&reconcile());
        let roles = [json!({"kind": "ClusterRole", "rules": [
            {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch", "delete"]},
            {"apiGroups": ["apps"], "resources": ["*"], "verbs": ["*"]},
            {"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["get"]},
        ]})];
        let lines = |all: Vec<Difference>| all.iter().map(Difference::marker).collect::<Vec<_>>();
        assert_eq!(
            lines(rights.missing(&roles)),
            [
                "// +kubebuilder:rbac:groups=core,resources=pods,verbs=create",
                "// +kubebuilder:rbac:groups=app.example.com,resources=podsets/status,verbs=update",
            ]
        );
        assert_eq!(
            lines(rights.unused(&roles)),
            [
                "// +kubebuilder:rbac:groups=core,resources=pods,verbs=delete",
                "// +kubebuilder:rbac:groups=batch,resources=jobs,verbs=get",
            ]
        );
        assert_eq!(rights.missing(&roles)[0].controllers, ["podset"]);
        assert_eq!(rights.reconciles, 1);
    }
}
