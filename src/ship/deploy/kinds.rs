//! The kinds of what is deployed: where the API server serves them, and who provides those that it lacks.

use super::input::{ApplyOptions, Say, gvk, is_crd};
use anyhow::{Result, bail};
use kube::Client;
use kube::core::ApiResource;
use opdev_client::{ApiError, resource_of};
use opdev_object::meta::Gvk;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// Where a kind is served, and whether its objects are in a namespace.
pub(super) type Place = (ApiResource, bool);

/// The kinds that were asked for.
#[derive(Default)]
pub(super) struct Kinds(BTreeMap<Gvk, Place>);

/// Kinds of others that manifests of operators often have, and who provides them.
const PROVIDERS: [(&str, &str); 12] = [
    ("monitoring.coreos.com", "the Prometheus operator"),
    ("cert-manager.io", "cert-manager"),
    ("gateway.networking.k8s.io", "the Gateway API"),
    ("operators.coreos.com", "the Operator Lifecycle Manager"),
    ("security.openshift.io", "OpenShift"),
    ("route.openshift.io", "OpenShift"),
    ("config.openshift.io", "OpenShift"),
    ("keda.sh", "KEDA"),
    ("argoproj.io", "Argo"),
    ("networking.istio.io", "Istio"),
    ("external-secrets.io", "External Secrets"),
    ("kyverno.io", "Kyverno"),
];

/// How long the API server may take to serve the kind of a CRD that is established.
const SERVED: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(50);

/// Kinds that only watch the operator: without them it works as well.
const OPTIONAL: &str = "monitoring.coreos.com";

/// Kinds that the CRDs among the objects define.
pub(super) fn defined(objects: &[Value]) -> BTreeSet<(String, String)> {
    let text = |object: &Value, pointer: &str| {
        object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let crds = objects.iter().filter(|object| is_crd(object));
    crds.map(|crd| (text(crd, "/spec/group"), text(crd, "/spec/names/kind"))).collect()
}

impl Kinds {
    /// Where a kind is served; `None` where it is not.
    pub(super) async fn find(&mut self, client: &Client, gvk: &Gvk) -> Result<Option<Place>> {
        if let Some(known) = self.0.get(gvk) {
            return Ok(Some(known.clone()));
        }
        match resource_of(client, gvk).await {
            Ok(place) => {
                self.0.insert(gvk.clone(), place.clone());
                Ok(Some(place))
            }
            Err(ApiError::NotServed(_)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// The place of a kind whose CRD has just come: discovery may be a moment behind.
    pub(super) async fn find_soon(&mut self, client: &Client, gvk: &Gvk) -> Result<Option<Place>> {
        let until = Instant::now() + SERVED;
        loop {
            let found = self.find(client, gvk).await?;
            if found.is_some() || Instant::now() >= until {
                return Ok(found);
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// The kinds that are left out, for the cluster lacks them. Refuses where more than what watches the
    /// operator is missing.
    pub(super) async fn check(
        &mut self,
        client: &Client,
        objects: &[Value],
        options: &ApplyOptions,
        say: Say<'_>,
    ) -> Result<BTreeSet<Gvk>> {
        let own = defined(objects);
        let mut missing: BTreeMap<Gvk, usize> = BTreeMap::new();
        for object in objects {
            let gvk = gvk(object);
            let is_own = own.contains(&(gvk.group.clone(), gvk.kind.clone()));
            let is_missing = missing.contains_key(&gvk) || self.find(client, &gvk).await?.is_none();
            if is_missing && !is_own {
                *missing.entry(gvk).or_default() += 1;
            }
        }
        let is_optional = |gvk: &Gvk| !options.strict && (gvk.group == OPTIONAL || options.skip_missing);
        let needed: Vec<String> = missing.keys().filter(|gvk| !is_optional(gvk)).map(described).collect();
        if !needed.is_empty() {
            bail!(
                "nothing was applied, for the cluster lacks kinds that the operator needs:\n  {}\n  to do: install what \
                 provides them first, or leave the objects out with --skip-missing",
                needed.join("\n  ")
            );
        }
        for (gvk, count) in &missing {
            let objects = if *count == 1 { "1 object".to_owned() } else { format!("{count} objects") };
            say(&format!("left out: {objects} of {}", described(gvk)));
        }
        Ok(missing.into_keys().collect())
    }
}

fn described(gvk: &Gvk) -> String {
    let is_of = |group: &str| gvk.group == group || gvk.group.ends_with(&format!(".{group}"));
    let provider = PROVIDERS.iter().find(|(group, _)| is_of(group)).map(|(_, provider)| *provider);
    match provider {
        Some(provider) => format!("{} ({}), which {provider} provides", gvk.kind, gvk.api_version()),
        None => format!("{} ({}), which the cluster does not serve", gvk.kind, gvk.api_version()),
    }
}
