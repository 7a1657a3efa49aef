//! Discovery of an API server: its kinds, their plural names and scopes, and its version. Cached; a changed
//! CRD or API service makes the cache stale, and a kind that is not in it is looked up once more.

use super::call::{ApiClient, collection_path};
use super::error::ApiError;
use opdev_object::meta::Gvk;
use opdev_object::spelling::nearest;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use tokio::sync::Mutex;

/// A resource that the API server serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resource {
    pub gvk: Gvk,
    pub plural: String,
    pub namespaced: bool,
    pub verbs: Vec<String>,
    /// True if its status is written apart.
    pub has_status: bool,
}

impl Resource {
    /// The path of its objects; all namespaces without one.
    pub fn collection(&self, namespace: Option<&str>) -> String {
        collection_path(&self.gvk.api_version(), &self.plural, namespace.filter(|_| self.namespaced))
    }

    /// Adds apiVersion and kind, which lists leave out.
    pub fn complete(&self, mut object: Value) -> Value {
        if let Value::Object(fields) = &mut object {
            if !fields.contains_key("apiVersion") {
                fields.insert("apiVersion".to_owned(), Value::from(self.gvk.api_version()));
            }
            if !fields.contains_key("kind") {
                fields.insert("kind".to_owned(), Value::from(self.gvk.kind.as_str()));
            }
        }
        object
    }

    /// The kind in the form that kube's own client takes.
    pub fn api_resource(&self) -> kube::core::ApiResource {
        let gvk = kube::core::GroupVersionKind::gvk(&self.gvk.group, &self.gvk.version, &self.gvk.kind);
        kube::core::ApiResource::from_gvk_with_plural(&gvk, &self.plural)
    }
}

/// Why a text names no kind.
#[derive(Debug)]
pub enum KindError {
    /// No such kind is served; `near` is one that is, with nearly that name.
    NotServed { text: String, near: Option<Gvk> },
    /// Two groups serve such a kind.
    Ambiguous { text: String, kinds: Box<[Gvk; 2]> },
}

impl fmt::Display for KindError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KindError::NotServed { text, near } => {
                write!(f, "the API server serves no kind {text:?}")?;
                let Some(near) = near else { return Ok(()) };
                write!(f, "; did you mean {}/{}?", near.api_version(), near.kind)
            }
            KindError::Ambiguous { text, kinds } => {
                let [a, b] = &**kinds;
                let (a_version, b_version) = (a.api_version(), b.api_version());
                write!(
                    f,
                    "{text:?} is served by more than one group: write {a_version}/{} or {b_version}/{}",
                    a.kind, b.kind
                )
            }
        }
    }
}

impl std::error::Error for KindError {}

/// The kind that was found.
#[derive(Debug, Default)]
pub struct Served {
    resources: BTreeMap<Gvk, Arc<Resource>>,
    /// Preferred first, as `group/version`.
    pub(crate) group_versions: Vec<String>,
    /// Such as `v1.36.0`.
    pub version: String,
}

impl Served {
    /// The API versions a chart can ask for: group versions, and group versions with kinds.
    pub fn api_versions(&self) -> Vec<String> {
        let kinds = self.resources.keys().map(|gvk| format!("{}/{}", gvk.api_version(), gvk.kind));
        self.group_versions.iter().cloned().chain(kinds).collect()
    }

    /// The kind that a text such as `Pod`, `v1/Pod`, `apps/Deployment` or `apps/v1/Deployment` names: where
    /// no version is written, the preferred one.
    pub fn kind(&self, text: &str) -> Result<Gvk, KindError> {
        let (before, kind) =
            text.rsplit_once('/').map_or((None, text), |(before, kind)| (Some(before), kind));
        let fits = |gvk: &&Gvk| {
            gvk.kind.eq_ignore_ascii_case(kind)
                && before.is_none_or(|before| before == gvk.api_version() || before == gvk.group)
        };
        let preferred = |gvk: &&Gvk| {
            let version = gvk.api_version();
            self.group_versions.iter().position(|known| *known == version).unwrap_or(usize::MAX)
        };
        let mut found: Vec<&Gvk> = self.resources.keys().filter(fits).collect();
        found.sort_by_key(preferred);
        let Some(first) = found.first() else {
            return Err(KindError::NotServed { text: text.to_owned(), near: self.nearest(kind).cloned() });
        };
        if let Some(other) = found.iter().find(|gvk| gvk.group != first.group && !first.group.is_empty()) {
            return Err(KindError::Ambiguous {
                text: text.to_owned(),
                kinds: Box::new([(*first).clone(), (*other).clone()]),
            });
        }
        Ok((*first).clone())
    }

