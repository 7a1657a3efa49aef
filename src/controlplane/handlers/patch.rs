//! The four kinds of patches: JSON patch, merge patch, strategic merge patch, server-side apply.

use super::body;
use super::kind;
use super::strict::{accepted_patch, of_yaml, yaml_errors};
use super::write::{Answer, Call};
use http::StatusCode;
use opdev_apimachinery::error::{Cause, Status};
use opdev_apimachinery::part::Part;
use opdev_apimachinery::resource::{Resource, metadata};
use opdev_object::apply::compact;
use opdev_object::go::kind::kind as go_kind;
use opdev_object::meta::group_version;
use opdev_object::{patch, strategic};
use opdev_registry::{
    AcceptError, Change, Context, FieldValidation, UpdateMethod, accept_applied, fields, unversioned,
};
use serde_json::Value;

/// The kind of patch that a request carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Json,
    Merge,
    Strategic,
    Apply,
}

const JSON_PATCH: &str = "application/json-patch+json";
const MERGE_PATCH: &str = "application/merge-patch+json";
const STRATEGIC_PATCH: &str = "application/strategic-merge-patch+json";
const APPLY_PATCH: &str = "application/apply-patch+yaml";

impl Kind {
    fn from_media_type(media_type: &str, resource: &Resource) -> Result<Self, Status> {
        Ok(match media_type {
            JSON_PATCH => Kind::Json,
            MERGE_PATCH => Kind::Merge,
            STRATEGIC_PATCH if resource.custom.is_none() => Kind::Strategic,
            APPLY_PATCH => Kind::Apply,
            _ if resource.custom.is_some() => {
                return Err(Status::unsupported_media_type(&[JSON_PATCH, MERGE_PATCH, APPLY_PATCH]));
            }
            _ => {
                let all = [JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, APPLY_PATCH];
                return Err(Status::unsupported_media_type(&all));
            }
        })
    }
}

/// The 422 of a patch that cannot be carried out. Upstream keeps the reason to itself; ours is in the log.
fn unprocessable(why: &str) -> Status {
    tracing::debug!(why, "a JSON patch failed");
    Status::new(422, "Invalid", "the server rejected our request due to an error in our request")
}

/// The 400 of an object that has lost its name.
fn nameless(name: &str) -> Status {
    Status::bad_request(format!(
        "the name of the object ({name} based on URL) was undeterminable: name must be provided"
    ))
}

/// The 400 of an object without a name that was read as a kind without any fields.
fn unnamed(ctx: &mut Context, object: &Value, name: &str) -> Status {
    let fields = object.as_object().into_iter().flatten().map(|(field, _)| field.as_str());
    let unknown: Vec<String> = fields
        .filter(|field| !["apiVersion", "kind"].contains(field))
        .map(|field| format!("unknown field {field:?}"))
        .collect();
    match ctx.validation {
        FieldValidation::Strict => return unfit(object, &AcceptError::Strict(unknown)),
        FieldValidation::Warn => unknown.into_iter().for_each(|text| ctx.warn(text)),
        FieldValidation::Ignore => {}
    }
    nameless(name)
}

/// The 422 of a patched object that is none of its kind.
fn unfit(patched: &Value, unfit: &AcceptError) -> Status {
    let text = Value::from(compact::expanded(patched).to_string());
    Status::invalid("", "", "", vec![Cause::invalid("patch", &text, &unfit.to_string())])
}

