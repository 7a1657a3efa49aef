//! Verbs over HTTP: a request for a resource path in, a response out. Never opens a socket and never answers
//! discovery, OpenAPI or health paths. Read `path` and `respond` first, then one verb.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests may wait"))]

pub mod answer;
mod body;
pub mod discovery;
pub mod exec;
mod in_order;
mod kind;
pub mod negotiation;
pub mod openapi;
mod options;
mod patch;
pub mod path;
mod read;
mod respond;
mod reviews;
mod select;
mod strict;
pub mod tokens;
mod watch;
mod write;

#[cfg(test)]
mod tests;

use crate::negotiation::{Agreed, Binary, Encoding, Forms, NotAcceptable};
use crate::tokens::Tokens;
use bytes::Bytes;
use http::{Method, Request, Response};
use http_body_util::BodyExt;
use opdev_apimachinery::blocking;
use opdev_apimachinery::body::Body;
use opdev_apimachinery::error::Status;
use opdev_apimachinery::identity::User;
use opdev_apimachinery::part::Part;
use opdev_apimachinery::resource::Resource;
use opdev_apis::table::Tables;
use opdev_apis::table::answer::Include;
use opdev_registry::{Post, Registry, strategy_of};
use opdev_storage::Key;
use path::{Query, Target};
use respond::Shape;
use select::Selection;
use std::sync::Arc;
use write::{Answer, Call};

/// The resource paths of the API.
pub struct Api {
    registry: Arc<Registry>,
    tables: Arc<dyn Tables>,
    tokens: Arc<Tokens>,
}

impl std::fmt::Debug for Api {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Api").field("registry", &self.registry).finish_non_exhaustive()
    }
}

impl Api {
    /// Serves this registry; `tables` makes the rows of Table answers, `tokens` those of ServiceAccounts.
    pub fn new(registry: Arc<Registry>, tables: Arc<dyn Tables>, tokens: Arc<Tokens>) -> Self {
        Api { registry, tables, tokens }
    }

    /// The key of ServiceAccount tokens.
    pub fn tokens(&self) -> &Tokens {
        &self.tokens
    }

    /// The registry behind it.
    pub fn registry(&self) -> &Arc<Registry> {
        &self.registry
    }

    /// Returns true if a path names a resource: `/api/<version>/…` or `/apis/<group>/<version>/…` and
    /// something behind.
    pub fn serves(path: &str) -> bool {
        let mut parts = path.trim_matches('/').split('/');
        let fixed = match parts.next() {
            Some("api") => 1,
            Some("apis") => 2,
            _ => return false,
        };
        parts.filter(|part| !part.is_empty()).count() > fixed
    }

    /// Answers one request. Never fails: what goes wrong is a `Status` in the answer.
    pub async fn call<B>(&self, user: &User, request: Request<B>) -> Response<Body>
    where
        B: http_body::Body<Data = Bytes> + Send,
        B::Error: std::fmt::Display,
    {
        let (parts, body) = request.into_parts();
        let body = match body.collect().await {
            Ok(read) => read.to_bytes(),
            Err(error) => {
                let status = Status::bad_request(format!("the request's body could not be read: {error}"));
                return respond::failure(&status, Encoding::Json);
            }
        };
        let raw = parts.uri.query().unwrap_or_default();
        let query = Query::parse(raw);
        let Some(target) = Target::parse(parts.uri.path()) else { return respond::no_such_path() };
        if let Some(why) = query.wrong_timeout().filter(|_| !runs_long(&target, &query)) {
            return respond::failure(&Status::bad_request(why), Encoding::Json);
        }
        let served = self.registry.catalog.served();
        let found = served.find(&target.group, &target.version, &target.resource);
        let Some(resource) = found.filter(|found| found.namespaced || target.namespace.is_none()) else {
            return respond::no_such_path();
        };
        // Reviews have no metadata and no columns.
        let whole = target.subresource.as_deref().is_none_or(|sub| sub == "status")
            && !reviews::is_review(&target.group, &target.resource);
        let forms = if whole { Forms::All } else { Forms::Plain };
        let binary = binary(resource, target.subresource.as_deref());
        let agreed = match negotiation::agree(&parts.headers, raw, forms, binary) {
            Ok(agreed) => agreed,
            Err(NotAcceptable) => {
                let offered = ["application/json", "application/yaml", Encoding::Protobuf.content_type()];
                let count = if binary == Binary::Objects { 3 } else { 2 };
                let status = Status::not_acceptable(&offered[..count]);
                return respond::failure(&status, Encoding::Json);
            }
        };
        let include = Include::parse(query.get("includeObject").unwrap_or_default()).unwrap_or_default();
        let shape = Shape {
            registry: self.registry.clone(),
            resource: resource.clone(),
            tables: self.tables.clone(),
            agreed,
            include,
        };
        let method = parts.method.clone();
        let ahead = parts.extensions.get::<AheadOfDisk>().is_some();
        let answer = match self.saves(&method) {
            Ok(()) => {
                // Only a guess, which saves a vain attempt.
                let waits = resource.converts() || (!reads(&method) && self.registry.may_wait_for(resource));
                let attempt = || {
                    let (headers, tokens, shape) = (&parts.headers, &*self.tokens, shape.clone());
                    let (query, target, body) = (&query, &target, &body);
                    dispatch(&method, &Call { user, headers, query, target, body, tokens, shape })
                };
                match (!waits).then(|| blocking::attempt(attempt)).flatten() {
                    Some(answer) => answer,
                    None => self.waiting(user.clone(), parts, query, target, body, shape).await,
                }
            }
            Err(status) => Err(status),
        };
        let answer = if ahead { answer } else { self.settled(&method, answer).await };
        answered(resource, agreed, answer)
    }

