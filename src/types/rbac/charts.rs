//! The rules that an operator of charts needs: what the Operator SDK scaffolds, for the objects that the charts give with
//! their default values. Objects that only other values bring are not seen here.

use super::Rule;
use crate::plural::plural;
use opdev_object::facts::facts;
use opdev_object::meta::Gvk;
use serde_json::Value;

/// A kind, and what its chart gives with default values.
#[derive(Clone, Debug)]
pub struct Fed {
    /// The kind.
    pub gvk: Gvk,
    /// The objects.
    pub objects: Vec<Value>,
}

/// The rules, and the kinds whose resource had to be guessed from their name.
pub fn rules(fed: &[Fed]) -> (Vec<Rule>, Vec<Gvk>) {
    let rule = |group: &str, resources: &[&str], verbs: &[&str]| Rule {
        groups: vec![group.to_owned()],
        resources: resources.iter().map(|one| (*one).to_owned()).collect(),
        verbs: verbs.iter().map(|one| (*one).to_owned()).collect(),
        ..Rule::default()
    };
    // Namespaces are looked up, releases are Secrets, and events are recorded.
    let mut rules = vec![
        rule("", &["namespaces"], &["get"]),
        rule("", &["secrets"], &["*"]),
        rule("", &["events"], &["create"]),
    ];
    let mut guessed: Vec<Gvk> = Vec::new();
    for one in fed {
        let own = plural(&one.gvk.kind.to_lowercase()).to_lowercase();
        rules.push(rule(
            &one.gvk.group,
            &[&own, &format!("{own}/status"), &format!("{own}/finalizers")],
            &["create", "delete", "get", "list", "patch", "update", "watch"],
        ));
        for object in &one.objects {
            let Some(gvk) = Gvk::of(object) else { continue };
            let known = facts().resources().iter().find(|fact| fact.gvk() == gvk);
            let resource =
                known.map_or_else(|| plural(&gvk.kind.to_lowercase()), |fact| fact.resource.clone());
            rules.push(rule(&gvk.group, &[&resource], &["*"]));
            if known.is_none() && !guessed.contains(&gvk) {
                guessed.push(gvk);
            }
        }
    }
    (rules, guessed)
}
