//! How a server is reached: credentials, certificates, and what the user allows beside.

use secrecy::{ExposeSecret as _, SecretString};
use std::path::PathBuf;

/// The access to a chart repository or a registry.
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
    /// True if a certificate that nobody vouches for is taken.
    pub skip_verification: bool,
    /// True if a registry is asked without TLS.
    pub plain_http: bool,
    /// True if the credentials go to every host that an index names, and not to the repository's only; also
    /// whether one login goes to several registries of a chart's dependencies.
    pub pass_to_all_hosts: bool,
    /// The access of the command line alone, where the entry of a repository is mixed in.
    pub of_command_line: Option<Box<Access>>,
}

impl Access {
    /// Returns true if there are a user and a password, which Helm sends only together.
    pub(super) fn has_login(&self) -> bool {
        !self.username.is_empty() && !self.password.expose_secret().is_empty()
    }

    /// For a registry that an index names: without a login, and without what only the repository's entry
    /// says.
    pub(super) fn for_registry(&self) -> Access {
        self.of_command_line.as_deref().unwrap_or(self).without_login()
    }

    /// This access without user and password.
    pub(super) fn without_login(&self) -> Access {
        Access { username: String::new(), password: SecretString::default(), ..self.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_repositorys_entry_says_stays_with_the_repository() {
        let given = Access { ca_file: Some("own.pem".into()), ..Access::default() };
        let merged = Access {
            username: "u".to_owned(),
            password: "p".to_owned().into(),
            skip_verification: true,
            cert_file: Some("client.pem".into()),
            of_command_line: Some(Box::new(given)),
            ..Access::default()
        };
        let registry = merged.for_registry();
        assert!(!registry.skip_verification && registry.cert_file.is_none() && !registry.has_login());
        assert_eq!(registry.ca_file, Some("own.pem".into()));
        let plain = Access { skip_verification: true, ..Access::default() };
        assert!(plain.for_registry().skip_verification, "the command line's own word counts");
    }
}
