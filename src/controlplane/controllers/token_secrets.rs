//! Secrets of type `kubernetes.io/service-account-token`: each gets the token of the account that it names,
//! and goes with that account. Never makes such a Secret: nobody gets one unasked.

use super::SignToken;
use super::fields::{deleting, put, text, uid};
use crate::contract::{Actor, Change, Controller, Key, Propagation, Sync, View, Write};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use opdev_apimachinery::attributes::Lookup;
use opdev_object::meta;
use serde_json::{Map, Value};

/// See the module.
pub(crate) struct TokenSecrets {
    /// PEM of the CA that signed the API server's certificate.
    pub certificate: String,
    pub(crate) sign: SignToken,
}

const SECRETS: &str = "secrets";
const ACCOUNTS: &str = "serviceaccounts";
const ACCOUNT_NAME: &str = "kubernetes.io/service-account.name";
const ACCOUNT_UID: &str = "kubernetes.io/service-account.uid";

impl Controller for TokenSecrets {
    fn name(&self) -> &'static str {
        "serviceaccount-token-controller"
    }

    fn actor(&self) -> Actor {
        Actor::kube_controller_manager("system:serviceaccount:kube-system:serviceaccount-token-controller")
    }

    fn keys(&self, view: &dyn View, change: &Change) -> Vec<Key> {
        match (change.resource.as_str(), change.object()) {
            (SECRETS, Some(secret)) if secret.attributes().is_account_token() => {
                change.key().into_iter().collect()
            }
            (ACCOUNTS, Some(account)) => {
                view.select_keys(SECRETS, account.namespace(), &Lookup::All, &|secret| {
                    secret.is_account_token()
                })
            }
            _ => Vec::new(),
        }
    }

    fn sync(&self, view: &dyn View, key: &Key, _now: Timestamp) -> Sync {
        let Some(secret) = key.read(view).filter(|secret| !deleting(secret)) else { return Sync::done() };
        let annotation = |name| meta::annotation(&secret, name).unwrap_or_default();
        let named = view.get(ACCOUNTS, key.namespace.as_deref(), annotation(ACCOUNT_NAME));
        let known = annotation(ACCOUNT_UID);
        let account = named.filter(|account| known.is_empty() || known == uid(account));
        let write = match account {
            None => Some(Write::Delete {
                resource: SECRETS.into(),
                namespace: key.namespace.clone(),
                name: key.name.clone(),
                uid: meta::uid(&secret).map(str::to_owned),
                propagation: Some(Propagation::Background),
                grace: None,
            }),
            Some(account) => self.completed(&secret, &account),
        };
        Sync { writes: write.into_iter().collect(), ..Sync::default() }
    }
}

impl TokenSecrets {
    /// The Secret with what it lacks, where it lacks something.
    fn completed(&self, secret: &Value, account: &Value) -> Option<Write> {
        let mut data: Map<String, Value> = super::fields::map_copy(secret, "/data");
        let has = |data: &Map<String, Value>, key: &str| {
            data.get(key).and_then(Value::as_str).is_some_and(|value| !value.is_empty())
        };
        let whole = ["token", "ca.crt", "namespace"].iter().all(|key| has(&data, key));
        if whole && meta::annotation(secret, ACCOUNT_UID).is_some() {
            return None;
        }
        if !has(&data, "token") {
            match (self.sign)(account, secret) {
                Ok(token) => data.insert("token".into(), STANDARD.encode(token).into()),
                Err(error) => {
                    tracing::error!(error, "no token could be signed");
                    return None;
                }
            };
        }
        data.insert("ca.crt".into(), STANDARD.encode(&self.certificate).into());
        data.insert("namespace".into(), STANDARD.encode(text(secret, "/metadata/namespace")).into());
        let mut object = secret.clone();
        put(&mut object, "/data", data.into());
        let mut annotations = super::fields::map_copy(secret, "/metadata/annotations");
        annotations.insert(ACCOUNT_UID.into(), uid(account).into());
        put(&mut object, "/metadata/annotations", annotations.into());
        Some(Write::Update { resource: SECRETS.into(), object })
    }
}
