//! ConfigMaps, Secrets and ServiceAccounts.

use crate::strategy::{Selectable, Strategy};
use base64::Engine;
use opdev_apimachinery::attributes::{ACCOUNT_TOKEN, END, Indexing, partial_typed};
use opdev_apimachinery::quota::Evaluator;
use opdev_apimachinery::resource::{MetadataChecks, MetadataOrder, ResourceRules};
use opdev_apis::defaults::sub;
use opdev_apis::table::{Printer, cluster};
use opdev_validation::warnings;
use opdev_validation::{immutable, storage};
use serde_json::Value;

const WHOLE_LATER: MetadataChecks =
    MetadataChecks { order: MetadataOrder::WholeLater, ..MetadataChecks::TWICE };

pub(super) static ALL: &[Strategy] = &[
    Strategy {
        id: "configmaps",
        // Each reconcile looks for the records of its release by their labels.
        indexing: Indexing::LABELS,
        rules: ResourceRules { metadata_checks: WHOLE_LATER, ..ResourceRules::COMMON },
        printer: Some(Printer::new(cluster::CONFIG_MAP, cluster::config_map)),
        validate_change_first: storage::frozen,
        validate: |_, object, _, causes| storage::config_map(object, causes),
        quota: Evaluator::COUNTED,
        ..Strategy::COMMON
    },
    Strategy {
        id: "secrets",
        // Each reconcile looks for the records of its release by their labels.
        indexing: Indexing { fields: Some(account_token), partial: partial_typed, ..Indexing::LABELS },
        rules: ResourceRules { metadata_checks: WHOLE_LATER, ..ResourceRules::COMMON },
        printer: Some(Printer::new(cluster::SECRET, cluster::secret)),
        selectable: Selectable::fields(&["type"]),
        set_defaults: |_, object| secret(object),
        validate_change_first: |object, current, causes| {
            immutable("type", &object["type"], &current["type"], causes);
            storage::frozen(object, current, causes);
        },
        validate: |_, object, _, causes| storage::secret(object, causes),
        warn: warnings::secret,
        quota: Evaluator::COUNTED,
        ..Strategy::COMMON
    },
    Strategy {
        id: "serviceaccounts",
        rules: ResourceRules {
            returns_deleted: true,
            metadata_checks: MetadataChecks::TWICE,
            ..ResourceRules::COMMON
        },
        printer: Some(Printer::new(cluster::SERVICE_ACCOUNT, cluster::service_account)),
        warn: warnings::service_account,
        ..Strategy::COMMON
    },
];

/// Notes that a Secret holds the token of an account.
fn account_token(secret: &Value) -> String {
    if secret["type"] == ACCOUNT_TOKEN { format!("{ACCOUNT_TOKEN}{END}") } else { String::new() }
}

fn secret(object: &mut Value) {
    if let Some(Value::Object(texts)) = object.as_object_mut().and_then(|map| map.remove("stringData")) {
        let data = sub(object, "data");
        for (key, text) in texts {
            let text = text.as_str().unwrap_or_default();
            data[&key] = Value::from(base64::engine::general_purpose::STANDARD.encode(text));
        }
    }
    if object["type"].as_str().unwrap_or_default().is_empty() {
        object["type"] = Value::from("Opaque");
    }
}
