//! When webhooks and policies are called for a write, and what is sent to them. `admission` calls them.

use super::accept::accept;
use super::context::{Context, FieldValidation};
use super::strategy::strategy_of;
use super::{Registry, convert, scale};
use crate::options::DeleteOptions;
use opdev_admission::Cluster;
use opdev_admission::authorization::{self, Decision};
use opdev_admission::{Attributes, Dispatcher, Operation, Webhooks};
use opdev_apimachinery::contract::Propagation;
use opdev_apimachinery::error::Status;
use opdev_apimachinery::identity::User;
use opdev_apimachinery::part::Part;
use opdev_apimachinery::resource::{Resource, metadata};
use opdev_object::apply::compact;
use opdev_object::meta::Gvk;
use opdev_storage::{Key, Stored};
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// The object and the operation that admission judges.
#[derive(Clone, Debug)]
pub struct AdmissionSubject<'a> {
    operation: Operation,
    resource: &'a Resource,
    subresource: &'a str,
    kind: Gvk,
    namespace: &'a str,
    name: &'a str,
}

impl<'a> AdmissionSubject<'a> {
    /// A new object.
    pub fn create(resource: &'a Resource, namespace: &'a str, name: &'a str) -> Self {
        AdmissionSubject {
            operation: Operation::Create,
            resource,
            subresource: "",
            kind: resource.gvk(),
            namespace,
            name,
        }
    }

    /// A change of a part of an object.
    pub fn update(resource: &'a Resource, part: Part, key: &'a Key) -> Self {
        let kind = match part {
            Part::Scale => Gvk::new("autoscaling", "v1", "Scale"),
            _ => resource.gvk(),
        };
        AdmissionSubject {
            operation: Operation::Update,
            subresource: part.subresource().unwrap_or_default(),
            kind,
            namespace: &key.namespace,
            name: &key.name,
            resource,
        }
    }

    /// Something that is created below an object and is no part of it: an Eviction, a TokenRequest.
    pub fn below(resource: &'a Resource, subresource: &'a str, kind: Gvk, key: &'a Key) -> Self {
        AdmissionSubject {
            operation: Operation::Create,
            subresource,
            kind,
            namespace: &key.namespace,
            name: &key.name,
            resource,
        }
    }

    /// A connection to a pod.
    pub fn connect(resource: &'a Resource, subresource: &'a str, kind: Gvk, key: &'a Key) -> Self {
        AdmissionSubject {
            operation: Operation::Connect,
            ..AdmissionSubject::below(resource, subresource, kind, key)
        }
    }

    fn attributes(&'a self, ctx: &'a Context) -> Attributes<'a> {
        let kind = match self.operation {
            Operation::Create => "CreateOptions",
            Operation::Update | Operation::Delete => "UpdateOptions",
            Operation::Connect => "",
        };
        let mut options = Value::Null;
        if !kind.is_empty() {
            let mut map = ctx.options.clone();
            head(&mut map, kind, ctx.dry_run);
            options = Value::Object(map);
        }
        Attributes {
            operation: self.operation,
            resource: self.resource,
            subresource: self.subresource,
            kind: self.kind.clone(),
            // A namespace is in itself.
            namespace: if self.resource.rules.is_namespace { self.name } else { self.namespace },
            name: self.name,
            options,
            dry_run: ctx.dry_run,
            user: &ctx.user,
        }
    }
}

fn head(options: &mut Map<String, Value>, kind: &str, dry_run: bool) {
    options.insert("kind".to_owned(), Value::from(kind));
    options.insert("apiVersion".to_owned(), Value::from("meta.k8s.io/v1"));
    if dry_run {
        options.insert("dryRun".to_owned(), json!(["All"]));
    }
}

/// The options of a delete as webhooks see them.
fn delete_options(options: &DeleteOptions, uid: Option<&str>, dry_run: bool) -> Value {
    let mut map = Map::new();
    head(&mut map, "DeleteOptions", dry_run);
    if let Some(grace) = options.grace {
        map.insert("gracePeriodSeconds".to_owned(), Value::from(grace));
    }
    let mut preconditions = Map::new();
    let named =
        [("uid", options.uid.as_deref().or(uid)), ("resourceVersion", options.resource_version.as_deref())];
    for (field, value) in named {
        preconditions.extend(value.map(|value| (field.to_owned(), Value::from(value))));
    }
    if !preconditions.is_empty() {
        map.insert("preconditions".to_owned(), Value::Object(preconditions));
    }
    if let Some(orphan) = options.orphan_dependents {
        map.insert("orphanDependents".to_owned(), Value::from(orphan));
    }
    if let Some(policy) = options.propagation {
        let text = match policy {
            Propagation::Background => "Background",
            Propagation::Foreground => "Foreground",
            Propagation::Orphan => "Orphan",
        };
        map.insert("propagationPolicy".to_owned(), Value::from(text));
    }
    Value::Object(map)
}