impl Call<'_> {
    /// PATCH of the object or of one part of it.
    pub(crate) fn patch(&self, part: Part) -> Answer {
        let kind = Kind::from_media_type(body::media_type(self.headers), self.resource())?;
        let mut ctx = self.context("PatchOptions", kind == Kind::Apply)?;
        if kind == Kind::Apply {
            return self.apply(ctx, part);
        }
        let read = body::patch(self.body)?;
        let told = self.of_patch(&ctx, &read);
        let (change, validation) = (read.value, ctx.validation);
        let (resource, key) = (self.resource().clone(), self.key());
        let changed = |current: &Value| {
            let mut object = current.clone();
            fits(kind, validation, &change)?;
            patched(kind, &resource, &mut object, &change).map(|()| object)
        };
        let mut make = |ctx: &mut Context, current: &Value| {
            let object = changed(current)?;
            // A patch is no way to turn an object into one of another kind.
            let same = object["kind"] == current["kind"] && object["apiVersion"] == current["apiVersion"];
            if !same {
                if let Err(wrong) = kind::of_patched(&resource, &object) {
                    if resource.custom.is_some() && metadata::text(&object, "resourceVersion").is_empty() {
                        return Err(unversioned(&resource, &key.name));
                    }
                    // Another version, or none, is found out after everything else.
                    if wrong.causes.first().is_some_and(|cause| cause.field != "patch") {
                        let fit = accepted_patch(ctx, &resource, object.clone(), &told);
                        let fit = fit.map_err(|reason| unfit(&object, &reason))?;
                        if metadata::text(&fit, "name").is_empty() {
                            return Err(nameless(&key.name));
                        }
                    }
                    return Err(wrong);
                }
                // Without a version it would be read as the internal one, whose fields have no names.
                let is_its =
                    |kind: &Value| kind.as_str().is_none_or(|kind| kind.is_empty() || kind == resource.kind);
                if object["apiVersion"].as_str().is_none_or(str::is_empty) && is_its(&object["kind"]) {
                    return Err(unnamed(ctx, &object, &key.name));
                }
            }
            let object = match accepted_patch(ctx, &resource, object, &told) {
                Ok(object) => object,
                // The error shows the whole object, which is made again only for that.
                Err(reason) => return Err(unfit(&changed(current)?, &reason)),
            };
            if metadata::text(&object, "name").is_empty() {
                return Err(nameless(&key.name));
            }
            Ok(object)
        };
        let change = Change { resource: &resource, key: &key, part, way: UpdateMethod::Patch };
        let stored = self.shape.registry.update(&mut ctx, change, &mut make);
        let stored = stored.map_err(|status| status.warned(&ctx.warnings))?;
        Ok((self.shape.answer(StatusCode::OK, &stored)?, ctx.warnings))
    }

    /// PATCH of a scale.
    pub(crate) fn patch_scale(&self) -> Answer {
        let asked = match body::media_type(self.headers) {
            STRATEGIC_PATCH => Kind::Strategic,
            other => Kind::from_media_type(other, self.resource())?,
        };
        // A Scale has no lists: a strategic merge patch of it is a merge patch.
        let kind = if asked == Kind::Strategic { Kind::Merge } else { asked };
        let mut ctx = self.context("PatchOptions", kind == Kind::Apply)?;
        let (resource, key, registry) = (self.resource(), self.key(), &self.shape.registry);
        let stored = if kind == Kind::Apply {
            let applied = body::applied(self.body)?.value;
            kind::of_applied_scale(&applied)?;
            self.check_identity(&applied)?;
            let force = self.query.flag("force") == Some(true);
            registry.apply_scale(&mut ctx, resource, &key, &applied, force)?
        } else {
            let (change, validation) = (body::patch(self.body)?.value, ctx.validation);
            registry.update_scale(&mut ctx, resource, &key, &mut |current| {
                let mut object = current.clone();
                fits(asked, validation, &change)?;
                if change.is_null() {
                    return Ok(object);
                }
                patched(kind, resource, &mut object, &change)?;
                Ok(object)
            })?
        };
        Ok((self.scale_answer(&stored)?, ctx.warnings))
    }

    fn apply(&self, mut ctx: Context, part: Part) -> Answer {
        let read = body::applied(self.body)?;
        let applied = read.value;
        kind::of_applied(self.resource(), &applied)?;
        if read.twice && ctx.validation != FieldValidation::Ignore {
            let twice = of_yaml(self.body);
            if ctx.validation == FieldValidation::Strict && !twice.is_empty() {
                let why = yaml_errors(&twice);
                return Err(body::undecoded("strict ", &format!("error converting YAML to JSON: {why}")));
            }
            twice.into_iter().for_each(|text| ctx.warn(text));
        }
        let (resource, key) = (self.resource().clone(), self.key());
        let force = self.query.flag("force") == Some(true);
        let live = self.shape.registry.store.get(&resource.table, &key);
        if live.is_none() && (part == Part::Main || resource.rules.create_on_status_update) {
            return self.apply_create(ctx, &applied, force);
        }
        let change = Change { resource: &resource, key: &key, part, way: UpdateMethod::Apply };
        let registry = &self.shape.registry;
        let made = registry.update(&mut ctx, change, &mut |ctx, current| {
            let merged = fields::apply(registry, ctx, &resource, Some(current), &applied, part, force)?;
            if merged == *current {
                return Ok(merged);
            }
            let merged = self.fit(ctx, merged, &applied)?;
            if metadata::text(&merged, "name").is_empty() {
                return Err(nameless(&key.name));
            }
            Ok(merged)
        });
        let stored = made.map_err(|status| status.warned(&ctx.warnings))?;
        Ok((self.shape.answer(StatusCode::OK, &stored)?, ctx.warnings))
    }

    fn apply_create(&self, mut ctx: Context, applied: &Value, force: bool) -> Answer {
        let (resource, key, registry) = (self.resource(), self.key(), &self.shape.registry);
        self.may_create()?;
        let object = fields::apply(registry, &ctx, resource, None, applied, Part::Main, force)?;
        let uid = metadata::text(applied, "uid");
        if !uid.is_empty() {
            let why = format!(
                "uid mismatch: the provided object specified uid {uid}, and no existing object was found"
            );
            return Err(Status::conflict(&resource.group, &resource.plural, &key.name, &why));
        }
        let object = self.fit(&mut ctx, object, applied)?;
        if metadata::text(&object, "name").is_empty() {
            return Err(nameless(&key.name));
        }
        self.check_identity(&object)?;
        match registry.create_applied(&mut ctx, resource, &key.namespace, object) {
            // Somebody else was faster: then it is a change of what they made.
            Err(status) if status.is_already_exists() && !ctx.dry_run => self.apply(ctx, Part::Main),
            Err(status) => Err(status),
            Ok(stored) => Ok((self.shape.answer(StatusCode::CREATED, &stored)?, ctx.warnings)),
        }
    }

    /// The result of an apply as an object of its kind. Unknown fields were refused before.
    fn fit(&self, ctx: &mut Context, object: Value, applied: &Value) -> Result<Value, Status> {
        let resource = self.resource();
        let validation = std::mem::replace(&mut ctx.validation, FieldValidation::Ignore);
        let fit = accept_applied(ctx, resource, object);
        ctx.validation = validation;
        let (namespace, name) = (metadata::text(applied, "namespace"), metadata::text(applied, "name"));
        fit.map_err(|unfit| {
            let kind = format!("{}, Kind={}", group_version(resource.api_version()), resource.kind);
            let unfit = unfit.to_string();
            let decoding =
                if unfit.starts_with("illegal base64") { "error decoding from json: " } else { "" };
            let why = format!(
                "failed to convert new object ({namespace}/{name}; {kind}) to proper version: \
                 unable to convert unstructured object to {kind}: {decoding}{unfit}"
            );
            Status::new(500, "", why)
        })
    }
}