    fn nearest(&self, kind: &str) -> Option<&Gvk> {
        let kinds: Vec<&str> = self.resources.keys().map(|gvk| gvk.kind.as_str()).collect();
        let near = nearest(kind, kinds)?;
        self.resources.keys().find(|gvk| gvk.kind == near)
    }

    /// The resource of a kind at that version.
    pub(crate) fn find(&self, gvk: &Gvk) -> Option<Arc<Resource>> {
        self.resources.get(gvk).cloned()
    }
}

/// The cache.
pub struct Discovery {
    client: ApiClient,
    served: Mutex<Option<Arc<Served>>>,
}

impl Discovery {
    pub fn new(client: ApiClient) -> Self {
        Discovery { client, served: Mutex::default() }
    }

    /// The next question asks the API server again.
    pub async fn invalidate(&self) {
        *self.served.lock().await = None;
    }

    /// Everything that is served.
    pub async fn served(&self) -> Result<Arc<Served>, ApiError> {
        let mut cached = self.served.lock().await;
        if let Some(served) = &*cached {
            return Ok(Arc::clone(served));
        }
        let served = Arc::new(self.fetch().await?);
        *cached = Some(Arc::clone(&served));
        Ok(served)
    }

    /// The resource of a kind; `None` where it is not served even by a fresh look.
    pub async fn resolve(&self, gvk: &Gvk) -> Result<Option<Arc<Resource>>, ApiError> {
        let served = self.served().await?;
        if let Some(resource) = served.find(gvk) {
            return Ok(Some(resource));
        }
        {
            let mut cached = self.served.lock().await;
            if cached.as_ref().is_some_and(|now| Arc::ptr_eq(now, &served)) {
                *cached = None;
            }
        }
        Ok(self.served().await?.find(gvk))
    }

    async fn fetch(&self) -> Result<Served, ApiError> {
        let (core, groups, version) =
            tokio::try_join!(self.get("/api"), self.get("/apis"), self.get("/version"))?;
        let mut served = Served {
            version: version.get("gitVersion").and_then(Value::as_str).unwrap_or("v1.36.0").to_owned(),
            ..Served::default()
        };
        for list in [core, groups] {
            if list.get("kind").and_then(Value::as_str) == Some("APIGroupDiscoveryList") {
                read_aggregated(&list, &mut served);
            } else {
                self.fetch_plain(&list, &mut served).await?;
            }
        }
        Ok(served)
    }