    /// Answers on a thread that may wait for webhooks.
    async fn waiting(
        &self,
        user: User,
        parts: http::request::Parts,
        query: Query,
        target: Target,
        body: Bytes,
        shape: Shape,
    ) -> Answer {
        let tokens = self.tokens.clone();
        let work = blocking::run(move || {
            let (user, headers) = (&user, &parts.headers);
            let (query, target, body, tokens) = (&query, &target, &body, &*tokens);
            dispatch(&parts.method, &Call { user, headers, query, target, body, tokens, shape })
        });
        match work.await {
            Ok(answer) => answer,
            // `front` logs panics.
            Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            Err(_) => Err(Status::new(503, "ServiceUnavailable", "the control plane has stopped")),
        }
    }

    /// Refuses to write while nothing can be saved.
    fn saves(&self, method: &Method) -> Result<(), Status> {
        match self.registry.store.failure() {
            Some(why) if !reads(method) => Err(Status::internal(&format!("nothing can be saved: {why}"))),
            _ => Ok(()),
        }
    }

    /// The answer once all it tells is safe from a crash. Reading goes on while the disk does not work.
    async fn settled(&self, method: &Method, answer: Answer) -> Answer {
        match self.registry.store.settled().await {
            Err(why) if !reads(method) => {
                Err(Status::internal(&format!("it is not known whether this was saved: {why}")))
            }
            _ => answer,
        }
    }
}

/// Marks a request whose answer need not wait for the disk. Only calls inside this process can have it.
#[derive(Clone, Copy, Debug)]
pub struct AheadOfDisk;

/// Returns true if nothing limits how long an answer takes.
fn runs_long(target: &Target, query: &Query) -> bool {
    let stream = |sub: &str| ["attach", "exec", "log", "portforward", "proxy"].contains(&sub);
    target.watch || query.flag("watch") == Some(true) || target.subresource.as_deref().is_some_and(stream)
}

fn reads(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD)
}

/// The kinds of a resource that exist in protobuf. The scale of a custom resource is a built-in kind.
fn binary(resource: &Resource, subresource: Option<&str>) -> Binary {
    let built_in = match &resource.custom {
        Some(_) => subresource == Some("scale"),
        None => resource.in_protobuf(),
    };
    if built_in { Binary::Objects } else { Binary::Metadata }
}

fn answered(resource: &Resource, agreed: Agreed, answer: Answer) -> Response<Body> {
    let (mut response, mut warnings) = match answer {
        Ok(answered) => answered,
        Err(status) => (respond::failure(&status, agreed.encoding), status.warnings.into_vec()),
    };
    if let Some(text) = deprecation(resource) {
        warnings.insert(0, text);
    }
    respond::warn(&mut response, &warnings);
    response
}

