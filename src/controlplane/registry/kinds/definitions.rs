//! CustomResourceDefinitions.

use crate::definitions::{self, ID};
use crate::strategy::Strategy;
use opdev_apimachinery::resource::ResourceRules;

pub(super) static ALL: &[Strategy] = &[Strategy {
    id: ID,
    rules: ResourceRules {
        generation: true,
        unconditional_update: false,
        any_finalizer: true,
        ..ResourceRules::COMMON
    },
    set_defaults: |_, object| opdev_cel::definition::complete(object),
    validate_in_registry: |registry, object, current, causes| {
        causes.extend(definitions::validate(object, current));
        if let Some(current) = current {
            causes.extend(definitions::validate_update(object, current));
        }
        if causes.is_empty() {
            registry.accept_names(object, current);
        }
    },
    // A client that sees a definition in a watch finds its kind served already.
    before_write: |registry, object| registry.definition_announced(object),
    after_write: |registry, object| registry.definition_written(object),
    after_failed_write: |registry, key| registry.definition_not_written(key),
    check_preconditions: Some(definitions::preconditions),
    mark_deleted: Some(definitions::terminate),
    after_removal: |registry, object| registry.definition_removed(&object.value()),
    ..Strategy::COMMON
}];
