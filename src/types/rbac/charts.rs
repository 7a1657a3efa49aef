//! The rules that an operator of charts needs: what the Operator SDK scaffolds, for the kinds that the charts
//! may create. Which kinds these are is found elsewhere.

use super::Rule;
use crate::plural::regular;
use opdev_object::facts::facts;
use opdev_object::meta::Gvk;

/// A kind that a chart reconciles.
#[derive(Clone, Debug)]
pub struct ChartKind {
    /// The kind.
    pub gvk: Gvk,
    /// The kinds of the objects that its chart may create.
    pub creates: Vec<Gvk>,
}

/// The resource of a kind that is built into Kubernetes; `None` for all others.
pub fn built_in_resource(gvk: &Gvk) -> Option<&'static str> {
    let fact = facts().resources().iter().find(|fact| fact.gvk() == *gvk)?;
    Some(&fact.resource)
}

/// The rules, and the kinds whose resource had to be guessed from their name.
pub fn rules(kinds: &[ChartKind]) -> (Vec<Rule>, Vec<Gvk>) {
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
    for one in kinds {
        let own = regular(&one.gvk.kind);
        rules.push(rule(
            &one.gvk.group,
            &[&own, &format!("{own}/status"), &format!("{own}/finalizers")],
            &["create", "delete", "get", "list", "patch", "update", "watch"],
        ));
        for gvk in &one.creates {
            let known = built_in_resource(gvk);
            let guess = known.is_none().then(|| regular(&gvk.kind));
            rules.push(rule(&gvk.group, &[known.or(guess.as_deref()).unwrap_or_default()], &["*"]));
            if known.is_none() && !guessed.contains(gvk) {
                guessed.push(gvk.clone());
            }
        }
    }
    (rules, guessed)
}
