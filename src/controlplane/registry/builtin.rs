//! The built-in resources: discovery comes from the facts, the rest from the strategy of the kind.

use super::{kinds, strategy};
use opdev_apimachinery::resource::{DerivedFields, Resource, ResourceRules, Subresource, resource_id};
use opdev_apimachinery::version::since;
use opdev_object::facts::{ResourceFact, facts, removed};
use opdev_object::meta::Gvk;

/// All built-in resources.
pub fn resources() -> Vec<Resource> {
    facts().resources().iter().map(resource).collect()
}

fn resource(fact: &ResourceFact) -> Resource {
    let id = resource_id(&fact.group, &fact.resource);
    let strategy = kinds::find(&id).unwrap_or(&strategy::COMMON);
    let storage = strategy.storage_api_version.map_or_else(|| kept_at(fact), str::to_owned);
    Resource {
        group: fact.group.clone(),
        version: fact.version.clone(),
        plural: fact.resource.clone(),
        singular: fact.singular.clone(),
        kind: fact.kind.clone(),
        list_kind: format!("{}List", fact.kind),
        namespaced: fact.namespaced,
        verbs: fact.verbs.clone(),
        short_names: fact.short_names.clone(),
        categories: fact.categories.clone(),
        subresources: fact.subresources.iter().map(subresource).collect(),
        table: strategy.table.unwrap_or(&id).into(),
        storage_api_version: storage,
        rules: of_minor(&id, strategy.rules),
        strategy,
        custom: None,
        known: DerivedFields::default(),
    }
}

/// The version that objects of most kinds are kept at: the one that there is, or that stayed.
fn kept_at(fact: &ResourceFact) -> String {
    let version = removed::stayed(&fact.group, &fact.version, &fact.resource).unwrap_or(&fact.version);
    Gvk::new(&*fact.group, version, &*fact.kind).api_version()
}

/// A kind that came to count its changes in a newer minor than that of this process.
fn of_minor(id: &str, mut rules: ResourceRules) -> ResourceRules {
    rules.generation &= id != "autoscaling/horizontalpodautoscalers" || since(37);
    rules
}

fn subresource(fact: &opdev_object::facts::SubresourceFact) -> Subresource {
    let some = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
    Subresource {
        name: fact.name.clone(),
        kind: fact.kind.clone(),
        group: some(&fact.group),
        version: some(&fact.version),
        verbs: fact.verbs.clone(),
    }
}