/// Returns true if a change may look at the managed fields of an object, or write them.
fn concerns_managers(kind: Kind, change: &Value) -> bool {
    if kind != Kind::Json {
        return change["metadata"].get("managedFields").is_some();
    }
    let place = |at: &Value| {
        // The part before the first slash does not count.
        let rest = at.as_str().map(|at| at.split_once('/').map_or("", |(_, rest)| rest));
        rest.is_some_and(|rest| matches!(rest, "" | "metadata") || rest.starts_with("metadata/managedFields"))
    };
    change.as_array().into_iter().flatten().any(|step| place(&step["path"]) || place(&step["from"]))
}

/// Refuses a patch that is no list of operations, or no object, in the words of the real server.
fn fits(kind: Kind, validation: FieldValidation, change: &Value) -> Result<(), Status> {
    const MAP: &str = "map[string]interface {}";
    let lenient = validation == FieldValidation::Ignore;
    let (wrong, go_type) = match (kind, change) {
        (Kind::Json, Value::Array(steps)) => {
            let one = if lenient { "jsonpatch.Operation" } else { "handlers.jsonPatchOp" };
            (steps.iter().find(|step| !step.is_object() && !step.is_null()), one)
        }
        (Kind::Json, _) => (Some(change), if lenient { "jsonpatch.Patch" } else { "[]handlers.jsonPatchOp" }),
        (Kind::Merge, Value::Null) => return Err(Status::bad_request("Invalid JSON Patch")),
        (_, Value::Object(_)) => (None, MAP),
        (Kind::Merge, _) if lenient => return Err(Status::bad_request("Invalid JSON Patch")),
        (..) => (Some(change), MAP),
    };
    let Some(found) = wrong.filter(|found| !found.is_null()).map(go_kind) else { return Ok(()) };
    let decoding = if lenient || kind == Kind::Strategic { "" } else { "error decoding patch: " };
    let why = format!("json: cannot unmarshal {found} into Go value of type {go_type}");
    Err(Status::bad_request(format!("{decoding}{why}")))
}

fn patched(kind: Kind, resource: &Resource, object: &mut Value, change: &Value) -> Result<(), Status> {
    if concerns_managers(kind, change) {
        compact::expand(object);
    }
    match kind {
        // To Go `null` is a patch without a change.
        Kind::Json | Kind::Strategic if change.is_null() => Ok(()),
        Kind::Json => {
            if change.as_array().is_some_and(|list| list.len() > patch::MAX_OPERATIONS) {
                let message = format!(
                    "The allowed maximum operations in a JSON patch is {}, got {}",
                    patch::MAX_OPERATIONS,
                    change.as_array().map_or(0, Vec::len)
                );
                return Err(Status::new(413, "RequestEntityTooLarge", message));
            }
            patch::json_patch(object, change).map_err(|error| unprocessable(&error.to_string()))
        }
        Kind::Merge => {
            patch::merge_patch(object, change);
            Ok(())
        }
        Kind::Strategic => strategic::apply(object, change, resource.schema())
            .map_err(|error| Status::bad_request(error.to_string())),
        Kind::Apply => Err(Status::internal("an apply is no change of an object by itself")),
    }
}