    /// An API server without aggregated discovery is asked per group version.
    async fn fetch_plain(&self, list: &Value, served: &mut Served) -> Result<(), ApiError> {
        for version in plain_versions(list) {
            let root = if version.contains('/') { "/apis" } else { "/api" };
            // A group whose server is down hides only itself.
            match self.get(&format!("{root}/{version}")).await {
                Ok(resources) => read_plain(&version, &resources, served),
                Err(ApiError::Refused { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    async fn get(&self, path: &str) -> Result<Value, ApiError> {
        const ACCEPT: &str =
            "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";
        self.client.read_as(path, ACCEPT).await
    }
}

fn items<'a>(value: &'a Value, field: &str) -> impl Iterator<Item = &'a Value> {
    value.get(field).and_then(Value::as_array).into_iter().flatten()
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value.get(field).and_then(Value::as_str).unwrap_or_default()
}

fn verbs(value: &Value) -> Vec<String> {
    items(value, "verbs").filter_map(Value::as_str).map(str::to_owned).collect()
}

fn read_aggregated(list: &Value, served: &mut Served) {
    for group in items(list, "items") {
        let name = group.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
        for version in items(group, "versions") {
            let version_name = text(version, "version");
            served.group_versions.push(Gvk::new(name, version_name, "").api_version());
            for resource in items(version, "resources") {
                let kind = resource.get("responseKind").map_or("", |kind| text(kind, "kind"));
                let gvk = Gvk::new(name, version_name, kind);
                let resource = Resource {
                    gvk: gvk.clone(),
                    plural: text(resource, "resource").to_owned(),
                    namespaced: text(resource, "scope") == "Namespaced",
                    verbs: verbs(resource),
                    has_status: items(resource, "subresources")
                        .any(|one| text(one, "subresource") == "status"),
                };
                served.resources.entry(gvk).or_insert_with(|| Arc::new(resource));
            }
        }
    }
}

fn plain_versions(list: &Value) -> Vec<String> {
    let core = items(list, "versions").filter_map(Value::as_str);
    let groups = items(list, "groups").flat_map(|group| items(group, "versions"));
    core.map(str::to_owned).chain(groups.map(|version| text(version, "groupVersion").to_owned())).collect()
}

fn read_plain(version: &str, list: &Value, served: &mut Served) {
    served.group_versions.push(version.to_owned());
    for resource in items(list, "resources").filter(|resource| !text(resource, "name").contains('/')) {
        let gvk = Gvk::from_api_version(version, text(resource, "kind"));
        let resource = Resource {
            gvk: gvk.clone(),
            plural: text(resource, "name").to_owned(),
            namespaced: resource.get("namespaced").and_then(Value::as_bool).unwrap_or(false),
            verbs: verbs(resource),
            has_status: {
                let status = format!("{}/status", text(resource, "name"));
                items(list, "resources").any(|one| text(one, "name") == status)
            },
        };
        served.resources.entry(gvk).or_insert_with(|| Arc::new(resource));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn both_forms_of_discovery_say_the_same() {
        let aggregated = json!({"kind": "APIGroupDiscoveryList", "items": [{
            "metadata": {"name": "apps"}, "versions": [{"version": "v1", "resources": [{
                "resource": "deployments", "responseKind": {"group": "apps", "version": "v1", "kind": "Deployment"},
                "scope": "Namespaced", "verbs": ["get"], "subresources": [{"subresource": "scale"}, {"subresource": "status"}]}]}]}]});
        let plain = json!({"resources": [
            {"name": "deployments", "kind": "Deployment", "namespaced": true, "verbs": ["get"]},
            {"name": "deployments/scale", "kind": "Scale", "namespaced": true, "verbs": ["get"]},
            {"name": "deployments/status", "kind": "Deployment", "namespaced": true, "verbs": ["get"]}]});
        let (mut one, mut two) = (Served::default(), Served::default());
        read_aggregated(&aggregated, &mut one);
        read_plain("apps/v1", &plain, &mut two);
        assert_eq!(one.resources, two.resources);
        assert_eq!(one.api_versions(), ["apps/v1", "apps/v1/Deployment"]);
        assert_eq!(one.api_versions(), two.api_versions());
        let found = one.find(&Gvk::new("apps", "v1", "Deployment")).unwrap();
        assert_eq!(found.collection(Some("x")), "/apis/apps/v1/namespaces/x/deployments");
        assert_eq!(found.collection(None), "/apis/apps/v1/deployments");
        assert!(found.has_status);
        for text in ["Deployment", "apps/Deployment", "apps/v1/Deployment"] {
            assert_eq!(one.kind(text).unwrap(), found.gvk, "{text}");
        }
        assert!(
            one.kind("Deploymnet").unwrap_err().to_string().ends_with("did you mean apps/v1/Deployment?")
        );
    }

    #[test]
    fn plain_lists_name_their_versions() {
        let core = json!({"kind": "APIVersions", "versions": ["v1"]});
        let groups = json!({"kind": "APIGroupList", "groups": [{"versions": [
            {"groupVersion": "apps/v1", "version": "v1"}]}]});
        assert_eq!(plain_versions(&core), ["v1"]);
        assert_eq!(plain_versions(&groups), ["apps/v1"]);
    }
}
