//! The first steps of a reconcile of a chart, before it looks at the release: whether the custom resource is
//! left alone, where the release and its records live, whom it is written as, and its values. A script beside
//! the chart, or the project's options, say so.

use super::chart::ChartReconcile;
use anyhow::Context;
use opdev_helm::chart::Chart;
use opdev_helm::values::coalesce;
use opdev_object::meta;
use opdev_release::history::History;
use opdev_release::history::desired_release::DesiredRelease;
use opdev_release::history::records::Records;
use opdev_release::script::ChartScript;
use opdev_release::script::hook_calls;
use opdev_release::verdict::{Fault, Stage};
use opdev_script::contract::ChartFunction;
use opdev_sources::values;
use serde_json::{Value, json};
use std::sync::Arc;

impl ChartReconcile {
    /// Why the custom resource is left alone, where it is.
    pub(crate) async fn paused(&mut self) -> Result<Option<String>, Fault> {
        if let Some(name) = &self.engine.reconciler.options.pause_annotation
            && meta::annotation(&self.parent.object, name) == Some("true")
        {
            return Ok(Some(format!("paused: its annotation {name} is \"true\"")));
        }
        let Some(script) = self.script(ChartFunction::Paused) else { return Ok(None) };
        let answer = script.ask(ChartFunction::Paused, vec![None]).await?;
        let words = || format!("paused: {} says so", script.path());
        Ok((answer.value == Value::Bool(true)).then(words))
    }

    fn script(&self, function: ChartFunction) -> Option<Arc<ChartScript>> {
        self.engine.script.clone().filter(|script| script.has(function))
    }

    /// Where the release and its records live, and whom it is written as.
    pub(crate) async fn settle_places(&mut self) -> Result<(), Fault> {
        let options = self.engine.reconciler.options.clone();
        let (mut release, mut storage) = (options.release_namespace, options.storage_namespace);
        let mut account = options.service_account;
        if let Some(script) = self.script(ChartFunction::Namespaces) {
            let answer = script.ask(ChartFunction::Namespaces, vec![None]).await?;
            let text = |key: &str| answer.value.get(key).and_then(Value::as_str).map(str::to_owned);
            release = text("release").or(release);
            storage = text("storage").or(storage);
        }
        if let Some(script) = self.script(ChartFunction::ServiceAccountName) {
            let answer = script.ask(ChartFunction::ServiceAccountName, vec![None]).await?;
            account = answer.value.as_str().map(str::to_owned).or(account);
        }
        let own = self.own_namespace();
        self.engine.namespace = release.filter(|text| !text.is_empty()).unwrap_or_else(|| own.clone());
        self.engine.options.storage_namespace = Some(storage.filter(|text| !text.is_empty()).unwrap_or(own));
        if let Some(account) = account.filter(|account| !account.is_empty()) {
            let (namespace, name) = account
                .split_once('/')
                .map_or((self.own_namespace(), account.clone()), |(namespace, name)| {
                    (namespace.to_owned(), name.to_owned())
                });
            let user = format!("system:serviceaccount:{namespace}:{name}");
            self.engine.api = self.engine.api.acting_as(Some(user.into()));
        }
        Ok(())
    }

    /// The namespace of the custom resource, or the one that stands for it.
    fn own_namespace(&self) -> String {
        let fallback = || self.engine.settings.namespace.clone().unwrap_or_else(|| "default".to_owned());
        self.parent.reference.namespace.clone().unwrap_or_else(fallback)
    }

    /// The revisions of the release. The places are settled.
    pub(crate) async fn history(&self) -> anyhow::Result<History> {
        let engine = &self.engine;
        let own = || self.own_namespace();
        let namespace = engine.options.storage_namespace.clone().unwrap_or_else(own);
        let (storage, chunked) = (engine.options.storage, &engine.options.chunked);
        let api = engine.api.as_operator();
        let records = Records::of(&api, &namespace, (storage, chunked), &engine.memory.records).await?;
        let name = &self.parent.reference.name;
        History::read(&engine.api, records, name, engine.options.storage_owner)
            .await
            .context("failed to retrieve release history")
    }

    /// The wanted release.
    pub(crate) async fn desired(
        &mut self,
        history: &History,
        chart: Arc<Chart>,
    ) -> Result<DesiredRelease, Fault> {
        let values = |fault: Fault| Fault { stage: Stage::Values, ..fault };
        let plain = |error| values(Fault::plain(error));
        let spec = values::spec(&self.parent.object).map_err(plain)?;
        let forced = values::with_overrides(&spec, &self.engine.reconciler).map_err(plain)?;
        let (spec, own) = match self.script(ChartFunction::Values) {
            None => (spec, forced),
            Some(script) => {
                let newest = history.newest().map_err(Fault::irreconcilable)?;
                let about = json!({"values": forced, "release": newest.as_ref().map(hook_calls::told)});
                let answer =
                    script.ask(ChartFunction::Values, vec![None, Some(about)]).await.map_err(values)?;
                // What decides are the values: they may follow the cluster while the spec stays.
                (answer.value.clone(), answer.value)
            }
        };
        let own = if self.engine.options.hybrid {
            let compat = self.engine.settings.helm_compat.into();
            coalesce(&chart, &own, compat).map_err(|error| plain(error.into()))?.values
        } else {
            own
        };
        let values = self.engine.values_for(history, own).map_err(Fault::irreconcilable)?;
        Ok(DesiredRelease { chart, spec, values })
    }
}
