//! Create, update and delete over HTTP. Read `patch` for the four kinds of patches.

use super::kind;
use super::options;
use super::path::{Query, Target};
use super::read::selected;
use super::respond::{self, Shape};
use super::select::Selection;
use crate::tokens::Tokens;
use bytes::Bytes;
use http::{HeaderMap, Response, StatusCode};
use opdev_admission::authorization::Attributes;
use opdev_apimachinery::body::Body;
use opdev_apimachinery::error::Status;
use opdev_apimachinery::identity::User;
use opdev_apimachinery::part::Part;
use opdev_apimachinery::resource::{Resource, metadata};
use opdev_object::meta::Gvk;
use opdev_registry::{AdmissionSubject, Change, Context, FieldValidation, UpdateMethod, scale, unversioned};
use opdev_storage::{Key, Stored};
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// One request for a resource, with everything that was read off it.
pub(crate) struct Call<'a> {
    pub(crate) user: &'a User,
    pub headers: &'a HeaderMap,
    pub query: &'a Query,
    pub target: &'a Target,
    pub body: &'a Bytes,
    pub tokens: &'a Tokens,
    pub(crate) shape: Shape,
}

/// An answer, and the warnings to send with it.
pub(crate) type Answer = Result<(Response<Body>, Vec<String>), Status>;

