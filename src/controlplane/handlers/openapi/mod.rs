//! OpenAPI v3: an index with one document per group and version, for built-in and custom resources. Documents
//! are built when first asked for and kept for as long as the catalog stays. `schemas` makes components,
//! `paths` the paths, `v2` turns all of it into the one document of `/openapi/v2`.

mod paths;
mod schemas;
mod v2;
mod v2_protobuf;

use crate::answer;
use crate::discovery::{Document, Group, groups};
use crate::negotiation;
use http::header::{CACHE_CONTROL, LOCATION};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use opdev_apimachinery::body::{Body, empty};
use opdev_apimachinery::error::Status;
use opdev_apimachinery::resource::Resource;
use opdev_object::descriptions::Descriptions;
use opdev_registry::Served;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

const JSON: &str = "application/json";

/// The OpenAPI endpoints with their cache.
#[derive(Debug, Default)]
pub struct OpenApi {
    cache: Mutex<Cache>,
}

#[derive(Debug, Default)]
struct Cache {
    generation: u64,
    /// Group-version path → hash of what its document is made of.
    hashes: HashMap<String, String>,
    index: Option<Document>,
    documents: HashMap<String, Document>,
    v2: HashMap<v2::Form, Document>,
}

impl OpenApi {
    /// Answers `/openapi/v2`, `/openapi/v3` and below. `None`: not served, or no such group and version.
    pub fn answer(
        &self,
        served: &Served,
        path: &str,
        query: &str,
        headers: &HeaderMap,
    ) -> Option<Response<Body>> {
        if path.trim_end_matches('/') == "/openapi/v2" {
            return Some(self.v2(served, headers));
        }
        let below = path.strip_prefix("/openapi/v3")?;
        if !negotiation::clauses(headers).iter().any(|clause| clause.takes("json")) {
            return Some(answer::not_acceptable(&[JSON]));
        }
        let below = below.trim_matches('/');
        if below.is_empty() {
            return Some(self.index(served).answer(headers, JSON));
        }
        let (hash, document) = self.document(served, below)?;
        let asked = query.split('&').find_map(|pair| pair.strip_prefix("hash="));
        if asked.is_some_and(|asked| asked != hash) {
            let mut response = Response::new(empty());
            *response.status_mut() = StatusCode::MOVED_PERMANENTLY;
            let place = HeaderValue::from_str(&format!("/openapi/v3/{below}?hash={hash}")).ok()?;
            response.headers_mut().insert(LOCATION, place);
            return Some(response);
        }
        let mut response = document.answer(headers, JSON);
        if asked.is_some() {
            // The hash is in the address, so the answer never changes.
            let forever = HeaderValue::from_static("public, immutable, max-age=31536000");
            response.headers_mut().insert(CACHE_CONTROL, forever);
        }
        Some(response)
    }

    fn v2(&self, served: &Served, headers: &HeaderMap) -> Response<Body> {
        let Some(form) = v2::Form::asked(headers) else { return answer::not_acceptable(&v2::Form::ALL) };
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        cache.refresh(served);
        let document = match cache.v2.get(&form) {
            Some(document) => document.clone(),
            None => match form.write(&groups(served.resources())) {
                Ok(document) => cache.v2.entry(form).or_insert(document).clone(),
                Err(error) => return answer::status(&Status::internal(&error.to_string())),
            },
        };
        document.answer(headers, form.media_type())
    }

    fn index(&self, served: &Served) -> Document {
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        cache.refresh(served);
        if let Some(index) = &cache.index {
            return index.clone();
        }
        let paths: Map<String, Value> = cache
            .hashes
            .iter()
            .map(|(path, hash)| {
                let url = format!("/openapi/v3/{path}?hash={hash}");
                (path.clone(), json!({ "serverRelativeURL": url }))
            })
            .collect();
        let index = Document::new(&json!({ "paths": paths }));
        cache.index = Some(index.clone());
        index
    }

    fn document(&self, served: &Served, path: &str) -> Option<(String, Document)> {
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        cache.refresh(served);
        let hash = cache.hashes.get(path)?.clone();
        if let Some(document) = cache.documents.get(path) {
            return Some((hash, document.clone()));
        }
        let groups = groups(served.resources());
        let (group, version, resources) = find(&groups, path)?;
        let document = Document::new(&build(group, version, resources, &Descriptions::read()));
        cache.documents.insert(path.to_owned(), document.clone());
        Some((hash, document))
    }
}

impl Cache {
    /// Forgets what changed; a built document whose inputs stayed the same is kept.
    fn refresh(&mut self, served: &Served) {
        if self.generation == served.generation {
            return;
        }
        let mut hashes = HashMap::new();
        for group in groups(served.resources()) {
            for (version, resources) in &group.versions {
                hashes.insert(path_of(&group.name, version), hash_of(resources));
            }
        }
        let old = std::mem::replace(&mut self.hashes, hashes);
        let new = &self.hashes;
        self.documents.retain(|path, _| old.get(path) == new.get(path));
        self.index = None;
        self.v2.clear();
        self.generation = served.generation;
    }
}

/// The hash of everything a document is made of; cheap, so that the index needs no document.
fn hash_of(resources: &[Arc<Resource>]) -> String {
    let mut hasher = Sha256::new();
    hasher.update(env!("CARGO_PKG_VERSION"));
    for resource in resources {
        let r = resource;
        let names = (&r.group, &r.version, &r.plural, &r.kind, &r.list_kind, r.namespaced);
        hasher.update(format!("{names:?} {:?} {:?} {:?}", r.verbs, r.subresources, r.custom));
    }
    hasher.finalize().iter().map(|byte| format!("{byte:02X}")).collect()
}

fn path_of(group: &str, version: &str) -> String {
    if group.is_empty() { format!("api/{version}") } else { format!("apis/{group}/{version}") }
}

fn find<'a>(groups: &'a [Group], path: &str) -> Option<(&'a str, &'a str, &'a [Arc<Resource>])> {
    groups.iter().find_map(|group| {
        group
            .versions
            .iter()
            .find(|(version, _)| path_of(&group.name, version) == path)
            .map(|(version, resources)| (group.name.as_str(), version.as_str(), resources.as_slice()))
    })
}

fn build(group: &str, version: &str, resources: &[Arc<Resource>], descriptions: &Descriptions) -> Value {
    let mut all_paths = Map::new();
    let mut wanted = schemas::Wanted::new(descriptions);
    for resource in resources {
        paths::add(&mut all_paths, resource, &mut wanted);
    }
    json!({
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": opdev_apimachinery::version::git_version()},
        "paths": all_paths,
        "components": {"schemas": wanted.into_schemas(group, version)},
    })
}
