//! The special rules of a built-in kind, from its defaults to its printer columns: one `Strategy` for each
//! kind, as the strategies of kube-apiserver. The strategies themselves stand in `kinds`; here is only their
//! shape. A kind without one, and every custom resource, has [`Strategy::COMMON`].

use super::context::Context;
use super::options::DeleteOptions;
use super::state::Registry;
use jiff::Timestamp;
use opdev_apimachinery::attributes::{Attributes, Indexing};
use opdev_apimachinery::error::{Cause, Status};
use opdev_apimachinery::identity::User;
use opdev_apimachinery::part::Part;
use opdev_apimachinery::quota::Evaluator;
use opdev_apimachinery::resource::{Resource, ResourceRules};
use opdev_apis::table::Printer;
use opdev_storage::{Key, Stored};
use opdev_validation::warnings::Warnings;
use serde_json::{Value, json};
use std::sync::Arc;

/// The rules of one built-in kind. The functions stand in the order in which a request meets them.
pub struct Strategy {
    /// `group/plural`, or the plural for the core group. The facts say everything else that discovery tells.
    pub id: &'static str,
    /// The table that objects are kept in, where it is not named as the kind.
    pub table: Option<&'static str>,
    /// The apiVersion that objects are kept at, where the kind has several or shares a table.
    pub storage_api_version: Option<&'static str>,
    /// The attributes of an object, and the values it is found by.
    pub indexing: Indexing,
    /// The rules that other rooms need, too.
    pub rules: ResourceRules,

    // Reading.
    /// The columns of a Table; `None` shows name and time of creation.
    pub printer: Option<Printer>,
    /// The fields that field selectors may name.
    pub selectable: Selectable,
    /// How objects are converted between the version that is asked for and the one that is kept.
    pub(crate) conversion: Option<Conversion>,

    // From the body of a request to an object.
    /// Fills in what the request leaves out.
    pub(crate) set_defaults: fn(&Resource, &mut Value),
    /// An object without labels gets those of its pod template.
    pub(crate) takes_template_labels: bool,

    // Creating.
    /// The effect of a POST.
    pub post: Post,
    /// The effect of the namespace's `LimitRange`s on a new object.
    pub(crate) limit_range: Option<LimitRange>,
    /// The admission plugins for a new object, before webhooks see it: they set fields or refuse it.
    pub(crate) admit_create: fn(&Registry, &Resource, &mut Value) -> Result<(), Status>,
    /// Sets the server's fields of a new object after webhooks have seen it.
    pub(crate) prepare_create: fn(&mut Value),
    /// The status that a new object starts with; `None` leaves what the request says.
    pub(crate) initial_status: fn(&Resource) -> Option<Value>,
    /// Notes on a new object who has asked for it.
    pub(crate) set_requester: fn(&mut Value, &User),