impl Registry {
    /// The registry with these settings for webhooks. It calls the configured ones from now on.
    pub fn with_webhooks(mut self, settings: Webhooks) -> Self {
        self.admission = opdev_admission::Admission::new(settings);
        self.admission.configure(&self);
        self
    }

    /// Takes in the webhooks and policies that are configured now.
    pub(super) fn configure_admission(&self) {
        self.admission.configure(self);
    }

    /// Returns true if there is any webhook or policy to ask.
    pub fn has_admission(&self) -> bool {
        self.admission.any()
    }

    /// Returns true if a write may have to wait for a webhook, be it for the conversion of an object, and so
    /// may only be done by a thread that may wait.
    pub fn waits_for_webhooks(&self) -> bool {
        self.admission.any_hooks() || self.catalog.served().converts
    }

    /// Returns true if a write of a resource may have to wait for a webhook.
    pub fn may_wait_for(&self, resource: &Resource) -> bool {
        // The end of a definition reads its custom resources.
        let converts = resource.plural == "customresourcedefinitions" && self.catalog.served().converts;
        converts || self.admission.may_concern(&resource.plural)
    }

    /// Returns true if webhooks or policies are asked about a write: never about policies.
    pub(super) fn calls_admission(&self, ctx: &Context, resource: &Resource) -> bool {
        self.admission.any() && !ctx.skip_admission && !resource.rules.exempt_from_admission
    }

    /// Returns true if what is allocated for an object has to be looked at again after webhooks were asked.
    pub(super) fn reserved(&self, resource: &Resource) -> bool {
        self.admission.any() && strategy_of(resource).allocation.is_some()
    }

    pub(super) fn asking(&self) -> Dispatcher<'_> {
        Dispatcher { admission: &self.admission, cluster: self }
    }

    /// Has webhooks change an object that is to be written.
    pub(super) fn call_mutating(
        &self,
        ctx: &mut Context,
        subject: &AdmissionSubject<'_>,
        object: &mut Value,
        old: Option<&Value>,
    ) -> Result<(), Status> {
        if !self.calls_admission(ctx, subject.resource) {
            return Ok(());
        }
        let managed = object["metadata"].get("managedFields").cloned();
        compact::expand(object);
        let old = old.map(compact::expanded);
        let old = old.as_deref();
        let mut warnings = Vec::new();
        let done = self.asking().mutate(&subject.attributes(ctx), Some(object), old, &mut warnings);
        warnings.into_iter().for_each(|text| ctx.warn(text));
        done?;
        if let Err(why) = check_managed(&object["metadata"]["managedFields"]) {
            let meta = metadata::map_mut(object);
            match managed {
                Some(managed) => meta.insert("managedFields".to_owned(), managed),
                None => meta.remove("managedFields"),
            };
            ctx.warn(format!(
                ".metadata.managedFields was in an invalid state after admission; this could be caused by an \
                 outdated mutating admission controller; please fix your requests: {why}"
            ));
        }
        Ok(())
    }

    /// Asks webhooks whether an object may be written as it is now.
    pub(super) fn call_validating(
        &self,
        ctx: &mut Context,
        subject: &AdmissionSubject<'_>,
        object: Option<&Value>,
        old: Option<&Value>,
    ) -> Result<(), Status> {
        if !self.calls_admission(ctx, subject.resource) {
            return Ok(());
        }
        let (object, old) = (object.map(compact::expanded), old.map(compact::expanded));
        let (object, old) = (object.as_deref(), old.as_deref());
        let mut warnings = Vec::new();
        let done = self.asking().validate(&subject.attributes(ctx), object, old, &mut warnings);
        warnings.into_iter().for_each(|text| ctx.warn(text));
        done
    }

    /// Has webhooks change an update. A Scale was changed as such before, a Binding is no update.
    pub(super) fn call_mutating_for_update(
        &self,
        ctx: &mut Context,
        subject: &AdmissionSubject<'_>,
        part: Part,
        object: &mut Value,
        current: &Value,
    ) -> Result<(), Status> {
        if matches!(part, Part::Scale | Part::Binding) || !self.calls_admission(ctx, subject.resource) {
            return Ok(());
        }
        if subject.resource.namespaced {
            let meta = metadata::map_mut(object);
            meta.entry("namespace").or_insert_with(|| Value::from(subject.namespace));
        }
        self.call_mutating(ctx, subject, object, Some(current))
    }

    /// Asks webhooks about an update; about the Scale where that was updated.
    pub(super) fn call_validating_for_update(
        &self,
        ctx: &mut Context,
        subject: &AdmissionSubject<'_>,
        part: Part,
        object: &Value,
        current: &Value,
    ) -> Result<(), Status> {
        match part {
            Part::Binding => Ok(()),
            Part::Scale => {
                let (new, old) =
                    (scale::read(subject.resource, object)?, scale::read(subject.resource, current)?);
                self.call_validating(ctx, subject, Some(&new), Some(&old))
            }
            _ => self.call_validating(ctx, subject, Some(object), Some(current)),
        }
    }

    /// Asks webhooks about something that is created but not kept, which they may change.
    pub fn admit(
        &self,
        ctx: &mut Context,
        subject: &AdmissionSubject<'_>,
        object: &mut Value,
    ) -> Result<(), Status> {
        self.call_mutating(ctx, subject, object, None)?;
        self.call_validating(ctx, subject, Some(object), None)
    }

    /// Asks webhooks whether an object may go.
    pub(super) fn admit_delete(
        &self,
        ctx: &mut Context,
        resource: &Resource,
        key: &Key,
        options: &DeleteOptions,
        current: &Arc<Stored>,
    ) -> Result<(), Status> {
        if !self.calls_admission(ctx, resource) {
            return Ok(());
        }
        let old = convert::served(resource, &self.one_at(resource, current)?.value());
        let old = compact::expanded(&old);
        let name = if options.selected { "" } else { &*key.name };
        let subject = AdmissionSubject {
            operation: Operation::Delete,
            ..AdmissionSubject::create(resource, &key.namespace, name)
        };
        let strategy = strategy_of(resource);
        let uid = strategy.delete_names_uid.then(|| metadata::text(&old, "uid"));
        // An object that goes at once although it is marked first: the real server asks twice.
        let over = old["metadata"]["deletionGracePeriodSeconds"].as_i64() == Some(0);
        let twice = strategy.marked_before_removal && !over && (strategy.grace_period)(options, &old) == 0;
        let mut warnings = Vec::new();
        let mut done = Ok(());
        for _ in 0..=i32::from(twice) {
            let mut asked = subject.attributes(ctx);
            asked.options = delete_options(options, uid, ctx.dry_run);
            let asking = self.asking();
            done = asking.mutate(&asked, None, Some(&old), &mut warnings);
            done = done.and_then(|()| asking.validate(&asked, None, Some(&old), &mut warnings));
            if done.is_err() {
                break;
            }
        }
        warnings.into_iter().for_each(|text| ctx.warn(text));
        done
    }
}

