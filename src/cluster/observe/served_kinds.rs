//! The kinds that the API server serves, by discovery: in two requests where the server knows the aggregated
//! form, else in one for each group. Only kinds that can be listed; each in the version that the server
//! prefers.

use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::APIResource;
use kube::Client;
use kube::core::discovery::v2::{APIGroupDiscoveryList, APIResourceDiscovery};
use opdev_client::ApiError;
use opdev_event::ServedKind;
use opdev_object::meta::Gvk;
use opdev_object::spelling;
use std::fmt;

/// Groups that are asked at once.
const AT_ONCE: usize = 8;

/// All of them: those without a group first, then by group and plural name.
///
/// # Errors
/// Where discovery is refused or does not answer.
pub(crate) async fn list(client: &Client) -> Result<Vec<ServedKind>, ApiError> {
    let (core, groups) =
        tokio::join!(client.list_core_api_versions_aggregated(), client.list_api_groups_aggregated());
    // A server that does not know the form answers with another one, in which there are no items.
    let mut kinds = match (core, groups) {
        (Ok(core), Ok(groups)) if !core.items.is_empty() => {
            aggregated(&core).chain(aggregated(&groups)).collect()
        }
        _ => one_by_one(client).await?,
    };
    kinds.sort_by(|a: &ServedKind, b| (&a.gvk.group, &a.plural).cmp(&(&b.gvk.group, &b.plural)));
    kinds.dedup_by(|a, b| a.gvk.group == b.gvk.group && a.plural == b.plural);
    Ok(kinds)
}

/// The first version of a group is the one that the server prefers.
fn aggregated(list: &APIGroupDiscoveryList) -> impl Iterator<Item = ServedKind> {
    list.items.iter().flat_map(|group| {
        let name = group.metadata.as_ref().and_then(|metadata| metadata.name.clone()).unwrap_or_default();
        let mut kinds: Vec<ServedKind> = Vec::new();
        for version in &group.versions {
            let served = version.resources.iter().filter_map(|resource| {
                of_resource(&name, version.version.as_deref().unwrap_or_default(), resource)
            });
            // A kind of an older version that the preferred one lacks is served all the same.
            for kind in served {
                if !kinds.iter().any(|known| known.plural == kind.plural) {
                    kinds.push(kind);
                }
            }
        }
        kinds
    })
}

fn of_resource(group: &str, version: &str, resource: &APIResourceDiscovery) -> Option<ServedKind> {
    let kind = resource.response_kind.as_ref()?;
    let can = |verb: &str| resource.verbs.iter().any(|known| known == verb);
    let of = |text: &Option<String>, other: &str| {
        text.clone().filter(|text| !text.is_empty()).unwrap_or_else(|| other.to_owned())
    };
    can("list").then(|| ServedKind {
        gvk: Gvk::new(
            of(&kind.group, group),
            of(&kind.version, version),
            kind.kind.clone().unwrap_or_default(),
        ),
        plural: resource.resource.clone().unwrap_or_default(),
        singular: resource.singular_resource.clone().unwrap_or_default(),
        short_names: resource.short_names.clone(),
        namespaced: resource.scope.as_deref() == Some("Namespaced"),
        watched: can("watch"),
    })
}

async fn one_by_one(client: &Client) -> Result<Vec<ServedKind>, ApiError> {
    let core = client.list_core_api_resources("v1").await?;
    let mut kinds: Vec<ServedKind> =
        core.resources.iter().filter_map(|resource| of_api_resource("", "v1", resource)).collect();
    let versions = client.list_api_groups().await?.groups.into_iter().filter_map(|group| {
        let preferred = group.preferred_version.or_else(|| group.versions.into_iter().next())?;
        Some((group.name, preferred))
    });
    let lists: Vec<Vec<ServedKind>> = futures::stream::iter(versions)
        .map(|(group, version)| async move {
            let list = match client.list_api_group_resources(&version.group_version).await {
                Ok(list) => list.resources,
                // A group whose own server is away must not hide the others.
                Err(error @ kube::Error::Api(_)) => {
                    let error = ApiError::from(error);
                    let quiet = error.is_forbidden() || error.is_not_found();
                    tracing::debug!(group, quiet, "not discovered: {error}");
                    Vec::new()
                }
                Err(error) => return Err(ApiError::from(error)),
            };
            let of = |resource: &APIResource| of_api_resource(&group, &version.version, resource);
            Ok(list.iter().filter_map(of).collect())
        })
        .buffered(AT_ONCE)
        .try_collect()
        .await?;
    kinds.extend(lists.into_iter().flatten());
    Ok(kinds)
}

