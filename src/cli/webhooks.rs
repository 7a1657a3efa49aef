//! The options about webhooks, of `opdev serve` and of `opdev run` on the embedded control plane.

use opdev_cluster::Certificates;
use opdev_controlplane::Webhooks;
use std::fmt;
use std::path::PathBuf;

/// How webhooks are reached.
#[derive(Debug, Default, clap::Args)]
pub(super) struct WebhookArgs {
    /// The port on this machine of what serves a webhook's Service (may be repeated); the annotation
    /// opdev.dev/local-port on the Service says the same. Without either the Service's target port is tried
    #[arg(long = "webhook", value_name = "NAMESPACE/SERVICE=PORT", value_parser = mapping)]
    webhooks: Vec<(String, u16)>,
    /// A webhook whose Service has only simulated pods fails, as one on a real cluster that does not answer,
    /// instead of being skipped with a warning
    #[arg(long)]
    strict_webhooks: bool,
    /// Write tls.crt, tls.key and ca.crt for webhook servers on this machine into this folder; without DIR
    /// into the one where controller-runtime looks, k8s-webhook-server/serving-certs in the folder for
    /// temporary files
    #[arg(long, value_name = "DIR")]
    webhook_certs: Option<Option<PathBuf>>,
}

/// A text that is no `namespace/service=port`.
#[derive(Debug, PartialEq, Eq)]
struct NoMapping(String);

impl fmt::Display for NoMapping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is no NAMESPACE/SERVICE=PORT, such as system/webhook-service=9443", self.0)
    }
}

impl std::error::Error for NoMapping {}

/// Reads `namespace/service=port`.
fn mapping(text: &str) -> Result<(String, u16), NoMapping> {
    let wrong = || NoMapping(text.to_owned());
    let (service, port) = text.split_once('=').ok_or_else(wrong)?;
    let named = service
        .split_once('/')
        .is_some_and(|(namespace, name)| !namespace.is_empty() && !name.is_empty() && !name.contains('/'));
    match port.parse() {
        Ok(port) if named && port > 0 => Ok((service.to_owned(), port)),
        _ => Err(wrong()),
    }
}

impl WebhookArgs {
    /// For the plane.
    pub(super) fn apply(&self, webhooks: &mut Webhooks) {
        webhooks.ports.extend(self.webhooks.iter().cloned());
        webhooks.strict = self.strict_webhooks;
    }

    /// Where certificates are to be written.
    pub(super) fn folder(&self) -> Option<PathBuf> {
        self.webhook_certs.as_ref().map(|folder| folder.clone().unwrap_or_else(Certificates::usual_folder))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mapping_names_a_service_and_a_port() {
        assert_eq!(mapping("system/hooks=9443"), Ok(("system/hooks".to_owned(), 9443)));
        for wrong in ["hooks=9443", "system/hooks", "system/hooks=0", "system/hooks=x", "/hooks=1", "a/b/c=1"]
        {
            assert!(mapping(wrong).unwrap_err().to_string().contains("NAMESPACE/SERVICE=PORT"), "{wrong}");
        }
    }
}
