//! The rules of a kind that more than one room has to know: how its objects are named, created and deleted.
//! Plain data. What only the registry does with a kind is its `Strategy`.

use super::names;

/// The differences between kinds. A kind sets only the fields that differ from [`ResourceRules::COMMON`].
#[derive(Clone, Copy, Debug)]
pub struct ResourceRules {
    /// A PUT without a resourceVersion is fine.
    pub unconditional_update: bool,
    /// A PUT of something that does not exist creates it.
    pub create_on_update: bool,
    /// A write of the status of something that does not exist creates it, too.
    pub create_on_status_update: bool,
    /// `metadata.generation` counts changes of the desired state.
    pub generation: bool,
    /// A delete answers with the object instead of a Status.
    pub returns_deleted: bool,
    /// Dependents are kept unless the request says otherwise.
    pub orphans_by_default: bool,
    /// The warning for a delete that does not say what becomes of dependents.
    pub silent_delete_warning: Option<&'static str>,
    /// The warning that comes with every request.
    pub deprecation_warning: Option<&'static str>,
    /// Objects are not written to the store, so discovery has no hash of their storage version.
    pub unstored: bool,
    /// Objects are namespaces: each counts as being inside of itself.
    pub is_namespace: bool,
    /// Neither webhooks nor admission policies are asked about writes.
    pub exempt_from_admission: bool,
    /// Errors of the name of an object.
    pub validate_name: fn(&str) -> Vec<String>,
    /// Finalizers need no domain. Only the older groups insist on one.
    pub any_finalizer: bool,
    /// The validation of an update's metadata.
    pub metadata_checks: MetadataChecks,
}

impl ResourceRules {
    /// Rules for most kinds.
    pub const COMMON: ResourceRules = ResourceRules {
        unconditional_update: true,
        create_on_update: false,
        create_on_status_update: false,
        generation: false,
        returns_deleted: false,
        orphans_by_default: false,
        silent_delete_warning: None,
        deprecation_warning: None,
        unstored: false,
        is_namespace: false,
        exempt_from_admission: false,
        validate_name: names::subdomain,
        any_finalizer: false,
        metadata_checks: MetadataChecks { changes: 2, wholes: 1, order: MetadataOrder::ChangesFirst },
    };
}

/// How often the real server validates the metadata of an update, and reports what is wrong each time.
/// Measured on 1.36.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MetadataChecks {
    /// Times that the change of the metadata is validated.
    pub changes: usize,
    /// Times that the metadata of the new object are validated as a whole.
    pub wholes: usize,
    /// The order of the errors: metadata or the object first.
    pub order: MetadataOrder,
}

impl MetadataChecks {
    /// Both twice.
    pub const TWICE: MetadataChecks =
        MetadataChecks { changes: 2, wholes: 2, order: MetadataOrder::ChangesFirst };
}

/// In which order the causes of an update's metadata are reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetadataOrder {
    /// The change, then the whole, then the rest of the object.
    ChangesFirst,
    /// The change; the whole comes after the first causes of the rest of the object.
    WholeLater,
    /// The whole, then the rest of the object, then the change.
    WholeFirst,
}
