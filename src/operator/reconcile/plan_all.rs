//! Plans of all reconciles, made without a running operator: objects are listed, tried, and nothing is
//! watched or written. Read `dry_run` for how each one is tried.

use super::dry_run;
use super::dry_run::Trial;
use super::dry_run_report::Shadowed;
use opdev_cache::caches::Hub;
use opdev_client::read_only::ReadOnly;
use opdev_client::{Api, ApiError};
use opdev_object::meta::ObjectRef;
use opdev_release::objects::dry_run::Ask;
use opdev_release::settings::Settings;
use opdev_sources::Watch;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// How long all objects of one kind may take.
const LONGEST: Duration = Duration::from_secs(60);

/// What reconciles of the objects of one kind would do. `picks` chooses among the objects; with `offline` the
/// API server is asked for no dry run.
///
/// # Errors
/// Where the objects cannot be listed. A kind that is not served has none.
pub async fn foresee(
    client: &kube::Client,
    settings: &Settings,
    watch: &Arc<Watch>,
    picks: impl Fn(&ObjectRef) -> bool,
    offline: bool,
) -> anyhow::Result<Shadowed> {
    let api = Api::new(client, ReadOnly::new(true));
    let resource = match api.resource(&watch.gvk).await {
        Ok(resource) => resource,
        Err(ApiError::NoMatch(_)) => return Ok(Shadowed::default()),
        Err(error) => return Err(error.into()),
    };
    let namespaces = settings.watched();
    let objects = api.list_in(&resource, &namespaces, "").await?;
    let objects =
        objects.into_iter().filter(|object| ObjectRef::of(object).is_some_and(|object| picks(&object)));
    let trial = Trial {
        watch: Arc::clone(watch),
        objects: objects.map(Arc::new).collect(),
        api,
        hub: Arc::new(Hub::new(namespaces)),
        settings: Arc::new(settings.clone()),
        kinds: Vec::new(),
        memories: HashMap::new(),
        ask: if offline { Ask::Nobody } else { Ask::Server },
        longest: LONGEST,
    };
    Ok(dry_run::run(trial).await)
}
