//! The step that settles where the release and its records live, and whom it is written as. A script beside
//! the chart, or the project's options, say so.

use super::ChartReconcile;
use opdev_release::verdict::Fault;
use opdev_script::contract::ChartFunction;
use serde_json::Value;

impl ChartReconcile {
    /// Where the release and its records live, and whom it is written as.
    pub(super) async fn settle_places(&mut self) -> Result<(), Fault> {
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
    pub(super) fn own_namespace(&self) -> String {
        let fallback = || self.engine.settings.namespace.clone().unwrap_or_else(|| "default".to_owned());
        self.parent.reference.namespace.clone().unwrap_or_else(fallback)
    }
}
