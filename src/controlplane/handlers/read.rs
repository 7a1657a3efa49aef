//! Get and list: revisions, selectors, pages. Read `watch` next.

use super::path::Query;
use super::respond::Shape;
use super::select::Selection;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::{Response, StatusCode};
use opdev_apimachinery::body::Body;
use opdev_apimachinery::error::{Cause, Status};
use opdev_storage::{Expired, Key, Listing, Stored};
use serde_json::{Map, Value, json};
use std::sync::Arc;

const TOO_OLD_TO_CONTINUE: &str = "The provided continue parameter is too old to display a consistent list result. \
    You can start a new list without the continue parameter, or use the continue token in this response to retrieve the \
    remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were \
    created, modified, or deleted between the time the first chunk was returned and now may show up in the list.";

/// One object.
pub(crate) fn get(shape: &Shape, key: &Key, query: &Query) -> Result<Response<Body>, Status> {
    let resource = &shape.resource;
    let wanted = revision(query)?;
    let current = shape.registry.store.revision();
    if let Some(wanted) = wanted.filter(|wanted| *wanted > current) {
        return Err(Status::too_large_resource_version(wanted, current));
    }
    match shape.registry.store.get(&resource.table, key) {
        Some(stored) => shape.answer(StatusCode::OK, &stored),
        None => Err(Status::not_found(&resource.group, &resource.plural, &key.name)),
    }
}

/// `resourceVersion` as a number; `None` where it is not given.
pub(crate) fn revision(query: &Query) -> Result<Option<u64>, Status> {
    let Some(text) = query.get("resourceVersion") else { return Ok(None) };
    text.parse().map(Some).map_err(|_| {
        let why = format!("strconv.ParseUint: parsing {text:?}: invalid syntax");
        Status::bad_request(Cause::invalid("resourceVersion", &json!(text), &why).to_string())
    })
}

fn invalid(causes: Vec<Cause>) -> Result<(), Status> {
    if causes.is_empty() { Ok(()) } else { Err(Status::invalid("meta.k8s.io", "ListOptions", "", causes)) }
}

