//! The `crds/` of a chart: created once, before the first revision, and waited for. Never upgraded, never
//! deleted. No release owns them, as with Helm: a chart that moves them into its templates finds them taken.

use super::engine::Engine;
use super::history::desired_release::DesiredRelease;
use super::objects;
use super::objects::inject::ReleaseNames;
use super::wait::{self, Limits};
use crate::settings::HelmCompat;
use anyhow::Context;
use opdev_event::{Action, ObjectChange};
use opdev_helm::chart::Chart;
use opdev_helm::dependencies;
use opdev_object::meta;
use serde_json::Value;
use std::time::Duration;

/// How long a new CRD may take until it is served.
const ESTABLISH: Duration = Duration::from_secs(60);

/// The chart with the subcharts that its values switch on: the CRDs of the others are not installed.
pub(crate) fn enabled(desired: &DesiredRelease, compat: HelmCompat) -> anyhow::Result<Chart> {
    let (chart, _) = dependencies::process(&desired.chart, &desired.values, compat.into())?;
    Ok(chart)
}

impl Engine {
    /// Creates the chart's CRDs that do not exist yet and waits until they are served.
    pub(crate) async fn install_crds(&mut self, desired: &DesiredRelease) -> anyhow::Result<()> {
        let chart = enabled(desired, self.settings.helm_compat)?;
        let namespace = self.namespace.clone();
        let names = ReleaseNames { name: &self.name, namespace: &namespace, chart: chart.name() };
        let mut created = Vec::new();
        for file in chart.crds() {
            let objects = objects::parse(&file.content)
                .with_context(|| format!("failed to install CRD {}", file.name))?;
            for object in objects {
                let wanted = objects::want_crd(&self.api, object, &self.owner, names).await?;
                match self.api.create(&wanted.resource, meta::namespace(&wanted.object), wanted.sent()).await
                {
                    Ok(object) => {
                        self.done.effects.changes.push(ObjectChange {
                            object: meta::ObjectRef {
                                uid: meta::uid(&object).map(str::to_owned),
                                ..wanted.reference()
                            },
                            action: Action::Created,
                            changes: Vec::new(),
                            taken_from: Vec::new(),
                        });
                        created.push(wanted);
                    }
                    Err(error) if error.already_exists() => {}
                    Err(error) => {
                        return Err(
                            anyhow::Error::new(error).context(format!("failed to install CRD {}", file.name))
                        );
                    }
                }
            }
        }
        let limits = Limits { timeout: ESTABLISH, cancel: &self.cancel };
        for wanted in created.iter().filter(|wanted| wanted.resource.gvk.kind == "CustomResourceDefinition") {
            let what = format!("{} is being established", wanted.key());
            let established = |object: Option<&Value>| {
                object.and_then(|object| wait::condition(object, "Established")).map(|_| Ok(()))
            };
            wait::until(&self.api, &wanted.at(), limits, &what, established).await?;
        }
        if !created.is_empty() {
            self.api.discovery.invalidate().await;
            self.note("crds");
        }
        Ok(())
    }
}
