//! The certificate on disk for webhook servers on this machine.

use anyhow::{Context as _, Result};
use opdev_controlplane::ControlPlane;
use opdev_os::private_folder::PrivateFolder;
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

    /// Writes a certificate of the plane's own authority, its key, and the authority into the folder that
    /// `--webhook-certs` names.
    ///
    /// # Errors
    /// Where the folder cannot be made or written to.
    pub fn write_named(plane: &ControlPlane, folder: &Path) -> Result<Certificates> {
        let folder = PrivateFolder::named(&std::path::absolute(folder)?);
        folder.and_then(|folder| Self::write(plane, &folder)).context("--webhook-certs")
    }

    /// Writes the three files into a folder that is open.
    ///
    /// # Errors
    /// Where the folder cannot be written to.
    pub fn write(plane: &ControlPlane, folder: &PrivateFolder) -> Result<Certificates> {
        let pair = plane.webhook_certificate()?;
        let mut files = Vec::new();
        // The key comes first: whoever watches the certificate reads both when it changes.
        for (name, text) in
            [("tls.key", pair.key), ("tls.crt", pair.certificate), ("ca.crt", plane.authority())]
        {
            folder.write(name, text.as_bytes())?;
            files.push((folder.path().join(name), text));
        }
        Ok(Certificates { folder: folder.path().to_owned(), files })
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