impl Call<'_> {
    pub(crate) fn resource(&self) -> &Arc<Resource> {
        &self.shape.resource
    }

    /// Namespace and name as the store knows them.
    pub(crate) fn key(&self) -> Key {
        let namespace = self.target.namespace.as_deref().unwrap_or_default();
        Key::new(namespace, self.target.name.as_deref().unwrap_or_default())
    }

    pub(crate) fn context(&self, kind: &str, apply: bool) -> Result<Context, Status> {
        options::context(self.user, self.headers, self.query, kind, apply)
    }

    /// The body as an object of the resource's kind.
    fn object(&self, ctx: &mut Context) -> Result<Value, Status> {
        let resource = self.resource();
        let read = kind::read(self.headers, self.body, &resource.kind)?;
        kind::of_body(resource, &read.value, self.body)?;
        self.accepted(ctx, read).map_err(|unfit| unfit.bad_request(resource))
    }

    /// POST.
    pub(crate) fn create(&self) -> Answer {
        let mut ctx = self.context("CreateOptions", false)?;
        let namespace = self.target.namespace.as_deref().unwrap_or_default();
        let stored = self
            .object(&mut ctx)
            .and_then(|object| self.shape.registry.create(&mut ctx, self.resource(), namespace, object))
            .map_err(|status| status.warned(&ctx.warnings))?;
        Ok((self.shape.answer(StatusCode::CREATED, &stored)?, ctx.warnings))
    }

    /// A user who creates an object by a PUT or by an apply needs the right to create, too.
    pub(crate) fn may_create(&self) -> Result<(), Status> {
        let (resource, key) = (self.resource(), self.key());
        let wanted = Attributes::on("create", &resource.group, &resource.plural, &key.namespace, &key.name);
        self.shape.registry.authorize(self.user, &wanted)
    }

    /// PUT of the object or of one part of it.
    pub(crate) fn update(&self, part: Part) -> Answer {
        let mut ctx = self.context("UpdateOptions", false)?;
        let (code, stored) = self.put(&mut ctx, part).map_err(|status| status.warned(&ctx.warnings))?;
        Ok((self.shape.answer(code, &stored)?, ctx.warnings))
    }

    fn put(&self, ctx: &mut Context, part: Part) -> Result<(StatusCode, Arc<Stored>), Status> {
        let (resource, key, registry) = (self.resource(), self.key(), &self.shape.registry);
        let read = kind::read(self.headers, self.body, &resource.kind)?;
        if let Err(wrong) = kind::of_body(resource, &read.value, self.body) {
            return Err(self.wrong_kind(&read.value, wrong));
        }
        let object = self.accepted(ctx, read).map_err(|unfit| unfit.bad_request(resource))?;
        self.check_named(&object)?;
        let change = Change { resource, key: &key, part, way: UpdateMethod::Replace };
        let made = registry.update(ctx, change, &mut |_, _| Ok(object.clone()));
        match made {
            Err(status)
                if status.is_not_found()
                    && (part == Part::Main || resource.rules.create_on_status_update)
                    && resource.rules.create_on_update =>
            {
                self.may_create()?;
                let mut object = object;
                if !ctx.dry_run {
                    metadata::map_mut(&mut object).remove("resourceVersion");
                }
                Ok((StatusCode::CREATED, registry.create(ctx, resource, &key.namespace, object)?))
            }
            other => Ok((StatusCode::OK, other?)),
        }
    }

    /// The error of a PUT of another kind. That of a custom resource comes after what its metadata lacks.
    fn wrong_kind(&self, object: &Value, wrong: Status) -> Status {
        let resource = self.resource();
        let is_kind = wrong.causes.first().is_some_and(|cause| cause.field == "kind");
        if resource.custom.is_none() || !is_kind {
            return wrong;
        }
        if let Err(unnamed) = self.check_named(object) {
            return unnamed;
        }
        match metadata::text(object, "resourceVersion") {
            "" => unversioned(resource, &self.key().name),
            _ => wrong,
        }
    }

    /// As `check_identity`; a PUT has to name its object.
    fn check_named(&self, object: &Value) -> Result<(), Status> {
        if metadata::text(object, "name").is_empty() {
            return Err(Status::bad_request(format!(
                "the name of the object ({} based on URL) was undeterminable: name must be provided",
                self.key().name
            )));
        }
        self.check_identity(object)
    }

    /// The body of a pod's subresource, which names the pod. Only it does where a binding is the namespace's.
    fn about_pod(&self, kind: &str) -> Result<Value, Status> {
        let (object, key) = (self.body_of(kind)?, self.key());
        metadata::check_namespace(self.resource(), &object, &key.namespace)?;
        match (metadata::text(&object, "name"), &*key.name) {
            ("", "") => Err(Status::bad_request("Name parameter required.")),
            (name, of_path) if of_path.is_empty() || name == of_path => Ok(object),
            _ => Err(Status::bad_request(format!("name in URL does not match name in {kind} object"))),
        }
    }

    /// Namespace and name of the body are those of the path, whether or not the object is there.
    pub(crate) fn check_identity(&self, object: &Value) -> Result<(), Status> {
        let key = self.key();
        metadata::check_namespace(self.resource(), object, &key.namespace)?;
        let name = metadata::text(object, "name");
        if !name.is_empty() && name != &*key.name {
            return Err(Status::bad_request(format!(
                "the name of the object ({name}) does not match the name on the URL ({})",
                key.name
            )));
        }
        Ok(())
    }

    /// GET of a scale.
    pub(crate) fn read_scale(&self) -> Result<Response<Body>, Status> {
        let (resource, key) = (self.resource(), self.key());
        let stored = self.shape.registry.store.get(&resource.table, &key);
        let Some(stored) = stored else {
            return Err(Status::not_found(&resource.group, &resource.plural, &key.name));
        };
        self.scale_answer(&stored)
    }

    pub(crate) fn scale_answer(&self, stored: &Arc<Stored>) -> Result<Response<Body>, Status> {
        let stored = self.shape.registry.one_at(self.resource(), stored)?;
        let object = self.shape.registry.served(self.resource(), &stored);
        let scale = scale::read(self.resource(), &object)?;
        Ok(respond::document(StatusCode::OK, &scale, self.shape.agreed.encoding))
    }

    /// PUT of a scale.
    pub(crate) fn update_scale(&self) -> Answer {
        let mut ctx = self.context("UpdateOptions", false)?;
        let scale = self.body_of("Scale")?;
        self.check_named(&scale)?;
        let key = self.key();
        let registry = &self.shape.registry;
        let stored = registry.update_scale(&mut ctx, self.resource(), &key, &mut |_| Ok(scale.clone()))?;
        Ok((self.scale_answer(&stored)?, ctx.warnings))
    }

    /// The body of a subresource, which is an object.
    pub(crate) fn body_of(&self, kind: &str) -> Result<Value, Status> {
        kind::read_below(self.headers, self.body, kind)
    }

    fn delete_options(&self) -> Result<(opdev_registry::DeleteOptions, Context), Status> {
        let body = match self.body.is_empty() {
            true => None,
            false => Some(kind::read_options(self.headers, self.body)?),
        };
        let (options, dry) = options::delete(self.query, body.as_ref())?;
        let mut ctx = Context::new(self.user, "");
        ctx.validation = FieldValidation::Ignore;
        ctx.dry_run = dry;
        let silent = options.propagation.is_none() && options.orphan_dependents.is_none();
        if let Some(text) = self.resource().rules.silent_delete_warning.filter(|_| silent) {
            ctx.warn(text);
        }
        Ok((options, ctx))
    }

    /// DELETE of one object.
    pub(crate) fn delete(&self) -> Answer {
        let (options, mut ctx) = self.delete_options()?;
        let (resource, key) = (self.resource(), self.key());
        let deleted = self
            .shape
            .registry
            .delete(&mut ctx, resource, &key, &options)
            .map_err(|status| status.warned(&ctx.warnings))?;
        let accepted = !deleted.gone && options.orphan_dependents == Some(false);
        let code = if accepted { StatusCode::ACCEPTED } else { StatusCode::OK };
        if !deleted.gone || resource.rules.returns_deleted {
            return Ok((self.shape.answer(code, &deleted.object)?, ctx.warnings));
        }
        let mut details = Map::new();
        details.insert("name".to_owned(), Value::from(&*key.name));
        if !resource.group.is_empty() {
            details.insert("group".to_owned(), Value::from(resource.group.as_str()));
        }
        details.insert("kind".to_owned(), Value::from(resource.plural.as_str()));
        details.insert("uid".to_owned(), Value::from(deleted.object.attributes().uid()));
        let status = success(Some(details));
        Ok((respond::document(code, &status, self.shape.agreed.encoding), ctx.warnings))
    }

    /// DELETE of a collection: answers with what was selected.
    pub(crate) fn delete_collection(&self) -> Answer {
        let (mut options, mut ctx) = self.delete_options()?;
        options.selected = true;
        let resource = self.resource();
        let selection = Selection::parse(resource, self.query, None)?;
        let (revision, items) = selected(&self.shape, self.target.namespace.as_deref(), &selection)?;
        for object in &items {
            let key = object.key();
            match self.shape.registry.delete(&mut ctx, resource, key, &options) {
                // Somebody else was faster.
                Err(status) if status.is_not_found() => {}
                other => _ = other.map_err(|status| status.warned(&ctx.warnings))?,
            }
        }
        let mut meta = Map::new();
        meta.insert("resourceVersion".to_owned(), Value::from(revision.to_string()));
        Ok((self.shape.list(meta, &items), ctx.warnings))
    }

    /// Asks webhooks and policies about what is created below an object and is no part of it.
    pub(crate) fn asked_below(
        &self,
        ctx: &mut Context,
        key: &Key,
        kind: Gvk,
        object: &mut Value,
    ) -> Result<(), Status> {
        let registry = &self.shape.registry;
        if !registry.has_admission() {
            return Ok(());
        }
        object["apiVersion"] = Value::from(kind.api_version());
        object["kind"] = Value::from(kind.kind.as_str());
        let meta = metadata::map_mut(object);
        if !key.namespace.is_empty() {
            meta.insert("namespace".to_owned(), Value::from(&*key.namespace));
        }
        let below = self.target.subresource.as_deref().unwrap_or_default();
        let subject = AdmissionSubject::below(self.resource(), below, kind, key);
        registry.admit(ctx, &subject, object).map_err(|status| status.warned(&ctx.warnings))
    }

    /// Asks webhooks and policies about a connection to a pod.
    pub(crate) fn asked_connect(&self, below: &str) -> Result<(), Status> {
        let registry = &self.shape.registry;
        let kind = match below {
            "exec" => "PodExecOptions",
            "attach" => "PodAttachOptions",
            "portforward" => "PodPortForwardOptions",
            "proxy" => "PodProxyOptions",
            _ => return Ok(()),
        };
        if !registry.has_admission() {
            return Ok(());
        }
        let (kind, key) = (Gvk::new("", "v1", kind), self.key());
        let mut options = json!({"kind": kind.kind, "apiVersion": "v1"});
        for flag in ["stdin", "stdout", "stderr", "tty"] {
            if self.query.flag(flag) == Some(true) {
                options[flag] = Value::from(true);
            }
        }
        if let Some(container) = self.query.get("container") {
            options["container"] = Value::from(container);
        }
        let command: Vec<&str> = self.query.all("command").collect();
        if !command.is_empty() {
            options["command"] = json!(command);
        }
        let mut ctx = Context::new(self.user, "");
        let subject = AdmissionSubject::connect(self.resource(), below, kind, &key);
        registry.admit(&mut ctx, &subject, &mut options)
    }

    /// POST of a binding.
    pub(crate) fn bind(&self) -> Answer {
        let mut ctx = self.context("CreateOptions", false)?;
        let binding = self.about_pod("Binding")?;
        let mut key = self.key();
        if key.name.is_empty() {
            key = Key::new(&key.namespace, metadata::text(&binding, "name"));
        }
        let pods = self.shape.registry.resource("pods")?;
        let mut binding = binding;
        let kind = Gvk::new("", "v1", "Binding");
        self.asked_below(&mut ctx, &key, kind, &mut binding)?;
        self.shape.registry.bind(&mut ctx, &pods, &key, &binding)?;
        Ok((respond::document(StatusCode::CREATED, &created(), self.shape.agreed.encoding), ctx.warnings))
    }

    /// POST of an eviction.
    pub(crate) fn evict(&self) -> Answer {
        let mut eviction = self.about_pod("Eviction")?;
        let said = |eviction: &Value| eviction.get("deleteOptions").filter(|said| said.is_object()).cloned();
        let (_, dry) = options::delete(self.query, said(&eviction).as_ref())?;
        let mut ctx = Context::new(self.user, "");
        ctx.dry_run = dry;
        let kind = Gvk::new("policy", "v1", "Eviction");
        self.asked_below(&mut ctx, &self.key(), kind, &mut eviction)?;
        let (options, _) = options::delete(self.query, said(&eviction).as_ref())?;
        // The Eviction was admitted already, so admission is not called for the delete.
        ctx.skip_admission = true;
        self.shape.registry.evict(&mut ctx, self.resource(), &self.key(), &options)?;
        Ok((respond::document(StatusCode::CREATED, &created(), self.shape.agreed.encoding), ctx.warnings))
    }
}

/// The `Status` of a POST that makes no object: only here it says its code.
fn created() -> Value {
    let mut status = success(None);
    status["code"] = Value::from(StatusCode::CREATED.as_u16());
    status
}

/// A `Status` of something that went well.
fn success(details: Option<Map<String, Value>>) -> Value {
    let mut status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"});
    if let Some(details) = details {
        status["details"] = Value::Object(details);
    }
    status
}