    // Changing.
    /// The fields that a write through `status` changes.
    pub(crate) status_fields: &'static [&'static str],
    /// The metadata that a write through a subresource changes, besides annotations and finalizers.
    pub(crate) status_metadata: &'static [&'static str],
    /// The fields that a write through `status` never owns.
    pub(crate) status_reset_fields: &'static [&'static [&'static str]],
    /// Makes of the new object what this request may make of the current one.
    pub(crate) prepare_update: fn(&Resource, Part, &mut Value, &Value),
    /// A change of annotations is a new generation.
    pub(crate) annotations_are_desired: bool,
    /// Writes down when the object changed in a way that the kind remembers.
    pub(crate) set_transition_time: fn(&mut Value, Option<&Value>, Timestamp),

    // Validation.
    /// Addresses and ports that are handed out, each to one object only.
    pub(crate) allocation: Option<Allocation>,
    /// Errors of an update's changes that are reported before everything else.
    pub(crate) validate_change_first: fn(&Value, &Value, &mut Vec<Cause>),
    /// Errors of fields that the server generates.
    pub(crate) validate_generated: fn(&Value, Option<&Value>, &mut Vec<Cause>),
    /// Errors of an object, which may replace another.
    pub validate: fn(&Resource, &Value, Option<&Value>, &mut Vec<Cause>),
    /// The real server validates the spec of an update twice and reports everything twice.
    pub(crate) validates_updates_twice: bool,
    /// Fields that no update changes, by their dotted paths.
    pub(crate) unchanging: &'static [&'static str],
    /// The dotted path of a field that is validated only in a new object: no update changes it anyway.
    pub(crate) validated_once: Option<&'static str>,
    /// Errors of what an update changes.
    pub(crate) validate_change: fn(&Value, &Value, &mut Vec<Cause>),
    /// Errors of a new status, which replaces another.
    pub(crate) validate_status: fn(&Value, &Value, &mut Vec<Cause>),
    /// The error of the metadata of a new object is reported only where nothing else is wrong.
    pub(crate) metadata_last: bool,
    /// Validation that has to look at other objects, or that writes the status once all is well.
    pub(crate) validate_in_registry: fn(&Registry, &mut Value, Option<&Value>, &mut Vec<Cause>),
    /// The warnings of the server.
    pub(crate) warn: fn(&mut Warnings, &Value, Option<&Value>),
    /// The warnings of the server about a status.
    pub(crate) warn_of_status: fn(&mut Warnings, &Value),
    /// Where the pods are whose security the namespace may restrict.
    pub(crate) pods: Pods,
    /// The admission plugins for a valid object, which may replace another: they only refuse it.
    pub(crate) admit: Admit,
    /// Refuses a write that would give more rights than its writer has.
    pub(crate) check_escalation: CheckEscalation,
    /// The use of quotas by objects.
    pub quota: Evaluator,
    /// An update may use more of a quota.
    pub(crate) update_uses_quota: bool,

    // Writing.
    /// Adds the fields that the real server adds whenever it reads an object from its store.
    pub(crate) complete: fn(&mut Value),
    /// Before an object is stored.
    pub(crate) before_write: fn(&Registry, &Value),
    /// After an object was created or changed.
    pub(crate) after_write: fn(&Registry, &Value),
    /// After `before_write`, where the object was not stored.
    pub(crate) after_failed_write: fn(&Registry, &Key),

    // Deleting.
    /// Refuses a delete whose preconditions are not met; `None` does it in the common words.
    pub(crate) check_preconditions: Option<CheckPreconditions>,
    /// Refuses to delete an object; `None` never does, and does not read the object.
    pub(crate) admit_delete: Option<AdmitDelete>,
    /// Webhooks get the uid of the deleted object as a precondition, even if the request does not name it.
    pub(crate) delete_names_uid: bool,
    /// Marks an object that is deleted for the first time; `None` does it in the common way.
    pub(crate) mark_deleted: Option<fn(&mut Value, Timestamp)>,
    /// Seconds until a deleted object may be removed.
    pub(crate) grace_period: fn(&DeleteOptions, &Value) -> i64,
    /// Changes the status of an object that is deleted.
    pub(crate) set_deleted_status: fn(&mut Value),
    /// Even where nothing keeps an object it is marked first, and removed then.
    pub(crate) marked_before_removal: bool,
    /// Returns true if something beside its finalizers keeps a deleted object.
    pub(crate) is_kept: fn(&Value) -> bool,
    /// After an object was removed.
    pub(crate) after_removal: fn(&Registry, &Arc<Stored>),

    /// Where etcd has the objects, as error texts tell it, if not below the plural.
    pub(crate) etcd_prefix: Option<&'static str>,
}

impl std::fmt::Debug for Strategy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Strategy").field("id", &self.id).finish_non_exhaustive()
    }
}

/// Refuses a valid object, which may replace the last one.
pub(crate) type Admit = fn(&Registry, &mut Context, Write<'_>, &Value, Option<&Value>) -> Result<(), Status>;

/// Refuses a write in a namespace that would give more rights than its writer has.
pub(crate) type CheckEscalation =
    fn(&Registry, &Context, &Resource, &str, &Value, Option<&Value>) -> Result<(), Status>;

/// Refuses to delete the object at the key.
pub(crate) type AdmitDelete = fn(&Key, &Value) -> Result<(), Status>;

/// Refuses to delete the object at the key where the options mean another one.
pub(crate) type CheckPreconditions = fn(&Resource, &Key, &DeleteOptions, &Stored) -> Result<(), Status>;

/// A resource and the part of its objects that is written.
pub(crate) type Write<'a> = (&'a Resource, Part);

/// The effect of a POST to a collection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Post {
    /// An object.
    Object,
    /// Nothing: it is answered and forgotten.
    Review,
    /// Nothing: it puts a pod on a node.
    Binding,
}

