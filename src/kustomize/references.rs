//! Names of other objects follow those objects: a Deployment that mounts a generated ConfigMap gets its name
//! with the hash, a binding the account's with its prefix and namespace.

use crate::config::Referrers;
use crate::error::{ErrorKind, FieldError};
use crate::fields::{CreateMissing, FieldSpec, selects, visit};
use crate::read::text;
use crate::resource::{Id, Resource};
use opdev_object::meta::Gvk;
use serde_json::Value;
use std::collections::BTreeSet;

/// An object that may be referred to.
struct Candidate<'a> {
    resource: &'a Resource,
    former: Vec<Id>,
    now: Id,
    /// The namespace it counted as being in at first.
    first_namespace: String,
}

/// Corrects the names in all objects.
pub(crate) fn fix(resources: &mut [Resource], references: &[Referrers]) -> Result<(), ErrorKind> {
    let before = resources.to_vec();
    let all: Vec<Candidate<'_>> = before
        .iter()
        .map(|resource| Candidate {
            resource,
            former: resource.former_ids(),
            now: resource.id(),
            first_namespace: resource.original_id().effective_namespace().to_owned(),
        })
        .collect();
    for (referrer, resource) in all.iter().zip(resources) {
        let original = resource.original_id().gvk;
        let near = near(&all, referrer);
        let first_namespaces: BTreeSet<&str> = near.iter().map(|one| one.first_namespace.as_str()).collect();
        for target in references {
            // A target that was never renamed needs no correction, and nothing else is looked for.
            let selected = |candidate: &&&Candidate<'_>| {
                candidate
                    .former
                    .iter()
                    .any(|id| selects(&target.group, &target.version, &target.kind, &id.gvk))
            };
            let candidates: Vec<&Candidate<'_>> = near.iter().filter(selected).copied().collect();
            if candidates.is_empty() {
                continue;
            }
            for field in target.field_specs.iter().filter(|field| field.selects(&original)) {
                let search = Search::new(referrer, &candidates, &first_namespaces, field);
                search
                    .correct(&mut resource.object, field)
                    .map_err(|why| why.in_object(referrer.now.show()))?;
            }
        }
    }
    Ok(())
}

/// The objects that one may refer to: those of its namespace and of none, and the accounts that a binding
/// names.
fn near<'a, 'r>(all: &'a [Candidate<'r>], referrer: &Candidate<'_>) -> Vec<&'a Candidate<'r>> {
    if referrer.now.of_the_cluster {
        return all.iter().collect();
    }
    let mut of_accounts = BTreeSet::new();
    if referrer.resource.kind() == "RoleBinding" {
        for subject in referrer.resource.object["subjects"].as_array().into_iter().flatten() {
            if subject["kind"] == "ServiceAccount" {
                of_accounts.extend(subject["namespace"].as_str().map(str::to_owned));
            }
        }
    }
    let is_near = |one: &&Candidate<'_>| {
        one.now.of_the_cluster
            || one.now.effective_namespace() == referrer.now.effective_namespace()
            || of_accounts.contains(&one.resource.namespace())
    };
    all.iter().filter(is_near).collect()
}

/// Group and kind of a binding's role.
fn role(binding: &Value) -> Option<Gvk> {
    let role = &binding["roleRef"];
    Some(Gvk::new(role["apiGroup"].as_str()?, "", role["kind"].as_str()?))
}

struct Search<'s, 'r> {
    referrer: &'s Candidate<'r>,
    candidates: &'s [&'s Candidate<'r>],
    /// The namespaces that objects of any kind were in at first.
    first_namespaces: &'s BTreeSet<&'s str>,
    role: Option<Gvk>,
}

impl<'s, 'r> Search<'s, 'r> {
    fn new(
        referrer: &'s Candidate<'r>,
        candidates: &'s [&'s Candidate<'r>],
        first_namespaces: &'s BTreeSet<&'s str>,
        field: &FieldSpec,
    ) -> Self {
        let role = field.path.ends_with("roleRef/name").then(|| role(&referrer.resource.object)).flatten();
        Search { referrer, candidates, first_namespaces, role }
    }