/// The rules of `resourceVersionMatch` for lists.
fn check_options(query: &Query) -> Result<(), Status> {
    let mut causes = Vec::new();
    const FIELD: &str = "resourceVersionMatch";
    if let Some(text) = query.get(FIELD) {
        let version = query.get("resourceVersion");
        if version.is_none() {
            let detail = "resourceVersionMatch is forbidden unless resourceVersion is provided";
            causes.push(Cause::forbidden(FIELD, detail));
        }
        if query.get("continue").is_some() {
            let detail = "resourceVersionMatch is forbidden when continue is provided";
            causes.push(Cause::forbidden(FIELD, detail));
        }
        if text != "Exact" && text != "NotOlderThan" {
            causes.push(Cause::not_supported(FIELD, &json!(text), &["Exact", "NotOlderThan", ""]));
        }
        if text == "Exact" && version == Some("0") {
            let detail = "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"";
            causes.push(Cause::forbidden(FIELD, detail));
        }
    }
    if query.flag("sendInitialEvents").is_some() {
        causes.push(Cause::forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"));
    }
    invalid(causes)
}

/// The rules of `resourceVersionMatch` and `sendInitialEvents` for watches.
pub(crate) fn check_watch_options(query: &Query) -> Result<(), Status> {
    let mut causes = Vec::new();
    const FIELD: &str = "resourceVersionMatch";
    let initial = query.flag("sendInitialEvents").is_some();
    let text = query.get(FIELD);
    if initial && text != Some("NotOlderThan") {
        let detail = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
        causes.push(Cause::forbidden(FIELD, detail));
    }
    if let Some(text) = text {
        if !initial {
            let detail = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
            causes.push(Cause::forbidden(FIELD, detail));
        }
        if text != "NotOlderThan" {
            causes.push(Cause::not_supported(FIELD, &json!(text), &["NotOlderThan"]));
        }
        if query.get("continue").is_some() {
            let detail = "resourceVersionMatch is forbidden when continue is provided";
            causes.push(Cause::forbidden(FIELD, detail));
        }
    }
    invalid(causes)
}

/// Where the next page starts.
struct Continue {
    /// The state that the list is of; `None` where a client that continues the list takes the current one.
    revision: Option<u64>,
    /// When the page before was given, in seconds since 1970.
    given: Option<i64>,
    after: String,
}

/// How long a page can be followed by the next one, in seconds: after that etcd has compacted its state away.
const PAGES_LIVE: i64 = 300;

impl Continue {
    fn parse(token: &str) -> Result<Self, Status> {
        let wrong = || Status::bad_request("continue key is not valid: invalid continue token");
        let bytes = URL_SAFE_NO_PAD.decode(token.trim_end_matches('=')).map_err(|_| wrong())?;
        let value: Value = serde_json::from_slice(&bytes).map_err(|_| wrong())?;
        let after = value["start"].as_str().and_then(|start| start.strip_suffix('\0'));
        let (Some("meta.k8s.io/v1"), Some(revision), Some(after)) =
            (value["v"].as_str(), value["rv"].as_i64(), after)
        else {
            return Err(wrong());
        };
        Ok(Continue {
            revision: u64::try_from(revision).ok(),
            given: value["given"].as_i64(),
            after: after.to_owned(),
        })
    }

    fn token(revision: u64, last: &Key, with_namespace: bool, now: jiff::Timestamp) -> String {
        let start = format!("{}\0", place(last, with_namespace));
        let token = json!({"v": "meta.k8s.io/v1", "rv": revision, "start": start, "given": now.as_second()});
        URL_SAFE_NO_PAD.encode(token.to_string())
    }

    /// The refusal of a page whose state is gone: with the token for the rest as it is now.
    fn expired(&self) -> Status {
        let start = format!("{}\0", self.after);
        let token = json!({"v": "meta.k8s.io/v1", "rv": -1, "start": start});
        let mut status = Status::expired(TOO_OLD_TO_CONTINUE);
        let mut told = status.to_value();
        told["metadata"]["continue"] = Value::from(URL_SAFE_NO_PAD.encode(token.to_string()));
        status.told = Some(Arc::new(told));
        status
    }
}

fn place(key: &Key, with_namespace: bool) -> String {
    if with_namespace { format!("{}/{}", key.namespace, key.name) } else { key.name.to_string() }
}

/// A list.
pub(crate) fn list(
    shape: &Shape,
    namespace: Option<&str>,
    query: &Query,
    selection: &Selection,
) -> Result<Response<Body>, Status> {
    check_options(query)?;
    let from = query.get("continue").map(Continue::parse).transpose()?;
    let limit = usize::try_from(query.number("limit").unwrap_or(0)).unwrap_or(0);
    let listing = state(shape, namespace, (query, selection), from.as_ref(), limit)?;
    let revision = listing.revision;
    let with_namespace = namespace.is_none() && shape.resource.namespaced;
    let mut items = listing.items;
    if let Some(from) = &from {
        let start = items.partition_point(|object| !later(object.key(), &from.after, with_namespace));
        items = items.split_off(start);
    }
    let mut meta = Map::new();
    meta.insert("resourceVersion".to_owned(), Value::from(revision.to_string()));
    let selects = !selection.is_everything();
    if selects {
        items = shape.registry.at(&shape.resource, items)?;
        items.retain(|object| selection.selects(shape, object));
    }
    if limit > 0 && items.len() > limit {
        let rest = items.len() - limit;
        items.truncate(limit);
        if let Some(last) = items.last() {
            let token = Continue::token(revision, last.key(), with_namespace, shape.registry.now());
            meta.insert("continue".to_owned(), Value::from(token));
        }
        if selection.is_everything() {
            meta.insert("remainingItemCount".to_owned(), Value::from(rest));
        }
    }
    let items = if selects { items } else { shape.registry.at(&shape.resource, items)? };
    Ok(shape.list(meta, &items))
}

/// Returns true if an object comes after the place a page ended at.
fn later(key: &Key, after: &str, with_namespace: bool) -> bool {
    let namespace = if with_namespace { &*key.namespace } else { "" };
    (namespace, &*key.name) > after.split_once('/').filter(|_| with_namespace).unwrap_or(("", after))
}

/// The objects to choose from, at the revision the request wants: as few of the newest as can be found
/// without looking at each.
fn state(
    shape: &Shape,
    namespace: Option<&str>,
    (query, selection): (&Query, &Selection),
    from: Option<&Continue>,
    limit: usize,
) -> Result<Listing, Status> {
    let (store, table) = (&shape.registry.store, &shape.resource.table);
    let wanted = revision(query)?;
    if let Some(from) = from {
        if wanted.is_some_and(|wanted| wanted > 0) {
            return Err(Status::bad_request(
                "specifying resource version is not allowed when using continue",
            ));
        }
        let Some(revision) = from.revision else { return Ok(store.list(table, namespace)) };
        let now = shape.registry.now().as_second();
        if from.given.is_some_and(|given| now - given > PAGES_LIVE) {
            return Err(from.expired());
        }
        return store.list_at(table, namespace, revision).map_err(|_| from.expired());
    }
    let current = store.revision();
    match wanted {
        Some(wanted) if wanted > current => Err(Status::too_large_resource_version(wanted, current)),
        Some(wanted) if wanted > 0 && exact(query, limit) => {
            store.list_at(table, namespace, wanted).map_err(too_old)
        }
        _ => Ok(store.list_among(table, namespace, &selection.lookup())),
    }
}

/// A page at a revision is that revision exactly, unless the request says otherwise.
fn exact(query: &Query, limit: usize) -> bool {
    match query.get("resourceVersionMatch") {
        Some(text) => text == "Exact",
        None => limit > 0,
    }
}

/// The 410 of a revision that is forgotten.
pub(crate) fn too_old(expired: Expired) -> Status {
    Status::expired(format!("too old resource version: {} ({})", expired.wanted, expired.oldest))
}

/// All objects a delete of the collection, or the start of a watch, is about.
pub(crate) fn selected(
    shape: &Shape,
    namespace: Option<&str>,
    selection: &Selection,
) -> Result<(u64, Vec<Arc<Stored>>), Status> {
    let (store, table) = (&shape.registry.store, &shape.resource.table);
    let namespace = namespace.or_else(|| selection.only_namespace().filter(|_| shape.resource.namespaced));
    let mut listing = match (selection.only_name(), namespace) {
        (Some(name), at) if at.is_some() || !shape.resource.namespaced => {
            let revision = store.revision();
            let items = store.get(table, &Key::new(at.unwrap_or_default(), name)).into_iter().collect();
            Listing { revision, items }
        }
        (_, at) => store.list_among(table, at, &selection.lookup()),
    };
    listing.items = shape.registry.at(&shape.resource, listing.items)?;
    if !selection.is_everything() {
        listing.items.retain(|object| selection.selects(shape, object));
    }
    Ok((listing.revision, listing.items))
}