fn of_api_resource(group: &str, version: &str, resource: &APIResource) -> Option<ServedKind> {
    let can = |verb: &str| resource.verbs.iter().any(|known| known == verb);
    // Subresources have a slash.
    let listed = can("list") && !resource.name.contains('/');
    let group = resource.group.as_deref().filter(|own| !own.is_empty()).unwrap_or(group);
    let version = resource.version.as_deref().filter(|own| !own.is_empty()).unwrap_or(version);
    listed.then(|| ServedKind {
        gvk: Gvk::new(group, version, &resource.kind),
        plural: resource.name.clone(),
        singular: resource.singular_name.clone(),
        short_names: resource.short_names.clone().unwrap_or_default(),
        namespaced: resource.namespaced,
        watched: can("watch"),
    })
}

/// The API server serves no kind that a word means.
#[derive(Debug)]
pub(crate) struct NoKind {
    word: String,
    /// Kinds that are spelled alike.
    near: Vec<String>,
}

impl fmt::Display for NoKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the API server serves no kind {}", self.word)?;
        match self.near.as_slice() {
            [] => f.write_str(": no name is near it"),
            [one] => write!(f, "; near it is {one}"),
            several => write!(f, "; near it are {}", several.join(", ")),
        }
    }
}

impl std::error::Error for NoKind {}

/// The kind that a word means. Of several the one without a group is taken, then the first, as kubectl does.
///
/// # Errors
/// Where there is none, with those that are spelled alike.
pub(crate) fn find(word: &str, kinds: &[ServedKind]) -> Result<ServedKind, NoKind> {
    if let Some(kind) = kinds.iter().find(|kind| kind.is_called(word)) {
        return Ok(kind.clone());
    }
    let name = word.split('.').next().unwrap_or(word).to_ascii_lowercase();
    let alike = |kind: &&ServedKind| {
        let own = [kind.plural.as_str(), kind.singular.as_str()];
        spelling::nearest(&name, own).is_some()
            || own.iter().any(|own| *own == name)
            || (name.len() >= 3 && kind.plural.contains(&name))
    };
    let mut near: Vec<&ServedKind> = kinds.iter().filter(alike).collect();
    near.sort_by_key(|kind| {
        spelling::distance(&name, &kind.plural).min(spelling::distance(&name, &kind.singular))
    });
    let near = near.into_iter().take(4).map(ServedKind::full_name).collect();
    Err(NoKind { word: word.to_owned(), near })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(group: &str, kind: &str, plural: &str, short: &str) -> ServedKind {
        ServedKind {
            gvk: Gvk::new(group, "v1", kind),
            plural: plural.to_owned(),
            singular: kind.to_lowercase(),
            short_names: vec![short.to_owned()],
            namespaced: true,
            watched: true,
        }
    }

    #[test]
    fn a_word_finds_its_kind_or_those_that_are_near() {
        let kinds = [
            kind("", "Event", "events", "ev"),
            kind("", "Pod", "pods", "po"),
            kind("apps", "Deployment", "deployments", "deploy"),
            kind("events.k8s.io", "Event", "events", "ev"),
            kind("metrics.k8s.io", "PodMetrics", "podmetrics", ""),
        ];
        let found =
            |word: &str| find(word, &kinds).map(|kind| kind.full_name()).map_err(|error| error.to_string());
        assert_eq!(found("po").unwrap(), "pods");
        assert_eq!(found("ev").unwrap(), "events");
        assert_eq!(found("events.events.k8s.io").unwrap(), "events.events.k8s.io");
        assert_eq!(found("pdos").unwrap_err(), "the API server serves no kind pdos; near it is pods");
        assert!(found("deplyoment").unwrap_err().ends_with("near it is deployments.apps"));
        assert!(found("pods.apps").unwrap_err().ends_with("near it is pods"));
        assert!(found("zebra").unwrap_err().ends_with("no name is near it"));
        assert!(found("").is_err(), "an empty short name is no name");
    }
}