    fn correct(&self, object: &mut Value, field: &FieldSpec) -> Result<(), ErrorKind> {
        let anywhere = FieldSpec { path: field.path.clone(), create: field.create, ..FieldSpec::default() };
        visit(object, &anywhere, CreateMissing::Nothing, &mut |place| self.set(place))
    }

    fn set(&self, place: &mut Value) -> Result<(), ErrorKind> {
        match place {
            Value::Null => Ok(()),
            Value::Array(items) => {
                items.iter_mut().filter(|item| !item.is_null()).try_for_each(|item| match item {
                    Value::Array(_) => Err(FieldError::NotAName.into()),
                    Value::Object(_) => self.set_map(item),
                    Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => self.set_name(item),
                })
            }
            Value::Object(_) => self.set_map(place),
            Value::Bool(_) | Value::Number(_) | Value::String(_) => self.set_name(place),
        }
    }

    fn set_name(&self, place: &mut Value) -> Result<(), ErrorKind> {
        let name = text(place);
        if let Some(found) = self.find(&name, self.candidates, false)? {
            let new = found.name();
            if new != name {
                *place = Value::from(new);
            }
        }
        Ok(())
    }

    /// A map with `name`, and perhaps `namespace`.
    fn set_map(&self, place: &mut Value) -> Result<(), ErrorKind> {
        let Some(name) = place.get("name").map(text) else {
            return Err(FieldError::NoName.into());
        };
        let among: Vec<&Candidate<'_>> = match place.get("namespace") {
            None => self.candidates.to_vec(),
            Some(namespace) => {
                let namespace = text(namespace);
                let first: Vec<&Candidate<'_>> =
                    self.candidates.iter().filter(|one| one.first_namespace == namespace).copied().collect();
                if self.first_namespaces.contains(namespace.as_str()) {
                    first
                } else {
                    let now = |one: &&&Candidate<'_>| {
                        !one.now.of_the_cluster && one.now.effective_namespace() == namespace
                    };
                    self.candidates.iter().filter(now).copied().collect()
                }
            }
        };
        let Some(found) = self.find(&name, &among, true)? else { return Ok(()) };
        let (new, namespace) = (found.name(), found.namespace());
        place["name"] = Value::from(new);
        if !namespace.is_empty() {
            place["namespace"] = Value::from(namespace);
        }
        Ok(())
    }

    /// The object that a name means. `with_namespace`: the namespace is taken over, too.
    fn find(
        &self,
        name: &str,
        among: &[&Candidate<'r>],
        with_namespace: bool,
    ) -> Result<Option<&'r Resource>, ErrorKind> {
        let mut found: Vec<&Candidate<'r>> = among
            .iter()
            .filter(|one| one.former.iter().any(|id| id.name == name))
            .filter(|one| match &self.role {
                Some(role) => {
                    one.former.iter().any(|id| id.gvk.group == role.group && id.gvk.kind == role.kind)
                }
                None => true,
            })
            .filter(|one| self.is_in_reach(one))
            .copied()
            .collect();
        if found.len() > 1 {
            for none_fits in [true, false] {
                if found.len() > 1 {
                    found.retain(|one| one.resource.has_affixes_of(self.referrer.resource, none_fits));
                }
            }
        } else if found.is_empty() {
            return Ok(None);
        }
        let Some(first) = found.first() else { return Ok(None) };
        let is_alike = |one: &&Candidate<'_>| {
            one.resource.name() == first.resource.name()
                && (!with_namespace || one.resource.namespace() == first.resource.namespace())
        };
        if found.iter().all(is_alike) {
            return Ok(Some(first.resource));
        }
        let objects = found.iter().map(|one| one.now.show()).collect();
        Err(FieldError::Ambiguous { name: name.to_owned(), objects }.into())
    }

    fn is_in_reach(&self, one: &Candidate<'_>) -> bool {
        self.referrer.now.of_the_cluster
            || one.now.of_the_cluster
            || one.resource.kind() == "ServiceAccount"
            || self.referrer.now.effective_namespace() == one.now.effective_namespace()
    }
}