/// The fields that field selectors may name besides name and namespace.
#[derive(Clone, Copy, Debug)]
pub struct Selectable {
    /// The fields; `None` is a kind that knows of no others, which has an error text of its own.
    pub fields: Option<&'static [&'static str]>,
    /// The words of the refusal of another field.
    pub refusal: fn(&str) -> String,
    /// A field that is known without reading the object.
    pub known: for<'a> fn(&'a Attributes, &str) -> Option<&'a str>,
}

impl Selectable {
    const COMMON: Selectable = Selectable {
        fields: None,
        refusal: |field| {
            format!("{field:?} is not a known field selector: only \"metadata.name\", \"metadata.namespace\"")
        },
        known: |_, _| None,
    };

    /// These fields.
    pub const fn fields(fields: &'static [&'static str]) -> Self {
        Selectable {
            fields: Some(fields),
            refusal: |field| format!("field label not supported: {field}"),
            ..Selectable::COMMON
        }
    }
}

/// Between two versions of a kind.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Conversion {
    /// From the version that is kept to the one that is asked for.
    pub(crate) to_served: fn(&mut Value),
    /// And back.
    pub(crate) to_stored: fn(&mut Value),
}

/// The effect of a `LimitRange` on a new object.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LimitRange {
    /// Fills in what the object does not say.
    pub(crate) fill: fn(&mut Value, &Value),
    /// The values below the minimum or above the maximum.
    pub(crate) violations: fn(&Value, &Value) -> Vec<String>,
}

/// How a kind gets addresses and ports. All writes of such kinds wait for each other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Allocation {
    /// Refuses a new object before anything else is looked at. The flag is whether this is a dry run.
    pub(crate) check_new: fn(&Value, bool) -> Result<(), Status>,
    /// Keeps the allocated values of the current object in the changed one.
    pub keep: fn(&mut Value, &Value) -> Result<(), Status>,
    /// Gives an object what it lacks. It may replace the second one.
    pub(crate) allocate: fn(&Registry, &mut Value, Option<&Value>) -> Result<(), Status>,
}

/// Where an object has pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pods {
    /// It has none.
    None,
    /// It is one.
    Itself,
    /// It has a template of them, at this JSON pointer.
    Template(&'static str),
}

/// The strategy of a resource: what its kind has in `kinds`.
pub fn strategy_of(resource: &Resource) -> &'static Strategy {
    resource.strategy.downcast_ref().unwrap_or(&COMMON)
}

/// The strategy of custom resources, and of kinds that have none.
pub(super) static COMMON: Strategy = Strategy::COMMON;

impl Strategy {
    /// Rules for most kinds.
    pub const COMMON: Strategy = Strategy {
        id: "",
        table: None,
        storage_api_version: None,
        indexing: Indexing::COMMON,
        rules: ResourceRules::COMMON,
        printer: None,
        selectable: Selectable::COMMON,
        conversion: None,
        set_defaults: |_, _| {},
        takes_template_labels: false,
        post: Post::Object,
        limit_range: None,
        admit_create: |_, _, _| Ok(()),
        prepare_create: |_| {},
        initial_status: |_| Some(json!({})),
        set_requester: |_, _| {},
        status_fields: &["/status"],
        status_metadata: &["ownerReferences", "labels"],
        status_reset_fields: &[&["spec"]],
        prepare_update: |_, _, _, _| {},
        annotations_are_desired: false,
        set_transition_time: |_, _, _| {},
        allocation: None,
        validate_change_first: |_, _, _| {},
        validate_generated: |_, _, _| {},
        validate: |_, _, _, _| {},
        validates_updates_twice: false,
        unchanging: &[],
        validated_once: None,
        validate_change: |_, _, _| {},
        validate_status: |_, _, _| {},
        metadata_last: false,
        validate_in_registry: |_, _, _, _| {},
        warn: |_, _, _| {},
        warn_of_status: |_, _| {},
        pods: Pods::None,
        admit: |_, _, _, _, _| Ok(()),
        check_escalation: |_, _, _, _, _, _| Ok(()),
        quota: Evaluator::COMMON,
        update_uses_quota: false,
        complete: |_| {},
        before_write: |_, _| {},
        after_write: |_, _| {},
        after_failed_write: |_, _| {},
        check_preconditions: None,
        admit_delete: None,
        delete_names_uid: false,
        mark_deleted: None,
        grace_period: |_, _| 0,
        set_deleted_status: |_| {},
        marked_before_removal: false,
        is_kept: |_| false,
        after_removal: |_, _| {},
        etcd_prefix: None,
    };
}
