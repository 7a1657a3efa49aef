//! The user of a client certificate. As on a real API server, a certificate of an unknown authority, or one
//! that has expired, does not end the TLS handshake: its requests are answered with 401, which a client can
//! tell its user. Never makes a certificate.

use super::certificates::{Failure, user_of};
use opdev_apimachinery::identity::User;
use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{DigitallySignedStruct, DistinguishedName, Error, RootCertStore, SignatureScheme};
use std::sync::Arc;

/// The user in the client certificate of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CertificateUser {
    /// There is none.
    Absent,
    /// No known authority signed it, it has ended, or it names nobody: who has no other credential is
    /// refused.
    Refused,
    Known(User),
}

/// The authorities that sign the certificates of clients.
#[derive(Clone, Debug)]
pub(crate) struct ClientAuthorities {
    verifier: Arc<dyn ClientCertVerifier>,
}

impl ClientAuthorities {
    /// # Errors
    /// Where there is no authority among the roots.
    pub(crate) fn new(roots: RootCertStore, provider: Arc<CryptoProvider>) -> Result<Self, Failure> {
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
            .allow_unauthenticated()
            .build()?;
        Ok(ClientAuthorities { verifier })
    }

    /// The user of a certificate, which comes first, with those that lead up to its authority.
    pub(crate) fn user(&self, chain: &[CertificateDer<'_>]) -> CertificateUser {
        let Some((first, above)) = chain.split_first() else { return CertificateUser::Absent };
        let verified = self.verifier.verify_client_cert(first, above, UnixTime::now());
        let user = verified.ok().and_then(|_| user_of(first));
        user.map_or(CertificateUser::Refused, CertificateUser::Known)
    }
}

/// Asks for a certificate, and takes each whose key the client has: `user` decides afterwards.
impl ClientCertVerifier for ClientAuthorities {
    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.verifier.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verifier.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verifier.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.verifier.supported_verify_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::super::certificates::Authority;
    use super::*;
    use rustls::pki_types::pem::PemObject as _;

    fn chain(pem: &str) -> Vec<CertificateDer<'static>> {
        CertificateDer::pem_slice_iter(pem.as_bytes()).collect::<Result<_, _>>().unwrap()
    }

    #[test]
    fn only_a_certificate_of_a_known_authority_that_is_still_valid_names_a_user() {
        let year = jiff::Timestamp::now().to_zoned(jiff::tz::TimeZone::UTC).year();
        let authority = Authority::new(year).unwrap();
        let mut roots = RootCertStore::empty();
        roots.add(chain(&authority.certificate()).remove(0)).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let authorities = ClientAuthorities::new(roots, provider).unwrap();
        let of = |authority: &Authority| authority.client("jane", "admins").unwrap().certificate;
        let known = authorities.user(&chain(&of(&authority)));
        assert!(matches!(&known, CertificateUser::Known(user) if user.name == "jane"), "{known:?}");
        let stranger = authorities.user(&chain(&of(&Authority::new(year).unwrap())));
        assert_eq!(stranger, CertificateUser::Refused, "another authority of the same name");
        let mut roots = RootCertStore::empty();
        let old = Authority::new(year - 9).unwrap();
        roots.add(chain(&old.certificate()).remove(0)).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let authorities = ClientAuthorities::new(roots, provider).unwrap();
        assert_eq!(authorities.user(&chain(&of(&old))), CertificateUser::Refused, "it ended years ago");
        assert_eq!(authorities.user(&[]), CertificateUser::Absent);
    }
}