impl Cluster for Registry {
    fn equivalents(&self, resource: &Resource) -> Vec<Arc<Resource>> {
        let same =
            |other: &Resource| other.table == resource.table && other.api_version() != resource.api_version();
        self.catalog.served().resources().iter().filter(|other| same(other)).cloned().collect()
    }

    fn converted(&self, from: &Resource, to: &Resource, object: Value) -> Result<Value, Status> {
        self.between(from, to, object)
    }

    fn completed(&self, resource: &Resource, object: Value, strict: bool) -> Result<Value, Status> {
        let mut ctx = Context::new(&User::admin(), "");
        ctx.validation = if strict { FieldValidation::Strict } else { FieldValidation::Ignore };
        accept(&mut ctx, resource, object).map_err(|unfit| Status::internal(&unfit.to_string()))
    }

    fn of_kind(&self, kind: &Gvk) -> Option<Arc<Resource>> {
        self.catalog.served().by_kind(&kind.group, Some(&kind.version), &kind.kind).cloned()
    }

    fn objects(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        name: Option<&str>,
    ) -> Result<Vec<Value>, Status> {
        let found = match name {
            Some(name) => {
                let key = Key::new(namespace.unwrap_or_default(), name);
                self.store.get(&resource.table, &key).into_iter().collect()
            }
            None => self.store.list(&resource.table, namespace).items,
        };
        let at = |stored: &Arc<Stored>| {
            let served = convert::served(resource, &self.one_at(resource, stored)?.value());
            Ok(compact::expanded(&served).into_owned())
        };
        found.iter().map(at).collect()
    }

    fn may(&self, user: &User, wanted: &authorization::Attributes) -> Decision {
        self.decide(user, wanted)
    }
}

/// The error of managed fields that a webhook has changed.
enum ManagedFieldsError {
    Operation,
    FieldsType(String),
}

impl std::fmt::Display for ManagedFieldsError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ManagedFieldsError::Operation => f.write_str("operation must be `Apply` or `Update`"),
            ManagedFieldsError::FieldsType(found) => write!(f, "unsupported fieldsType: {found}"),
        }
    }
}

/// Checks that a webhook has left managed fields that can be read.
fn check_managed(fields: &Value) -> Result<(), ManagedFieldsError> {
    for entry in fields.as_array().into_iter().flatten() {
        let said = |field: &str| entry[field].as_str().unwrap_or_default();
        if !matches!(said("operation"), "Apply" | "Update") {
            return Err(ManagedFieldsError::Operation);
        }
        if !matches!(said("fieldsType"), "" | "FieldsV1") {
            return Err(ManagedFieldsError::FieldsType(said("fieldsType").to_owned()));
        }
    }
    Ok(())
}
