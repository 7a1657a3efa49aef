//! The certificate on disk for webhook servers on this machine.

use crate::dev::private_folder::PrivateFolder;
use anyhow::{Context as _, Result};
use opdev_controlplane::ControlPlane;
use std::fs;
use std::path::{Path, PathBuf};

/// Files that were written. Whoever stops the plane for good takes them away.
#[derive(Debug)]
pub struct Certificates {
    /// Where they are.
    pub folder: PathBuf,
    files: Vec<(PathBuf, String)>,
}

impl Certificates {
    /// The folder where controller-runtime looks unless it is told otherwise.
    pub fn usual_folder() -> PathBuf {
        std::env::temp_dir().join("k8s-webhook-server").join("serving-certs")
    }

    /// Writes a certificate of the plane's own authority, its key, and the authority.
    ///
    /// # Errors
    /// Where the folder cannot be made or written to.
    pub fn write(plane: &ControlPlane, folder: &Path) -> Result<Certificates> {
        let folder = std::path::absolute(folder)?;
        let private = PrivateFolder::named(&folder).context("--webhook-certs")?;
        let pair = plane.webhook_certificate()?;
        let mut files = Vec::new();
        // The key comes first: whoever watches the certificate reads both when it changes.
        for (name, text) in
            [("tls.key", pair.key), ("tls.crt", pair.certificate), ("ca.crt", plane.authority())]
        {
            let path = folder.join(name);
            private.write(name, text.as_bytes()).context("--webhook-certs")?;
            files.push((path, text));
        }
        Ok(Certificates { folder, files })
    }

    /// Takes away what was written, unless somebody else has written there meanwhile.
    pub fn remove(&self) {
        for (path, text) in &self.files {
            if fs::read_to_string(path).is_ok_and(|found| found == *text) {
                let _ = fs::remove_file(path);
            }
        }
    }
}
