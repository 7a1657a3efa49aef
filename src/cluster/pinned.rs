//! Servers that show a certificate which the kubeconfig names as an authority: one that has signed itself, as
//! `openssl req -x509` makes it. kubectl takes it. The library here refuses a certificate that may sign
//! others as a server's, whoever names it. It counts where it is byte for byte one of the kubeconfig's, bears
//! the name that was called, and is valid now.

use kube::client::ConfigExt as _;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use std::sync::Arc;

/// How a server is reached that may show an authority of the kubeconfig; `None` where none of them bears its
/// name, as authorities usually do not.
///
/// # Errors
/// Where the client's own certificate cannot be used.
pub(super) fn tls(config: &kube::Config) -> kube::Result<Option<ClientConfig>> {
    let Some(verifier) = verifier(config) else { return Ok(None) };
    let mut tls = config.rustls_client_config()?;
    tls.dangerous().set_certificate_verifier(Arc::new(verifier));
    Ok(Some(tls))
}

/// Returns true if a server may show an authority of the kubeconfig.
pub(super) fn is_needed(config: &kube::Config) -> bool {
    verifier(config).is_some()
}

/// The name that the server's certificate is for.
pub(super) fn server_name(config: &kube::Config) -> Option<ServerName<'static>> {
    let named = config.tls_server_name.as_deref().or_else(|| config.cluster_url.host())?;
    ServerName::try_from(named.trim_start_matches('[').trim_end_matches(']').to_owned()).ok()
}

fn verifier(config: &kube::Config) -> Option<Verifier> {
    if config.accept_invalid_certs || config.root_cert_file.is_some() {
        return None;
    }
    let (name, mut roots, mut pinned) = (server_name(config)?, RootCertStore::empty(), Vec::new());
    for der in config.root_cert.iter().flatten() {
        let certificate = CertificateDer::from(der.clone());
        roots.add(certificate.clone()).ok()?;
        if is_for(&certificate, &name).is_ok() {
            pinned.push(certificate);
        }
    }
    if pinned.is_empty() {
        return None;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let usual = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build().ok()?;
    Some(Verifier { usual, pinned })
}

fn is_for(certificate: &CertificateDer<'_>, name: &ServerName<'_>) -> Result<(), rustls::Error> {
    verify_server_name(&ParsedCertificate::try_from(certificate)?, name)
}

/// Believes the kubeconfig's authorities, and a server that shows one of them.
#[derive(Debug)]
struct Verifier {
    usual: Arc<WebPkiServerVerifier>,
    pinned: Vec<CertificateDer<'static>>,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        self.usual.verify_server_cert(end_entity, intermediates, server_name, ocsp, now).or_else(|error| {
            // That it is valid now was found out before that it may sign others.
            let only_signs = format!("{error:?}").contains("CaUsedAsEndEntity");
            if !only_signs || !self.pinned.contains(&end_entity.clone().into_owned()) {
                return Err(error);
            }
            is_for(end_entity, server_name)?;
            Ok(ServerCertVerified::assertion())
        })
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.usual.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.usual.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.usual.supported_verify_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair, date_time_ymd};

    /// As `openssl req -x509` makes it: it may sign others, and has signed itself.
    fn own_authority(name: &str, until: i32) -> CertificateDer<'static> {
        let mut params = CertificateParams::new([name.to_owned()]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.not_after = date_time_ymd(until, 1, 1);
        params.self_signed(&KeyPair::generate().unwrap()).unwrap().der().clone()
    }

    fn config(url: &str, roots: &[&CertificateDer<'_>]) -> kube::Config {
        let mut config = kube::Config::new(url.parse().unwrap());
        config.root_cert = Some(roots.iter().map(|root| root.to_vec()).collect());
        config
    }

    #[test]
    fn a_server_that_is_its_own_authority_is_taken_as_it_is_named() {
        let (own, other) = (own_authority("127.0.0.1", 2999), own_authority("127.0.0.1", 2999));
        let known = verifier(&config("https://127.0.0.1:6443", &[&own])).unwrap();
        let verify = |verifier: &Verifier, shown: &CertificateDer<'_>, name: &str| {
            let name = ServerName::try_from(name.to_owned()).unwrap();
            verifier.verify_server_cert(shown, &[], &name, &[], UnixTime::now()).map(|_| ())
        };
        assert_eq!(verify(&known, &own, "127.0.0.1"), Ok(()));
        assert!(verify(&known, &own, "127.0.0.2").is_err(), "another name");
        assert!(verify(&known, &other, "127.0.0.1").is_err(), "another certificate");
        let expired = own_authority("127.0.0.1", 2001);
        let old = verifier(&config("https://127.0.0.1:6443", &[&expired])).unwrap();
        assert!(verify(&old, &expired, "127.0.0.1").is_err(), "expired");
        // A certificate that names no server is an authority like any other.
        assert!(!is_needed(&config("https://10.0.0.1:6443", &[&own])));
    }
}
