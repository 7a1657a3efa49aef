//! The options of `opdev serve` about webhooks, and the certificate on disk for servers on this machine.

use anyhow::{Context, Result};
use opdev_controlplane::{ControlPlane, Webhooks};
use std::fs;
use std::path::{Path, PathBuf};

/// How webhooks are reached.
#[derive(Debug, Default, clap::Args)]
pub(super) struct WebhookArgs {
    /// The port on this machine of what serves a webhook's Service (may be repeated); the annotation
    /// opdev.dev/local-port on the Service says the same. Without either the Service's target port is tried
    #[arg(long = "webhook", value_name = "NAMESPACE/SERVICE=PORT", value_parser = mapping)]
    webhooks: Vec<(String, u16)>,
    /// A webhook whose Service has only simulated pods fails, as one on a real cluster that does not answer, instead of
    /// being skipped with a warning
    #[arg(long)]
    strict_webhooks: bool,
    /// Write tls.crt, tls.key and ca.crt for webhook servers on this machine into this folder; without DIR into the one
    /// where controller-runtime looks, k8s-webhook-server/serving-certs in the folder for temporary files
    #[arg(long, value_name = "DIR")]
    webhook_certs: Option<Option<PathBuf>>,
}

/// Reads `namespace/service=port`.
fn mapping(text: &str) -> Result<(String, u16), String> {
    let wrong = || format!("{text:?} is no NAMESPACE/SERVICE=PORT, such as system/webhook-service=9443");
    let (service, port) = text.split_once('=').ok_or_else(wrong)?;
    let named = service
        .split_once('/')
        .is_some_and(|(namespace, name)| !namespace.is_empty() && !name.is_empty() && !name.contains('/'));
    match port.parse() {
        Ok(port) if named && port > 0 => Ok((service.to_owned(), port)),
        _ => Err(wrong()),
    }
}

/// Files that were written, which go with the plane unless it is kept.
pub(super) struct Certificates {
    pub(super) folder: PathBuf,
    files: Vec<(PathBuf, String)>,
}

impl WebhookArgs {
    /// For the plane.
    pub(super) fn apply(&self, webhooks: &mut Webhooks) {
        webhooks.ports.extend(self.webhooks.iter().cloned());
        webhooks.strict = self.strict_webhooks;
    }

    /// Writes the certificate, where that is asked for.
    pub(super) fn certificates(&self, plane: &ControlPlane) -> Result<Option<Certificates>> {
        let Some(folder) = &self.webhook_certs else { return Ok(None) };
        let usual = || std::env::temp_dir().join("k8s-webhook-server").join("serving-certs");
        let folder = std::path::absolute(folder.clone().unwrap_or_else(usual))?;
        fs::create_dir_all(&folder)
            .with_context(|| format!("--webhook-certs: the folder {} cannot be made", folder.display()))?;
        let pair = plane.webhook_certificate()?;
        let mut files = Vec::new();
        // The key comes first: whoever watches the certificate reads both when it changes.
        for (name, text) in
            [("tls.key", pair.key), ("tls.crt", pair.certificate), ("ca.crt", plane.authority())]
        {
            let path = folder.join(name);
            crate::dev::cluster::write_private(&path, &text)
                .with_context(|| format!("--webhook-certs: {} cannot be written", path.display()))?;
            files.push((path, text));
        }
        Ok(Some(Certificates { folder, files }))
    }
}

impl Certificates {
    /// Takes away what was written, unless somebody else has written there meanwhile.
    pub(super) fn remove(&self) {
        for (path, text) in &self.files {
            if fs::read_to_string(path).is_ok_and(|found| found == *text) {
                let _ = fs::remove_file(path);
            }
        }
    }

    /// What the user is told of them.
    pub(super) fn told(&self) -> String {
        format!("webhook servers on this machine find tls.crt and tls.key in {}\n\n", shown(&self.folder))
    }
}

fn shown(path: &Path) -> String {
    super::serve::quoted(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mapping_names_a_service_and_a_port() {
        assert_eq!(mapping("system/hooks=9443"), Ok(("system/hooks".to_owned(), 9443)));
        for wrong in ["hooks=9443", "system/hooks", "system/hooks=0", "system/hooks=x", "/hooks=1", "a/b/c=1"]
        {
            assert!(mapping(wrong).unwrap_err().contains("NAMESPACE/SERVICE=PORT"), "{wrong}");
        }
    }
}
