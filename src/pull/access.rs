//! How a server is reached: credentials, certificates, and what the user allows beside.

use secrecy::{ExposeSecret as _, SecretString};
use std::path::PathBuf;

/// How a chart repository or a registry is reached.
#[derive(Clone, Debug, Default)]
pub struct Access {
    /// The user of basic authentication; empty for none.
    pub username: String,
    /// The password of that user. Neither a log nor an error shows it.
    pub password: SecretString,
    /// A file of PEM certificates that are trusted in place of the system's.
    pub ca_file: Option<PathBuf>,
    /// A file with the client's own PEM certificates.
    pub cert_file: Option<PathBuf>,
    /// A file with the PEM key of the client's certificate.
    pub key_file: Option<PathBuf>,
    /// Whether a certificate that nobody vouches for is taken.
    pub skip_verification: bool,
    /// Whether a registry is asked without TLS.
    pub plain_http: bool,
    /// Whether the credentials go to every host that an index names, and not to the repository's only; also whether one login
    /// goes to several registries of a chart's dependencies.
    pub pass_to_all_hosts: bool,
}

impl Access {
    /// Whether there are a user and a password, which Helm sends only together.
    pub(super) fn has_login(&self) -> bool {
        !self.username.is_empty() && !self.password.expose_secret().is_empty()
    }

    /// The same without user and password.
    pub(super) fn without_login(&self) -> Access {
        Access { username: String::new(), password: SecretString::default(), ..self.clone() }
    }
}
