//! Changes that the CRDs of a project would make on the API server. Writes nothing.

use super::weigh::{self, Decision};
use super::{PATH, get, list};
use anyhow::Result;
use http::Method;
use kube::Client;
use opdev_client::error_words::told;
use opdev_client::send;
use opdev_client::{OWN_MANAGER, is_forbidden};
use opdev_event::{TypeAhead, Weight};
use opdev_sources::definitions::Definition;
use opdev_types::impact;
use std::sync::Arc;

/// The definitions that differ from what the API server has. `cautious` is as in `Crds::new`; with `offline`
/// it is asked for no dry run.
///
/// # Errors
/// Where the API server does not answer.
pub async fn foresee(
    client: &Client,
    definitions: &[Arc<Definition>],
    cautious: bool,
    offline: bool,
) -> Result<Vec<TypeAhead>> {
    let mut found = Vec::new();
    for definition in definitions {
        let Some(kind) = definition.gvk() else { continue };
        let live = match get(client, definition.name()).await {
            // A user who may not read CRDs does not change them either.
            Err(error) if is_forbidden(&error) => continue,
            live => live?,
        };
        let same = |live| definition.scaffolded || impact::same(live, &definition.crd);
        if live.as_ref().is_some_and(same) {
            continue;
        }
        let objects = match &live {
            Some(live) => list(client, live).await?,
            None => Vec::new(),
        };
        let weighed = weigh::weigh(definition, live.as_ref(), &objects, cautious);
        let problem = match &weighed.decision {
            Decision::Apply if offline => None,
            Decision::Apply => refusal(client, definition).await,
            Decision::Hold(why) => Some(format!("it would need your answer: {why}")),
            Decision::Refuse(problem) => Some(problem.message.clone()),
        };
        let created = live.is_none();
        let heavy = weighed.findings.into_iter().filter(|one| !created && one.weight > Weight::Info);
        found.push(TypeAhead {
            name: definition.name().to_owned(),
            kind,
            created,
            findings: heavy.collect(),
            objects: weighed.objects,
            problem,
        });
    }
    Ok(found)
}

/// Why the API server would not take a definition.
async fn refusal(client: &Client, definition: &Definition) -> Option<String> {
    let uri = format!("{PATH}/{}?fieldManager={OWN_MANAGER}&force=true&dryRun=All", definition.name());
    let asked =
        send(client, Method::PATCH, &uri, "application/apply-patch+yaml", Some(&definition.crd)).await;
    match asked {
        Err(error) if is_forbidden(&error) => Some(format!("you may not write it: {}", told(&error))),
        Err(error) => Some(format!("the API server would refuse it: {}", told(&error))),
        Ok(_) => None,
    }
}