/// The warning that comes with every request for an old kind or version.
fn deprecation(resource: &Resource) -> Option<String> {
    if let Some(custom) = &resource.custom {
        return custom.deprecation_warning.clone();
    }
    resource.rules.deprecation_warning.map(str::to_owned)
}

fn dispatch(method: &Method, call: &Call<'_>) -> Answer {
    let (resource, target) = (call.resource(), call.target);
    let quiet = |response: Response<Body>| (response, Vec::new());
    if let Some(name) = target.subresource.as_deref() {
        return subresource(method, name, call);
    }
    let verb = verb(method, call);
    let supported = verb.is_some_and(|verb| resource.has_verb(verb));
    let Some(verb) = verb.filter(|_| supported) else {
        let verb = method.as_str().to_lowercase();
        return Err(Status::method_not_supported(&resource.group, &resource.plural, &verb));
    };
    // Only reading and deleting go over all namespaces.
    let everywhere = resource.namespaced && target.namespace.is_none();
    if everywhere && !matches!(verb, "list" | "watch") {
        return Err(Status::method_not_supported(&resource.group, &resource.plural, verb));
    }
    match verb {
        "get" => read::get(&call.shape, &call.key(), call.query).map(quiet),
        "list" => {
            let selection = Selection::parse(resource, call.query, None)?;
            read::list(&call.shape, target.namespace.as_deref(), call.query, &selection).map(quiet)
        }
        "watch" => {
            let selection = Selection::parse(resource, call.query, target.name.as_deref())?;
            watch::watch(call.shape.clone(), target.namespace.as_deref(), call.query, selection).map(quiet)
        }
        "create" => match strategy_of(resource).post {
            Post::Object => call.create(),
            Post::Review => call.review(),
            Post::Binding => call.bind(),
        },
        "update" => call.update(Part::Main),
        "patch" => call.patch(Part::Main),
        "delete" => call.delete(),
        _ => call.delete_collection(),
    }
}

fn verb(method: &Method, call: &Call<'_>) -> Option<&'static str> {
    let named = call.target.name.is_some();
    let watches = call.target.watch || call.query.flag("watch") == Some(true);
    Some(match (method.as_str(), named) {
        ("GET" | "HEAD", _) if watches => "watch",
        ("GET" | "HEAD", true) => "get",
        ("GET" | "HEAD", false) => "list",
        ("POST", false) => "create",
        ("PUT", true) => "update",
        ("PATCH", true) => "patch",
        ("DELETE", true) => "delete",
        ("DELETE", false) => "deletecollection",
        _ => return None,
    })
}

fn subresource(method: &Method, name: &str, call: &Call<'_>) -> Answer {
    let resource = call.resource();
    let Some(found) = resource.subresource(name) else {
        let missing = || Status::new(404, "NotFound", "the server could not find the requested resource");
        return Err(missing());
    };
    let verb = match method.as_str() {
        "GET" | "HEAD" => "get",
        "POST" => "create",
        "PUT" => "update",
        "PATCH" => "patch",
        "DELETE" => "delete",
        other => other,
    };
    let path = format!("{}/{name}", resource.plural);
    if !found.verbs.iter().any(|known| known == verb) {
        return Err(Status::method_not_supported(&resource.group, &path, verb));
    }
    match (name, verb) {
        ("scale", "get") => call.read_scale().map(|response| (response, Vec::new())),
        ("scale", "update") => call.update_scale(),
        ("scale", "patch") => call.patch_scale(),
        ("binding", "create") => call.bind(),
        ("eviction", "create") => call.evict(),
        ("token", "create") => call.token(),
        _ => match (Part::of_subresource(name), verb) {
            (Some(_), "get") => {
                read::get(&call.shape, &call.key(), call.query).map(|response| (response, Vec::new()))
            }
            (Some(part), "update") => call.update(part),
            (Some(part), "patch") => call.patch(part),
            _ => {
                call.asked_connect(name)?;
                if let Some(answer) = (name == "exec").then(|| call.exec()).flatten() {
                    return answer;
                }
                Err(no_containers(&call.key(), &path))
            }
        },
    }
}

/// Logs, exec and the like: there is no container behind a pod.
fn no_containers(key: &Key, path: &str) -> Status {
    let message = format!(
        "{path} of {:?} is not there: the embedded control plane simulates pods and runs no containers",
        key.name
    );
    Status::new(501, "NotImplemented", message)
}
